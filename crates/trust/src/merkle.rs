//! RFC 9162: hash trees that only grow, and the proof that something is in one (RFC 0020 §3.6).
//!
//! A tree of a size is made of whole subtrees, each a power of two of leaves; they never change once they are whole.
//! Whoever keeps their hashes can prove any leaf in a tree of any size.
//!
//! INVARIANT: leaves and nodes are hashed apart, and no node stands twice, so one root has one list of leaves.

use crate::Digest;

/// The hash of a leaf.
pub fn leaf(bytes: &[u8]) -> Digest {
    Digest::of(&[&[0], bytes].concat())
}

/// The hash of a node above two others.
pub fn node(left: &Digest, right: &Digest) -> Digest {
    Digest::of(&[[1].as_slice(), left.as_bytes(), right.as_bytes()].concat())
}

/// The hash of a whole subtree: its level (nought for a leaf), its place in the level, its hash.
pub type Subtree = (u8, u64, Digest);

/// The subtrees that become whole when a tree of a size gets one more leaf; `whole` gives those that are.
pub fn grow<E>(
    size: u64,
    leaf: Digest,
    mut whole: impl FnMut(u8, u64) -> Result<Digest, E>,
) -> Result<Vec<Subtree>, E> {
    let (mut level, mut position, mut hash) = (0, size, leaf);
    let mut grown = vec![(level, position, hash)];
    while position % 2 == 1 {
        hash = node(&whole(level, position - 1)?, &hash);
        (level, position) = (level + 1, position / 2);
        grown.push((level, position, hash));
    }
    Ok(grown)
}

/// The root of a tree of a size that is not empty.
pub fn root<E>(size: u64, mut whole: impl FnMut(u8, u64) -> Result<Digest, E>) -> Result<Digest, E> {
    range(0, size, &mut whole)
}

/// The hashes beside the way from a leaf to the root, the lowest first.
pub fn path<E>(index: u64, size: u64, mut whole: impl FnMut(u8, u64) -> Result<Digest, E>) -> Result<Vec<Digest>, E> {
    let (mut begin, mut left, mut beside) = (0, size, Vec::new());
    while left > 1 {
        let half = half(left);
        if index < begin + half {
            beside.push((begin + half, left - half));
            left = half;
        } else {
            beside.push((begin, half));
            (begin, left) = (begin + half, left - half);
        }
    }
    beside.into_iter().rev().map(|(begin, size)| range(begin, size, &mut whole)).collect()
}

/// The root that a leaf, its place and the hashes beside its way lead to; none where they do not fit each other.
pub fn root_of(leaf: Digest, index: u64, size: u64, path: &[Digest]) -> Option<Digest> {
    if index >= size {
        return None;
    }
    let (mut place, mut last, mut hash) = (index, size - 1, leaf);
    for beside in path {
        if last == 0 {
            return None;
        }
        if place % 2 == 1 || place == last {
            hash = node(beside, &hash);
            // At the right edge there is nothing beside for some levels.
            while place % 2 == 0 && place != 0 {
                (place, last) = (place / 2, last / 2);
            }
        } else {
            hash = node(&hash, beside);
        }
        (place, last) = (place / 2, last / 2);
    }
    (last == 0).then_some(hash)
}

/// The hash over some leaves of which the first stands where such a subtree begins.
fn range<E>(begin: u64, size: u64, whole: &mut impl FnMut(u8, u64) -> Result<Digest, E>) -> Result<Digest, E> {
    if size.is_power_of_two() {
        return whole(u8::try_from(size.trailing_zeros()).unwrap_or(u8::MAX), begin / size);
    }
    let half = half(size);
    let left = range(begin, half, whole)?;
    Ok(node(&left, &range(begin + half, size - half, whole)?))
}

/// The largest power of two below a size of at least two.
fn half(size: u64) -> u64 {
    1 << (u64::BITS - 1 - size.saturating_sub(1).max(1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The leaves of the well-known example of Certificate Transparency.
    const LEAVES: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];

    /// Their roots, by size.
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    struct Tree {
        size: u64,
        whole: HashMap<(u8, u64), Digest>,
    }

    impl Tree {
        fn of(leaves: impl Iterator<Item = Vec<u8>>) -> Self {
            let mut tree = Self { size: 0, whole: HashMap::new() };
            for bytes in leaves {
                let grown = grow(tree.size, leaf(&bytes), |level, position| tree.whole(level, position)).unwrap();
                tree.whole.extend(grown.into_iter().map(|(level, position, hash)| ((level, position), hash)));
                tree.size += 1;
            }
            tree
        }

        fn whole(&self, level: u8, position: u64) -> Result<Digest, (u8, u64)> {
            self.whole.get(&(level, position)).copied().ok_or((level, position))
        }
    }

    #[test]
    fn the_published_roots_come_out() {
        let tree = Tree::of(LEAVES.iter().map(|leaf| leaf.to_vec()));
        for (size, expected) in (1..).zip(ROOTS) {
            let root = root(size, |level, position| tree.whole(level, position)).unwrap();
            assert_eq!(root.to_string(), format!("sha256:{expected}"), "{size}");
        }
    }

    #[test]
    fn every_leaf_is_proved_in_a_tree_of_every_size_and_no_other_is() {
        let leaves: Vec<Vec<u8>> = (0..70_u8).map(|number| vec![number; 3]).collect();
        let tree = Tree::of(leaves.iter().cloned());
        let whole = |level, position| tree.whole(level, position);
        for size in 1..=70 {
            let root = root(size, whole).unwrap();
            for index in 0..size {
                let (hash, path) = (leaf(&leaves[index as usize]), path(index, size, whole).unwrap());
                assert_eq!(root_of(hash, index, size, &path), Some(root), "{index} of {size}");
                assert_ne!(root_of(leaf(b"other"), index, size, &path), Some(root), "{index} of {size}");
                assert_ne!(root_of(hash, index + 1, size, &path), Some(root), "{index} of {size}");
                let mut longer = path.clone();
                longer.push(root);
                assert_eq!(root_of(hash, index, size, &longer), None, "{index} of {size}");
                if let Some((_, shorter)) = path.split_last() {
                    assert_eq!(root_of(hash, index, size, &path[..shorter.len()]), None, "{index} of {size}");
                }
            }
            assert_eq!(root_of(leaf(b""), size, size, &[]), None);
        }
    }

    #[test]
    fn a_node_is_no_leaf() {
        let (left, right) = (leaf(b"a"), leaf(b"b"));
        assert_ne!(leaf(&[left.as_bytes().as_slice(), right.as_bytes()].concat()), node(&left, &right));
    }
}
