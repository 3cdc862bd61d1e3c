//! OAS Names & References: the names of tools, and the two translations they need.
//!
//! Most tools of MCP have names that the text forbids (`_`, upper case), and most models refuse names that the text
//! allows (`.`, more than 64 characters). So a tool of a server is `server.name` in the text's letters, and what a model
//! is told is an alias.
//!
//! INVARIANT: two names of one list never have the same alias, and the same list always gives the same aliases.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Characters of a name.
const NAME_CHARS_MAX: usize = 253;

/// Characters of an alias.
const ALIAS_CHARS_MAX: usize = 64;

/// What is left of a name beside the digest that tells it from others.
const ALIAS_STEM_CHARS: usize = 56;

/// Whether this may be the name of a tool or an agent.
pub fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<&u8>| byte.copied().is_some_and(letter);
    text.len() <= NAME_CHARS_MAX
        && ends(text.as_bytes().first())
        && ends(text.as_bytes().last())
        && text.bytes().all(|byte| letter(byte) || byte == b'-' || byte == b'.')
}

/// The name here of a tool that a server calls otherwise; `None` when nothing of it can be kept.
pub fn tool_name(server: &str, name: &str) -> Option<String> {
    let letters = name.chars().map(|letter| match letter {
        'A'..='Z' => letter.to_ascii_lowercase(),
        '_' | '/' | ' ' => '-',
        other => other,
    });
    let name: String = letters.collect();
    Some(format!("{server}.{}", name.trim_matches(['-', '.']))).filter(|name| is_name(name))
}

/// What a model calls the things it is offered.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    by_name: BTreeMap<String, String>,
    by_alias: BTreeMap<String, String>,
}

impl Aliases {
    /// The aliases of these names.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut aliases = Self::default();
        for name in names {
            if aliases.by_name.contains_key(name) {
                continue;
            }
            let plain = plain(name);
            let alias = match plain.len() > ALIAS_CHARS_MAX || aliases.by_alias.contains_key(&plain) {
                true => distinct(&plain, name),
                false => plain,
            };
            aliases.by_name.insert(name.to_owned(), alias.clone());
            aliases.by_alias.insert(alias, name.to_owned());
        }
        aliases
    }

    /// What a model calls this; a name that was not offered is only spelled as the model may see it.
    pub fn alias(&self, name: &str) -> String {
        match self.by_name.get(name) {
            Some(alias) => alias.clone(),
            None => distinct(&plain(name), name),
        }
    }

    /// What a model means; what nobody offered stays as it was said.
    pub fn name<'a>(&'a self, alias: &'a str) -> &'a str {
        self.by_alias.get(alias).map_or(alias, String::as_str)
    }
}

fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' }).collect()
}

fn distinct(plain: &str, name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let stem: String = plain.chars().take(ALIAS_STEM_CHARS).collect();
    format!("{stem}_{}", hex.get(..7).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_text() {
        let long = "a".repeat(253);
        for name in ["a", "a.b", "a-b", "7", "a..b", long.as_str()] {
            assert!(is_name(name), "{name}");
        }
        let longer = "a".repeat(254);
        for name in ["", "A", "a_b", "-a", "a-", ".a", "a.", "a/b", "../x", "é", longer.as_str()] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_tool_of_a_server_is_named_in_the_letters_of_the_text() {
        for (name, ours) in [
            ("get_current_time", Some("time.get-current-time")),
            ("Read/File", Some("time.read-file")),
            ("_private_", Some("time.private")),
            ("ümlaut", None),
            ("__", None),
        ] {
            assert_eq!(tool_name("time", name).as_deref(), ours, "{name}");
        }
    }

    #[test]
    fn aliases_are_what_models_take_and_lead_back() {
        let long = format!("files.{}", "x".repeat(200));
        let names = ["time.now", "crm", "oagent://crm", "oagent:__crm", "a.b", "a-b", long.as_str()];
        let aliases = Aliases::of(names);
        for name in names {
            let alias = aliases.alias(name);
            assert!(alias.len() <= 64 && !alias.is_empty(), "{alias}");
            assert!(alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{alias}");
            assert_eq!(aliases.name(&alias), name);
        }
        assert_eq!(aliases.alias("time.now"), "time_now");
        assert_eq!(aliases.name("nobody"), "nobody");
        assert_eq!(Aliases::of(names).alias("oagent:__crm"), aliases.alias("oagent:__crm"));
    }
}
