//! RFC 0020 §3.6, §3.7: what a subscriber is told, one signed document at a time.
//!
//! A standing intent has an answer, and the answer is a set. A record enters the set, changes inside it, or leaves it;
//! the five event types of the subscription mechanics say by what. What the subscriber cannot see is no change
//! (decisions/0091).
//!
//! INVARIANT: an event is a function of what was visible before and what is visible after, and of nothing else.

use json::{Value, Writer};

/// What became of a record in the answer set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// It is in the answer and was not.
    Entered,
    /// It was and is in the answer, and looks different.
    Changed,
    /// It was in the answer and is not.
    Left,
}

impl SetChange {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entered => "entered",
            Self::Changed => "changed",
            Self::Left => "left",
        }
    }
}

/// By what it became so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// A record that satisfies the intent was published, or published so that it does.
    Created,
    /// A later revision satisfies it, too.
    Updated,
    /// Its publisher took it back.
    Withdrawn,
    /// Only its conformance changed, by its own word or by what others say of it.
    Recertified,
    /// A later revision does not satisfy it.
    Superseded,
}

impl EventType {
    /// All five with their names on the wire.
    pub const ALL: [(&'static str, Self); 5] = [
        ("created", Self::Created),
        ("updated", Self::Updated),
        ("withdrawn", Self::Withdrawn),
        ("recertified", Self::Recertified),
        ("superseded", Self::Superseded),
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

/// A record in the answer set, as the subscriber sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The projection of it, in canonical form.
    pub payload: Vec<u8>,
    /// Whether it costs more than the budget.
    pub over_budget: bool,
    /// The hash of all that the subscriber may see of it.
    pub hash: String,
    /// The same without what it says about its conformance.
    pub apart: [u8; 32],
}

/// What set a change off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The record itself was published or withdrawn.
    Record,
    /// Somebody said something about it.
    Evidence,
}

/// What a subscriber is told when a record was `before` and is `after`; `is_there` says whether it is there at all.
pub fn told(
    before: Option<&Seen>,
    after: Option<&Seen>,
    is_there: bool,
    cause: Cause,
) -> Option<(SetChange, EventType)> {
    let change = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => SetChange::Entered,
        (Some(_), None) => SetChange::Left,
        (Some(before), Some(after)) => {
            let same = before.payload == after.payload && before.over_budget == after.over_budget;
            if same {
                return None;
            }
            SetChange::Changed
        }
    };
    let certified = || before.zip(after).is_some_and(|(before, after)| before.apart == after.apart);
    let by = match (change, cause) {
        (SetChange::Left, _) if !is_there => EventType::Withdrawn,
        (_, Cause::Evidence) => EventType::Recertified,
        (SetChange::Entered, _) => EventType::Created,
        (SetChange::Changed, _) if certified() => EventType::Recertified,
        (SetChange::Changed, _) => EventType::Updated,
        (SetChange::Left, _) => EventType::Superseded,
    };
    Some((change, by))
}

/// A manifest event before it is signed.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// To whom.
    pub subscription_id: &'a str,
    /// Its place in the journal.
    pub cursor: u64,
    /// Who tells it.
    pub publisher_did: &'a str,
    /// When it was written.
    pub emitted_at: &'a str,
    /// What became of the record.
    pub change: SetChange,
    /// By what.
    pub by: EventType,
    /// Which record.
    pub manifest_id: &'a str,
    /// As it was, when it was in the answer.
    pub before: Option<&'a Seen>,
    /// As it is, when it is in the answer.
    pub after: Option<&'a Seen>,
    /// Whether it is one of those that were there when the subscription began.
    pub snapshot: bool,
    /// The proof that the record is in the tree, in canonical form.
    pub inclusion: &'a [u8],
}

/// The name of an event before the name of its subscription.
const NAME: &str = "urn:oap:manifest-event:";

