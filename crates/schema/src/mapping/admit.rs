//! RFC 0024 §3.3 and §8: whose mapping is believed, and what no mapping of a stranger may touch.
//!
//! INVARIANT: only [`admit`] makes a [`Trusted`]; what it translates is derived and was signed by nobody.

use super::path::Path;
use super::rule::{Body, Op};
use super::{Mapping, Translation};
use crate::identifier::Publishers;
use crate::refusal::{Code, Refusal};
use json::{Document, Pointer, Value};
use trust::{DidDocument, Digest, Signed};

/// A mapping that the publisher of its destination has signed and that touches nothing protected.
#[derive(Clone, Debug)]
pub struct Trusted(Mapping);

impl Trusted {
    /// The mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.0
    }

    /// Translates a document.
    pub fn translate(&self, source: &Value) -> Result<Translation, Refusal> {
        self.0.translate(source)
    }
}

/// Decides whether a mapping may be used; `pinned` is the digest that was used for these two versions before.
pub fn admit(
    document: &Document,
    signer: &DidDocument,
    publishers: &Publishers,
    pinned: Option<&Digest>,
) -> Result<Trusted, Refusal> {
    let mapping = Mapping::read(document.root())?;
    let untrusted = |at: Pointer, detail: String| Refusal::new(Code::MappingUntrusted, at, detail);
    let signed = Signed::read(document).and_then(|signed| signed.verify_with(signer));
    let verified = signed.map_err(|error| untrusted(error.at.clone(), error.problem.to_string()))?;
    let publisher = mapping.destination().and_then(|destination| publishers.of(&destination.schema));
    if publisher.as_ref() != Some(verified.signer()) || mapping.publisher() != Some(verified.signer()) {
        let detail = "the publisher of the destination schema signs a mapping; this is somebody else";
        return Err(untrusted(Pointer::root().child("publisher_did"), detail.to_owned()));
    }
    if pinned.is_some_and(|pinned| *pinned != mapping.digest()) {
        let detail = "another mapping between these versions is in use; the operator has to agree to a new one";
        return Err(untrusted(Pointer::root(), detail.to_owned()));
    }
    match protected(&mapping) {
        Some(at) => {
            let detail = "a mapping fills this kind of field only from a field of the same kind";
            Err(Refusal::new(Code::ProtectedField, at, detail))
        }
        None => Ok(Trusted(mapping)),
    }
}

/// What a field decides about; only like comes from like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ward {
    Identity,
    Signature,
    Money,
    Address,
    Credential,
}

/// Names that decide who, how much, where to, and by which secret.
const WARDS: &[(&str, Ward)] = &[
    ("did", Ward::Identity),
    ("issuer", Ward::Identity),
    ("controller", Ward::Identity),
    ("delegation_chain", Ward::Identity),
    ("signature", Ward::Signature),
    ("signatures", Ward::Signature),
    ("proof", Ward::Signature),
    ("amount", Ward::Money),
    ("budget", Ward::Money),
    ("cost", Ward::Money),
    ("currency", Ward::Money),
    ("payment_constraints", Ward::Money),
    ("price", Ward::Money),
    ("pricing", Ward::Money),
    ("endpoint", Ward::Address),
    ("endpoints", Ward::Address),
    ("uri", Ward::Address),
    ("url", Ward::Address),
    ("webhook", Ward::Address),
    ("api_key", Ward::Credential),
    ("credential", Ward::Credential),
    ("credentials", Ward::Credential),
    ("password", Ward::Credential),
    ("secret", Ward::Credential),
    ("token", Ward::Credential),
];

/// The ward of a name: by itself, or by how it ends (`issuer_did`, `authorizationUrl`).
fn ward_of_name(name: &str) -> Option<Ward> {
    let lower = name.to_ascii_lowercase();
    let exact = WARDS.iter().find(|(word, _)| *word == lower);
    let ends = |word: &str| {
        let capital = word.chars().next().map(|first| first.to_ascii_uppercase().to_string());
        let camel = capital.map(|first| first + word.get(1..).unwrap_or_default());
        name.ends_with(&format!("_{word}")) || camel.is_some_and(|camel| name.ends_with(&camel))
    };
    exact.or_else(|| WARDS.iter().find(|(word, _)| ends(word))).map(|(_, ward)| *ward)
}

/// The innermost ward of a place.
fn ward(path: &Path) -> Option<Ward> {
    path.names().filter_map(ward_of_name).last()
}

/// The first place that a mapping writes into against the rule, in the destination.
pub fn protected(mapping: &Mapping) -> Option<Pointer> {
    mapping.steps.iter().find_map(|step| touched(&step.body, &Pointer::root()))
}

fn touched(body: &Body, above: &Pointer) -> Option<Pointer> {
    let below = |path: &Path| path.segments().iter().fold(above.clone(), |pointer, segment| pointer.child(segment));
    for rule in &body.rules {
        let (to, from) = (ward(&rule.to), ward(&rule.from));
        // A list or a union is opened by rules of its own, which are looked at one by one.
        let brings = match &rule.op {
            Op::Copy { default } | Op::Move { default } | Op::Rename { default } => default.is_some(),
            Op::Enum { .. } => true,
            Op::Convert { .. } | Op::Each { .. } | Op::Variant { .. } => false,
        };
        if to.is_some() && (to != from || brings) {
            return Some(below(&rule.to));
        }
        let inner = match &rule.op {
            Op::Each { body, .. } => touched(body, &below(&rule.to)),
            Op::Variant { cases, .. } => {
                cases.iter().find_map(|case| touched(&case.body, &below(&rule.to).child(&case.member)))
            }
            Op::Copy { .. } | Op::Move { .. } | Op::Rename { .. } | Op::Enum { .. } | Op::Convert { .. } => None,
        };
        if inner.is_some() {
            return inner;
        }
    }
    let constants = body.constants.iter().map(|constant| &constant.to);
    constants.chain(body.derived.iter().map(|derived| &derived.to)).find(|to| ward(to).is_some()).map(below)
}
