//! RFC 0024 §3.4: proving that every document of one schema conforms to another.
//!
//! The left side is weakened wherever it is not understood: whatever holds for more documents holds for these. The
//! right side is never weakened: a keyword that is not understood is not proved. Recursive schemas are proved by
//! assuming what is being proved for smaller values, which is sound because documents are finite.

use super::Undeclared;
use super::facts::{
    ARRAY, FRACTION, Fact, Facts, Kinds, NUMBER, OBJECT, SPLIT_ANY, SPLIT_IF, SPLIT_ONE, STRING, exact, kinds_of_type,
};
use super::holds::holds;
use crate::dialect::{ANNOTATIONS, Dialect, Root};
use crate::value::same;
use json::{Pointer, Value};

/// Questions that one proof may ask.
const STEPS_MAX: usize = 20_000;

/// Reasons that are told.
const REASONS_MAX: usize = 16;

/// Schemas within schemas, references followed.
const DEPTH_MAX: usize = 96;

/// What could not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The keyword that is in question, or why nothing was tried.
    pub rule: String,
    /// Where in a document, with `*` for any element or member.
    pub at: Pointer,
}

/// Proves it, or says what could not be shown.
pub(crate) fn prove(from: &Value, to: &Value, undeclared: Undeclared) -> Result<(), Vec<Reason>> {
    let (left, right) = (Root::of(from), Root::of(to));
    if [left.dialect, right.dialect].contains(&Dialect::Other) {
        return Err(vec![Reason { rule: "unsupported-dialect".to_owned(), at: Pointer::root() }]);
    }
    let alike = left.dialect == right.dialect;
    let mut prover = Prover {
        right: &right,
        portable: alike,
        same_document: alike && left.is_plain() && same(from, to),
        undeclared,
        steps: STEPS_MAX,
        depth: 0,
        quiet: 0,
        assumed: Vec::new(),
        at: Pointer::root(),
        reasons: Vec::new(),
    };
    let facts = Facts::of([Fact::new(from, &left)]);
    if prover.includes(&facts, to, 0) { Ok(()) } else { Err(prover.reasons) }
}

/// What is being proved: facts with the kinds they are about, a schema, and how deep in the document.
struct Assumption {
    facts: Vec<*const Value>,
    kinds: Kinds,
    schema: *const Value,
    level: usize,
}

struct Prover<'a> {
    right: &'a Root<'a>,
    /// Whether the same words mean the same on both sides.
    portable: bool,
    same_document: bool,
    undeclared: Undeclared,
    steps: usize,
    depth: usize,
    /// Inside an attempt that may fail without harm.
    quiet: usize,
    /// What is being proved, and how deep in the document.
    assumed: Vec<Assumption>,
    at: Pointer,
    reasons: Vec<Reason>,
}

impl<'a> Prover<'a> {
    /// Whether every document with these facts conforms to `right`; `level` counts steps down into the document.
    fn includes(&mut self, left: &Facts<'a>, right: &'a Value, level: usize) -> bool {
        let Some(steps) = self.steps.checked_sub(1) else { return self.fails("too-complex") };
        self.steps = steps;
        if left.is_empty() || *right == Value::Bool(true) {
            return true;
        }
        let Value::Object(keywords) = right else { return self.fails("false-schema") };
        if keywords.is_empty() {
            return true;
        }
        let mut key: Vec<*const Value> = left.list.iter().map(|fact| std::ptr::from_ref(fact.schema)).collect();
        key.sort_unstable();
        let known = |assumed: &&Assumption| {
            assumed.facts == key && assumed.kinds == left.kinds && std::ptr::eq(assumed.schema, right)
        };
        // Only a step down makes the value smaller.
        match self.assumed.iter().rev().find(known) {
            Some(assumed) if assumed.level < level => return true,
            Some(_) if left.list.iter().all(|fact| fact.split == 0) => return self.fails("endless-reference"),
            _ => {}
        }
        if self.depth > DEPTH_MAX {
            return self.fails("too-deep");
        }
        self.assumed.push(Assumption { facts: key, kinds: left.kinds, schema: std::ptr::from_ref(right), level });
        self.depth += 1;
        let proved = self.few_values(left, right) || self.whole_or_split(left, right, level);
        self.depth -= 1;
        self.assumed.pop();
        proved
    }

