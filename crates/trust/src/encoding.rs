//! Base64 in both alphabets (RFC 4648), strict: a text is read in one way or not at all.
//!
//! We write base64url without padding (RFC 0020 §3.1 `signature.value`). Signers write what their library gives them,
//! so all four usual spellings are read; whitespace, mixed alphabets, half padding and stray bits are not.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Writes base64url without padding.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Writes standard base64 with padding, as HTTP header fields want it.
pub fn encode_padded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads base64url or standard base64, with or without padding; `None` when it is neither.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let standard = text.contains(['+', '/']);
    let engine = match (standard, text.ends_with('=')) {
        (true, true) => STANDARD,
        (true, false) => STANDARD_NO_PAD,
        (false, true) => URL_SAFE,
        (false, false) => URL_SAFE_NO_PAD,
    };
    engine.decode(text).ok()
}

/// Reads standard base64 with padding, as HTTP header fields have it; `None` when it is anything else.
pub(crate) fn decode_padded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Reads base64url without padding, as RFC 7515 wants it inside a JWK; `None` when it is anything else.
pub fn decode_url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_spellings_are_read() {
        let bytes = [0xfb, 0xef, 0xff, 0x01];
        for text in ["--__AQ", "--__AQ==", "++//AQ", "++//AQ=="] {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_slice()), "{text}");
        }
        assert_eq!(encode(&bytes), "--__AQ");
        assert_eq!(encode_padded(&bytes), "++//AQ==");
        assert_eq!(decode(""), Some(vec![]));
    }

    #[test]
    fn base64_games_are_refused() {
        for text in [
            "--__AR",
            "--__AR==",
            "AB",
            "AAB",
            "AB==",
            "AAB=", // stray bits behind the last byte
            "--__AQ=",
            "--__AQ===",
            "AAAA=",
            "AAAA====",
            "=",
            "==",
            "====", // padding of a wrong length
            "AQ==AQ==",
            "A=Q=",
            "=AQ=",
            "AQ=A", // padding in the middle
            " AQ",
            "AQ ",
            "A Q",
            "AQ\n",
            "A\r\nQ",
            "\tAQ",
            "AQ==\n",
            "AQ\0", // whitespace
            "-+AA",
            "+_AA",
            "/-AA",
            "__//",
            "++--AQ==", // mixed alphabets
            "A",
            "AAAAA",
            "A*AA",
            "ÄÖ",
            "AQ%3D%3D",
            "AQ.",
            "\u{ff21}Q", // wrong lengths and other characters
        ] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_jwk_has_one_spelling() {
        assert_eq!(decode_url("--__AQ"), Some(vec![0xfb, 0xef, 0xff, 0x01]));
        for text in ["--__AQ==", "++//AQ", "--__AR", "--__AQ\n"] {
            assert_eq!(decode_url(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_was_written_in_one_of_four_ways(text in "[-A-Za-z0-9+/_=]{0,12}") {
            if let Some(bytes) = decode(&text) {
                let spellings = [encode(&bytes), URL_SAFE.encode(&bytes), STANDARD.encode(&bytes), STANDARD_NO_PAD.encode(&bytes)];
                prop_assert!(spellings.contains(&text));
            }
        }
    }
}
