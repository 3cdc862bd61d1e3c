//! RFC 0024 §3.3 "verify that the result conforms to the destination Schema": JSON Schema checks within bounds.
//!
//! INVARIANT: nothing is fetched, and a schema that could keep a validator busy for long is refused before it is used.

use crate::dialect::{Root, children, placed_children};
use crate::refusal::{Code, Refusal};
use json::{Pointer, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Subschemas of one schema document.
pub(crate) const SUBSCHEMAS_MAX: usize = 10_000;

/// Schemas within schemas.
pub(crate) const DEPTH_MAX: usize = 64;

/// Characters of one `pattern`.
pub(crate) const PATTERN_CHARS_MAX: usize = 1_000;

/// Characters that all patterns of a schema stand for when their repetitions are written out.
pub(crate) const PATTERN_PLACES_MAX: usize = 20_000;

/// What one pattern may become in memory.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// Subschemas that one value may have to be held against, references followed.
pub(crate) const WORK_MAX: usize = 10_000;

/// References one after the other that lead no deeper into a document.
pub(crate) const REFERENCES_MAX: usize = 128;

/// Steps that looking for ways back into a schema may take.
pub(crate) const EFFORT_MAX: usize = 500_000;

/// A schema that documents can be held against.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema; formats are checked, patterns run on an engine without backtracking.
    pub fn compile(schema: &Value) -> Result<Self, Refusal> {
        bounded(schema)?;
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES_MAX));
        match options.build(schema) {
            Ok(validator) => Ok(Self(validator)),
            Err(error) => {
                let at = Pointer::parse(error.instance_path().as_str()).unwrap_or_default();
                Err(Refusal::new(Code::SchemaInvalid, at, "this is no JSON Schema that can be used here"))
            }
        }
    }

    /// Whether a document conforms.
    pub fn is_valid(&self, document: &Value) -> bool {
        self.0.is_valid(document)
    }

    /// The first place where a document does not conform.
    pub fn check(&self, document: &Value) -> Result<(), Refusal> {
        match self.0.validate(document) {
            Ok(()) => Ok(()),
            Err(error) => {
                let at = Pointer::parse(error.instance_path().as_str()).unwrap_or_default();
                let rule = error.schema_path().as_str().to_owned();
                Err(Refusal::new(Code::SchemaViolation, at, format!("the document breaks the schema's rule `{rule}`")))
            }
        }
    }
}

/// Refuses what only serves to keep a validator busy.
fn bounded(schema: &Value) -> Result<(), Refusal> {
    let mut survey = Survey { root: Root::of(schema), count: 0, places: 0, effort: 0, work: HashMap::new() };
    survey.look(schema, &Pointer::root(), 0)?;
    survey.work(schema)?;
    survey.growth(schema)
}

fn too_complex(at: &Pointer, detail: &str) -> Refusal {
    Refusal::new(Code::SchemaTooComplex, at.clone(), detail)
}

fn too_much(at: &Pointer, name: &str, max: usize, got: usize) -> Refusal {
    Refusal::limit(Code::SchemaTooComplex, at.clone(), name, max, got)
}

struct Survey<'a> {
    root: Root<'a>,
    count: usize,
    /// Of all patterns so far.
    places: usize,
    effort: usize,
    /// How many subschemas a value at this one meets; zero while it is being counted.
    work: HashMap<*const Value, usize>,
}

/// Keywords whose schemas judge the same value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

