//! RFC 0020 §3.7: what a crowd of subscribers waits for, as a page: `cargo xtask load --mode feed`.

use crate::Arguments;
use anyhow::Result;
use conformance::crash::{Crowd, CrowdReport, Program, clock, crowd};
use std::path::Path;
use std::process::ExitCode;

/// Connections beside those of the crowd: whoever publishes, and whoever asks how the node is.
const OTHERS: usize = 64;
/// The longest that ninety-nine of a hundred events may take, in milliseconds.
const P99_MS_MAX: f64 = 1_000.0;

/// Lets a crowd listen and tells what came of it.
pub(crate) fn run(arguments: &Arguments, binary: &Path) -> Result<ExitCode> {
    let wanted = Crowd {
        clients: arguments.clients,
        events_per_second: arguments.events_per_second,
        alike: arguments.alike,
        seconds: arguments.seconds,
    };
    let folder = tempfile::tempdir()?;
    let connections = (wanted.clients + OTHERS).to_string();
    let program = Program::new(binary, folder.path()).with(&["--connections".to_owned(), connections]);
    let report = crowd(&program, &wanted, &mut |report| {
        let memory = report.memory_bytes.last().copied().unwrap_or_default() >> 20;
        eprintln!("{} events, {memory} MiB", report.events);
    })?;
    let told = tell(arguments, &report);
    println!("{told}");
    if let Some(path) = &arguments.report {
        std::fs::write(path, page(&told))?;
    }
    let held = report.is_clean() && report.delivery_ms.1 < P99_MS_MAX;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(arguments: &Arguments, report: &CrowdReport) -> String {
    let today = aql::Instant::from_unix(clock(), 0).to_string();
    let times = |(half, most, longest): (f64, f64, f64)| format!("{half:.1} ms | {most:.1} ms | {longest:.1} ms");
    let memory: Vec<String> = report.memory_bytes.iter().map(|bytes| (bytes >> 20).to_string()).collect();
    let (peak, during) =
        memory.split_last().map(|(peak, during)| (peak.clone(), during.join(", "))).unwrap_or_default();
    let wrong = &report.wrong;
    let mut text = format!(
        "`cargo xtask load --mode feed --clients {} --events-per-second {} --alike {} --seconds {}`\n\n\
         {}, {} build: {} clients came in within {:.0} s; then for {:.0} s there were {:.0} events a second.\n\n\
         | from the moment a publication was due | p50 | p99 | longest |\n|---|---:|---:|---:|\n\
         | to its event at a client | {} |\n| to its acknowledgement | {} |\n\n\
         | | |\n|---|---:|\n| publications | {} |\n| events heard | {} |\n| of which the signature was verified | {} |\n\
         | events read again in the end | {} |\n| heartbeats | {} |\n| connections opened during the run | {} |\n\
         | gaps | {} |\n| cursors with two contents | {} |\n| clients that heard too much or too little | {} |\n\
         | clients refused or given up | {} |\n| events not signed, or not what they seem | {} |\n\n\
         The node held {during} MiB: when all were there, and after each tenth of the run; {peak} MiB at its peak, when all\n\
         journals were read from the beginning at once.\n",
        arguments.clients,
        arguments.events_per_second,
        arguments.alike,
        arguments.seconds,
        today.split('T').next().unwrap_or_default(),
        if cfg!(debug_assertions) { "debug" } else { "release" },
        report.clients,
        report.entering_seconds,
        report.seconds,
        report.events_per_second,
        times(report.delivery_ms),
        times(report.publication_ms),
        report.publications,
        report.events,
        report.verified,
        report.read_again,
        report.heartbeats,
        report.connections,
        wrong.gaps,
        wrong.conflicts,
        wrong.histories,
        wrong.refused,
        wrong.forged,
    );
    report.told.iter().for_each(|words| text.push_str(&format!("\n- {words}")));
    text
}

fn page(told: &str) -> String {
    format!(
        "# A crowd that listens\n\n\
         Every client has a key, a standing intent and a stream of server-sent events of its own; all of them are in one\n\
         thread of another process on the same machine. Publications come at a fixed pace, and each concerns a few of the\n\
         clients. An event is timed from the moment its publication was due. Every cursor is checked, and in the end every\n\
         journal is read again from its beginning and compared byte for byte.\n\n{told}"
    )
}
