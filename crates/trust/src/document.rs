//! DID documents: from a signer's name to the keys that may sign for it (RFC 0020 A.3 R1).
//!
//! A key signs for the DID only when the document lists it under `assertionMethod` or `authentication`; a key for
//! encryption does not. A method that no list names and that says when it was `revoked` did sign once: its key still
//! proves what was signed before (decisions/0061). The document must speak about the DID that was asked for and about
//! nobody else.
//!
//! INVARIANT: method names are unique, and each belongs to the DID of its document.

use crate::did::is_fragment;
use crate::{Did, DidError, DidUrl, KeyError, Method, Problem, PublicKey, SignatureError};
use json::{Node, Pointer, Value, json};

/// More keys than any signer needs; reading a key costs a square root on its curve.
const METHODS_MAX: usize = 64;

/// The lists that let a method sign.
const SIGNING: [&str; 2] = ["assertionMethod", "authentication"];

/// The other lists that may carry whole methods, so that no name is given twice.
const OTHER_PURPOSES: [&str; 3] = ["keyAgreement", "capabilityInvocation", "capabilityDelegation"];

/// What a signer's DID document says about its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DidDocument {
    did: Did,
    methods: Vec<VerificationMethod>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct VerificationMethod {
    fragment: Box<str>,
    role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Signs(PublicKey),
    /// Listed for signing, with a kind of key we do not know.
    SignsUnreadably,
    /// Signed until the moment it names.
    Retired(PublicKey, Box<str>),
    Other,
}

impl DidDocument {
    /// Reads the resolved document of `did`.
    pub fn read(root: Node<'_>, did: &Did) -> Result<Self, SignatureError> {
        if root.get("id").and_then(Node::as_str) != Some(did.as_str()) {
            return Err(refused(Pointer::root().child("id"), DocumentProblem::OtherSubject));
        }
        let mut drafts = Drafts { did, list: Vec::new() };
        for (at, entry) in entries(root, "verificationMethod")? {
            drafts.add(entry, at, false, false)?;
        }
        // Whole methods first: a list may refer to a method that another list carries.
        for (purpose, signs) in purposes() {
            for (at, entry) in entries(root, purpose)?.filter(|(_, entry)| entry.as_str().is_none()) {
                drafts.add(entry, at, signs, true)?;
            }
        }
        for (purpose, signs) in purposes() {
            for reference in entries(root, purpose)?.filter_map(|(_, entry)| entry.as_str()) {
                drafts.list(reference, signs);
            }
        }
        let methods = drafts.list.into_iter().map(Draft::finish).collect::<Result<_, _>>()?;
        Ok(Self { did: did.clone(), methods })
    }

    /// The document of a did:key, which needs no network: its one key may sign.
    pub fn of_key(did: &Did) -> Result<Self, DidError> {
        let key = did.key().ok_or(DidError::MethodUnsupported)?;
        let method =
            VerificationMethod { fragment: DidUrl::of_key(did).fragment().into(), role: Role::Signs(key.clone()) };
        Ok(Self { did: did.clone(), methods: vec![method] })
    }

