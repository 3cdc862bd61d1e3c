//! OAS Server: what is shown of an engagement, and to whom.
//!
//! INVARIANT: what was withheld stands in the audit trail and nowhere else; a failure is told by its code.

use super::guesses::Role;
use super::journal::Seat;
use super::serving::Held;
use super::{Engagements, LISTED_MAX, WAIT_MS_MAX, Withheld};
use crate::clock::instant;
use crate::refusal::Error;
use agent::{Engagement, Status, Step};
use json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::{Engaged, Noted, Reached};
use tokio::time::timeout;

impl Engagements {
    /// How an engagement stands, and a number that is another one whenever something else is to be seen: its steps, where
    /// nothing that serves it waits.
    ///
    /// While one that serves it waits for a person, it has that one's status; what is waited for and where is told to whom
    /// that one is told (decisions/0291).
    pub fn state(&self, id: &str, caller: Option<&str>) -> Result<(Value, u64), Error> {
        self.sought(id, caller, Role::Party)?;
        let live = match self.resting(id) {
            Some(seen) => seen,
            None => Arc::new(self.load(id)?.seen()),
        };
        let held = self.held(id, &live.engagement)?;
        let steps = live.engagement.steps().len() as u64;
        let number = held.as_ref().map_or(steps, |held| held.number(steps));
        let status = standing(&live.engagement, held.as_ref());
        let shown = match &held {
            Some(held) => self.is_shown(held, caller)?.then_some(&held.by),
            None => None,
        };
        let engagement = &live.engagement;
        // Where an agent reviews, the review that it was asked for is this engagement's own.
        let waits = shown.filter(|_| engagement.status() == Status::Running).unwrap_or(&live);
        let mut state = Map::new();
        let mut put = |name: &str, value: Value| drop(state.insert(name.to_owned(), value));
        put("id", json!(live.engaged.id));
        put("agent", json!(live.engaged.agent));
        put("document", json!(live.engaged.document));
        put("started_at", json!(engagement.begun().started_at));
        put("status", json!(status.name()));
        if let Some((text, exposes, errors)) = engagement.answer() {
            put("result", json!({"text": text, "exposes": exposes}));
            if !errors.is_empty() {
                put("expose_errors", json!(errors));
            }
        }
        if let Some(failure) = engagement.failure() {
            put("error", json!({"code": failure.code(), "message": told(failure)}));
        }
        if let Some(by) = shown {
            put("within", json!({"engagement": by.engaged.id, "agent": by.engaged.agent}));
        }
        if let Some((_, stage, review)) = waits.engagement.pending_review() {
            let since = self.since(&waits.engaged.id, &review.id)?;
            put(
                "review",
                json!({
                    "id": review.id, "stage": stage.name(), "reviewer": review.reviewer, "since": since,
                    "expires_at": review.expires_at,
                }),
            );
        }
        if waits.engagement.status() == Status::AwaitingCredentials {
            let lacking = waits.engagement.calls().iter().find(|call| call.lacks_credentials);
            let capability = lacking.and_then(|call| call.capability.as_deref());
            let known = capability.and_then(|key| waits.agent.capability(key));
            let tool = known.and_then(|known| self.toolbox.tool(&known.reference.to_string()));
            let mut missing = json!({"code": "consent_required", "capability": capability});
            let consent = tool.and_then(|tool| tool.remarks().consent.clone());
            if let (Some(consent), Some(members)) = (consent, missing.as_object_mut()) {
                members.insert("consent".to_owned(), json!(consent));
            }
            put("credentials", missing);
        }
        Ok((Value::Object(state), number))
    }

    fn since(&self, id: &str, review_id: &str) -> Result<Option<String>, Error> {
        let steps = self.node.store.steps(id)?;
        let asked = steps.iter().find(|noted| match serde_json::from_slice(&noted.body) {
            Ok(Step::ReviewAsked { review, .. }) => review.id == review_id,
            _ => false,
        });
        Ok(asked.map(|noted| instant(noted.at).to_string()))
    }

