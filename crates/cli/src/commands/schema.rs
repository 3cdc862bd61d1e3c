//! `rialto schema`: the workbench for versions of schemas (RFC 0024 §3.2 to §3.5).

mod check;
mod deprecate;
mod diff;
mod infer;
mod map;
mod negotiate;
mod plan;

use crate::advice;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use json::{Limits, Value};
use schema::Refusal;
use std::path::Path;

/// Compare versions of a schema, prove or refute that they fit, and translate between them
#[derive(clap::Subcommand)]
pub(crate) enum Schema {
    Diff(diff::Diff),
    Check(check::Check),
    Infer(infer::Infer),
    #[command(subcommand)]
    Map(map::Map),
    Negotiate(negotiate::Negotiate),
    Deprecate(deprecate::Deprecate),
    Plan(plan::Plan),
}

impl Schema {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Diff(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Infer(command) => command.run(),
            Self::Map(command) => command.run(),
            Self::Negotiate(command) => command.run(),
            Self::Deprecate(command) => command.run(),
            Self::Plan(command) => command.run(),
        }
    }
}

/// A JSON file with its text, so that mistakes can be pointed at.
struct File {
    text: Text,
    value: Value,
}

impl File {
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = Text::read(path)?;
        let value = text.document(&Limits::OURS)?.root().to_value();
        Ok(Self { text, value })
    }

    /// Why what stands in the file is refused.
    fn refused(&self, refusal: &Refusal) -> Failure {
        let position =
            self.text.locate(&refusal.at).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
        let pointer = if refusal.at.as_str().is_empty() { String::new() } else { format!(", {}", refusal.at) };
        let place = format!("{}{position}{pointer}, {}", self.text.name, refusal.code.section());
        let failure = Failure::refused(&refusal.detail).at(place).coded(refusal.code.name(), &refusal.at);
        match advice::on(refusal.code.name()) {
            Some(advice) => failure.help(advice),
            None => failure,
        }
    }

    fn mapping(&self) -> Result<schema::Mapping, Failure> {
        let document = self.text.document(&schema::MAPPING_LIMITS)?;
        schema::Mapping::read(document.root()).map_err(|refusal| self.refused(&refusal))
    }

    fn validator(&self) -> Result<schema::Validator, Failure> {
        schema::Validator::compile(&self.value).map_err(|refusal| self.refused(&refusal))
    }
}
