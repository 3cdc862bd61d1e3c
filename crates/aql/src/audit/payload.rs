//! RFC 0020 §3.3, A.1: what a payload says about the record it was cut from, and what it cannot say.
//!
//! Where a value lies decides whether a projection shows it, never what it is. So a value that would be shown and is
//! not there does not exist in the record; a value that would be hidden may exist. A leaf is settled when every record
//! that this payload can have been cut from agrees about it.

use super::Findings;
use super::rule::Rule;
use crate::constraint::Leaf;
use crate::evaluate::{EvaluationError, Meter};
use crate::operator::{Literal, Predicate};
use crate::path::{Child, Path, Segment};
use crate::projection::Projection;
use json::{Document, Kind, Node, Pointer};
use std::ops::ControlFlow;

/// A payload with what the projection makes of each of its places.
pub(super) struct Payload<'a> {
    document: &'a Document,
    spots: Vec<Spot>,
}

/// What is known about one place of the payload.
#[derive(Clone, Debug, Default)]
struct Spot {
    sight: Sight,
    /// Whether children that nothing names may be hidden here.
    hides_unnamed: bool,
    /// Children that an include or exclude names, that are not there, and whether they may be hidden.
    named: Vec<(String, bool)>,
}

/// How much of a value is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sight {
    /// There is a value, and nothing more is known: a hole in an array.
    #[default]
    Hole,
    /// A container on the way to something that is shown.
    Way,
    /// Shown; something below it may be hidden.
    Shown,
    /// Shown, and nothing below it can be hidden.
    Whole,
}

/// The projection at one place: the states of its paths.
struct Standing {
    include: Vec<u64>,
    exclude: Vec<u64>,
    covered: bool,
    excluded: bool,
}

impl Standing {
    fn at_root(projection: &Projection) -> Self {
        let starts = |paths: &[Path]| paths.iter().map(Path::start).collect::<Vec<u64>>();
        Self::new(projection, starts(projection.include()), starts(projection.exclude()), (false, false))
    }

    fn new(projection: &Projection, include: Vec<u64>, exclude: Vec<u64>, above: (bool, bool)) -> Self {
        let arrives = |paths: &[Path], states: &[u64]| paths.iter().zip(states).any(|(path, at)| path.arrives(*at));
        let covered = above.0 || arrives(projection.include(), &include);
        let excluded = above.1 || arrives(projection.exclude(), &exclude);
        Self { include, exclude, covered, excluded }
    }

    fn enter(&self, projection: &Projection, child: Child<'_>) -> Self {
        let enter = |paths: &[Path], states: &[u64]| -> Vec<u64> {
            paths.iter().zip(states).map(|(path, at)| path.enter(*at, child)).collect()
        };
        let (include, exclude) = (projection.include(), projection.exclude());
        let above = (self.covered, self.excluded);
        Self::new(projection, enter(include, &self.include), enter(exclude, &self.exclude), above)
    }

    /// Whether a value here would be in the payload.
    fn shows(&self) -> bool {
        self.covered && !self.excluded
    }

