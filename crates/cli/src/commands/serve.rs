//! `rialto serve`: a node that answers over HTTP until it is told to stop.

use crate::commands::OverBudgetChoice;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::hosting::HostedAgents;
use crate::house::{self, DataFolder};
use crate::ledger::refused;
use crate::output::{self, DIM, GOOD, STRONG, paint};
use crate::serving::{Role, Serving, cannot_serve, check_descriptors};
use json::json;
use node::{Config, DoorPolicy, EDGE, Edge, Operator, RETENTION_DAYS_MIN};
use payment::wallet::Holdings;
use rustix::process::{Resource, Rlimit, setrlimit};
use schema::SchemaId;
use server::{Bounds, Tls};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};
use trust::Did;

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

    /// What the node does; a wallet pays, for development and tests, and answers no intents
    #[arg(long, value_enum, default_value = "resolver")]
    role: RoleChoice,

    /// With --role wallet: what it holds and whom it knows, as JSON [default: one instrument of each common kind]
    #[arg(long, value_name = "FILE")]
    holdings: Option<PathBuf>,

    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,

    /// An address of this machine that answers /health alone, however many connections the node has
    #[arg(long, value_name = "ADDRESS")]
    health_listen: Option<SocketAddr>,

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

    /// Call the node did:wba:… instead, at the same address
    #[arg(long, requires = "public_url")]
    wba: bool,

    /// Also take the older DIDWba header of agents, which covers neither path nor body, for requests that only read
    #[arg(long)]
    legacy_authentication: bool,
    /// Also answer calls of `search` and `explain` that nobody proves to have sent; their intents must be signed
    #[arg(long)]
    anonymous_search: bool,

    /// Decide about intents for actions only when they are meant for this node: the issuer signed the request, or a
    /// delegation names the node as its audience
    #[arg(long)]
    audience_binding: bool,

    /// Let the node fetch DID documents from loopback and private addresses; for test networks
    #[arg(long)]
    private_networks: bool,

    /// Answer discovery intents of this issuer without checking their signature, as the public test suite's probe
    /// expects; on loopback only
    #[arg(long, value_name = "DID", value_parser = did, conflicts_with = "public_url")]
    unverified_issuer: Option<Did>,

    /// Requests of one source address that are answered in a second [default: no bound on loopback, else 20]
    #[arg(long, value_name = "N")]
    requests_per_source: Option<NonZeroU32>,

    /// Questions of one owner in a day that differ from each other [default: no bound]
    #[arg(long, value_name = "N")]
    questions_per_day: Option<NonZeroU32>,

    /// A file outside the data folder, on another disk best, that remembers how far the history has come; a data folder
    /// that was put back to an earlier state is noticed, and nothing is taken in
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,

    /// Connections at a time; there must be a file descriptor for each
    #[arg(long, value_name = "N", default_value_t = EDGE.connections, value_parser = connections)]
    connections: usize,

    /// Connections of one source address at a time [default: no bound on loopback, else 64]
    #[arg(long, value_name = "N", value_parser = connections)]
    connections_per_source: Option<usize>,

    /// Who answers for the node, in its manifest
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,

    /// Where people write to the operator, in its manifest
    #[arg(long, value_name = "EMAIL")]
    contact: Option<String>,

    /// A country whose law holds, two letters; may be repeated
    #[arg(long = "jurisdiction", value_name = "COUNTRY", value_parser = country)]
    jurisdictions: Vec<String>,

    /// Days for which subscribers can read again what they were told, 7 at least [default: 30]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(i64::from(RETENTION_DAYS_MIN)..=3650))]
    feed_retention_days: Option<u32>,

    /// Who publishes a schema, where that is not the host of its URL: their mappings are taken; may be repeated
    #[arg(long = "schema-publisher", value_name = "SCHEMA=DID", value_parser = publisher)]
    schema_publishers: Vec<(SchemaId, Did)>,

    #[command(flatten)]
    agents: HostedAgents,

    /// The OpenTelemetry collector that spans are sent to, OTLP over HTTP, such as http://127.0.0.1:4318
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,

    /// What is logged to standard error: error, warn, info, debug, or a filter such as `server=debug`
    #[arg(long, value_name = "LEVEL", env = "RIALTO_LOG", default_value = "info")]
    log: String,

    /// Log lines and the line that tells the address as JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What a node does.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RoleChoice {
    /// Answers intents
    Resolver,
    /// Grants and settles payment sessions
    Wallet,
}

