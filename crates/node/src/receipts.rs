//! RFC 0019, RFC 0020 §3.7: receipts as the public may see them: one about this node, the chain of its own, and whether
//! one that somebody holds is sound.
//!
//! Who asked for what is nobody else's business, so the chain is shown as its links: the digest of each receipt and of
//! the one before. Whoever holds a receipt finds its digest there; whoever does not learns nothing from a digest, since
//! every receipt has 128 random bits in its name (decisions/0112).
//!
//! INVARIANT: nobody else is asked for anything here, since whoever sends a receipt has proved nothing.

use crate::node::Node;
use crate::publish::text;
use crate::refusal::{Class, Error, Refusal};
use crate::versions;
use aql::Instant;
use json::{Document, Limits, Node as Member, Pointer, Value, json};
use std::io::Read;
use trust::{Did, DidDocument, Digest, SignedList};

/// The receipt that the operator shows, in the data folder.
pub(crate) const CONFORMANCE_FILE: &str = "conformance-receipt.json";
/// Deliveries whose links one page of the chain has.
pub(crate) const DELIVERIES_MAX: usize = 256;
/// Signatures of a receipt that are looked at.
pub(crate) const SIGNATURES_MAX: usize = 8;

impl Node {
    /// The conformance receipt about this node that its operator put into the data folder, byte for byte.
    pub fn conformance_receipt(&self) -> Result<Vec<u8>, Error> {
        let found = self.shown_receipt().filter(|receipt| self.is_about_us(receipt));
        found.map(|(bytes, _)| bytes).ok_or_else(|| {
            let detail = "this node shows no conformance receipt; `rialto conformance URL --receipt FILE` makes one";
            Refusal::new(Class::NotFound, "receipt_not_found", detail).into()
        })
    }

    /// The levels that the shown receipt claims; nothing when none is shown.
    pub(crate) fn attested(&self) -> Option<Vec<String>> {
        let (_, receipt) = self.shown_receipt().filter(|receipt| self.is_about_us(receipt))?;
        let levels = receipt.root().get("claimed_levels").into_iter().flat_map(Member::elements);
        Some(levels.filter_map(Member::as_str).map(str::to_owned).collect())
    }

