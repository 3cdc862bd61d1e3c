//! A machine that loses its power keeps what was acknowledged (`docs/reliability/power.md`).
//!
//! A victim writes under strace, which notes every call that changes the disk. From the notes images of the disk are
//! made: all that was synced, and of what was not some of it (`disk`). The store must open on each of them, with
//! everything that was acknowledged when the power went, and nothing that nobody wrote.

mod disk;
mod steps;
mod trace;

use crate::{put, withdraw};
use disk::{Chance, Disk, Image};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use store::{Batch, Store};
use trace::{Call, calls};

const FOLDER: &str = "RIALTO_POWER_FOLDER";
/// Images that every run tries; `RIALTO_IMAGES` asks for more.
const IMAGES: usize = 400;

fn images() -> usize {
    std::env::var_os("RIALTO_IMAGES").and_then(|images| images.to_str()?.parse().ok()).unwrap_or(IMAGES)
}

/// The batches of the script, in order; each is whole on disk or not at all.
fn script() -> Vec<Batch> {
    let body = |number: usize, length: usize| format!("{number}:").repeat(length);
    let mut batches: Vec<Batch> =
        (0..10).map(|number| put(&format!("r{number}"), "p", &body(number, 1 << number))).collect();
    batches.push(put("r1", "p", "another body"));
    batches.push(withdraw("r2", "p"));
    for round in 0..4 {
        let puts = (0..5).flat_map(|number| put(&format!("b{round}-{number}"), "p", &body(round, 3_000)).puts);
        batches.push(Batch { puts: puts.collect(), at: 3_000, ..Batch::default() });
        batches.push(put("r3", "p", &body(round, 50)));
        batches.push(withdraw(&format!("r{}", 4 + round), "p"));
    }
    batches
}

/// What each record holds after so many changes of the log: `None` between two batches, where the store never is.
fn expected() -> BTreeMap<u64, BTreeMap<String, Vec<u8>>> {
    let (mut records, mut changes) = (BTreeMap::new(), 0);
    let mut after = BTreeMap::from([(0, BTreeMap::new())]);
    for batch in script() {
        changes += (batch.puts.len() + batch.withdrawals.len()) as u64;
        records.extend(batch.puts.into_iter().map(|put| (put.id, put.body)));
        for withdrawal in batch.withdrawals {
            records.remove(&withdrawal.id);
        }
        after.insert(changes, records.clone());
    }
    after
}

/// The victim: goes on with the script where the log ends, closes the store in between, and ends without a farewell.
/// It runs only when a parent names a folder.
#[test]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let ends: Vec<u64> = expected().into_keys().collect();
    for part in 0..3 {
        let store = Store::open(Path::new(&folder)).unwrap();
        let done = ends.iter().position(|end| *end == store.sequence()).unwrap();
        let mut out = std::io::stdout();
        for batch in script().into_iter().skip(done).take(5) {
            store.commit(batch).unwrap();
            writeln!(out, "acknowledged {}", store.sequence()).unwrap();
            out.flush().unwrap();
        }
        if part == 2 {
            // The process ends with the write-ahead log as it is.
            std::process::exit(0);
        }
    }
}

/// Lets a victim run and returns what it did to its folder.
fn traced(victim: &str, folder: &Path, log: &Path) -> Vec<Call> {
    let status = Command::new("strace")
        .args(["-f", "-y", "-qq", "-xx", "-a", "1", "-s", "1000000", "-e", &format!("trace={}", trace::CALLS), "-o"])
        .arg(log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", victim, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    calls(&std::fs::read_to_string(log).unwrap(), folder)
}

fn strace_is_missing() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let missing = !tried.is_ok_and(|status| status.success());
    if missing {
        println!("skipped: strace is not installed, or may not trace here");
    }
    missing
}

/// Opens the store on an image and holds it to what was acknowledged.
fn check(image: &Image, folder: &Path, expected: &BTreeMap<u64, BTreeMap<String, Vec<u8>>>) -> Result<(), String> {
    image.write(folder);
    let store = Store::open(folder).map_err(|error| format!("it does not open: {error}"))?;
    let sequence = store.sequence();
    if sequence < image.acknowledged {
        return Err(format!("{} was acknowledged and {sequence} is there", image.acknowledged));
    }
    let Some(records) = expected.get(&sequence) else { return Err(format!("half a batch is there: {sequence}")) };
    let flaws = store.check().map_err(|error| error.to_string())?.flaws;
    if let Some(flaw) = flaws.first() {
        return Err(format!("{flaw}"));
    }
    let mut found = BTreeMap::new();
    for record in store.active_after(0, 10_000).map_err(|error| error.to_string())? {
        found.insert(record.id, record.body);
    }
    // It goes on from there.
    store.commit(put("after", "p", "x")).map_err(|error| format!("it does not write: {error}"))?;
    if found == *records { Ok(()) } else { Err("it holds other records than were written".into()) }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_goes() {
    if strace_is_missing() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (folder, log) = (home.path().join("store"), home.path().join("strace.log"));
    std::fs::create_dir(&folder).unwrap();
    let mut calls = traced("power::victim", &folder, &log);
    // The second process finds what the first left, reads the write-ahead log and folds it in.
    calls.extend(traced("power::victim", &folder, &log));
    let expected = expected();
    let (mut disk, mut chance) = (Disk::default(), Chance::new(7));
    // Every moment has its share of images; those at which little is unsynced have fewer.
    let each = images().div_ceil(calls.len()).max(2);
    let (mut tried, mut sizes) = (0, BTreeMap::<&str, usize>::new());
    let target = home.path().join("image");
    for (moment, call) in calls.iter().enumerate() {
        disk.take(call);
        for image in disk.images(each, &mut chance) {
            if let Err(reason) = check(&image, &target, &expected) {
                panic!("after call {moment} ({call:?}), {}: {reason}", image.how);
            }
            tried += 1;
            *sizes.entry(image.how).or_default() += 1;
        }
    }
    println!("{} calls, {tried} images: {sizes:?}", calls.len());
    assert!(disk.acknowledged() > 30, "the victims hardly wrote: {}", disk.acknowledged());
    assert!(tried >= IMAGES, "{tried}");
}

/// The images show a store that forgets to sync: the test can fail.
#[test]
fn a_write_that_was_not_synced_may_be_gone() {
    let call = |text: &str| Call::parse(text, Path::new("/f")).unwrap();
    let mut disk = Disk::default();
    for line in [
        "openat(AT_FDCWD<\\x2f>, \"\\x2f\\x66\\x2f\\x61\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3<\\x2f\\x66\\x2f\\x61>",
        "fsync(4<\\x2f\\x66>) = 0",
        "pwrite64(3<\\x2f\\x66\\x2f\\x61>, \"\\x78\\x79\", 2, 0) = 2",
    ] {
        disk.take(&call(line));
    }
    let images = disk.images(16, &mut Chance::new(1));
    let contents: Vec<Option<&[u8]>> = images.iter().map(|image| image.file("a")).collect();
    assert!(contents.contains(&Some(&b"xy"[..])) && contents.contains(&Some(&b""[..])), "{contents:?}");
    disk.take(&call("fdatasync(3<\\x2f\\x66\\x2f\\x61>) = 0"));
    for image in disk.images(16, &mut Chance::new(1)) {
        assert_eq!(image.file("a"), Some(&b"xy"[..]));
    }
}
