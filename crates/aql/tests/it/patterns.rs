//! RFC 0020 A.1, A.7: a pattern cannot hang and cannot lie.

use crate::{candidate, intent, read};
use aql::{Candidate, EvaluationError, Fuel, Limits, OutOfSteps, OverBudget, Pattern};
use json::{Pointer, Value, json};

/// Lookaround and backreferences without end: each needs exponential time where it is tried out step by step.
const BOMBS: [&str; 4] = [r"^(a+)+\1$", r"^(?:(a|aa)+)\1b$", r"(?=((a*)*)*$)\1c", r"^(?:a?){25}a{25}(?!x)b$"];

fn pattern(source: &str) -> Pattern {
    Pattern::read(source, &Pointer::root(), &Limits::STANDARD).unwrap()
}

#[test]
fn regex_cannot_hang_or_lie() {
    let pattern = pattern("^(a+)+$");
    assert!(!pattern.is_bounded());
    let mut subject = "a".repeat(1_000_000);
    // Without a single step to spend: the linear engine takes none.
    assert_eq!(pattern.is_match(&subject, &mut 0), Ok(true));
    subject.push('!');
    assert_eq!(pattern.is_match(&subject, &mut 0), Ok(false));
    subject.insert(0, '!');
    assert_eq!(pattern.is_match(&subject, &mut 0), Ok(false));
}

#[test]
fn nested_repetitions_of_every_kind_are_decided() {
    let subject = format!("{}!", "a".repeat(100_000));
    for source in
        ["^(a*)*$", "^(a|aa)+$", "^(a|a?)+$", "^(?:a+){2,}$", "(.*)(.*)(.*)(.*)(.*)x$", "^([a-z]+)*$", "(x+x+)+y"]
    {
        assert_eq!(pattern(source).is_match(&subject, &mut 0), Ok(false), "{source}");
    }
}

#[test]
fn a_bomb_runs_out_of_steps_and_says_so() {
    let subject = format!("{}!", "a".repeat(60));
    for source in BOMBS {
        let pattern = pattern(source);
        assert!(pattern.is_bounded(), "{source}");
        let mut steps = Fuel::STANDARD.match_steps;
        assert_eq!(pattern.is_match(&subject, &mut steps), Err(OutOfSteps), "{source}");
        assert_eq!(steps, 0, "{source}");
    }
}

#[test]
fn out_of_steps_is_an_error_wherever_the_pattern_stands() {
    let bomb = json!({"path": "/s", "operator": "matches", "value": BOMBS[0]});
    let here = json!({"path": "/name", "operator": "exists", "value": true});
    let gone = json!({"path": "/gone", "operator": "exists", "value": true});
    let candidates = [
        candidate("tame", json!({"name": "tame", "s": "b"})),
        candidate("wild", json!({"name": "wild", "s": format!("{}!", "a".repeat(60))})),
    ];
    for constraints in [
        bomb.clone(),
        json!({"not": bomb}),
        json!({"not": [here, bomb]}),
        json!({"any_of": [here, bomb]}),
        json!({"all_of": [gone, bomb]}),
        json!({"not": {"not": bomb}}),
        json!([{"any_of": [here, {"not": bomb}]}]),
    ] {
        assert_eq!(resolve(&constraints, &candidates), Err(EvaluationError::RegexBudgetExceeded), "{constraints}");
        assert!(resolve(&constraints, &candidates[..1]).is_ok(), "{constraints}");
    }
}

#[test]
fn the_steps_of_an_intent_are_shared_by_its_candidates() {
    let constraints = json!({"path": "/s", "operator": "matches", "value": r"^(a*)\1b$"});
    let one = candidate("one", json!({"name": "n", "s": "a".repeat(100)}));
    let intent = read(&intent(constraints));
    let resolve = |candidates: &[Candidate], intent_steps: u64| {
        let fuel = Fuel { intent_steps, ..Fuel::STANDARD };
        aql::resolve(&intent, candidates, OverBudget::Flag, fuel).map(|_| ())
    };
    let needed =
        (0..).map(|power| 1 << power).find(|&steps| resolve(std::slice::from_ref(&one), steps).is_ok()).unwrap();
    assert!(needed < Fuel::STANDARD.match_steps);
    let many = vec![one; 40];
    assert_eq!(resolve(&many, needed), Err(EvaluationError::RegexBudgetExceeded));
    assert_eq!(resolve(&many, 40 * needed), Ok(()));
}

