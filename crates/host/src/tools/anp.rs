//! ADP Interface: agents that are known by their description, each of their operations a tool.
//!
//! Whoever goes to them is handed in, as HTTP is: they read the description and the definitions of the interfaces, prove
//! who asks, and hold arguments and answers against the schemas. What is read is read again after a while, and an
//! operation that says something else then is in quarantine like any tool's definition.
//!
//! INVARIANT: an agent is asked in the name of this server and with nobody's credential.

use super::remote;
use crate::definition::Definition;
use crate::fields::Fields;
use crate::name::{is_name, tool_name};
use crate::tool::{Call, Hand, Remarks, Tool, ToolError};
use crate::toolbox::Shelf;
use crate::{ConfigurationError, Pending};
use description::Operation;
use json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// After how long a description is read again.
const FRESH: Duration = Duration::from_secs(600);

/// The pause after the first failure; each is twice as long as the last.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Operations of one agent.
pub(crate) const OPERATIONS_MAX: usize = 256;

/// Who goes to agents that are known by their description.
pub trait Visits: Send + Sync {
    /// What an agent can be asked to do, by one of its interfaces or by any.
    fn operations<'a>(
        &'a self,
        agent: &'a str,
        interface: Option<&'a str>,
    ) -> Pending<'a, Result<Vec<Operation>, ToolError>>;

    /// Asks an agent to do something.
    fn call<'a>(&'a self, skill: Skill<'a>, inputs: &'a Value) -> Pending<'a, Result<Value, ToolError>>;
}

/// What an agent is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Skill<'a> {
    /// The address of its description, its DID or its domain.
    pub agent: &'a str,
    /// The interface, where the operator names one.
    pub interface: Option<&'a str>,
    /// The name of the operation.
    pub operation: &'a str,
    /// Whether the operator agrees for the people whom the description wants to ask.
    pub is_agreed: bool,
}

/// An entry of `tools` of the kind `anp`.
pub(crate) struct Described {
    name: String,
    agent: String,
    interface: Option<String>,
    /// The operations that are used; all when it is empty.
    only: Vec<String>,
    rename: BTreeMap<String, String>,
    idempotent: Vec<String>,
    is_agreed: bool,
    time: Duration,
    remarks: Remarks,
}

impl Described {
    pub(crate) fn read(
        name: &str,
        fields: &Fields<'_>,
        time: Duration,
        remarks: &Remarks,
    ) -> Result<Self, ConfigurationError> {
        let mut rename = BTreeMap::new();
        for (theirs, ours, at) in fields.entries("rename")? {
            match ours.as_str() {
                Some(ours) if is_name(ours) => rename.insert(theirs.to_owned(), ours.to_owned()),
                _ => return Err(ConfigurationError::new(&at, "this is no name of a tool")),
            };
        }
        Ok(Self {
            name: name.to_owned(),
            agent: fields.needed_text("agent")?.to_owned(),
            interface: fields.text("interface")?.map(str::to_owned),
            only: fields.texts("operations")?,
            rename,
            idempotent: fields.texts("idempotent")?,
            is_agreed: fields.flag("agreed", false)?,
            time,
            remarks: remarks.clone(),
        })
    }

    /// Reads the description now and whenever it is no longer fresh; whoever cannot be read is tried again.
    pub(crate) async fn watch(self: Arc<Self>, shelf: Arc<Shelf>, visits: Arc<dyn Visits>, ready: Arc<Notify>) {
        let mut pause = PAUSE;
        loop {
            let wait = match visits.operations(&self.agent, self.interface.as_deref()).await {
                Ok(operations) => {
                    self.shelve(&shelf, &visits, operations);
                    pause = PAUSE;
                    FRESH
                }
                Err(error) => {
                    shelf.note(&self.name, format!("`{}`: {error}", self.agent));
                    let wait = pause;
                    pause = pause.saturating_mul(2).min(PAUSE_MAX);
                    wait
                }
            };
            ready.notify_one();
            sleep(wait).await;
        }
    }

    /// Puts the operations on the shelf, and says what is wrong with the others.
    fn shelve(self: &Arc<Self>, shelf: &Shelf, visits: &Arc<dyn Visits>, operations: Vec<Operation>) {
        let (mut kept, mut problems) = (Vec::new(), Vec::new());
        let known = |name: &String| operations.iter().any(|operation| operation.name == *name);
        problems.extend(self.only.iter().filter(|name| !known(name)).map(|name| format!("there is no `{name}`")));
        let wanted = |operation: &&Operation| self.only.is_empty() || self.only.contains(&operation.name);
        for operation in operations.iter().filter(wanted).take(OPERATIONS_MAX) {
            let renamed = self.rename.get(&operation.name).cloned();
            let Some(name) = renamed.or_else(|| tool_name(&self.name, &operation.name)) else {
                problems.push("an operation has a name that cannot be written here; give it one with `rename`".into());
                continue;
            };
            let definition = Definition {
                name: name.clone(),
                description: operation.description.clone().unwrap_or_default(),
                input: remote::inputs(operation),
                output: None,
                idempotent: self.idempotent.contains(&operation.name),
            };
            let (described, visits) = (Arc::clone(self), Arc::clone(visits));
            let hand = Asking { described, visits, operation: operation.name.clone() };
            let tool = Tool::new(definition, &self.name, Arc::new(hand)).within(self.time).remarked(&self.remarks);
            match shelf.put(tool) {
                Ok(()) => kept.push(name),
                Err(taken) => problems.push(taken.to_string()),
            }
        }
        shelf.keep(&self.name, &kept);
        shelf.note(&self.name, problems.join("; "));
    }
}

/// Asks an agent for one operation.
struct Asking {
    described: Arc<Described>,
    visits: Arc<dyn Visits>,
    operation: String,
}

impl Hand for Asking {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            if call.credential.is_some() {
                let detail = "this agent is asked in the server's own name; say `user_identity: false` for it";
                return Err(ToolError::Unknown(detail.to_owned()));
            }
            let skill = Skill {
                agent: &self.described.agent,
                interface: self.described.interface.as_deref(),
                operation: &self.operation,
                is_agreed: self.described.is_agreed,
            };
            self.visits.call(skill, call.inputs).await
        })
    }
}
