//! ADP Interface: agents that are known by their description, as tools of hosted agents.
//!
//! What the operator names is found, read and called as `rialto call` does it, in the node's own name: requests are
//! signed with the key that the node signs everything with.

use crate::call::{Argument, CallError, Credentials, Given, Order, Visitor};
use crate::node::Node;
use description::Operation;
use host::{Pending, Skill, ToolError, Visits};
use json::Value;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Goes to other agents for the agents of a node.
pub(super) struct Envoy {
    node: Weak<Node>,
    /// Whoever goes now, and the name of the key that they sign with.
    visitor: Mutex<Option<(String, Arc<Visitor>)>>,
}

impl Envoy {
    pub(super) fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::downgrade(node), visitor: Mutex::default() }
    }

    /// Somebody who signs with the key of this moment.
    fn visitor(&self) -> Result<Arc<Visitor>, ToolError> {
        let gone = || ToolError::Unavailable("the node is stopping".to_owned());
        let node = self.node.upgrade().ok_or_else(gone)?;
        let broken = |_| ToolError::Unavailable("the node cannot sign".to_owned());
        let (key_id, key) = node.identity.request_key().map_err(broken)?;
        let mut visitor = self.visitor.lock().unwrap_or_else(PoisonError::into_inner);
        match visitor.as_ref().filter(|(known, _)| *known == key_id.to_string()) {
            Some((_, known)) => Ok(Arc::clone(known)),
            None => {
                let name = key_id.to_string();
                let credentials = Some(Credentials { key_id, key, legacy: false });
                let new = Arc::new(Visitor::new(Arc::clone(&node.door), node.clock.clone(), credentials));
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
                (true, false) => Err(told(&unread.remove(0).1)),
                (true, true) => Err(ToolError::Protocol("the agent describes nothing that can be called".to_owned())),
                (false, _) => Ok(operations),
            }
        })
    }

    fn call<'a>(&'a self, skill: Skill<'a>, inputs: &'a Value) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let visitor = self.visitor()?;
            let agent = visitor.find(skill.agent).await.map_err(|error| told(&error))?;
            let given = inputs.as_object().into_iter().flatten();
            let arguments =
                given.map(|(name, value)| Argument { name: name.clone(), value: Given::Json(value.clone()) });
            let order = Order {
                method: skill.operation.to_owned(),
                interface: skill.interface.map(str::to_owned),
                arguments: arguments.collect(),
                is_agreed: skill.is_agreed,
            };
            let answer = visitor.call(&agent, &order).await.map_err(|error| asked(&error))?;
            match answer.fit {
                crate::call::Fit::Breaks(refusal) => Err(ToolError::Protocol(format!("the outputs: {refusal}"))),
                crate::call::Fit::Fits | crate::call::Fit::Unsaid | crate::call::Fit::Unchecked => Ok(answer.result),
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
        // Whether a request that was cut off did something is for its owner to say.
        CallError::Unreached { .. } => ToolError::Lost(error.to_string()),
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
