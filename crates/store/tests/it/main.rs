//! The store from outside: against a model, against kills, against loss of power, against damage.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]

mod behaviour;
mod crash;
mod damage;
mod engagement;
mod feed;
mod model;
mod power;

use store::{Batch, Kind, Put, Withdrawal};

fn put(id: &str, publisher: &str, body: &str) -> Batch {
    let put = Put { id: id.into(), kind: Kind::Manifest, publisher: publisher.into(), body: body.into() };
    Batch { puts: vec![put], at: 1_000, ..Batch::default() }
}

fn withdraw(id: &str, publisher: &str) -> Batch {
    let withdrawal = Withdrawal { id: id.into(), publisher: publisher.into() };
    Batch { withdrawals: vec![withdrawal], at: 2_000, ..Batch::default() }
}
