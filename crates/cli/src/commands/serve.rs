//! `rialto serve`: a node that answers over HTTP until it is told to stop.

use crate::commands::OverBudgetChoice;
use crate::failure::{Exit, Failure};
use crate::house::{self, DataFolder};
use crate::output::{self, DIM, GOOD, STRONG, paint};
use crate::serving::{Serving, cannot_serve};
use json::json;
use node::{Config, DoorPolicy, Node};
use server::Tls;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use tracing_subscriber::EnvFilter;

/// Answer intents over HTTP
///
/// Keeps records in the data folder, answers signed intents, and explains its answers. Plain HTTP is served on
/// loopback only; elsewhere give a certificate.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto serve
  rialto serve --data /var/lib/rialto --listen 0.0.0.0:443 --public-url https://node.example \\
      --certificate chain.pem --certificate-key key.pem")]
pub(crate) struct Serve {
    #[command(flatten)]
    data: DataFolder,

    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,

    /// The address under which others reach the node; an https one gives it the name did:web:…
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// The certificate chain for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "certificate_key")]
    certificate: Option<PathBuf>,

    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    certificate_key: Option<PathBuf>,

    /// Messages of one issuer that are answered in a second [default: no bound on loopback, else 10]
    #[arg(long, value_name = "N")]
    requests_per_second: Option<NonZeroU32>,

    /// Where candidates go that cost more than the budget
    #[arg(long, value_enum, default_value = "flag")]
    over_budget: OverBudgetChoice,

    /// Let the node fetch DID documents from loopback and private addresses; for test networks
    #[arg(long)]
    private_networks: bool,

    /// What is logged to standard error: error, warn, info, debug, or a filter such as `server=debug`
    #[arg(long, value_name = "LEVEL", env = "RIALTO_LOG", default_value = "info")]
    log: String,

    /// Log lines and the line that tells the address as JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Messages of one issuer in a second, where strangers can ask.
const STRANGERS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        self.start_logging()?;
        let config = self.config()?;
        let tls = match (&self.certificate, &self.certificate_key) {
            (Some(certificate), Some(key)) => Some(Tls::read(certificate, key).map_err(|error| cannot_serve(&error))?),
            _ => None,
        };
        let node = house::open(&config)?;
        let serving = Serving::start(node, self.listen, self.public_url.as_deref(), tls)?;
        self.tell(serving.url(), serving.node())?;
        serving.until_told()?;
        Ok(Exit::Fine)
    }

    fn config(&self) -> Result<Config, Failure> {
        let strangers = (!self.listen.ip().is_loopback()).then_some(STRANGERS_PER_SECOND);
        Ok(Config {
            data: self.data.path()?,
            public_url: self.public_url.clone(),
            requests_per_second: self.requests_per_second.or(strangers),
            over_budget: self.over_budget.into(),
            door: DoorPolicy { private_networks: self.private_networks, ..DoorPolicy::default() },
            ..Config::default()
        })
    }

    /// One line when the node is ready, for people or for programs.
    fn tell(&self, url: &str, node: &Node) -> Result<(), Failure> {
        let did = node.identity().did().as_str();
        if self.json {
            return output::print(&format!("{}\n", json!({"address": url, "did": did})));
        }
        let records: u64 = node.counts().unwrap_or_default().iter().map(|(_, count)| count).sum();
        output::print(&format!(
            "{} {}\n  {} {did}\n  {} {records} candidates, {url}/docs describes the interface\n",
            paint(GOOD, "listening on"),
            paint(STRONG, url),
            paint(DIM, "as"),
            paint(DIM, "with"),
        ))
    }

    fn start_logging(&self) -> Result<(), Failure> {
        let filter = EnvFilter::try_new(&self.log).map_err(|error| {
            Failure::usage(format!("--log `{}` is no level or filter: {error}", self.log)).help("try `info` or `debug`")
        })?;
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        // A second call is the only way this fails, and there is none.
        let _ = if self.json { log.json().try_init() } else { log.try_init() };
        Ok(())
    }
}
