//! OAS Agent: what must happen next. All that is decided about an engagement is decided here.
//!
//! The order of checks for one call, and the only place where it stands:
//! known capability → attempts and `short_circuit` → arguments against their schema → input assertion → input review →
//! input assertion again → identity → the call → output assertion → output review → output assertion again → released.
//!
//! INVARIANT: pure. The same agent, registry and steps give the same answer, so a restart changes nothing; and after a
//! guardrail failed there is nothing but the end.

use crate::assertion::Failing;
use crate::document::{Guardrail, hex_digest};
use crate::engagement::{Phase, Saying};
use crate::{
    Agent, Assertion, Call, Capability, Decision, Engagement, Failure, Identity, Outcome, Place, Progress, Registry,
    Review, ReviewedBy, ShortCircuit, Stage, Step, Target, Why,
};
use json::{Document, Limits, Map, Value, json};

/// What must happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// It is decided: this step is to be written down as it is.
    Record(Step),
    /// Something is to be brought about, and what comes of it written down.
    Perform(Effect),
    /// Somebody else has to act.
    Wait(Wait),
    /// Nothing ever again.
    Over,
}

/// What is to be brought about.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Call a guardrail's tool with the server's own credentials; then write [`Step::GuardrailReturned`].
    CheckGuardrail {
        /// Which guardrail.
        place: Place,
        /// The tool.
        tool: String,
        /// What is put in.
        inputs: Value,
    },
    /// Ask the model, with what [`crate::messages`] and [`crate::functions`] say; then write [`Step::ModelSaid`], or
    /// [`Step::Failed`] when it gives no answer.
    CallModel {
        /// Whether its words may be shown while they come, because no guardrail has to see them first.
        may_stream: bool,
        /// Tokens that are left, where somebody counts them.
        tokens_left: Option<u64>,
    },
    /// Ask somebody to agree; write [`Step::ReviewAsked`] with this digest.
    AskReview {
        /// The call it is about.
        call: usize,
        /// To which end of it.
        stage: Stage,
        /// The key of the capability.
        capability: String,
        /// Who.
        reviewer: ReviewedBy,
        /// What the decision is bound to.
        digest: String,
        /// The Engagement as the assertion sees it.
        object: Value,
    },
    /// Write [`Step::Dispatched`], make the call, write [`Step::Returned`].
    Dispatch {
        /// Its number.
        call: usize,
        /// The key of the capability.
        capability: String,
        /// What is called.
        target: Target,
        /// What is put in.
        inputs: Value,
        /// Whose credentials go with it; without the caller's, write [`Step::CredentialsMissing`].
        identity: Identity,
    },
}

/// Whom or what is waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wait {
    /// The user: [`Step::UserSaid`].
    User,
    /// A reviewer: [`Step::ReviewDecided`].
    Review {
        /// The call it is about.
        call: usize,
        /// To which end of it.
        stage: Stage,
        /// Who, until when, and over what.
        review: Review,
    },
    /// The user's credentials: [`Step::CredentialsArrived`].
    Credentials {
        /// The call that waits.
        call: usize,
        /// The key of the capability.
        capability: String,
    },
    /// A call that is on its way. After a restart it is made again if that does no harm, or becomes
    /// [`Step::OutcomeUnknown`].
    Return {
        /// Its number.
        call: usize,
        /// What was called.
        target: Option<Target>,
        /// What was put in.
        inputs: Value,
        /// Whose credentials went with it.
        identity: Option<Identity>,
        /// Whether making it again does no harm.
        idempotent: bool,
    },
    /// A person who says what became of a call: [`Step::Returned`], or [`Step::Dispatched`] to make it again.
    Outcome {
        /// Its number.
        call: usize,
        /// The key of the capability.
        capability: String,
    },
}

/// How large the arguments of a call may be.
const ARGUMENT_LIMITS: Limits =
    Limits { subject: "call arguments", bytes: 256 * 1024, string_bytes: 256 * 1024, ..Limits::DOCUMENT };

