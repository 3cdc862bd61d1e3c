//! ADP Table 1, ADP Table 5: the one record in which everything about an agent can be asked for.
//!
//! Its members are ours, so that an intent means the same whatever form a description has; the description as it stands,
//! with all that nobody here knows (R41), is under `document`. The documents behind its products stand with them, the
//! operations of its interfaces with those.
//!
//! INVARIANT: a record is within the bounds of a stored document. What no longer fits is left out and counted.

use super::{DESCRIPTION, Found, Linked, Place, TYPE, found_at, too_large};
use crate::refusal::{Error, Refusal};
use description::{
    Access, Activation, Call, Definition, Interface, InterfaceKind, Link, LinkKind, Mode, Operation, Origin, Owner,
    Reading, Requirement, Resource, ResourceKind,
};
use json::{Document, Limits, Map, Node, Value, json};
use std::collections::BTreeSet;
use trust::ProofProblem;
use url::Url;

/// Room that stays free for what is counted at the end.
const MARGIN: usize = 1_024;

/// The record of a description, in canonical form.
pub(super) fn of(
    reading: &Reading,
    found: &Found<'_>,
    vouched_by: Option<&str>,
    place: &Place,
) -> Result<Vec<u8>, Error> {
    let mut record = Map::new();
    put_words(&mut record, reading, place);
    put_standing(&mut record, reading, found, place);
    put(&mut record, "vouched_by", vouched_by.map(|did| json!(did)));
    record.insert("document".into(), reading.document().root().to_value());
    let mut maker = Maker::new(reading, found, &Value::Object(record.clone()));
    let interfaces: Vec<Value> = reading.agent.interfaces.iter().map(|one| maker.interface(one)).collect();
    record.insert("interfaces".into(), json!(interfaces));
    for (name, kind) in [
        ("products", ResourceKind::Product),
        ("services", ResourceKind::Service),
        ("informations", ResourceKind::Information),
    ] {
        let offered = reading.agent.resources.iter().filter(|resource| resource.kind == kind);
        record.insert(name.into(), offered.map(|resource| maker.resource(resource)).collect());
    }
    record.insert(
        "omitted".into(),
        json!({"operations": maker.operations_omitted, "documents": maker.documents_omitted}),
    );
    let bytes = json::canonical_value(&Value::Object(record));
    Document::parse(&bytes, &Limits::DOCUMENT).map_err(|error| {
        let refusal = Refusal::from(aql::Refusal::from(error));
        Refusal { limit: refusal.limit, ..too_large() }
    })?;
    Ok(bytes)
}

fn put(record: &mut Map, name: &str, value: Option<Value>) {
    record.extend(value.map(|value| (name.to_owned(), value)));
}

/// What the description says of the agent.
fn put_words(record: &mut Map, reading: &Reading, place: &Place) {
    let agent = &reading.agent;
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    put(record, "id", Some(json!(place.id)));
    put(record, TYPE, Some(json!(DESCRIPTION)));
    put(record, "url", Some(json!(place.url.as_str())));
    put(record, "origin", Some(json!(place.url.origin().ascii_serialization())));
    put(record, "did", agent.did.as_ref().map(|did| json!(did.as_str())));
    put(record, "name", text(&agent.name));
    put(record, "description", text(&agent.description));
    put(record, "version", agent.version.clone());
    put(record, "language", text(&agent.language));
    put(record, "created", agent.created.map(|moment| json!(moment.to_string())));
    put(record, "modified", agent.modified.map(|moment| json!(moment.to_string())));
    put(record, "owner", agent.owner.as_ref().map(owner));
    put(record, "servers", (!agent.servers.is_empty()).then(|| json!(agent.servers)));
    record.extend(access(&reading.access(&Activation::Absent)));
}

fn owner(owner: &Owner) -> Value {
    let links: Vec<&String> = owner.links.iter().map(|(_, link)| link).collect();
    let mut told = Map::from_iter([("types".to_owned(), json!(owner.types)), ("links".to_owned(), json!(links))]);
    put(&mut told, "name", owner.name.as_ref().map(|name| json!(name)));
    Value::Object(told)
}

/// What is to be said about the description.
fn put_standing(record: &mut Map, reading: &Reading, found: &Found<'_>, place: &Place) {
    put(record, "form", Some(json!(reading.form.name())));
    let findings = &reading.findings;
    put(record, "findings", Some(findings.all().iter().map(found_at).collect()));
    put(record, "accepted", Some(json!({"strict": findings.passes(Mode::Strict), "lenient": true})));
    put(record, "bound", Some(json!(is_bound(reading, found, place))));
    put(record, "proof", Some(json!(proof(reading, found))));
}