    fn fails(&mut self, rule: &str) -> bool {
        if self.quiet == 0 && self.reasons.len() < REASONS_MAX {
            let reason = Reason { rule: rule.to_owned(), at: self.at.clone() };
            if !self.reasons.contains(&reason) {
                self.reasons.push(reason);
            }
        }
        false
    }

    /// Tries something that may fail without being a reason.
    fn quietly(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        self.quiet += 1;
        let done = attempt(self);
        self.quiet -= 1;
        done
    }

    /// Does the same one step further down.
    fn below(&mut self, step: &str, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        let above = std::mem::take(&mut self.at);
        self.at = above.child(step);
        let done = attempt(self);
        self.at = above;
        done
    }

    /// Where there are few values, each of them is asked.
    fn few_values(&mut self, left: &Facts<'a>, right: &Value) -> bool {
        let Some(values) = left.values() else { return false };
        let possible =
            |value: &&Value| !left.list.iter().any(|fact| holds(value, fact.schema, fact.root) == Some(false));
        values.iter().filter(|value| possible(value)).all(|value| holds(value, right, self.right) == Some(true))
    }

    fn whole_or_split(&mut self, left: &Facts<'a>, right: &'a Value, level: usize) -> bool {
        let cases = split(left, right);
        match cases {
            None => self.keywords(left, right, level),
            Some(cases) => {
                self.quietly(|prover| prover.keywords(left, right, level))
                    || cases.iter().all(|case| self.includes(case, right, level))
            }
        }
    }

    fn keywords(&mut self, left: &Facts<'a>, right: &'a Value, level: usize) -> bool {
        let Value::Object(keywords) = right else { return false };
        if self.verbatim(left, None, right) {
            return true;
        }
        let mut proved = true;
        for (name, operand) in keywords {
            if !self.keyword(left, name, operand, right, level) {
                proved = self.fails(name);
                if self.quiet > 0 {
                    return false;
                }
            }
        }
        proved
    }

