//! RFC 0020 A.1: character classes as ECMA-262 defines them, which is not how Rust's engines do.

use super::property;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::sync::LazyLock;

pub(super) type Class = ClassUnicode;

fn of(ranges: &[(char, char)]) -> Class {
    Class::new(ranges.iter().map(|&(start, end)| ClassUnicodeRange::new(start, end)))
}

/// One character.
pub(super) fn single(character: char) -> Class {
    of(&[(character, character)])
}

/// A run of characters.
pub(super) fn range(start: char, end: char) -> Class {
    of(&[(start, end)])
}

/// Nothing; also what a lone surrogate matches in well-formed text.
pub(super) fn none() -> Class {
    of(&[])
}

/// `\d`: ASCII digits.
pub(super) fn digit() -> Class {
    of(&[('0', '9')])
}

/// `\w`: ASCII letters, digits and the underscore.
pub(super) fn word() -> Class {
    of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// `\s`: WhiteSpace and LineTerminator of ECMA-262.
pub(super) fn space() -> Class {
    of(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{a0}', '\u{a0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200a}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{205f}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ])
}

/// `.`: everything but line terminators.
pub(super) fn dot() -> Class {
    negated(of(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]))
}

/// Every character that the class does not have.
pub(super) fn negated(mut class: Class) -> Class {
    class.negate();
    class
}

/// Whether a character may begin a name (ECMA-262 RegExpIdentifierStart).
pub(super) fn begins_name(character: char) -> bool {
    static LETTERS: LazyLock<Class> = LazyLock::new(|| property::read("ID_Start").unwrap_or_else(|_| none()));
    matches!(character, '$' | '_' | 'A'..='Z' | 'a'..='z') || (!character.is_ascii() && has(&LETTERS, character))
}

/// Whether a character may stand inside a name (ECMA-262 RegExpIdentifierPart).
pub(super) fn continues_name(character: char) -> bool {
    static LETTERS: LazyLock<Class> = LazyLock::new(|| property::read("ID_Continue").unwrap_or_else(|_| none()));
    let joiner = matches!(character, '\u{200c}' | '\u{200d}');
    begins_name(character)
        || character.is_ascii_digit()
        || joiner
        || (!character.is_ascii() && has(&LETTERS, character))
}

/// Whether a class has a character.
pub(super) fn has(class: &Class, character: char) -> bool {
    let ranges = class.ranges();
    let after = ranges.partition_point(|range| range.end() < character);
    ranges.get(after).is_some_and(|range| range.start() <= character)
}
