//! OAS Engagement: an engagement is its steps, and what follows from them.
//!
//! Recording a step moves the engagement on; a step that does not follow is refused, so that a journal out of order is
//! noticed where it is read and never acted on.
//!
//! INVARIANT: what this file knows comes from the steps alone, so folding them again gives the same engagement.

use crate::{Begun, Decision, Failure, Identity, Outcome, Place, ProposedCall, Review, Stage, Step, Why};
use json::{Map, Value};

/// An engagement: its steps and where they lead.
#[derive(Clone, Debug)]
pub struct Engagement {
    steps: Vec<Step>,
    begun: Begun,
    phase: Phase,
    calls: Vec<Call>,
    attempts: Vec<String>,
    turns: usize,
    tokens: u64,
    bytes: usize,
    answer: Option<Answer>,
}

/// Where an engagement stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// Nobody has said anything.
    Begun,
    /// The user said something that nobody has judged.
    Heard { text: String },
    /// The input guardrail's tool answered.
    HeardJudged { outcome: Outcome },
    /// The model, or one of its calls.
    Working,
    /// The model wants to say something that nobody has judged.
    Saying(Saying),
    /// The output guardrail's tool answered.
    SayingJudged { saying: Saying, outcome: Outcome },
    /// The output guardrail held.
    SayingHeld(Saying),
    /// The user was answered, or asked by a call.
    Resting { question: Option<usize> },
    /// It failed.
    Failed(Failure),
    /// Somebody ended it.
    Cancelled,
}

/// What the model wants to say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saying {
    pub(crate) text: String,
    /// The call by which it asks; nothing when it answers.
    pub(crate) question: Option<usize>,
}

/// What the user was last told.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    text: String,
    exposes: Map,
    expose_errors: Vec<String>,
}

/// A call that the model proposed, and how far it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// As the model proposed it.
    pub proposed: ProposedCall,
    /// The key of its capability, once that is known.
    pub capability: Option<String>,
    /// What is put in, once it was read; `null` when it is no object.
    pub inputs: Value,
    /// How far it came.
    pub progress: Progress,
    /// Whose credentials went with it.
    pub identity: Option<Identity>,
    /// Whether it waits for credentials.
    pub lacks_credentials: bool,
    outcome: Option<Outcome>,
}

/// How far a call came.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The model proposed it.
    Proposed,
    /// Its capability is known and it is counted.
    Attempted,
    /// Somebody is asked about one end of it.
    InReview(Stage, Review),
    /// Somebody decided.
    Reviewed(Stage, Decision),
    /// It is being made, or was when everything stopped.
    Dispatched,
    /// Nobody can tell whether it was carried out.
    Unknown,
    /// It came back, and nobody has judged it.
    Returned,
    /// The user was asked by it.
    Asking,
    /// It was not made.
    Denied(Why),
    /// Its result may be used.
    Released,
    /// Its result may not be used.
    Withheld(Why),
}

impl Call {
    /// Whether nothing more happens to it.
    pub fn is_over(&self) -> bool {
        matches!(self.progress, Progress::Denied(_) | Progress::Released | Progress::Withheld(_))
    }

    /// Whether the tool was called, as far as anybody can tell.
    pub fn was_invoked(&self) -> bool {
        match self.progress {
            Progress::Released | Progress::Withheld(_) | Progress::Returned | Progress::Unknown => {
                self.capability.is_some()
            }
            Progress::InReview(stage, _) | Progress::Reviewed(stage, _) => stage == Stage::Output,
            Progress::Proposed
            | Progress::Attempted
            | Progress::Dispatched
            | Progress::Asking
            | Progress::Denied(_) => false,
        }
    }

    /// What came back, if it may be used.
    pub fn released(&self) -> Option<Value> {
        match (&self.progress, &self.outcome) {
            (Progress::Released, Some(outcome)) => Some(outcome.value()),
            _ => None,
        }
    }

    /// What came back, judged or not.
    pub(crate) fn unjudged(&self) -> Option<Value> {
        self.outcome.as_ref().map(Outcome::value)
    }
}

