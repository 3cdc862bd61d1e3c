//! RFC 0020 A.3 R3, §5: what everybody may see of stored records, in a form that is read without being parsed.
//!
//! The store has the bytes as they came; asking for one and parsing it costs more than everything that is then asked of
//! it. So the public view of each record is packed once, when it is filed or first needed, into a file beside the index:
//! `log` has the views one after the other, `places` says where each of them is and which names its objects have. Both
//! are written without waiting for the disk, and each entry has a checksum: what is missing or damaged is cut from what
//! the store has. The best of a market are in many answers: the views that were asked for most stay in memory
//! (decisions/0305).
//!
//! INVARIANT: what is given is the public view of what is stored. Nothing of what a record hides is in these files: no
//! value, no name, no length; so whoever is no party pays the same for a hidden value as for none (decisions/0300).

use crate::catalog::parsed;
use crate::chance;
use crate::gate::{View, Viewer};
use crate::refusal::Error;
use json::{Packer, Unpacker};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rustix::fs::Advice;
use rustix::io::ReadWriteFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use store::Store;

/// What the file of places begins with, with the number of its form; what has another beginning is made again.
const MAGIC: &[u8; 8] = b"rialtop2";
/// The beginning: the magic and a number by chance, which is in every checksum, so that no two files are mixed up.
const HEADER: usize = MAGIC.len() + 8;
/// A place: the number of the record, where its view is, a checksum.
const PLACE: usize = 8 + 8 + 4;
/// The number of no record: what follows are names of objects.
const NAMES: u64 = 0;
/// A place is an offset and, in its lowest bits, a length.
const LENGTH_BITS: u32 = 24;
/// A view is the whole stored body, or what restrictions left of its record.
const WHOLE: u8 = 0;
const CUT: u8 = 1;
/// Views that nobody asks for any more beside each that somebody may, before the files are begun anew.
const DEAD_MAX: u64 = 3;
/// Views up to which nobody counts the dead.
const FEW: u64 = 65_536;

/// Bytes of the views that stay in memory.
const MEMORY_BYTES: u64 = 384 << 20;
/// About what a view takes there; a guess of how many there will be.
const VIEW_BYTES: u64 = 1_536;

/// Stored records as everybody may see them.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// By the numbers of their records: what is stored under a number never changes.
    known: Cache<u64, View, Bytes>,
    reading: RwLock<Reading>,
    /// None where the files cannot be written: then everything is taken from the store.
    writing: Mutex<Option<Writing>>,
}

/// What a view takes in memory.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<u64, View> for Bytes {
    fn weight(&self, _: &u64, view: &View) -> u64 {
        view.document().memory() as u64
    }
}

#[derive(Debug, Default)]
struct Reading {
    log: Option<Arc<File>>,
    chance: [u8; 8],
    names: Unpacker,
    /// Where the record with this number is packed; zero while it is not.
    places: Vec<u64>,
}

#[derive(Debug)]
struct Writing {
    log: Arc<File>,
    log_bytes: u64,
    places: File,
    places_bytes: u64,
    chance: [u8; 8],
    packer: Packer,
    /// What is to be written; its memory is used again.
    buffer: Vec<u8>,
}

/// Bytes that are kept for what is to be written next.
const BUFFER_BYTES: usize = 8 << 20;

impl Loaded {
    /// Opens the files in a folder, or begins them; of `alive` records up to `sequence` there are any.
    pub(crate) fn open(folder: &Path, sequence: u64, alive: u64) -> Self {
        Self::within(MEMORY_BYTES, folder, sequence, alive)
    }

    fn within(bytes: u64, folder: &Path, sequence: u64, alive: u64) -> Self {
        let opened = fs::create_dir_all(folder).and_then(|()| match take_up(folder, sequence, alive)? {
            Some(opened) => Ok(opened),
            None => begin(folder),
        });
        let (reading, writing) = match opened {
            Ok((reading, writing)) => (reading, Some(writing)),
            Err(error) => {
                tracing::warn!(%error, "records cannot be kept in the form they are asked in; answers take longer");
                Default::default()
            }
        };
        let known = Cache::with_weighter((bytes / VIEW_BYTES) as usize, bytes, Bytes);
        Self { known, reading: RwLock::new(reading), writing: Mutex::new(writing) }
    }

    /// How many views stay in memory, about.
    pub(crate) fn room(&self) -> u64 {
        self.known.capacity() / VIEW_BYTES
    }

