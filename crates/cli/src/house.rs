//! The data folder of a node, and a node opened on it.

use crate::environment;
use crate::failure::Failure;
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::{Config, Error, Node};
use std::path::PathBuf;

/// Where a node keeps everything.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DataFolder {
    /// Where the node keeps everything [default: node in $RIALTO_HOME or the user's data directory]
    #[arg(long, value_name = "DIR", env = "RIALTO_DATA")]
    data: Option<PathBuf>,
}

impl DataFolder {
    /// The folder: as given, else the usual place.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        let usual = || environment::data_directory().map(|directory| directory.join("node"));
        self.data.clone().or_else(usual).ok_or_else(|| {
            Failure::files("there is no place for the node's data: no home directory is known")
                .help("name a folder with --data, or set RIALTO_HOME")
        })
    }
}

/// Opens a node; shows how far it is when the index has to be read anew.
pub(crate) fn open(config: &Config) -> Result<Node, Failure> {
    open_at(config).map(|(node, _)| node)
}

/// Opens a node, and tells by how many changes its index was behind the log.
pub(crate) fn open_at(config: &Config) -> Result<(Node, u64), Failure> {
    let bar = bar("reading the log", 0);
    let mut behind = None;
    let opened = Node::open(config, &mut |read, of| {
        behind.get_or_insert(of.saturating_sub(read));
        bar.set_length(of);
        bar.set_position(read);
    });
    bar.finish_and_clear();
    Ok((opened.map_err(cannot_open)?, behind.unwrap_or_default()))
}

fn cannot_open(error: Error) -> Failure {
    let help = "`rialto doctor` looks at the data folder and says what to do";
    let told = format!("the node cannot start: {error}");
    match error {
        Error::Exposed(_) => Failure::exposed(told).help(help),
        Error::Fault(_) | Error::Refusal(_) => Failure::files(told).help(help),
    }
}

/// A bar on standard error that nobody sees where there is no terminal.
pub(crate) fn bar(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(5));
    let width = output::width().saturating_sub(60).clamp(10, 40);
    let template = format!("{{msg}} {{bar:{width}}} {{percent:>3}} %  {{per_sec}}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar.set_message(what);
    bar
}

/// A size in the unit that people would choose.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
