//! RFC 0020 §3.7: an answer as people look at it, whether it was worked out here or came from a node.
//!
//! A document of a node has passed its audit or is shown with what it breaks; here everything in it may be missing.

use aql::{Amount, Intent, Judgement, Match, Rejection, Resolution};
use json::Node;
use std::ops::ControlFlow;

/// What is shown of an answer.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) found: Vec<Found>,
    pub(crate) misses: Vec<Miss>,
    /// How many were looked at, where that is known.
    pub(crate) census: Option<Census>,
    /// Whether there is a later page.
    pub(crate) more: bool,
}

/// All candidates in figures.
pub(crate) struct Census {
    pub(crate) candidates: usize,
    /// Fitting ones that the policy left out.
    pub(crate) left_out: usize,
}

/// A candidate of the answer.
pub(crate) struct Found {
    pub(crate) rank: usize,
    pub(crate) id: String,
    pub(crate) score: f64,
    pub(crate) cost: Option<Amount>,
    pub(crate) over_budget: bool,
    /// What its score is made of: the name of an input, its value, and what it brought.
    pub(crate) inputs: Vec<(String, f64, f64)>,
}

/// A candidate that is not in the answer.
pub(crate) struct Miss {
    pub(crate) id: String,
    pub(crate) outcome: String,
    /// The numbers of the leaves that made the tree fail.
    pub(crate) failing: Vec<usize>,
    /// Whether there is nothing at the path of the first of them.
    pub(crate) nothing_there: bool,
    pub(crate) explanation: String,
}

impl Page {
    /// What was worked out here.
    pub(crate) fn of(intent: &Intent, resolution: &Resolution<'_>) -> Self {
        let candidates = resolution.matches.len() + resolution.left_out + resolution.rejections.len();
        Self {
            found: resolution.matches.iter().map(Found::of).collect(),
            misses: resolution.rejections.iter().map(|rejection| Miss::of(intent, rejection)).collect(),
            census: Some(Census { candidates, left_out: resolution.left_out }),
            more: false,
        }
    }

    /// What an IntentResponse says.
    pub(crate) fn read(intent: &Intent, answer: Node<'_>) -> Self {
        let list = |name: &str| answer.get(name).into_iter().flat_map(Node::elements);
        Self {
            found: list("candidates").map(Found::read).collect(),
            misses: list("rejected").map(|entry| Miss::read(intent, entry)).collect(),
            census: None,
            more: answer.get("next_cursor").is_some(),
        }
    }

    /// Puts a later page behind this one.
    pub(crate) fn append(&mut self, later: Self) {
        self.found.extend(later.found);
        let known = |miss: &Miss| self.misses.iter().any(|other| other.id == miss.id);
        let new: Vec<Miss> = later.misses.into_iter().filter(|miss| !known(miss)).collect();
        self.misses.extend(new);
        self.more = later.more;
    }

    /// What each candidate that fits receives of the budget.
    pub(crate) fn shares(&self, intent: &Intent) -> Vec<Amount> {
        let Some(budget) = &intent.budget else { return Vec::new() };
        let fitting = self.found.iter().filter(|found| !found.over_budget);
        let qualities: Vec<f64> = fitting.map(|found| found.input("performance_score")).collect();
        budget.shares(&qualities, intent.quality_floor.performance_score.unwrap_or(0.0))
    }
}

impl Found {
    fn of(found: &Match<'_>) -> Self {
        let inputs = found.ranking.contributions.iter();
        Self {
            rank: found.rank,
            id: found.candidate.id.clone(),
            score: found.ranking.score,
            cost: found.judgement.cost,
            over_budget: found.judgement.over_budget,
            inputs: inputs.map(|input| (input.name.to_owned(), input.value, input.contribution)).collect(),
        }
    }

    fn read(entry: Node<'_>) -> Self {
        let record = entry.get("decision_record");
        let member = |name: &str| record.and_then(|record| record.get(name));
        Self {
            rank: entry.get("rank").and_then(Node::as_f64).unwrap_or_default() as usize,
            id: text(Some(entry), "candidate_id"),
            score: entry.get("score").and_then(Node::as_f64).unwrap_or_default(),
            cost: member("explanation").and_then(Node::as_str).and_then(cost),
            over_budget: entry.get("over_budget").and_then(Node::as_bool).unwrap_or(false),
            inputs: inputs(record),
        }
    }

    fn input(&self, wanted: &str) -> f64 {
        self.inputs.iter().find(|(name, ..)| name == wanted).map_or(0.0, |(_, value, _)| *value)
    }
}

impl Miss {
    fn of(intent: &Intent, rejection: &Rejection<'_>) -> Self {
        let judgement: &Judgement = &rejection.judgement;
        let first = judgement.failing.first().and_then(|number| intent.constraints.leaves().get(*number));
        let record = rejection.candidate.record();
        let reaches = |leaf: &aql::Leaf| leaf.path.reach(record, &mut 0, |_| ControlFlow::Break(())).is_break();
        let Judgement { outcome, failing, explanation, .. } = judgement;
        Self {
            id: rejection.candidate.id.clone(),
            outcome: outcome.name().to_owned(),
            failing: failing.clone(),
            nothing_there: first.is_some_and(|leaf| !reaches(leaf)),
            explanation: explanation.clone(),
        }
    }

    fn read(intent: &Intent, entry: Node<'_>) -> Self {
        let record = entry.get("decision_record");
        let failing = failing(intent, record);
        let first = failing.first().and_then(|number| evaluations(record).nth(*number));
        Self {
            id: text(Some(entry), "candidate_id"),
            nothing_there: first.is_some_and(|leaf| text(Some(leaf), "reason").ends_with("nothing at this path")),
            explanation: text(record, "explanation"),
            outcome: text(record, "outcome"),
            failing,
        }
    }
}

/// The leaves by which a recorded decision says that the tree fails.
pub(crate) fn failing(intent: &Intent, record: Option<Node<'_>>) -> Vec<usize> {
    let passed = |leaf: Node<'_>| leaf.get("passed").and_then(Node::as_bool).unwrap_or(false);
    let leaves: Vec<bool> = evaluations(record).map(passed).collect();
    if leaves.len() != intent.constraints.leaves().len() {
        return Vec::new();
    }
    intent.constraints.failing(&leaves)
}

fn evaluations(record: Option<Node<'_>>) -> impl Iterator<Item = Node<'_>> {
    record.and_then(|record| record.get("constraint_evaluations")).into_iter().flat_map(Node::elements)
}

/// The inputs of a recorded score: name, value, contribution.
fn inputs(record: Option<Node<'_>>) -> Vec<(String, f64, f64)> {
    let inputs = record.and_then(|record| record.get("ranking_function")?.get("inputs"));
    let number = |input: Node<'_>, name: &str| input.get(name).and_then(Node::as_f64).unwrap_or_default();
    let read = |input| (text(Some(input), "name"), number(input, "value"), number(input, "contribution"));
    inputs.into_iter().flat_map(Node::elements).map(read).collect()
}

/// The response schema has no place for a cost; nodes of ours say it in the explanation.
fn cost(explanation: &str) -> Option<Amount> {
    let (_, behind) = explanation.split_once("costs ")?;
    Amount::parse(behind.split(' ').next()?)
}

fn text(node: Option<Node<'_>>, name: &str) -> String {
    node.and_then(|node| node.get(name)).and_then(Node::as_str).unwrap_or_default().to_owned()
}
