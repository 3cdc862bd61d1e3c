//! RFC 0020 A.3 R5: `rialto.rank` 1.1: what repeats another candidate of its owner comes after the others.
//!
//! Written from decisions/0255: every scalar outside of the silent members votes on 64 bits with a hash of its place
//! and its value; records whose majorities differ in at most ten bits are nearly the same.

use crate::value::Value;

const NEAR_BITS: u32 = 10;
const LEADERS_MAX: usize = 256;
const SILENT_MEMBERS: [&str; 8] =
    ["id", "did", "offer_id", "action_id", "manifest_id", "tool_did", "sla", "cost_disclosure"];
const OWNER_PLACES: [&[&str]; 5] = [&["tool", "did"], &["tool_did"], &["provider_did"], &["publisher_did"], &["did"]];

/// What stands in front: owner, sketch and id, in the order of the answer.
#[derive(Default)]
pub(crate) struct Front(Vec<(String, u64, String)>);

impl Front {
    /// The id of the candidate that this one repeats; one that repeats nobody is put in front.
    pub(crate) fn enter(&mut self, record: &Value, id: &str) -> Option<String> {
        let (owner, sketch) = (owner(record, id), sketch(record));
        let own: Vec<&(String, u64, String)> = self.0.iter().filter(|(other, ..)| *other == owner).collect();
        let near = own.iter().find(|(_, other, _)| (other ^ sketch).count_ones() <= NEAR_BITS);
        let repeated = near.map(|(_, _, id)| id.clone());
        if repeated.is_none() && own.len() < LEADERS_MAX {
            self.0.push((owner, sketch, id.to_owned()));
        }
        repeated
    }
}

fn owner(record: &Value, id: &str) -> String {
    let at = |place: &&[&str]| place.iter().try_fold(record, |value, name| value.member(name))?.text();
    let did = OWNER_PLACES.iter().find_map(at).unwrap_or(id);
    for method in ["did:web:", "did:wba:"] {
        if let Some(rest) = did.strip_prefix(method) {
            let host = rest.split(':').next().unwrap_or_default().to_ascii_lowercase();
            return host.split("%3a").next().unwrap_or_default().to_owned();
        }
    }
    did.split('#').next().unwrap_or_default().to_owned()
}

fn sketch(record: &Value) -> u64 {
    let mut hashes = Vec::new();
    collect(record, &[], &mut hashes);
    let mut sketch = 0;
    for bit in 0..64 {
        let ones = hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count();
        if 2 * ones > hashes.len() {
            sketch |= 1 << bit;
        }
    }
    sketch
}

/// The hashes of all scalars; `place` is the names that lead to this value, each with a nought behind it.
fn collect(value: &Value, place: &[u8], hashes: &mut Vec<u64>) {
    let mut bytes = place.to_vec();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if !SILENT_MEMBERS.contains(&name.as_str()) {
                    let place = [place, name.as_bytes(), &[0]].concat();
                    collect(member, &place, hashes);
                }
            }
            return;
        }
        Value::Array(elements) => {
            for element in elements {
                collect(element, place, hashes);
            }
            return;
        }
        Value::Null => bytes.push(b'0'),
        Value::Bool(true) => bytes.push(b't'),
        Value::Bool(false) => bytes.push(b'f'),
        Value::Number(number) => bytes.extend((number + 0.0).to_le_bytes()),
        Value::String(text) => bytes.extend(voting(text)),
    }
    hashes.push(hash(&bytes));
}

/// The bytes of a text that count: all where it begins with a digit, else its letters in small.
fn voting(text: &str) -> Vec<u8> {
    let bytes = text.bytes().take(256);
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return bytes.collect();
    }
    bytes.filter(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80).map(|byte| byte.to_ascii_lowercase()).collect()
}

/// FNV-1a, and three rounds that spread it over all bits.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[test]
    fn a_numbered_copy_of_one_owner_repeats_and_nobody_elses_does() {
        let offer = |number: u32, provider: &str| {
            value(&format!(
                r#"{{"offer_id":"o{number}","provider_did":"{provider}","title":"Boat {number}","price":{{"amount":"3","currency":"EUR"}},"from":"Rialto","to":"Torcello","seats":8,"days":["mon","wed"],"crew":2,"covered":true}}"#
            ))
        };
        let mut front = Front::default();
        assert_eq!(front.enter(&offer(1, "did:web:a.example"), "o1"), None);
        assert_eq!(front.enter(&offer(2, "did:web:A.example%3A8443:shop"), "o2"), Some("o1".to_owned()));
        assert_eq!(front.enter(&offer(3, "did:web:b.example"), "o3"), None);
        assert_eq!(front.enter(&value(r#"{"offer_id":"o4","provider_did":"did:web:a.example","x":1}"#), "o4"), None);
    }
}
