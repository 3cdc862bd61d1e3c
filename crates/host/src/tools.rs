//! OAS Agent, capabilities: the kinds of tools that an operator can name.

mod command;
mod fixed;
mod group;
mod mcp;

use crate::ConfigurationError;
use crate::credentials::{Identity, Vault, World};
use crate::definition::Definition;
use crate::fields::Fields;
use crate::http::Http;
use crate::name::is_name;
use crate::tool::{Hand, TIME_DEFAULT, TIME_MAX, Tool};
use crate::toolbox::Shelf;
use command::Command;
use fixed::Fixed;
pub(crate) use fixed::covers;
use json::{Pointer, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// An entry of `tools`.
pub(crate) struct Entry {
    name: String,
    at: Pointer,
    time: Duration,
    text_property: Option<String>,
    kind: Kind,
}

enum Kind {
    /// One tool, ready to be called.
    One(Definition, Arc<dyn Hand>),
    /// Those of a server.
    Mcp(Arc<mcp::Server>),
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
        let text_property = fields.text("guardrail_property")?.map(str::to_owned);
        let kind = match fields.needed_text("kind")? {
            "static" => Kind::One(definition(name, &fields)?, Arc::new(Fixed::read(&fields)?)),
            "command" => Kind::One(definition(name, &fields)?, Arc::new(Command::read(&fields, world)?)),
            "mcp" => Kind::Mcp(Arc::new(mcp::Server::read(name, &fields, world, time)?)),
            _ => return Err(fields.wrong("kind", "known kinds are `mcp`, `command` and `static`")),
        };
        fields.finish()?;
        Ok(Self { name: name.to_owned(), at: at.clone(), time, text_property, kind })
    }

    /// Brings its tools to the shelf, and has somebody watch them where they come and go.
    pub(crate) fn open(
        &self,
        shelf: &Arc<Shelf>,
        http: &Arc<dyn Http>,
        vault: &Vault,
    ) -> Result<Option<Watched>, ConfigurationError> {
        match &self.kind {
            Kind::One(definition, hand) => {
                let tool = Tool::new(definition.clone(), &self.name, Arc::clone(hand))
                    .within(self.time)
                    .taking_text_as(self.text_property.clone());
                let taken = |taken: crate::toolbox::Taken| ConfigurationError::new(&self.at, taken.to_string());
                shelf.put(tool).map_err(taken).map(|()| None)
            }
            Kind::Mcp(server) => {
                let listing = match server.list_as() {
                    None => None,
                    Some(name) => vault
                        .credential(&self.name, Identity::Static(name))
                        .map_err(|missing| ConfigurationError::new(&self.at.child("list_as"), missing.to_string()))?,
                };
                let (connected, ready) = (mcp::Connected::new(server, http), Arc::new(Notify::new()));
                let task = tokio::spawn(connected.watch(Arc::clone(shelf), listing, Arc::clone(&ready)));
                Ok(Some(Watched { task, ready }))
            }
        }
    }
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