    #[cfg(test)]
    pub(crate) fn in_memory(&self) -> usize {
        self.known.len()
    }

    /// Removes the files.
    pub(crate) fn discard(folder: &Path) -> Result<(), Error> {
        for path in [log_path(folder), places_path(folder)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::fault(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// What everybody may see of records, in the order given.
    pub(crate) fn views(&self, store: &Store, numbers: &[u64]) -> Result<Vec<View>, Error> {
        let mut found: Vec<Option<View>> = numbers.iter().map(|number| self.known.get(number)).collect();
        self.fill(numbers, &mut found, |numbers| Ok(self.find(numbers)))?;
        self.fill(numbers, &mut found, |numbers| {
            let view = |(number, body): (&u64, Option<Vec<u8>>)| {
                let missing = || Error::fault(format!("the record {number} is missing"));
                View::of(parsed(&body.ok_or_else(missing)?)?, &Viewer::Public)
            };
            let read = numbers.iter().zip(store.bodies(numbers)?).map(view).collect::<Result<Vec<_>, Error>>()?;
            self.add(numbers.iter().copied().zip(&read));
            Ok(read.into_iter().map(Some).collect())
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Asks for what was not found so far, and remembers it.
    fn fill(
        &self,
        numbers: &[u64],
        found: &mut [Option<View>],
        ask: impl FnOnce(&[u64]) -> Result<Vec<Option<View>>, Error>,
    ) -> Result<(), Error> {
        let unknown = numbers.iter().zip(&*found).filter(|(_, found)| found.is_none());
        let unknown: Vec<u64> = unknown.map(|(number, _)| *number).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let places = found.iter_mut().filter(|found| found.is_none());
        for ((place, number), view) in places.zip(&unknown).zip(ask(&unknown)?) {
            if let Some(view) = &view {
                self.known.insert(*number, view.clone());
            }
            *place = view;
        }
        Ok(())
    }

    fn find(&self, numbers: &[u64]) -> Vec<Option<View>> {
        let reading = self.reading.read().unwrap_or_else(PoisonError::into_inner);
        let place = |number: &u64| reading.places.get(*number as usize).copied().filter(|place| *place != 0);
        let places: Vec<Option<u64>> = numbers.iter().map(place).collect();
        let (log, names, chance) = (reading.log.clone(), reading.names.clone(), reading.chance);
        drop(reading);
        let Some(log) = log else { return numbers.iter().map(|_| None).collect() };
        let mut entries: Vec<Entry> = places.into_iter().map(|place| Entry::at(place.unwrap_or_default())).collect();
        // What the system has in memory is read at once. The rest is asked for together, so that the disk is waited for
        // once and not once for each.
        entries.iter_mut().for_each(|entry| entry.read_now(&log));
        entries.iter_mut().for_each(|entry| entry.read(&log));
        let view = |(number, entry): (&u64, &Entry)| {
            let (sum, entry) = entry.bytes.split_first_chunk::<4>().filter(|_| entry.is_read)?;
            let good = u32::from_le_bytes(*sum) == checksum(chance, *number, entry);
            let (&kind, packed) = entry.split_first().filter(|_| good)?;
            match kind {
                WHOLE => names.unpack(packed).map(View::whole),
                CUT => names.unpack(packed).map(View::cut),
                _ => None,
            }
        };
        numbers.iter().zip(&entries).map(view).collect()
    }

    /// Packs public views; what cannot be written is taken from the store from now on.
    pub(crate) fn add<'v>(&self, views: impl Iterator<Item = (u64, &'v View)>) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = writing.as_mut() else { return };
        match open.add(views) {
            Ok(added) => {
                let mut reading = self.reading.write().unwrap_or_else(PoisonError::into_inner);
                reading.names = open.packer.unpacker();
                for (number, place) in added {
                    reading.set(number, place);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "records cannot be kept in the form they are asked in; answers take longer");
                *writing = None;
            }
        }
    }
}

/// An entry of the log on its way into memory.
#[derive(Debug)]
struct Entry {
    at: u64,
    bytes: Vec<u8>,
    is_read: bool,
}

impl Entry {
    fn at(place: u64) -> Self {
        let length = place & ((1 << LENGTH_BITS) - 1);
        Self { at: place >> LENGTH_BITS, bytes: vec![0; length as usize], is_read: length == 0 }
    }

    /// Reads what is in memory, or lets the system fetch it meanwhile.
    fn read_now(&mut self, log: &File) {
        if self.is_read {
            return;
        }
        let (length, mut bytes) = (self.bytes.len(), [io::IoSliceMut::new(&mut self.bytes)]);
        self.is_read = rustix::io::preadv2(log, &mut bytes, self.at, ReadWriteFlags::NOWAIT) == Ok(length);
        if !self.is_read {
            // It is a hint only: without it the entry is waited for when it is read.
            let _ = rustix::fs::fadvise(log, self.at, NonZeroU64::new(length as u64), Advice::WillNeed);
        }
    }

    fn read(&mut self, log: &File) {
        self.is_read = self.is_read || log.read_exact_at(&mut self.bytes, self.at).is_ok();
    }
}

impl Reading {
    fn set(&mut self, number: u64, place: u64) {
        let Ok(number) = usize::try_from(number) else { return };
        if self.places.len() <= number {
            self.places.resize(number + 1, 0);
        }
        if let Some(known) = self.places.get_mut(number) {
            *known = place;
        }
    }
}

impl Writing {
    fn add<'v>(&mut self, views: impl Iterator<Item = (u64, &'v View)>) -> io::Result<Vec<(u64, u64)>> {
        let (mut log, mut places, mut added) = (std::mem::take(&mut self.buffer), Vec::new(), Vec::new());
        for (number, view) in views {
            let (begin, known) = (log.len(), self.packer.count());
            log.extend([0, 0, 0, 0, if view.is_cut() { CUT } else { WHOLE }]);
            let packed = self.packer.pack(view.document(), &mut log);
            self.write_names(known, &mut places);
            let length = (log.len() - begin) as u64;
            if !packed || number == NAMES || length >> LENGTH_BITS != 0 {
                log.truncate(begin);
                continue;
            }
            if let Some((sum, entry)) = log.get_mut(begin..).and_then(|entry| entry.split_first_chunk_mut::<4>()) {
                *sum = checksum(self.chance, number, entry).to_le_bytes();
            }
            let place = (self.log_bytes + begin as u64) << LENGTH_BITS | length;
            write_place(&mut places, self.chance, number, place, &[]);
            added.push((number, place));
        }
        self.log.write_all_at(&log, self.log_bytes)?;
        self.places.write_all_at(&places, self.places_bytes)?;
        self.log_bytes += log.len() as u64;
        self.places_bytes += places.len() as u64;
        if log.capacity() <= BUFFER_BYTES {
            log.clear();
            self.buffer = log;
        }
        Ok(added)
    }

    /// Names come before the place of whatever has them.
    fn write_names(&self, known: usize, places: &mut Vec<u8>) {
        for shape in (known..self.packer.count()).filter_map(|number| self.packer.shape(number)) {
            let mut names = Vec::new();
            for name in (0..shape.len()).map(|place| shape.name(place)) {
                names.extend((name.len() as u32).to_le_bytes());
                names.extend(name.as_bytes());
            }
            write_place(places, self.chance, NAMES, names.len() as u64, &names);
        }
    }
}

/// An entry of the file of places; its checksum covers what follows, too.
fn write_place(places: &mut Vec<u8>, chance: [u8; 8], number: u64, place: u64, following: &[u8]) {
    let sum = checksum(chance, number, &[&place.to_le_bytes(), following].concat());
    places.extend(number.to_le_bytes());
    places.extend(place.to_le_bytes());
    places.extend(sum.to_le_bytes());
    places.extend(following);
}

fn checksum(chance: [u8; 8], number: u64, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&chance);
    sum.update(&number.to_le_bytes());
    sum.update(bytes);
    sum.finalize()
}

