//! RFC 0020 §3.7: the AQL decision record, one for every candidate that was looked at.
//!
//! It names every leaf in reading order with its raw truth. A value of the candidate is shown only when the
//! projection shows it anyway (`docs/decisions`).

use crate::candidate::Candidate;
use crate::constraint::Leaf;
use crate::evaluate::{EvaluationError, Meter};
use crate::intent::Intent;
use crate::limits::Fuel;
use crate::projection::Projected;
use crate::resolve::rank::REPETITION;
use crate::resolve::{Contribution, Judgement, RANKING_ID, RANKING_VERSION, Ranking};
use json::{Node, Writer};

/// What a decision record is made of.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// The name of the record.
    pub decision_id: &'a str,
    /// When it was made, as it is written.
    pub evaluated_at: &'a str,
    /// For which intent.
    pub intent: &'a Intent,
    /// About whom.
    pub candidate: &'a Candidate,
    /// How it went.
    pub judgement: &'a Judgement,
    /// The score and place, when there is one.
    pub ranking: Option<(&'a Ranking, usize)>,
}

impl Decision<'_> {
    /// Writes the record in canonical form.
    pub fn write(&self, writer: &mut Writer) -> Result<(), EvaluationError> {
        self.write_with(None, writer)
    }

    /// The same with [`plain_evaluations`] at hand, where there are any.
    pub(crate) fn write_with(&self, plain: Option<&[u8]>, writer: &mut Writer) -> Result<(), EvaluationError> {
        writer.object();
        writer.name("constraint_evaluations");
        match plain.filter(|_| self.judgement.leaves.iter().all(|passed| *passed)) {
            Some(plain) => {
                debug_assert!(self.are_evaluations(plain));
                writer.canonical(plain);
            }
            None => self.write_evaluations(writer)?,
        }
        writer.name("decision_id");
        writer.string(self.decision_id);
        writer.name("evaluated_at");
        writer.string(self.evaluated_at);
        writer.name("explanation");
        match self.ranking.and_then(|(ranking, _)| ranking.repeats.as_ref()) {
            Some(id) => writer.string(&format!("{}; behind the others: it repeats {id}", self.judgement.explanation)),
            None => writer.string(&self.judgement.explanation),
        }
        writer.name("outcome");
        writer.string(self.judgement.outcome.name());
        if let Some(name) = &self.judgement.policy_decision_ref {
            writer.name("policy_decision_ref");
            writer.string(name);
        }
        if let Some((ranking, rank)) = self.ranking {
            writer.name("ranking_function");
            write_ranking(ranking, rank, writer);
        }
        writer.end_object();
        Ok(())
    }

    /// Whether these are what would be written leaf by leaf.
    fn are_evaluations(&self, plain: &[u8]) -> bool {
        let mut writer = Writer::default();
        self.write_evaluations(&mut writer).is_ok() && writer.finish() == plain
    }

    fn write_evaluations(&self, writer: &mut Writer) -> Result<(), EvaluationError> {
        let (record, projection) = (self.candidate.record(), &self.intent.projection);
        let mut shown = None;
        writer.array();
        for (leaf, &passed) in self.intent.constraints.leaves().iter().zip(&self.judgement.leaves) {
            let hidden = projection.hides(&leaf.path);
            debug_assert!(
                !hidden
                    || leaf.shown(record, &projection.apply_partly(record, &mut 0)).is_ok_and(|shown| shown.is_none())
            );
            let value = match hidden {
                true => None,
                false => leaf.shown(record, shown.get_or_insert_with(|| projection.apply_partly(record, &mut 0)))?,
            };
            let reason = match passed && !leaf.negated {
                true => None,
                false => {
                    let reached = leaf.witness(record, &mut Meter::new(Fuel::OWN))?.is_some();
                    Some(reason(passed, reached, leaf.negated))
                }
            };
            leaf.write(passed, reason, value, writer);
        }
        writer.end_array();
        Ok(())
    }
}

/// What the records of all candidates say whose leaves all passed, where the projection shows no value that decided: it is
/// written once for a whole answer.
pub(crate) fn plain_evaluations(intent: &Intent) -> Option<Vec<u8>> {
    let leaves = intent.constraints.leaves();
    if !leaves.iter().all(|leaf| !leaf.negated && intent.projection.hides(&leaf.path)) {
        return None;
    }
    let mut writer = Writer::default();
    writer.array();
    leaves.iter().for_each(|leaf| leaf.write(true, None, None, &mut writer));
    writer.end_array();
    Some(writer.finish())
}

impl Leaf {
    /// The value that decided, where the answer shows it.
    fn shown<'a>(&self, record: Node<'a>, shown: &Projected<'_>) -> Result<Option<Node<'a>>, EvaluationError> {
        let witness = self.witness(record, &mut Meter::new(Fuel::OWN))?;
        Ok(witness.filter(|value| shown.shows(*value)))
    }

    fn write(&self, passed: bool, reason: Option<&str>, shown: Option<Node<'_>>, writer: &mut Writer) {
        writer.object();
        if let Some(value) = shown {
            writer.name("candidate_value");
            writer.node(value);
        }
        writer.name("operator");
        writer.string(self.operator.name());
        writer.name("passed");
        writer.bool(passed);
        writer.name("path");
        writer.string(self.path.text());
        if let Some(reason) = reason {
            writer.name("reason");
            writer.string(reason);
        }
        writer.name("value");
        writer.value(&self.value);
        writer.end_object();
    }
}

/// A closed list of reasons: free text could carry what the projection hides.
fn reason(passed: bool, reached: bool, negated: bool) -> &'static str {
    match (passed, reached, negated) {
        (true, _, false) => "satisfied",
        (true, _, true) => "negated: satisfied",
        (false, false, false) => "nothing at this path",
        (false, false, true) => "negated: nothing at this path",
        (false, true, false) => "no value satisfies",
        (false, true, true) => "negated: no value satisfies",
    }
}

fn write_ranking(ranking: &Ranking, rank: usize, writer: &mut Writer) {
    writer.object();
    writer.name("function_id");
    writer.string(RANKING_ID);
    writer.name("function_version");
    writer.string(RANKING_VERSION);
    writer.name("inputs");
    writer.array();
    let repetition = Contribution { name: REPETITION, value: 1.0, weight: 0.0, contribution: 0.0 };
    let repetition = ranking.repeats.is_some().then_some(&repetition);
    for input in ranking.contributions.iter().chain(repetition) {
        writer.object();
        writer.name("contribution");
        writer.number(input.contribution);
        writer.name("name");
        writer.string(input.name);
        writer.name("value");
        writer.number(input.value);
        writer.name("weight");
        writer.number(input.weight);
        writer.end_object();
    }
    writer.end_array();
    if rank > 0 {
        writer.name("rank");
        writer.number(rank as f64);
    }
    writer.name("score");
    writer.number(ranking.score);
    writer.end_object();
}
