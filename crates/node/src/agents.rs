//! ADP Overview, ANP-08: the agents that this node publishes: itself, and those that it hosts.
//!
//! Each has a name, and under it a description, an interface, a DID document and an address for calls. Descriptions are
//! written for the address under which they are asked for, in the form that every reader understands, and carry a proof by
//! the key of the node, which stands in the document of the agent's DID.
//!
//! INVARIANT: what is published here passes our own strict judgement.

mod own;
mod rpc;

pub use own::AGENT;
pub(crate) use own::LINKED_MAX;
pub use rpc::{RPC_LIMITS, Rpc};

use crate::clock::instant;
use crate::descriptions::Found;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use description::{Draft, DraftDefinition, DraftInterface, DraftOwner, Item, pages};
use json::{Document, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use trust::{Did, DidDocument};

/// Agents on one page of the list.
pub(crate) const PAGE: usize = 100;
/// Letters of an agent's name.
pub(crate) const NAME_CHARS_MAX: usize = 63;

/// An agent that a node publishes beside itself.
#[derive(Clone)]
pub struct HostedAgent {
    /// What stands in its addresses: small letters, digits and hyphens.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it does.
    pub description: String,
    /// Its version.
    pub version: String,
    /// What can be called: methods of OpenRPC, with every schema written out.
    pub methods: Vec<Value>,
    /// Who does it.
    pub answers: Arc<dyn Answers>,
}

impl fmt::Debug for HostedAgent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HostedAgent").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A call of an agent by somebody who proved to be the caller.
#[derive(Clone, Debug)]
pub struct AgentCall {
    /// Which method; one of those that the agent lists.
    pub method: String,
    /// What it is called with, by name.
    pub params: Document,
    /// Who calls.
    pub caller: Did,
}

/// What an agent's answer comes in.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'a>>;

/// Does what the methods of an agent say.
pub trait Answers: Send + Sync {
    /// Answers a call.
    fn call(&self, call: AgentCall) -> Answering<'_>;
}

/// The agents of a node beside itself.
#[derive(Debug, Default)]
pub(crate) struct Agents(RwLock<BTreeMap<String, Arc<HostedAgent>>>);

impl Agents {
    fn find(&self, name: &str) -> Option<Arc<HostedAgent>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn titles(&self) -> Vec<(String, String)> {
        let agents = self.0.read().unwrap_or_else(PoisonError::into_inner);
        agents.values().map(|agent| (agent.name.clone(), agent.title.clone())).collect()
    }
}

/// What is written of an agent, whoever it is.
struct Plate {
    title: String,
    description: String,
    version: String,
    methods: Vec<Value>,
}

/// Where an agent is found, and who it is there.
struct Door {
    did: Did,
    description: String,
    interface: String,
    rpc: String,
}

impl Node {
    /// Publishes an agent; one of the same name is replaced.
    pub fn host(&self, agent: HostedAgent) -> Result<(), Refusal> {
        let plain =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if agent.name == AGENT || agent.name.is_empty() || agent.name.len() > NAME_CHARS_MAX || !plain(&agent.name) {
            let detail = "an agent's name has small letters, digits and hyphens, at most 63, and is not the node's own";
            return Err(Refusal::new(Class::InvalidInput, "invalid_value", detail));
        }
        let mut agents = self.agents.0.write().unwrap_or_else(PoisonError::into_inner);
        agents.insert(agent.name.clone(), Arc::new(agent));
        Ok(())
    }

    /// No longer publishes an agent; says whether it was there.
    pub fn dismiss(&self, name: &str) -> bool {
        self.agents.0.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// Whether this node publishes an agent of this name.
    pub fn is_agent(&self, name: &str) -> Result<(), Refusal> {
        self.plate(name).map(|_| ())
    }

    /// The description of an agent, with a proof; `base` is the address under which the asker reached the node.
    pub fn agent_description(&self, name: &str, base: &str) -> Result<Vec<u8>, Error> {
        let (plate, door) = (self.plate(name)?, door(base, name)?);
        let interface = DraftInterface {
            name: plate.title.clone(),
            description: plate.description.clone(),
            url: door.interface.clone(),
            definition: DraftDefinition::OpenRpc(openrpc(&plate, &door)),
        };
        // Whole seconds, as everybody writes them.
        let created = instant(self.began - self.began.rem_euclid(1_000));
        let draft = Draft {
            url: door.description,
            name: plate.title,
            did: door.did.clone(),
            description: plate.description,
            version: Some(plate.version),
            language: "en".to_owned(),
            created: Some(created),
            modified: None,
            owner: Some(DraftOwner::Organization(self.operator.name.clone(), Some(base.to_owned()))),
            products: Vec::new(),
            services: Vec::new(),
            interfaces: vec![interface],
        };
        let mut written = draft.write();
        self.identity.prove(&mut written, &door.did, &created.to_string());
        Ok(json::canonical_value(&written))
    }

    /// The interface of an agent as an OpenRPC document that refers to nothing.
    pub fn agent_interface(&self, name: &str, base: &str) -> Result<Value, Error> {
        Ok(openrpc(&self.plate(name)?, &door(base, name)?))
    }

    /// The document of an agent's DID.
    pub fn agent_document(&self, name: &str, base: &str) -> Result<Value, Error> {
        self.is_agent(name)?;
        let door = door(base, name)?;
        let mut document = self.identity.document_of(&door.did);
        if let Some(members) = document.as_object_mut() {
            members.insert("alsoKnownAs".into(), json!([self.identity.did().as_str()]));
            members.insert("service".into(), json!([service(&door.did, &door.description)]));
        }
        Ok(document)
    }

    /// The node's own DID document, which leads to its description.
    pub fn document(&self, base: &str) -> Value {
        let mut document = self.identity.document();
        if let (Ok(door), Some(members)) = (door(base, AGENT), document.as_object_mut()) {
            members.insert("service".into(), json!([service(self.identity.did(), &door.description)]));
        }
        document
    }

    /// A page of the list of agents, from 1.
    pub fn agents_page(&self, page: usize, base: &str) -> Result<Value, Error> {
        let mut items = Vec::new();
        let own = (AGENT.to_owned(), own::TITLE.to_owned());
        for (name, title) in std::iter::once(own).chain(self.agents.titles()) {
            items.push(Item { url: door(base, &name)?.description, name: Some(title), handle: None });
        }
        let address = |number| match number {
            1 => format!("{base}{}", description::WELL_KNOWN),
            number => format!("{base}{}?page={number}", description::WELL_KNOWN),
        };
        let position = page.checked_sub(1);
        let found = position.and_then(|position| pages(&items, PAGE, address).into_iter().nth(position));
        let none = || Refusal::new(Class::NotFound, "no_such_page", "the list has no such page; begin with the first");
        Ok(found.map(|(_, page)| page).ok_or_else(none)?)
    }

    /// Keeps a record of each agent that is hosted here, as a crawler would find it at `base`, and takes back those of
    /// agents that are gone; says how many there are. It waits for the disk.
    pub fn record_agents(&self, base: &str) -> Result<usize, Error> {
        let mut kept = BTreeSet::new();
        for (name, _) in self.agents.titles() {
            let (door, bytes) = (door(base, &name)?, self.agent_description(&name, base)?);
            let before = self.description(&door.description)?.map(|kept| kept.bytes);
            if before.is_none_or(|before| essence(&before) != essence(&bytes)) {
                let document = Document::of(&self.agent_document(&name, base)?).map_err(Error::fault)?;
                let keys = DidDocument::read(document.root(), &door.did).map_err(Error::fault)?;
                let (url, vouched_by) = (door.description.as_str(), Some(&door.did));
                self.describe(&Found { url, bytes: &bytes, linked: &[], keys: Some(&keys), vouched_by })?;
            }
            kept.insert(door.description);
        }
        let own = format!("{base}/agents/");
        for url in self.descriptions_of(base)? {
            if url.starts_with(&own) && !kept.contains(&url) {
                self.withdraw_description(&url)?;
            }
        }
        Ok(kept.len())
    }

    fn plate(&self, name: &str) -> Result<Plate, Refusal> {
        if name == AGENT {
            return Ok(own::plate());
        }
        let none = || Refusal::new(Class::NotFound, "agent_not_found", "this node publishes no agent of this name");
        let agent = self.agents.find(name).ok_or_else(none)?;
        Ok(Plate {
            title: agent.title.clone(),
            description: agent.description.clone(),
            version: agent.version.clone(),
            methods: agent.methods.clone(),
        })
    }
}

/// What a description says, apart from when it was written: every start of a node writes it anew.
fn essence(bytes: &[u8]) -> Option<Value> {
    let mut document: Value = serde_json::from_slice(bytes).ok()?;
    let members = document.as_object_mut()?;
    ["proof", "created"].into_iter().for_each(|name| drop(members.remove(name)));
    Some(document)
}

fn service(did: &Did, url: &str) -> Value {
    json!({"id": format!("{did}#ad"), "type": "AgentDescription", "serviceEndpoint": url})
}

/// Where an agent is found under an address of the node; its DID names the very place of its document.
fn door(base: &str, name: &str) -> Result<Door, Refusal> {
    let (_, rest) = base.split_once("://").unwrap_or(("", base));
    let mut parts = rest.split('/').filter(|part| !part.is_empty());
    let authority = named(parts.next().unwrap_or_default());
    let segments: Vec<&str> = parts.chain(["agents", name]).collect();
    let did = authority.and_then(|authority| trust::wba_name(&authority, &segments).ok()).ok_or_else(|| {
        let detail = "an agent's DID needs the name of a host; the operator gives the node one with `--public-url`";
        Refusal::new(Class::NotFound, "agent_without_host", detail)
    })?;
    let at = |file: &str| format!("{base}/agents/{name}/{file}");
    Ok(Door { did, description: at("ad.json"), interface: at("interface.json"), rpc: at("rpc") })
}

/// The host of an address by name: a DID has no digits, and this machine has a name.
fn named(authority: &str) -> Option<String> {
    let (host, port) = match authority.rfind(':').filter(|_| !authority.ends_with(']')) {
        Some(colon) => authority.split_at_checked(colon)?,
        None => (authority, ""),
    };
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(digits) if digits.is_loopback() => Some(format!("localhost{port}")),
        Ok(_) => None,
        Err(_) => Some(authority.to_ascii_lowercase()),
    }
}

fn openrpc(plate: &Plate, door: &Door) -> Value {
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": plate.title,
            "description": plate.description,
            "version": plate.version,
            "x-anp-protocol-type": "ANP",
            "x-anp-protocol-version": "1.0.0",
        },
        "servers": [{"name": "main", "url": door.rpc}],
        "methods": plate.methods,
        "security": [{"didwba": []}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_did_is_at_the_address_of_its_document() {
        for (base, did, document) in [
            ("https://n.example", "did:wba:n.example:agents:a", "https://n.example/agents/a/did.json"),
            ("https://N.example:8443", "did:wba:n.example%3A8443:agents:a", "https://n.example:8443/agents/a/did.json"),
            ("https://n.example/p", "did:wba:n.example:p:agents:a", "https://n.example/p/agents/a/did.json"),
            ("http://127.0.0.1:7420", "did:wba:localhost%3A7420:agents:a", "https://localhost:7420/agents/a/did.json"),
            ("http://[::1]:7420", "did:wba:localhost%3A7420:agents:a", "https://localhost:7420/agents/a/did.json"),
            ("http://[::1]", "did:wba:localhost:agents:a", "https://localhost/agents/a/did.json"),
        ] {
            let door = door(base, "a").unwrap();
            assert_eq!((door.did.as_str(), door.did.document_url().as_deref()), (did, Some(document)), "{base}");
        }
        assert_eq!(door("https://192.0.2.1", "a").map(|door| door.did).unwrap_err().code, "agent_without_host");
    }
}