/// What must happen next in an engagement.
pub fn next(agent: &Agent, registry: &Registry, engagement: &Engagement) -> Next {
    if engagement.status().is_final() {
        return Next::Over;
    }
    if agent.digest() != engagement.begun().document {
        return failed(Failure::Internal, Some("the engagement goes by another version of the document"));
    }
    let looked = Look { agent, registry, engagement };
    match engagement.phase() {
        Phase::Begun | Phase::Resting { .. } => Next::Wait(Wait::User),
        Phase::Heard { text } => match &agent.input_guardrail {
            Some(guardrail) => looked.check_guardrail(Place::Input, guardrail, text),
            None => looked.work(),
        },
        Phase::HeardJudged { outcome } => looked.judge_guardrail(Place::Input, outcome),
        Phase::Working => looked.work(),
        Phase::Saying(saying) => match &agent.output_guardrail {
            Some(guardrail) => looked.check_guardrail(Place::Output, guardrail, &saying.text),
            None => looked.say(saying),
        },
        Phase::SayingJudged { outcome, .. } => looked.judge_guardrail(Place::Output, outcome),
        Phase::SayingHeld(saying) => looked.say(saying),
        Phase::Failed(_) | Phase::Cancelled => Next::Over,
    }
}

fn failed(failure: Failure, detail: Option<&str>) -> Next {
    Next::Record(Step::Failed { failure, detail: detail.map(str::to_owned) })
}

/// An engagement that is being looked at.
struct Look<'a> {
    agent: &'a Agent,
    registry: &'a Registry,
    engagement: &'a Engagement,
}

