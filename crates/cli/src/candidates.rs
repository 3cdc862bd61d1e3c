//! RFC 0020 A.2: candidates from a file, one JSON object on each line.
//!
//! A line that is no candidate is reported and skipped: one bad record must not hide a market. No line is held in
//! memory that is longer than a document may be.

use crate::failure::Failure;
use crate::{files, output};
use aql::{Candidate, Refusal};
use json::{Document, Limits};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Bad lines that are told one by one.
const REPORTED_MAX: usize = 10;

/// What a file brought.
pub(crate) struct Candidates {
    pub(crate) list: Vec<Candidate>,
    pub(crate) skipped: usize,
}

/// Reads a file of candidates and reports what it skips.
pub(crate) fn read(path: &Path) -> Result<Candidates, Failure> {
    let name = files::name(path);
    let skip = |number: usize, refusal: &Refusal| {
        let at = if refusal.at.as_str().is_empty() { String::new() } else { format!(" at {}", refusal.at) };
        output::warn(&format!("{name}:{number}: skipped, {}{at}: {}", refusal.code.name(), refusal.detail));
    };
    let candidates = from_lines(BufReader::new(files::open(path)?), skip);
    let candidates = candidates.map_err(|error| Failure::io("read", path, &error))?;
    if candidates.skipped > REPORTED_MAX {
        output::warn(&format!("{name}: skipped {} lines in all", candidates.skipped));
    }
    if candidates.list.is_empty() {
        return Err(Failure::refused(format!("there is no candidate in {name}"))
            .help("give one JSON object on each line: a record, or {\"id\", \"record\", \"cost\", \"quality\"}"));
    }
    Ok(candidates)
}

/// Reads candidates from lines; `skip` hears of the first bad ones.
pub(crate) fn from_lines(
    mut lines: impl BufRead,
    mut skip: impl FnMut(usize, &Refusal),
) -> std::io::Result<Candidates> {
    let mut candidates = Candidates { list: Vec::new(), skipped: 0 };
    for number in 1.. {
        let Some(line) = files::line(&mut lines)? else { break };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match candidate(&line, number) {
            Ok(candidate) => candidates.list.push(candidate),
            Err(refusal) => {
                candidates.skipped += 1;
                if candidates.skipped <= REPORTED_MAX {
                    skip(number, &refusal);
                }
            }
        }
    }
    Ok(candidates)
}

fn candidate(line: &[u8], number: usize) -> Result<Candidate, Refusal> {
    Candidate::read(Document::parse(line.trim_ascii_end(), &Limits::DOCUMENT)?, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<(usize, &'static str)>) {
        let mut bad = Vec::new();
        let candidates =
            from_lines(text.as_bytes(), |number, refusal| bad.push((number, refusal.code.name()))).unwrap();
        (candidates.list.into_iter().map(|candidate| candidate.id).collect(), bad)
    }

    #[test]
    fn bad_lines_are_skipped_and_named() {
        let text = "{\"id\":\"a\"}\r\n\n{\"id\":\"b\",\"id\":\"c\"}\n[1]\n{}\nnonsense";
        let bad = vec![(3, "json_duplicate_key"), (4, "wrong_type"), (6, "json_syntax")];
        assert_eq!(read(text), (vec!["a".to_owned(), "line-5".to_owned()], bad));
    }

    #[test]
    fn an_endless_line_is_skipped_and_the_next_one_read() {
        let text = format!("{{\"id\":\"{}\"}}\n{{\"id\":\"b\"}}\n", "x".repeat(300_000));
        assert_eq!(read(&text), (vec!["b".to_owned()], vec![(1, "json_too_large")]));
    }
}
