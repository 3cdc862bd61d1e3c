//! RFC 0020 §3.3 and A.3 R4: the part of a document that crosses the boundary.
//!
//! INVARIANT: a node is shown iff it stands at or below a node that an include reaches, and neither at nor below a
//! node that an exclude reaches. The containers above a shown node appear without their other contents.

#[cfg(test)]
mod tests;

use crate::fields::Field;
use crate::pointer::{Location, Node, Path, children};
use crate::refusal::Refusal;
use crate::value::Value;

/// The most pointers in both lists together.
const POINTERS_MAX: usize = 128;

/// Cuts a document to a projection; the inner error lists the include pointers that could not be supplied.
pub fn project(projection: &Value, document: &Value) -> Result<Result<Value, Vec<String>>, Refusal> {
    let projection = Projection::read(&Field::new(projection, "/projection"))?;
    Ok(projection.cut(document).payload())
}

/// The projection block of an intent.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    include: Vec<Path>,
    exclude: Vec<Path>,
}

impl Projection {
    /// Reads a projection block.
    pub(crate) fn read(block: &Field) -> Result<Projection, Refusal> {
        let fields = block.closed(&["include", "exclude"])?;
        let include = fields.required("include")?.some_elements()?;
        let exclude = fields.optional("exclude").map_or(Ok(Vec::new()), |list| list.elements())?;
        if include.len() + exclude.len() > POINTERS_MAX {
            return Err(block.refusal("too_many_pointers"));
        }
        let read = |list: Vec<Field>| -> Result<Vec<Path>, Refusal> {
            list.iter().map(|pointer| Path::read(pointer.text()?, &pointer.at)).collect()
        };
        Ok(Projection { include: read(include)?, exclude: read(exclude)? })
    }

    /// The projection laid over a document.
    pub(crate) fn cut<'d>(&self, document: &'d Value) -> Cut<'d> {
        let reached =
            |path: &Path| -> Vec<Location> { path.reach(document).into_iter().map(|node| node.location).collect() };
        let included = self.include.iter().map(|path| (path.written.clone(), reached(path))).collect();
        let mut excluded: Vec<Location> = self.exclude.iter().flat_map(reached).collect();
        excluded.sort();
        Cut { document, included, excluded }
    }
}

/// What a projection reaches in one document.
pub(crate) struct Cut<'d> {
    document: &'d Value,
    /// The include pointers as they were written, each with the nodes it reaches.
    included: Vec<(String, Vec<Location>)>,
    /// The nodes that the excludes reach, sorted.
    excluded: Vec<Location>,
}

impl Cut<'_> {
    /// The payload, or the include pointers that could not be supplied, in the order written.
    pub(crate) fn payload(&self) -> Result<Value, Vec<String>> {
        let supplied = |locations: &[Location]| locations.iter().any(|location| !self.removes(location));
        let missing: Vec<String> = self
            .included
            .iter()
            .filter(|(_, locations)| !supplied(locations))
            .map(|(written, _)| written.clone())
            .collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let mut included: Vec<&Location> = self.included.iter().flat_map(|(_, locations)| locations).collect();
        included.sort();
        let root = Node { location: Location::new(), value: self.document };
        Ok(self.shown_part(&root, false, &included).unwrap_or(Value::Null))
    }

    /// Whether a node and everything below it is shown.
    pub(crate) fn shows_all_of(&self, location: &Location) -> bool {
        let included = self.included.iter().flat_map(|(_, locations)| locations).any(|top| location.starts_with(top));
        let cut_below = self.excluded.iter().any(|excluded| excluded.starts_with(location));
        included && !self.removes(location) && !cut_below
    }

    /// Whether a node, or one above it, is excluded.
    fn removes(&self, location: &Location) -> bool {
        self.excluded.iter().any(|excluded| location.starts_with(excluded))
    }

    /// What is left of a node; `inside` says whether it stands below an included one.
    fn shown_part(&self, node: &Node, inside: bool, included: &[&Location]) -> Option<Value> {
        if self.excluded.binary_search(&node.location).is_ok() {
            return None;
        }
        let inside = inside || included.binary_search(&&node.location).is_ok();
        let parts: Vec<Option<Value>> =
            children(node).iter().map(|child| self.shown_part(child, inside, included)).collect();
        if !inside && parts.iter().all(Option::is_none) {
            return None;
        }
        match node.value {
            Value::Array(_) => Some(Value::Array(with_holes(parts))),
            Value::Object(members) => {
                let keys = members.iter().map(|(key, _)| key.clone());
                let shown = keys.zip(parts).filter_map(|(key, part)| Some((key, part?)));
                Some(Value::Object(shown.collect()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(node.value.clone()),
        }
    }
}

/// Elements keep their positions: a hole before the last one shown is null, and nothing follows that one.
fn with_holes(parts: Vec<Option<Value>>) -> Vec<Value> {
    let length = parts.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    parts.into_iter().take(length).map(|part| part.unwrap_or(Value::Null)).collect()
}
