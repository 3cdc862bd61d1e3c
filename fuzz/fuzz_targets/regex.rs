//! RFC 0020 A.1 `matches`: patterns that are full of syntax, over short subjects.
//!
//! Reading and matching end, whatever the pattern; our two engines agree where both can run it; and the twin accepts
//! the same patterns and finds the same matches. It is asked only where our step-counting engine needed few steps.
//! What a pattern may weigh, which rare features are read and when steps run out is each engine's own affair.

#![no_main]

use aql::{Code, Limits, Pattern};
use fuzzing::{first_line, head, spell, text};
use json::Pointer;
use libfuzzer_sys::fuzz_target;

const SUBJECT_CHARS_MAX: usize = 24;
const PATTERN_WORDS_MAX: usize = 48;

/// Steps beyond which a search counts as expensive.
const STEPS: u64 = 50_000;

#[rustfmt::skip]
const PATTERN: [&str; 120] = [
    "a", "b", "c", "A", "1", "_", "-", " ", "é", "\u{1f600}", "\n", "\u{2028}", ".", "^", "$", "|", "(", "(", "(?:",
    "(?:", ")", ")", ")", "(?=", "(?!", "(?<=", "(?<!", "(?<n>", "(?<m>", "\\k<n>", "\\k<m>", "\\1", "\\2", "\\3",
    "*", "+", "?", "*?", "+?", "??", "{", "}", "{0}", "{1}", "{2}", "{0,1}", "{1,}", "{2,3}", "{2,3}?", "{0,}?",
    "{3,2}",
    "[", "[", "[^", "]", "]", "[a-c]", "[^a]", "[]", "[^]", "a-c", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b",
    "\\B", "\\n", "\\t", "\\cA", "\\0", "\\00", "\\x61", "\\x6", "\\u0061", "\\u{61}", "\\u{1F600}", "\\ud83d\\ude00",
    "\\ud83d", "\\ude00", "\\u{d83d}", "\\u", "\\.", "\\*", "\\(", "\\)", "\\[", "\\]", "\\{", "\\}", "\\/", "\\-",
    "\\_", "\\\\", "\\", "\\p{L}", "\\P{L}", "\\p{Lu}", "\\p{Script=Greek}", "\\p{ASCII}", "\\p{Any}", "\\p{Nope}",
    "\\p{Greek}", "\\p{gc=Ll}", "(?i:", "(?", "(?<", "(?<1", ">", "=", "!", ":", "a{1000}", "(?<n>a)|(?<n>b)",
    "&&", "--",
    "[\\b]", "(a)|b",
];

#[rustfmt::skip]
const SUBJECT: [&str; 28] = [
    "a", "a", "a", "b", "b", "c", "A", "B", "1", "2", "_", "-", " ", "\n", "\r", "\u{2028}", "\u{a0}", "é", "e\u{301}",
    "α", "\u{1f600}", "\u{d7ff}", "\u{e000}", "\u{0}", "\u{8}", "\u{feff}", "(", "\\",
];

fuzz_target!(|data: &[u8]| {
    // A first byte beyond ASCII asks for words, so that seeds can be written by hand: a pattern and a subject below it.
    let (pattern, subject) = match data.split_first() {
        Some((&first @ 0x80.., rest)) => {
            let length = usize::from(first - 0x80).min(PATTERN_WORDS_MAX).min(rest.len());
            let (pattern, subject) = rest.split_at(length);
            (spell(pattern, &PATTERN), spell(subject, &SUBJECT))
        }
        _ => {
            let text = text(data);
            let (pattern, subject) = first_line(&text);
            (head(pattern, 2 * PATTERN_WORDS_MAX).to_owned(), subject.to_owned())
        }
    };
    check(&pattern, head(&subject, SUBJECT_CHARS_MAX));
});

fn read(pattern: &str) -> Result<Pattern, Code> {
    Pattern::read(pattern, &Pointer::root(), &Limits::STANDARD).map_err(|refusal| refusal.code)
}

fn check(pattern: &str, subject: &str) {
    let answer = match read(pattern) {
        Ok(read) => read.is_match(subject, &mut STEPS.clone()),
        Err(Code::RegexTooLarge | Code::RegexFeatureUnsupported) => return,
        Err(code) => {
            let twin = reference::matches(pattern, "").map_err(|refusal| refusal.code);
            assert!(
                matches!(twin, Err("invalid_regex" | "regex_feature_unsupported" | "regex_too_large")),
                "aql {code:?}, reference {twin:?}: {pattern:?}"
            );
            return;
        }
    };
    let Ok(answer) = answer else { return };
    if answer_with_steps(pattern, subject) == Some(answer) {
        match reference::matches(pattern, subject) {
            Ok(twin) => assert_eq!(answer, twin, "{pattern:?} on {subject:?}"),
            Err(refusal) => {
                let bounded = matches!(refusal.code, "regex_too_large" | "regex_budget_exceeded");
                assert!(bounded, "aql accepts {pattern:?}, reference {refusal}");
            }
        }
    }
}

/// What the step-counting engine says: an assertion that always holds in front makes every pattern one of its own.
fn answer_with_steps(pattern: &str, subject: &str) -> Option<bool> {
    let bounded = match read(&format!("(?=)(?:{pattern})")) {
        Ok(bounded) => bounded,
        Err(Code::RegexTooLarge) => return None,
        Err(code) => panic!("{code:?} for {pattern:?} in a group"),
    };
    assert!(bounded.is_bounded());
    let answer = bounded.is_match(subject, &mut STEPS.clone()).ok()?;
    let plain = read(pattern).expect("it was read before").is_match(subject, &mut STEPS.clone());
    assert_eq!(plain, Ok(answer), "the two engines of aql differ on {pattern:?} over {subject:?}");
    Some(answer)
}
