//! RFC 0020: the Agent Query Language, as a pure library.
//!
//! A closed language that means one thing. The crate `reference` says the same slowly and literally, and the two are
//! compared on millions of random questions.
//!
//! | Section | Room |
//! |---|---|
//! | §3.1 intent document | `intent` |
//! | §3.2 constraint algebra, A.1 | `path`, `operator`, `pattern`, `constraint`, `evaluate`, `key` |
//! | §3.3 projection | `projection` |
//! | §3.4 budget | `budget` |
//! | §3.5 quality floor | `quality` |
//! | §3.6 categories | `category` |
//! | §3.7 wire format | `decision`, `response`, `audit` |
//! | A.2, A.3 | `candidate`, `likeness`, `resolve` |
//! | A.7 | `limits` |
//! | B.1 | `payment` |
//!
//! INVARIANT: no IO, clock, randomness, `async` or logging; time is an argument.

mod intent;
mod category;
mod path;
mod operator;
mod pattern;
mod decimal;
pub mod key;
mod constraint;
mod evaluate;
mod projection;
mod budget;
mod quality;
mod payment;
mod candidate;
mod likeness;
mod resolve;
mod decision;
mod response;
mod audit;
mod lint;
mod limits;
mod read;
mod refusal;

pub use audit::{Audit, Checked, Rule, Violation, audit};
pub use budget::{AMOUNT_DIGITS_MAX, Allocation, Amount, Budget, Fraction, Money};
pub use candidate::{Candidate, own_id};
pub use category::{Category, Costs};
pub use constraint::{Constraints, Leaf, Tree};
pub use decision::Decision;
pub use evaluate::{EvaluationError, Evaluator, Meter};
pub use intent::{Intent, ResolutionPolicy, Validity};
pub use json::Instant;
pub use likeness::{LEADERS_MAX, Leaders, NEAR_BITS, house, owner, sketch};
pub use limits::{Fuel, Limits};
pub use lint::{Finding, lint};
pub use operator::{Bound, Comparison, List, Literal, Operator, Predicate, order};
pub use path::{Path, Segment};
pub use pattern::{OutOfSteps, Pattern};
pub use payment::PaymentConstraints;
pub use projection::{Projected, Projection};
pub use quality::{Level, Signals};
pub use refusal::{Code, Refusal};
pub use resolve::{
    Contribution, Judgement, Match, Outcome, OverBudget, RANKING_ID, RANKING_VERSION, Ranking, Rejection, Resolution,
    Scoring, Share, judge, rank, refuse, resolve,
};
pub use response::{Recorded, Responder};
