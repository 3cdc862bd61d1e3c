//! ADP Interface: the documents that define interfaces, read into one model of operations.
//!
//! OpenAPI 3 in YAML or JSON, OpenRPC, plain lists of JSON-RPC methods, and interfaces in words. Every schema is written
//! out where it is used, because known clients lose what is only referred to.
//!
//! INVARIANT: nothing is fetched; a reference out of the document is a finding and accepts everything.

mod openapi;
mod openrpc;
mod inline;
mod words;

use crate::agent::servers;
use crate::finding::{EE, EW, Findings, WI};
use crate::write::put;
use crate::{Rule, is_web};
pub use inline::INLINED_NODES_MAX;
use inline::Inliner;
use json::{Document, Exceeded, Limits, Map, Node, ParseError, Pointer, Value, json, yaml};
use std::collections::BTreeSet;

/// How large the definition of an interface may be, in YAML and in JSON.
pub const DEFINITION_LIMITS: Limits = Limits { subject: "interface definition", bytes: 512 * 1024, ..Limits::DOCUMENT };

/// Why a document about an interface is refused; the names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The bytes are no acceptable YAML or JSON; that code says why.
    Yaml(yaml::Code),
    /// No form of interface definition that we know.
    Unknown,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yaml(code) => code.name(),
            Self::Unknown => "interface_unknown",
        }
    }
}

/// A definition that is refused: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at `{at}`")]
pub struct Refusal {
    /// What is wrong.
    pub code: Code,
    /// The place in the document.
    pub at: Pointer,
    /// Line and column, from 1, where they are known.
    pub position: Option<(usize, usize)>,
    /// What is wrong, in words, and what would be right.
    pub detail: String,
    /// The limit that was passed, if one was.
    pub limit: Option<Exceeded>,
}

impl Refusal {
    fn unknown(detail: &str) -> Self {
        Self { code: Code::Unknown, at: Pointer::root(), position: None, detail: detail.to_owned(), limit: None }
    }
}

impl From<yaml::Refusal> for Refusal {
    fn from(refusal: yaml::Refusal) -> Self {
        let yaml::Refusal { code, at, position, detail, limit } = refusal;
        Self { code: Code::Yaml(code), at, position, detail, limit }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        yaml::Refusal::from(error).into()
    }
}

/// Reads the YAML of a definition into a document.
pub fn parse_yaml(bytes: &[u8]) -> Result<Document, Refusal> {
    Ok(yaml::parse(bytes, &DEFINITION_LIMITS)?.document)
}

/// Operations of one definition that are read; what comes after them is a finding.
pub const OPERATIONS_MAX: usize = 1_000;

/// How an interface is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenRPC.
    OpenRpc,
    /// A list of JSON-RPC methods without more around it.
    JsonRpc,
    /// OpenAPI 3.
    OpenApi,
    /// In words.
    Words,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenRpc => "openrpc",
            Self::JsonRpc => "json-rpc",
            Self::OpenApi => "openapi",
            Self::Words => "words",
        }
    }
}

/// The definition of an interface.
#[derive(Clone, Debug)]
pub struct Definition {
    /// How it is written.
    pub format: Format,
    /// Its title.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Where calls go, the first choice first.
    pub servers: Vec<String>,
    /// What can be called.
    pub operations: Vec<Operation>,
    /// What is to be said about it.
    pub findings: Findings,
}

/// Something that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Its place in the definition.
    pub at: Pointer,
    /// What it does.
    pub description: Option<String>,
    /// How it is called.
    pub call: Call,
    /// What it takes.
    pub params: Vec<Parameter>,
    /// The schema of what it gives, where that is said.
    pub result: Option<Value>,
}

/// How an operation is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// By JSON-RPC 2.0.
    Rpc,
    /// By an HTTP request.
    Http {
        /// In upper case.
        method: String,
        /// With the names of its parameters in braces.
        path: String,
    },
    /// In words.
    Words,
}

/// One thing that an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Where it goes.
    pub place: Place,
    /// Whether it must be given.
    pub required: bool,
    /// What it is.
    pub description: Option<String>,
    /// Which values it takes, written out.
    pub schema: Value,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the named parameters of a call.
    Named,
    /// Into the path.
    Path,
    /// Into the query.
    Query,
    /// Into a header field.
    Header,
    /// Into a cookie.
    Cookie,
    /// It is the body.
    Body,
}

