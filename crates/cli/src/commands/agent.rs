//! `rialto agent`: agents that keep their word, judged, tried and replayed before anybody trusts them (OAS Agent).

mod approve;
mod hosted;
mod lint;
mod replay;
mod run;
mod test;

use crate::failure::{Exit, Failure};

/// Run, judge, try and replay agents that are written as YAML (OpenAgentSpec)
#[derive(clap::Subcommand)]
pub(crate) enum Agent {
    Run(run::Run),
    List(hosted::List),
    Show(hosted::Show),
    Lint(lint::Lint),
    Test(test::Test),
    Replay(replay::Replay),
    Approve(approve::Approve),
}

impl Agent {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(command) => command.run(),
            Self::List(command) => command.run(),
            Self::Show(command) => command.run(),
            Self::Lint(command) => command.run(),
            Self::Test(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Approve(command) => command.run(),
        }
    }
}
