//! ADP Interface: agents that are known by their description, as tools of hosted agents.
//!
//! What the operator names is found, read and called as `rialto call` does it, in the node's own name: requests are
//! signed with the key that the node signs everything with. What was read is what is called until it is read again.

use crate::call::{Agent, Argument, CallError, Credentials, Fit, Given, Offer, Order, Visitor};
use crate::node::Node;
use crate::outbound::FetchError;
use description::Operation;
use host::{Pending, Skill, ToolError, Visits};
use json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Requests to one domain in a minute, for agents that the operator named.
const PER_MINUTE: u32 = 600;

/// Goes to other agents for the agents of a node.
pub(super) struct Envoy {
    node: Weak<Node>,
    /// Whoever goes now, and the name of the key that they sign with.
    visitor: Mutex<Option<(String, Arc<Visitor>)>>,
    /// What was read last, by the name that the operator gave.
    read: Mutex<BTreeMap<String, Arc<Known>>>,
}

/// An agent and its interfaces, as they were read.
struct Known {
    agent: Agent,
    offers: Vec<Offer>,
}

impl Envoy {
    pub(super) fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::downgrade(node), visitor: Mutex::default(), read: Mutex::default() }
    }

    /// Somebody who signs with the key of this moment.
    fn visitor(&self) -> Result<Arc<Visitor>, ToolError> {
        let gone = || ToolError::Unavailable("the node is stopping".to_owned());
        let node = self.node.upgrade().ok_or_else(gone)?;
        let broken = |error: String| ToolError::Unavailable(format!("nobody can be asked: {error}"));
        let (key_id, key) = node.identity.request_key().map_err(|error| broken(error.to_string()))?;
        let mut visitor = self.visitor.lock().unwrap_or_else(PoisonError::into_inner);
        match visitor.as_ref().filter(|(known, _)| *known == key_id.to_string()) {
            Some((_, known)) => Ok(Arc::clone(known)),
            None => {
                let name = key_id.to_string();
                let credentials = Some(Credentials { key_id, key, legacy: false });
                let door = node.door.beside(host::TIME_MAX, PER_MINUTE).map_err(|error| broken(error.to_string()))?;
                let new = Arc::new(Visitor::new(Arc::new(door), node.clock.clone(), credentials));
                *visitor = Some((name, Arc::clone(&new)));
                Ok(new)
            }
        }
    }
}

impl Visits for Envoy {
    fn operations<'a>(
        &'a self,
        agent: &'a str,
        interface: Option<&'a str>,
    ) -> Pending<'a, Result<Vec<Operation>, ToolError>> {
        Box::pin(async move {
            let visitor = self.visitor()?;
            let found = visitor.find(agent).await.map_err(|error| told(&error))?;
            let (offers, mut unread) = visitor.offers(&found).await;
            let mut operations: Vec<Operation> = Vec::new();
            for offer in offers.iter().filter(|offer| interface.is_none_or(|name| offer.is_called(name))) {
                for operation in &offer.definition.operations {
                    // The same operations are often offered twice; the first offer has more to say.
                    if !operations.iter().any(|known| known.name == operation.name) {
                        operations.push(operation.clone());
                    }
                }
            }
            match (operations.is_empty(), unread.is_empty()) {
                (true, false) => return Err(told(&unread.remove(0).1)),
                (true, true) => {
                    return Err(ToolError::Protocol("the agent describes nothing that can be called".to_owned()));
                }
                (false, _) => {}
            }
            let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.insert(agent.to_owned(), Arc::new(Known { agent: found, offers }));
            Ok(operations)
        })
    }

    fn call<'a>(&'a self, skill: Skill<'a>, inputs: &'a Value) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let visitor = self.visitor()?;
            let known = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(skill.agent).cloned();
            let unread = || ToolError::Unavailable("the description of the agent was not read yet".to_owned());
            let known = known.ok_or_else(unread)?;
            let given = inputs.as_object().into_iter().flatten();
            let arguments =
                given.map(|(name, value)| Argument { name: name.clone(), value: Given::Json(value.clone()) });
            let order = Order {
                method: skill.operation.to_owned(),
                interface: skill.interface.map(str::to_owned),
                arguments: arguments.collect(),
                is_agreed: skill.is_agreed,
            };
            let called = visitor.call_offered(&known.agent, &known.offers, &order).await;
            let answer = called.map_err(|error| asked(&error))?;
            match answer.fit {
                Fit::Breaks(refusal) => Err(ToolError::Protocol(format!("the outputs: {refusal}"))),
                Fit::Fits | Fit::Unsaid | Fit::Unchecked => Ok(answer.result),
            }
        })
    }
}

/// Why an agent could not be read; nothing was asked of it.
fn told(error: &CallError) -> ToolError {
    ToolError::Unavailable(format!("{}: {error}", error.code()))
}

/// Why an agent gave nothing, told apart by how far the call came.
fn asked(error: &CallError) -> ToolError {
    match error {
        CallError::Unknown { .. } | CallError::Missing { .. } | CallError::Argument { .. } => {
            ToolError::Inputs(error.to_string())
        }
        CallError::Answered { said, .. } => ToolError::Failed(format!("{error}: {said}").chars().take(1_000).collect()),
        CallError::Refused { .. } => ToolError::Failed(error.to_string()),
        CallError::Reply(_) => ToolError::Protocol(error.to_string()),
        CallError::Unreached { error: why, .. } => match why {
            FetchError::Url
            | FetchError::HostForbidden
            | FetchError::PortForbidden
            | FetchError::NoRoots
            | FetchError::RateLimited
            | FetchError::Unreachable
            | FetchError::Certificate
            | FetchError::NotTls => told(error),
            // Whether a request that was cut off did something is for its owner to say.
            FetchError::Timeout
            | FetchError::Redirect
            | FetchError::ContentEncoding
            | FetchError::TooLarge
            | FetchError::Gone
            | FetchError::Status => ToolError::Lost(error.to_string()),
        },
        CallError::Agent(_)
        | CallError::Did(_)
        | CallError::Absent { .. }
        | CallError::Undescribed(_)
        | CallError::Ambiguous { .. }
        | CallError::Description { .. }
        | CallError::Unbound(_)
        | CallError::Definition(_)
        | CallError::Method { .. }
        | CallError::Security(_)
        | CallError::Identity
        | CallError::Agreement
        | CallError::Server
        | CallError::Fault(_) => told(error),
    }
}
