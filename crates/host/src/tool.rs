//! OAS Agent, capabilities: a tool that can be described and called.
//!
//! A call is checked against the schema of the inputs, made by the tool's [`Hand`] within a time, and what comes back is
//! bounded, freed of the credential and checked against the schema of the outputs. An error says how far the call came,
//! because whoever repeats a call must know whether it may have had its effect.
//!
//! INVARIANT: a tool whose definition changed is not called until somebody approves it.

use crate::definition::{Definition, Rejected, digest};
use crate::{Pending, Secret};
use json::{Value, json};
use schema::Validator;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a call may take where nothing else is said.
pub const TIME_DEFAULT: Duration = Duration::from_secs(30);

/// How long a call may take at most.
pub const TIME_MAX: Duration = Duration::from_secs(300);

/// How long a call of an agent of another server may take at most: somebody there may have to agree first.
pub const REMOTE_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Bytes of what a tool gives.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of what a tool says about its failure.
const DETAIL_BYTES_MAX: usize = 4 * 1024;

/// The largest integer that every reader of JSON carries faithfully.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// One call, as the one who makes it sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the tool is given; it fits the schema.
    pub inputs: &'a Value,
    /// In whose name.
    pub credential: Option<&'a Secret>,
    /// The name of this call, the same when it is repeated.
    pub id: &'a str,
    /// How long it may take.
    pub time: Duration,
}

/// What carries calls out; one for each kind of tool.
pub trait Hand: Send + Sync {
    /// Makes a call.
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>>;
}

/// What an operator says of every tool of an entry, whatever the tool says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The property that a guardrail's text goes to.
    pub(crate) text_property: Option<String>,
    /// Whether it changes something out there, so that words from tools must not lead to it unseen.
    pub writes: bool,
    /// Tools after whose outputs it may be called all the same.
    pub after: Vec<String>,
    /// Where a user gives the consent that the credentials come from.
    pub consent: Option<String>,
}

/// Why a call gave nothing, told apart by how far it came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The inputs do not fit; nothing was sent.
    #[error("{0}")]
    Inputs(String),
    /// There is no such tool, or its definition was rejected; nothing was sent.
    #[error("{0}")]
    Unknown(String),
    /// The definition is not the one that was approved; nothing was sent.
    #[error("the definition of this tool changed and waits to be approved")]
    Changed,
    /// There is no credential; nothing was sent.
    #[error("there is no credential for this tool and identity")]
    Credential,
    /// The tool cannot be reached; nothing was sent.
    #[error("{0}")]
    Unavailable(String),
    /// It answered that it failed.
    #[error("{0}")]
    Failed(String),
    /// It answered something that cannot be used; the call may have had its effect.
    #[error("{0}")]
    Protocol(String),
    /// It was sent and nobody knows what became of it.
    #[error("{0}")]
    Lost(String),
    /// It did not end in time; nobody knows what became of it.
    #[error("the tool did not answer in time")]
    Timeout,
}

impl ToolError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Inputs(_) => "tool_call_invalid",
            Self::Unknown(_) => "tool_unknown",
            Self::Changed => "tool_definition_changed",
            Self::Credential => "tool_credential_missing",
            Self::Unavailable(_) => "tool_unavailable",
            Self::Failed(_) => "tool_failed",
            Self::Protocol(_) => "tool_protocol_error",
            Self::Lost(_) => "tool_outcome_unknown",
            Self::Timeout => "tool_timeout",
        }
    }

    /// Whether the tool was never asked.
    pub fn was_refused(&self) -> bool {
        match self {
            Self::Inputs(_) | Self::Unknown(_) | Self::Changed | Self::Credential | Self::Unavailable(_) => true,
            Self::Failed(_) | Self::Protocol(_) | Self::Lost(_) | Self::Timeout => false,
        }
    }

    /// Whether the call was made and nobody knows whether it had its effect.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Timeout => true,
            Self::Failed(_) | Self::Protocol(_) => false,
            Self::Inputs(_) | Self::Unknown(_) | Self::Changed | Self::Credential | Self::Unavailable(_) => false,
        }
    }

    /// As the outputs that an engagement keeps of a failed call.
    pub fn to_outputs(&self) -> Value {
        json!({"error": {"code": self.code(), "message": self.to_string()}})
    }

    /// A failure in the tool's own words, shortened.
    pub(crate) fn failed(words: &str) -> Self {
        let mut end = words.len().min(DETAIL_BYTES_MAX);
        while !words.is_char_boundary(end) {
            end -= 1;
        }
        Self::Failed(words.get(..end).unwrap_or_default().to_owned())
    }

    /// The same without a credential.
    fn without(self, secret: &Secret) -> Self {
        match self {
            Self::Failed(words) => Self::Failed(secret.withheld_from_text(words)),
            other => other,
        }
    }
}

