//! ECMA-262 §22.2.1: a pattern, cut into pieces.
//!
//! Whether the pieces make a pattern is judged by the library, but where that is too generous the standard is kept
//! here: which groups there are, what a Unicode escape means, and that `\b` and `\B` take no quantifier.

/// The deepest nesting of groups.
const GROUP_DEPTH_MAX: usize = 255;

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// What matches one character: the character itself, an escape, a class, or a dot.
    One(String),
    /// `^`, `$`, `\b` or `\B`.
    Assertion(String),
    /// `*`, `+`, `?` or a count in braces, perhaps followed by `?`.
    Quantifier(String),
    /// The beginning of a group that captures nothing.
    Open(&'static str),
    /// The beginning of a capture, with its name if it has one.
    Capture(Option<String>),
    /// The end of a group.
    Close,
    /// The bar between two alternatives.
    Or,
    /// A reference by number.
    Numbered(String),
    /// A reference by name.
    Named(String),
}

impl Piece {
    /// The piece as it stands in a pattern.
    pub(super) fn text(&self) -> String {
        match self {
            Piece::One(text) | Piece::Assertion(text) | Piece::Quantifier(text) => text.clone(),
            Piece::Open(text) => (*text).to_owned(),
            Piece::Capture(None) => "(".to_owned(),
            Piece::Capture(Some(name)) => format!("(?<{name}>"),
            Piece::Close => ")".to_owned(),
            Piece::Or => "|".to_owned(),
            Piece::Numbered(number) => format!("\\{number}"),
            Piece::Named(name) => format!("\\k<{name}>"),
        }
    }
}

/// Cuts a pattern into pieces, or names the broken rule.
pub(super) fn split(pattern: &str) -> Result<Vec<Piece>, &'static str> {
    let mut reader = Reader { characters: pattern.chars().collect(), position: 0 };
    let mut pieces = Vec::new();
    let mut depth: usize = 0;
    while let Some(character) = reader.next() {
        let piece = match character {
            '\\' => reader.escape()?,
            '[' => Piece::One(reader.class()?),
            '^' | '$' => Piece::Assertion(character.to_string()),
            '*' | '+' | '?' | '{' => reader.quantifier(character),
            '(' => reader.open()?,
            ')' => Piece::Close,
            '|' => Piece::Or,
            other => Piece::One(other.to_string()),
        };
        match (&piece, pieces.last()) {
            (Piece::Quantifier(_), Some(Piece::Assertion(_))) => return Err("invalid_regex"),
            (Piece::Open(_) | Piece::Capture(_), _) => depth += 1,
            (Piece::Close, _) => depth = depth.saturating_sub(1),
            _ => {}
        }
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

    /// Skips a text, if it stands here.
    fn skip(&mut self, text: &str) -> bool {
        let length = text.chars().count();
        let found = self.characters.iter().skip(self.position).take(length).copied().eq(text.chars());
        if found {
            self.position += length;
        }
        found
    }

    /// Takes everything up to and including a character, or to the end.
    fn through(&mut self, last: char) -> String {
        let mut text = String::new();
        while let Some(character) = self.next() {
            text.push(character);
            if character == last {
                break;
            }
        }
        text
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

    fn quantifier(&mut self, first: char) -> Piece {
        let mut text = first.to_string();
        if first == '{' {
            text.push_str(&self.through('}'));
        }
        if self.skip("?") {
            text.push('?');
        }
        Piece::Quantifier(text)
    }

    /// What follows the opening bracket of a class, up to its end.
    fn class(&mut self) -> Result<String, &'static str> {
        let mut text = String::from("[");
        while let Some(character) = self.next() {
            match character {
                '\\' => text.push_str(&self.character_escape()?),
                other => text.push(other),
            }
            if character == ']' {
                break;
            }
        }
        Ok(text)
    }

    /// What follows a backslash outside of a class.
    fn escape(&mut self) -> Result<Piece, &'static str> {
        if self.skip("b") {
            return Ok(Piece::Assertion("\\b".to_owned()));
        }
        if self.skip("B") {
            return Ok(Piece::Assertion("\\B".to_owned()));
        }
        if self.skip("k") {
            return if self.skip("<") { Ok(Piece::Named(self.name()?)) } else { Err("invalid_regex") };
        }
        let digits: String =
            self.characters.iter().skip(self.position).take_while(|character| character.is_ascii_digit()).collect();
        if !digits.is_empty() && !digits.starts_with('0') {
            self.skip(&digits);
            return Ok(Piece::Numbered(digits));
        }
        Ok(Piece::One(self.character_escape()?))
    }

    /// What follows a backslash and stands for one character.
    fn character_escape(&mut self) -> Result<String, &'static str> {
        match self.next().ok_or("invalid_regex")? {
            'u' => Ok(format!("\\u{{{:x}}}", self.code_point()?)),
            'x' => Ok(format!("\\x{}", self.take(2))),
            'c' => Ok(format!("\\c{}", self.take(1))),
            letter @ ('p' | 'P') => Ok(format!("\\{letter}{}", self.through('}'))),
            other => Ok(format!("\\{other}")),
        }
    }

    fn take(&mut self, count: usize) -> String {
        (0..count).filter_map(|_| self.next()).collect()
    }

    /// The name of a group up to its `>`; the library judges which characters a name may have.
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
