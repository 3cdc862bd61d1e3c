//! RFC 0024 §3.3 "per field translation rules, constants, fields left unset, derived fields": the body of a mapping.
//!
//! INVARIANT: no two rules of a [`Body`] write the same place and no two take from the same place, so the order of
//! rules says nothing and turning a body round is turning each rule round.

use super::function::{Derivation, Function};
use super::path::{Path, Segment};
use super::plan::Plan;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use json::{Pointer, Value, json};

/// Rules of one mapping, those of lists inside it included.
pub(crate) const RULES_MAX: usize = 256;

/// Lists within lists.
pub(crate) const DEPTH_MAX: usize = 8;

/// Entries of one `enum`, or cases of one union.
pub(crate) const ENTRIES_MAX: usize = 256;

/// The rules of one object, or of each element of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) rules: Vec<Rule>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) unset: Vec<Unset>,
    pub(crate) derived: Vec<Derived>,
    /// Whether members that no rule mentions are carried over.
    pub(crate) passthrough: bool,
    /// Where everything of a source goes, made from the above.
    pub(crate) plan: Plan,
}

/// How a value is carried over.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) from: Path,
    pub(crate) to: Path,
    pub(crate) op: Op,
}

/// What happens to it on the way.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// It stays where it is, too.
    Copy { default: Option<Value> },
    /// It stands elsewhere.
    Move { default: Option<Value> },
    /// It stands beside itself.
    Rename { default: Option<Value> },
    /// One of some values becomes one of others.
    Enum { pairs: Vec<(Value, Value)>, default: Option<Value> },
    /// A function of it.
    Convert { function: Function },
    /// Each element of a list, or each member of an object, by rules of its own.
    Each { over: Over, from_index: usize, to_index: usize, body: Box<Body> },
    /// A union told by a member that names its kind becomes one told by the name of its only member, or back.
    Variant { direction: Direction, tag: String, cases: Vec<Case> },
}

/// What is gone through one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Elements,
    Members,
}

/// Which way a union is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    TagToMember,
    MemberToTag,
}

/// One kind of a union.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) tag: String,
    pub(crate) member: String,
    pub(crate) body: Body,
}

/// A value that the mapping brings.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub(crate) to: Path,
    pub(crate) value: Value,
    /// Only where nothing else came.
    pub(crate) when_absent: bool,
}

/// A place of the source that has none in the destination.
#[derive(Clone, Debug)]
pub(crate) struct Unset {
    pub(crate) at: Path,
    /// The constant that the way back puts there.
    pub(crate) value: Option<Value>,
}

/// A value computed from several.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    pub(crate) to: Path,
    pub(crate) function: Derivation,
    pub(crate) from: Vec<Path>,
}

pub(crate) const MEMBERS: [&str; 5] = ["rules", "constants", "unset", "derived", "passthrough"];

impl Body {
    /// Reads the members of a body out of an object that may have others.
    pub(crate) fn read(at: &At<'_>, count: &mut usize, depth: usize) -> Result<Self, Refusal> {
        if depth > DEPTH_MAX {
            return Err(Refusal::limit(Code::MappingTooLarge, at.at.clone(), "mapping.depth", DEPTH_MAX, depth));
        }
        let mut body = Self { passthrough: at.flag("passthrough")?, ..Self::default() };
        for rule in at.list("rules")? {
            counted(count, &rule)?;
            body.rules.push(Rule::read(&rule, count, depth)?);
        }
        for constant in at.list("constants")? {
            counted(count, &constant)?;
            constant.closed(&["to", "value", "when_absent"])?;
            let (to, value) = (Path::read(&constant.required("to")?)?, constant.required("value")?.node.to_value());
            body.constants.push(Constant { to, value, when_absent: constant.flag("when_absent")? });
        }
        for unset in at.list("unset")? {
            counted(count, &unset)?;
            body.unset.push(if unset.node.is_object() {
                unset.closed(&["at", "value"])?;
                let value = unset.required("value")?.node.to_value();
                Unset { at: Path::read(&unset.required("at")?)?, value: Some(value) }
            } else {
                Unset { at: Path::read(&unset)?, value: None }
            });
        }
        for derived in at.list("derived")? {
            counted(count, &derived)?;
            derived.closed(&["to", "fn", "from", "args"])?;
            let from: Result<Vec<Path>, Refusal> =
                derived.required("from")?.elements()?.iter().map(Path::read).collect();
            let from = from?;
            if from.is_empty() {
                return derived.required("from")?.refuse(Code::EmptyList, "name at least one place");
            }
            let to = Path::read(&derived.required("to")?)?;
            body.derived.push(Derived { to, function: Derivation::read(&derived)?, from });
        }
        body.settled().map_err(|detail| Refusal::new(Code::RulesOverlap, at.at.clone(), detail))
    }

