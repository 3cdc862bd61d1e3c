//! `rialto call`: an agent of somebody else, called as its description says (ADP Interface, ANP-02).

use super::describe::{demanded, operation_line, operation_value};
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::keys::{self, KeyChoice};
use crate::nearest::nearest;
use crate::output::text::{json_line, json_lines, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, paint};
use json::{Document, Limits, Pointer, Value, json};
use node::call::{Agent, Answer, Argument, CallError, Credentials, Fit, Given, Offer, Order, Visitor};
use node::{Clock, Door, DoorPolicy};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trust::{Did, DidUrl, Method, SecretKey};

/// Call an agent: read its description, prove who you are, ask, and check the answer
///
/// Without a method, what the agent offers is listed. Interfaces in OpenRPC, JSON-RPC, OpenAPI and in words are
/// understood. What you give is held against the schemas before it is sent, and so is what comes back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto call https://ferry.example/agents/tides/ad.json
  rialto call ferry.example high_water harbour=Oban day=2026-03-01
  rialto call did:wba:ferry.example high_water '{\"harbour\": \"Oban\"}' --did did:wba:me.example
  rialto call ferry.example book_berth @booking.json length:=12.5 --agree

NAME=VALUE is what the method's schema takes a text for; NAME:=JSON is JSON; {…} and @FILE are objects of several.
Exits with 1 when the agent refuses, or when the answer breaks the schema that it promised.")]
pub(crate) struct Call {
    /// The address of a description, a domain that lists one agent, or a DID
    agent: String,

    /// The operation
    method: Option<String>,

    /// What is given to it: NAME=VALUE, NAME:=JSON, a JSON object, or @FILE with one
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// Call as this did:wba, with the key of its document; after a `#` the name of the key [default: key-1]
    #[arg(long, value_name = "DID", env = "RIALTO_DID")]
    did: Option<String>,

    #[command(flatten)]
    key: KeyChoice,

    /// Sign with the secp256k1 key in this file
    #[arg(long, value_name = "FILE", conflicts_with = "key", requires = "did")]
    secp256k1: Option<PathBuf>,

    /// Send the older header of did:wba, for servers that know no other; it covers neither address nor body
    #[arg(long, requires = "did")]
    legacy: bool,

    /// The name or the `@id` of the interface, where several have the method
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,

    /// Say that a person agrees, where the description wants that
    #[arg(long)]
    agree: bool,

    /// Seconds that each exchange may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// Also ask loopback and private addresses; for test networks
    #[arg(long)]
    private_networks: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Call {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let policy = DoorPolicy {
            private_networks: self.private_networks,
            total: Duration::from_secs(self.seconds),
            ..DoorPolicy::default()
        };
        let door = Door::new(policy).map_err(|error| Failure::files(error.to_string()))?;
        let visitor = Visitor::new(Arc::new(door), Clock::System, self.credentials()?);
        let arguments = self.arguments.iter().map(|text| argument(text)).collect::<Result<Vec<_>, _>>()?.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
        let outcome = runtime.block_on(async {
            let agent = visitor.find(&self.agent).await.map_err(|error| failed(&error))?;
            let Some(method) = self.method.clone() else {
                let (offers, unread) = visitor.offers(&agent).await;
                return self.list(&agent, &offers, &unread);
            };
            let order = Order { method, interface: self.interface.clone(), arguments, is_agreed: self.agree };
            let answer = visitor.call(&agent, &order).await.map_err(|error| failed(&error))?;
            self.tell(&agent, &order.method, &answer)
        });
        // A name that the system still looks up would hold us up for nothing.
        runtime.shutdown_timeout(Duration::ZERO);
        outcome
    }

