//! The part of structured fields that message signatures need (RFC 9651 §4.2): dictionaries of inner lists, of byte
//! sequences and of plain items.
//!
//! What is signed is the text of the parameters as it was received, so the reader keeps that text beside the values.
//!
//! INVARIANT: a field is read to its end or refused; nothing in it is passed over.

use std::borrow::Cow;

/// Members of one dictionary.
const MEMBERS_MAX: usize = 8;
/// Items of one inner list.
const ITEMS_MAX: usize = 32;
/// Parameters of one item or list.
const PARAMETERS_MAX: usize = 16;
/// Digits of an integer.
const DIGITS_MAX: usize = 15;

/// A value without parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bare<'a> {
    Integer(i64),
    Text(Cow<'a, str>),
    Token(&'a str),
    Bytes(Vec<u8>),
    Boolean(bool),
}

impl<'a> Bare<'a> {
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Text(_) | Self::Token(_) | Self::Bytes(_) | Self::Boolean(_) => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Integer(_) | Self::Token(_) | Self::Bytes(_) | Self::Boolean(_) => None,
        }
    }
}

/// Names and values behind an item or a list; a later one of the same name counts.
pub(super) type Parameters<'a> = Vec<(&'a str, Bare<'a>)>;

/// One item of an inner list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    pub(super) value: Bare<'a>,
    pub(super) parameters: Parameters<'a>,
}

/// What stands behind the name of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Member<'a> {
    /// An inner list with its parameters, and both as they were written.
    List {
        items: Vec<Item<'a>>,
        parameters: Parameters<'a>,
        written: &'a str,
    },
    Item(Item<'a>),
}

