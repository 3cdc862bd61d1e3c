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