impl<'a> Survey<'a> {
    fn look(&mut self, schema: &'a Value, at: &Pointer, depth: usize) -> Result<(), Refusal> {
        self.count += 1;
        if self.count > SUBSCHEMAS_MAX {
            return Err(too_much(at, "schema.subschemas", SUBSCHEMAS_MAX, self.count));
        }
        if depth > DEPTH_MAX {
            return Err(too_much(at, "schema.depth", DEPTH_MAX, depth));
        }
        for name in ["$dynamicRef", "$recursiveRef"] {
            if schema.get(name).is_some() {
                return Err(too_complex(&at.child(name), "references that depend on who asks are not followed here"));
            }
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && self.root.resolve(reference).is_none()
        {
            let detail = "a reference leads out of the document; nothing is fetched";
            return Err(too_complex(&at.child("$ref"), detail));
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            self.pattern(pattern, &at.child("pattern"))?;
        }
        let names = schema.get("patternProperties").and_then(Value::as_object);
        for pattern in names.into_iter().flat_map(|map| map.keys()) {
            self.pattern(pattern, &at.child("patternProperties"))?;
        }
        placed_children(schema, at).try_for_each(|(child, at)| self.look(child, &at, depth + 1))
    }

    fn pattern(&mut self, pattern: &str, at: &Pointer) -> Result<(), Refusal> {
        let characters = pattern.chars().count();
        if characters > PATTERN_CHARS_MAX {
            return Err(too_much(at, "schema.pattern_chars", PATTERN_CHARS_MAX, characters));
        }
        self.places = self.places.saturating_add(written_out(pattern));
        match self.places > PATTERN_PLACES_MAX {
            true => Err(too_much(at, "schema.pattern_places", PATTERN_PLACES_MAX, self.places)),
            false => Ok(()),
        }
    }

    /// The schemas that judge the same value, references followed.
    fn beside(&self, schema: &'a Value) -> Vec<&'a Value> {
        let mut beside: Vec<&Value> = Vec::new();
        for name in IN_PLACE {
            match schema.get(name) {
                Some(Value::Array(list)) => beside.extend(list),
                Some(one) => beside.push(one),
                None => {}
            }
        }
        let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
        beside.extend(dependent.into_iter().flat_map(|map| map.values()));
        let reference = schema.get("$ref").and_then(Value::as_str);
        beside.extend(reference.and_then(|reference| self.root.resolve(reference)));
        beside
    }

    fn work(&mut self, schema: &'a Value) -> Result<(), Refusal> {
        self.work_of(schema, 0)?;
        children(schema).try_for_each(|child| self.work(child))
    }

    fn work_of(&mut self, schema: &'a Value, depth: usize) -> Result<usize, Refusal> {
        let root = Pointer::root();
        match self.work.get(&std::ptr::from_ref(schema)) {
            Some(0) => return Err(too_complex(&root, "a reference leads back to itself without going deeper")),
            Some(known) => return Ok(*known),
            None => {}
        }
        if depth > REFERENCES_MAX {
            return Err(too_much(&root, "schema.references", REFERENCES_MAX, depth));
        }
        self.work.insert(std::ptr::from_ref(schema), 0);
        let mut total: usize = 1;
        for other in self.beside(schema) {
            total = total.saturating_add(self.work_of(other, depth + 1)?);
        }
        if total > WORK_MAX {
            return Err(too_much(&root, "schema.alternatives", WORK_MAX, total));
        }
        self.work.insert(std::ptr::from_ref(schema), total);
        Ok(total)
    }

    /// A schema that comes back to itself twice by one step down doubles its work with every level of a document.
    fn growth(&mut self, schema: &'a Value) -> Result<(), Refusal> {
        let mut pending = vec![schema];
        while let Some(schema) = pending.pop() {
            pending.extend(children(schema));
            let below = self.below(schema)?;
            self.effort(below.effort())?;
            for together in below.together() {
                let mut returns = 0;
                for below in together {
                    returns += usize::from(self.reaches(below, schema)?);
                }
                if returns > 1 {
                    let detail = "the schema comes back to itself in two ways by one step";
                    return Err(too_complex(&Pointer::root(), detail));
                }
            }
        }
        Ok(())
    }

    /// The schemas of smaller values, from here and from all that judge beside it.
    fn below(&mut self, schema: &'a Value) -> Result<Below<'a>, Refusal> {
        let mut below = Below::default();
        let mut pending = vec![schema];
        while let Some(schema) = pending.pop() {
            let down = Downward::of(schema);
            self.effort(1 + down.all().count())?;
            pending.extend(self.beside(schema));
            below.0.push(down);
        }
        Ok(below)
    }

    fn reaches(&mut self, from: &'a Value, to: &'a Value) -> Result<bool, Refusal> {
        let mut seen: HashSet<*const Value> = HashSet::new();
        let mut pending = vec![from];
        while let Some(schema) = pending.pop() {
            if std::ptr::eq(schema, to) {
                return Ok(true);
            }
            self.effort(1)?;
            if seen.insert(std::ptr::from_ref(schema)) {
                let down = Downward::of(schema);
                self.effort(down.all().count())?;
                pending.extend(self.beside(schema));
                pending.extend(down.all());
            }
        }
        Ok(false)
    }

    fn effort(&mut self, steps: usize) -> Result<(), Refusal> {
        self.effort += steps;
        match self.effort > EFFORT_MAX {
            true => Err(too_much(&Pointer::root(), "schema.effort", EFFORT_MAX, self.effort)),
            false => Ok(()),
        }
    }
}

/// What the schemas that judge one value say of what is inside it.
#[derive(Default)]
struct Below<'a>(Vec<Downward<'a>>);

/// What one schema says of what is inside a value.
struct Downward<'a> {
    named: Vec<(&'a str, &'a Value)>,
    patterns: Vec<(&'a str, &'a Value)>,
    /// For members that neither of them names.
    additional: Option<&'a Value>,
    /// For members and elements that nobody else speaks of.
    unevaluated: [Option<&'a Value>; 2],
    first: &'a [Value],
    /// For elements after the first ones.
    later: Option<&'a Value>,
    /// For elements wherever they stand.
    anywhere: Option<&'a Value>,
}

impl<'a> Downward<'a> {
    fn of(schema: &'a Value) -> Self {
        let map = |name: &str| schema.get(name).and_then(Value::as_object).into_iter().flatten();
        let list = |name: &str| schema.get(name).and_then(Value::as_array).map(Vec::as_slice);
        let one = |name: &str| schema.get(name).filter(|below| below.is_object());
        Self {
            named: map("properties").map(|(name, below)| (name.as_str(), below)).collect(),
            patterns: map("patternProperties").map(|(name, below)| (name.as_str(), below)).collect(),
            additional: one("additionalProperties"),
            unevaluated: [one("unevaluatedProperties"), one("unevaluatedItems")],
            first: list("prefixItems").or(list("items")).unwrap_or_default(),
            later: one("items").or(one("additionalItems")),
            anywhere: one("contains"),
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a Value> {
        let members = self.named.iter().chain(&self.patterns).map(|(_, below)| *below);
        let single = [self.additional, self.later, self.anywhere].into_iter().chain(self.unevaluated).flatten();
        members.chain(single).chain(self.first)
    }
}

/// A member whose fate is asked for.
#[derive(Clone, Copy)]
enum Member<'n> {
    Named(&'n str),
    /// One that patterns meet, where there are any.
    Met,
    /// One that nobody names.
    Other,
}

impl<'a> Below<'a> {
    /// About how many comparisons [`Below::together`] takes.
    fn effort(&self) -> usize {
        let named: usize = self.0.iter().map(|down| down.named.len()).sum();
        let open: usize = self.open().map(|(_, down)| 1 + down.patterns.len()).sum();
        let longest = self.0.iter().map(|down| down.first.len()).max().unwrap_or(0);
        named.saturating_mul(1 + open).saturating_add(longest.saturating_mul(self.0.len()))
    }

    /// Those that speak of members without naming them.
    fn open(&self) -> impl Iterator<Item = (usize, &Downward<'a>)> {
        self.0.iter().enumerate().filter(|(_, down)| {
            !down.patterns.is_empty() || down.additional.is_some() || down.unevaluated.iter().any(Option::is_some)
        })
    }

    /// For each step down that schemas speak of, those that may judge one value there.
    fn together(&self) -> Vec<Vec<&'a Value>> {
        let mut named: BTreeMap<&str, Vec<(usize, &Value)>> = BTreeMap::new();
        for (number, down) in self.0.iter().enumerate() {
            for (name, below) in &down.named {
                named.entry(*name).or_default().push((number, *below));
            }
        }
        let mut steps: Vec<Vec<&Value>> = Vec::new();
        steps.extend(named.iter().map(|(name, by)| self.member(Member::Named(name), by)));
        steps.extend([Member::Met, Member::Other].map(|member| self.member(member, &[])));
        let longest = self.0.iter().map(|down| down.first.len()).max().unwrap_or(0);
        // One more than the first ones: there everybody speaks of what comes later.
        steps.extend((0..=longest).map(|index| self.element(index)));
        steps.retain(|together| together.len() > 1);
        steps
    }

    /// Those that judge a member, given those that name it.
    fn member(&self, member: Member<'_>, by: &[(usize, &'a Value)]) -> Vec<&'a Value> {
        let mut together: Vec<&Value> = by.iter().map(|(_, below)| *below).collect();
        for (number, down) in self.open() {
            let before = together.len();
            let meets = |pattern: &str| match member {
                Member::Named(name) => may_match(pattern, name),
                Member::Met => true,
                Member::Other => false,
            };
            together.extend(down.patterns.iter().filter(|(pattern, _)| meets(pattern)).map(|(_, below)| *below));
            if together.len() == before && !by.iter().any(|(other, _)| *other == number) {
                together.extend(down.additional);
            }
            if matches!(member, Member::Other) {
                together.extend(down.unevaluated.first().copied().flatten());
            }
        }
        together
    }