    fn shown_receipt(&self) -> Option<(Vec<u8>, Document)> {
        let (path, mut bytes) = (self.data.join(CONFORMANCE_FILE), Vec::new());
        let limit = u64::from(Limits::DOCUMENT.bytes) + 1;
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).ok()?;
        match Document::parse(&bytes, &Limits::DOCUMENT) {
            Ok(document) => Some((bytes, document)),
            Err(error) => {
                tracing::warn!(%error, file = CONFORMANCE_FILE, "the conformance receipt cannot be read");
                None
            }
        }
    }

    /// Whether a receipt is one, is about this node, holds now, and is signed by somebody whose keys can be seen here.
    fn is_about_us(&self, (_, receipt): &(Vec<u8>, Document)) -> bool {
        let root = receipt.root();
        let text = |place: Option<Member<'_>>| place.and_then(Member::as_str).map(str::to_owned);
        let ours = text(root.get("implementation").and_then(|named| named.get("did")));
        let until = text(root.get("validity").and_then(|window| window.get("not_after")));
        let until = until.as_deref().and_then(Instant::parse_rfc3339);
        let sound = text(root.get("type")).as_deref() == Some("conformance")
            && ours.as_deref() == Some(self.identity.did().as_str())
            && until.is_some_and(|until| until > self.clock.now())
            && self.check_signatures(receipt, "peer_witnesses").is_ok();
        if !sound {
            tracing::warn!(
                file = CONFORMANCE_FILE,
                "the conformance receipt is expired, not signed, or not about this node"
            );
        }
        sound
    }

    /// Says of a receipt that it is sound, and whether it stands in this node's chain; a refusal says what is wrong.
    pub fn verify_receipt(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let receipt = Document::parse(bytes, &Limits::DOCUMENT)?;
        if !receipt.root().is_object() {
            return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a receipt is an object").into());
        }
        let (id, previous) = (text(&receipt, "receipt_id")?, text(&receipt, "previous_receipt_hash")?);
        if previous != "genesis" && Digest::read(&previous).is_none() {
            let detail = "`genesis` or `sha256:` and 64 hexadecimal digits belong here";
            let at = Pointer::root().child("previous_receipt_hash");
            return Err(Refusal::new(Class::InvalidInput, "invalid_value", detail).at(at).into());
        }
        self.versions.count(versions::RECEIPT, None, None, self.clock.millis());
        let canonical = json::canonical(receipt.root());
        let kept = self.meter.receipt(&id)?.map(|kept| json::canonical_value(&kept));
        let in_chain = kept.is_some_and(|kept| kept == canonical);
        let signers = self.check_signatures(&receipt, "signatures")?;
        Ok(self.identity.sign(json!({
            "type": "oap.receipt.verification",
            "tool_did": self.identity.did().as_str(),
            "at": self.clock.now().to_string(),
            "valid": true,
            "receipt_id": id,
            "receipt_hash": Digest::of(&canonical).to_string(),
            "previous_receipt_hash": previous,
            "in_chain": in_chain,
            "signers": signers.iter().map(Did::as_str).collect::<Vec<_>>(),
        })))
    }

    /// Checks every signature of a receipt, as far as that needs nobody else.
    fn check_signatures(&self, receipt: &Document, beside: &str) -> Result<Vec<Did>, Error> {
        let list = SignedList::read(receipt, beside)?;
        let signers: Vec<Did> = list.signers().cloned().collect();
        if signers.len() > SIGNATURES_MAX {
            let detail = format!("a receipt has at most {SIGNATURES_MAX} signatures");
            let refusal = Refusal::new(Class::InvalidInput, "invalid_value", detail).at(signatures());
            return Err(refusal.limited("receipts.signatures", SIGNATURES_MAX as u64, signers.len() as u64).into());
        }
        for signer in &signers {
            list.verify_with(&self.seen_keys(signer)?)?;
        }
        Ok(signers)
    }

    /// The keys of somebody, without asking anybody.
    fn seen_keys(&self, did: &Did) -> Result<DidDocument, Error> {
        if did == self.identity.did() {
            let document = Document::of(&of_all_times(self.identity.document())).map_err(Error::fault)?;
            return DidDocument::read(document.root(), did).map_err(Error::fault);
        }
        DidDocument::of_key(did).map_err(|_| {
            let detail = "this node verifies its own receipts and those of did:key; ask whoever issued this one";
            Refusal::new(Class::Unprocessable, "receipt_unverifiable", detail).at(signatures()).into()
        })
    }

    /// A page of the chain, one link in a line, and last a signed line about the page and the head of the chain.
    pub fn receipt_chain(&self, cursor: Option<&str>) -> Result<Vec<u8>, Error> {
        let place = cursor.map_or(Some((0, 0)), |cursor| {
            let (file, offset) = cursor.split_once('-')?;
            Some((file.parse().ok()?, offset.parse().ok()?))
        });
        let page = place.map(|place| self.meter.links(place, DELIVERIES_MAX)).transpose()?.flatten();
        let page = page.ok_or_else(|| {
            let detail = "no page of the chain begins there; leave `cursor` out, or use the last `next_cursor`";
            Refusal::new(Class::InvalidInput, "invalid_cursor", detail)
        })?;
        let mut lines = Vec::new();
        for (hash, previous) in &page.links {
            lines.extend(json::canonical_value(&json!({"receipt_hash": hash, "previous_receipt_hash": previous})));
            lines.push(b'\n');
        }
        let mut last = json!({
            "type": "oap.receipt_chain",
            "tool_did": self.identity.did().as_str(),
            "at": self.clock.now().to_string(),
            "links": page.links.len(),
            "links_hash": Digest::of(&lines).to_string(),
            "head": page.head,
        });
        if let (Some(members), Some((file, offset))) = (last.as_object_mut(), page.next) {
            members.insert("next_cursor".to_owned(), json!(format!("{file}-{offset}")));
        }
        lines.extend(self.identity.sign(last));
        lines.push(b'\n');
        Ok(lines)
    }
}

/// The node's own document with the keys that signed once among those that sign: a receipt may be older than its key.
fn of_all_times(mut document: Value) -> Value {
    let methods = document.get_mut("verificationMethod").and_then(Value::as_array_mut).into_iter().flatten();
    let names: Vec<Value> = methods
        .filter_map(|method| {
            method.as_object_mut()?.remove("revoked");
            method.get("id").cloned()
        })
        .collect();
    if let Some(members) = document.as_object_mut() {
        members.insert("assertionMethod".to_owned(), Value::Array(names));
    }
    document
}

fn signatures() -> Pointer {
    Pointer::root().child("signatures")
}
