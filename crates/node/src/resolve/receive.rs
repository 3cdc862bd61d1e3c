//! RFC 0020 A.3 R1: cheap checks before costly ones, local ones before remote ones.
//!
//! Size, parse, schema, limits, window, the look for a replay; then the issuer's keys, the signature, the issuer's
//! quota. Nothing is asked of anybody else before the first six have passed, and nothing is written before the last.
//! The quota comes after the signature, or anybody could use up another's, and a repetition costs nothing, or whoever
//! overheard a message could (decisions/0060).

use crate::clock::Clock;
use crate::delegation::has_chain;
use crate::gate::Viewer;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use crate::replies;
use crate::versions::{Heard, INTENT};
use aql::{Category, Intent, Limits};
use json::{Document, Pointer};
use schema::{Exchange, Form};
use std::sync::Arc;
use tracing::{Instrument, debug_span};
use trust::{Delegation, Did, DidDocument, Signed};

/// When somebody may come again for whose domain too many DIDs are looked up.
const LOOK_AGAIN_MS: u64 = 60_000;

/// An intent whose cheap checks have passed.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) intent: Intent,
    pub(crate) document: Document,
    pub(crate) digest: [u8; 16],
    issuer: Did,
    proof: Proof,
    exchange: Option<Exchange>,
    pub(crate) form: Form,
    /// Whether the issuer proved to have sent it here.
    sent_here: bool,
}

/// What makes an intent somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// A signature, which is still to be checked.
    Signature,
    /// The request that brought it, whose sender is proved (decisions/0191).
    Sent,
    /// Nothing: the operator of a node on loopback waived it for this issuer (decisions/0036).
    Waived,
}

/// An intent that its issuer signed.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) intent: Intent,
    /// Whose authority the issuer uses or gives, when the intent carries a chain.
    pub(crate) delegation: Option<Delegation>,
    /// As it was signed.
    pub(crate) document: Document,
    pub(crate) digest: [u8; 16],
    pub(crate) issuer: Did,
    /// Whose eyes the answer is made for.
    pub(crate) viewer: Viewer,
    /// What the message is.
    pub(crate) schema: &'static str,
    /// In which versions it is read and answered, where it says so.
    pub(crate) exchange: Option<Exchange>,
}

impl Node {
    /// Everything that can be known of an intent without asking anybody.
    pub(crate) fn receive(&self, bytes: &[u8]) -> Result<Received, Error> {
        self.receive_from(bytes, None)
    }

    /// The same of an intent that somebody sent who is proved: without a signature it is his.
    pub(crate) fn receive_from(&self, bytes: &[u8], sender: Option<&Did>) -> Result<Received, Error> {
        let _receive = debug_span!("receive", bytes = bytes.len()).entered();
        let heard = self.hear(INTENT, bytes)?;
        let read = debug_span!("parse").in_scope(|| {
            let document = Document::parse(heard.payload(), &Limits::STANDARD.json)?;
            Ok::<_, Error>((self.read_intent(&heard, &document)?, document))
        });
        let (intent, document) = read.map_err(|error| heard.place(error))?;
        let _check = debug_span!("check").entered();
        let received = match self.waived(&intent) {
            Some(issuer) => self.read_unverified(intent, document, replies::digest(bytes), issuer),
            None => self.read_envelope(intent, document, replies::digest(bytes), sender),
        };
        let mut received = received.map_err(|error| heard.place(error))?;
        (received.exchange, received.form) = (heard.exchange().cloned(), heard.form());
        let (intent, now) = (&received.intent, self.clock.millis());
        if self.replies.is_other(replies::key(&intent.issuer_did, &intent.intent_id, ""), received.digest, now)? {
            return Err(reused().into());
        }
        Ok(received)
    }

    /// Reads an intent in the version that it says; what other versions have is translated first (RFC 0024 §3.3).
    fn read_intent(&self, heard: &Heard<'_>, document: &Document) -> Result<Intent, Error> {
        let root = document.root();
        let Some(inward) = self.versions.inbound(heard, root)? else {
            return Ok(Intent::read(root, &Limits::STANDARD)?);
        };
        let translated = Document::of(inward.value())?;
        let intent = Intent::read(translated.root(), &Limits::STANDARD)?;
        self.versions.check_inward(&inward)?;
        if root.get("issuer_did").and_then(json::Node::as_str) != Some(intent.issuer_did.as_str()) {
            let detail = "a mapping does not say whose question it is; the issuer is the one who signed";
            let refusal = Refusal::new(Class::Unprocessable, schema::Code::ProtectedField.name(), detail);
            return Err(refusal.at(Pointer::root().child("issuer_did")).into());
        }
        Ok(intent)
    }

    /// An intent whose name may have been used: a question about it is not the question itself.
    pub(crate) fn receive_for_explanation(&self, document: Document, sender: Option<&Did>) -> Result<Received, Error> {
        let heard = self.hear_inside(INTENT, document.root())?;
        let intent = self.read_intent(&heard, &document)?;
        check_category(&intent)?;
        let digest = replies::digest(&json::canonical(document.root()));
        let received = self.read_envelope(intent, document, digest, sender)?;
        Ok(Received { exchange: heard.exchange().cloned(), ..received })
    }

