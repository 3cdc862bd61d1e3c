//! RFC 0020 Appendix B: reading the members of closed payment documents, each mistake with its place.

use crate::money::{DECIMALS_MAX, money};
use crate::refusal::{Code, Refusal};
use aql::{Amount, Money};
use json::{Instant, Kind, Node, Pointer};
use trust::{Did, Digest};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) place: Pointer,
}

impl<'a> At<'a> {
    pub(crate) fn root(node: Node<'a>) -> Self {
        Self { node, place: Pointer::root() }
    }

    pub(crate) fn refuse<T>(&self, code: Code, detail: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::new(code, detail).placed(self.place.clone()))
    }

    fn wrong_type<T>(&self, expected: &str) -> Result<T, Refusal> {
        self.refuse(Code::WrongType, format!("{expected} belongs here, not {}", self.node.kind().name()))
    }

    /// An object that has no member beyond those named.
    pub(crate) fn closed(&self, members: &[&str]) -> Result<(), Refusal> {
        if self.node.kind() != Kind::Object {
            return self.wrong_type("an object");
        }
        match self.node.members().find(|(name, _)| !members.contains(name)) {
            Some((name, _)) => {
                let detail = format!("there is no such member here; known are {}", members.join(", "));
                Err(Refusal::new(Code::UnknownField, detail).placed(self.place.child(name)))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        self.node.get(name).map(|node| Self { node, place: self.place.child(name) })
    }

    pub(crate) fn required(&self, name: &str) -> Result<Self, Refusal> {
        self.member(name).ok_or_else(|| {
            Refusal::new(Code::MissingField, format!("the member `{name}` is missing")).placed(self.place.child(name))
        })
    }

    pub(crate) fn elements(&self) -> Result<Vec<Self>, Refusal> {
        if self.node.kind() != Kind::Array {
            return self.wrong_type("an array");
        }
        let place = |(position, node): (usize, Node<'a>)| Self { node, place: self.place.child(position) };
        Ok(self.node.elements().enumerate().map(place).collect())
    }

    pub(crate) fn string(&self) -> Result<&'a str, Refusal> {
        self.node.as_str().map_or_else(|| self.wrong_type("a string"), Ok)
    }

    pub(crate) fn text(&self, name: &str) -> Result<String, Refusal> {
        let member = self.required(name)?;
        match member.string()? {
            "" => member.refuse(Code::InvalidValue, "this is empty"),
            text => Ok(text.to_owned()),
        }
    }

    /// A list of strings that may be absent.
    pub(crate) fn strings(&self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let list = self.member(name).filter(|list| !list.node.is_null());
        let read = |list: Self| list.elements()?.iter().map(|entry| entry.string().map(str::to_owned)).collect();
        list.map(read).transpose()
    }

    pub(crate) fn did(&self, name: &str) -> Result<Did, Refusal> {
        let member = self.required(name)?;
        Did::parse(member.string()?)
            .map_err(|error| Refusal::new(Code::Below(error.code()), error.to_string()).placed(member.place.clone()))
    }

    pub(crate) fn urn(&self, name: &str, prefix: &str) -> Result<String, Refusal> {
        let member = self.required(name)?;
        match member.string()? {
            text if text
                .strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_control)) =>
            {
                Ok(text.to_owned())
            }
            _ => member.refuse(Code::InvalidValue, format!("a name that begins with `{prefix}` belongs here")),
        }
    }

    pub(crate) fn instant(&self, name: &str) -> Result<Instant, Refusal> {
        let member = self.required(name)?;
        Instant::parse_rfc3339(member.string()?).map_or_else(
            || member.refuse(Code::InvalidTimestamp, "an RFC 3339 date and time with an offset belongs here"),
            Ok,
        )
    }

    pub(crate) fn digest(&self, name: &str) -> Result<Digest, Refusal> {
        let member = self.required(name)?;
        let digest = Digest::read(member.string()?);
        digest.map_or_else(|| member.refuse(Code::InvalidValue, "`sha256:` and 64 hexadecimal digits belong here"), Ok)
    }

    /// Money whose amount is called `amount` in mandates and `value` in sessions and settlements.
    pub(crate) fn money(&self, name: &str, amount: &str) -> Result<Money, Refusal> {
        let block = self.required(name)?;
        block.closed(&[amount, "currency"])?;
        let (number, currency) = (block.required(amount)?, block.required("currency")?);
        let decimals = number.string()?.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let read = Amount::parse(number.string()?).filter(|_| decimals <= DECIMALS_MAX);
        let Some(read) = read else {
            return number.refuse(Code::InvalidDecimal, "a plain decimal with at most eight places belongs here");
        };
        match currency.string()? {
            code if (3..=5).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
                Ok(money(read, code))
            }
            _ => currency.refuse(Code::InvalidValue, "a currency is three to five capital letters"),
        }
    }

    /// One of a closed set of words.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Refusal> {
        let member = self.required(name)?;
        let text = member.string()?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                member.refuse(Code::InvalidValue, format!("one of {} belongs here", known.join(", ")))
            }
        }
    }

    /// The closed objects of a single signature and of listed ones; what they prove is looked at elsewhere.
    pub(crate) fn signature(&self) -> Result<(), Refusal> {
        self.required("signature")?.closed(&["alg", "kid", "value"])
    }

    pub(crate) fn signatures(&self) -> Result<(), Refusal> {
        self.required("signatures")?.elements()?.iter().try_for_each(|entry| entry.closed(&["by", "alg", "value"]))
    }
}
