//! RFC 0020 §3.7, A.3 to A.6: an answer, held against the intent that it answers.
//!
//! Whoever has the intent and the answer can check most of what the text demands of a resolver without asking anybody:
//! the shape, the places, the contract about fields, and every leaf that the payload settles. What cannot be known from
//! the two documents is counted, never guessed.
//!
//! INVARIANT: an answer that the engine of this crate wrote for this intent has no violation.

mod leaves;
mod payload;
mod ranking;
mod rule;

pub use rule::{Rule, Violation};

use crate::constraint::Tree;
use crate::evaluate::{Meter, holds};
use crate::intent::Intent;
use crate::limits::{Fuel, Limits};
use crate::read::{Place, Values, did, is_line};
use crate::refusal::{Code, Refusal};
use crate::resolve::Outcome;
use json::Instant;
use json::{Document, Node, Pointer};
use payload::Payload;
use ranking::Standing;
use std::collections::HashSet;

/// Violations that are told one by one; the others are counted.
const FINDINGS_MAX: usize = 1_000;

/// What one audit may spend; a leaf that costs more counts as not settled.
const FUEL: Fuel = Fuel { match_steps: 100_000, intent_steps: 50_000_000, visits: 200_000_000 };

/// What became of an answer.
#[derive(Clone, Debug)]
pub struct Audit {
    /// What is wrong with it, in the order of the answer.
    pub violations: Vec<Violation>,
    /// How many more violations there are.
    pub untold: usize,
    /// What was looked at.
    pub checked: Checked,
}

impl Audit {
    /// Whether nothing is wrong.
    pub fn conforms(&self) -> bool {
        self.violations.is_empty()
    }
}

/// How much of an answer could be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Candidates returned.
    pub candidates: usize,
    /// Candidates rejected.
    pub rejected: usize,
    /// Leaves of returned candidates that their payload settles.
    pub leaves_settled: usize,
    /// Leaves of returned candidates that their payload leaves open.
    pub leaves_open: usize,
    /// Leaves of rejected candidates, of which no payload is shown.
    pub leaves_rejected: usize,
    /// Scores computed again.
    pub scores: usize,
}

/// Holds an answer against its intent; `earlier` candidates stand on the pages before this one.
pub fn audit(intent: &Intent, answer: Node<'_>, limits: &Limits, earlier: usize) -> Audit {
    let mut auditor = Auditor {
        intent,
        limits,
        earlier,
        findings: Findings::default(),
        checked: Checked::default(),
        meter: Meter::new(FUEL),
        operands: intent.constraints.leaves().iter().map(|leaf| Document::of(&leaf.value).ok()).collect(),
        may_show: vec![None; intent.constraints.leaves().len()],
        candidates: HashSet::new(),
        decisions: HashSet::new(),
    };
    auditor.response(&Place::root(answer));
    Audit { violations: auditor.findings.told, untold: auditor.findings.untold, checked: auditor.checked }
}

/// Violations as they are found.
#[derive(Default)]
struct Findings {
    told: Vec<Violation>,
    untold: usize,
}

impl Findings {
    fn push(&mut self, rule: Rule, at: Pointer, detail: impl Into<String>) {
        if self.told.len() < FINDINGS_MAX {
            self.told.push(Violation { rule, at, detail: detail.into() });
        } else {
            self.untold += 1;
        }
    }

    fn append(&mut self, other: Self) {
        self.untold += other.untold;
        other.told.into_iter().for_each(|violation| self.push(violation.rule, violation.at, violation.detail));
    }
}

struct Auditor<'a> {
    intent: &'a Intent,
    limits: &'a Limits,
    earlier: usize,
    findings: Findings,
    checked: Checked,
    meter: Meter,
    /// The operand of each leaf, to be compared with what a record repeats.
    operands: Vec<Option<Document>>,
    /// For each leaf, whether the projection can show a value it reaches; found out when first asked.
    may_show: Vec<Option<bool>>,
    candidates: HashSet<&'a str>,
    decisions: HashSet<&'a str>,
}

/// What a returned candidate says about its place in the order.
struct Returned<'a> {
    at: Pointer,
    id: Option<&'a str>,
    over_budget: bool,
    score: Option<f64>,
    standing: Option<Standing>,
}

/// What a decision record says.
struct Decided {
    at: Pointer,
    outcome: Option<Outcome>,
    explained: bool,
    /// The truth of each leaf, where the record names it properly.
    leaves: Vec<Option<bool>>,
    standing: Option<Standing>,
}

