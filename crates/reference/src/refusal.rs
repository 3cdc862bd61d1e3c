//! RFC 0020 A.3 R1: how a document is refused, with a code and the place of the flaw.
//!
//! Places are RFC 6901 pointers, built here and nowhere else so that every one of them is escaped alike.

use std::fmt;

/// Why a document was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The name of the broken rule.
    pub code: &'static str,
    /// The JSON Pointer of the place.
    pub at: String,
}

impl Refusal {
    /// A refusal of what stands at a place.
    pub(crate) fn new(code: &'static str, at: &str) -> Refusal {
        Refusal { code, at: at.to_owned() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at `{}`", self.code, self.at)
    }
}

impl std::error::Error for Refusal {}

/// The place of a member below a place.
pub(crate) fn member_place(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The place of an element below a place.
pub(crate) fn element_place(at: &str, index: usize) -> String {
    format!("{at}/{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_escaped() {
        assert_eq!(member_place("/a", "b"), "/a/b");
        assert_eq!(member_place("", "x/y~z"), "/x~1y~0z");
        assert_eq!(member_place("", "~1"), "/~01");
        assert_eq!(element_place("/a", 7), "/a/7");
    }

    #[test]
    fn a_refusal_shows_code_and_place() {
        assert_eq!(Refusal::new("wrong_type", "/budget").to_string(), "wrong_type at `/budget`");
    }
}
