//! RFC 0020 §5: the confidentiality gate: what of a stored record somebody may see.
//!
//! Beside its record a publication may say what is `restricted`: paths, each with the DIDs that may see what it
//! reaches. Everybody else's view is the record without it (decisions/0080). A value that several restrictions reach is
//! seen by those whom all of them name. The index, the facts beside it, the evidence and the packed records are made from
//! the public view, once; what looks different to somebody is in `own`, and only he pays for it (decisions/0300).
//!
//! INVARIANT: a stored record is judged, ranked, explained, counted and shown as a [`View`] for a [`Viewer`], and only
//! this room makes one.

mod own;

pub(crate) use own::{Own, Truths, own_views};

use crate::collection::{Collection, is_publication, is_wrapped, read_again, record_of};
use crate::indexes::Indexes;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use aql::{Candidate, Constraints, Path, Signals};
use json::{Document, Kind as JsonKind, Node as JsonNode, Pointer, Writer, json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::Kind;
use trust::Did;

/// Restrictions of one record.
pub(crate) const RESTRICTIONS_MAX: usize = 32;
/// DIDs that one restriction names.
pub(crate) const AUDIENCE_MAX: usize = 64;
/// Values that all restrictions of one record may look at; a cut must cost no more than a few readings of the record.
pub(crate) const RESTRICTION_VISITS_MAX: u64 = 65_536;
/// Records that may look different to one DID; all of them are looked at for each of its questions.
pub(crate) const VIEWS_MAX: u64 = 1_024;
/// Bytes of those records, with what their actions take from their manifests.
pub(crate) const VIEW_BYTES_MAX: u64 = 8 << 20;

/// Where a publication says what is restricted.
pub(crate) const MEMBER: &str = "restricted";

/// Whose eyes a record is seen with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Viewer {
    /// Everybody whom no restriction names, and whoever did not prove to be somebody.
    Public,
    /// Somebody whose signature holds.
    Named(Did),
}

/// What a publication keeps from the public; every path in it is good.
#[derive(Debug, Default)]
pub(crate) struct Restrictions(Vec<Restriction>);

#[derive(Debug)]
struct Restriction {
    path: Path,
    audience: Vec<String>,
}

