//! RFC 0020 A.3 R2: the values that records have at one path.

use crate::key::{Filed, NumberKey, Ordered, filed};
use aql::Instant;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;

/// Records by what they have at one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    pub(crate) present: RoaringBitmap,
    pub(crate) nulls: RoaringBitmap,
    pub(crate) trues: RoaringBitmap,
    pub(crate) falses: RoaringBitmap,
    pub(crate) arrays: RoaringBitmap,
    pub(crate) objects: RoaringBitmap,
    pub(crate) numbers: BTreeMap<NumberKey, RoaringBitmap>,
    /// Texts filed whole.
    pub(crate) texts: BTreeMap<Box<str>, RoaringBitmap>,
    /// Records with a text too long to be filed whole.
    pub(crate) long: RoaringBitmap,
    /// Texts that are decimals or moments, once more by their order.
    pub(crate) decimals: BTreeMap<NumberKey, RoaringBitmap>,
    pub(crate) moments: BTreeMap<Instant, RoaringBitmap>,
}

impl Column {
    /// Files a value of a record, or takes it out again.
    pub(crate) fn set(&mut self, record: u32, value: &Filed<'_>, add: bool) {
        mark(&mut self.present, record, add);
        match value {
            Filed::Null => mark(&mut self.nulls, record, add),
            Filed::Bool(true) => mark(&mut self.trues, record, add),
            Filed::Bool(false) => mark(&mut self.falses, record, add),
            Filed::Array => mark(&mut self.arrays, record, add),
            Filed::Object => mark(&mut self.objects, record, add),
            Filed::Number(key) => file(&mut self.numbers, *key, record, add),
            Filed::Text(text) => self.set_text(text, record, add),
        }
    }

    fn set_text(&mut self, text: &str, record: u32, add: bool) {
        match filed(text) {
            (whole, true) => file(&mut self.texts, Box::from(whole), record, add),
            (_, false) => mark(&mut self.long, record, add),
        }
        match Ordered::of(text) {
            Some(Ordered::Decimal(key)) => file(&mut self.decimals, key, record, add),
            Some(Ordered::Moment(instant)) => file(&mut self.moments, instant, record, add),
            None => {}
        }
    }
}

fn mark(set: &mut RoaringBitmap, record: u32, add: bool) {
    if add {
        set.insert(record);
    } else {
        set.remove(record);
    }
}

fn file<K: Ord>(map: &mut BTreeMap<K, RoaringBitmap>, key: K, record: u32, add: bool) {
    if add {
        map.entry(key).or_default().insert(record);
    } else if let Some(set) = map.get_mut(&key) {
        set.remove(record);
        if set.is_empty() {
            map.remove(&key);
        }
    }
}
