//! What an implementation of the language is, as far as the corpus can tell.

use crate::corpus::Case;
use serde_json::Value;

/// What an implementation makes of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result, in the shape of the case's `expect` member.
    Result(Value),
    /// The implementation has no opinion on cases of this kind.
    NoOpinion,
}

/// Something that answers cases.
pub trait Implementation {
    /// What it is called in reports and in the list of expected failures.
    fn name(&self) -> &str;

    /// Answers a case.
    fn answer(&self, case: &Case) -> Answer;
}
