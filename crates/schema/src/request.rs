//! RFC 0024 §4.2 and §5: the version fields of a request, around its payload or inside it.
//!
//! The text shows a wrapper and says that every request is extended "under the same envelope structure"; both are read
//! (`docs/decisions/0122`). A signature is verified over the document as it came, never over a translation of it.

use crate::identifier::SchemaId;
use crate::negotiate::Permits;
use crate::read::{At, Values};
use crate::refusal::Refusal;
use crate::version::Version;
use json::{Node, Value, json};

/// The members of the wrapper.
const WRAPPER: [&str; 4] = ["payload", "schema_id", "schema_version", "version_negotiation"];

/// How a request says its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Around the payload.
    Wrapped,
    /// Among the members of the request, if at all.
    Bare,
}

/// A request with what it says about versions.
#[derive(Clone, Debug)]
pub struct NegotiatedRequest<'a> {
    /// Where the fields stood.
    pub form: Form,
    /// Which schema the version counts in, where the request says it.
    pub schema: Option<SchemaId>,
    /// The version that the payload is written in, where the request says it.
    pub version: Option<Version>,
    /// What the answer may do.
    pub permits: Permits,
    /// What is asked, as it came.
    pub payload: Node<'a>,
}

impl<'a> NegotiatedRequest<'a> {
    /// Reads the fields; the payload is somebody else's business.
    pub fn read(node: Node<'a>) -> Result<Self, Refusal> {
        let at = At::root(node);
        at.object()?;
        let says_version = ["schema_version", "version_negotiation"].iter().any(|name| node.get(name).is_some());
        let wrapped = says_version && node.members().all(|(name, _)| WRAPPER.contains(&name));
        let payload = if wrapped { at.member("payload").map(|payload| payload.node) } else { None };
        Ok(Self {
            form: if payload.is_some() { Form::Wrapped } else { Form::Bare },
            schema: at.member("schema_id").map(|id| SchemaId::read(&id)).transpose()?,
            version: at.member("schema_version").map(|version| Version::read(&version)).transpose()?,
            permits: at.member("version_negotiation").map_or(Ok(Permits::default()), |block| permits(&block))?,
            payload: payload.unwrap_or(node),
        })
    }
}

fn permits(at: &At<'_>) -> Result<Permits, Refusal> {
    at.closed(&["permit_upgrade", "permit_downgrade"])?;
    Ok(Permits { upgrade: at.flag("permit_upgrade")?, downgrade: at.flag("permit_downgrade")? })
}

/// A payload with its version around it.
pub fn wrap(payload: Value, schema: Option<&SchemaId>, version: Version, permits: Permits) -> Value {
    let negotiation = json!({"permit_upgrade": permits.upgrade, "permit_downgrade": permits.downgrade});
    let mut value =
        json!({"schema_version": version.to_string(), "version_negotiation": negotiation, "payload": payload});
    if let (Value::Object(members), Some(schema)) = (&mut value, schema) {
        members.insert("schema_id".to_owned(), json!(schema.as_str()));
    }
    value
}
