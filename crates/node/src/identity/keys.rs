//! The node's keys at rest: the one that signs, the one that follows, and the public halves of those before.
//!
//! INVARIANT: a file with a secret is readable by its owner only, when it is written and when it is read; the secret of
//! a retired key is not kept.

use super::Retired;
use crate::chance;
use crate::clock::instant;
use crate::refusal::Error;
use aql::Instant;
use json::{Document, Limits, Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use trust::{PublicKey, SigningKey, encoding};
use zeroize::Zeroizing;

/// The file of the key that signs, in the data folder.
const KEY: &str = "node.key";
/// The file of the key that follows.
const NEXT: &str = "node.key.next";
/// The public halves of the keys before, oldest first.
const RETIRED: &str = "node.keys.retired.json";

/// Every file here.
pub(crate) const FILES: [&str; 3] = [KEY, NEXT, RETIRED];

/// How long a key is announced before it signs: twice as long as a node remembers a DID document.
const ANNOUNCED_MS: i64 = 600_000;

/// The keys in a data folder.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(super) current: SigningKey,
    pub(super) next: Option<(SigningKey, i64)>,
    pub(super) retired: Vec<Retired>,
}

impl Keys {
    /// Reads the keys, and makes the first one when there is none.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let current = match Secret::read(&folder.join(KEY))? {
            Some(secret) => secret.key,
            None => Secret::create(&folder.join(KEY), None)?,
        };
        let next = match Secret::read(&folder.join(NEXT))? {
            Some(Secret { key, from: Some(from) }) => Some((key, from)),
            Some(_) => return Err(Error::fault(format!("{NEXT} does not say from when on it signs"))),
            None => None,
        };
        let mut retired = read_retired(&folder.join(RETIRED))?;
        // A rotation that was torn away had noted its key already, which still signs.
        let own = current.public().to_multibase();
        retired.retain(|retired| retired.key.to_multibase() != own);
        Ok(Self { current, next, retired })
    }

    /// The same once the key that follows has taken its place on disk; it does when its time has come, and at once in a
    /// node that is called by its key, which has no document to announce it in.
    pub(crate) fn settle(self, folder: &Path, now: i64, named: bool) -> Result<Self, Error> {
        let Self { current, next, mut retired } = self;
        let Some((next, from)) = next else { return Ok(Self { current, next: None, retired }) };
        if named && from > now {
            return Ok(Self { current, next: Some((next, from)), retired });
        }
        retired.push(Retired { key: current.public(), since: from.min(now) });
        write_retired(&folder.join(RETIRED), &retired)?;
        let (from, to) = (folder.join(NEXT), folder.join(KEY));
        fs::rename(&from, &to).and_then(|()| File::open(folder)?.sync_all()).map_err(|error| failed(&to, &error))?;
        Ok(Self { current: next, next: None, retired })
    }
}

/// What becomes of a node's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The key until now, as multibase.
    pub old: String,
    /// The key that follows, as multibase.
    pub new: String,
    /// When it begins to sign.
    pub from: Instant,
}

/// Makes the key that follows in a data folder; it signs after it has been announced for a while, or at once.
pub(crate) fn rotate(folder: &Path, now: i64, at_once: bool) -> Result<Rotation, Error> {
    if !folder.join(KEY).exists() {
        return Err(Error::fault(format!("there is no key in {}; a node makes one when it starts", folder.display())));
    }
    let keys = Keys::open(folder)?.settle(folder, now, true)?;
    if let Some((_, from)) = keys.next {
        let from = instant(from);
        return Err(Error::fault(format!("a key is announced already and signs from {from} on; wait until then")));
    }
    let from = if at_once { now } else { now.saturating_add(ANNOUNCED_MS) };
    // A whole second, and none that has begun: what was signed in it is older than the end of its key.
    let from = from.saturating_add(999) / 1_000 * 1_000;
    let new = Secret::create(&folder.join(NEXT), Some(from))?;
    Ok(Rotation { old: keys.current.public().to_multibase(), new: new.public().to_multibase(), from: instant(from) })
}

/// A private JWK in a file of its own, with the moment from which it signs where that is to come.
struct Secret {
    key: SigningKey,
    from: Option<i64>,
}

