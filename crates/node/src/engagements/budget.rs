//! OAS Agent, agents as tools: what an engagement may use, and what is left of it for one that serves it.
//!
//! An engagement that serves another one begins with what was left of the other's budget, and may use that or its own
//! agent's budget, whichever is less. What it uses is used by the other one as well.
//!
//! Time is looked at before everything that is begun, and cuts what is under way when it is over. It is the time of work
//! on one message: whoever waits for a person, or for the node to start again, uses none of it, and what was used before is
//! in the journal (decisions/0290).
//!
//! INVARIANT: however agents call each other, the first engagement's budget bounds all of them together.

use super::journal::Live;
use super::serving::review_place;
use super::{Engagements, WORK_SECONDS, child_id};
use crate::clock::Clock;
use crate::refusal::Error;
use agent::{Allowance, Begun, Capability, Reviewer, Stage, Step, Target};
use host::{Budget, Price, Spent};
use std::time::{Duration, Instant};

/// How long an engagement was worked on, and since when it is again. What one that serves it used is added when that one
/// is done, so while it is at work this one's time stands still.
#[derive(Debug, Default)]
pub(super) struct Worked {
    before: Duration,
    /// Of this and of messages before, without what others worked.
    own: Duration,
    since: Option<Instant>,
}

impl Worked {
    /// So long, and nobody works now.
    pub(super) fn of(before: Duration) -> Self {
        Self { before, own: Duration::ZERO, since: None }
    }

    /// Somebody works from now on.
    pub(super) fn go_on(&mut self) {
        self.since.get_or_insert_with(Clock::monotonic);
    }

    /// Nobody does.
    pub(super) fn pause(&mut self) {
        *self = Self { before: self.total(), own: self.own(), since: None };
    }

    /// Somebody else has worked so long.
    pub(super) fn add(&mut self, time: Duration) {
        self.before = self.before.saturating_add(time);
    }

    /// Nothing was worked yet.
    pub(super) fn begin_anew(&mut self) {
        self.own = self.own();
        self.before = Duration::ZERO;
        self.since = self.since.map(|_| Clock::monotonic());
    }

    pub(super) fn total(&self) -> Duration {
        self.before.saturating_add(self.now())
    }

    /// How long it was worked since it was loaded, on whatever message, and not by others.
    fn own(&self) -> Duration {
        self.own.saturating_add(self.now())
    }

    fn now(&self) -> Duration {
        self.since.map(|since| Clock::monotonic().duration_since(since)).unwrap_or_default()
    }

    pub(super) fn own_millis(&self) -> u64 {
        u64::try_from(self.own().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.total().as_millis()).unwrap_or(u64::MAX)
    }
}

/// What an engagement whose time is over failed of.
pub(super) const SECONDS: &str = "engagement.seconds";
/// The same of its tokens.
pub(super) const TOKENS: &str = "engagement.tokens";

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
        spent.time_ms = live.worked.millis();
        let left = budget.left(&spent);
        let time_ms = left.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        Ok(Allowance { tokens: left.tokens, money_micros: left.money_micros, time_ms })
    }

    /// What of its budget an engagement has used up, by its name.
    pub(super) fn used_up(&self, live: &Live) -> Result<Option<String>, Error> {
        if let Some(name) = self.is_at_end(live) {
            return Ok(Some(name.to_owned()));
        }
        let budget = self.budget(live.agent.name.as_str(), live.engagement.begun());
        if budget.tokens.is_none() && budget.money_micros.is_none() {
            return Ok(None);
        }
        let without_time = Budget { time: None, ..budget };
        let used_up = without_time.check(&self.spent(live)?).err();
        Ok(used_up.map(|exceeded| format!("engagement.{}", exceeded.what)))
    }

    /// Why nothing more is begun in an engagement: its own time is over, or its user or owner has used up a day's budget.
    pub(super) fn is_at_end(&self, live: &Live) -> Option<&'static str> {
        if self.own_time_left(live).is_none() {
            return Some(SECONDS);
        }
        self.day_used_up(live).map(|used_up| used_up.name)
    }

    /// How long an engagement may still be worked on, today and at all; whatever it waits for is cut then.
    pub(super) fn time_left(&self, live: &Live) -> Duration {
        let own = self.own_time_left(live).unwrap_or_default();
        self.day_time_left(live).map_or(own, |left| left.min(own))
    }

    /// How long it may be worked on at all; nothing when its time is over.
    fn own_time_left(&self, live: &Live) -> Option<Duration> {
        let budget = self.budget(live.agent.name.as_str(), live.engagement.begun());
        let time = budget.time.unwrap_or(Duration::from_secs(WORK_SECONDS));
        let left = time.checked_sub(live.worked.total());
        left.filter(|left| !left.is_zero())
    }

    /// What the model of an agent costs.
    pub(super) fn price(&self, agent: &str) -> Price {
        let model = self.hosted.get(agent).and_then(|hosted| self.models.get(&hosted.model));
        model.map_or_else(Price::default, |model| model.price())
    }

    /// What an engagement has used, with all that serve it.
    fn spent(&self, live: &Live) -> Result<Spent, Error> {
        let price = self.price(live.agent.name.as_str());
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
            served.extend(stages.map(|stage| child_id(id, &review_place(number, stage))));
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
