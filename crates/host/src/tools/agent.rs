//! OAS Names & References, remote agents: an agent of another server as a tool of this one.
//!
//! The reference is the address of its document, with https in place of `oagent`. Its description is what a model is told;
//! a call begins an engagement there, follows the 303 on the same origin, and asks until it has ended.
//!
//! INVARIANT: nothing but the origin of the reference is ever asked, and the credential goes nowhere else.

use super::remote::failed;
use crate::definition::Definition;
use crate::http::{Http, Request, Response};
use crate::name::is_name;
use crate::tool::{Call, Hand, OUTPUT_BYTES_MAX, Tool, ToolError};
use crate::{Pending, Secret};
use json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use url::Url;

/// Bytes of the document of an agent.
pub(super) const DOCUMENT_BYTES_MAX: usize = 512 * 1024;

/// How long the document may take.
const DOCUMENT_TIME: Duration = Duration::from_secs(10);

/// The first pause between two questions about the state; each is twice as long as the last.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest pause, also where the other side wants a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The shortest time after which a document is read again, also where its server wants a shorter one.
const FRESH_MIN: Duration = Duration::from_secs(60);

/// The time after which a document is read again where its server says nothing.
const FRESH: Duration = Duration::from_secs(300);

/// The longest time after which a document is read again.
const FRESH_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Bytes of what a server calls a version.
const ETAG_BYTES_MAX: usize = 256;

/// The kind that every document has.
const KIND: &str = "openagentspec:v1/agent";

/// An agent elsewhere.
struct Remote {
    url: Url,
    http: Arc<dyn Http>,
}

/// An agent of another server, as its document describes it now.
#[derive(Debug)]
pub struct RemoteAgent {
    /// The agent as a tool; its credentials are filed under the reference.
    pub tool: Tool,
    /// The document, byte for byte.
    pub document: Vec<u8>,
    /// What its server calls this version.
    pub etag: Option<String>,
    /// For how long it is relied on.
    pub fresh: Duration,
}

/// Fetches the document of `oagent://host/…/name` and makes a tool of the agent.
pub async fn remote_agent(reference: &str, http: &Arc<dyn Http>) -> Result<RemoteAgent, ToolError> {
    let absent = || ToolError::Protocol("the other server does not send the document".to_owned());
    remote_agent_since(reference, http, None).await?.ok_or_else(absent)
}

/// The same for somebody who has the version of this name; nothing when that is still the one.
pub async fn remote_agent_since(
    reference: &str,
    http: &Arc<dyn Http>,
    etag: Option<&str>,
) -> Result<Option<RemoteAgent>, ToolError> {
    let (url, _) = address(reference).ok_or_else(no_reference)?;
    let mut headers = vec![("accept".to_owned(), "application/yaml".to_owned())];
    headers.extend(etag.map(|etag| ("if-none-match".to_owned(), etag.to_owned())));
    let (method, url) = ("GET".to_owned(), url.to_string());
    let request = Request { method, url, headers, body: None, time: DOCUMENT_TIME, bytes_max: DOCUMENT_BYTES_MAX };
    let response = http.send(request).await.map_err(failed)?;
    match response.status {
        200 => {}
        304 if etag.is_some() => return Ok(None),
        _ => return Err(ToolError::Unavailable("the document of the agent is not there".to_owned())),
    }
    let etag = response.header("etag").filter(|etag| etag.len() <= ETAG_BYTES_MAX).map(str::to_owned);
    let fresh = freshness(response.header("cache-control"));
    let document = response.whole().await.map_err(failed)?;
    let tool = remote_agent_of(reference, http, &document)?;
    Ok(Some(RemoteAgent { tool, document, etag, fresh }))
}

/// The same from a document that was kept.
pub fn remote_agent_of(reference: &str, http: &Arc<dyn Http>, document: &[u8]) -> Result<Tool, ToolError> {
    let (url, name) = address(reference).ok_or_else(no_reference)?;
    let wrong = |words: &str| ToolError::Protocol(words.to_owned());
    let bytes = document;
    let document = description::parse_yaml(bytes).map_err(|_| wrong("the document of the agent cannot be read"))?;
    let text = |member: &str| document.root().get(member).and_then(|value| value.as_str());
    if text("kind") != Some(KIND) || text("name") != Some(name.as_str()) {
        return Err(wrong("the document is not the one of the agent that the reference names"));
    }
    let definition = Definition {
        // Its name may be taken by something of this server; the whole reference never is.
        name: reference.to_owned(),
        description: text("description").ok_or_else(|| wrong("the document has no description"))?.to_owned(),
        input: json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
            "additionalProperties": false}),
        output: None,
        idempotent: false,
    };
    let remote = Remote { url, http: Arc::clone(http) };
    // What the agent does is said by the rest of its document, which no model here is shown.
    Ok(Tool::new(definition, reference, Arc::new(remote)).of_document(bytes))
}

fn no_reference() -> ToolError {
    ToolError::Unknown("a remote agent is `oagent://host/path/name`, without user, query and fragment".to_owned())
}

/// How long a server wants its document to be relied on, within our own bounds.
fn freshness(cache_control: Option<&str>) -> Duration {
    let said = cache_control.into_iter().flat_map(|said| said.split(',')).map(str::trim);
    let seconds = said.filter_map(|word| match word.split_once('=') {
        Some(("max-age", seconds)) => seconds.parse().ok(),
        None if word == "no-cache" || word == "no-store" => Some(0),
        _ => None,
    });
    seconds.min().map_or(FRESH, Duration::from_secs).clamp(FRESH_MIN, FRESH_MAX)
}

