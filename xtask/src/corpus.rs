//! The conformance corpus and the requirements it answers, as data.
//!
//! Only what the chores need is read here; what a case means is the business of `conformance`.

use crate::files::TextFile;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

/// Where the requirements stand.
pub const REQUIREMENTS: &str = "spec/requirements.toml";

/// One demand of a text, in our own words.
#[derive(Debug, Deserialize)]
pub struct Requirement {
    /// Such as `AQL-JSON-01`.
    pub id: String,
    /// What must hold.
    pub text: String,
    /// The clause behind it.
    pub section: String,
    /// The conformance level that asks for it.
    pub level: String,
    /// Who can meet it: `language`, `schema`, `description`, `agent`, `hosting`, `provider`, `node`, `feed`, `payment`, `issuer`, `broker`, `substrate`.
    pub scope: String,
    /// A test that shows it, `file::function`, where data cannot: cost, or what a program must not do.
    pub test: Option<String>,
}

/// A file of cases.
#[derive(Debug, Deserialize)]
pub struct CaseFile {
    /// What its cases are about.
    pub theme: String,
    /// The clause behind them.
    pub section: String,
    /// At least one.
    pub cases: Vec<Case>,
    /// Where the file stands.
    #[serde(skip)]
    pub path: String,
}

/// One case; its inputs stay unread.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Unique in the whole corpus.
    pub id: String,
    /// The requirement it answers.
    pub requirement: String,
    /// What must come out.
    pub expect: Value,
}

/// The requirements among the files of the repository.
pub fn requirements(files: &[TextFile]) -> Result<Vec<Requirement>> {
    #[derive(Deserialize)]
    struct List {
        requirement: Vec<Requirement>,
    }
    match files.iter().find(|file| file.path == REQUIREMENTS) {
        Some(file) => {
            let list: List = toml::from_str(&file.text).with_context(|| format!("`{REQUIREMENTS}` cannot be read"))?;
            Ok(list.requirement)
        }
        None => bail!("`{REQUIREMENTS}` is missing"),
    }
}

/// The files of cases among the files of the repository.
pub fn cases(files: &[TextFile]) -> Result<Vec<CaseFile>> {
    // Attacks have shapes and a reader of their own.
    let is_case = |path: &str| path.starts_with("conformance/") && !path.starts_with("conformance/attacks/");
    let corpus = files.iter().filter(|file| is_case(&file.path) && file.ends(".json"));
    corpus
        .map(|file| {
            let mut read: CaseFile = serde_json::from_str(&file.text)
                .with_context(|| format!("`{}` is no file of conformance cases", file.path))?;
            read.path.clone_from(&file.path);
            Ok(read)
        })
        .collect()
}
