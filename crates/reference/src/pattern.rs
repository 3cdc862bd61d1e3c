//! RFC 0020 A.1, `matches`: a regular expression of ECMA-262 with the `u` flag, searched for anywhere.
//!
//! The engine behind it reads some texts more generously than the standard does, so the text is first read here
//! (`pattern_syntax`, `group_names`) and handed over in a form in which both agree.

use std::fmt;

use regress::{Flags, Regex};

use crate::group_names::write_pattern;
use crate::pattern_size::written_out_size;
use crate::pattern_syntax::split;
use crate::refusal::Refusal;

/// The most characters that a pattern may have.
const PATTERN_CHARS_MAX: usize = 1_000;

/// The most atoms that a pattern may have once its counted repetitions are written out. A compiled pattern may have
/// 256 KiB, and 32 bytes for an atom is what a compiled program takes at the least.
const SIZE_MAX: usize = 256 * 1024 / 32;

/// Whether a pattern is found in a text.
pub fn matches(pattern: &str, subject: &str) -> Result<bool, Refusal> {
    match Pattern::read(pattern) {
        Ok(pattern) => Ok(pattern.is_found_in(subject)),
        Err(code) => Err(Refusal::new(code, "")),
    }
}

/// A pattern that was read without a flaw.
#[derive(Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Reads a pattern, or names the broken rule.
    pub(crate) fn read(text: &str) -> Result<Pattern, &'static str> {
        if text.chars().count() > PATTERN_CHARS_MAX {
            return Err("regex_too_large");
        }
        let pieces = split(text)?;
        let text = write_pattern(&pieces)?;
        let flags = Flags { unicode: true, ..Flags::default() };
        let regex = Regex::with_flags(&text, flags).map_err(|_| "invalid_regex")?;
        if written_out_size(&pieces) > SIZE_MAX { Err("regex_too_large") } else { Ok(Pattern(regex)) }
    }

    /// Whether the pattern is found in a text.
    pub(crate) fn is_found_in(&self, subject: &str) -> bool {
        self.0.find(subject).is_some()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pattern")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, subject: &str, expected: bool) {
        assert_eq!(matches(pattern, subject), Ok(expected), "{pattern} in {subject:?}");
    }

    #[track_caller]
    fn check_refused(pattern: &str, code: &str) {
        assert_eq!(matches(pattern, "").unwrap_err().code, code, "{pattern}");
    }

    #[test]
    fn a_pattern_is_searched_for_anywhere() {
        check("ell", "hello", true);
        check("^ell", "hello", false);
        check("^hello$", "hello", true);
        check("", "", true);
        check("[]", "a", false);
        check("[^]", "\n", true);
    }

    #[test]
    fn no_other_flag_is_set() {
        check("A", "a", false);
        check("^b", "a\nb", false);
        check("a$", "a\nb", false);
        for line_end in ["\n", "\r", "\u{2028}", "\u{2029}"] {
            check("^.$", line_end, false);
        }
        check("^.$", "\u{85}", true);
    }

    #[test]
    fn the_u_flag_is_set() {
        check("^.$", "\u{1f600}", true);
        check("\\u{1f600}", "\u{1f600}", true);
        check("\\ud83d\\ude00", "\u{1f600}", true);
        check("\\ud83d", "\u{1f600}", false);
        check("^\\ud83d?x$", "x", true);
        check("^[\\ud83d\\u0041]$", "A", true);
        check("^[^x]$", "\u{1f600}", true);
        check("^\\p{Lu}\\P{Lu}$", "\u{c9}\u{e9}", true);
        check("^\\p{Script=Greek}+$", "\u{3b1}\u{3b2}", true);
        check_refused("\\-", "invalid_regex");
        check_refused("{", "invalid_regex");
        check_refused("]", "invalid_regex");
        check_refused("\\a", "invalid_regex");
        check_refused("\\1", "invalid_regex");
        check_refused("\\01", "invalid_regex");
        check_refused("[\\d-z]", "invalid_regex");
        check_refused("(?=a)*", "invalid_regex");
    }

    #[test]
    fn classes_mean_what_ecma_262_says() {
        check("\\d", "\u{663}", false);
        check("\\w", "\u{e9}", false);
        check("\\s", "\u{feff}", true);
        check("\\s", "\u{85}", false);
        check("\\bb", "\u{e9}b", true);
    }

    #[test]
    fn groups_references_and_lookaround_are_supported() {
        check("^(a|b)\\1$", "bb", true);
        check("^(a|b)\\1$", "ab", false);
        check("(?<x>a)\\k<x>", "aa", true);
        check("a(?=b)", "ab", true);
        check("a(?!b)", "ab", false);
        check("(?<=a)b", "ab", true);
        check("(?<!a)b", "ab", false);
        check("(?:ab)+$", "abab", true);
        check("a+?b", "aab", true);
        check("^a{2,3}$", "aaaa", false);
    }

    #[test]
    fn flaws_are_named() {
        for pattern in
            ["(", ")", "[", "a**", "a{2,1}", "[b-a]", "\\", "(?<a>x)(?<a>y)", "\\k<a>", "(?P<a>x)", "(?>a)", "(?i)a"]
        {
            check_refused(pattern, "invalid_regex");
        }
        for pattern in ["(?i:a)", "(?-i:a)", "(?ms-i:a)", "x(?s:.)"] {
            check_refused(pattern, "regex_feature_unsupported");
        }
        check_refused(&"a".repeat(1_001), "regex_too_large");
        check(&"\u{e9}".repeat(1_000), "", false);
        check_refused("(?:a{1000}){1000}", "regex_too_large");
        check("^(?:a{10}){10}$", &"a".repeat(100), true);
    }

    #[test]
    fn the_syntax_of_the_v_flag_is_not_that_of_the_u_flag() {
        check_refused("[a--b]", "invalid_regex");
        check_refused("\\p{RGI_Emoji}", "invalid_regex");
        check_refused("[\\q{ab}]", "invalid_regex");
        check("^[a&&b]$", "&", true);
        check_refused("[[a]--[b]]", "invalid_regex");
    }
}
