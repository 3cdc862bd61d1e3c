//! Citations of the texts: how they are written, found, checked and ordered.
//!
//! Written `RFC 0020 §3.1`, `RFC 0020 A.3 R2`, `RFC 0024 §3.3`, `ADP Table 1`, `OAS Lifespan`, `RFC 8785`. A list goes on
//! with a comma or `and`, a range with `to`.

use std::fmt;

/// One of the texts the house is built on, or a standard beneath them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Text {
    /// The query language.
    Rfc0020,
    /// Schema versions and mappings.
    Rfc0024,
    /// Agent Description Protocol.
    Adp,
    /// OpenAgentSpec.
    Oas,
    /// Any other RFC or standard, by its name.
    Standard(String),
}

impl fmt::Display for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rfc0020 => out.write_str("RFC 0020"),
            Self::Rfc0024 => out.write_str("RFC 0024"),
            Self::Adp => out.write_str("ADP"),
            Self::Oas => out.write_str("OAS"),
            Self::Standard(name) => out.write_str(name),
        }
    }
}

/// One cited place: a text and a section of it, which is empty when the whole text is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Which text.
    pub text: Text,
    /// Such as `§3.1` or `A.3 R2`.
    pub section: String,
}

impl fmt::Display for Citation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.text)?;
        if !self.section.is_empty() {
            write!(out, " {}", self.section)?;
        }
        Ok(())
    }
}

const RFC_0020: &[&str] = &[
    "§1",
    "§2",
    "§3",
    "§3.1",
    "§3.2",
    "§3.3",
    "§3.4",
    "§3.5",
    "§3.6",
    "§3.7",
    "§4",
    "§5",
    "§6",
    "§7",
    "§8",
    "§9",
    "§10",
    "Appendix A",
    "A.1",
    "A.2",
    "A.3",
    "A.3 R1",
    "A.3 R2",
    "A.3 R3",
    "A.3 R4",
    "A.3 R5",
    "A.3 R6",
    "A.4",
    "A.5",
    "A.6",
    "A.7",
    "A.8",
    "A.9",
    "A.10",
    "A.11",
    "Appendix B",
    "B.1",
    "B.2",
    "B.3",
    "B.4",
];

const RFC_0024: &[&str] = &[
    "§1", "§2", "§3", "§3.1", "§3.2", "§3.3", "§3.4", "§3.5", "§3.6", "§4", "§4.1", "§4.2", "§5", "§6", "§7", "§8",
    "§9", "§10", "§11", "§12",
];

impl Text {
    /// The sections of the text in their order, where we keep the list.
    fn sections(&self) -> Option<&'static [&'static str]> {
        match self {
            Self::Rfc0020 => Some(RFC_0020),
            Self::Rfc0024 => Some(RFC_0024),
            Self::Adp | Self::Oas | Self::Standard(_) => None,
        }
    }
}

impl Citation {
    /// Whether the cited section exists; texts without a list are believed.
    pub fn exists(&self) -> bool {
        self.section.is_empty() || self.text.sections().is_none_or(|known| known.contains(&self.section.as_str()))
    }

    /// A key that sorts citations as the texts run.
    pub fn place(&self) -> (Text, usize, String) {
        let known = self.text.sections().unwrap_or_default();
        let position = known.iter().position(|section| *section == self.section).unwrap_or(known.len());
        let position = if self.section.is_empty() { 0 } else { position + 1 };
        (self.text.clone(), position, self.section.clone())
    }
}

/// All citations in a piece of prose, in reading order, ranges spelled out.
pub fn find(prose: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    let mut before = None;
    for (at, character) in prose.char_indices() {
        let begins_word = before.is_none_or(|before: char| !before.is_alphanumeric());
        before = Some(character);
        if !begins_word {
            continue;
        }
        let Some(rest) = prose.get(at..) else { continue };
        if let Some((text, rest)) = text_at(rest) {
            let sections = match &text {
                Text::Rfc0020 | Text::Rfc0024 | Text::Standard(_) => numbered_sections(&text, rest),
                Text::Adp | Text::Oas => named_section(rest).into_iter().collect(),
            };
            match &text {
                // In these two the bare name is prose; a citation names its heading.
                Text::Adp | Text::Oas if sections.is_empty() => {}
                _ if sections.is_empty() => found.push(Citation { text, section: String::new() }),
                _ => found.extend(sections.into_iter().map(|section| Citation { text: text.clone(), section })),
            }
        }
    }
    found
}

fn text_at(rest: &str) -> Option<(Text, &str)> {
    if let Some(after) = rest.strip_prefix("RFC ") {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = after.split_at_checked(digits)?;
        return match number {
            "" => None,
            "0020" => Some((Text::Rfc0020, after)),
            "0024" => Some((Text::Rfc0024, after)),
            _ => Some((Text::Standard(format!("RFC {number}")), after)),
        };
    }
    if let Some(after) = rest.strip_prefix("ECMA-262") {
        return Some((Text::Standard("ECMA-262".to_owned()), after));
    }
    if let Some(after) = rest.strip_prefix("ADP ") {
        return Some((Text::Adp, after));
    }
    rest.strip_prefix("OAS ").map(|after| (Text::Oas, after))
}

fn numbered_sections(text: &Text, rest: &str) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    let Some(mut rest) = rest.strip_prefix(' ') else { return sections };
    let mut range = false;
    while let Some((section, after)) = section_at(rest, sections.last().map(String::as_str)) {
        if range {
            sections.extend(between(text, sections.last().map(String::as_str), &section));
        }
        sections.push(section);
        let joined = [(", ", false), (" and ", false), ("/", false), (" to ", true), ("–", true), ("-", true)]
            .into_iter()
            .find_map(|(join, is_range)| after.strip_prefix(join).map(|after| (after, is_range)));
        match joined {
            Some((after, is_range)) => (rest, range) = (after, is_range),
            None => break,
        }
    }
    sections
}