impl Secret {
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, &error)),
        };
        check_private(path, &file)?;
        let mut text = Zeroizing::new(Vec::new());
        file.read_to_end(&mut text).map_err(|error| failed(path, &error))?;
        let read = Self::parse(&text);
        read.map(Some).ok_or_else(|| {
            Error::fault(format!("{} holds no Ed25519 key as a private JWK; put a copy of it back", path.display()))
        })
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let document = Document::parse(text, &Limits::INTENT).ok()?;
        let jwk = document.root();
        let seed = Zeroizing::new(encoding::decode_url(jwk.get("d")?.as_str()?)?);
        let key = SigningKey::from_seed(seed.as_slice().try_into().ok()?);
        let from = match jwk.get("from") {
            Some(from) => Some(Instant::parse_rfc3339(from.as_str()?)?.seconds().saturating_mul(1_000)),
            None => None,
        };
        (key.public().to_jwk().get("x")?.as_str() == jwk.get("x")?.as_str()).then_some(Self { key, from })
    }

    /// Makes a key and its file.
    fn create(path: &Path, from: Option<i64>) -> Result<SigningKey, Error> {
        let seed = Zeroizing::new(chance::bytes::<32>()?);
        let key = SigningKey::from_seed(*seed);
        let mut jwk = key.public().to_jwk();
        if let Some(members) = jwk.as_object_mut() {
            members.insert("d".to_owned(), json!(encoding::encode(seed.as_ref())));
            members.extend(from.map(|from| ("from".to_owned(), json!(instant(from).to_string()))));
        }
        let text = Zeroizing::new(format!("{jwk:#}\n"));
        if path.exists() {
            return Err(Error::fault(format!("{} is there already", path.display())));
        }
        // Under another name first: half a key would keep the node from ever starting again.
        let half = path.with_extension("half");
        let _stale = fs::remove_file(&half);
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
            fs::rename(&half, path)?;
            path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        };
        write().map_err(|error| failed(path, &error))?;
        Ok(key)
    }
}

/// A key that others can read is no key any more.
fn check_private(path: &Path, file: &File) -> Result<(), Error> {
    let mode = file.metadata().map_err(|error| failed(path, &error))?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let shown = path.display();
    Err(Error::Exposed(format!(
        "others can read {shown} (mode {mode:03o}); close it with `chmod 600 {shown}`, and if strangers use this machine, \
         make a new key with `rialto keys rotate --now`"
    )))
}

fn read_retired(path: &Path) -> Result<Vec<Retired>, Error> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(path, &error)),
    };
    let read = |entry: json::Node<'_>| {
        let member = |name: &str| entry.get(name).and_then(json::Node::as_str);
        let key = PublicKey::from_multibase(member("publicKeyMultibase")?).ok()?;
        let since = Instant::parse_rfc3339(member("revoked")?)?.seconds().saturating_mul(1_000);
        Some(Retired { key, since })
    };
    let document = Document::parse(&text, &Limits::DOCUMENT).ok();
    let retired = document.and_then(|document| document.root().elements().map(read).collect::<Option<Vec<_>>>());
    retired.ok_or_else(|| Error::fault(format!("{} is no list of retired keys", path.display())))
}