    /// The names that some path expects next.
    fn names(&self, projection: &Projection) -> Vec<String> {
        let of = |paths: &[Path], states: &[u64]| -> Vec<String> {
            paths.iter().zip(states).flat_map(|(path, at)| awaited_names(path, *at)).map(str::to_owned).collect()
        };
        let mut names = of(projection.include(), &self.include);
        names.extend(of(projection.exclude(), &self.exclude));
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn awaited_names(path: &Path, states: u64) -> impl Iterator<Item = &str> {
    path.awaited(states).filter_map(|(_, segment)| match segment {
        Segment::Name { key, .. } => Some(key.name()),
        Segment::Each | Segment::Descend => None,
    })
}

impl<'a> Payload<'a> {
    /// Holds a payload against the projection and remembers what each place means.
    pub(super) fn read(document: &'a Document, projection: &Projection, at: &Pointer, findings: &mut Findings) -> Self {
        let root = document.root();
        let mut payload = Self { document, spots: vec![Spot::default(); root.position() + 1] };
        let standing = Standing::at_root(projection);
        payload.look(root, &standing, projection, at, findings);
        payload.supplied(projection, at, findings);
        payload
    }

    /// Every include reaches something that is shown.
    fn supplied(&self, projection: &Projection, at: &Pointer, findings: &mut Findings) {
        for (number, path) in projection.include().iter().enumerate() {
            let shown = |node: &Node<'_>| matches!(self.spot(*node).sight, Sight::Shown | Sight::Whole);
            if !self.reaches(path, shown) {
                let detail = format!("`include` number {} of the intent reaches nothing here", number + 1);
                findings.push(Rule::IncludeUnsupplied, at.clone(), detail);
            }
        }
    }

    fn reaches(&self, path: &Path, wanted: impl Fn(&Node<'_>) -> bool) -> bool {
        let flow = path.reach(self.document.root(), &mut 0, |node| match wanted(&node) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        flow.is_break()
    }

    /// Looks at one value and all below it; says whether it belongs into the payload.
    fn look(
        &mut self,
        node: Node<'_>,
        standing: &Standing,
        projection: &Projection,
        at: &Pointer,
        findings: &mut Findings,
    ) -> bool {
        let mut spot = Spot { sight: Sight::Whole, ..Spot::default() };
        let (mut kept, mut whole) = (false, true);
        let mut holes = Vec::new();
        for (child, step, name) in steps(node) {
            let below = standing.enter(projection, step);
            let place = at.child(&name);
            let mut deeper = Findings::default();
            if !below.excluded && self.look(child, &below, projection, &place, &mut deeper) {
                findings.append(deeper);
                for (place, rule) in holes.drain(..).filter(|(_, rule)| *rule != Hole::Padding) {
                    misplaced(place, rule, findings);
                }
                whole &= self.spot(child).sight == Sight::Whole;
                kept = true;
                continue;
            }
            whole = false;
            let padding = matches!(step, Child::Element(_)) && child.is_null();
            let hole = match (below.excluded, padding) {
                (_, true) => Hole::Padding,
                (true, false) => Hole::Excluded,
                (false, false) => Hole::Beyond,
            };
            holes.push((place, hole));
        }
        // Padding after the last element that is shown would tell how long the array was.
        for (place, hole) in holes {
            misplaced(place, hole, findings);
        }
        if matches!(node.kind(), Kind::Object | Kind::Array) {
            self.absent(node, standing, projection, &mut spot);
            whole &= !spot.hides_unnamed && spot.named.iter().all(|(_, hidden)| !hidden);
        }
        spot.sight = match (standing.shows(), whole) {
            (true, true) => Sight::Whole,
            (true, false) => Sight::Shown,
            (false, _) if kept => Sight::Way,
            (false, _) => Sight::Hole,
        };
        if let Some(slot) = self.spots.get_mut(node.position()) {
            *slot = spot;
        }
        standing.shows() || kept
    }

    /// Which children that are not there may be hidden.
    fn absent(&self, node: Node<'_>, standing: &Standing, projection: &Projection, spot: &mut Spot) {
        let step = |name: &str| match (node.is_object(), Pointer::as_index(name)) {
            (true, _) => Some(standing.enter(projection, Child::Member(name))),
            (false, Some(index)) if index >= node.len() => Some(standing.enter(projection, Child::Element(index))),
            (false, _) => None,
        };
        // Elements have no gaps: when the next one would be shown, there is none, nor any after it.
        if !node.is_object() && standing.enter(projection, Child::Element(node.len())).shows() {
            return;
        }
        spot.hides_unnamed = !standing.enter(projection, Child::Unnamed).shows();
        for name in standing.names(projection) {
            if node.is_object() && node.get(&name).is_some() {
                continue;
            }
            if let Some(below) = step(&name) {
                spot.named.push((name, !below.shows()));
            }
        }
    }

    fn spot(&self, node: Node<'_>) -> &Spot {
        const UNSEEN: &Spot = &Spot { sight: Sight::Hole, hides_unnamed: true, named: Vec::new() };
        self.spots.get(node.position()).unwrap_or(UNSEEN)
    }

    /// Whether a leaf reaches this very value where the payload shows it.
    pub(super) fn shows(&self, leaf: &Leaf, value: Node<'_>) -> bool {
        self.reaches(&leaf.path, |node| matches!(self.spot(*node).sight, Sight::Shown | Sight::Whole) && *node == value)
    }

    /// The truth of a leaf, where the payload settles it.
    pub(super) fn truth(&self, leaf: &Leaf, meter: &mut Meter) -> Result<Option<bool>, EvaluationError> {
        let mut doubt = false;
        let holds = self.ask(leaf, self.document.root(), leaf.path.start(), &mut doubt, meter)?;
        meter.within_fuel()?;
        Ok(if holds {
            Some(true)
        } else if doubt {
            None
        } else {
            Some(false)
        })
    }

    fn ask(
        &self,
        leaf: &Leaf,
        node: Node<'_>,
        states: u64,
        doubt: &mut bool,
        meter: &mut Meter,
    ) -> Result<bool, EvaluationError> {
        let (path, spot) = (&leaf.path, self.spot(node));
        meter.visits += 1;
        if path.arrives(states) {
            match self.verdict(&leaf.predicate, node, spot.sight, meter)? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => *doubt = true,
            }
        }
        if spot.sight == Sight::Hole {
            *doubt |= path.awaited(states).next().is_some();
            return Ok(false);
        }
        for (child, step, _) in steps(node) {
            let below = path.enter(states, step);
            if below != 0 && self.ask(leaf, child, below, doubt, meter)? {
                return Ok(true);
            }
        }
        if matches!(node.kind(), Kind::Object | Kind::Array) {
            *doubt |= spot.may_hide(node, path, states);
        }
        Ok(false)
    }
}

impl Payload<'_> {
    /// Whether a value passes, as far as it is seen.
    fn verdict(
        &self,
        predicate: &Predicate,
        node: Node<'_>,
        sight: Sight,
        meter: &mut Meter,
    ) -> Result<Option<bool>, EvaluationError> {
        match (sight, predicate) {
            (Sight::Whole, _) => predicate.passes(node, meter).map(Some),
            (Sight::Hole, _) => Ok(matches!(predicate, Predicate::Exists).then_some(true)),
            (Sight::Way | Sight::Shown, Predicate::Contains(literal)) if node.kind() == Kind::Array => {
                meter.visits += node.len() as u64;
                let element = |element: Node<'_>| self.spot(element).sight == Sight::Whole && literal.equals(element);
                let is_run = matches!(literal, Literal::Other(document) if document.root().kind() == Kind::Array);
                Ok((!is_run && node.elements().any(element)).then_some(true))
            }
            (Sight::Way | Sight::Shown, _) => Ok(container_verdict(predicate, node.kind())),
        }
    }
}

impl Spot {
    /// Whether a path may go on to a child that is not in the payload.
    fn may_hide(&self, node: Node<'_>, path: &Path, states: u64) -> bool {
        let hidden = |name: &str| {
            let known = self.named.iter().find(|(known, _)| known == name);
            known.map_or(self.hides_unnamed, |(_, hidden)| *hidden)
        };
        let absent = |name: &&str| match (node.is_object(), Pointer::as_index(name)) {
            (true, _) => node.get(name).is_none(),
            (false, Some(index)) => index >= node.len(),
            (false, None) => false,
        };
        let any_child = path.enter(states, Child::Unnamed) != 0;
        let some_hidden = self.hides_unnamed || self.named.iter().any(|(_, hidden)| *hidden);
        (any_child && some_hidden) || awaited_names(path, states).filter(absent).any(hidden)
    }
}

/// Why a child is no part of what is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hole {
    /// `null` in an array, which keeps the positions behind it.
    Padding,
    Excluded,
    Beyond,
}

fn misplaced(place: Pointer, hole: Hole, findings: &mut Findings) {
    match hole {
        Hole::Excluded => findings.push(Rule::PayloadExcluded, place, "the intent excludes this"),
        Hole::Beyond => findings.push(Rule::PayloadBeyondInclude, place, "no `include` of the intent reaches this"),
        Hole::Padding => {
            let detail = "padding behind the last element that is shown tells how long the array is";
            findings.push(Rule::PayloadBeyondInclude, place, detail);
        }
    }
}

/// The children of a value, each with the step that leads to it and its name in a pointer.
fn steps<'a>(node: Node<'a>) -> Box<dyn Iterator<Item = (Node<'a>, Child<'a>, String)> + 'a> {
    if node.is_object() {
        return Box::new(node.members().map(|(name, child)| (child, Child::Member(name), name.to_owned())));
    }
    let element = |(place, child): (usize, Node<'a>)| (child, Child::Element(place), place.to_string());
    Box::new(node.elements().enumerate().map(element))
}