/// What a caller is told of where an engagement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Something is being done.
    Running,
    /// The user was asked.
    AwaitingInput,
    /// A reviewer was asked.
    AwaitingReview,
    /// A tool needs the user's credentials.
    AwaitingCredentials,
    /// Nobody knows what became of a call, and a person must say.
    OutcomeUnknown,
    /// The user was answered.
    Completed,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

impl Status {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::AwaitingInput => "awaiting-input",
            Self::AwaitingReview => "awaiting-review",
            Self::AwaitingCredentials => "awaiting-credentials",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Failed | Self::Cancelled)
    }
}

/// A step that does not follow from those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this step does not follow from those before it")]
pub struct Misplaced;

impl Engagement {
    /// A new engagement.
    pub fn begin(begun: Begun) -> Self {
        Self {
            steps: vec![Step::Begun(begun.clone())],
            begun,
            phase: Phase::Begun,
            calls: Vec::new(),
            attempts: Vec::new(),
            turns: 0,
            tokens: 0,
            bytes: 0,
            answer: None,
        }
    }

    /// The engagement that these steps are.
    pub fn fold(steps: impl IntoIterator<Item = Step>) -> Result<Self, Misplaced> {
        let mut steps = steps.into_iter();
        let Some(Step::Begun(begun)) = steps.next() else { return Err(Misplaced) };
        let mut engagement = Self::begin(begun);
        for step in steps {
            engagement.record(step)?;
        }
        Ok(engagement)
    }

    /// What happened, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How it began.
    pub fn begun(&self) -> &Begun {
        &self.begun
    }

    /// The calls that the model proposed, by number.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The keys of the calls attempted since the user last spoke.
    pub fn attempts(&self) -> &[String] {
        &self.attempts
    }

    /// What the user was last told: the text and what is exposed beside it.
    pub fn answer(&self) -> Option<(&str, &Map, &[String])> {
        let shown = matches!(self.phase, Phase::Resting { .. });
        let answer = self.answer.as_ref().filter(|_| shown)?;
        Some((&answer.text, &answer.exposes, &answer.expose_errors))
    }

