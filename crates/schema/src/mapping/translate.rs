//! RFC 0024 §3.3 "can compute the destination document": applying a mapping, and saying what was lost on the way.
//!
//! INVARIANT: whatever of the source the destination does not have, and whatever the destination has from nowhere, is
//! in the report. A translation is never a signed document: nobody signed it.

use super::path::{Path, Segment};
use super::rule::{Body, Case, Direction, Op, Over, Rule};
use super::{Mapping, Step};
use crate::refusal::{Code, Refusal};
use crate::value::{same, size};
use json::{Pointer, Value, json};

/// A translation has at most this many times the bytes of its source.
pub const OUTPUT_FACTOR_MAX: usize = 4;

/// And these, so that a short source may become a whole document.
pub const OUTPUT_BYTES_FREE: usize = 4_096;

/// What a mapping made of a document; derived, and signed by nobody.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// The document in the destination's version.
    pub document: Value,
    /// What was lost or brought in.
    pub losses: Vec<Loss>,
}

/// What happened to a value that did not come through as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub kind: LossKind,
    /// The place in the source of the step.
    pub from: Option<Pointer>,
    /// The place in the destination of the step.
    pub to: Option<Pointer>,
    /// Why, as a stable word.
    pub why: &'static str,
    /// In which step of a composed mapping, from 0.
    pub step: usize,
}

/// The kinds of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// In the source and not in the destination.
    Dropped,
    /// In the destination and not in the source.
    Invented,
    /// In both, in a form that does not lead back to the same.
    Changed,
}

impl LossKind {
    /// The stable word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Invented => "invented",
            Self::Changed => "changed",
        }
    }
}

impl Loss {
    pub(crate) fn dropped(from: Pointer, why: &'static str) -> Self {
        Self { kind: LossKind::Dropped, from: Some(from), to: None, why, step: 0 }
    }

    /// The entry as it stands in a report.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"kind": self.kind.name(), "why": self.why});
        if let Value::Object(members) = &mut value {
            for (name, place) in [("from", &self.from), ("to", &self.to)] {
                if let Some(place) = place {
                    members.insert(name.to_owned(), json!(place.as_str()));
                }
            }
            if self.step > 0 {
                members.insert("step".to_owned(), json!(self.step));
            }
        }
        value
    }
}

/// What is told on the way, and how much may still be written.
#[derive(Debug)]
pub(crate) struct Report {
    losses: Vec<Loss>,
    left: usize,
    most: usize,
}

impl Report {
    pub(crate) fn tell(&mut self, loss: Loss) {
        self.losses.push(loss);
    }

    pub(crate) fn spend(&mut self, value: &Value) -> Result<(), Refusal> {
        match self.left.checked_sub(size(value)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let got = self.most.saturating_add(1);
                Err(Refusal::limit(Code::OutputTooLarge, Pointer::root(), "mapping.output_bytes", self.most, got))
            }
        }
    }
}

/// Where in the source and in the destination a body works; places are spelled only when something is lost.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    above: Option<&'a Here<'a>>,
    from: Way<'a>,
    to: Way<'a>,
}

#[derive(Clone, Copy)]
enum Way<'a> {
    Stay,
    Path(&'a Path),
    Name(&'a str),
    Index(usize),
}

impl<'a> Here<'a> {
    const ROOT: Here<'static> = Here { above: None, from: Way::Stay, to: Way::Stay };

    /// A member that stands under the same name on both sides.
    pub(crate) fn name<'b>(&'b self, name: &'b str) -> Here<'b> {
        self.step(Way::Name(name), Way::Name(name))
    }

    /// An element that stands in the same place on both sides.
    pub(crate) fn index(&self, index: usize) -> Here<'_> {
        self.step(Way::Index(index), Way::Index(index))
    }

    fn step<'b>(&'b self, from: Way<'b>, to: Way<'b>) -> Here<'b> {
        Here { above: Some(self), from, to }
    }

    /// The place in the source.
    pub(crate) fn pointer(&self) -> Pointer {
        self.spell(|here| here.from)
    }

    fn destination(&self) -> Pointer {
        self.spell(|here| here.to)
    }

    fn spell(&self, side: for<'b> fn(&Here<'b>) -> Way<'b>) -> Pointer {
        let above = self.above.map_or_else(Pointer::root, |above| above.spell(side));
        match side(self) {
            Way::Stay => above,
            Way::Path(path) => path.segments().iter().fold(above, |pointer, segment| pointer.child(segment)),
            Way::Name(name) => above.child(name),
            Way::Index(index) => above.child(index),
        }
    }
}