/// Messages of one issuer in a second, where strangers can ask.
const STRANGERS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let telemetry = self.start_telemetry()?;
        leave_no_dump();
        let config = self.config()?;
        let tls = match (&self.certificate, &self.certificate_key) {
            (Some(certificate), Some(key)) => Some(Tls::read(certificate, key).map_err(|error| cannot_serve(&error))?),
            _ => None,
        };
        check_descriptors(self.connections)?;
        let edge = config.edge;
        let node = house::open(&config)?;
        let (per_source, connections_per_source) = (self.requests_per_source, self.connections_per_source);
        let (listen, health, url) = (self.listen, self.health_listen, self.public_url.as_deref());
        let serving = Serving::start_with(node, self.role()?, listen, health, url, tls, |bounds| Bounds {
            connections: edge.connections,
            source_connections: connections_per_source.or(bounds.source_connections),
            source_requests_per_second: per_source.or(bounds.source_requests_per_second),
            ..bounds
        })?;
        self.tell(&serving)?;
        let served = serving.until_told();
        telemetry.close();
        served.map(|()| Exit::Fine)
    }

    fn config(&self) -> Result<Config, Failure> {
        if self.unverified_issuer.is_some() && !self.listen.ip().is_loopback() {
            return Err(Failure::usage(format!(
                "--unverified-issuer is for loopback only, and {} is not",
                self.listen
            ))
            .help("listen on 127.0.0.1, or let the issuer sign"));
        }
        let strangers = (!self.listen.ip().is_loopback()).then_some(STRANGERS_PER_SECOND);
        Ok(Config {
            data: self.data.path()?,
            public_url: self.public_url.clone(),
            requests_per_second: self.requests_per_second.or(strangers),
            over_budget: self.over_budget.into(),
            door: DoorPolicy { private_networks: self.private_networks, ..DoorPolicy::default() },
            unverified_issuer: self.unverified_issuer.clone(),
            operator: self.operator(),
            questions_per_day: self.questions_per_day,
            witness: self.witness.clone(),
            feed_retention_days: self.feed_retention_days,
            schema_publishers: self.schema_publishers.clone(),
            wba: self.wba,
            legacy_authentication: self.legacy_authentication,
            anonymous_search: self.anonymous_search,
            audience_binding: self.audience_binding,
            edge: Edge {
                connections: self.connections,
                source_connections: self.connections_per_source.unwrap_or(EDGE.source_connections),
                ..EDGE
            },
            ..Config::default()
        })
    }

    fn role(&self) -> Result<Role, Failure> {
        match (self.role, &self.holdings) {
            (RoleChoice::Resolver, None) => match self.agents.read()? {
                Some(hosting) => Ok(Role::Hosting(Box::new(hosting))),
                None => Ok(Role::Resolver),
            },
            (RoleChoice::Resolver, Some(_)) => Err(Failure::usage("--holdings is for --role wallet")),
            (RoleChoice::Wallet, None) => Ok(Role::Wallet(self.data.path()?, Holdings::usual())),
            (RoleChoice::Wallet, Some(path)) => {
                let text = Text::read(path)?;
                let holdings = Holdings::read(&text.document(&json::Limits::DOCUMENT)?);
                let holdings = holdings.map_err(|refusal| refused(&text.name, &refusal))?;
                Ok(Role::Wallet(self.data.path()?, holdings))
            }
        }
    }

    fn operator(&self) -> Operator {
        let nobody = Operator::default();
        if self.contact.is_none() && !self.listen.ip().is_loopback() {
            tracing::warn!("the manifest names nobody to write to; say so with --contact");
        }
        let jurisdictions =
            if self.jurisdictions.is_empty() { nobody.jurisdictions } else { self.jurisdictions.clone() };
        Operator {
            name: self.operator.clone().unwrap_or(nobody.name),
            contact_email: self.contact.clone().unwrap_or(nobody.contact_email),
            jurisdictions,
        }
    }

    /// One line when the node is ready, for people or for programs.
    fn tell(&self, serving: &Serving) -> Result<(), Failure> {
        let (url, node) = (serving.url(), serving.node());
        let did = node.identity().did().as_str();
        if self.json {
            let mut told = json!({"address": url, "did": did});
            if let (Some(members), Some(health)) = (told.as_object_mut(), serving.health_url()) {
                members.insert("health_address".to_owned(), json!(health));
            }
            return output::print(&format!("{told}\n"));
        }
        if let RoleChoice::Wallet = self.role {
            let (listening, url, known_as) = (paint(GOOD, "listening on"), paint(STRONG, url), paint(DIM, "as"));
            return output::print(&format!(
                "{listening} {url}\n  {known_as} {did}\n  a wallet for development and tests; no bank stands behind it\n"
            ));
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

    /// Logs to standard error, and spans to a collector where one is named.
    fn start_telemetry(&self) -> Result<Telemetry, Failure> {
        let filter = EnvFilter::try_new(&self.log).map_err(|error| {
            Failure::usage(format!("--log `{}` is no level or filter: {error}", self.log)).help("try `info` or `debug`")
        })?;
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let log = if self.json { log.json().with_filter(filter).boxed() } else { log.with_filter(filter).boxed() };
        let (spans, telemetry) = self.spans()?;
        // A second call is the only way this fails, and there is none.
        let _ = tracing_subscriber::registry().with(log).with(spans).try_init();
        Ok(telemetry)
    }

    #[cfg(feature = "otel")]
    fn spans<S>(&self) -> Result<(Option<impl Layer<S> + use<S>>, Telemetry), Failure>
    where
        S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    {
        let named = self.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
        let exporter = named.map(server::Exporter::new).transpose();
        let exporter = exporter.map_err(|error| Failure::usage(error.to_string()))?;
        Ok((exporter.as_ref().map(server::Exporter::layer), Telemetry(exporter)))
    }

    #[cfg(not(feature = "otel"))]
    fn spans(&self) -> Result<(Option<tracing_subscriber::layer::Identity>, Telemetry), Failure> {
        Ok((None, Telemetry()))
    }
}

/// A dump of the memory would hold the node's key.
fn leave_no_dump() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "the system may write the memory of this process to disk when it crashes");
    }
}

/// What is still to be sent when the node has stopped.
struct Telemetry(#[cfg(feature = "otel")] Option<server::Exporter>);

impl Telemetry {
    fn close(self) {
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.0 {
            exporter.close();
        }
    }
}

/// A country as a manifest writes it.
fn country(text: &str) -> Result<String, String> {
    let letters = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    letters.then(|| text.to_owned()).ok_or_else(|| "two capital letters, such as IT".to_owned())
}

fn publisher(text: &str) -> Result<(SchemaId, Did), String> {
    let (schema, publisher) = text.rsplit_once('=').ok_or("write it as SCHEMA=DID")?;
    let schema = SchemaId::parse(schema).ok_or("a schema is named by its https URL or URN")?;
    Ok((schema, Did::parse(publisher).map_err(|error| error.to_string())?))
}

fn connections(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "a whole number from 1 on".to_owned())
}

fn did(text: &str) -> Result<Did, String> {
    Did::parse(text).map_err(|error| error.to_string())
}