impl Restrictions {
    /// Reads the restrictions of a publication; none when it says nothing of them.
    pub(crate) fn read(publication: JsonNode<'_>) -> Result<Self, Error> {
        let Some(listed) = publication.get(MEMBER) else { return Ok(Self::default()) };
        let at = Pointer::root().child(MEMBER);
        let listed = list(listed, &at, "restrictions", RESTRICTIONS_MAX)?;
        let each = listed.enumerate().map(|(number, node)| Restriction::read(node, &at.child(number)));
        each.collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everybody whom a restriction names.
    pub(crate) fn audience(&self) -> BTreeSet<&str> {
        self.0.iter().flat_map(|restriction| &restriction.audience).map(String::as_str).collect()
    }

    /// Whether the restrictions name DIDs and fit their record: it keeps its name, and a cut is cheap.
    pub(crate) fn check(&self, record: JsonNode<'_>) -> Result<(), Refusal> {
        let (mut hidden, mut visits, name) = (Vec::new(), 0, aql::own_id(record));
        for (number, restriction) in self.0.iter().enumerate() {
            restriction.reach(record, &mut visits, &mut hidden);
            let at = Pointer::root().child(MEMBER).child(number);
            restriction.check_audience(&at.child("audience"))?;
            let at = at.child("path");
            if visits > RESTRICTION_VISITS_MAX {
                let detail = "the restrictions look at too much of the record; name narrower paths";
                let refusal = Refusal::new(Class::InvalidInput, "path_too_complex", detail).at(at);
                return Err(refusal.limited("restriction_visits", RESTRICTION_VISITS_MAX, visits));
            }
            hidden.sort_unstable();
            hidden.dedup();
            if !keeps_its_name(record, &hidden, name.as_deref()) {
                let detail = "the whole record and its name cannot be restricted; restrict what is beside the name";
                return Err(Refusal::new(Class::InvalidInput, "record_name_restricted", detail).at(at));
            }
        }
        Ok(())
    }

    /// Whether a viewer may see everything, whatever the record holds.
    fn hide_nothing_from(&self, viewer: &Viewer) -> bool {
        self.0.iter().all(|restriction| restriction.admits(viewer))
    }

    /// The record without what is kept from a viewer.
    ///
    /// It is written anew also when nothing of it goes, so that an absent value costs what a hidden one does.
    fn cut(&self, record: JsonNode<'_>, viewer: &Viewer) -> Vec<u8> {
        let (mut hidden, mut visits) = (Vec::new(), 0);
        for restriction in self.0.iter().filter(|restriction| !restriction.admits(viewer)) {
            restriction.reach(record, &mut visits, &mut hidden);
        }
        hidden.sort_unstable();
        let mut writer = Writer::default();
        write_without(&mut writer, record, &hidden);
        writer.finish()
    }
}

impl Restriction {
    fn read(node: JsonNode<'_>, at: &Pointer) -> Result<Self, Error> {
        if let Some((name, _)) = node.members().find(|(name, _)| !["path", "audience"].contains(name)) {
            let detail = "a restriction has `path` and `audience`";
            return Err(Refusal::new(Class::InvalidInput, "unknown_field", detail).at(at.child(name)).into());
        }
        let member = |name: &str| {
            let detail = format!("a restriction needs `{name}`");
            let missing = || Refusal::new(Class::InvalidInput, "missing_field", detail).at(at.child(name));
            node.get(name).ok_or_else(missing)
        };
        let path = Path::read(text(member("path")?, &at.child("path"))?, &at.child("path"), &aql::Limits::STANDARD)?;
        let at = at.child("audience");
        let listed = list(member("audience")?, &at, "audience", AUDIENCE_MAX)?.enumerate();
        let audience = listed.map(|(number, name)| text(name, &at.child(number)).map(str::to_owned));
        Ok(Self { path, audience: audience.collect::<Result<_, _>>()? })
    }

    /// Done once, when a record comes in: a did:key costs as much as a signature.
    fn check_audience(&self, at: &Pointer) -> Result<(), Refusal> {
        for (number, name) in self.audience.iter().enumerate() {
            let refuse = |code, detail: String| Refusal::new(Class::InvalidInput, code, detail).at(at.child(number));
            Did::parse(name).map_err(|error| refuse(error.code(), error.to_string()))?;
        }
        Ok(())
    }

    fn admits(&self, viewer: &Viewer) -> bool {
        match viewer {
            Viewer::Public => false,
            Viewer::Named(did) => self.audience.iter().any(|name| name == did.as_str()),
        }
    }

    fn reach(&self, record: JsonNode<'_>, visits: &mut u64, hidden: &mut Vec<usize>) {
        let _: ControlFlow<()> = self.path.reach(record, visits, |value| {
            hidden.push(value.position());
            ControlFlow::Continue(())
        });
    }
}

/// The elements of a list that has some, and not too many.
fn list<'a>(
    node: JsonNode<'a>,
    at: &Pointer,
    name: &str,
    most: usize,
) -> Result<impl Iterator<Item = JsonNode<'a>>, Refusal> {
    let refuse = |code, detail: &str| Refusal::new(Class::InvalidInput, code, detail).at(at.clone());
    if node.kind() != JsonKind::Array {
        return Err(refuse("wrong_type", "a list belongs here"));
    }
    if node.is_empty() {
        return Err(refuse("empty_list", "the list is empty; name somebody, or leave the restriction out"));
    }
    if node.len() > most {
        let refusal = refuse("list_too_long", "the list is longer than allowed");
        return Err(refusal.limited(name, most as u64, node.len() as u64));
    }
    Ok(node.elements())
}

fn text<'a>(node: JsonNode<'a>, at: &Pointer) -> Result<&'a str, Refusal> {
    let wrong = || Refusal::new(Class::InvalidInput, "wrong_type", "a text belongs here").at(at.clone());
    node.as_str().ok_or_else(wrong)
}