impl Mapping {
    /// Computes the destination document.
    pub fn translate(&self, source: &Value) -> Result<Translation, Refusal> {
        let mut losses = Vec::new();
        let mut document = None;
        for (number, step) in self.steps.iter().enumerate() {
            let translation = step.translate(document.as_ref().unwrap_or(source))?;
            losses.extend(translation.losses.into_iter().map(|loss| Loss { step: number, ..loss }));
            document = Some(translation.document);
        }
        Ok(Translation { document: document.unwrap_or_else(|| source.clone()), losses })
    }
}

impl Step {
    fn translate(&self, source: &Value) -> Result<Translation, Refusal> {
        let most = size(source).saturating_mul(OUTPUT_FACTOR_MAX).saturating_add(OUTPUT_BYTES_FREE);
        let mut report = Report { losses: Vec::new(), left: most, most };
        let document = self.body.translate(source, &Here::ROOT, &mut report)?;
        Ok(Translation { document: document.unwrap_or_else(|| json!({})), losses: report.losses })
    }
}

impl Body {
    fn translate(&self, source: &Value, here: &Here<'_>, report: &mut Report) -> Result<Option<Value>, Refusal> {
        let mut output = self.plan.rest(source, self.passthrough, here, report)?;
        if output.is_none() && source.is_object() && self.plan.stays() {
            output = Some(json!({}));
        }
        for rule in self.rules.iter().filter(|rule| rule.to_index() == 0) {
            rule.apply(source, &mut output, here, report)?;
        }
        for derived in &self.derived {
            let values: Vec<Option<&Value>> = derived.from.iter().map(|path| path.find(source)).collect();
            if let Some(value) = derived.function.apply(&values) {
                let there = here.step(Way::Path(&derived.to), Way::Path(&derived.to));
                put(&mut output, &derived.to, value, here, report)?;
                report.tell(Loss {
                    kind: LossKind::Invented,
                    from: None,
                    to: Some(there.destination()),
                    why: "derived",
                    step: 0,
                });
            }
        }
        for constant in &self.constants {
            let absent = output.as_ref().is_none_or(|output| constant.to.find(output).is_none());
            if !constant.when_absent || absent {
                let there = here.step(Way::Path(&constant.to), Way::Path(&constant.to));
                let why = if constant.when_absent { "default" } else { "constant" };
                // A default stays on the way back, where it came from nowhere.
                let from = constant.when_absent.then(|| there.pointer());
                report.tell(Loss { kind: LossKind::Invented, from, to: Some(there.destination()), why, step: 0 });
                put(&mut output, &constant.to, constant.value.clone(), here, report)?;
            }
        }
        // Lists that begin behind an element find it in its place now.
        for rule in self.rules.iter().filter(|rule| rule.to_index() > 0) {
            rule.apply(source, &mut output, here, report)?;
        }
        Ok(output)
    }
}

impl Rule {
    fn apply(
        &self,
        source: &Value,
        output: &mut Option<Value>,
        here: &Here<'_>,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let there = here.step(Way::Path(&self.from), Way::Path(&self.to));
        let Some(value) = self.from.find(source) else {
            let default = match &self.op {
                Op::Copy { default } | Op::Move { default } | Op::Rename { default } => default.as_ref(),
                Op::Enum { .. } | Op::Convert { .. } | Op::Each { .. } | Op::Variant { .. } => None,
            };
            if let Some(default) = default {
                let (from, to) = (Some(there.pointer()), Some(there.destination()));
                report.tell(Loss { kind: LossKind::Invented, from, to, why: "default", step: 0 });
                put(output, &self.to, default.clone(), here, report)?;
            }
            return Ok(());
        };
        let carried = match &self.op {
            Op::Copy { .. } | Op::Move { .. } | Op::Rename { .. } => Some(value.clone()),
            Op::Enum { pairs, default } => exchanged(pairs, default.as_ref(), value, &there, report),
            Op::Convert { function } => {
                let converted = function.apply(value);
                match &converted {
                    None => report.tell(Loss::dropped(there.pointer(), "not_convertible")),
                    Some(converted) => {
                        let back = function.inverse().and_then(|inverse| inverse.apply(converted));
                        if !back.is_some_and(|back| same(&back, value)) {
                            report.tell(changed(&there, "conversion"));
                        }
                    }
                }
                converted
            }
            Op::Each { over, from_index, to_index, body } => {
                let each = Each { over: *over, from_index: *from_index, to_index: *to_index, body };
                return each.apply(value, self, output, &there, here, report);
            }
            Op::Variant { direction, tag, cases } => match direction {
                Direction::TagToMember => tag_to_member(value, tag, cases, &there, report)?,
                Direction::MemberToTag => member_to_tag(value, tag, cases, &there, report)?,
            },
        };
        match carried {
            Some(value) => place(output, self, value, here, &there, report),
            None => Ok(()),
        }
    }
}

