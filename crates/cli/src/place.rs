//! From a JSON Pointer to a line and a column, for people with an editor.
//!
//! Only texts that were read strictly come here; the scanner trusts their syntax and finds nothing where it is wrong.

use json::{Document, Limits, Pointer};

/// The line and column, from 1, of the value at a pointer; for a missing member, of the object that lacks it.
pub(crate) fn locate(text: &str, pointer: &Pointer) -> Option<(usize, usize)> {
    let mut scanner = Scanner { text, position: 0 };
    scanner.skip_space();
    for segment in Pointer::segments(pointer.as_str()) {
        let here = scanner.position;
        if scanner.enter(&segment.ok()?).is_none() {
            scanner.position = here;
            break;
        }
    }
    Some(line_and_column(text, scanner.position))
}

/// The line and column, from 1, of a byte.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

struct Scanner<'a> {
    text: &'a str,
    position: usize,
}

impl Scanner<'_> {
    /// Moves to the member or element that a segment names.
    fn enter(&mut self, segment: &str) -> Option<()> {
        let object = match self.peek()? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        self.position += 1;
        for index in 0.. {
            self.skip_space();
            if matches!(self.peek()?, b'}' | b']') {
                return None;
            }
            let found = if object {
                let name = self.name()?;
                self.skip_space();
                self.position += 1;
                self.skip_space();
                name == segment
            } else {
                Pointer::as_index(segment) == Some(index)
            };
            if found {
                return Some(());
            }
            self.skip_value()?;
            self.skip_space();
            if self.peek()? == b',' {
                self.position += 1;
            }
        }
        None
    }

    /// Reads a member name.
    fn name(&mut self) -> Option<String> {
        let start = self.position;
        self.skip_value()?;
        let literal = self.text.get(start..self.position)?;
        let document = Document::parse(literal.as_bytes(), &Limits::OURS).ok()?;
        document.root().as_str().map(str::to_owned)
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                b'"' => self.skip_string()?,
                _ => {}
            }
            self.position += 1;
            if depth == 0 && self.peek().is_none_or(|next| b",:}] \t\r\n".contains(&next)) {
                return Some(());
            }
        }
    }

    /// Moves to the closing quote.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            self.position += 1;
            match self.peek()? {
                b'"' => return Some(()),
                b'\\' => self.position += 1,
                _ => {}
            }
        }
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"a\": [1, {\"b\\u0063\": \"}\\\"]\", \"d\": {} }],\n  \"é\": { \"x/y\": true }\n}\n";

    #[track_caller]
    fn check(pointer: &str, line: usize, column: usize) {
        assert_eq!(locate(TEXT, &Pointer::parse(pointer).unwrap()), Some((line, column)), "{pointer}");
    }

    #[test]
    fn values_are_found() {
        check("", 1, 1);
        check("/a", 2, 8);
        check("/a/0", 2, 9);
        check("/a/1/bc", 2, 24);
        check("/a/1/d", 2, 37);
        check("/é/x~1y", 3, 17);
    }

    #[test]
    fn what_is_missing_leads_to_its_container() {
        check("/z", 1, 1);
        check("/a/7", 2, 8);
        check("/a/1/z/deeper", 2, 12);
        check("/a/0/z", 2, 9);
    }

    #[test]
    fn broken_text_does_no_harm() {
        for cut in 0..TEXT.len() {
            let Some(text) = TEXT.get(..cut) else { continue };
            let _ = locate(text, &Pointer::parse("/é/x~1y").unwrap());
        }
    }
}