/// Begins the files.
fn begin(folder: &Path) -> io::Result<(Reading, Writing)> {
    let chance = chance::bytes().map_err(|error| io::Error::other(error.to_string()))?;
    let new = |path: PathBuf| OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
    // The places go first: without them nothing in the log is looked at.
    let places = new(places_path(folder))?;
    let log = Arc::new(new(log_path(folder))?);
    places.write_all_at(&[&MAGIC[..], &chance].concat(), 0)?;
    let reading = Reading { log: Some(Arc::clone(&log)), chance, ..Reading::default() };
    let writing = Writing {
        log,
        log_bytes: 0,
        places,
        places_bytes: HEADER as u64,
        chance,
        packer: Packer::default(),
        buffer: Vec::new(),
    };
    Ok((reading, writing))
}

/// Takes the files up as they are; none where there are none, or none that are worth it.
fn take_up(folder: &Path, sequence: u64, alive: u64) -> io::Result<Option<(Reading, Writing)>> {
    let open = |path: PathBuf| match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let (Some(places), Some(log)) = (open(places_path(folder))?, open(log_path(folder))?) else { return Ok(None) };
    let (log, bytes) = (Arc::new(log), fs::read(places_path(folder))?);
    let Some(chance) = bytes.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<8>()).copied() else {
        return Ok(None);
    };
    let mut reading = Reading { log: Some(Arc::clone(&log)), chance, ..Reading::default() };
    let (mut packer, mut known, mut views) = (Packer::default(), HEADER, 0);
    // A kill or a loss of power may have cut the end; what it says is in the store.
    while let Some((number, place, length)) = read_place(bytes.get(known..).unwrap_or_default(), chance, &mut packer) {
        if number > sequence {
            tracing::warn!("packed records are of changes that the log does not have; they are packed again");
            return Ok(None);
        }
        if number != NAMES {
            views += 1;
            reading.set(number, place);
        }
        known += length;
    }
    if views > FEW + (1 + DEAD_MAX) * alive {
        return Ok(None);
    }
    // What follows a damaged entry may be good and have names that others get now.
    places.set_len(known as u64)?;
    reading.names = packer.unpacker();
    let log_bytes = log.metadata()?.len();
    let writing = Writing { log, log_bytes, places, places_bytes: known as u64, chance, packer, buffer: Vec::new() };
    Ok(Some((reading, writing)))
}