    /// As whom we call.
    fn credentials(&self) -> Result<Option<Credentials>, Failure> {
        let Some(text) = &self.did else { return Ok(None) };
        let wrong = |error: trust::DidError| Failure::usage(format!("--did: {error}"));
        let named = match (text.contains('#'), text.strip_prefix("did:key:")) {
            (true, _) => text.clone(),
            (false, Some(key)) => format!("{text}#{key}"),
            (false, None) => format!("{text}#key-1"),
        };
        let key_id = DidUrl::parse(&named).map_err(wrong)?;
        if key_id.did().method() == Method::Other {
            return Err(Failure::usage("--did: agents know did:wba, did:web and did:key only"));
        }
        let key = match &self.secp256k1 {
            Some(file) if !file.exists() => {
                return Err(Failure::files(format!("there is no key at `{}`", file.display())));
            }
            Some(file) => keys::secp256k1(file)?,
            None => SecretKey::from(self.key.stored()?),
        };
        Ok(Some(Credentials { key_id, key, legacy: self.legacy }))
    }

    fn tell(&self, agent: &Agent, method: &str, answer: &Answer) -> Result<Exit, Failure> {
        let broken = match &answer.fit {
            Fit::Breaks(refusal) => Some(refusal),
            Fit::Fits | Fit::Unsaid | Fit::Unchecked => None,
        };
        if self.json {
            let told = json!({
                "agent": agent.reading.agent.name, "did": did_of(agent), "description": agent.url,
                "bound": agent.is_bound, "method": method, "url": answer.url,
                "proved": answer.proved.as_ref().map(Did::as_str), "fit": word(&answer.fit),
                "violation": broken.map(|refusal| json!({"at": refusal.at.as_str(), "detail": refusal.detail})),
                "result": answer.result,
            });
            output::print(&json_line(&json::canonical_value(&told)))?;
            return Ok(if broken.is_some() { Exit::No } else { Exit::Fine });
        }
        let shown_result = match &answer.result {
            Value::String(text) => shown(text) + "\n",
            result => json_lines(&format!("{result:#}")),
        };
        output::print(&shown_result)?;
        let who = answer.proved.as_ref().map(|did| format!(" as {did}")).unwrap_or_default();
        output::note(&format!("{method} at {}{who}", answer.url));
        if !agent.is_bound {
            output::note("no DID stands behind the description; whoever holds its host answered");
        }
        match (&answer.fit, broken) {
            (_, Some(refusal)) => {
                let at = if refusal.at.as_str().is_empty() { "the root" } else { refusal.at.as_str() };
                output::say(&format!(
                    "{} the answer breaks its schema at {at}: {}",
                    paint(BAD, "error:"),
                    refusal.detail
                ));
                Ok(Exit::No)
            }
            (Fit::Unchecked, None) => {
                output::warn("the schema of the answer cannot be used, so nobody checked it");
                Ok(Exit::Fine)
            }
            _ => Ok(Exit::Fine),
        }
    }

    fn list(&self, agent: &Agent, offers: &[Offer], unread: &[(String, CallError)]) -> Result<Exit, Failure> {
        let code = if offers.is_empty() && !unread.is_empty() { Exit::No } else { Exit::Fine };
        if self.json {
            let offer = |offer: &Offer| {
                let operations: Vec<Value> = offer.definition.operations.iter().map(operation_value).collect();
                json!({
                    "interface": offer.interface.id, "name": offer.interface.name,
                    "format": offer.definition.format.name(), "access": demanded(&offer.access),
                    "operations": operations,
                })
            };
            let unread =
                unread.iter().map(|(at, error)| json!({"at": at, "code": error.code(), "message": error.to_string()}));
            let told = json!({
                "agent": agent.reading.agent.name, "did": did_of(agent), "description": agent.url,
                "bound": agent.is_bound, "interfaces": offers.iter().map(offer).collect::<Vec<_>>(),
                "unread": unread.collect::<Vec<_>>(),
            });
            output::print(&json_line(&json::canonical_value(&told)))?;
            return Ok(code);
        }
        let name = agent.reading.agent.name.as_deref().unwrap_or("an agent without a name");
        let bound = if agent.is_bound {
            paint(GOOD, "its DID stands behind it")
        } else {
            paint(WARN, "nobody stands behind it")
        };
        let did = did_of(agent).map(|did| format!(", {did}")).unwrap_or_default();
        let mut drawn = format!("{}{}; {bound}\n", paint(STRONG, shown(name)), shown(&did));
        for offer in offers {
            let name = offer.interface.name.as_deref().or(offer.definition.title.as_deref()).unwrap_or("an interface");
            let line = format!("{name}, {}; {}", offer.definition.format.name(), demanded(&offer.access));
            drawn.push_str(&format!("  {}\n", shown(&line)));
            drawn
                .extend(offer.definition.operations.iter().map(|operation| format!("  {}", operation_line(operation))));
        }
        for (at, error) in unread {
            drawn.push_str(&format!("  {} {}\n", paint(WARN, "unread:"), shown(&format!("{at}: {error}"))));
        }
        if offers.is_empty() {
            drawn.push_str(&format!("  {}\n", paint(DIM, "nothing that can be called")));
        }
        output::print(&drawn)?;
        Ok(code)
    }
}

