//! The node under examination: where its doors are, whose key it answers with, and what its replies say.

use crate::wire::{Exchange, Reply, Request};
use anyhow::{Context, Result, bail, ensure};
use json::{Document, Limits, Value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use trust::{Did, DidDocument, Signed};

/// The media type of signed documents.
pub(crate) const OAP_JSON: &str = "application/oap+json";

/// How often a node that asks for patience is asked again.
const PATIENCE: usize = 100;
const PAUSE: Duration = Duration::from_millis(200);

/// A node and how it is reached.
pub struct Target {
    exchange: Box<dyn Exchange>,
    base: String,
    /// Its manifest.
    pub manifest: Value,
    /// Its keys, as its DID document has them.
    pub keys: DidDocument,
    /// Where intents go.
    pub intent: String,
    /// Where explanations are asked for, if anywhere.
    pub explain: Option<String>,
    /// Where records are published, if anywhere.
    pub records: Option<String>,
    /// Where intents go that stay open, if anywhere.
    pub subscribe: Option<String>,
}

/// A reply, read.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
    pub(crate) value: Value,
    /// Why the signature does not hold; `None` when it does.
    pub(crate) unsigned: Option<String>,
}

impl Said {
    /// A refusal's stable code and place; `None` when this is no refusal.
    pub(crate) fn refusal(&self) -> Option<(&str, &str)> {
        let details = self.value.get("error")?.get("details")?;
        Some((details.get("code")?.as_str()?, details.get("pointer").and_then(Value::as_str).unwrap_or_default()))
    }

    /// In a few words, for people.
    pub(crate) fn brief(&self) -> String {
        match self.refusal() {
            Some((code, at)) => format!("status {}, {code} at `{at}`", self.status),
            None => format!("status {}, {} bytes", self.status, self.bytes.len()),
        }
    }
}

impl Target {
    /// Reads the manifest and the DID document of the node at an address.
    pub fn at(url: &str, exchange: Box<dyn Exchange>) -> Result<Self> {
        let base = url.trim_end_matches('/').to_owned();
        let get = |path: &str| -> Result<Document> {
            let url = format!("{base}{path}");
            let reply = exchange.exchange(&Request { method: "GET", url: &url, media_type: "", body: &[] })?;
            ensure!(reply.status == 200, "{url} answers with status {}", reply.status);
            Document::parse(&reply.body, &Limits::OURS).with_context(|| format!("{url} is no JSON document"))
        };
        let manifest = get("/.well-known/oap-tool.json").context("the node shows no manifest")?.root().to_value();
        let document = get("/.well-known/did.json").context("the node shows no DID document")?;
        let named = document.root().get("id").and_then(json::Node::as_str).context("the DID document has no id")?;
        let did = Did::parse(named)?;
        let keys = DidDocument::read(document.root(), &did)?;
        let tool = manifest.pointer("/tool/did").and_then(Value::as_str);
        ensure!(tool == Some(named), "the manifest is of {tool:?} and the DID document of `{named}`");
        let door = |name: &str| Some(format!("{base}{}", path_of(manifest.get("endpoints")?.get(name)?.as_str()?)));
        let Some(intent) = door("intent").or_else(|| door("invoke")) else {
            bail!("the manifest names no endpoint for intents")
        };
        let (explain, records, subscribe) = (door("explain"), door("records"), door("subscribe"));
        Ok(Self { exchange, base, manifest, keys, intent, explain, records, subscribe })
    }

    /// The node's DID.
    pub fn did(&self) -> &str {
        self.keys.did().as_str()
    }

    /// An address of the node.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// An address that the manifest names, at the base where the node is examined.
    pub(crate) fn here(&self, told: &str) -> String {
        self.url(path_of(told))
    }

    /// The address of a record.
    pub(crate) fn record(&self, id: &str) -> Option<String> {
        Some(format!("{}/{}", self.records.as_ref()?, utf8_percent_encode(id, NON_ALPHANUMERIC)))
    }

    /// Posts a document and reads what is said.
    pub(crate) fn post(&self, url: &str, body: &[u8]) -> Result<Said> {
        self.send(&Request { method: "POST", url, media_type: OAP_JSON, body })
    }

    /// Asks for a stream that ends, and reads all of it: every event is checked by itself.
    pub(crate) fn stream(&self, request: &Request<'_>) -> Result<Said> {
        let reply = self.exchange.exchange_for_stream(request)?;
        if reply.status != 200 {
            return Ok(self.read(reply));
        }
        let text = std::str::from_utf8(&reply.body).context("a stream is UTF-8")?;
        let (mut parts, mut unsigned) = (Vec::new(), None);
        for block in text.split("\n\n") {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            let Some(data) = field("data") else { continue };
            let said = self.read(Reply { status: 200, body: data.as_bytes().to_vec() });
            unsigned = unsigned.or(said.unsigned);
            let mut part = json::json!({"event": field("event"), "data": said.value});
            if let (Some(id), Some(members)) = (field("id"), part.as_object_mut()) {
                members.insert("id".to_owned(), json::json!(id));
            }
            parts.push(part);
        }
        Ok(Said { status: 200, bytes: reply.body.clone(), value: json::json!({"stream": parts}), unsigned })
    }

    /// Asks for a socket that the node closes, and reads all of it: every event is checked by itself.
    pub(crate) fn socket(&self, url: &str) -> Result<Said> {
        let texts = self.exchange.texts_of_socket(url)?;
        let (mut parts, mut unsigned) = (Vec::new(), None);
        for text in &texts {
            let message = Document::parse(text, &Limits::OURS).context("a message that is no strict JSON")?;
            let member = |name: &str| message.root().get(name);
            let data = member("data").map(json::canonical).context("a message without `data`")?;
            let said = self.read(Reply { status: 200, body: data });
            unsigned = unsigned.or(said.unsigned);
            let mut part = json::json!({"event": member("event").map(json::Node::to_value), "data": said.value});
            if let (Some(seq), Some(members)) = (member("seq"), part.as_object_mut()) {
                members.insert("id".to_owned(), seq.to_value());
            }
            parts.push(part);
        }
        Ok(Said { status: 200, bytes: texts.concat(), value: json::json!({"socket": parts}), unsigned })
    }

    /// Exchanges messages; a node that asks for patience gets it.
    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Said> {
        for _ in 0..PATIENCE {
            let reply = self.exchange.exchange(request)?;
            if reply.status != 429 {
                return Ok(self.read(reply));
            }
            std::thread::sleep(PAUSE);
        }
        bail!("{}: the node answers nothing but \"too many requests\"", request.url)
    }

    fn read(&self, reply: Reply) -> Said {
        let Reply { status, body: bytes } = reply;
        let (value, unsigned) = match Document::parse(&bytes, &Limits::OURS) {
            Err(error) => (Value::Null, Some(format!("the reply is no strict JSON: {error}"))),
            Ok(document) => {
                let signed = Signed::read(&document).and_then(|signed| signed.verify_with(&self.keys));
                (document.root().to_value(), signed.err().map(|error| error.to_string()))
            }
        };
        Said { status, bytes, value, unsigned }
    }
}

/// The path of an address, whoever it is said to belong to.
fn path_of(told: &str) -> &str {
    told.split_once("://").map_or(told, |(_, rest)| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"))
}