    /// The window, and who claims to have signed, or who is proved to have sent it.
    fn read_envelope(
        &self,
        intent: Intent,
        document: Document,
        digest: [u8; 16],
        sender: Option<&Did>,
    ) -> Result<Received, Error> {
        intent.check_window(self.clock.now(), &Limits::STANDARD)?;
        // Authority that others gave is used under a signature only.
        let unsigned = document.root().get("signature").is_none() && !has_chain(&document);
        if let Some(sender) = sender.filter(|_| unsigned) {
            if sender.as_str() != intent.issuer_did {
                let detail = "the intent is issued by somebody else than the sender; let the issuer sign it";
                let at = Pointer::root().child("issuer_did");
                return Err(Refusal::new(Class::PolicyBlock, "forbidden_did", detail).at(at).into());
            }
            let (issuer, proof) = (sender.clone(), Proof::Sent);
            return Ok(Received::new(intent, document, digest, (issuer, proof)));
        }
        let issuer = Signed::read(&document)?.issuer("issuer_did")?;
        Ok(Received::new(intent, document, digest, (issuer, Proof::Signature)))
    }

    /// The issuer of a discovery intent whose signature is not asked for.
    fn waived(&self, intent: &Intent) -> Option<Did> {
        let named = self.unverified_issuer.as_ref().filter(|issuer| issuer.as_str() == intent.issuer_did);
        named.filter(|_| intent.category == Category::Discovery).cloned()
    }

    fn read_unverified(
        &self,
        intent: Intent,
        document: Document,
        digest: [u8; 16],
        issuer: Did,
    ) -> Result<Received, Error> {
        intent.check_window(self.clock.now(), &Limits::STANDARD)?;
        tracing::warn!(%issuer, "an intent is answered whose signature nobody checked");
        Ok(Received::new(intent, document, digest, (issuer, Proof::Waived)))
    }

    /// The keys of whoever signed.
    pub(crate) async fn keys_of(&self, did: &Did) -> Result<Arc<DidDocument>, Error> {
        if did == self.identity.did() {
            // Nobody asks himself over the network who he is.
            let document = Document::of(&self.identity.document()).map_err(Error::fault)?;
            return Ok(Arc::new(DidDocument::read(document.root(), did)?));
        }
        self.dids.resolve(did, Clock::monotonic()).instrument(debug_span!("keys")).await.map_err(|error| {
            let refusal = Refusal::new(error.class(), error.code(), error.to_string());
            match error.class() {
                Class::RateLimited => refusal.retry_after(LOOK_AGAIN_MS).into(),
                _ => refusal.into(),
            }
        })
    }

    /// The keys of an intent's issuer, where a signature is to be checked.
    pub(crate) async fn issuer_keys(&self, received: &Received) -> Result<Option<Arc<DidDocument>>, Error> {
        match received.proof {
            Proof::Signature => self.keys_of(&received.issuer).await.map(Some),
            Proof::Sent | Proof::Waived => Ok(None),
        }
    }
}

impl Received {
    fn new(intent: Intent, document: Document, digest: [u8; 16], (issuer, proof): (Did, Proof)) -> Self {
        let sent_here = proof == Proof::Sent;
        Self { intent, document, digest, issuer, proof, exchange: None, form: Form::Bare, sent_here }
    }

    /// The same, brought by a request that somebody proved to have sent.
    pub(crate) fn brought_by(mut self, caller: Option<&Did>) -> Self {
        self.sent_here |= caller == Some(&self.issuer);
        self
    }

    /// Whether its issuer sent it to this node and to no other.
    pub(crate) fn is_sent_here(&self) -> bool {
        self.sent_here
    }

    /// Checks the signature, which is the last thing before the store is touched.
    pub(crate) fn verify(self, keys: Option<&DidDocument>, delegation: Option<Delegation>) -> Result<Accepted, Error> {
        let viewer = match (self.proof, keys) {
            // A name that nobody proved opens nothing.
            (Proof::Waived, _) => Viewer::Public,
            (Proof::Sent, _) => Viewer::Named(self.issuer.clone()),
            (Proof::Signature, Some(keys)) => {
                verify(&self.document, keys)?;
                Viewer::Named(self.issuer.clone())
            }
            (Proof::Signature, None) => return Err(Error::fault("a signature is to be checked without keys")),
        };
        let Self { intent, document, digest, issuer, exchange, .. } = self;
        Ok(Accepted { intent, delegation, document, digest, issuer, viewer, schema: INTENT, exchange })
    }
}

/// Checks a signature; what comes after it may touch the store.
pub(crate) fn verify(document: &Document, keys: &DidDocument) -> Result<(), Error> {
    let _verify = debug_span!("verify").entered();
    Signed::read(document)?.verify_with(keys)?;
    Ok(())
}

/// An intent that stays open has no answer that could be given, explained or invoked.
pub(crate) fn check_category(intent: &Intent) -> Result<(), Refusal> {
    if intent.category != Category::Subscription {
        return Ok(());
    }
    let detail = "a standing intent has no answer; send it to `/oap/subscribe`, or ask once with another category";
    let at = Pointer::root().child("category");
    Err(Refusal::new(Class::InvalidInput, "category_not_supported", detail).at(at))
}

pub(crate) fn reused() -> Refusal {
    let detail = "another intent of yours has this `intent_id`; give each intent a name of its own";
    Refusal::new(Class::Conflict, "intent_id_reused", detail).at(Pointer::root().child("intent_id"))
}
