//! RFC 0020 §3.1: the members of a closed object, read one by one.
//!
//! A value of the wrong JSON type is `wrong_type`; a value of the right type with the wrong content is
//! `invalid_value`; a member that nobody knows is `unknown_field`.

use crate::decimal::Decimal;
use crate::pattern::matches;
use crate::refusal::{Refusal, element_place, member_place};
use crate::value::Value;

/// A currency: an ISO 4217 code or a registered crypto symbol.
const CURRENCY: &str = "^[A-Z]{3,5}$";

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Field<'v> {
    pub(crate) value: &'v Value,
    pub(crate) at: String,
}

/// A closed object and its place.
pub(crate) struct Fields<'v> {
    members: &'v [(String, Value)],
    at: String,
}

impl<'v> Fields<'v> {
    /// The member that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<Field<'v>, Refusal> {
        self.optional(name).ok_or_else(|| Refusal { code: "missing_field", at: member_place(&self.at, name) })
    }

    /// The member that may be there.
    pub(crate) fn optional(&self, name: &str) -> Option<Field<'v>> {
        let (key, value) = self.members.iter().find(|(key, _)| key == name)?;
        Some(Field { value, at: member_place(&self.at, key) })
    }
}

impl<'v> Field<'v> {
    /// A value at a place.
    pub(crate) fn new(value: &'v Value, at: &str) -> Field<'v> {
        Field { value, at: at.to_owned() }
    }

    /// The refusal of this value.
    pub(crate) fn refusal(&self, code: &'static str) -> Refusal {
        Refusal::new(code, &self.at)
    }

    /// An object.
    pub(crate) fn object(&self) -> Result<&'v [(String, Value)], Refusal> {
        if let Value::Object(members) = self.value { Ok(members) } else { Err(self.refusal("wrong_type")) }
    }

    /// An object with no members but these.
    pub(crate) fn closed(&self, known: &[&str]) -> Result<Fields<'v>, Refusal> {
        let members = self.object()?;
        match members.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => Err(Refusal { code: "unknown_field", at: member_place(&self.at, key) }),
            None => Ok(Fields { members, at: self.at.clone() }),
        }
    }

    /// The elements of an array.
    pub(crate) fn elements(&self) -> Result<Vec<Field<'v>>, Refusal> {
        let Value::Array(elements) = self.value else { return Err(self.refusal("wrong_type")) };
        let place = |(index, value)| Field { value, at: element_place(&self.at, index) };
        Ok(elements.iter().enumerate().map(place).collect())
    }

    /// The elements of an array that must not be empty.
    pub(crate) fn some_elements(&self) -> Result<Vec<Field<'v>>, Refusal> {
        let elements = self.elements()?;
        if elements.is_empty() { Err(self.refusal("empty_list")) } else { Ok(elements) }
    }

    /// A text.
    pub(crate) fn text(&self) -> Result<&'v str, Refusal> {
        self.value.text().ok_or_else(|| self.refusal("wrong_type"))
    }

    /// A truth value.
    pub(crate) fn boolean(&self) -> Result<bool, Refusal> {
        if let Value::Bool(boolean) = self.value { Ok(*boolean) } else { Err(self.refusal("wrong_type")) }
    }

    /// A text out of a closed list.
    pub(crate) fn one_of(&self, known: &[&'static str]) -> Result<&'static str, Refusal> {
        let text = self.text()?;
        known.iter().copied().find(|name| *name == text).ok_or_else(|| self.refusal("invalid_value"))
    }

    /// A text that a pattern describes.
    pub(crate) fn matching(&self, pattern: &str) -> Result<&'v str, Refusal> {
        let text = self.text()?;
        if matches(pattern, text)? { Ok(text) } else { Err(self.refusal("invalid_value")) }
    }

    /// A currency.
    pub(crate) fn currency(&self) -> Result<&'v str, Refusal> {
        self.matching(CURRENCY)
    }

    /// An amount of money.
    pub(crate) fn amount(&self) -> Result<Decimal, Refusal> {
        Decimal::parse_amount(self.text()?).ok_or_else(|| self.refusal("invalid_decimal"))
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&self) -> Result<f64, Refusal> {
        let number = self.value.number().ok_or_else(|| self.refusal("wrong_type"))?;
        if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(self.refusal("invalid_value")) }
    }

    /// A number without a fractional part that is at least so great.
    pub(crate) fn integer(&self, least: f64) -> Result<f64, Refusal> {
        let number = self.value.number().ok_or_else(|| self.refusal("wrong_type"))?;
        if number.fract() == 0.0 && number >= least { Ok(number) } else { Err(self.refusal("invalid_value")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        read: impl Fn(&Field) -> Result<T, Refusal>,
        text: &str,
        expected: Result<T, &str>,
    ) {
        let value = value(text);
        let outcome = read(&Field::new(&value, "/f"));
        match expected {
            Ok(expected) => assert_eq!(outcome, Ok(expected), "{text}"),
            Err(code) => assert_eq!(outcome.unwrap_err().code, code, "{text}"),
        }
    }

    #[test]
    fn types_and_contents_are_told_apart() {
        check(|field| field.integer(1.0), "2.0", Ok(2.0));
        check(|field| field.integer(1.0), "1.5", Err("invalid_value"));
        check(|field| field.integer(1.0), "0", Err("invalid_value"));
        check(|field| field.integer(1.0), r#""1""#, Err("wrong_type"));
        check(|field| field.fraction(), "1", Ok(1.0));
        check(|field| field.fraction(), "-0", Ok(0.0));
        check(|field| field.fraction(), "1.01", Err("invalid_value"));
        check(|field| field.fraction(), "null", Err("wrong_type"));
        check(|field| field.boolean(), "true", Ok(true));
        check(|field| field.boolean(), "0", Err("wrong_type"));
        check(|field| field.one_of(&["a"]), r#""a""#, Ok("a"));
        check(|field| field.one_of(&["a"]), r#""A""#, Err("invalid_value"));
        check(|field| field.currency().map(str::to_owned), r#""EUR""#, Ok("EUR".to_owned()));
        for currency in ["EU", "EURUSD", "eur", "EUR\\n", " EUR"] {
            check(|field| field.currency().map(str::to_owned), &format!("\"{currency}\""), Err("invalid_value"));
        }
        check(|field| field.amount(), "1", Err("wrong_type"));
        check(|field| field.amount(), r#""-1""#, Err("invalid_decimal"));
        check(|field| field.some_elements().map(|list| list.len()), "[]", Err("empty_list"));
        check(|field| field.some_elements().map(|list| list.len()), "{}", Err("wrong_type"));
    }

    #[test]
    fn a_closed_object_names_the_member_at_fault() {
        let document = value(r#"{"a":1,"x/y":2}"#);
        let field = Field::new(&document, "/o");
        assert_eq!(field.closed(&["a"]).err().unwrap(), Refusal::new("unknown_field", "/o/x~1y"));
        let fields = field.closed(&["a", "b", "x/y"]).ok().unwrap();
        assert_eq!(fields.required("b").unwrap_err(), Refusal::new("missing_field", "/o/b"));
        assert_eq!(fields.required("a").unwrap().at, "/o/a");
        assert!(fields.optional("b").is_none());
    }
}
