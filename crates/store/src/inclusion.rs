//! RFC 0020 §3.6: the tree over what everybody may see of manifests, as it is kept: leaves in order, and the hashes of
//! whole subtrees above them. What the hashes mean is not known here.

use crate::change::{Hash, Sequence};

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
