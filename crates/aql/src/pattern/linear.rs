//! RFC 0020 A.7: patterns that a finite automaton decides, in time linear in the subject.

use super::Literals;
use super::syntax::Syntax;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// Alternatives beyond this do not narrow anything.
const REQUIRED_MAX: usize = 16;

/// Compiles a regular pattern, or says that it would not fit.
pub(super) fn compile(syntax: &Syntax, bytes: usize) -> Option<(meta::Regex, Literals)> {
    let config = meta::Config::new()
        .nfa_size_limit(Some(bytes))
        .onepass_size_limit(Some(bytes))
        .dfa_size_limit(Some(bytes))
        .hybrid_cache_capacity(2 * 1024 * 1024)
        .which_captures(WhichCaptures::Implicit)
        // An empty match never splits a character.
        .utf8_empty(true);
    let hir = lower(syntax);
    let regex = meta::Regex::builder().configure(config).build_from_hir(&hir).ok()?;
    Some((regex, Literals { prefix: prefix(&hir), required: required(&hir).unwrap_or_default().into() }))
}

/// The literal that follows `^` at the very beginning.
fn prefix(hir: &Hir) -> Box<str> {
    let HirKind::Concat(parts) = hir.kind() else { return Box::default() };
    match parts.as_slice() {
        [start, next, ..] if matches!(start.kind(), HirKind::Look(Look::Start)) => match next.kind() {
            HirKind::Literal(literal) => std::str::from_utf8(&literal.0).unwrap_or_default().into(),
            _ => Box::default(),
        },
        _ => Box::default(),
    }
}

/// Literals of which every match contains one; `None` when there are none or too many.
fn required(hir: &Hir) -> Option<Vec<Box<[u8]>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => None,
        HirKind::Literal(literal) => Some(vec![literal.0.clone()]),
        HirKind::Capture(group) => required(&group.sub),
        HirKind::Repetition(repetition) => required(&repetition.sub).filter(|_| repetition.min > 0),
        // All parts are there, so the one that says most is enough: its shortest literal is the longest.
        HirKind::Concat(parts) => parts
            .iter()
            .filter_map(required)
            .max_by_key(|literals| literals.iter().map(|literal| literal.len()).min().unwrap_or_default()),
        HirKind::Alternation(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(required).collect();
            all.map(|all| all.concat()).filter(|all| all.len() <= REQUIRED_MAX)
        }
    }
}

fn lower(syntax: &Syntax) -> Hir {
    match syntax {
        Syntax::Empty | Syntax::Backreference(_) | Syntax::Look { .. } => Hir::empty(),
        Syntax::Class(class) => Hir::class(Class::Unicode(class.clone())),
        Syntax::Start => Hir::look(Look::Start),
        Syntax::End => Hir::look(Look::End),
        Syntax::WordBoundary { negated: false } => Hir::look(Look::WordAscii),
        Syntax::WordBoundary { negated: true } => Hir::look(Look::WordAsciiNegate),
        Syntax::Group { inner, .. } => lower(inner),
        // Whether there is a match does not depend on which one is tried first.
        Syntax::Repeat { inner, min, max, .. } => {
            Hir::repetition(Repetition { min: *min, max: *max, greedy: true, sub: Box::new(lower(inner)) })
        }
        Syntax::Concat(parts) => Hir::concat(parts.iter().map(lower).collect()),
        Syntax::Alternate(parts) => Hir::alternation(parts.iter().map(lower).collect()),
    }
}
