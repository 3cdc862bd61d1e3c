//! RFC 0020 §3.2 and A.1: JSON Pointers with `*` and `**`, and the nodes of a document that one reaches.
//!
//! INVARIANT: the nodes reached form a set in document order: no location twice, ancestors before descendants.

use crate::refusal::Refusal;
use crate::value::Value;

/// RFC 0020 A.7 bounds the path: its bytes, its segments, and its descents.
const PATH_BYTES_MAX: usize = 512;
const SEGMENTS_MAX: usize = 32;
const DESCENTS_MAX: usize = 2;

/// Where a node stands: at each level its position among the children, so that sorting gives document order.
pub(crate) type Location = Vec<usize>;

/// A node of a document.
#[derive(Debug, Clone)]
pub(crate) struct Node<'d> {
    pub(crate) location: Location,
    pub(crate) value: &'d Value,
}

/// A pointer as it was written, and its segments.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) written: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
enum Segment {
    /// One child, by key or index.
    Child(String),
    /// `*`: every child.
    Every,
    /// `**`: the node itself and everything below it.
    Descend,
}

impl Path {
    /// Reads a pointer that stands at a place.
    pub(crate) fn read(text: &str, at: &str) -> Result<Path, Refusal> {
        if text.len() > PATH_BYTES_MAX {
            return Err(Refusal::new("path_too_long", at));
        }
        let mut segments = Vec::new();
        if !text.is_empty() && text != "/" {
            let Some(text) = text.strip_prefix('/') else { return Err(Refusal::new("invalid_pointer", at)) };
            for segment in text.split('/') {
                segments.push(read_segment(segment).ok_or_else(|| Refusal::new("invalid_pointer", at))?);
            }
        }
        let descents = segments.iter().filter(|segment| **segment == Segment::Descend).count();
        let adjacent = segments.iter().zip(segments.iter().skip(1));
        let adjacent_descents = adjacent.filter(|pair| *pair == (&Segment::Descend, &Segment::Descend)).count();
        if segments.len() > SEGMENTS_MAX || descents > DESCENTS_MAX || adjacent_descents > 0 {
            return Err(Refusal::new("path_too_complex", at));
        }
        Ok(Path { written: text.to_owned(), segments })
    }

    /// The nodes of a document that the pointer reaches.
    pub(crate) fn reach<'d>(&self, document: &'d Value) -> Vec<Node<'d>> {
        let mut reached = vec![Node { location: Location::new(), value: document }];
        for segment in &self.segments {
            let mut next = Vec::new();
            for node in &reached {
                match segment {
                    Segment::Child(name) => next.extend(child(node, name)),
                    Segment::Every => next.extend(children(node)),
                    Segment::Descend => descend(node, &mut next),
                }
            }
            next.sort_by(|left, right| left.location.cmp(&right.location));
            next.dedup_by(|left, right| left.location == right.location);
            reached = next;
        }
        reached
    }
}

/// Wildcards are recognised as they are written; a key named `*` cannot be spelled otherwise.
fn read_segment(text: &str) -> Option<Segment> {
    match text {
        "*" => Some(Segment::Every),
        "**" => Some(Segment::Descend),
        key => unescape(key).map(Segment::Child),
    }
}

/// RFC 6901 §4: `~1` is `/` and `~0` is `~`; any other `~` is a flaw.
fn unescape(text: &str) -> Option<String> {
    let mut key = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '~' => match characters.next() {
                Some('0') => key.push('~'),
                Some('1') => key.push('/'),
                Some(_) | None => return None,
            },
            other => key.push(other),
        }
    }
    Some(key)
}

fn child<'d>(node: &Node<'d>, name: &str) -> Option<Node<'d>> {
    let position = match node.value {
        Value::Object(members) => members.iter().position(|(key, _)| key == name)?,
        Value::Array(_) => index(name)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    children(node).into_iter().nth(position)
}

/// RFC 6901 §4: `0`, or digits without a leading zero.
fn index(name: &str) -> Option<usize> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = name.starts_with('0') && name != "0";
    if digits && !leading_zero { name.parse().ok() } else { None }
}

/// The children of a node, in document order.
pub(crate) fn children<'d>(node: &Node<'d>) -> Vec<Node<'d>> {
    let below = |(position, value)| {
        let mut location = node.location.clone();
        location.push(position);
        Node { location, value }
    };
    node.value.children().into_iter().enumerate().map(below).collect()
}

