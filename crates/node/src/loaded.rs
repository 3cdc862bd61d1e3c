//! RFC 0020 A.3 R3: records that were read lately, as documents.
//!
//! The best of a market are in many answers. A stored record never changes, a new revision has a number of its own, so
//! what was read once may be kept for as long as there is room.
//!
//! INVARIANT: what is kept is what is stored, whole; every viewer's view is cut from it anew.

use crate::catalog::parsed;
use crate::refusal::Error;
use json::Document;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use store::Store;

/// Bytes of documents that are kept.
const BYTES_MAX: usize = 64 << 20;
/// Parts with a lock each, so that those who ask at once hardly wait for each other.
const PARTS: usize = 16;

type Documents = HashMap<u64, Arc<Document>>;

/// Records that were read lately.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    parts: [Mutex<Part>; PARTS],
}

/// Two generations: when the young one has grown, it becomes the old one, and what nobody asked for since is gone.
#[derive(Debug, Default)]
struct Part {
    young: Documents,
    young_bytes: usize,
    old: Documents,
}

impl Loaded {
    /// The documents of records, in the order given.
    pub(crate) fn documents(&self, store: &Store, numbers: &[u64]) -> Result<Vec<Arc<Document>>, Error> {
        let known: Vec<_> = numbers.iter().map(|number| self.find(*number)).collect();
        let unknown = numbers.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(number, _)| *number);
        let unknown: Vec<u64> = unknown.collect();
        let mut bodies = if unknown.is_empty() { Vec::new() } else { store.bodies(&unknown)? }.into_iter();
        let load = |(number, known): (&u64, Option<Arc<Document>>)| match known {
            Some(document) => Ok(document),
            None => {
                let missing = || Error::fault(format!("the record {number} is missing"));
                let body = bodies.next().flatten().ok_or_else(missing)?;
                let document = Arc::new(parsed(&body)?);
                self.keep(*number, &document);
                Ok(document)
            }
        };
        numbers.iter().zip(known).map(load).collect()
    }

    fn part(&self, number: u64) -> Option<&Mutex<Part>> {
        self.parts.get(number as usize % PARTS)
    }

    fn find(&self, number: u64) -> Option<Arc<Document>> {
        let mut part = self.part(number)?.lock().ok()?;
        match part.young.get(&number) {
            Some(document) => Some(Arc::clone(document)),
            None => {
                let document = part.old.remove(&number)?;
                part.keep(number, &document);
                Some(document)
            }
        }
    }

    fn keep(&self, number: u64, document: &Arc<Document>) {
        if let Some(Ok(mut part)) = self.part(number).map(Mutex::lock) {
            part.keep(number, document);
        }
    }
}

impl Part {
    fn keep(&mut self, number: u64, document: &Arc<Document>) {
        let bytes = document.memory();
        if self.young_bytes + bytes > BYTES_MAX / PARTS / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(number, Arc::clone(document)).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn what_is_kept_stays_within_its_bound_and_what_is_asked_for_stays() {
        let (loaded, text) = (Loaded::default(), "x".repeat(10_000));
        let document = |number: u64| Arc::new(Document::of(&json!({"number": number, "text": text})).unwrap());
        loaded.keep(0, &document(0));
        for number in 1..20_000 {
            loaded.keep(number, &document(number));
            let favourite = loaded.find(0).unwrap();
            assert_eq!(favourite.root().get("number").and_then(json::Node::as_f64), Some(0.0));
        }
        let kept = |part: &Mutex<Part>| {
            let part = part.lock().unwrap();
            part.young.values().chain(part.old.values()).map(|document| document.memory()).sum::<usize>()
        };
        let bytes: usize = loaded.parts.iter().map(kept).sum();
        assert!((BYTES_MAX / 4..=BYTES_MAX).contains(&bytes), "{bytes}");
        assert!(loaded.find(1).is_none() && loaded.find(19_999).is_some());
    }

    #[test]
    fn a_document_larger_than_its_part_is_given_and_soon_forgotten() {
        let loaded = Loaded::default();
        let large = Arc::new(Document::of(&json!("x".repeat(BYTES_MAX / PARTS))).unwrap());
        loaded.keep(1, &large);
        assert!(loaded.find(1).is_some());
        for number in 1..4 {
            loaded.keep(1 + number * PARTS as u64, &large);
        }
        assert!(loaded.find(1).is_none());
    }
}
