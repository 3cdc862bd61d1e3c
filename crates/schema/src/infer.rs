//! RFC 0024 §3.3: a draft of a mapping between two schemas, with what only people can answer asked as questions.
//!
//! A draft is never more than a proposal: a name that disappeared and one that came may have nothing to do with each
//! other, so every rename is a question, too.

use json::{Map, Pointer, Value, json};

/// A draft and what it leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The members of a mapping body: `rules`, `constants`, `unset`, `passthrough`.
    pub body: Value,
    /// What somebody has to answer.
    pub questions: Vec<Question>,
}

/// Something that only people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The place in the new document, or in the old one where it has none.
    pub at: Pointer,
    /// What to decide.
    pub text: String,
}

/// Objects within objects that are looked into.
const DEPTH_MAX: usize = 8;

/// Drafts a mapping from documents of `old` to documents of `new`.
pub fn infer(old: &Value, new: &Value) -> Draft {
    let mut drafter =
        Drafter { old, new, rules: Vec::new(), constants: Vec::new(), unset: Vec::new(), questions: Vec::new() };
    drafter.objects(old, new, &Pointer::root(), 0);
    let mut body = json!({"rules": drafter.rules, "passthrough": true});
    if let Value::Object(members) = &mut body {
        for (name, list) in [("constants", drafter.constants), ("unset", drafter.unset)] {
            if !list.is_empty() {
                members.insert(name.to_owned(), Value::Array(list));
            }
        }
    }
    Draft { body, questions: drafter.questions }
}

struct Drafter<'a> {
    old: &'a Value,
    new: &'a Value,
    rules: Vec<Value>,
    constants: Vec<Value>,
    unset: Vec<Value>,
    questions: Vec<Question>,
}

impl<'a> Drafter<'a> {
    fn ask(&mut self, at: Pointer, text: String) {
        self.questions.push(Question { at, text });
    }

