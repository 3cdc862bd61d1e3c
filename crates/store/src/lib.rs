//! The truth: what happened, in which order, kept byte for byte.
//!
//! Records and their hash-chained change log live in one embedded database; the head of the chain is also kept
//! outside of it, so that a lost or altered tail is noticed when the store opens and is never served over. Everything
//! else (indexes, feeds, answers) is derived and can be made again.
//!
//! Nothing above [`Store`] may know which engine holds the tables: SQLite now, PostgreSQL for many machines.
//!
//! INVARIANT: an acknowledged batch is on disk, in the database and in the head. Steps of engagements go through a file of
//! their own on their way into the database.

mod record;
mod change;
mod feed;
mod engagement;
mod trail;
mod engaging;
mod webhook;
mod inclusion;
mod tables;
mod folder;
mod head;
mod room;
mod sqlite;
mod check;
mod store;

pub use change::{Change, Hash, Operation, Sequence};
pub use check::{Flaw, Soundness};
pub use engagement::{Engaged, Journal, Noted, Reached, Spec};
pub use feed::{Event, Feed, Pending, Phase, Standing, Subscription};
pub use folder::make_folder;
pub use inclusion::{Branch, Leaf};
pub use record::{Kind, Listed, Record, State};
pub use sqlite::BackupError;
pub use store::{
    Batch, Cause, CommitError, Committed, Mark, Marked, OpenError, Outcome, Put, ReadError, Store, Withdrawal,
};
pub use webhook::{Course, DeadLetter, Webhook};