/// Whether the agent's own DID lists the very address, on its own host.
fn is_bound(reading: &Reading, found: &Found<'_>, place: &Place) -> bool {
    let listed = found.keys.and_then(|keys| super::listed(keys).ok());
    let origin = Origin { url: place.url.as_str(), did_document: listed.as_ref().map(Document::root) };
    origin.binds(&reading.agent).is_ok()
}

/// What the proof inside the description is worth.
fn proof(reading: &Reading, found: &Found<'_>) -> &'static str {
    let root = reading.document().root();
    let own = found.keys.filter(|keys| reading.agent.did.as_ref() == Some(keys.did()));
    match own {
        _ if root.get("proof").is_none_or(Node::is_null) => "absent",
        None => "unchecked",
        Some(keys) => {
            let host = Url::parse(found.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
            let holds = match trust::verify_proof(root, keys) {
                Err(ProofProblem::Kind) => trust::verify_embedded_proof(root, keys, &host).is_ok(),
                other => other.is_ok(),
            };
            if holds { "verified" } else { "failed" }
        }
    }
}

/// What access demands, as members of whatever demands it.
fn access(access: &Access) -> Map {
    let mut schemes = BTreeSet::new();
    let word = match access {
        Access::Unspecified => "unspecified",
        Access::Public => "public",
        Access::Denied => "denied",
        Access::Demands(requirements) => {
            requirements.iter().for_each(|requirement| collect(requirement, &mut schemes));
            "demanding"
        }
    };
    Map::from_iter([("access".to_owned(), json!(word)), ("schemes".to_owned(), json!(schemes))])
}

fn collect<'a>(requirement: &'a Requirement, schemes: &mut BTreeSet<&'a str>) {
    match requirement {
        Requirement::DidWba(_) => {
            schemes.insert("didwba");
        }
        Requirement::Other(scheme) => {
            schemes.insert(scheme);
        }
        Requirement::OneOf(ways) => ways.iter().flatten().for_each(|requirement| collect(requirement, schemes)),
    }
}

/// What is left of the bounds of a record, and what was left out.
struct Maker<'a> {
    reading: &'a Reading,
    linked: &'a [Linked],
    bytes_left: usize,
    nodes_left: usize,
    operations_omitted: usize,
    documents_omitted: usize,
}

impl<'a> Maker<'a> {
    fn new(reading: &'a Reading, found: &Found<'a>, begun: &Value) -> Self {
        let most = Limits::DOCUMENT;
        let bytes_left = (most.bytes as usize).saturating_sub(json::canonical_value(begun).len() + MARGIN);
        let nodes_left = (most.nodes as usize).saturating_sub(nodes(begun) + MARGIN);
        Self { reading, linked: found.linked, bytes_left, nodes_left, operations_omitted: 0, documents_omitted: 0 }
    }

    /// Takes room for a value, if there is enough.
    fn has_room(&mut self, value: &Value) -> bool {
        // A name, a comma, and the place in the list that is not counted yet.
        let (bytes, nodes) = (json::canonical_value(value).len() + 32, nodes(value) + 1);
        let fits = bytes <= self.bytes_left && nodes <= self.nodes_left;
        if fits {
            self.bytes_left -= bytes;
            self.nodes_left -= nodes;
        }
        fits
    }

    fn interface(&mut self, interface: &Interface) -> Value {
        let mut told = access(&self.reading.access(&interface.security));
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        put(&mut told, "id", text(&interface.id));
        put(&mut told, "name", text(&interface.name));
        put(&mut told, "description", text(&interface.description));
        put(&mut told, "kind", Some(json!(kind(&interface.kind))));
        put(&mut told, "protocol", text(&interface.protocol));
        put(&mut told, "version", text(&interface.version));
        put(&mut told, "human_authorization", Some(json!(interface.human_authorization)));
        let link = self.links().find(|link| link.kind == LinkKind::Interface && link.at == interface.at.child("url"));
        let url = link.map(|link| link.url.as_str());
        put(&mut told, "url", url.map(|url| json!(url)));
        let (state, definition) = self.definition(interface, url);
        put(&mut told, "definition", Some(json!(state)));
        if !self.has_room(&Value::Object(told.clone())) {
            return Value::Object(told);
        }
        if let Some(definition) = definition {
            put(&mut told, "format", Some(json!(definition.format.name())));
            put(&mut told, "servers", Some(json!(definition.servers)));
            let findings: Value = definition.findings.all().iter().map(found_at).collect();
            put(&mut told, "findings", Some(findings).filter(|findings| self.has_room(findings)));
            let mut operations = Vec::new();
            for operation in definition.operations.iter().map(operation) {
                match self.has_room(&operation) {
                    true => operations.push(operation),
                    false => self.operations_omitted += 1,
                }
            }
            put(&mut told, "operations", Some(json!(operations)));
        }
        Value::Object(told)
    }

