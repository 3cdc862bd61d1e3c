//! `rialto ask`: an intent to a node, its answer proved, checked and shown (RFC 0020 A.3, RFC 0020 §3.7).

use crate::asking::{self, Answered};
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::handshake::{self, Kept};
use crate::keys::{KeyChoice, Signer};
use crate::output::resolution::{self, Layout};
use crate::output::text::{json_line, json_lines};
use crate::output::{self, BAD, DIM, GOOD, count, paint, violations};
use crate::peer::{Destination, Peer, Said};
use crate::question::{self, Sent};
use crate::receipts::Place;
use crate::{clock, output::question as whole};
use std::path::{Path, PathBuf};

/// Ask a node
///
/// Completes and signs a draft with the local key, verifies who signed the answer, holds the answer against the
/// question, and shows who fits, in order and with the reasons. When few or none fit, the node is asked why. Question and
/// answer are noted in the chain of receipts.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto ask examples/intents/affordable-certified-translation.json
  rialto ask question.json --to https://node.example --all --save answer.json

An empty answer is an answer: it exits with 0. An answer that breaks a rule is shown, and exits with 1.")]
pub(crate) struct Ask {
    /// The intent: signed, or a draft; `-` for standard input
    intent: PathBuf,

    #[command(flatten)]
    destination: Destination,

    /// Fetch every page of the answer
    #[arg(long)]
    all: bool,

    /// How many rejected candidates are shown; a node names at most 20
    #[arg(long, value_name = "N", default_value_t = 20)]
    rejected: usize,

    /// Keep the signed answer; later pages go to FILE.2, FILE.3 and so on
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Keep the signed question, as `rialto verify ANSWER --intent` wants it
    #[arg(long, value_name = "FILE")]
    save_intent: Option<PathBuf>,

    #[command(flatten)]
    receipts: Place,

    /// Note nothing of this question in the chain of receipts
    #[arg(long, conflicts_with = "receipts")]
    no_receipt: bool,

    #[command(flatten)]
    key: KeyChoice,

    /// Print the signed answer, each page on a line
    #[arg(long)]
    json: bool,

    /// With --json: indent it
    #[arg(long, requires = "json")]
    pretty: bool,
}

const HINT: &str = "; --rejected N shows more";

impl Ask {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let peer = Peer::new(&self.destination)?;
        let text = Text::read(&self.intent)?;
        let signer = Signer::new(&self.key);
        let (sent, answered) = self.ask(&peer, &text, &signer)?;
        self.keep(&sent, &answered)?;
        let noted = self.note(&sent, &answered, &peer);
        if self.json {
            answered.pages.iter().try_for_each(|(said, _)| output::print(&self.printed(said)))?;
        } else {
            let layout = Layout { width: output::width(), rejected_max: self.rejected, hint: HINT };
            output::print(&resolution::show(&sent.intent, &answered.page, &layout))?;
            output::print(&proof(&answered, &peer))?;
            if answered.page.more {
                output::note("this is the first page; --all fetches the rest");
            }
            self.explain(&peer, &text, &sent, &answered)?;
        }
        for (said, audit) in &answered.pages {
            violations::show(audit, &said.text).lines().for_each(output::say);
        }
        // The answer is shown first: it was given, whether or not it could be noted.
        noted?;
        Ok(if answered.conforms() { Exit::Fine } else { Exit::No })
    }

    /// Agrees about the version first.
    fn ask(&self, peer: &Peer, text: &Text, signer: &Signer<'_>) -> Result<(Sent, Answered), Failure> {
        // What can be seen to be wrong is said before anybody is asked.
        question::to_send(text, || signer.key(), clock::now(), None)?;
        handshake::in_agreement(peer, Kept::InFile, clock::now(), |agreed| {
            let sent = question::to_send(text, || signer.key(), clock::now(), agreed)?;
            let answered = asking::ask(peer, text, &sent, self.all)?;
            Ok((sent, answered))
        })
    }

    /// Appends the question and its answer to the asker's own chain.
    fn note(&self, sent: &Sent, answered: &Answered, peer: &Peer) -> Result<(), Failure> {
        if self.no_receipt {
            return Ok(());
        }
        if !self.receipts.is_known() {
            output::note("no home directory is known, so no receipt is kept; --receipts names a folder");
            return Ok(());
        }
        self.receipts.chain()?.append(sent, answered, peer.address(), clock::now())
    }

    fn keep(&self, sent: &Sent, answered: &Answered) -> Result<(), Failure> {
        if let Some(path) = &self.save_intent {
            files::write(Some(path), &String::from_utf8_lossy(&sent.bytes))?;
        }
        let Some(path) = &self.save else { return Ok(()) };
        for (number, (said, _)) in (1..).zip(&answered.pages) {
            files::write(Some(&page_path(path, number)), &String::from_utf8_lossy(&said.text.bytes))?;
        }
        Ok(())
    }

    fn printed(&self, said: &Said) -> String {
        if self.pretty {
            json_lines(&format!("{:#}", said.document.root().to_value()))
        } else {
            json_line(&said.text.bytes)
        }
    }

    /// Few answers are explained; a node that cannot do so has still answered.
    fn explain(&self, peer: &Peer, text: &Text, sent: &Sent, answered: &Answered) -> Result<(), Failure> {
        if !answered.is_meagre(&sent.intent) {
            return Ok(());
        }
        match asking::ask_why(peer, text, sent, None) {
            Ok(said) => {
                let Some(explanation) = said.document.root().get("output") else { return Ok(()) };
                output::print(&format!("\n{}", whole::show(&sent.intent, explanation, output::width())))
            }
            Err(failure) => {
                failure.report();
                Ok(())
            }
        }
    }
}

fn page_path(path: &Path, number: usize) -> PathBuf {
    match number {
        1 => path.to_owned(),
        number => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            name.into()
        }
    }
}

/// Who signed, and whether the answer keeps to the question.
pub(super) fn proof(answered: &Answered, peer: &Peer) -> String {
    let signer = answered.pages.first().map_or("nobody", |(said, _)| said.signer.as_str());
    let (leaves, scores) = answered.recomputed();
    let again = match (leaves, scores) {
        (0, 0) => String::new(),
        (leaves, scores) => format!(", {} and {} computed again", count_leaves(leaves), count(scores, "score")),
    };
    let verdict = if answered.conforms() {
        format!("{} keeps to its question{again}", paint(GOOD, "✓ verified:"))
    } else {
        paint(BAD, "✗ signed, and breaks its question")
    };
    format!("\n{verdict}\n  {}\n", paint(DIM, format!("signed by {signer}, from {}", peer.address())))
}

fn count_leaves(leaves: usize) -> String {
    if leaves == 1 { "1 leaf".to_owned() } else { format!("{leaves} leaves") }
}
