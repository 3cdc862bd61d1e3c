//! `rialto withdraw`: a record that its publisher no longer stands for.

use super::publish::Acknowledged;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::keys::KeyChoice;
use crate::output;
use crate::output::text::json_line;
use crate::peer::{Destination, Message, Peer};
use crate::{clock, publication};

/// Withdraw a record from a node
///
/// Only whoever published it can; the node's signed acknowledgement is verified and shown.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto withdraw urn:oap:offer:mine:42 --to https://node.example")]
pub(crate) struct Withdraw {
    /// The id of the record
    id: String,

    #[command(flatten)]
    destination: Destination,

    #[command(flatten)]
    key: KeyChoice,

    /// Print the signed acknowledgement
    #[arg(long)]
    json: bool,
}

impl Withdraw {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let peer = Peer::new(&self.destination)?;
        let publication = publication::of_withdrawal(&self.id, &self.key.stored()?, clock::now())?;
        let about = Text { name: self.id.clone(), bytes: Vec::new() };
        let said = peer.ask(Message::Withdraw { id: self.id, bytes: publication.bytes.clone() }, &about)?;
        let acknowledged = Acknowledged::read(&said, &publication)?;
        output::print(&if self.json { json_line(&said.text.bytes) } else { acknowledged.described() })?;
        Ok(Exit::Fine)
    }
}
