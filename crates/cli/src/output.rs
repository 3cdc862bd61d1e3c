//! What people see: styles, widths, and the two streams.
//!
//! The answer goes to standard output, everything about it to standard error. Colours are left out where nobody sees
//! them: not on a terminal, or with `NO_COLOR`.
//!
//! INVARIANT: text of strangers passes [`text::shown`] or [`text::json_line`] before it is printed.

pub(crate) mod decision;
pub(crate) mod question;
pub(crate) mod resolution;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod violations;

use crate::environment;
use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use std::fmt;
use std::io::{IsTerminal, Write};

/// What went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What did not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What wants a second look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// What may be skipped.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Headings and names.
pub(crate) const STRONG: Style = Style::new().bold();
/// No style at all.
pub(crate) const PLAIN: Style = Style::new();

/// Lines are never laid out wider or narrower than this.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=160;

/// The width where nobody told: a file, a pipe.
const WIDTH_DEFAULT: usize = 100;

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

/// Prints a line to standard error; when even that fails there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

/// Says something by the way.
pub(crate) fn note(message: &str) {
    say(&format!("{} {}", paint(DIM, "note:"), text::shown(message)));
}

/// Says something that may surprise.
pub(crate) fn warn(message: &str) {
    say(&format!("{} {}", paint(WARN, "warning:"), text::shown(message)));
}

/// How many columns there are.
pub(crate) fn width() -> usize {
    let terminal = || {
        let out = std::io::stdout();
        let size = out.is_terminal().then(|| terminal_size::terminal_size_of(out)).flatten();
        size.map(|(width, _)| usize::from(width.0))
    };
    let width = environment::columns().or_else(terminal).unwrap_or(WIDTH_DEFAULT);
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// A piece of text in a style.
pub(crate) fn paint(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// `1 candidate`, `2 candidates`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
