//! RFC 0020 §3.6: events that are brought to the subscriber by HTTP.
//!
//! A delivery is signed twice over the same bytes: as Standard Webhooks has it (`webhook-id`, `webhook-timestamp`,
//! `webhook-signature`), and as RFC 9421 has it, so that the method and the address are covered, too. Nobody is sent an
//! event who did not answer a challenge first. Why a delivery is tried again, and when no more, is decisions/0101.
//!
//! INVARIANT: what is signed is what is sent; the time, the secret and the challenge are handed in.

use json::{Value, json};
use trust::encoding::{decode, encode_padded};
use trust::http::{base, content_digest};
use trust::{Digest, SigningKey};

/// Bytes of a shared secret, as Standard Webhooks bounds them.
pub const SECRET_BYTES_MIN: usize = 24;
/// The longest shared secret.
pub const SECRET_BYTES_MAX: usize = 64;
/// Seconds after its first attempt at which an event is tried no more.
pub const GIVE_UP_SECONDS: i64 = 24 * 3600;
/// Seconds that a receiver may ask us to wait at most.
pub const RETRY_AFTER_MAX: u64 = 3600;
/// Seconds that one attempt may take.
pub const ATTEMPT_SECONDS: u64 = 15;
/// Bytes of the answer to a challenge that are read.
pub const ANSWER_BYTES_MAX: usize = 4096;

/// Bytes of an address.
pub const ENDPOINT_BYTES_MAX: usize = 2048;
/// Given up events of one subscription that are remembered; the oldest are forgotten first.
pub const DEAD_LETTERS_MAX: usize = 100;
/// Seconds for which messages are signed with a secret that was replaced, too.
pub const SECRET_SECONDS: i64 = 24 * 3600;

/// A secret that the subscriber and we share; printing it shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Reads `whsec_` and base64.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = decode(text.strip_prefix("whsec_")?)?;
        (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()).then_some(Self(bytes))
    }

    /// Writes it as it is read.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", encode_padded(&self.0))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secret")
    }
}

/// One message to a receiver.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The same for every attempt; by it the receiver tells what it has already.
    pub id: &'a str,
    /// Seconds since the epoch at this attempt.
    pub timestamp: i64,
    /// Where it goes.
    pub url: &'a str,
    /// What it says, as it is sent.
    pub body: &'a [u8],
}

/// The name of the message that carries an event; it has no full stop, because one separates what is signed.
pub fn message_id(subscription_id: &str, cursor: u64) -> String {
    format!("evt_{}_{cursor}", plain(subscription_id))
}

/// The name of the message that says which events are no longer kept, up to a cursor.
pub fn gap_id(subscription_id: &str, before_first: u64) -> String {
    format!("gap_{}_{before_first}", plain(subscription_id))
}

/// The name of the message that says that a subscription is over.
pub fn end_id(subscription_id: &str) -> String {
    format!("end_{}", plain(subscription_id))
}

fn plain(subscription_id: &str) -> String {
    subscription_id.rsplit(':').next().unwrap_or_default().replace('.', "-")
}

/// What every message is.
pub const CONTENT_TYPE: &str = "application/json";

/// The label of our signature among others that a message may get on its way.
const LABEL: &str = "rialto";

impl Message<'_> {
    /// All header fields of the request, names in lower case.
    pub fn headers(&self, key: &SigningKey, key_id: &str, secrets: &[Secret]) -> Vec<(&'static str, String)> {
        let timestamp = self.timestamp.to_string();
        let content_digest = content_digest(self.body);
        let components = [
            ("@method", "POST"),
            ("@target-uri", self.url),
            ("content-digest", content_digest.as_str()),
            ("content-type", CONTENT_TYPE),
            ("webhook-id", self.id),
            ("webhook-timestamp", timestamp.as_str()),
        ];
        let parameters = parameters(&components, self.timestamp, key_id, Some("ed25519"));
        let signature = key.sign(base(components, &parameters).as_bytes());
        vec![
            ("content-type", CONTENT_TYPE.to_owned()),
            ("signature-input", format!("{LABEL}={parameters}")),
            ("signature", format!("{LABEL}=:{}:", encode_padded(&signature))),
            ("webhook-signature", self.signatures(key, secrets)),
            ("webhook-id", self.id.to_owned()),
            ("webhook-timestamp", timestamp),
            ("content-digest", content_digest),
        ]
    }

    /// One signature by our key (`v1a`), and one by each shared secret (`v1`): two while a secret is being replaced.
    pub fn signatures(&self, key: &SigningKey, secrets: &[Secret]) -> String {
        let signed = self.signed();
        let by_key = format!("v1a,{}", encode_padded(&key.sign(&signed)));
        let by_secret = secrets.iter().map(|secret| format!("v1,{}", encode_padded(&hmac(&secret.0, &signed))));
        std::iter::once(by_key).chain(by_secret).collect::<Vec<_>>().join(" ")
    }

    fn signed(&self) -> Vec<u8> {
        [self.id.as_bytes(), b".", self.timestamp.to_string().as_bytes(), b".", self.body].concat()
    }
}

