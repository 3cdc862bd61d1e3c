//! OAS Names & References: what a server has, and what a reference means there.
//!
//! A bare name means the tool where a tool and an agent share it. Names are taken once.
//!
//! INVARIANT: a remote reference is never taken for something of this server.

use crate::{Agent, Code, Finding, Limits, Name, Reference, Reviewer};
use json::{Pointer, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Judges whether a tool takes these inputs.
pub trait Check: Send + Sync {
    /// What is wrong with them, in words for the model.
    fn check(&self, inputs: &Value) -> Result<(), String>;
}

/// What a server knows of a tool before it is called.
#[derive(Clone)]
pub struct Tool {
    /// What it is, for the model.
    pub description: String,
    /// The JSON Schema of its inputs.
    pub parameters: Value,
    /// The same schema, ready to judge.
    pub check: Arc<dyn Check>,
    /// The argument that takes the text when it is a guardrail; found in the schema when nothing is said.
    pub text_argument: Option<String>,
    /// Whether a call may be repeated when nobody knows what became of it.
    pub idempotent: bool,
    /// Whether it changes something out there, so that words from tools must not lead to it unseen.
    pub writes: bool,
    /// Tools after whose outputs it may be called all the same.
    pub after: BTreeSet<String>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tool")
            .field("parameters", &self.parameters)
            .field("writes", &self.writes)
            .finish_non_exhaustive()
    }
}

impl Tool {
    /// A tool that may be called again and changes nothing.
    pub fn new(description: impl Into<String>, parameters: Value, check: Arc<dyn Check>) -> Self {
        let (text_argument, after) = (None, BTreeSet::new());
        Self {
            description: description.into(),
            parameters,
            check,
            text_argument,
            idempotent: false,
            writes: false,
            after,
        }
    }

    /// What it is given when it judges a text: its one required text, or else `text`.
    pub(crate) fn judging(&self, text: &str) -> Value {
        let name = self.text_argument.clone().or_else(|| self.required_text()).unwrap_or_else(|| "text".to_owned());
        json!({name: text})
    }

    fn required_text(&self) -> Option<String> {
        let required: Vec<&str> =
            self.parameters.get("required")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let is_text = |name: &&&str| {
            let property = self.parameters.get("properties").and_then(|all| all.get(**name));
            property.and_then(|property| property.get("type")).is_some_and(|kind| kind == "string")
        };
        let mut texts = required.iter().filter(is_text);
        match (texts.next(), texts.next()) {
            (Some(name), None) => Some((*name).to_owned()),
            _ => None,
        }
    }
}

/// What a reference means on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// This tool.
    Tool(String),
    /// This agent of the server.
    Agent(String),
    /// An agent of another server, whose document is at this address.
    Remote {
        /// The reference as it is written.
        reference: String,
        /// Where its document is.
        url: String,
    },
}

/// Who is asked, when the server has looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewedBy {
    /// The user with this id or address.
    User(String),
    /// This agent of the server.
    Agent(String),
}

impl ReviewedBy {
    /// The name of whoever is asked; an agent's with its scheme.
    pub fn name(&self) -> String {
        match self {
            Self::User(user) => user.clone(),
            Self::Agent(agent) => format!("oagent://{agent}"),
        }
    }
}

/// What a server allows beyond the text, or less.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether a model gets a function to ask the user back.
    pub ask_user: bool,
    /// Whether strangers may act with an agent's static identities.
    pub lends_to_strangers: bool,
    /// Whether an engagement ends when a call is not allowed.
    pub denial_ends: bool,
    /// The bounds of an engagement.
    pub limits: Limits,
}

/// A name that somebody has already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name is taken here already")]
pub struct Taken;

/// What a server has: tools, agents, remote agents, identities.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: BTreeMap<String, Tool>,
    agents: BTreeMap<String, String>,
    remotes: BTreeMap<String, String>,
    identities: BTreeSet<String>,
    /// What it allows.
    pub options: Options,
}

impl Registry {
    /// Adds a tool under a name of its own.
    pub fn add_tool(&mut self, name: &Name, tool: Tool) -> Result<(), Taken> {
        if self.tools.contains_key(name.as_str()) {
            return Err(Taken);
        }
        self.tools.insert(name.to_string(), tool);
        Ok(())
    }

