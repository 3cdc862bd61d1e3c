//! A provider of models over HTTP: one exchange, tried again where that helps, its pieces put together.
//!
//! Asking a model has no effect but its cost, so a request may be repeated; once words were heard it is not, since they
//! would be heard twice. Decoding is lenient: what a provider leaves out or adds is borne, because compatible servers
//! are compatible in their own ways.

use super::budget::Price;
use super::{Arguments, Finish, Message, ModelError, OnText, Reply, Request, ToolCall, Usage};
use crate::credentials::{Source, World};
use crate::fields::Fields;
use crate::http::{Http, HttpError, Request as HttpRequest, Response};
use crate::sse::Events;
use crate::tool::faithful;
use crate::{Aliases, ConfigurationError, Secret};
use json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a reply may take where nothing else is said, and at most.
const TIME_DEFAULT: Duration = Duration::from_secs(120);
const TIME_MAX: Duration = Duration::from_secs(900);

/// Bytes of a reply, all its pieces together.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of one piece.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of the inputs of one call; longer ones are as good as broken.
const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;

/// Characters of broken inputs that are kept, to show the model what it wrote.
const BROKEN_CHARS_MAX: usize = 1_000;

/// Calls of one reply.
const CALLS_MAX: usize = 64;

/// Times that a request is repeated where nothing else is said, and at most.
const RETRIES_DEFAULT: u64 = 3;
const RETRIES_MAX: u64 = 10;

/// Tokens of a reply that every provider lets somebody ask for; more is asked for only where the operator says how many.
pub(crate) const MAX_TOKENS_SAFE: u64 = 4_096;

/// The bounds of what a provider sends, by name.
pub(crate) fn bounds() -> [(&'static str, u64); 5] {
    [
        ("model_reply_bytes", REPLY_BYTES_MAX as u64),
        ("model_event_bytes", EVENT_BYTES_MAX as u64),
        ("model_argument_bytes", ARGUMENTS_BYTES_MAX as u64),
        ("model_calls", CALLS_MAX as u64),
        ("model_seconds", TIME_MAX.as_secs()),
    ]
}

/// The first pause before a request is repeated; each is twice as long as the last.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest pause that a provider may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How one model of a provider is asked.
#[derive(Clone)]
pub(crate) struct Provider {
    url: String,
    pub(crate) model: String,
    key: Option<Source>,
    time: Duration,
    retries: u64,
    pub(crate) stream: bool,
    /// Tokens of a reply, where the operator says how many.
    max_tokens: Option<u64>,
    /// Members of the request that the operator adds.
    pub(crate) extra: Map,
    pub(crate) price: Price,
}

/// What differs from provider to provider.
pub(crate) trait Dialect: Send + Sync {
    /// What follows the base address.
    fn path(&self) -> &'static str;
    /// The header fields that carry the key.
    fn key(&self, key: &Secret) -> (String, String);
    /// Other header fields.
    fn headers(&self) -> Vec<(String, String)>;
    /// The document that is sent.
    fn body(&self, request: &Request, aliases: &Aliases) -> Value;
    /// Reads a reply that came whole.
    fn whole(&self, value: &Value) -> Said;
    /// Adds a piece of a reply.
    fn piece(&self, piece: &Value, said: &mut Said);
}

/// What a model said, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) calls: Vec<SaidCall>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Usage,
    /// The provider says that it broke.
    pub(crate) broke: bool,
    /// The provider says that this was all.
    pub(crate) ended: bool,
}

/// A call, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct SaidCall {
    /// Its number in the stream, where there is one.
    pub(crate) index: Option<u64>,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// Why one attempt failed.
enum Failed {
    /// Another attempt may succeed, after a pause where one is asked for.
    Again(Option<Duration>, ModelError),
    Final(ModelError),
}