    /// Whether some fact says just the same; `keywords` names those that belong together, or all of the schema.
    fn verbatim(&self, left: &Facts<'a>, keywords: Option<&[&str]>, right: &Value) -> bool {
        let alike = |fact: &Fact<'_>| match keywords {
            None => same(fact.schema, right),
            Some(names) => names.iter().all(|name| match (fact.schema.get(name), right.get(name)) {
                (Some(ours), Some(theirs)) => same(ours, theirs),
                (None, None) => true,
                _ => false,
            }),
        };
        let means_the_same = || match keywords {
            None => !refers(right),
            Some(names) => !names.iter().filter_map(|name| right.get(name)).any(refers),
        };
        // Before 2019 a reference silences what stands beside it, on either side alike.
        self.portable && left.list.iter().any(alike) && (self.same_document || means_the_same())
    }

    fn keyword(&mut self, left: &Facts<'a>, name: &str, operand: &'a Value, right: &'a Value, level: usize) -> bool {
        let kinds = left.kinds();
        let has = |wanted| kinds & wanted != 0;
        let least = |keyword: &str| left.least(keyword);
        let most = |keyword: &str| left.most(keyword);
        match name {
            _ if ANNOTATIONS.contains(&name) => true,
            "$ref" => match operand.as_str().and_then(|text| self.right.resolve(text)) {
                Some(found) => self.includes(left, found, level),
                None => false,
            },
            "allOf" => {
                operand.as_array().is_some_and(|all| all.iter().all(|schema| self.includes(left, schema, level)))
            }
            "anyOf" => self.verbatim(left, Some(&["anyOf"]), right) || self.any_of(left, operand, level),
            "oneOf" => self.verbatim(left, Some(&["oneOf"]), right) || self.one_of(left, operand, level),
            "not" => self.verbatim(left, Some(&["not"]), right) || self.apart(left, &self.facts(operand)),
            "if" => self.verbatim(left, Some(&["if", "then", "else"]), right) || self.conditional(left, right, level),
            "then" | "else" => true,
            "type" => kinds_of_type(operand).is_some_and(|allowed| kinds & !allowed == 0),
            // Finite sides have been compared value by value.
            "const" | "enum" => false,
            "minimum" => !has(NUMBER) || self.above(left, exact(Some(operand)), true),
            "exclusiveMinimum" => !has(NUMBER) || self.above(left, exact(Some(operand)), false),
            "maximum" => !has(NUMBER) || self.beneath(left, exact(Some(operand)), true),
            "exclusiveMaximum" => !has(NUMBER) || self.beneath(left, exact(Some(operand)), false),
            "multipleOf" => !has(NUMBER) || self.multiple(left, operand, !has(FRACTION)),
            "minLength" => !has(STRING) || at_least(most("minLength"), operand),
            "maxLength" => !has(STRING) || at_most(least("maxLength"), operand),
            "pattern" | "format" => !has(STRING) || self.verbatim(left, Some(&[name]), right),
            "minItems" => !has(ARRAY) || at_least(most("minItems"), operand),
            "maxItems" => !has(ARRAY) || at_most(least("maxItems"), operand),
            "uniqueItems" => {
                let unique = left.list.iter().any(|fact| fact.get("uniqueItems") == Some(&Value::Bool(true)));
                !has(ARRAY)
                    || *operand == Value::Bool(false)
                    || unique
                    || least("maxItems").is_some_and(|most| most <= 1.0)
            }
            "items" if operand.is_array() => false,
            "prefixItems" | "items" => !has(ARRAY) || self.elements(left, right, level),
            "contains" => !has(ARRAY) || self.contains(left, operand, right, level),
            // They belong to `contains`.
            "minContains" | "maxContains" => true,
            "minProperties" => {
                let mut required: Vec<&str> = left.required().collect();
                required.sort_unstable();
                required.dedup();
                !has(OBJECT)
                    || at_least(most("minProperties"), operand)
                    || at_least(Some(required.len() as f64), operand)
            }
            "maxProperties" => {
                let closed = left.others(None, self.undeclared).is_empty();
                let declared = closed.then(|| left.declared().len() as f64);
                !has(OBJECT) || at_most(least("maxProperties"), operand) || at_most(declared, operand)
            }
            "required" => {
                let named = |name: &Value| name.as_str().is_some_and(|name| left.requires(name));
                !has(OBJECT) || operand.as_array().is_some_and(|names| names.iter().all(named))
            }
            "properties" | "patternProperties" | "additionalProperties" => {
                !has(OBJECT) || self.members(left, name, right, level)
            }
            "propertyNames" => !has(OBJECT) || self.names(left, operand, level),
            "dependentRequired" => !has(OBJECT) || self.dependent_required(left, operand),
            "dependentSchemas" => !has(OBJECT) || self.dependent_schemas(left, operand, right, level),
            "unevaluatedProperties" | "unevaluatedItems" => *operand == Value::Bool(true),
            "$dynamicRef" | "$recursiveRef" | "dependencies" | "additionalItems" => false,
            // A word that no dialect of ours knows forbids nothing.
            _ => !KNOWN_ELSEWHERE.contains(&name),
        }
    }

    fn facts(&self, schema: &'a Value) -> Facts<'a> {
        Facts::of([Fact::new(schema, self.right)])
    }

    fn any_of(&mut self, left: &Facts<'a>, operand: &'a Value, level: usize) -> bool {
        let Some(branches) = operand.as_array() else { return false };
        branches.iter().any(|branch| self.quietly(|prover| prover.includes(left, branch, level)))
    }

    fn one_of(&mut self, left: &Facts<'a>, operand: &'a Value, level: usize) -> bool {
        let Some(branches) = operand.as_array() else { return false };
        branches.iter().enumerate().any(|(position, branch)| {
            let others = branches.iter().enumerate().filter(|(other, _)| *other != position);
            let mut apart = others.map(|(_, other)| self.facts(other)).collect::<Vec<_>>().into_iter();
            self.quietly(|prover| prover.includes(left, branch, level)) && apart.all(|other| self.apart(left, &other))
        })
    }

    fn conditional(&mut self, left: &Facts<'a>, right: &'a Value, level: usize) -> bool {
        let Some(condition) = right.get("if") else { return true };
        let always = self.quietly(|prover| prover.includes(left, condition, level));
        let never = self.apart(left, &self.facts(condition));
        let mut follows = |name: &str| {
            right.get(name).is_none_or(|schema| self.quietly(|prover| prover.includes(left, schema, level)))
        };
        (never || follows("then")) && (always || follows("else"))
    }

    fn above(&self, left: &Facts<'a>, bound: Option<f64>, inclusive: bool) -> bool {
        let Some(bound) = bound else { return false };
        left.most("minimum").is_some_and(|least| least > bound || (inclusive && least == bound))
            || left.most("exclusiveMinimum").is_some_and(|least| least >= bound)
    }

    fn beneath(&self, left: &Facts<'a>, bound: Option<f64>, inclusive: bool) -> bool {
        let Some(bound) = bound else { return false };
        left.least("maximum").is_some_and(|most| most < bound || (inclusive && most == bound))
            || left.least("exclusiveMaximum").is_some_and(|most| most <= bound)
    }

    fn multiple(&self, left: &Facts<'a>, operand: &Value, whole: bool) -> bool {
        let Some(factor) = exact(Some(operand)).filter(|factor| *factor > 0.0) else { return false };
        let ours = left.list.iter().filter_map(|fact| exact(fact.get("multipleOf")));
        let divides =
            |ours: f64| ours == factor || (ours.fract() == 0.0 && factor.fract() == 0.0 && ours % factor == 0.0);
        (whole && factor == 1.0) || ours.into_iter().any(divides)
    }

    fn elements(&mut self, left: &Facts<'a>, right: &'a Value, level: usize) -> bool {
        let first = right.get("prefixItems").filter(|_| self.right.dialect.knows("prefixItems"));
        let first = first.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let rest = right.get("items").filter(|items| !items.is_array());
        let described = left.described().max(first.len());
        let most = left.least("maxItems");
        (0..=described).all(|index| {
            let Some(schema) = first.get(index).or(rest) else { return true };
            if most.is_some_and(|most| most <= index as f64) {
                return true;
            }
            let facts = left.element(index);
            self.below("*", |prover| prover.includes(&facts, schema, level + 1))
        })
    }

    fn contains(&mut self, left: &Facts<'a>, operand: &'a Value, right: &'a Value, level: usize) -> bool {
        if self.verbatim(left, Some(&["contains", "minContains", "maxContains"]), right) {
            return true;
        }
        let bounds = self.right.dialect.knows("minContains");
        if bounds && right.get("maxContains").is_some() {
            return false;
        }
        let wanted = match right.get("minContains").filter(|_| bounds) {
            None => 1.0,
            Some(count) => match exact(Some(count)) {
                Some(count) => count,
                None => return false,
            },
        };
        if wanted <= 0.0 {
            return true;
        }
        let enough = left.most("minItems").is_some_and(|least| least >= wanted);
        enough
            && (0..=left.described()).all(|index| {
                let facts = left.element(index);
                self.quietly(|prover| prover.includes(&facts, operand, level + 1))
            })
    }

    /// The three keywords about members are one rule; it is asked once, under the first that is there.
    fn members(&mut self, left: &Facts<'a>, asked: &str, right: &'a Value, level: usize) -> bool {
        let together = ["properties", "patternProperties", "additionalProperties"];
        if together.iter().find(|name| right.get(name).is_some()) != Some(&asked) {
            return true;
        }
        let declared = right.get("properties").and_then(Value::as_object);
        let patterns = right.get("patternProperties").and_then(Value::as_object);
        let other = right.get("additionalProperties");
        // A pattern that both have, where ours says more, is settled for all names at once.
        let mut open_patterns: Vec<&Value> = Vec::new();
        for (pattern, schema) in patterns.into_iter().flatten() {
            let ours = left.list.iter().filter_map(|fact| {
                Some(Facts::of([Fact::new(fact.get("patternProperties")?.get(pattern)?, fact.root)]))
            });
            let mut ours = ours.collect::<Vec<_>>().into_iter();
            if !ours.any(|facts| self.quietly(|prover| prover.includes(&facts, schema, level + 1))) {
                open_patterns.push(schema);
            }
        }
        let mut names = left.declared();
        names.extend(declared.into_iter().flat_map(|map| map.keys()).map(String::as_str));
        names.sort_unstable();
        names.dedup();
        let mut proved = true;
        for name in names {
            let facts = left.member(name, self.undeclared);
            let own = declared.and_then(|map| map.get(name));
            let wanted = own.or(other).into_iter().chain(open_patterns.iter().copied());
            for schema in wanted {
                proved &= self.below(name, |prover| prover.includes(&facts, schema, level + 1));
            }
        }
        let others = left.others(right.get("patternProperties"), self.undeclared);
        if let Some(schema) = other {
            proved &= self.below("*", |prover| prover.includes(&others, schema, level + 1));
        }
        let unnamed = left.others(None, self.undeclared);
        for schema in open_patterns {
            proved &= self.below("*", |prover| prover.includes(&unnamed, schema, level + 1));
        }
        proved
    }

    fn names(&mut self, left: &Facts<'a>, operand: &'a Value, level: usize) -> bool {
        let ours = left.list.iter().filter_map(|fact| Some(Fact::new(fact.get("propertyNames")?, fact.root)));
        let mut facts = Facts::of(ours);
        facts.kinds = STRING;
        let listed = |name: &&str| holds(&Value::String((*name).to_owned()), operand, self.right) == Some(true);
        let closed = left.others(None, self.undeclared).is_empty() && left.declared().iter().all(listed);
        closed || self.quietly(|prover| prover.includes(&facts, operand, level + 1))
    }

    fn dependent_required(&mut self, left: &Facts<'a>, operand: &Value) -> bool {
        let Some(map) = operand.as_object() else { return false };
        map.iter().all(|(name, wanted)| {
            let Some(wanted) = wanted.as_array() else { return false };
            let required = |name: &Value| name.as_str().is_some_and(|name| left.requires(name));
            let ours = left.list.iter().filter_map(|fact| fact.get("dependentRequired")?.get(name)?.as_array());
            left.member(name, self.undeclared).is_empty()
                || wanted.iter().all(required)
                || ours.into_iter().any(|ours| wanted.iter().all(|name| ours.contains(name)))
        })
    }

    fn dependent_schemas(&mut self, left: &Facts<'a>, operand: &'a Value, right: &'a Value, level: usize) -> bool {
        if self.verbatim(left, Some(&["dependentSchemas"]), right) {
            return true;
        }
        let Some(map) = operand.as_object() else { return false };
        map.iter().all(|(name, schema)| {
            left.member(name, self.undeclared).is_empty() || self.quietly(|prover| prover.includes(left, schema, level))
        })
    }

    /// Whether no document is like both; "no" means not shown.
    fn apart(&mut self, left: &Facts<'a>, other: &Facts<'a>) -> bool {
        let Some(steps) = self.steps.checked_sub(1) else { return false };
        self.steps = steps;
        let shared = left.kinds() & other.kinds();
        if left.is_empty() || other.is_empty() || shared == 0 {
            return true;
        }
        let excluded = |values: Option<Vec<&Value>>, by: &Facts<'_>| {
            let impossible =
                |value: &&Value| by.list.iter().any(|fact| holds(value, fact.schema, fact.root) == Some(false));
            values.is_some_and(|values| values.iter().all(impossible))
        };
        if excluded(left.values(), other) || excluded(other.values(), left) {
            return true;
        }
        let branches = other
            .list
            .iter()
            .find_map(|fact| Some((fact, fact.get("anyOf").or_else(|| fact.get("oneOf"))?.as_array()?)));
        if let Some((fact, branches)) = branches
            && self.depth < DEPTH_MAX
        {
            self.depth += 1;
            let all = branches.iter().all(|branch| self.apart(left, &Facts::of([Fact::new(branch, fact.root)])));
            self.depth -= 1;
            if all {
                return true;
            }
        }
        if shared != OBJECT || self.depth >= DEPTH_MAX {
            return false;
        }
        // A member that is always there and never fits keeps them apart; undeclared ones are taken as they may come.
        let required: Vec<&str> = left.required().chain(other.required()).collect();
        self.depth += 1;
        let told = required.iter().any(|name| {
            let (ours, theirs) = (left.member(name, Undeclared::Strict), other.member(name, Undeclared::Strict));
            self.apart(&ours, &theirs)
        });
        self.depth -= 1;
        told
    }
}

