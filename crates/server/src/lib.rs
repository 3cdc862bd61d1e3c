//! The door in: the only room that serves HTTP and knows a status code. It decides nothing.
//!
//! | Path | Job |
//! |---|---|
//! | `POST /oap/intent` | RFC 0020 §3.7: an intent in, a signed answer out |
//! | `POST /oap/explain`, `GET /oap/decisions/{id}` | RFC 0020 §5: why |
//! | `POST /oap/records`, `DELETE` and `GET /oap/records/{id}` | records come, go, and are shown |
//! | `/.well-known/oap-tool.json`, `/.well-known/did.json` | who this node is |
//! | `/health`, `/metrics`, `/openapi.json`, `/docs`, `/schemas/{name}` | for people who run it and build on it |

mod routes;
mod request;
mod reply;
mod metrics;
mod docs;
mod listen;

pub use listen::{Listening, ServeError, Tls, serve};
pub use routes::router;
