//! RFC 0020 A.3 R3 to R5: from candidates to an ordered answer with a reason for every decision.
//!
//! A rejected candidate is data, never an error. The order of checks is the text's: constraints, cost, quality, then
//! the projection.

mod judge;
pub(crate) mod rank;

pub use judge::{Judgement, Outcome, judge, refuse};
pub use rank::{Contribution, RANKING_ID, RANKING_VERSION, Ranking, Scoring, rank};

use crate::budget::Amount;
use crate::candidate::Candidate;
use crate::evaluate::{EvaluationError, Evaluator};
use crate::intent::{Intent, ResolutionPolicy};
use crate::likeness::{Leaders, sketch};
use crate::limits::Fuel;
use std::borrow::Cow;

/// Where candidates go that cost more than the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverBudget {
    /// Into the answer, flagged, after all that fit (§3.4).
    #[default]
    Flag,
    /// Among the rejected, for issuers who read A.2 strictly.
    Reject,
}

/// A candidate of the answer, with what it is judged by.
#[derive(Clone, Debug)]
pub struct Match<'a> {
    /// The candidate.
    pub candidate: &'a Candidate,
    /// How it fared.
    pub judgement: Cow<'a, Judgement>,
    /// Its score and where that comes from.
    pub ranking: Ranking,
    /// Its place, from 1.
    pub rank: usize,
}

/// A candidate that is not in the answer, and why.
#[derive(Clone, Debug)]
pub struct Rejection<'a> {
    /// The candidate.
    pub candidate: &'a Candidate,
    /// How it fared.
    pub judgement: Cow<'a, Judgement>,
}

/// The answer before it is signed.
#[derive(Clone, Debug)]
pub struct Resolution<'a> {
    /// In rank order.
    pub matches: Vec<Match<'a>>,
    /// In the order they came.
    pub rejections: Vec<Rejection<'a>>,
    /// Matches that the resolution policy left out.
    pub left_out: usize,
}

/// What a match that fits receives of the budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Who.
    pub candidate_id: String,
    /// How much.
    pub amount: Amount,
}

/// Answers an intent from a set of candidates.
pub fn resolve<'a>(
    intent: &Intent,
    candidates: &'a [Candidate],
    over_budget: OverBudget,
    fuel: Fuel,
) -> Result<Resolution<'a>, EvaluationError> {
    let mut evaluator = Evaluator::new(fuel);
    let (mut matches, mut rejections) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let judgement = judge(intent, candidate, over_budget, &mut evaluator)?;
        if judgement.is_match(over_budget) {
            let ranking = rank(intent, candidate.quality(), judgement.cost);
            matches.push(Match { candidate, judgement: Cow::Owned(judgement), ranking, rank: 0 });
        } else {
            rejections.push(Rejection { candidate, judgement: Cow::Owned(judgement) });
        }
    }
    matches.sort_by(rank::order);
    repetitions_last(&mut matches);
    let all = matches.len();
    matches.truncate(intent.room());
    for (position, found) in matches.iter_mut().enumerate() {
        found.rank = position + 1;
    }
    Ok(Resolution { left_out: all - matches.len(), matches, rejections })
}

/// Of what fits, and of what does not, an owner's repetitions come after all the others, in the same order.
fn repetitions_last(matches: &mut [Match<'_>]) {
    let mut leaders = Leaders::default();
    for found in &mut *matches {
        let (owner, sketch) = (found.candidate.owner(), sketch(found.candidate.record()));
        found.ranking.repeats = leaders.repeated(&owner, sketch).map(str::to_owned);
        if found.ranking.repeats.is_none() {
            leaders.add(owner, sketch, &found.candidate.id);
        }
    }
    matches.sort_by_key(|found| (found.judgement.over_budget, found.ranking.repeats.is_some()));
}

impl Intent {
    /// How many candidates the resolution policy and the allocation leave room for.
    pub fn room(&self) -> usize {
        let by_policy = match self.resolution_policy {
            ResolutionPolicy::SingleBest => 1,
            ResolutionPolicy::RankedSet | ResolutionPolicy::FullSet => usize::MAX,
        };
        let by_allocation = self.budget.as_ref().and_then(|budget| budget.top_k()).unwrap_or(usize::MAX);
        by_policy.min(by_allocation)
    }
}

impl Resolution<'_> {
    /// What each match that fits receives of the intent's budget; nothing without one.
    pub fn shares(&self, intent: &Intent) -> Vec<Share> {
        let Some(budget) = &intent.budget else { return Vec::new() };
        let fitting: Vec<_> = self.matches.iter().filter(|found| !found.judgement.over_budget).collect();
        let score = |found: &&Match<'_>| found.candidate.quality().performance_score.unwrap_or(0.0);
        let qualities: Vec<f64> = fitting.iter().map(score).collect();
        let floor = intent.quality_floor.performance_score.unwrap_or(0.0);
        let amounts = budget.shares(&qualities, floor);
        let share = |(found, amount): (&&Match<'_>, Amount)| Share { candidate_id: found.candidate.id.clone(), amount };
        fitting.iter().zip(amounts).map(share).collect()
    }
}