impl Provider {
    pub(crate) fn read(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        let url = fields.needed_text("url")?.trim_end_matches('/').to_owned();
        match url::Url::parse(&url) {
            Ok(parsed) if ["http", "https"].contains(&parsed.scheme()) && parsed.password().is_none() => {}
            _ => return Err(fields.wrong("url", "this is no address like https://models.example/v1")),
        }
        let key = fields.value("key").map(|key| Source::read(key, &fields.at("key"), world)).transpose()?;
        let extra = match fields.value("extra") {
            None => Map::new(),
            Some(Value::Object(members)) => members.clone(),
            Some(_) => return Err(fields.wrong("extra", "an object is expected here")),
        };
        let retries = fields.count("retries")?.unwrap_or(RETRIES_DEFAULT);
        if retries > RETRIES_MAX {
            return Err(fields.wrong("retries", format!("0 to {RETRIES_MAX} are possible")));
        }
        Ok(Self {
            url,
            model: fields.needed_text("model")?.to_owned(),
            key,
            time: fields.seconds("timeout_seconds", TIME_DEFAULT, TIME_MAX)?,
            retries,
            stream: fields.flag("stream", true)?,
            max_tokens: fields.count("max_tokens")?,
            extra,
            price: Price::read(fields.object("price")?)?,
        })
    }

    /// Tokens of the reply to ask for: no more than the operator says, and no more than the budget has left. A budget alone
    /// is no bound of one reply, and a provider refuses what its model cannot write; so it counts once it is small.
    pub(crate) fn max_tokens(&self, request: &Request) -> Option<u64> {
        // Nobody may ask for none; what is written beyond the budget ends the engagement.
        let left = request.options.max_tokens.map(|left| left.max(1));
        match (left, self.max_tokens) {
            (Some(left), Some(operators)) => Some(left.min(operators)),
            (Some(left), None) => Some(left).filter(|left| *left <= MAX_TOKENS_SAFE),
            (None, operators) => operators,
        }
    }

    /// Asks, and asks again where that helps, within the time.
    pub(crate) async fn complete(
        &self,
        dialect: &dyn Dialect,
        http: &Arc<dyn Http>,
        request: &Request,
        on_text: Option<OnText<'_>>,
    ) -> Result<Reply, ModelError> {
        timeout(self.time, self.attempts(dialect, http, request, on_text)).await.unwrap_or(Err(ModelError::Timeout))
    }

    async fn attempts(
        &self,
        dialect: &dyn Dialect,
        http: &Arc<dyn Http>,
        request: &Request,
        on_text: Option<OnText<'_>>,
    ) -> Result<Reply, ModelError> {
        let aliases = Aliases::of(request.tools.iter().map(|tool| tool.name.as_str()));
        let body = dialect.body(request, &aliases).to_string().into_bytes();
        let mut pause = PAUSE;
        for attempt in 0.. {
            let (wanted, error) = match self.attempt(dialect, http, &body, on_text).await {
                Ok(said) => return Ok(said.reply(request, &aliases)),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Again(wanted, error)) => (wanted, error),
            };
            if attempt >= self.retries {
                return Err(error);
            }
            sleep(wanted.unwrap_or(pause).min(PAUSE_MAX)).await;
            pause = pause.saturating_mul(2);
        }
        Err(ModelError::Timeout)
    }

    async fn attempt(
        &self,
        dialect: &dyn Dialect,
        http: &Arc<dyn Http>,
        body: &[u8],
        on_text: Option<OnText<'_>>,
    ) -> Result<Said, Failed> {
        let mut headers = dialect.headers();
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        headers.push(("accept".to_owned(), "application/json, text/event-stream".to_owned()));
        if let Some(source) = &self.key {
            let key = source.secret().ok_or(Failed::Final(ModelError::Credential))?;
            headers.push(dialect.key(&key));
        }
        let sent = HttpRequest {
            method: "POST".to_owned(),
            url: format!("{}{}", self.url, dialect.path()),
            headers,
            body: Some(body.to_vec()),
            time: self.time,
            bytes_max: REPLY_BYTES_MAX,
        };
        let response = http.send(sent).await.map_err(unsent)?;
        match response.status {
            200..300 if response.is_events() => gather(dialect, response, on_text).await,
            200..300 => {
                let bytes = response.whole().await.map_err(unsent)?;
                let value = serde_json::from_slice(&bytes).map_err(|_| no_json())?;
                let said = dialect.whole(&value);
                if said.broke {
                    return Err(Failed::Again(None, broke()));
                }
                if let (Some(on_text), false) = (on_text, said.text.is_empty()) {
                    on_text(&said.text);
                }
                Ok(said)
            }
            408 | 409 | 425 | 429 | 500.. => {
                let error = format!("the provider of the model answers with status {}", response.status);
                Err(Failed::Again(retry_after(&response), ModelError::Unavailable(error)))
            }
            status => Err(Failed::Final(ModelError::Refused(status))),
        }
    }
}

