//! RFC 0020 A.3 R2: one index for each collection.
//!
//! A question is asked of one collection, so the candidates of each are numbered by themselves: their sets are dense,
//! and nobody else's numbers lie between them.
//!
//! INVARIANT: while the node runs, all of them have read the same changes. After a crash one may be ahead of another;
//! it is told again what it knows and takes no notice.

use crate::collection::Collection;
use crate::refusal::Error;
use index::{Index, Made, Merging, New, Sealing};
use std::path::Path;

/// The index of every collection.
#[derive(Debug)]
pub(crate) struct Indexes([Index; Collection::ALL.len()]);

impl Indexes {
    /// Opens the indexes in a folder; one that cannot be used is made again.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let mut indexes = Self(Default::default());
        for collection in Collection::ALL {
            *indexes.of_mut(collection) = opened(&folder.join(collection.name()))?;
        }
        Ok(indexes)
    }

    /// Removes all of their files.
    pub(crate) fn discard(folder: &Path) -> Result<(), Error> {
        Collection::ALL.into_iter().try_for_each(|collection| Ok(Index::discard(&folder.join(collection.name()))?))
    }

    #[expect(clippy::indexing_slicing, reason = "there is an index for each collection")]
    pub(crate) fn of(&self, collection: Collection) -> &Index {
        &self.0[collection as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "there is an index for each collection")]
    fn of_mut(&mut self, collection: Collection) -> &mut Index {
        &mut self.0[collection as usize]
    }

    /// The change up to which all of them have read.
    pub(crate) fn applied(&self) -> u64 {
        self.0.iter().map(Index::applied).min().unwrap_or_default()
    }

    /// The change up to which the one that is furthest has read.
    pub(crate) fn furthest(&self) -> u64 {
        self.0.iter().map(Index::applied).max().unwrap_or_default()
    }

    /// How many records have candidates in them, or a few more.
    pub(crate) fn records(&self) -> u64 {
        let stored = |collection: &Collection| !matches!(collection, Collection::Actions | Collection::Restricted);
        Collection::ALL.into_iter().filter(stored).map(|collection| self.of(collection).count()).sum()
    }

    /// Whether a collection has not read this change yet.
    pub(crate) fn is_new(&self, source: u64, collection: Collection) -> bool {
        source > self.of(collection).applied()
    }

    /// Files candidates, but those that their index knows already.
    pub(crate) fn insert(&mut self, collection: Collection, mut candidates: Vec<New<'_>>) -> Result<(), Error> {
        candidates.retain(|new| self.is_new(new.source, collection));
        let full = |_| Error::fault("the index has no number left for another candidate");
        self.of_mut(collection).insert_all(&candidates).map_err(full)
    }

    /// The candidates of a record are no longer there.
    pub(crate) fn remove(&mut self, source: u64) {
        self.0.iter_mut().for_each(|index| index.remove(source));
    }

    /// Everything up to this change is in.
    pub(crate) fn advance(&mut self, sequence: u64) {
        self.0.iter_mut().for_each(|index| index.advance(sequence));
    }

    /// How many candidates are not on the disk.
    pub(crate) fn unsealed(&self) -> usize {
        self.0.iter().map(Index::unsealed).sum()
    }

    /// Whether they have so many candidates that are not on the disk, or one whose writing failed before.
    pub(crate) fn is_ready(&self, at_least: usize) -> bool {
        self.unsealed() >= at_least.max(1) || self.0.iter().any(|index| index.is_ready(usize::MAX))
    }

    /// Freezes all of them together when they have so many candidates that are not on the disk.
    ///
    /// Together, because a start reads the log from where the first of them stopped.
    pub(crate) fn freeze(&mut self, at_least: usize) -> Vec<(Collection, Sealing)> {
        if !self.is_ready(at_least) {
            return Vec::new();
        }
        let sealing = |collection| Some((collection, self.of_mut(collection).freeze(1)?));
        Collection::ALL.into_iter().filter_map(sealing).collect()
    }

    /// Takes a made segment in.
    pub(crate) fn adopt(&mut self, collection: Collection, made: Made) -> Result<(), Error> {
        Ok(self.of_mut(collection).adopt(made)?)
    }

    /// Makes durable how far each of them is.
    pub(crate) fn save(&mut self) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|index| Ok(index.save()?))
    }

    /// Segments that are worth merging.
    pub(crate) fn mergeable(&self) -> Option<(Collection, Merging)> {
        Collection::ALL.into_iter().find_map(|collection| Some((collection, self.of(collection).mergeable()?)))
    }
}

fn opened(folder: &Path) -> Result<Index, Error> {
    match Index::open(folder) {
        Ok(index) => Ok(index),
        Err(error) => {
            // Nothing is lost: the log has it all.
            tracing::warn!(%error, "the index cannot be used and is made again");
            Index::discard(folder)?;
            Ok(Index::open(folder)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::{Document, json};

    /// Tells the indexes everything from a change on, as the log would: manifests and offers in turn, one withdrawn.
    fn tell(indexes: &mut Indexes, from: u64) {
        for source in from..=40 {
            let collection = if source % 2 == 0 { Collection::Manifests } else { Collection::Offers };
            let document = Document::of(&json!({"n": source})).unwrap();
            indexes.insert(collection, vec![New { source, fact: b"", document: document.root() }]).unwrap();
            if source == 30 {
                indexes.remove(4);
            }
            indexes.advance(source);
        }
    }

    #[test]
    fn one_that_is_ahead_after_a_crash_takes_no_notice_of_what_it_knows() {
        let folder = tempfile::tempdir().unwrap();
        let mut indexes = Indexes::open(folder.path()).unwrap();
        tell(&mut indexes, 1);
        // The node is killed after the first of several segments is named.
        let (collection, sealing) = indexes.freeze(1).remove(0);
        indexes.adopt(collection, sealing.run().unwrap()).unwrap();
        drop(indexes);
        let mut indexes = Indexes::open(folder.path()).unwrap();
        assert_eq!((indexes.applied(), indexes.furthest()), (0, 40));
        tell(&mut indexes, 1);
        let counts = |indexes: &Indexes| [Collection::Manifests, Collection::Offers].map(|it| indexes.of(it).count());
        assert_eq!((counts(&indexes), indexes.applied()), ([19, 20], 40));
        for (collection, sealing) in indexes.freeze(1) {
            indexes.adopt(collection, sealing.run().unwrap()).unwrap();
        }
        indexes.save().unwrap();
        drop(indexes);
        let indexes = Indexes::open(folder.path()).unwrap();
        assert_eq!((counts(&indexes), indexes.applied()), ([19, 20], 40));
    }
}