    fn links(&self) -> impl Iterator<Item = &'a Link> {
        self.reading.links.iter()
    }

    /// The definition of an interface, from the description itself or from what was fetched, and how that went.
    fn definition(&self, interface: &Interface, url: Option<&str>) -> (&'static str, Option<Definition>) {
        let root = self.reading.document().root();
        if let Some(content) = interface.content.as_ref().and_then(|at| at.find(root)).filter(|it| it.is_object()) {
            return match Definition::read(content) {
                Ok(definition) => ("embedded", Some(definition)),
                Err(_) => ("unreadable", None),
            };
        }
        let fetched = url.and_then(|url| self.linked.iter().find(|linked| linked.url == url));
        match fetched.map(|linked| Definition::parse(&linked.bytes)) {
            Some(Ok(definition)) => ("linked", Some(definition)),
            Some(Err(_)) => ("unreadable", None),
            None => ("absent", None),
        }
    }

    fn resource(&mut self, resource: &Resource) -> Value {
        let mut told = access(&self.reading.access(&resource.security));
        put(&mut told, "types", Some(json!(resource.types)));
        put(&mut told, "name", resource.name.as_ref().map(|name| json!(name)));
        put(&mut told, "description", resource.description.as_ref().map(|text| json!(text)));
        let places: Vec<_> = resource.links.iter().map(|(at, _)| at).collect();
        let links: Vec<&str> =
            self.links().filter(|link| places.contains(&&link.at)).map(|link| link.url.as_str()).collect();
        put(&mut told, "urls", Some(json!(links)));
        let document = links.iter().find_map(|url| self.linked.iter().find(|linked| linked.url == **url));
        // Whether it fits or not, it is named; a record that has no room for that is refused as a whole.
        let _ = self.has_room(&Value::Object(told.clone()));
        if let Some(linked) = document {
            match Document::parse(&linked.bytes, &JOINED) {
                Err(_) => put(&mut told, "document_state", Some(json!("unreadable"))),
                Ok(document) => {
                    let document = document.root().to_value();
                    let state = if self.has_room(&document) { "joined" } else { "omitted" };
                    self.documents_omitted += usize::from(state == "omitted");
                    put(&mut told, "document_state", Some(json!(state)));
                    put(&mut told, "document", Some(document).filter(|_| state == "joined"));
                }
            }
        }
        Value::Object(told)
    }
}

/// A document that is joined in stands three levels down.
const JOINED: Limits = Limits { subject: "linked document", depth: Limits::DOCUMENT.depth - 3, ..Limits::DOCUMENT };

fn kind(kind: &InterfaceKind) -> &str {
    match kind {
        InterfaceKind::NaturalLanguage => "natural_language",
        InterfaceKind::Api => "api",
        InterfaceKind::Structured => "structured",
        InterfaceKind::Other(word) => word,
        InterfaceKind::Unsaid => "unsaid",
    }
}

fn operation(operation: &Operation) -> Value {
    let mut told = Map::from_iter([("name".to_owned(), json!(operation.name))]);
    put(&mut told, "summary", operation.description.as_ref().map(|text| json!(text)));
    let call = match &operation.call {
        Call::Rpc => "json-rpc",
        Call::Http { method, path } => {
            put(&mut told, "method", Some(json!(method)));
            put(&mut told, "path", Some(json!(path)));
            "http"
        }
        Call::Words => "words",
    };
    put(&mut told, "call", Some(json!(call)));
    let params = operation.params.iter().map(|param| {
        let mut told =
            Map::from_iter([("name".to_owned(), json!(param.name)), ("required".to_owned(), json!(param.required))]);
        put(&mut told, "description", param.description.as_ref().map(|text| json!(text)));
        put(&mut told, "type", param.schema.get("type").cloned());
        Value::Object(told)
    });
    put(&mut told, "params", Some(params.collect()));
    put(&mut told, "result_type", operation.result.as_ref().and_then(|schema| schema.get("type")).cloned());
    Value::Object(told)
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
