//! An engagement carried out where nothing is real: for scenarios, tests and property tests.
//!
//! It does what whoever runs engagements does, without a journal: asks [`next`], brings about what it says in a
//! [`World`] of the caller's making, and records what came of it.

use crate::{Agent, Identity};
use crate::{
    Decision, Effect, Engagement, Function, Message, Misplaced, Next, Outcome, ProposedCall, Registry, Review,
    ReviewedBy, Stage, Step, Target, Usage, Wait, functions, messages, next,
};
use json::Value;

/// Who answers in place of models, tools and reviewers.
pub trait World {
    /// A turn of the model: its words and the calls it proposes.
    fn model(&mut self, messages: &[Message], functions: &[Function]) -> (Option<String>, Vec<ProposedCall>);

    /// What a tool or an agent returns.
    fn call(&mut self, target: &Target, inputs: &Value, identity: &Identity) -> Outcome;

    /// What a guardrail's tool returns.
    fn guard(&mut self, tool: &str, inputs: &Value) -> Outcome;

    /// What a reviewer decides; nothing to leave it open.
    fn review(&mut self, reviewer: &str, stage: Stage, capability: &str) -> Option<Decision>;
}

/// Until when reviews of a played engagement are open.
const NEVER: &str = "9999-12-31T00:00:00Z";

/// Goes on until somebody outside has to act, or until the end.
pub fn play(
    agent: &Agent,
    registry: &Registry,
    engagement: &mut Engagement,
    world: &mut dyn World,
) -> Result<(), Misplaced> {
    loop {
        let step = match next(agent, registry, engagement) {
            Next::Record(step) => step,
            Next::Perform(Effect::CallModel { .. }) => {
                let (text, calls) = world.model(&messages(agent, engagement), &functions(agent, registry));
                Step::ModelSaid { text, calls, usage: Usage::default() }
            }
            Next::Perform(Effect::CheckGuardrail { place, tool, inputs }) => {
                Step::GuardrailReturned { place, outcome: world.guard(&tool, &inputs) }
            }
            Next::Perform(Effect::AskReview { call, stage, reviewer, digest, .. }) => {
                Step::ReviewAsked { call, stage, review: asked(engagement, &reviewer, digest) }
            }
            Next::Perform(Effect::Dispatch { call, target, inputs, identity, .. }) => {
                let outcome = world.call(&target, &inputs, &identity);
                engagement.record(Step::Dispatched { call, identity })?;
                Step::Returned { call, outcome }
            }
            Next::Wait(Wait::Review { call, stage, review }) => {
                let capability = engagement.calls().get(call).and_then(|call| call.capability.clone());
                let Some(decision) = world.review(&review.reviewer, stage, &capability.unwrap_or_default()) else {
                    return Ok(());
                };
                let (by, digest) = (Some(review.reviewer), review.digest);
                Step::ReviewDecided { call, stage, digest, decision, by, reason: None }
            }
            Next::Wait(Wait::User | Wait::Credentials { .. } | Wait::Return { .. } | Wait::Outcome { .. })
            | Next::Over => return Ok(()),
        };
        engagement.record(step)?;
    }
}

fn asked(engagement: &Engagement, reviewer: &ReviewedBy, digest: String) -> Review {
    let id = format!("review-{}", engagement.steps().len());
    Review { id, reviewer: reviewer.name(), digest, expires_at: NEVER.to_owned() }
}
