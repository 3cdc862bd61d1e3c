//! Random markets, and the candidates that each category must find in them, spelled out by hand.

use crate::world::World;
use aql::{Candidate, Level, Signals};
use conformance::chance::Chance;
use conformance::generate;
use json::{Document, Value, json};

/// Records by kind, and what others say about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Market {
    pub(crate) manifests: Vec<Value>,
    pub(crate) offers: Vec<Value>,
    pub(crate) knowledge: Vec<Value>,
    /// Descriptions of agents, as the records that a node makes of them.
    pub(crate) described: Vec<Value>,
    /// Who signed all of it, where somebody did.
    pub(crate) publisher: Option<String>,
    /// The subject of each word, and the word; every word is by another issuer.
    evidence: Vec<(String, Value)>,
}

impl Market {
    /// So many records of each kind.
    pub(crate) fn random(chance: &mut Chance<'_>, count: usize) -> Self {
        let mut market = Self::default();
        for number in 0..count {
            market.manifests.push(manifest(chance, number));
            market.offers.push(offer(chance, number));
            market.knowledge.push(knowledge(chance, number));
            if chance.one_in(2) {
                let subject = chance.pick(&["did:web:t", "did:key:p", "urn:o:", "urn:k:"]).unwrap();
                let name = if *subject == "did:key:p" { chance.below(4) } else { number };
                market.evidence.push((format!("{subject}{name}"), word(chance)));
            }
        }
        market
    }

    pub(crate) fn import_into(&self, world: &World) {
        world.import("manifest", &self.manifests);
        world.import("offer", &self.offers);
        world.import("knowledge", &self.knowledge);
        self.import_evidence_into(world);
    }

    pub(crate) fn import_evidence_into(&self, world: &World) {
        let evidence = self.evidence.iter().enumerate().map(|(number, (subject, word))| {
            let mut record = word.clone();
            record["id"] = json!(format!("urn:e:{number}"));
            record["issuer_did"] = json!(format!("did:key:e{number}"));
            record["subject_did"] = json!(subject);
            record
        });
        world.import("evidence", &evidence.collect::<Vec<_>>());
    }

    /// Everybody whom an intent of a category looks at.
    pub(crate) fn candidates(&self, category: &str) -> Vec<Candidate> {
        match category {
            "discovery" => {
                let manifests = self.manifests.iter().map(|record| self.candidate(tool(record), None, record));
                let agent = |record: &Value| record["did"].as_str().map(str::to_owned);
                let candidate = |record: &Value| self.candidate(text(&record["id"]), agent(record), record);
                manifests.chain(self.described.iter().map(candidate)).collect()
            }
            "delegation" => {
                let delegates = |record: &&Value| record["delegation"]["supported"] == json!(true);
                let found = self.manifests.iter().filter(delegates);
                found.map(|record| self.candidate(tool(record), None, record)).collect()
            }
            "commercial" => {
                let provider = |record: &Value| record["provider_did"].as_str().map(str::to_owned);
                let candidate = |record: &Value| self.candidate(text(&record["offer_id"]), provider(record), record);
                self.offers.iter().map(candidate).collect()
            }
            "knowledge" => {
                let by = |record: &Value| (text(&record["id"]), text(&record["publisher_did"]));
                let candidate = |record| self.candidate(by(record).0, Some(by(record).1), record);
                self.knowledge.iter().map(candidate).collect()
            }
            "action" => self.manifests.iter().flat_map(|manifest| self.actions(manifest)).collect(),
            other => panic!("{other}"),
        }
    }

    fn actions(&self, manifest: &Value) -> Vec<Candidate> {
        let mut found = Vec::new();
        for action in manifest["actions"].as_array().into_iter().flatten() {
            let (did, Some(name)) = (tool(manifest), action["id"].as_str()) else { continue };
            let id = format!("{did}#{name}");
            let mut record = json!({"action_id": name, "manifest_id": id, "tool_did": did});
            for (member, from) in
                [("categories", &manifest["tool"]), ("oap_version", manifest), ("risk_class", manifest)]
            {
                if let Some(value) = from.get(member) {
                    record[member] = value.clone();
                }
            }
            record.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
            found.push(self.candidate(id, Some(did), &record));
        }
        found
    }

    /// What is said about the record itself counts before what is said about whoever stands for it.
    fn candidate(&self, id: String, subject: Option<String>, record: &Value) -> Candidate {
        let about = |subject: &String| self.evidence.iter().any(|(about, _)| about == subject);
        let subject = [Some(id.clone()), subject].into_iter().flatten().find(about);
        let signals = subject.map(|subject| self.signals(&subject)).unwrap_or_default();
        let candidate = Candidate::new(id, Document::of(record).unwrap(), None, signals);
        match &self.publisher {
            Some(publisher) => candidate.published_by(publisher),
            None => candidate,
        }
    }

