//! RFC 0020 §3.2: the constraint tree.
//!
//! The root is one tree or an array, which means all of them; `not` takes one constraint or an array, which means
//! none of them (`docs/decisions`). Leaves are numbered in reading order, the order of the decision record.

use crate::limits::Limits;
use crate::operator::{Operator, Predicate};
use crate::path::Path;
use crate::read::Place;
use crate::refusal::{Code, Refusal};
use json::{Key, Kind, Node, Pointer, Value};
use std::sync::Arc;

/// What a candidate must satisfy: a tree over numbered leaves.
#[derive(Clone, Debug)]
pub struct Constraints {
    pub(crate) tree: Tree,
    pub(crate) leaves: Vec<Leaf>,
    /// The steps by name that the paths begin with, each once, however many paths share it.
    pub(crate) steps: Arc<[Step]>,
}

/// One step by name from the record or from another step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) from: Option<usize>,
    pub(crate) key: Key,
    pub(crate) index: Option<usize>,
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub enum Tree {
    /// every one holds
    AllOf(Vec<Tree>),
    /// some one holds
    AnyOf(Vec<Tree>),
    /// this one does not hold
    Not(Box<Tree>),
    /// a leaf, by its number
    Leaf(usize),
}

/// A single predicate over a field.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Where to look.
    pub path: Path,
    /// The operator as written.
    pub operator: Operator,
    /// The operand as written.
    pub value: Value,
    /// The operator with its operand, ready to be asked.
    pub predicate: Predicate,
    /// Whether it stands under an odd number of `not`.
    pub negated: bool,
    /// Where it stands in the intent.
    pub at: Pointer,
    /// The step that its path begins with, and how many segments that takes.
    pub(crate) start: Option<usize>,
    pub(crate) done: usize,
}

impl Constraints {
    /// Reads a constraint tree that stands at `at`.
    pub fn read(node: Node<'_>, at: Pointer, limits: &Limits) -> Result<Self, Refusal> {
        let mut reader = Reader { limits, leaves: Vec::new(), steps: Vec::new(), patterns: 0, root: at.clone() };
        let place = Place::new(node, at);
        let tree = match node.kind() {
            Kind::Array => Tree::AllOf(reader.nodes(&place, 2, false)?),
            _ => reader.node(&place, 1, false)?,
        };
        Ok(Self { tree, leaves: reader.leaves, steps: reader.steps.into() })
    }

    /// Whether every leaf must hold.
    pub fn is_conjunction(&self) -> bool {
        fn joins(tree: &Tree) -> bool {
            match tree {
                Tree::AllOf(parts) => parts.iter().all(joins),
                Tree::AnyOf(_) | Tree::Not(_) => false,
                Tree::Leaf(_) => true,
            }
        }
        joins(&self.tree)
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The leaves, in reading order.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }
}

struct Reader<'a> {
    limits: &'a Limits,
    leaves: Vec<Leaf>,
    steps: Vec<Step>,
    patterns: usize,
    root: Pointer,
}

impl Reader<'_> {
    fn node(&mut self, place: &Place<'_>, depth: usize, negated: bool) -> Result<Tree, Refusal> {
        if depth > self.limits.tree_depth {
            let max = self.limits.tree_depth;
            return Err(Refusal::limit(Code::ConstraintTooDeep, place.at.clone(), "tree_depth", max, depth));
        }
        let is_leaf = ["path", "operator", "value"].iter().any(|member| place.node.get(member).is_some());
        let combinator = ["all_of", "any_of", "not"].into_iter().find(|member| place.node.get(member).is_some());
        match combinator.filter(|_| !is_leaf) {
            Some(name) => {
                place.closed(&[name])?;
                let inner = place.required(name)?;
                match name {
                    "all_of" => Ok(Tree::AllOf(self.nodes(&inner, depth + 1, negated)?)),
                    "any_of" => Ok(Tree::AnyOf(self.nodes(&inner, depth + 1, negated)?)),
                    _ => Ok(Tree::Not(Box::new(match inner.node.kind() {
                        Kind::Array => Tree::AnyOf(self.nodes(&inner, depth + 1, !negated)?),
                        _ => self.node(&inner, depth + 1, !negated)?,
                    }))),
                }
            }
            None => self.leaf(place, negated),
        }
    }

    fn nodes(&mut self, place: &Place<'_>, depth: usize, negated: bool) -> Result<Vec<Tree>, Refusal> {
        let elements = place.elements()?;
        if elements.is_empty() {
            return place.refuse(Code::EmptyList, "at least one constraint belongs here");
        }
        elements.iter().map(|element| self.node(element, depth, negated)).collect()
    }

    fn leaf(&mut self, place: &Place<'_>, negated: bool) -> Result<Tree, Refusal> {
        place.closed(&["path", "operator", "value"])?;
        let (path, operator, value) = (place.required("path")?, place.required("operator")?, place.required("value")?);
        if self.leaves.len() == self.limits.leaves {
            let (max, got) = (self.limits.leaves, self.limits.leaves + 1);
            return Err(Refusal::limit(Code::TooManyConstraints, self.root.clone(), "leaves", max, got));
        }
        let path = Path::read(path.string()?, &path.at, self.limits)?;
        let operator = Operator::read(&operator)?;
        if operator == Operator::Matches {
            self.patterns += 1;
            if self.patterns > self.limits.patterns {
                let (max, got) = (self.limits.patterns, self.patterns);
                return Err(Refusal::limit(Code::TooManyPatterns, value.at, "patterns", max, got));
            }
        }
        let predicate = Predicate::read(operator, &value, self.limits)?;
        let (value, at) = (value.node.to_value(), place.at.clone());
        let (start, done) = self.share(&path);
        self.leaves.push(Leaf { path, operator, value, predicate, negated, at, start, done });
        Ok(Tree::Leaf(self.leaves.len() - 1))
    }

    /// Files the steps by name that a path begins with.
    fn share(&mut self, path: &Path) -> (Option<usize>, usize) {
        let (mut from, mut done) = (None, 0);
        for (key, index) in path.plain_prefix() {
            let known = self.steps.iter().position(|step| step.from == from && step.key == *key);
            from = known.or_else(|| {
                self.steps.push(Step { from, key: key.clone(), index });
                Some(self.steps.len() - 1)
            });
            done += 1;
        }
        (from, done)
    }
}