/// Reads a dictionary; `None` when it is none. Of two members of one name neither would be the one, so they are refused.
pub(super) fn dictionary(text: &str) -> Option<Vec<(&str, Member<'_>)>> {
    let mut reader = Reader { text, at: 0 };
    let mut members: Vec<(&str, Member<'_>)> = Vec::new();
    reader.skip(b" ");
    loop {
        let name = reader.key()?;
        let member = match (reader.take(b'='), reader.peek()) {
            (true, Some(b'(')) => reader.list()?,
            (true, _) => Member::Item(Item { value: reader.bare()?, parameters: reader.parameters()? }),
            (false, _) => Member::Item(Item { value: Bare::Boolean(true), parameters: reader.parameters()? }),
        };
        if members.len() == MEMBERS_MAX || members.iter().any(|(known, _)| *known == name) {
            return None;
        }
        members.push((name, member));
        reader.skip(b" \t");
        if reader.peek().is_none() {
            return Some(members);
        }
        if !reader.take(b',') {
            return None;
        }
        reader.skip(b" \t");
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn skip(&mut self, blanks: &[u8]) {
        while self.peek().is_some_and(|byte| blanks.contains(&byte)) {
            self.at += 1;
        }
    }

    /// The text from here on as long as its bytes fit.
    fn run(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let begun = self.at;
        while self.peek().is_some_and(&fits) {
            self.at += 1;
        }
        self.text.get(begun..self.at).unwrap_or_default()
    }

    fn key(&mut self) -> Option<&'a str> {
        self.peek().filter(|byte| byte.is_ascii_lowercase() || *byte == b'*')?;
        Some(self.run(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)))
    }

    fn list(&mut self) -> Option<Member<'a>> {
        let begun = self.at;
        let mut items = Vec::new();
        if !self.take(b'(') {
            return None;
        }
        loop {
            self.skip(b" ");
            if self.take(b')') {
                break;
            }
            if items.len() == ITEMS_MAX {
                return None;
            }
            items.push(Item { value: self.bare()?, parameters: self.parameters()? });
            if !matches!(self.peek(), Some(b' ' | b')')) {
                return None;
            }
        }
        let parameters = self.parameters()?;
        Some(Member::List { items, parameters, written: self.text.get(begun..self.at)? })
    }

    fn parameters(&mut self) -> Option<Parameters<'a>> {
        let mut parameters: Parameters<'a> = Vec::new();
        while self.take(b';') {
            self.skip(b" ");
            let name = self.key()?;
            let value = if self.take(b'=') { self.bare()? } else { Bare::Boolean(true) };
            parameters.retain(|(known, _)| *known != name);
            if parameters.len() == PARAMETERS_MAX {
                return None;
            }
            parameters.push((name, value));
        }
        Some(parameters)
    }

    fn bare(&mut self) -> Option<Bare<'a>> {
        match self.peek()? {
            b'"' => self.quoted().map(Bare::Text),
            b':' => self.bytes().map(Bare::Bytes),
            b'?' => self.boolean().map(Bare::Boolean),
            b'-' | b'0'..=b'9' => self.integer().map(Bare::Integer),
            byte if byte.is_ascii_alphabetic() || byte == b'*' => {
                let in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                Some(Bare::Token(self.run(in_token)))
            }
            _ => None,
        }
    }

    fn integer(&mut self) -> Option<i64> {
        let begun = self.at;
        self.take(b'-');
        let digits = self.run(|byte| byte.is_ascii_digit()).len();
        if !(1..=DIGITS_MAX).contains(&digits) || self.peek() == Some(b'.') {
            return None;
        }
        self.text.get(begun..self.at)?.parse().ok()
    }

    fn boolean(&mut self) -> Option<bool> {
        self.take(b'?');
        match (self.take(b'1'), self.take(b'0')) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        self.take(b':');
        let text = self.run(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        if !self.take(b':') {
            return None;
        }
        crate::encoding::decode_padded(text)
    }

    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        self.take(b'"');
        let plain = self.run(|byte| (0x20..0x7f).contains(&byte) && !b"\"\\".contains(&byte));
        let mut text = Cow::Borrowed(plain);
        loop {
            if self.take(b'"') {
                return Some(text);
            }
            if !self.take(b'\\') {
                return None;
            }
            let escaped = self.peek().filter(|byte| b"\"\\".contains(byte))?;
            self.at += 1;
            let plain = self.run(|byte| (0x20..0x7f).contains(&byte) && !b"\"\\".contains(&byte));
            let text = text.to_mut();
            text.push(char::from(escaped));
            text.push_str(plain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_input_is_read_with_its_text() {
        let text = r#"sig1=("@method" "content-digest";sf);created=1;keyid="a\"b";x, b=?0;q=abc , c, d=:AAA=:"#;
        let members = dictionary(text).unwrap();
        assert_eq!(members.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["sig1", "b", "c", "d"]);
        let Member::List { items, parameters, written } = &members[0].1 else { panic!("a list") };
        assert_eq!(*written, r#"("@method" "content-digest";sf);created=1;keyid="a\"b";x"#);
        assert_eq!(items[0].value.as_text(), Some("@method"));
        assert_eq!(items[1].parameters, [("sf", Bare::Boolean(true))]);
        assert_eq!(parameters[0].1.as_integer(), Some(1));
        assert_eq!(parameters[1].1.as_text(), Some("a\"b"));
        assert_eq!(parameters[2], ("x", Bare::Boolean(true)));
        let item = |value, parameters| Member::Item(Item { value, parameters });
        assert_eq!(members[1].1, item(Bare::Boolean(false), vec![("q", Bare::Token("abc"))]));
        assert_eq!(members[2].1, item(Bare::Boolean(true), vec![]));
        assert_eq!(members[3].1, item(Bare::Bytes(vec![0, 0]), vec![]));
    }

    #[test]
    fn what_is_no_dictionary_is_refused() {
        let many = (0..9).map(|number| format!("a{number}=1")).collect::<Vec<_>>().join(", ");
        let long = format!("a=({})", "\"x\" ".repeat(33));
        for text in [
            "",
            " ",
            ",",
            "a=",
            "a=(",
            "a=(\"x\"",
            "a=(\"x\"\"y\")",
            "A=1",
            "1=a",
            "a=1,",
            "a=1 b=2",
            "a=1,a=2",
            "a=:AAA:",
            "a=:AAAB=:",
            "a=\"x",
            "a=\"\\x\"",
            "a=\"ä\"",
            "a=1.5",
            "a=1234567890123456",
            "a=-",
            "a=?2",
            "a=#x",
            "a=!",
            "a=@",
            "a=1;",
            "a=1;B=2",
            "a=(\"x\");created=",
            &many,
            &long,
        ] {
            assert_eq!(dictionary(text), None, "{text}");
        }
    }

    #[test]
    fn truth_and_tokens_are_read() {
        let members = dictionary("a=?1;x=?0;y=*b/c").unwrap();
        let parameters = vec![("x", Bare::Boolean(false)), ("y", Bare::Token("*b/c"))];
        assert_eq!(members[0].1, Member::Item(Item { value: Bare::Boolean(true), parameters }));
    }

    #[test]
    fn of_two_parameters_of_one_name_the_later_counts() {
        let members = dictionary("a=1;x=1;y=2;x=3").unwrap();
        let Member::Item(item) = &members[0].1 else { panic!("an item") };
        assert_eq!(item.parameters, [("y", Bare::Integer(2)), ("x", Bare::Integer(3))]);
    }
}