    /// Checks that no two rules meet, and makes the plan.
    fn settled(mut self) -> Result<Self, String> {
        let written = self.rules.iter().map(|rule| (&rule.to, rule.to_index()));
        let (defaults, constants): (Vec<_>, Vec<_>) = self.constants.iter().partition(|constant| constant.when_absent);
        let written = written.chain(constants.iter().map(|constant| (&constant.to, 0)));
        let written: Vec<_> = written.chain(self.derived.iter().map(|derived| (&derived.to, 0))).collect();
        apart(&written, "written")?;
        apart(&defaults.iter().map(|default| (&default.to, 0)).collect::<Vec<_>>(), "written")?;
        let taken = self.rules.iter().filter(|rule| self.takes(rule)).map(|rule| (&rule.from, rule.taken_from()));
        let taken: Vec<_> = taken.chain(self.unset.iter().map(|unset| (&unset.at, 0))).collect();
        apart(&taken, "taken")?;
        for default in defaults {
            let place = default.to.segments();
            let beneath = written.iter().find(|(path, _)| place.starts_with(path.segments()));
            let mixed = written.iter().find(|(path, _)| !alike(path, &default.to));
            // Around what others write or take a default is only a place for it.
            let empty = default.value.as_object().is_some_and(|members| members.is_empty());
            let around = written.iter().chain(&taken).find(|(path, _)| !empty && path.segments().starts_with(place));
            if let Some((other, _)) = beneath.or(mixed).or(around) {
                return Err(format!("a default meets a rule: `{}` and `{}`", default.to.pointer(), other.pointer()));
            }
        }
        self.plan = Plan::of(&self);
        Ok(self)
    }

    /// Whether the value leaves its place by this rule: a copy leaves it there when all else is carried over, too.
    pub(crate) fn takes(&self, rule: &Rule) -> bool {
        match rule.op {
            Op::Copy { .. } => {
                !self.passthrough
                    && self
                        .rules
                        .iter()
                        .find(|other| other.from == rule.from)
                        .is_some_and(|other| std::ptr::eq(other, rule))
            }
            Op::Move { .. }
            | Op::Rename { .. }
            | Op::Enum { .. }
            | Op::Convert { .. }
            | Op::Each { .. }
            | Op::Variant { .. } => true,
        }
    }

    /// The members that make this body.
    pub(crate) fn write(&self, into: &mut Value) {
        let Value::Object(members) = into else { return };
        let mut list = |name: &str, entries: Vec<Value>| {
            if !entries.is_empty() || name == "rules" {
                members.insert(name.to_owned(), Value::Array(entries));
            }
        };
        list("rules", self.rules.iter().map(Rule::to_value).collect());
        list("constants", self.constants.iter().map(Constant::to_value).collect());
        list("unset", self.unset.iter().map(Unset::to_value).collect());
        list("derived", self.derived.iter().map(Derived::to_value).collect());
        if self.passthrough {
            members.insert("passthrough".to_owned(), json!(true));
        }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({});
        self.write(&mut value);
        value
    }

