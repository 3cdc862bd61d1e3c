//! `rialto crawl`: agents of others, looked for and kept in the data folder of a node (ANP-08).

use crate::clock;
use crate::failure::{Exit, Failure};
use crate::handshake;
use crate::house::{self, DataFolder};
use crate::output::text::{json_line, shown};
use crate::output::{self, DIM, GOOD, WARN, paint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use json::{Document, Limits};
use node::crawl::{Bounds, Listener, Outcome, Plan, Report, Seed};
use node::{Config, DoorPolicy};
use std::num::NonZeroU32;
use std::time::Duration;

/// Look for agents, read what they say of themselves, and keep it
///
/// A domain is asked for its list of descriptions, page by page; an address is a description itself. What descriptions
/// lead to is fetched with them. Hosts are asked politely: their robots.txt counts, one request at a time, and nothing is
/// sent again that did not change. A crawl that was cut off goes on where it was. Agents that are gone are withdrawn. The
/// node must not be running on the same folder.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto crawl agents.example
  rialto crawl agents.example https://ferry.example/agents/tides/ad.json --data /var/lib/rialto
  rialto crawl agents.example --json > report.json

Exits with 1 when something could not be read or was refused; the report says what.")]
pub(crate) struct Crawl {
    /// Domains that list agents, and addresses of descriptions
    #[arg(required = true, value_name = "DOMAIN|URL")]
    seeds: Vec<String>,

    #[command(flatten)]
    data: DataFolder,

    /// Requests to one host in a minute
    #[arg(long, value_name = "NUMBER", default_value_t = NonZeroU32::MIN.saturating_add(59))]
    per_minute: NonZeroU32,

    /// Hosts that are asked at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    parallel: usize,

    /// Descriptions that are taken in at most
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().agents)]
    agents: usize,

    /// Pages of lists that are read at most
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().pages)]
    pages: usize,

    /// Documents that descriptions lead to, at most
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().documents)]
    documents: usize,

    /// Documents that one description leads to, at most
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().documents_per_agent)]
    documents_per_agent: usize,

    /// Hosts, at most
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().hosts)]
    hosts: usize,

    /// Megabytes that are read at most
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().bytes >> 20)]
    megabytes: u64,

    /// Seconds that it may take; what is left is done the next time
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().seconds)]
    seconds: u64,

    /// Begin anew, though an earlier crawl was cut off
    #[arg(long)]
    anew: bool,

    /// Also ask loopback and private addresses; for test networks
    #[arg(long)]
    private_networks: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Findings that are shown one by one.
const SHOWN: usize = 20;

impl Crawl {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let plan = self.plan()?;
        let door = DoorPolicy {
            private_networks: self.private_networks,
            total: Duration::from_secs(30),
            per_minute: self.per_minute.get().max(DoorPolicy::default().per_minute),
            ..DoorPolicy::default()
        };
        let node = house::open(&Config { data: self.data.path()?, door, ..Config::default() })?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
        let mut ear = Ear { bar: spinner() };
        let crawled = runtime.block_on(node.crawl(&plan, &mut ear));
        ear.bar.finish_and_clear();
        // A name that the system still looks up would hold us up for nothing.
        runtime.shutdown_timeout(Duration::ZERO);
        let report = crawled.map_err(|error| Failure::files(error.to_string()))?;
        node.close().map_err(|error| Failure::files(error.to_string()))?;
        self.tell(&report)?;
        let missed = report.count(Outcome::Refused) + report.count(Outcome::Unread);
        let empty = report.agents == 0 && report.done_before == 0 && report.count(Outcome::Withdrawn) == 0;
        Ok(if missed > 0 || (empty && !report.findings.is_empty()) { Exit::No } else { Exit::Fine })
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let seed = |text: &String| {
            Seed::parse(text).ok_or_else(|| {
                Failure::usage(format!("`{}` is neither a domain nor an address", shown(text)))
                    .help("write agents.example or https://agents.example/ad.json")
            })
        };
        Ok(Plan {
            seeds: self.seeds.iter().map(seed).collect::<Result<_, _>>()?,
            bounds: Bounds {
                pages: self.pages,
                agents: self.agents,
                documents: self.documents,
                documents_per_agent: self.documents_per_agent,
                hosts: self.hosts,
                bytes: self.megabytes.saturating_mul(1 << 20),
                seconds: self.seconds,
            },
            per_minute: self.per_minute,
            parallel: self.parallel,
            anew: self.anew,
        })
    }

    fn tell(&self, report: &Report) -> Result<(), Failure> {
        if self.json {
            return output::print(&json_line(&json::canonical_value(&report.to_value())));
        }
        for finding in report.findings.iter().take(SHOWN) {
            let line = format!("{} {}: {}", finding.code, finding.url, finding.words);
            output::say(&format!("{} {}", paint(WARN, "found"), shown(&line)));
        }
        let more = report.findings.len().saturating_sub(SHOWN) as u64 + report.omitted;
        if more > 0 {
            output::say(&format!("{more} more findings; --json names them"));
        }
        if report.goes_on {
            output::note(&format!("went on where it was cut off, {} agents later", report.done_before));
        }
        if let Some(bound) = report.stopped {
            output::warn(&format!("stopped at {bound}; the same command goes on from there"));
        }
        let counts: Vec<String> = Outcome::ALL
            .iter()
            .filter(|outcome| report.count(**outcome) > 0)
            .map(|outcome| format!("{} {}", report.count(*outcome), outcome.name()))
            .collect();
        let counts = if counts.is_empty() { "no agents".to_owned() } else { counts.join(", ") };
        output::print(&format!(
            "{} {counts} {}\n",
            paint(GOOD, "crawled:"),
            paint(
                DIM,
                format!(
                    "in {} requests to {} hosts, {} not modified, {}",
                    report.requests,
                    report.hosts,
                    report.unmodified,
                    house::bytes(report.bytes)
                )
            ),
        ))
    }
}

/// Shows how far it is, and greets nodes.
struct Ear {
    bar: ProgressBar,
}

impl Listener for Ear {
    fn progress(&mut self, report: &Report, waiting: usize) {
        self.bar.set_message(format!(
            "{} agents, {} pages, {} requests, {waiting} waiting",
            report.agents, report.pages, report.requests
        ));
        self.bar.tick();
    }

    fn greet(&mut self, origin: &str, manifest: &[u8]) -> Result<(), (String, String)> {
        let named = Document::parse(manifest, &Limits::OURS).ok();
        let named = named.and_then(|document| document.root().get("tool")?.get("did")?.as_str().map(str::to_owned));
        let Some(did) = named else { return Ok(()) };
        handshake::greet(origin, &did, manifest, clock::now()).map_err(|failure| {
            (failure.code().unwrap_or("schema_version_unsupported").to_owned(), failure.message().to_owned())
        })
    }
}

/// A line on standard error that nobody sees where there is no terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("crawling: {msg}") {
        bar.set_style(style);
    }
    bar
}
