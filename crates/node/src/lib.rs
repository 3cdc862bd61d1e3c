//! The node: joins the texts into jobs, and owns what they do without: clock, keys, the door out.
//!
//! INVARIANT: nothing but `outbound` opens a connection to somebody else.

mod outbound;

pub use outbound::{DidError, Dids, Door, DoorError, DoorPolicy};