/// The address behind a reference, and the name of the agent.
fn address(reference: &str) -> Option<(Url, String)> {
    let url = Url::parse(&format!("https://{}", reference.strip_prefix("oagent://")?)).ok()?;
    let bare = url.username().is_empty() && url.password().is_none();
    let name = url.path_segments()?.next_back()?.to_owned();
    (bare && url.query().is_none() && url.fragment().is_none() && is_name(&name)).then_some((url, name))
}

impl Remote {
    async fn ask(
        &self,
        method: &str,
        url: &Url,
        call: &Call<'_>,
        body: Option<Vec<u8>>,
    ) -> Result<Response, ToolError> {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
            headers.push(("idempotency-key".to_owned(), call.id.to_owned()));
        }
        let credential = call.credential.map(Secret::expose);
        headers.extend(credential.map(|secret| ("authorization".to_owned(), format!("Bearer {secret}"))));
        let (method, url) = (method.to_owned(), url.to_string());
        let request = Request { method, url, headers, body, time: call.time, bytes_max: OUTPUT_BYTES_MAX };
        self.http.send(request).await.map_err(failed)
    }

    /// Begins an engagement and gives the place of its state.
    async fn begin(&self, call: &Call<'_>) -> Result<Url, ToolError> {
        let body = call.inputs.to_string().into_bytes();
        let response = self.ask("POST", &self.url, call, Some(body)).await?;
        match response.status {
            303 => {}
            400..500 => return Err(ToolError::failed("the other server refuses to begin an engagement")),
            _ => return Err(ToolError::Lost("the other server does not say where the engagement is".to_owned())),
        }
        let elsewhere = || ToolError::Lost("the engagement is said to be on another server".to_owned());
        let location = response.header("location").and_then(|location| self.url.join(location).ok());
        location.filter(|location| location.origin() == self.url.origin()).ok_or_else(elsewhere)
    }

    /// Asks for the state until the engagement has ended.
    async fn follow(&self, place: &Url, call: &Call<'_>) -> Result<Value, ToolError> {
        let mut pause = PAUSE;
        loop {
            let response = match self.ask("GET", place, call, None).await {
                // It began, whatever happens to a question about it.
                Err(ToolError::Unavailable(words)) => return Err(ToolError::Lost(words)),
                asked => asked?,
            };
            if response.status != 200 {
                return Err(ToolError::Lost("the state of the engagement cannot be read".to_owned()));
            }
            let wanted = response.header("retry-after").and_then(|text| text.trim().parse().ok());
            let bytes = response.whole().await.map_err(failed)?;
            let unread = |_| ToolError::Protocol("the state of the engagement is no JSON".to_owned());
            let state: Value = serde_json::from_slice(&bytes).map_err(unread)?;
            if let Some(outcome) = outcome(&state) {
                return outcome;
            }
            sleep(wanted.map_or(pause, Duration::from_secs).min(PAUSE_MAX)).await;
            pause = pause.saturating_mul(2);
        }
    }
}

/// What became of an engagement; nothing while it goes on.
fn outcome(state: &Value) -> Option<Result<Value, ToolError>> {
    match state.get("status").and_then(Value::as_str) {
        // Somebody there agrees, or says what became of a call; until then it is not over.
        Some("running" | "awaiting-review" | "outcome-unknown") => None,
        Some("completed") => {
            let exposed = state.pointer("/result/exposes").and_then(Value::as_object).cloned();
            let mut outputs: Map = exposed.unwrap_or_default();
            outputs.insert("text".to_owned(), state.pointer("/result/text").cloned().unwrap_or(json!("")));
            Some(Ok(Value::Object(outputs)))
        }
        Some("failed") => {
            let words = state.pointer("/error/message").and_then(Value::as_str).unwrap_or("the agent failed");
            Some(Err(ToolError::failed(words)))
        }
        Some("cancelled") => Some(Err(ToolError::failed("the engagement was cancelled"))),
        Some("awaiting-input") => Some(Err(ToolError::failed("the agent asks back, and nobody answers there"))),
        Some("awaiting-credentials") => Some(Err(ToolError::failed("the agent lacks credentials of the user"))),
        _ => Some(Err(ToolError::Protocol("the engagement is in a state that nobody knows".to_owned()))),
    }
}

impl Hand for Remote {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let place = self.begin(&call).await?;
            self.follow(&place, &call).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_relied_on_as_long_as_its_server_says_within_bounds() {
        for (said, seconds) in [
            (None, 300),
            (Some("no-cache"), 60),
            (Some("max-age=1"), 60),
            (Some("public, max-age=900"), 900),
            (Some("max-age=900, no-cache"), 60),
            (Some("max-age=99999999"), 86_400),
            (Some("max-age=soon"), 300),
        ] {
            assert_eq!(freshness(said), Duration::from_secs(seconds), "{said:?}");
        }
    }

    #[test]
    fn a_reference_is_remote_only_with_a_path_and_nothing_else() {
        for (reference, expected) in [
            ("oagent://host.example/agents/hr-agent", Some(("https://host.example/agents/hr-agent", "hr-agent"))),
            ("oagent://host.example:8443/a.b", Some(("https://host.example:8443/a.b", "a.b"))),
            ("oagent://hr-agent", None),
            ("oagent://u@host.example/a", None),
            ("oagent://host.example/a/", None),
            ("oagent://host.example/a?b", None),
            ("oagent://host.example/a#b", None),
            ("oagent://host.example/A_b", None),
            ("https://host.example/a", None),
        ] {
            let found = address(reference).map(|(url, name)| (url.to_string(), name));
            let expected = expected.map(|(url, name)| (url.to_owned(), name.to_owned()));
            assert_eq!(found, expected, "{reference}");
        }
    }
}
