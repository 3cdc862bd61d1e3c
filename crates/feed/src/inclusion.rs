//! RFC 0020 §3.6: the proof that the manifest of an event stands in the node's tree of public manifests.
//!
//! A leaf says what everybody could see of a manifest from some change on: its name, the hash of that, and whether it was
//! taken back. What only some may see is in no leaf, so the tree tells nobody anything that is hidden (decisions/0141).

use json::{Node, Value, json};
use trust::{Digest, merkle};

/// A manifest as everybody could see it, as a leaf of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// Which manifest.
    pub manifest_id: &'a str,
    /// The hash of all that everybody could see of it.
    pub manifest_hash: Digest,
    /// Whether it was taken back.
    pub withdrawn: bool,
}

impl Leaf<'_> {
    fn to_value(&self) -> Value {
        json!({
            "manifest_id": self.manifest_id,
            "manifest_hash": self.manifest_hash.to_string(),
            "status": if self.withdrawn { WITHDRAWN } else { ACTIVE },
        })
    }

    /// Its hash in the tree: over its canonical form.
    pub fn hash(&self) -> Digest {
        merkle::leaf(&json::canonical_value(&self.to_value()))
    }

    /// The member of an event that proves it, in canonical form.
    pub fn proved(&self, index: u64, size: u64, path: &[Digest], root: Digest) -> Vec<u8> {
        json::canonical_value(&json!({
            "leaf": self.to_value(),
            "leaf_hash": self.hash().to_string(),
            "leaf_index": index,
            "tree_size": size,
            "path": path.iter().map(Digest::to_string).collect::<Vec<_>>(),
            "root": root.to_string(),
        }))
    }
}

const ACTIVE: &str = "active";
const WITHDRAWN: &str = "withdrawn";

/// Longer paths belong to no tree that fits a disk.
const PATH_MAX: usize = 64;

/// Why an event does not prove that its manifest is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InclusionError {
    /// There is no proof.
    #[error("the event has no `inclusion_proof`, or one without its members")]
    Missing,
    /// The leaf is about another manifest, or about another state of it.
    #[error("the leaf is not about what the event tells")]
    OtherLeaf,
    /// The leaf has another hash.
    #[error("`leaf_hash` is not the hash of the leaf")]
    LeafHash,
    /// The hashes lead elsewhere.
    #[error("the leaf and the path do not lead to `root`")]
    Root,
}

/// Whether an event proves that its manifest stands in the tree whose root it names. Who vouches for the root is the
/// signature of the event.
pub fn check(event: Node<'_>) -> Result<(), InclusionError> {
    let proof = event.get("inclusion_proof").ok_or(InclusionError::Missing)?;
    let member = |name: &str| proof.get(name).ok_or(InclusionError::Missing);
    let digest = |node: Node<'_>| node.as_str().and_then(Digest::read).ok_or(InclusionError::Missing);
    let number = |name: &str| member(name)?.as_u64().ok_or(InclusionError::Missing);
    let leaf = member("leaf")?;
    let text = |node: Node<'_>, name: &str| node.get(name).and_then(Node::as_str).map(str::to_owned);
    let withdrawn = text(event, "event_type").as_deref() == Some(WITHDRAWN);
    let status = text(leaf, "status");
    let manifest = text(leaf, "manifest_id");
    if manifest.is_none()
        || manifest != text(event, "manifest_id")
        || status.as_deref() != Some(if withdrawn { WITHDRAWN } else { ACTIVE })
    {
        return Err(InclusionError::OtherLeaf);
    }
    let hash = merkle::leaf(&json::canonical(leaf));
    if hash != digest(member("leaf_hash")?)? {
        return Err(InclusionError::LeafHash);
    }
    let path = member("path")?;
    if path.len() > PATH_MAX {
        return Err(InclusionError::Root);
    }
    let path = path.elements().map(digest).collect::<Result<Vec<_>, _>>()?;
    let led = merkle::root_of(hash, number("leaf_index")?, number("tree_size")?, &path);
    if led == Some(digest(member("root")?)?) { Ok(()) } else { Err(InclusionError::Root) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::Document;

    fn proved(event_type: &str, change: impl FnOnce(&mut Value)) -> Result<(), InclusionError> {
        let leaf = Leaf { manifest_id: "did:web:a.example", manifest_hash: Digest::of(b"a"), withdrawn: false };
        let beside = merkle::leaf(b"b");
        let proof = leaf.proved(0, 2, &[beside], merkle::node(&leaf.hash(), &beside));
        let proof = Document::parse(&proof, &json::Limits::OURS).unwrap().root().to_value();
        let mut event = json!({"manifest_id": "did:web:a.example", "event_type": event_type, "inclusion_proof": proof});
        change(&mut event);
        check(Document::of(&event).unwrap().root())
    }

    #[test]
    fn a_proof_holds_and_nothing_of_it_can_be_changed() {
        assert_eq!(proved("created", |_| {}), Ok(()));
        assert_eq!(proved("withdrawn", |_| {}), Err(InclusionError::OtherLeaf));
        let zeros = format!("sha256:{}", "0".repeat(64));
        let cases: [(&str, Value, InclusionError); 9] = [
            ("/manifest_id", json!("did:web:b.example"), InclusionError::OtherLeaf),
            ("/inclusion_proof/leaf/manifest_hash", json!(zeros), InclusionError::LeafHash),
            ("/inclusion_proof/leaf/status", json!("withdrawn"), InclusionError::OtherLeaf),
            ("/inclusion_proof/leaf_hash", json!(zeros), InclusionError::LeafHash),
            ("/inclusion_proof/leaf_index", json!(1), InclusionError::Root),
            ("/inclusion_proof/tree_size", json!(1), InclusionError::Root),
            ("/inclusion_proof/path", json!([]), InclusionError::Root),
            ("/inclusion_proof/root", json!(zeros), InclusionError::Root),
            ("/inclusion_proof", json!({}), InclusionError::Missing),
        ];
        for (place, value, expected) in cases {
            let set = |event: &mut Value| *event.pointer_mut(place).unwrap() = value;
            assert_eq!(proved("created", set), Err(expected), "{place}");
        }
    }
}
