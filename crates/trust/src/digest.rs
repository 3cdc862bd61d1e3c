//! Content digests: SHA-256, written `sha256:` and lower-case hexadecimal, as receipts chain them.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The SHA-256 digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads the `sha256:` form; upper-case digits are no second spelling.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?.as_bytes();
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() {
            return None;
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().try_fold(0, |value, digit| Some(value << 4 | nibble(*digit)?))?;
        }
        Some(Self(digest))
    }

    /// A digest that was made before.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_form_reads_back() {
        let digest = Digest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(format!("{digest:?}"), text);
        assert_eq!(Digest::read(text), Some(digest));
        assert_eq!(digest.as_bytes()[..2], [0xba, 0x78]);
    }

    #[test]
    fn other_spellings_are_no_digests() {
        let good = Digest::of(b"").to_string();
        for text in
            ["", "sha256:", &good.to_uppercase(), &good[7..], &format!("{good}0"), &good[..70], &good.replace('e', "E")]
        {
            assert_eq!(Digest::read(text), None, "{text}");
        }
    }
}
