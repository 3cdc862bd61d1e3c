//! `rialto doctor`: is this machine ready to run a node, and if not, what to do.

use crate::failure::{Exit, Failure};
use crate::house::{self, DataFolder};
use crate::output::text::{json_line, shown, wrap};
use crate::output::{self, BAD, DIM, GOOD, WARN, paint};
use crate::peer::{Destination, Peer};
use crate::{clock, keys};
use anstyle::Style;
use json::{Value, json};
use node::{Config, Door, DoorPolicy};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;
use store::{OpenError, Store};

/// Look at everything a node needs, and say what to do
///
/// Looks at the data folder and who may read it, the disk, the keys, the store, the index, the port, the clock and the
/// certificates to trust. Nothing is repaired.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto doctor --data /var/lib/rialto\n\nExits with 1 when a node could not run.")]
pub(crate) struct Doctor {
    #[command(flatten)]
    data: DataFolder,

    /// The address where the node is to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Free space below which a node should not be started.
const FREE_MIN: u64 = 100_000_000;
/// Free space below which somebody should think of it.
const FREE_LOW: u64 = 2_000_000_000;

/// How something stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// It runs, and somebody should look.
    Look,
    /// A node could not run, or not be trusted.
    Bad,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Look => "look",
            Self::Bad => "bad",
        }
    }

    fn sign(self) -> (&'static str, Style) {
        match self {
            Self::Fine => ("✓", GOOD),
            Self::Look => ("!", WARN),
            Self::Bad => ("✗", BAD),
        }
    }
}

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    state: State,
    words: String,
    advice: String,
}

fn fine(what: &'static str, words: impl Into<String>) -> Finding {
    Finding { what, state: State::Fine, words: words.into(), advice: String::new() }
}

fn look(what: &'static str, words: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what, state: State::Look, words: words.into(), advice: advice.into() }
}

fn bad(what: &'static str, words: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what, state: State::Bad, words: words.into(), advice: advice.into() }
}

impl Doctor {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let data = self.data.path()?;
        let mut findings = vec![folder(&data), disk(&data), node_key(&data), own_key()];
        let (store, free) = store(&data);
        findings.push(store);
        // Where the store or a key cannot be used, nothing else could be said of the index.
        if free && findings.iter().all(|finding| finding.state != State::Bad) {
            findings.push(index(&data));
        }
        findings.extend([port(self.listen), time(), certificates()]);
        output::print(&if self.json { as_json(&findings) } else { described(&findings) })?;
        let ill = findings.iter().any(|finding| finding.state == State::Bad);
        Ok(if ill { Exit::No } else { Exit::Fine })
    }
}

fn folder(data: &Path) -> Finding {
    const WHAT: &str = "data folder";
    let name = data.display();
    if !data.exists() {
        let Some(parent) = existing(data) else {
            return bad(WHAT, format!("{name} cannot be made"), "name another folder with --data");
        };
        return match is_writable(parent) {
            Ok(()) => fine(WHAT, format!("{name} is not there yet; the first start makes it")),
            Err(error) => bad(
                WHAT,
                format!("{name} cannot be made: {error}"),
                format!("give yourself the right to write in {}, or name another folder with --data", parent.display()),
            ),
        };
    }
    if let Err(error) = is_writable(data) {
        let advice = "give the user who runs the node the right to write there";
        return bad(WHAT, format!("{name} cannot be written: {error}"), advice);
    }
    match others_may_write(data) {
        true => bad(WHAT, format!("others may write in {name}"), format!("`chmod go-w {name}`")),
        false => fine(WHAT, name.to_string()),
    }
}

/// The nearest folder above that is there.
fn existing(path: &Path) -> Option<&Path> {
    path.ancestors()
        .skip(1)
        .map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above })
        .find(|above| above.is_dir())
}

fn is_writable(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".rialto-doctor-{}", std::process::id()));
    fs::File::options().write(true).create_new(true).open(&probe)?;
    fs::remove_file(&probe)
}

#[cfg(unix)]
fn others_may_write(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 0o022 != 0)
}

#[cfg(not(unix))]
fn others_may_write(_: &Path) -> bool {
    false
}

fn disk(data: &Path) -> Finding {
    const WHAT: &str = "free disk";
    let place = if data.is_dir() { Some(data) } else { existing(data) };
    let free = place.and_then(|place| rustix::fs::statvfs(place).ok());
    let Some(free) = free.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)) else {
        return look(WHAT, "it cannot be told how much there is", "look with `df`");
    };
    let words = house::bytes(free);
    let advice = "make room; a node that cannot write refuses records and goes on answering";
    match free {
        0..FREE_MIN => bad(WHAT, words, advice),
        FREE_MIN..FREE_LOW => look(WHAT, words, advice),
        _ => fine(WHAT, words),
    }
}

fn node_key(data: &Path) -> Finding {
    const WHAT: &str = "node's key";
    let path = data.join("node.key");
    if !path.exists() {
        return fine(WHAT, "not made yet; the first start makes it");
    }
    match keys::load(&path) {
        Ok(key) => fine(WHAT, key.did_key().to_string()),
        Err(failure) => ill(WHAT, &failure),
    }
}

