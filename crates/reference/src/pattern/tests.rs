//! ECMA-262 §22.2 with the `u` flag, as tables.

use super::syntax::{Piece, split};
use super::*;

#[track_caller]
fn check(pattern: &str, subject: &str, expected: bool) {
    assert_eq!(matches(pattern, subject), Ok(expected), "{pattern} in {subject:?}");
}

#[track_caller]
fn check_refused(pattern: &str, code: &str) {
    assert_eq!(matches(pattern, "").unwrap_err().code, code, "{pattern}");
}

#[track_caller]
fn check_pieces(pattern: &str, expected: &[Piece]) {
    assert_eq!(split(pattern).unwrap(), expected, "{pattern}");
}

fn one(text: &str) -> Piece {
    Piece::One(text.to_owned())
}

#[test]
fn a_pattern_is_searched_for_anywhere() {
    check("ell", "hello", true);
    check("^ell", "hello", false);
    check("^hello$", "hello", true);
    check("", "", true);
    check("|", "x", true);
    check("()", "x", true);
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
    for pattern in
        ["\\-", "{", "}", "]", "\\a", "\\1", "\\01", "[\\d-z]", "(?=a)*", "\\p{Nope}", "\\pL", "\\c1", "\\x1"]
    {
        check_refused(pattern, "invalid_regex");
    }
}

#[test]
fn classes_and_escapes_mean_what_the_standard_says() {
    for (pattern, subject, expected) in [
        ("\\d", "\u{663}", false),
        ("\\w", "\u{e9}", false),
        ("\\s", "\u{feff}", true),
        ("\\s", "\u{85}", false),
        ("^[\\]a-c\\-]+$", "]b-", true),
        ("^[\\b]$", "\u{8}", true),
        ("^\\x41\\cA\\0\\t\\/$", "A\u{1}\u{0}\t/", true),
        ("^[^\\W\\d]+$", "ab_", true),
        ("^[^\\W\\d]+$", "a1", false),
    ] {
        check(pattern, subject, expected);
    }
}

#[test]
fn assertions_hold_of_positions() {
    check("\\bb", "\u{e9}b", true);
    check("\\Bb", "ab", true);
    check("\\Bb", "b", false);
    check("\\B", "", true);
    check("a^b", "ab", false);
    check("^^a$$", "a", true);
}

#[test]
fn repetitions_are_counted() {
    for (pattern, subject, expected) in [
        ("^a{2}$", "aa", true),
        ("^a{2}$", "aaa", false),
        ("^a{2,}$", "aaaa", true),
        ("^a{2,3}$", "aaaa", false),
        ("^a{0}$", "", true),
        ("^a{0}$", "a", false),
        ("^(?:ab)*$", "abab", true),
        ("^a+?b??$", "aab", true),
        ("^(?:a{2}){2}$", "aaaa", true),
        ("^(?:a{2}){2}$", "aaa", false),
    ] {
        check(pattern, subject, expected);
    }
}

#[test]
fn an_empty_repetition_ends_the_loop() {
    check("^(?:a*)*$", "aaa", true);
    check("^(?:a?){3}$", "a", true);
    check("(?:(?:a?){1,2}){0,2}d", "aab", false);
    check("(?:(?:()a?){1,2}?){0,2}d", "aad", true);
    check("^(?:|a)+$", "aaa", true);
    check("^(?:()|a)*?b$", "aab", true);
}

#[test]
fn a_match_that_need_not_be_tried_out_is_quick() {
    let subject = format!("{}!", "a".repeat(2_000));
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(?:a*)*b", "^(?:a?){30}a{30}$"] {
        check(pattern, &subject, false);
    }
    check("^(a+)+$", &"a".repeat(20_000), true);
}

#[test]
fn references_repeat_what_was_captured() {
    for (pattern, subject, expected) in [
        ("^(a|b)\\1$", "bb", true),
        ("^(a|b)\\1$", "ab", false),
        ("(?<x>a)\\k<x>", "aa", true),
        ("^\\1(a)$", "a", true),
        ("^(?:(a)|b)\\1$", "b", true),
        ("^(?:(a)|(b)\\1)+$", "ab", true),
        ("^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10$", "abcdefghijj", true),
        ("(?<=\\1(a))$", "aa", true),
        ("(?<=(a)\\1)b", "ab", true),
        ("(?=(a+))a*b\\1", "baaabac", true),
        ("^(?!(a)\\1)a", "ab", true),
    ] {
        check(pattern, subject, expected);
    }
}

#[test]
fn lookaround_moves_nothing() {
    for (pattern, subject, expected) in [
        ("a(?=b)", "ab", true),
        ("^a(?=b)$", "ab", false),
        ("a(?!b)", "ab", false),
        ("(?<=a)b", "ab", true),
        ("(?<!a)b", "ab", false),
        ("(?<=^.{2})c", "abc", true),
        ("(?<=a|bc)d", "bcd", true),
        ("(?<=(?=b)b)c", "bc", true),
    ] {
        check(pattern, subject, expected);
    }
}

