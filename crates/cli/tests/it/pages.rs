//! Whole pages as people see them, with what changes from run to run replaced.

use crate::run::{Home, intent, market};

/// Replaces keys, ids, digests and times by their names.
pub(crate) fn steady(page: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || ":-_.#+".contains(character);
    let mut steady = String::new();
    let page = &without_times(page);
    let mut rest = page.as_str();
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|character| !is_part(character)).unwrap_or(from.len()));
        steady.push_str(before);
        steady.push_str(match word {
            word if word.starts_with("did:key:z6Mk") => "did:key:[key]",
            word if word.starts_with("sha256:") => "sha256:[digest]",
            word if word.starts_with("127.0.0.1:") => "127.0.0.1:[port]",
            word if word.len() == 19 && word.find('T') == Some(10) => "[moment]",
            word if word.len() == 36 && word.matches('-').count() == 4 => "[uuid]",
            word => word,
        });
        rest = after;
    }
    steady + rest
}

/// Replaces the number before `ms`.
fn without_times(page: &str) -> String {
    let mut parts = page.split(" ms").peekable();
    let mut steady = String::new();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return steady + part;
        }
        steady.push_str(part.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.'));
        steady.push_str("[time] ms");
    }
    steady
}

#[test]
fn the_demo() {
    let home = Home::new("demo");
    let ran = home.run_with(&[("TMPDIR", &home.path(""))], "", &["demo", "--once"]).exits(0);
    assert!(ran.err.is_empty(), "{}", ran.err);
    insta::assert_snapshot!(steady(&ran.out));
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 0, "the demo leaves nothing behind");
}

#[cfg(unix)]
#[test]
fn the_demo_stays_until_it_is_told_to_end() {
    use std::io::{BufRead, BufReader};
    let home = Home::new("demo-stays");
    let room = home.path("room");
    std::fs::create_dir(&room).unwrap();
    let mut child = home.command(&[("TMPDIR", &room)], &["demo"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.next().unwrap().rsplit(' ').next().unwrap().to_owned();
    assert!(lines.any(|line| line.contains("Ctrl-C ends it")));
    // Whoever asks remembers with whom a version was agreed, at home.
    let asker = Home::new("demo-asker");
    asker.run(&["ask", &intent("battery-reading-list"), "--to", &url, "--no-receipt"]).exits(0).says("4 answers");
    let told = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_dir(room).unwrap().count(), 0, "the demo leaves nothing behind");
}

#[test]
fn an_answer_in_eighty_columns() {
    insta::assert_snapshot!(answer("80"));
}

#[test]
fn an_answer_in_a_hundred_and_twenty_columns() {
    insta::assert_snapshot!(answer("120"));
}

fn answer(columns: &str) -> String {
    let home = Home::new(&format!("answer-{columns}"));
    let (intent, market) = (intent("affordable-certified-translation"), market("manifests"));
    let asked = ["resolve", "--intent", &intent, "--candidates", &market, "--rejected", "6"];
    let page = home.run_with(&[("COLUMNS", columns)], "", &asked).exits(0).out;
    let width: usize = columns.parse().unwrap();
    assert!(page.lines().all(|line| line.chars().count() <= width), "{page}");
    page
}

#[test]
fn an_explanation() {
    let home = Home::new("explanation");
    let (intent, market) = (intent("tools-that-accept-geojson"), market("manifests"));
    let asked = ["explain", "--intent", &intent, "--candidates", &market, "did:web:skyledger-surveys.example"];
    insta::assert_snapshot!(home.run(&asked).exits(0).out);
}

#[test]
fn the_findings_of_lint() {
    let home = Home::new("findings");
    let files = ["exists-with-false", "unknown-operator"].map(|name| intent(&format!("broken/{name}")));
    insta::assert_snapshot!(home.run(&["lint", &files[0], &files[1]]).exits(1).out);
}

#[test]
fn the_help_page_documents_the_exit_codes() {
    let home = Home::new("help");
    insta::assert_snapshot!(home.run(&["--help"]).exits(0).out);
}

#[test]
fn every_command_has_an_example() {
    let home = Home::new("help-pages");
    let commands = [
        "demo",
        "ask",
        "watch",
        "explain",
        "mandate",
        "pay",
        "confirm",
        "trace",
        "spending",
        "publish",
        "withdraw",
        "doctor",
        "resolve",
        "describe",
        "lint",
        "sign",
        "verify",
        "completions",
    ];
    for command in commands {
        home.run(&[command, "--help"]).exits(0).says("Example:\n  rialto ").says(command);
    }
    let sub = [
        ("describe", "init"),
        ("describe", "publish"),
        ("keys", "new"),
        ("keys", "show"),
        ("keys", "rotate"),
        ("store", "check"),
        ("store", "rebuild"),
        ("store", "backup"),
        ("subscriptions", "list"),
        ("subscriptions", "show"),
        ("subscriptions", "pause"),
        ("subscriptions", "resume"),
        ("subscriptions", "withdraw"),
        ("subscriptions", "replay"),
    ];
    for (command, part) in sub.into_iter().chain([("store", "restore")]) {
        home.run(&[command, part, "--help"]).exits(0).says(&format!("Example:\n  rialto {command} {part}"));
    }
}

#[test]
fn completions_know_the_commands() {
    let home = Home::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).exits(0);
        script.says("rialto").says("resolve").says("candidates");
    }
    home.run(&["completions", "cobol"]).exits(2);
}

#[test]
fn colours_are_for_those_who_can_see_them() {
    let home = Home::new("colours");
    let (intent, market) = (intent("affordable-certified-translation"), market("manifests"));
    let asked = ["resolve", "--intent", &intent, "--candidates", &market];
    let plain = home.run(&asked).exits(0);
    let coloured = home.run_with(&[("CLICOLOR_FORCE", "1")], "", &asked).exits(0);
    assert!(!plain.out.contains('\u{1b}') && !plain.err.contains('\u{1b}'));
    assert!(coloured.out.contains('\u{1b}'));
    assert_eq!(anstream::adapter::strip_str(&coloured.out).to_string(), plain.out);
}

#[cfg(unix)]
#[test]
fn the_commands_of_the_examples_page_do_what_they_say() {
    let home = Home::new("examples-page");
    let page = include_str!("../../../../examples/README.md");
    let commands: Vec<&str> = page.lines().filter(|line| line.starts_with("rialto ")).collect();
    assert_eq!(commands.len(), 3);
    for command in commands {
        let script = command.replacen("rialto", env!("CARGO_BIN_EXE_rialto"), 1);
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", &script]).current_dir(root).env("RIALTO_HOME", home.path("")).output().unwrap();
        let expected = if command.contains("lint") { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
