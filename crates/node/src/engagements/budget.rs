//! OAS Agent, agents as tools: what an engagement may use, and what is left of it for one that serves it.
//!
//! An engagement that serves another one begins with what was left of the other's budget, and may use that or its own
//! agent's budget, whichever is less. What it uses is used by the other one as well.
//!
//! Time is looked at before everything that is begun, and cuts what is under way when it is over.
//!
//! INVARIANT: however agents call each other, the first engagement's budget bounds all of them together.

use super::journal::Live;
use super::{Engagements, WORK_SECONDS, child_id};
use crate::clock::Clock;
use crate::refusal::Error;
use agent::{Allowance, Begun, Capability, Reviewer, Stage, Step, Target};
use host::{Budget, Price, Spent};
use std::time::Duration;

/// What an engagement whose time is over failed of.
pub(super) const SECONDS: &str = "engagement.seconds";

impl Engagements {
    /// What an engagement may use: its agent's budget, and no more than it was given.
    pub(super) fn budget(&self, agent: &str, begun: &Begun) -> Budget {
        let own = self.hosted.get(agent).map(|hosted| hosted.budget).unwrap_or_default();
        let Some(given) = begun.allowance else { return own };
        let least = |own: Option<u64>, given: Option<u64>| own.into_iter().chain(given).min();
        let time = own.time.into_iter().chain(given.time_ms.map(Duration::from_millis)).min();
        Budget {
            tokens: least(own.tokens, given.tokens),
            money_micros: least(own.money_micros, given.money_micros),
            time,
        }
    }

    /// What is left for an engagement that serves this one.
    pub(super) fn left(&self, live: &Live) -> Result<Allowance, Error> {
        let mut budget = self.budget(live.agent.name.as_str(), live.engagement.begun());
        budget.time.get_or_insert(Duration::from_secs(WORK_SECONDS));
        let mut spent = self.spent(live)?;
        spent.time_ms = elapsed(live);
        let left = budget.left(&spent);
        let time_ms = left.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        Ok(Allowance { tokens: left.tokens, money_micros: left.money_micros, time_ms })
    }

    /// What of its budget an engagement has used up, by its name.
    pub(super) fn used_up(&self, live: &Live) -> Result<Option<String>, Error> {
        if self.time_left(live).is_none() {
            return Ok(Some(SECONDS.to_owned()));
        }
        let budget = self.budget(live.agent.name.as_str(), live.engagement.begun());
        if budget.tokens.is_none() && budget.money_micros.is_none() {
            return Ok(None);
        }
        let without_time = Budget { time: None, ..budget };
        let used_up = without_time.check(&self.spent(live)?).err();
        Ok(used_up.map(|exceeded| format!("engagement.{}", exceeded.what)))
    }

    /// How long an engagement may still be worked on; whatever it waits for is cut then. Nothing when its time is over.
    pub(super) fn time_left(&self, live: &Live) -> Option<Duration> {
        let budget = self.budget(live.agent.name.as_str(), live.engagement.begun());
        let time = budget.time.unwrap_or(Duration::from_secs(WORK_SECONDS));
        let left = time.checked_sub(Clock::monotonic().duration_since(live.since));
        left.filter(|left| !left.is_zero())
    }

    /// What an engagement has used, with all that serve it.
    fn spent(&self, live: &Live) -> Result<Spent, Error> {
        let hosted = self.hosted.get(live.agent.name.as_str());
        let model = hosted.and_then(|hosted| self.models.get(&hosted.model));
        let price = model.map_or_else(Price::default, |model| model.price());
        let mut spent = Spent::default();
        for step in live.engagement.steps() {
            if let Step::ModelSaid { usage, .. } = step {
                let usage = host::Usage { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens };
                spent.add(&usage, &price, Duration::ZERO);
            }
        }
        for child in self.served_by(live) {
            if self.node.store.engagement(&child)?.is_some() {
                let of_child = self.spent(&self.load(&child)?)?;
                spent.input_tokens = spent.input_tokens.saturating_add(of_child.input_tokens);
                spent.output_tokens = spent.output_tokens.saturating_add(of_child.output_tokens);
                spent.money_micros = spent.money_micros.saturating_add(of_child.money_micros);
            }
        }
        Ok(spent)
    }

    /// The names of engagements that may serve this one: calls of agents, and agents that review.
    fn served_by(&self, live: &Live) -> Vec<String> {
        let id = &live.engaged.id;
        let mut served = Vec::new();
        for (number, call) in live.engagement.calls().iter().enumerate() {
            let Some(capability) = call.capability.as_deref().and_then(|key| live.agent.capability(key)) else {
                continue;
            };
            if let Some(Target::Agent(_)) = live.registry.resolve(&capability.reference) {
                served.push(child_id(id, &number.to_string()));
            }
            let stages = [Stage::Input, Stage::Output].into_iter().filter(|stage| may_be_an_agent(capability, *stage));
            served.extend(stages.map(|stage| child_id(id, &format!("{number}/{}", stage.name()))));
        }
        served
    }
}

/// Whether an agent may be asked to review this end of a call.
fn may_be_an_agent(capability: &Capability, stage: Stage) -> bool {
    let restriction = match stage {
        Stage::Input => &capability.input,
        Stage::Output => &capability.output,
    };
    matches!(restriction.review, Some(Reviewer::Agent(_) | Reviewer::Named(_)))
}

/// Milliseconds that an engagement is worked on.
fn elapsed(live: &Live) -> u64 {
    u64::try_from(Clock::monotonic().duration_since(live.since).as_millis()).unwrap_or(u64::MAX)
}
