//! RFC 0020 §3.6: how far a subscriber's events were brought to it, and which of them were given up.
//!
//! INVARIANT: what was brought is written after the receiver has it, so a crash repeats an event and never leaves one out.

use sha2::{Digest, Sha256};

/// Where the events of a standing intent are brought, and how that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The address that agreed to get them.
    pub endpoint: String,
    /// What messages are signed with beside the node's key, and until when, in milliseconds since 1970; nought for ever.
    pub secrets: Vec<(String, i64)>,
    /// Whether anything is sent.
    pub course: Course,
    /// The last event that the receiver has.
    pub delivered: u64,
    /// Attempts to bring the next one.
    pub attempts: u64,
    /// When the first of them was, in milliseconds since 1970.
    pub first_at: i64,
    /// When the next one is due, in milliseconds since 1970.
    pub due_at: i64,
}

/// Whether anything is sent to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// What comes is sent.
    Running,
    /// The receiver said that it is gone.
    Gone,
    /// An event was tried for as long as one is.
    GivenUp,
    /// The receiver has everything, and it is over.
    Done,
}

impl Course {
    const ALL: [Self; 4] = [Self::Running, Self::Gone, Self::GivenUp, Self::Done];

    fn number(self) -> u8 {
        match self {
            Self::Running => 0,
            Self::Gone => 1,
            Self::GivenUp => 2,
            Self::Done => 3,
        }
    }
}

/// An event that was given up; it stays in its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Whose.
    pub subscription: u64,
    /// Which event.
    pub cursor: u64,
    /// When it was given up, in milliseconds since 1970.
    pub at: i64,
    /// How often it was tried.
    pub attempts: u64,
    /// What the receiver answered last; nought when it did not.
    pub status: u16,
}

impl Webhook {
    /// A new one, to which nothing was brought.
    pub fn new(endpoint: String, secret: Option<String>) -> Self {
        Self {
            endpoint,
            secrets: secret.into_iter().map(|secret| (secret, 0)).collect(),
            course: Course::Running,
            delivered: 0,
            attempts: 0,
            first_at: 0,
            due_at: 0,
        }
    }

    /// As kept beside its subscription, with a checksum.
    pub(crate) fn kept(&self, subscription: u64) -> Vec<u8> {
        let mut bytes = vec![self.course.number()];
        for number in [self.delivered, self.attempts, self.first_at.cast_unsigned(), self.due_at.cast_unsigned()] {
            bytes.extend(number.to_be_bytes());
        }
        text(&mut bytes, &self.endpoint);
        for (secret, until) in &self.secrets {
            bytes.extend(until.to_be_bytes());
            text(&mut bytes, secret);
        }
        let checksum = checksum(subscription, &bytes);
        bytes.extend(checksum);
        bytes
    }

    /// Reads what [`Self::kept`] wrote, unless anything of it was altered.
    pub(crate) fn read(subscription: u64, kept: &[u8]) -> Option<Self> {
        let (bytes, told) = kept.split_last_chunk::<8>()?;
        if checksum(subscription, bytes) != *told {
            return None;
        }
        let (&course, mut rest) = bytes.split_first()?;
        let course = *Course::ALL.get(usize::from(course))?;
        let [delivered, attempts] = [number(&mut rest)?, number(&mut rest)?];
        let [first_at, due_at] = [number(&mut rest)?.cast_signed(), number(&mut rest)?.cast_signed()];
        let endpoint = read_text(&mut rest)?;
        let mut secrets = Vec::new();
        while !rest.is_empty() {
            let until = number(&mut rest)?.cast_signed();
            secrets.push((read_text(&mut rest)?, until));
        }
        Some(Self { endpoint, secrets, course, delivered, attempts, first_at, due_at })
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_be_bytes());
    bytes.extend(text.as_bytes());
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_be_bytes(*number))
}

fn read_text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

fn checksum(subscription: u64, bytes: &[u8]) -> [u8; 8] {
    let digest = Sha256::new().chain_update(b"webhook").chain_update(subscription.to_be_bytes()).chain_update(bytes);
    digest.finalize().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_read_as_it_was_written() {
        let fresh = Webhook::new("https://example.com/hook".into(), None);
        let used = Webhook {
            secrets: vec![("whsec_a".into(), 17), ("whsec_b".into(), 0)],
            course: Course::GivenUp,
            delivered: 9,
            attempts: 3,
            first_at: 1_000,
            due_at: 2_000,
            ..fresh.clone()
        };
        for webhook in [fresh, used] {
            let kept = webhook.kept(4);
            assert_eq!(Webhook::read(4, &kept), Some(webhook));
            assert_eq!(Webhook::read(5, &kept), None);
            for position in 0..kept.len() {
                let mut altered = kept.clone();
                altered[position] ^= 1;
                assert_eq!(Webhook::read(4, &altered), None, "{position}");
            }
        }
    }
}