fn keeps_its_name(record: JsonNode<'_>, hidden: &[usize], name: Option<&str>) -> bool {
    let is_hidden = |node: JsonNode<'_>| hidden.binary_search(&node.position()).is_ok();
    if is_hidden(record) {
        return false;
    }
    let mut writer = Writer::default();
    writer.object();
    // The members that may name a record, and nothing else of it.
    for member in ["action_id", "id", "offer_id", "tool"] {
        if let Some(value) = record.get(member).filter(|value| !is_hidden(*value)) {
            writer.name(member);
            write_without(&mut writer, value, hidden);
        }
    }
    writer.end_object();
    read_again(&writer.finish()).is_ok_and(|left| aql::own_id(left.root()).as_deref() == name)
}

/// Writes a value without those that stand at some positions; `hidden` is in order.
fn write_without(writer: &mut Writer, node: JsonNode<'_>, hidden: &[usize]) {
    let shown = |child: &JsonNode<'_>| hidden.binary_search(&child.position()).is_err();
    match node.kind() {
        JsonKind::Object => {
            writer.object();
            for (name, member) in node.members().filter(|(_, member)| shown(member)) {
                writer.name(name);
                write_without(writer, member, hidden);
            }
            writer.end_object();
        }
        JsonKind::Array => {
            writer.array();
            node.elements().filter(shown).for_each(|element| write_without(writer, element, hidden));
            writer.end_array();
        }
        JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => writer.node(node),
    }
}

/// A stored record as somebody sees it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    document: Arc<Document>,
    is_cut: bool,
}

impl View {
    /// What a viewer may see of a stored body.
    pub(crate) fn of(body: impl Into<Arc<Document>>, viewer: &Viewer) -> Result<Self, Error> {
        let body = body.into();
        let root = body.root();
        if !is_publication(root) || root.get(MEMBER).is_none() {
            return Ok(Self::whole(body));
        }
        // What was stored was read before. If it cannot be read now, nothing of it is shown.
        let restrictions = Restrictions::read(root).map_err(Error::fault)?;
        if restrictions.hide_nothing_from(viewer) {
            return Ok(Self::whole(body));
        }
        let cut = restrictions.cut(record_of(&body), viewer);
        read_again(&cut).map(Self::cut).map_err(Error::fault)
    }

    /// A stored body of which nothing was taken; for the body of a view that was packed.
    pub(crate) fn whole(body: impl Into<Arc<Document>>) -> Self {
        Self { document: body.into(), is_cut: false }
    }

    /// What restrictions left of a record; for the record of a view that was packed.
    pub(crate) fn cut(record: impl Into<Arc<Document>>) -> Self {
        Self { document: record.into(), is_cut: true }
    }

    /// What the view is made of: the stored body, or what was left of its record.
    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// The record.
    pub(crate) fn record(&self) -> JsonNode<'_> {
        if self.is_cut { self.document.root() } else { record_of(&self.document) }
    }

    /// Whether restrictions were applied, whether or not there was something to take away.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The record as a candidate.
    pub(crate) fn into_candidate(self, signals: Signals) -> Candidate {
        let id = aql::own_id(self.record()).unwrap_or_default();
        if !self.is_cut && is_wrapped(self.document.root()) {
            return Candidate::published(id, self.document, signals);
        }
        Candidate::new(id, self.document, None, signals)
    }
}

/// What is filed for a record that looks different to some.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) document: Document,
    pub(crate) fact: Vec<u8>,
}

impl Notice {
    /// Who sees a stored body differently, and what looking at it costs; `None` when everybody sees the same.
    pub(crate) fn of(kind: Kind, body: &Document) -> Result<Option<Self>, Error> {
        if !is_publication(body.root()) {
            return Ok(None);
        }
        let restrictions = Restrictions::read(body.root()).map_err(Error::fault)?;
        if restrictions.is_empty() {
            return Ok(None);
        }
        let document = Document::of(&json!({"audience": restrictions.audience()})).map_err(Error::fault)?;
        let weight = u32::try_from(weight(body)).unwrap_or(u32::MAX);
        let mut fact = vec![Collection::of_kind(kind) as u8];
        fact.extend(weight.to_le_bytes());
        Ok(Some(Self { document, fact }))
    }
}

