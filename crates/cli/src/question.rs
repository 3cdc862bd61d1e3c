//! RFC 0020 A.3 R1: an intent file becomes a question whose asker is proved.
//!
//! A signed intent is verified. An unsigned one is completed and signed here and now, by the local key, so that the
//! commands behind know one kind of question only.

use crate::draft::{self, Missing};
use crate::failure::Failure;
use crate::files::Text;
use crate::{chance, output};
use aql::{Instant, Intent, Limits};
use json::{Document, Node, Pointer, json};
use schema::{Agreement, Permits, Version};
use std::path::{Path, PathBuf};
use trust::{Did, DidDocument, DidError, Method, SignatureError, Signed, SigningKey, Verified};

/// A question that may be answered.
pub(crate) struct Question {
    pub(crate) intent: Verified<Intent>,
    /// Why its window is not open, where it is not.
    pub(crate) closed: Option<Failure>,
}

/// A question as it is sent to a node, which proves the asker itself.
pub(crate) struct Sent {
    pub(crate) intent: Intent,
    /// The signed intent in canonical form.
    pub(crate) bytes: Vec<u8>,
    /// The version around it, where it was signed without one.
    pub(crate) wrapped: Option<Vec<u8>>,
    /// What the answer is held to.
    pub(crate) agreement: Option<Agreement>,
}

impl Sent {
    /// What is sent.
    pub(crate) fn message(&self) -> Vec<u8> {
        self.wrapped.clone().unwrap_or_else(|| self.bytes.clone())
    }
}

/// Reads and completes an intent whose window is open; `key` is asked for only when there is something to sign.
pub(crate) fn to_send<'k>(
    text: &Text,
    key: impl FnOnce() -> Result<&'k SigningKey, Failure>,
    now: Instant,
    agreed: Option<&Agreement>,
) -> Result<Sent, Failure> {
    let document = text.document(&Limits::STANDARD.json)?;
    let named = document.root().get("schema_version").is_some();
    let version = agreed.filter(|_| !named).map(|agreed| agreed.version);
    let was_signed = document.root().get("signature").is_some();
    let document = if was_signed { document } else { signed(text, document.root(), key()?, now, version)? };
    let intent = Intent::read(document.root(), &Limits::STANDARD).map_err(|refusal| text.refused(&refusal))?;
    intent.check_window(now, &Limits::STANDARD).map_err(|refusal| text.refused(&refusal))?;
    // What can be seen to be wrong here need not travel.
    let proof = Signed::read(&document).map_err(|error| text.unproved(&error))?;
    let signer = proof.issuer("issuer_did").map_err(|error| text.unproved(&error))?;
    if signer.method() == Method::Key {
        proof.verify_with(&keys_of(&signer, &[])?).map_err(|error| text.unproved(&error))?;
    }
    let wrapped = version.filter(|_| was_signed).map(|version| {
        json::canonical_value(&schema::wrap(document.root().to_value(), None, version, Permits::default()))
    });
    // Whoever names a version himself gets it, or nothing.
    let agreement = agreed.filter(|_| !named).cloned();
    Ok(Sent { intent, bytes: json::canonical(document.root()), wrapped, agreement })
}

/// Reads, completes and verifies an intent; `key` is asked for only when there is something to sign.
pub(crate) fn read<'k>(
    text: &Text,
    did_document: Option<&Path>,
    key: impl FnOnce() -> Result<&'k SigningKey, Failure>,
    now: Instant,
) -> Result<Question, Failure> {
    let document = text.document(&Limits::STANDARD.json)?;
    let document = match document.root().get("signature") {
        Some(_) => document,
        None => signed(text, document.root(), key()?, now, None)?,
    };
    let verified = verify(text, &document, did_document)?;
    let intent = verified.try_map(|document| Intent::read(document.root(), &Limits::STANDARD));
    let intent = intent.map_err(|refusal| text.refused(&refusal))?;
    let closed = intent.value().check_window(now, &Limits::STANDARD).err().map(|refusal| text.refused(&refusal));
    Ok(Question { intent, closed })
}

