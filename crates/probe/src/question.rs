//! A case about documents, made into records that can be published and an intent that asks for them alone.
//!
//! A record gets a name of its own and a marker, its price and its quality are said where a node looks for them, and
//! the intent's constraints are joined by one more leaf, the last, which asks for the marker. What is added is taken
//! out of the answer again. Where that would change what the case says, the document is put one level deeper; where
//! that does not help either, the case cannot be put.

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name inserts the member or yields null")]

use crate::corpus::Case;
use crate::fast;
use crate::parties::Parties;
use aql::OverBudget;
use json::{Document, Value, json};
use serde_json::Map;

/// The member that the added leaf asks for.
const MARKER: &str = "x_case";
/// The member that holds a document which is put one level deeper.
const DEEPER: &str = "v";

/// A record to be published.
#[derive(Clone, Debug)]
pub(crate) struct Dressed {
    /// What the case calls it.
    name: String,
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    owner: String,
    /// The key that its owner has in the run.
    pub(crate) by: String,
    pub(crate) record: Value,
    /// What somebody else says about it.
    pub(crate) evidence: Option<Map<String, Value>>,
    quality: Option<Value>,
}

/// A case that can be put to a node.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) records: Vec<Dressed>,
    /// Not signed yet.
    pub(crate) intent: Value,
    /// What was put into the records.
    added: Vec<String>,
    /// What was called otherwise: as the case has it, as it is published.
    renamed: Vec<(String, String)>,
    deeper: bool,
}

/// Why a case cannot be put over HTTP.
pub(crate) type Reason = String;

impl Question {
    /// Makes a case into a question that means the same; the engine of this house is the judge of that.
    pub(crate) fn of(case: &Case, parties: &Parties) -> Result<Self, Reason> {
        let mut reason = "a record must be a JSON object".to_owned();
        for deeper in [false, true] {
            match Self::dress(case, parties, deeper) {
                Ok(question) => {
                    let answer = question.local().map_or_else(|refused| refused, |found| question.read(case, found));
                    if crate::agrees(&expected(case), &answer) {
                        return Ok(question);
                    }
                    reason = "the name and the marker that a published record needs would change what it says".into();
                }
                Err(other) => reason = other,
            }
            if case.kind == "resolve" {
                break;
            }
        }
        Err(reason)
    }

    /// Whether the intent itself is refused, so that no record is needed.
    pub(crate) fn is_refused(&self) -> bool {
        self.local().is_err_and(|refused| refused.get("at").is_some())
    }

    fn local(&self) -> Result<Value, Value> {
        let candidate = |dressed: &Dressed| {
            let mut candidate = json!({"id": dressed.id, "record": dressed.record});
            if let Some(quality) = &dressed.quality {
                candidate["quality"] = quality.clone();
            }
            candidate
        };
        let candidates: Vec<Value> = self.records.iter().map(candidate).collect();
        fast::resolve(&self.intent, &candidates, OverBudget::Flag)
    }

    fn dress(case: &Case, parties: &Parties, deeper: bool) -> Result<Self, Reason> {
        let word = parties.fresh();
        let intent = json!({
            "intent_id": format!("urn:oap:intent:{word}"), "issuer_did": parties.did(), "category": "discovery",
            "constraints": marker(&word), "projection": {"include": [format!("/{MARKER}")]},
            "validity": parties.window(),
        });
        let mut question = Self { records: Vec::new(), intent, added: Vec::new(), renamed: Vec::new(), deeper };
        if case.kind == "resolve" {
            question.take_intent(case, &word)?;
            let category = case.input("intent")["category"].as_str().unwrap_or_default();
            let candidates = case.input("candidates").as_array().cloned().unwrap_or_default();
            for (position, candidate) in candidates.iter().enumerate() {
                question.add_candidate(candidate, position, category, &word, parties)?;
            }
            question.rename_operands();
            return Ok(question);
        }
        let (document, constraints) = match case.kind.as_str() {
            "evaluate" => (case.input("document").clone(), Some(case.input("constraints").clone())),
            "pattern" => {
                let leaf = json!({"path": "/s", "operator": "matches", "value": case.input("pattern")});
                (json!({"s": case.input("subject")}), Some(leaf))
            }
            "order" => order(case.input("left"), case.input("right")),
            _ => (case.input("document").clone(), None),
        };
        if case.kind == "project" {
            question.intent["projection"] = case.input("projection").clone();
        }
        if let Some(constraints) = constraints {
            question.intent["constraints"] = join(constraints, &word);
        }
        let document = if deeper { question.put_deeper(document) } else { document };
        let mut record = document;
        let members = record.as_object_mut().ok_or("a record must be a JSON object")?;
        question.name(members, None, 0, "manifest", &word, parties)?;
        question.mark(members, &word)?;
        let id = question.records.last().map(|dressed| dressed.id.clone()).unwrap_or_default();
        if let Some(dressed) = question.records.iter_mut().find(|dressed| dressed.id == id) {
            dressed.record = record;
        }
        question.rename_operands();
        Ok(question)
    }

