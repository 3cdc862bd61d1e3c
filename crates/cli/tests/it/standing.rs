//! The node under faults and attacks, as far as every day allows; the long runs are `cargo xtask crash` and `attack`.

use crate::run::Home;
use conformance::attack::{Corpus, attack};
use conformance::crash::{self, Faults, Program};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn program(home: &Home) -> Program {
    Program::new(Path::new(env!("CARGO_BIN_EXE_rialto")), Path::new(&home.path("")))
}

/// Whether a run is impossible on this machine; it is left out by name.
fn skipped(reason: Option<String>) -> bool {
    reason.inspect(|reason| eprintln!("skipped: {reason}")).is_some()
}

#[track_caller]
fn clean(faults: Faults) -> Faults {
    assert!(faults.is_clean(), "{faults:#?}");
    faults
}

#[test]
fn a_kill_at_any_storage_call_loses_nothing() {
    if skipped(crash::strace_is_missing()) {
        return;
    }
    let faults = clean(crash::calls(&program(&Home::new("calls")), 37, 5, &mut |_| {}).unwrap());
    assert!(faults.counts.values().sum::<usize>() > 20, "{faults:?}");
}

#[test]
fn a_kill_at_any_step_of_an_engagement_loses_nothing_and_does_nothing_twice() {
    let faults = clean(crash::engagements(&program(&Home::new("engagements")), 1, &mut |_| {}).unwrap());
    assert_eq!(faults.count("kills"), 15, "{faults:?}");
    // Four are killed in a call that may not be repeated, and two at once after a decision, which may be in it.
    assert!((4..=6).contains(&faults.count("calls whose outcome nobody knew")), "{faults:?}");
}

#[test]
fn a_disk_that_fails_once_ends_writing_and_loses_nothing() {
    if skipped(crash::strace_is_missing()) {
        return;
    }
    let faults = clean(crash::errors(&program(&Home::new("errors")), 31, 5, &mut |_| {}).unwrap());
    assert!(faults.count("times the node stopped writing and said so") >= 5, "{faults:?}");
}

#[test]
fn a_full_disk_refuses_writes_by_name_and_is_written_to_again() {
    if skipped(crash::mount_is_missing()) {
        return;
    }
    let faults = clean(crash::full(&program(&Home::new("full")), 3, 5, &mut |_| {}).unwrap());
    assert_eq!(faults.count("recoveries without a restart"), 3, "{faults:?}");
}

#[test]
fn a_read_only_disk_refuses_writes_by_name_and_is_written_to_again() {
    if skipped(crash::strace_is_missing()) {
        return;
    }
    let faults = clean(crash::read_only(&program(&Home::new("read-only")), 3, 5, &mut |_| {}).unwrap());
    assert_eq!(faults.count("recoveries without a restart"), 3, "{faults:?}");
}

#[test]
fn an_altered_byte_is_found_or_harmless() {
    let faults = clean(crash::flips(&program(&Home::new("flips")), 40, 5, &mut |_| {}).unwrap());
    assert!(faults.count("found at the start") > 0 && faults.count("harmless") > 0, "{faults:?}");
}

#[test]
fn every_attack_of_the_corpus_fails() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/attacks");
    let corpus = Corpus::read(&folder).unwrap();
    let attacked = attack(Path::new(env!("CARGO_BIN_EXE_rialto")), &corpus, "", &mut |_| {}).unwrap();
    let fell: Vec<_> = attacked.verdicts.iter().filter(|verdict| verdict.wrong.is_some()).collect();
    assert!(fell.is_empty() && attacked.leaks.is_empty(), "{fell:#?} {:?}", attacked.leaks);
    assert_eq!(attacked.verdicts.len(), corpus.cases().count());
}

/// A node with a hundred and twenty-eight descriptors, while strangers hold every connection that it gives.
#[test]
fn how_the_node_is_can_be_asked_while_strangers_hold_every_connection() {
    let home = Home::new("exhausted");
    let data = home.path("data");
    let serve = ["serve", "--json", "--log", "error", "--data", &data, "--listen", "127.0.0.1:0"];
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rialto")])
        .args(serve)
        .args(["--health-listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: json::Value = serde_json::from_str(&line).unwrap();
    let address = |name: &str| told[name].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let (doors, health) = (address("address"), address("health_address"));
    let healthy = |at: &str| -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said.starts_with("HTTP/1.1 200"))
    };
    let held: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(&doors).ok()).collect();
    for _ in 0..5 {
        assert!(healthy(&health).unwrap(), "the listener of its own answers");
    }
    drop(held);
    let again = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        healthy(&doors).unwrap_or_default()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(again, "once they have gone, everybody is answered again");
}

#[test]
fn connections_without_descriptors_are_not_promised() {
    let home = Home::new("promised");
    let data = home.path("data");
    let ended = Command::new("sh")
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rialto")])
        .args(["serve", "--data", &data, "--listen", "127.0.0.1:0", "--connections", "5000"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("128 files") && said.contains("32 connections"), "{said}");
}
