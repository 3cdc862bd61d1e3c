//! `rialto store`: the data folder of a node that is not running: checked, made anew, copied, put back.

use crate::clock::Stopwatch;
use crate::failure::{Exit, Failure};
use crate::house::{self, DataFolder};
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, count, paint};
use json::json;
use node::{Config, Error, Node, folder};
use std::path::PathBuf;

/// Check, rebuild, back up and restore the data folder of a node that is not running
#[derive(clap::Subcommand)]
pub(crate) enum Store {
    Check(Check),
    Rebuild(Rebuild),
    Backup(Backup),
    Restore(Restore),
}

/// Read everything in the store, compare it with the log, and see whether the index is level with it
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  rialto store check --data /var/lib/rialto\n\nExits with 1 when something is wrong."
)]
pub(crate) struct Check {
    #[command(flatten)]
    data: DataFolder,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Throw the index away and make it again from the log
///
/// Nothing is lost: the store is the truth, and the index only says where to look.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto store rebuild --data /var/lib/rialto")]
pub(crate) struct Rebuild {
    #[command(flatten)]
    data: DataFolder,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Copy the store and the node's key into a new folder, and read the copy again
///
/// The copy holds the key with which the node signs; keep it as safe as the node itself.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto store backup /backup/rialto-monday --data /var/lib/rialto")]
pub(crate) struct Backup {
    /// Where the copy goes; empty or new
    #[arg(value_name = "DIR")]
    to: PathBuf,

    #[command(flatten)]
    data: DataFolder,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Put a copy back into an empty or new data folder, and check all of it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto store restore /backup/rialto-monday --data /var/lib/rialto")]
pub(crate) struct Restore {
    /// The copy
    #[arg(value_name = "DIR")]
    from: PathBuf,

    #[command(flatten)]
    data: DataFolder,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Store {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(),
            Self::Rebuild(rebuild) => rebuild.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
        }
    }
}

impl Check {
    fn run(self) -> Result<Exit, Failure> {
        let (data, watch) = (self.data.path()?, Stopwatch::start());
        let soundness = folder::check(&data).map_err(unusable)?;
        let flaws: Vec<String> = soundness.flaws.iter().map(ToString::to_string).collect();
        // A damaged store is not opened any further; nothing may be derived from it.
        let index = if flaws.is_empty() { Some(house::open_at(&Config { data, ..Config::default() })?) } else { None };
        let behind = index.as_ref().map(|(_, behind)| *behind);
        if let Some((node, _)) = index {
            node.close().map_err(unusable)?;
        }
        if self.json {
            let told = json!({"changes": soundness.changes, "records": soundness.records, "active": soundness.active,
                "flaws": flaws, "index_behind": behind, "milliseconds": watch.millis()});
            output::print(&json_line(&json::canonical_value(&told)))?;
        } else {
            let mut text = String::new();
            for flaw in &flaws {
                text.push_str(&format!("{} {}\n", paint(BAD, "flaw:"), shown(flaw)));
            }
            let (word, style) = if flaws.is_empty() { ("sound:", GOOD) } else { ("damaged:", BAD) };
            text.push_str(&format!(
                "{} {} in the log, {}, {} of them active {}\n",
                paint(style, word),
                count_u64(soundness.changes, "change"),
                count_u64(soundness.records, "record"),
                soundness.active,
                paint(DIM, format!("({watch})")),
            ));
            text.push_str(&match behind {
                None => "restore a backup with `rialto store restore`; nothing was changed\n".to_owned(),
                Some(0) => format!("{} level with the log\n", paint(GOOD, "index:")),
                Some(behind) => {
                    format!("{} read {} from the log\n", paint(GOOD, "index:"), count_u64(behind, "change"))
                }
            });
            output::print(&text)?;
        }
        Ok(if flaws.is_empty() { Exit::Fine } else { Exit::No })
    }
}

impl Rebuild {
    fn run(self) -> Result<Exit, Failure> {
        let (data, watch) = (self.data.path()?, Stopwatch::start());
        if !data.is_dir() {
            return Err(
                Failure::files(format!("there is no data folder at {}", data.display())).help("name it with --data")
            );
        }
        let bar = house::bar("reading the log", 0);
        let opened = Node::rebuild(&Config { data, ..Config::default() }, &mut |read, of| {
            bar.set_length(of);
            bar.set_position(read);
        });
        bar.finish_and_clear();
        let node = opened.map_err(unusable)?;
        let changes = node.store().sequence();
        let counts = node.counts().map_err(unusable)?;
        node.close().map_err(unusable)?;
        if self.json {
            let candidates: json::Value =
                counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
            let told = json!({"changes": changes, "candidates": candidates, "milliseconds": watch.millis()});
            output::print(&json_line(&json::canonical_value(&told)))?;
        } else {
            let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            output::print(&format!(
                "{} the index from {} {}\n  {}\n",
                paint(GOOD, "rebuilt"),
                count_u64(changes, "change"),
                paint(DIM, format!("({watch})")),
                counts.join(", "),
            ))?;
        }
        Ok(Exit::Fine)
    }
}

impl Backup {
    fn run(self) -> Result<Exit, Failure> {
        let (data, watch) = (self.data.path()?, Stopwatch::start());
        let copied = folder::backup(&data, &self.to).map_err(unusable)?;
        tell("backed up", &copied, &self.to, &watch, self.json)?;
        Ok(Exit::Fine)
    }
}

impl Restore {
    fn run(self) -> Result<Exit, Failure> {
        let (data, watch) = (self.data.path()?, Stopwatch::start());
        let copied = folder::restore(&self.from, &data).map_err(unusable)?;
        tell("restored", &copied, &data, &watch, self.json)?;
        Ok(Exit::Fine)
    }
}

fn tell(
    word: &str,
    copied: &folder::Copied,
    into: &std::path::Path,
    watch: &Stopwatch,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let told = json!({"changes": copied.changes, "bytes": copied.bytes, "into": into.display().to_string(),
            "milliseconds": watch.millis()});
        return output::print(&json_line(&json::canonical_value(&told)));
    }
    output::print(&format!(
        "{} {} into {} {}\n  every change of the copy was read again; the index is made by the next start\n",
        paint(GOOD, word),
        count_u64(copied.changes, "change"),
        shown(&into.display().to_string()),
        paint(DIM, format!("({}, {watch})", house::bytes(copied.bytes))),
    ))
}

fn count_u64(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

fn unusable(error: Error) -> Failure {
    Failure::files(error.to_string()).help("`rialto doctor` looks at the data folder and says what to do")
}
