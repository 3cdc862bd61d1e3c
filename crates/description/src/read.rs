//! ADP Overview: from bytes to a description, in every form that is in use, with everything that is found on the way.
//!
//! Reading does not stop at the first flaw: documents from the wild are graded, and the caller chooses how strict to be.
//!
//! INVARIANT: the bytes are kept as they came; members that nobody here knows survive in them (R41).

use crate::context::Context;
use crate::finding::{EE, Findings};
use crate::links::{self, Link};
use crate::reader::Reader;
use crate::uri::is_web;
use crate::{Access, Activation, AgentDescription, Origin, Rule, agent};
use json::{Document, Kind, Limits, Node, ParseError, Pointer};

/// How large a description may be; as strict as every stored document.
pub const DESCRIPTION_LIMITS: Limits = Limits { subject: "description", bytes: 512 * 1024, ..Limits::DOCUMENT };

/// Which text a description follows, by its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The JSON-LD of the text.
    JsonLd,
    /// The plain JSON of ANP-07.
    Plain,
    /// Both at once.
    Hybrid,
    /// A product with interfaces, as an older toolkit writes it.
    Legacy,
    /// Nothing tells.
    Unmarked,
}

impl Form {
    fn of(root: Node<'_>) -> Self {
        let is = |name: &str, word: &str| root.get(name).and_then(Node::as_str) == Some(word);
        let linked = root.get("@context").is_some() || root.get("@type").is_some();
        match (linked, is("protocolType", "ANP")) {
            (true, true) => Self::Hybrid,
            (true, false) => Self::JsonLd,
            (false, _) if is("type", "Product") && root.get("interfaces").is_some() => Self::Legacy,
            (false, true) => Self::Plain,
            (false, false) => Self::Unmarked,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonLd => "json-ld",
            Self::Plain => "plain",
            Self::Hybrid => "hybrid",
            Self::Legacy => "legacy",
            Self::Unmarked => "unmarked",
        }
    }

    /// Whether the words of ANP-07 are at home in it, which has no `@context`.
    pub(crate) fn is_newer(self) -> bool {
        match self {
            Self::Plain | Self::Hybrid | Self::Legacy => true,
            Self::JsonLd | Self::Unmarked => false,
        }
    }
}

/// A description that was read.
#[derive(Clone, Debug)]
pub struct Reading {
    bytes: Box<[u8]>,
    document: Document,
    /// Which text it follows.
    pub form: Form,
    /// What it says.
    pub agent: AgentDescription,
    /// What is to be said about it.
    pub findings: Findings,
    /// What it leads to.
    pub links: Vec<Link>,
}

/// Reads a description; `origin` is where it was found, if it was fetched.
pub fn read(bytes: &[u8], origin: Option<&Origin<'_>>) -> Result<Reading, ParseError> {
    let document = Document::parse(bytes, &DESCRIPTION_LIMITS)?;
    let (form, mut findings) = (Form::of(document.root()), Findings::default());
    if document.root().kind() != Kind::Object {
        findings.add(Rule::R01, &Pointer::root(), EE, "this is no object");
        let agent = AgentDescription::default();
        return Ok(Reading { bytes: bytes.into(), document, form, agent, findings, links: Vec::new() });
    }
    let context = Context::read(document.root(), form, &mut findings);
    let mut reader = Reader { context, findings };
    let agent = agent::read(&mut reader, document.root(), form);
    let mut findings = reader.findings;
    let base = origin.map(|origin| origin.url).or(agent.id.as_deref().filter(|id| is_web(id)));
    let links = links::of(&agent, base, &mut findings);
    if let Some(origin) = origin {
        origin.check(document.root(), &agent, &mut findings);
    }
    Ok(Reading { bytes: bytes.into(), document, form, agent, findings, links })
}

impl Reading {
    /// The bytes as they came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The document as it came.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// What access to an element demands; with [`Activation::Absent`], to the agent itself.
    pub fn access(&self, element: &Activation) -> Access {
        self.agent.security.access(element)
    }
}