/// Completes and signs a draft.
fn signed(
    text: &Text,
    root: Node<'_>,
    key: &SigningKey,
    now: Instant,
    version: Option<Version>,
) -> Result<Document, Failure> {
    let intent_id = draft::intent_id(&chance::uuid()?);
    let mut completed = draft::complete(root, Missing { intent_id, issuer: key.did_key(), now });
    if let (Some(members), Some(version)) = (completed.intent.as_object_mut(), version) {
        members.insert("schema_version".to_owned(), json!(version.to_string()));
    }
    own_issuer(text, root, key)?;
    // Read first: a mistake in the draft is the better news than one in its signature.
    let intent = Intent::parse(completed.intent.to_string().as_bytes(), &Limits::STANDARD);
    intent.map_err(|refusal| text.refused(&refusal))?;
    let signing = trust::sign(&mut completed.intent, key);
    signing.map_err(|error| Failure::refused(format!("{}: {error}", text.name)))?;
    Document::of(&completed.intent).map_err(|error| text.unreadable(error))
}

/// Nobody signs in the name of another.
pub(crate) fn own_issuer(text: &Text, root: Node<'_>, key: &SigningKey) -> Result<(), Failure> {
    let own = key.did_key();
    for member in SIGNER_MEMBERS {
        if let Some(other) = root.get(member).and_then(Node::as_str).filter(|issuer| *issuer != own.as_str()) {
            let at = Pointer::root().child(member);
            let place = text.locate(&at).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            return Err(Failure::refused(format!("`{member}` is {other}, and the key belongs to {own}"))
                .at(format!("{}{place}, {at}", text.name))
                .help(format!("sign with the key of that DID (--key FILE), or leave `{member}` out of the draft")));
        }
    }
    Ok(())
}

/// The members that say who signed: of a question, and of an answer.
pub(crate) const SIGNER_MEMBERS: [&str; 2] = ["issuer_did", "resolver_did"];

fn verify<'a>(
    text: &Text,
    document: &'a Document,
    did_document: Option<&Path>,
) -> Result<Verified<&'a Document>, Failure> {
    let signed = Signed::read(document).map_err(|error| text.unproved(&error))?;
    let signer = signed.issuer("issuer_did").map_err(|error| text.unproved(&error))?;
    let given: Vec<PathBuf> = did_document.into_iter().map(Path::to_owned).collect();
    let keys = keys_of(&signer, &given)?;
    signed.verify_with(&keys).map_err(|error| text.unproved(&error))
}

/// The members that say when a signed document was made.
const MADE_MEMBERS: [&str; 5] = ["evaluated_at", "emitted_at", "timestamp", "issued_at", "at"];

/// Checks something that was kept: a key that its signer retired since counts for what was made before.
pub(crate) fn verify_kept<'a>(
    document: &'a Document,
    keys: &DidDocument,
) -> Result<Verified<&'a Document>, SignatureError> {
    let root = document.root();
    let made = MADE_MEMBERS.iter().find_map(|member| root.get(member).and_then(Node::as_str));
    let made = made.and_then(Instant::parse_rfc3339);
    Signed::read(document)?
        .verify_kept(keys, |since| made.zip(Instant::parse_rfc3339(since)).is_some_and(|(made, since)| made < since))
}

/// The keys of a signer: in the DID itself, or in the document that was brought along.
pub(crate) fn keys_of(signer: &Did, did_documents: &[PathBuf]) -> Result<DidDocument, Failure> {
    match (signer.method(), did_documents) {
        (Method::Key, given) => {
            if !given.is_empty() {
                output::note("a did:key carries its own key; --did-document is not needed for it");
            }
            DidDocument::of_key(signer).map_err(|error| Failure::refused(format!("{signer}: {error}")))
        }
        (Method::Web | Method::Wba | Method::Other, []) => Err(unresolved(signer)),
        (Method::Web | Method::Wba | Method::Other, [path, others @ ..]) => {
            let text = Text::read(path)?;
            let document = text.document(&json::Limits::DOCUMENT)?;
            let of_another = document.root().get("id").and_then(Node::as_str) != Some(signer.as_str());
            if of_another && !others.is_empty() {
                return keys_of(signer, others);
            }
            DidDocument::read(document.root(), signer).map_err(|error| text.unproved(&error))
        }
    }
}

fn unresolved(signer: &Did) -> Failure {
    let message = format!("the keys of {signer} stand in its DID document, not in its name");
    let help = match signer.document_url() {
        Some(url) => format!("fetch {url} and hand it over with --did-document FILE"),
        None => "resolve the DID and hand its document over with --did-document FILE".to_owned(),
    };
    Failure::refused(message).coded(DidError::MethodUnsupported.code(), &Pointer::root()).help(help)
}