fn write_retired(path: &Path, retired: &[Retired]) -> Result<(), Error> {
    let written = |retired: &Retired| json!({"publicKeyMultibase": retired.key.to_multibase(), "revoked": instant(retired.since).to_string()});
    let list = Value::from(retired.iter().map(written).collect::<Vec<_>>());
    // The new list takes the place of the old one in one step.
    let beside: PathBuf = path.with_extension("new");
    let store = || {
        let mut file = File::create(&beside)?;
        file.write_all(format!("{list:#}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    store().map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::fault(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::Identity;
    use super::*;
    use crate::Clock;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use trust::{Did, DidDocument, Signed};

    const NOON: i64 = 1_772_366_400_000;

    fn did() -> Did {
        Did::parse("did:web:node.example").unwrap()
    }

    fn at(millis: i64) -> Instant {
        instant(millis)
    }

    /// A node that starts at a moment.
    fn start(folder: &Path, clock: &Arc<AtomicI64>) -> Identity {
        let keys = Keys::open(folder).unwrap().settle(folder, clock.load(Ordering::Acquire), true).unwrap();
        Identity::named(keys, did(), Clock::Set(Arc::clone(clock)))
    }

    fn says(identity: &Identity, clock: &AtomicI64) -> Document {
        let body = json!({"timestamp": at(clock.load(Ordering::Acquire)).to_string(), "n": 1});
        Document::parse(&identity.sign(body), &Limits::OURS).unwrap()
    }

    /// The verdict on something kept, by the document of some moment.
    fn verdict(said: &Document, document: &Value) -> &'static str {
        let keys = DidDocument::read(Document::of(document).unwrap().root(), &did()).unwrap();
        let time = |text: &str| Instant::parse_rfc3339(text).unwrap();
        let made = time(said.root().get("timestamp").unwrap().as_str().unwrap());
        let verified = Signed::read(said).unwrap().verify_kept(&keys, |since| made < time(since));
        verified.map_or_else(|error| error.code(), |_| "ok")
    }

    #[test]
    fn a_key_is_announced_signs_and_retires_and_what_it_signed_stays_true() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, clock) = (folder.path(), Arc::new(AtomicI64::new(NOON)));
        let first = start(folder, &clock);
        let (old, old_document) = (says(&first, &clock), first.document());
        let rotation = rotate(folder, NOON, false).unwrap();
        assert_eq!(rotation.from, at(NOON + ANNOUNCED_MS));
        assert!(rotate(folder, NOON, false).is_err(), "one at a time");

        // Announced: the old one still signs, and whoever fetches the document now knows the new one.
        clock.store(NOON + 1_000, Ordering::Release);
        let second = start(folder, &clock);
        let (meanwhile, announced) = (says(&second, &clock), second.document());
        assert_eq!(
            announced["assertionMethod"],
            json!(["did:web:node.example#node-key", "did:web:node.example#node-key-2"])
        );
        assert_eq!((verdict(&meanwhile, &announced), verdict(&meanwhile, &old_document)), ("ok", "ok"));

        // The new one signs, without a restart; the document from before knows it already.
        clock.store(NOON + ANNOUNCED_MS, Ordering::Release);
        let (new, after) = (says(&second, &clock), second.document());
        assert_eq!(
            new.root().get("signature").unwrap().get("kid").unwrap().as_str(),
            Some("did:web:node.example#node-key-2")
        );
        assert_eq!((verdict(&new, &after), verdict(&new, &announced)), ("ok", "ok"));
        assert_eq!(after["verificationMethod"][1]["revoked"], json!(rotation.from.to_string()));
        for kept in [&old, &meanwhile] {
            assert_eq!((verdict(kept, &after), verdict(kept, &old_document)), ("ok", "ok"));
        }

        // After a restart it is all the same, the old secret is gone, and the next rotation follows.
        clock.store(NOON + 2 * ANNOUNCED_MS, Ordering::Release);
        let third = start(folder, &clock);
        assert_eq!(third.document(), after);
        assert!(!folder.join(NEXT).exists());
        rotate(folder, NOON + 2 * ANNOUNCED_MS, true).unwrap();
        let fourth = start(folder, &clock);
        let newest = fourth.document();
        assert_eq!(newest["verificationMethod"].as_array().unwrap().len(), 3);
        assert_eq!(newest["assertionMethod"], json!(["did:web:node.example#node-key-3"]));
        for kept in [&old, &meanwhile, &new, &says(&fourth, &clock)] {
            assert_eq!(verdict(kept, &newest), "ok");
        }
        // A retired key proves nothing that claims to be younger than its end.
        clock.store(NOON + 3 * ANNOUNCED_MS, Ordering::Release);
        let late = first.sign(json!({"timestamp": at(NOON + 3 * ANNOUNCED_MS).to_string()}));
        assert_eq!(verdict(&Document::parse(&late, &Limits::OURS).unwrap(), &newest), "key_retired");
    }

    #[test]
    fn a_rotation_that_is_torn_away_is_carried_out_later() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, clock) = (folder.path(), Arc::new(AtomicI64::new(NOON)));
        let first = start(folder, &clock);
        rotate(folder, NOON, true).unwrap();
        // The list is written, and the key has not taken its place.
        let keys = Keys::open(folder).unwrap();
        write_retired(&folder.join(RETIRED), &[Retired { key: keys.current.public(), since: NOON }]).unwrap();
        let second = start(folder, &clock);
        assert_eq!(second.document()["verificationMethod"].as_array().unwrap().len(), 2);
        let old = Document::parse(&first.sign(json!({"timestamp": "2026-03-01T11:59:59Z"})), &Limits::OURS).unwrap();
        assert_eq!(verdict(&old, &second.document()), "ok");
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_what_to_do() {
        for (file, mode) in [(KEY, 0o644), (KEY, 0o640), (KEY, 0o604), (NEXT, 0o644)] {
            let folder = tempfile::tempdir().unwrap();
            Keys::open(folder.path()).unwrap();
            rotate(folder.path(), NOON, false).unwrap();
            let path = folder.path().join(file);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Keys::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains(&format!("{mode:03o}")), "{error}");
        }
    }

    #[test]
    fn a_node_that_is_called_by_its_key_is_called_otherwise_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let first = Identity::of_key(Keys::open(folder.path()).unwrap(), Clock::default());
        rotate(folder.path(), NOON, false).unwrap();
        let keys = Keys::open(folder.path()).unwrap().settle(folder.path(), NOON, false).unwrap();
        let second = Identity::of_key(keys, Clock::default());
        assert_ne!(first.did(), second.did());
        let said = Document::parse(&first.sign(json!({"n": 1})), &Limits::OURS).unwrap();
        Signed::read(&said).unwrap().verify_with(&DidDocument::of_key(first.did()).unwrap()).unwrap();
    }
}
