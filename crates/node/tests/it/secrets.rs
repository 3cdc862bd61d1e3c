//! Random markets with restricted records, what each viewer may see of them spelled out by hand, and twins of such
//! markets that differ only in what is hidden.

use crate::market::Market;
use crate::world::{World, did, person, publication, sign};
use aql::{Limits, Path, Segment};
use conformance::chance::Chance;
use conformance::generate;
use json::{Pointer, Value, json};
use std::collections::BTreeSet;
use std::io::Cursor;
use trust::SigningKey;

/// Who publishes everything here.
pub(crate) fn publisher() -> SigningKey {
    person(40)
}

/// Who is named by some restrictions.
pub(crate) fn buyer() -> SigningKey {
    person(41)
}

/// Who is named by all others, and never asks.
fn confidant() -> SigningKey {
    person(42)
}

/// Where records keep what publishers like to hide.
const PATHS: [&str; 22] = [
    "/pricing",
    "/pricing/models/0",
    "/pricing/models/*/currency",
    "/price",
    "/price/currency",
    "/sla",
    "/cost",
    "/cost_disclosure/latency_p99_ms",
    "/delegation/supported",
    "/actions",
    "/actions/0",
    "/actions/0/id",
    "/actions/*/cost",
    "/actions/1/a",
    "/tool/categories",
    "/risk_class",
    "/a",
    "/tags",
    "/tags/0",
    "/provider_did",
    "/**/b",
    "/a/*",
];

/// A restricted record: what it is and whom each of its restrictions names.
#[derive(Clone, Debug)]
pub(crate) struct Secret {
    pub(crate) record: Value,
    restrictions: Vec<(Path, bool)>,
}

impl Secret {
    /// A record with restrictions, half of which name the buyer.
    fn random(chance: &mut Chance<'_>, record: Value) -> Self {
        let mut secret = Self { record, restrictions: Vec::new() };
        for _ in 0..1 + chance.below(4) {
            let text = match chance.one_in(3) {
                true => generate::path(chance, &secret.record),
                false => chance.word(&PATHS).to_owned(),
            };
            let Ok(path) = Path::read(&text, &Pointer::root(), &Limits::STANDARD) else { continue };
            let names_buyer = chance.one_in(2);
            secret.restrictions.push((path, names_buyer));
            if !secret.is_acceptable() {
                secret.restrictions.pop();
            }
        }
        secret
    }

    /// Whether the public sees its name.
    fn is_acceptable(&self) -> bool {
        let names = |record: &Value| [&record["tool"]["did"], &record["offer_id"], &record["id"]].map(Value::clone);
        !self.hidden(false).contains(&Vec::new()) && names(&self.record) == names(&self.public())
    }

    /// Where something stands that the public, or also the buyer, may not see.
    fn hidden(&self, from_buyer: bool) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        for (path, _) in self.restrictions.iter().filter(|(_, names_buyer)| !(from_buyer && *names_buyer)) {
            reach(&self.record, path.segments(), &mut Vec::new(), &mut found);
        }
        found
    }

    /// What the public sees.
    pub(crate) fn public(&self) -> Value {
        without(&self.record, &mut Vec::new(), &self.hidden(false))
    }

    /// What the buyer sees.
    pub(crate) fn buyers(&self) -> Value {
        without(&self.record, &mut Vec::new(), &self.hidden(true))
    }

    /// The signed publication.
    pub(crate) fn message(&self, kind: &str) -> Vec<u8> {
        let (publisher, buyer, confidant) = (publisher(), did(&buyer()), did(&confidant()));
        let mut message = publication(&publisher, kind, self.record.clone());
        if !self.restrictions.is_empty() {
            let told = self.restrictions.iter().map(|(path, names_buyer)| {
                let audience = if *names_buyer { json!([confidant, buyer]) } else { json!([confidant]) };
                json!({"path": path.text(), "audience": audience})
            });
            message["restricted"] = told.collect();
        }
        sign(message, &publisher)
    }

    /// The same record with other values where nobody who asks may look.
    fn twin(&self, chance: &mut Chance<'_>) -> Self {
        let mut twin = self.clone();
        for (path, _) in self.restrictions.iter().filter(|(_, names_buyer)| !names_buyer) {
            change(&mut twin.record, path.segments(), chance);
        }
        assert_eq!(self.public(), twin.public(), "{self:?}");
        assert_eq!(self.buyers(), twin.buyers(), "{self:?}");
        twin
    }
}

