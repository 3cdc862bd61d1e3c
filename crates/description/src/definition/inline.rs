//! Schemas written out: what a reference means stands where the reference stood.

use crate::Rule;
use crate::finding::{EW, Findings, II};
use json::{Kind, Map, Node, Pointer, Value, json};

/// Values that the schemas of one definition may add up to once they are written out.
pub const INLINED_NODES_MAX: usize = 50_000;

/// References inside references, and levels of a schema, are followed this far.
const DEPTH_MAX: usize = 96;

/// Members whose values are data and no schemas.
const DATA: [&str; 5] = ["enum", "const", "default", "example", "examples"];

/// Members whose members are schemas, whatever they are called.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

const TOO_LARGE: &str = "the schemas are too large once they are written out; the rest accepts everything";

/// Writes out the schemas of one document.
pub(super) struct Inliner<'a> {
    root: Node<'a>,
    left: usize,
    /// Positions of what is being written out, so that circles are seen.
    open: Vec<usize>,
    /// Whether it was said that references are in use.
    told: bool,
}

impl<'a> Inliner<'a> {
    pub(super) fn new(root: Node<'a>) -> Self {
        Self { root, left: INLINED_NODES_MAX, open: Vec::new(), told: false }
    }

    /// A schema without references.
    pub(super) fn write_out(&mut self, schema: Node<'a>, at: &Pointer, findings: &mut Findings) -> Value {
        self.schema(schema, at, 0, findings)
    }

    fn schema(&mut self, node: Node<'a>, at: &Pointer, depth: usize, findings: &mut Findings) -> Value {
        if !self.spend(depth, at, findings) {
            return json!({});
        }
        if let Some(reference) = node.get("$ref").filter(|reference| reference.kind() == Kind::String) {
            return self.reference(node, reference, at, depth, findings);
        }
        match node.kind() {
            Kind::Object => Value::Object(self.members(node, at, depth, findings)),
            Kind::Array => {
                let elements = node.elements().enumerate();
                elements.map(|(n, element)| self.schema(element, &at.child(n), depth + 1, findings)).collect()
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => node.to_value(),
        }
    }

    fn members(&mut self, node: Node<'a>, at: &Pointer, depth: usize, findings: &mut Findings) -> Map {
        let mut members = Map::new();
        for (name, value) in node.members() {
            let at = at.child(name);
            let written = if DATA.contains(&name) {
                if self.spend_all(value, &at, findings) { value.to_value() } else { Value::Null }
            } else if MAPS.contains(&name) && value.is_object() {
                let schemas = value.members().map(|(inner, schema)| {
                    (inner.to_owned(), self.schema(schema, &at.child(inner), depth + 1, findings))
                });
                Value::Object(schemas.collect())
            } else {
                self.schema(value, &at, depth + 1, findings)
            };
            members.insert(name.to_owned(), written);
        }
        members
    }

    fn reference(
        &mut self,
        node: Node<'a>,
        reference: Node<'a>,
        at: &Pointer,
        depth: usize,
        findings: &mut Findings,
    ) -> Value {
        if !self.told {
            self.told = true;
            findings.add(Rule::I7, at, II, "schemas are referred to instead of standing where they are used");
        }
        let Some(target) = self.target(reference, at, findings) else { return json!({}) };
        if self.open.contains(&target.position()) {
            findings.add(Rule::I6, at, EW, "this reference comes back to itself; it accepts everything");
            return json!({});
        }
        self.open.push(target.position());
        let mut written = self.schema(target, at, depth + 1, findings);
        self.open.pop();
        // What stands beside a reference adds to it.
        if let Value::Object(written) = &mut written {
            for (name, value) in node.members().filter(|(name, _)| *name != "$ref") {
                if self.spend_all(value, at, findings) {
                    written.entry(name).or_insert_with(|| value.to_value());
                }
            }
        }
        written
    }

    fn target(&mut self, reference: Node<'a>, at: &Pointer, findings: &mut Findings) -> Option<Node<'a>> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let target = pointer.and_then(|pointer| Pointer::parse(pointer).ok()?.find(self.root));
        if target.is_none() {
            findings.add(Rule::I6, at, EW, "this reference leads nowhere in this document; it accepts everything");
        }
        target
    }

    /// What a reference leads to after all, or the node itself.
    pub(super) fn follow(&mut self, node: Node<'a>, at: &Pointer, findings: &mut Findings) -> Option<Node<'a>> {
        let mut node = node;
        for _ in 0..DEPTH_MAX {
            match node.get("$ref").filter(|reference| reference.kind() == Kind::String) {
                Some(reference) => node = self.target(reference, at, findings)?,
                None => return Some(node),
            }
        }
        findings.add(Rule::I6, at, EW, "this reference comes back to itself");
        None
    }

    fn spend(&mut self, depth: usize, at: &Pointer, findings: &mut Findings) -> bool {
        let enough = depth < DEPTH_MAX && self.left > 0;
        if !enough {
            findings.add(Rule::I6, at, EW, TOO_LARGE);
        }
        self.left = self.left.saturating_sub(1);
        enough
    }

    /// Takes a value as it is, if there is room for it.
    fn spend_all(&mut self, value: Node<'a>, at: &Pointer, findings: &mut Findings) -> bool {
        let (mut waiting, mut count) = (vec![value], 0);
        while let Some(node) = waiting.pop() {
            count += 1;
            waiting.extend(node.children());
        }
        let enough = count <= self.left;
        if !enough {
            findings.add(Rule::I6, at, EW, TOO_LARGE);
        }
        self.left = self.left.saturating_sub(count);
        enough
    }
}
