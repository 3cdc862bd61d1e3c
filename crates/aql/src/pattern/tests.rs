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

#[test]
fn names_of_groups_are_identifiers() {
    check(r"^(?<\u0061>x)\k<a>$", "xx", true);
    check(r"^(?<a>x)\k<\u{61}>$", "xx", true);
    check(r"^(?<\ud835\udc9c>x)\k<𝒜>$", "xx", true);
    check("(?<e\u{301}>a)(?<a\u{200d}>b)(?<$·_1>c)", "abc", true);
    for source in
        ["(?<>x)", "(?<\u{345}>x)", "(?<a-b>x)", r"(?<\u>x)", r"(?<\x61>x)", r"(?<\ud835>x)", "(?<1>x)", "(?<a"]
    {
        refused(source, "invalid_regex");
    }
}

#[test]
fn properties_have_their_names_in_the_standard_and_no_others() {
    for (source, subject) in [
        (r"^\p{space}\p{digit}\p{punct}\p{cntrl}$", " 1!\n"),
        (r"^\p{L}\p{gc=Lu}\p{General_Category=Letter}$", "aAa"),
        (r"^\p{sc=Grek}\p{Script=Greek}\p{scx=Greek}$", "ααα"),
        (r"^\p{Script=Old_Italic}\p{sc=Ital}$", "\u{10300}\u{10300}"),
        (r"^\p{ID_Start}\p{XIDC}\p{Any}\p{ASCII}\P{Cs}\p{Emoji}$", "aaaaa😀"),
    ] {
        check(source, subject, true);
    }
    check(r"\p{Surrogate}", "a\u{e000}", false);
    for name in [
        "lu",
        "LU",
        "UppercaseLetter",
        "IsL",
        "Greek",
        "Hyphen",
        "Other_Math",
        "Grapheme_Link",
        "gc=Any",
        "gc=ASCII",
        "sc=GREEK",
        "sc=greek",
        "sc=Olditalic",
        "sc=OldItalic",
        "Script=Signwriting",
        "sc=L",
        "Age=6.0",
        "",
        "L=",
        "=L",
        "Alphabetic=Yes",
        "Prepended_Concatenation_Mark",
        "White_Space=",
        "sc=",
        "gc=Space",
    ] {
        refused(&format!("\\p{{{name}}}"), "invalid_regex");
    }
    for name in ["Changes_When_NFKC_Casefolded", "CWKCF", "sc=Unknown", "scx=Zzzz"] {
        refused(&format!("\\P{{{name}}}"), "regex_feature_unsupported");
    }
}

#[track_caller]
fn literals(source: &str, prefix: &str, required: &[&str]) {
    let pattern = pattern(source).unwrap();
    let found: Vec<&str> = pattern.required().iter().map(|literal| std::str::from_utf8(literal).unwrap()).collect();
    assert_eq!((pattern.prefix(), found.as_slice()), (prefix, required), "{source}");
}

#[test]
fn literals_that_every_match_has_are_known() {
    literals("abc", "", &["abc"]);
    literals("^did:key:z.*$", "did:key:z", &["did:key:z"]);
    literals(r"\d+[a-z]*needle(x|yy)?", "", &["needle"]);
    literals("(?:red|green)-light", "", &["-light"]);
    literals("red|green", "", &["red", "green"]);
    literals("(?:long word){2}.x", "", &["long word"]);
    literals("(?:ab)*", "", &[]);
    literals("a?|b", "", &[]);
    literals("^a|b", "", &["a", "b"]);
    literals("x|[^a]", "", &[]);
    literals("(?=abc)", "", &[]);
}
