//! What a capability is called before a model: function names have 64 characters of `a-z`, `0-9`, `_` and `-`.
//!
//! INVARIANT: aliases of one agent are distinct, follow from its document alone, and are none of [`RESERVED`].

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Functions of the server itself.
pub(crate) const RESERVED: [&str; 2] = ["ask_user", "decide"];

/// Characters of a function name that every provider takes.
const ALIAS_CHARS_MAX: usize = 64;

/// Characters of the digest that tells two of them apart.
const DIGEST_CHARS: usize = 7;

/// One alias for each key, in their order.
pub(crate) fn aliases<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken: BTreeSet<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
    let mut aliases = Vec::new();
    for key in keys {
        let plain = spelled(key);
        let alias = if plain.len() <= ALIAS_CHARS_MAX && !key.contains('/') && !taken.contains(&plain) {
            plain
        } else {
            told_apart(&plain, key)
        };
        taken.insert(alias.clone());
        aliases.push(alias);
    }
    aliases
}

fn spelled(key: &str) -> String {
    key.chars()
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
        .collect()
}

fn told_apart(plain: &str, key: &str) -> String {
    let room = ALIAS_CHARS_MAX - DIGEST_CHARS - 1;
    let mut alias: String = plain.chars().take(room).collect();
    alias.push('_');
    let digest = Sha256::digest(key.as_bytes());
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    alias.extend(hex.chars().take(DIGEST_CHARS));
    alias
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_becomes_an_underscore_and_nothing_else_changes() {
        assert_eq!(aliases(["crm.lookup", "crm-lookup", "crm"].into_iter()), ["crm_lookup", "crm-lookup", "crm"]);
    }

    #[test]
    fn what_is_too_long_taken_or_reserved_is_told_apart_by_a_digest() {
        let long = "a".repeat(253);
        let other = format!("{}b", "a".repeat(252));
        let keys = [long.as_str(), &other, "ask.user", "x.y", "x_y", "oagent://h/x"];
        let aliases = aliases(keys.into_iter());
        let distinct: BTreeSet<&String> = aliases.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        for alias in &aliases {
            assert!(
                alias.len() <= 64 && alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            );
            assert!(!RESERVED.contains(&alias.as_str()));
        }
        assert_eq!(aliases[3], "x_y");
    }
}
