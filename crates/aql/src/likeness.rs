//! RFC 0020 A.3 R5: which candidates only repeat another one of their owner (decisions/0255).
//!
//! A sketch is 64 bits that are nearly the same for records that are. Every value votes once, whatever its length, with
//! the place where it stands; names and promises do not vote. So the sketch of a record is made when it comes in,
//! and two records are compared without being loaded.
//!
//! INVARIANT: nothing is left out of an answer for being a repetition; it comes later.

use json::{Kind, Node};
use std::collections::HashMap;

/// Bits in which the sketches of two records may differ that are nearly the same: about one value in ten.
pub const NEAR_BITS: u32 = 10;
/// Different candidates of one owner that later ones are held against; more than any page shows.
pub const LEADERS_MAX: usize = 256;

/// Members that do not vote: names, in which copies differ by necessity, and what an owner promises of his own service.
const SILENT: [&str; 8] = ["action_id", "cost_disclosure", "did", "id", "manifest_id", "offer_id", "sla", "tool_did"];
/// Bytes of a text that vote.
const TEXT_BYTES_MAX: usize = 256;

/// The sketch of a record.
pub fn sketch(record: Node<'_>) -> u64 {
    let mut votes = Votes::default();
    cast(record, FNV_BASIS, &mut votes);
    votes.majority()
}

/// What was voted for each of 64 bits.
///
/// Counted for all of them at once: the lowest digits of all counts stand in one word, the next ones in the next.
#[derive(Default)]
struct Votes {
    digits: [u64; 32],
    cast: u32,
}

impl Votes {
    fn add(&mut self, vote: u64) {
        let mut carry = vote;
        for digit in &mut self.digits {
            (*digit, carry) = (*digit ^ carry, *digit & carry);
            if carry == 0 {
                break;
            }
        }
        self.cast = self.cast.wrapping_add(1);
    }

    /// The bits that more than half of the votes have.
    fn majority(&self) -> u64 {
        let half = self.cast / 2;
        let (more, _) = self.digits.iter().enumerate().rev().fold((0, u64::MAX), |(more, same), (place, digit)| {
            if half >> place & 1 == 1 { (more, same & digit) } else { (more | same & digit, same & !digit) }
        });
        more
    }
}

fn cast(node: Node<'_>, path: u64, votes: &mut Votes) {
    let mut vote = |hash: u64| votes.add(mix(hash));
    match node.kind() {
        Kind::Object => {
            for (name, member) in node.members().filter(|(name, _)| !SILENT.contains(name)) {
                cast(member, hashed(hashed(path, name.bytes()), [0]), votes);
            }
        }
        Kind::Array => node.elements().for_each(|element| cast(element, path, votes)),
        Kind::Null => vote(hashed(path, *b"0")),
        Kind::Bool => vote(hashed(path, *if node.as_bool() == Some(true) { b"t" } else { b"f" })),
        // Nought has one spelling.
        Kind::Number => vote(hashed(path, (node.as_f64().unwrap_or_default() + 0.0).to_le_bytes())),
        Kind::String => vote(text(path, node.as_str().unwrap_or_default())),
    }
}

/// Amounts, dates and versions vote as they are; other texts without digits, marks, blanks and capitals, since whoever
/// numbers copies has changed nothing.
fn text(path: u64, text: &str) -> u64 {
    let bytes = text.bytes().take(TEXT_BYTES_MAX);
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return hashed(path, bytes);
    }
    let counts = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    hashed(path, bytes.filter(counts).map(|byte| byte.to_ascii_lowercase()))
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a, continued.
fn hashed(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Spreads what the last bytes did over all bits.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 32
}

/// The house of whoever published a record, or of whom the record names; at last a candidate is its own.
pub fn owner(publisher: Option<&str>, record: Node<'_>, id: &str) -> String {
    house(publisher.or_else(|| named_owner(record)).unwrap_or(id))
}

fn named_owner(record: Node<'_>) -> Option<&str> {
    let tool = record.get("tool");
    let named = [
        tool.and_then(|tool| tool.get("did")),
        record.get("tool_did"),
        record.get("provider_did"),
        record.get("publisher_did"),
        record.get("did"),
    ];
    named.into_iter().flatten().find_map(Node::as_str)
}

/// The house that a DID lives in: all names of one host are one owner's, any other DID is its own.
///
/// Not the domain: under many of them strangers live, and nobody may push another back by copying him.
pub fn house(did: &str) -> String {
    let host = ["did:web:", "did:wba:"].iter().find_map(|method| did.strip_prefix(method));
    let Some(host) = host.and_then(|rest| rest.split(':').next()) else {
        return did.split('#').next().unwrap_or(did).to_owned();
    };
    let host = host.to_ascii_lowercase();
    host.split("%3a").next().unwrap_or(&host).to_owned()
}

/// The first of their kind in an answer, by owner, in its order.
#[derive(Clone, Debug, Default)]
pub struct Leaders {
    of: HashMap<String, Vec<(u64, String)>>,
}

impl Leaders {
    /// Whom a candidate of an owner repeats.
    pub fn repeated(&self, owner: &str, sketch: u64) -> Option<&str> {
        let near = |(leader, _): &&(u64, String)| (leader ^ sketch).count_ones() <= NEAR_BITS;
        self.of.get(owner)?.iter().find(near).map(|(_, id)| id.as_str())
    }

