//! Good messages, changed in one place: before they are signed, after it, or as text.

use super::bytes::{Names, fill, value};
use anyhow::{Context, Result, bail};
use aql::Instant;
use json::{Pointer, Value, json};
use trust::http::{COMPONENTS, Headers, Request, Signing, sign};
use trust::{Digest, SigningKey};

/// The intent of RFC 0020.
const INTENT: &str = "https://openagentprotocol.eu/schemas/v1.0/oap-intent.schema.json";

/// What the keys of the senders are made of.
const SEED: &str = "attack";

/// Seconds for which a signed request is good.
const PROOF_SECONDS: i64 = 120;

/// Those who send.
pub(crate) struct Senders {
    pub(crate) issuer: SigningKey,
    pub(crate) other: SigningKey,
}

fn key(name: &str) -> SigningKey {
    SigningKey::from_seed(*Digest::of(format!("{SEED} {name}").as_bytes()).as_bytes())
}

impl Senders {
    pub(crate) fn new() -> Self {
        Self { issuer: key("issuer"), other: key("other") }
    }

    /// The header fields by which somebody signs a request; `nonce` was never signed before.
    pub(crate) fn proof(&self, name: &str, request: (&str, &str, &[u8]), nonce: &str) -> Result<Vec<(String, String)>> {
        let ((method, target, body), keyid) = (request, self.named(name)?.key_id().to_string());
        let created = crate::crash::clock();
        let (secret, expires) = (key(name).into(), created + PROOF_SECONDS);
        let signing = Signing { key: &secret, keyid: &keyid, created, expires, nonce };
        let request = Request { method, target, headers: Headers::new(&[]), body };
        let fields = sign(&request, &signing, &COMPONENTS);
        Ok(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Somebody by name: those whom the node is told of, and any number of strangers.
    fn named(&self, name: &str) -> Result<SigningKey> {
        match name {
            "issuer" | "other" => Ok(key(name)),
            name if name.starts_with("stranger ") => Ok(key(name)),
            name => bail!("nobody is called `{name}`"),
        }
    }

    /// Who signs a message with changes.
    fn signer(&self, changes: &Value, names: &Names) -> Result<SigningKey> {
        self.named(&fill(changes.get("by").and_then(Value::as_str).unwrap_or("issuer"), names))
    }

    /// A signed intent with changes: `set` and `remove` before it is signed, `by` says by whom, `then_set` and
    /// `then_remove` change it afterwards, `replace` its text, and `over` what is signed.
    pub(crate) fn intent(&self, changes: &Value, names: &Names) -> Result<Vec<u8>> {
        let key = self.signer(changes, names)?;
        let time = |seconds: i64| Instant::from_unix(crate::crash::clock() + seconds, 0).to_string();
        let run = names.get("fresh").map(String::as_str).unwrap_or_default();
        let good = json!({
            "intent_id": format!("urn:oap:intent:attack-{run}"),
            "issuer_did": key.did_key().as_str(),
            "category": "knowledge",
            "constraints": {"path": "/run", "operator": "eq", "value": names.get("run")},
            "projection": {"include": ["/id"]},
            "validity": {"from": time(-60), "to": time(3_600)},
        });
        self.changed(good, changes, &key, names)
    }

    /// A signed publication with changes.
    pub(crate) fn publication(&self, changes: &Value, names: &Names) -> Result<Vec<u8>> {
        let key = self.signer(changes, names)?;
        let run = names.get("fresh").map(String::as_str).unwrap_or_default();
        let good = json!({
            "publication_id": format!("urn:rialto:publication:attack-{run}"),
            "publisher_did": key.did_key().as_str(),
            "issued_at": Instant::from_unix(crate::crash::clock(), 0).to_string(),
            "kind": "knowledge",
            "record": {"id": format!("urn:rialto:attack:{run}"), "run": names.get("run"), "@type": "oap.knowledge"},
        });
        self.changed(good, changes, &key, names)
    }

    /// A signed mapping with changes: from a question of the sender's own to the intent, which it moves one member of.
    pub(crate) fn mapping(&self, changes: &Value, names: &Names) -> Result<Vec<u8>> {
        let key = self.signer(changes, names)?;
        let run = names.get("run").map(String::as_str).unwrap_or_default();
        let good = json!({
            "mapping_id": format!("urn:oap:mapping:attack-{run}"),
            "source": {"schema": format!("https://schemas.example/attack/{run}.json"), "version": "0.9"},
            "destination": {"schema": INTENT, "version": "1.3"},
            "directionality": "unidirectional",
            "passthrough": true,
            "rules": [{"op": "move", "from": "/where", "to": "/constraints"}],
            "publisher_did": key.did_key().as_str(),
            "published_at": "2026-05-04T00:00:00Z",
        });
        self.changed(good, changes, &key, names)
    }

    fn changed(&self, mut message: Value, changes: &Value, key: &SigningKey, names: &Names) -> Result<Vec<u8>> {
        change(&mut message, changes, ("set", "remove"), names)?;
        match changes.get("over").and_then(Value::as_str) {
            None => trust::sign(&mut message, key).map_err(|error| anyhow::anyhow!("{error}"))?,
            // As another protocol signs: not the canonical bytes, but their hash.
            Some("digest") => {
                let digest = Digest::of(&json::canonical_value(&message));
                let value = trust::encoding::encode(&key.sign(digest.as_bytes()));
                let kid = key.key_id().to_string();
                set(&mut message, "/signature", json!({"alg": "EdDSA", "kid": kid, "value": value}))?;
            }
            Some(other) => bail!("nobody signs over `{other}`"),
        }
        change(&mut message, changes, ("then_set", "then_remove"), names)?;
        let mut text = message.to_string();
        for pair in changes.get("replace").and_then(Value::as_array).into_iter().flatten() {
            let side = |at: usize| -> Result<String> {
                let side = pair.get(at).context("a replacement needs two texts")?;
                Ok(String::from_utf8(super::bytes::bytes(side, names)?)?)
            };
            let (from, to) = (side(0)?, side(1)?);
            anyhow::ensure!(text.contains(&from), "`{from}` does not stand in {text}");
            text = text.replacen(&from, &to, 1);
        }
        Ok(text.into_bytes())
    }
}

fn change(message: &mut Value, changes: &Value, (sets, removes): (&str, &str), names: &Names) -> Result<()> {
    for (place, spelled) in changes.get(sets).and_then(Value::as_object).into_iter().flatten() {
        set(message, place, value(spelled, names)?)?;
    }
    for place in changes.get(removes).and_then(Value::as_array).into_iter().flatten() {
        let place = place.as_str().context("a place is a text")?;
        let (parent, name) = place.rsplit_once('/').context("a place begins with a slash")?;
        let parent = message.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.with_context(|| format!("nothing at `{place}`"))?.remove(name);
    }
    Ok(())
}

/// Puts a value at a place whose parent exists.
fn set(message: &mut Value, place: &str, new: Value) -> Result<()> {
    let (parent, name) = place.rsplit_once('/').context("a place begins with a slash")?;
    let parent = message.pointer_mut(parent).with_context(|| format!("nothing above `{place}`"))?;
    match parent {
        Value::Object(members) => members.insert(name.replace("~1", "/").replace("~0", "~"), new),
        _ => bail!("no object above `{place}`"),
    };
    Ok(())
}

/// Every place of a message that holds something small, to be changed one by one.
pub(crate) fn places(message: &Value, at: &Pointer, found: &mut Vec<Pointer>) {
    match message {
        Value::Object(members) => members.iter().for_each(|(name, member)| places(member, &at.child(name), found)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(number, element)| {
                places(element, &at.child(number.to_string()), found);
            });
        }
        _ => found.push(at.clone()),
    }
}
