//! ECMA-262 §22.2.1: a pattern, cut into the pieces whose reading must not be left to chance.
//!
//! Everything else stays text, and the engine judges it. Three things are settled here: which groups there are,
//! what a Unicode escape means, digit by digit, and that `\b` and `\B` take no quantifier.

/// The deepest nesting of groups that the engine reads.
const GROUP_DEPTH_MAX: usize = 255;

/// A piece of a pattern.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// A text to copy.
    Text(String),
    /// The beginning of a group that captures nothing, as it is written.
    Open(&'static str),
    /// The beginning of a capture, with its name if it has one.
    Capture(Option<String>),
    /// The end of a group.
    Close,
    /// The bar between two alternatives.
    Or,
    /// A reference `\k<name>`.
    Reference(String),
}

/// Cuts a pattern into pieces, or names the broken rule.
pub(crate) fn split(pattern: &str) -> Result<Vec<Piece>, &'static str> {
    let mut reader = Reader { characters: pattern.chars().collect(), position: 0 };
    let mut pieces = Vec::new();
    let mut in_class = false;
    let mut depth: usize = 0;
    while let Some(character) = reader.next() {
        let piece = match character {
            '\\' => reader.escape(in_class)?,
            _ if in_class => {
                in_class = character != ']';
                Piece::Text(character.to_string())
            }
            '[' => {
                in_class = true;
                Piece::Text("[".to_owned())
            }
            '(' => {
                depth += 1;
                reader.open()?
            }
            ')' => {
                depth = depth.saturating_sub(1);
                Piece::Close
            }
            '|' => Piece::Or,
            other => Piece::Text(other.to_string()),
        };
        pieces.push(piece);
        if depth > GROUP_DEPTH_MAX {
            return Err("regex_too_large");
        }
    }
    Ok(pieces)
}

struct Reader {
    characters: Vec<char>,
    position: usize,
}

impl Reader {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.get(self.position).copied();
        self.position += 1;
        character
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    /// Skips a text, if it stands here.
    fn skip(&mut self, text: &str) -> bool {
        let length = text.chars().count();
        let found = self.characters.iter().skip(self.position).take(length).copied().eq(text.chars());
        if found {
            self.position += length;
        }
        found
    }

