//! RFC 0020 §3.2: the constraint tree, read from an intent.
//!
//! RFC 0020 A.8: what is not in the closed set of operators is refused when read. The same holds for an operand
//! that does not fit its operator, since "false" would turn into a match under `not`.

#[cfg(test)]
mod tests;

use crate::fields::Field;
use crate::instant::Instant;
use crate::order;
use crate::pattern::Pattern;
use crate::pointer::Path;
use crate::refusal::Refusal;
use crate::value::Value;

/// RFC 0020 A.7: what bounds the cost of evaluating a tree.
const LEAVES_MAX: usize = 256;
const DEPTH_MAX: usize = 16;
const LIST_MAX: usize = 1_000;
const PATTERNS_MAX: usize = 8;

const COMBINATORS: [&str; 3] = ["all_of", "any_of", "not"];
const LEAF_MEMBERS: [&str; 3] = ["path", "operator", "value"];

/// A node of the constraint tree.
#[derive(Debug, Clone)]
pub(crate) enum Constraint {
    Leaf(Box<Leaf>),
    /// All of them hold.
    AllOf(Vec<Constraint>),
    /// At least one of them holds.
    AnyOf(Vec<Constraint>),
    /// None of them holds.
    Not(Vec<Constraint>),
}

/// A triple of path, operator and value.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) path: Path,
    pub(crate) operator: String,
    pub(crate) value: Value,
    pub(crate) test: Test,
}

/// An operator together with its operand, where the operand needed reading.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    Eq,
    Ne,
    Lt,
    Lte,
    Gt,
    Gte,
    In(Vec<Value>),
    NotIn(Vec<Value>),
    Contains,
    /// The pattern, and the place of the operand.
    Matches(Pattern, String),
    Before(Instant),
    After(Instant),
    Within(Instant, Instant),
    Outside(Instant, Instant),
    Exists,
}

impl Constraint {
    /// Reads the constraints of an intent: one node, or an array that means all of them.
    pub(crate) fn read(root: &Field) -> Result<Constraint, Refusal> {
        let mut counts = Counts { leaves: 0, patterns: 0, root: root.at.clone() };
        match root.value {
            Value::Array(_) => Ok(Constraint::AllOf(read_list(root, 2, &mut counts)?)),
            _ => read_node(root, 1, &mut counts),
        }
    }
}

/// What is counted over the whole tree.
struct Counts {
    leaves: usize,
    patterns: usize,
    root: String,
}

fn read_node(node: &Field, depth: usize, counts: &mut Counts) -> Result<Constraint, Refusal> {
    if depth > DEPTH_MAX {
        return Err(node.refusal("constraint_too_deep"));
    }
    let members = node.object()?;
    let has = |name: &&str| members.iter().any(|(key, _)| key == *name);
    if LEAF_MEMBERS.iter().any(has) || members.is_empty() {
        return Ok(Constraint::Leaf(Box::new(read_leaf(node, counts)?)));
    }
    // Without a combinator of its own the node has no form, and each of its members is unknown.
    let form = COMBINATORS.into_iter().find(|name| has(name));
    let fields = node.closed(&form.into_iter().collect::<Vec<_>>())?;
    if let Some(list) = fields.optional("all_of") {
        return Ok(Constraint::AllOf(read_list(&list, depth + 1, counts)?));
    }
    if let Some(list) = fields.optional("any_of") {
        return Ok(Constraint::AnyOf(read_list(&list, depth + 1, counts)?));
    }
    let inner = fields.required("not")?;
    match inner.value {
        Value::Array(_) => Ok(Constraint::Not(read_list(&inner, depth + 1, counts)?)),
        _ => Ok(Constraint::Not(vec![read_node(&inner, depth + 1, counts)?])),
    }
}

fn read_list(list: &Field, depth: usize, counts: &mut Counts) -> Result<Vec<Constraint>, Refusal> {
    list.some_elements()?.iter().map(|node| read_node(node, depth, counts)).collect()
}

fn read_leaf(node: &Field, counts: &mut Counts) -> Result<Leaf, Refusal> {
    counts.leaves += 1;
    if counts.leaves > LEAVES_MAX {
        return Err(Refusal::new("too_many_constraints", &counts.root));
    }
    let fields = node.closed(&LEAF_MEMBERS)?;
    let path = fields.required("path")?;
    let operator = fields.required("operator")?;
    let value = fields.required("value")?;
    let path = Path::read(path.text()?, &path.at)?;
    let test = read_test(&operator, &value, counts)?;
    Ok(Leaf { path, operator: operator.text()?.to_owned(), value: value.value.clone(), test })
}

fn read_test(operator: &Field, value: &Field, counts: &mut Counts) -> Result<Test, Refusal> {
    match operator.text()? {
        "eq" => Ok(Test::Eq),
        "ne" => Ok(Test::Ne),
        "lt" => read_comparable(value).map(|()| Test::Lt),
        "lte" => read_comparable(value).map(|()| Test::Lte),
        "gt" => read_comparable(value).map(|()| Test::Gt),
        "gte" => read_comparable(value).map(|()| Test::Gte),
        "in" => read_members(value).map(Test::In),
        "not_in" => read_members(value).map(Test::NotIn),
        "contains" => Ok(Test::Contains),
        "matches" => read_pattern(value, counts).map(|pattern| Test::Matches(pattern, value.at.clone())),
        "before" => read_instant(value).map(Test::Before),
        "after" => read_instant(value).map(Test::After),
        "within" => read_interval(value).map(|(start, end)| Test::Within(start, end)),
        "outside" => read_interval(value).map(|(start, end)| Test::Outside(start, end)),
        "exists" => Ok(Test::Exists),
        _ => Err(operator.refusal("unknown_operator")),
    }
}

fn read_comparable(value: &Field) -> Result<(), Refusal> {
    let comparable = order::decimal(value.value).is_some() || order::instant(value.value).is_some();
    if comparable { Ok(()) } else { Err(value.refusal("value_incompatible")) }
}

fn read_members(value: &Field) -> Result<Vec<Value>, Refusal> {
    match value.value {
        Value::Array(members) if members.len() > LIST_MAX => Err(value.refusal("list_too_long")),
        Value::Array(members) => Ok(members.clone()),
        _ => Err(value.refusal("value_incompatible")),
    }
}

fn read_pattern(value: &Field, counts: &mut Counts) -> Result<Pattern, Refusal> {
    let text = value.value.text().ok_or_else(|| value.refusal("value_incompatible"))?;
    counts.patterns += 1;
    if counts.patterns > PATTERNS_MAX {
        return Err(value.refusal("too_many_patterns"));
    }
    Pattern::read(text).map_err(|code| value.refusal(code))
}

fn read_instant(value: &Field) -> Result<Instant, Refusal> {
    order::instant(value.value).ok_or_else(|| value.refusal("value_incompatible"))
}

/// `[start, end]` or `{from, to}`, with the start not after the end.
fn read_interval(value: &Field) -> Result<(Instant, Instant), Refusal> {
    let ends = match value.value {
        Value::Array(ends) => match ends.as_slice() {
            [start, end] => Some((start, end)),
            _ => None,
        },
        Value::Object(ends) if ends.len() == 2 => value.value.member("from").zip(value.value.member("to")),
        _ => None,
    };
    let instants = ends.and_then(|(start, end)| order::instant(start).zip(order::instant(end)));
    instants.filter(|(start, end)| start <= end).ok_or_else(|| value.refusal("value_incompatible"))
}
