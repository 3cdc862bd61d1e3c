//! Agent Description Protocol: what an agent says of itself, read from every form that is in use, judged rule by rule,
//! and written in one form that all of them understand.
//!
//! | Text | Room |
//! |---|---|
//! | the rules, R01 to R42, and our own | `rule`, `finding` |
//! | Namespaces, `@context` | `vocabulary`, `context` |
//! | Table 1 | `agent` |
//! | Table 5 | `interface` |
//! | Table 2, activation | `security` |
//! | what a description leads to, and where it was found | `links`, `origin` |
//! | ANP-08, discovery | `discovery` |
//! | interface definition documents | `definition` (in YAML by `json::yaml`) |
//!
//! INVARIANT: no IO, clock, randomness or logging in this crate; nothing is fetched, a remote `@context` least of all,
//! and what a description means is read from its JSON, never from an expansion of it.

mod rule;
mod finding;
mod uri;

mod vocabulary;
mod context;
mod reader;

mod agent;
mod interface;
mod security;
mod links;
mod origin;
mod read;
mod write;

mod discovery;

mod definition;

pub use agent::{AgentDescription, Owner, Resource, ResourceKind};
pub use definition::{
    Call, Code, DEFINITION_LIMITS, Definition, Format, INLINED_NODES_MAX, OPERATIONS_MAX, Operation, Parameter, Place,
    Refusal, parse_yaml,
};
pub use discovery::{ITEMS_MAX, Item, PAGES_MAX, Page, Stop, WELL_KNOWN, Walk, pages};
pub use finding::{FINDINGS_MAX, Finding, Findings, Grade, Mode};
pub use interface::{Interface, InterfaceKind};
pub use links::{Link, LinkKind};
pub use origin::{Origin, Unbound};
pub use read::{DESCRIPTION_LIMITS, Form, Reading, read};
pub use rule::Rule;
pub use security::{Access, Activation, Requirement, Scheme, Security};
pub use uri::{is_web, same_origin};
pub use write::{Draft, DraftDefinition, DraftInterface, DraftOwner, DraftResource};

/// The namespace of agent descriptions (ADP Namespaces).
pub const NAMESPACE: &str = vocabulary::AD;
