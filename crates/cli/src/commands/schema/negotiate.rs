//! `rialto schema negotiate`: the handshake with a provider, and what follows from it (RFC 0024 §3.2).

use crate::clock;
use crate::failure::{Exit, Failure};
use crate::handshake::{self, OURS, When};
use crate::output::text::{json_line, shown};
use crate::output::{self, DIM, GOOD, STRONG, WARN, paint};
use crate::peer::{Destination, Peer};
use json::{Value, json};
use node::handshake::{Met, Wanted};
use schema::{Permits, SchemaId, Version};
use std::collections::BTreeSet;

/// Agree with a provider about the version of a schema
///
/// Reads the provider's compatibility profile, takes the highest version that both sides know, and remembers it with its
/// evidence. A provider that offers less than before without having announced it is refused. With --ours it is only said
/// what would be.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto schema negotiate https://node.example
  rialto schema negotiate http://127.0.0.1:7420 --ours 1.2 --json

Exits with 1 when there is no agreement, and says what would work.")]
pub(crate) struct Negotiate {
    /// The address of the provider: https, or http on this machine
    #[arg(value_name = "URL")]
    url: String,

    /// The schema
    #[arg(long, value_name = "ID", default_value = node::versions::INTENT)]
    schema: String,

    /// Versions that this side knows, separated by commas
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_values = OURS)]
    ours: Vec<String>,

    /// Answers may come in a later version
    #[arg(long)]
    permit_upgrade: bool,

    /// Answers may come in an earlier version
    #[arg(long)]
    permit_downgrade: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Negotiate {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let peer = Peer::new(&Destination { to: self.url.clone(), did_document: None })?;
        let met = self.wanted().and_then(|wanted| handshake::agree(&peer, &wanted, When::Now, clock::now()));
        match met {
            Ok(met) => {
                output::print(&if self.json { as_json(met.as_ref()) } else { described(met.as_ref()) })?;
                Ok(Exit::Fine)
            }
            Err(failure) if self.json => match failure.to_value() {
                Some(refused) => {
                    output::print(&json_line(&json::canonical_value(&json!({"agreed": false, "refused": refused}))))?;
                    Ok(Exit::No)
                }
                None => Err(failure),
            },
            Err(failure) => Err(failure),
        }
    }

    fn wanted(&self) -> Result<Wanted, Failure> {
        let schema = SchemaId::parse(&self.schema).ok_or_else(|| {
            Failure::usage(format!("`{}` names no schema", self.schema)).help("name it by its https URL or URN")
        })?;
        let permits = Permits { upgrade: self.permit_upgrade, downgrade: self.permit_downgrade };
        Ok(Wanted { schema, ours: self.ours.iter().map(|text| version(text)).collect::<Result<_, _>>()?, permits })
    }
}

/// A version of the command line.
pub(super) fn version(text: &str) -> Result<Version, Failure> {
    let wrong = || Failure::usage(format!("`{text}` is no version")).help("write 1.2 or 1.2.0");
    Version::parse(text).ok_or_else(wrong)
}

fn as_json(met: Option<&Met>) -> String {
    let told = match met {
        None => json!({"agreed": false, "profile": false}),
        Some(Met { agreement, evidence, .. }) => {
            let mut told = json!({
                "agreed": true, "schema": agreement.schema.as_str(), "version": agreement.version.to_string(),
                "answer": agreement.answer.to_string(), "evidence": evidence,
            });
            if let (Some(members), Some((version, deprecation))) = (told.as_object_mut(), &agreement.deprecation) {
                let warning = deprecation.warning(&agreement.schema, *version);
                members.insert("deprecation_warning".to_owned(), warning);
            }
            told
        }
    };
    json_line(&json::canonical_value(&told))
}

fn described(met: Option<&Met>) -> String {
    let Some(Met { agreement, entry, evidence }) = met else {
        let told = "the provider publishes no versions of this schema; it is asked in its default";
        return format!("{} {told}\n", paint(WARN, "no profile:"));
    };
    let list = |versions: &BTreeSet<Version>| versions.iter().map(Version::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "{} {} of {}\n",
        paint(GOOD, "agreed:"),
        paint(STRONG, agreement.version),
        shown(agreement.schema.as_str())
    );
    if agreement.answer != agreement.version {
        text.push_str(&format!("  answers come in {}\n", agreement.answer));
    }
    if let Some((version, deprecation)) = &agreement.deprecation {
        let goes = format!("{version} is withdrawn on {}", deprecation.sunset());
        text.push_str(&format!("  {} {goes}\n", paint(WARN, "deprecated:")));
    }
    let default = entry.default.map(|default| default.to_string()).unwrap_or_default();
    let told = format!("accepts {}; produces {}; default {default}", list(&entry.accepts), list(&entry.produces));
    let did = evidence.get("did").and_then(Value::as_str).unwrap_or("nobody");
    text.push_str(&format!("  {}\n", paint(DIM, format!("{} {told}", shown(did)))));
    for link in &entry.mappings {
        let line = format!("mapping {} to {}: {}", link.from, link.to, shown(&link.url));
        text.push_str(&format!("  {}\n", paint(DIM, line)));
    }
    let digest = evidence.get("manifest_sha256").and_then(Value::as_str).unwrap_or_default();
    text.push_str(&format!("  {}\n", paint(DIM, format!("the manifest was {digest}"))));
    text
}
