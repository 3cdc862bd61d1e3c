//! Growth: the same run at several sizes, as one table and three charts.

use crate::chart::{Chart, Line};
use crate::figures::{Latency, geometric_mean};
use crate::question::Kind;
use crate::report::{Report, Row, bytes, grouped, milliseconds};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// The reports of several sizes as Markdown; the charts lie beside it.
pub fn markdown(reports: &[Report]) -> String {
    let mut out = String::new();
    // Writing to a String never fails.
    let _ = write(reports, &mut out);
    out
}

fn write(reports: &[Report], out: &mut String) -> std::fmt::Result {
    let sizes: Vec<String> = reports.iter().map(|report| grouped(report.manifests as f64)).collect();
    writeln!(out, "| p50 of the round trip | {} |\n|---|{}", sizes.join(" | "), "---|".repeat(sizes.len()))?;
    for kind in Kind::ALL {
        let cells = reports.iter().map(|report| cell(latency(report, kind, |row| row.node)));
        writeln!(out, "| {} | {} |", kind.name(), cells.collect::<Vec<_>>().join(" | "))?;
    }
    let mut line = |what: &str, cell: &dyn Fn(&Report) -> Option<String>| {
        let cells: Vec<Option<String>> = reports.iter().map(cell).collect();
        match cells.iter().any(Option::is_some) {
            false => Ok(()),
            true => {
                let cells: Vec<String> = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned())).collect();
                writeln!(out, "| {what} | {} |", cells.join(" | "))
            }
        }
    };
    line("geometric mean", &|report| mean(report, |row| row.node).map(milliseconds))?;
    line("geometric mean of PostgreSQL", &|report| mean(report, |row| row.peer).map(milliseconds))?;
    line("times faster than PostgreSQL, geometric mean", &|report| {
        report.mean_ratio().map(|ratio| format!("{ratio:.0}×"))
    })?;
    line("resident memory at its peak", &|report| Some(bytes(report.node.as_ref()?.memory.peak_bytes as f64)))?;
    line("resident memory after the questions", &|report| {
        Some(bytes(report.node.as_ref()?.memory.resident_bytes as f64))
    })?;
    line("disk", &|report| Some(bytes(report.node.as_ref()?.disk_bytes as f64)))?;
    line("disk of PostgreSQL", &|report| {
        let import = report.peer.as_ref()?.import;
        Some(bytes((import.table_bytes + import.index_bytes) as f64))
    })?;
    line("import, records a second", &|report| {
        Some(grouped(report.manifests as f64 / report.node.as_ref()?.import_seconds?))
    })?;
    line("ready after start", &|report| Some(format!("{:.2} s", report.node.as_ref()?.ready_seconds)))?;
    writeln!(
        out,
        "\n![p50 by size](node-latency.svg)\n\n![memory by size](node-memory.svg)\n\n![disk by size](node-disk.svg)"
    )
}

/// Writes the three charts into a folder.
pub fn write_charts(reports: &[Report], folder: &Path) -> io::Result<()> {
    std::fs::write(folder.join("node-latency.svg"), latency_chart(reports).svg())?;
    std::fs::write(folder.join("node-memory.svg"), memory_chart(reports).svg())?;
    std::fs::write(folder.join("node-disk.svg"), disk_chart(reports).svg())
}

fn latency_chart(reports: &[Report]) -> Chart {
    let of = |kind: Kind| line(kind.name().trim_matches('`'), reports, |report| latency(report, kind, |row| row.node));
    let mut lines: Vec<Line> = Kind::ALL.into_iter().map(of).collect();
    let peer = line("PostgreSQL, geometric mean", reports, |report| mean(report, |row| row.peer));
    lines.push(Line { dashed: true, ..peer });
    chart("p50 of a signed question over HTTP", "ms", lines)
}

fn memory_chart(reports: &[Report]) -> Chart {
    let megabytes = |bytes: u64| bytes as f64 / 1024f64.powi(2);
    let peak = line("at its peak", reports, |report| Some(megabytes(report.node.as_ref()?.memory.peak_bytes)));
    let after =
        line("after the questions", reports, |report| Some(megabytes(report.node.as_ref()?.memory.resident_bytes)));
    chart("Resident memory of the node", "MiB", vec![peak, after])
}

fn disk_chart(reports: &[Report]) -> Chart {
    let megabytes = |bytes: f64| bytes / 1024f64.powi(2);
    let node = line("Rialto", reports, |report| Some(megabytes(report.node.as_ref()?.disk_bytes as f64)));
    let peer = line("PostgreSQL", reports, |report| {
        let import = report.peer.as_ref()?.import;
        Some(megabytes((import.table_bytes + import.index_bytes) as f64))
    });
    let plain = line("the records as NDJSON", reports, |report| Some(megabytes(report.corpus.bytes as f64)));
    let dashed = |line| Line { dashed: true, ..line };
    chart("Disk", "MiB", vec![node, dashed(peer), dashed(plain)])
}

/// A chart by size, without the lines that have no points.
fn chart(title: &str, up: &str, mut lines: Vec<Line>) -> Chart {
    lines.retain(|line| !line.points.is_empty());
    Chart { title: title.to_owned(), across: "manifests".to_owned(), up: up.to_owned(), lines }
}

fn line(name: &str, reports: &[Report], value: impl Fn(&Report) -> Option<f64>) -> Line {
    let point = |report: &Report| Some((report.manifests as f64, value(report)?));
    Line { name: name.to_owned(), points: reports.iter().filter_map(point).collect(), dashed: false }
}

fn latency(report: &Report, kind: Kind, side: fn(&Row) -> Option<Latency>) -> Option<f64> {
    report.rows.iter().find(|row| row.kind == kind).and_then(side).map(|latency| latency.p50_ms)
}

fn mean(report: &Report, side: fn(&Row) -> Option<Latency>) -> Option<f64> {
    geometric_mean(report.rows.iter().filter_map(side).map(|latency| latency.p50_ms))
}

fn cell(latency: Option<f64>) -> String {
    latency.map_or_else(|| "–".to_owned(), milliseconds)
}
