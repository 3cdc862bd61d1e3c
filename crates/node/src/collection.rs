//! RFC 0020 §3.6: which records each category asks for.
//!
//! A manifest is a candidate by itself, and each of its actions is one, too, with what an agent must know of the
//! manifest beside it. An Agent Description is asked for where manifests are, and says what it is (decisions/0190). The
//! other kinds of records stand for themselves.

use crate::descriptions;
use aql::{Category, Signals};
use json::{Document, Limits, Node, ParseError, Shapes, Writer};
use std::cell::RefCell;
use store::Kind;

/// A collection of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Collection {
    Manifests = 0,
    Offers = 1,
    Knowledge = 2,
    Receipts = 3,
    Evidence = 4,
    Actions = 5,
    /// Who sees which records differently; nobody asks it by a category.
    Restricted = 6,
}

impl Collection {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Manifests,
        Self::Offers,
        Self::Knowledge,
        Self::Receipts,
        Self::Evidence,
        Self::Actions,
        Self::Restricted,
    ];

    /// Where the candidates of a category are; nowhere for a feed of changes.
    pub(crate) fn of(category: Category) -> Option<Self> {
        match category {
            Category::Discovery | Category::Delegation => Some(Self::Manifests),
            Category::Commercial => Some(Self::Offers),
            Category::Knowledge => Some(Self::Knowledge),
            Category::Action => Some(Self::Actions),
            Category::Subscription => None,
        }
    }

    pub(crate) fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Manifest | Kind::Description => Self::Manifests,
            Kind::Offer => Self::Offers,
            Kind::Knowledge => Self::Knowledge,
            Kind::Receipt => Self::Receipts,
            Kind::Evidence => Self::Evidence,
        }
    }

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Manifests => "manifests",
            Self::Offers => "offers",
            Self::Knowledge => "knowledge",
            Self::Receipts => "receipts",
            Self::Evidence => "evidence",
            Self::Actions => "actions",
            Self::Restricted => "restricted",
        }
    }
}

/// The record in a signed publication or beside the bytes of a description, or the bare record of an import: all of it,
/// for whoever brought it. What others see of it is a [`crate::gate::View`].
pub(crate) fn record_of(body: &Document) -> Node<'_> {
    let root = body.root();
    if is_wrapped(root) { root.get("record").unwrap_or(root) } else { root }
}

/// Whether a stored document has its record inside.
pub(crate) fn is_wrapped(root: Node<'_>) -> bool {
    is_publication(root) || descriptions::is_kept(root)
}

/// Whether a stored document is a publication with the record inside.
pub(crate) fn is_publication(root: Node<'_>) -> bool {
    ["publication_id", "record", "publisher_did", "signature"].iter().all(|member| root.get(member).is_some())
}

/// Who signed the publication that brought a record; nobody did with a record that an operator brought in.
pub(crate) fn signer(body: &Document) -> Option<&str> {
    let root = body.root();
    is_publication(root).then(|| root.get("publisher_did")).flatten().and_then(Node::as_str)
}

thread_local! {
    /// Records of one kind have the same names: whoever reads many of them sorts the names once.
    static SHAPES: RefCell<Shapes> = RefCell::default();
    /// The same for stored bodies: the names of what they hide are in no table that a question of others walks.
    static STORED_SHAPES: RefCell<Shapes> = RefCell::default();
}

/// For stored bodies, whose records were held to [`Limits::DOCUMENT`]; beside that of a description stand its bytes.
const STORED: Limits = Limits {
    bytes: 4 * Limits::DOCUMENT.bytes,
    depth: Limits::DOCUMENT.depth + 1,
    nodes: Limits::DOCUMENT.nodes + 8,
    string_bytes: Limits::DOCUMENT.bytes,
    ..Limits::DOCUMENT
};

/// Reads a stored body, which was found good before.
pub(crate) fn read_stored(bytes: &[u8]) -> Result<Document, ParseError> {
    STORED_SHAPES.with_borrow_mut(|shapes| Document::parse_with(bytes, &STORED, shapes))
}

/// Reads what was made of a document that was found good before.
pub(crate) fn read_again(bytes: &[u8]) -> Result<Document, ParseError> {
    SHAPES.with_borrow_mut(|shapes| Document::parse_with(bytes, &STORED, shapes))
}

