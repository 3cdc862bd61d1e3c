//! `rialto schema plan`: who still uses which version, before one goes (RFC 0024 §3.5).

use crate::failure::{Exit, Failure};
use crate::house::DataFolder;
use crate::output::text::{json_line, shown};
use crate::output::{self, DIM, GOOD, STRONG, WARN, count, paint};
use json::{Document, Value};
use node::{Error, folder};
use schema::{CompatibilityProfile, Entry, SchemaId, Version};
use std::collections::BTreeSet;

/// Show who still uses which version of a schema
///
/// Reads what the node notes in its data folder, also while it runs; it may be some seconds old. Only issuers whose
/// signature held are counted, and of each version the thousand who asked last are named.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto schema plan --data /var/lib/rialto --version 1.2")]
pub(crate) struct Plan {
    #[command(flatten)]
    data: DataFolder,

    /// Only this version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Issuers that are named of each version; --json names all
    #[arg(long, value_name = "N", default_value_t = 10)]
    issuers: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Plan {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut told = folder::usage(&self.data.path()?).map_err(|error| match error {
            Error::Fault(fault) | Error::Exposed(fault) => {
                Failure::files(fault).help("a node writes it some seconds after it starts; check --data")
            }
            Error::Refusal(refusal) => Failure::files(format!("the node's notes cannot be read: {}", refusal.detail)),
        })?;
        if let Some(only) = &self.version {
            let only = super::negotiate::version(only)?;
            let is = |used: &Value| used.get("version").and_then(Value::as_str).and_then(Version::parse) == Some(only);
            if let Some(used) = told.get_mut("usage").and_then(Value::as_array_mut) {
                used.retain(is);
            }
        }
        let text = if self.json { json_line(&json::canonical_value(&told)) } else { self.described(&told)? };
        output::print(&text)?;
        Ok(Exit::Fine)
    }

    fn described(&self, told: &Value) -> Result<String, Failure> {
        let unreadable = || Failure::files("the node's notes cannot be read: its profile is missing or damaged");
        let profile =
            Document::of(told.get("schema_compatibility").unwrap_or(&Value::Null)).map_err(|_| unreadable())?;
        let profile = CompatibilityProfile::read(profile.root()).map_err(|_| unreadable())?;
        let mut text = String::new();
        for (schema, entry) in &profile.schemas {
            let used_ones = used_versions(told, schema);
            // What has one version and was never used has no line; the intent has several to choose from.
            if used_ones.is_empty() && schema.as_str() != node::versions::INTENT {
                continue;
            }
            text.push_str(&format!("{}\n", paint(STRONG, shown(schema.as_str()))));
            for version in entry.accepts.union(&used_ones) {
                let used = used(told, schema, *version);
                if self.version.is_none() || used.is_some() {
                    text.push_str(&self.line(entry, *version, used));
                }
            }
        }
        let written = told.get("written_at").and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("{}\n", paint(DIM, format!("as of {}", shown(written)))));
        Ok(text)
    }

    fn line(&self, entry: &Entry, version: Version, used: Option<&Value>) -> String {
        let number = |name: &str| used.and_then(|used| used.get(name)).and_then(Value::as_u64).unwrap_or_default();
        let issuers = used.and_then(|used| used.get("issuers")).and_then(Value::as_array);
        let issuers: &[Value] = issuers.map_or(&[], Vec::as_slice);
        let state = match entry.deprecations.get(&version) {
            Some(deprecation) => paint(WARN, format!("goes on {}", deprecation.sunset())),
            None if entry.default == Some(version) => paint(GOOD, "default"),
            None if !entry.accepts.contains(&version) => "by a counterparty's mapping".to_owned(),
            None => "stays".to_owned(),
        };
        let total = issuers.len() as u64 + number("forgotten");
        let told = format!(
            "{} of {}",
            count(usize::try_from(number("messages")).unwrap_or(usize::MAX), "message"),
            count(usize::try_from(total).unwrap_or(usize::MAX), "issuer")
        );
        let mut text = format!("  {:<8} {state}  {told}\n", version.to_string());
        let word = |issuer: &Value, name: &str| issuer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        for issuer in issuers.iter().take(self.issuers) {
            let messages = issuer.get("messages").and_then(Value::as_u64).unwrap_or_default();
            let line = format!("{messages:>8}  {}, last {}", shown(&word(issuer, "did")), shown(&word(issuer, "last")));
            text.push_str(&format!("    {}\n", paint(DIM, line)));
        }
        if issuers.len() > self.issuers {
            text.push_str(&format!("    {}\n", paint(DIM, format!("and {} more", issuers.len() - self.issuers))));
        }
        text
    }
}

fn used_versions(told: &Value, schema: &SchemaId) -> BTreeSet<Version> {
    let all = told.get("usage").and_then(Value::as_array).into_iter().flatten();
    let of_schema = all.filter(|used| used.get("schema").and_then(Value::as_str) == Some(schema.as_str()));
    of_schema.filter_map(|used| Version::parse(used.get("version")?.as_str()?)).collect()
}

fn used<'a>(told: &'a Value, schema: &SchemaId, version: Version) -> Option<&'a Value> {
    let is = |used: &&Value| {
        used.get("schema").and_then(Value::as_str) == Some(schema.as_str())
            && used.get("version").and_then(Value::as_str).and_then(Version::parse) == Some(version)
    };
    told.get("usage")?.as_array()?.iter().find(is)
}