    /// A candidate that repeats nobody is in the answer.
    pub fn add(&mut self, owner: String, sketch: u64, id: &str) {
        let leaders = self.of.entry(owner).or_default();
        if leaders.len() < LEADERS_MAX {
            leaders.push((sketch, id.to_owned()));
        }
    }

    /// The candidate that was added last for its owner is not in the answer yet.
    pub fn take_back(&mut self, owner: &str, id: &str) {
        if let Some(leaders) = self.of.get_mut(owner) {
            leaders.pop_if(|(_, last)| last == id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, Value, json};

    fn of(value: &Value) -> u64 {
        sketch(Document::of(value).unwrap().root())
    }

    fn manifest(number: usize) -> Value {
        json!({
            "oap_version": "1.0", "risk_class": "minimal", "tool": {"did": format!("did:web:t{number}.shop.example"),
                "id": format!("tide-{number}"), "name": format!("Tide tables {number}"), "categories": ["maps", "sea"]},
            "description": format!("Tide tables of every harbour, edition {number}."),
            "endpoints": {"invoke": format!("https://t{number}.shop.example/oap/invoke")},
            "actions": [{"id": "look", "summary": "Looks one harbour up", "risk_class": "minimal", "idempotent": true}],
            "pricing": {"models": [{"type": "per_call", "amount": "0.10", "currency": "EUR"}]},
            "sla": {"latency_p99_ms": 300, "uptime_target": 0.99, "regions": ["eu"]},
        })
    }

    fn apart(left: &Value, right: &Value) -> u32 {
        (of(left) ^ of(right)).count_ones()
    }

    #[test]
    fn votes_are_counted_as_one_would_count_them_bit_by_bit() {
        let mut votes = Votes::default();
        let mut counted = [0_i32; 64];
        for number in 0..700_u64 {
            let vote = mix(number) & mix(number.wrapping_mul(3)) | 1;
            votes.add(vote);
            for (bit, count) in counted.iter_mut().enumerate() {
                *count += if vote >> bit & 1 == 1 { 1 } else { -1 };
            }
            let expected = counted.iter().rev().fold(0, |sketch, count| sketch << 1 | u64::from(*count > 0));
            assert_eq!(votes.majority(), expected, "after {number}");
        }
        assert_eq!(Votes::default().majority(), 0);
    }

    #[test]
    fn numbered_copies_are_the_same_and_a_changed_value_is_near() {
        assert_eq!(apart(&manifest(1), &manifest(999)), 0);
        for (path, value) in [
            ("/pricing/models/0/amount", json!("0.11")),
            ("/sla/latency_p99_ms", json!(299)),
            ("/description", json!("x ".repeat(10_000))),
        ] {
            let mut other = manifest(2);
            *other.pointer_mut(path).unwrap() = value;
            assert!(apart(&manifest(1), &other) <= NEAR_BITS, "{path}: {}", apart(&manifest(1), &other));
        }
    }

    #[test]
    fn what_differs_in_more_than_a_few_values_is_something_else() {
        let mut other = manifest(1);
        other["tool"]["name"] = json!("Bus times");
        other["description"] = json!("When the bus leaves");
        other["tool"]["categories"] = json!(["transport"]);
        other["actions"][0]["summary"] = json!("Looks one stop up");
        assert!(apart(&manifest(1), &other) > NEAR_BITS, "{}", apart(&manifest(1), &other));
        let flight = |departs: &str, arrives: &str, amount: &str| {
            json!({"offer_id": departs, "provider_did": "did:web:air.example", "from": "VCE", "to": "LIS", "stops": 0,
                "departs": departs, "arrives": arrives, "price": {"amount": amount, "currency": "EUR"}})
        };
        let (early, late) = (
            flight("2026-11-16T06:10:00Z", "2026-11-16T09:00:00Z", "80.00"),
            flight("2026-11-16T19:30:00Z", "2026-11-16T22:20:00Z", "120.00"),
        );
        assert!(apart(&early, &late) > NEAR_BITS);
    }

    #[test]
    fn a_house_has_many_names() {
        for (did, expected) in [
            ("did:web:T1.shop.example", "t1.shop.example"),
            ("did:web:shop.example%3A8443:tools:7", "shop.example"),
            ("did:wba:a.shop.co.uk:agent", "a.shop.co.uk"),
            ("did:web:localhost", "localhost"),
            ("did:key:z6Mk#z6Mk", "did:key:z6Mk"),
            ("urn:x:1", "urn:x:1"),
        ] {
            assert_eq!(house(did), expected);
        }
    }

    #[test]
    fn an_owner_is_held_against_what_he_has_in_front() {
        let mut leaders = Leaders::default();
        leaders.add("a".to_owned(), 0, "first");
        assert_eq!(leaders.repeated("a", 0x3ff), Some("first"));
        assert_eq!((leaders.repeated("a", 0x7ff), leaders.repeated("b", 0)), (None, None));
        leaders.add("a".to_owned(), u64::MAX, "second");
        leaders.take_back("a", "first");
        leaders.take_back("a", "second");
        assert_eq!((leaders.repeated("a", u64::MAX), leaders.repeated("a", 1)), (None, Some("first")));
    }
}
