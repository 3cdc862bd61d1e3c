//! RFC 0020 §8, A.7, RFC 0020 A.3 R5: what this node says of itself: manifest, DID document, limits, ranking function.

use crate::agents;
use crate::descriptions;
use crate::discover::WISH_CHARS_MAX;
use crate::engagements::limits as engagement_limits;
use crate::evidence;
use crate::feeds::webhook_limits;
use crate::gate;
use crate::invoke::ACTION;
use crate::lanes;
use crate::node::Node;
use crate::outbound::DoorPolicy;
use crate::procure::FALLBACKS_MAX;
use crate::publish::{ID_BYTES_MAX, INHERITED_BYTES_MAX};
use crate::quota;
use crate::receipts::{DELIVERIES_MAX, SIGNATURES_MAX};
use crate::resolve::{PAGE, PAGE_BYTES, REJECTED};
use crate::tokens::TOKENS_MAX;
use crate::versions;
use feed::subscription;
use json::{Value, json};
use std::num::NonZeroU32;

/// Levels of RFC 0020 §7 whose requirements the node meets.
pub const LEVELS: [&str; 3] = ["Q1", "Q2", "Q3"];

/// Milliseconds after which a caller is told that it took too long.
pub const CALL_MS_MAX: u64 = 30_000;
/// Requests of one connection that are under way at once.
pub const STREAMS_MAX: u32 = 64;

/// How much of the node one caller may use, and for how long it is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Header fields of a request.
    pub headers: usize,
    /// Milliseconds for the head of a request.
    pub head_ms: u64,
    /// Milliseconds for the next request on an open connection.
    pub idle_ms: u64,
    /// Milliseconds for a body, beside the time that its bytes may take.
    pub body_ms: u64,
    /// The slowest pace of a body.
    pub body_bytes_per_second: u64,
    /// Connections at a time.
    pub connections: usize,
    /// Requests under way at a time.
    pub requests: usize,
    /// Connections of one source at a time.
    pub source_connections: usize,
    /// Requests of one source in a second.
    pub source_requests_per_second: NonZeroU32,
}

/// The bounds at the edge.
pub const EDGE: Edge = Edge {
    head_bytes: 16 * 1024,
    headers: 64,
    head_ms: 5_000,
    idle_ms: 60_000,
    body_ms: 5_000,
    body_bytes_per_second: 1_024,
    connections: 4_096,
    requests: 4_096,
    source_connections: 64,
    source_requests_per_second: NonZeroU32::MIN.saturating_add(19),
};

impl Default for Edge {
    fn default() -> Self {
        EDGE
    }
}

/// What stands for no bound, where a number must stand.
const UNBOUNDED: u64 = 1_000_000_000;

impl Node {
    /// The manifest at `/.well-known/oap-tool.json`; `base` is the address under which the asker reached the node.
    pub fn manifest(&self, base: &str) -> Value {
        let did = self.identity().did().as_str();
        let at = |path: &str| format!("{base}{path}");
        let mut manifest = json!({
            "oap_version": "1.0",
            "tool": {
                "id": "rialto-node",
                "did": did,
                "name": "Rialto node",
                "version": env!("CARGO_PKG_VERSION"),
                "publisher": {"did": did, "legal_name": self.operator.name, "verified": false},
                "categories": ["discovery", "resolver"],
                "description_for_humans":
                    "Finds manifests, offers and knowledge nodes that satisfy a signed intent, and says why.",
                "description_for_agents":
                    "POST a signed RFC 0020 intent to endpoints.intent; the answer is a signed IntentResponse with a \
                     decision record for each candidate.",
            },
            "endpoints": {
                "invoke": at("/oap/invoke"),
                "intent": at("/oap/intent"),
                "subscribe": at("/oap/subscribe"),
                "explain": at("/oap/explain"),
                "records": at("/oap/records"),
                "metering": at("/oap/metering"),
                "audit": at("/oap/audit"),
                "data_delete": at("/oap/data/delete"),
                "incident": at("/oap/incident"),
                "discover": at("/oap/discover"),
                "receipt_verify": at("/oap/receipt-verify"),
                "receipt_chain_export": at("/oap/receipt-chain/export"),
                "mappings": at("/oap/mappings"),
                "agent_descriptions": at(description::WELL_KNOWN),
            },
            "auth": [{"method": "anonymous"}],
            "actions": [self.action(base)],
            "pricing": {"models": [{"type": "free"}]},
            "sla": sla(),
            "trust": {"publisher_verified": false, "data_residency": [], "gdpr_compliant": false},
            // Records stay until they are withdrawn, answers until their intents expire, which is a day at most, and
            // what subscribers were told as long as it can be read again.
            "data_policy": {
                "stores_principal_data": true,
                "retention_days": self.feeds.retention_days(),
                "shares_with_third_parties": false,
                "training_on_principal_data": "never",
                "deletion_endpoint": at("/oap/data/delete"),
                "lawful_bases": [],
            },
            "risk_class": "minimal",
            "jurisdictions": self.operator.jurisdictions,
            "governance": {"dispute_resolution_url": at("/docs"), "contact_email": self.operator.contact_email},
            "accountability": {"recovery": {"export_endpoint": at("/oap/receipt-chain/export")}},
            "aql": {"levels": LEVELS, "resolver_role": "provider"},
            "limits": limits(&self.edge),
            "ranking_function": ranking(),
            "schema_compatibility": self.versions.published(base, self.clock.now()),
        });
        // A manifest names only what is there: without a receipt about this node nothing is said of one.
        if let (Some(levels), Some(members)) = (self.attested(), manifest.as_object_mut()) {
            let uri = at("/oap/conformance-receipt");
            if let Some(endpoints) = members.get_mut("endpoints").and_then(Value::as_object_mut) {
                endpoints.insert("conformance_receipt".to_owned(), json!(uri));
            }
            members.insert("conformance".to_owned(), json!({"claimed_levels": levels, "receipt_uri": uri}));
        }
        manifest
    }

