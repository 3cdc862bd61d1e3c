//! Patterns against ECMA-262's own rules; the corpus and the twin have the rest.

use super::*;

fn pattern(source: &str) -> Result<Pattern, Refusal> {
    Pattern::read(source, &Pointer::root(), &Limits::STANDARD)
}

#[track_caller]
fn check(source: &str, subject: &str, expected: bool) {
    let pattern = pattern(source).unwrap();
    assert_eq!(pattern.is_match(subject, &mut 100_000), Ok(expected), "{source} on {subject:?}");
}

#[track_caller]
fn refused(source: &str, code: &str) {
    assert_eq!(pattern(source).unwrap_err().code.name(), code, "{source}");
}

#[test]
fn classes_are_those_of_ecma_262() {
    check(r"^\d$", "٣", false);
    check(r"^\w$", "é", false);
    check(r"^\s$", "\u{feff}", true);
    check(r"^\s$", "\u{85}", false);
    check("^.$", "\u{2028}", false);
    check("^.$", "\r", false);
    check("^[^]$", "\n", true);
    check("[]", "a", false);
    check(r"^\cA$", "\u{1}", true);
    check(r"^\0$", "\0", true);
    check(r"^[\b]$", "\u{8}", true);
    check(r"^\u{1F600}$", "😀", true);
    check(r"^\ud83d\ude00$", "😀", true);
    check(r"\ud83d", "😀", false);
    check("^.$", "😀", true);
    check(r"^[\ud83d\ude00-\ud83d\ude05]$", "😃", true);
    check(r"^\p{Lu}\p{Script=Greek}$", "Aβ", true);
    check(r"^\P{L}$", "1", true);
}

#[test]
fn boundaries_and_anchors_see_characters() {
    check(r"\bfoo\b", "a foo!", true);
    check(r"\B", "aéa", false);
    check(r"\B", "é", true);
    check("^b", "a\nb", false);
    check("a$", "a\n", false);
}

#[test]
fn lookaround_and_backreferences_follow_the_matcher_of_the_text() {
    check(r"^(a+)\1$", "aaaa", true);
    check(r"^(a+)\1$", "aaa", false);
    check(r"\1(a)", "a", true);
    check(r"^(?:(a)|b)*\1$", "ab", true);
    check(r"^(?:(a)|b)*\1$", "aba", false);
    check(r"^(?:(a)|(b))*\1\2$", "ab", false);
    check(r"^(?:(a)|(b))*\1\2$", "abb", true);
    check(r"(?<year>\d{4})-\k<year>", "2026-2026", true);
    check(r"foo(?=bar)", "foobar", true);
    check(r"foo(?!bar)", "foobar", false);
    check(r"(?<=\$)\d+", "cost $5", true);
    check(r"(?<!\$)\b\d+", "cost $5", false);
    check(r"(?<=^(\w+)x)\1", "abxab", true);
    check(r"(?<=\1(a))b", "aab", true);
    check(r"(?<=\1(a))b", "b", false);
    check(r"(?=(a*))a*b\1", "baaabac", true);
    check(r"(z)((a+)?(b+)?(c))*", "zaacbbbcac", true);
    check(r"^(?=(a|ab))\1c", "abc", false);
    check(r"(?=(?:a?)*?$)a*$", "aaa", true);
}

#[test]
fn a_pattern_that_could_run_for_ever_ends_with_an_error() {
    let pattern = pattern(r"^(?:(a+)+(?=\1))+$").unwrap();
    assert!(pattern.is_bounded());
    assert_eq!(pattern.is_match(&format!("{}!", "a".repeat(40)), &mut 100_000), Err(OutOfSteps));
    check("^(a+)+$", &format!("{}!", "a".repeat(16_384)), false);
}

#[test]
fn annex_b_is_refused_with_the_place() {
    for source in [
        "(",
        ")",
        "[z-a]",
        r"\k<x>",
        r"\1",
        "a**",
        "*",
        "a{2,1}",
        "{",
        "}",
        "]",
        r"\-",
        r"\_",
        r"[\d-x]",
        r"\u12",
        r"\x1",
        r"\c1",
        r"(?<1a>x)",
        r"\p{Nope}",
        r"\p{Greek}",
        r"\p{lu}",
        "(?",
        "(?<n",
        "[a",
        r"\",
        "^*",
        r"\b+",
        "(?=a)*",
        r"\00",
        r"\u{110000}",
    ] {
        refused(source, "invalid_regex");
    }
    refused("(?i:a)", "regex_feature_unsupported");
    refused("(?<a>x)|(?<a>y)", "regex_feature_unsupported");
    refused("(?<a>x)(?<a>y)", "invalid_regex");
    refused("(?i)a", "invalid_regex");
    refused(&"a".repeat(1001), "regex_too_large");
    refused("(?:a{1000}){1000}", "regex_too_large");
    refused(r"(?:(a)\1{1000}){1000}", "regex_too_large");
    refused(&"(".repeat(500), "regex_too_large");
    assert!(pattern(&"[a]".repeat(300)).is_ok());
    assert_eq!(pattern("ab[z-a]").unwrap_err().detail, "a range runs upward (character 6 of the pattern)");
}

#[test]
fn empty_rounds_end() {
    check("(?:){4294967295}", "", true);
    check(r"(?:a*?)*(?=b)", "aab", true);
    check(r"(?:(?=a))*b", "b", true);
    check(r"(?:\b|a)*\1(x)", "aax", true);
}
