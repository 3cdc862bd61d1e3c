//! OAS Agent, capabilities: the kinds of tools that an operator can name.

mod command;
mod fixed;
mod group;

use crate::ConfigurationError;
use crate::credentials::World;
use crate::definition::Definition;
use crate::fields::Fields;
use crate::http::Http;
use crate::name::is_name;
use crate::tool::{Hand, TIME_DEFAULT, TIME_MAX, Tool};
use crate::toolbox::Shelf;
use command::Command;
use fixed::Fixed;
pub(crate) use fixed::covers;
use json::{Pointer, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// An entry of `tools`.
pub(crate) struct Entry {
    name: String,
    at: Pointer,
    time: Duration,
    text_property: Option<String>,
    kind: Kind,
}

enum Kind {
    /// One tool, ready to be called.
    One(Definition, Arc<dyn Hand>),
}

impl Entry {
    pub(crate) fn read(name: &str, value: &Value, at: &Pointer, world: &World<'_>) -> Result<Self, ConfigurationError> {
        if !is_name(name) {
            return Err(ConfigurationError::new(
                at,
                "a name has lower case letters, digits, `-` and `.`, to 253 of them",
            ));
        }
        let fields = Fields::of(value, at)?;
        let time = fields.seconds("timeout_seconds", TIME_DEFAULT, TIME_MAX)?;
        let text_property = fields.text("guardrail_property")?.map(str::to_owned);
        let kind = match fields.needed_text("kind")? {
            "static" => Kind::One(definition(name, &fields)?, Arc::new(Fixed::read(&fields)?)),
            "command" => Kind::One(definition(name, &fields)?, Arc::new(Command::read(&fields, world)?)),
            _ => return Err(fields.wrong("kind", "known kinds are `static` and `command`")),
        };
        fields.finish()?;
        Ok(Self { name: name.to_owned(), at: at.clone(), time, text_property, kind })
    }

    /// Brings its tools to the shelf.
    pub(crate) async fn open(&self, shelf: &Arc<Shelf>, _http: &Arc<dyn Http>) -> Result<(), ConfigurationError> {
        match &self.kind {
            Kind::One(definition, hand) => {
                let tool = Tool::new(definition.clone(), &self.name, Arc::clone(hand))
                    .within(self.time)
                    .taking_text_as(self.text_property.clone());
                shelf.put(tool).map_err(|taken| ConfigurationError::new(&self.at, taken.to_string()))
            }
        }
    }
}

/// What the operator says of a tool that says nothing itself.
fn definition(name: &str, fields: &Fields<'_>) -> Result<Definition, ConfigurationError> {
    let definition = Definition {
        name: name.to_owned(),
        description: fields.needed_text("description")?.to_owned(),
        input: fields.value("input").cloned().unwrap_or_else(|| json!({"type": "object"})),
        output: fields.value("output").cloned(),
        idempotent: fields.flag("idempotent", false)?,
    };
    match definition.check() {
        Ok(_) => Ok(definition),
        Err(rejected) => Err(fields.wrong("input", rejected.to_string())),
    }
}
