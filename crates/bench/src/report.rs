//! What came out: one table, the goals beside it, and where the time goes.

use crate::figures::{Latency, geometric_mean};
use crate::load::Served;
use crate::node::Memory;
use crate::peer::Import;
use crate::question::Kind;
use crate::shares::Share;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;

/// Everything one run measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Manifests in the corpus.
    pub manifests: u64,
    /// The corpus itself.
    pub corpus: CorpusFigures,
    /// A row for each kind of question.
    pub rows: Vec<Row>,
    /// What else was measured of the node.
    pub node: Option<NodeFigures>,
    /// What else was measured of PostgreSQL.
    pub peer: Option<PeerFigures>,
    /// What the protocol costs, in process.
    pub shares: Vec<Share>,
}

/// The corpus.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CorpusFigures {
    /// Bytes of NDJSON.
    pub bytes: u64,
    /// Seconds it took to write them.
    pub seconds: f64,
}

/// One kind of question.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Which kind.
    #[serde(serialize_with = "named")]
    pub kind: Kind,
    /// Records that match, on average.
    pub matches: Option<f64>,
    /// The whole HTTP round trip to the node.
    pub node: Option<Latency>,
    /// The same question to PostgreSQL.
    pub peer: Option<Latency>,
    /// Questions whose ids were compared, and those where they were the same in the same order.
    pub compared: usize,
    /// See `compared`.
    pub same: usize,
}

/// What was measured of the node beside its latency.
#[derive(Debug, Serialize)]
pub struct NodeFigures {
    /// Seconds of `rialto import`; none when the data were there.
    pub import_seconds: Option<f64>,
    /// From start to ready, the first time after the import.
    pub first_ready_seconds: f64,
    /// From start to ready, the second time.
    pub ready_seconds: f64,
    /// What it held in memory after all questions.
    pub memory: Memory,
    /// What its data take on disk.
    pub disk_bytes: u64,
    /// Answers to those who asked one by one; all were verified.
    pub verified_answers: usize,
    /// A crowd with selective conjunctions.
    pub selective: Option<Served>,
    /// A crowd with all kinds in turn.
    pub mixed: Option<Served>,
    /// A crowd that publishes.
    pub publications: Option<Served>,
}

/// What was measured of PostgreSQL beside its latency.
#[derive(Debug, Serialize)]
pub struct PeerFigures {
    /// Its version.
    pub version: String,
    /// What filling it took.
    pub import: Import,
}

/// Something that was wanted, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// What.
    pub what: &'static str,
    /// How much of it.
    pub wanted: String,
    /// What was measured.
    pub measured: String,
    /// Whether that is enough.
    pub reached: bool,
}

fn named<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

impl Row {
    /// A row without figures.
    pub fn new(kind: Kind) -> Self {
        Self { kind, matches: None, node: None, peer: None, compared: 0, same: 0 }
    }

    /// Compares what both found, question by question.
    pub fn compare(&mut self, ours: &[Vec<String>], theirs: &[Vec<String>]) {
        let pairs = ours.iter().zip(theirs);
        self.compared = pairs.clone().count();
        self.same = pairs.filter(|(ours, theirs)| ours == theirs).count();
    }

    /// How many times faster the node is, by the median.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.peer?.p50_ms / self.node?.p50_ms)
    }
}

impl PeerFigures {
    fn import_seconds(&self) -> f64 {
        self.import.copy_seconds + self.import.index_seconds
    }
}

