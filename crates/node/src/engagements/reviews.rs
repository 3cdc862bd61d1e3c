//! OAS Agent, `require_review`: who decides, about what exactly, and whether they may.
//!
//! A decision is about one digest: this engagement, this call, these values, this document, this reviewer. It counts once
//! and in its time; what it allows is judged again before it is done, by `agent::next`.
//!
//! INVARIANT: the first decision counts. Whoever is neither reviewer nor caller nor owner learns nothing.

use super::guesses::Role;
use super::journal::{Live, Survives};
use super::perform::review_text;
use super::serving::{review_place, reviewing_agent};
use super::{Engagements, LISTED_MAX, unknown};
use crate::refusal::{Class, Error, Refusal};
use agent::{Decision, Outcome, Progress, Review, Stage, Step};
use aql::Instant;
use json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Engaged, Reached};

/// What a reviewer decides.
#[derive(Clone, Debug)]
pub struct Decided {
    /// Whether it may go on.
    pub approve: bool,
    /// The digest that the reviewer was shown.
    pub digest: String,
    /// Why, for the audit trail.
    pub reason: Option<String>,
}

/// What a person says about a call of which nobody knows what became.
#[derive(Clone, Debug)]
pub enum Settled {
    /// It was not carried out, or does no harm twice: make it again.
    Repeat,
    /// It was carried out, and gave this.
    Output(Value),
    /// It was not carried out, for this reason.
    Failed(String),
}

/// Who ends the engagement of an agent that reviews and has not decided in time.
const EXPIRY: &str = "expiry";
/// Engagements of one reviewer that are looked through for a page.
const REVIEWS_MAX: usize = 10_000;

/// A page of what waits for a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// What waits.
    pub reviews: Vec<Value>,
    /// What the next page begins after, where there is one.
    pub next: Option<String>,
}

impl Engagements {
    /// Goes on after a review, or leaves it to whoever is asked.
    pub(super) async fn reviewed(
        self: &Arc<Self>,
        live: &mut Live,
        call: usize,
        stage: Stage,
        review: Review,
    ) -> Result<bool, Error> {
        let decided = |decision, by| {
            let digest = review.digest.clone();
            Step::ReviewDecided { call, stage, digest, decision, by, reason: None }
        };
        let due = due(&review);
        if self.node.clock().millis() >= due {
            // Ended before it is written that nobody waits for it: a kill in between leaves both to the next start.
            self.end_serving(live, &review_place(call, stage), EXPIRY).await?;
            live.record(decided(Decision::Expired, None))?;
            return Ok(true);
        }
        if let Some(name) = reviewing_agent(&review.reviewer) {
            // Asked before it begins: a restart finds the question in the journal.
            self.write(live, Reached::Running, None, Survives::Kill).await?;
            let object = live.engagement.object_at(&live.agent, call, stage);
            let capability = live.engagement.calls().get(call).and_then(|call| call.capability.clone());
            let text = review_text(stage.name(), &capability.unwrap_or_default(), &object);
            let place = review_place(call, stage);
            if let Some(approved) = self.verdict_of(live, &place, name, &text).await? {
                let decision = if approved { Decision::Approved } else { Decision::Rejected };
                live.record(decided(decision, Some(review.reviewer.clone())))?;
                return Ok(true);
            }
            self.leave(live).await?;
        } else {
            let asked = Some((review.reviewer.clone(), due));
            self.write(live, Reached::Waiting, asked, Survives::PowerLoss).await?;
        }
        self.wake_at(live.engaged.id.clone(), due);
        Ok(false)
    }

    /// A reviewer decides.
    pub async fn decide(
        self: &Arc<Self>,
        id: &str,
        review_id: &str,
        caller: &str,
        decided: Decided,
    ) -> Result<(), Error> {
        self.sought(id, Some(caller), Role::Reviewer)?;
        self.move_on(id, |live| {
            let (call, stage, review) = self.asked(live, review_id, caller)?;
            if self.node.clock().millis() >= due(&review) {
                let detail = "the time for this decision is over, and the call was not allowed";
                return Err(Refusal::new(Class::Gone, "review_expired", detail).into());
            }
            if decided.digest != review.digest {
                let detail = "this decision is about something else than what waits; look at it again";
                return Err(Refusal::new(Class::Conflict, "review_stale", detail).into());
            }
            let decision = if decided.approve { Decision::Approved } else { Decision::Rejected };
            let (digest, by, reason) = (review.digest, Some(caller.to_owned()), decided.reason);
            live.record(Step::ReviewDecided { call, stage, digest, decision, by, reason })
        })
        .await
    }

    /// The review of this name, if this caller is the one who is asked.
    fn asked(&self, live: &Live, review_id: &str, caller: &str) -> Result<(usize, Stage, Review), Error> {
        let known = find(live, review_id);
        let Some((call, stage, review)) = known else { return Err(unknown().into()) };
        if !self.means(&review.reviewer, caller) {
            let involved = self.is_callers(&live.engaged, Some(caller)) || self.is_owner(&live.agent, Some(caller));
            let detail = "somebody else is asked to decide this";
            let refused = Refusal::new(Class::PolicyBlock, "reviewer_not_allowed", detail);
            return Err(if involved { refused.into() } else { unknown().into() });
        }
        let waits = live.engagement.pending_review().is_some_and(|(_, _, pending)| pending.id == review.id);
        if !waits || live.engagement.status().is_final() {
            let detail = "this was decided before, or the engagement is over";
            return Err(Refusal::new(Class::Conflict, "review_decided", detail).into());
        }
        Ok((call, stage, review))
    }

