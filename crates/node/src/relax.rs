//! RFC 0020 §3.7: what a question as a whole runs into, told to whoever asked it and got little.
//!
//! A question is taken apart into the parts that must all hold. The index says how many candidates satisfy each leaf,
//! all parts, and all parts but one; so it is known which part keeps candidates out. A leaf is counted by its raw
//! truth, as decision records do.
//!
//! The smallest changes come first. A bound that moves keeps the rest of the demand and is a smaller change than a part
//! that is left out; among changes of one sort the one that brings more candidates is better, then the one that is
//! read earlier. To find how far a bound must move, some of those that it keeps out are looked at, then some of those
//! that lie nearer than the nearest of them, and so on until nobody lies nearer or enough records are loaded.
//!
//! INVARIANT: `at_least` ≤ the true count ≤ `at_most`. No value is told that the answer to the changed question would
//! not show to the same issuer.

mod parts;

use crate::gate::Viewer;
use crate::node::Node;
use crate::refusal::Error;
use crate::resolve::{Accepted, Judged, Market, evaluator};
use aql::{Amount, Evaluator, Intent, Leaf, Operator, Outcome, Signals};
use index::{Bounds, Unit};
use json::{Document, Value, json};
use parts::{Part, Sum};
use roaring::RoaringBitmap;
use std::collections::HashMap;

/// Candidates about which the index is unsure that are judged, so that the count is exact.
const UNDECIDED_MAX: u64 = 256;
/// Parts that are left out one by one; more belong to every variant of the question.
const PARTS_MAX: usize = 64;
/// Records that are loaded to find near misses and nearer bounds.
const LOADS_MAX: usize = 64;
/// How many of those may go to near misses.
const NEAREST_LOADS: usize = 16;
/// Records that are loaded at once to find a nearer bound.
const SAMPLE: usize = 4;
/// Near misses that are told.
const NEAREST_MAX: usize = 5;
/// Changes that are told.
const RELAXATIONS_MAX: usize = 8;

impl Node {
    /// How many candidates satisfy the question and its leaves, who misses it by little, and what would let them in.
    pub(crate) fn explain_question(&self, accepted: &Accepted) -> Result<Value, Error> {
        let intent = &accepted.intent;
        self.with_market(accepted, |market| {
            let mut inquiry = Inquiry::new(self, market, accepted)?;
            let mut output = json!({
                "type": "oap.explanation",
                "intent_id": intent.intent_id,
                "resolver_did": self.identity.did().as_str(),
                "satisfied": count(&inquiry.whole),
                "leaves": inquiry.leaves(),
                "nearest": inquiry.nearest()?,
                "relaxations": inquiry.relaxations()?,
            });
            if let Some(members) = output.as_object_mut() {
                members.extend(inquiry.quality().map(|quality| ("quality".to_owned(), quality)));
                members.extend(inquiry.budget()?.map(|budget| ("budget".to_owned(), budget)));
            }
            Ok(output)
        })
    }
}

/// A question on the table.
struct Inquiry<'a> {
    node: &'a Node,
    market: &'a Market<'a>,
    intent: &'a Intent,
    viewer: &'a Viewer,
    evaluator: Evaluator,
    parts: Vec<Part<'a>>,
    /// Who satisfies each leaf.
    counts: Vec<Value>,
    /// Who satisfies each of the parts that may be left out.
    each: Vec<Bounds>,
    /// Who satisfies all of them but one.
    without: Vec<Bounds>,
    /// Who satisfies all of them.
    whole: Bounds,
    looked: HashMap<Unit, Judged>,
    loads: usize,
}