/// RFC 9421: the signature parameters, which are the value of `@signature-params` and of `signature-input`.
pub fn parameters(components: &[(&str, &str)], created: i64, key_id: &str, algorithm: Option<&str>) -> String {
    let names: Vec<String> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let algorithm = algorithm.map_or_else(String::new, |algorithm| format!(";alg=\"{algorithm}\""));
    format!("({});created={created};keyid=\"{key_id}\"{algorithm}", names.join(" "))
}

/// Bytes that SHA-256 takes at a time.
const BLOCK: usize = 64;

/// RFC 2104 with SHA-256.
fn hmac(secret: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    match block.get_mut(..secret.len()) {
        Some(place) => place.copy_from_slice(secret),
        None => {
            let short = Digest::of(secret);
            block.iter_mut().zip(short.as_bytes()).for_each(|(place, byte)| *place = *byte);
        }
    }
    let inner = Digest::of(&[block.map(|byte| byte ^ 0x36).as_slice(), message].concat());
    *Digest::of(&[block.map(|byte| byte ^ 0x5c).as_slice(), inner.as_bytes()].concat()).as_bytes()
}

/// What an address is asked before it is sent any event.
pub fn challenge(subscription_id: &str, token: &str) -> Value {
    json!({"type": "oap.subscription.challenge", "subscription_id": subscription_id, "challenge": token})
}

/// Whether an answer says the challenge back: as the member `challenge` of an object, or as the whole text.
pub fn answers(token: &str, status: u16, body: &[u8]) -> bool {
    if !is_success(status) || body.len() > ANSWER_BYTES_MAX || token.is_empty() {
        return false;
    }
    if body.trim_ascii() == token.as_bytes() {
        return true;
    }
    let document = json::Document::parse(body, &json::Limits::INTENT).ok();
    document.is_some_and(|document| document.root().get("challenge").and_then(json::Node::as_str) == Some(token))
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// How long a receiver wants to be left alone, as the header field `retry-after` says in seconds; a date says nothing
/// that a clock of theirs and a clock of ours agree on.
pub fn retry_after(field: &str) -> Option<u64> {
    field.trim().parse().ok()
}

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The receiver answered.
    Answered {
        /// With this status.
        status: u16,
        /// And wants to be left alone for so many seconds.
        retry_after: Option<u64>,
    },
    /// Nobody answered, or not in time, or the way there is closed.
    Failed,
}

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has it; on to the next one.
    Delivered,
    /// It is tried again after so many seconds.
    Again(u64),
    /// It is dead, and nothing more is sent to this address until somebody asks by hand.
    Dead(Cause),
}

/// Why a delivery was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The receiver said that it is gone (410).
    Gone,
    /// It was tried for a day.
    TooLate,
}

/// Seconds before the second attempt, the third, and so on; the last one again and again.
const WAITS: [u64; 9] = [5, 30, 120, 300, 900, 1_800, 3_600, 7_200, 14_400];