    /// What follows an opening parenthesis.
    fn open(&mut self) -> Result<Piece, &'static str> {
        for (form, written) in [("?:", "(?:"), ("?=", "(?="), ("?!", "(?!"), ("?<=", "(?<="), ("?<!", "(?<!")] {
            if self.skip(form) {
                return Ok(Piece::Open(written));
            }
        }
        if self.skip("?<") {
            Ok(Piece::Capture(Some(self.name()?)))
        } else if self.skip("?") {
            Err(self.unknown_group())
        } else {
            Ok(Piece::Capture(None))
        }
    }

    /// The standard has groups with flags of their own, `(?i-ms:`, which are not supported; the rest is no syntax.
    fn unknown_group(&mut self) -> &'static str {
        let mut flags = Vec::new();
        let mut hyphens = 0;
        while let Some(character) = self.next() {
            match character {
                'i' | 'm' | 's' if !flags.contains(&character) => flags.push(character),
                '-' if hyphens == 0 => hyphens = 1,
                ':' if !flags.is_empty() => return "regex_feature_unsupported",
                _ => return "invalid_regex",
            }
        }
        "invalid_regex"
    }

    /// What follows a backslash.
    fn escape(&mut self, in_class: bool) -> Result<Piece, &'static str> {
        let letter = self.next().ok_or("invalid_regex")?;
        match letter {
            'u' => match self.code_point()? {
                // No text holds a lone surrogate; the empty class says "never" without troubling the engine.
                0xd800..0xe000 if !in_class => Ok(Piece::Text("[]".to_owned())),
                code_point => Ok(Piece::Text(format!("\\u{{{code_point:x}}}"))),
            },
            'p' | 'P' => Ok(Piece::Text(self.property(letter))),
            'k' if !in_class => {
                if self.skip("<") {
                    Ok(Piece::Reference(self.name()?))
                } else {
                    Err("invalid_regex")
                }
            }
            'b' | 'B' if !in_class && matches!(self.peek(), Some('*' | '+' | '?' | '{')) => Err("invalid_regex"),
            other => Ok(Piece::Text(format!("\\{other}"))),
        }
    }

    /// A property escape up to its `}`; the engine judges which properties there are.
    fn property(&mut self, letter: char) -> String {
        let mut text = format!("\\{letter}");
        if self.peek() == Some('{') {
            while let Some(character) = self.next() {
                text.push(character);
                if character == '}' {
                    break;
                }
            }
        }
        text
    }

    /// The name of a group up to its `>`; the engine judges which characters a name may have.
    fn name(&mut self) -> Result<String, &'static str> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some('>') => return Ok(name),
                Some('\\') if self.skip("u") => match char::from_u32(self.code_point()?) {
                    Some('>') | None => return Err("invalid_regex"),
                    Some(character) => name.push(character),
                },
                Some('\\') | None => return Err("invalid_regex"),
                Some(character) => name.push(character),
            }
        }
    }

    /// What follows `\u`: `{` digits `}`, or four digits, or two times four digits that are a surrogate pair.
    fn code_point(&mut self) -> Result<u32, &'static str> {
        if self.skip("{") {
            return self.braced_code_point();
        }
        let first = self.four_digits()?;
        let here = self.position;
        if (0xd800..0xdc00).contains(&first) && self.skip("\\u") {
            match self.four_digits() {
                Ok(second) if (0xdc00..0xe000).contains(&second) => {
                    return Ok(0x10000 + (first - 0xd800) * 0x400 + (second - 0xdc00));
                }
                Ok(_) | Err(_) => self.position = here,
            }
        }
        Ok(first)
    }

    fn braced_code_point(&mut self) -> Result<u32, &'static str> {
        let mut code_point = self.digit()?;
        while !self.skip("}") {
            code_point = code_point * 16 + self.digit()?;
            if code_point > 0x0010_ffff {
                return Err("invalid_regex");
            }
        }
        Ok(code_point)
    }

    fn four_digits(&mut self) -> Result<u32, &'static str> {
        let mut number = 0;
        for _ in 0..4 {
            number = number * 16 + self.digit()?;
        }
        Ok(number)
    }

    fn digit(&mut self) -> Result<u32, &'static str> {
        self.next().and_then(|character| character.to_digit(16)).ok_or("invalid_regex")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: &[Piece]) {
        assert_eq!(split(pattern).unwrap(), expected, "{pattern}");
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn groups_are_told_apart() {
        check("(a)", &[Piece::Capture(None), text("a"), Piece::Close]);
        check("(?<n>|)", &[Piece::Capture(Some("n".to_owned())), Piece::Or, Piece::Close]);
        check("(?<=)(?<!)", &[Piece::Open("(?<="), Piece::Close, Piece::Open("(?<!"), Piece::Close]);
        check("(?:(?=(?!", &[Piece::Open("(?:"), Piece::Open("(?="), Piece::Open("(?!")]);
        check("\\k<n>", &[Piece::Reference("n".to_owned())]);
        check("(?<\\u0061\\u{62}>", &[Piece::Capture(Some("ab".to_owned()))]);
    }

    #[test]
    fn nothing_opens_inside_a_class_or_behind_a_backslash() {
        check("[(?i:|]", &[text("["), text("("), text("?"), text("i"), text(":"), text("|"), text("]")]);
        check("[\\](]", &[text("["), text("\\]"), text("("), text("]")]);
        check("\\(\\|", &[text("\\("), text("\\|")]);
    }

    #[test]
    fn unicode_escapes_are_written_in_one_form() {
        check("\\u0041", &[text("\\u{41}")]);
        check("\\u{000041}", &[text("\\u{41}")]);
        check("\\uD83D\\uDE00", &[text("\\u{1f600}")]);
        check("[\\ud83d\\u0041]", &[text("["), text("\\u{d83d}"), text("\\u{41}"), text("]")]);
        check("\\ud83d\\ud83d\\ude00", &[text("[]"), text("\\u{1f600}")]);
        check("\\u{de00}?", &[text("[]"), text("?")]);
        for pattern in ["\\u", "\\u004", "\\u+041", "\\u{}", "\\u{+41}", "\\u{110000}", "\\u{41", "\\u{ffffffffffffff}"]
        {
            assert_eq!(split(pattern), Err("invalid_regex"), "{pattern}");
        }
    }

    #[test]
    fn a_property_is_one_piece() {
        check("\\p{Lu}{2}", &[text("\\p{Lu}"), text("{"), text("2"), text("}")]);
        check("[\\P{a=b}]", &[text("["), text("\\P{a=b}"), text("]")]);
        check("\\p{Lu", &[text("\\p{Lu")]);
        check("\\pa", &[text("\\p"), text("a")]);
    }

    #[test]
    fn a_word_boundary_takes_no_quantifier() {
        for pattern in ["\\b*", "\\B+", "\\b?", "\\b{2}"] {
            assert_eq!(split(pattern), Err("invalid_regex"), "{pattern}");
        }
        check("[\\b*]", &[text("["), text("\\b"), text("*"), text("]")]);
    }

    #[test]
    fn groups_nest_only_so_deep() {
        assert!(split(&"(".repeat(255)).is_ok());
        assert_eq!(split(&"(".repeat(256)), Err("regex_too_large"));
    }

    #[test]
    fn a_group_without_a_known_beginning_is_refused() {
        for pattern in
            ["(?", "(?i", "(?ii:a)", "(?-:a)", "(?i-i:a)", "(?i--m:a)", "(?u:a)", "(?P<a>b)", "(?#a)", "(?'a'b)"]
        {
            assert_eq!(split(pattern), Err("invalid_regex"), "{pattern}");
        }
        for pattern in ["(?i:a)", "(?i-ms:a)", "(?-s:a)"] {
            assert_eq!(split(pattern), Err("regex_feature_unsupported"), "{pattern}");
        }
        assert_eq!(split("(?<a\\u003ea)"), Err("invalid_regex"));
    }
}
