//! RFC 0020 A.2, A.3 R5: what ranking needs to know of a candidate, so that nobody loads what is not returned.
//!
//! The index keeps these few bytes beside each candidate and gives them back. They hold exact amounts, so that a
//! candidate is over budget here when it is over budget there. What ranks a candidate comes first and is written
//! tightly: mostly it is all within what the index shows at a glance.

use crate::collection::{Collection, declared, subject};
use aql::{Amount, Category, Signals};
use json::Node;

/// What is known of a candidate without its record.
///
/// What every candidate is ranked by comes first and is short; the names, which few are asked for, are read on demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fact<'a> {
    /// Which action of a manifest it is, from 1; 0 is the record itself.
    pub(crate) part: u16,
    /// A number that follows from the candidate's id: an order that is the same on every node and needs no names.
    pub(crate) digest: u32,
    latency_p99_ms: Option<f64>,
    /// The prices, and after them the names.
    rest: &'a [u8],
}

/// Which categories a price is for.
const MASKS: [(Category, u8); 5] = [
    (Category::Discovery, 1),
    (Category::Commercial, 2),
    (Category::Knowledge, 4),
    (Category::Action, 8),
    (Category::Delegation, 16),
];

/// Marks a price of nothing in every currency.
const FREE: u8 = 128;
/// Marks the end of the prices.
const NO_PRICE: u8 = 0;

const HAS_LATENCY: u8 = 1;
/// The latency is a whole number that two bytes hold.
const SHORT_LATENCY: u8 = 2;
/// It is an action of a manifest, and says which.
const HAS_PART: u8 = 4;

/// Writes the fact of a record; `publisher` is who signed it, where somebody did.
pub(crate) fn encode(
    collection: Collection,
    part: u16,
    id: &str,
    publisher: Option<&str>,
    record: Node<'_>,
) -> Vec<u8> {
    let latency = declared(record).latency_p99_ms;
    let mut bytes = Vec::with_capacity(id.len() * 2 + 48);
    let short = latency.map(|latency| latency as u16).filter(|short| latency == Some(f64::from(*short)));
    let latency = latency.filter(|_| short.is_none());
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    bytes.push(flag(latency.is_some(), HAS_LATENCY) | flag(short.is_some(), SHORT_LATENCY) | flag(part != 0, HAS_PART));
    bytes.extend(crc32fast::hash(id.as_bytes()).to_le_bytes());
    bytes.extend(short.into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(latency.into_iter().flat_map(f64::to_le_bytes));
    bytes.extend(Some(part).filter(|part| *part != 0).into_iter().flat_map(u16::to_le_bytes));
    put_prices(&mut bytes, collection, record);
    bytes.push(NO_PRICE);
    put_text(&mut bytes, id);
    let subject = subject(collection, record);
    put_text(&mut bytes, subject.filter(|subject| *subject != id).unwrap_or_default());
    let owner = aql::owner(publisher, record, id);
    put_text(&mut bytes, if owner == aql::house(subject.unwrap_or(id)) { "" } else { &owner });
    bytes.extend(aql::sketch(record).to_le_bytes());
    bytes
}

/// The categories that a collection answers.
fn categories(collection: Collection) -> &'static [Category] {
    match collection {
        Collection::Manifests => &[Category::Discovery, Category::Delegation],
        Collection::Offers => &[Category::Commercial],
        Collection::Knowledge => &[Category::Knowledge],
        Collection::Actions => &[Category::Action],
        Collection::Receipts | Collection::Evidence | Collection::Restricted => &[],
    }
}

fn put_prices(bytes: &mut Vec<u8>, collection: Collection, record: Node<'_>) {
    let mut listed: Vec<(u8, aql::Costs)> = Vec::new();
    for &category in categories(collection) {
        let costs = category.costs(record);
        match listed.iter_mut().find(|(_, known)| *known == costs) {
            Some((mask, _)) => *mask |= mask_of(category),
            None => listed.push((mask_of(category), costs)),
        }
    }
    for (mask, costs) in listed {
        if costs.free {
            bytes.push(mask | FREE);
        }
        for money in &costs.listed {
            // An intent cannot ask for a currency with a longer name.
            let Ok(length) = u8::try_from(money.currency.len()) else { continue };
            bytes.extend([mask, length]);
            bytes.extend(money.currency.as_bytes());
            put_amount(bytes, money.amount);
        }
    }
}

fn mask_of(category: Category) -> u8 {
    MASKS.iter().find(|(known, _)| *known == category).map_or(0, |(_, mask)| *mask)
}

/// Texts are cut at what two bytes can count; identifiers are far shorter.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or_default();
    bytes.extend(length.to_le_bytes());
    if length > 0 || text.is_empty() {
        bytes.extend(text.as_bytes());
    }
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(bytes)?).ok()
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_le_bytes(take(bytes)?);
    let (text, rest) = bytes.split_at_checked(usize::from(length))?;
    *bytes = rest;
    Some(text)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Writes an amount as digits and zeros: most prices have few digits.
