//! The same for steps of engagements: what was settled is there, and of the rest a beginning.

use super::disk::{Chance, Disk, Image};
use super::{FOLDER, images, strace_is_missing, traced};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use store::{Engaged, Journal, Noted, Reached, Store};

/// Entries that a victim writes before it closes the store or ends.
const PART: u64 = 14;

fn step(position: u64) -> Noted {
    let length = [3, 40, 700, 5_000][position as usize % 4];
    Noted { engagement: "e".into(), position, at: 7, body: format!("{position}:").repeat(length).into_bytes() }
}

fn engaged() -> Engaged {
    Engaged {
        id: "e".into(),
        agent: "clerk".into(),
        document: "d".into(),
        caller: None,
        parent: None,
        begun_at: 1,
        reached: Reached::Running,
        reviewer: None,
        due: 0,
    }
}

/// Goes on with the journal where it ends, waits for the disk now and then, and ends without a farewell.
#[test]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    for part in 0..3 {
        let store = Store::open(Path::new(&folder)).unwrap();
        let done = store.step_count("e").unwrap();
        let mut out = std::io::stdout();
        for position in done..done + PART {
            let engagements = if position == 0 { vec![engaged()] } else { Vec::new() };
            let journal = Journal { engagements, steps: vec![step(position)], ..Journal::default() };
            let entry = store.note(journal).unwrap();
            if position % 3 == 2 {
                store.settle(entry).unwrap();
                writeln!(out, "acknowledged {}", position + 1).unwrap();
                out.flush().unwrap();
            }
        }
        if part == 2 {
            std::process::exit(0);
        }
    }
}

fn check(image: &Image, folder: &Path) -> Result<u64, String> {
    image.write(folder);
    let store = Store::open(folder).map_err(|error| format!("it does not open: {error}"))?;
    let steps = store.steps("e").map_err(|error| error.to_string())?;
    if (steps.len() as u64) < image.acknowledged {
        return Err(format!("{} steps were acknowledged and {} are there", image.acknowledged, steps.len()));
    }
    if let Some(other) = steps.iter().find(|found| **found != step(found.position)) {
        return Err(format!("step {} is not what was written", other.position));
    }
    if let Some(flaw) = store.check().map_err(|error| error.to_string())?.flaws.first() {
        return Err(format!("{flaw}"));
    }
    // It goes on from there.
    let engagements = if steps.is_empty() { vec![engaged()] } else { Vec::new() };
    let journal = Journal { engagements, steps: vec![step(steps.len() as u64)], ..Journal::default() };
    let entry = store.note(journal).map_err(|error| format!("it does not write: {error}"))?;
    store.settle(entry).map_err(|error| error.to_string())?;
    Ok(steps.len() as u64)
}

#[test]
fn no_settled_step_is_lost_when_the_power_goes() {
    if strace_is_missing() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (folder, log) = (home.path().join("store"), home.path().join("strace.log"));
    std::fs::create_dir(&folder).unwrap();
    let mut calls = traced("power::steps::victim", &folder, &log);
    calls.extend(traced("power::steps::victim", &folder, &log));
    let (mut disk, mut chance) = (Disk::default(), Chance::new(11));
    let each = images().div_ceil(calls.len()).max(2);
    let (mut tried, mut beyond, mut kinds) = (0, 0, BTreeMap::<&str, usize>::new());
    let target = home.path().join("image");
    for (moment, call) in calls.iter().enumerate() {
        disk.take(call);
        // Nothing and everything; at every second moment also some writes, and some sectors of some.
        let each = if moment % 2 == 0 { each.max(4) } else { each };
        for image in disk.images(each, &mut chance) {
            match check(&image, &target) {
                Ok(found) => beyond += usize::from(found > image.acknowledged),
                Err(reason) => panic!("after call {moment}, {}: {reason}", image.how),
            }
            tried += 1;
            *kinds.entry(image.how).or_default() += 1;
        }
    }
    println!("{} calls, {tried} images, {beyond} with more than was acknowledged: {kinds:?}", calls.len());
    assert!(disk.acknowledged() > 60, "the victims hardly wrote: {}", disk.acknowledged());
    assert!(tried >= 100 && beyond > 0, "{tried} {beyond}");
    assert!(kinds.get("some sectors").is_some_and(|count| *count > 100), "{kinds:?}");
}
