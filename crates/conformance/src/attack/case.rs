//! The cases, as they stand in the files, and the rows they belong to.

use anyhow::{Context, Result, ensure};
use json::Value;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One file: every attack on an entry point, and the cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rows: Vec<Row>,
    cases: Vec<Case>,
}

/// An attack; cases show that it fails, or something else does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Such as `E1.1`.
    pub row: String,
    /// What somebody tries.
    pub attack: String,
    /// Which tests show the rest of it, where a case over HTTP cannot.
    pub elsewhere: Option<String>,
    /// Why nothing shows it yet.
    pub open: Option<String>,
}

/// Something that is done to a node, and what the node must do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The attack it belongs to.
    pub row: String,
    /// Its name, which reads like a sentence.
    pub id: String,
    /// What the node is started with; `{issuer}`, `{other}` and `{beside}`, the folder above its own, are filled in.
    #[serde(default)]
    pub node: Vec<String>,
    /// The case is played once for each of these, which take the place of `{each}`; a second member is the code.
    #[serde(default)]
    pub each: Vec<Value>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Mebibytes by which the node may have grown.
    #[serde(default = "memory")]
    pub memory_mib: u64,
}

/// The allocator keeps some of what was given back, on each thread.
fn memory() -> u64 {
    64
}

/// One thing that is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// A message.
    Send(Box<Send>),
    /// Bytes on sockets, with no care for HTTP.
    Raw(Box<Raw>),
    /// Frames of HTTP/2, too many of them.
    Frames(Frames),
    /// Frames of a WebSocket, well made or not.
    Socket(Box<Socket>),
    /// The host of DID documents answers like this from now on.
    Host(Value),
    /// The node is stopped, something is done to its folder, and it is started again.
    Start(Start),
    /// A good intent, changed in one small place after it was signed, so often; none may be answered.
    Mutate(usize),
    /// Records are published, so many, numbered by `{n}`.
    Publish(Publish),
    /// The node is killed and started again, and readers of a journal come back to it.
    Reconnect(Reconnect),
    /// The binary judges the document of an agent.
    Lint(Box<Lint>),
    /// Another node is to host agents, and must refuse to start.
    Hosting(Box<Hosting>),
    /// The node is stopped, its folder is changed, and it is started again and serves.
    Folder(Folder),
    /// Another node speaks TLS from now on, at the port `{secure}`, with a certificate that nobody has vouched for.
    Secure(Secure),
    /// Bytes to that node.
    Tls(Tls),
    /// Every operator with every value, asked of records with every value.
    Types(Types),
    /// The node's key is followed by another, while somebody asks.
    Rotate(Rotate),
    /// Many costly questions at once, while somebody asks cheap ones.
    Crowd(Box<Crowd>),
    /// The binary looks for agents at the host.
    Crawl(Crawl),
}

/// What is done to a folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Folder {
    /// It is copied.
    Keep,
    /// A file beside it is removed.
    Remove {
        /// Which.
        beside: String,
    },
    /// The copy is put in its place; the node answers and is not well.
    PutBack {
        /// What the node must say when it starts.
        says: String,
    },
    /// It has seen a later moment than the machine's clock tells.
    ClockAhead {
        /// How much later.
        seconds: i64,
        /// What the node must say when it starts.
        says: String,
    },
}

/// A certificate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secure {
    /// For whom.
    pub names: Vec<String>,
    /// Whether it was good until some years ago.
    #[serde(default)]
    pub expired: bool,
}

/// Bytes to a node that speaks TLS.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// What is sent.
    pub bytes: Value,
    /// What comes back begins with this, in hex.
    #[serde(default)]
    pub begins: String,
    /// Whether the node must close the connection.
    #[serde(default)]
    pub closed: bool,
    /// Milliseconds.
    pub within_ms: u64,
}

/// Values of every kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Types {
    /// Each is in a record, and each is asked for.
    pub values: Vec<Value>,
}

/// Keys that follow each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotate {
    /// How often.
    pub times: usize,
    /// How many answers there must be in all.
    pub answers_min: usize,
}

/// Costly questions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// A good intent with changes, which cost much.
    pub intent: Value,
    /// How many at once, each with a name of its own.
    pub count: usize,
    /// The code of those that are refused.
    pub code: String,
    /// The code of those that waited in line for too long, on a machine that has others to serve; they count for nothing.
    pub late: String,
    /// The limit that their refusal names.
    pub limit: String,
    /// How many must be refused at least.
    pub refused_min: usize,
    /// How many must be answered at least.
    pub answered_min: usize,
    /// Milliseconds in which each cheap question must be answered.
    pub cheap_ms: u64,
}