fn put_amount(bytes: &mut Vec<u8>, amount: Amount) {
    let (mut digits, mut zeros) = (amount.units(), 0);
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        zeros += 1;
    }
    bytes.push(zeros);
    while digits > 0x7f {
        bytes.push(digits as u8 | 0x80);
        digits >>= 7;
    }
    bytes.push(digits as u8);
}

/// The powers of ten that an amount can have.
#[expect(clippy::indexing_slicing, reason = "it happens while the program is made")]
const POWERS: [u128; 39] = {
    let mut powers = [1; 39];
    let mut power = 1;
    while power < powers.len() {
        powers[power] = powers[power - 1] * 10;
        power += 1;
    }
    powers
};

fn take_amount(bytes: &mut &[u8]) -> Option<Amount> {
    let [zeros] = take(bytes)?;
    let (mut digits, mut shift) = (0_u128, 0);
    loop {
        let [byte] = take(bytes)?;
        digits |= u128::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(Amount::from_units(digits.checked_mul(*POWERS.get(usize::from(zeros))?)?));
        }
    }
}

/// The next price: whom it is for, its currency, and how much; `None` after the last.
fn take_price<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8], Amount)> {
    let [mask] = take(bytes)?;
    match mask {
        NO_PRICE => None,
        mask if mask & FREE != 0 => Some((mask, &[], Amount::ZERO)),
        mask => {
            let [length] = take(bytes)?;
            let (currency, rest) = bytes.split_at_checked(usize::from(length))?;
            *bytes = rest;
            Some((mask, currency, take_amount(bytes)?))
        }
    }
}

/// Passes over a price without working it out.
fn pass_price(bytes: &mut &[u8]) -> Option<()> {
    let [mask] = take(bytes)?;
    if mask & FREE == 0 {
        let [length] = take(bytes)?;
        // Behind the currency stands one byte of zeros, then digits up to one that has no mark.
        let digits = bytes.get(usize::from(length) + 1..)?;
        let last = digits.iter().position(|byte| byte & 0x80 == 0)?;
        *bytes = digits.get(last + 1..)?;
    }
    Some(())
}