/// The members of an action's record that come from its manifest.
const FROM_MANIFEST: [&str; 6] = ["action_id", "categories", "manifest_id", "oap_version", "risk_class", "tool_did"];

/// An action of a manifest as a record of its own, and what it is called.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) id: String,
    pub(crate) document: Document,
}

impl Action {
    /// The action at a position of a manifest; `None` where there is none, or it has no name.
    pub(crate) fn of(manifest: Node<'_>, position: usize) -> Option<Self> {
        let action = manifest.get("actions")?.at(position).filter(|action| action.is_object())?;
        let name = action.get("id")?.as_str()?;
        let tool = manifest.get("tool")?;
        let did = tool.get("did")?.as_str()?;
        let id = format!("{did}#{name}");
        let bytes = written(manifest, tool, action, &id, did, name);
        let document = read_again(&bytes).ok()?;
        Some(Self { id, document })
    }
}

/// Both lists of members are in canonical order, so they are merged; what the action says itself goes first.
fn written(manifest: Node<'_>, tool: Node<'_>, action: Node<'_>, id: &str, did: &str, name: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    let mut beside = FROM_MANIFEST.iter().copied().filter(|member| action.get(member).is_none()).peekable();
    let inherited = |member: &str, writer: &mut Writer| match member {
        "action_id" => text(writer, member, name),
        "manifest_id" => text(writer, member, id),
        "tool_did" => text(writer, member, did),
        "categories" => node(writer, member, tool.get(member)),
        _ => node(writer, member, manifest.get(member)),
    };
    writer.object();
    for (own, value) in action.members() {
        while let Some(member) = beside.next_if(|member| json::compare_keys(member, own).is_lt()) {
            inherited(member, &mut writer);
        }
        writer.name(own);
        writer.node(value);
    }
    beside.for_each(|member| inherited(member, &mut writer));
    writer.end_object();
    writer.finish()
}

fn text(writer: &mut Writer, name: &str, value: &str) {
    writer.name(name);
    writer.string(value);
}

fn node(writer: &mut Writer, name: &str, value: Option<Node<'_>>) {
    if let Some(value) = value {
        writer.name(name);
        writer.node(value);
    }
}

/// What a record declares of its own quality that counts without anybody else's word: its latency (`docs/decisions`).
pub(crate) fn declared(record: Node<'_>) -> Signals {
    let latency = |block: &str| record.get(block)?.get("latency_p99_ms")?.as_f64().filter(|latency| *latency >= 0.0);
    Signals { latency_p99_ms: latency("cost_disclosure").or_else(|| latency("sla")), ..Signals::default() }
}

/// Whose evidence speaks for a record: the tool itself, or whoever offers.
pub(crate) fn subject<'a>(collection: Collection, record: Node<'a>) -> Option<&'a str> {
    let member = match collection {
        Collection::Manifests if descriptions::is_one(record) => "did",
        Collection::Manifests => return record.get("tool")?.get("did")?.as_str(),
        Collection::Actions => "tool_did",
        Collection::Offers => "provider_did",
        Collection::Knowledge => "publisher_did",
        Collection::Receipts | Collection::Evidence | Collection::Restricted => return None,
    };
    record.get(member)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn an_action_brings_what_an_agent_must_know_of_its_manifest() {
        let manifest = Document::of(&json!({
            "oap_version": "1.0",
            "risk_class": "limited",
            "tool": {"did": "did:web:a.example", "categories": ["maps"]},
            "actions": [{"id": "render", "summary": "Draws", "risk_class": "high", "zoom": 3}, {"summary": "no name"}],
        }))
        .unwrap();
        let action = Action::of(manifest.root(), 0).unwrap();
        assert_eq!(action.id, "did:web:a.example#render");
        assert_eq!(
            action.document.root().to_value(),
            json!({
                "action_id": "render", "categories": ["maps"], "id": "render", "manifest_id": "did:web:a.example#render",
                "oap_version": "1.0", "risk_class": "high", "summary": "Draws", "tool_did": "did:web:a.example", "zoom": 3,
            })
        );
        assert!(Action::of(manifest.root(), 1).is_none() && Action::of(manifest.root(), 2).is_none());
    }
}
