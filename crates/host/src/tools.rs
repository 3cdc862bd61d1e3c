//! OAS Agent, capabilities: the kinds of tools that an operator can name.

mod agent;
mod anp;
mod command;
mod fixed;
mod group;
mod mcp;
mod remote;

use crate::ConfigurationError;
use crate::credentials::{Identity, Vault, World};
use crate::definition::Definition;
use crate::fields::Fields;
use crate::name::{is_name, tool_name};
use crate::tool::{Hand, Remarks, TIME_DEFAULT, TIME_MAX, Tool};
use crate::toolbox::{Means, Shelf, Taken};
pub use agent::{RemoteAgent, remote_agent, remote_agent_of, remote_agent_since};
pub use anp::{Skill, Visits};
use command::Command;
use fixed::Fixed;
pub(crate) use fixed::covers;
use json::{Pointer, Value, json};
use remote::Remote;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The bounds of tools that others bring, by name.
pub(crate) fn bounds() -> impl Iterator<Item = (&'static str, u64)> {
    let ours = [
        ("remote_document_bytes", agent::DOCUMENT_BYTES_MAX as u64),
        ("described_operations", anp::OPERATIONS_MAX as u64),
    ];
    ours.into_iter().chain(mcp::bounds())
}

/// An entry of `tools`.
pub(crate) struct Entry {
    name: String,
    at: Pointer,
    time: Duration,
    remarks: Remarks,
    kind: Kind,
}

enum Kind {
    /// One tool, ready to be called.
    One(Definition, Arc<dyn Hand>),
    /// Some behind HTTP.
    Remote(Vec<(Definition, Remote)>),
    /// Those of a server.
    Mcp(Arc<mcp::Server>),
    /// Those of an agent that is known by its description.
    Anp(Arc<anp::Described>),
}

/// An entry whose tools come and go; dropped, its server ends.
pub(crate) struct Watched {
    task: JoinHandle<()>,
    ready: Arc<Notify>,
}