    /// Whose document this is.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// The keys that may sign, each with its name.
    pub fn signing_keys(&self) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.methods.iter().filter_map(|method| match &method.role {
            Role::Signs(key) => Some((&*method.fragment, key)),
            Role::SignsUnreadably | Role::Retired(..) | Role::Other => None,
        })
    }

    /// The key that `kid` means when it has been retired, with the moment since when, as the document writes it.
    pub(crate) fn retired_key(&self, kid: &str) -> Option<(&PublicKey, &str)> {
        match self.named_role(kid) {
            Ok(Some(Role::Retired(key, since))) => Some((key, since)),
            _ => None,
        }
    }

    /// The document as it is published: the signing keys under absolute names.
    pub fn to_value(&self) -> Value {
        let mut contexts = vec!["https://www.w3.org/ns/did/v1"];
        let (mut methods, mut names) = (Vec::new(), Vec::new());
        for (fragment, key) in self.signing_keys() {
            let id = format!("{}#{fragment}", self.did);
            let (context, method) = describe(&id, self.did.as_str(), key);
            if !contexts.contains(&context) {
                contexts.push(context);
            }
            methods.push(method);
            names.push(id);
        }
        json!({
            "@context": contexts,
            "id": self.did.as_str(),
            "verificationMethod": methods,
            "authentication": names,
            "assertionMethod": names,
        })
    }

    /// The key that `kid` means; without one, the only key there is.
    pub(crate) fn signing_key(&self, kid: Option<&str>) -> Result<&PublicKey, Problem> {
        match kid {
            Some(kid) => self.named_key(kid),
            None => {
                let mut keys = self.signing_keys().map(|(_, key)| key);
                let first = keys.next().ok_or(Problem::KeyNotFound)?;
                if keys.next().is_some() { Err(Problem::KidAmbiguous) } else { Ok(first) }
            }
        }
    }

    fn named_key(&self, kid: &str) -> Result<&PublicKey, Problem> {
        match self.named_role(kid)? {
            Some(Role::Signs(key)) => Ok(key),
            Some(Role::SignsUnreadably) => Err(Problem::KeyNotFound),
            Some(Role::Retired(..)) => Err(Problem::KeyRetired),
            Some(Role::Other) => Err(Problem::KidNotAuthorized),
            // A did:key never had another key; elsewhere the key may have been there and been withdrawn.
            None if self.did.method() == Method::Key => Err(Problem::KidNotAuthorized),
            None => Err(Problem::KeyNotFound),
        }
    }

    fn named_role(&self, kid: &str) -> Result<Option<&Role>, Problem> {
        // Servers write a bare fragment, too; what starts like a DID is never one.
        let bare = (!kid.starts_with("did:") && is_fragment(kid)).then_some(kid);
        let fragment = fragment_within(kid, &self.did).or(bare).ok_or(Problem::KidNotAuthorized)?;
        Ok(self.methods.iter().find(|method| *method.fragment == *fragment).map(|method| &method.role))
    }
}

/// Methods on their way in: their keys are read once it is known who may sign.
struct Drafts<'a> {
    did: &'a Did,
    list: Vec<Draft<'a>>,
}

struct Draft<'a> {
    fragment: &'a str,
    node: Node<'a>,
    at: Pointer,
    signs: bool,
    /// Whether any list names it.
    listed: bool,
}

impl<'a> Drafts<'a> {
    fn add(&mut self, node: Node<'a>, at: Pointer, signs: bool, listed: bool) -> Result<(), SignatureError> {
        let text = |name: &str| node.get(name).and_then(Node::as_str);
        let Some(fragment) = text("id").and_then(|id| fragment_within(id, self.did)) else {
            return Err(refused(at.child("id"), DocumentProblem::ForeignMethod));
        };
        if text("type").is_none() {
            return Err(refused(at.child("type"), DocumentProblem::Method));
        }
        if text("controller") != Some(self.did.as_str()) {
            return Err(refused(at.child("controller"), DocumentProblem::ForeignController));
        }
        if self.list.iter().any(|draft| draft.fragment == fragment) {
            return Err(refused(at.child("id"), DocumentProblem::DuplicateMethod));
        }
        if self.list.len() == METHODS_MAX {
            return Err(refused(at, DocumentProblem::TooManyMethods));
        }
        self.list.push(Draft { fragment, node, at, signs, listed });
        Ok(())
    }

    /// A reference to a method that is not here gives no right to anybody, so it is passed over.
    fn list(&mut self, reference: &str, signs: bool) {
        let fragment = fragment_within(reference, self.did);
        if let Some(draft) = self.list.iter_mut().find(|draft| Some(draft.fragment) == fragment) {
            draft.listed = true;
            draft.signs |= signs;
        }
    }
}