impl<'a> Fact<'a> {
    /// Reads what [`encode`] wrote.
    pub(crate) fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let [flags] = take(bytes)?;
        let digest = u32::from_le_bytes(take(bytes)?);
        let latency_p99_ms = match flags & (HAS_LATENCY | SHORT_LATENCY) {
            0 => None,
            SHORT_LATENCY => Some(f64::from(u16::from_le_bytes(take(bytes)?))),
            _ => Some(f64::from_le_bytes(take(bytes)?)),
        };
        let part = if flags & HAS_PART == 0 { 0 } else { u16::from_le_bytes(take(bytes)?) };
        Some(Self { part, digest, latency_p99_ms, rest: bytes })
    }

    /// Reads the beginning of what [`encode`] wrote, when all that ranks the candidate is in it; its names are not.
    pub(crate) fn glance(bytes: &'a [u8]) -> Option<Self> {
        let fact = Self::read(bytes)?;
        let mut rest = fact.rest;
        while *rest.first()? != NO_PRICE {
            pass_price(&mut rest)?;
        }
        Some(fact)
    }

    fn names(&self) -> &'a [u8] {
        let mut rest = self.rest;
        while rest.first().is_some_and(|mask| *mask != NO_PRICE) && pass_price(&mut rest).is_some() {}
        rest.get(1..).unwrap_or_default()
    }

    /// What the candidate is called.
    pub(crate) fn id(&self) -> &'a str {
        take_text(&mut self.names()).unwrap_or_default()
    }

    /// Whose evidence counts.
    pub(crate) fn subject(&self) -> &'a str {
        let mut names = self.names();
        let id = take_text(&mut names).unwrap_or_default();
        take_text(&mut names).filter(|subject| !subject.is_empty()).unwrap_or(id)
    }

    /// Whose it is, and its sketch; nothing where the fact does not say.
    pub(crate) fn likeness(&self) -> Option<(String, u64)> {
        let mut names = self.names();
        let (id, subject) = (take_text(&mut names)?, take_text(&mut names)?);
        let owner = match take_text(&mut names)? {
            "" => aql::house(if subject.is_empty() { id } else { subject }),
            owner => owner.to_owned(),
        };
        Some((owner, u64::from_le_bytes(take(&mut names)?)))
    }

    /// The prices in a category, with their currencies.
    pub(crate) fn prices(&self, category: Category) -> impl Iterator<Item = (&'a [u8], Amount)> {
        let (mut prices, wanted) = (self.rest, mask_of(category));
        let listed = std::iter::from_fn(move || take_price(&mut prices));
        let asked = listed.filter(move |(mask, ..)| mask & wanted != 0 && mask & FREE == 0);
        asked.map(|(_, currency, amount)| (currency, amount))
    }

    /// The cost in a currency, as [`Category::cost`] finds it in the record.
    pub(crate) fn cost(&self, category: Category, currency: &str) -> Option<Amount> {
        let (mut prices, wanted) = (self.rest, mask_of(category));
        let mut lowest: Option<Amount> = None;
        while let Some((mask, name, amount)) = take_price(&mut prices) {
            if mask & wanted == 0 {
                continue;
            }
            if mask & FREE != 0 {
                return Some(Amount::ZERO);
            }
            if name == currency.as_bytes() {
                lowest = Some(lowest.map_or(amount, |lowest| lowest.min(amount)));
            }
        }
        lowest
    }

    /// What is known of its quality, with the word of others.
    pub(crate) fn signals(&self, others: Option<&Signals>) -> Signals {
        let others = others.cloned().unwrap_or_default();
        Signals { latency_p99_ms: others.latency_p99_ms.or(self.latency_p99_ms), ..others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, json};

    #[test]
    fn a_fact_knows_the_cost_that_the_record_declares() {
        let records = [
            json!({"pricing": {"models": [{"type": "per_call", "amount": "0.30", "currency": "EUR"},
                {"type": "per_call", "amount": "0.2", "currency": "EUR"}, {"type": "per_call", "amount": "1", "currency": "USD"}]}}),
            json!({"pricing": {"models": [{"type": "free"}, {"type": "per_call", "amount": "2", "currency": "EUR"}]}}),
            json!({"price": {"amount": "12.5", "currency": "EUR"}, "cost": {"type": "free"}}),
            json!({"cost": {"type": "per_call", "amount": "0.000000000000000001", "currency": "EUR"}}),
            json!({"price": {"amount": "many", "currency": "EUR"}, "pricing": {"models": [{"type": "free"}]}}),
            json!({}),
        ];
        let collections = [Collection::Manifests, Collection::Offers, Collection::Knowledge, Collection::Actions];
        for record in &records {
            let document = Document::of(record).unwrap();
            for collection in collections {
                let bytes = encode(collection, 3, "did:web:x.example", None, document.root());
                let fact = Fact::read(&bytes).unwrap();
                assert_eq!((fact.part, fact.id()), (3, "did:web:x.example"));
                // A beginning says the same as the whole, or nothing.
                let named = bytes.len() - fact.names().len();
                for (cut, part) in (0..bytes.len()).map(|cut| (cut, &bytes[..cut])) {
                    let glanced = Fact::glance(part);
                    assert_eq!(glanced.is_some(), cut >= named, "{record} cut at {cut}");
                    let cost = |fact: Fact<'_>| fact.cost(Category::Discovery, "EUR");
                    assert!(glanced.is_none_or(|glanced| (glanced.part, cost(glanced)) == (3, cost(fact))));
                }
                for &category in categories(collection) {
                    for currency in ["EUR", "USD", "CHF"] {
                        let expected = category.cost(document.root(), currency);
                        assert_eq!(fact.cost(category, currency), expected, "{record} {category:?} {currency}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_fact_knows_the_quality_that_the_record_declares() {
        for latency in [0.0, 0.5, 65_535.0, 65_536.0, 1e12] {
            let document = Document::of(&json!({"sla": {"latency_p99_ms": latency}})).unwrap();
            let bytes = encode(Collection::Manifests, 0, "did:web:x.example", None, document.root());
            assert_eq!(Fact::glance(&bytes).unwrap().signals(None).latency_p99_ms, Some(latency));
        }
        let record = json!({"sla": {"latency_p99_ms": 300}, "irreversibility_cooling_off_seconds": 7200,
            "provider_did": "did:web:p.example"});
        let document = Document::of(&record).unwrap();
        let bytes = encode(Collection::Offers, 0, "urn:oap:offer:1", None, document.root());
        let fact = Fact::read(&bytes).unwrap();
        assert_eq!(fact.subject(), "did:web:p.example");
        let sketch = aql::sketch(document.root());
        assert_eq!(fact.likeness(), Some(("p.example".to_owned(), sketch)));
        let signed = encode(Collection::Offers, 0, "urn:oap:offer:1", Some("did:key:z6Mk"), document.root());
        assert_eq!(Fact::read(&signed).unwrap().likeness(), Some(("did:key:z6Mk".to_owned(), sketch)));
        let signals = fact.signals(None);
        // A cooling-off time in praise of oneself is no evidence.
        assert_eq!((signals.latency_p99_ms, signals.cooling_off_minutes), (Some(300.0), None));
        assert!((0..7).all(|cut| Fact::read(&bytes[..cut]).is_none()));
    }
}
