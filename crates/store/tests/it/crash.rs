//! A process that is killed while it writes loses nothing that it was told is written.

use crate::put;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
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

fn acknowledged_until_killed(folder: &Path, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::victim", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // A line that was cut by the kill was not an acknowledgement that anybody read.
        lines.filter_map(|line| line.split_once("acknowledged ").map(|(_, id)| id.to_owned())).collect::<Vec<_>>()
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut ids = reader.join().unwrap();
    ids.pop();
    ids
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        acknowledged.extend(acknowledged_until_killed(folder.path(), Duration::from_millis(150 + 70 * round)));
        let store = Store::open(folder.path()).unwrap();
        for id in &acknowledged {
            let record = store.record(id).unwrap().unwrap_or_else(|| panic!("{id} is lost"));
            assert_eq!(record.body, format!("body of {id}").into_bytes());
        }
        assert!(store.check().unwrap().flaws.is_empty());
    }
    assert!(acknowledged.len() > 20, "the victim hardly wrote: {}", acknowledged.len());
}