impl Watched {
    /// Waits until its tools were read, or could not be.
    pub(crate) async fn ready(&self) {
        // A server that takes longer is waited for by nobody but its watcher.
        let _ = timeout(mcp::BEGIN, self.ready.notified()).await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Entry {
    pub(crate) fn read(name: &str, value: &Value, at: &Pointer, world: &World<'_>) -> Result<Self, ConfigurationError> {
        if !is_name(name) {
            return Err(ConfigurationError::new(
                at,
                "a name has lower case letters, digits, `-` and `.`, to 253 of them",
            ));
        }
        let fields = Fields::of(value, at)?;
        let time = fields.seconds("timeout_seconds", TIME_DEFAULT, TIME_MAX)?;
        let remarks = remarks(&fields)?;
        let kind = match fields.needed_text("kind")? {
            "static" => Kind::One(definition(name, &fields)?, Arc::new(Fixed::read(&fields)?)),
            "command" => Kind::One(definition(name, &fields)?, Arc::new(Command::read(&fields, world)?)),
            "json-rpc" => Kind::Remote(vec![(definition(name, &fields)?, Remote::rpc(&fields)?)]),
            "http-json" => {
                let (mut definition, remote) = (definition(name, &fields)?, Remote::json(&fields)?);
                definition.input = remote.chosen_inputs().unwrap_or(definition.input);
                Kind::Remote(vec![(definition, remote)])
            }
            "openapi" => Kind::Remote(operations(name, &fields, world)?),
            "mcp" => Kind::Mcp(Arc::new(mcp::Server::read(name, &fields, world, time, &remarks)?)),
            "anp" => Kind::Anp(Arc::new(anp::Described::read(name, &fields, time, &remarks)?)),
            _ => {
                return Err(fields.wrong(
                    "kind",
                    "known kinds are `mcp`, `openapi`, `anp`, `json-rpc`, `http-json`, `command` and `static`",
                ));
            }
        };
        fields.finish()?;
        Ok(Self { name: name.to_owned(), at: at.clone(), time, remarks, kind })
    }

    fn put(&self, shelf: &Shelf, definition: &Definition, hand: Arc<dyn Hand>) -> Result<(), ConfigurationError> {
        if shelf.has(&definition.name) {
            let taken = Taken(definition.name.clone());
            return Err(ConfigurationError::new(&self.at, taken.to_string()));
        }
        let tool = Tool::new(definition.clone(), &self.name, hand).within(self.time).remarked(&self.remarks);
        shelf.put(tool).map_err(|taken| ConfigurationError::new(&self.at, taken.to_string()))
    }

    /// Brings its tools to the shelf, and has somebody watch them where they come and go.
    pub(crate) fn open(
        &self,
        shelf: &Arc<Shelf>,
        means: &Means,
        vault: &Vault,
    ) -> Result<Option<Watched>, ConfigurationError> {
        match &self.kind {
            Kind::One(definition, hand) => self.put(shelf, definition, Arc::clone(hand)).map(|()| None),
            Kind::Remote(tools) => {
                for (definition, remote) in tools {
                    self.put(shelf, definition, Arc::new(remote.reached(&means.http)))?;
                }
                Ok(None)
            }
            Kind::Mcp(server) => {
                let listing = match server.list_as() {
                    None => None,
                    Some(name) => vault
                        .credential(&self.name, Identity::Static(name))
                        .map_err(|missing| ConfigurationError::new(&self.at.child("list_as"), missing.to_string()))?,
                };
                let (connected, ready) = (mcp::Connected::new(server, &means.http), Arc::new(Notify::new()));
                let task = tokio::spawn(connected.watch(Arc::clone(shelf), listing, Arc::clone(&ready)));
                Ok(Some(Watched { task, ready }))
            }
            Kind::Anp(described) => {
                let nobody = || ConfigurationError::new(&self.at, "nobody goes to other agents from here");
                let visits = means.visits.clone().ok_or_else(nobody)?;
                let (described, ready) = (Arc::clone(described), Arc::new(Notify::new()));
                let task = tokio::spawn(described.watch(Arc::clone(shelf), visits, Arc::clone(&ready)));
                Ok(Some(Watched { task, ready }))
            }
        }
    }
}

/// What the operator says of every tool of an entry.
fn remarks(fields: &Fields<'_>) -> Result<Remarks, ConfigurationError> {
    let consent = fields.text("consent")?;
    if consent.is_some_and(|link| !link.starts_with("https://")) {
        return Err(fields.wrong("consent", "consent is given at an https address"));
    }
    Ok(Remarks {
        text_property: fields.text("guardrail_property")?.map(str::to_owned),
        writes: fields.flag("writes", false)?,
        after: fields.texts("after")?,
        consent: consent.map(str::to_owned),
    })
}

/// The operations of a document, named after the entry and, where there is one for it, by `rename`.
fn operations(
    name: &str,
    fields: &Fields<'_>,
    world: &World<'_>,
) -> Result<Vec<(Definition, Remote)>, ConfigurationError> {
    let (mut tools, idempotent) = (Vec::new(), fields.texts("idempotent")?);
    let renames = fields.entries("rename")?;
    for (operation, remote) in remote::operations(fields, world.folder)? {
        let renamed =
            renames.iter().find(|(theirs, ..)| *theirs == operation.name).and_then(|(_, ours, _)| ours.as_str());
        let ours = renamed.filter(|ours| is_name(ours)).map(str::to_owned).or_else(|| tool_name(name, &operation.name));
        let unnamed = || fields.wrong("rename", "an operation has a name that cannot be written here; give it one");
        let definition = Definition {
            name: ours.ok_or_else(unnamed)?,
            description: operation.description.clone().unwrap_or_default(),
            input: remote::inputs(&operation),
            output: operation.result.clone(),
            idempotent: idempotent.contains(&operation.name),
        };
        tools.push((definition, remote));
    }
    Ok(tools)
}

/// What the operator says of a tool that says nothing itself.
fn definition(name: &str, fields: &Fields<'_>) -> Result<Definition, ConfigurationError> {
    let definition = Definition {
        name: name.to_owned(),
        description: fields.needed_text("description")?.to_owned(),
        input: fields.value("input").cloned().unwrap_or_else(|| json!({"type": "object"})),
        output: fields.value("output").cloned(),
        idempotent: fields.flag("idempotent", false)?,
    };
    match definition.check() {
        Ok(_) => Ok(definition),
        Err(rejected) => Err(fields.wrong("input", rejected.to_string())),
    }
}