    fn signals(&self, subject: &str) -> Signals {
        let words: Vec<&Value> =
            self.evidence.iter().filter(|(about, _)| about == subject).map(|(_, word)| word).collect();
        let numbers = |name: &str| words.iter().filter_map(|word| word[name].as_f64()).collect::<Vec<_>>();
        let mean = |name: &str| match numbers(name) {
            all if all.is_empty() => None,
            all => Some(all.iter().sum::<f64>() / all.len() as f64),
        };
        Signals {
            performance_score: mean("performance_score"),
            provider_reputation: mean("provider_reputation"),
            latency_p99_ms: numbers("latency_p99_ms").into_iter().reduce(f64::max),
            conformance_level: words.iter().rev().find_map(|word| Level::parse(word["conformance_level"].as_str()?)),
            cooling_off_minutes: None,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn tool(manifest: &Value) -> String {
    text(&manifest["tool"]["did"])
}

const AMOUNTS: [&str; 6] = ["0", "1.5", "5.00", "10.01", "10.010000000000000001", "many"];

fn price(chance: &mut Chance<'_>) -> Value {
    json!({"amount": chance.word(&AMOUNTS), "currency": chance.word(&["EUR", "EUR", "USD"])})
}

fn model(chance: &mut Chance<'_>) -> Value {
    let mut model = price(chance);
    model["type"] = json!(chance.word(&["per_call", "per_call", "free", "flat"]));
    model
}

fn manifest(chance: &mut Chance<'_>, number: usize) -> Value {
    let mut record = generate::record(chance);
    record["oap_version"] = json!("1.0");
    record["risk_class"] = json!(chance.word(&["minimal", "limited", "high"]));
    let publisher = format!("did:key:p{}", chance.below(4));
    record["tool"] = json!({"did": format!("did:web:t{number}"), "categories": generate::value(chance, 1), "publisher": {"did": publisher}});
    if chance.one_in(2) {
        record["pricing"] = json!({"models": [model(chance), model(chance)]});
    }
    if chance.one_in(2) {
        record["delegation"] = json!({"supported": chance.word(&["yes", ""]) == "yes"});
        record["cost"] = model(chance);
    }
    if chance.one_in(3) {
        record["sla"] = json!({"latency_p99_ms": chance.pick(&[40, 100, 20_000])});
        record["irreversibility_cooling_off_seconds"] = json!(chance.pick(&[0, 3_600, 86_400]));
    }
    let action = |name: usize, chance: &mut Chance<'_>| {
        let mut action = generate::record(chance);
        action["id"] = json!(format!("act{name}"));
        if chance.one_in(2) {
            action["cost"] = model(chance);
        }
        action
    };
    record["actions"] = (0..chance.below(3)).map(|name| action(name, chance)).collect();
    record
}

fn offer(chance: &mut Chance<'_>, number: usize) -> Value {
    let mut record = generate::record(chance);
    record["offer_id"] = json!(format!("urn:o:{number}"));
    record["provider_did"] = json!(format!("did:key:p{}", chance.below(4)));
    if chance.one_in(2) {
        record["price"] = price(chance);
    }
    if chance.one_in(4) {
        record["cost_disclosure"] = json!({"latency_p99_ms": chance.pick(&[40, 100, 20_000])});
    }
    record
}

fn knowledge(chance: &mut Chance<'_>, number: usize) -> Value {
    let mut record = generate::record(chance);
    record["@type"] = json!("KnowledgeNode");
    record["id"] = json!(format!("urn:k:{number}"));
    record["publisher_did"] = json!(format!("did:key:p{}", chance.below(4)));
    record
}

fn word(chance: &mut Chance<'_>) -> Value {
    let mut word = json!({});
    let scores = [0.0, 0.1, 0.35, 0.5, 0.75, 0.9, 1.0];
    for name in ["performance_score", "provider_reputation"] {
        if !chance.one_in(3) {
            word[name] = json!(chance.pick(&scores));
        }
    }
    if chance.one_in(2) {
        word["conformance_level"] = json!(chance.word(&["L0", "L1", "L3", "L1-NC", "Q2", "gold"]));
    }
    if chance.one_in(2) {
        word["latency_p99_ms"] = json!(chance.pick(&[0, 50, 101, 9_999, 20_000]));
    }
    word
}

/// A random question about a record, which shows everything or asks everybody more often than chance alone would.
pub(crate) fn intent_about(chance: &mut Chance<'_>, record: &Value) -> Value {
    let mut intent = generate::intent(chance, record);
    if chance.one_in(3) {
        intent["projection"] = json!({"include": ["/"]});
    }
    if chance.one_in(4) {
        intent["constraints"] = json!({"path": "/**", "operator": "exists", "value": true});
    }
    intent["validity"] = json!({"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T23:00:00Z"});
    intent
}
