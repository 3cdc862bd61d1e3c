//! Long things written short: how cases spell bytes and values that nobody wants to read in a file.
//!
//! | Spelling | Meaning |
//! |---|---|
//! | `"text"` | its bytes; names in braces are filled in |
//! | `["a", "b"]` | one after the other |
//! | `{"times": 3, "of": "a"}` | again and again |
//! | `{"hex": "00ff"}` | bytes that are no text |
//!
//! In values, `{"$text": …}` is a text spelled as above, `{"$list": …, "times": n}` repeats an element,
//! `{"$nest": "not", "times": n, "of": …}` wraps a value in objects, `{"$json": …}` is the value that a text spells, and
//! `{"$now": seconds}` is a moment.

use anyhow::{Context, Result, bail};
use aql::Instant;
use json::{Value, json};
use std::collections::BTreeMap;

/// Names in braces and what they stand for.
pub(crate) type Names = BTreeMap<&'static str, String>;

/// Spells bytes out.
pub(crate) fn bytes(spelled: &Value, names: &Names) -> Result<Vec<u8>> {
    match spelled {
        Value::String(text) => Ok(fill(text, names).into_bytes()),
        Value::Array(parts) => {
            let parts = parts.iter().map(|part| bytes(part, names)).collect::<Result<Vec<_>>>()?;
            Ok(parts.concat())
        }
        Value::Object(members) => match (members.get("hex").and_then(Value::as_str), members.get("times")) {
            (Some(hex), _) => unhex(hex).with_context(|| format!("`{hex}` is no hex")),
            (None, Some(times)) => {
                let of = bytes(members.get("of").context("nothing to repeat")?, names)?;
                Ok(of.repeat(times.as_u64().context("how often?")? as usize))
            }
            (None, None) => bail!("{spelled} spells no bytes"),
        },
        other => bail!("{other} spells no bytes"),
    }
}

fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex.chars().filter_map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    (odd.is_empty() && digits.len() == hex.len()).then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Fills names in.
pub(crate) fn fill(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Spells a value out.
pub(crate) fn value(spelled: &Value, names: &Names) -> Result<Value> {
    match spelled {
        Value::String(text) => Ok(Value::String(fill(text, names))),
        Value::Array(elements) => {
            Ok(Value::Array(elements.iter().map(|element| value(element, names)).collect::<Result<_>>()?))
        }
        Value::Object(members) => {
            let times =
                || members.get("times").and_then(Value::as_u64).map(|times| times as usize).context("how often?");
            if let Some(text) = members.get("$text") {
                return Ok(Value::String(String::from_utf8(bytes(text, names)?)?));
            }
            if let Some(text) = members.get("$json") {
                return Ok(serde_json::from_slice(&bytes(text, names)?)?);
            }
            if let Some(element) = members.get("$list") {
                return repeated(element, times()?, names);
            }
            if let Some(name) = members.get("$nest").and_then(Value::as_str) {
                let inner = value(members.get("of").context("nothing to nest")?, names)?;
                return Ok((0..times()?).fold(inner, |inner, _| json!({name: inner})));
            }
            if let Some(seconds) = members.get("$now").and_then(Value::as_i64) {
                return Ok(Value::String(Instant::from_unix(crate::crash::clock() + seconds, 0).to_string()));
            }
            let filled = members.iter().map(|(name, member)| Ok((fill(name, names), value(member, names)?)));
            Ok(Value::Object(filled.collect::<Result<_>>()?))
        }
        other => Ok(other.clone()),
    }
}

/// A list of one element, numbered by `{i}`.
fn repeated(element: &Value, times: usize, names: &Names) -> Result<Value> {
    let numbered = (0..times).map(|number| {
        let mut names = names.clone();
        names.insert("i", number.to_string());
        value(element, &names)
    });
    Ok(Value::Array(numbered.collect::<Result<_>>()?))
}
