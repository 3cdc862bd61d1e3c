//! RFC 0020 A.7: patterns that a finite automaton decides, in time linear in the subject.

use super::syntax::Syntax;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Class, Hir, Look, Repetition};

/// Compiles a regular pattern, or says that it would not fit.
pub(super) fn compile(syntax: &Syntax, bytes: usize) -> Option<meta::Regex> {
    let config = meta::Config::new()
        .nfa_size_limit(Some(bytes))
        .onepass_size_limit(Some(bytes))
        .dfa_size_limit(Some(bytes))
        .hybrid_cache_capacity(2 * 1024 * 1024)
        .which_captures(WhichCaptures::Implicit)
        // An empty match never splits a character.
        .utf8_empty(true);
    meta::Regex::builder().configure(config).build_from_hir(&lower(syntax)).ok()
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
