//! RFC 0020 §3.6: the tree over what everybody may see of manifests, kept level with the change log.
//!
//! A manifest gets a leaf when it is published, when a revision looks different to everybody, and when it is taken back.
//! So the tree is a function of what is public, whoever subscribes and whatever is hidden (decisions/0141). While nobody
//! has a standing intent it does not grow; the first one waits until it has caught up.
//!
//! INVARIANT: what is proved to a subscriber is proved to ourselves first.

use super::deliver::Draft;
use super::{Feeds, State};
use crate::publish::commit_refused;
use crate::refusal::Error;
use feed::inclusion;
use std::collections::HashMap;
use store::{Batch, Branch, Change, Feed, Hash, Kind, Leaf, Operation, Sequence, Store};
use trust::{Digest, merkle};

/// Changes that are read at once while the tree catches up.
const CHANGES: usize = 1_000;

/// How far the tree has grown.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Everything up to this change is in it.
    indexed: Sequence,
    /// Its leaves.
    size: u64,
    /// Leaves that are not on disk yet; after a crash they are made again.
    leaves: Vec<Leaf>,
    /// The same of whole subtrees.
    branches: HashMap<(u8, u64), Hash>,
    /// What was proved in the tree as large as it is now, by leaf.
    proofs: HashMap<u64, Vec<u8>>,
}

/// Why there is no proof.
enum Broken {
    /// The tree on disk is not what was written.
    Tree,
    Error(Error),
}

impl From<store::ReadError> for Broken {
    fn from(error: store::ReadError) -> Self {
        Self::Error(error.into())
    }
}

impl Tree {
    /// The tree as it is on disk.
    pub(super) fn open(store: &Store) -> Result<Self, Error> {
        let (indexed, size) = store.tree()?;
        Ok(Self { indexed, size, ..Self::default() })
    }

    /// What is to be written of it.
    pub(super) fn to_write(&self, feed: &mut Feed) {
        if self.leaves.is_empty() {
            return;
        }
        feed.indexed = Some(self.indexed);
        feed.leaves = self.leaves.clone();
        let branches = self.branches.iter();
        feed.branches = branches
            .map(|((level, position), hash)| Branch { level: *level, position: *position, hash: *hash })
            .collect();
    }

    /// Everything of it is on disk.
    pub(super) fn is_written(&mut self) {
        self.leaves.clear();
        self.branches.clear();
    }
}

impl Feeds {
    /// Brings the tree some way towards a change; whether it is there.
    pub(super) fn catch_up(&self, state: &mut State, to: Sequence) -> Result<bool, Error> {
        if state.tree.indexed >= to {
            return Ok(true);
        }
        let mut changes = self.store.changes_after(state.tree.indexed, CHANGES)?;
        changes.retain(|change| change.sequence <= to);
        self.grow(state, &mut Draft::default(), &changes)?;
        let mut feed = Feed { indexed: Some(state.tree.indexed), ..Feed::default() };
        state.tree.to_write(&mut feed);
        let at = self.clock.millis();
        self.store.deliver(Batch { at, ..Batch::default() }, feed).map_err(commit_refused)?;
        state.tree.is_written();
        Ok(state.tree.indexed >= to)
    }

    /// Adds a leaf for each change after which a manifest looks different to everybody.
    pub(super) fn grow(&self, state: &mut State, draft: &mut Draft, changes: &[Change]) -> Result<(), Error> {
        let tree = &mut state.tree;
        for change in changes {
            if change.sequence <= tree.indexed {
                continue;
            }
            if matches!(change.kind, Kind::Manifest | Kind::Description) {
                self.add(tree, draft, change)?;
            }
            tree.indexed = change.sequence;
        }
        Ok(())
    }