/// Whether an array or object of which only the kind is certain passes; `contains` on arrays is asked elsewhere.
fn container_verdict(predicate: &Predicate, kind: Kind) -> Option<bool> {
    let may_equal = |literal: &Literal| match literal {
        Literal::Text(..) | Literal::Number(_) => false,
        Literal::Other(document) => document.root().kind() == kind,
    };
    match predicate {
        Predicate::Exists => Some(true),
        Predicate::Eq(literal) => (!may_equal(literal)).then_some(false),
        Predicate::Ne(literal) => (!may_equal(literal)).then_some(true),
        Predicate::In(list) => (!list.literals().any(|literal| may_equal(&literal))).then_some(false),
        Predicate::NotIn(list) => (!list.literals().any(|literal| may_equal(&literal))).then_some(true),
        Predicate::Contains(_)
        | Predicate::Compare(..)
        | Predicate::Matches(_)
        | Predicate::Before(_)
        | Predicate::After(_)
        | Predicate::Within(..)
        | Predicate::Outside(..) => Some(false),
    }
}

/// Places looked at before a path is called visible without proof.
const STANDINGS_MAX: usize = 512;

/// Whether some record has a value at this path that the projection shows.
///
/// The walk goes over all names that a path mentions and one that none does; an array element is a member named by
/// its number.
pub(super) fn may_show(projection: &Projection, path: &Path) -> bool {
    let mut waiting = vec![(path.start(), Standing::at_root(projection))];
    let mut seen = std::collections::HashSet::new();
    while let Some((states, standing)) = waiting.pop() {
        if standing.excluded || states == 0 {
            continue;
        }
        if path.arrives(states) && standing.covered {
            return true;
        }
        if !seen.insert((states, standing.include.clone(), standing.exclude.clone(), standing.covered)) {
            continue;
        }
        if seen.len() > STANDINGS_MAX {
            return true;
        }
        let mut names = standing.names(projection);
        names.extend(awaited_names(path, states).map(str::to_owned));
        let named = names.iter().map(|name| Child::Member(name));
        for child in named.chain([Child::Unnamed]) {
            waiting.push((path.enter(states, child), standing.enter(projection, child)));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Fuel, Limits};
    use crate::{Constraints, Intent};
    use json::{Value, json};

    /// What one leaf costs on a payload that was cut from something.
    #[track_caller]
    fn costs(exclude: Value, payload: Value, path: &str, operator: &str, value: Value, visits: u64) {
        let question = json!({
            "intent_id": "urn:oap:intent:cost", "issuer_did": "did:key:z6Mk", "category": "discovery",
            "constraints": {"path": path, "operator": operator, "value": value},
            "projection": {"include": ["/a"], "exclude": exclude},
            "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T12:00:00Z"},
        });
        let intent = Intent::read(Document::of(&question).unwrap().root(), &Limits::STANDARD).unwrap();
        let constraints: &Constraints = &intent.constraints;
        let (document, mut meter) = (Document::of(&payload).unwrap(), Meter::new(Fuel::STANDARD));
        let payload = Payload::read(&document, &intent.projection, &Pointer::root(), &mut Findings::default());
        payload.truth(&constraints.leaves()[0], &mut meter).unwrap();
        assert_eq!(meter.visits, visits, "{question}");
        // With less than that the leaf is given up.
        let mut short = Meter::new(Fuel { visits: visits - 1, ..Fuel::STANDARD });
        assert!(payload.truth(&constraints.leaves()[0], &mut short).is_err());
    }

    #[test]
    fn a_leaf_costs_the_values_on_its_way_and_the_elements_it_is_held_against() {
        let none = || json!([]);
        costs(none(), json!({"a": 1}), "/a", "eq", json!(1), 2);
        costs(none(), json!({"a": {"b": 1, "c": 2}}), "/a/c", "eq", json!(1), 3);
        costs(none(), json!({"a": [1, 2, 3]}), "/a/*", "eq", json!(9), 5);
        costs(none(), json!({"a": [1, 2, 3]}), "/a/*", "eq", json!(2), 4);
        costs(none(), json!({"a": [1, 2, 3]}), "/a", "contains", json!(9), 2 + 3);
        // Partly hidden arrays are asked here and not by the operator.
        costs(json!(["/a/*/x"]), json!({"a": [{}, 7, 8, 9]}), "/a", "contains", json!(7), 2 + 4);
        costs(json!(["/a/x"]), json!({"a": {"b": 1, "c": 2}}), "/a", "contains", json!(7), 2);
    }
}