impl Report {
    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().filter_map(Row::ratio)
    }

    /// How many times faster the node is, in the geometric mean over all kinds.
    pub fn mean_ratio(&self) -> Option<f64> {
        geometric_mean(self.ratios())
    }

    /// The goals that this run can judge.
    pub fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        let mut goal = |what, wanted: &str, measured: Option<(f64, String)>, reached: &dyn Fn(f64) -> bool| {
            let judge = |(value, measured)| Goal { what, wanted: wanted.to_owned(), measured, reached: reached(value) };
            goals.extend(measured.map(judge));
        };
        let compared = self.rows.iter().any(|row| row.compared > 0);
        let differing: usize = self.rows.iter().map(|row| row.compared - row.same).sum();
        let differing_text = format!("{differing} questions differ");
        goal(
            "the same ten ids on both sides",
            "on every row",
            compared.then_some((differing as f64, differing_text)),
            &|n| n == 0.0,
        );
        let times = |value: f64| (value, format!("{value:.1} times"));
        goal("faster than PostgreSQL on every row", "10 times", self.ratios().reduce(f64::min).map(times), &|value| {
            value >= 10.0
        });
        goal("faster in the geometric mean", "100 times", self.mean_ratio().map(times), &|value| value >= 100.0);
        let selective = self.rows.iter().filter(|row| row.kind.is_selective()).filter_map(|row| Some(row.node?.p50_ms));
        let slowest = selective.reduce(f64::max).map(|value| (value, milliseconds(value)));
        goal("p50 of each selective row", "under 1 ms", slowest, &|value| value < 1.0);
        let Some(node) = &self.node else { return goals };
        let rate = |served: &Option<Served>| {
            served.as_ref().map(|served| (served.per_second(), per_second(served.per_second())))
        };
        goal("answers, load generator beside it", "5,000 a second", rate(&node.selective), &|value| value >= 5_000.0);
        let import = node.import_seconds.map(|seconds| self.manifests as f64 / seconds);
        let import = import.map(|rate| (rate, per_second(rate)));
        goal("import with index", "20,000 records a second", import, &|value| value >= 20_000.0);
        let memory = node.memory.peak_bytes as f64;
        goal("resident memory at its peak", "under 2 GiB", Some((memory, bytes(memory))), &|value| {
            value < 2.0 * 1024f64.powi(3)
        });
        let ready = node.ready_seconds.max(node.first_ready_seconds);
        goal("ready after start", "within 2 s", Some((ready, format!("{ready:.2} s"))), &|value| value <= 2.0);
        goal("durable signed publications", "3,000 a second", rate(&node.publications), &|value| value >= 3_000.0);
        goals
    }

    /// The report as Markdown, without its title.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a String never fails.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let each = self.corpus.bytes as f64 / self.manifests.max(1) as f64;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        writeln!(
            out,
            "{} manifests of {each:.0} bytes, {cores} cores, load generator on the same cores.\n",
            grouped(self.manifests as f64)
        )?;
        self.write_rows(out)?;
        self.write_figures(out)?;
        self.write_goals(out)?;
        self.write_shares(out)
    }

    fn write_rows(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "| question, the ten best | matches | Rialto p50 | p99 | PostgreSQL p50 | p99 | ratio | same ten ids |\n|---|---|---|---|---|---|---|---|"
        )?;
        let cell = |latency: Option<Latency>, value: fn(Latency) -> f64| {
            latency.map_or_else(|| "–".to_owned(), |latency| milliseconds(value(latency)))
        };
        for row in &self.rows {
            let same = if row.compared > 0 { format!("{} of {}", row.same, row.compared) } else { "–".to_owned() };
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {same} |",
                row.kind.name(),
                row.matches.map_or_else(|| "–".to_owned(), grouped),
                cell(row.node, |latency| latency.p50_ms),
                cell(row.node, |latency| latency.p99_ms),
                cell(row.peer, |latency| latency.p50_ms),
                cell(row.peer, |latency| latency.p99_ms),
                row.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.0}×")),
            )?;
        }
        let mean = |side: fn(&Row) -> Option<Latency>| {
            let mean = geometric_mean(self.rows.iter().filter_map(side).map(|latency| latency.p50_ms));
            mean.map_or_else(|| "–".to_owned(), milliseconds)
        };
        let ratio = self.mean_ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.0}×"));
        let (node, peer) = (mean(|row| row.node), mean(|row| row.peer));
        writeln!(out, "| **geometric mean** |  | {node} |  | {peer} |  | **{ratio}** |  |\n")?;
        let samples =
            |side: fn(&Row) -> Option<Latency>| self.rows.iter().filter_map(side).map(|latency| latency.samples).max();
        if let Some(samples) = samples(|row| row.node) {
            writeln!(
                out,
                "Rialto: the whole HTTP round trip on one kept connection; {samples} questions a row, no two alike, each signed by its issuer, verified by the node and answered with a signature that was verified afterwards."
            )?;
        }
        if let (Some(peer), Some(samples)) = (&self.peer, samples(|row| row.peer)) {
            writeln!(
                out,
                "PostgreSQL {}: JSONB with GIN `jsonb_path_ops`, warm, Unix socket, prepared statements; the first {samples} of the same questions, with the same score and order computed in SQL. Nothing is signed or verified there.",
                peer.version
            )?;
        }
        writeln!(out)
    }

    fn write_figures(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "| figure | Rialto | PostgreSQL |\n|---|---|---|")?;
        let mut line = |what: &str, ours: Option<String>, theirs: Option<String>| {
            let dash = || "–".to_owned();
            match (ours, theirs) {
                (None, None) => Ok(()),
                (ours, theirs) => {
                    writeln!(out, "| {what} | {} | {} |", ours.unwrap_or_else(dash), theirs.unwrap_or_else(dash))
                }
            }
        };
        let (node, peer) = (self.node.as_ref(), self.peer.as_ref());
        let import = |seconds: f64| format!("{} ({seconds:.1} s)", per_second(self.manifests as f64 / seconds));
        let peer_import = |peer: &PeerFigures| {
            let Import { copy_seconds, index_seconds, .. } = peer.import;
            format!("{}, COPY {copy_seconds:.1} s and GIN {index_seconds:.1} s", import(peer.import_seconds()))
        };
        line("import with index", node.and_then(|node| node.import_seconds).map(import), peer.map(peer_import))?;
        let disk = |peer: &PeerFigures| {
            let Import { table_bytes, index_bytes, .. } = peer.import;
            format!("{} table, {} GIN", bytes(table_bytes as f64), bytes(index_bytes as f64))
        };
        line("disk", node.map(|node| bytes(node.disk_bytes as f64)), peer.map(disk))?;
        line("resident memory after the questions", node.map(|node| bytes(node.memory.resident_bytes as f64)), None)?;
        line("resident memory at its peak", node.map(|node| bytes(node.memory.peak_bytes as f64)), None)?;
        line("ready after the first start", node.map(|node| format!("{:.2} s", node.first_ready_seconds)), None)?;
        line("ready after the next start", node.map(|node| format!("{:.2} s", node.ready_seconds)), None)?;
        let rate = |served: &Option<Served>| served.as_ref().map(|served| per_second(served.per_second()));
        line("answers, many who ask, selective conjunctions", node.and_then(|node| rate(&node.selective)), None)?;
        line("answers, many who ask, all kinds in turn", node.and_then(|node| rate(&node.mixed)), None)?;
        line("durable signed publications, many who publish", node.and_then(|node| rate(&node.publications)), None)?;
        let verified = |node: &NodeFigures| grouped(node.verified_answers as f64);
        line("answers verified one by one", node.map(verified), None)?;
        writeln!(out)
    }

    fn write_goals(&self, out: &mut String) -> std::fmt::Result {
        let goals = self.goals();
        if goals.is_empty() {
            return Ok(());
        }
        writeln!(out, "| goal | wanted | measured |  |\n|---|---|---|---|")?;
        for Goal { what, wanted, measured, reached } in goals {
            let verdict = if reached { "reached" } else { "**not reached**" };
            writeln!(out, "| {what} | {wanted} | {measured} | {verdict} |")?;
        }
        writeln!(out)
    }

    /// What the protocol costs, and what is left of a selective round trip for everything else.
    fn write_shares(&self, out: &mut String) -> std::fmt::Result {
        let row = self.rows.iter().find(|row| row.kind == Kind::SelectiveConjunction);
        let Some(whole) = row.and_then(|row| row.node).map(|latency| latency.p50_ms * 1e3) else { return Ok(()) };
        writeln!(
            out,
            "Where the time of a selective conjunction goes: each step measured alone, in process, for the same intents and answers.\n\n| step | µs | share of p50 |\n|---|---|---|"
        )?;
        let mut left = whole;
        for Share { name, microseconds } in &self.shares {
            writeln!(out, "| {name} | {microseconds:.1} | {:.0} % |", microseconds / whole * 100.0)?;
            left -= microseconds;
        }
        writeln!(
            out,
            "| everything else: HTTP, where to look, judging, order | {left:.1} | {:.0} % |",
            left / whole * 100.0
        )?;
        writeln!(out, "| the whole round trip, p50 | {whole:.1} | 100 % |")
    }
}

