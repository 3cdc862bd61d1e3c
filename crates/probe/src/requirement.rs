//! What the texts demand, as `spec/requirements.toml` lists it.

use crate::embedded;
use anyhow::{Context, Result};
use serde::Deserialize;

/// One demand of a text, in our own words.
#[derive(Clone, Debug, Deserialize)]
pub struct Requirement {
    /// Such as `AQL-JSON-01`.
    pub id: String,
    /// What must hold.
    pub text: String,
    /// The clause behind it.
    pub section: String,
    /// The conformance level that asks for it.
    pub level: String,
    /// Who can meet it.
    pub scope: String,
}

impl Requirement {
    /// The requirements of this version of the corpus.
    pub fn all() -> Result<Vec<Self>> {
        #[derive(Deserialize)]
        struct List {
            requirement: Vec<Requirement>,
        }
        let list: List = toml::from_str(embedded::REQUIREMENTS).context("spec/requirements.toml")?;
        Ok(list.requirement)
    }
}