fn did_of(agent: &Agent) -> Option<&str> {
    agent.reading.agent.did.as_ref().map(Did::as_str)
}

fn word(fit: &Fit) -> &'static str {
    match fit {
        Fit::Fits => "fits",
        Fit::Unsaid => "unsaid",
        Fit::Unchecked => "unchecked",
        Fit::Breaks(_) => "breaks",
    }
}

/// One argument of the command line, which may stand for several of the call.
fn argument(text: &str) -> Result<Vec<Argument>, Failure> {
    if text.starts_with('{') {
        return members(&Text::carried("the argument", text));
    }
    if let Some(file) = text.strip_prefix('@') {
        return members(&Text::read(Path::new(file))?);
    }
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        Failure::usage(format!("`{}` is no argument", shown(text)))
            .help("write NAME=VALUE, NAME:=JSON, a JSON object, or @FILE with one")
    })?;
    let (name, value) = match (name.strip_suffix(':'), value.strip_prefix('@')) {
        (Some(name), None) => (name, Given::Json(json_of(&Text::carried("the argument", value))?)),
        (Some(name), Some(file)) => (name, Given::Json(json_of(&Text::read(Path::new(file))?)?)),
        (None, _) => (name, Given::Text(value.to_owned())),
    };
    Ok(vec![Argument { name: name.to_owned(), value }])
}

fn json_of(text: &Text) -> Result<Value, Failure> {
    let document = Document::parse(&text.bytes, &Limits::DOCUMENT).map_err(|error| text.unreadable(error))?;
    Ok(document.root().to_value())
}

fn members(text: &Text) -> Result<Vec<Argument>, Failure> {
    match json_of(text)? {
        Value::Object(members) => {
            let argument = |(name, value)| Argument { name, value: Given::Json(value) };
            Ok(members.into_iter().map(argument).collect())
        }
        _ => Err(Failure::usage(format!("`{}` is no JSON object", shown(&text.name)))),
    }
}

/// What went wrong, with what may help.
fn failed(error: &CallError) -> Failure {
    let at = match error {
        CallError::Argument { at, .. } => at.clone(),
        _ => Pointer::root(),
    };
    let failure = match error {
        CallError::Unreached { .. } | CallError::Absent { .. } | CallError::Fault(_) => {
            Failure::files(error.to_string())
        }
        CallError::Answered { said, .. } => {
            let words = said.get("message").and_then(Value::as_str).map(str::to_owned);
            let words = words.unwrap_or_else(|| if said.is_null() { String::new() } else { said.to_string() });
            let tail = if words.is_empty() { String::new() } else { format!(": {words}") };
            Failure::refused(format!("{error}{tail}"))
        }
        _ => Failure::refused(error.to_string()),
    };
    let meant = match error {
        CallError::Method { method: wrong, known } | CallError::Unknown { name: wrong, known, .. } => {
            let near = nearest(wrong, known.iter().map(String::as_str), 3);
            match (near.is_empty(), known.is_empty()) {
                (false, _) => Some(format!("did you mean {}?", near.join(" or "))),
                (true, false) => {
                    Some(format!("there is {}", known.iter().take(20).cloned().collect::<Vec<_>>().join(", ")))
                }
                (true, true) => None,
            }
        }
        CallError::Ambiguous { agents, .. } => {
            Some(format!("name one of {}", agents.iter().take(20).cloned().collect::<Vec<_>>().join(", ")))
        }
        _ => None,
    };
    failure.coded(error.code(), &at).help(meant.unwrap_or_else(|| error.advice().to_owned()))
}