    fn take_intent(&mut self, case: &Case, word: &str) -> Result<(), Reason> {
        if case.input("over_budget") == "reject" {
            return Err("the operator of a node chooses what becomes of candidates over budget".into());
        }
        let mut intent = case.input("intent").clone();
        let category = intent["category"].as_str().unwrap_or_default();
        if category == "action" {
            return Err(
                "an action is a part of a manifest and has no record of its own; node cases ask for them".into()
            );
        }
        if category == "subscription" {
            return Err("a standing intent is answered by a feed, level Q3".into());
        }
        for name in ["intent_id", "issuer_did", "validity"] {
            intent[name] = self.intent[name].clone();
        }
        intent["constraints"] = join(intent["constraints"].clone(), word);
        self.intent = intent;
        Ok(())
    }

    /// Adds a candidate: a bare record, or one with its id, cost and quality beside it.
    fn add_candidate(
        &mut self,
        candidate: &Value,
        position: usize,
        category: &str,
        word: &str,
        parties: &Parties,
    ) -> Result<(), Reason> {
        let known = ["id", "record", "cost", "quality"];
        let wrapped = candidate["record"].is_object()
            && candidate.as_object().is_some_and(|members| members.keys().all(|name| known.contains(&name.as_str())));
        let mut record = if wrapped { candidate["record"].clone() } else { candidate.clone() };
        let beside = |name: &str| candidate.get(name).filter(|_| wrapped);
        let kind = match category {
            "commercial" => "offer",
            "knowledge" => "knowledge",
            _ => "manifest",
        };
        let members = record.as_object_mut().ok_or("a record must be a JSON object")?;
        self.name(members, beside("id").and_then(Value::as_str), position, kind, word, parties)?;
        self.mark(members, word)?;
        if let Some(cost) = beside("cost") {
            self.price(members, cost)?;
        }
        if category == "delegation" {
            self.add(members, "delegation", json!({"supported": true}))?;
        }
        let quality = beside("quality").cloned();
        let evidence = quality.as_ref().and_then(Value::as_object).cloned();
        if let Some(dressed) = self.records.last_mut() {
            dressed.record = record;
            dressed.evidence = evidence.filter(|said| !said.is_empty());
            dressed.quality = quality;
        }
        Ok(())
    }

    /// Gives a record a name that no other run uses, and a publisher who may speak for it.
    fn name(
        &mut self,
        members: &mut Map<String, Value>,
        given: Option<&str>,
        position: usize,
        kind: &'static str,
        word: &str,
        parties: &Parties,
    ) -> Result<(), Reason> {
        let own = ["/tool/did", "/offer_id", "/id", "/tool/id", "/action_id"]
            .into_iter()
            .find_map(|pointer| Some((pointer, find(members, pointer)?.as_str()?.to_owned())));
        let name = given.map(str::to_owned).or_else(|| own.as_ref().map(|(_, own)| own.clone()));
        let name = name.unwrap_or_else(|| format!("line-{}", position + 1));
        let id = format!("{name}.{word}");
        if self.records.iter().any(|dressed| dressed.id == id) {
            return Err("two records of one name; the later one takes the place of the earlier one".into());
        }
        // Who owns what decides what repeats what. A node lets few new names in, so the owners of all cases share keys.
        let owner = Document::of(&Value::Object(members.clone())).map(|record| aql::owner(None, record.root(), &id));
        let owner = owner.unwrap_or_else(|_| id.clone());
        let known = self.records.iter().position(|dressed| dressed.owner == owner);
        let by = match known.unwrap_or(self.records.len()) {
            0 => "first".to_owned(),
            position => format!("owner {position}"),
        };
        let did = parties.key(&by).did_key().as_str().to_owned();
        match own {
            Some((pointer, own)) => {
                put(members, pointer, json!(id));
                self.renamed.push((own, id.clone()));
            }
            None => {
                let free = ["id", "offer_id"].into_iter().find(|name| !members.contains_key(*name));
                self.add(members, free.ok_or("the record has no room for a name")?, json!(id))?;
            }
        }
        let speaker = match kind {
            "offer" => vec!["/provider_did", "/broker_did"],
            "knowledge" => vec!["/publisher_did"],
            _ => vec!["/tool/publisher/did"],
        };
        let mut spoken = false;
        for pointer in speaker {
            if let Some(named) = find(members, pointer).and_then(Value::as_str).map(str::to_owned) {
                put(members, pointer, json!(did));
                self.renamed.push((named, did.clone()));
                spoken = true;
            }
        }
        if kind == "manifest" && !spoken && find(members, "/tool/did").is_some() {
            match find(members, "/tool/publisher") {
                None => self.added.push("/tool/publisher".into()),
                Some(Value::Object(_)) => self.added.push("/tool/publisher/did".into()),
                Some(_) => return Err("the record has no room for its publisher".into()),
            }
            put(members, "/tool/publisher/did", json!(did));
        }
        self.records.push(Dressed { name, id, kind, owner, by, record: Value::Null, evidence: None, quality: None });
        Ok(())
    }

