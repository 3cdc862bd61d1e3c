//! Rules about single files: a header, citations that lead somewhere, nothing unfinished, nothing of one machine.

use super::Finding;
use crate::citation;
use crate::files::TextFile;

/// What marks unfinished code. Spelled in two halves, so that this file does not find itself.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("to", "do!"), "finish it or leave it out"),
    (concat!("unim", "plemented!"), "finish it or leave it out"),
    (concat!("FIX", "ME"), "mend it, or say what is known in a case"),
    (concat!("TO", "DO"), "do it, or open an issue"),
    (concat!("under con", "struction"), "finish the room or leave it out"),
    (concat!("#[ig", "nore"), "assert what holds today instead"),
];

/// Places that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

/// What pure crates do without: files, sockets, the environment, the clock, printing.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "async fn",
    "println!",
    "eprintln!",
];

/// Crates that take values and return values.
const PURE: &[&str] = &["json", "trust", "aql", "schema", "description", "agent", "feed", "payment", "reference"];

/// The one file of them that needs a stack of its own.
const MAY_THREAD: &str = "crates/agent/src/assertion.rs";

/// What opens a connection to somebody else, or makes one worthless.
const OUTBOUND: &[&str] = &["reqwest", "TcpStream::connect", "UdpSocket", "hyper::client", "danger_accept_invalid"];

/// Where connections are opened; and what is not part of the product.
const MAY_CONNECT: &[&str] = &["crates/node/src/outbound", "crates/bench/", "crates/conformance/"];

/// All rules for one file.
pub fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.ends(".rs") {
        header(file, &mut findings);
        unfinished(file, &mut findings);
        impure(file, &mut findings);
        outbound(file, &mut findings);
    }
    if [".rs", ".md", ".toml", ".json"].iter().any(|end| file.ends(end)) {
        citations(file, &mut findings);
    }
    machine_paths(file, &mut findings);
    findings
}

fn at(file: &TextFile, line: usize) -> String {
    format!("{}:{}", file.path, line + 1)
}

fn header(file: &TextFile, findings: &mut Vec<Finding>) {
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !first.starts_with("//! ") {
        let problem = "has no `//!` header: say what room this is, which section it carries out, what must stay true";
        findings.push(Finding::new(file.path.as_str(), problem));
    }
}

fn unfinished(file: &TextFile, findings: &mut Vec<Finding>) {
    for (number, line) in file.text.lines().enumerate() {
        for (marker, advice) in UNFINISHED {
            if line.contains(marker) {
                findings.push(Finding::new(at(file, number), format!("`{marker}`: {advice}")));
            }
        }
    }
}

fn impure(file: &TextFile, findings: &mut Vec<Finding>) {
    let pure = PURE.iter().any(|name| file.path.starts_with(&format!("crates/{name}/src/")));
    if !pure || file.ends("/tests.rs") {
        return;
    }
    let lines = file.text.lines().enumerate().take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"));
    for (number, line) in lines.filter(|(_, line)| !line.trim_start().starts_with("//")) {
        let allowed = |word: &str| word == "std::thread" && file.path == MAY_THREAD;
        for word in IMPURE.iter().filter(|word| line.contains(**word) && !allowed(word)) {
            let problem = format!("`{word}` in a pure crate: take the value as an argument, or move the code up");
            findings.push(Finding::new(at(file, number), problem));
        }
    }
}

fn outbound(file: &TextFile, findings: &mut Vec<Finding>) {
    let product = file.path.starts_with("crates/") && file.path.contains("/src/");
    if !product || MAY_CONNECT.iter().any(|place| file.path.starts_with(place)) {
        return;
    }
    for (number, line) in file.text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for word in OUTBOUND.iter().filter(|word| line.contains(**word)) {
            let problem =
                format!("`{word}` outside the door: ask through `node::Door`, `node::Line` or `node::Client`");
            findings.push(Finding::new(at(file, number), problem));
        }
    }
}