impl Operation {
    /// One schema for all parameters together, as an object.
    pub fn params_schema(&self) -> Value {
        let properties: Map = self.params.iter().map(|param| (param.name.clone(), param.schema.clone())).collect();
        let required: Vec<&str> =
            self.params.iter().filter(|param| param.required).map(|param| param.name.as_str()).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            put(&mut schema, "required", json!(required));
        }
        schema
    }
}

impl Definition {
    /// Reads the bytes of a definition, JSON or YAML.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        // What looks like JSON is held to JSON; YAML would forgive it too much.
        let document = match begins {
            Some(b'{' | b'[') => Document::parse(bytes, &DEFINITION_LIMITS)?,
            _ => parse_yaml(bytes)?,
        };
        Self::read(document.root())
    }

    /// Reads a definition, such as one that is embedded in a description.
    pub fn read(root: Node<'_>) -> Result<Self, Refusal> {
        let text = |name: &str| root.get(name).and_then(Node::as_str);
        let format = match () {
            () if text("openrpc").is_some() => Format::OpenRpc,
            () if text("openapi").is_some_and(|version| version.starts_with("3.")) => Format::OpenApi,
            () if root.get("openapi").is_some() || root.get("swagger").is_some() => {
                let detail = "this version of OpenAPI is not read; bring it to OpenAPI 3";
                return Err(Refusal::unknown(detail));
            }
            () if root.get("methods").is_some() => Format::JsonRpc,
            () if words::is_one(root) => Format::Words,
            () => {
                let detail =
                    "this is neither OpenAPI nor OpenRPC, no list of JSON-RPC methods and no interface in words";
                return Err(Refusal::unknown(detail));
            }
        };
        let mut builder =
            Builder { root, inliner: Inliner::new(root), findings: Findings::default(), operations: Vec::new() };
        match format {
            Format::OpenRpc | Format::JsonRpc => openrpc::read(&mut builder),
            Format::OpenApi => openapi::read(&mut builder),
            Format::Words => words::read(&mut builder),
        }
        Ok(builder.finish(format))
    }

    /// What is called by JSON-RPC, as an OpenRPC document that known clients understand: nothing is referred to.
    pub fn to_openrpc(&self) -> Value {
        openrpc::write(self)
    }
}

/// What is being put together.
struct Builder<'a> {
    root: Node<'a>,
    inliner: Inliner<'a>,
    findings: Findings,
    operations: Vec<Operation>,
}

impl<'a> Builder<'a> {
    /// A schema written out; one that is no object or boolean is a finding and accepts everything.
    fn schema(&mut self, node: Option<Node<'a>>, at: &Pointer) -> Value {
        match node {
            Some(node) if node.is_object() || node.as_bool().is_some() => {
                self.inliner.write_out(node, at, &mut self.findings)
            }
            _ => {
                self.findings.add(Rule::I3, at, EW, "no schema stands here");
                json!({})
            }
        }
    }

    /// What a reference leads to, or the node itself.
    fn follow(&mut self, node: Node<'a>, at: &Pointer) -> Option<Node<'a>> {
        self.inliner.follow(node, at, &mut self.findings)
    }

    fn finish(mut self, format: Format) -> Definition {
        let mut names = BTreeSet::new();
        for operation in &self.operations {
            if !names.insert(&operation.name) {
                self.findings.add(Rule::I1, &operation.at, EW, "another operation has this name");
            }
            if operation.description.as_deref().unwrap_or_default().trim().is_empty() {
                self.findings.add(Rule::I2, &operation.at, WI, "nothing says what this operation does");
            }
        }
        let info = self.root.get("info").unwrap_or(self.root);
        let text = |names: &[&str]| names.iter().find_map(|name| info.get(name)?.as_str()).map(str::to_owned);
        let (title, description, version) = (text(&["title", "name"]), text(&["description"]), text(&["version"]));
        let mut servers = self.root.get("servers").map(servers).unwrap_or_default();
        servers.extend(["url", "endpoint"].iter().find_map(|name| self.root.get(name)?.as_str()).map(str::to_owned));
        if !servers.first().is_some_and(|server| is_web(server)) {
            self.findings.add(Rule::I5, &Pointer::root().child("servers"), WI, "nothing says where calls go");
        }
        let (operations, findings) = (self.operations, self.findings);
        Definition { format, title, description, version, servers, operations, findings }
    }

    /// Whether there is room for another operation.
    fn has_room(&mut self, at: &Pointer) -> bool {
        if self.operations.len() == OPERATIONS_MAX {
            self.findings.add(Rule::I8, at, EE, "these are more operations than are read");
            return false;
        }
        true
    }
}