/// Reads an entry of the file of places and says how long it is; the names in it are learned.
fn read_place(bytes: &[u8], chance: [u8; 8], packer: &mut Packer) -> Option<(u64, u64, usize)> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (place, rest) = rest.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (number, value) = (u64::from_le_bytes(*number), u64::from_le_bytes(*place));
    let following = if number == NAMES { rest.get(..usize::try_from(value).ok()?)? } else { &[] };
    let good = u32::from_le_bytes(*sum) == checksum(chance, number, &[&place[..], following].concat());
    let learned = good && (number != NAMES || packer.learn(read_names(following)?));
    learned.then_some((number, value, PLACE + following.len()))
}

fn read_names(mut bytes: &[u8]) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        names.push(std::str::from_utf8(name).ok()?);
        bytes = rest;
    }
    Some(names)
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn places_path(folder: &Path) -> PathBuf {
    folder.join("places")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::own_views;
    use json::{Document, Limits, Value, json};
    use store::{Batch, Kind, Put};
    use trust::Did;

    struct Case {
        folder: tempfile::TempDir,
        store: Store,
    }

    impl Case {
        fn new(records: u64) -> Self {
            Self::of(records, Self::text)
        }

        fn of(records: u64, text: impl Fn(u64) -> String) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(&folder.path().join("store")).unwrap();
            let put = |number: u64| Put {
                id: format!("urn:n:{number}"),
                kind: Kind::Offer,
                publisher: "did:web:p.example".into(),
                body: text(number).into_bytes(),
            };
            let puts = (1..=records).map(put).collect();
            store.commit(Batch { puts, ..Batch::default() }).unwrap();
            Self { folder, store }
        }

        /// Every third record has names of its own.
        fn text(number: u64) -> String {
            let own = format!("of {}", number / 3);
            json!({"number": number, "text": "x".repeat(number as usize % 40), own: [{"a": number}, {"b": null}]})
                .to_string()
        }

        fn open(&self) -> Loaded {
            Loaded::open(&self.packed(), self.store.sequence(), self.store.sequence())
        }

        fn packed(&self) -> PathBuf {
            self.folder.path().join("packed")
        }

        /// All are as they are stored, in any order; says how many were packed before.
        #[track_caller]
        fn check(&self, loaded: &Loaded) -> usize {
            let numbers: Vec<u64> = (1..=self.store.sequence()).rev().collect();
            let packed = loaded.find(&numbers).iter().flatten().count();
            for (number, view) in numbers.iter().zip(loaded.views(&self.store, &numbers).unwrap()) {
                let expected = Document::parse(Self::text(*number).as_bytes(), &Limits::DOCUMENT).unwrap();
                assert_eq!(view.record(), expected.root());
            }
            packed
        }
    }

    const PARTY: &str = "did:web:party.example";

    /// A publication; what it hides is a value, another value, or none.
    fn restricted(number: u64, hidden: &Value) -> Value {
        let mut record = json!({"id": format!("urn:n:{number}"), "number": number});
        if !hidden.is_null() {
            record["internal"] = hidden.clone();
        }
        json!({
            "publication_id": format!("urn:p:{number}"), "publisher_did": "did:web:p.example", "record": record,
            "restricted": [{"path": "/internal", "audience": [PARTY]}], "signature": {},
        })
    }

    fn hiding(hidden: &Value) -> Case {
        Case::of(20, |number| restricted(number, hidden).to_string())
    }

    /// Everybody sees the view and the party all of it; says how many views were packed before.
    #[track_caller]
    fn check_hiding(case: &Case, hidden: &Value) -> usize {
        let (loaded, numbers) = (case.open(), Vec::from_iter(1..=20));
        let packed = loaded.find(&numbers).iter().flatten().count();
        let party = Viewer::Named(Did::parse(PARTY).unwrap());
        let stranger = Viewer::Named(Did::parse("did:web:stranger.example").unwrap());
        let views = loaded.views(&case.store, &numbers).unwrap().into_iter();
        let own = own_views(&case.store, &numbers, &party).unwrap().into_iter();
        let others = own_views(&case.store, &numbers, &stranger).unwrap().into_iter();
        for (number, ((view, own), other)) in numbers.iter().zip(views.zip(own).zip(others)) {
            let shown = json!({"id": format!("urn:n:{number}"), "number": number});
            assert_eq!((view.record().to_value(), view.is_cut()), (shown.clone(), true));
            assert_eq!(other.record().to_value(), shown);
            assert_eq!(own.record().to_value(), restricted(*number, hidden)["record"]);
        }
        packed
    }

    #[test]
    fn a_party_sees_the_whole_and_others_the_view_after_a_restart_and_after_damage() {
        let hidden = json!({"floor": 17});
        let case = hiding(&hidden);
        assert_eq!((check_hiding(&case, &hidden), check_hiding(&case, &hidden)), (0, 20));
        for path in [places_path(&case.packed()), log_path(&case.packed())] {
            let good = fs::read(&path).unwrap();
            for at in (0..good.len()).step_by(good.len() / 40 + 1) {
                let mut bytes = good.clone();
                bytes[at] ^= 1;
                fs::write(&path, bytes).unwrap();
                assert!(check_hiding(&case, &hidden) < 20, "{at}");
                assert_eq!(check_hiding(&case, &hidden), 20, "{at}");
                Loaded::discard(&case.packed()).unwrap();
                check_hiding(&case, &hidden);
            }
        }
    }

    #[test]
    fn files_of_the_earlier_form_which_had_whole_records_are_begun_anew() {
        let hidden = json!({"floor": "a text that only the party may see"});
        let case = hiding(&hidden);
        check_hiding(&case, &hidden);
        let (mut places, log) = (fs::read(places_path(&case.packed())).unwrap(), log_path(&case.packed()));
        places[..MAGIC.len()].copy_from_slice(b"rialtop1");
        fs::write(places_path(&case.packed()), places).unwrap();
        fs::write(&log, restricted(1, &hidden).to_string().repeat(9)).unwrap();
        assert_eq!((check_hiding(&case, &hidden), check_hiding(&case, &hidden)), (0, 20));
        let is_there = |bytes: &[u8]| bytes.windows(14).any(|part| part == b"only the party");
        assert!(!is_there(&fs::read(&log).unwrap()));
    }

    #[test]
    fn what_is_packed_has_no_trace_of_what_is_hidden() {
        let hidden = [
            Value::Null,
            json!(1),
            json!({"floor": 17}),
            json!({"a": {"b": [{"c": 1}, {"d": "x".repeat(9_000)}]}, "floor": vec!["x"; 300]}),
        ];
        let packed = |hidden: &Value| {
            let case = hiding(hidden);
            check_hiding(&case, hidden);
            let (places, log) =
                (fs::read(places_path(&case.packed())).unwrap(), fs::read(log_path(&case.packed())).unwrap());
            // Checksums have a number by chance in them; everything else is to be the same.
            let mut rest = &places[HEADER..];
            let mut entries = Vec::new();
            while let Some((head, more)) = rest.split_first_chunk::<PLACE>() {
                let number = u64::from_le_bytes(head[..8].try_into().unwrap());
                let value = u64::from_le_bytes(head[8..16].try_into().unwrap());
                let (names, more) = more.split_at(if number == NAMES { value as usize } else { 0 });
                let entry = if number == NAMES {
                    Vec::new()
                } else {
                    let (at, length) = ((value >> LENGTH_BITS) as usize, (value & ((1 << LENGTH_BITS) - 1)) as usize);
                    log[at + 4..at + length].to_vec()
                };
                entries.push((number, value, names.to_vec(), entry));
                rest = more;
            }
            (entries, log.len())
        };
        let first = packed(&hidden[0]);
        assert_eq!(first.0.iter().filter(|(number, ..)| *number != NAMES).count(), 20);
        hidden.iter().for_each(|hidden| assert_eq!(packed(hidden), first));
    }

    #[test]
    fn what_is_read_once_is_packed_and_stays_so_after_a_restart() {
        let case = Case::new(100);
        assert_eq!(case.check(&case.open()), 0);
        let loaded = case.open();
        assert_eq!((case.check(&loaded), case.check(&loaded)), (100, 100));
        Loaded::discard(&case.packed()).unwrap();
        assert_eq!(case.check(&case.open()), 0);
        assert!(case.open().views(&case.store, &[7, 101]).is_err());
    }

    #[test]
    fn what_was_read_stays_in_memory_and_what_is_seldom_asked_goes() {
        const SMALL: u64 = 8 << 10;
        let (case, numbers) = (Case::new(100), Vec::from_iter(1..=100));
        let small = Loaded::within(SMALL, &case.packed(), 100, 100);
        assert_eq!((case.check(&small), case.check(&small)), (0, 100));
        assert!((1..100).contains(&small.known.len()) && small.known.weight() <= SMALL, "{}", small.known.weight());
        let (loaded, nothing) = (case.open(), tempfile::tempdir().unwrap());
        case.check(&loaded);
        fs::write(log_path(&case.packed()), []).unwrap();
        assert_eq!(loaded.find(&numbers).iter().flatten().count(), 0);
        assert_eq!(loaded.views(&Store::open(nothing.path()).unwrap(), &numbers).unwrap().len(), 100);
    }

    #[test]
    fn whatever_is_damaged_or_cut_is_taken_from_the_store() {
        let case = Case::new(40);
        case.check(&case.open());
        let good = [places_path(&case.packed()), log_path(&case.packed())].map(|path| (fs::read(&path).unwrap(), path));
        let write = |which: usize, change: &dyn Fn(&mut Vec<u8>)| {
            for (number, (bytes, path)) in good.iter().enumerate() {
                let mut bytes = bytes.clone();
                if number == which {
                    change(&mut bytes);
                }
                fs::write(path, bytes).unwrap();
            }
        };
        for which in [0, 1] {
            let length = good[which].0.len();
            for at in (0..length).step_by(length / 150 + 1) {
                write(which, &|bytes| bytes[at] ^= 1 << (at % 8));
                // What was lost is packed again, with other numbers for its names; twice, to read those back.
                assert!(case.check(&case.open()) < 40 && case.check(&case.open()) == 40, "{which} {at}");
                write(which, &|bytes| bytes.truncate(at));
                assert!(case.check(&case.open()) < 40 && case.check(&case.open()) == 40, "{which} cut at {at}");
            }
        }
    }

    #[test]
    fn records_that_the_store_does_not_have_and_too_many_dead_ones_are_forgotten() {
        let case = Case::new(3);
        let loaded = case.open();
        let view = View::whole(Document::of(&json!({"later": true})).unwrap());
        loaded.add([(4, &view)].into_iter());
        assert_eq!(case.check(&loaded), 0);
        assert_eq!(case.check(&case.open()), 0, "of a store that went further");
        let loaded = case.open();
        (0..=FEW).for_each(|_| loaded.add([(1, &view)].into_iter()));
        assert!(take_up(&case.packed(), 3, 1).unwrap().is_some());
        assert!(take_up(&case.packed(), 3, 0).unwrap().is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_written_only_costs_time() {
        let case = Case::new(5);
        fs::write(case.packed(), "a file").unwrap();
        let loaded = case.open();
        assert_eq!((case.check(&loaded), case.check(&loaded)), (0, 0));
    }
}
