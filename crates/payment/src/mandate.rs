//! RFC 0020 B.1: the mandate, by which a principal permits an agent to pay (RFC 0032 §3.3).
//!
//! INVARIANT: nothing of an intent changes a mandate; what an intent asks for is only ever intersected with it.

use crate::keyring::Keyring;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use aql::Money;
use json::{Document, Instant};
use trust::Did;

/// The commerce primitives that a payment can be for.
pub const PRIMITIVES: [&str; 15] = [
    "per_invocation",
    "per_outcome",
    "per_token_knowledge",
    "per_capability",
    "per_delegation",
    "retail_purchase",
    "subscription",
    "metered_utility",
    "marketplace_intermediation",
    "advertising",
    "professional_service",
    "licensing",
    "lease",
    "lending",
    "insurance",
];

/// What a principal permits an agent, at a wallet.
#[derive(Clone, Debug)]
pub struct Mandate {
    /// Its name.
    pub mandate_id: String,
    /// Whose money it is.
    pub principal: Did,
    /// Who may pay.
    pub agent: Did,
    /// Who holds the money.
    pub wallet: Did,
    /// The most that one payment may be.
    pub max_single_payment: Money,
    /// The most for one day (UTC).
    pub max_daily_spend: Money,
    /// The most for one month (UTC).
    pub max_monthly_spend: Money,
    /// Only these are paid, where there is a list.
    pub allowed_counterparties: Option<Vec<String>>,
    /// These are never paid.
    pub blocked_counterparties: Vec<String>,
    /// Only for these, where there is a list.
    pub allowed_primitives: Option<Vec<String>>,
    /// Above this the principal is asked each time.
    pub require_confirmation_above: Option<Money>,
    /// Only by these, where there is a list.
    pub allowed_instruments: Option<Vec<String>>,
    /// Only to these countries, where there is a list.
    pub allowed_jurisdictions: Option<Vec<String>>,
    /// Never to counterparties of these kinds.
    pub blocked_categories: Vec<String>,
    /// From when on it holds.
    pub not_before: Instant,
    /// Until when it holds.
    pub not_after: Instant,
}

const MEMBERS: [&str; 11] = [
    "mandate_id",
    "version",
    "principal_did",
    "agent_did",
    "wallet_did",
    "constraints",
    "validity",
    "revocation_endpoint",
    "spending_report_webhook",
    "cooling_off_class",
    "signatures",
];

const CONSTRAINTS: [&str; 10] = [
    "max_single_payment",
    "max_daily_spend",
    "max_monthly_spend",
    "allowed_counterparty_dids",
    "blocked_counterparty_dids",
    "allowed_commerce_primitives",
    "require_confirmation_above",
    "allowed_instruments",
    "allowed_jurisdictions",
    "blocked_categories",
];

impl Mandate {
    /// Reads a mandate and proves that its principal signed it.
    pub fn verified(document: &Document, keys: &Keyring) -> Result<Self, Refusal> {
        let mandate = Self::read(document)?;
        keys.check_listed(document, &mandate.principal)?;
        Ok(mandate)
    }

    /// Reads a mandate that nobody has proved yet.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = At::root(document.root());
        root.closed(&MEMBERS)?;
        root.word("version", &[("1.0", ())])?;
        root.signatures()?;
        for name in ["revocation_endpoint", "spending_report_webhook"] {
            root.member(name).map(|member| member.string()).transpose()?;
        }
        if root.member("cooling_off_class").is_some() {
            let classes = [("irreversible_financial", ()), ("irreversible_legal", ()), ("none", ())];
            root.word("cooling_off_class", &classes)?;
        }
        let constraints = root.required("constraints")?;
        constraints.closed(&CONSTRAINTS)?;
        let allowed_primitives = constraints.strings("allowed_commerce_primitives")?;
        if let Some(other) = allowed_primitives.iter().flatten().position(|name| !PRIMITIVES.contains(&name.as_str())) {
            let place = constraints.at.child("allowed_commerce_primitives").child(other);
            return Err(Refusal::new(Code::InvalidValue, "this is no commerce primitive").placed(place));
        }
        let confirmation = constraints.member("require_confirmation_above");
        let validity = root.required("validity")?;
        validity.closed(&["not_before", "not_after"])?;
        Ok(Self {
            mandate_id: root.urn("mandate_id", "urn:oap:mandate:")?,
            principal: root.did("principal_did")?,
            agent: root.did("agent_did")?,
            wallet: root.did("wallet_did")?,
            max_single_payment: constraints.money("max_single_payment", "amount")?,
            max_daily_spend: constraints.money("max_daily_spend", "amount")?,
            max_monthly_spend: constraints.money("max_monthly_spend", "amount")?,
            allowed_counterparties: constraints.strings("allowed_counterparty_dids")?,
            blocked_counterparties: constraints.strings("blocked_counterparty_dids")?.unwrap_or_default(),
            allowed_primitives,
            require_confirmation_above: confirmation
                .map(|_| constraints.money("require_confirmation_above", "amount"))
                .transpose()?,
            allowed_instruments: constraints.strings("allowed_instruments")?,
            allowed_jurisdictions: constraints.strings("allowed_jurisdictions")?,
            blocked_categories: constraints.strings("blocked_categories")?.unwrap_or_default(),
            not_before: validity.instant("not_before")?,
            not_after: validity.instant("not_after")?,
        })
    }

    /// Whether the mandate holds at a moment.
    pub fn check_window(&self, now: Instant) -> Result<(), Refusal> {
        if now > self.not_after {
            let detail = format!("the mandate ended at {}; it is {now}", self.not_after);
            return Err(Refusal::new(Code::MandateExpired, detail).at(&["validity", "not_after"]));
        }
        if now < self.not_before {
            let detail = format!("the mandate begins at {}; it is {now}", self.not_before);
            return Err(Refusal::new(Code::MandateNotYetValid, detail).at(&["validity", "not_before"]));
        }
        Ok(())
    }
}
