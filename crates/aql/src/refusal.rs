//! RFC 0020 A.3 R1: why a document is not an intent, and where.
//!
//! A refusal is the sender's mistake. It names a stable code, the place, the section it follows from, and the limit
//! when one was passed; `spec/refusals.toml` lists every code with advice.

use crate::read::shorten;
use json::{Codes, Mistake};

/// Why a document is refused; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The bytes are no acceptable JSON; the JSON code says why.
    Json(json::Code),
    /// A required member is absent.
    MissingField,
    /// A member that the closed document does not have.
    UnknownField,
    /// Another JSON type than the member takes.
    WrongType,
    /// The right type with content that the member does not take.
    InvalidValue,
    /// A list that must have an entry has none.
    EmptyList,
    /// An operator outside the closed set.
    UnknownOperator,
    /// An operand that the operator cannot compare with.
    ValueIncompatible,
    /// A path that is no extended JSON Pointer.
    InvalidPointer,
    /// A path of too many bytes.
    PathTooLong,
    /// A path of too many segments or descendant operators.
    PathTooComplex,
    /// A pattern that is no ECMA-262 regular expression.
    InvalidRegex,
    /// A pattern feature outside what we evaluate.
    RegexFeatureUnsupported,
    /// A pattern too long to read or too large to compile.
    RegexTooLarge,
    /// More patterns than one intent may have.
    TooManyPatterns,
    /// More leaves than one intent may have.
    TooManyConstraints,
    /// A constraint tree nested too deeply.
    ConstraintTooDeep,
    /// A membership list with too many entries.
    ListTooLong,
    /// A projection with too many pointers.
    TooManyPointers,
    /// No plain decimal amount.
    InvalidDecimal,
    /// No RFC 3339 date and time with an offset.
    InvalidTimestamp,
    /// A window that ends before it begins.
    ValidityInvalid,
    /// The window is over.
    IntentExpired,
    /// The window has not begun.
    IntentNotYetValid,
    /// The window is longer than allowed.
    ValidityTooLong,
    /// `ranked_top_k` without its number or distribution.
    AllocationIncomplete,
    /// A distribution that does not fit `top_k` or does not sum to one.
    DistributionInvalid,
    /// A subscription without an event rate.
    EventRateMissing,
    /// Payment constraints outside the commercial category.
    PaymentConstraintsMisplaced,
    /// A signature algorithm outside the three.
    AlgNotAllowed,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json(code) => code.name(),
            Self::MissingField => "missing_field",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::InvalidValue => "invalid_value",
            Self::EmptyList => "empty_list",
            Self::UnknownOperator => "unknown_operator",
            Self::ValueIncompatible => "value_incompatible",
            Self::InvalidPointer => "invalid_pointer",
            Self::PathTooLong => "path_too_long",
            Self::PathTooComplex => "path_too_complex",
            Self::InvalidRegex => "invalid_regex",
            Self::RegexFeatureUnsupported => "regex_feature_unsupported",
            Self::RegexTooLarge => "regex_too_large",
            Self::TooManyPatterns => "too_many_patterns",
            Self::TooManyConstraints => "too_many_constraints",
            Self::ConstraintTooDeep => "constraint_too_deep",
            Self::ListTooLong => "list_too_long",
            Self::TooManyPointers => "too_many_pointers",
            Self::InvalidDecimal => "invalid_decimal",
            Self::InvalidTimestamp => "invalid_timestamp",
            Self::ValidityInvalid => "validity_invalid",
            Self::IntentExpired => "intent_expired",
            Self::IntentNotYetValid => "intent_not_yet_valid",
            Self::ValidityTooLong => "validity_too_long",
            Self::AllocationIncomplete => "allocation_incomplete",
            Self::DistributionInvalid => "distribution_invalid",
            Self::EventRateMissing => "event_rate_missing",
            Self::PaymentConstraintsMisplaced => "payment_constraints_misplaced",
            Self::AlgNotAllowed => "alg_not_allowed",
        }
    }

    /// The section of the text that the refusal follows from.
    pub fn section(self) -> &'static str {
        match self {
            Self::Json(_) => "RFC 0020 §3.1",
            Self::MissingField | Self::UnknownField | Self::WrongType | Self::InvalidValue => "RFC 0020 §3.1",
            Self::EmptyList | Self::ValueIncompatible | Self::InvalidPointer => "RFC 0020 §3.2",
            Self::UnknownOperator => "RFC 0020 A.8",
            Self::InvalidRegex | Self::RegexFeatureUnsupported => "RFC 0020 A.1",
            Self::PathTooLong
            | Self::PathTooComplex
            | Self::RegexTooLarge
            | Self::TooManyPatterns
            | Self::TooManyConstraints
            | Self::ConstraintTooDeep
            | Self::ListTooLong => "RFC 0020 A.7",
            Self::TooManyPointers => "RFC 0020 §3.3",
            Self::InvalidDecimal | Self::AllocationIncomplete | Self::DistributionInvalid => "RFC 0020 §3.4",
            Self::InvalidTimestamp
            | Self::ValidityInvalid
            | Self::IntentExpired
            | Self::IntentNotYetValid
            | Self::ValidityTooLong => "RFC 0020 §3.1",
            Self::EventRateMissing => "RFC 0020 §3.6",
            Self::PaymentConstraintsMisplaced => "RFC 0020 B.1",
            Self::AlgNotAllowed => "RFC 0020 §3.1",
        }
    }
}

impl From<json::Code> for Code {
    fn from(code: json::Code) -> Self {
        Self::Json(code)
    }
}

impl From<Mistake> for Code {
    fn from(mistake: Mistake) -> Self {
        match mistake {
            Mistake::MissingField => Self::MissingField,
            Mistake::UnknownField => Self::UnknownField,
            Mistake::WrongType => Self::WrongType,
            Mistake::InvalidValue => Self::InvalidValue,
        }
    }
}

impl Codes for Code {
    fn unknown(name: &str, known: &[&str]) -> String {
        format!("there is no member `{}` here; known are {}", shorten(name), known.join(", "))
    }
}

/// A document that is refused: what is wrong, where, and what would be right.
pub type Refusal = json::Refusal<Code>;
