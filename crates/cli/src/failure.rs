//! How a command ends: the exit codes, and failures that say what is wrong, where, and what to do.
//!
//! INVARIANT: the numbers are stable; scripts match on them.

use crate::output::text::shown;
use crate::output::{BAD, DIM, paint};
use json::{Pointer, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// The exit codes as `rialto --help` explains them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done; also when an answer is empty
  1  the answer is no: a document is refused or not verified, an answer breaks
     a rule, a node refuses, lint found a mistake, there is no such candidate
  2  the command line is wrong
  3  a file, a key, a data folder or a node cannot be used
  78 others can read a key; nothing is done with it until it is closed";

/// How a command that ran to its end ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Fine,
    /// Done, and the answer is no.
    No,
    /// Done as far as the files allowed.
    Files,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Fine => Self::from(0),
            Exit::No => Self::from(1),
            Exit::Files => Self::from(3),
        }
    }
}

/// Why a command stopped.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    code: Option<Cow<'static, str>>,
    pointer: Option<Pointer>,
    message: String,
    place: Option<Box<str>>,
    help: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Refused,
    Usage,
    Files,
    Exposed,
    /// Whoever read our output has stopped reading, which is no failure of ours.
    ReaderLeft,
}

impl Failure {
    /// A document is refused, or the answer is no.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// The command line asks for something impossible.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// A file, a key, a data folder or a node is not usable.
    pub(crate) fn files(message: impl Into<String>) -> Self {
        Self::new(Kind::Files, message)
    }

    /// A key lies open to others.
    pub(crate) fn exposed(message: impl Into<String>) -> Self {
        Self::new(Kind::Exposed, message)
    }

    /// The system refuses a file; `doing` reads like `read` or `write`.
    pub(crate) fn io(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "check the path; `-` stands for standard input",
            std::io::ErrorKind::PermissionDenied => "check who owns the file and its permissions",
            _ => "check the path and the disk",
        };
        Self::files(format!("cannot {doing} `{}`: {error}", path.display())).help(help)
    }

    /// Our own output cannot be written.
    pub(crate) fn output(error: &std::io::Error) -> Self {
        let kind = if error.kind() == std::io::ErrorKind::BrokenPipe { Kind::ReaderLeft } else { Kind::Files };
        Self::new(kind, format!("cannot write the output: {error}"))
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, code: None, pointer: None, message: message.into(), place: None, help: None }
    }

    /// Adds the stable code and the place in the document, for programs.
    #[must_use]
    pub(crate) fn coded(mut self, code: impl Into<Cow<'static, str>>, pointer: &Pointer) -> Self {
        self.code = Some(code.into());
        self.pointer = Some(pointer.clone());
        self
    }

    /// Adds where it is, for people.
    #[must_use]
    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into().into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn help(mut self, advice: impl Into<String>) -> Self {
        self.help = Some(advice.into().into());
        self
    }

    /// The stable code, where there is one.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// What is wrong, in words.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do, where somebody knows.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The failure for programs; `None` when it is not about a document.
    pub(crate) fn to_value(&self) -> Option<Value> {
        let code = self.code.as_ref()?;
        let at = self.pointer.as_ref().map(Pointer::as_str);
        Some(json!({"at": at, "code": code, "help": self.help, "message": self.message}))
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self.kind {
            Kind::ReaderLeft => return ExitCode::from(0),
            Kind::Refused | Kind::Usage | Kind::Files | Kind::Exposed => crate::output::say(&self.to_string()),
        }
        ExitCode::from(match self.kind {
            Kind::ReaderLeft => 0,
            Kind::Refused => 1,
            Kind::Usage => 2,
            Kind::Files => 3,
            Kind::Exposed => 78,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.code.as_ref().map_or("error:".to_owned(), |code| format!("error[{}]:", shown(code)));
        write!(out, "{} {}", paint(BAD, error), shown(&self.message))?;
        if let Some(place) = &self.place {
            write!(out, "\n  {} {}", paint(DIM, "at"), shown(place))?;
        }
        if let Some(help) = &self.help {
            write!(out, "\n  {} {}", paint(DIM, "help:"), shown(help))?;
        }
        Ok(())
    }
}