/// A duration with as many digits as mean something.
pub fn milliseconds(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3} ms"),
        ..100.0 => format!("{value:.2} ms"),
        _ => format!("{} ms", grouped(value)),
    }
}

/// A number of bytes as people read it.
pub fn bytes(value: f64) -> String {
    match value / 1024f64.powi(2) {
        megabytes @ 1024.0.. => format!("{:.2} GiB", megabytes / 1024.0),
        megabytes => format!("{megabytes:.1} MiB"),
    }
}

fn per_second(value: f64) -> String {
    format!("{} a second", grouped(value))
}

/// A whole number with commas.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(p50_ms: f64) -> Report {
        let latency = |p50_ms| Some(Latency { p50_ms, p99_ms: p50_ms * 2.0, samples: 10 });
        let row = |kind| Row { node: latency(p50_ms), peer: latency(80.0), matches: Some(12.0), ..Row::new(kind) };
        let served = |answers| Some(Served { answers, seconds: 2.0, kept: Vec::new() });
        Report {
            manifests: 1_000_000,
            corpus: CorpusFigures { bytes: 1_340_000_000, seconds: 3.0 },
            rows: Kind::ALL.into_iter().map(row).collect(),
            node: Some(NodeFigures {
                import_seconds: Some(40.0),
                first_ready_seconds: 2.5,
                ready_seconds: 0.4,
                memory: Memory { resident_bytes: 1 << 30, peak_bytes: 3 << 30 },
                disk_bytes: 3 << 30,
                verified_answers: 4_000,
                selective: served(12_000),
                mixed: served(4_000),
                publications: served(5_000),
            }),
            peer: None,
            shares: vec![Share { name: "signing the answer", microseconds: 40.0 }],
        }
    }

    #[track_caller]
    fn check(report: &Report, what: &str, reached: bool) {
        let goals = report.goals();
        let goal = goals.iter().find(|goal| goal.what == what).expect("the goal is judged");
        assert_eq!(goal.reached, reached, "{goal:?}");
    }

    #[test]
    fn goals_are_judged_by_their_figures() {
        check(&report(0.5), "faster than PostgreSQL on every row", true);
        check(&report(0.5), "faster in the geometric mean", true);
        check(&report(1.5), "faster in the geometric mean", false);
        check(&report(1.5), "p50 of each selective row", false);
        check(&report(0.5), "answers, load generator beside it", true);
        check(&report(0.5), "durable signed publications", false);
        check(&report(0.5), "import with index", true);
        check(&report(0.5), "resident memory at its peak", false);
        check(&report(0.5), "ready after start", false);
    }

    #[test]
    fn ids_in_another_order_are_not_the_same() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let mut row = Row::new(Kind::Broad);
        row.compare(&[ids(&["a", "b"]), ids(&["c"]), ids(&["d"])], &[ids(&["b", "a"]), ids(&["c"])]);
        assert_eq!((row.compared, row.same), (2, 1));
        let report = Report { rows: vec![row], ..report(0.5) };
        check(&report, "the same ten ids on both sides", false);
    }

    #[test]
    fn the_table_has_a_line_for_every_row_and_goal() {
        let text = report(0.5).markdown();
        for kind in Kind::ALL {
            assert!(
                text.contains(&format!("| {} | 12 | 0.500 ms | 1.00 ms | 80.00 ms | 160 ms | 160× | – |", kind.name()))
            );
        }
        assert!(text.contains("| **geometric mean** |  | 0.500 ms |  | 80.00 ms |  | **160×** |  |"), "{text}");
        assert!(text.contains("| signing the answer | 40.0 | 8 % |"), "{text}");
        assert!(text.contains("| import with index | 25,000 a second (40.0 s) | – |"), "{text}");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0.0, "0"), (999.0, "999"), (1_000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