    /// Of what it failed.
    pub fn failure(&self) -> Option<Failure> {
        match self.phase {
            Phase::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The review that is waited for, with its call.
    pub fn pending_review(&self) -> Option<(usize, Stage, &Review)> {
        let call = self.current()?;
        match &self.calls.get(call)?.progress {
            Progress::InReview(stage, review) => Some((call, *stage, review)),
            _ => None,
        }
    }

    /// Where it stands, for its caller.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Failed(_) => Status::Failed,
            Phase::Cancelled => Status::Cancelled,
            Phase::Resting { question: None } => Status::Completed,
            Phase::Resting { question: Some(_) } => Status::AwaitingInput,
            Phase::Working => match self.current().and_then(|call| self.calls.get(call)) {
                Some(call) if call.lacks_credentials => Status::AwaitingCredentials,
                Some(Call { progress: Progress::InReview(..), .. }) => Status::AwaitingReview,
                Some(Call { progress: Progress::Unknown, .. }) => Status::OutcomeUnknown,
                _ => Status::Running,
            },
            Phase::Begun
            | Phase::Heard { .. }
            | Phase::HeardJudged { .. }
            | Phase::Saying(_)
            | Phase::SayingJudged { .. }
            | Phase::SayingHeld(_) => Status::Running,
        }
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(crate) fn turns(&self) -> usize {
        self.turns
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the call that is to be looked at; none when the model is to be asked.
    pub(crate) fn current(&self) -> Option<usize> {
        self.calls.iter().position(|call| !call.is_over())
    }

    /// Whether the model may be asked, or a call judged, right now.
    fn is_at_work(&self) -> bool {
        matches!(self.phase, Phase::Working | Phase::Heard { .. })
    }

    /// Takes a step that follows from those before it.
    pub fn record(&mut self, step: Step) -> Result<(), Misplaced> {
        let weight = weight(&step);
        self.follow(&step)?;
        self.bytes += weight;
        self.steps.push(step);
        Ok(())
    }

    fn follow(&mut self, step: &Step) -> Result<(), Misplaced> {
        match step {
            Step::Begun(_) => Err(Misplaced),
            Step::UserSaid { text } => self.hear(text),
            Step::GuardrailReturned { place, outcome } => self.judged(*place, outcome),
            Step::GuardrailHeld { place } => self.held(*place),
            Step::ModelSaid { text, calls, usage } => {
                self.model_said(text.as_deref(), calls)?;
                self.tokens = self.tokens.saturating_add(usage.input_tokens).saturating_add(usage.output_tokens);
                Ok(())
            }
            Step::Attempted { call, capability, inputs } => self.attempted(*call, capability, inputs),
            Step::Asking { call, text } => self.asking(*call, text),
            Step::Asked { text, exposes, expose_errors } | Step::Answered { text, exposes, expose_errors } => {
                let asks = matches!(step, Step::Asked { .. });
                self.told(
                    asks,
                    Answer { text: text.clone(), exposes: exposes.clone(), expose_errors: expose_errors.clone() },
                )
            }
            Step::Failed { failure, .. } => self.end(Phase::Failed(*failure)),
            Step::Cancelled { .. } => self.end(Phase::Cancelled),
            Step::Denied { call, .. }
            | Step::ReviewAsked { call, .. }
            | Step::ReviewDecided { call, .. }
            | Step::CredentialsMissing { call }
            | Step::CredentialsArrived { call }
            | Step::Dispatched { call, .. }
            | Step::Returned { call, .. }
            | Step::OutcomeUnknown { call }
            | Step::Released { call }
            | Step::Withheld { call, .. } => self.call_on(*call, step),
        }
    }

    fn hear(&mut self, text: &str) -> Result<(), Misplaced> {
        let question = match self.phase {
            Phase::Begun => None,
            Phase::Resting { question } => question,
            _ => return Err(Misplaced),
        };
        if let Some(call) = question.and_then(|call| self.calls.get_mut(call)) {
            call.outcome = Some(Outcome::Output(Value::from(text)));
            call.progress = Progress::Released;
        }
        self.attempts.clear();
        self.phase = Phase::Heard { text: text.to_owned() };
        Ok(())
    }

    fn judged(&mut self, place: Place, outcome: &Outcome) -> Result<(), Misplaced> {
        let outcome = outcome.clone();
        self.phase = match (&self.phase, place) {
            (Phase::Heard { .. }, Place::Input) => Phase::HeardJudged { outcome },
            (Phase::Saying(saying), Place::Output) => Phase::SayingJudged { saying: saying.clone(), outcome },
            _ => return Err(Misplaced),
        };
        Ok(())
    }

    fn held(&mut self, place: Place) -> Result<(), Misplaced> {
        self.phase = match (&self.phase, place) {
            (Phase::HeardJudged { .. }, Place::Input) => Phase::Working,
            (Phase::SayingJudged { saying, .. }, Place::Output) => Phase::SayingHeld(saying.clone()),
            _ => return Err(Misplaced),
        };
        Ok(())
    }

    fn model_said(&mut self, text: Option<&str>, calls: &[ProposedCall]) -> Result<(), Misplaced> {
        if !self.is_at_work() || self.current().is_some() {
            return Err(Misplaced);
        }
        self.turns += 1;
        self.phase = match calls {
            [] => Phase::Saying(Saying { text: text.unwrap_or_default().to_owned(), question: None }),
            _ => Phase::Working,
        };
        self.calls.extend(calls.iter().map(|proposed| Call {
            proposed: proposed.clone(),
            capability: None,
            inputs: Value::Null,
            progress: Progress::Proposed,
            identity: None,
            lacks_credentials: false,
            outcome: None,
        }));
        Ok(())
    }

    /// The call that is to be looked at, if it is this one.
    fn at(&mut self, number: usize) -> Result<&mut Call, Misplaced> {
        if !self.is_at_work() || self.current() != Some(number) {
            return Err(Misplaced);
        }
        self.calls.get_mut(number).ok_or(Misplaced)
    }

    fn attempted(&mut self, number: usize, capability: &str, inputs: &Value) -> Result<(), Misplaced> {
        let call = self.at(number)?;
        if call.progress != Progress::Proposed {
            return Err(Misplaced);
        }
        call.capability = Some(capability.to_owned());
        call.inputs = inputs.clone();
        call.progress = Progress::Attempted;
        self.attempts.push(capability.to_owned());
        Ok(())
    }

    fn asking(&mut self, number: usize, text: &str) -> Result<(), Misplaced> {
        let call = self.at(number)?;
        if call.progress != Progress::Proposed {
            return Err(Misplaced);
        }
        call.progress = Progress::Asking;
        self.phase = Phase::Saying(Saying { text: text.to_owned(), question: Some(number) });
        Ok(())
    }

    fn told(&mut self, asks: bool, answer: Answer) -> Result<(), Misplaced> {
        let saying = match &self.phase {
            Phase::Saying(saying) | Phase::SayingHeld(saying) => saying,
            _ => return Err(Misplaced),
        };
        if saying.question.is_some() != asks || saying.text != answer.text {
            return Err(Misplaced);
        }
        self.phase = Phase::Resting { question: saying.question };
        self.answer = Some(answer);
        Ok(())
    }

    fn end(&mut self, phase: Phase) -> Result<(), Misplaced> {
        if self.status().is_final() {
            return Err(Misplaced);
        }
        self.phase = phase;
        Ok(())
    }

    fn call_on(&mut self, number: usize, step: &Step) -> Result<(), Misplaced> {
        let call = self.at(number)?;
        call.progress = match (&call.progress, step) {
            (
                Progress::Proposed | Progress::Attempted | Progress::Reviewed(Stage::Input, _),
                Step::Denied { why, .. },
            ) => Progress::Denied(*why),
            (Progress::Attempted, Step::ReviewAsked { stage: Stage::Input, review, .. }) => {
                Progress::InReview(Stage::Input, review.clone())
            }
            (Progress::Returned, Step::ReviewAsked { stage: Stage::Output, review, .. }) => {
                Progress::InReview(Stage::Output, review.clone())
            }
            (Progress::InReview(asked, review), Step::ReviewDecided { stage, digest, decision, .. })
                if asked == stage && *digest == review.digest =>
            {
                Progress::Reviewed(*stage, *decision)
            }
            (
                progress @ (Progress::Attempted | Progress::Reviewed(Stage::Input, Decision::Approved)),
                Step::CredentialsMissing { .. },
            ) if !call.lacks_credentials => {
                call.lacks_credentials = true;
                progress.clone()
            }
            (progress, Step::CredentialsArrived { .. }) if call.lacks_credentials => {
                call.lacks_credentials = false;
                progress.clone()
            }
            (
                Progress::Attempted
                | Progress::Reviewed(Stage::Input, Decision::Approved)
                | Progress::Dispatched
                | Progress::Unknown,
                Step::Dispatched { identity, .. },
            ) if !call.lacks_credentials => {
                call.identity = Some(identity.clone());
                Progress::Dispatched
            }
            (Progress::Dispatched | Progress::Unknown, Step::Returned { outcome, .. }) => {
                call.outcome = Some(outcome.clone());
                Progress::Returned
            }
            (Progress::Dispatched, Step::OutcomeUnknown { .. }) => Progress::Unknown,
            (Progress::Returned | Progress::Reviewed(Stage::Output, Decision::Approved), Step::Released { .. }) => {
                Progress::Released
            }
            (Progress::Returned | Progress::Reviewed(Stage::Output, _), Step::Withheld { why, .. }) => {
                Progress::Withheld(*why)
            }
            _ => return Err(Misplaced),
        };
        Ok(())
    }
}

/// How many bytes a step adds to what an engagement holds.
fn weight(step: &Step) -> usize {
    match step {
        Step::UserSaid { text } => text.len(),
        Step::ModelSaid { text, calls, .. } => {
            let arguments: usize = calls.iter().map(|call| call.arguments.len()).sum();
            text.as_deref().map_or(0, str::len) + arguments
        }
        Step::Returned { outcome, .. } | Step::GuardrailReturned { outcome, .. } => outcome.value().to_string().len(),
        _ => 0,
    }
}
