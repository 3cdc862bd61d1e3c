//! `rialto reviews`: what waits for a decision at a node that hosts agents (OAS Agent, `require_review`).

use crate::failure::{Exit, Failure};
use crate::keys::KeyChoice;
use crate::output::table::{Align, Cell, Table};
use crate::output::text::{json_line, shown};
use crate::output::{self, GOOD, WARN, paint};
use crate::{chance, clock};
use json::{Document, Limits, Value, json};
use node::{Line, Message};
use std::time::Duration;
use trust::http::{COMPONENTS, Headers, Request, Signing, sign};

/// List, approve and reject what agents may only do when you agree
#[derive(clap::Subcommand)]
pub(crate) enum Reviews {
    /// Show what waits for your decision
    #[command(after_help = "Example:\n  rialto reviews list --to https://node.example")]
    List(List),
    /// Agree to a call exactly as it is shown
    #[command(after_help = "Example:\n  rialto reviews approve 3kQ")]
    Approve(Decide),
    /// Refuse a call; the agent is told no more than that
    #[command(after_help = "Example:\n  rialto reviews reject 3kQ --reason 'too dear'")]
    Reject(Decide),
}

/// Which node, and as whom.
#[derive(clap::Args)]
pub(crate) struct At {
    /// The address of the node: https, or http on this machine
    #[arg(long, value_name = "URL", env = "RIALTO_NODE", default_value = "http://127.0.0.1:7420")]
    to: String,

    #[command(flatten)]
    key: KeyChoice,
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    at: At,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Decide {
    /// The review's id, or the beginning of it
    id: String,

    /// Why, for the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    at: At,
}

/// How long an exchange may take, and the bytes of an answer.
const TIME: Duration = Duration::from_secs(60);
const BYTES_MAX: usize = Limits::OURS.bytes as usize;
/// Pages of a list that are asked for.
const PAGES_MAX: usize = 1_000;
/// Seconds for which a signed request counts.
const WINDOW: i64 = 60;

impl Reviews {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(),
            Self::Approve(decide) => decide.run(true),
            Self::Reject(decide) => decide.run(false),
        }
    }
}

impl List {
    fn run(self) -> Result<Exit, Failure> {
        let reviews = self.at.reviews()?;
        if self.json {
            let listed = Value::Array(reviews);
            output::print(&json_line(&json::canonical_value(&listed)))?;
            return Ok(Exit::Fine);
        }
        let headings = [
            ("review", Align::Left),
            ("agent", Align::Left),
            ("stage", Align::Left),
            ("until", Align::Left),
            ("call", Align::Left),
        ];
        let mut table = Table::new(0, &headings);
        for review in &reviews {
            let text = |name: &str| shown(review.get(name).and_then(Value::as_str).unwrap_or_default());
            let row = [text("id"), text("agent"), text("stage"), text("expires_at"), subject(review)];
            table.row(row.into_iter().map(Cell::from).collect());
        }
        output::print(&if reviews.is_empty() { "nothing waits\n".to_owned() } else { table.draw(output::width()) })?;
        Ok(Exit::Fine)
    }
}

/// What a decision is about: the call, and where its output is judged what came of it, all of it.
pub(crate) fn subject(review: &Value) -> String {
    let capability = review.get("capability").and_then(Value::as_str).unwrap_or_default();
    let inputs = review.get("inputs").map(ToString::to_string).unwrap_or_default();
    let call = format!("{capability} {inputs}");
    if review.get("stage").and_then(Value::as_str) != Some("output") {
        return shown(&call);
    }
    let outputs = review.get("view").and_then(|view| view.get("recent")?.get(capability)?.get("outputs"));
    match outputs {
        Some(outputs) => shown(&format!("{call} gave {outputs}")),
        None => shown(&format!("{call} gave nothing")),
    }
}

impl Decide {
    fn run(self, approve: bool) -> Result<Exit, Failure> {
        let reviews = self.at.reviews()?;
        let text = |review: &Value, name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut fitting = reviews.iter().filter(|review| {
            let id = text(review, "id");
            !id.is_empty() && id.starts_with(&self.id)
        });
        let (Some(review), None) = (fitting.next(), fitting.next()) else {
            return Err(Failure::refused(format!("`{}` is not the beginning of exactly one review", self.id))
                .help("`rialto reviews list` shows what waits"));
        };
        let decision = if approve { "approve" } else { "reject" };
        let mut body = json!({"decision": decision, "digest": text(review, "digest")});
        if let (Some(reason), Some(members)) = (&self.reason, body.as_object_mut()) {
            members.insert("reason".to_owned(), json!(reason));
        }
        let path = format!("/engagements/{}/reviews/{}", text(review, "engagement"), text(review, "id"));
        self.at.exchange("POST", &path, Some(&body))?;
        let done = if approve { paint(GOOD, "approved") } else { paint(WARN, "rejected") };
        let (capability, agent) = (shown(&text(review, "capability")), shown(&text(review, "agent")));
        output::print(&format!("{done} {capability} of {agent}\n"))?;
        Ok(Exit::Fine)
    }
}

impl At {
    fn reviews(&self) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut path = "/reviews".to_owned();
        // Whoever answers with pages for ever is not listened to for ever.
        for _ in 0..PAGES_MAX {
            let listed = self.exchange("GET", &path, None)?;
            all.extend(listed.get("reviews").and_then(Value::as_array).into_iter().flatten().cloned());
            match listed.get("next").and_then(Value::as_str) {
                Some(next) => path = format!("/reviews?after={next}"),
                None => break,
            }
        }
        Ok(all)
    }

    /// Sends a request that our key signs.
    fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let (key, body) = (self.key.stored()?, body.map(Value::to_string));
        let (url, keyid, nonce) =
            (format!("{}{path}", self.to.trim_end_matches('/')), key.key_id().to_string(), chance::uuid()?);
        let bytes = body.as_deref().map_or(b"".as_slice(), str::as_bytes);
        let request = Request { method, target: &url, headers: Headers::new(&[]), body: bytes };
        let (created, key) = (clock::now().seconds(), key.into());
        let signing = Signing { key: &key, keyid: &keyid, created, expires: created + WINDOW, nonce: &nonce };
        let mut headers = sign(&request, &signing, &COMPONENTS);
        headers.push(("content-type", "application/json".to_owned()));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let message = Message { method, url: &url, headers: &headers, body: body.as_deref().map(str::as_bytes) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
        let line = Line::new(TIME, BYTES_MAX).map_err(|error| Failure::files(error.to_string()))?;
        let reply = runtime.block_on(line.exchange(&message));
        let reply = reply.map_err(|error| Failure::files(format!("{error} at {}", self.to)))?;
        let said = Document::parse(&reply.body, &Limits::OURS).map(|document| document.root().to_value());
        let said = said.map_err(|_| Failure::files("the node's answer is not understood"))?;
        match reply.status {
            200 | 303 => Ok(said),
            _ => {
                let told = said.pointer("/error/message").and_then(Value::as_str).unwrap_or("the node refuses");
                Err(Failure::refused(shown(told)))
            }
        }
    }
}