/// What the binary finds at the host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crawl {
    /// A finding that there must be.
    pub code: String,
    /// How many agents are kept.
    pub kept: usize,
}

/// The document of an agent, and what the binary must find.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lint {
    /// Its bytes.
    pub document: Value,
    /// A mistake that must be found; without one the document must be taken.
    pub code: Option<String>,
    /// Where the mistake must be found.
    pub at: Option<String>,
    /// Milliseconds.
    pub within_ms: u64,
}

/// A folder of agents that no node may host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosting {
    /// The files by their names.
    pub files: BTreeMap<String, Value>,
    /// What the node must say; its exit code is 3.
    pub says: Vec<String>,
}

/// Readers who come back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconnect {
    /// The journal.
    pub path: String,
    /// How many at once.
    pub clients: usize,
    /// How often they come back.
    pub rounds: usize,
    /// The last event that they had.
    pub last: u64,
    /// The last event that there is.
    pub until: u64,
    /// Milliseconds in which all of them must have all of it.
    pub within_ms: u64,
}

/// A message and what must come back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// `POST` unless it says otherwise.
    #[serde(default = "post")]
    pub method: String,
    /// `/oap/intent` unless it says otherwise.
    #[serde(default = "intent_path")]
    pub path: String,
    /// Header fields more, or others than usual.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// A good intent with changes.
    pub intent: Option<Value>,
    /// A good publication with changes.
    pub publication: Option<Value>,
    /// A good mapping with changes.
    pub mapping: Option<Value>,
    /// Bytes.
    pub bytes: Option<Value>,
    /// The body of an earlier step again, by position.
    pub again: Option<usize>,
    /// Who signs the request itself (RFC 9421); nobody unless it says otherwise.
    pub signed_by: Option<String>,
    /// How often.
    #[serde(default = "once")]
    pub times: usize,
    /// Not so often, once a refusal has this code.
    pub until: Option<String>,
    /// So many at once, each over a connection of its own.
    #[serde(default = "once")]
    pub at_once: usize,
    /// Of the last reply.
    #[serde(default)]
    pub expect: Expect,
}

fn post() -> String {
    "POST".into()
}

fn intent_path() -> String {
    "/oap/intent".into()
}

fn once() -> usize {
    1
}

/// What must come back.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The status.
    pub status: Option<u16>,
    /// One of these, where two answers are as good.
    #[serde(default)]
    pub status_in: Vec<u16>,
    /// The code of the refusal.
    pub code: Option<String>,
    /// One of these, where two refusals are as good.
    #[serde(default)]
    pub code_in: Vec<String>,
    /// The place.
    pub pointer: Option<String>,
    /// The name of the limit.
    pub limit: Option<String>,
    /// The identifiers of the candidates, in any order.
    pub ids: Option<Vec<String>>,
    /// How many candidates there are.
    pub candidates: Option<usize>,
    /// Values by their place in the reply.
    #[serde(default)]
    pub has: BTreeMap<String, Value>,
    /// Places that must be empty.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Texts that must stand nowhere, neither in the head nor in the body.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The same bytes as the reply to an earlier step.
    pub same_as: Option<usize>,
    /// Milliseconds.
    pub within_ms: Option<u64>,
    /// Requests that have reached the host of DID documents since it was told how to answer.
    pub fetches: Option<usize>,
}

/// Bytes on sockets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// What is sent at once.
    pub bytes: Value,
    /// What is sent afterwards, byte by byte, with a pause before each.
    pub drip: Option<Drip>,
    /// How many sockets.
    #[serde(default = "once")]
    pub sockets: usize,
    /// The status of the first response; none where the connection may be closed without a word.
    pub status: Option<u16>,
    /// The code of the refusal that the first response is, under the node's signature.
    pub code: Option<String>,
    /// How many responses there may be.
    pub responses_max: Option<usize>,
    /// Whether the node must close every socket.
    #[serde(default)]
    pub closed: bool,
    /// How long it is waited for.
    pub within_ms: u64,
    /// Milliseconds in which a good client must be answered meanwhile.
    pub honest_ms: Option<u64>,
}

/// Bytes that come slowly.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drip {
    /// The bytes, over and over.
    pub bytes: Value,
    /// Before each round.
    pub pause_ms: u64,
}

