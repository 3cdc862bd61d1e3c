//! RFC 0024: schemas have versions, and those who speak different ones find a common one or a mapping between them.
//!
//! | Section | Room |
//! |---|---|
//! | §2 | `identifier`, `version` |
//! | §3.1, §4.1 | `profile` |
//! | §3.2 | `negotiate` |
//! | §3.3 | `mapping` |
//! | §3.4 | `evolution` |
//! | §3.5 | `deprecation` |
//! | §4.2 | `request` |
//!
//! INVARIANT: no IO, clock, randomness or logging in this crate; the moment is an argument, and nothing is fetched.

mod refusal;
mod read;
mod value;

mod identifier;
mod version;
mod profile;
mod negotiate;
mod request;
mod deprecation;
mod mapping;

mod dialect;
mod validate;
mod compare;
mod evolution;
mod check;
mod infer;
mod limits;

pub use check::{Reason, Sampler, Undeclared, Verdict, check, proves};
pub use compare::{Change, Effect, compare};
pub use deprecation::{Deprecation, NOTICE_DAYS_MIN, NOTICE_DAYS_USUAL, succeed};
pub use evolution::additive;
pub use identifier::{Publishers, SchemaId};
pub use infer::{Draft, Question, infer};
pub use limits::limits;
pub use mapping::{
    Directionality, Edition, Loss, LossKind, MAPPING_LIMITS, Mapping, OUTPUT_BYTES_FREE, OUTPUT_FACTOR_MAX, STEPS_MAX,
    Translated, Translation, Translator, Trusted, admit, compose, protected, route,
};
pub use negotiate::{Agreement, Disagreement, Exchange, Permits, negotiate, negotiate_again, serve};
pub use profile::{CompatibilityProfile, Entry, MappingLink};
pub use refusal::{Code, Refusal};
pub use request::{Form, NegotiatedRequest, wrap};
pub use validate::Validator;
pub use version::Version;