/// The bytes of a record, and of what each of its actions takes from it.
pub(crate) fn weight(body: &Document) -> u64 {
    let (bytes, record) = (|node| json::canonical(node).len() as u64, record_of(body));
    let tool = record.get("tool");
    let inherited = [record.get("oap_version"), record.get("risk_class"), tool.and_then(|tool| tool.get("categories"))];
    // The tool's DID stands in an action's record twice.
    let did = tool.and_then(|tool| tool.get("did")).map_or(0, bytes);
    let each = inherited.into_iter().flatten().map(bytes).sum::<u64>() + 2 * did;
    bytes(record) + record.get("actions").map_or(0, JsonNode::len) as u64 * each
}

/// Everybody to whom a stored body looks different than to the public.
pub(crate) fn audience_of(body: &Document) -> Result<BTreeSet<String>, Error> {
    if !is_publication(body.root()) {
        return Ok(BTreeSet::new());
    }
    let restrictions = Restrictions::read(body.root()).map_err(Error::fault)?;
    Ok(restrictions.audience().into_iter().map(str::to_owned).collect())
}

/// The manifests that look different to a DID.
pub(crate) fn manifests_named(indexes: &Indexes, did: &str) -> Result<Vec<u64>, Error> {
    let own = |named: &Named| named.collection == Collection::Manifests as u8;
    Ok(named(indexes, did)?.iter().filter(|named| own(named)).map(|named| named.source).collect())
}

/// A record that looks different to somebody.
struct Named {
    source: u64,
    collection: u8,
    weight: u64,
}

/// The records that look different to a DID, the oldest first, as far as there may be.
fn named(indexes: &Indexes, did: &str) -> Result<Vec<Named>, Error> {
    let index = indexes.of(Collection::Restricted);
    if index.count() == 0 {
        return Ok(Vec::new());
    }
    let leaf = Document::of(&json!({"path": "/audience/*", "operator": "eq", "value": did})).map_err(Error::fault)?;
    let constraints = Constraints::read(leaf.root(), Pointer::root(), &aql::Limits::STANDARD)?;
    let read = |unit| {
        let (&collection, weight) = index.fact(unit)?.split_first()?;
        let weight = u32::from_le_bytes(weight.try_into().ok()?).into();
        Some(Named { source: index.source(unit)?, collection, weight })
    };
    let mut found: Vec<Named> = index.enumerate(&constraints)?.possible.iter().filter_map(read).collect();
    found.sort_unstable_by_key(|named| named.source);
    Ok(found)
}

impl Node {
    /// Whether everybody whom a record names has room for one more record that looks different to them.
    pub(crate) fn check_audience(&self, restrictions: &Restrictions, id: &str, body: &Document) -> Result<(), Error> {
        if restrictions.is_empty() {
            return Ok(());
        }
        let weight = weight(body);
        let replaced = self.store.record(id)?.map(|record| record.number);
        let indexes = self.catalog.indexes()?;
        for did in restrictions.audience() {
            let mut others = named(&indexes, did)?;
            others.retain(|other| Some(other.source) != replaced);
            let views = others.len() as u64 + 1;
            let bytes = others.iter().map(|other| other.weight).sum::<u64>() + weight;
            for (name, most, got) in [("views", VIEWS_MAX, views), ("view_bytes", VIEW_BYTES_MAX, bytes)] {
                if got > most {
                    let detail = "one of those named sees as many restricted records as one may; restrict fewer";
                    let at = Pointer::root().child(MEMBER);
                    let refusal = Refusal::new(Class::Conflict, "audience_full", detail).at(at);
                    return Err(refusal.limited(name, most, got).into());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