const RESPONSE: [&str; 12] = [
    "response_id",
    "intent_id",
    "resolver_did",
    "resolver_role",
    "evaluated_at",
    "candidates",
    "rejected",
    "completeness_attestation_ref",
    "next_cursor",
    "signature",
    "schema_version",
    "deprecation_warning",
];
const ROLES: [(&str, ()); 4] = [("match_broker", ()), ("provider", ()), ("storage_substrate", ()), ("publisher", ())];
const CANDIDATE: [&str; 7] =
    ["candidate_id", "payload", "decision_record", "rank", "score", "over_budget", "inclusion_proof"];
const DECISION: [&str; 7] = [
    "decision_id",
    "evaluated_at",
    "outcome",
    "constraint_evaluations",
    "ranking_function",
    "policy_decision_ref",
    "explanation",
];

impl<'a> Auditor<'a> {
    fn response(&mut self, place: &Place<'a>) {
        if !self.closed(place, &RESPONSE) {
            return;
        }
        self.envelope(place);
        let candidates = self.required(place, "candidates", Place::elements).unwrap_or_default();
        let rejected = self.optional(place, "rejected", Place::elements).unwrap_or_default();
        self.checked.candidates = candidates.len();
        self.checked.rejected = rejected.len();
        let room = self.intent.room();
        if candidates.len().saturating_add(self.earlier) > room {
            let detail = format!("the intent leaves room for {room}");
            self.findings.push(Rule::TooManyCandidates, place.at.child("candidates"), detail);
        }
        let mut before: Option<Returned<'a>> = None;
        for (position, candidate) in candidates.iter().enumerate() {
            let Some(returned) = self.returned(candidate, position) else { continue };
            if let Some(before) = &before {
                self.order(before, &returned);
            }
            before = Some(returned);
        }
        for rejection in &rejected {
            self.rejection(rejection);
        }
    }

    /// The members around the candidates.
    fn envelope(&mut self, place: &Place<'a>) {
        self.required(place, "response_id", |place| urn(place, "urn:oap:intent-response:"));
        if let Some(intent_id) = self.required(place, "intent_id", |place| urn(place, "urn:oap:intent:"))
            && intent_id != self.intent.intent_id
        {
            let detail = "the answer names another intent than the one it is held against";
            self.findings.push(Rule::IntentIdDiffers, place.at.child("intent_id"), detail);
        }
        self.required(place, "resolver_did", did);
        self.optional(place, "resolver_role", |role| role.word(&ROLES));
        self.moment(place);
        for name in ["completeness_attestation_ref", "next_cursor", "schema_version"] {
            self.optional(place, name, Place::string);
        }
        if let Some(signature) = self.required(place, "signature", |place| Ok(place.clone()))
            && self.closed(&signature, &["alg", "value", "kid"])
        {
            self.required(&signature, "alg", |alg| alg.word(&[("EdDSA", ()), ("ES256", ()), ("ES384", ())]));
            self.required(&signature, "value", Place::string);
            self.optional(&signature, "kid", Place::string);
        }
        if let Some(warning) = place.member("deprecation_warning")
            && self.closed(&warning, &["schema", "version", "announced_at", "sunset", "successor", "mapping"])
        {
            for name in ["schema", "version"] {
                self.required(&warning, name, Place::string);
            }
            for name in ["announced_at", "sunset"] {
                self.required(&warning, name, instant);
            }
            for name in ["successor", "mapping"] {
                self.optional(&warning, name, Place::string);
            }
        }
    }

    /// `evaluated_at` lies in the window of the intent, as far as two clocks agree.
    fn moment(&mut self, place: &Place<'a>) {
        let Some(evaluated_at) = self.required(place, "evaluated_at", instant) else { return };
        let (from, to) = (self.intent.validity.from(), self.intent.validity.to());
        if evaluated_at < from.plus(-self.limits.skew_seconds) || evaluated_at > to {
            let detail = format!("the intent was open from {from} to {to}");
            self.findings.push(Rule::OutsideWindow, place.at.child("evaluated_at"), detail);
        }
    }

