//! The commands, one room each.

mod agent;
mod ask;
mod call;
mod completions;
mod conformance;
mod crawl;
mod demo;
mod describe;
mod did;
mod doctor;
mod explain;
mod import;
mod keys;
mod lint;
mod mandate;
mod pay;
mod publish;
mod receipts;
mod resolve;
mod reviews;
mod schema;
mod serve;
mod sign;
mod spending;
mod store;
mod subscriptions;
mod trace;
mod verify;
mod watch;
mod withdraw;

use crate::failure::{EXIT_CODES, Exit, Failure};
use aql::OverBudget;
use clap::{Parser, Subcommand, ValueEnum};

/// Ask signed questions, get signed answers, and see why: the Agent Query Language (RFC 0020)
#[derive(Parser)]
#[command(name = "rialto", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Rialto {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Demo),
    Ask(ask::Ask),
    Watch(watch::Watch),
    #[command(subcommand)]
    Subscriptions(subscriptions::Subscriptions),
    #[command(subcommand)]
    Receipts(receipts::Receipts),
    #[command(subcommand)]
    Reviews(reviews::Reviews),
    Explain(explain::Explain),
    Call(call::Call),
    Mandate(mandate::Sign),
    Pay(pay::Pay),
    Confirm(mandate::Confirm),
    Trace(trace::Tracing),
    Spending(spending::Report),
    Publish(publish::Publish),
    Withdraw(withdraw::Withdraw),
    Serve(Box<serve::Serve>),
    Import(import::Import),
    Crawl(crawl::Crawl),
    #[command(subcommand)]
    Store(store::Store),
    Doctor(doctor::Doctor),
    Conformance(conformance::Conformance),
    Resolve(resolve::Resolve),
    #[command(subcommand)]
    Schema(schema::Schema),
    Describe(describe::Describe),
    #[command(subcommand)]
    Agent(agent::Agent),
    Lint(lint::Lint),
    Sign(sign::Sign),
    Verify(verify::Verify),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Did(did::Did),
    Completions(completions::Completions),
}

impl Rialto {
    /// Runs the command that was asked for.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self.command {
            Command::Demo(command) => command.run(),
            Command::Ask(command) => command.run(),
            Command::Watch(command) => command.run(),
            Command::Subscriptions(command) => command.run(),
            Command::Receipts(command) => command.run(),
            Command::Reviews(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Call(command) => command.run(),
            Command::Mandate(command) => command.run(),
            Command::Pay(command) => command.run(),
            Command::Confirm(command) => command.run(),
            Command::Trace(command) => command.run(),
            Command::Spending(command) => command.run(),
            Command::Publish(command) => command.run(),
            Command::Withdraw(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Crawl(command) => command.run(),
            Command::Store(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Conformance(command) => command.run(),
            Command::Resolve(command) => command.run(),
            Command::Schema(command) => command.run(),
            Command::Describe(command) => command.run(),
            Command::Agent(command) => command.run(),
            Command::Lint(command) => command.run(),
            Command::Sign(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Keys(command) => command.run(),
            Command::Did(command) => command.run(),
            Command::Completions(command) => command.run(),
        }
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