    /// Adds an agent under a name of its own.
    pub fn add_agent(&mut self, name: &Name, description: &str) -> Result<(), Taken> {
        if self.agents.contains_key(name.as_str()) {
            return Err(Taken);
        }
        self.agents.insert(name.to_string(), description.to_owned());
        Ok(())
    }

    /// Adds an agent of another server, whose document was fetched.
    pub fn add_remote(&mut self, reference: &Reference, description: &str) {
        self.remotes.insert(reference.to_string(), description.to_owned());
    }

    /// Adds a set of credentials by its name.
    pub fn add_identity(&mut self, identity: &str) {
        self.identities.insert(identity.to_owned());
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// What a reference means here, if anything.
    pub fn resolve(&self, reference: &Reference) -> Option<Target> {
        let agent = |name: &Name| self.agents.contains_key(name.as_str()).then(|| Target::Agent(name.to_string()));
        match reference {
            Reference::Bare(name) if self.tools.contains_key(name.as_str()) => Some(Target::Tool(name.to_string())),
            Reference::Bare(name) | Reference::Agent(name) => agent(name),
            Reference::Remote { .. } => {
                let (reference, url) = (reference.to_string(), reference.url()?);
                self.remotes.contains_key(&reference).then_some(Target::Remote { reference, url })
            }
        }
    }

    /// What the model is told of a target: a description and the schema of its inputs.
    pub fn described(&self, target: &Target) -> Option<(&str, Value)> {
        match target {
            Target::Tool(name) => self.tools.get(name).map(|tool| (tool.description.as_str(), tool.parameters.clone())),
            Target::Agent(name) => self.agents.get(name).map(|description| (description.as_str(), words())),
            Target::Remote { reference, .. } => {
                self.remotes.get(reference).map(|description| (description.as_str(), words()))
            }
        }
    }

    /// What is wrong with the inputs of a target.
    pub fn check_inputs(&self, target: &Target, inputs: &Value) -> Result<(), String> {
        match target {
            Target::Tool(name) => match self.tools.get(name) {
                Some(tool) => tool.check.check(inputs),
                None => Err("there is no such tool".to_owned()),
            },
            Target::Agent(_) | Target::Remote { .. } => match inputs.as_object() {
                Some(members) if members.len() == 1 && members.get("text").is_some_and(Value::is_string) => Ok(()),
                _ => Err("an agent is given one text: {\"text\": …}".to_owned()),
            },
        }
    }

    /// Who is asked, for an engagement of this user; nothing when nobody can be.
    pub fn reviewer(&self, agent: &Agent, reviewer: &Reviewer, user: Option<&str>) -> Option<ReviewedBy> {
        match reviewer {
            Reviewer::Caller => user.map(|user| ReviewedBy::User(user.to_owned())),
            Reviewer::Owner => Some(ReviewedBy::User(agent.owner.clone())),
            Reviewer::User(user) => Some(ReviewedBy::User(user.clone())),
            Reviewer::Agent(reference) => match self.resolve(&Reference::Agent(reference.name().clone())) {
                Some(Target::Agent(name)) if reference.url().is_none() && name != agent.name.as_str() => {
                    Some(ReviewedBy::Agent(name))
                }
                _ => None,
            },
            Reviewer::Named(name) if name == agent.name.as_str() => None,
            Reviewer::Named(name) if self.agents.contains_key(name) => Some(ReviewedBy::Agent(name.clone())),
            Reviewer::Named(name) => Some(ReviewedBy::User(name.clone())),
        }
    }

    /// What this server finds about an agent: what it lacks for it, and what is odd.
    pub fn judge(&self, agent: &Agent) -> Vec<Finding> {
        let mut found = Vec::new();
        let root = Pointer::root();
        if self.tools.contains_key(agent.name.as_str()) {
            let detail = "a tool has this name too: a bare reference means the tool, `oagent://` means the agent";
            found.push(Finding::new(Code::Shadowed, root.child("name"), detail));
        }
        for capability in &agent.capabilities {
            let at = root.child("capabilities").child(&capability.reference);
            if self.resolve(&capability.reference).is_none() {
                let detail = "this server has neither a tool nor an agent that this refers to";
                found.push(Finding::new(Code::UnknownCapability, at.clone(), detail));
            }
            if let Some(identity) = &capability.static_identity
                && !self.identities.contains(identity)
            {
                let detail = "this server has no credentials of this name";
                found.push(Finding::new(Code::UnknownIdentity, at.child("static_identity"), detail));
            }
            if capability.user_identity && capability.static_identity.is_none() && self.options.lends_to_strangers {
                let detail = "a caller without identity can never use this; say `user_identity: false`, or name a `static_identity`";
                found.push(Finding::new(Code::NeedsCaller, at.clone(), detail));
            }
            for (name, restriction) in
                [("input_restriction", &capability.input), ("output_restriction", &capability.output)]
            {
                let asked = restriction.review.as_ref();
                if asked.is_some_and(|reviewer| self.reviewer(agent, reviewer, Some("")).is_none()) {
                    let detail = "nobody of this name can review here; an agent does not review itself";
                    found.push(Finding::new(Code::UnknownReviewer, at.child(name).child("require_review"), detail));
                }
            }
        }
        for (name, guardrail) in [("input", &agent.input_guardrail), ("output", &agent.output_guardrail)] {
            if guardrail.as_ref().is_some_and(|guardrail| self.tool(guardrail.tool.as_str()).is_none()) {
                let detail = "this server has no tool of this name";
                let at = root.child("guardrails").child(name).child("tool_name");
                found.push(Finding::new(Code::UnknownGuardrail, at, detail));
            }
        }
        found.into_iter().map(|finding| agent.placed(finding)).collect()
    }
}

/// The inputs of every agent.
fn words() -> Value {
    json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "what the agent is asked"}},
        "required": ["text"],
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NameRule;

    struct Anything;

    impl Check for Anything {
        fn check(&self, _: &Value) -> Result<(), String> {
            Ok(())
        }
    }

    fn tool(parameters: Value) -> Tool {
        Tool::new("", parameters, Arc::new(Anything))
    }

    #[test]
    fn a_guardrail_gets_the_text_where_its_schema_wants_it() {
        let text = json!({"type": "string"});
        for (parameters, inputs) in [
            (json!({}), json!({"text": "x"})),
            (json!({"properties": {"content": text}, "required": ["content"]}), json!({"content": "x"})),
            (json!({"properties": {"a": text, "b": text}, "required": ["a", "b"]}), json!({"text": "x"})),
            (json!({"properties": {"a": text, "n": {"type": "integer"}}, "required": ["n", "a"]}), json!({"a": "x"})),
            (json!({"properties": {"a": text}}), json!({"text": "x"})),
        ] {
            assert_eq!(tool(parameters.clone()).judging("x"), inputs, "{parameters}");
        }
        let named = Tool { text_argument: Some("words".to_owned()), ..tool(json!({})) };
        assert_eq!(named.judging("x"), json!({"words": "x"}));
    }

    #[test]
    fn who_is_asked() {
        let document = "kind: openagentspec:v1/agent\nname: desk\ndescription: A d.\nintent: You d.\nowner: boss\n";
        let agent = Agent::read(document.as_bytes()).unwrap();
        let name = |text: &str| Name::read(text, NameRule::Text).unwrap();
        let mut registry = Registry::default();
        for hosted in ["judge", "desk"] {
            registry.add_agent(&name(hosted), "").unwrap();
        }
        let asked = |reviewer: Reviewer, user| registry.reviewer(&agent, &reviewer, user).map(|by| by.name());
        let local = |text: &str| Reviewer::Agent(Reference::Agent(name(text)));
        let remote = Reviewer::Agent(Reference::read("oagent://h/judge", NameRule::Text).unwrap());
        for (reviewer, user, by) in [
            (Reviewer::Caller, Some("ada"), Some("ada")),
            (Reviewer::Caller, None, None),
            (Reviewer::Owner, None, Some("boss")),
            (Reviewer::User("bob".to_owned()), None, Some("bob")),
            (local("judge"), None, Some("oagent://judge")),
            (local("nobody"), None, None),
            (local("desk"), None, None),
            (remote, None, None),
            (Reviewer::Named("judge".to_owned()), None, Some("oagent://judge")),
            (Reviewer::Named("bob".to_owned()), None, Some("bob")),
            (Reviewer::Named("desk".to_owned()), None, None),
        ] {
            assert_eq!(asked(reviewer.clone(), user).as_deref(), by, "{reviewer:?}");
        }
    }
}