fn citations(file: &TextFile, findings: &mut Vec<Finding>) {
    for (number, line) in file.text.lines().enumerate() {
        for citation in citation::find(line).into_iter().filter(|citation| !citation.exists()) {
            findings.push(Finding::new(at(file, number), format!("cites {citation}, which does not exist")));
        }
    }
}

fn machine_paths(file: &TextFile, findings: &mut Vec<Finding>) {
    for (number, line) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().filter(|path| stands_alone(line, path)) {
            findings.push(Finding::new(at(file, number), format!("`{path}` exists on one machine only")));
        }
    }
}

/// Whether `path` begins a path here, rather than being the middle of a longer one or of a URL.
fn stands_alone(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|before| !before.is_alphanumeric() && !['.', '_', '-', '~', '*', '}'].contains(&before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_out_but_by_the_door() {
        let client = "//! x\nlet client = reqwest::Client::new();\n";
        for (path, count) in [
            ("crates/server/src/telemetry.rs", 1),
            ("crates/node/src/publish.rs", 1),
            ("crates/node/src/outbound/line.rs", 0),
            ("crates/server/tests/it/main.rs", 0),
            ("crates/bench/src/http.rs", 0),
        ] {
            assert_eq!(check(&TextFile::new(path, client)).len(), count, "{path}");
        }
    }

    #[track_caller]
    fn check_text(path: &str, text: &str, problems: &[&str]) {
        let findings = check(&TextFile::new(path, text));
        assert_eq!(findings.len(), problems.len(), "{findings:?}");
        for (finding, problem) in findings.iter().zip(problems) {
            assert!(finding.to_string().contains(problem), "{finding}");
        }
    }

    #[test]
    fn a_header_is_asked_of_code_only() {
        check_text("crates/aql/src/a.rs", "//! A room.\n", &[]);
        check_text("crates/aql/src/a.rs", "use x;\n", &["crates/aql/src/a.rs: has no `//!` header"]);
        check_text("fuzz/fuzz_targets/a.rs", "#![no_main]\n//! Late.\n", &["no `//!` header"]);
        check_text("docs/a.md", "# A page\n", &[]);
    }

    #[test]
    fn unfinished_places_are_found_with_their_line() {
        let text = format!(
            "//! A room.\nfn f() {{ {}() }}\n{}]\nfn g() {{}}\n",
            concat!("to", "do!"),
            concat!("#[ig", "nore")
        );
        check_text("crates/cli/src/a.rs", &text, &["a.rs:2: `to", "a.rs:3: `#[ig"]);
    }

    #[test]
    fn citations_must_lead_somewhere() {
        let wrong = format!("//! RFC 0020 {}: a room.\n", "§3.9");
        check_text("crates/aql/src/a.rs", &wrong, &["§3.9, which does not exist"]);
        check_text("spec/a.toml", "section = \"RFC 0020 A.3 R6\"\n", &[]);
        check_text("docs/a.md", &format!("see RFC 0024 {}\n", "§4.9"), &["docs/a.md:1"]);
    }

    #[test]
    fn machine_paths_are_found_and_urls_are_not() {
        let home = concat!("/ho", "me/");
        check_text("docs/a.md", &format!("look in {home}me\n"), &["one machine only"]);
        check_text("docs/a.md", &format!("https://example.org{home}me\n"), &[]);
        check_text("docs/a.md", &format!("../work{home}\n"), &[]);
    }

    #[test]
    fn pure_crates_stay_pure_outside_their_tests() {
        check_text("crates/aql/src/a.rs", "//! A room.\nuse std::fs;\n", &["a.rs:2: `std::fs` in a pure crate"]);
        check_text(
            "crates/aql/src/a.rs",
            "//! A room.\n// never std::fs\n#[cfg(test)]\nmod tests { use std::fs; }\n",
            &[],
        );
        check_text("crates/cli/src/a.rs", "//! A room.\nuse std::fs;\n", &[]);
    }
}
