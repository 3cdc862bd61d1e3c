//! RFC 0020 §3.1: the intent document.
//!
//! Reading checks everything that can be known without the store, the clock and the issuer's key: an [`Intent`] is a
//! question that can be answered. Its signature is `trust`'s business and stands outside.

use crate::budget::Budget;
use crate::category::Category;
use crate::constraint::Constraints;
use crate::limits::Limits;
use crate::payment::PaymentConstraints;
use crate::projection::Projection;
use crate::quality::Signals;
use crate::read::{Place, Values, did, is_line};
use crate::refusal::{Code, Refusal};
use json::Instant;
use json::{Document, Node};

/// A question: what is wanted, under which constraints, for how much, at what quality, showing which fields.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Minted by the issuer.
    pub intent_id: String,
    /// Whose question it is.
    pub issuer_did: String,
    /// Who asks on the issuer's behalf.
    pub agent_did: Option<String>,
    /// What kind of answer is wanted.
    pub category: Category,
    /// What a candidate must satisfy.
    pub constraints: Constraints,
    /// What the answer shows.
    pub projection: Projection,
    /// How much it may cost.
    pub budget: Option<Budget>,
    /// How good it must be.
    pub quality_floor: Signals,
    /// When it may be answered.
    pub validity: Validity,
    /// How many answers are wanted.
    pub resolution_policy: ResolutionPolicy,
    /// How often a subscriber wants to hear.
    pub max_event_rate_per_minute: Option<u64>,
    /// How it may be paid for.
    pub payment_constraints: Option<PaymentConstraints>,
}

/// How many candidates the issuer accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolutionPolicy {
    /// The first one.
    SingleBest,
    /// All, in order.
    RankedSet,
    /// All, in pages.
    FullSet,
}

/// When an intent is open. Both ends belong to the window.
///
/// INVARIANT: `from < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    from: Instant,
    to: Instant,
}

const MEMBERS: [&str; 17] = [
    "intent_id",
    "issuer_did",
    "agent_did",
    "delegation_chain",
    "category",
    "constraints",
    "projection",
    "budget",
    "quality_floor",
    "validity",
    "resolution_policy",
    "max_event_rate_per_minute",
    "payment_constraints",
    "schema_version",
    "version_negotiation",
    "schema_id",
    "signature",
];

impl Intent {
    /// Reads bytes as a stranger may send them.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<(Self, Document), Refusal> {
        let document = Document::parse(bytes, &limits.json)?;
        Ok((Self::read(document.root(), limits)?, document))
    }

    /// Reads a parsed document.
    pub fn read(node: Node<'_>, limits: &Limits) -> Result<Self, Refusal> {
        let place = Place::root(node);
        place.closed(&MEMBERS)?;
        unread_members(&place)?;
        let category = place.required("category")?.word(&Category::ALL)?;
        let constraints = place.required("constraints")?;
        let policy = place.member("resolution_policy").map(|policy| policy.word(&ResolutionPolicy::ALL)).transpose()?;
        let floor = place.member("quality_floor").map(|floor| Signals::read(&floor)).transpose()?;
        Ok(Self {
            intent_id: intent_id(&place.required("intent_id")?)?,
            issuer_did: did(&place.required("issuer_did")?)?,
            agent_did: place.member("agent_did").map(|agent| did(&agent)).transpose()?,
            category,
            constraints: Constraints::read(constraints.node, constraints.at, limits)?,
            projection: Projection::read(&place.required("projection")?, limits)?,
            budget: place.member("budget").map(|budget| Budget::read(&budget, limits)).transpose()?,
            quality_floor: floor.unwrap_or_default(),
            validity: Validity::read(&place.required("validity")?)?,
            resolution_policy: policy.unwrap_or(ResolutionPolicy::RankedSet),
            max_event_rate_per_minute: event_rate(&place, category)?,
            payment_constraints: payment_constraints(&place, category)?,
        })
    }

    /// Whether the intent may be answered now.
    pub fn check_window(&self, now: Instant, limits: &Limits) -> Result<(), Refusal> {
        self.validity.check(self.category, now, limits)
    }
}