/// Frames on a WebSocket.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// `/oap/intent/socket` unless it says otherwise.
    #[serde(default = "socket_path")]
    pub path: String,
    /// Header fields of the handshake more, or others than usual.
    #[serde(default)]
    pub headers: BTreeMap<String, Value>,
    /// The status of the handshake.
    #[serde(default = "switching")]
    pub status: u16,
    /// A good intent with changes, as a text before the frames.
    pub intent: Option<Value>,
    /// What is sent.
    #[serde(default)]
    pub frames: Vec<Frame>,
    /// How often, each over a socket of its own.
    #[serde(default = "once")]
    pub times: usize,
    /// Not so often, once a refusal has this code.
    pub until: Option<String>,
    /// The code of the refusal of the handshake, or of a message.
    pub code: Option<String>,
    /// The code with which the node closes.
    pub close: Option<u16>,
    /// What the node tells, by the names of the events.
    pub events: Option<Vec<String>>,
    /// How many pongs there must be at least.
    #[serde(default)]
    pub pongs: usize,
    /// How long one socket may take.
    pub within_ms: u64,
}

/// A frame of RFC 6455 §5.2: a text, in one piece and masked, unless it says otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// What it is.
    #[serde(default = "text")]
    pub opcode: u8,
    /// What it carries.
    pub payload: Value,
    /// Whether more of the message is to follow.
    #[serde(default)]
    pub part: bool,
    /// Whether it is not masked.
    #[serde(default)]
    pub bare: bool,
    /// The length that it says it has.
    pub length: Option<u64>,
    /// How often.
    #[serde(default = "once")]
    pub times: usize,
}

fn socket_path() -> String {
    "/oap/intent/socket".into()
}

fn switching() -> u16 {
    101
}

fn text() -> u8 {
    1
}

/// Frames of HTTP/2.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// `reset`, `continuation`, `empty_data`, `settings` or `ping`.
    pub kind: String,
    /// How many.
    pub count: usize,
    /// How long it may take.
    pub within_ms: u64,
}

/// A start of the node on a folder that was changed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The file whose mode is changed, inside the data folder.
    pub file: String,
    /// The mode, in octal digits.
    pub mode: String,
    /// The exit code of a node that does not start.
    pub exit: i32,
    /// What it must say.
    pub says: String,
}

/// Records.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Their kind.
    pub kind: String,
    /// One of them.
    pub record: Value,
    /// How many.
    #[serde(default = "once")]
    pub count: usize,
    /// Who signs them; `issuer` unless it says otherwise.
    pub by: Option<String>,
}

/// All files, and the folder that they lie in.
#[derive(Clone, Debug)]
pub struct Corpus(Vec<Entry>, PathBuf);

impl Corpus {
    /// Reads the files of a folder; every row must have a case, a test elsewhere, or a reason.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let read = |path: &PathBuf| -> Result<Entry> {
            let text = std::fs::read(path)?;
            serde_json::from_slice(&text).with_context(|| path.display().to_string())
        };
        let folder = folder.canonicalize()?;
        let corpus = Self(paths.iter().map(read).collect::<Result<_>>()?, folder);
        corpus.check()?;
        Ok(corpus)
    }

    fn check(&self) -> Result<()> {
        let mut ids = BTreeSet::new();
        for case in self.cases() {
            ensure!(ids.insert(&case.id), "two cases are called `{}`", case.id);
            let known = self.rows().any(|row| row.row == case.row);
            ensure!(known, "`{}` belongs to `{}`, which is no row", case.id, case.row);
        }
        for row in self.rows() {
            let shown = self.of(row).next().is_some() || row.elsewhere.is_some() || row.open.is_some();
            ensure!(shown, "{} has no case, no test elsewhere and no reason", row.row);
        }
        Ok(())
    }

    /// Where the files lie, and the agents that some cases need.
    pub(crate) fn folder(&self) -> &Path {
        &self.1
    }

    /// Every case.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.0.iter().flat_map(|entry| &entry.cases)
    }

    /// Every row.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().flat_map(|entry| &entry.rows)
    }

    /// The cases of a row.
    pub fn of<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Case> {
        self.cases().filter(move |case| case.row == row.row)
    }
}

/// Rows in the order of their numbers: `E2.10` after `E2.9`.
pub(crate) fn order(row: &str) -> (u32, u32) {
    let (entry, number) = row.trim_start_matches('E').split_once('.').unwrap_or_default();
    (entry.parse().unwrap_or_default(), number.parse().unwrap_or_default())
}
