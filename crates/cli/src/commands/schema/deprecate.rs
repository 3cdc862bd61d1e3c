//! `rialto schema deprecate`: announces that a version goes (RFC 0024 §3.5).

use super::negotiate::version;
use crate::clock;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::house::DataFolder;
use crate::output::text::json_line;
use crate::output::{self, DIM, GOOD, STRONG, paint};
use crate::peer::{Destination, Message, Peer};
use json::{Instant, Pointer, json};
use node::folder::{self, Ending};
use node::versions::Announcement;
use node::{Clock, Error};
use schema::{NOTICE_DAYS_USUAL, SchemaId};
use trust::Did;

/// Announce that a node will withdraw a version of a schema
///
/// The announcement goes into the change log of the node, and its date never comes closer: a later one may be announced,
/// an earlier one is refused. Answers in the version carry a warning from then on, and it is refused from its date on.
/// For a node that runs, name its address as well: the announcement is signed with the key in its data folder and sent.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto schema deprecate 1.2 --successor 1.3 --data /var/lib/rialto
  rialto schema deprecate 1.2 --sunset 2027-06-01T00:00:00Z --data /var/lib/rialto --to https://node.example

`rialto schema plan` shows who still uses it.")]
pub(crate) struct Deprecate {
    /// The version that goes
    #[arg(value_name = "VERSION")]
    version: String,

    /// The schema
    #[arg(long, value_name = "ID", default_value = node::versions::INTENT)]
    schema: String,

    /// Days from now after which it goes, at least 90
    #[arg(long, value_name = "N", default_value_t = NOTICE_DAYS_USUAL, conflicts_with = "sunset")]
    days: i64,

    /// The moment at which it goes, at least 90 days from now
    #[arg(long, value_name = "TIME")]
    sunset: Option<String>,

    /// The version to move to
    #[arg(long, value_name = "VERSION")]
    successor: Option<String>,

    #[command(flatten)]
    data: DataFolder,

    /// The address of the node, when it runs
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Deprecate {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let ending = self.ending()?;
        let announced = match &self.to {
            Some(url) => self.send(url, &ending)?,
            None => folder::deprecate(&self.data.path()?, &Clock::System, &ending).map_err(refused)?,
        };
        output::print(&if self.json { as_json(&announced) } else { described(&announced) })?;
        Ok(Exit::Fine)
    }

    fn ending(&self) -> Result<Ending, Failure> {
        let schema = SchemaId::parse(&self.schema).ok_or_else(|| {
            Failure::usage(format!("`{}` names no schema", self.schema)).help("name it by its https URL or URN")
        })?;
        let sunset = match &self.sunset {
            Some(text) => Instant::parse_rfc3339(text).ok_or_else(|| {
                Failure::usage(format!("`{text}` is no moment")).help("write it like 2027-06-01T00:00:00Z")
            })?,
            None => clock::now().plus(self.days.saturating_mul(86_400)),
        };
        let successor = self.successor.as_deref().map(version).transpose()?;
        Ok(Ending { schema, version: version(&self.version)?, sunset, successor })
    }

    /// Sends the announcement to the node that has the folder open.
    fn send(&self, url: &str, ending: &Ending) -> Result<Announcement, Failure> {
        let peer = Peer::new(&Destination { to: url.to_owned(), did_document: None })?;
        let named = peer.health().ok_or_else(|| Failure::files(format!("nobody answers at {url}")))?;
        let did =
            Did::parse(&named).map_err(|error| Failure::refused(format!("{url} is called `{named}`: {error}")))?;
        let data = self.data.path()?;
        let (announced, bytes) = folder::announcement(&data, &did, &Clock::System, ending).map_err(refused)?;
        let text = Text { name: "the announcement".to_owned(), bytes: bytes.clone() };
        peer.ask(Message::Publish { bytes }, &text)?;
        Ok(announced)
    }
}

fn refused(error: Error) -> Failure {
    match error {
        Error::Refusal(refusal) => {
            let at = refusal.at.as_str().trim_start_matches("/record");
            let at = Pointer::parse(at).unwrap_or_default();
            let failure = Failure::refused(refusal.detail).coded(refusal.code, &at);
            match crate::advice::on(refusal.code) {
                Some(advice) => failure.help(advice),
                None => failure,
            }
        }
        Error::Exposed(what) => Failure::exposed(what),
        Error::Fault(fault) => Failure::files(fault).help("a node that runs is told with --to URL"),
    }
}

fn as_json(announced: &Announcement) -> String {
    let told = json!({
        "record": announced.record,
        "deprecation": announced.deprecation.warning(&announced.schema, announced.version),
    });
    json_line(&json::canonical_value(&told))
}

fn described(announced: &Announcement) -> String {
    let Announcement { version, deprecation, schema, record } = announced;
    format!(
        "{} version {} goes on {}\n  {}\n  {}\n",
        paint(GOOD, "announced:"),
        paint(STRONG, version),
        deprecation.sunset(),
        paint(DIM, schema),
        paint(DIM, record)
    )
}
