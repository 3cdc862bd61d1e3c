//! RFC 0020 A.2: what a resolver can be asked about, as it was received.

/// What kind of record it is; the kind decides which categories of intents look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What a provider says of itself.
    Manifest,
    /// A priced proposal.
    Offer,
    /// A piece of knowledge.
    Knowledge,
    /// A receipt of something done.
    Receipt,
    /// What others say about the quality of a provider.
    Evidence,
    /// What an agent says of itself at an address of its own.
    Description,
}

impl Kind {
    /// All kinds with their names; the position is the number in the tables.
    pub const ALL: [(&'static str, Self); 6] = [
        ("manifest", Self::Manifest),
        ("offer", Self::Offer),
        ("knowledge", Self::Knowledge),
        ("receipt", Self::Receipt),
        ("evidence", Self::Evidence),
        ("description", Self::Description),
    ];

    /// The name people use.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    pub(crate) fn number(self) -> u8 {
        Self::ALL.iter().position(|(_, kind)| *kind == self).unwrap_or_default() as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).map(|(_, kind)| *kind)
    }
}

/// Whether a record still speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Active,
    /// Its publisher took it back.
    Withdrawn,
    /// A later revision took its place.
    Superseded,
}

impl State {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Active => 0,
            Self::Withdrawn => 1,
            Self::Superseded => 2,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Active, Self::Withdrawn, Self::Superseded].get(usize::from(number)).copied()
    }
}

/// Which record an id stands for, without what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number: the sequence of the change that brought it.
    pub number: u64,
    /// What kind it is.
    pub kind: Kind,
    /// Who published it.
    pub publisher: String,
}

/// A record as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number: the sequence of the change that brought it.
    pub number: u64,
    /// What it is called.
    pub id: String,
    /// What kind it is.
    pub kind: Kind,
    /// The how-manieth record of this id, from 1.
    pub revision: u64,
    /// The DID that signed it.
    pub publisher: String,
    /// When it came, in milliseconds since 1970.
    pub received_at: i64,
    /// Whether it still speaks.
    pub state: State,
    /// The bytes, as they came.
    pub body: Vec<u8>,
}
