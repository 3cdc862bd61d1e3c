//! OAS Agent, `intent`: the generative model that an agent speaks through.
//!
//! A model is asked with the whole conversation each time and remembers nothing, so an engagement can go on after a
//! restart with nothing but its journal. Tools keep their names here; what a provider calls them is its client's affair.

pub(crate) mod budget;
pub(crate) mod scripted;
pub(crate) mod provider;
mod openai;
mod anthropic;

use crate::configuration::Configuration;
use crate::credentials::World;
use crate::fields::Fields;
use crate::http::Http;
use crate::{ConfigurationError, Pending};
use budget::Price;
use json::{Pointer, Value};
use scripted::Scripted;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What the operator and the document say, the intent first of all.
    pub system: String,
    /// The conversation so far, in order.
    pub messages: Vec<Message>,
    /// What may be called.
    pub tools: Vec<Function>,
    /// What else is wanted of the reply.
    pub options: Options,
}

/// What else is wanted of a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Tokens that are left to be written, by the budget.
    pub max_tokens: Option<u64>,
    /// Whether several calls may come at once.
    pub parallel_calls: bool,
    /// The JSON Schema of the text, where it has one.
    pub schema: Option<Value>,
}

/// One step of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The user says something.
    User {
        /// The words.
        text: String,
    },
    /// The model says something, or calls.
    Assistant {
        /// The words, where there are any.
        text: Option<String>,
        /// The calls, in order.
        calls: Vec<ToolCall>,
    },
    /// A call gave something.
    Result {
        /// The id of the call.
        id: String,
        /// The name of what was called.
        name: String,
        /// What it gave, or why it gave nothing.
        outputs: Value,
        /// Whether it failed or was denied.
        failed: bool,
    },
}

/// Something that a model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The name of the capability.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its inputs.
    pub parameters: Value,
}

/// A call that a model wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id in this conversation.
    pub id: String,
    /// The name of the capability; whatever the model said when it was not offered.
    pub name: String,
    /// The inputs.
    pub arguments: Arguments,
}

/// The inputs that a model wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// As JSON.
    Json(Value),
    /// As something that is no JSON, which the model is told.
    Broken(String),
}

/// What a model replied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The words, where there are any.
    pub text: Option<String>,
    /// The calls, in order.
    pub calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish: Finish,
    /// What it took.
    pub usage: Usage,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// Everything was said.
    #[default]
    Stop,
    /// There are calls to be made.
    Calls,
    /// There was no room for more.
    Length,
    /// The provider held something back.
    Filtered,
    /// Something else, in the provider's words.
    Other(String),
}

/// What a reply took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
}

/// Hears the words of a reply while they come.
pub type OnText<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// A generative model.
pub trait Model: Send + Sync {
    /// Replies to a conversation; `on_text` hears the words as they come, where they come in pieces.
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_text: Option<OnText<'a>>,
    ) -> Pending<'a, Result<Reply, ModelError>>;

    /// Who provides it, as OpenTelemetry names providers.
    fn provider(&self) -> &str;

    /// What the provider calls it.
    fn name(&self) -> &str;

    /// What it costs.
    fn price(&self) -> Price {
        Price::default()
    }
}

/// Why there is no reply. Nothing of what a provider sent is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Nobody answers, or they answer that they cannot now; it was tried several times.
    #[error("{0}")]
    Unavailable(String),
    /// The provider refuses what it was asked.
    #[error("the provider of the model refuses the request with status {0}")]
    Refused(u16),
    /// The answer is none of this protocol.
    #[error("{0}")]
    Protocol(String),
    /// It took too long.
    #[error("the model did not reply in time")]
    Timeout,
    /// There is no key for the provider.
    #[error("there is no key for the provider of the model")]
    Credential,
}

impl ModelError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "model_unavailable",
            Self::Refused(_) => "model_refused",
            Self::Protocol(_) => "model_protocol_error",
            Self::Timeout => "model_timeout",
            Self::Credential => "model_credential_missing",
        }
    }
}

/// An entry of `models`.
#[derive(Clone)]
pub(crate) enum Setting {
    Scripted(Scripted),
    OpenAi(openai::Setting),
    Anthropic(anthropic::Setting),
}

impl Setting {
    pub(crate) fn read(value: &Value, at: &Pointer, world: &World<'_>) -> Result<Self, ConfigurationError> {
        let fields = Fields::of(value, at)?;
        let setting = match fields.needed_text("kind")? {
            "scripted" => Self::Scripted(Scripted::of(&fields, world)?),
            "openai" => Self::OpenAi(openai::Setting::read(&fields, world)?),
            "anthropic" => Self::Anthropic(anthropic::Setting::read(&fields, world)?),
            _ => return Err(fields.wrong("kind", "known kinds are `openai`, `anthropic` and `scripted`")),
        };
        fields.finish()?;
        Ok(setting)
    }

    fn open(&self, http: &Arc<dyn Http>) -> Arc<dyn Model> {
        match self {
            Self::Scripted(scripted) => Arc::new(scripted.clone()),
            Self::OpenAi(setting) => Arc::new(setting.open(http)),
            Self::Anthropic(setting) => Arc::new(setting.open(http)),
        }
    }
}

impl Configuration {
    /// A model by the name that the operator gave it.
    pub fn model(&self, name: &str, http: &Arc<dyn Http>) -> Option<Arc<dyn Model>> {
        self.models.get(name).map(|setting| setting.open(http))
    }
}
