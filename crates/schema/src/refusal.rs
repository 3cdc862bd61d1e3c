//! RFC 0024 §3.1 "a structured error rather than a silent translation": why something is refused, and where.
//!
//! `spec/refusals.toml` lists every code with advice.

use json::{Codes, Mistake};

/// Why a document, a version or a mapping is refused; the names are stable.
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
    /// No RFC 3339 date and time with an offset.
    InvalidTimestamp,
    /// No pointer that a mapping can follow.
    InvalidPointer,
    /// No `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`.
    VersionInvalid,
    /// No permanent URL of a schema.
    IdentifierInvalid,
    /// A compatibility profile that contradicts itself.
    ProfileInvalid,
    /// A version outside what the provider accepts.
    VersionNotAccepted,
    /// A version that cannot be answered in, given what the request permits.
    VersionNotProduced,
    /// A version past its announced date.
    VersionWithdrawn,
    /// A provider that suddenly offers less than before.
    DowngradeRefused,
    /// An answer in another version than was agreed.
    VersionUnexpected,
    /// A date less than ninety days away.
    NoticeTooShort,
    /// A date that comes closer than announced.
    DeprecationReduced,
    /// A version that goes before its date, or without one.
    WithdrawnEarly,
    /// A change under the same identifier that is more than optional members.
    ChangedIncompatibly,
    /// A mapping that nobody entitled has signed.
    MappingUntrusted,
    /// A function outside the closed list.
    FunctionUnknown,
    /// A mapping of too many rules, levels, steps or entries.
    MappingTooLarge,
    /// Two rules that touch the same place.
    RulesOverlap,
    /// A mapping called bidirectional that has no way back.
    NotInvertible,
    /// A mapping that puts something else into who signs, who pays or where to send.
    ProtectedField,
    /// A chain that comes to a version twice.
    MappingCycle,
    /// Mappings that do not meet, or no way from one version to another.
    RouteMissing,
    /// A translation larger than its source allows.
    OutputTooLarge,
    /// A document that does not conform to its schema.
    SchemaViolation,
    /// A schema that no validator should be asked about.
    SchemaTooComplex,
    /// A schema that is none.
    SchemaInvalid,
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
            Self::InvalidTimestamp => "invalid_timestamp",
            Self::InvalidPointer => "invalid_pointer",
            Self::VersionInvalid => "schema_version_invalid",
            Self::IdentifierInvalid => "schema_id_invalid",
            Self::ProfileInvalid => "profile_invalid",
            Self::VersionNotAccepted => "schema_version_not_accepted",
            Self::VersionNotProduced => "schema_version_not_produced",
            Self::VersionWithdrawn => "schema_version_withdrawn",
            Self::DowngradeRefused => "version_downgrade_refused",
            Self::VersionUnexpected => "schema_version_unexpected",
            Self::NoticeTooShort => "deprecation_notice_too_short",
            Self::DeprecationReduced => "deprecation_reduced",
            Self::WithdrawnEarly => "version_withdrawn_early",
            Self::ChangedIncompatibly => "schema_changed_incompatibly",
            Self::MappingUntrusted => "mapping_untrusted",
            Self::FunctionUnknown => "mapping_function_unknown",
            Self::MappingTooLarge => "mapping_too_large",
            Self::RulesOverlap => "mapping_rules_overlap",
            Self::NotInvertible => "mapping_not_invertible",
            Self::ProtectedField => "mapping_protected_field",
            Self::MappingCycle => "mapping_cycle",
            Self::RouteMissing => "mapping_route_missing",
            Self::OutputTooLarge => "mapping_output_too_large",
            Self::SchemaViolation => "schema_violation",
            Self::SchemaTooComplex => "schema_too_complex",
            Self::SchemaInvalid => "schema_invalid",
        }
    }

    /// The section of the text that the refusal follows from.
    pub fn section(self) -> &'static str {
        match self {
            Self::Json(_) | Self::MissingField | Self::UnknownField | Self::WrongType | Self::InvalidValue => {
                "RFC 0024 §5"
            }
            Self::EmptyList | Self::ProfileInvalid | Self::VersionNotAccepted => "RFC 0024 §3.1",
            Self::VersionInvalid | Self::IdentifierInvalid | Self::SchemaInvalid => "RFC 0024 §2",
            Self::VersionNotProduced => "RFC 0024 §3.2",
            Self::InvalidTimestamp
            | Self::VersionWithdrawn
            | Self::NoticeTooShort
            | Self::DeprecationReduced
            | Self::WithdrawnEarly => "RFC 0024 §3.5",
            Self::ChangedIncompatibly => "RFC 0024 §3.4",
            Self::InvalidPointer
            | Self::FunctionUnknown
            | Self::RulesOverlap
            | Self::NotInvertible
            | Self::RouteMissing
            | Self::MappingCycle
            | Self::SchemaViolation => "RFC 0024 §3.3",
            Self::DowngradeRefused
            | Self::VersionUnexpected
            | Self::MappingUntrusted
            | Self::MappingTooLarge
            | Self::ProtectedField
            | Self::OutputTooLarge
            | Self::SchemaTooComplex => "RFC 0024 §8",
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

impl Codes for Code {}

/// Something that is refused: what is wrong, where, and what would be right.
pub type Refusal = json::Refusal<Code>;