    /// The body that leads back, if every rule does.
    pub(crate) fn inverse(&self) -> Option<Self> {
        let mut body = Self { passthrough: self.passthrough, ..Self::default() };
        for rule in &self.rules {
            match &rule.op {
                // Its twin is carried by itself, so the copy is only left out.
                Op::Copy { .. } if !self.takes(rule) => body.unset.push(Unset { at: rule.to.clone(), value: None }),
                _ => body.rules.push(Rule { from: rule.to.clone(), to: rule.from.clone(), op: rule.op.inverse()? }),
            }
        }
        for constant in &self.constants {
            if constant.when_absent {
                // A default holds in both versions.
                body.constants.push(constant.clone());
            } else {
                body.unset.push(Unset { at: constant.to.clone(), value: Some(constant.value.clone()) });
            }
        }
        for derived in &self.derived {
            body.unset.push(Unset { at: derived.to.clone(), value: None });
        }
        for (at, value) in self.unset.iter().filter_map(|unset| Some((&unset.at, unset.value.as_ref()?))) {
            body.constants.push(Constant { to: at.clone(), value: value.clone(), when_absent: false });
        }
        body.settled().ok()
    }
}

fn counted(count: &mut usize, at: &At<'_>) -> Result<(), Refusal> {
    *count += 1;
    if *count > RULES_MAX {
        return Err(Refusal::limit(Code::MappingTooLarge, at.at.clone(), "mapping.rules", RULES_MAX, *count));
    }
    Ok(())
}

/// Whether places keep clear of each other; an `each` that begins at an index leaves the elements before it alone.
fn apart(places: &[(&Path, usize)], how: &str) -> Result<(), String> {
    for (position, (left, left_index)) in places.iter().enumerate() {
        for (right, right_index) in places.iter().skip(position + 1) {
            let meeting = left.segments().iter().zip(right.segments()).position(|(left, right)| left != right);
            let fine = match meeting {
                Some(_) => alike(left, right),
                None => before(left, *left_index, right) || before(right, *right_index, left),
            };
            if !fine {
                return Err(format!("two rules meet: `{}` and `{}` are {how} both", left.pointer(), right.pointer()));
            }
        }
    }
    Ok(())
}

/// Whether two places can be in one document: where they part, both are members or both are elements.
fn alike(left: &Path, right: &Path) -> bool {
    let parting = left.segments().iter().zip(right.segments()).find(|(left, right)| left != right);
    parting.is_none_or(|(left, right)| matches!(left, Segment::Index(_)) == matches!(right, Segment::Index(_)))
}

/// Whether `path` lies in an element that the list at `list` leaves alone.
fn before(list: &Path, index: usize, path: &Path) -> bool {
    matches!(path.segments().get(list.segments().len()), Some(Segment::Index(element)) if *element < index)
}

impl Rule {
    fn read(at: &At<'_>, count: &mut usize, depth: usize) -> Result<Self, Refusal> {
        let op = at.required("op")?;
        let from = || Path::read(&at.required("from")?);
        let to = || Path::read(&at.required("to")?);
        let default = || at.member("default").map(|value| value.node.to_value());
        match op.string()? {
            "copy" => {
                at.closed(&["op", "from", "to", "default"])?;
                Ok(Self { from: from()?, to: to()?, op: Op::Copy { default: default() } })
            }
            "move" => {
                at.closed(&["op", "from", "to", "default"])?;
                Ok(Self { from: from()?, to: to()?, op: Op::Move { default: default() } })
            }
            "rename" => {
                at.closed(&["op", "from", "to", "default"])?;
                let (from, name) = (from()?, at.required("to")?);
                let Some(to) = from.renamed(name.string()?) else {
                    return name.refuse(Code::InvalidPointer, "`rename` gives a member another name");
                };
                Ok(Self { from, to, op: Op::Rename { default: default() } })
            }
            "enum" => {
                at.closed(&["op", "from", "to", "map", "default"])?;
                Ok(Self {
                    from: from()?,
                    to: to()?,
                    op: Op::Enum { pairs: pairs(&at.required("map")?)?, default: default() },
                })
            }
            "convert" => {
                at.closed(&["op", "from", "to", "fn", "args"])?;
                Ok(Self { from: from()?, to: to()?, op: Op::Convert { function: Function::read(at)? } })
            }
            "each" => Ok(Self { from: from()?, to: to()?, op: Op::each(at, count, depth)? }),
            "variant" => Ok(Self { from: from()?, to: to()?, op: Op::variant(at, count, depth)? }),
            _ => op.refuse(Code::InvalidValue, "this is none of copy, move, rename, enum, convert, each, variant"),
        }
    }