    fn add(&self, tree: &mut Tree, draft: &mut Draft, change: &Change) -> Result<(), Error> {
        let before = self.leaf_of(tree, &change.id, change.sequence)?;
        let (public, withdrawn) = match (change.operation, &before) {
            (Operation::Withdraw, None) => return Ok(()),
            (Operation::Withdraw, Some(before)) => (before.public, true),
            (Operation::Put, _) => match self.body(draft, change.sequence)? {
                Some(body) => (body.public(), false),
                None => return Err(Error::fault("a manifest of the log is not in the store")),
            },
        };
        if before.is_some_and(|before| before.public == public && before.withdrawn == withdrawn) {
            return Ok(());
        }
        let leaf = Leaf { index: tree.size, manifest: change.id.clone(), sequence: change.sequence, public, withdrawn };
        let grown = merkle::grow(tree.size, hash(&leaf), |level, position| self.whole(tree, level, position));
        let grown = grown.map_err(|broken| self.mended(broken))?;
        let branches = grown.into_iter().map(|(level, position, hash)| ((level, position), Hash(*hash.as_bytes())));
        tree.branches.extend(branches);
        tree.leaves.push(leaf);
        tree.proofs.clear();
        tree.size += 1;
        Ok(())
    }

    /// The proof that a manifest, as everybody could see it after a change, is in the tree.
    pub(super) fn proof(&self, tree: &mut Tree, id: &str, at: Sequence) -> Result<Vec<u8>, Error> {
        let leaf = self.leaf_of(tree, id, at)?;
        let leaf = leaf.ok_or_else(|| self.mended(Broken::Tree))?;
        if let Some(proof) = tree.proofs.get(&leaf.index) {
            return Ok(proof.clone());
        }
        let proof = self.prove(tree, &leaf).map_err(|broken| self.mended(broken))?;
        tree.proofs.insert(leaf.index, proof.clone());
        Ok(proof)
    }

    fn prove(&self, tree: &Tree, leaf: &Leaf) -> Result<Vec<u8>, Broken> {
        let whole = |level, position| self.whole(tree, level, position);
        let path = merkle::path(leaf.index, tree.size, whole)?;
        let root = merkle::root(tree.size, whole)?;
        if merkle::root_of(hash(leaf), leaf.index, tree.size, &path) != Some(root) {
            return Err(Broken::Tree);
        }
        Ok(told(leaf).proved(leaf.index, tree.size, &path, root))
    }

    fn leaf_of(&self, tree: &Tree, id: &str, at: Sequence) -> Result<Option<Leaf>, Error> {
        let new = tree.leaves.iter().rev().find(|leaf| leaf.sequence <= at && leaf.manifest == id);
        match new {
            Some(leaf) => Ok(Some(leaf.clone())),
            None => self.store.leaf_of(id, at).map_err(|_| self.mended(Broken::Tree)),
        }
    }

    fn whole(&self, tree: &Tree, level: u8, position: u64) -> Result<Digest, Broken> {
        let known = match tree.branches.get(&(level, position)) {
            Some(hash) => Some(*hash),
            None => self.store.branch(level, position)?,
        };
        known.map(|hash| Digest::from_bytes(hash.0)).ok_or(Broken::Tree)
    }

    /// Has a tree that is not what was written made again; the step is made once more after that.
    fn mended(&self, broken: Broken) -> Error {
        match broken {
            Broken::Error(error) => error,
            Broken::Tree => {
                self.felled.store(true, std::sync::atomic::Ordering::Release);
                Error::fault("the tree over manifests is not what was written; it is made again from the log")
            }
        }
    }

    /// Throws the tree away, when it is not what was written.
    pub(super) fn fell(&self, state: &mut State) -> Result<(), Error> {
        if !self.felled.swap(false, std::sync::atomic::Ordering::AcqRel) {
            return Ok(());
        }
        let feed = Feed { felled: true, indexed: Some(0), ..Feed::default() };
        let batch = Batch { at: self.clock.millis(), ..Batch::default() };
        self.store.deliver(batch, feed).map_err(commit_refused)?;
        state.tree = Tree::default();
        Ok(())
    }
}

fn told(leaf: &Leaf) -> inclusion::Leaf<'_> {
    let manifest_hash = Digest::from_bytes(leaf.public.0);
    inclusion::Leaf { manifest_id: &leaf.manifest, manifest_hash, withdrawn: leaf.withdrawn }
}

fn hash(leaf: &Leaf) -> Digest {
    told(leaf).hash()
}
