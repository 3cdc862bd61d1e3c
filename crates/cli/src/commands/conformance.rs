//! `rialto conformance`: examines a live node, anybody's, says whether it meets levels Q1 to Q3 (RFC 0020 §7), and
//! signs a conformance receipt about it (RFC 0019).

use crate::failure::{Exit, Failure};
use crate::files;
use crate::keys::{self, KeyChoice, Signer};
use crate::output::text::{json_lines, shown, wrap};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, count, paint};
use crate::{chance, clock, house};
use probe::{Examination, Finding, Http, Level, Settings, Target};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Examine a live node against the conformance corpus
///
/// Puts every case of the corpus that can be put over HTTP to the node at URL, publishing records of its own and
/// withdrawing them afterwards, and reports levels Q1 to Q3 of RFC 0020, S1 to S3 of the subscriptions that it names,
/// and V1 to V3 of RFC 0024, requirement by requirement. A set of records with known answers shows how much of them comes back
/// (`aql_completeness_ratio`). With --receipt the findings of a whole examination are signed. The exit code is 0 when
/// the level asked for is met.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto conformance http://127.0.0.1:7420
  rialto conformance http://127.0.0.1:7420 --receipt receipt.json
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

    /// Where a signed conformance receipt goes; a node shows `conformance-receipt.json` of its data folder
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    receipt: Option<PathBuf>,

    /// The key of somebody whose mappings the node's operator trusts (`rialto serve --schema-publisher`); V3 needs it
    #[arg(long, value_name = "FILE")]
    publisher_key: Option<PathBuf>,

    #[command(flatten)]
    key: KeyChoice,
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
    /// Versions: a profile, the handshake, warnings
    #[value(name = "V1")]
    V1,
    /// Signed mappings between every pair, too
    #[value(name = "V2")]
    V2,
    /// Mappings of others, and a quick handshake, too
    #[value(name = "V3")]
    V3,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Q1 => "Q1",
            Self::Q2 => "Q2",
            Self::Q3 => "Q3",
            Self::V1 => "V1",
            Self::V2 => "V2",
            Self::V3 => "V3",
        }
    }
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
            publisher: self.publisher_key.as_deref().map(keys::load).transpose()?,
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
        if let Some(path) = &self.receipt {
            self.write_receipt(&examined, path)?;
        }
        let met = examined.levels().contains(&(self.level.name(), Level::Met));
        Ok(if met { Exit::Fine } else { Exit::No })
    }

    fn write_receipt(&self, examined: &Examination, path: &Path) -> Result<(), Failure> {
        let signer = Signer::new(&self.key);
        let receipt = examined.receipt(signer.key()?, clock::now(), &chance::uuid()?);
        let receipt = receipt.map_err(|error| Failure::refused(format!("there is no receipt: {error:#}")))?;
        files::write(Some(path), &json_lines(&format!("{receipt:#}")))
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
    let end = if not_put == 0 { "" } else { ":" };
    text.push_str(&format!(
        "\n{} passed, {failed} failed, {not_put} cannot be put over HTTP{end}\n",
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
    text.push_str(&beside(examined));
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
        let of = match name.chars().next() {
            Some('Q') => "RFC 0020",
            Some('V') => "RFC 0024",
            _ => "RFC 0022",
        };
        text.push_str(&format!("{}\n", paint(style, format!("{of} level {name} {verdict}"))));
    }
    text
}

/// What is measured and looked at beside the corpus.
fn beside(examined: &Examination) -> String {
    let mut text = String::new();
    if let Some(found) = &examined.completeness {
        let style = if found.is_whole() { GOOD } else { BAD };
        text.push_str(&format!(
            "\n{} {}: {} of {} true answers to {} came back, {} came that are none\n",
            paint(STRONG, "aql_completeness_ratio"),
            paint(style, format!("{}", found.ratio())),
            found.returned,
            found.true_answers,
            count(found.questions, "question"),
            found.unexpected,
        ));
        for flaw in &found.flaws {
            text.push_str(&format!("  {} {}\n", paint(BAD, "failed"), shown(flaw)));
        }
    }
    if let Some(found) = &examined.negotiation {
        let style = if found.p95_us <= found.floor_us { GOOD } else { BAD };
        text.push_str(&format!(
            "\n{} {} for 95 of 100, {} for half; the floor is {} ms\n",
            paint(STRONG, "handshake"),
            paint(style, millis(found.p95_us)),
            millis(found.p50_us),
            found.floor_us / 1_000,
        ));
    }
    for (level, flaws) in [("L0", &examined.surface.l0), ("L1", &examined.surface.l1)] {
        for flaw in flaws {
            text.push_str(&format!("{} {level} asks for {}\n", paint(WARN, "note:"), shown(flaw)));
        }
    }
    text
}

fn millis(micros: u64) -> String {
    format!("{}.{:01} ms", micros / 1_000, micros % 1_000 / 100)
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
