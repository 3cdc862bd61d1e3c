//! The operator's file, read member by member: what nobody asks for is refused with its place.

use crate::ConfigurationError;
use json::{Document, Map, Pointer, Value};
use std::cell::RefCell;
use std::time::Duration;

/// Reads YAML or JSON into a value; what looks like JSON is held to JSON.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, ConfigurationError> {
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let document = match begins {
        Some(b'{' | b'[') => Document::parse(bytes, &description::DEFINITION_LIMITS)
            .map_err(|error| ConfigurationError::new(&error.at.clone(), error.to_string()))?,
        _ => description::parse_yaml(bytes).map_err(|refusal| {
            let place = refusal.position.map(|(line, column)| format!(" in line {line}, column {column}"));
            ConfigurationError::new(&refusal.at, format!("{}{}", refusal.detail, place.unwrap_or_default()))
        })?,
    };
    Ok(document.root().to_value())
}

/// Whether one name is the other with one letter left out, put in, changed, or two that changed places.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let begins = one.iter().zip(&other).take_while(|(left, right)| left == right).count();
    let (left, right) = (one.get(begins..).unwrap_or_default(), other.get(begins..).unwrap_or_default());
    let ends = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    match (left.len() - ends, right.len() - ends) {
        (0, 1) | (1, 0 | 1) => true,
        (2, 2) => left.first() == right.get(1) && left.get(1) == right.first(),
        _ => false,
    }
}

/// The members of one object.
pub(crate) struct Fields<'a> {
    members: &'a Map,
    at: Pointer,
    asked: RefCell<Vec<&'static str>>,
}

type Read<T> = Result<T, ConfigurationError>;

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value, at: &Pointer) -> Read<Self> {
        match value {
            Value::Object(members) => Ok(Self { members, at: at.clone(), asked: RefCell::default() }),
            _ => Err(ConfigurationError::new(at, "an object is expected here")),
        }
    }

    pub(crate) fn at(&self, name: &str) -> Pointer {
        self.at.child(name)
    }

    pub(crate) fn wrong(&self, name: &str, detail: impl Into<String>) -> ConfigurationError {
        let detail: String = detail.into();
        let misspelt = self.members.keys().find(|key| !self.members.contains_key(name) && is_near(key, name));
        match misspelt {
            Some(key) => ConfigurationError::new(&self.at(name), format!("{detail}; is `{key}` meant to be `{name}`?")),
            None => ConfigurationError::new(&self.at(name), detail),
        }
    }

    pub(crate) fn value(&self, name: &'static str) -> Option<&'a Value> {
        self.asked.borrow_mut().push(name);
        self.members.get(name)
    }

    pub(crate) fn text(&self, name: &'static str) -> Read<Option<&'a str>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a text is expected here")),
        }
    }

    pub(crate) fn needed_text(&self, name: &'static str) -> Read<&'a str> {
        self.text(name)?.ok_or_else(|| self.wrong(name, format!("`{name}` is missing")))
    }

    pub(crate) fn flag(&self, name: &'static str, absent: bool) -> Read<bool> {
        match self.value(name) {
            None => Ok(absent),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "`true` or `false` is expected here")),
        }
    }

    pub(crate) fn count(&self, name: &'static str) -> Read<Option<u64>> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(self.wrong(name, "a whole number from 0 is expected here")),
            },
        }
    }

    pub(crate) fn seconds(&self, name: &'static str, absent: Duration, max: Duration) -> Read<Duration> {
        match self.count(name)? {
            None => Ok(absent),
            Some(seconds) if seconds > 0 && seconds <= max.as_secs() => Ok(Duration::from_secs(seconds)),
            Some(_) => Err(self.wrong(name, format!("1 to {} seconds are possible", max.as_secs()))),
        }
    }

    /// A list of texts; empty when it is absent.
    pub(crate) fn texts(&self, name: &'static str) -> Read<Vec<String>> {
        self.list(name)?
            .iter()
            .enumerate()
            .map(|(position, value)| match value.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => Err(ConfigurationError::new(&self.at(name).child(position), "a text is expected here")),
            })
            .collect()
    }

    /// A list; empty when it is absent.
    pub(crate) fn list(&self, name: &'static str) -> Read<&'a [Value]> {
        match self.value(name) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(self.wrong(name, "a list is expected here")),
        }
    }

    /// The members of an object whose names are the operator's; none when it is absent.
    pub(crate) fn entries(&self, name: &'static str) -> Read<Vec<(&'a str, &'a Value, Pointer)>> {
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::Object(members)) => {
                Ok(members.iter().map(|(key, value)| (key.as_str(), value, self.at(name).child(key))).collect())
            }
            Some(_) => Err(self.wrong(name, "an object is expected here")),
        }
    }

    /// An object within this one.
    pub(crate) fn object(&self, name: &'static str) -> Read<Option<Fields<'a>>> {
        self.value(name).map(|value| Fields::of(value, &self.at(name))).transpose()
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Read<()> {
        let asked = self.asked.borrow();
        match self.members.keys().find(|name| !asked.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let known = asked.join("`, `");
                Err(self.wrong(name, format!("nobody knows this member; here are `{known}`")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_near_the_right_one() {
        for near in ["comand", "commmand", "commnad", "kommand", "command1"] {
            assert!(is_near(near, "command"), "{near}");
        }
        for far in ["command", "url", "cmd", "comnd", "c", ""] {
            assert!(!is_near(far, "command"), "{far}");
        }
    }
}
