//! Figures for whoever runs the node, in Prometheus' text form.

use node::{Brought, Node};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Route, Histogram>,
    records: Family<Collection, Gauge>,
    sequence: Gauge,
    standing: Gauge,
    undelivered: Gauge,
    full: Gauge,
    brought: Vec<(Figure, Gauge)>,
}

/// Reads one figure.
type Figure = fn(&Brought) -> u64;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Collection {
    collection: &'static str,
}

/// From 100 µs to about 3 s.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-4, 2.0, 16))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("rialto");
        let requests = Family::default();
        let seconds = Family::new_with_constructor(buckets as fn() -> Histogram);
        let (records, sequence) = (Family::default(), Gauge::default());
        registry.register("http_requests", "Requests by route and status", requests.clone());
        registry.register("http_request_seconds", "Time to answer, by route", seconds.clone());
        registry.register("candidates", "Candidates by collection", records.clone());
        registry.register("log_sequence", "The last change in the log", sequence.clone());
        let (standing, undelivered, full) = (Gauge::default(), Gauge::default(), Gauge::default());
        registry.register("subscriptions", "Standing intents", standing.clone());
        registry.register("undelivered_changes", "Changes that subscribers are not told of yet", undelivered.clone());
        registry.register("full_journals", "Standing intents whose journals have no room", full.clone());
        let figures: [(&str, &str, Figure); 5] = [
            ("webhook_delivered", "Messages that receivers took since the start", |brought| brought.delivered),
            ("webhook_failed", "Attempts to bring one that failed since the start", |brought| brought.failed),
            ("webhook_dead", "Events that were given up since the start", |brought| brought.dead),
            ("webhook_running", "Addresses that events are brought to", |brought| brought.running),
            ("webhook_stopped", "Addresses that were given up", |brought| brought.stopped),
        ];
        let mut brought = Vec::new();
        for (name, help, read) in figures {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            brought.push((read, gauge));
        }
        Self { registry, requests, seconds, records, sequence, standing, undelivered, full, brought }
    }

    /// Counts a request that was answered.
    pub(crate) fn count(&self, route: &str, status: u16, took: Duration) {
        self.requests.get_or_create(&Request { route: route.to_owned(), status }).inc();
        self.seconds.get_or_create(&Route { route: route.to_owned() }).observe(took.as_secs_f64());
    }

    /// All figures as text.
    pub(crate) fn text(&self, node: &Node) -> String {
        for (collection, count) in node.counts().unwrap_or_default() {
            self.records.get_or_create(&Collection { collection }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.sequence.set(i64::try_from(node.store().sequence()).unwrap_or(i64::MAX));
        if let Ok((standing, behind)) = node.standing() {
            self.standing.set(i64::try_from(standing).unwrap_or(i64::MAX));
            self.undelivered.set(i64::try_from(behind).unwrap_or(i64::MAX));
        }
        if let Ok(full) = node.full_journals() {
            self.full.set(i64::try_from(full).unwrap_or(i64::MAX));
        }
        let brought = node.brought();
        for (read, gauge) in &self.brought {
            gauge.set(i64::try_from(read(&brought)).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
