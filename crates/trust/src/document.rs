//! DID documents: from a signer's name to the keys that may sign for it (RFC 0020 A.3 R1).
//!
//! A key signs for the DID only when the document lists it under `assertionMethod` or `authentication`; a key for
//! encryption does not. A method that no list names and that says when it was `revoked` did sign once: its key still
//! proves what was signed before (decisions/0061). The document must speak about the DID that was asked for and about
//! nobody else. Where the DID is bound to a key (ANP-03 `e1_` and `k1_`), the document must show it.
//!
//! INVARIANT: method names are unique, and each belongs to the DID of its document. The document of a bound DID has the
//! key it is bound to.

use crate::did::is_fragment;
use crate::proof::{self, ProofProblem};
use crate::{Algorithm, Binding, Did, DidError, DidUrl, KeyError, Method, Problem, PublicKey, SignatureError};
use json::{Node, Pointer, Value, json};

/// More keys than any signer needs; reading a key costs a square root on its curve.
const METHODS_MAX: usize = 64;

/// The lists that let a method sign.
const SIGNING: [(&str, Purposes); 2] = [
    ("assertionMethod", Purposes { asserts: true, ..Purposes::NONE }),
    ("authentication", Purposes { authenticates: true, ..Purposes::NONE }),
];

/// The other lists that may carry whole methods, so that no name is given twice.
const OTHER_PURPOSES: [&str; 3] = ["keyAgreement", "capabilityInvocation", "capabilityDelegation"];

/// More addresses than any agent needs at which it is described.
const DESCRIPTIONS_MAX: usize = 64;

/// What a signer's DID document says about its keys, and where its agent is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DidDocument {
    did: Did,
    methods: Vec<VerificationMethod>,
    descriptions: Vec<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct VerificationMethod {
    fragment: Box<str>,
    role: Role,
    purposes: Purposes,
}

/// ANP-08: the services of a document that lead to descriptions.
fn descriptions(root: Node<'_>) -> Vec<Box<str>> {
    let texts = |node: Node<'_>| -> Vec<Box<str>> {
        node.as_str().into_iter().chain(node.elements().filter_map(Node::as_str)).map(Box::from).collect()
    };
    let services = root.get("service").map(Node::elements).into_iter().flatten();
    let described = |service: &Node<'_>| {
        service.get("type").is_some_and(|kind| texts(kind).iter().any(|kind| &**kind == "AgentDescription"))
    };
    let endpoints = services.filter(described).filter_map(|service| service.get("serviceEndpoint"));
    endpoints.flat_map(texts).take(DESCRIPTIONS_MAX).collect()
}

/// What a method may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purposes {
    /// Documents.
    asserts: bool,
    /// Requests.
    authenticates: bool,
}

impl Purposes {
    const NONE: Self = Self { asserts: false, authenticates: false };

    fn any(self) -> bool {
        self.asserts || self.authenticates
    }

