//! Whether a recorded engagement would have been decided otherwise by another document.
//!
//! The record is walked step by step. Where it holds a decision, the other document decides again; where it holds what
//! somebody did (a model, a tool, a reviewer, a user), that is taken as it was. The first difference is told: what comes
//! after it never happened. What only the server at that time could judge (arguments, its bounds, a model that failed) is
//! taken as it was, too.

use crate::{
    Agent, Begun, Capability, Check, Effect, Engagement, Failure, Identity, Misplaced, Name, NameRule, Next, Place,
    Reference, Registry, Step, Tool, Wait, Why, next,
};
use json::{Value, json};
use std::sync::Arc;

/// What a replay comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// Every decision is the same.
    Same,
    /// This one is not.
    Differs {
        /// The number of the recorded step, from 0.
        at: usize,
        /// What was recorded.
        was: Box<Step>,
        /// What would have happened instead.
        would: Box<Next>,
    },
}

/// Replays the steps of an engagement against a document.
pub fn replay(agent: &Agent, steps: &[Step]) -> Result<Replay, Misplaced> {
    let mut steps_left = steps.iter().cloned().enumerate();
    let Some((_, Step::Begun(begun))) = steps_left.next() else { return Err(Misplaced) };
    let registry = as_recorded(agent, steps);
    let document = agent.digest().to_owned();
    let mut engagement = Engagement::begin(Begun { document, ..begun });
    for (at, was) in steps_left {
        let would = next(agent, &registry, &engagement);
        if !agrees(&was, &would) {
            return Ok(Replay::Differs { at, was: Box::new(was), would: Box::new(would) });
        }
        engagement.record(was)?;
    }
    Ok(Replay::Same)
}

fn agrees(was: &Step, would: &Next) -> bool {
    match (was, would) {
        (step, Next::Record(decided)) if step == decided => true,
        (Step::UserSaid { .. }, Next::Wait(Wait::User))
        | (Step::ModelSaid { .. }, Next::Perform(Effect::CallModel { .. }))
        | (Step::Cancelled { .. }, _)
        | (Step::Failed { failure: Failure::Limit | Failure::Model | Failure::Internal, .. }, _)
        | (Step::Denied { why: Why::Arguments | Why::Unknown, .. }, _) => true,
        (Step::Failed { failure, .. }, Next::Record(Step::Failed { failure: decided, .. })) => failure == decided,
        (Step::GuardrailReturned { place, .. }, Next::Perform(Effect::CheckGuardrail { place: checked, .. })) => {
            place == checked
        }
        (Step::ReviewAsked { call, stage, .. }, Next::Perform(Effect::AskReview { call: asked, stage: at, .. })) => {
            (call, stage) == (asked, at)
        }
        (Step::ReviewDecided { call, .. }, Next::Wait(Wait::Review { call: asked, .. })) => call == asked,
        (Step::Dispatched { call, identity }, Next::Perform(Effect::Dispatch { call: made, identity: with, .. })) => {
            (call, identity) == (made, with)
        }
        (Step::CredentialsMissing { call }, Next::Perform(Effect::Dispatch { call: made, .. })) => call == made,
        (Step::CredentialsArrived { call }, Next::Wait(Wait::Credentials { call: waits, .. })) => call == waits,
        (
            Step::Returned { call, .. } | Step::OutcomeUnknown { call } | Step::Dispatched { call, .. },
            Next::Wait(Wait::Return { call: waits, .. } | Wait::Outcome { call: waits, .. }),
        ) => call == waits,
        _ => false,
    }
}

/// A server on which everything is that the document and the record speak of.
fn as_recorded(agent: &Agent, steps: &[Step]) -> Registry {
    let mut registry = Registry::default();
    for capability in &agent.capabilities {
        install(&mut registry, capability);
    }
    for guardrail in [&agent.input_guardrail, &agent.output_guardrail].into_iter().flatten() {
        // A tool may be a capability and a guardrail, or both guardrails.
        let _ = registry.add_tool(&guardrail.tool, anything());
    }
    for step in steps {
        match step {
            Step::Asking { .. } => registry.options.ask_user = true,
            Step::Failed { failure: Failure::Denied, .. } => registry.options.denial_ends = true,
            Step::Dispatched { identity: Identity::Static(_), .. } => registry.options.lends_to_strangers = true,
            Step::ReviewAsked { review, .. } => {
                let agent = review.reviewer.strip_prefix("oagent://");
                if let Some(Ok(name)) = agent.map(|name| Name::read(name, NameRule::Both)) {
                    let _ = registry.add_agent(&name, "");
                }
            }
            _ => {}
        }
    }
    registry
}

