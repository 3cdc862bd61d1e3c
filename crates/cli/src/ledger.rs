//! RFC 0020 B.3: the agent's ledger on disk, in `ledger.ndjson`.
//!
//! INVARIANT: a line is judged while nobody else writes, and is on disk before its effect is asked for.

use crate::environment;
use crate::failure::Failure;
use crate::files::Text;
use json::{Document, Limits, Node, Pointer};
use node::Log;
use payment::{ChainFlaw, Keyring, Ledger, Line, Refusal, lines};
use std::path::{Path, PathBuf};
use trust::{Did, DidDocument};

const LOG: &str = "ledger.ndjson";

/// Where a ledger is kept.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Place {
    /// The folder of the ledger [default: $RIALTO_HOME or the user's data directory]
    #[arg(long, value_name = "DIR")]
    ledger: Option<PathBuf>,
}

impl Place {
    fn folder(&self) -> Result<PathBuf, Failure> {
        self.ledger.clone().or_else(environment::data_directory).ok_or_else(|| {
            Failure::files("there is no place for a ledger: no home directory is known")
                .help("name a folder with --ledger, or set RIALTO_HOME")
        })
    }

    /// The ledger to look at, and what is wrong with it.
    pub(crate) fn look(&self) -> Result<(Ledger, Vec<ChainFlaw>), Failure> {
        let Kept { ledger, flaws, .. } = Kept::read(&self.folder()?)?;
        Ok((ledger, flaws))
    }

    /// The ledger to write to; one that somebody changed is left alone.
    pub(crate) fn open(&self) -> Result<Kept, Failure> {
        let kept = Kept::read(&self.folder()?)?;
        match kept.flaws.first() {
            None => Ok(kept),
            Some(flaw) => Err(Failure::files(format!("`{}`: {}", kept.log.path().display(), flaw.describe())).help(
                "nothing is paid from a ledger that is not sound; put back a copy, or name another with --ledger",
            )),
        }
    }
}

/// A ledger that is written to.
pub(crate) struct Kept {
    log: Log,
    ledger: Ledger,
    flaws: Vec<ChainFlaw>,
}

impl Kept {
    fn read(folder: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::io("use", &folder.join(LOG), &error);
        let mut log = Log::open(folder, LOG).map_err(failed)?;
        let mut held = log.hold().map_err(failed)?;
        let bytes = held.unread().map_err(failed)?;
        let sound = held.ends_at_its_head().map_err(failed)?;
        drop(held);
        let (ledger, mut flaws) = Ledger::replay(&bytes);
        if !sound {
            flaws.push(ChainFlaw::Head);
        }
        Ok(Self { log, ledger, flaws })
    }

    /// What it says now.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes a step: what is to be written is judged by what everybody has written.
    pub(crate) fn step(
        &mut self,
        prepare: impl FnOnce(&Ledger) -> Result<Option<Line>, Refusal>,
    ) -> Result<Result<(), Refusal>, Failure> {
        let path = self.log.path().to_owned();
        let failed = |error: std::io::Error| Failure::io("write", &path, &error);
        let mut held = self.log.hold().map_err(failed)?;
        for line in lines(&held.unread().map_err(failed)?) {
            accept(&mut self.ledger, line)?;
        }
        let line = match prepare(&self.ledger) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(Ok(())),
            Err(refusal) => return Ok(Err(refusal)),
        };
        held.append(line.bytes()).map_err(failed)?;
        accept(&mut self.ledger, line.bytes()).map(Ok)
    }
}

fn accept(ledger: &mut Ledger, line: &[u8]) -> Result<(), Failure> {
    match ledger.accept(line) {
        None => Ok(()),
        Some(flaw) => Err(Failure::files(format!("the ledger is not sound: {}", flaw.describe()))),
    }
}

/// The keys in DID documents that were brought along.
pub(crate) fn keyring(did_documents: &[PathBuf]) -> Result<Keyring, Failure> {
    let mut keys = Keyring::default();
    for path in did_documents {
        let text = Text::read(path)?;
        let document = text.document(&Limits::DOCUMENT)?;
        keys = keys.with(did_document(&text, &document)?);
    }
    Ok(keys)
}

/// A DID document about whomever it names.
pub(crate) fn did_document(text: &Text, document: &Document) -> Result<DidDocument, Failure> {
    let id = document.root().get("id").and_then(Node::as_str).unwrap_or_default();
    let did = Did::parse(id).map_err(|error| {
        Failure::refused(format!("{} is no DID document: {error}", text.name))
            .coded(error.code(), &Pointer::root().child("id"))
    })?;
    DidDocument::read(document.root(), &did).map_err(|error| text.unproved(&error))
}

/// Why a payment document is refused.
pub(crate) fn refused(name: &str, refusal: &Refusal) -> Failure {
    let place = if refusal.at.as_str().is_empty() { name.to_owned() } else { format!("{name}, {}", refusal.at) };
    let failure = Failure::refused(&refusal.detail).at(place).coded(refusal.code.name(), &refusal.at);
    match crate::advice::on(refusal.code.name()) {
        Some(help) => failure.help(help),
        None => failure,
    }
}