    fn and(self, other: Self) -> Self {
        Self { asserts: self.asserts || other.asserts, authenticates: self.authenticates || other.authenticates }
    }
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
            drafts.add(entry, at, Purposes::NONE, false)?;
        }
        // Whole methods first: a list may refer to a method that another list carries.
        for (list, purposes) in purposes() {
            for (at, entry) in entries(root, list)?.filter(|(_, entry)| entry.as_str().is_none()) {
                drafts.add(entry, at, purposes, true)?;
            }
        }
        for (list, purposes) in purposes() {
            for reference in entries(root, list)?.filter_map(|(_, entry)| entry.as_str()) {
                drafts.list(reference, purposes);
            }
        }
        let methods = drafts.list.into_iter().map(Draft::finish).collect::<Result<_, _>>()?;
        let document = Self { did: did.clone(), methods, descriptions: descriptions(root) };
        document.check_binding(root)?;
        Ok(document)
    }

    /// ANP-03: the name of a bound DID is the thumbprint of one of its keys, and that key stands for the document.
    fn check_binding(&self, root: Node<'_>) -> Result<(), SignatureError> {
        match self.did.binding() {
            None => Ok(()),
            Some(Binding::E1(thumbprint)) => {
                let at = Pointer::root().child("proof");
                let proved = proof::verify(root, self).map_err(|problem| refused(at.clone(), problem))?;
                if proved.key.thumbprint() == thumbprint { Ok(()) } else { Err(refused(at, DocumentProblem::Unbound)) }
            }
            Some(Binding::K1(thumbprint)) => {
                let bound = |(_, key): (&str, &PublicKey)| {
                    key.algorithm() == Algorithm::Es256k && key.thumbprint() == thumbprint
                };
                let at = Pointer::root().child("authentication");
                if self.authenticating_keys().any(bound) { Ok(()) } else { Err(refused(at, DocumentProblem::Unbound)) }
            }
        }
    }

    /// The document of a did:key, which needs no network: its one key may sign.
    pub fn of_key(did: &Did) -> Result<Self, DidError> {
        let key = did.key().ok_or(DidError::MethodUnsupported)?;
        let fragment = DidUrl::of_key(did).fragment().into();
        let purposes = Purposes { asserts: true, authenticates: true };
        let method = VerificationMethod { fragment, role: Role::Signs(key.clone()), purposes };
        Ok(Self { did: did.clone(), methods: vec![method], descriptions: Vec::new() })
    }

    /// Whose document this is.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// The addresses at which it says that its agent is described.
    pub fn descriptions(&self) -> impl Iterator<Item = &str> {
        self.descriptions.iter().map(|url| &**url)
    }

    /// The keys that may sign documents, each with its name.
    pub fn signing_keys(&self) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.keys(|_| true).filter(|(_, key)| key.algorithm().signs_documents())
    }

    /// The keys that may prove who sends a request, each with its name.
    pub fn authenticating_keys(&self) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.keys(|purposes| purposes.authenticates)
    }

    /// The keys that may make claims, each with its name.
    pub fn asserting_keys(&self) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.keys(|purposes| purposes.asserts)
    }

    fn keys(&self, serves: impl Fn(Purposes) -> bool) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.methods.iter().filter(move |method| serves(method.purposes)).filter_map(|method| match &method.role {
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
            Some(Role::Signs(key)) if key.algorithm().signs_documents() => Ok(key),
            Some(Role::Signs(_) | Role::SignsUnreadably) => Err(Problem::KeyNotFound),
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
    purposes: Purposes,
    /// Whether any list names it.
    listed: bool,
}

impl<'a> Drafts<'a> {
    fn add(&mut self, node: Node<'a>, at: Pointer, purposes: Purposes, listed: bool) -> Result<(), SignatureError> {
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
        self.list.push(Draft { fragment, node, at, purposes, listed });
        Ok(())
    }

    /// A reference to a method that is not here gives no right to anybody, so it is passed over.
    fn list(&mut self, reference: &str, purposes: Purposes) {
        let fragment = fragment_within(reference, self.did);
        if let Some(draft) = self.list.iter_mut().find(|draft| Some(draft.fragment) == fragment) {
            draft.listed = true;
            draft.purposes = draft.purposes.and(purposes);
        }
    }
}

impl Draft<'_> {
    fn finish(self) -> Result<VerificationMethod, SignatureError> {
        let revoked = self.node.get("revoked").and_then(Node::as_str);
        let signs = self.purposes.any();
        let role = match revoked {
            // Whoever lists a key that is revoked means one of the two; the safe one is that it is.
            Some(since) if signs || !self.listed => match self.read_key() {
                Ok(Role::Signs(key)) => Role::Retired(key, since.into()),
                Ok(other) if signs => other,
                Err(error) if signs => return Err(error),
                Ok(_) | Err(_) => Role::Other,
            },
            _ if signs => self.read_key()?,
            _ => Role::Other,
        };
        Ok(VerificationMethod { fragment: self.fragment.into(), role, purposes: self.purposes })
    }

    fn read_key(&self) -> Result<Role, SignatureError> {
        let (member, key) = match (self.node.get("publicKeyMultibase"), self.node.get("publicKeyJwk")) {
            (Some(_), Some(_)) => return Err(refused(self.at.clone(), DocumentProblem::TwoKeys)),
            // Base58 without more is what the first suites had; where it is no key of ours, it is one we do not know.
            (None, None) => return Ok(self.read_base58().map_or(Role::SignsUnreadably, Role::Signs)),
            (Some(text), None) => {
                let text = text.as_str().ok_or(KeyError::Multibase);
                ("publicKeyMultibase", text.and_then(|text| self.read_multibase(text)))
            }
            (None, Some(jwk)) => ("publicKeyJwk", PublicKey::from_jwk(jwk)),
        };
        match key {
            Ok(key) => Ok(Role::Signs(key)),
            Err(KeyError::Unsupported) => Ok(Role::SignsUnreadably),
            Err(error) => Err(refused(self.at.child(member), error)),
        }
    }

    /// A multibase key; the older types of a method say which kind it is, so that the key needs no prefix.
    fn read_multibase(&self, text: &str) -> Result<PublicKey, KeyError> {
        let prefixed = PublicKey::from_multibase(text);
        match (self.node.get("type").and_then(Node::as_str).and_then(bare_kind), prefixed) {
            (Some((algorithm, len)), Err(KeyError::Unsupported)) => {
                let bytes = text.strip_prefix('z').and_then(|digits| bs58::decode(digits).into_vec().ok());
                let bytes = bytes.filter(|bytes| bytes.len() == len).ok_or(KeyError::Unsupported)?;
                PublicKey::from_bytes(algorithm, &bytes)
            }
            (_, prefixed) => prefixed,
        }
    }

    fn read_base58(&self) -> Option<PublicKey> {
        let text = self.node.get("publicKeyBase58").and_then(Node::as_str)?;
        let (algorithm, len) = self.node.get("type").and_then(Node::as_str).and_then(bare_kind)?;
        if text.len() > BASE58_CHARS_MAX {
            return None;
        }
        let bytes = bs58::decode(text).into_vec().ok().filter(|bytes| bytes.len() == len)?;
        PublicKey::from_bytes(algorithm, &bytes).ok()
    }
}