fn install(registry: &mut Registry, capability: &Capability) {
    match &capability.reference {
        Reference::Bare(name) => {
            let _ = registry.add_tool(name, anything());
        }
        Reference::Agent(name) => {
            let _ = registry.add_agent(name, "");
        }
        Reference::Remote { .. } => registry.add_remote(&capability.reference, ""),
    }
}

/// A tool that takes whatever was put in at the time.
fn anything() -> Tool {
    struct Anything;
    impl Check for Anything {
        fn check(&self, _: &Value) -> Result<(), String> {
            Ok(())
        }
    }
    Tool::new("", json!({}), Arc::new(Anything))
}

/// What happened or would, in a few words.
pub fn in_words(next: &Next) -> String {
    match next {
        Next::Record(step) => step_in_words(step),
        Next::Perform(Effect::CallModel { .. }) => "the model is asked".to_owned(),
        Next::Perform(Effect::CheckGuardrail { place: Place::Input, .. }) => "the input guardrail is asked".to_owned(),
        Next::Perform(Effect::CheckGuardrail { place: Place::Output, .. }) => {
            "the output guardrail is asked".to_owned()
        }
        Next::Perform(Effect::AskReview { call, stage, reviewer, .. }) => {
            format!("`{}` is asked to review the {} of call {call}", reviewer.name(), stage.name())
        }
        Next::Perform(Effect::Dispatch { call, capability, .. }) => format!("call {call} to `{capability}` is made"),
        Next::Wait(_) => "somebody is waited for".to_owned(),
        Next::Over => "nothing".to_owned(),
    }
}

/// What a step says, in a few words and without any content.
pub fn step_in_words(step: &Step) -> String {
    match step {
        Step::Begun(_) => "begun".to_owned(),
        Step::UserSaid { .. } => "the user speaks".to_owned(),
        Step::GuardrailReturned { place: Place::Input, .. } => "the input guardrail answers".to_owned(),
        Step::GuardrailReturned { place: Place::Output, .. } => "the output guardrail answers".to_owned(),
        Step::GuardrailHeld { place: Place::Input } => "the input guardrail holds".to_owned(),
        Step::GuardrailHeld { place: Place::Output } => "the output guardrail holds".to_owned(),
        Step::ModelSaid { .. } => "the model takes its turn".to_owned(),
        Step::Attempted { call, capability, .. } => format!("call {call} to `{capability}` is attempted"),
        Step::Denied { call, why } => format!("call {call} is denied ({})", why.name()),
        Step::ReviewAsked { call, stage, review } => {
            format!("`{}` is asked to review the {} of call {call}", review.reviewer, stage.name())
        }
        Step::ReviewDecided { call, decision, .. } => format!("the review of call {call} is {}", decision.name()),
        Step::CredentialsMissing { call } => format!("call {call} lacks credentials"),
        Step::CredentialsArrived { call } => format!("call {call} has its credentials"),
        Step::Dispatched { call, .. } => format!("call {call} is made"),
        Step::Returned { call, .. } => format!("call {call} comes back"),
        Step::OutcomeUnknown { call } => format!("nobody knows what became of call {call}"),
        Step::Released { call } => format!("the result of call {call} is released"),
        Step::Withheld { call, why } => format!("the result of call {call} is withheld ({})", why.name()),
        Step::Asking { call, .. } => format!("call {call} asks the user"),
        Step::Asked { .. } => "the user is asked".to_owned(),
        Step::Answered { .. } => "the user is answered".to_owned(),
        Step::Failed { failure, .. } => format!("it fails ({})", failure.code()),
        Step::Cancelled { .. } => "it is cancelled".to_owned(),
    }
}
