//! OpenAgentSpec: what an agent may do, read from a document and decided outside the model.
//!
//! | Text | Room |
//! |---|---|
//! | Names & References | `name`, `reference` |
//! | Agent | `document` and its side rooms, `alias`, `finding` |
//! | assertions and selections | `assertion`, `bare` |
//! | Engagement | `step`, `engagement`, `object` |
//! | what must happen next | `next`, `registry`, `identity`, `short_circuit`, `transcript` |
//! | trying a document | `scenario` and `play`, `replay` |
//!
//! An engagement is a list of steps. [`next`] looks at the steps and says what must happen: a decision to write down, an
//! effect to bring about, or somebody to wait for. Whoever runs an engagement does that, writes the step and asks again; a
//! pending review, a user who thinks and a restart are the same thing.
//!
//! INVARIANT: no IO, clock, randomness, `async` or logging in this crate; only `assertion` starts a thread, for its stack.

mod name;
mod reference;
mod alias;

mod finding;
mod document;
mod assertion;
mod bare;

mod step;
mod engagement;
mod object;

mod registry;
mod identity;
mod short_circuit;
mod transcript;
mod next;

mod limits;

mod play;
mod scenario;
mod replay;

pub use assertion::{Assertion, Failing, ROOMY_STACK_BYTES, has_room};
pub use document::{Agent, Capability, DOCUMENT_LIMITS, Exposed, Guardrail, KIND, Lifespan, Restriction, Reviewer};
pub use engagement::{Call, Engagement, Misplaced, Progress, Status};
pub use finding::{Code, Finding, Grade};
pub use identity::Identity;
pub use limits::Limits;
pub use name::{InvalidName, Name, NameRule};
pub use next::{Effect, Next, Wait, next};
pub use play::{World, play};
pub use reference::{InvalidReference, Reference};
pub use registry::{Check, Options, Registry, ReviewedBy, Taken, Target, Tool};
pub use replay::{Replay, in_words, replay, step_in_words};
pub use scenario::{Compile, Played, Scenario};
pub use short_circuit::ShortCircuit;
pub use step::{
    Allowance, Begun, Decision, Failure, Outcome, Place, ProposedCall, Remembered, Review, Stage, Step, Usage, User,
    Why,
};
pub use transcript::{Function, Message, Transcript, functions, memory, messages};