fn purposes() -> impl Iterator<Item = (&'static str, Purposes)> {
    SIGNING.into_iter().chain(OTHER_PURPOSES.into_iter().map(|list| (list, Purposes::NONE)))
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

/// Characters of a base58 text above which it is no key; base58 costs the square of its length.
const BASE58_CHARS_MAX: usize = 64;

/// The kind of key, and its length, that a type of method means by itself.
fn bare_kind(method_type: &str) -> Option<(Algorithm, usize)> {
    match method_type {
        "Ed25519VerificationKey2018" | "Ed25519VerificationKey2020" => Some((Algorithm::EdDsa, 32)),
        "EcdsaSecp256k1VerificationKey2019" => Some((Algorithm::Es256k, 33)),
        _ => None,
    }
}

/// A published method and the context that explains its type; the public probes know these two types.
fn describe(id: &str, controller: &str, key: &PublicKey) -> (&'static str, Value) {
    match key.algorithm() {
        Algorithm::EdDsa => (
            "https://w3id.org/security/suites/ed25519-2020/v1",
            json!({
                "id": id,
                "type": "Ed25519VerificationKey2020",
                "controller": controller,
                "publicKeyMultibase": key.to_multibase(),
            }),
        ),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es256k => (
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
    /// A proof that does not hold.
    #[error("{0}")]
    Proof(#[from] ProofProblem),
    /// Another key than the name says.
    #[error(
        "the DID ends in the fingerprint of another key; make the document with the key that the DID is named after"
    )]
    Unbound,
}

#[cfg(test)]
mod tests;
