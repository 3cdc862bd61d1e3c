//! RFC 0020 A.7: how large a pattern is once its counted repetitions are written out.
//!
//! What a pattern takes when compiled depends on the engine. This measure is the part on which every engine that
//! writes repetitions out agrees: `(?:ab){3}` has six atoms. It is taken of patterns that the engine has accepted.

use crate::pattern_syntax::Piece;

/// The number of atoms in a pattern with every counted repetition written out.
pub(crate) fn written_out_size(pieces: &[Piece]) -> usize {
    let mut groups = vec![Group::default()];
    let mut in_class = false;
    let mut count: Option<String> = None;
    for piece in pieces {
        let group = groups.pop().unwrap_or_default();
        match piece {
            Piece::Open(_) | Piece::Capture(_) => {
                groups.push(group.then_atom(0));
                groups.push(Group::default());
            }
            Piece::Close => {
                let outer = groups.pop().unwrap_or_default();
                groups.push(outer.then_atom(group.total()));
            }
            Piece::Or | Piece::Reference(_) => groups.push(group.then_atom(1)),
            Piece::Text(text) => match (text.as_str(), &mut count) {
                ("]", _) if in_class => {
                    in_class = false;
                    groups.push(group);
                }
                (_, _) if in_class => groups.push(group),
                ("[", _) => {
                    in_class = true;
                    groups.push(group.then_atom(1));
                }
                ("{", _) => {
                    count = Some(String::new());
                    groups.push(group);
                }
                ("}", Some(written)) => {
                    groups.push(group.repeated(greatest(written)));
                    count = None;
                }
                (text, Some(written)) => {
                    written.push_str(text);
                    groups.push(group);
                }
                ("*" | "+" | "?", None) => groups.push(group),
                (_, None) => groups.push(group.then_atom(1)),
            },
        }
    }
    groups.iter().map(Group::total).fold(0, usize::saturating_add)
}

/// The size of what was read of a group: its last atom, which a count may repeat, and everything before that.
#[derive(Default)]
struct Group {
    before: usize,
    last: usize,
}

impl Group {
    fn total(&self) -> usize {
        self.before.saturating_add(self.last)
    }

    fn then_atom(self, size: usize) -> Group {
        Group { before: self.total(), last: size }
    }

    fn repeated(self, times: usize) -> Group {
        Group { before: self.before, last: self.last.saturating_mul(times) }
    }
}

/// The greatest number in `n`, `n,` or `n,m`, and at least one; a number beyond all bounds counts as such.
fn greatest(count: &str) -> usize {
    count.split(',').filter(|text| !text.is_empty()).map(|text| text.parse().unwrap_or(usize::MAX)).fold(1, usize::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern_syntax::split;

    #[track_caller]
    fn check(pattern: &str, size: usize) {
        assert_eq!(written_out_size(&split(pattern).unwrap()), size, "{pattern}");
    }

    #[test]
    fn repetitions_are_written_out() {
        check("", 0);
        check("abc", 3);
        check("a*b+c?", 3);
        check("ab{3}", 4);
        check("ab{3,}", 4);
        check("ab{3,5}", 6);
        check("a{0}", 1);
        check("(?:ab){3}", 6);
        check("((a{2}){3}b){4}", 28);
        check("[a-z{9}]{2}", 2);
        check("(?<n>a)\\k<n>{5}", 6);
        check("\\{9\\}", 3);
        check("\\p{Lu}{3}", 3);
        check("(?:a{1000}){1000}", 1_000_000);
        check("(?:a{99999999999999999999999}){2}", usize::MAX);
    }
}
