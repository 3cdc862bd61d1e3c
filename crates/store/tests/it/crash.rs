//! A process that is killed while it writes loses nothing that it was told is written.

use crate::put;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use store::Store;

const FOLDER: &str = "RIALTO_CRASH_FOLDER";

/// The victim: writes from four threads and says what was acknowledged. It runs only when a parent names a folder.
#[test]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = Store::open(Path::new(&folder)).unwrap();
    let round = store.sequence();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for number in 0.. {
                    let id = format!("{round}-{writer}-{number}");
                    store.commit(put(&id, "p", &format!("body of {id}"))).unwrap();
                    println!("acknowledged {id}");
                }
            });
        }
    });
}

/// Lets a victim write until it has told of some acknowledgements, kills it, and returns all that it told of.
fn acknowledged_until_killed(folder: &Path, enough: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::victim", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ids = Vec::new();
    for id in lines.filter_map(|line| line.split_once("acknowledged ").map(|(_, id)| id.to_owned())) {
        ids.push(id);
        if ids.len() == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    // The kill may have cut the last line, and half a line tells of nothing.
    ids.pop();
    ids
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        acknowledged.extend(acknowledged_until_killed(folder.path(), 10 + 7 * round));
        let store = Store::open(folder.path()).unwrap();
        for id in &acknowledged {
            let record = store.record(id).unwrap().unwrap_or_else(|| panic!("{id} is lost"));
            assert_eq!(record.body, format!("body of {id}").into_bytes());
        }
        assert!(store.check().unwrap().flaws.is_empty());
    }
    assert!(acknowledged.len() > 100, "the victims hardly wrote: {}", acknowledged.len());
}
