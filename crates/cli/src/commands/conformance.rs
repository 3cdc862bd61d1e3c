//! `rialto conformance`: examines a live node, anybody's, and says whether it meets levels Q1 to Q3 (RFC 0020 §7).

use crate::failure::{Exit, Failure};
use crate::output::text::{shown, wrap};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, count, paint};
use crate::{chance, clock, house};
use probe::{Examination, Finding, Http, Level, Settings, Target};
use std::sync::Arc;

/// Examine a live node against the conformance corpus
///
/// Puts every case of the corpus that can be put over HTTP to the node at URL, publishing records of its own and
/// withdrawing them afterwards, and reports levels Q1 to Q3 of RFC 0020, and S1 to S3 of the subscriptions that it names, requirement by requirement. The exit code is 0
/// when the level asked for is met.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto conformance http://127.0.0.1:7420
  rialto conformance https://node.example --only AQL-SIG --json")]
pub(crate) struct Conformance {
    /// The address of the node
    #[arg(value_name = "URL")]
    url: String,

    /// Only cases and requirements whose id contains this
    #[arg(long, value_name = "ID")]
    only: Option<String>,

    /// The level that must be met
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Wanted::Q1)]
    level: Wanted,

    /// Messages under way at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    connections: usize,

    /// The report as JSON, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Wanted {
    #[value(name = "Q1")]
    Q1,
    #[value(name = "Q2")]
    Q2,
    /// Feeds and streams, too
    #[value(name = "Q3")]
    Q3,
}

/// Failed cases of one requirement that are shown; --json has them all.
const SHOWN_MAX: usize = 5;

impl Conformance {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let cannot = |error: probe::Error| {
            Failure::refused(format!("the node at {} cannot be examined: {error:#}", self.url))
                .help("the address is the one that `rialto serve` prints, without a path")
        };
        let target = Http::new().and_then(|http| Target::at(&self.url, Box::new(http))).map_err(cannot)?;
        let settings = Settings {
            only: self.only.clone(),
            connections: self.connections,
            seed: *chance::seed()?,
            clock: Arc::new(|| clock::now().seconds()),
        };
        let bar = house::bar("examining", 0);
        let examined = probe::examine(target, settings, &|done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let examined = examined.map_err(cannot)?;
        let text = if self.json { format!("{}\n", examined.to_value()) } else { described(&examined) };
        output::print(&text)?;
        let reached = match self.level {
            Wanted::Q1 => examined.q1(),
            Wanted::Q2 => examined.q2(),
            Wanted::Q3 => examined.q3(),
        };
        Ok(if reached == Level::Met { Exit::Fine } else { Exit::No })
    }
}

fn described(examined: &Examination) -> String {
    let mut text = format!("{} {}\n\n", paint(STRONG, "examined"), shown(&examined.did));
    let header =
        format!("{:<12} {:>2}  {:<18} {:>6} {:>6} {:>6}", "requirement", "", "section", "passed", "failed", "not put");
    text.push_str(&format!("{}\n", paint(DIM, header)));
    for finding in &examined.findings {
        text.push_str(&line(finding));
    }
    let (passed, failed, not_put) = examined.totals();
    text.push_str(&format!(
        "\n{} passed, {failed} failed, {not_put} cannot be put over HTTP:\n",
        count(passed, "case")
    ));
    for (reason, cases) in reasons(examined) {
        text.push_str(&format!("{cases:>6}  {}\n", shown(&reason)));
    }
    if !examined.has_records {
        let told = "the node names no endpoint for records: only refusals were tried, and Q1 cannot be shown";
        text.push_str(&format!("{} {told}\n", paint(WARN, "note:")));
    }
    for left in &examined.left_behind {
        text.push_str(&format!("{} {}\n", paint(WARN, "left behind:"), shown(left)));
    }
    text.push('\n');
    for requirement in &examined.unshown {
        let told = format!("{} {}: {}", requirement.id, requirement.level, requirement.text);
        text.push_str(&format!("{} {}\n", paint(WARN, "no case shows"), shown(&told)));
    }
    for (name, level) in examined.levels() {
        let (style, verdict) = match level {
            Level::Met => (GOOD, "is met"),
            Level::NotMet => (BAD, "is not met"),
            Level::NotShown => (WARN, "is not shown"),
        };
        let of = if name.starts_with('Q') { "RFC 0020" } else { "RFC 0022" };
        text.push_str(&format!("{}\n", paint(style, format!("{of} level {name} {verdict}"))));
    }
    text
}

fn line(finding: &Finding) -> String {
    let requirement = &finding.requirement;
    let (failed, unput) = (finding.failed.len(), finding.unput());
    let style = match (finding.passed, failed) {
        (_, 1..) => BAD,
        (0, 0) => DIM,
        _ => GOOD,
    };
    let mut text = format!(
        "{} {:>2}  {:<18} {:>6} {failed:>6} {unput:>6}\n",
        paint(style, format!("{:<12}", requirement.id)),
        requirement.level,
        requirement.section.trim_start_matches("RFC 0020 "),
        finding.passed,
    );
    if failed > 0 {
        text.push_str(&format!("  {}\n", paint(DIM, &requirement.text)));
    }
    for (case, why) in finding.failed.iter().take(SHOWN_MAX) {
        text.push_str(&format!("  {} {case}\n", paint(BAD, "failed")));
        for part in wrap(&shown(why), output::width().saturating_sub(4)) {
            text.push_str(&format!("    {part}\n"));
        }
    }
    if failed > SHOWN_MAX {
        text.push_str(&format!("  and {} more; --json names them all\n", failed - SHOWN_MAX));
    }
    text
}

/// Why cases could not be put, the most frequent reason first.
fn reasons(examined: &Examination) -> Vec<(String, usize)> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for (reason, cases) in examined.findings.iter().flat_map(|finding| &finding.not_put) {
        match counted.iter_mut().find(|(known, _)| known == reason) {
            Some((_, known)) => *known += cases,
            None => counted.push((reason.clone(), *cases)),
        }
    }
    counted.sort_by_key(|(_, cases)| std::cmp::Reverse(*cases));
    counted
}