#[test]
fn out_of_steps_is_an_error() {
    let refusal = matches("^(a+)+\\1$", &format!("{}!", "a".repeat(20))).unwrap_err();
    assert_eq!(refusal.code, "regex_budget_exceeded");
}

#[test]
fn flaws_are_named() {
    for pattern in
        ["(", ")", "[", "[\\", "a**", "a{2,1}", "a{,1}", "[b-a]", "\\", "\\k<a>", "\\k", "(?<a>x)\\k<b>", "(?<1>a)"]
    {
        check_refused(pattern, "invalid_regex");
    }
    for pattern in
        ["(?", "(?i", "(?i)a", "(?ii:a)", "(?-:a)", "(?i-i:a)", "(?u:a)", "(?P<a>b)", "(?>a)", "(?#a)", "(?<a\\u003ea)"]
    {
        check_refused(pattern, "invalid_regex");
    }
    for pattern in ["(?i:a)", "(?-i:a)", "(?ms-i:a)", "x(?s:.)"] {
        check_refused(pattern, "regex_feature_unsupported");
    }
}

#[test]
fn a_pattern_is_not_too_large() {
    check_refused(&"a".repeat(1_001), "regex_too_large");
    check(&"\u{e9}".repeat(1_000), "", false);
    check_refused("(?:a{1000}){1000}", "regex_too_large");
    check_refused("(?:){9999999}", "regex_too_large");
    check_refused("a{99999999999999999999999,}", "regex_too_large");
    check("^(?:a{10}){10}$", &"a".repeat(100), true);
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    check(&nested(255), "a", true);
    check_refused(&nested(256), "regex_too_large");
}

#[test]
fn the_syntax_of_the_v_flag_is_not_that_of_the_u_flag() {
    check_refused("[a--b]", "invalid_regex");
    check_refused("\\p{RGI_Emoji}", "invalid_regex");
    check_refused("[\\q{ab}]", "invalid_regex");
    check_refused("[[a]--[b]]", "invalid_regex");
    check("^[a&&b]$", "&", true);
}

#[test]
fn a_name_may_stand_once_in_each_alternative() {
    check("(?<a>x)|(?<a>y)", "y", true);
    check("(?:(?<a>x)|(?:(?<a>y)))", "y", true);
    for pattern in [
        "(?<a>x)(?<a>y)",
        "(?<a>x(?<a>y))",
        "(?:(?<a>x)|b)(?:c|(?<a>y))",
        "(?<a>x)(?:b|(?<a>y))",
        "(?<a>x)(?<\\u0061>y)",
    ] {
        check_refused(pattern, "invalid_regex");
    }
}

#[test]
fn a_shared_name_means_the_group_that_took_part() {
    let pattern = "^(?:(?<a>x)|(?<a>y))\\k<a>$";
    for (subject, expected) in [("yy", true), ("xx", true), ("y", false), ("xy", false)] {
        check(pattern, subject, expected);
    }
    check("^\\k<a>(?:(?<a>x)|(?<a>y))$", "y", true);
    check("^(?:(?:(?<a>x)|(?<a>y))\\k<a>)+$", "xxyy", true);
}

#[test]
fn pieces_are_told_apart() {
    check_pieces("(a)", &[Piece::Capture(None), one("a"), Piece::Close]);
    check_pieces("(?<n>|)", &[Piece::Capture(Some("n".to_owned())), Piece::Or, Piece::Close]);
    check_pieces("(?<=(?<!", &[Piece::Open("(?<="), Piece::Open("(?<!")]);
    check_pieces("\\k<n>\\12", &[Piece::Named("n".to_owned()), Piece::Numbered("12".to_owned())]);
    check_pieces("(?<\\u0061\\u{62}>", &[Piece::Capture(Some("ab".to_owned()))]);
    check_pieces("[(?i:|]x", &[one("[(?i:|]"), one("x")]);
    check_pieces("[\\](]", &[one("[\\](]")]);
    check_pieces("\\(\\p{Lu}{2}?", &[one("\\("), one("\\p{Lu}"), Piece::Quantifier("{2}?".to_owned())]);
}

#[test]
fn unicode_escapes_are_read_digit_by_digit() {
    check_pieces("\\u0041\\u{000041}", &[one("\\u{41}"), one("\\u{41}")]);
    check_pieces("\\uD83D\\uDE00", &[one("\\u{1f600}")]);
    check_pieces("\\ud83d\\ud83d\\ude00", &[one("\\u{d83d}"), one("\\u{1f600}")]);
    check_pieces("[\\ud83d\\u0041]", &[one("[\\u{d83d}\\u{41}]")]);
    for pattern in ["\\u", "\\u004", "\\u+041", "\\u{}", "\\u{+41}", "\\u{110000}", "\\u{41", "\\u{ffffffffffffff}"] {
        check_refused(pattern, "invalid_regex");
    }
}

#[test]
fn a_word_boundary_takes_no_quantifier() {
    for pattern in ["\\b*", "\\B+", "\\b?", "\\b{2}", "^*", "$+"] {
        check_refused(pattern, "invalid_regex");
    }
    check("^[\\b*]$", "*", true);
}
