//! The binary `rialto`: a person at a terminal runs a node, asks, signs, checks and wants to know why.
//!
//! A door without decisions: what documents mean stands in `aql` and `trust`.

mod commands;

mod answer;
mod asking;
mod candidates;
mod draft;
mod explanation;
mod files;
mod handshake;
mod hosting;
mod house;
mod keys;
mod ledger;
mod page;
mod paying;
mod peer;
mod performance;
mod publication;
mod purse;
mod question;
mod receipts;
mod serving;
mod standing;

mod advice;
mod nearest;
mod place;

mod failure;
mod output;

mod chance;
mod clock;
mod environment;

use clap::Parser;
use std::process::ExitCode;

/// An answer is made of many small pieces on several threads; the system's allocator takes a tenth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::Rialto::parse().run() {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}