    /// The one thing a node does when it is invoked.
    fn action(&self, base: &str) -> Value {
        let schema = |name: &str| json!({"$ref": format!("{base}/schemas/{name}.schema.json")});
        let per_minute = self.requests_per_second.map_or(UNBOUNDED, |rate| u64::from(rate.get()) * 60);
        json!({
            "id": ACTION,
            "version": "1.0.0",
            "summary": "Answers a signed intent",
            "description_for_agents": "Takes an RFC 0020 intent and returns an IntentResponse.",
            "input_schema": schema("oap-intent"),
            "output_schema": schema("oap-intent-response"),
            "side_effects": "read",
            "idempotent": true,
            "idempotency_window_seconds": aql::Limits::STANDARD.validity_seconds,
            "rate_limit": {"rpm": per_minute, "concurrent": STREAMS_MAX},
            "data_classes_in": [],
            "data_classes_out": [],
            "cost": {"type": "free"},
            "examples": [{
                "description": "In part: the members that carry the question, and an answer that found nothing.",
                "input": {
                    "category": "discovery",
                    "constraints": {"path": "/tool/categories", "operator": "contains", "value": "translation"},
                    "projection": {"include": ["/tool/did"]},
                },
                "output": {"candidates": []},
            }],
        })
    }
}

/// What may be expected of any node: an answer or a refusal in time. Nobody's uptime is promised here.
fn sla() -> Value {
    json!({
        "uptime_target": 0,
        "latency_p95_ms": CALL_MS_MAX,
        "max_call_duration_ms": CALL_MS_MAX,
        "regions": ["unspecified"],
        "incident_disclosure_within_hours": 72,
    })
}

