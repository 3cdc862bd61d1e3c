//! The commands, one room each.

mod completions;
mod conformance;
mod demo;
mod explain;
mod import;
mod keys;
mod lint;
mod resolve;
mod serve;
mod sign;
mod verify;

use crate::failure::{EXIT_CODES, Exit, Failure};
use crate::files::{self, Text};
use crate::keys::{KeyChoice, Signer};
use crate::question::{self, Question};
use aql::{Instant, OverBudget};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Ask signed questions, get signed answers, and see why: the Agent Query Language (RFC 0020) on one machine
#[derive(Parser)]
#[command(name = "rialto", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Rialto {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Demo),
    Serve(serve::Serve),
    Import(import::Import),
    Conformance(conformance::Conformance),
    Resolve(resolve::Resolve),
    Explain(explain::Explain),
    Lint(lint::Lint),
    Sign(sign::Sign),
    Verify(verify::Verify),
    #[command(subcommand)]
    Keys(keys::Keys),
    Completions(completions::Completions),
}

impl Rialto {
    /// Runs the command that was asked for.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self.command {
            Command::Demo(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Conformance(command) => command.run(),
            Command::Resolve(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Lint(command) => command.run(),
            Command::Sign(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Keys(command) => command.run(),
            Command::Completions(command) => command.run(),
        }
    }
}

/// A question and whom it is put to.
#[derive(clap::Args)]
struct Asking {
    /// The intent: signed, or a draft that is completed and signed by the local key; `-` for standard input
    #[arg(long, value_name = "FILE")]
    intent: PathBuf,

    /// The candidates, one JSON object on each line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    candidates: PathBuf,

    /// Where candidates go that cost more than the budget
    #[arg(long, value_enum, default_value = "flag")]
    over_budget: OverBudgetChoice,

    /// The DID document of an issuer whose DID is no did:key
    #[arg(long, value_name = "FILE")]
    did_document: Option<PathBuf>,

    #[command(flatten)]
    key: KeyChoice,
}

impl Asking {
    /// The question in the intent file.
    fn question(&self, signer: &Signer<'_>, now: Instant) -> Result<Question, Failure> {
        question::read(&Text::read(&self.intent)?, self.did_document.as_deref(), || signer.key(), now)
    }

    /// Standard input can be read once only.
    fn check(&self) -> Result<(), Failure> {
        if files::is_stream(&self.intent) && files::is_stream(&self.candidates) {
            return Err(Failure::usage("both --intent and --candidates are standard input")
                .help("put one of the two into a file"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum OverBudgetChoice {
    /// Into the answer, flagged, behind all that fit
    Flag,
    /// Among the rejected
    Reject,
}

impl From<OverBudgetChoice> for OverBudget {
    fn from(choice: OverBudgetChoice) -> Self {
        match choice {
            OverBudgetChoice::Flag => Self::Flag,
            OverBudgetChoice::Reject => Self::Reject,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Rialto::command().debug_assert();
    }
}
