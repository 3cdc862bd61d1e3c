//! The node: joins the texts into jobs, and owns what they do without: clock, keys, the door out.
//!
//! INVARIANT: nothing but `outbound` opens a connection to somebody else.

mod node;
mod authenticate;
pub mod call;
pub mod crawl;
mod lanes;
mod quota;
pub mod source;
mod resolve;
mod procure;
mod delegation;
mod tokens;
mod policy;
mod knowledge;
mod meter;
mod explain;
mod feeds;
mod engagements;
mod relax;
mod gate;
mod publish;
mod descriptions;
mod agents;
mod invoke;
mod duties;
mod discover;
mod receipts;
mod wallet;
mod log;
mod import;
pub mod folder;
mod announce;
mod catalog;
mod filer;
mod collection;
mod fact;
mod indexes;
mod loaded;
mod evidence;
mod replies;
mod identity;
mod outbound;
mod refusal;
pub mod versions;
pub mod handshake;
mod clock;
mod witness;
mod chance;

pub use agents::{AGENT, AgentCall, Answering, Answers, HostedAgent, RPC_LIMITS, Rpc};
pub use announce::{CALL_MS_MAX, EDGE, Edge, LEVELS, STREAMS_MAX};
pub use authenticate::{Caller, Presented, Unproved};
pub use clock::Clock;
pub use descriptions::{Described, Found, Kept, Linked};
pub use duties::AUDIT_MAX;
pub use engagements::{
    Decided, Engagements, FAREWELL, Hosting, HostingError, LISTED_MAX, Listed, Person, Resident, Settled,
    TEXT_BYTES_MAX, WAIT_MS_MAX, Withheld, approve_tool,
};
pub use feed::Transport;
pub use feed::inclusion::{InclusionError, check as check_inclusion};
pub use feed::subscription::{HEARTBEAT_MS, POLL_MS_MAX, RETENTION_DAYS, RETENTION_DAYS_MIN};
pub use feed::webhook::Secret;
pub use feeds::{Brought, Endpoint, Follower, Heard, Terms};
pub use identity::{Identity, Rotation};
pub use import::{Imported, Told, kind_of};
pub use lanes::{stand_back, stands_back};
pub use log::{Held, Log};
pub use node::{Config, Node, Operator, threads};
pub use outbound::{
    Answered, Client, ClientError, DidError, Dids, Door, DoorError, DoorPolicy, Errand, FetchError, Hosted, Inquiry,
    Line, Message, Parcel, Reply, Response,
};
pub use publish::Exhibit;
pub use refusal::{Class, Error, Refusal};
pub use resolve::{Foremost, PAGE, Part, REJECTED, Stream};
pub use wallet::Wallet;