impl Look<'_> {
    fn check_guardrail(&self, place: Place, guardrail: &Guardrail, text: &str) -> Next {
        match self.registry.tool(guardrail.tool.as_str()) {
            Some(tool) => {
                let (tool_name, inputs) = (guardrail.tool.to_string(), tool.judging(text));
                Next::Perform(Effect::CheckGuardrail { place, tool: tool_name, inputs })
            }
            None => failed(Failure::GuardrailUnavailable, Some("the tool is not here")),
        }
    }

    fn judge_guardrail(&self, place: Place, outcome: &Outcome) -> Next {
        let guardrail = match place {
            Place::Input => &self.agent.input_guardrail,
            Place::Output => &self.agent.output_guardrail,
        };
        let (Some(guardrail), Outcome::Output(output)) = (guardrail, outcome) else {
            return failed(Failure::GuardrailUnavailable, None);
        };
        match guardrail.assertion.holds_for_output(output) {
            Ok(()) => Next::Record(Step::GuardrailHeld { place }),
            Err(failing) => failed(Failure::GuardrailFailed, Some(failing.name())),
        }
    }

    /// The call that is to be looked at, or else the model.
    fn work(&self) -> Next {
        if let Some(next) = self.bounds() {
            return next;
        }
        if self.registry.options.denial_ends && self.engagement.calls().iter().any(was_denied) {
            return failed(Failure::Denied, None);
        }
        let calls = self.engagement.calls();
        match self.engagement.current().and_then(|number| calls.get(number).map(|call| (number, call))) {
            Some((number, call)) => self.judge_call(number, call),
            None => self.call_model(),
        }
    }

    fn bounds(&self) -> Option<Next> {
        let limits = &self.registry.options.limits;
        let passed = [
            ("engagement.calls", self.engagement.calls().len() > limits.calls),
            ("engagement.bytes", self.engagement.bytes() > limits.bytes),
            ("engagement.tokens", limits.tokens.is_some_and(|tokens| self.engagement.tokens() > tokens)),
        ];
        let turn = self.engagement.current().is_none() && self.engagement.turns() >= limits.turns;
        let passed = passed.into_iter().chain([("engagement.turns", turn)]);
        passed.into_iter().find(|(_, passed)| *passed).map(|(name, _)| failed(Failure::Limit, Some(name)))
    }

    fn call_model(&self) -> Next {
        let tokens = self.registry.options.limits.tokens;
        Next::Perform(Effect::CallModel {
            may_stream: self.agent.output_guardrail.is_none(),
            tokens_left: tokens.map(|tokens| tokens.saturating_sub(self.engagement.tokens())),
        })
    }

    /// The order of checks for one call.
    fn judge_call(&self, number: usize, call: &Call) -> Next {
        let capability = call.capability.as_deref().and_then(|key| self.agent.capability(key));
        match (&call.progress, capability) {
            (Progress::Proposed, _) => self.admit(number, call),
            (Progress::Attempted | Progress::Reviewed(Stage::Input, _), Some(capability)) => {
                self.judge_input(number, call, capability)
            }
            (Progress::InReview(stage, review), _) => {
                Next::Wait(Wait::Review { call: number, stage: *stage, review: review.clone() })
            }
            (Progress::Dispatched, Some(capability)) => self.on_its_way(number, call, capability),
            (Progress::Unknown, Some(capability)) => {
                Next::Wait(Wait::Outcome { call: number, capability: capability.key.clone() })
            }
            (Progress::Returned | Progress::Reviewed(Stage::Output, _), Some(capability)) => {
                self.judge_output(number, call, capability)
            }
            _ => failed(Failure::Internal, Some("a call without a capability")),
        }
    }

    /// Known capability, attempts and `short_circuit`.
    fn admit(&self, number: usize, call: &Call) -> Next {
        if self.goes_round() {
            return failed(Failure::ShortCircuit, None);
        }
        if self.registry.options.ask_user && call.proposed.name == "ask_user" {
            let arguments = arguments(call);
            return match arguments.get("question").and_then(Value::as_str) {
                Some(question) => Next::Record(Step::Asking { call: number, text: question.to_owned() }),
                None => self.denied(number, Why::Arguments),
            };
        }
        match self.agent.called(&call.proposed.name) {
            Some(capability) => {
                let (capability, inputs) = (capability.key.clone(), arguments(call));
                Next::Record(Step::Attempted { call: number, capability, inputs })
            }
            None => self.denied(number, Why::Unknown),
        }
    }

    /// Whether what was attempted, and all that the model proposes now, repeats a block too often.
    fn goes_round(&self) -> bool {
        let Some(limit) = self.agent.lifespan.short_circuit else { return false };
        let mut watch = ShortCircuit::new(limit);
        let attempted = self.engagement.attempts().iter().map(String::as_str);
        let proposed = self.engagement.calls().iter().filter(|call| call.progress == Progress::Proposed);
        let proposed = proposed.filter_map(|call| self.agent.called(&call.proposed.name));
        !attempted.chain(proposed.map(|capability| capability.key.as_str())).all(|key| watch.attempt(key))
    }

    /// Arguments, input assertion, input review, input assertion again, identity; then the call.
    fn judge_input(&self, number: usize, call: &Call, capability: &Capability) -> Next {
        let Some(target) = self.registry.resolve(&capability.reference) else {
            return self.denied(number, Why::Unknown);
        };
        if !call.inputs.is_object() || self.registry.check_inputs(&target, &call.inputs).is_err() {
            return self.denied(number, Why::Arguments);
        }
        if self.holds(capability.input.assertion.as_ref(), number, Stage::Input).is_err() {
            return self.denied(number, Why::Assertion);
        }
        if self.is_tainted(&target, capability) {
            return self.denied(number, Why::Tainted);
        }
        match (&capability.input.review, &call.progress) {
            (None, _) | (Some(_), Progress::Reviewed(_, Decision::Approved)) => {}
            (Some(_), Progress::Reviewed(_, Decision::Rejected | Decision::Expired)) => {
                return self.denied(number, Why::Review);
            }
            (Some(_), _) => return self.ask_review(number, call, capability, Stage::Input),
        }
        if call.lacks_credentials {
            return Next::Wait(Wait::Credentials { call: number, capability: capability.key.clone() });
        }
        let caller_known = self.engagement.begun().user.is_some();
        match Identity::of(capability, caller_known, self.registry.options.lends_to_strangers) {
            Some(identity) => {
                let (capability, inputs) = (capability.key.clone(), call.inputs.clone());
                Next::Perform(Effect::Dispatch { call: number, capability, target, inputs, identity })
            }
            None => self.denied(number, Why::Identity),
        }
    }

    /// Whether words that came from a tool would lead to a tool that changes something, and nobody looks.
    fn is_tainted(&self, target: &Target, capability: &Capability) -> bool {
        let Target::Tool(name) = target else { return false };
        let Some(tool) = self.registry.tool(name) else { return false };
        if !tool.writes || capability.input.review.is_some() {
            return false;
        }
        let read = self.engagement.calls().iter().filter(|call| matches!(call.progress, Progress::Released));
        read.filter_map(|call| call.capability.as_deref()).any(|key| !tool.after.contains(key))
    }

    fn on_its_way(&self, number: usize, call: &Call, capability: &Capability) -> Next {
        let target = self.registry.resolve(&capability.reference);
        let idempotent = match &target {
            Some(Target::Tool(name)) => self.registry.tool(name).is_some_and(|tool| tool.idempotent),
            Some(Target::Agent(_) | Target::Remote { .. }) | None => false,
        };
        let (inputs, identity) = (call.inputs.clone(), call.identity.clone());
        Next::Wait(Wait::Return { call: number, target, inputs, identity, idempotent })
    }

    /// Output assertion, output review, output assertion again; then the result may be used.
    fn judge_output(&self, number: usize, call: &Call, capability: &Capability) -> Next {
        let withheld = |why| Next::Record(Step::Withheld { call: number, why });
        if self.holds(capability.output.assertion.as_ref(), number, Stage::Output).is_err() {
            return withheld(Why::Assertion);
        }
        match (&capability.output.review, &call.progress) {
            (None, _) | (Some(_), Progress::Reviewed(_, Decision::Approved)) => {
                Next::Record(Step::Released { call: number })
            }
            (Some(_), Progress::Reviewed(_, Decision::Rejected | Decision::Expired)) => withheld(Why::Review),
            (Some(_), _) => self.ask_review(number, call, capability, Stage::Output),
        }
    }

    fn ask_review(&self, number: usize, call: &Call, capability: &Capability, stage: Stage) -> Next {
        let restriction = match stage {
            Stage::Input => &capability.input,
            Stage::Output => &capability.output,
        };
        let user = self.engagement.begun().user.as_ref().map(|user| user.id.as_str());
        let asked = restriction.review.as_ref();
        let Some(reviewer) = asked.and_then(|reviewer| self.registry.reviewer(self.agent, reviewer, user)) else {
            return match stage {
                Stage::Input => self.denied(number, Why::Review),
                Stage::Output => Next::Record(Step::Withheld { call: number, why: Why::Review }),
            };
        };
        let digest = self.bound_to(number, call, capability, stage, &reviewer);
        let (capability, object) = (capability.key.clone(), self.engagement.object_at(self.agent, number, stage));
        Next::Perform(Effect::AskReview { call: number, stage, capability, reviewer, digest, object })
    }

    /// Whether an assertion is true of the Engagement at one end of a call; none is always true.
    fn holds(&self, assertion: Option<&Assertion>, number: usize, stage: Stage) -> Result<(), Failing> {
        let object = |assertion| self.engagement.object_for(self.agent, number, stage, assertion);
        assertion.map_or(Ok(()), |assertion| assertion.holds(&object(assertion)))
    }

    /// A digest over everything that a decision is about.
    fn bound_to(&self, number: usize, call: &Call, capability: &Capability, stage: Stage, by: &ReviewedBy) -> String {
        let outputs = if stage == Stage::Output { call.unjudged() } else { None };
        let bound = json!({
            "engagement": self.engagement.begun().id,
            "document": self.agent.digest(),
            "call": number,
            "stage": stage.name(),
            "capability": capability.key,
            "inputs": call.inputs,
            "outputs": outputs,
            "reviewer": by.name(),
        });
        hex_digest(&json::canonical_value(&bound))
    }

    fn denied(&self, call: usize, why: Why) -> Next {
        Next::Record(Step::Denied { call, why })
    }

    fn say(&self, saying: &Saying) -> Next {
        let object = self.engagement.object(self.agent);
        let mut exposes = Map::new();
        let mut expose_errors = Vec::new();
        for exposed in &self.agent.exposes {
            let value = exposed.selection.select(&object).unwrap_or_else(|_| {
                expose_errors.push(exposed.key.clone());
                Value::Null
            });
            exposes.insert(exposed.key.clone(), value);
        }
        let text = saying.text.clone();
        Next::Record(match saying.question {
            Some(_) => Step::Asked { text, exposes, expose_errors },
            None => Step::Answered { text, exposes, expose_errors },
        })
    }
}

/// Whether policy stood in the way of a call or of its result.
fn was_denied(call: &Call) -> bool {
    match call.progress {
        Progress::Denied(why) | Progress::Withheld(why) => !matches!(why, Why::Unknown | Why::Arguments),
        _ => false,
    }
}

/// What the model wants to put in; `null` when it is no object.
fn arguments(call: &Call) -> Value {
    let text = call.proposed.arguments.trim();
    if text.is_empty() {
        return json!({});
    }
    match Document::parse(text.as_bytes(), &ARGUMENT_LIMITS) {
        Ok(document) if document.root().is_object() => document.root().to_value(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests;