    fn objects(&mut self, old: &'a Value, new: &'a Value, at: &Pointer, depth: usize) {
        let (old, new) = (resolved(old, self.old), resolved(new, self.new));
        if depth > DEPTH_MAX {
            return;
        }
        let properties = |schema: &'a Value| schema.get("properties").and_then(Value::as_object);
        let (before, after) = (properties(old), properties(new));
        let had = |name: &String| before.is_some_and(|before| before.contains_key(name));
        let has = |name: &str| after.and_then(|after| after.get(name));
        let mut came: Vec<&String> = after.into_iter().flat_map(Map::keys).filter(|name| !had(name)).collect();
        for (name, schema) in before.into_iter().flatten() {
            let place = at.child(name);
            if let Some(later) = has(name) {
                self.member(resolved(schema, self.old), resolved(later, self.new), &place, depth);
                continue;
            }
            let schema = resolved(schema, self.old);
            let alike =
                |other: &&&String| has(other).is_some_and(|later| kinds(resolved(later, self.new)) == kinds(schema));
            let best = came.iter().filter(alike).max_by_key(|other| likeness(name, other)).copied();
            match best.filter(|other| likeness(name, other) >= LIKE_ENOUGH) {
                Some(other) => {
                    came.retain(|name| *name != other);
                    self.rules.push(json!({"op": "rename", "from": place.as_str(), "to": other}));
                    self.ask(at.child(other), format!("is `{other}` what was called `{name}`?"));
                }
                None => {
                    self.unset.push(json!(place.as_str()));
                    self.ask(place, format!("`{name}` has no place any more: is it to be dropped, or did it move?"));
                }
            }
        }
        let required = |name: &str| {
            let list = new.get("required").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|required| required == name))
        };
        for name in came.into_iter().filter(|name| required(name)) {
            let later = has(name).map(|later| resolved(later, self.new));
            let known = later.and_then(|later| later.get("default").or_else(|| later.get("const")));
            if let Some(value) = known {
                self.constants.push(json!({"to": at.child(name).as_str(), "value": value, "when_absent": true}));
            }
            let text = match known {
                Some(_) => format!("`{name}` is demanded now: is the value from the schema right for old documents?"),
                None => format!("`{name}` is demanded now: where does its value come from?"),
            };
            self.ask(at.child(name), text);
        }
    }

    fn member(&mut self, old: &'a Value, new: &'a Value, at: &Pointer, depth: usize) {
        let (from, to) = (kinds(old), kinds(new));
        let convert = |function: &str| json!({"op": "convert", "from": at.as_str(), "to": at.as_str(), "fn": function});
        match (from.as_slice(), to.as_slice()) {
            (["object"], ["object"]) => self.objects(old, new, at, depth + 1),
            (["string"], ["string"]) => self.words(old, new, at),
            (["number" | "integer"], ["string"]) => self.rules.push(convert("number_to_string")),
            (["string"], ["number" | "integer"]) => self.rules.push(convert("string_to_number")),
            (["boolean"], ["string"]) => self.rules.push(convert("boolean_to_string")),
            (["string"], ["boolean"]) => self.rules.push(convert("string_to_boolean")),
            ([one], ["array"]) if *one != "array" => self.rules.push(convert("wrap_array")),
            (["array"], [one]) if *one != "array" => {
                self.rules.push(convert("first"));
                self.ask(at.clone(), "a list becomes one value: is the first the right one?".to_owned());
            }
            (["array"], ["array"]) => {
                let items = |schema: &'a Value, root: &'a Value| schema.get("items").map(|items| resolved(items, root));
                if let (Some(old), Some(new)) = (items(old, self.old), items(new, self.new)) {
                    let mut inner = Drafter {
                        rules: Vec::new(),
                        constants: Vec::new(),
                        unset: Vec::new(),
                        questions: Vec::new(),
                        ..*self
                    };
                    inner.objects(old, new, &Pointer::root(), depth + 1);
                    self.questions.extend(inner.questions.into_iter().map(|question| Question {
                        at: Pointer::parse(&format!("{at}/*{}", question.at)).unwrap_or_default(),
                        ..question
                    }));
                    if !(inner.rules.is_empty() && inner.constants.is_empty() && inner.unset.is_empty()) {
                        let body = json!({"rules": inner.rules, "constants": inner.constants, "unset": inner.unset, "passthrough": true});
                        self.rules.push(json!({"op": "each", "from": at.as_str(), "to": at.as_str(), "body": body}));
                    }
                }
            }
            (from, to) if from != to && !from.is_empty() && !to.is_empty() => {
                self.ask(
                    at.clone(),
                    format!("the type changed from {} to {}: how?", from.join(" or "), to.join(" or ")),
                );
            }
            _ => {}
        }
    }

    /// Words of a closed set that went and came.
    fn words(&mut self, old: &Value, new: &Value, at: &Pointer) {
        let words = |schema: &Value| -> Vec<String> {
            let list = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (before, after) = (words(old), words(new));
        if before.is_empty() || after.is_empty() || before.iter().all(|word| after.contains(word)) {
            return;
        }
        let mut pairs: Vec<Value> = Vec::new();
        for word in &before {
            let free = after.iter().filter(|other| !before.contains(other));
            let other = if after.contains(word) { Some(word) } else { free.max_by_key(|other| likeness(word, other)) };
            if let Some(other) = other {
                pairs.push(json!([word, other]));
            }
            if other != Some(word) {
                self.ask(at.clone(), format!("the word `{word}` is gone: what does it become?"));
            }
        }
        if !pairs.is_empty() {
            self.rules.push(json!({"op": "enum", "from": at.as_str(), "to": at.as_str(), "map": pairs}));
        }
    }
}

/// A schema behind a reference within its document.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let root = crate::dialect::Root::of(root);
    let mut schema = schema;
    for _ in 0..8 {
        match schema.get("$ref").and_then(Value::as_str).and_then(|text| root.resolve(text)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ if schema.get("enum").is_some() => vec!["string"],
        _ => Vec::new(),
    }
}

/// Of a hundred: below this two names have nothing in common.
const LIKE_ENOUGH: usize = 45;

/// How alike two names are, of a hundred: the pairs of letters that they share.
fn likeness(left: &str, right: &str) -> usize {
    let pairs = |name: &str| -> Vec<(char, char)> {
        let letters: Vec<char> =
            name.chars().filter(|letter| letter.is_alphanumeric()).map(|letter| letter.to_ascii_lowercase()).collect();
        letters.iter().copied().zip(letters.iter().copied().skip(1)).collect()
    };
    let (ours, mut theirs) = (pairs(left), pairs(right));
    let all = ours.len() + theirs.len();
    let mut shared: usize = 0;
    for pair in ours {
        if let Some(position) = theirs.iter().position(|other| *other == pair) {
            theirs.swap_remove(position);
            shared += 2;
        }
    }
    (shared * 100).checked_div(all).unwrap_or(0)
}
