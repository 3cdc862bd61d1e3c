//! The door in: the only room that serves HTTP and knows a status code. It decides nothing.
//!
//! | Path | Job |
//! |---|---|
//! | `POST /oap/intent`, `POST /oap/invoke` | RFC 0020 §3.7: an intent in, a signed answer out |
//! | `POST /oap/subscribe`, `/oap/subscriptions/{id}` and below | RFC 0020 §3.6: an intent that stays open |
//! | `POST /oap/explain`, `GET /oap/decisions/{id}` | RFC 0020 §5: why |
//! | `POST /oap/records`, `DELETE` and `GET /oap/records/{id}` | records come, go, and are shown |
//! | `GET /oap/audit`, `POST /oap/data/delete`, `GET /oap/incident` | what the core protocol asks of every tool |
//! | `/oap/payment/mandates`, `/oap/payment/sessions` and below | RFC 0020 Appendix B: the wallet role, and nobody else |
//! | `/.well-known/oap-tool.json`, `/.well-known/did.json` | who this node is |
//! | `/agents`, `/engagements`, `/reviews` and below | OAS Server: hosted agents, engagements with them, reviews |
//! | `/whoami` | who sends this, proved by a signature over the request (ANP-02) |
//! | `/health`, `/metrics` | for people who run it |
//! | `/docs`, `/openapi.json`, `/refusals.json`, `/schemas/{name}` | for people who build on it |
//!
//! No other origin may read answers in a browser: there are no CORS headers, and `OPTIONS` is refused like any other
//! method an address does not do.

mod routes;
mod request;
mod reply;
mod agents;
mod caller;
mod subscriptions;
mod engagements;
mod sse;
mod ws;
mod wallet;
mod metrics;
mod docs;
mod telemetry;
mod sources;
mod standing;
mod back;
mod connection;
mod listen;

pub use axum::Router;
pub use listen::{Listening, Patience, ServeError, Tls, serve};
pub use routes::{hosting, router, vital, wallet};
pub use sources::Bounds;
#[cfg(feature = "otel")]
pub use telemetry::{Exporter, ExporterError};