impl<'a> Inquiry<'a> {
    fn new(node: &'a Node, market: &'a Market<'a>, accepted: &'a Accepted) -> Result<Self, Error> {
        let (intent, viewer) = (&accepted.intent, &accepted.viewer);
        let parts = Part::all(intent.constraints.tree());
        let mut sum = Sum::new(market, &intent.constraints)?;
        let (mut each, mut rest) = (Vec::new(), market.membership()?);
        for part in &parts {
            let bounds = sum.of(part)?;
            if each.len() < PARTS_MAX { each.push(bounds) } else { parts::and(&mut rest, &bounds) }
        }
        let counts = sum.leaves.iter().map(count).collect();
        let mut whole = market.membership()?;
        parts::and(&mut whole, &market.enumerate(&intent.constraints)?);
        let without = parts::all_but_one(&each, rest);
        let (evaluator, looked, loads) = (evaluator(), HashMap::new(), 0);
        let mut inquiry =
            Self { node, market, intent, viewer, evaluator, parts, counts, each, without, whole, looked, loads };
        inquiry.decide()?;
        Ok(inquiry)
    }

    /// Asks those about whom the index is unsure, when they are few.
    fn decide(&mut self) -> Result<(), Error> {
        let undecided = &self.whole.possible - &self.whole.certain;
        if undecided.len() > UNDECIDED_MAX {
            return Ok(());
        }
        self.look_at(&undecided.iter().collect::<Vec<_>>())?;
        for unit in undecided {
            let holds = self.looked.get(&unit).is_some_and(|judged| judged.judgement.failing.is_empty());
            if holds {
                self.whole.certain.insert(unit)
            } else {
                self.whole.possible.remove(unit)
            };
        }
        self.without.iter_mut().for_each(|without| without.certain |= &self.whole.certain);
        Ok(())
    }

    /// Loads and judges candidates that were not looked at yet; whoever is not of the category is passed over.
    fn look_at(&mut self, units: &[Unit]) -> Result<(), Error> {
        let new: RoaringBitmap = units.iter().copied().filter(|unit| !self.looked.contains_key(unit)).collect();
        let (node, intent) = (self.node, self.intent);
        let entries = self.market.best(intent, node.over_budget, &new, units.len());
        let signals = entries.iter().map(|entry| self.market.look_at(entry.unit).1).collect();
        let loaded = node.load(self.viewer, &entries, signals)?.into_iter();
        let judged = loaded.map(|candidate| node.judge(intent, candidate, &mut self.evaluator));
        let judged = judged.collect::<Result<Vec<_>, _>>()?;
        for (entry, judged) in entries.iter().zip(judged) {
            if node.is_member(intent, &judged, &mut self.evaluator)? {
                self.looked.insert(entry.unit, judged);
            }
        }
        Ok(())
    }

    fn leaves(&self) -> Value {
        let leaves = self.intent.constraints.leaves().iter().zip(&self.counts).enumerate();
        let told = leaves.map(|(number, (leaf, satisfied))| {
            let part = self.parts.iter().position(|part| part.leaves.contains(&number));
            let mut told = json!({
                "path": leaf.path.text(),
                "operator": leaf.operator.name(),
                "value": leaf.value,
                "negated": leaf.negated,
                "part": part,
                "satisfied": satisfied,
            });
            let without = part.and_then(|part| self.without.get(part));
            if let (Some(members), Some(without)) = (told.as_object_mut(), without) {
                members.insert("without".into(), count(without));
            }
            told
        });
        told.collect()
    }

    /// The numbers of the parts that a candidate fails.
    fn failed_parts(&self, judged: &Judged) -> Vec<usize> {
        let fails = |part: &Part<'_>| part.leaves.iter().any(|leaf| judged.judgement.failing.contains(leaf));
        self.parts.iter().enumerate().filter(|(_, part)| fails(part)).map(|(number, _)| number).collect()
    }

