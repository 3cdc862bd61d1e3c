//! RFC 0020 §3.6: whether an event proves that its manifest is in the tree whose root it names (RFC 9162).

#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by name yields null when it has no such member")]

use anyhow::{Context, Result, ensure};
use json::Value;
use trust::{Digest, merkle};

/// Holds an event against its proof; who vouches for the root is the signature of the event.
pub(crate) fn check(event: &Value) -> Result<()> {
    let proof = &event["inclusion_proof"];
    let digest = |value: &Value| value.as_str().and_then(Digest::read).context("a hash is none");
    let leaf = merkle::leaf(&json::canonical_value(&proof["leaf"]));
    ensure!(leaf == digest(&proof["leaf_hash"])?, "`leaf_hash` is not the hash of the leaf");
    ensure!(proof["leaf"]["manifest_id"] == event["manifest_id"], "the leaf is about another manifest");
    let path = proof["path"].as_array().context("an inclusion proof without a path")?;
    let path = path.iter().map(digest).collect::<Result<Vec<_>>>()?;
    let number = |name: &str| proof[name].as_u64().with_context(|| format!("an inclusion proof without `{name}`"));
    let root = merkle::root_of(leaf, number("leaf_index")?, number("tree_size")?, &path);
    ensure!(root == Some(digest(&proof["root"])?), "the leaf and the path do not lead to the root");
    Ok(())
}
