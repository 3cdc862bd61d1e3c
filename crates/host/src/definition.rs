//! OAS Agent, capabilities: how a tool is described to a model, pinned by its digest.
//!
//! A description is text that a model obeys, so a tool that changes its own may change what an agent does. Hence the
//! digest, and hence no characters that a reader does not see.

use json::{Value, json};
use schema::Validator;
use sha2::{Digest, Sha256};

/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;

/// Bytes of both schemas of a tool together.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// What a tool is.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name here.
    pub name: String,
    /// What it does, for a model.
    pub description: String,
    /// The JSON Schema of its inputs.
    pub input: Value,
    /// The JSON Schema of its outputs, where that is said.
    pub output: Option<Value>,
    /// Whether a call may be repeated without a second effect.
    pub idempotent: bool,
}

/// Why a definition is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rejected(pub String);

impl Definition {
    /// The digest that a definition is pinned by: SHA-256 of its canonical JSON.
    pub fn digest(&self) -> String {
        let whole = json!({
            "name": self.name, "description": self.description, "input": self.input, "output": self.output,
            "idempotent": self.idempotent,
        });
        digest(&json::canonical_value(&whole))
    }

    /// Refuses what a model should not be shown, and compiles the schemas.
    pub(crate) fn check(&self) -> Result<(Validator, Option<Validator>), Rejected> {
        let rejected = |detail: &str| Err(Rejected(detail.to_owned()));
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            return rejected("the description is too long");
        }
        let written = |schema: &Value| schema.to_string().len();
        if written(&self.input) + self.output.as_ref().map_or(0, written) > SCHEMA_BYTES_MAX {
            return rejected("the schemas are too long");
        }
        if is_deceptive(&self.description) || has_deceptive(&self.input) {
            return rejected("there are invisible characters, or ones that turn text round");
        }
        let compiled = |schema: &Value, whose: &str| {
            Validator::compile(schema).map_err(|refusal| Rejected(format!("the schema of its {whose}: {refusal}")))
        };
        let output = self.output.as_ref().map(|schema| compiled(schema, "outputs")).transpose()?;
        Ok((compiled(&self.input, "inputs")?, output))
    }
}

/// SHA-256 as it is written.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha-256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn has_deceptive(value: &Value) -> bool {
    match value {
        Value::String(text) => is_deceptive(text),
        Value::Array(list) => list.iter().any(has_deceptive),
        Value::Object(members) => members.iter().any(|(name, value)| is_deceptive(name) || has_deceptive(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text has characters that a reader does not see or that change the order of others.
fn is_deceptive(text: &str) -> bool {
    text.chars().any(|letter| match letter {
        '\n' | '\r' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        letter => letter.is_control(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        Definition {
            name: "crm".to_owned(),
            description: "Looks a customer up.".to_owned(),
            input: json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}),
            output: None,
            idempotent: true,
        }
    }

    #[test]
    fn a_digest_changes_with_everything_a_model_is_told() {
        let first = definition();
        let reordered = json!({"required": ["id"], "properties": {"id": {"type": "integer"}}, "type": "object"});
        assert_eq!(first.digest(), Definition { input: reordered, ..definition() }.digest());
        for changed in [
            Definition { name: "crm2".to_owned(), ..definition() },
            Definition { description: "Looks a customer up!".to_owned(), ..definition() },
            Definition { input: json!({}), ..definition() },
            Definition { output: Some(json!({})), ..definition() },
            Definition { idempotent: false, ..definition() },
        ] {
            assert_ne!(first.digest(), changed.digest(), "{changed:?}");
        }
    }

    #[test]
    fn what_a_reader_does_not_see_is_rejected() {
        assert!(definition().check().is_ok());
        for hidden in ["\u{e0041}", "\u{202e}", "\u{200b}", "\u{2066}", "\u{feff}", "\0"] {
            let description = format!("Looks{hidden} up");
            assert!(Definition { description, ..definition() }.check().is_err(), "{hidden:?}");
            let input = json!({"properties": {"id": {"description": hidden}}});
            assert!(Definition { input, ..definition() }.check().is_err(), "{hidden:?}");
        }
        let long = Definition { description: "x".repeat(DESCRIPTION_BYTES_MAX + 1), ..definition() };
        assert!(long.check().is_err());
        let wide = Definition { input: json!({"title": "x".repeat(SCHEMA_BYTES_MAX)}), ..definition() };
        assert!(wide.check().is_err());
        assert!(Definition { input: json!({"type": 7}), ..definition() }.check().is_err());
    }
}
