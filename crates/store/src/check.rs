//! What can be wrong with a store, by name.

/// Something on disk that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Acknowledged changes are gone.
    #[error("changes {} to {promised} were acknowledged and are missing", found + 1)]
    TailMissing {
        /// The last change that was acknowledged.
        promised: u64,
        /// The last change that is there.
        found: u64,
    },
    /// Something of standing intents that was acknowledged is gone.
    #[error("standing intents were written {promised} times, and the last {} times are missing", promised - found)]
    JournalsMissing {
        /// How many times they were written.
        promised: u64,
        /// How many of them are there.
        found: u64,
    },
    /// Entries of the trail of engagements that were acknowledged are gone.
    #[error("steps of engagements were acknowledged up to entry {promised} of the trail, and it ends at {found}")]
    TrailMissing {
        /// The last entry that was acknowledged.
        promised: u64,
        /// The last entry that is there.
        found: u64,
    },
    /// The trail of engagements does not go on where the tables end.
    #[error("the trail of engagements does not follow from the tables: {0}")]
    Trail(String),
    /// The trail of engagements is gone.
    #[error("the file `trail` is missing, and engagements were written through it")]
    TrailGone,
    /// There is a log and no head.
    #[error("the file `head` is missing or unreadable, and the log has {found} changes")]
    HeadMissing {
        /// The last change that is there.
        found: u64,
    },
    /// A change is not the one that was written there.
    #[error("change {sequence} is not what was written")]
    OtherHistory {
        /// Which change.
        sequence: u64,
    },
    /// A change is missing inside the log.
    #[error("change {sequence} is missing")]
    Gap {
        /// Which change.
        sequence: u64,
    },
    /// A record is not the one that was written.
    #[error("the record `{id}` of change {sequence} is not what was written")]
    OtherBody {
        /// Which change brought it.
        sequence: u64,
        /// Which record.
        id: String,
    },
    /// Records whose state does not follow from the log.
    #[error("the state of {records} records does not follow from the log")]
    States {
        /// How many.
        records: u64,
    },
    /// Records that are not what the log says of them.
    #[error("{records} records have another name, kind, revision, publisher or time than the log says")]
    Rows {
        /// How many.
        records: u64,
    },
    /// Messages that were dealt with, whose memory is not what was written.
    #[error("what is remembered of {marks} messages is not what was written")]
    Marks {
        /// How many.
        marks: u64,
    },
    /// Standing intents that are not what was written, or whose journals have a hole.
    #[error("{subscriptions} standing intents or their journals are not what was written")]
    Journals {
        /// How many.
        subscriptions: u64,
    },
    /// The engine found damage itself.
    #[error("the database engine reports: {0}")]
    Engine(String),
}

/// What a full check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Soundness {
    /// Changes in the log.
    pub changes: u64,
    /// Records of any state.
    pub records: u64,
    /// Records that still speak.
    pub active: u64,
    /// What is wrong; nothing when all is well.
    pub flaws: Vec<Flaw>,
}
