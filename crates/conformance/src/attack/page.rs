//! `docs/reliability/attacks.md`: which attacks are tried by the command, which by other tests, and which are open.

use super::case::Corpus;
use super::stage::rows;
use super::{Attacked, case};
use std::fmt::Write;

/// The page of a run; `date` is the day of it.
pub fn page(corpus: &Corpus, attacked: &Attacked, date: &str) -> String {
    let by_row = rows(&attacked.verdicts);
    let mut all: Vec<_> = corpus.rows().collect();
    all.sort_by_key(|row| case::order(&row.row));
    let mut table = String::new();
    let (mut automated, mut elsewhere, mut open) = (0, 0, 0);
    for row in all {
        let verdicts = by_row.get(&case::order(&row.row)).map(Vec::as_slice).unwrap_or_default();
        let failed = verdicts.iter().filter(|verdict| verdict.wrong.is_some()).count();
        let messages: usize = verdicts.iter().map(|verdict| verdict.messages).sum();
        let tried = match verdicts.len() {
            0 => "–".to_owned(),
            count => format!("{count} ({messages})"),
        };
        let result = match (verdicts.len(), failed) {
            (0, _) => "",
            (_, 0) => "stood",
            _ => "**fell**",
        };
        let note = match (&row.elsewhere, &row.open) {
            (_, Some(open)) => format!("open: {open}"),
            (Some(elsewhere), None) => format!("also: {elsewhere}"),
            (None, None) => String::new(),
        };
        match (verdicts.len(), &row.elsewhere, &row.open) {
            (_, _, Some(_)) => open += 1,
            (0, Some(_), None) => elsewhere += 1,
            _ => automated += 1,
        }
        let _ = writeln!(table, "| {} | {} | {tried} | {result} | {note} |", row.row, row.attack);
    }
    let (cases, messages): (usize, usize) =
        (attacked.verdicts.len(), attacked.verdicts.iter().map(|verdict| verdict.messages).sum());
    let grown = attacked.verdicts.iter().map(|verdict| verdict.grown_bytes).max().unwrap_or_default() >> 20;
    let fell = attacked.verdicts.iter().filter(|verdict| verdict.wrong.is_some()).count();
    format!(
        "# Attacks\n\n\
         Written by `cargo xtask attack --report docs/reliability/attacks.md`; edit the cases, not this page.\n\n\
         The cases in `conformance/attacks` are put to the real `rialto serve` over sockets. Each asserts status, code,\n\
         place and limit where the node has something to say, and after each the process must live, answer `/health`\n\
         with 200, and hold no more memory than the case allows: 64 MiB more than before unless it says otherwise.\n\
         Every refusal must be signed, be of no other shape than a refusal, and have 4 KiB at most. In the end the log\n\
         must be short, tell of no panic, and hold nothing of the node's key; nor may any file but the key's own.\n\n\
         {date}: {cases} cases, {messages} messages and frames, {fell} fell, {} leaks, {grown} MiB the largest growth,\n\
         {:.0} s. Of {} rows {automated} are tried here, {elsewhere} by other tests alone, and {open} are open in part or whole.\n\n\
         | Row | Attack | Cases (messages) | Result | Beside it |\n|---|---|---|---|---|\n{table}",
        attacked.leaks.len(),
        attacked.seconds,
        automated + elsewhere + open,
    )
}