    /// Candidates that fail the fewest parts, then the fewest leaves, in the order of the answer.
    fn nearest(&mut self) -> Result<Value, Error> {
        let (mut near, mut left) = (Vec::new(), NEAREST_LOADS);
        for mut layer in parts::by_failures(&self.each, &self.whole, self.market.membership()?.possible) {
            layer -= &self.whole.certain;
            let best = self.market.best(self.intent, self.node.over_budget, &layer, left);
            let units: Vec<Unit> = best.iter().map(|entry| entry.unit).collect();
            self.look_at(&units)?;
            self.loads += units.len();
            left -= units.len();
            near.extend(units.into_iter().filter(|unit| self.is_near(*unit)));
            if near.len() >= NEAREST_MAX || left == 0 {
                break;
            }
        }
        let mut told: Vec<(usize, &Judged)> = near
            .iter()
            .filter_map(|unit| self.looked.get(unit))
            .map(|judged| (self.failed_parts(judged).len(), judged))
            .collect();
        told.sort_by_key(|(parts, judged)| (*parts, judged.judgement.failing.len()));
        let told = told.into_iter().take(NEAREST_MAX);
        Ok(told
            .map(|(_, judged)| json!({"candidate_id": judged.candidate.id, "failing": judged.judgement.failing}))
            .collect())
    }

    fn is_near(&self, unit: Unit) -> bool {
        self.looked.get(&unit).is_some_and(|judged| !judged.judgement.failing.is_empty())
    }

    /// Changes that bring candidates, the best first.
    fn relaxations(&mut self) -> Result<Value, Error> {
        let brings = |without: &Bounds| without.possible.len() > self.whole.certain.len();
        let helpful: Vec<usize> =
            self.without.iter().enumerate().filter(|(_, without)| brings(without)).map(|(number, _)| number).collect();
        let movable = helpful.iter().filter(|number| self.bound_of(**number).is_some()).count();
        let share = (LOADS_MAX - self.loads) / movable.max(1);
        let (mut moves, mut drops) = (Vec::new(), Vec::new());
        for number in helpful {
            if let Some((leaf, side)) = self.bound_of(number)
                && let Some(moved) = self.moved(number, leaf, side, share.max(SAMPLE))?
            {
                moves.push((moved.satisfied.possible.len(), moved.told(leaf)));
            }
            let leaf = self.parts.get(number).and_then(|part| part.leaves.first());
            if let Some((leaf, without)) = leaf.zip(self.without.get(number)) {
                drops.push((without.possible.len(), json!({"leaf": leaf, "drop": true, "satisfied": count(without)})));
            }
        }
        for changes in [&mut moves, &mut drops] {
            changes.sort_by_key(|(brought, _)| std::cmp::Reverse(*brought));
        }
        Ok(moves.into_iter().chain(drops).take(RELAXATIONS_MAX).map(|(_, change)| change).collect())
    }

    /// The leaf of a part that is nothing but a bound, and on which side of it the leaf looks.
    fn bound_of(&self, number: usize) -> Option<(usize, Side)> {
        let leaf = self.parts.get(number)?.plain_leaf()?;
        Some((leaf, Side::of(self.intent.constraints.leaves().get(leaf)?.operator)?))
    }

    /// The nearest bound of a part that lets somebody in who satisfies all the others.
    fn moved(&mut self, number: usize, leaf: usize, side: Side, mut loads: usize) -> Result<Option<Moved>, Error> {
        let (leaves, without) = (self.intent.constraints.leaves(), self.without.get(number).cloned());
        let Some((leaf, without)) = leaves.get(leaf).zip(without) else { return Ok(None) };
        let mut open = &without.possible - &self.whole.certain;
        let mut nearest: Option<(Unit, Document)> = None;
        while loads > 0 && !open.is_empty() {
            let sample = spread(&open, SAMPLE.min(loads).min(LOADS_MAX.saturating_sub(self.loads)));
            if sample.is_empty() {
                break;
            }
            self.look_at(&sample)?;
            (self.loads, loads) = (self.loads + sample.len(), loads - sample.len());
            open -= sample.iter().copied().collect::<RoaringBitmap>();
            let found = self.nearest_value(leaf, side, number, &sample);
            if let Some((unit, value)) = found.filter(|(_, value)| is_nearer(side, value, nearest.as_ref())) {
                open &= self.bounded(leaf, side.nearer(), &value)?.possible;
                nearest = Some((unit, value));
            }
        }
        let Some((unit, value)) = nearest else { return Ok(None) };
        let mut satisfied = self.bounded(leaf, side.operator(), &value)?;
        parts::and(&mut satisfied, &without);
        satisfied.certain.insert(unit);
        Ok(Some(Moved { side, to: value.root().to_value(), satisfied }))
    }