fn own_key() -> Finding {
    const WHAT: &str = "your key";
    match keys::path(None) {
        Ok(path) if path.exists() => match keys::load(&path) {
            Ok(key) => fine(WHAT, key.did_key().to_string()),
            Err(failure) => ill(WHAT, &failure),
        },
        Ok(_) => {
            look(WHAT, "there is none; questions are signed with a key of the moment", "`rialto keys new` makes one")
        }
        Err(failure) => ill(WHAT, &failure),
    }
}

fn ill(what: &'static str, failure: &Failure) -> Finding {
    bad(what, failure.message(), failure.advice().unwrap_or_default())
}

/// How the store stands, and whether it is there and nobody else has it open.
fn store(data: &Path) -> (Finding, bool) {
    const WHAT: &str = "store";
    let folder = data.join("store");
    if !folder.is_dir() {
        return (fine(WHAT, "not made yet; the first start makes it"), false);
    }
    // A node that serves is what is hoped for here; there is nothing to wait for.
    let finding = match Store::open_within(&folder, Duration::ZERO) {
        Ok(store) => {
            let words = format!("{} changes in the log; the last ones were read and are sound", store.sequence());
            return (fine(WHAT, words), true);
        }
        Err(OpenError::Busy(_)) => fine(WHAT, "a node has it open"),
        Err(error @ OpenError::Damaged(_)) => {
            bad(WHAT, error.to_string(), "`rialto store restore` puts a backup into a new folder")
        }
        Err(error) => bad(WHAT, error.to_string(), "check the path, the permissions and the disk"),
    };
    (finding, false)
}

fn index(data: &Path) -> Finding {
    const WHAT: &str = "index";
    match house::open_at(&Config { data: data.to_owned(), ..Config::default() }) {
        Ok((node, behind)) => {
            let candidates: u64 = node.counts().unwrap_or_default().iter().map(|(_, count)| count).sum();
            let closed = node.close();
            match (closed, behind) {
                (Err(error), _) => {
                    bad(WHAT, error.to_string(), "make room on the disk; `rialto store rebuild` makes it again")
                }
                (Ok(()), 0) => fine(WHAT, format!("{candidates} candidates, level with the log")),
                (Ok(()), behind) => {
                    fine(WHAT, format!("{candidates} candidates, {behind} changes read from the log just now"))
                }
            }
        }
        Err(failure) => bad(WHAT, failure.message(), "`rialto store rebuild` makes it again from the log"),
    }
}

fn port(listen: SocketAddr) -> Finding {
    const WHAT: &str = "port";
    let error = match TcpListener::bind(listen) {
        Ok(_) => return fine(WHAT, format!("{listen} is free")),
        Err(error) => error,
    };
    let destination = Destination { to: format!("http://{listen}"), did_document: None };
    match Peer::new(&destination).ok().and_then(|peer| peer.health()) {
        Some(did) => fine(WHAT, format!("a node answers at {listen}: {}", shown(&did))),
        None => bad(WHAT, format!("{listen} cannot be used: {error}"), "name another address with --listen"),
    }
}

fn time() -> Finding {
    const WHAT: &str = "clock";
    let now = clock::now().to_string();
    let year: u32 = now.get(..4).and_then(|year| year.parse().ok()).unwrap_or_default();
    match year {
        2025..2100 => fine(WHAT, now),
        _ => bad(WHAT, format!("it says {now}"), "set it; every question has a window in which it is answered"),
    }
}

fn certificates() -> Finding {
    const WHAT: &str = "certificates";
    match Door::new(DoorPolicy::default()) {
        Ok(_) => fine(WHAT, "the system names authorities to trust"),
        Err(error) => look(WHAT, error.to_string(), "without them no did:web can be checked; did:key works"),
    }
}

fn described(findings: &[Finding]) -> String {
    let room = output::width().saturating_sub(18);
    let mut text = String::new();
    for finding in findings {
        let (sign, style) = finding.state.sign();
        let mut lines = wrap(&shown(&finding.words), room);
        if !finding.advice.is_empty() {
            lines.extend(wrap(&format!("help: {}", shown(&finding.advice)), room));
        }
        for (number, line) in lines.iter().enumerate() {
            let name = if number == 0 { finding.what } else { "" };
            let sign = if number == 0 { paint(style, sign) } else { " ".to_owned() };
            text.push_str(&format!("{sign} {} {line}\n", paint(DIM, format!("{name:<12}"))));
        }
    }
    let ill = findings.iter().filter(|finding| finding.state == State::Bad).count();
    let closing = match ill {
        0 => paint(GOOD, "a node can run here"),
        ill => paint(BAD, format!("{} to mend first", output::count(ill, "thing"))),
    };
    format!("{text}\n{closing}\n")
}

fn as_json(findings: &[Finding]) -> String {
    let entry = |finding: &Finding| json!({"advice": finding.advice, "message": finding.words, "state": finding.state.name(), "what": finding.what});
    let ill = findings.iter().any(|finding| finding.state == State::Bad);
    let entries: Vec<Value> = findings.iter().map(entry).collect();
    json_line(&json::canonical_value(&json!({"findings": entries, "ready": !ill})))
}