/// What lies strictly between two sections of a range.
fn between(text: &Text, first: Option<&str>, last: &str) -> Vec<String> {
    let known = text.sections().unwrap_or_default();
    let position = |wanted: &str| known.iter().position(|section| *section == wanted);
    let (Some(first), Some(last)) = (first.and_then(position), position(last)) else { return Vec::new() };
    known.get(first + 1..last).unwrap_or_default().iter().map(|section| (*section).to_owned()).collect()
}

fn section_at<'a>(rest: &'a str, previous: Option<&str>) -> Option<(String, &'a str)> {
    if let Some(after) = rest.strip_prefix('§') {
        let (number, after) = dotted(after)?;
        return Some((format!("§{number}"), after));
    }
    for appendix in ["A", "B"] {
        if let Some(after) = rest.strip_prefix("Appendix ").and_then(|after| after.strip_prefix(appendix)) {
            return Some((format!("Appendix {appendix}"), after));
        }
        if let Some((number, after)) =
            rest.strip_prefix(appendix).and_then(|after| after.strip_prefix('.')).and_then(dotted)
        {
            let section = format!("{appendix}.{number}");
            return match after.strip_prefix(" R").and_then(dotted) {
                Some((rule, after)) => Some((format!("{section} R{rule}"), after)),
                None => Some((section, after)),
            };
        }
    }
    // A rule alone belongs to the operational semantics, whether or not the list began there.
    if previous.is_none_or(|previous| previous.starts_with("A.3")) {
        let (rule, after) = dotted(rest.strip_prefix('R')?)?;
        return Some((format!("A.3 R{rule}"), after));
    }
    None
}

/// `3`, `3.2`, never the full stop after it.
fn dotted(text: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    for (at, character) in text.char_indices() {
        match character {
            '0'..='9' => end = at + 1,
            '.' if end == at && at > 0 => {}
            _ => break,
        }
    }
    if end == 0 { None } else { text.split_at_checked(end) }
}

/// A heading of a text without numbers: `Table 1`, or the capitalised words that follow.
fn named_section(rest: &str) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for word in rest.split(' ') {
        let plain = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let counts = words.last() == Some(&"Table") && plain.chars().all(|c| c.is_ascii_digit());
        if plain.is_empty() || !(plain.starts_with(|c: char| c.is_uppercase()) || counts) {
            break;
        }
        words.push(plain);
        if plain != word {
            break;
        }
    }
    if words.is_empty() { None } else { Some(words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prose: &str, citations: &[&str]) {
        let found: Vec<String> = find(prose).iter().map(Citation::to_string).collect();
        assert_eq!(found, citations);
    }

    #[test]
    fn single_sections() {
        check("RFC 0020 §3.2: paths.", &["RFC 0020 §3.2"]);
        check("as RFC 0020 A.10. Then", &["RFC 0020 A.10"]);
        check("(RFC 0020 A.3 R2)", &["RFC 0020 A.3 R2"]);
        check("RFC 0020 R4", &["RFC 0020 A.3 R4"]);
        check("RFC 8785 bytes", &["RFC 8785"]);
        check("the OAS Lifespan, and ADP Table 1", &["OAS Lifespan", "ADP Table 1"]);
        check("ADP Security Mechanism: the header", &["ADP Security Mechanism"]);
        check("an OAS agent, PRFC 0020 §3.2", &[]);
    }

    #[test]
    fn lists_and_ranges() {
        check("RFC 0020 §3.2, A.1 and A.7", &["RFC 0020 §3.2", "RFC 0020 A.1", "RFC 0020 A.7"]);
        check("RFC 0020 A.3 R3 to R5", &["RFC 0020 A.3 R3", "RFC 0020 A.3 R4", "RFC 0020 A.3 R5"]);
        check("RFC 0020 B.1 to B.3", &["RFC 0020 B.1", "RFC 0020 B.2", "RFC 0020 B.3"]);
        check("RFC 0020 §3.3, RFC 8785", &["RFC 0020 §3.3", "RFC 8785"]);
        check("RFC 0020 §3.1 and a word", &["RFC 0020 §3.1"]);
    }

    #[test]
    fn a_section_that_is_not_there_is_noticed() {
        for (section, exists) in [("§3.7", true), ("§3.8", false), ("A.11", true), ("A.12", false), ("A.3 R7", false)]
        {
            let citation = Citation { text: Text::Rfc0020, section: section.to_owned() };
            assert_eq!(citation.exists(), exists, "{section}");
        }
        assert!(find(&format!("RFC 0024 {}", "§13")).iter().all(|citation| !citation.exists()));
        assert!(find("RFC 8785 §99").iter().all(Citation::exists));
    }

    #[test]
    fn order_follows_the_text() {
        let mut found = find("RFC 8785, RFC 0020 A.10, RFC 0020 A.2, RFC 0020 §10, RFC 0020 §3.1, RFC 0020");
        found.sort_by_key(Citation::place);
        let found: Vec<String> = found.iter().map(Citation::to_string).collect();
        let expected = ["RFC 0020", "RFC 0020 §3.1", "RFC 0020 §10", "RFC 0020 A.2", "RFC 0020 A.10", "RFC 8785"];
        assert_eq!(found, expected);
    }
}