    /// The value nearest to the bound that somebody shows who fails this part and nothing else.
    fn nearest_value(&self, leaf: &Leaf, side: Side, part: usize, units: &[Unit]) -> Option<(Unit, Document)> {
        let mut nearest: Option<(Unit, Document)> = None;
        for unit in units {
            let Some(judged) = self.looked.get(unit).filter(|judged| self.failed_parts(judged) == [part]) else {
                continue;
            };
            for value in shown_values(self.intent, leaf, judged) {
                if is_nearer(side, &value, nearest.as_ref()) {
                    nearest = Some((*unit, value));
                }
            }
        }
        nearest
    }

    /// Who satisfies a leaf with another bound.
    fn bounded(&self, leaf: &Leaf, operator: Operator, bound: &Document) -> Result<Bounds, Error> {
        let value = bound.root().to_value();
        let changed = json!({"path": leaf.path.text(), "operator": operator.name(), "value": value});
        let changed = Document::of(&changed).map_err(Error::fault)?;
        let changed = aql::Constraints::read(changed.root(), leaf.at.clone(), &aql::Limits::STANDARD)?;
        self.market.enumerate(&changed)
    }

    /// Which floors keep out how many of those that satisfy the constraints.
    fn quality(&self) -> Option<Value> {
        let floors = single_floors(&self.intent.quality_floor);
        if floors.is_empty() {
            return None;
        }
        let (mut removed, mut each) = (Tally::default(), vec![Tally::default(); floors.len()]);
        for (unit, _, signals) in self.standings() {
            let certain = self.whole.certain.contains(unit);
            let mut met = true;
            for ((_, floor), tally) in floors.iter().zip(&mut each) {
                let fails = !floor.is_met_by(&signals);
                tally.add(fails, certain);
                met &= !fails;
            }
            removed.add(!met, certain);
        }
        let told = floors.iter().zip(&each).filter(|(_, removed)| removed.most > 0);
        let told: Vec<Value> =
            told.map(|((signal, _), removed)| json!({"signal": signal, "removed": removed.told()})).collect();
        (removed.most > 0).then(|| json!({"removed": removed.told(), "floors": told}))
    }

    /// How many of those that satisfy the constraints cost too much or say no price.
    fn budget(&mut self) -> Result<Option<Value>, Error> {
        let Some(budget) = &self.intent.budget else { return Ok(None) };
        let ceiling = &budget.ceiling;
        let (mut over, mut unpriced) = (Tally::default(), Tally::default());
        let mut cheapest: Option<(Amount, Unit)> = None;
        for (unit, cost, _) in self.standings() {
            let certain = self.whole.certain.contains(unit);
            let above = cost.filter(|cost| *cost > ceiling.amount);
            over.add(above.is_some(), certain);
            unpriced.add(cost.is_none(), certain);
            let priced = above.filter(|_| certain).map(|cost| (cost, unit));
            cheapest = [cheapest, priced].into_iter().flatten().min();
        }
        if over.most == 0 && unpriced.most == 0 {
            return Ok(None);
        }
        let mut told =
            json!({"over_budget": over.told(), "without_price": unpriced.told(), "currency": ceiling.currency});
        if let (Some(members), Some((cost, unit))) = (told.as_object_mut(), cheapest)
            && self.is_said_to_be_over(unit)?
        {
            members.insert("cheapest".into(), json!(cost.to_string()));
        }
        Ok(Some(told))
    }

    /// Whether an answer would say of a candidate what it costs.
    fn is_said_to_be_over(&mut self, unit: Unit) -> Result<bool, Error> {
        self.look_at(&[unit])?;
        Ok(self.looked.get(&unit).is_some_and(|judged| judged.judgement.outcome == Outcome::OverBudget))
    }

    /// Cost and quality of those that may satisfy the constraints.
    fn standings(&self) -> impl Iterator<Item = (Unit, Option<Amount>, Signals)> {
        let standing = |unit| self.market.standing(self.intent, unit).map(|(cost, signals)| (unit, cost, signals));
        self.whole.possible.iter().filter_map(standing)
    }
}