    fn element(&self, index: usize) -> Vec<&'a Value> {
        let mut together = Vec::new();
        for down in &self.0 {
            match down.first.get(index) {
                Some(first) => together.push(first),
                None => together.extend(down.later.or(down.unevaluated.last().copied().flatten())),
            }
            together.extend(down.anywhere);
        }
        together
    }
}

/// Whether a pattern may match a name; sure only of plain characters after `^`.
fn may_match(pattern: &str, name: &str) -> bool {
    let Some(rest) = pattern.strip_prefix('^') else { return true };
    let plain = rest.find(|character: char| !character.is_alphanumeric() && !"_-".contains(character));
    let (plain, after) = rest.split_at(plain.unwrap_or(rest.len()));
    // The last character belongs to what repeats it, and an alternative begins anew.
    let repeated = after.starts_with(['*', '?', '{', '+']);
    let sure = if repeated { plain.get(..plain.len().saturating_sub(1)).unwrap_or_default() } else { plain };
    pattern.contains('|') || name.starts_with(sure)
}

/// How many characters a pattern stands for when its repetitions are written out; a class of letters counts for many.
fn written_out(pattern: &str) -> usize {
    const CLASS: usize = 100;
    let mut open = vec![0_usize];
    let mut last: usize = 0;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        let place = match character {
            '(' => {
                open.push(0);
                continue;
            }
            ')' if open.len() > 1 => open.pop().unwrap_or(0).max(1),
            '{' => {
                let bounds: String = std::iter::from_fn(|| characters.next_if(|next| *next != '}')).collect();
                characters.next();
                let most = bounds.split(',').filter_map(|bound| bound.trim().parse::<usize>().ok()).max().unwrap_or(1);
                let whole = last.saturating_mul(most.max(1));
                if let Some(sum) = open.last_mut() {
                    *sum = sum.saturating_add(whole - last);
                }
                last = whole;
                continue;
            }
            '[' => {
                let mut weight = 1;
                while let Some(inner) = characters.next_if(|next| *next != ']') {
                    if inner == '\\' && matches!(characters.next(), Some('p' | 'P')) {
                        weight = CLASS;
                    }
                }
                characters.next();
                weight
            }
            '\\' => match characters.next() {
                Some('p' | 'P') => {
                    if characters.next_if_eq(&'{').is_some() {
                        while characters.next_if(|next| *next != '}').is_some() {}
                        characters.next();
                    }
                    CLASS
                }
                _ => 1,
            },
            '*' | '+' | '?' | '|' | '^' | '$' => continue,
            _ => 1,
        };
        if let Some(sum) = open.last_mut() {
            *sum = sum.saturating_add(place);
        }
        last = place;
    }
    open.into_iter().fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_written_out() {
        for (pattern, places) in [
            ("", 0_usize),
            ("abc", 3),
            ("^a{3}b$", 4),
            ("(ab){2,5}", 10),
            ("(?:a{1000}){1000}", 1_000_000),
            ("[a-z]{10}", 10),
            (r"[\]x]{2}\d+", 3),
            (r"\p{L}{3}", 300),
            ("(((a{9}){9}){9}){9}", 6_561),
            ("a{,4}|b*", 5),
        ] {
            let got = written_out(pattern);
            // A group's own marks, such as `?:`, count as characters; that is on the safe side.
            assert!((places..=places.saturating_mul(2)).contains(&got), "{pattern}: {got}");
        }
    }

    #[test]
    fn a_pattern_with_another_beginning_does_not_meet_a_name() {
        for (pattern, name, expected) in
            [("^x-", "a", false), ("^x-", "x-a", true), ("^ab*", "a", true), ("^a|b", "b", true), ("a", "b", true)]
        {
            assert_eq!(may_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