/// Every place that a path reaches.
fn reach(value: &Value, path: &[Segment], here: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    let Some((first, rest)) = path.split_first() else {
        found.insert(here.clone());
        return;
    };
    let mut below = |name: String, child: &Value, path: &[Segment], here: &mut Vec<String>| {
        here.push(name);
        reach(child, path, here, found);
        here.pop();
    };
    match first {
        Segment::Name { key, index } => {
            let child = match value {
                Value::Object(members) => members.get(key.name()),
                Value::Array(elements) => index.and_then(|index| elements.get(index)),
                _ => None,
            };
            if let Some(child) = child {
                below(key.name().to_owned(), child, rest, here);
            }
        }
        Segment::Each => children(value).into_iter().for_each(|(name, child)| below(name, child, rest, here)),
        Segment::Descend => {
            children(value).into_iter().for_each(|(name, child)| below(name, child, path, here));
            reach(value, rest, here, found);
        }
    }
}

fn children(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Object(members) => members.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(elements) => {
            elements.iter().enumerate().map(|(number, child)| (number.to_string(), child)).collect()
        }
        _ => Vec::new(),
    }
}

/// A value without what stands at some places.
fn without(value: &Value, here: &mut Vec<String>, hidden: &BTreeSet<Vec<String>>) -> Value {
    let mut keep = |name: String, child: &Value| {
        here.push(name);
        let kept = (!hidden.contains(here)).then(|| without(child, here, hidden));
        here.pop();
        kept
    };
    match value {
        Value::Object(members) => {
            members.iter().filter_map(|(name, child)| Some((name.clone(), keep(name.clone(), child)?))).collect()
        }
        Value::Array(elements) => {
            elements.iter().enumerate().filter_map(|(number, child)| keep(number.to_string(), child)).collect()
        }
        other => other.clone(),
    }
}

/// Puts something else where a path leads: another value, none where there was one, one where there was none.
fn change(value: &mut Value, path: &[Segment], chance: &mut Chance<'_>) {
    let Some((first, rest)) = path.split_first() else {
        *value = generate::value(chance, 3);
        return;
    };
    match (first, value) {
        (Segment::Name { key, .. }, Value::Object(members)) => match members.get_mut(key.name()) {
            Some(_) if rest.is_empty() && chance.one_in(3) => drop(members.remove(key.name())),
            Some(child) => change(child, rest, chance),
            None if rest.is_empty() && chance.one_in(2) => {
                members.insert(key.name().to_owned(), generate::value(chance, 2));
            }
            None => {}
        },
        (Segment::Name { index: Some(index), .. }, Value::Array(elements)) => {
            if let Some(child) = elements.get_mut(*index) {
                change(child, rest, chance);
            }
        }
        (Segment::Name { .. }, _) => {}
        (Segment::Each, Value::Object(members)) if rest.is_empty() => {
            members.clear();
            (0..chance.below(3))
                .for_each(|number| drop(members.insert(number.to_string(), generate::value(chance, 2))));
        }
        (Segment::Each, Value::Array(elements)) if rest.is_empty() => {
            *elements = (0..chance.below(3)).map(|_| generate::value(chance, 2)).collect();
        }
        (Segment::Each, other) => each(other, |child| change(child, rest, chance)),
        (Segment::Descend, other) => {
            change_beneath(other, path, chance);
            change(other, rest, chance);
        }
    }
}

