//! RFC 6901: a place in a document. Every refusal carries one.

use crate::Node;
use std::fmt;

/// A place in a document, in RFC 6901 form; the empty pointer is the whole document.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

/// A text that is no RFC 6901 pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPointer {
    /// A non-empty pointer starts with a slash.
    #[error("a pointer is empty or starts with `/`")]
    NoLeadingSlash,
    /// `~` stands only in `~0` and `~1`.
    #[error("`~` is followed by neither `0` nor `1`")]
    StrayTilde,
}

impl Pointer {
    /// The whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a pointer as written.
    pub fn parse(text: &str) -> Result<Self, InvalidPointer> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(InvalidPointer::NoLeadingSlash);
        }
        for segment in text.split('/').skip(1) {
            unescape(segment)?;
        }
        Ok(Self(text.to_owned()))
    }

    /// The place of a member or element below this one; `segment` is the decoded key or the index.
    #[must_use]
    pub fn child(&self, segment: impl fmt::Display) -> Self {
        let mut longer = self.clone();
        longer.push(segment);
        longer
    }

    /// Extends this pointer by one decoded segment.
    pub fn push(&mut self, segment: impl fmt::Display) {
        let segment = segment.to_string();
        self.0.push('/');
        for character in segment.chars() {
            match character {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                other => self.0.push(other),
            }
        }
    }

    /// The text as it goes on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value at this place, if the document has one.
    pub fn find<'a>(&self, root: Node<'a>) -> Option<Node<'a>> {
        let mut node = root;
        for segment in self.0.split('/').skip(1) {
            node = node.step(&unescape(segment).ok()?)?;
        }
        Some(node)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Decodes one segment: `~1` is a slash, `~0` a tilde.
pub(crate) fn unescape(segment: &str) -> Result<String, InvalidPointer> {
    let mut decoded = String::with_capacity(segment.len());
    let mut characters = segment.chars();
    while let Some(character) = characters.next() {
        match character {
            '~' => match characters.next() {
                Some('0') => decoded.push('~'),
                Some('1') => decoded.push('/'),
                _ => return Err(InvalidPointer::StrayTilde),
            },
            other => decoded.push(other),
        }
    }
    Ok(decoded)
}

/// Reads an array index: `0`, or digits without a leading zero (RFC 6901 §4).
pub(crate) fn index(segment: &str) -> Option<usize> {
    let canonical = segment == "0" || (!segment.starts_with('0') && !segment.is_empty());
    if canonical && segment.bytes().all(|byte| byte.is_ascii_digit()) { segment.parse().ok() } else { None }
}

impl Pointer {
    /// Decodes the segments of a pointer-like text one by one.
    pub fn segments(text: &str) -> impl Iterator<Item = Result<String, InvalidPointer>> + '_ {
        text.split('/').skip(1).map(unescape)
    }

    /// Reads a segment as an array index, `None` when it is not one.
    pub fn as_index(segment: &str) -> Option<usize> {
        index(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Limits};

    #[test]
    fn the_rfc_6901_examples_find_their_values() {
        let text = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let document = Document::parse(text.as_bytes(), &Limits::DOCUMENT).unwrap();
        for (pointer, expected) in
            [("/foo/0", "\"bar\""), ("/", "0"), ("/a~1b", "1"), ("/c%d", "2"), ("/ ", "7"), ("/m~0n", "8")]
        {
            let found = Pointer::parse(pointer).unwrap().find(document.root()).unwrap();
            assert_eq!(crate::canonical(found), expected.as_bytes(), "{pointer}");
        }
        assert!(Pointer::parse("/foo/01").unwrap().find(document.root()).is_none());
        assert!(Pointer::parse("/foo/-").unwrap().find(document.root()).is_none());
    }

    #[test]
    fn stray_tildes_and_missing_slashes_are_refused() {
        assert_eq!(Pointer::parse("/a~2"), Err(InvalidPointer::StrayTilde));
        assert_eq!(Pointer::parse("/a~"), Err(InvalidPointer::StrayTilde));
        assert_eq!(Pointer::parse("a"), Err(InvalidPointer::NoLeadingSlash));
    }

    #[test]
    fn an_index_has_no_leading_zero() {
        let cases =
            [("0", Some(0)), ("7", Some(7)), ("10", Some(10)), ("01", None), ("00", None), ("", None), ("1a", None)];
        for (segment, index) in cases.into_iter().chain([("-", None), ("+1", None), ("99999999999999999999999", None)])
        {
            assert_eq!(Pointer::as_index(segment), index, "{segment:?}");
        }
    }

    #[test]
    fn a_child_escapes_what_must_be_escaped() {
        assert_eq!(Pointer::root().child("a/b~c").child(3).as_str(), "/a~1b~0c/3");
    }
}