    fn taken_from(&self) -> usize {
        if let Op::Each { from_index, .. } = self.op { from_index } else { 0 }
    }

    pub(crate) fn to_index(&self) -> usize {
        if let Op::Each { to_index, .. } = self.op { to_index } else { 0 }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"from": self.from.pointer().as_str(), "to": self.to.pointer().as_str()});
        let mut put = |name: &str, entry: Value| {
            if let Value::Object(members) = &mut value {
                members.insert(name.to_owned(), entry);
            }
        };
        match &self.op {
            Op::Copy { default } | Op::Move { default } | Op::Rename { default } => {
                let name = match self.op {
                    Op::Copy { .. } => "copy",
                    Op::Rename { .. } => "rename",
                    _ => "move",
                };
                put("op", json!(name));
                if name == "rename" {
                    put("to", json!(self.to.last_name()));
                }
                default.iter().for_each(|default| put("default", default.clone()));
            }
            Op::Enum { pairs, default } => {
                put("op", json!("enum"));
                put("map", pairs.iter().map(|(from, to)| json!([from, to])).collect());
                default.iter().for_each(|default| put("default", default.clone()));
            }
            Op::Convert { function } => {
                put("op", json!("convert"));
                put("fn", json!(function.name()));
                function.arguments().into_iter().for_each(|arguments| put("args", arguments));
            }
            Op::Each { over, from_index, to_index, body } => {
                put("op", json!("each"));
                if *over == Over::Members {
                    put("over", json!("members"));
                }
                for (name, index) in [("from_index", from_index), ("to_index", to_index)] {
                    if *index > 0 {
                        put(name, json!(index));
                    }
                }
                put("body", body.to_value());
            }
            Op::Variant { direction, tag, cases } => {
                put("op", json!("variant"));
                put("direction", json!(direction.name()));
                put("tag", json!(tag));
                let case = |case: &Case| json!({"tag": case.tag, "member": case.member, "body": case.body.to_value()});
                put("cases", cases.iter().map(case).collect());
            }
        }
        value
    }
}

/// Pairs of values, each given once.
fn pairs(at: &At<'_>) -> Result<Vec<(Value, Value)>, Refusal> {
    let entries = at.elements()?;
    let mut pairs: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
    if entries.is_empty() || entries.len() > ENTRIES_MAX {
        let place = at.at.clone();
        return Err(Refusal::limit(Code::MappingTooLarge, place, "mapping.entries", ENTRIES_MAX, entries.len()));
    }
    for entry in &entries {
        let ends = entry.elements()?;
        let [from, to] = ends.as_slice() else {
            return entry.refuse(Code::InvalidValue, "a pair belongs here: a value of the source, and what it becomes");
        };
        let (from, to) = (from.node.to_value(), to.node.to_value());
        if pairs.iter().any(|(known, _)| *known == from) {
            return entry.refuse(Code::InvalidValue, "this value of the source stands in the list already");
        }
        pairs.push((from, to));
    }
    Ok(pairs)
}

impl Op {
    fn each(at: &At<'_>, count: &mut usize, depth: usize) -> Result<Self, Refusal> {
        at.closed(&["op", "from", "to", "over", "from_index", "to_index", "body"])?;
        let over = match at.member("over") {
            None => Over::Elements,
            Some(word) => match word.string()? {
                "elements" => Over::Elements,
                "members" => Over::Members,
                _ => return word.refuse(Code::InvalidValue, "`elements` or `members` belongs here"),
            },
        };
        let index = |name: &str| -> Result<usize, Refusal> {
            let Some(index) = at.member(name) else { return Ok(0) };
            match (over, index.integer()?) {
                (Over::Elements, number @ 0..=16) => Ok(number as usize),
                _ => index.refuse(Code::InvalidValue, "an index from 0 to 16 belongs here, and only over elements"),
            }
        };
        let (from_index, to_index) = (index("from_index")?, index("to_index")?);
        let body = at.required("body")?;
        body.closed(&MEMBERS)?;
        Ok(Self::Each { over, from_index, to_index, body: Box::new(Body::read(&body, count, depth + 1)?) })
    }

