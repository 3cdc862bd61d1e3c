//! RFC 0020 A.3 R5, A.6: the ranking function block, computed again where the function is known.
//!
//! Of a function that we do not know only the agreement with the candidate's own score and rank is checked.

use super::rule::Rule;
use super::{Auditor, Decided, Returned};
use crate::budget::Amount;
use crate::read::{Place, Values};
use crate::resolve::rank::{INPUTS, REPETITION, quality, round, sum};
use crate::resolve::{RANKING_ID, RANKING_VERSION};
use json::Pointer;

/// Scores have six decimals; this is far below the last of them.
const TOLERANCE: f64 = 1e-9;

/// What a ranking function block says.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    at: Pointer,
    score: Option<f64>,
    rank: Option<f64>,
    /// The values of the inputs, when the function is ours and they are its inputs.
    values: Option<[f64; 5]>,
    /// Whether it comes behind the others because it repeats one of them.
    pub(super) repeats: bool,
}

struct Input<'a> {
    at: Pointer,
    name: &'a str,
    value: f64,
    weight: f64,
    contribution: f64,
}

impl<'a> Auditor<'a> {
    /// Reads the block and computes the score again.
    pub(super) fn ranking(&mut self, place: &Place<'a>) -> Option<Standing> {
        if !self.closed(place, &["function_id", "function_version", "inputs", "score", "rank"]) {
            return None;
        }
        let id = self.optional(place, "function_id", Place::string);
        let version = self.optional(place, "function_version", Place::string);
        let score = self.optional(place, "score", Place::number);
        let rank = self.optional(place, "rank", |rank| rank.integer(1)).map(|rank| rank as f64);
        let inputs = self.optional(place, "inputs", Place::elements);
        let inputs: Option<Vec<Input<'a>>> =
            inputs.map(|inputs| inputs.iter().filter_map(|input| self.input(input)).collect());
        // Since 1.0 the score is the same.
        let ours = id == Some(RANKING_ID) && version.is_some_and(|version| ["1.0", RANKING_VERSION].contains(&version));
        let mut inputs = inputs.unwrap_or_default();
        let last = inputs.pop_if(|input| ours && (input.name, input.value, input.weight) == (REPETITION, 1.0, 0.0));
        let values = if ours { self.recompute(place, score, inputs) } else { None };
        Some(Standing { at: place.at.clone(), score, rank, values, repeats: last.is_some() })
    }

    fn input(&mut self, place: &Place<'a>) -> Option<Input<'a>> {
        if !place.node.is_object() {
            self.shape(place.closed(&[]));
            return None;
        }
        let name = self.required(place, "name", Place::string);
        let value = self.required(place, "value", Place::number);
        let weight = self.required(place, "weight", Place::number);
        let contribution = self.required(place, "contribution", Place::number);
        Some(Input { at: place.at.clone(), name: name?, value: value?, weight: weight?, contribution: contribution? })
    }

    fn recompute(&mut self, place: &Place<'a>, score: Option<f64>, inputs: Vec<Input<'a>>) -> Option<[f64; 5]> {
        let known = inputs.len() == INPUTS.len()
            && inputs.iter().zip(INPUTS).all(|(input, (name, weight))| input.name == name && input.weight == weight);
        if !known {
            let detail =
                format!("these are not the inputs and weights of {RANKING_ID} {RANKING_VERSION}, in its order");
            self.findings.push(Rule::RankingInputs, place.at.child("inputs"), detail);
            return None;
        }
        self.checked.scores += 1;
        for input in &inputs {
            if !(0.0..=1.0).contains(&input.value) {
                let detail = "an input lies between 0 and 1";
                self.findings.push(Rule::RankingValue, input.at.child("value"), detail);
            }
            let expected = round(input.value * input.weight);
            if differ(input.contribution, expected) {
                let detail = format!("{} times {} is {expected}", input.value, input.weight);
                self.findings.push(Rule::RankingContribution, input.at.child("contribution"), detail);
            }
        }
        let expected = sum(inputs.iter().map(|input| input.contribution));
        if score.is_none_or(|score| differ(score, expected)) {
            let detail = format!("the contributions add up to {expected}");
            self.findings.push(Rule::RankingSum, place.at.child("score"), detail);
        }
        let values: Vec<f64> = inputs.iter().map(|input| input.value).collect();
        values.try_into().ok()
    }

    /// The candidate repeats what its ranking function gave.
    pub(super) fn same_ranking(&mut self, decided: &Decided, (score, rank): (Option<f64>, Option<f64>)) {
        let Some(standing) = &decided.standing else { return };
        for (name, own, given) in [("score", score, standing.score), ("rank", rank, standing.rank)] {
            if own.zip(given).is_some_and(|(own, given)| differ(own, given)) {
                let detail = format!("the candidate has another {name} than its ranking function gave");
                self.findings.push(Rule::RankingDiffers, standing.at.child(name), detail);
            }
        }
    }

    /// A returned candidate meets the quality floor, and its price input follows from the budget.
    pub(super) fn ranked_inputs(&mut self, standing: &Standing, over_budget: bool) {
        let Some(values) = standing.values else { return };
        let at = |number: usize| standing.at.child("inputs").child(number).child("value");
        let floors = quality(&self.intent.quality_floor);
        for (number, (value, floor)) in values.iter().zip(floors).enumerate() {
            if *value < round(floor) - TOLERANCE {
                let detail = format!("the quality floor of the intent stands for at least {} here", round(floor));
                self.findings.push(Rule::BelowFloorReturned, at(number), detail);
            }
        }
        let [.., price] = values;
        let expected = match &self.intent.budget {
            None => Some((0.0, "there is no budget that a price could leave a part of")),
            Some(_) if over_budget => Some((0.0, "a candidate over the budget leaves nothing of it")),
            Some(budget) if budget.ceiling.amount == Amount::ZERO => {
                Some((1.0, "only what is free fits a budget of 0"))
            }
            Some(_) => None,
        };
        if let Some((expected, detail)) = expected
            && differ(price, expected)
        {
            self.findings.push(Rule::RankingValue, at(values.len() - 1), detail);
        }
    }

    /// decisions/0026: of one score the cheaper first, then the lower id, as far as the answer shows them.
    pub(super) fn tie(&mut self, before: &Returned<'_>, this: &Returned<'_>) {
        let price = |returned: &Returned<'_>| {
            let [.., price] = returned.standing.as_ref()?.values?;
            Some(price)
        };
        let (Some(first), Some(second)) = (price(before), price(this)) else { return };
        // A price input is rounded: equal ones do not prove equal costs, unless nothing can have a cost.
        let same_cost = match &self.intent.budget {
            None => true,
            Some(budget) => budget.ceiling.amount == Amount::ZERO && !this.over_budget,
        };
        let ids = before.id.zip(this.id);
        let detail = if second > first + TOLERANCE {
            "the candidate before this one has the same score and costs more"
        } else if same_cost && ids.is_some_and(|(first, second)| first > second) {
            "the candidate before this one has the same score and a higher id"
        } else {
            return;
        };
        self.findings.push(Rule::TieOutOfOrder, this.at.clone(), detail);
    }
}

fn differ(one: f64, other: f64) -> bool {
    (one - other).abs() > TOLERANCE
}