    fn mark(&mut self, members: &mut Map<String, Value>, word: &str) -> Result<(), Reason> {
        self.add(members, MARKER, json!(word))
    }

    /// Says what a record costs where a node reads it.
    fn price(&mut self, members: &mut Map<String, Value>, cost: &Value) -> Result<(), Reason> {
        let prices = cost.as_array().cloned().unwrap_or_else(|| vec![cost.clone()]);
        let models: Vec<Value> = prices
            .iter()
            .filter(|price| price.get("amount").is_some() && price.get("currency").is_some())
            .map(|price| json!({"type": "per_call", "amount": price["amount"], "currency": price["currency"]}))
            .collect();
        if ["price", "cost", "pricing"].iter().any(|name| members.contains_key(*name)) {
            return Err("the cost beside the record contradicts the record, which is all that a node knows".into());
        }
        if models.is_empty() { Ok(()) } else { self.add(members, "pricing", json!({"models": models})) }
    }

    fn add(&mut self, members: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Reason> {
        if members.contains_key(name) {
            return Err(format!("the record has a member `{name}` of its own"));
        }
        members.insert(name.to_owned(), value);
        let pointer = format!("/{name}");
        if !self.added.contains(&pointer) {
            self.added.push(pointer);
        }
        Ok(())
    }

    /// Puts the document into a member, and every place with it.
    fn put_deeper(&mut self, document: Value) -> Value {
        each_leaf(&mut self.intent["constraints"], &mut |leaf| {
            if let Some(path) = leaf["path"].as_str().filter(|path| *path != format!("/{MARKER}")) {
                leaf["path"] = json!(format!("/{DEEPER}{path}"));
            }
        });
        for list in ["include", "exclude"] {
            for pointer in self.intent["projection"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(text) = pointer.as_str().filter(|text| *text != format!("/{MARKER}")) {
                    let text = if text == "/" { "" } else { text };
                    *pointer = json!(format!("/{DEEPER}{text}"));
                }
            }
        }
        json!({DEEPER: document})
    }

    /// Operands that name a record name it as it is published.
    fn rename_operands(&mut self) {
        let renamed = self.renamed.clone();
        each_leaf(&mut self.intent["constraints"], &mut |leaf| {
            if let Some(operand) = leaf.get_mut("value") {
                renamed.iter().for_each(|(old, new)| replace(operand, old, new));
            }
        });
    }

    /// What the case expects, read from what was found: candidates and rejected ones as [`fast::resolve`] shows them.
    pub(crate) fn read(&self, case: &Case, mut found: Value) -> Value {
        for list in ["candidates", "rejected"] {
            for entry in found.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                self.undress(entry);
            }
        }
        sort_rejected(&mut found);
        if case.kind == "resolve" {
            return found;
        }
        let of = |list: &str| crate::shown::list(&found, list).into_iter().next();
        let holds = of("candidates").is_some();
        let Some(entry) = of("candidates").or_else(|| of("rejected")) else { return json!({}) };
        let passed = |leaf: &Value| leaf["passed"] == json!(true);
        let leaves: Vec<bool> = entry["evaluations"].as_array().into_iter().flatten().map(passed).collect();
        match case.kind.as_str() {
            "evaluate" => json!({"holds": holds, "leaves": leaves}),
            "pattern" => json!({"matches": leaves.first()}),
            "order" => json!({"order": relation(&leaves, is_orderable(case.input("right")))}),
            _ => self.projected(&entry),
        }
    }

    fn projected(&self, entry: &Value) -> Value {
        if let Some(payload) = entry.get("payload") {
            let payload = if self.deeper { &payload[DEEPER] } else { payload };
            return json!({"payload": payload});
        }
        let told = entry["explanation"].as_str().unwrap_or_default();
        let told = told.split_once("projection_failure: ").map_or("", |(_, pointers)| pointers);
        let shallow = |pointer: &str| {
            let prefix = if self.deeper { format!("/{DEEPER}") } else { String::new() };
            pointer.strip_prefix(prefix.as_str()).unwrap_or(pointer).to_owned()
        };
        json!({"failure": told.split(", ").map(shallow).collect::<Vec<_>>()})
    }

