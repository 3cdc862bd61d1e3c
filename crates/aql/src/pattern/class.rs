//! RFC 0020 A.1: character classes as ECMA-262 defines them, which is not how Rust's engines do.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

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

/// `\p{…}`: a Unicode property as ECMA-262 spells it (exact names, no loose matching).
pub(super) fn property(body: &str) -> Option<Class> {
    let (name, value) = match body.split_once('=') {
        Some((name, value)) => (Some(name), value),
        None => (None, body),
    };
    let exact = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let known = match name {
        None => exact(value) && !is_script(value),
        Some("General_Category" | "gc" | "Script" | "sc" | "Script_Extensions" | "scx") => exact(value),
        Some(_) => false,
    };
    if !known {
        return None;
    }
    let hir = regex_syntax::Parser::new().parse(&format!("\\p{{{body}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let text = String::from_utf8(literal.0.into_vec()).ok()?;
            let mut characters = text.chars();
            let first = characters.next()?;
            characters.next().is_none().then(|| single(first))
        }
        _ => None,
    }
}

/// Rust reads `\p{Greek}` as a script; ECMA-262 wants `Script=` before it.
fn is_script(value: &str) -> bool {
    let parse = |pattern: String| regex_syntax::Parser::new().parse(&pattern).ok();
    let script = parse(format!("\\p{{Script={value}}}"));
    script.is_some() && script == parse(format!("\\p{{{value}}}"))
}