fn resolve(constraints: &Value, candidates: &[Candidate]) -> Result<usize, EvaluationError> {
    let intent = read(&intent(constraints.clone()));
    aql::resolve(&intent, candidates, OverBudget::Flag, Fuel::STANDARD).map(|resolution| resolution.matches.len())
}

#[test]
fn what_a_match_costs_is_counted_to_the_step() {
    let long = "a".repeat(256);
    for (source, subject, expected, cost) in [
        // The look, what it looks for, its end, and the end of all.
        ("(?=a)", "a", true, 4),
        ("(?=a)", "", false, 2),
        ("(?=a)", "b", false, 4),
        ("(?!a)", "a", true, 3 + 3),
        ("(?<=a)b", "ab", true, 2 + 5),
        // A long text that is repeated costs a step for each 64 bytes of it beside its own.
        (r"^(a{63})\1", long.as_str(), true, 1 + 1 + 63 + 1 + 1 + 1),
        (r"^(a{64})\1", long.as_str(), true, 1 + 1 + 64 + 1 + (1 + 1) + 1),
        (r"^(a{128})\1", long.as_str(), true, 1 + 1 + 128 + 1 + (1 + 2) + 1),
    ] {
        let pattern = pattern(source);
        let mut steps = 1_000;
        assert_eq!(pattern.is_match(subject, &mut steps), Ok(expected), "{source}");
        assert_eq!(1_000 - steps, cost, "{source}");
        for (mut steps, found) in [(cost, Ok(expected)), (cost - 1, Err(OutOfSteps))] {
            assert_eq!(pattern.is_match(subject, &mut steps), found, "{source}");
        }
    }
}

#[test]
fn what_a_pattern_weighs_is_counted_to_the_byte() {
    const OP: usize = 64;
    for (source, bytes) in [
        ("(?=a)", 4 * OP + 8),
        ("(?=[ac])", 4 * OP + 2 * 8),
        (r"(a)\1", 5 * OP + 8),
        (r"(?:(a)\1){2}", 2 * (5 * OP + 8 + 8 + 1) + OP),
        ("(?=a)(?:){40}", 4 * OP + 8 + 40),
        ("(?=a)b{2,3}", 4 * OP + 8 + 3 * (OP + 8 + 1) + 3 * OP),
        ("(?=a)b*", 4 * OP + 8 + (OP + 8 + 1) + 4 * OP),
        ("(?=a)(?:b|c)", 4 * OP + 8 + 2 * (OP + 8) + 2 * OP),
    ] {
        let read = |pattern_bytes: usize| {
            let limits = Limits { pattern_bytes, ..Limits::STANDARD };
            Pattern::read(source, &Pointer::root(), &limits).map(|_| ()).map_err(|refusal| refusal.code.name())
        };
        assert_eq!(read(bytes), Ok(()), "{source}");
        assert_eq!(read(bytes - 1), Err("regex_too_large"), "{source}");
    }
}

#[test]
fn boundaries_choices_and_names_are_the_same_on_both_engines() {
    for (source, subject, expected) in [
        (r"\bfoo", "foo!", true),
        (r"\bfoo", "xfoo!", false),
        (r"foo\b", "foo!", true),
        (r"foo\b", "food!", false),
        (r"\Boo", "foo!", true),
        (r"\Boo", "oo!", false),
        ("^(?:a|ab)!", "ab!", true),
        (r"^\p{Zl}\p{Zp}!", "\u{2028}\u{2029}!", true),
        (r"^\p{Zl}", "\u{2029}!", false),
    ] {
        for source in [source.to_owned(), format!("{source}(?=)"), format!("(?!x){source}")] {
            assert_eq!(pattern(&source).is_match(subject, &mut 1_000), Ok(expected), "{source} on {subject:?}");
        }
    }
    // A look that finds nothing takes no choice away that stands outside of it.
    for (source, subject, expected) in [
        ("^(?:a|ab)(?!c)", "ab!", true),
        ("^(?:a|ab)(?=c)", "abc", true),
        ("^(?:a|ab)(?=c)", "abd", false),
        ("^(?:ab|a)(?<!b)b", "ab", true),
    ] {
        assert_eq!(pattern(source).is_match(subject, &mut 1_000), Ok(expected), "{source} on {subject:?}");
    }
    for source in ["(?<a\u{2192}>x)", "(?<\u{2192}>x)", "(?<a b>x)"] {
        let refusal = Pattern::read(source, &Pointer::root(), &Limits::STANDARD).unwrap_err();
        assert_eq!(refusal.code.name(), "invalid_regex", "{source}");
    }
}