impl ResolutionPolicy {
    /// All three with their names on the wire.
    pub const ALL: [(&'static str, Self); 3] =
        [("single_best", Self::SingleBest), ("ranked_set", Self::RankedSet), ("full_set", Self::FullSet)];
}

impl Validity {
    pub(crate) fn read(place: &Place<'_>) -> Result<Self, Refusal> {
        place.closed(&["from", "to"])?;
        let (from, to) = (moment(&place.required("from")?)?, moment(&place.required("to")?)?);
        if to <= from {
            let detail = "the window ends after it begins";
            return Err(Refusal::new(Code::ValidityInvalid, place.at.child("to"), detail));
        }
        Ok(Self { from, to })
    }

    /// Reads a validity block by itself.
    pub fn of(node: Node<'_>) -> Result<Self, Refusal> {
        Self::read(&Place::new(node, json::Pointer::root().child("validity")))
    }

    /// The first moment of the window.
    pub fn from(&self) -> Instant {
        self.from
    }

    /// The last moment of the window.
    pub fn to(&self) -> Instant {
        self.to
    }

    /// Whether the window is open now, and not longer than allowed.
    pub fn check(&self, category: Category, now: Instant, limits: &Limits) -> Result<(), Refusal> {
        let at = || json::Pointer::root().child("validity");
        let longest = match category {
            Category::Subscription => limits.subscription_seconds,
            _ => limits.validity_seconds,
        };
        if self.to > self.from.plus(longest) {
            let (max, got) = (longest as usize, (self.to.seconds() - self.from.seconds()) as usize);
            return Err(Refusal::limit(Code::ValidityTooLong, at(), "validity_seconds", max, got));
        }
        if now > self.to {
            return Err(Refusal::new(
                Code::IntentExpired,
                at(),
                format!("the window closed at {}; it is {now}", self.to),
            ));
        }
        if now < self.from.plus(-limits.skew_seconds) {
            let detail = format!("the window opens at {}; it is {now}", self.from);
            return Err(Refusal::new(Code::IntentNotYetValid, at(), detail));
        }
        Ok(())
    }
}

/// Members that are checked here and used elsewhere: by `trust`, by delegation, by version negotiation.
fn unread_members(place: &Place<'_>) -> Result<(), Refusal> {
    if let Some(chain) = place.member("delegation_chain") {
        for token in chain.elements()? {
            object(&token)?;
        }
    }
    for name in ["schema_version", "schema_id"] {
        place.member(name).map(|member| member.string()).transpose()?;
    }
    if let Some(negotiation) = place.member("version_negotiation") {
        negotiation.closed(&["permit_upgrade", "permit_downgrade"])?;
        for name in ["permit_upgrade", "permit_downgrade"] {
            negotiation.member(name).map(|member| member.boolean()).transpose()?;
        }
    }
    if let Some(signature) = place.member("signature") {
        signature.closed(&["alg", "value", "kid"])?;
        let algorithm = signature.required("alg")?;
        if !["EdDSA", "ES256", "ES384"].contains(&algorithm.string()?) {
            return algorithm.refuse(Code::AlgNotAllowed, "`EdDSA`, `ES256` or `ES384` belongs here");
        }
        signature.required("value")?.string()?;
        signature.member("kid").map(|kid| kid.string()).transpose()?;
    }
    Ok(())
}

fn object(place: &Place<'_>) -> Result<(), Refusal> {
    match place.node.is_object() {
        true => Ok(()),
        false => place.refuse(Code::WrongType, format!("an object belongs here, not {}", place.node.kind().name())),
    }
}

fn intent_id(place: &Place<'_>) -> Result<String, Refusal> {
    let text = place.string()?;
    match text.strip_prefix("urn:oap:intent:") {
        Some(rest) if is_line(rest) && rest.contains(char::is_control) => {
            // Logs, file names and other programs end a name at such a character, and see another one.
            place.refuse(Code::Json(json::Code::InvalidUnicode), "an intent id has no control characters")
        }
        Some(rest) if is_line(rest) => Ok(text.to_owned()),
        _ => place.refuse(Code::InvalidValue, "an intent id begins with `urn:oap:intent:` and goes on"),
    }
}

fn moment(place: &Place<'_>) -> Result<Instant, Refusal> {
    let detail = "an RFC 3339 date and time with an offset belongs here, such as `2026-06-01T12:00:00Z`";
    Instant::parse_rfc3339(place.string()?).map_or_else(|| place.refuse(Code::InvalidTimestamp, detail), Ok)
}

fn event_rate(place: &Place<'_>, category: Category) -> Result<Option<u64>, Refusal> {
    let rate = place.member("max_event_rate_per_minute").map(|rate| rate.integer(1)).transpose()?;
    match (category, rate) {
        (Category::Subscription, None) => {
            let at = place.at.child("max_event_rate_per_minute");
            Err(Refusal::new(Code::EventRateMissing, at, "a subscription says how many events a minute it takes"))
        }
        (_, rate) => Ok(rate),
    }
}

fn payment_constraints(place: &Place<'_>, category: Category) -> Result<Option<PaymentConstraints>, Refusal> {
    match (place.member("payment_constraints"), category) {
        (None, _) => Ok(None),
        (Some(block), Category::Commercial) => PaymentConstraints::read(&block).map(Some),
        (Some(block), _) => block.refuse(Code::PaymentConstraintsMisplaced, "only a commercial intent is paid for"),
    }
}