fn descend<'d>(node: &Node<'d>, out: &mut Vec<Node<'d>>) {
    out.push(node.clone());
    for below in children(node) {
        descend(&below, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::canonical;
    use crate::parse::value;

    #[track_caller]
    fn check(path: &str, document: &str, expected: &[&str]) {
        let document = value(document);
        let reached = Path::read(path, "").unwrap().reach(&document);
        let reached: Vec<String> = reached.iter().map(|node| canonical(node.value)).collect();
        assert_eq!(reached, expected, "{path}");
    }

    #[track_caller]
    fn check_refused(path: &str, code: &'static str) {
        assert_eq!(Path::read(path, "/p").unwrap_err(), Refusal::new(code, "/p"), "{path}");
    }

    #[test]
    fn the_whole_document_has_two_spellings() {
        check("", r#"{"":1}"#, &[r#"{"":1}"#]);
        check("/", r#"{"":1}"#, &[r#"{"":1}"#]);
        check("//", r#"{"":{"":1}}"#, &["1"]);
        check("/a/", r#"{"a":{"":1}}"#, &["1"]);
    }

    #[test]
    fn members_are_reached_by_decoded_key() {
        check("/a", r#"{"a":1}"#, &["1"]);
        check("/a/b", r#"{"a":{"b":null}}"#, &["null"]);
        check("/x~1y", r#"{"x/y":1}"#, &["1"]);
        check("/x~0y", r#"{"x~y":1}"#, &["1"]);
        check("/~01", r#"{"~1":1,"/":2}"#, &["1"]);
        check("/A", r#"{"a":1}"#, &[]);
        check("/0", r#"{"0":1}"#, &["1"]);
        check("/01", r#"{"01":1}"#, &["1"]);
        check("/*a", r#"{"*a":1,"a":2}"#, &["1"]);
        check("/***", r#"{"***":1,"a":2}"#, &["1"]);
    }

    #[test]
    fn elements_are_reached_by_plain_index() {
        check("/0", "[1,2]", &["1"]);
        check("/1", "[1,2]", &["2"]);
        check("/10", "[0,1,2,3,4,5,6,7,8,9,10]", &["10"]);
        for path in [
            "/2",
            "/01",
            "/00",
            "/-",
            "/-1",
            "/+1",
            "/1.0",
            "/1e0",
            "//",
            "/a",
            "/\u{0661}",
            "/99999999999999999999999",
        ] {
            check(path, "[1,2]", &[]);
        }
    }

    #[test]
    fn scalars_have_nothing_below() {
        for document in ["null", "true", "1", r#""text""#] {
            check("/0", document, &[]);
            check("/length", document, &[]);
            check("/*", document, &[]);
        }
    }

    #[test]
    fn a_star_is_every_child() {
        check("/*", "[1,[2],{}]", &["1", "[2]", "{}"]);
        check("/*", r#"{"b":1,"a":null}"#, &["null", "1"]);
        check("/*/x", r#"[{"x":1},{"y":2},{"x":3},4]"#, &["1", "3"]);
        check("/*", "[]", &[]);
    }

    #[test]
    fn two_stars_are_zero_or_more_levels() {
        check("/**", r#"{"b":[1,null],"a":2}"#, &[r#"{"a":2,"b":[1,null]}"#, "2", "[1,null]", "1", "null"]);
        check("/**", "5", &["5"]);
        check("/**/a", r#"{"a":{"a":1},"b":{"a":2}}"#, &[r#"{"a":1}"#, "1", "2"]);
        check("/a/**", r#"{"a":[3]}"#, &["[3]", "3"]);
        check("/**/*", r#"[[1]]"#, &["[1]", "1"]);
    }

    #[test]
    fn no_node_is_reached_twice() {
        check("/**/a/**/b", r#"{"a":{"a":{"b":1}}}"#, &["1"]);
        check("/**/*/**", r#"[[7]]"#, &["[7]", "7"]);
        check("/*", "[1,1]", &["1", "1"]);
    }

    #[test]
    fn flawed_pointers_are_refused() {
        for path in ["a", "a/b", "*", " /a", "/~", "/a~", "/~2", "/~~0", "/a~a/b"] {
            check_refused(path, "invalid_pointer");
        }
        check_refused(&format!("/{}", "a".repeat(512)), "path_too_long");
        assert!(Path::read(&format!("/{}", "a".repeat(511)), "").is_ok());
        check_refused(&"/a".repeat(33), "path_too_complex");
        assert!(Path::read(&"/a".repeat(32), "").is_ok());
        check_refused("/**/**", "path_too_complex");
        check_refused("/**/a/**/b/**", "path_too_complex");
        assert!(Path::read("/**/*/**", "").is_ok());
    }
}