fn no_json() -> Failed {
    Failed::Final(ModelError::Protocol("the provider of the model answers with something that is no JSON".to_owned()))
}

fn broke() -> ModelError {
    ModelError::Unavailable("the reply of the model broke off".to_owned())
}

fn unsent(error: HttpError) -> Failed {
    let detail = || ModelError::Unavailable(format!("the provider of the model: {error}"));
    match error {
        HttpError::Timeout => Failed::Final(ModelError::Timeout),
        HttpError::Unreachable | HttpError::Lost => Failed::Again(None, detail()),
        HttpError::Refused(_) | HttpError::TooLarge | HttpError::Unusable(_) => Failed::Final(detail()),
    }
}

/// The pause that a provider asks for, in seconds or, as some do, in milliseconds.
fn retry_after(response: &Response) -> Option<Duration> {
    let milliseconds = response.header("retry-after-ms").and_then(|text| text.trim().parse().ok());
    let seconds = response.header("retry-after").and_then(|text| text.trim().parse().ok());
    milliseconds.map(Duration::from_millis).or(seconds.map(Duration::from_secs))
}

/// Puts the pieces of a reply together.
async fn gather(dialect: &dyn Dialect, mut response: Response, on_text: Option<OnText<'_>>) -> Result<Said, Failed> {
    let (mut said, mut events) = (Said::default(), Events::new(EVENT_BYTES_MAX));
    let mut heard = 0;
    // Words that were heard once are not to be heard again from another attempt.
    let again = |heard: usize, error: ModelError| match on_text.is_some() && heard > 0 {
        true => Failed::Final(error),
        false => Failed::Again(None, error),
    };
    while !said.ended {
        let bytes = match response.body.next().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) if said.finish.is_some() => break,
            Ok(None) | Err(HttpError::Lost | HttpError::Unreachable) => return Err(again(heard, broke())),
            Err(error) => return Err(unsent(error)),
        };
        let long = || Failed::Final(ModelError::Protocol("a piece of the reply is too long".to_owned()));
        // What came whole counts before what is too long, and nothing counts after the end: how a stream is cut into
        // pieces changes nothing.
        let pushed = events.push(&bytes);
        while let Some(event) = events.next() {
            if event == b"[DONE]" {
                said.ended = true;
            }
            if said.ended {
                break;
            }
            let piece: Value = serde_json::from_slice(&event).map_err(|_| no_json())?;
            dialect.piece(&piece, &mut said);
            if said.broke {
                return Err(again(heard, broke()));
            }
            if let Some(words) = said.text.get(heard..).filter(|words| !words.is_empty()) {
                if let Some(on_text) = on_text {
                    on_text(words);
                }
                heard = said.text.len();
            }
        }
        if !said.ended {
            pushed.map_err(|_| long())?;
        }
    }
    Ok(said)
}