/// A count between bounds.
#[derive(Clone, Default)]
struct Tally {
    least: u64,
    most: u64,
}

impl Tally {
    fn add(&mut self, counts: bool, certain: bool) {
        self.most += u64::from(counts);
        self.least += u64::from(counts && certain);
    }

    fn told(&self) -> Value {
        json!({"at_least": self.least, "at_most": self.most})
    }
}

fn count(bounds: &Bounds) -> Value {
    Tally { least: bounds.certain.len(), most: bounds.possible.len() }.told()
}

/// A bound that moved, and who satisfies the question then.
struct Moved {
    side: Side,
    to: Value,
    satisfied: Bounds,
}

impl Moved {
    fn told(&self, leaf: usize) -> Value {
        json!({"leaf": leaf, "operator": self.side.operator().name(), "to": self.to, "satisfied": count(&self.satisfied)})
    }
}

/// On which side of its bound a leaf looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

impl Side {
    fn of(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Lt | Operator::Lte | Operator::Before => Some(Self::Below),
            Operator::Gt | Operator::Gte | Operator::After => Some(Self::Above),
            _ => None,
        }
    }

    /// The operator that lets the bound itself in.
    fn operator(self) -> Operator {
        match self {
            Self::Below => Operator::Lte,
            Self::Above => Operator::Gte,
        }
    }

    /// The operator that lets in only what is nearer than the bound.
    fn nearer(self) -> Operator {
        match self {
            Self::Below => Operator::Lt,
            Self::Above => Operator::Gt,
        }
    }
}

/// Whether a value lies nearer to the bound than another; nearer than none it always is.
fn is_nearer(side: Side, value: &Document, than: Option<&(Unit, Document)>) -> bool {
    let Some((_, other)) = than else { return true };
    aql::order(value.root(), other.root()).is_some_and(|order| match side {
        Side::Below => order.is_lt(),
        Side::Above => order.is_gt(),
    })
}

/// The values that a leaf could be asked to reach and that the answer would show of a candidate.
fn shown_values(intent: &Intent, leaf: &Leaf, judged: &Judged) -> Vec<Document> {
    let (record, mut visits, mut values) = (judged.candidate.record(), 0, Vec::new());
    let Ok(shown) = intent.projection.apply(record, &mut visits) else { return values };
    let Some(bound) = Document::of(&leaf.value).ok() else { return values };
    let _: std::ops::ControlFlow<()> = leaf.path.reach(record, &mut visits, |value| {
        if shown.shows(value) && aql::order(value, bound.root()).is_some() {
            values.push(value.to_document());
        }
        std::ops::ControlFlow::Continue(())
    });
    values
}

/// Each declared floor by itself.
fn single_floors(floor: &Signals) -> Vec<(&'static str, Signals)> {
    let none = Signals::default;
    let mut floors = vec![
        ("performance_score", Signals { performance_score: floor.performance_score, ..none() }),
        ("provider_reputation", Signals { provider_reputation: floor.provider_reputation, ..none() }),
        ("conformance_level", Signals { conformance_level: floor.conformance_level.clone(), ..none() }),
        ("latency_p99_ms", Signals { latency_p99_ms: floor.latency_p99_ms, ..none() }),
        ("cooling_off_minutes", Signals { cooling_off_minutes: floor.cooling_off_minutes, ..none() }),
    ];
    floors.retain(|(_, floor)| *floor != none());
    floors
}

/// Some units from all over a set. The same question looks at the same ones, and no pattern in the set is met by one in
/// the choice.
fn spread(units: &RoaringBitmap, wanted: usize) -> Vec<Unit> {
    let (count, wanted) = (units.len(), wanted as u64);
    if count <= wanted {
        return units.iter().collect();
    }
    let chosen = |step: u64| {
        let jitter = ((count ^ (step << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % count;
        units.select(u32::try_from((step * count + jitter) / wanted).unwrap_or_default())
    };
    (0..wanted).filter_map(chosen).collect()
}
