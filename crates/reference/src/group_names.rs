//! ECMA-262 §22.2.1.1: which groups may share a name, and what a reference to such a name means.
//!
//! Groups may share a name only if no match can pass through two of them, that is, if they stand in different
//! alternatives of one disjunction. A reference then means the one that took part; since a reference to a group
//! that took no part matches the empty text, the references to all of them in a row mean the same.

use crate::pattern_syntax::Piece;

/// Writes the pieces of a pattern for the engine, or names the broken rule.
pub(crate) fn write_pattern(pieces: &[Piece]) -> Result<String, &'static str> {
    let named = named_groups(pieces);
    for (index, group) in named.iter().enumerate() {
        let clash = |other: &NamedGroup| other.name == group.name && both_may_take_part(&other.path, &group.path);
        if named.iter().skip(index + 1).any(clash) {
            return Err("invalid_regex");
        }
    }
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Open(piece) => text.push_str(piece),
            Piece::Capture(None) => text.push('('),
            Piece::Capture(Some(name)) => text.push_str(&format!("(?<{name}>")),
            Piece::Close => text.push(')'),
            Piece::Or => text.push('|'),
            Piece::Reference(name) => {
                let groups: Vec<&NamedGroup> = named.iter().filter(|group| group.name == *name).collect();
                match groups.as_slice() {
                    [] => return Err("invalid_regex"),
                    [_] => text.push_str(&format!("\\k<{name}>")),
                    several => {
                        let references: String = several.iter().map(|group| format!("\\{}", group.number)).collect();
                        text.push_str(&format!("(?:{references})"));
                    }
                }
            }
        }
    }
    Ok(text)
}

/// A named group: its number among the captures, and the alternatives in which it stands, from outside to inside.
struct NamedGroup {
    name: String,
    number: usize,
    path: Vec<Alternative>,
}

/// One alternative of one disjunction.
#[derive(Clone, PartialEq)]
struct Alternative {
    disjunction: usize,
    index: usize,
}

fn named_groups(pieces: &[Piece]) -> Vec<NamedGroup> {
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
            Piece::Text(_) | Piece::Reference(_) => {}
        }
    }
    groups
}

fn both_may_take_part(left: &[Alternative], right: &[Alternative]) -> bool {
    !left.iter().zip(right).any(|(left, right)| left.disjunction == right.disjunction && left.index != right.index)
}

#[cfg(test)]
mod tests {
    use crate::pattern::matches;

    #[track_caller]
    fn check(pattern: &str, subject: &str, expected: bool) {
        assert_eq!(matches(pattern, subject), Ok(expected), "{pattern} in {subject}");
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
            assert_eq!(matches(pattern, "").unwrap_err().code, "invalid_regex", "{pattern}");
        }
    }

    #[test]
    fn a_shared_name_means_the_group_that_took_part() {
        check("^(?:(?<a>x)|(?<a>y))\\k<a>$", "yy", true);
        check("^(?:(?<a>x)|(?<a>y))\\k<a>$", "xx", true);
        check("^(?:(?<a>x)|(?<a>y))\\k<a>$", "y", false);
        check("^(?:(?<a>x)|(?<a>y))\\k<a>$", "xy", false);
        check("^\\k<a>(?:(?<a>x)|(?<a>y))$", "y", true);
        check("^(?:(?:(?<a>x)|(?<a>y))\\k<a>)+$", "xxyy", true);
    }

    #[test]
    fn a_reference_needs_its_group() {
        assert_eq!(matches("(?<a>x)\\k<b>", "").unwrap_err().code, "invalid_regex");
        assert_eq!(matches("\\k", "").unwrap_err().code, "invalid_regex");
    }
}
