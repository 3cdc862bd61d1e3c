//! RFC 0024 §3.3: where everything of a source document goes, as a tree over its places.
//!
//! What no rule takes is carried over or dropped here, so that nothing goes without a word.

use super::path::{Path, Segment};
use super::rule::{Body, Op, Over};
use super::translate::{Here, Loss, Report};
use crate::refusal::Refusal;
use crate::value::same;
use json::Value;
use std::collections::BTreeMap;

/// What becomes of a place and of those below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    fate: Fate,
    names: BTreeMap<Box<str>, Plan>,
    elements: BTreeMap<usize, Plan>,
    /// From which element on a rule takes them.
    taken_from: Option<usize>,
}

#[derive(Clone, Debug, Default)]
enum Fate {
    /// As the body says for what nobody mentions.
    #[default]
    Open,
    /// A rule takes it and answers for it.
    Taken,
    /// Something else is written there.
    Covered,
    /// It is left out; nothing is lost when it is the constant that the way back brings.
    Unset(Option<Value>),
}

impl Plan {
    pub(crate) fn of(body: &Body) -> Self {
        let mut plan = Self::default();
        for place in body.rules.iter().map(|rule| &rule.to).chain(body.derived.iter().map(|derived| &derived.to)) {
            plan.at(place).fate = Fate::Covered;
        }
        for constant in body.constants.iter().filter(|constant| !constant.when_absent) {
            plan.at(&constant.to).fate = Fate::Covered;
        }
        for rule in body.rules.iter().filter(|rule| body.takes(rule)) {
            match rule.op {
                Op::Each { over: Over::Elements, from_index, .. } if from_index > 0 => {
                    plan.at(&rule.from).taken_from = Some(from_index);
                }
                _ => plan.at(&rule.from).fate = Fate::Taken,
            }
        }
        for unset in &body.unset {
            plan.at(&unset.at).fate = Fate::Unset(unset.value.clone());
        }
        plan
    }

    fn at(&mut self, path: &Path) -> &mut Self {
        path.segments().iter().fold(self, |plan, segment| match segment {
            Segment::Name(name) => plan.names.entry(name.clone()).or_default(),
            Segment::Index(index) => plan.elements.entry(*index).or_default(),
        })
    }

    /// Whether an object stays an object here, whatever rules take out of it.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.fate, Fate::Open)
    }

    /// What is left of a value when the rules have taken theirs; `keeps` says whether that is carried over.
    pub(crate) fn rest(
        &self,
        value: &Value,
        keeps: bool,
        here: &Here<'_>,
        report: &mut Report,
    ) -> Result<Option<Value>, Refusal> {
        match &self.fate {
            Fate::Taken => return Ok(None),
            Fate::Unset(constant) => {
                if !constant.as_ref().is_some_and(|constant| same(constant, value)) {
                    report.tell(Loss::dropped(here.pointer(), "unset"));
                }
                return Ok(None);
            }
            Fate::Open | Fate::Covered => {}
        }
        // Where a list is taken from, the way back writes one: nothing else can stay there.
        let keeps = keeps && matches!(self.fate, Fate::Open) && self.taken_from.is_none();
        match value {
            Value::Object(members) if !self.names.is_empty() && !members.is_empty() => {
                let mut kept = Value::Object(Default::default());
                for (name, value) in members {
                    let below = here.name(name);
                    let left = match self.names.get(name.as_str()) {
                        Some(plan) => plan.rest(value, keeps, &below, report)?,
                        None => keep(value, keeps, &below, report)?,
                    };
                    if let (Value::Object(kept), Some(left)) = (&mut kept, left) {
                        kept.insert(name.clone(), left);
                    }
                }
                let empty = kept.as_object().is_some_and(|kept| kept.is_empty());
                Ok((!empty).then_some(kept))
            }
            Value::Array(elements) if !self.elements.is_empty() || self.taken_from.is_some() => {
                for (index, value) in elements.iter().enumerate() {
                    if self.taken_from.is_some_and(|first| index >= first) {
                        continue;
                    }
                    let below = here.index(index);
                    // A list with holes cannot be carried over, so what rules leave of it is dropped.
                    match self.elements.get(&index) {
                        Some(plan) => plan.rest(value, false, &below, report)?,
                        None => keep(value, false, &below, report)?,
                    };
                }
                if elements.is_empty() {
                    report.tell(Loss::dropped(here.pointer(), "empty_list"));
                }
                Ok(None)
            }
            value => keep(value, keeps, here, report),
        }
    }
}

fn keep(value: &Value, keeps: bool, here: &Here<'_>, report: &mut Report) -> Result<Option<Value>, Refusal> {
    if keeps {
        report.spend(value)?;
        return Ok(Some(value.clone()));
    }
    report.tell(Loss::dropped(here.pointer(), "no_place"));
    Ok(None)
}
