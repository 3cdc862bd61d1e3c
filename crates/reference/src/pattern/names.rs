//! ECMA-262 §22.2.1.1: which groups have names, and which of them may share one.
//!
//! Groups may share a name only if no match can pass through two of them, that is, if they stand in different
//! alternatives of one disjunction.

use super::syntax::Piece;

/// A named group: its number among the captures, and the alternatives in which it stands, from outside to inside.
pub(super) struct NamedGroup {
    pub(super) name: String,
    pub(super) number: usize,
    path: Vec<Alternative>,
}

/// One alternative of one disjunction.
#[derive(Clone, PartialEq)]
struct Alternative {
    disjunction: usize,
    index: usize,
}

/// The named groups of a pattern, unless two of them clash.
pub(super) fn named_groups(pieces: &[Piece]) -> Result<Vec<NamedGroup>, &'static str> {
    let mut groups = Vec::new();
    let mut captures = 0;
    let mut disjunctions = 0;
    let mut path = vec![Alternative { disjunction: 0, index: 0 }];
    for piece in pieces {
        match piece {
            Piece::Open(_) | Piece::Capture(_) => {
                if let Piece::Capture(name) = piece {
                    captures += 1;
                    if let Some(name) = name {
                        groups.push(NamedGroup { name: name.clone(), number: captures, path: path.clone() });
                    }
                }
                disjunctions += 1;
                path.push(Alternative { disjunction: disjunctions, index: 0 });
            }
            Piece::Close => {
                path.pop();
            }
            Piece::Or => {
                if let Some(alternative) = path.last_mut() {
                    alternative.index += 1;
                }
            }
            Piece::One(_) | Piece::Assertion(_) | Piece::Quantifier(_) | Piece::Numbered(_) | Piece::Named(_) => {}
        }
    }
    let clash = groups.iter().enumerate().any(|(index, group)| {
        groups
            .iter()
            .skip(index + 1)
            .any(|other| other.name == group.name && both_may_take_part(&group.path, &other.path))
    });
    if clash { Err("invalid_regex") } else { Ok(groups) }
}

fn both_may_take_part(left: &[Alternative], right: &[Alternative]) -> bool {
    !left.iter().zip(right).any(|(left, right)| left.disjunction == right.disjunction && left.index != right.index)
}