    fn variant(at: &At<'_>, count: &mut usize, depth: usize) -> Result<Self, Refusal> {
        at.closed(&["op", "from", "to", "direction", "tag", "cases"])?;
        let direction = at.required("direction")?;
        let way = match direction.string()? {
            "tag_to_member" => Direction::TagToMember,
            "member_to_tag" => Direction::MemberToTag,
            _ => return direction.refuse(Code::InvalidValue, "`tag_to_member` or `member_to_tag` belongs here"),
        };
        let mut cases: Vec<Case> = Vec::new();
        for entry in at.required("cases")?.elements()? {
            counted(count, &entry)?;
            entry.closed(&["tag", "member", "body"])?;
            let text = |name: &str| -> Result<String, Refusal> { Ok(entry.required(name)?.string()?.to_owned()) };
            let (tag, member) = (text("tag")?, text("member")?);
            if cases.iter().any(|case| case.tag == tag || case.member == member) {
                return entry.refuse(Code::InvalidValue, "each kind has one tag and one member of its own");
            }
            let body = match entry.member("body") {
                Some(body) => {
                    body.closed(&MEMBERS)?;
                    Body::read(&body, count, depth + 1)?
                }
                None => Body { passthrough: true, ..Body::default() },
            };
            cases.push(Case { tag, member, body });
        }
        if cases.is_empty() {
            return at.required("cases")?.refuse(Code::EmptyList, "name at least one kind");
        }
        Ok(Self::Variant { direction: way, tag: at.required("tag")?.string()?.to_owned(), cases })
    }

    fn inverse(&self) -> Option<Self> {
        Some(match self {
            Self::Copy { .. } | Self::Move { .. } => Self::Move { default: None },
            Self::Rename { .. } => Self::Rename { default: None },
            Self::Enum { pairs, .. } => {
                let mut turned: Vec<(Value, Value)> = Vec::with_capacity(pairs.len());
                for (from, to) in pairs {
                    // Of several that became one, the first is the way back.
                    if !turned.iter().any(|(known, _)| known == to) {
                        turned.push((to.clone(), from.clone()));
                    }
                }
                Self::Enum { pairs: turned, default: None }
            }
            Self::Convert { function } => Self::Convert { function: function.inverse()? },
            Self::Each { over, from_index, to_index, body } => Self::Each {
                over: *over,
                from_index: *to_index,
                to_index: *from_index,
                body: Box::new(body.inverse()?),
            },
            Self::Variant { direction, tag, cases } => {
                let turn = |case: &Case| {
                    Some(Case { tag: case.tag.clone(), member: case.member.clone(), body: case.body.inverse()? })
                };
                Self::Variant {
                    direction: direction.inverse(),
                    tag: tag.clone(),
                    cases: cases.iter().map(turn).collect::<Option<_>>()?,
                }
            }
        })
    }
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::TagToMember => "tag_to_member",
            Self::MemberToTag => "member_to_tag",
        }
    }

    fn inverse(self) -> Self {
        match self {
            Self::TagToMember => Self::MemberToTag,
            Self::MemberToTag => Self::TagToMember,
        }
    }
}

impl Constant {
    fn to_value(&self) -> Value {
        let mut value = json!({"to": self.to.pointer().as_str(), "value": self.value});
        if let (Value::Object(members), true) = (&mut value, self.when_absent) {
            members.insert("when_absent".to_owned(), json!(true));
        }
        value
    }
}

impl Unset {
    fn to_value(&self) -> Value {
        let at = self.at.pointer();
        match &self.value {
            Some(value) => json!({"at": at.as_str(), "value": value}),
            None => json!(at.as_str()),
        }
    }
}

impl Derived {
    fn to_value(&self) -> Value {
        let from: Vec<Pointer> = self.from.iter().map(Path::pointer).collect();
        let from: Vec<&str> = from.iter().map(Pointer::as_str).collect();
        let mut value = json!({"to": self.to.pointer().as_str(), "fn": self.function.name(), "from": from});
        if let (Value::Object(members), Some(arguments)) = (&mut value, self.function.arguments()) {
            members.insert("args".to_owned(), arguments);
        }
        value
    }
}
