//! One object of a document: its fields are asked for by name, and what is wrong with them is collected.

use crate::{Code, Finding};
use json::{Exceeded, Kind, Node, Pointer};

/// An object that is being read.
pub(super) struct Fields<'d, 'f> {
    node: Node<'d>,
    at: Pointer,
    found: &'f mut Vec<Finding>,
}

impl<'d, 'f> Fields<'d, 'f> {
    /// The outermost one.
    pub(super) fn root(node: Node<'d>, found: &'f mut Vec<Finding>) -> Self {
        Self { node, at: Pointer::root(), found }
    }

    pub(super) fn at(&self) -> &Pointer {
        &self.at
    }

    pub(super) fn add(&mut self, finding: Finding) {
        self.found.push(finding);
    }

    pub(super) fn find(&mut self, code: Code, name: &str, detail: impl Into<String>) {
        self.add(Finding::new(code, self.at.child(name), detail));
    }

    pub(super) fn exceeded(&mut self, name: &str, max: usize, got: usize) {
        let name = format!("agent.{name}");
        let detail = format!("{name} is at most {max}, here {got}");
        let limit = Some(Exceeded { name, max: max as u64, got: got as u64 });
        self.add(Finding { limit, ..Finding::new(Code::Limit, self.at.clone(), detail) });
    }

    /// Refuses every other field but those that begin with `x-`.
    pub(super) fn know(&mut self, known: &[&str]) {
        for name in self.names() {
            if !known.contains(&name.as_str()) {
                let detail = format!(
                    "there is no such field here; known are `{}`, and names that begin with `x-`",
                    known.join("`, `")
                );
                self.find(Code::UnknownField, &name, detail);
            }
        }
    }

    /// The names of its fields, without those that begin with `x-`.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.node.members().map(|(name, _)| name);
        names.filter(|name| !name.starts_with("x-")).map(str::to_owned).collect()
    }

    fn present(&self, name: &str) -> Option<Node<'d>> {
        self.node.get(name)
    }

    fn wrong(&mut self, name: &str, what: &str) {
        self.find(Code::FieldType, name, format!("this is {what}"));
    }

    /// A text that must be there and say something.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let Some(node) = self.present(name) else {
            self.find_missing(name);
            return None;
        };
        match node.as_str() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            Some(_) => {
                self.find(Code::MissingField, name, "this says nothing");
                None
            }
            None => {
                self.wrong(name, "a text");
                None
            }
        }
    }

    fn find_missing(&mut self, name: &str) {
        let detail = format!("`{name}` is missing");
        self.add(Finding::new(Code::MissingField, self.at.clone(), detail));
    }

    /// A text, or nothing.
    pub(super) fn optional_text(&mut self, name: &str) -> Option<String> {
        match self.present(name).map(|node| (node.kind(), node.as_str())) {
            None | Some((Kind::Null, _)) => None,
            Some((_, Some(_))) => self.text(name),
            Some((_, None)) => {
                self.wrong(name, "a text, or null");
                None
            }
        }
    }

    /// True or false, or nothing.
    pub(super) fn truth(&mut self, name: &str) -> Option<bool> {
        let node = self.present(name)?;
        if node.as_bool().is_none() {
            self.wrong(name, "`true` or `false`");
        }
        node.as_bool()
    }

    /// A whole number, or nothing.
    pub(super) fn whole(&mut self, name: &str) -> Option<i64> {
        let node = self.present(name)?;
        match node.as_f64() {
            Some(number) if number.fract() == 0.0 => Some(number as i64),
            _ => {
                self.wrong(name, "an integer");
                None
            }
        }
    }

    /// A map, or nothing.
    pub(super) fn map(&mut self, name: &str) -> Option<Fields<'d, '_>> {
        let node = self.present(name)?;
        match node.kind() {
            Kind::Null => None,
            Kind::Object => Some(Fields { node, at: self.at.child(name), found: self.found }),
            Kind::Bool | Kind::Number | Kind::String | Kind::Array => {
                self.wrong(name, "a map, or null");
                None
            }
        }
    }
}
