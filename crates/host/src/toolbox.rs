//! OAS Names & References: all tools of a server, each under one name.
//!
//! INVARIANT: a name is taken once; a definition is pinned when it is first seen, and another one under the same name is
//! not called before somebody approves it.

use crate::configuration::{Configuration, ConfigurationError};
use crate::credentials::{Identity, Vault};
use crate::http::Http;
use crate::tool::{Call, State, Tool, ToolError};
use crate::tools::{Visits, Watched};
use json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Digests of approved definitions, by the names of their tools.
pub type Pins = BTreeMap<String, String>;

/// What tools need of the world.
pub struct Means {
    /// How anything leaves this machine.
    pub http: Arc<dyn Http>,
    /// What was approved before.
    pub pins: Pins,
    /// Who goes to agents that are known by their description; without anybody there are none.
    pub visits: Option<Arc<dyn Visits>>,
}

/// The tools that are there now, shared with those who bring and take them.
pub(crate) struct Shelf {
    held: RwLock<Held>,
}

#[derive(Default)]
struct Held {
    tools: BTreeMap<String, Arc<Tool>>,
    pins: Pins,
    /// What is wrong now, by entry.
    problems: BTreeMap<String, String>,
}

/// Another entry has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another tool is called `{0}`; give one of them another name with `rename`")]
pub(crate) struct Taken(pub(crate) String);

impl Shelf {
    fn new(pins: Pins) -> Self {
        Self { held: RwLock::new(Held { pins, ..Held::default() }) }
    }

    fn reading<T>(&self, read: impl FnOnce(&Held) -> T) -> T {
        read(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn writing<T>(&self, write: impl FnOnce(&mut Held) -> T) -> T {
        write(&mut self.held.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a tool in the place of the one of the same entry and name, pinned by what was first seen.
    pub(crate) fn put(&self, tool: Tool) -> Result<(), Taken> {
        let name = tool.definition().name.clone();
        self.writing(|held| {
            if held.tools.get(&name).is_some_and(|known| known.entry() != tool.entry()) {
                return Err(Taken(name));
            }
            let tool = match held.pins.get(&name) {
                Some(approved) => tool.pinned(approved),
                None => {
                    held.pins.insert(name.clone(), tool.digest().to_owned());
                    tool
                }
            };
            held.tools.insert(name, Arc::new(tool));
            Ok(())
        })
    }

    /// Whether a name is taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.reading(|held| held.tools.contains_key(name))
    }

    /// Takes away what an entry no longer has.
    pub(crate) fn keep(&self, entry: &str, names: &[String]) {
        self.writing(|held| held.tools.retain(|name, tool| tool.entry() != entry || names.contains(name)));
    }

    /// Notes what is wrong with an entry now; nothing when the text is empty.
    pub(crate) fn note(&self, entry: &str, problem: String) {
        self.writing(|held| match problem.is_empty() {
            true => held.problems.remove(entry),
            false => held.problems.insert(entry.to_owned(), problem),
        });
    }
}

/// All tools of a server.
pub struct Toolbox {
    shelf: Arc<Shelf>,
    vault: Vault,
    /// Dropped, their servers end.
    _watched: Vec<Watched>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.names()).finish()
    }
}

impl Toolbox {
    /// Opens every entry of the configuration; a server that does not run now is tried again later.
    pub async fn open(configuration: &Configuration, means: Means) -> Result<Self, ConfigurationError> {
        let (shelf, vault) = (Arc::new(Shelf::new(means.pins.clone())), configuration.vault.clone());
        let mut watched = Vec::new();
        for entry in &configuration.tools {
            watched.extend(entry.open(&shelf, &means, &vault)?);
        }
        for entry in &watched {
            entry.ready().await;
        }
        Ok(Self { shelf, vault, _watched: watched })
    }

    /// Adds a tool that is no entry of the configuration, such as another agent of this node; `false` when its name is
    /// taken.
    pub fn add(&self, tool: Tool) -> bool {
        self.shelf.put(tool).is_ok()
    }

    /// A tool by its whole name.
    pub fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.shelf.reading(|held| held.tools.get(name).cloned())
    }

    /// The names of all tools.
    pub fn names(&self) -> Vec<String> {
        self.shelf.reading(|held| held.tools.keys().cloned().collect())
    }

    /// What is wrong with which entry now, for the operator.
    pub fn problems(&self) -> BTreeMap<String, String> {
        self.shelf.reading(|held| held.problems.clone())
    }

    /// The credentials that were given.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Which definitions are approved, to be kept for the next start.
    pub fn pins(&self) -> Pins {
        self.shelf.reading(|held| held.pins.clone())
    }

    /// How many there are; it only grows.
    pub fn pin_count(&self) -> usize {
        self.shelf.reading(|held| held.pins.len())
    }

    /// Approves a definition as it is now; `false` when it is not the one with this digest.
    pub fn approve(&self, name: &str, digest: &str) -> bool {
        self.shelf.writing(|held| {
            let Some(tool) = held.tools.get(name).filter(|tool| tool.digest() == digest) else { return false };
            if let State::Rejected(_) = tool.state() {
                return false;
            }
            let approved = Arc::new(tool.approved());
            held.pins.insert(name.to_owned(), digest.to_owned());
            held.tools.insert(name.to_owned(), approved);
            true
        })
    }

    /// Calls a tool in somebody's name.
    pub async fn call(
        &self,
        name: &str,
        inputs: &Value,
        identity: Identity<'_>,
        id: &str,
        time: Option<Duration>,
    ) -> Result<Value, ToolError> {
        let Some(tool) = self.tool(name) else {
            return Err(ToolError::Unknown("there is no tool of this name now".to_owned()));
        };
        self.call_by(&tool, inputs, identity, id, time).await
    }

    /// Calls a tool that somebody has in hand, in somebody's name.
    pub async fn call_by(
        &self,
        tool: &Tool,
        inputs: &Value,
        identity: Identity<'_>,
        id: &str,
        time: Option<Duration>,
    ) -> Result<Value, ToolError> {
        tool.check_inputs(inputs)?;
        let credential = self.vault.credential(tool.entry(), identity).map_err(|_| ToolError::Credential)?;
        let time = time.map_or(tool.time(), |time| time.min(tool.time()));
        tool.call(Call { inputs, credential: credential.as_ref(), id, time }).await
    }
}