impl Said {
    /// The call that a piece belongs to: by its number, else by its id, else the last one.
    pub(crate) fn call(&mut self, index: Option<u64>, id: Option<&str>) -> Option<&mut SaidCall> {
        let known = match (index, id) {
            (Some(_), _) => self.calls.iter().position(|call| call.index == index),
            (None, Some(id)) => self.calls.iter().position(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let position = match known {
            Some(position) => position,
            None if self.calls.len() < CALLS_MAX => {
                self.calls.push(SaidCall { index, ..SaidCall::default() });
                self.calls.len() - 1
            }
            None => return None,
        };
        let call = self.calls.get_mut(position)?;
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            id.clone_into(&mut call.id);
        }
        Some(call)
    }

    /// The reply, in our names.
    fn reply(self, request: &Request, aliases: &Aliases) -> Reply {
        let mut used: Vec<String> = request.messages.iter().flat_map(ids).collect();
        let mut calls = Vec::new();
        for said in self.calls.into_iter().filter(|call| !call.name.is_empty()) {
            // A missing id, or one that was used, would make two results one.
            let id = match said.id.is_empty() || used.contains(&said.id) {
                true => (used.len() + 1..).map(|number| format!("call-{number}")).find(|id| !used.contains(id)),
                false => Some(said.id),
            }
            .unwrap_or_default();
            used.push(id.clone());
            let (name, arguments) = (aliases.name(&said.name).to_owned(), arguments(&said.arguments));
            calls.push(ToolCall { id, name, arguments });
        }
        let finish = match self.finish.as_deref().unwrap_or_default() {
            "" | "stop" | "end_turn" | "stop_sequence" | "tool_calls" | "function_call" | "tool_use" => {
                if calls.is_empty() { Finish::Stop } else { Finish::Calls }
            }
            "length" | "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "content_filter" | "refusal" => Finish::Filtered,
            other => Finish::Other(other.chars().take(64).collect()),
        };
        Reply { text: Some(self.text).filter(|text| !text.is_empty()), calls, finish, usage: self.usage }
    }
}

fn ids(message: &Message) -> Vec<String> {
    match message {
        Message::Assistant { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
        Message::User { .. } | Message::Result { .. } => Vec::new(),
    }
}

/// The inputs that a model wrote as a text; some write a text within the text.
pub(crate) fn arguments(text: &str) -> Arguments {
    let broken = || Arguments::Broken(text.chars().take(BROKEN_CHARS_MAX).collect());
    if text.trim().is_empty() {
        return Arguments::Json(Value::Object(Map::new()));
    }
    if text.len() > ARGUMENTS_BYTES_MAX {
        return broken();
    }
    match serde_json::from_str(text) {
        Ok(Value::String(within)) => match serde_json::from_str(&within) {
            Ok(value @ Value::Object(_)) => Arguments::Json(faithful(value)),
            _ => broken(),
        },
        Ok(Value::Null) => Arguments::Json(Value::Object(Map::new())),
        Ok(value) => Arguments::Json(faithful(value)),
        Err(_) => broken(),
    }
}

/// The inputs as the text they were.
pub(crate) fn written(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Json(value) => value.to_string(),
        Arguments::Broken(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn inputs_are_read_as_models_write_them() {
        for (text, value) in [
            ("", json!({})),
            ("null", json!({})),
            ("{\"id\": 42}", json!({"id": 42})),
            ("\"{\\\"id\\\": 42}\"", json!({"id": 42})),
            ("{\"id\": 18446744073709551615}", json!({"id": "18446744073709551615"})),
            ("[1]", json!([1])),
        ] {
            assert_eq!(arguments(text), Arguments::Json(value), "{text}");
        }
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(ARGUMENTS_BYTES_MAX));
        for text in ["{\"id\": ", "{'id': 42}", "\"id\"", long.as_str()] {
            assert!(matches!(arguments(text), Arguments::Broken(_)), "{text}");
        }
    }
}
