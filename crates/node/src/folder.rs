//! The data folder as a whole: looked at, copied, put back.
//!
//! A copy holds the truth, the node's keys, the operator's incidents, rules and conformance receipt, and what was
//! metered. The index is made again from the log; answers that were kept for repeated questions are not copied, so a restored node may answer one of them anew.
//!
//! INVARIANT: nothing here works on a folder that a node has open.

use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::duties::INCIDENTS_FILE;
use crate::identity::{self, FILES, Identity, Keys, Rotation};
use crate::policy::RULES_FILE;
use crate::receipts::CONFORMANCE_FILE;
use crate::refusal::Error;
use crate::versions::{self, Announcement, COUNTERPARTIES, VERSIONS_FILE, Versions, announced};
use json::{Document, Instant, Limits, Value};
use schema::{SchemaId, Version};
use std::fs;
use std::path::Path;
use store::{Batch, Kind, Put, Soundness, Store};
use trust::{Did, Method};

/// The folder of the truth inside the data folder.
pub(crate) const STORE: &str = "store";
/// The folder of what was delivered.
pub(crate) const METER: &str = "meter";

/// What a copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Changes in the log.
    pub changes: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Reads everything that a data folder holds and compares it with the log.
pub fn check(data: &Path) -> Result<Soundness, Error> {
    Ok(opened(data)?.check()?)
}

/// Makes the key that follows the one of the node in this folder; it signs after it has been announced for a while, or
/// at once.
pub fn rotate(data: &Path, clock: &Clock, at_once: bool) -> Result<Rotation, Error> {
    let _store = opened(data)?;
    identity::rotate(data, clock.millis(), at_once)
}

/// That a version is to go.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Of which schema.
    pub schema: SchemaId,
    /// Which version.
    pub version: Version,
    /// When.
    pub sunset: Instant,
    /// What to move to.
    pub successor: Option<Version>,
}

/// Announces the end of a version in the store of a folder that no node has open (RFC 0024 §3.5).
pub fn deprecate(data: &Path, clock: &Clock, ending: &Ending) -> Result<Announcement, Error> {
    let store = opened(data)?;
    let catalog = Catalog::open(data, &store, &mut |_, _| {})?;
    let identity = Identity::of_key(Keys::open(data)?, clock.clone());
    let known = Versions::open(data, &identity, &[], None, clock)?;
    known.adopt(announced(&store, &catalog)?);
    let announcement = ending.announcement(clock)?;
    known.consider(&announcement)?;
    let put = Put {
        id: announcement.record.clone(),
        kind: Kind::Receipt,
        publisher: identity.did().to_string(),
        body: versions::publication(&announcement, &identity, clock.now()),
    };
    store.commit(Batch { puts: vec![put], at: clock.millis(), ..Batch::default() }).map_err(Error::fault)?;
    Ok(announcement)
}

/// The same announcement as a publication for a node that runs on the folder and is called `did`.
pub fn announcement(data: &Path, did: &Did, clock: &Clock, ending: &Ending) -> Result<(Announcement, Vec<u8>), Error> {
    let keys = Keys::open(data)?;
    let identity = match did.method() {
        Method::Key => Identity::of_key(keys, clock.clone()),
        Method::Web | Method::Wba | Method::Other => Identity::named(keys, did.clone(), clock.clone()),
    };
    if identity.did() != did {
        return Err(Error::fault(format!("the key in {} is not that of {did}", data.display())));
    }
    let announcement = ending.announcement(clock)?;
    let publication = versions::publication(&announcement, &identity, clock.now());
    Ok((announcement, publication))
}

impl Ending {
    fn announcement(&self, clock: &Clock) -> Result<Announcement, Error> {
        versions::dated(&self.schema, self.version, (clock.now(), self.sunset), self.successor)
    }
}

/// What the node in this folder notes about the versions that are in use; it may be some seconds old.
pub fn usage(data: &Path) -> Result<Value, Error> {
    let path = data.join(VERSIONS_FILE);
    let bytes = fs::read(&path).map_err(|error| Error::fault(format!("{}: {error}", path.display())))?;
    Ok(Document::parse(&bytes, &Limits::OURS)?.root().to_value())
}

/// Copies a data folder into an empty or new one; every copied change is read again.
pub fn backup(data: &Path, to: &Path) -> Result<Copied, Error> {
    copy(data, to)
}

/// Puts a copy back into an empty or new data folder, and checks all of it.
pub fn restore(from: &Path, data: &Path) -> Result<Copied, Error> {
    let copied = copy(from, data)?;
    match check(data)?.flaws.first() {
        None => Ok(copied),
        Some(flaw) => Err(Error::fault(format!("what was restored is not sound: {flaw}"))),
    }
}

/// Copies the files of a folder, if there is one.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<Copied, Error> {
    let store = opened(from)?;
    empty(to)?;
    let failed = |error: std::io::Error| Error::fault(format!("{}: {error}", to.display()));
    store.backup(&to.join(STORE)).map_err(Error::fault)?;
    let files = FILES.into_iter().filter(|file| from.join(file).exists());
    if files.clone().next().is_some() {
        // Read first, so that no key is copied that the node would not take.
        Keys::open(from)?;
    }
    copy_files(&from.join(METER), &to.join(METER)).map_err(failed)?;
    copy_files(&from.join(COUNTERPARTIES), &to.join(COUNTERPARTIES)).map_err(failed)?;
    let kept = [INCIDENTS_FILE, RULES_FILE, CONFORMANCE_FILE, VERSIONS_FILE]
        .into_iter()
        .filter(|file| from.join(file).exists());
    for file in files.chain(kept) {
        // The copy takes the permissions along: whoever could not read the one cannot read the other.
        fs::copy(from.join(file), to.join(file)).map_err(failed)?;
    }
    Ok(Copied { changes: store.sequence(), bytes: size(&to.join(STORE)).map_err(failed)? })
}

/// Opens a store that is there; opening would make one.
fn opened(data: &Path) -> Result<Store, Error> {
    let folder = data.join(STORE);
    if !folder.is_dir() {
        return Err(Error::fault(format!("there is no store in {}", data.display())));
    }
    Store::open(&folder).map_err(Error::fault)
}

/// Makes a folder, or takes one in which there is nothing.
fn empty(folder: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::fault(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    match fs::read_dir(folder).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(Error::fault(format!("{} is not empty; name a new folder", folder.display()))),
    }
}

fn size(folder: &Path) -> std::io::Result<u64> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
