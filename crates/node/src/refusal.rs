//! RFC 0020 A.3 R1: what the node says no to, and what went wrong on its side.
//!
//! A refusal is theirs: it names a stable code, the place, and the limit when one was passed, and it is signed. A
//! fault is ours: the log has it all, the caller learns only that it happened. `spec/refusals.toml` lists every code.

use json::{Exceeded, Pointer, Value};

/// The classes of refusals that the core protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The message is malformed, or asks for what cannot be.
    InvalidInput,
    /// Nobody proved to be the sender.
    AuthRequired,
    /// The sender may not do this.
    PolicyBlock,
    /// There is no such thing.
    NotFound,
    /// The address does not do that.
    MethodNotAllowed,
    /// The message took too long.
    Timeout,
    /// The message is meant for somebody else.
    Misdirected,
    /// The name was used for something else.
    Conflict,
    /// It was there once.
    Gone,
    /// The message is longer than allowed.
    TooLarge,
    /// A form that is not read here.
    UnsupportedMedia,
    /// It cannot be answered within the bounds on work.
    Unprocessable,
    /// Too many messages.
    RateLimited,
    /// Somebody whom we must ask does not answer.
    Upstream,
    /// The node cannot do it now.
    Unavailable,
    /// The answer took too long.
    Overdue,
    /// Something broke here.
    Internal,
}

impl Class {
    /// The name in the core protocol's table of errors.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidInput
            | Self::TooLarge
            | Self::UnsupportedMedia
            | Self::MethodNotAllowed
            | Self::Timeout
            | Self::Misdirected
            | Self::Unprocessable => "invalid_input",
            Self::AuthRequired => "auth_required",
            Self::PolicyBlock => "policy_block",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Gone => "deprecated",
            Self::RateLimited => "rate_limited",
            Self::Upstream => "upstream_error",
            Self::Unavailable => "maintenance",
            Self::Overdue => "timeout",
            Self::Internal => "internal_error",
        }
    }
}

/// Their mistake, or what they may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of no this is.
    pub class: Class,
    /// The stable code.
    pub code: &'static str,
    /// The place in the message.
    pub at: Pointer,
    /// In words, with what would be right.
    pub detail: String,
    /// The limit that was passed, if one was.
    pub limit: Option<Box<Exceeded>>,
    /// After how many milliseconds it may be tried again, if that would help.
    pub retry_after_ms: Option<u64>,
    /// What else helps to mend it, under a name of its own in the details.
    pub said: Option<Box<(&'static str, Value)>>,
}

impl Refusal {
    /// A refusal of the whole message.
    pub fn new(class: Class, code: &'static str, detail: impl Into<String>) -> Self {
        Self { class, code, at: Pointer::root(), detail: detail.into(), limit: None, retry_after_ms: None, said: None }
    }

    /// The same, at a place.
    #[must_use]
    pub fn at(mut self, at: Pointer) -> Self {
        self.at = at;
        self
    }

    /// The same, with something more that helps.
    #[must_use]
    pub(crate) fn saying(mut self, name: &'static str, value: Value) -> Self {
        self.said = Some(Box::new((name, value)));
        self
    }

    /// The same, and when it may be tried again.
    #[must_use]
    pub fn retry_after(mut self, milliseconds: u64) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// More is asked of the node than it can do.
    pub fn overloaded() -> Self {
        let detail = "more is asked of this node than it can do now; send the same message again in a moment";
        Self::new(Class::Unavailable, "overloaded", detail).retry_after(1_000)
    }

    /// The same, since a limit was passed.
    #[must_use]
    pub fn limited(mut self, name: &str, max: u64, got: u64) -> Self {
        self.limit = Some(Box::new(Exceeded { name: name.to_owned(), max, got }));
        self
    }
}

/// Why a job did not end well.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Theirs.
    #[error("{}: {}", .0.code, .0.detail)]
    Refusal(Box<Refusal>),
    /// Ours.
    #[error("{0}")]
    Fault(String),
    /// The operator's: a key that others can read must be closed before a node may run.
    #[error("key_permissions: {0}")]
    Exposed(String),
}

impl Error {
    /// A fault of ours, for the log.
    pub fn fault(what: impl ToString) -> Self {
        Self::Fault(what.to_string())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(Box::new(refusal))
    }
}

impl From<aql::Refusal> for Refusal {
    fn from(refusal: aql::Refusal) -> Self {
        let code = refusal.code.name();
        let class = if code == "json_too_large" { Class::TooLarge } else { Class::InvalidInput };
        Self {
            class,
            code,
            at: refusal.at,
            detail: refusal.detail,
            limit: refusal.limit.map(Box::new),
            retry_after_ms: None,
            said: None,
        }
    }
}

impl From<aql::Refusal> for Error {
    fn from(refusal: aql::Refusal) -> Self {
        Refusal::from(refusal).into()
    }
}

impl From<json::ParseError> for Error {
    fn from(error: json::ParseError) -> Self {
        aql::Refusal::from(error).into()
    }
}

impl From<trust::SignatureError> for Error {
    fn from(error: trust::SignatureError) -> Self {
        let detail = error.to_string();
        let class = if error.is_form() { Class::InvalidInput } else { Class::AuthRequired };
        Refusal::new(class, error.code(), detail).at(error.at).into()
    }
}

impl From<trust::ChainError> for Error {
    fn from(error: trust::ChainError) -> Self {
        let mut refusal = Refusal::new(Class::PolicyBlock, error.code(), error.problem.to_string()).at(error.at);
        refusal.limit = error.limit.map(Box::new);
        refusal.into()
    }
}

impl From<aql::EvaluationError> for Error {
    fn from(error: aql::EvaluationError) -> Self {
        let at = Pointer::root().child("constraints");
        Refusal::new(Class::Unprocessable, error.code(), error.to_string()).at(at).into()
    }
}

impl From<store::ReadError> for Error {
    fn from(error: store::ReadError) -> Self {
        Self::fault(error)
    }
}

impl From<index::IndexError> for Error {
    fn from(error: index::IndexError) -> Self {
        Self::fault(error)
    }
}