#[test]
fn a_reference_counts_groups_and_not_parentheses() {
    let read = |source: &str| {
        Pattern::read(source, &Pointer::root(), &Limits::STANDARD).map(|_| ()).map_err(|refusal| refusal.code.name())
    };
    for source in
        [r"(a)\1", r"\1(a)", r"[a](b)\1", r"\[(a)\1", r"[\]](a)\1", r"[(](a)\1", r"(?<n>a)\1", r"(?<n>a)\k<n>"]
    {
        assert_eq!(read(source), Ok(()), "{source}");
    }
    for source in
        [r"[(]\1", r"\(\1", r"[\](]\1", r"(?:a)\1", r"(?=a)\1", r"(?<=a)\1", r"(?<!a)\1", r"(a)\2", r"(a)\10", r"\k<n>"]
    {
        assert_eq!(read(source), Err("invalid_regex"), "{source}");
    }
}

#[test]
fn groups_nest_so_deep_and_one_name_stands_once() {
    let nested = |levels: usize| format!("{}a{}", "(".repeat(levels), ")".repeat(levels));
    for (source, expected) in [
        (nested(64), None),
        (nested(65), Some("regex_too_large")),
        ("(a)".repeat(100), None),
        ("(?<a>x)(?:b|(?<a>y))".to_owned(), Some("invalid_regex")),
        ("(?:(?<a>x)|b)(?:c|(?<a>y))".to_owned(), Some("invalid_regex")),
        ("(?:(?<a>x)|(?:c|(?<a>y)))".to_owned(), Some("regex_feature_unsupported")),
        ("(?<a>x)|b|(?<a>y)".to_owned(), Some("regex_feature_unsupported")),
    ] {
        let found = Pattern::read(&source, &Pointer::root(), &Limits::STANDARD).err();
        assert_eq!(found.map(|refusal| refusal.code.name()), expected, "{source}");
    }
}

#[test]
fn a_flaw_is_told_with_its_place() {
    for (source, position) in [
        ("]", 0),
        ("ab}", 2),
        ("*", 0),
        ("ab|+", 3),
        (r"a\_", 2),
        (r"a\c1", 3),
        (r"[\c1]", 3),
        ("a{2", 3),
        ("a{2,1}", 6),
        ("ab(c", 4),
        ("ab)", 2),
        ("a[b", 3),
        ("^*", 1),
    ] {
        let refusal = Pattern::read(source, &Pointer::root(), &Limits::STANDARD).unwrap_err();
        let place = format!("(character {position} of the pattern)");
        assert!(refusal.detail.ends_with(&place), "{source}: {refusal}");
    }
}

#[test]
fn a_lone_surrogate_bounds_a_range_and_is_no_character() {
    for (source, subject, expected) in [
        (r"^[\ud800-\ue000]$", "\u{e000}", true),
        (r"^[\ud7ff-\ud800]$", "\u{d7ff}", true),
        (r"^[\u{d7ff}-\u{dfff}]$", "\u{e000}", false),
        (r"[\ud800-\udfff]", "\u{e000}\u{d7ff}", false),
        (r"^\u{10FFFF}$", "\u{10ffff}", true),
        ("^[a-a]$", "a", true),
    ] {
        assert_eq!(pattern(source).is_match(subject, &mut 0), Ok(expected), "{source} on {subject:?}");
    }
    for source in [r"[\udfff-\ud800]", r"[\u{dfff}-\u{d800}]", r"[\ue000-\udfff]"] {
        let refusal = Pattern::read(source, &Pointer::root(), &Limits::STANDARD).unwrap_err();
        assert!(refusal.detail.starts_with("a range runs upward"), "{source}: {refusal}");
    }
}
