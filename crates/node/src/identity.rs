//! RFC 0020 A.3 R6: who this node is, and its signature under everything it says.

use crate::chance;
use crate::refusal::Error;
use json::{Document, Limits, Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use trust::{Algorithm, Did, SigningKey, encoding};
use zeroize::Zeroizing;

/// The file of the node's key, in its data folder.
pub(crate) const KEY_FILE: &str = "node.key";

/// The fragment of the node's key when the node has a name of its own.
const KEY_NAME: &str = "node-key";

/// The node's name and key.
#[derive(Debug)]
pub struct Identity {
    key: SigningKey,
    did: Did,
    kid: String,
}

impl Identity {
    /// A node that is called by its key.
    pub fn of_key(key: SigningKey) -> Self {
        let (did, kid) = (key.did_key(), key.key_id().to_string());
        Self { key, did, kid }
    }

    /// A node that is called by the address where it publishes its key.
    pub fn named(key: SigningKey, did: Did) -> Self {
        let kid = format!("{did}#{KEY_NAME}");
        Self { key, did, kid }
    }

    /// What the node is called.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// The DID document that lets others check the node's signatures.
    pub fn document(&self) -> Value {
        let public = self.key.public();
        json!({
            "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/ed25519-2020/v1"],
            "id": self.did.as_str(),
            "verificationMethod": [{
                "id": self.kid,
                "type": "Ed25519VerificationKey2020",
                "controller": self.did.as_str(),
                "publicKeyMultibase": public.to_multibase(),
            }],
            "authentication": [self.kid],
            "assertionMethod": [self.kid],
        })
    }

    /// The signature member for a body in canonical form.
    pub(crate) fn signature(&self, body: &[u8]) -> Value {
        json!({
            "alg": Algorithm::EdDsa.name(),
            "kid": self.kid,
            "value": encoding::encode(&self.key.sign(body)),
        })
    }

    /// Signs a body whose canonical form would have `signature` as its last member, without writing it again.
    pub(crate) fn sign_last(&self, mut body: Vec<u8>) -> Vec<u8> {
        let signature = json::canonical_value(&self.signature(&body));
        body.pop();
        body.extend_from_slice(b",\"signature\":");
        body.extend_from_slice(&signature);
        body.push(b'}');
        body
    }

    /// Signs an object and writes it in canonical form.
    pub(crate) fn sign(&self, mut body: Value) -> Vec<u8> {
        let signature = self.signature(&json::canonical_value(&body));
        if let Some(members) = body.as_object_mut() {
            members.insert("signature".to_owned(), signature);
        }
        json::canonical_value(&body)
    }
}

/// The key in a data folder, made when there is none.
pub(crate) fn key_of(folder: &Path) -> Result<SigningKey, Error> {
    let path = folder.join(KEY_FILE);
    let failed = |error: std::io::Error| Error::fault(format!("{}: {error}", path.display()));
    match fs::read(&path) {
        Ok(text) => read_key(&Zeroizing::new(text))
            .ok_or_else(|| Error::fault(format!("{} holds no Ed25519 key as a private JWK", path.display())))
            .and_then(|key| private(&path).map(|()| key)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let seed = Zeroizing::new(chance::bytes::<32>()?);
            let key = SigningKey::from_seed(*seed);
            let mut jwk = key.public().to_jwk();
            if let Some(members) = jwk.as_object_mut() {
                members.insert("d".to_owned(), json!(encoding::encode(seed.as_ref())));
            }
            let text = Zeroizing::new(format!("{jwk:#}\n"));
            // Under another name first: half a key would keep the node from ever starting again.
            let half = path.with_extension("half");
            let _ = fs::remove_file(&half);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half).map_err(failed)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
            fs::rename(&half, &path).and_then(|()| fs::File::open(folder)?.sync_all()).map_err(failed)?;
            Ok(key)
        }
        Err(error) => Err(failed(error)),
    }
}

/// A key that others can read is no key any more.
fn private(path: &Path) -> Result<(), Error> {
    let mode = fs::metadata(path).map_err(Error::fault)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(Error::fault(format!("{} can be read by others; `chmod 600` it, and consider a new key", path.display())))
}

fn read_key(text: &[u8]) -> Option<SigningKey> {
    let document = Document::parse(text, &Limits::INTENT).ok()?;
    let jwk = document.root();
    let seed = Zeroizing::new(encoding::decode_url(jwk.get("d")?.as_str()?)?);
    let key = SigningKey::from_seed(seed.as_slice().try_into().ok()?);
    (key.public().to_jwk().get("x")?.as_str() == jwk.get("x")?.as_str()).then_some(key)
}