/// Whether a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It may.
    Ready,
    /// Its definition is not the one that was approved.
    Quarantined {
        /// The digest that was approved.
        approved: String,
    },
    /// Its definition is not shown to a model.
    Rejected(Rejected),
}

/// A tool.
#[derive(Clone)]
pub struct Tool {
    definition: Definition,
    digest: String,
    state: State,
    /// The entry of the configuration it came by; its credentials are filed under that.
    entry: String,
    remarks: Remarks,
    time: Duration,
    input: Option<Arc<Validator>>,
    output: Option<Arc<Validator>>,
    hand: Arc<dyn Hand>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tool({}, {:?})", self.definition.name, self.state)
    }
}

impl Tool {
    /// A tool of this definition, whose calls are made by this hand.
    pub fn new(definition: Definition, entry: &str, hand: Arc<dyn Hand>) -> Self {
        let (state, input, output) = match definition.check() {
            Ok((input, output)) => (State::Ready, Some(Arc::new(input)), output.map(Arc::new)),
            Err(rejected) => (State::Rejected(rejected), None, None),
        };
        let digest = definition.digest();
        let (entry, time) = (entry.to_owned(), TIME_DEFAULT);
        let remarks = Remarks::default();
        Self { definition, digest, state, entry, remarks, time, input, output, hand }
    }

    /// The same with another time for a call where its caller says none.
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The same, pinned by a whole document and not only by what a model is told of it.
    pub(crate) fn of_document(self, document: &[u8]) -> Self {
        let whole = [self.digest.as_bytes(), b"\n", document].concat();
        Self { digest: digest(&whole), ..self }
    }

    /// The same with what the operator says of it.
    pub(crate) fn remarked(self, remarks: &Remarks) -> Self {
        Self { remarks: remarks.clone(), ..self }
    }

    /// What the operator says of it.
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// The same, in quarantine unless its digest is the approved one.
    pub(crate) fn pinned(mut self, approved: &str) -> Self {
        if self.state == State::Ready && self.digest != approved {
            self.state = State::Quarantined { approved: approved.to_owned() };
        }
        self
    }

    /// The same out of quarantine.
    pub(crate) fn approved(&self) -> Self {
        Self { state: State::Ready, ..self.clone() }
    }

    /// What it is.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The digest of what it is.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether it may be called.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The entry that its credentials are filed under.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// How long a call may take where its caller says nothing.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The inputs that bring a text to a guardrail: its one needed text, or `text`.
    pub fn text_inputs(&self, text: &str) -> Value {
        let needed: Vec<&str> = match self.definition.input.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let is_text =
            |name: &&&str| self.definition.input.pointer(&format!("/properties/{name}/type")) == Some(&json!("string"));
        let only = match needed.as_slice() {
            [only] => Some(only).filter(is_text).copied(),
            _ => None,
        };
        let property = self.remarks.text_property.as_deref().or(only).unwrap_or("text");
        json!({property: text})
    }

    /// Whether inputs fit, without a call.
    pub fn check_inputs(&self, inputs: &Value) -> Result<(), ToolError> {
        match (&self.state, &self.input) {
            (State::Rejected(_), _) | (_, None) => {
                Err(ToolError::Unknown("the definition of this tool is not usable".to_owned()))
            }
            (State::Quarantined { .. }, _) => Err(ToolError::Changed),
            (State::Ready, Some(schema)) => {
                schema.check(inputs).map_err(|refusal| ToolError::Inputs(format!("the inputs: {refusal}")))
            }
        }
    }

    /// Makes a call: checks what goes in, waits, checks what comes out.
    pub async fn call(&self, call: Call<'_>) -> Result<Value, ToolError> {
        self.check_inputs(call.inputs)?;
        // More than the usual time is given by the operator alone.
        let time = call.time.min(self.time.max(TIME_MAX));
        let outcome = match timeout(time, self.hand.call(Call { time, ..call })).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ToolError::Timeout),
        };
        let outcome = match call.credential {
            Some(secret) => outcome.map(|value| secret.withheld_from(value)).map_err(|error| error.without(secret)),
            None => outcome,
        };
        self.check_outputs(faithful(outcome?))
    }

    fn check_outputs(&self, outputs: Value) -> Result<Value, ToolError> {
        if outputs.to_string().len() > OUTPUT_BYTES_MAX {
            return Err(ToolError::Protocol("the tool gave more than is taken".to_owned()));
        }
        match self.output.as_ref().map(|schema| schema.check(&outputs)) {
            None | Some(Ok(())) => Ok(outputs),
            Some(Err(refusal)) => Err(ToolError::Protocol(format!("the outputs: {refusal}"))),
        }
    }
}

/// The same value with numbers that every reader of JSON carries; others become texts (decisions/0222).
pub(crate) fn faithful(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|double| double.abs() > INTEGER_MAX) => {
            Value::String(number.to_string())
        }
        Value::Array(list) => list.into_iter().map(faithful).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, faithful(value))).collect::<json::Map>().into()
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}