impl Draft<'_> {
    fn finish(self) -> Result<VerificationMethod, SignatureError> {
        let revoked = self.node.get("revoked").and_then(Node::as_str);
        let role = match revoked {
            // Whoever lists a key that is revoked means one of the two; the safe one is that it is.
            Some(since) if self.signs || !self.listed => match self.read_key() {
                Ok(Role::Signs(key)) => Role::Retired(key, since.into()),
                Ok(other) if self.signs => other,
                Err(error) if self.signs => return Err(error),
                Ok(_) | Err(_) => Role::Other,
            },
            _ if self.signs => self.read_key()?,
            _ => Role::Other,
        };
        Ok(VerificationMethod { fragment: self.fragment.into(), role })
    }

    fn read_key(&self) -> Result<Role, SignatureError> {
        let (member, key) = match (self.node.get("publicKeyMultibase"), self.node.get("publicKeyJwk")) {
            (Some(_), Some(_)) => return Err(refused(self.at.clone(), DocumentProblem::TwoKeys)),
            (None, None) => return Ok(Role::SignsUnreadably),
            (Some(text), None) => {
                ("publicKeyMultibase", text.as_str().ok_or(KeyError::Multibase).and_then(PublicKey::from_multibase))
            }
            (None, Some(jwk)) => ("publicKeyJwk", PublicKey::from_jwk(jwk)),
        };
        match key {
            Ok(key) => Ok(Role::Signs(key)),
            Err(KeyError::Unsupported) => Ok(Role::SignsUnreadably),
            Err(error) => Err(refused(self.at.child(member), error)),
        }
    }
}

fn purposes() -> impl Iterator<Item = (&'static str, bool)> {
    let signing = SIGNING.into_iter().map(|purpose| (purpose, true));
    signing.chain(OTHER_PURPOSES.into_iter().map(|purpose| (purpose, false)))
}

/// The entries of a list, with their places; an absent list is empty.
fn entries<'a>(root: Node<'a>, name: &str) -> Result<impl Iterator<Item = (Pointer, Node<'a>)>, SignatureError> {
    let at = Pointer::root().child(name);
    let list = root.get(name);
    if list.is_some_and(|list| list.kind() != json::Kind::Array) {
        return Err(refused(at, DocumentProblem::List));
    }
    let elements = list.into_iter().flat_map(Node::elements).enumerate();
    Ok(elements.map(move |(position, entry)| (at.child(position), entry)))
}

/// The fragment of a DID URL that lies in this DID's document: absolute, or relative as `#fragment`.
fn fragment_within<'a>(text: &'a str, did: &Did) -> Option<&'a str> {
    text.strip_prefix(did.as_str()).unwrap_or(text).strip_prefix('#').filter(|fragment| is_fragment(fragment))
}

/// A published method and the context that explains its type; the public probes know these two types.
fn describe(id: &str, controller: &str, key: &PublicKey) -> (&'static str, Value) {
    match key.algorithm() {
        crate::Algorithm::EdDsa => (
            "https://w3id.org/security/suites/ed25519-2020/v1",
            json!({
                "id": id,
                "type": "Ed25519VerificationKey2020",
                "controller": controller,
                "publicKeyMultibase": key.to_multibase(),
            }),
        ),
        crate::Algorithm::Es256 | crate::Algorithm::Es384 => (
            "https://w3id.org/security/suites/jws-2020/v1",
            json!({"id": id, "type": "JsonWebKey2020", "controller": controller, "publicKeyJwk": key.to_jwk()}),
        ),
    }
}

fn refused(at: Pointer, problem: impl Into<DocumentProblem>) -> SignatureError {
    SignatureError::new(at, problem.into())
}

/// Why a text is not the document of the DID that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentProblem {
    /// Another `id`, or none.
    #[error("the document is about somebody else; its `id` must equal the DID letter by letter")]
    OtherSubject,
    /// Not a list.
    #[error("this must be an array")]
    List,
    /// Not a verification method.
    #[error("a verification method is an object with `id`, `type` and `controller`")]
    Method,
    /// A method of another document.
    #[error("the method is not named inside this document; write the document's DID, `#` and a name")]
    ForeignMethod,
    /// A method somebody else controls.
    #[error("the method is controlled by somebody else; its `controller` must be the document's DID")]
    ForeignController,
    /// Two methods of one name.
    #[error("two methods have this name; give each its own")]
    DuplicateMethod,
    /// Two keys in one method.
    #[error("the method has two keys; keep one of `publicKeyMultibase` and `publicKeyJwk`")]
    TwoKeys,
    /// More methods than we read.
    #[error("the document has too many methods; at most 64 are read")]
    TooManyMethods,
    /// A broken key.
    #[error("the key is broken: {0}")]
    Key(#[from] KeyError),
}

#[cfg(test)]
mod tests;
