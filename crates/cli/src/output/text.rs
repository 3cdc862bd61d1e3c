//! Words of strangers, made harmless for a terminal: escaped, cut, wrapped, measured.
//!
//! A record may contain escape sequences that colour, move or rewrite what a terminal shows, and characters that turn
//! the reading direction. People would see something else than what was signed.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with everything invisible spelled out as JSON would spell it.
pub(crate) fn shown(text: &str) -> String {
    escape(text, |_| false)
}

/// A JSON text with what terminals might act upon spelled out; it stays the same JSON.
///
/// Such characters can stand only inside strings, where an escape means the character.
pub(crate) fn json_line(bytes: &[u8]) -> String {
    let mut line = escape(&String::from_utf8_lossy(bytes), |_| false);
    line.push('\n');
    line
}

/// The same for an indented JSON text, whose line breaks are ours.
pub(crate) fn json_lines(text: &str) -> String {
    let mut lines = escape(text, |character| character == '\n');
    lines.push('\n');
    lines
}

fn escape(text: &str, spared: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) && !spared(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Controls, and format characters that hide text or turn its direction.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The beginning of a text that fits, with a mark where it was cut.
pub(crate) fn shorten(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut left = room.saturating_sub(1);
    for character in text.chars() {
        let Some(rest) = left.checked_sub(character.width().unwrap_or(0)) else { break };
        short.push(character);
        left = rest;
    }
    short + "…"
}

/// Keeps two words on one line.
pub(crate) const NO_BREAK: char = '\u{a0}';

/// The text in lines of at most `room` columns, broken at spaces, and inside a word only where it fits no line.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let width = columns(word);
        let begins = lines.last().is_none_or(String::is_empty);
        if !begins && used + 1 + width <= room {
            put(&mut lines, ' ');
            used += 1;
        } else if !begins {
            lines.push(String::new());
            used = 0;
        }
        for character in word.chars() {
            let width = character.width().unwrap_or(0);
            if used + width > room {
                lines.push(String::new());
                used = 0;
            }
            put(&mut lines, if character == NO_BREAK { ' ' } else { character });
            used += width;
        }
    }
    lines
}

fn put(lines: &mut [String], character: char) {
    if let Some(line) = lines.last_mut() {
        line.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_or_the_eye_gets_through() {
        assert_eq!(
            shown("a\u{1b}[31mb\r\n\u{9b}c\u{202e}d\u{e0041}"),
            r"a\u001b[31mb\u000d\u000a\u009bc\u202ed\udb40\udc41"
        );
        assert_eq!(shown("Łódź 東京 \"quoted\""), "Łódź 東京 \"quoted\"");
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        let value = json::json!({"name": "a\u{7f}b\u{9b}c\u{202e}\u{e0041}"});
        let bytes = json::canonical_value(&value);
        for text in [json_line(&bytes), json_lines(&format!("{value:#}"))] {
            assert!(!text.trim_end().chars().any(|character| is_invisible(character) && character != '\n'), "{text}");
            let read = json::Document::parse(text.as_bytes(), &json::Limits::DOCUMENT).unwrap();
            assert_eq!(json::canonical(read.root()), bytes);
        }
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(shorten("東京東京", 5), "東京…");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable x", 6), ["unbrea", "kable", "x"]);
        assert_eq!(wrap("one two\u{a0}three", 9), ["one", "two three"]);
    }
}
