//! OAS Server, ADP Interface: hosted agents as others find and call them: described beside the node's own agent, called
//! by JSON-RPC, and as tools of MCP.
//!
//! However somebody calls, an engagement begins; what is answered is its result, or its name while it is under way.

use super::Engagements;
use crate::agents::{AgentCall, Answering, Answers, HostedAgent};
use crate::refusal::{Class, Error, Refusal};
use host::{Offered, Pending, Served};
use json::{Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a caller waits for a result before it is told where to look.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// Characters of a document's digest that tell its versions apart.
const VERSION_CHARS: usize = 12;

impl Engagements {
    /// Introduces every agent whose name can stand in its addresses; the others are hosted all the same.
    pub(super) fn introduce(self: &Arc<Self>) {
        for resident in self.hosted.values() {
            let agent = &resident.agent;
            let introduced = HostedAgent {
                name: agent.name.to_string(),
                title: agent.name.to_string(),
                description: agent.description.clone(),
                version: agent.digest().chars().take(VERSION_CHARS).collect(),
                methods: vec![method(), more()],
                answers: Arc::new(Desk { engagements: Arc::downgrade(self), name: agent.name.to_string() }),
            };
            if let Err(refusal) = self.node.host(introduced) {
                tracing::warn!(agent = agent.name.as_str(), reason = refusal.detail, "an agent is not introduced");
            }
        }
    }

    /// Begins an engagement, or goes on with one, and waits for its result a while.
    async fn answer(self: &Arc<Self>, name: &str, caller: Option<&str>, text: &str) -> Result<Value, Error> {
        let id = self.begin(name, caller, text).await?;
        self.outcome(&id, caller).await
    }

    async fn outcome(self: &Arc<Self>, id: &str, caller: Option<&str>) -> Result<Value, Error> {
        self.wait(id, None, ANSWER_TIME).await?;
        let (state, _) = self.state(id, caller)?;
        Ok(state)
    }

    /// Answers the body of a POST of MCP, with the status of HTTP.
    pub async fn mcp(self: &Arc<Self>, caller: Option<&str>, body: &[u8]) -> (u16, Option<Value>) {
        let tools = Tools { engagements: Arc::clone(self), caller: caller.map(str::to_owned) };
        match host::serve_mcp(body, &tools).await {
            Served::Accepted => (202, None),
            Served::Answer(answer) => (200, Some(answer)),
            Served::Refused(refusal) => (400, Some(refusal)),
        }
    }
}

fn words(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn method() -> Value {
    json!({
        "name": "engage",
        "description": "Begins an engagement with the agent and answers with its state; ask `engagement` while it runs.",
        "params": [{"name": "text", "required": true, "schema": words("What the agent is asked.")}],
        "result": {"name": "state", "schema": {"type": "object"}},
    })
}

fn more() -> Value {
    json!({
        "name": "engagement",
        "description": "How an engagement of the caller stands; with `text`, says more to it first.",
        "params": [
            {"name": "id", "required": true, "schema": words("The name of the engagement.")},
            {"name": "text", "required": false, "schema": words("What else the agent is told.")},
        ],
        "result": {"name": "state", "schema": {"type": "object"}},
    })
}

/// Where calls of one agent arrive.
struct Desk {
    engagements: Weak<Engagements>,
    name: String,
}

impl Answers for Desk {
    fn call(&self, call: AgentCall) -> Answering<'_> {
        Box::pin(async move {
            let gone = || Refusal::new(Class::Unavailable, "overloaded", "the node is stopping");
            let engagements = self.engagements.upgrade().ok_or_else(gone)?;
            let params = call.params.root().to_value();
            let text = |name: &str| params.get(name).and_then(Value::as_str);
            let wrong = || Refusal::new(Class::InvalidInput, "engagement_input_invalid", "a text is missing");
            let caller = Some(call.caller.as_str());
            match call.method.as_str() {
                "engage" => engagements.answer(&self.name, caller, text("text").ok_or_else(wrong)?).await,
                _ => {
                    let id = text("id").ok_or_else(wrong)?;
                    if let Some(text) = text("text") {
                        engagements.say(id, caller, text).await?;
                    }
                    engagements.outcome(id, caller).await
                }
            }
        })
    }
}

/// The agents as tools, for one caller.
struct Tools {
    engagements: Arc<Engagements>,
    caller: Option<String>,
}

impl host::Agents for Tools {
    fn list(&self) -> Pending<'_, Vec<Offered>> {
        let offered = self.engagements.hosted().map(|resident| Offered {
            name: resident.agent.name.to_string(),
            description: resident.agent.description.clone(),
        });
        Box::pin(std::future::ready(offered.collect()))
    }

    fn call<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<Value, String>> {
        Box::pin(async move {
            let answered = self.engagements.answer(name, self.caller.as_deref(), text).await;
            let state = answered.map_err(|error| match error {
                Error::Refusal(refusal) => format!("{}: {}", refusal.code, refusal.detail),
                Error::Fault(_) | Error::Exposed(_) => "something broke at the node".to_owned(),
            })?;
            match state.get("error").and_then(|error| error.get("code")).and_then(Value::as_str) {
                Some(code) => Err(format!("the agent failed: {code}")),
                None => Ok(state),
            }
        })
    }
}
