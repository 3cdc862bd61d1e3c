//! RFC 0024 §3.3 "verify that the result conforms to the destination Schema": JSON Schema checks within bounds.
//!
//! INVARIANT: nothing is fetched, and a schema that could keep a validator busy for long is refused before it is used.

use crate::dialect::{Root, children};
use crate::refusal::{Code, Refusal};
use json::{Pointer, Value};
use std::collections::HashMap;

/// Subschemas of one schema document.
const SUBSCHEMAS_MAX: usize = 10_000;

/// Schemas within schemas.
const DEPTH_MAX: usize = 64;

/// Characters of one `pattern`.
const PATTERN_CHARS_MAX: usize = 1_000;

/// Subschemas that one value may have to be held against, references followed.
const WORK_MAX: u64 = 10_000;

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
            .with_pattern_options(jsonschema::PatternOptions::regex());
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
    let mut survey = Survey { root: Root::of(schema), count: 0, work: HashMap::new() };
    survey.look(schema, 0)?;
    survey.work(schema)?;
    survey.growth(schema)
}

fn too_complex(detail: &str) -> Refusal {
    Refusal::new(Code::SchemaTooComplex, Pointer::root(), detail)
}

struct Survey<'a> {
    root: Root<'a>,
    count: usize,
    /// How many subschemas a value at this one meets; zero while it is being counted.
    work: HashMap<*const Value, u64>,
}

/// Keywords whose schemas judge the same value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

impl<'a> Survey<'a> {
    fn look(&mut self, schema: &'a Value, depth: usize) -> Result<(), Refusal> {
        self.count += 1;
        if self.count > SUBSCHEMAS_MAX || depth > DEPTH_MAX {
            return Err(too_complex("the schema has too many parts or levels"));
        }
        if ["$dynamicRef", "$recursiveRef"].iter().any(|name| schema.get(name).is_some()) {
            return Err(too_complex("references that depend on who asks are not followed here"));
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && self.root.resolve(reference).is_none()
        {
            return Err(too_complex("a reference leads out of the document; nothing is fetched"));
        }
        let patterns = schema.get("pattern").and_then(Value::as_str).into_iter();
        let names = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
        if patterns.chain(names.map(String::as_str)).any(|pattern| pattern.chars().count() > PATTERN_CHARS_MAX) {
            return Err(too_complex("a pattern is too long"));
        }
        children(schema).try_for_each(|child| self.look(child, depth + 1))?;
        Ok(())
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
        self.work_of(schema)?;
        children(schema).try_for_each(|child| self.work(child))
    }

    fn work_of(&mut self, schema: &'a Value) -> Result<u64, Refusal> {
        match self.work.get(&std::ptr::from_ref(schema)) {
            Some(0) => return Err(too_complex("a reference leads back to itself without going deeper")),
            Some(known) => return Ok(*known),
            None => {}
        }
        self.work.insert(std::ptr::from_ref(schema), 0);
        let mut total: u64 = 1;
        for other in self.beside(schema) {
            total = total.saturating_add(self.work_of(other)?);
        }
        if total > WORK_MAX {
            return Err(too_complex("one value would have to be held against too many alternatives"));
        }
        self.work.insert(std::ptr::from_ref(schema), total);
        Ok(total)
    }

    /// A schema that comes back to itself twice by one step down doubles its work with every level of a document.
    fn growth(&self, schema: &'a Value) -> Result<(), Refusal> {
        let mut pending = vec![schema];
        while let Some(schema) = pending.pop() {
            pending.extend(children(schema));
            let mut steps: HashMap<&str, Vec<&Value>> = HashMap::new();
            for (step, below) in self.below(schema) {
                steps.entry(step).or_default().push(below);
            }
            for below in steps.values().filter(|below| below.len() > 1) {
                let returns = below.iter().filter(|below| self.reaches(below, schema)).count();
                if returns > 1 {
                    return Err(too_complex("the schema comes back to itself in two ways by one step"));
                }
            }
        }
        Ok(())
    }

    /// The schemas of smaller values, with the step that leads there, from here and from all that judge beside it.
    fn below(&self, schema: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let mut found = Vec::new();
        let mut pending = vec![schema];
        while let Some(schema) = pending.pop() {
            pending.extend(self.beside(schema));
            let members = schema.get("properties").and_then(Value::as_object);
            found.extend(members.into_iter().flatten().map(|(name, below)| (name.as_str(), below)));
            for name in ["items", "contains", "unevaluatedItems"] {
                found.extend(schema.get(name).filter(|below| below.is_object()).map(|below| ("*", below)));
            }
            for name in ["additionalProperties", "unevaluatedProperties"] {
                found.extend(schema.get(name).map(|below| ("**", below)));
            }
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            found.extend(patterns.into_iter().flat_map(|map| map.values()).map(|below| ("**", below)));
        }
        found
    }

    fn reaches(&self, from: &'a Value, to: &'a Value) -> bool {
        let mut seen: Vec<*const Value> = Vec::new();
        let mut pending = vec![from];
        while let Some(schema) = pending.pop() {
            if std::ptr::eq(schema, to) {
                return true;
            }
            if !seen.contains(&std::ptr::from_ref(schema)) {
                seen.push(std::ptr::from_ref(schema));
                pending.extend(self.beside(schema));
                pending.extend(self.below(schema).into_iter().map(|(_, below)| below));
            }
        }
        false
    }
}