impl Event<'_> {
    /// The name of an event: the same however often it is sent.
    pub fn id(subscription_id: &str, cursor: u64) -> String {
        format!("{NAME}{}.{cursor}", subscription_id.rsplit(':').next().unwrap_or_default())
    }

    /// Writes the event in canonical form. Without a receipt these are the bytes that the chain covers, without a
    /// signature those that are signed.
    pub fn write(&self, chain_hash: Option<&str>, signature: Option<&Value>) -> Vec<u8> {
        let id = Self::id(self.subscription_id, self.cursor);
        let mut writer = Writer::default();
        let text = |writer: &mut Writer, name: &str, value: &str| {
            writer.name(name);
            writer.string(value);
        };
        writer.object();
        writer.name("cursor");
        writer.number(self.cursor as f64);
        text(&mut writer, "emitted_at", self.emitted_at);
        text(&mut writer, "event_id", &id);
        if let Some(chain_hash) = chain_hash {
            writer.name("event_receipt");
            writer.object();
            text(&mut writer, "chain_hash", chain_hash);
            text(&mut writer, "receipt_id", &format!("urn:oap:receipt:{}", id.trim_start_matches(NAME)));
            writer.end_object();
        }
        text(&mut writer, "event_type", self.by.name());
        writer.name("inclusion_proof");
        writer.canonical(self.inclusion);
        if let Some(after) = self.after {
            text(&mut writer, "manifest_hash_after", &after.hash);
        }
        if let Some(before) = self.before {
            text(&mut writer, "manifest_hash_before", &before.hash);
        }
        text(&mut writer, "manifest_id", self.manifest_id);
        if self.after.is_some_and(|after| after.over_budget) {
            writer.name("over_budget");
            writer.bool(true);
        }
        if let Some(after) = self.after {
            writer.name("payload");
            writer.canonical(&after.payload);
        }
        text(&mut writer, "publisher_did", self.publisher_did);
        text(&mut writer, "set_change", self.change.name());
        if let Some(signature) = signature {
            writer.name("signature");
            writer.value(signature);
        }
        if self.snapshot {
            writer.name("snapshot");
            writer.bool(true);
        }
        text(&mut writer, "subscription_id", self.subscription_id);
        text(&mut writer, "type", "oap.manifest.event");
        writer.end_object();
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, Limits, json};

    fn seen(payload: &str, apart: u8) -> Seen {
        Seen { payload: payload.into(), over_budget: false, hash: format!("sha256:{payload}"), apart: [apart; 32] }
    }

    #[test]
    fn a_record_enters_changes_and_leaves_and_the_type_says_by_what() {
        let (a, b, c) = (seen("a", 1), seen("b", 2), seen("c", 1));
        let dear = Seen { over_budget: true, ..a.clone() };
        use {Cause::*, EventType::*, SetChange::*};
        let cases = [
            (None, None, true, Record, None),
            (None, Some(&a), true, Record, Some((Entered, Created))),
            (Some(&a), Some(&a), true, Record, None),
            (Some(&a), Some(&b), true, Record, Some((Changed, Updated))),
            (Some(&a), Some(&c), true, Record, Some((Changed, Recertified))),
            (Some(&a), Some(&dear), true, Record, Some((Changed, Recertified))),
            (Some(&a), None, true, Record, Some((Left, Superseded))),
            (Some(&a), None, false, Record, Some((Left, Withdrawn))),
            (None, Some(&a), true, Evidence, Some((Entered, Recertified))),
            (Some(&a), None, true, Evidence, Some((Left, Recertified))),
            (Some(&a), Some(&a), true, Evidence, None),
            (Some(&a), None, false, Evidence, Some((Left, Withdrawn))),
        ];
        for (before, after, is_there, cause, expected) in cases {
            assert_eq!(told(before, after, is_there, cause), expected, "{before:?} {after:?} {is_there} {cause:?}");
        }
    }

    #[test]
    fn what_is_written_is_canonical_with_and_without_signature() {
        let (before, after) = (seen("{\"a\":1}", 1), seen("{\"a\":2}", 1));
        let event = Event {
            subscription_id: "urn:rialto:subscription:abc",
            cursor: 7,
            publisher_did: "did:key:z",
            emitted_at: "2026-05-01T12:00:00Z",
            change: SetChange::Changed,
            by: EventType::Updated,
            manifest_id: "did:web:a.example",
            before: Some(&before),
            after: Some(&Seen { over_budget: true, ..after }),
            snapshot: true,
            inclusion: b"{}",
        };
        for (chain, signature) in [(None, None), (Some("sha256:00"), None), (Some("x"), Some(&json!({"alg": "EdDSA"})))]
        {
            let bytes = event.write(chain, signature);
            let document = Document::parse(&bytes, &Limits::OURS).unwrap();
            assert_eq!(json::canonical(document.root()), bytes);
        }
        let text = String::from_utf8(event.write(Some("x"), None)).unwrap();
        assert!(text.contains("\"event_id\":\"urn:oap:manifest-event:abc.7\""), "{text}");
    }
}
