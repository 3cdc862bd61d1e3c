//! RFC 0020 Appendix B: reading the members of closed payment documents, each mistake with its place.

use crate::money::{DECIMALS_MAX, money};
use crate::refusal::{Code, Refusal};
use aql::{Amount, Money};
use json::Instant;
use trust::{Did, Digest};

/// A value and where it stands.
pub(crate) type At<'a> = json::At<'a, Refusal>;

/// The members that payment documents have.
pub(crate) trait Values: Sized {
    fn text(&self, name: &str) -> Result<String, Refusal>;
    /// A list of strings that may be absent.
    fn strings(&self, name: &str) -> Result<Option<Vec<String>>, Refusal>;
    fn did(&self, name: &str) -> Result<Did, Refusal>;
    fn urn(&self, name: &str, prefix: &str) -> Result<String, Refusal>;
    fn instant(&self, name: &str) -> Result<Instant, Refusal>;
    fn digest(&self, name: &str) -> Result<Digest, Refusal>;
    /// Money whose amount is called `amount` in mandates and `value` in sessions and settlements.
    fn money(&self, name: &str, amount: &str) -> Result<Money, Refusal>;
    /// One of a closed set of words.
    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Refusal>;
    /// The closed objects of a single signature and of listed ones; what they prove is looked at elsewhere.
    fn signature(&self) -> Result<(), Refusal>;
    fn signatures(&self) -> Result<(), Refusal>;
}

impl Values for At<'_> {
    fn text(&self, name: &str) -> Result<String, Refusal> {
        let member = self.required(name)?;
        match member.string()? {
            "" => member.refuse(Code::InvalidValue, "this is empty"),
            text => Ok(text.to_owned()),
        }
    }

    fn strings(&self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let list = self.member(name).filter(|list| !list.node.is_null());
        let read = |list: Self| list.elements()?.iter().map(|entry| entry.string().map(str::to_owned)).collect();
        list.map(read).transpose()
    }

    fn did(&self, name: &str) -> Result<Did, Refusal> {
        let member = self.required(name)?;
        Did::parse(member.string()?)
            .map_err(|error| Refusal::new(Code::Below(error.code()), error.to_string()).placed(member.at.clone()))
    }

    fn urn(&self, name: &str, prefix: &str) -> Result<String, Refusal> {
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

    fn instant(&self, name: &str) -> Result<Instant, Refusal> {
        let member = self.required(name)?;
        Instant::parse_rfc3339(member.string()?).map_or_else(
            || member.refuse(Code::InvalidTimestamp, "an RFC 3339 date and time with an offset belongs here"),
            Ok,
        )
    }

    fn digest(&self, name: &str) -> Result<Digest, Refusal> {
        let member = self.required(name)?;
        let digest = Digest::read(member.string()?);
        digest.map_or_else(|| member.refuse(Code::InvalidValue, "`sha256:` and 64 hexadecimal digits belong here"), Ok)
    }

    fn money(&self, name: &str, amount: &str) -> Result<Money, Refusal> {
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

    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Refusal> {
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

    fn signature(&self) -> Result<(), Refusal> {
        self.required("signature")?.closed(&["alg", "kid", "value"])
    }

    fn signatures(&self) -> Result<(), Refusal> {
        self.required("signatures")?.elements()?.iter().try_for_each(|entry| entry.closed(&["by", "alg", "value"]))
    }
}
