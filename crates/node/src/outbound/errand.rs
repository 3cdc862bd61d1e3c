//! What the door is used for: how much may come back, and whether it may lie elsewhere on the same host.
//!
//! A DID names the place of its document, so a redirect would let the place say who the DID is; and what is sent is
//! sent to one address, not to wherever that address points.

/// What somebody is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// The document of a did:web or did:wba.
    DidDocument,
    /// The description of an agent.
    Description,
    /// What a description leads to: the definition of an interface, a product.
    Linked,
    /// What a host lets programs read (RFC 9309).
    Robots,
    /// A mapping between two schemas.
    Mapping,
    /// A schema.
    Schema,
    /// The question whether an address wants events.
    Challenge,
    /// An event for a subscriber, to an address that wants it.
    Webhook,
    /// A call of a tool.
    Tool,
}

impl Errand {
    /// Every errand there is.
    pub const ALL: [Self; 9] = [
        Self::DidDocument,
        Self::Description,
        Self::Linked,
        Self::Robots,
        Self::Mapping,
        Self::Schema,
        Self::Challenge,
        Self::Webhook,
        Self::Tool,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::DidDocument => "did_document",
            Self::Description => "description",
            Self::Linked => "linked",
            Self::Robots => "robots",
            Self::Mapping => "mapping",
            Self::Schema => "schema",
            Self::Challenge => "challenge",
            Self::Webhook => "webhook",
            Self::Tool => "tool",
        }
    }

    /// Bytes of what comes back.
    pub fn bytes_max(self) -> usize {
        match self {
            Self::Challenge => feed::webhook::ANSWER_BYTES_MAX,
            Self::DidDocument | Self::Webhook => 64 * 1024,
            Self::Description | Self::Robots => 512 * 1024,
            Self::Mapping => 256 * 1024,
            Self::Linked | Self::Schema | Self::Tool => 1024 * 1024,
        }
    }

    /// Times that it may be sent on, on the same host.
    pub fn redirects_max(self) -> usize {
        match self {
            Self::Description | Self::Linked | Self::Robots | Self::Mapping | Self::Schema => 2,
            Self::DidDocument | Self::Challenge | Self::Webhook | Self::Tool => 0,
        }
    }
}