    fn returned(&mut self, place: &Place<'a>, position: usize) -> Option<Returned<'a>> {
        if !self.closed(place, &CANDIDATE) {
            return None;
        }
        let id = self.name(place);
        let rank = self.optional(place, "rank", |rank| rank.integer(1));
        let expected = (self.earlier + position + 1) as u64;
        if rank.is_some_and(|rank| rank != expected) {
            let detail = format!("this candidate stands in place {expected}");
            self.findings.push(Rule::RankOutOfPlace, place.at.child("rank"), detail);
        }
        let score = self.optional(place, "score", Place::number);
        let flagged = self.optional(place, "over_budget", Place::boolean).unwrap_or(false);
        self.inclusion_proof(place);
        let payload = self.required(place, "payload", object);
        let document = payload.as_ref().map(|payload| payload.node.to_document());
        let payload = document.as_ref().zip(payload).map(|(document, payload)| {
            Payload::read(document, &self.intent.projection, &payload.at, &mut self.findings)
        });
        let decided = place.member("decision_record").map(|record| self.decision(&record, Some(payload.as_ref())));
        if decided.is_none() {
            self.required(place, "decision_record", object);
        }
        let decided = decided.flatten();
        if let Some(decided) = &decided {
            self.returned_outcome(decided, flagged, &place.at);
            let own = (score, rank.map(|rank| rank as f64));
            self.same_ranking(decided, own);
        }
        let outcome = decided.as_ref().and_then(|decided| decided.outcome);
        let over_budget = flagged || outcome == Some(Outcome::OverBudget);
        let standing = decided.and_then(|decided| decided.standing);
        Some(Returned { at: place.at.clone(), id, over_budget, score, standing })
    }

    fn inclusion_proof(&mut self, place: &Place<'a>) {
        if let Some(proof) = self.optional(place, "inclusion_proof", object) {
            self.required(&proof, "root", Place::string);
            self.required(&proof, "path", Place::strings);
            self.optional(&proof, "leaf_hash", Place::string);
        }
    }

    fn rejection(&mut self, place: &Place<'a>) {
        if self.shape(object(place)).is_none() {
            return;
        }
        self.name(place);
        match place.member("decision_record") {
            None => drop(self.required(place, "decision_record", object)),
            Some(record) => {
                if let Some(decided) = self.decision(&record, None) {
                    self.rejected_outcome(&decided);
                }
            }
        }
    }

    /// What the candidate is called; nobody stands in an answer twice.
    fn name(&mut self, place: &Place<'a>) -> Option<&'a str> {
        let id = self.required(place, "candidate_id", Place::string)?;
        if !self.candidates.insert(id) {
            let detail = "a candidate of this name stands further up";
            self.findings.push(Rule::CandidateRepeated, place.at.child("candidate_id"), detail);
        }
        Some(id)
    }

    /// Reads a decision record; `payload` is `None` for a rejected candidate.
    fn decision(&mut self, place: &Place<'a>, payload: Option<Option<&Payload<'_>>>) -> Option<Decided> {
        if !self.closed(place, &DECISION) {
            return None;
        }
        if let Some(id) = self.required(place, "decision_id", Place::string)
            && !self.decisions.insert(id)
        {
            let detail = "a decision of this name stands further up";
            self.findings.push(Rule::DecisionRepeated, place.at.child("decision_id"), detail);
        }
        self.moment(place);
        let outcome = self.required(place, "outcome", |outcome| outcome.word(&Outcome::ALL));
        self.grounds(place, outcome);
        self.optional(place, "policy_decision_ref", Place::string);
        let explanation = self.optional(place, "explanation", Place::string);
        let leaves = self.leaves(place, payload);
        let standing = place.member("ranking_function").and_then(|block| self.ranking(&block));
        let explained = explanation.is_some_and(|words| !words.trim().is_empty());
        Some(Decided { at: place.at.clone(), outcome, explained, leaves, standing })
    }

    /// An outcome speaks only of what the intent declares.
    fn grounds(&mut self, place: &Place<'a>, outcome: Option<Outcome>) {
        let missing = match outcome {
            Some(Outcome::OverBudget) if self.intent.budget.is_none() => "budget",
            Some(Outcome::BelowQualityFloor) if self.intent.quality_floor == Default::default() => "quality floor",
            _ => return,
        };
        let detail = format!("the intent has no {missing}");
        self.findings.push(Rule::OutcomeGroundless, place.at.child("outcome"), detail);
    }

    fn returned_outcome(&mut self, decided: &Decided, flagged: bool, candidate: &Pointer) {
        let at = decided.at.child("outcome");
        match decided.outcome {
            Some(Outcome::Reject) => {
                self.findings.push(Rule::RejectedReturned, at, "a rejected candidate is not returned");
            }
            Some(Outcome::BelowQualityFloor) => {
                let detail = "a candidate below the quality floor is rejected before the answer";
                self.findings.push(Rule::BelowFloorReturned, at, detail);
            }
            Some(Outcome::OverBudget) if !flagged => {
                let detail = "a candidate over the budget carries `over_budget`: true";
                self.findings.push(Rule::OverBudgetUnflagged, candidate.child("over_budget"), detail);
            }
            Some(Outcome::Accept) if flagged => {
                let detail = "its decision record accepts it";
                self.findings.push(Rule::OverBudgetMisflagged, candidate.child("over_budget"), detail);
            }
            Some(Outcome::Accept | Outcome::OverBudget) | None => {}
        }
        if self.tree_holds(decided) == Some(false) {
            let detail = "by the leaves it reports, the constraints do not hold";
            self.findings.push(Rule::ConstraintsNotMet, decided.at.child("constraint_evaluations"), detail);
        }
        if let Some(standing) = &decided.standing {
            self.ranked_inputs(standing, flagged || decided.outcome == Some(Outcome::OverBudget));
        }
    }

    fn rejected_outcome(&mut self, decided: &Decided) {
        let at = decided.at.child("outcome");
        match (decided.outcome, self.tree_holds(decided)) {
            (Some(Outcome::Accept), _) => {
                self.findings.push(Rule::AcceptedWithheld, at, "an accepted candidate is returned");
            }
            (Some(Outcome::OverBudget | Outcome::BelowQualityFloor), Some(false)) => {
                let detail = "the constraints do not hold, and they are asked first";
                self.findings.push(Rule::OutcomeOutOfTurn, at, detail);
            }
            (Some(Outcome::Reject), Some(true)) if !decided.explained => {
                let detail = "every constraint holds and there is no explanation";
                self.findings.push(Rule::RejectionUnexplained, at, detail);
            }
            (Some(Outcome::Reject | Outcome::OverBudget | Outcome::BelowQualityFloor) | None, _) => {}
        }
    }

    /// Whether the tree holds by the leaves that were reported, when all of them were.
    fn tree_holds(&self, decided: &Decided) -> Option<bool> {
        let leaves: Option<Vec<bool>> = decided.leaves.iter().copied().collect();
        let tree: &Tree = self.intent.constraints.tree();
        leaves.map(|leaves| holds(tree, &leaves))
    }

    /// What fits comes first, then what repeats nobody, and then the higher score.
    fn order(&mut self, before: &Returned<'_>, this: &Returned<'_>) {
        if before.over_budget && !this.over_budget {
            let detail = "this candidate fits the budget and the one before it does not";
            self.findings.push(Rule::OverBudgetOutOfOrder, this.at.clone(), detail);
        }
        let (Some(high), Some(low)) = (before.score, this.score) else { return };
        if before.over_budget != this.over_budget {
            return;
        }
        // decisions/0255: repetitions have an order of their own behind the others.
        let repeats = |returned: &Returned<'_>| returned.standing.as_ref().is_some_and(|standing| standing.repeats);
        match (repeats(before), repeats(this)) {
            (false, true) => return,
            (true, false) => {
                let detail = "the candidate before this one repeats another, and this one does not";
                self.findings.push(Rule::ScoreOutOfOrder, this.at.clone(), detail);
                return;
            }
            (true, true) | (false, false) => {}
        }
        if low > high {
            let detail = "the candidate before this one has a lower score";
            self.findings.push(Rule::ScoreOutOfOrder, this.at.child("score"), detail);
        } else if low == high {
            self.tie(before, this);
        }
    }

    fn closed(&mut self, place: &Place<'_>, members: &[&str]) -> bool {
        let is_object = place.node.is_object();
        self.shape(place.closed(members));
        is_object
    }

    fn required<'n, T>(
        &mut self,
        place: &Place<'n>,
        name: &str,
        read: impl FnOnce(&Place<'n>) -> Result<T, Refusal>,
    ) -> Option<T> {
        let member = self.shape(place.required(name))?;
        self.shape(read(&member))
    }

    fn optional<'n, T>(
        &mut self,
        place: &Place<'n>,
        name: &str,
        read: impl FnOnce(&Place<'n>) -> Result<T, Refusal>,
    ) -> Option<T> {
        let member = place.member(name)?;
        self.shape(read(&member))
    }

    /// A refusal of the reader is a violation of the published shape.
    fn shape<T>(&mut self, read: Result<T, Refusal>) -> Option<T> {
        let refusal = match read {
            Ok(value) => return Some(value),
            Err(refusal) => refusal,
        };
        let rule = if refusal.code == Code::MissingField {
            Rule::MissingMember
        } else if refusal.code == Code::UnknownField {
            Rule::UnknownMember
        } else if refusal.code == Code::WrongType {
            Rule::WrongType
        } else {
            Rule::InvalidValue
        };
        self.findings.push(rule, refusal.at, refusal.detail);
        None
    }
}

fn object<'a>(place: &Place<'a>) -> Result<Place<'a>, Refusal> {
    match place.node.is_object() {
        true => Ok(place.clone()),
        false => place.refuse(Code::WrongType, format!("an object belongs here, not {}", place.node.kind().name())),
    }
}

fn urn<'a>(place: &Place<'a>, prefix: &str) -> Result<&'a str, Refusal> {
    let text = place.string()?;
    match text.strip_prefix(prefix) {
        Some(rest) if is_line(rest) => Ok(text),
        _ => place.refuse(Code::InvalidValue, format!("a name that begins with `{prefix}` belongs here")),
    }
}

fn instant(place: &Place<'_>) -> Result<Instant, Refusal> {
    let detail = "an RFC 3339 date and time with an offset belongs here";
    Instant::parse_rfc3339(place.string()?).map_or_else(|| place.refuse(Code::InvalidTimestamp, detail), Ok)
}
