//! `rialto completions`: what a shell needs to complete our commands.

use super::Rialto;
use crate::failure::{Exit, Failure};
use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for a shell
///
/// Put the output where your shell looks for completions.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto completions bash > ~/.local/share/bash-completion/completions/rialto")]
pub(crate) struct Completions {
    /// The shell that will read them
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Rialto::command(), "rialto", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Fine)
    }
}
