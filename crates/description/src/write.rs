//! ADP Table 1, ADP Table 5, ADP Table 2: our own descriptions, in the one form that every reader understands.
//!
//! The members of the text and those of ANP-07 stand side by side. The namespace is listed as the text demands; `did` is
//! kept from being a prefix, which would mangle DIDs in `@id` for whoever expands the document.
//!
//! INVARIANT: what is written from a sound draft passes strict (a property test).

use crate::vocabulary::AD;
use json::{Instant, Map, Value, json};
use trust::Did;

/// What a description is written from.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Where it will be found.
    pub url: String,
    /// What people call the agent.
    pub name: String,
    /// Its did:wba.
    pub did: Did,
    /// What it does; known clients refuse an agent that does not say it.
    pub description: String,
    /// Its version.
    pub version: Option<String>,
    /// The language of the texts, such as `en`.
    pub language: String,
    /// When it was made.
    pub created: Option<Instant>,
    /// When it was last changed.
    pub modified: Option<Instant>,
    /// Whose it is.
    pub owner: Option<DraftOwner>,
    /// What it sells.
    pub products: Vec<DraftResource>,
    /// What it does for others.
    pub services: Vec<DraftResource>,
    /// The ways of dealing with it.
    pub interfaces: Vec<DraftInterface>,
}

/// Whose an agent is.
#[derive(Clone, Debug)]
pub enum DraftOwner {
    /// A person, with an address if there is one.
    Person(String, Option<String>),
    /// An organization, with an address if there is one.
    Organization(String, Option<String>),
}

/// Something that an agent offers.
#[derive(Clone, Debug)]
pub struct DraftResource {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Where more about it is found.
    pub url: String,
}

/// A way of dealing with an agent.
#[derive(Clone, Debug)]
pub struct DraftInterface {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Where its definition will be found.
    pub url: String,
    /// How it is defined.
    pub definition: DraftDefinition,
}

/// How an interface is defined.
#[derive(Clone, Debug)]
pub enum DraftDefinition {
    /// By an OpenRPC document, which is embedded, too.
    OpenRpc(Value),
    /// By an OpenAPI document.
    OpenApi,
    /// In words.
    Words,
}

/// The name of the one definition of security.
const SCHEME: &str = "didwba_sc";

impl Draft {
    /// The description.
    pub fn write(&self) -> Value {
        let mut members = object(json!({
            "@context": [AD, {
                "@vocab": "https://schema.org/",
                "@language": self.language,
                "ad": AD,
                "did": {"@id": "https://w3id.org/did#", "@prefix": false},
            }],
            "@type": "ad:AgentDescription",
            "@id": self.url,
            "protocolType": "ANP",
            "protocolVersion": "1.0.0",
            "type": "AgentDescription",
            "url": self.url,
            "name": self.name,
            "did": self.did.as_str(),
            "description": self.description,
            "securityDefinitions": {
                SCHEME: {"scheme": "didwba", "did": self.did.as_str(), "in": "header", "name": "Authorization"},
            },
            "security": SCHEME,
        }));
        let mut add = |name: &str, value: Option<Value>| value.and_then(|value| members.insert(name.to_owned(), value));
        add("version", self.version.as_ref().map(|version| json!(version)));
        add("created", self.created.map(|moment| json!(moment.to_string())));
        add("modified", self.modified.map(|moment| json!(moment.to_string())));
        add("owner", self.owner.as_ref().map(DraftOwner::write));
        add("products", list(&self.products, |product| product.write("Product")));
        add("services", list(&self.services, |service| service.write("Service")));
        let interfaces: Vec<Value> =
            self.interfaces.iter().zip(1..).flat_map(|(one, n)| one.write(&self.url, n)).collect();
        add("interfaces", list(&interfaces, Value::clone));
        Value::Object(members)
    }
}

fn object(value: Value) -> Map {
    match value {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Gives an object one more member.
pub(crate) fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn list<T>(items: &[T], write: impl Fn(&T) -> Value) -> Option<Value> {
    (!items.is_empty()).then(|| items.iter().map(write).collect())
}

impl DraftOwner {
    fn write(&self) -> Value {
        let (kind, name, url) = match self {
            Self::Person(name, url) => ("Person", name, url),
            Self::Organization(name, url) => ("Organization", name, url),
        };
        let mut owner = object(json!({"@type": kind, "type": kind, "name": name}));
        if let Some(url) = url {
            owner.insert("@id".to_owned(), json!(url));
            owner.insert("url".to_owned(), json!(url));
        }
        Value::Object(owner)
    }
}

impl DraftResource {
    fn write(&self, kind: &str) -> Value {
        json!({
            "@type": kind, "type": kind, "@id": self.url, "url": self.url, "name": self.name,
            "description": self.description,
        })
    }
}

impl DraftInterface {
    /// One entry, or two where the two texts call the same thing by different words.
    fn write(&self, agent: &str, number: usize) -> Vec<Value> {
        let entry = |kind: &str, newer: &str, protocol: &str, fragment: &str| {
            json!({
                "@type": kind, "type": newer, "@id": format!("{agent}#{fragment}-{number}"), "name": self.name,
                "description": self.description, "protocol": protocol, "url": self.url,
            })
        };
        match &self.definition {
            DraftDefinition::OpenRpc(content) => {
                let mut structured = entry("ad:APIInterface", "StructuredInterface", "openrpc", "openrpc");
                put(&mut structured, "content", content.clone());
                // Without the newer type a client of ANP-07 passes this one over and takes the other.
                let mut plain = object(entry("ad:APIInterface", "", "JSON-RPC 2.0", "rpc"));
                plain.remove("type");
                vec![Value::Object(plain), structured]
            }
            DraftDefinition::OpenApi => {
                vec![entry("ad:APIInterface", "StructuredInterface", "YAML", "openapi")]
            }
            DraftDefinition::Words => {
                vec![entry("ad:NaturalLanguageInterface", "NaturalLanguageInterface", "YAML", "words")]
            }
        }
    }
}
