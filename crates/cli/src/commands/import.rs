//! `rialto import`: many records at once into the data folder of a node.

use crate::failure::{Exit, Failure};
use crate::house::{self, DataFolder};
use crate::output::{self, DIM, GOOD, WARN, paint};
use json::json;
use node::{Config, Imported, Told};
use std::fs::File;
use std::io::{BufReader, Read, stdin};
use std::path::PathBuf;
use store::Kind;

/// Keep every record of a file, one JSON document on each line
///
/// Bare records are taken on the operator's word; signed publications are verified. Lines that cannot be kept are
/// reported with their number and the reason, and the rest goes on. The node must not be running on the same folder.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto import examples/market/manifests.ndjson --kind manifest
  zstdcat dump.ndjson.zst | rialto import - --kind offer --data /var/lib/rialto")]
pub(crate) struct Import {
    /// The file; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What bare records are; guessed from each record when absent
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,

    #[command(flatten)]
    data: DataFolder,

    /// Say what happened as JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Reads the name of a kind.
pub(super) fn kind(name: &str) -> Result<Kind, String> {
    let names: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
    Kind::parse(name).ok_or_else(|| format!("one of {}", names.join(", ")))
}

/// Refused lines that are shown one by one.
const SHOWN: usize = 20;

impl Import {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (reader, length) = self.open()?;
        let node = house::open(&Config { data: self.data.path()?, ..Config::default() })?;
        let bar = house::bar("importing", length);
        let mut refused = Vec::new();
        let imported = node.import(BufReader::with_capacity(1 << 20, reader), self.kind, &mut |told| match told {
            Told::Progress(imported) => {
                bar.set_position(imported.lines);
                bar.set_length(estimate(&imported, length));
            }
            // A file of nothing but refused lines must not fill the memory with reasons that nobody is shown.
            Told::Refused(line, reason) if self.json || refused.len() < SHOWN => refused.push((line, reason)),
            Told::Refused(..) => {}
        });
        bar.finish_and_clear();
        let imported = imported.map_err(|error| Failure::files(error.to_string()))?;
        node.close().map_err(|error| Failure::files(error.to_string()))?;
        self.tell(&imported, &refused)?;
        Ok(if imported.refused > 0 { Exit::No } else { Exit::Fine })
    }

    fn open(&self) -> Result<(Box<dyn Read + Send>, u64), Failure> {
        if crate::files::is_stream(&self.file) {
            return Ok((Box::new(stdin()), 0));
        }
        let failed = |error: std::io::Error| Failure::io("read", &self.file, &error);
        let file = File::open(&self.file).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok((Box::new(file), length))
    }

    fn tell(&self, imported: &Imported, refused: &[(u64, String)]) -> Result<(), Failure> {
        if self.json {
            let lines: Vec<_> = refused.iter().map(|(line, reason)| json!({"line": line, "reason": reason})).collect();
            let told = json!({"lines": imported.lines, "kept": imported.kept, "unchanged": imported.unchanged,
                "refused": imported.refused, "refusals": lines});
            return output::print(&format!("{told}\n"));
        }
        for (line, reason) in refused {
            output::say(&format!("{} line {line}: {}", paint(WARN, "refused"), output::text::shown(reason)));
        }
        let more = imported.refused.saturating_sub(SHOWN as u64);
        if more > 0 {
            output::say(&format!("{more} more lines were refused; --json names them all"));
        }
        output::print(&format!(
            "{} {} kept, {} unchanged, {} refused {}\n",
            paint(GOOD, "imported:"),
            imported.kept,
            imported.unchanged,
            imported.refused,
            paint(DIM, format!("of {} lines", imported.lines)),
        ))
    }
}

/// How many lines there will be, if the rest is like what was read.
fn estimate(imported: &Imported, length: u64) -> u64 {
    if imported.bytes == 0 || length == 0 {
        return imported.lines;
    }
    (imported.lines as u128 * u128::from(length) / u128::from(imported.bytes)).min(u128::from(u64::MAX)) as u64
}