/// An element that would leave a hole before it.
fn homeless(there: &Here<'_>) -> Loss {
    Loss { to: Some(there.destination()), ..Loss::dropped(there.pointer(), "nothing_before_it") }
}

fn changed(there: &Here<'_>, why: &'static str) -> Loss {
    Loss { kind: LossKind::Changed, from: Some(there.pointer()), to: Some(there.destination()), why, step: 0 }
}

fn exchanged(
    pairs: &[(Value, Value)],
    default: Option<&Value>,
    value: &Value,
    there: &Here<'_>,
    report: &mut Report,
) -> Option<Value> {
    let Some((_, becomes)) = pairs.iter().find(|(known, _)| same(known, value)) else {
        match default {
            Some(_) => report.tell(changed(there, "not_in_map")),
            None => report.tell(Loss::dropped(there.pointer(), "not_in_map")),
        }
        return default.cloned();
    };
    let back = pairs.iter().find(|(_, to)| same(to, becomes)).map(|(from, _)| from);
    if !back.is_some_and(|back| same(back, value)) {
        report.tell(changed(there, "merged"));
    }
    Some(becomes.clone())
}

/// A list, or the members of an object, one by one.
struct Each<'a> {
    over: Over,
    from_index: usize,
    to_index: usize,
    body: &'a Body,
}

impl Each<'_> {
    fn apply(
        &self,
        value: &Value,
        rule: &Rule,
        output: &mut Option<Value>,
        there: &Here<'_>,
        here: &Here<'_>,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        match (self.over, value) {
            (Over::Members, Value::Object(members)) => {
                let mut translated = json!({});
                for (name, member) in members {
                    let below = there.name(name);
                    let member = self.body.translate(member, &below, report)?;
                    if let (Value::Object(translated), Some(member)) = (&mut translated, member) {
                        translated.insert(name.clone(), member);
                    }
                }
                settle(output, &rule.to, translated, here, report);
                Ok(())
            }
            (Over::Elements, Value::Array(elements)) => self.elements(elements, rule, output, there, here, report),
            // With an index the plan has told it already.
            (Over::Elements, _) if self.from_index > 0 => Ok(()),
            _ => {
                report.tell(Loss::dropped(there.pointer(), "not_a_list"));
                Ok(())
            }
        }
    }

    fn elements(
        &self,
        elements: &[Value],
        rule: &Rule,
        output: &mut Option<Value>,
        there: &Here<'_>,
        here: &Here<'_>,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let tail = elements.get(self.from_index..).unwrap_or_default();
        let found = output.as_ref().and_then(|output| rule.to.find(output)).and_then(Value::as_array);
        let before = found.map_or(0, Vec::len);
        if tail.is_empty() && self.to_index + self.from_index > 0 {
            // Behind other elements an empty list leaves no trace.
            if self.from_index == 0 {
                report.tell(Loss::dropped(there.pointer(), "empty_list"));
            }
            return Ok(());
        }
        if before != self.to_index {
            report.tell(homeless(there));
            return Ok(());
        }
        let mut translated = Vec::with_capacity(self.to_index + tail.len());
        if let (true, Some(found)) = (self.to_index > 0, found) {
            translated.extend(found.iter().cloned());
        }
        for (position, element) in tail.iter().enumerate() {
            let below = there.step(Way::Index(self.from_index + position), Way::Index(self.to_index + position));
            let element = self.body.translate(element, &below, report)?;
            // The others keep their places.
            translated.push(element.unwrap_or(Value::Null));
        }
        settle(output, &rule.to, Value::Array(translated), here, report);
        Ok(())
    }
}

fn tag_to_member(
    value: &Value,
    tag: &str,
    cases: &[Case],
    there: &Here<'_>,
    report: &mut Report,
) -> Result<Option<Value>, Refusal> {
    let kind = value.get(tag).and_then(Value::as_str);
    let (Some(case), Value::Object(members)) = (cases.iter().find(|case| Some(case.tag.as_str()) == kind), value)
    else {
        report.tell(Loss::dropped(there.pointer(), "unknown_kind"));
        return Ok(None);
    };
    let mut inner = members.clone();
    inner.remove(tag);
    let below = there.step(Way::Stay, Way::Name(&case.member));
    let inner = case.body.translate(&Value::Object(inner), &below, report)?;
    Ok(Some(json!({case.member.as_str(): inner.unwrap_or_else(|| json!({}))})))
}

