//! What is found in an agent's document: a stable code, the place, the line, and what would be right.
//!
//! An error keeps a document out. A warning is something that works, and hardly as its author thinks.
//!
//! INVARIANT: nothing that a stranger wrote is repeated but names, which are harmless by their form.

use json::{Exceeded, Pointer, yaml};
use std::fmt;

/// What is found; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The bytes are no acceptable YAML; that code says why.
    Yaml(yaml::Code),
    /// `kind` is another one.
    Kind,
    /// A field that the text does not have.
    UnknownField,
    /// A field that the text demands.
    MissingField,
    /// A value of another type.
    FieldType,
    /// Too many or too long.
    Limit,
    /// A name that is none.
    Name,
    /// A reference that is none.
    Reference,
    /// An assertion that is no CEL.
    AssertionSyntax,
    /// An assertion beyond the bounds.
    AssertionTooComplex,
    /// A `short_circuit` below one.
    ShortCircuit,
    /// An exposed key that has another meaning.
    ExposedKey,
    /// A capability that refers to nothing here.
    UnknownCapability,
    /// A guardrail whose tool is not here.
    UnknownGuardrail,
    /// An identity that the server does not know.
    UnknownIdentity,
    /// A reviewer that cannot review.
    UnknownReviewer,
    /// A name that somebody has already.
    NameTaken,
    /// Labels that DNS would refuse.
    NameLabels,
    /// A tool and an agent of one name.
    Shadowed,
    /// Two capabilities of one name.
    SharedName,
    /// A capability's name that reads like a part of another one.
    AmbiguousName,
    /// An assertion speaks of something that is no part of the Engagement.
    UnknownVariable,
    /// An assertion speaks of a capability that the agent has not got.
    UnknownInAssertion,
    /// An assertion reads outputs that are not collected.
    NotCollected,
    /// `short_circuit: 1`.
    NothingAllowed,
    /// Somebody without identity could never use this.
    NeedsCaller,
    /// A description or intent in another voice than the text asks for.
    Voice,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yaml(code) => code.name(),
            Self::Kind => "agent_kind",
            Self::UnknownField => "agent_unknown_field",
            Self::MissingField => "agent_missing_field",
            Self::FieldType => "agent_field_type",
            Self::Limit => "agent_limit",
            Self::Name => "invalid_name",
            Self::Reference => "invalid_reference",
            Self::AssertionSyntax => "assertion_syntax",
            Self::AssertionTooComplex => "assertion_too_complex",
            Self::ShortCircuit => "short_circuit_range",
            Self::ExposedKey => "exposed_key",
            Self::UnknownCapability => "unknown_capability",
            Self::UnknownGuardrail => "unknown_guardrail",
            Self::UnknownIdentity => "unknown_identity",
            Self::UnknownReviewer => "unknown_reviewer",
            Self::NameTaken => "name_taken",
            Self::NameLabels => "name_labels",
            Self::Shadowed => "name_shadowed",
            Self::SharedName => "name_shared",
            Self::AmbiguousName => "name_ambiguous",
            Self::UnknownVariable => "assertion_unknown_variable",
            Self::UnknownInAssertion => "assertion_unknown_capability",
            Self::NotCollected => "assertion_not_collected",
            Self::NothingAllowed => "short_circuit_forbids_all",
            Self::NeedsCaller => "identity_needs_caller",
            Self::Voice => "agent_voice",
        }
    }

    /// What it weighs.
    pub fn grade(self) -> Grade {
        match self {
            Self::Yaml(_)
            | Self::Kind
            | Self::UnknownField
            | Self::MissingField
            | Self::FieldType
            | Self::Limit
            | Self::Name
            | Self::Reference
            | Self::AssertionSyntax
            | Self::AssertionTooComplex
            | Self::ShortCircuit
            | Self::ExposedKey
            | Self::UnknownCapability
            | Self::UnknownGuardrail
            | Self::UnknownIdentity
            | Self::UnknownReviewer
            | Self::NameTaken => Grade::Error,
            Self::NameLabels
            | Self::Shadowed
            | Self::SharedName
            | Self::AmbiguousName
            | Self::UnknownVariable
            | Self::UnknownInAssertion
            | Self::NotCollected
            | Self::NothingAllowed
            | Self::NeedsCaller
            | Self::Voice => Grade::Warning,
        }
    }
}

/// What a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Better otherwise.
    Warning,
    /// The document is not taken.
    Error,
}

impl Grade {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// The place in the document.
    pub at: Pointer,
    /// Line and column, from 1, where they are known.
    pub position: Option<(usize, usize)>,
    /// What is the case, and what would be right.
    pub detail: String,
    /// The limit that was passed, if one was.
    pub limit: Option<Exceeded>,
}

impl Finding {
    pub(crate) fn new(code: Code, at: Pointer, detail: impl Into<String>) -> Self {
        Self { code, at, position: None, detail: detail.into(), limit: None }
    }

    /// What it weighs.
    pub fn grade(&self) -> Grade {
        self.code.grade()
    }
}

impl From<yaml::Refusal> for Finding {
    fn from(refusal: yaml::Refusal) -> Self {
        let yaml::Refusal { code, at, position, detail, limit } = refusal;
        Self { code: Code::Yaml(code), at, position, detail, limit }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(out, "{line}:{column}: ")?;
        }
        write!(out, "{}: {} ({})", self.grade().name(), self.detail, self.code.name())
    }
}
