//! RFC 0020 §3.6: what a standing intent is promised, and what its issuer may ask later.
//!
//! The bounds stand in the manifest's table of limits by the names they have here.

use crate::webhook::Secret;
use json::{Value, json};

/// Standing intents of one issuer.
pub const ISSUER_MAX: usize = 100;
/// Standing intents of all issuers of one domain.
pub const DOMAIN_MAX: usize = 500;
/// Standing intents of a node.
pub const TOTAL_MAX: usize = 50_000;
/// Standing intents of one issuer whose filters only say what a record must not have; every change is held against each.
pub const UNFILED_ISSUER_MAX: usize = 10;
/// The same of a node.
pub const UNFILED_TOTAL_MAX: usize = 500;
/// Records on which a filter may run out of its fuel before its standing intent is ended.
pub const UNDECIDED_MAX: u64 = 20;
/// Events in a minute, for one subscription and for all of one issuer together.
pub const RATE_MAX: u64 = 6_000;
/// Bytes of a journal; when it is full, what comes waits until the oldest is forgotten.
pub const JOURNAL_BYTES_MAX: u64 = 256 << 20;
/// Records that wait for one subscriber; one that falls further behind is given up.
pub const PENDING_MAX: u64 = 100_000;
/// Records that a snapshot may begin with.
pub const SNAPSHOT_MAX: usize = 10_000;
/// Readers of one journal at a time.
pub const READERS_MAX: usize = 8;
/// Days for which events are kept, unless the operator says otherwise.
pub const RETENTION_DAYS: u32 = 30;
/// Days for which events are kept at least.
pub const RETENTION_DAYS_MIN: u32 = 7;
/// Milliseconds of silence after which a reader hears that there is nothing.
pub const HEARTBEAT_MS: u64 = 15_000;
/// Milliseconds that a poll may wait for the next event.
pub const POLL_MS_MAX: u64 = 25_000;

/// How events travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Server-sent events.
    #[default]
    Sse,
    /// A WebSocket.
    WebSocket,
    /// Asking again and again.
    Poll,
    /// The node brings them.
    Webhook,
}

impl Transport {
    /// All of them with their names on the wire.
    pub const ALL: [(&'static str, Self); 4] =
        [("sse", Self::Sse), ("websocket", Self::WebSocket), ("poll", Self::Poll), ("webhook", Self::Webhook)];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, transport)| *transport)
    }
}

/// What an issuer may ask of its subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Tell me nothing until I ask again, or until so many seconds are over.
    Pause(Option<u64>),
    /// Tell me again.
    Resume,
    /// Tell me at most so many events in a minute.
    BackPressure(u64),
    /// Bring me again what begins with this event.
    Replay(u64),
    /// Sign what you bring me with this secret from now on, and for a while with the one before, too.
    Secret(Secret),
    /// I no longer want to know.
    Withdraw,
}

/// What a subscriber is promised, before it is signed.
#[derive(Clone, Debug)]
pub struct Acknowledgement<'a> {
    /// What the subscription is called.
    pub subscription_id: &'a str,
    /// Which intent it stands for.
    pub intent_id: &'a str,
    /// Who promises.
    pub publisher_did: &'a str,
    /// Where the node is reached.
    pub base: &'a str,
    /// How events travel.
    pub transport: Transport,
    /// Where they are brought, when the node brings them.
    pub endpoint: Option<&'a str>,
    /// How many there are in a minute at most.
    pub rate: u64,
    /// Days for which they can be read again.
    pub retention_days: u32,
    /// When it ends.
    pub valid_until: &'a str,
    /// When it was acknowledged.
    pub issued_at: &'a str,
    /// How many records the journal begins with, when the answer as it stands was asked for.
    pub snapshot: Option<u64>,
}

impl Acknowledgement<'_> {
    /// The document, without its signature.
    pub fn to_value(&self) -> Value {
        let name = self.subscription_id.rsplit(':').next().unwrap_or_default();
        let at = format!("{}/oap/subscriptions/{}", self.base, self.subscription_id);
        let mut value = json!({
            "type": "oap.subscription.ack",
            "ack_id": format!("urn:oap:subscription-ack:{name}"),
            "subscription_id": self.subscription_id,
            "intent_id": self.intent_id,
            "publisher_did": self.publisher_did,
            "transport": self.transport.name(),
            "stream_url": format!("{at}/events"),
            "control_url": format!("{at}/control"),
            "max_event_rate_per_minute": self.rate,
            // Whoever reads on after this misses nothing.
            "cursor": 0,
            "retention_days": self.retention_days,
            "valid_until": self.valid_until,
            "issued_at": self.issued_at,
            "heartbeat_ms": HEARTBEAT_MS,
        });
        if let Some(members) = value.as_object_mut() {
            members.extend(self.snapshot.map(|records| ("snapshot".to_owned(), json!({"records": records}))));
            members.extend(self.endpoint.map(|endpoint| ("endpoint".to_owned(), json!(endpoint))));
        }
        value
    }
}
