//! RFC 0024 §6, level V2: between every pair of versions, by composing mappings along the shortest way.
//!
//! INVARIANT: a chain has at most [`STEPS_MAX`] steps and comes to no version twice.

use super::{Directionality, Edition, Mapping, STEPS_MAX, Step};
use crate::refusal::{Code, Refusal};
use json::Pointer;
use std::collections::{BTreeMap, VecDeque};
use trust::Digest;

/// One mapping that does what two do one after the other.
pub fn compose(first: &Mapping, second: &Mapping) -> Result<Mapping, Refusal> {
    let steps: Vec<Step> = first.steps.iter().chain(&second.steps).cloned().collect();
    check_chain(&steps, &Pointer::root().child("steps"))?;
    let both = [first, second].iter().all(|mapping| mapping.directionality == Directionality::Bidirectional);
    let directionality = if both { Directionality::Bidirectional } else { Directionality::Unidirectional };
    let digests = format!("{} {}", first.digest(), second.digest());
    let name = Digest::of(digests.as_bytes()).to_string();
    let id = format!("urn:oap:mapping:composed:{}", name.trim_start_matches("sha256:"));
    Ok(Mapping { id, directionality, steps, description: None, publisher: None, published_at: None })
}

/// Whether each step begins where the one before it ends, at a version that has not been left yet.
pub(crate) fn check_chain(steps: &[Step], at: &Pointer) -> Result<(), Refusal> {
    if steps.len() > STEPS_MAX {
        return Err(Refusal::limit(Code::MappingTooLarge, at.clone(), "mapping.steps", STEPS_MAX, steps.len()));
    }
    let mut visited: Vec<&Edition> = steps.first().map(|step| &step.source).into_iter().collect();
    for (position, step) in steps.iter().enumerate() {
        if visited.last() != Some(&&step.source) {
            let detail = "this step does not begin where the one before it ends";
            return Err(Refusal::new(Code::RouteMissing, at.child(position), detail));
        }
        if visited.contains(&&step.destination) {
            let detail = "the chain comes to this version for the second time";
            return Err(Refusal::new(Code::MappingCycle, at.child(position), detail));
        }
        visited.push(&step.destination);
    }
    Ok(())
}

/// The shortest way from one version to another over known mappings, as one mapping; nothing leads nowhere.
pub fn route(mappings: &[Mapping], from: &Edition, to: &Edition) -> Result<Mapping, Refusal> {
    let mut edges: Vec<Mapping> = Vec::new();
    for mapping in mappings {
        edges.push(mapping.clone());
        if mapping.directionality == Directionality::Bidirectional {
            edges.extend(mapping.turned());
        }
    }
    // The least name decides between ways of one length, so that everybody takes the same.
    edges.sort_by(|left, right| left.id.cmp(&right.id));
    let mut came_by: BTreeMap<&Edition, Option<&Mapping>> = BTreeMap::from([(from, None)]);
    let mut queue = VecDeque::from([from]);
    while let Some(here) = queue.pop_front() {
        for edge in edges.iter().filter(|edge| edge.source() == Some(here)) {
            let Some(there) = edge.destination() else { continue };
            if !came_by.contains_key(there) {
                came_by.insert(there, Some(edge));
                queue.push_back(there);
            }
        }
    }
    let mut way = Vec::new();
    let mut here = to;
    while let Some(Some(edge)) = came_by.get(here) {
        way.push(*edge);
        let Some(before) = edge.source() else { break };
        here = before;
    }
    let mut steps = way.into_iter().rev();
    let first = steps.next().filter(|_| here == from).cloned().ok_or_else(|| {
        let detail = "no mapping leads from the one version to the other";
        Refusal::new(Code::RouteMissing, Pointer::root(), detail)
    })?;
    steps.try_fold(first, |way, next| compose(&way, next))
}
