//! RFC 0020 Appendix B: why a payment does not come about, and where the reason stands.
//!
//! `spec/refusals.toml` lists every code with advice. Where the published settlement confirmation has a word for the
//! reason, the code is that word.

use json::{Codes, Mistake, Pointer, Refuse};

/// Why a document or a step is refused; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The room below refuses: strict JSON, the query language, or a signature.
    Below(&'static str),
    /// A required member is absent.
    MissingField,
    /// A member that the closed document does not have.
    UnknownField,
    /// Another JSON type than the member takes.
    WrongType,
    /// The right type with content that the member does not take.
    InvalidValue,
    /// No plain decimal amount that a settlement can carry.
    InvalidDecimal,
    /// No RFC 3339 date and time with an offset.
    InvalidTimestamp,
    /// An intent that is not commercial, or has no budget.
    NothingToPay,
    /// The answer does not say who is to be paid.
    CounterpartyUnknown,
    /// Documents of one payment that do not belong together.
    LinkBroken,
    /// The key is not the digest of intent, offer and agent.
    IdempotencyKeyInvalid,
    /// A name that was used for something else.
    PaymentConflict,
    /// The wallet does not know the mandate.
    MandateUnknown,
    /// The mandate's window is over.
    MandateExpired,
    /// The mandate's window has not begun.
    MandateNotYetValid,
    /// More than the mandate allows in one payment.
    MandateLimitSingle,
    /// More than the mandate allows in a day.
    MandateLimitDaily,
    /// More than the mandate allows in a month.
    MandateLimitMonthly,
    /// More than the intent allows in one payment.
    IntentLimitSingle,
    /// An instrument that mandate and intent do not both permit.
    InstrumentNotPermitted,
    /// An instrument that the wallet does not have, or no permitted one for this currency.
    InstrumentUnavailable,
    /// A commerce primitive that mandate and intent do not both permit.
    PrimitiveNotPermitted,
    /// A limit in another currency than the payment.
    CurrencyMismatch,
    /// A counterparty that the mandate does not permit.
    CounterpartyBlocked,
    /// A counterparty from outside the permitted jurisdictions.
    JurisdictionBlocked,
    /// A counterparty in a category that the mandate excludes.
    CategoryBlocked,
    /// No bank account is bound to the counterparty's DID.
    BankAccountUnbound,
    /// The wallet does not know the session.
    SessionUnknown,
    /// The session was not used in time.
    SessionExpired,
    /// The session waits for its principal.
    ConfirmationRequired,
    /// The principal said no, or the session is over.
    SessionClosed,
    /// More open sessions or mandates than a wallet keeps.
    WalletFull,
    /// The sum of sessions would exceed the intent's budget.
    BudgetExceeded,
    /// This was paid already.
    AlreadyPaid,
    /// This is being paid already.
    PaymentUnderWay,
    /// A step that does not follow from what the ledger holds.
    StepOutOfOrder,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Below(code) => code,
            Self::MissingField => "missing_field",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::InvalidValue => "invalid_value",
            Self::InvalidDecimal => "invalid_decimal",
            Self::InvalidTimestamp => "invalid_timestamp",
            Self::NothingToPay => "nothing_to_pay",
            Self::CounterpartyUnknown => "counterparty_unknown",
            Self::LinkBroken => "link_broken",
            Self::IdempotencyKeyInvalid => "idempotency_key_invalid",
            Self::PaymentConflict => "payment_conflict",
            Self::MandateUnknown => "mandate_unknown",
            Self::MandateExpired => "mandate_expired",
            Self::MandateNotYetValid => "mandate_not_yet_valid",
            Self::MandateLimitSingle => "mandate_limit_exceeded_single",
            Self::MandateLimitDaily => "mandate_limit_exceeded_daily",
            Self::MandateLimitMonthly => "mandate_limit_exceeded_monthly",
            Self::IntentLimitSingle => "intent_limit_exceeded_single",
            Self::InstrumentNotPermitted => "instrument_not_permitted",
            Self::InstrumentUnavailable => "instrument_unavailable",
            Self::PrimitiveNotPermitted => "primitive_not_permitted",
            Self::CurrencyMismatch => "currency_mismatch",
            Self::CounterpartyBlocked => "counterparty_blocked",
            Self::JurisdictionBlocked => "jurisdiction_blocked",
            Self::CategoryBlocked => "category_blocked",
            Self::BankAccountUnbound => "bank_account_unbound",
            Self::SessionUnknown => "session_unknown",
            Self::SessionExpired => "session_expired",
            Self::ConfirmationRequired => "principal_confirmation_required",
            Self::SessionClosed => "session_closed",
            Self::WalletFull => "wallet_full",
            Self::BudgetExceeded => "budget_exceeded",
            Self::AlreadyPaid => "already_paid",
            Self::PaymentUnderWay => "payment_under_way",
            Self::StepOutOfOrder => "step_out_of_order",
        }
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

/// A payment or a document that is refused: what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at `{at}`")]
pub struct Refusal {
    /// What is wrong.
    pub code: Code,
    /// The place in the document that was looked at.
    pub at: Pointer,
    /// In words, with what would be right.
    pub detail: String,
}

impl Refusal {
    /// A refusal of a whole document or step.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, at: Pointer::root(), detail: detail.into() }
    }

    /// The same, because of the member at the end of a path of names.
    #[must_use]
    pub fn at(mut self, path: &[&str]) -> Self {
        for name in path {
            self.at.push(name);
        }
        self
    }

    /// The same, at a place that is known already.
    #[must_use]
    pub fn placed(mut self, at: Pointer) -> Self {
        self.at = at;
        self
    }
}

impl Refuse for Refusal {
    type Code = Code;

    fn refuse(code: Code, at: Pointer, detail: String) -> Self {
        Self { code, at, detail }
    }
}

impl From<aql::Refusal> for Refusal {
    fn from(refusal: aql::Refusal) -> Self {
        Self { code: Code::Below(refusal.code.name()), at: refusal.at, detail: refusal.detail }
    }
}

impl From<json::ParseError> for Refusal {
    fn from(error: json::ParseError) -> Self {
        aql::Refusal::from(error).into()
    }
}

impl From<trust::SignatureError> for Refusal {
    fn from(error: trust::SignatureError) -> Self {
        Self { code: Code::Below(error.code()), at: error.at, detail: error.problem.to_string() }
    }
}
