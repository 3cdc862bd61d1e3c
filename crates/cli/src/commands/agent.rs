//! `rialto agent`: agents that keep their word, judged, tried and replayed before anybody trusts them (OAS Agent).

mod lint;
mod replay;
mod test;

use crate::failure::{Exit, Failure};

/// Judge, try and replay agents that are written as YAML (OpenAgentSpec)
#[derive(clap::Subcommand)]
pub(crate) enum Agent {
    Lint(lint::Lint),
    Test(test::Test),
    Replay(replay::Replay),
}

impl Agent {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Lint(command) => command.run(),
            Self::Test(command) => command.run(),
            Self::Replay(command) => command.run(),
        }
    }
}
