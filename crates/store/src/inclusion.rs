//! RFC 0020 §3.6: the tree over what everybody may see of manifests, as it is kept: leaves in order, and the hashes of
//! whole subtrees above them. What the hashes mean is not known here.

use crate::change::{Hash, Sequence};
use sha2::{Digest, Sha256};

/// One entry of the tree: a manifest as everybody saw it from a change on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its place, from nought.
    pub index: u64,
    /// Which manifest.
    pub manifest: String,
    /// Since which change.
    pub sequence: Sequence,
    /// The hash of all that everybody could see of it.
    pub public: Hash,
    /// Whether it was taken back.
    pub withdrawn: bool,
}

/// The hash of a whole subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// How many times its leaves are halved; nought for a leaf.
    pub level: u8,
    /// Which of its level, from nought.
    pub position: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Leaf {
    /// The hash as it is kept, with a checksum over all of the leaf.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let mut digest = Sha256::new();
        for number in [self.index, self.sequence, u64::from(self.withdrawn)] {
            digest.update(number.to_be_bytes());
        }
        digest.update(&self.manifest);
        with_checksum(self.public, digest)
    }
}

impl Branch {
    /// The hash as it is kept, with a checksum over all of the branch.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let mut digest = Sha256::new();
        digest.update([self.level]);
        digest.update(self.position.to_be_bytes());
        with_checksum(self.hash, digest)
    }
}

fn with_checksum(hash: Hash, mut digest: Sha256) -> Vec<u8> {
    digest.update(hash.0);
    hash.0.into_iter().chain(digest.finalize().into_iter().take(8)).collect()
}

/// The hash of what was kept, without its checksum.
pub(crate) fn hash_of(kept: &[u8]) -> Option<Hash> {
    kept.first_chunk().map(|hash| Hash(*hash))
}
