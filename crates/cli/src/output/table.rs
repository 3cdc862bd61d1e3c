//! Tables without lines: columns of their natural width, and a last column of sentences.
//!
//! Where the sentences would get too narrow, everything behind the name moves below it. Names stay whole, so that they
//! can be copied.

use super::text::{columns, wrap};
use super::{DIM, PLAIN, paint};
use anstyle::Style;
use std::ops::Range;

/// Sentences narrower than this move below.
const SENTENCE_MIN: usize = 44;

/// Spaces between columns.
const GAP: usize = 2;

/// How a column is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A piece of text in a style.
#[derive(Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, PLAIN)
    }
}

/// A table; its last column holds sentences.
pub(crate) struct Table {
    aligns: Vec<Align>,
    /// The widest cell of each column so far.
    widths: Vec<usize>,
    /// The column that names the row; what follows may move below.
    name: usize,
    /// The headings, then the rows.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with its headings; `name` is the column that names a row.
    pub(crate) fn new(name: usize, headings: &[(&str, Align)]) -> Self {
        let aligns = headings.iter().map(|(_, align)| *align).collect();
        let mut table = Self { aligns, widths: vec![0; headings.len()], name, rows: Vec::new() };
        table.row(headings.iter().map(|(heading, _)| Cell::new(*heading, DIM)).collect());
        table
    }

    /// Adds a row with one cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = columns(&cell.text).max(*width);
        }
        self.rows.push(cells);
    }

    /// The table in `width` columns.
    pub(crate) fn draw(&self, width: usize) -> String {
        let last = self.last();
        if width >= self.used(0..last) + self.narrowest() {
            return self.rows.iter().map(|row| self.lines(row, 0..last, 0, width)).collect();
        }
        let indent = self.used(0..self.name).max(GAP);
        let below = self.name + 1;
        let both = |row: &Vec<Cell>| {
            let named = self.padded(row, 0..below);
            format!("{}\n{}", named.trim_end(), self.lines(row, below..last, indent, width))
        };
        self.rows.iter().map(both).collect()
    }

    /// The least room in which sentences stand well: none of their words is broken.
    fn narrowest(&self) -> usize {
        let last = self.last();
        let words = self.rows.iter().filter_map(|row| row.get(last)).flat_map(|cell| cell.text.split(' '));
        let sentence = self.widths.get(last).copied().unwrap_or(0).min(SENTENCE_MIN);
        words.map(columns).max().unwrap_or(0).max(sentence)
    }

    /// Some columns of a row, and its sentences wrapped behind them.
    fn lines(&self, row: &[Cell], range: Range<usize>, indent: usize, width: usize) -> String {
        let Some(sentence) = row.get(self.last()) else { return String::new() };
        let used = indent + self.used(range.clone());
        let mut lead = " ".repeat(indent) + &self.padded(row, range);
        let mut drawn = String::new();
        for line in wrap(&sentence.text, width.saturating_sub(used)) {
            drawn.push_str(&format!("{lead}{}\n", paint(sentence.style, line)));
            lead = " ".repeat(used);
        }
        drawn
    }

    fn padded(&self, row: &[Cell], range: Range<usize>) -> String {
        let mut line = String::new();
        let columned = row.iter().zip(&self.widths).zip(&self.aligns);
        for ((cell, width), align) in columned.skip(range.start).take(range.len()) {
            let pad = " ".repeat(width.saturating_sub(columns(&cell.text)));
            let text = paint(cell.style, &cell.text);
            match align {
                Align::Left => line.push_str(&format!("{text}{pad}  ")),
                Align::Right => line.push_str(&format!("{pad}{text}  ")),
            }
        }
        line
    }

    /// Columns of the terminal that some columns of the table take, gaps included.
    fn used(&self, range: Range<usize>) -> usize {
        self.widths.iter().skip(range.start).take(range.len()).map(|width| width + GAP).sum()
    }

    fn last(&self) -> usize {
        self.aligns.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: usize) -> String {
        let headings = [("#", Align::Right), ("name", Align::Left), ("cost", Align::Right), ("why", Align::Left)];
        let mut table = Table::new(1, &headings);
        let why = "it is the best of all that were found";
        table.row(vec!["1".into(), "a longer name".into(), "5.00".into(), why.into()]);
        table.row(vec!["10".into(), "東京".into(), "12.50".into(), "it is good".into()]);
        anstream::adapter::strip_str(&table.draw(width)).to_string()
    }

    #[test]
    fn a_wide_table_keeps_its_sentences_beside() {
        assert_eq!(
            drawn(80),
            " #  name            cost  why\n\
             \u{20}1  a longer name   5.00  it is the best of all that were found\n\
             10  東京           12.50  it is good\n"
        );
    }

    #[test]
    fn a_narrow_table_puts_everything_below_the_name() {
        assert_eq!(
            drawn(40),
            " #  name\n\
             \u{20}    cost  why\n\
             \u{20}1  a longer name\n\
             \u{20}    5.00  it is the best of all that\n\
             \u{20}          were found\n\
             10  東京\n\
             \u{20}   12.50  it is good\n"
        );
    }
}