/// What becomes of a message after its attempt number `attempts`; `first` and `now` are seconds since the epoch, and
/// `chance` is any number, so that receivers which failed together are not asked together again.
pub fn verdict(attempt: Attempt, attempts: usize, first: i64, now: i64, chance: u64) -> Verdict {
    let asked = match attempt {
        Attempt::Answered { status, .. } if is_success(status) => return Verdict::Delivered,
        Attempt::Answered { status: 410, .. } => return Verdict::Dead(Cause::Gone),
        Attempt::Answered { retry_after, .. } => retry_after.unwrap_or_default().min(RETRY_AFTER_MAX),
        Attempt::Failed => 0,
    };
    let wait = WAITS.get(attempts.saturating_sub(1)).or(WAITS.last()).copied().unwrap_or(RETRY_AFTER_MAX);
    let wait = (wait + chance % (wait / 4 + 1)).max(asked);
    if now.saturating_add(wait as i64) > first.saturating_add(GIVE_UP_SECONDS) {
        return Verdict::Dead(Cause::TooLate);
    }
    Verdict::Again(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trust::Algorithm;

    fn key(seed: &str) -> SigningKey {
        SigningKey::from_seed(trust::encoding::decode_url(seed).unwrap().try_into().unwrap())
    }

    /// The seed of `test-key-ed25519` in RFC 9421 B.1.4.
    const SEED: &str = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";

    #[test]
    fn the_published_example_with_ed25519_comes_out() {
        let components = [
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("@method", "POST"),
            ("@path", "/foo"),
            ("@authority", "example.com"),
            ("content-type", "application/json"),
            ("content-length", "18"),
        ];
        let parameters = parameters(&components, 1_618_884_473, "test-key-ed25519", None);
        let signature = key(SEED).sign(base(components, &parameters).as_bytes());
        let expected = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==";
        assert_eq!(encode_padded(&signature), expected);
    }

    #[test]
    fn the_published_example_with_a_shared_secret_comes_out() {
        let secret = Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            timestamp: 1_614_265_330,
            url: "https://example.com/",
            body: br#"{"test": 2432232314}"#,
        };
        let signatures = message.signatures(&key(SEED), &[secret]);
        assert!(signatures.ends_with(" v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), "{signatures}");
    }

    #[test]
    fn the_published_digest_of_a_body_comes_out() {
        let expected = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
        assert_eq!(content_digest(br#"{"hello": "world"}"#), expected);
    }

    #[test]
    fn hashing_with_secrets_follows_rfc_4231() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let cases: [(&[u8], &[u8], &str); 2] = [
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (secret, message, expected) in cases {
            assert_eq!(hex(hmac(secret, message)), expected);
        }
    }

    #[test]
    fn every_signature_of_a_message_verifies_from_its_headers() {
        let key = key(SEED);
        let (id, body) = (message_id("urn:oap:subscription:a.b", 7), br#"{"cursor":7}"#);
        let message = Message { id: &id, timestamp: 1_800_000_000, url: "https://example.com/hook?x=1", body };
        let headers = message.headers(&key, "did:web:node.example#k1", &[]);
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).unwrap().1.clone();
        assert_eq!(header("webhook-id"), "evt_a-b_7");
        let public = key.public();
        assert_eq!(public.algorithm(), Algorithm::EdDsa);
        let by_key = header("webhook-signature");
        let by_key = decode(by_key.strip_prefix("v1a,").unwrap()).unwrap();
        assert!(public.verifies(br#"evt_a-b_7.1800000000.{"cursor":7}"#, &by_key));

        let expected = r#""@method": POST
"@target-uri": https://example.com/hook?x=1
"content-digest": CONTENT
"content-type": application/json
"webhook-id": evt_a-b_7
"webhook-timestamp": 1800000000
"@signature-params": ("@method" "@target-uri" "content-digest" "content-type" "webhook-id" "webhook-timestamp");created=1800000000;keyid="did:web:node.example#k1";alg="ed25519""#
            .replace("CONTENT", &header("content-digest"));
        let signature = header("signature");
        let signature = decode(signature.strip_prefix("rialto=:").unwrap().strip_suffix(':').unwrap()).unwrap();
        assert!(public.verifies(expected.as_bytes(), &signature));
        let parameters = expected.split_once("\"@signature-params\": ").unwrap().1;
        assert_eq!(header("signature-input"), format!("rialto={parameters}"));
    }

    #[test]
    fn secrets_of_a_wrong_length_or_form_are_none() {
        for text in
            ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"]
        {
            assert_eq!(Secret::read(text), None, "{text}");
        }
        let secret = Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(secret.reveal(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        assert_eq!(format!("{:?}", Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()), "Secret");
    }

    #[test]
    fn a_challenge_is_answered_by_saying_it_back() {
        let asked = challenge("urn:oap:subscription:1", "abc");
        assert!(answers("abc", 200, asked.to_string().as_bytes()), "an echo is an answer");
        assert!(answers("abc", 204, b"abc\n"));
        for (status, body) in
            [(200, "abd"), (200, ""), (200, r#"{"challenge":"x"}"#), (200, r#"["abc"]"#), (302, "abc"), (500, "abc")]
        {
            assert!(!answers("abc", status, body.as_bytes()), "{status} {body}");
        }
        assert!(!answers("", 200, b""));
        assert!(!answers("abc", 200, format!("{}abc", " ".repeat(ANSWER_BYTES_MAX)).as_bytes()));
    }

    #[test]
    fn an_hour_of_failures_is_less_than_twenty_attempts_and_a_day_is_the_end() {
        for chance in [0, u64::MAX, 12_345] {
            let (mut now, mut attempts, mut in_the_first_hour) = (0, 1, 1);
            let answered = Attempt::Answered { status: 500, retry_after: None };
            let cause = loop {
                match verdict(answered, attempts, 0, now, chance) {
                    Verdict::Again(wait) => now += wait as i64,
                    Verdict::Dead(cause) => break cause,
                    Verdict::Delivered => panic!("500 is no delivery"),
                }
                attempts += 1;
                in_the_first_hour += i32::from(now <= 3600);
            };
            assert_eq!(cause, Cause::TooLate);
            assert!(in_the_first_hour <= 8 && attempts <= 20, "{in_the_first_hour} {attempts}");
            assert!(now <= GIVE_UP_SECONDS && now > GIVE_UP_SECONDS / 2, "{now}");
        }
    }

    #[test]
    fn what_follows_from_an_attempt() {
        let answered = |status, retry_after| Attempt::Answered { status, retry_after };
        let cases = [
            (answered(200, None), Verdict::Delivered),
            (answered(204, Some(60)), Verdict::Delivered),
            (answered(410, None), Verdict::Dead(Cause::Gone)),
            (answered(302, None), Verdict::Again(5)),
            (answered(404, None), Verdict::Again(5)),
            (answered(429, Some(60)), Verdict::Again(60)),
            (answered(503, Some(u64::MAX)), Verdict::Again(RETRY_AFTER_MAX)),
            (Attempt::Failed, Verdict::Again(5)),
        ];
        for (attempt, expected) in cases {
            assert_eq!(verdict(attempt, 1, 0, 0, 0), expected, "{attempt:?}");
        }
    }
}