    /// What a reviewer is shown: what runs if they agree, all of it, and the digest that stands for it.
    pub fn review(&self, id: &str, review_id: &str, caller: &str) -> Result<Value, Error> {
        self.sought(id, Some(caller), Role::Reviewer)?;
        let live = self.load(id)?;
        let (call, stage, review) = self.asked(&live, review_id, caller)?;
        Ok(shown(&live, call, stage, &review))
    }

    /// What waits for a caller to decide, the newest first, one page of it; `after` is what the page before ended with.
    pub fn reviews(&self, caller: &str, after: Option<&str>) -> Result<Listed, Error> {
        let known = self.people.iter().filter(|person| person.did == caller);
        let mut names: BTreeSet<&str> =
            known.flat_map(|person| [&person.id, &person.email]).flatten().map(String::as_str).collect();
        names.insert(caller);
        let mut waiting = Vec::new();
        for name in names {
            waiting.extend(self.node.store.engagements_before(name, REVIEWS_MAX)?);
        }
        waiting.sort_by(|one, other| (other.begun_at, &other.id).cmp(&(one.begun_at, &one.id)));
        if let Some(after) = after {
            let (begun_at, id) = place(after)?;
            waiting.retain(|engaged| (engaged.begun_at, engaged.id.as_str()) < (begun_at, id));
        }
        let mut listed = Listed { reviews: Vec::new(), next: None };
        for (number, engaged) in waiting.iter().enumerate() {
            if listed.reviews.len() >= LISTED_MAX {
                listed.next = number.checked_sub(1).and_then(|last| waiting.get(last)).map(place_of);
                break;
            }
            let live = self.load(&engaged.id)?;
            if let Some((call, stage, review)) = live.engagement.pending_review() {
                listed.reviews.push(shown(&live, call, stage, review));
            }
            if let Some((call, waits)) = lost(&live) {
                listed.reviews.push(json!({
                    "engagement": live.engaged.id, "agent": live.engaged.agent, "stage": "outcome", "call": call,
                    "capability": waits.capability, "inputs": waits.inputs,
                }));
            }
        }
        Ok(listed)
    }

    /// The owner says what became of a call of which nobody knows.
    pub async fn settle(self: &Arc<Self>, id: &str, call: usize, caller: &str, settled: Settled) -> Result<(), Error> {
        self.sought(id, Some(caller), Role::Owner)?;
        self.move_on(id, |live| {
            let identity = lost(live).filter(|(lost, _)| *lost == call).map(|(_, call)| call.identity.clone());
            let Some(identity) = identity else {
                let detail = "nobody waits to hear what became of this call";
                return Err(Refusal::new(Class::Conflict, "engagement_not_waiting", detail).into());
            };
            live.repeat = matches!(settled, Settled::Repeat).then_some(call);
            live.record(match settled {
                Settled::Repeat => Step::Dispatched { call, identity: identity.unwrap_or(agent::Identity::Nobody) },
                Settled::Output(value) => Step::Returned { call, outcome: Outcome::Output(value) },
                Settled::Failed(reason) => Step::Returned { call, outcome: Outcome::Error(reason) },
            })
        })
        .await
    }
}

/// Where a page ended: when the last engagement began, and its name.
fn place_of(engaged: &Engaged) -> String {
    format!("{}.{}", engaged.begun_at, engaged.id)
}

fn place(text: &str) -> Result<(i64, &str), Error> {
    let place = text.split_once('.').and_then(|(begun_at, id)| Some((begun_at.parse().ok()?, id)));
    let detail = "`after` is what the page before gave as `next`";
    place.ok_or_else(|| Refusal::new(Class::InvalidInput, "invalid_cursor", detail).into())
}

/// The call of which nobody knows what became.
fn lost(live: &Live) -> Option<(usize, &agent::Call)> {
    live.engagement.calls().iter().enumerate().find(|(_, call)| call.progress == Progress::Unknown)
}

/// Any review of this engagement, by its name.
fn find(live: &Live, review_id: &str) -> Option<(usize, Stage, Review)> {
    live.engagement.steps().iter().find_map(|step| match step {
        Step::ReviewAsked { call, stage, review } if review.id == review_id => Some((*call, *stage, review.clone())),
        _ => None,
    })
}

fn shown(live: &Live, call: usize, stage: Stage, review: &Review) -> Value {
    let asked = live.engagement.calls().get(call);
    json!({
        "id": review.id,
        "engagement": live.engaged.id,
        "agent": live.engaged.agent,
        "document": live.engaged.document,
        "stage": stage.name(),
        "call": call,
        "capability": asked.and_then(|call| call.capability.clone()),
        "inputs": asked.map(|call| call.inputs.clone()),
        "reviewer": review.reviewer,
        "digest": review.digest,
        "expires_at": review.expires_at,
        "view": live.engagement.object_at(&live.agent, call, stage),
    })
}

/// When a review ends, in milliseconds since 1970; at once when that cannot be read.
fn due(review: &Review) -> i64 {
    Instant::parse(&review.expires_at).map_or(0, |instant| instant.seconds() * 1_000)
}