/// Keywords of other dialects that forbid something.
const KNOWN_ELSEWHERE: &[&str] = &["disallow", "divisibleBy", "extends"];

fn at_least(ours: Option<f64>, operand: &Value) -> bool {
    exact(Some(operand)).is_some_and(|bound| bound <= 0.0 || ours.is_some_and(|ours| ours >= bound))
}

fn at_most(ours: Option<f64>, operand: &Value) -> bool {
    exact(Some(operand)).is_some_and(|bound| ours.is_some_and(|ours| ours <= bound))
}

/// Whether a schema leads anywhere else, so that its words alone do not say what it means.
fn refers(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            ["$ref", "$dynamicRef", "$recursiveRef", "$id"].contains(&name.as_str()) || refers(value)
        }),
        Value::Array(elements) => elements.iter().any(refers),
        _ => false,
    }
}

/// The cases that the left side can be taken apart into, if any.
fn split<'a>(left: &Facts<'a>, right: &Value) -> Option<Vec<Facts<'a>>> {
    for (position, fact) in left.list.iter().enumerate() {
        for (keyword, bit) in [("anyOf", SPLIT_ANY), ("oneOf", SPLIT_ONE)] {
            if fact.split & bit == 0
                && let Some(Value::Array(branches)) = fact.get(keyword)
            {
                let rest = marked(left, position, bit);
                return Some(branches.iter().map(|branch| rest.with(Fact::new(branch, fact.root))).collect());
            }
        }
        if fact.split & SPLIT_IF == 0
            && let Some(condition) = fact.get("if")
        {
            let rest = marked(left, position, SPLIT_IF);
            let with = |rest: &Facts<'a>, name: &str| {
                fact.get(name).map_or_else(|| rest.clone(), |schema| rest.with(Fact::new(schema, fact.root)))
            };
            return Some(vec![with(&rest.with(Fact::new(condition, fact.root)), "then"), with(&rest, "else")]);
        }
    }
    let alternatives = ["anyOf", "oneOf", "if", "not"].iter().any(|name| right.get(name).is_some());
    let kinds = left.kinds();
    if alternatives && kinds.count_ones() > 1 {
        let single = |bit: u32| Facts { kinds: left.kinds & (1 << bit), ..left.clone() };
        return Some((0..7).filter(|bit| kinds & (1 << bit) != 0).map(single).collect());
    }
    None
}

fn marked<'a>(left: &Facts<'a>, position: usize, bit: u8) -> Facts<'a> {
    let mut facts = left.clone();
    if let Some(fact) = facts.list.get_mut(position) {
        fact.split |= bit;
    }
    facts
}