    /// Takes out of an answer what was put into the question.
    fn undress(&self, entry: &mut Value) {
        if let Some(leaves) = entry.get_mut("evaluations").and_then(Value::as_array_mut) {
            leaves.pop();
        }
        if let Some(payload) = entry.get_mut("payload") {
            self.added.iter().for_each(|pointer| remove(payload, pointer));
        }
        let dressed = self.records.iter().find(|dressed| entry["id"] == json!(dressed.id));
        let name = dressed.map(|dressed| dressed.name.clone());
        for (old, new) in &self.renamed {
            replace(entry, new, old);
        }
        if let Some(name) = name {
            entry["id"] = json!(name);
        }
    }
}

/// What the case expects, in an order that does not depend on names.
pub(crate) fn expected(case: &Case) -> Value {
    let mut expect = case.expect.clone();
    if let Some(members) = expect.as_object_mut() {
        // How the money is split is the asker's sum; an answer does not carry it.
        members.remove("shares");
    }
    sort_rejected(&mut expect);
    expect
}

fn sort_rejected(answer: &mut Value) {
    if let Some(rejected) = answer.get_mut("rejected").and_then(Value::as_array_mut) {
        rejected.sort_by(|left, right| left["id"].as_str().cmp(&right["id"].as_str()));
    }
}

fn marker(word: &str) -> Value {
    json!({"path": format!("/{MARKER}"), "operator": "eq", "value": word})
}

/// The constraints, and the marker as the last leaf.
fn join(constraints: Value, word: &str) -> Value {
    match constraints {
        Value::Array(mut list) => {
            list.push(marker(word));
            Value::Array(list)
        }
        Value::Object(mut members) if members.len() == 1 && members.get("all_of").is_some_and(Value::is_array) => {
            if let Some(list) = members.get_mut("all_of").and_then(Value::as_array_mut) {
                list.push(marker(word));
            }
            Value::Object(members)
        }
        other => json!({"all_of": [other, marker(word)]}),
    }
}

/// Four leaves tell how two values are ordered.
fn order(left: &Value, right: &Value) -> (Value, Option<Value>) {
    let (value, operand) = if is_orderable(right) { (left, right) } else { (right, left) };
    let leaf = |operator: &str| json!({"path": "/l", "operator": operator, "value": operand});
    let leaves = ["lt", "lte", "gte", "gt"].map(leaf);
    (json!({"l": value}), Some(json!({"any_of": leaves})))
}

/// Whether a value may be the operand of an order.
fn is_orderable(value: &Value) -> bool {
    let leaf = json!({"path": "/l", "operator": "lt", "value": value});
    fast::evaluate(&leaf, &json!({})).is_ok()
}

fn relation(leaves: &[bool], straight: bool) -> &'static str {
    match (leaves, straight) {
        ([true, true, false, false], true) | ([false, false, true, true], false) => "less",
        ([false, false, true, true], true) | ([true, true, false, false], false) => "greater",
        ([false, true, true, false], _) => "equal",
        ([false, false, false, false], _) => "incomparable",
        _ => "contradictory",
    }
}

fn each_leaf(constraints: &mut Value, deal: &mut dyn FnMut(&mut Value)) {
    match constraints {
        Value::Array(list) => list.iter_mut().for_each(|node| each_leaf(node, deal)),
        Value::Object(members) if members.contains_key("path") => deal(constraints),
        Value::Object(members) => members.values_mut().for_each(|node| each_leaf(node, deal)),
        _ => {}
    }
}

fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(|node| replace(node, old, new)),
        Value::Object(members) => members.values_mut().for_each(|node| replace(node, old, new)),
        _ => {}
    }
}

fn find<'a>(members: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut segments = pointer.split('/').skip(1);
    let first = members.get(segments.next()?)?;
    segments.try_fold(first, |node, segment| node.get(segment))
}

fn put(members: &mut Map<String, Value>, pointer: &str, value: Value) {
    let mut segments: Vec<&str> = pointer.split('/').skip(1).collect();
    let Some(last) = segments.pop() else { return };
    let mut place = members;
    for segment in segments {
        let inner = place.entry(segment).or_insert_with(|| json!({}));
        let Some(next) = inner.as_object_mut() else { return };
        place = next;
    }
    place.insert(last.to_owned(), value);
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.remove(name);
    }
}
