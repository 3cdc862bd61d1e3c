//! What is found in a description: the rule, the place, and how much it weighs for a strict and for a lenient reader.
//!
//! Strict is the text. Lenient takes the documents that exist, the text's own sample among them, as far as they can be
//! understood without guessing (decisions/0160).
//!
//! INVARIANT: the verdict counts every finding, also those beyond the bound that are not kept; nothing that a stranger
//! wrote is repeated.

use crate::Rule;
use json::Pointer;
use std::borrow::Cow;

/// Findings of one document that are kept; the others are counted.
pub const FINDINGS_MAX: usize = 256;

/// Who judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the letter of the text.
    Strict,
    /// By what is in use.
    Lenient,
}

/// What a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Worth knowing.
    Info,
    /// Better otherwise.
    Warning,
    /// The document is not accepted.
    Error,
}

impl Grade {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a finding weighs for the strict and for the lenient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grades(pub(crate) Option<Grade>, pub(crate) Option<Grade>);

pub(crate) const EE: Grades = Grades(Some(Grade::Error), Some(Grade::Error));
pub(crate) const EW: Grades = Grades(Some(Grade::Error), Some(Grade::Warning));
pub(crate) const E0: Grades = Grades(Some(Grade::Error), None);
pub(crate) const WW: Grades = Grades(Some(Grade::Warning), Some(Grade::Warning));
pub(crate) const WI: Grades = Grades(Some(Grade::Warning), Some(Grade::Info));
pub(crate) const W0: Grades = Grades(Some(Grade::Warning), None);
pub(crate) const II: Grades = Grades(Some(Grade::Info), Some(Grade::Info));
pub(crate) const NONE_W: Grades = Grades(None, Some(Grade::Warning));

/// One thing that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule it is about.
    pub rule: Rule,
    /// Where.
    pub at: Pointer,
    /// What is the case.
    pub message: Cow<'static, str>,
    grades: Grades,
}

impl Finding {
    /// What it weighs; nothing where this reader does not mind.
    pub fn grade(&self, mode: Mode) -> Option<Grade> {
        match mode {
            Mode::Strict => self.grades.0,
            Mode::Lenient => self.grades.1,
        }
    }
}

/// All that was found in one document.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    omitted: usize,
    worst: (Option<Grade>, Option<Grade>),
}

impl Findings {
    pub(crate) fn add(&mut self, rule: Rule, at: &Pointer, grades: Grades, message: impl Into<Cow<'static, str>>) {
        self.worst = (self.worst.0.max(grades.0), self.worst.1.max(grades.1));
        if self.kept.len() < FINDINGS_MAX {
            self.kept.push(Finding { rule, at: at.clone(), message: message.into(), grades });
        } else {
            self.omitted += 1;
        }
    }

    /// Those that are kept, in the order of the rules' tables.
    pub fn all(&self) -> &[Finding] {
        &self.kept
    }

    /// Those that this reader minds, with their weight.
    pub fn of(&self, mode: Mode) -> impl Iterator<Item = (Grade, &Finding)> {
        self.kept.iter().filter_map(move |finding| finding.grade(mode).map(|grade| (grade, finding)))
    }

    /// How many are not kept.
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// The gravest.
    pub fn worst(&self, mode: Mode) -> Option<Grade> {
        match mode {
            Mode::Strict => self.worst.0,
            Mode::Lenient => self.worst.1,
        }
    }

    /// Whether this reader accepts the document.
    pub fn passes(&self, mode: Mode) -> bool {
        self.worst(mode) != Some(Grade::Error)
    }
}