/// The bounds a question must keep (A.7), by name.
pub(crate) fn limits(edge: &Edge) -> Value {
    let (intent, fuel, schemas) = (aql::Limits::STANDARD, aql::Fuel::STANDARD, schema::limits());
    let bytes = |limits: &json::Limits| {
        json!({
            "bytes": limits.bytes, "depth": limits.depth, "nodes": limits.nodes, "keys": limits.keys,
            "key_bytes": limits.key_bytes, "string_bytes": limits.string_bytes,
        })
    };
    let mut named = json!({
        "intent": bytes(&json::Limits::INTENT),
        "document": bytes(&json::Limits::DOCUMENT),
        "constraints": {
            "leaves": intent.leaves, "tree_depth": intent.tree_depth, "list": intent.list,
            "path_bytes": intent.path_bytes, "path_segments": intent.path_segments,
            "path_descendants": intent.path_descendants, "patterns": intent.patterns,
            "pattern_chars": intent.pattern_chars, "pattern_bytes": intent.pattern_bytes,
        },
        "projection": {"pointers": intent.pointers},
        "budget": {"top_k": intent.top_k},
        "validity": {
            "seconds": intent.validity_seconds, "subscription_seconds": intent.subscription_seconds,
            "skew_seconds": intent.skew_seconds,
        },
        "evaluation": {
            "visits": fuel.visits, "match_steps": fuel.match_steps, "intent_steps": fuel.intent_steps,
            "costly_waiting": lanes::WAITING_MAX,
        },
        "subscriptions": {
            "issuer": subscription::ISSUER_MAX, "domain": subscription::DOMAIN_MAX, "total": subscription::TOTAL_MAX,
            "events_per_minute": subscription::RATE_MAX, "journal_bytes": subscription::JOURNAL_BYTES_MAX,
            "waiting": subscription::PENDING_MAX, "snapshot": subscription::SNAPSHOT_MAX,
            "readers": subscription::READERS_MAX, "retention_days_min": subscription::RETENTION_DAYS_MIN,
            "unfiled_issuer": subscription::UNFILED_ISSUER_MAX, "unfiled_total": subscription::UNFILED_TOTAL_MAX,
            "undecided": subscription::UNDECIDED_MAX,
            "heartbeat_ms": subscription::HEARTBEAT_MS, "poll_ms": subscription::POLL_MS_MAX,
        },
        "webhooks": webhook_limits(&DoorPolicy::default()),
        "delegation": {
            "links": trust::DELEGATION_LINKS_MAX, "seconds": trust::DELEGATION_SECONDS_MAX, "tokens": TOKENS_MAX,
        },
        "authentication": {
            "window_seconds": trust::http::WINDOW_SECONDS, "skew_seconds": trust::http::SKEW_SECONDS,
            "token_seconds": trust::http::TOKEN_SECONDS, "nonce_bytes": trust::http::NONCE_BYTES_MAX,
            "field_bytes": trust::http::FIELD_BYTES_MAX,
        },
        "procurement": {"fallbacks": FALLBACKS_MAX},
        "actions": {"inherited_bytes": INHERITED_BYTES_MAX},
        "descriptions": {
            "bytes": descriptions::KEPT_BYTES_MAX, "id_bytes": ID_BYTES_MAX, "linked": agents::LINKED_MAX,
        },
        "call": bytes(&agents::RPC_LIMITS),
        "agents": {"page": agents::PAGE},
        "discover": {"wish_chars": WISH_CHARS_MAX},
        "receipts": {"signatures": SIGNATURES_MAX, "deliveries": DELIVERIES_MAX},
        "evidence": {"words": evidence::WORDS_MAX, "issuers": evidence::ISSUERS_MAX},
        "restrictions": {
            "restrictions": gate::RESTRICTIONS_MAX, "audience": gate::AUDIENCE_MAX,
            "restriction_visits": gate::RESTRICTION_VISITS_MAX, "views": gate::VIEWS_MAX,
            "view_bytes": gate::VIEW_BYTES_MAX,
        },
        "versions": {"issuers": versions::ISSUERS_MAX},
        "mappings": {"counterparties": versions::MAPPINGS_MAX},
        "mapping": schemas.get("mapping"), "profile": schemas.get("profile"), "schema": schemas.get("schema"),
        "payment": {"mandates": payment::wallet::MANDATES_MAX, "open_sessions": payment::wallet::SESSIONS_OPEN_MAX},
        "engagement": engagement_limits(),
        "answer": {"candidates": PAGE, "rejected": REJECTED, "bytes": PAGE_BYTES},
        "edge": {
            "head_bytes": edge.head_bytes, "headers": edge.headers, "head_ms": edge.head_ms, "idle_ms": edge.idle_ms,
            "body_ms": edge.body_ms, "body_bytes_per_second": edge.body_bytes_per_second,
            "connections": edge.connections, "requests": edge.requests,
            "source_connections": edge.source_connections,
            "source_requests_per_second": edge.source_requests_per_second, "streams": STREAMS_MAX,
            "new_names_per_minute": quota::NEW_NAMES_PER_MINUTE,
        },
    });
    if let Some(groups) = named.as_object_mut() {
        groups.insert("host".to_owned(), host::limits());
    }
    named
}

/// The function that orders answers, with its inputs and weights.
pub(crate) fn ranking() -> Value {
    let input = |name: &str, weight: f64, value: &str| json!({"name": name, "weight": weight, "value": value});
    json!({
        "function_id": aql::RANKING_ID,
        "function_version": aql::RANKING_VERSION,
        "inputs": [
            input("performance_score", 0.35, "as evidence by others says, 0 when nobody does"),
            input("provider_reputation", 0.25, "as evidence by others says, 0 when nobody does"),
            input("conformance", 0.15, "the digit of the attested level as a part of five"),
            input("latency", 0.1, "1 - min(latency_p99_ms, 10000) / 10000, 0 when unknown"),
            input("price", 0.15, "1 - min(cost / budget, 1), 0 without a budget"),
        ],
        "score": "the sum of round6(value * weight), rounded to six decimals",
        "order": ["what fits the budget first", "what repeats no candidate before it of the same owner first",
            "score, descending", "cost, ascending", "candidate id, ascending"],
        "repetition": {"near_bits": aql::NEAR_BITS, "of": "docs/decisions/0255", "leaders_per_owner": aql::LEADERS_MAX},
    })
}

#[cfg(test)]
mod tests {
    use aql::{Intent, Limits, Signals};
    use json::json;

    /// What is published must be what is computed.
    #[test]
    fn the_published_weights_are_those_of_the_function() {
        let intent = json!({
            "intent_id": "urn:oap:intent:x", "issuer_did": "did:key:z", "category": "discovery",
            "constraints": {"path": "/a", "operator": "exists", "value": true}, "projection": {"include": ["/a"]},
            "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
        });
        let document = json::Document::of(&intent).unwrap();
        let intent = Intent::read(document.root(), &Limits::STANDARD).unwrap();
        let ranking = aql::rank(&intent, &Signals::default(), None);
        let published = super::ranking();
        let inputs = published["inputs"].as_array().unwrap();
        assert_eq!(inputs.len(), ranking.contributions.len());
        for (input, computed) in inputs.iter().zip(ranking.contributions) {
            assert_eq!((&input["name"], &input["weight"]), (&json!(computed.name), &json!(computed.weight)));
        }
    }
}