fn change_beneath(value: &mut Value, path: &[Segment], chance: &mut Chance<'_>) {
    each(value, |child| change(child, path, chance));
}

fn each(value: &mut Value, act: impl FnMut(&mut Value)) {
    match value {
        Value::Object(members) => members.values_mut().for_each(act),
        Value::Array(elements) => elements.iter_mut().for_each(act),
        _ => {}
    }
}

/// A market in which much is restricted.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    pub(crate) market: Market,
    pub(crate) manifests: Vec<Secret>,
    pub(crate) offers: Vec<Secret>,
    pub(crate) knowledge: Vec<Secret>,
}

impl Secrets {
    /// So many records of each kind.
    pub(crate) fn random(chance: &mut Chance<'_>, count: usize) -> Self {
        let (mut market, publisher) = (Market::random(chance, count), did(&publisher()));
        market.manifests.iter_mut().for_each(|record| record["tool"]["publisher"]["did"] = json!(publisher));
        market.offers.iter_mut().for_each(|record| record["broker_did"] = json!(publisher));
        market.knowledge.iter_mut().for_each(|record| record["publisher_did"] = json!(publisher));
        let mut secret = |record: &Value| {
            let mut secret = Secret::random(chance, record.clone());
            // Whoever stands for a record must still stand for its twin.
            let stands = |value: &Value| {
                [&value["tool"]["publisher"]["did"], &value["broker_did"], &value["publisher_did"]].map(Value::clone)
            };
            if stands(&secret.public()) != stands(record) {
                secret.restrictions.clear();
            }
            secret
        };
        let manifests = market.manifests.iter().map(&mut secret).collect();
        let offers = market.offers.iter().map(&mut secret).collect();
        let knowledge = market.knowledge.iter().map(&mut secret).collect();
        Self { market, manifests, offers, knowledge }
    }

    fn map(&self, mut each: impl FnMut(&Secret) -> Secret) -> Self {
        Self {
            market: self.market.clone(),
            manifests: self.manifests.iter().map(&mut each).collect(),
            offers: self.offers.iter().map(&mut each).collect(),
            knowledge: self.knowledge.iter().map(&mut each).collect(),
        }
    }

    /// The same market for everybody who asks, and another one beneath.
    pub(crate) fn twin(&self, chance: &mut Chance<'_>) -> Self {
        self.map(|secret| secret.twin(chance))
    }

    /// The market as somebody sees it.
    pub(crate) fn seen(&self, see: impl Fn(&Secret) -> Value) -> Market {
        let mut market = self.market.clone();
        market.publisher = Some(did(&publisher()));
        market.manifests = self.manifests.iter().map(&see).collect();
        market.offers = self.offers.iter().map(&see).collect();
        market.knowledge = self.knowledge.iter().map(&see).collect();
        market
    }

    pub(crate) fn import_into(&self, world: &World) {
        let kinds = [("manifest", &self.manifests), ("offer", &self.offers), ("knowledge", &self.knowledge)];
        let line = |kind: &str, secret: &Secret| [secret.message(kind), vec![b'\n']].concat();
        let lines: Vec<u8> =
            kinds.iter().flat_map(|(kind, secrets)| secrets.iter().flat_map(|secret| line(kind, secret))).collect();
        let mut refused = Vec::new();
        let mut hear = |told| {
            if let node::Told::Refused(line, reason) = told {
                refused.push((line, reason));
            }
        };
        world.node().import(Cursor::new(lines), None, &mut hear).unwrap();
        assert!(refused.is_empty(), "{refused:?}");
        self.market.import_evidence_into(world);
    }

    /// Any record, with everything in it.
    pub(crate) fn any(&self, chance: &mut Chance<'_>) -> Value {
        let secrets = match chance.below(3) {
            0 => &self.manifests,
            1 => &self.offers,
            _ => &self.knowledge,
        };
        chance.pick(secrets).map(|secret| secret.record.clone()).unwrap_or_default()
    }
}
