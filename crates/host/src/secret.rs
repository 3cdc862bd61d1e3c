//! OAS Agent, identity: a credential, which nothing shows by accident.
//!
//! INVARIANT: there is no way from a [`Secret`] to text but [`Secret::expose`], and its memory is wiped.

use json::Value;
use std::fmt;
use zeroize::Zeroizing;

/// What stands where a tool repeated its credential.
const WITHHELD: &str = "[credential withheld]";

/// Shorter secrets are not looked for in what a tool says: they would be found in ordinary words.
const LOOKED_FOR_BYTES_MIN: usize = 6;

/// A credential.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text out of sight.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for the one who sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A value in which nothing repeats this secret.
    pub(crate) fn withheld_from(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.withheld_from_text(text)),
            Value::Array(list) => list.into_iter().map(|value| self.withheld_from(value)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (self.withheld_from_text(name), self.withheld_from(value)))
                .collect::<json::Map>()
                .into(),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
        }
    }

    /// A text that does not repeat this secret.
    pub(crate) fn withheld_from_text(&self, text: String) -> String {
        let secret = self.expose();
        if secret.len() < LOOKED_FOR_BYTES_MIN || !text.contains(secret) {
            return text;
        }
        text.replace(secret, WITHHELD)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn a_secret_is_not_shown_and_not_repeated() {
        let secret = Secret::new("marker-8c1".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret");
        let said = json!({"a": ["Bearer marker-8c1", 7], "marker-8c1": true});
        let kept = secret.withheld_from(said).to_string();
        assert!(!kept.contains("marker") && kept.contains("Bearer [credential withheld]"), "{kept}");
        let short = Secret::new("is".to_owned());
        assert_eq!(short.withheld_from(json!("this")), json!("this"));
    }
}
