//! OAS Names: how tools and agents are called.
//!
//! A name is at most 253 characters of `a-z`, `0-9`, `-` and `.`, and begins and ends with a letter or digit. A newer
//! draft of the text takes `_` instead of `-` and `.`; a switch lets that in (decisions/0210).

use std::fmt;

/// Characters of a name, at most.
const NAME_CHARS_MAX: usize = 253;

/// Characters between two dots that DNS would take.
const LABEL_CHARS_MAX: usize = 63;

/// Which names are names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// As the text: lower case letters, digits, `-` and `.`.
    #[default]
    Text,
    /// As the newer draft: lower case letters, digits and `_`.
    Draft,
    /// Either.
    Both,
}

/// The name of a tool or an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing stands there.
    #[error("a name has at least one character")]
    Empty,
    /// Longer than 253 characters.
    #[error("a name has at most 253 characters")]
    TooLong,
    /// A character that names do not have.
    #[error("a name has lower case letters, digits, `-` and `.` only")]
    Character,
    /// It begins or ends with a hyphen, a dot or an underscore.
    #[error("a name begins and ends with a lower case letter or a digit")]
    Edge,
}

impl Name {
    /// Reads a name.
    pub fn read(text: &str, rule: NameRule) -> Result<Self, InvalidName> {
        let alphanumeric = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
        let joins = |character: char| match rule {
            NameRule::Text => matches!(character, '-' | '.'),
            NameRule::Draft => character == '_',
            NameRule::Both => matches!(character, '-' | '.' | '_'),
        };
        if text.is_empty() {
            return Err(InvalidName::Empty);
        }
        if text.len() > NAME_CHARS_MAX {
            return Err(InvalidName::TooLong);
        }
        if !text.chars().all(|character| alphanumeric(character) || joins(character)) {
            return Err(InvalidName::Character);
        }
        if !text.starts_with(alphanumeric) || !text.ends_with(alphanumeric) {
            return Err(InvalidName::Edge);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether DNS would take it, label by label; the text asks for less.
    pub fn has_sound_labels(&self) -> bool {
        let sound = |label: &str| {
            !label.is_empty() && label.len() <= LABEL_CHARS_MAX && !label.starts_with('-') && !label.ends_with('-')
        };
        self.0.split('.').all(sound)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_conditions_of_the_text() {
        let long = "a".repeat(253);
        for name in ["a", "7", "a.b", "a-b", "a..b", "a.-b", "search-knowledge-base", &long] {
            assert!(Name::read(name, NameRule::Text).is_ok(), "{name}");
        }
        let longer = "a".repeat(254);
        for (name, why) in [
            ("", InvalidName::Empty),
            (longer.as_str(), InvalidName::TooLong),
            ("A", InvalidName::Character),
            ("a_b", InvalidName::Character),
            ("a b", InvalidName::Character),
            ("../x", InvalidName::Character),
            ("a%2fb", InvalidName::Character),
            ("é", InvalidName::Character),
            ("-a", InvalidName::Edge),
            ("a-", InvalidName::Edge),
            (".a", InvalidName::Edge),
            ("a.", InvalidName::Edge),
            (".", InvalidName::Edge),
        ] {
            assert_eq!(Name::read(name, NameRule::Text), Err(why), "{name}");
        }
    }

    #[test]
    fn the_newer_draft_is_let_in_by_a_switch() {
        for (name, text, draft) in
            [("a_b", false, true), ("a-b", true, false), ("a.b", true, false), ("ab", true, true)]
        {
            assert_eq!(Name::read(name, NameRule::Text).is_ok(), text, "{name}");
            assert_eq!(Name::read(name, NameRule::Draft).is_ok(), draft, "{name}");
            assert!(Name::read(name, NameRule::Both).is_ok(), "{name}");
        }
        assert_eq!(Name::read("_name", NameRule::Both), Err(InvalidName::Edge));
    }

    #[test]
    fn labels_that_dns_would_refuse_are_noticed() {
        let label = format!("{}.b", "a".repeat(64));
        for (name, sound) in [("a.b", true), ("a..b", false), ("a.-b", false), ("a-.b", false), (label.as_str(), false)]
        {
            assert_eq!(Name::read(name, NameRule::Text).unwrap().has_sound_labels(), sound, "{name}");
        }
    }
}
