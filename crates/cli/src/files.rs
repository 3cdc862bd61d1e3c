//! Files as the command line takes them: a path, or `-` for a standard stream.

use crate::failure::Failure;
use crate::{advice, output, place};
use aql::Refusal;
use json::{Document, Limits, ParseError, Pointer};
use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use trust::SignatureError;

/// A text with the name people know it by.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Whether a path means a standard stream.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Standard input can be read once only.
pub(crate) fn check_streams(intent: &Path, candidates: &Path) -> Result<(), Failure> {
    if is_stream(intent) && is_stream(candidates) {
        return Err(
            Failure::usage("both --intent and --candidates are standard input").help("put one of the two into a file")
        );
    }
    Ok(())
}

/// A path as people know it.
pub(crate) fn name(path: &Path) -> String {
    if is_stream(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Opens a file or standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if is_stream(path) {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| Failure::io("read", path, &error))?;
    Ok(Box::new(file))
}

/// Writes a file, or prints where no file is named.
pub(crate) fn write(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    match path {
        Some(path) if !is_stream(path) => {
            let written = File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| Failure::io("write", path, &error))?;
            output::note(&format!("wrote {}", path.display()));
            Ok(())
        }
        _ => output::print(text),
    }
}

/// Reads one line without its end, cut where it is longer than any document; `None` at the end.
pub(crate) fn line(lines: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let most = u64::from(Limits::DOCUMENT.bytes) + 1;
    let mut line = Vec::new();
    if lines.take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        lines.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

impl Text {
    /// Reads a whole file, at most as much as any document of ours may have.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let most = u64::from(Limits::OURS.bytes) + 1;
        open(path)?.take(most).read_to_end(&mut bytes).map_err(|error| Failure::io("read", path, &error))?;
        Ok(Self { name: name(path), bytes })
    }

    /// A text that the binary carries.
    pub(crate) fn carried(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// Reads the text as a document.
    pub(crate) fn document(&self, limits: &Limits) -> Result<Document, Failure> {
        Document::parse(&self.bytes, limits).map_err(|error| self.unreadable(error))
    }

    /// The line and column of a place, where they can be found.
    pub(crate) fn locate(&self, at: &Pointer) -> Option<(usize, usize)> {
        place::locate(std::str::from_utf8(&self.bytes).ok()?, at)
    }

    /// Where bytes stopped being a document.
    pub(crate) fn locate_error(&self, error: &ParseError) -> (usize, usize) {
        // Two members of one name are noticed when their object ends, far from both.
        let member = if error.code == json::Code::DuplicateKey { self.locate(&error.at) } else { None };
        if let Some(found) = member {
            return found;
        }
        place::line_and_column(&String::from_utf8_lossy(&self.bytes), error.offset)
    }

    /// Why the text is no document.
    pub(crate) fn unreadable(&self, error: ParseError) -> Failure {
        let (line, column) = self.locate_error(&error);
        let place = format!("{}:{line}:{column}{}", self.name, pointed(&error.at));
        let refusal = Refusal::from(error);
        helped(Failure::refused(refusal.detail).at(place), refusal.code.name(), &refusal.at)
    }

    /// Why the document is no intent.
    pub(crate) fn refused(&self, refusal: &Refusal) -> Failure {
        let place = self.place(&refusal.at, refusal.code.section());
        helped(Failure::refused(&refusal.detail).at(place), refusal.code.name(), &refusal.at)
    }

    /// Why the signature of the document is not believed.
    pub(crate) fn unproved(&self, error: &SignatureError) -> Failure {
        let place = self.place(&error.at, "RFC 0020 A.3 R1");
        Failure::refused(error.problem.to_string()).at(place).coded(error.code(), &error.at)
    }

    fn place(&self, at: &Pointer, section: &str) -> String {
        let position = self.locate(at).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
        format!("{}{position}{}, {section}", self.name, pointed(at))
    }
}

fn pointed(at: &Pointer) -> String {
    if at.as_str().is_empty() { String::new() } else { format!(", {at}") }
}

fn helped(failure: Failure, code: &'static str, at: &Pointer) -> Failure {
    let failure = failure.coded(code, at);
    match advice::on(code) {
        Some(advice) => failure.help(advice),
        None => failure,
    }
}
