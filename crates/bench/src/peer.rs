//! PostgreSQL as a sensible administrator runs it: JSONB, one GIN index over whole documents, no index for any field.
//!
//! The server lives in a folder of its own, speaks on a socket in that folder, and ends with this value. PostgreSQL
//! refuses to run for the superuser, so there an unprivileged account takes over.

use crate::clock::{start, timed};
use crate::corpus::Corpus;
use crate::question::{Kind, Question};
use anyhow::{Context, Result, bail, ensure};
use postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, Statement};
use serde::Serialize;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const INSTALLED: &str = "/usr/lib/postgresql";
/// The version that the goals speak of.
const WANTED_VERSION: u32 = 15;
const START_SECONDS_MAX: u64 = 60;
const USER: &str = "bench";

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: PathBuf,
}

/// What filling it took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Import {
    /// Seconds for `COPY`.
    pub copy_seconds: f64,
    /// Seconds for building the GIN index.
    pub index_seconds: f64,
    /// Bytes of the table with its primary key.
    pub table_bytes: i64,
    /// Bytes of the GIN index.
    pub index_bytes: i64,
}

/// Where the programs are; version 15 if there is one, else the newest; `None` when it is not installed.
pub fn installed() -> Option<PathBuf> {
    let entries = std::fs::read_dir(INSTALLED).ok()?;
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let found = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let newest = found.filter(|path| path.join("bin/postgres").exists()).max_by_key(|path| {
        let version = version(path);
        (version == Some(WANTED_VERSION), version)
    });
    newest.map(|path| path.join("bin"))
}