    /// Waits until an engagement rests or is over; where somebody watches, until there is something else to be seen than
    /// under this number; or until the time is over.
    pub async fn wait(&self, id: &str, known: Option<u64>, patience: Duration) -> Result<(), Error> {
        let seat = self.seat(id);
        let waiting = async {
            match known {
                Some(known) => {
                    let mut ticks = seat.tick.subscribe();
                    loop {
                        let steps = *ticks.borrow_and_update();
                        if self.number(id, &seat, steps)? != known || ticks.changed().await.is_err() {
                            break;
                        }
                    }
                }
                // Whoever waits for rest is not woken by every step.
                None => {
                    let mut reached = seat.reached.subscribe();
                    loop {
                        let come = *reached.borrow_and_update();
                        let rests = match come {
                            Some(come) => come != Reached::Running,
                            None => self.engaged(id)?.reached != Reached::Running || self.held_at(id)?.is_some(),
                        };
                        if rests || reached.changed().await.is_err() {
                            break;
                        }
                    }
                }
            }
            Ok(())
        };
        timeout(patience.min(Duration::from_millis(WAIT_MS_MAX)), waiting).await.unwrap_or(Ok(()))
    }

    /// The number that [`Self::state`] gives now, after so many steps; nought where nobody moved it from here.
    fn number(&self, id: &str, seat: &Seat, steps: u64) -> Result<u64, Error> {
        let steps = if steps > 0 { steps } else { self.node.store.step_count(id)? };
        let is_left = seat.reached.borrow().is_none() && self.engaged(id)?.reached == Reached::Running;
        let held = if is_left { self.held_at(id)? } else { None };
        Ok(held.map_or(steps, |held| held.number(steps)))
    }

    /// What holds an engagement up, looked up by its name.
    fn held_at(&self, id: &str) -> Result<Option<Held>, Error> {
        self.held(id, &self.load(id)?.engagement)
    }

    /// The last engagements of a caller, the last one first.
    pub fn engagements(&self, caller: &str) -> Result<Vec<Value>, Error> {
        let listed = self.node.store.engagements_of(caller, LISTED_MAX)?;
        listed.iter().map(|engaged| self.summary(engaged)).collect()
    }

    fn summary(&self, engaged: &Engaged) -> Result<Value, Error> {
        let live = self.load(&engaged.id)?;
        let held = self.held(&engaged.id, &live.engagement)?;
        Ok(json!({
            "id": engaged.id, "agent": engaged.agent, "started_at": live.engagement.begun().started_at,
            "status": standing(&live.engagement, held.as_ref()).name(),
        }))
    }

    /// Everything that happened, step by step, and which tools the agent cannot use now, for the owner of the agent alone.
    pub fn audit(&self, id: &str, caller: &str) -> Result<Value, Error> {
        let engaged = self.sought(id, Some(caller), Role::Owner)?;
        let step = |noted: &Noted| -> Result<Value, Error> {
            let mut step: Value = serde_json::from_slice(&noted.body).map_err(Error::fault)?;
            if let Some(members) = step.as_object_mut() {
                members.insert("at".to_owned(), json!(instant(noted.at).to_string()));
            }
            Ok(step)
        };
        let steps: Result<Vec<Value>, Error> = self.node.store.steps(id)?.iter().map(step).collect();
        let parent = engaged.parent.map(|(parent, place)| json!({"engagement": parent, "place": place}));
        let mut trail = json!({
            "id": engaged.id, "agent": engaged.agent, "document": engaged.document, "caller": engaged.caller,
            "parent": parent, "steps": steps?,
        });
        let withheld = self.hosted.get(&engaged.agent).map(|hosted| self.withheld(&hosted.agent)).unwrap_or_default();
        if let (false, Some(members)) = (withheld.is_empty(), trail.as_object_mut()) {
            members.insert("withheld_tools".to_owned(), withheld.iter().map(Withheld::to_value).collect());
        }
        Ok(trail)
    }
}

/// Where an engagement stands: as one that serves it, where that waits for a person and this one for nobody else.
fn standing(engagement: &Engagement, held: Option<&Held>) -> Status {
    match (engagement.status(), held) {
        (Status::Running, Some(held)) => held.by.engagement.status(),
        (status, _) => status,
    }
}

/// What a caller is told of a failure; nothing of what was withheld.
fn told(failure: agent::Failure) -> &'static str {
    use agent::Failure;
    match failure {
        Failure::ShortCircuit => "the agent repeated itself and was stopped",
        Failure::GuardrailFailed => "a guardrail did not let this pass",
        Failure::GuardrailUnavailable => "a guardrail gave no answer, so nothing passes",
        Failure::Limit => "the engagement used more than it may",
        Failure::Model => "the model gave no answer",
        Failure::Denied => "a call was not allowed, and the engagement ends for that",
        Failure::Internal => "something broke here",
    }
}