fn member_to_tag(
    value: &Value,
    tag: &str,
    cases: &[Case],
    there: &Here<'_>,
    report: &mut Report,
) -> Result<Option<Value>, Refusal> {
    let kind = cases.iter().find_map(|case| Some((case, value.get(&case.member)?)));
    let (Some((case, inner)), Value::Object(members)) = (kind, value) else {
        report.tell(Loss::dropped(there.pointer(), "unknown_kind"));
        return Ok(None);
    };
    for name in members.keys().filter(|name| **name != case.member) {
        report.tell(Loss::dropped(there.name(name).pointer(), "no_place"));
    }
    let below = there.step(Way::Name(&case.member), Way::Stay);
    let inner = case.body.translate(inner, &below, report)?;
    let Some(Value::Object(mut inner)) = inner.or_else(|| Some(json!({}))) else {
        report.tell(Loss::dropped(there.pointer(), "not_an_object"));
        return Ok(None);
    };
    if inner.insert(tag.to_owned(), json!(case.tag)).is_some() {
        report.tell(Loss::dropped(below.name(tag).pointer(), "covered"));
    }
    Ok(Some(Value::Object(inner)))
}

/// Puts a carried value where it belongs, or says that there is no such place.
fn place(
    output: &mut Option<Value>,
    rule: &Rule,
    value: Value,
    here: &Here<'_>,
    there: &Here<'_>,
    report: &mut Report,
) -> Result<(), Refusal> {
    if !fits(output.as_ref(), rule.to.segments()) {
        report.tell(homeless(there));
        return Ok(());
    }
    put(output, &rule.to, value, here, report)
}

/// Whether no list would get a hole.
fn fits(output: Option<&Value>, path: &[Segment]) -> bool {
    let Some((segment, rest)) = path.split_first() else { return true };
    match (segment, output) {
        (Segment::Name(name), output) => fits(output.and_then(|output| output.get(&**name)), rest),
        (Segment::Index(index), Some(Value::Array(elements))) => {
            *index <= elements.len() && fits(elements.get(*index), rest)
        }
        (Segment::Index(index), _) => *index == 0 && fits(None, rest),
    }
}

/// Writes a value that has not been counted yet.
fn put(
    output: &mut Option<Value>,
    path: &Path,
    value: Value,
    here: &Here<'_>,
    report: &mut Report,
) -> Result<(), Refusal> {
    report.spend(&value)?;
    settle(output, path, value, here, report);
    Ok(())
}

/// Writes a value, making what has to stand around it.
fn settle(output: &mut Option<Value>, path: &Path, value: Value, here: &Here<'_>, report: &mut Report) {
    if fits(output.as_ref(), path.segments()) {
        // An object that is empty at the root of a body is no news when it is filled.
        let found = output.take().filter(|found| found.as_object().is_none_or(|members| !members.is_empty()));
        *output = Some(nest(found, path.segments(), value, here, report));
    }
}

fn nest(found: Option<Value>, path: &[Segment], value: Value, here: &Here<'_>, report: &mut Report) -> Value {
    let Some((segment, rest)) = path.split_first() else { return value };
    match segment {
        Segment::Name(name) => {
            let mut members = match found {
                Some(Value::Object(members)) => {
                    if members.is_empty() {
                        // On the way back nobody knows that it was there before.
                        report.tell(Loss {
                            kind: LossKind::Changed,
                            from: Some(here.pointer()),
                            to: Some(here.destination()),
                            why: "filled",
                            step: 0,
                        });
                    }
                    members
                }
                other => {
                    in_the_way(other, here, report);
                    Default::default()
                }
            };
            let below = here.name(name);
            let inner = nest(members.remove(&**name), rest, value, &below, report);
            members.insert(name.to_string(), inner);
            Value::Object(members)
        }
        Segment::Index(index) => {
            let mut elements = match found {
                Some(Value::Array(elements)) => elements,
                other => {
                    in_the_way(other, here, report);
                    Vec::new()
                }
            };
            let below = here.index(*index);
            match elements.get_mut(*index) {
                Some(element) => *element = nest(Some(element.take()), rest, value, &below, report),
                None => elements.push(nest(None, rest, value, &below, report)),
            }
            Value::Array(elements)
        }
    }
}

fn in_the_way(found: Option<Value>, here: &Here<'_>, report: &mut Report) {
    if found.is_some() {
        report.tell(Loss { to: Some(here.destination()), ..Loss::dropped(here.pointer(), "covered") });
    }
}