impl Server {
    /// Creates a database in a new folder and starts it.
    pub fn start(programs: &Path, folder: &Path, manifests: u64) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let account = Account::for_server()?;
        if let Some(account) = account {
            chown(folder, Some(account.user), Some(account.group))?;
        }
        let data = folder.join("data");
        let mut create = Command::new(programs.join("initdb"));
        create.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--username", USER, "--pgdata"]).arg(&data);
        let created = act_as(&mut create, account).current_dir(folder).output()?;
        ensure!(created.status.success(), "initdb failed: {}", String::from_utf8_lossy(&created.stderr));
        let mut serve = Command::new(programs.join("postgres"));
        serve.arg("-D").arg(&data).arg("-k").arg(folder);
        for setting in settings(manifests) {
            serve.args(["-c", &setting]);
        }
        let log = std::fs::File::create(folder.join("log"))?;
        act_as(&mut serve, account).current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let server = Self { child: serve.spawn()?, folder: folder.to_owned() };
        server.wait()?;
        Ok(server)
    }

    fn wait(&self) -> Result<()> {
        let begun = start();
        while let Err(error) = self.connect() {
            if begun.elapsed() > Duration::from_secs(START_SECONDS_MAX) {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(error.context(format!("PostgreSQL does not start: {log}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A connection of its own.
    pub fn connect(&self) -> Result<Client> {
        let mut config = Config::new();
        config.host_path(&self.folder).user(USER).dbname("postgres");
        Ok(config.connect(NoTls)?)
    }

    /// What the server calls itself.
    pub fn version(&self) -> Result<String> {
        let version: String = self.connect()?.query_one("SHOW server_version", &[])?.get(0);
        Ok(version.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Brings in the first manifests of a corpus, indexes them, and settles the tables.
    pub fn import(&self, corpus: &Corpus, manifests: u64) -> Result<Import> {
        let mut client = self.connect()?;
        client.batch_execute("CREATE TABLE manifest (id text PRIMARY KEY, body jsonb NOT NULL)")?;
        let (copied, copying) = timed(|| copy(&mut client, corpus, manifests));
        copied?;
        let index = "CREATE INDEX manifest_body ON manifest USING gin (body jsonb_path_ops)";
        let (indexed, indexing) = timed(|| client.batch_execute(index));
        indexed?;
        client.batch_execute("VACUUM ANALYZE manifest")?;
        client.batch_execute("CHECKPOINT")?;
        let sizes = "SELECT pg_total_relation_size('manifest'), pg_relation_size('manifest_body')";
        let sizes = client.query_one(sizes, &[])?;
        let (all, index_bytes): (i64, i64) = (sizes.get(0), sizes.get(1));
        let (copy_seconds, index_seconds) = (copying.as_secs_f64(), indexing.as_secs_f64());
        Ok(Import { copy_seconds, index_seconds, table_bytes: all - index_bytes, index_bytes })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT is the fast shutdown: sessions are ended, files are left in order.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.child.wait();
    }
}

fn copy(client: &mut Client, corpus: &Corpus, manifests: u64) -> Result<()> {
    let mut writer = client.copy_in("COPY manifest FROM STDIN")?;
    let mut line = String::with_capacity(4096);
    for number in 0..manifests {
        line.clear();
        line.push_str(&corpus.facts(number).did());
        line.push('\t');
        // The text format of COPY gives a meaning to backslashes, tabs and line ends; the corpus has none.
        corpus.write(number, &mut line);
        line.push('\n');
        writer.write_all(line.as_bytes())?;
    }
    let rows = writer.finish()?;
    ensure!(rows == manifests, "PostgreSQL took {rows} of {manifests} manifests");
    Ok(())
}

/// What suits a machine with memory for the whole table; everything else as it comes.
fn settings(manifests: u64) -> Vec<String> {
    let buffers = match manifests {
        0..=100_000 => "512MB",
        100_001..=1_000_000 => "2GB",
        _ => "4GB",
    };
    let cache = if manifests > 1_000_000 { "12GB" } else { "8GB" };
    vec![
        "listen_addresses=".to_owned(),
        format!("shared_buffers={buffers}"),
        format!("effective_cache_size={cache}"),
        "work_mem=64MB".to_owned(),
        "maintenance_work_mem=1GB".to_owned(),
        "max_wal_size=8GB".to_owned(),
        "random_page_cost=1.1".to_owned(),
        "fsync=on".to_owned(),
        // A plan for constants it does not know walks the whole index where reading the table in parallel is faster.
        "plan_cache_mode=force_custom_plan".to_owned(),
        // Compiling a plan costs more than it saves on questions of this size.
        "jit=off".to_owned(),
    ]
}

/// An account without privileges.
#[derive(Clone, Copy, Debug)]
struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// Who the server runs as; `None` when we may run it ourselves.
    fn for_server() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let accounts = std::fs::read_to_string("/etc/passwd")?;
        let find = |name: &str| accounts.lines().find_map(|line| Self::read(line, name));
        match find("postgres").or_else(|| find("nobody")) {
            Some(account) => Ok(Some(account)),
            None => bail!("PostgreSQL does not run as root; create an account `postgres`"),
        }
    }

    fn read(line: &str, wanted: &str) -> Option<Self> {
        let mut fields = line.split(':');
        (fields.next() == Some(wanted)).then_some(())?;
        let user = fields.nth(1)?.parse().ok()?;
        Some(Self { user, group: fields.next()?.parse().ok()? })
    }
}

fn act_as(command: &mut Command, account: Option<Account>) -> &mut Command {
    match account {
        Some(account) => command.uid(account.user).gid(account.group),
        None => command,
    }
}

/// Asks questions of one kind over one connection, with a prepared statement.
pub struct Interview {
    client: Client,
    kind: Kind,
    best: Statement,
}

impl Interview {
    /// Prepares the statement of a kind.
    pub fn new(server: &Server, kind: Kind) -> Result<Self> {
        let mut client = server.connect()?;
        let best = client.prepare(&kind.best_sql()).with_context(|| format!("the SQL of {}", kind.name()))?;
        Ok(Self { client, kind, best })
    }

    /// The ids of the ten best, and how long they took to come.
    pub fn ask(&mut self, question: &Question) -> Result<(Vec<String>, Duration)> {
        let constants = literals(question);
        let constants: Vec<&(dyn ToSql + Sync)> = constants.iter().map(|constant| constant as _).collect();
        let (rows, took) = timed(|| self.client.query(&self.best, &constants));
        Ok((rows?.iter().map(|row| row.get(0)).collect(), took))
    }

    /// How many records match.
    pub fn count(&mut self, question: &Question) -> Result<i64> {
        let constants = literals(question);
        let constants: Vec<&(dyn ToSql + Sync)> = constants.iter().map(|constant| constant as _).collect();
        Ok(self.client.query_one(&self.kind.count_sql(), &constants)?.get(0))
    }
}

fn literals(question: &Question) -> Vec<Literal<'_>> {
    std::iter::once(&question.ceiling).chain(&question.constants).map(|text| Literal(text)).collect()
}

/// A constant of whatever type the statement wants, in its written form.
#[derive(Debug)]
struct Literal<'a>(&'a str);

impl ToSql for Literal<'_> {
    fn to_sql(&self, _: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}
