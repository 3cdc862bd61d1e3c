//! Where keys live: one key in one file, as a private JWK (RFC 8037): Ed25519, and secp256k1 for did:wba names that end
//! in `k1_`.
//!
//! INVARIANT: a key file is readable by its owner only, when it is written and when it is read; the seed is never
//! printed.

use crate::failure::Failure;
use crate::{chance, environment, output};
use json::{Limits, Node, json};
use std::cell::OnceCell;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use trust::{Secp256k1Key, SecretKey, SigningKey, encoding};
use zeroize::Zeroizing;

/// Which key signs.
#[derive(clap::Args)]
pub(crate) struct KeyChoice {
    /// Key file to sign with [default: key.json in $RIALTO_HOME or the user's data directory]
    #[arg(long, value_name = "FILE", env = "RIALTO_KEY", hide_env_values = true)]
    key: Option<PathBuf>,
}

impl KeyChoice {
    /// The stored key.
    pub(crate) fn stored(&self) -> Result<SigningKey, Failure> {
        load(&path(self.key.as_deref())?)
    }

    /// The stored key, or one for this run only when nobody has made one.
    fn stored_or_fleeting(&self) -> Result<SigningKey, Failure> {
        match path(self.key.as_deref()) {
            Ok(path) if self.key.is_some() || path.exists() => load(&path),
            _ => {
                output::note("there is no key yet; this run signs with one of its own (`rialto keys new` makes one)");
                fleeting()
            }
        }
    }
}

/// A key that is looked for when something has to be signed, and not before.
pub(crate) struct Signer<'a> {
    choice: &'a KeyChoice,
    key: OnceCell<SigningKey>,
}

impl<'a> Signer<'a> {
    /// A signer that has not looked yet.
    pub(crate) fn new(choice: &'a KeyChoice) -> Self {
        Self { choice, key: OnceCell::new() }
    }

    /// The key.
    pub(crate) fn key(&self) -> Result<&SigningKey, Failure> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = self.choice.stored_or_fleeting()?;
        Ok(self.key.get_or_init(|| key))
    }
}

/// A key that nobody stores.
pub(crate) fn fleeting() -> Result<SigningKey, Failure> {
    Ok(SigningKey::from_seed(*chance::seed()?))
}

/// The file of the key: as given, else the usual place.
pub(crate) fn path(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let usual = || environment::data_directory().map(|directory| directory.join("key.json"));
    given.map(Path::to_owned).or_else(usual).ok_or_else(|| {
        Failure::files("there is no place for a key: no home directory is known")
            .help("name a file with --key, or set RIALTO_HOME")
    })
}

/// Makes a key and stores it; an existing one stays unless it is to be replaced.
pub(crate) fn create(path: &Path, replace: bool) -> Result<SigningKey, Failure> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        make_directory(directory).map_err(|error| Failure::io("make", directory, &error))?;
    }
    let seed = chance::seed()?;
    let key = SigningKey::from_seed(*seed);
    let text = Zeroizing::new(written(&key, &seed));
    if !replace {
        store(path, &text).map_err(|error| exists_or(path, &error))?;
        return Ok(key);
    }
    // The new file takes the place of the old one in one step, so that no moment is without a key.
    let beside = path.with_extension(format!("{}.new", chance::uuid()?));
    store(&beside, &text).map_err(|error| Failure::io("write", &beside, &error))?;
    fs::rename(&beside, path).map_err(|error| {
        let _ = fs::remove_file(&beside);
        Failure::io("replace", path, &error)
    })?;
    Ok(key)
}

fn written(key: &SigningKey, seed: &[u8; 32]) -> String {
    let mut jwk = key.public().to_jwk();
    if let Some(members) = jwk.as_object_mut() {
        members.insert("alg".to_owned(), json!("EdDSA"));
        members.insert("d".to_owned(), json!(encoding::encode(seed)));
        members.insert("kid".to_owned(), json!(key.key_id().to_string()));
    }
    format!("{jwk:#}\n")
}

fn exists_or(path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::AlreadyExists {
        return Failure::files(format!("there is a key already: `{}`", path.display()))
            .help("`rialto keys show` shows it; --force replaces it, and nobody can sign with the old one again");
    }
    Failure::io("write", path, error)
}

fn store(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = private_file(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(unix)]
fn private_file(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn make_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_directory(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)
}

/// Reads a key.
pub(crate) fn load(path: &Path) -> Result<SigningKey, Failure> {
    let damaged = |what: &str| {
        Failure::files(format!("`{}` is no key file: {what}", path.display()))
            .help("a key file is what `rialto keys new` writes: a private Ed25519 JWK with `kty`, `crv`, `x` and `d`")
    };
    let document = private(path, &damaged)?;
    let member = |name: &str| document.root().get(name).and_then(Node::as_str);
    if (member("kty"), member("crv")) != (Some("OKP"), Some("Ed25519")) {
        return Err(damaged("it holds no Ed25519 key"));
    }
    let key = SigningKey::from_seed(*secret(&document).ok_or_else(|| damaged("`d` is not 32 bytes in base64url"))?);
    if member("x") != key.public().to_jwk().get("x").and_then(json::Value::as_str) {
        return Err(damaged("`x` is not the public half of `d`"));
    }
    Ok(key)
}

/// The secp256k1 key of a file, which is made when there is none.
pub(crate) fn secp256k1(path: &Path) -> Result<SecretKey, Failure> {
    let damaged = |what: &str| Failure::files(format!("`{}` is no secp256k1 key: {what}", path.display()));
    if !path.exists() {
        let scalar = chance::seed()?;
        let key = SecretKey::from(Secp256k1Key::from_scalar(*scalar).map_err(|error| damaged(&error.to_string()))?);
        let mut jwk = key.public().map_err(|error| damaged(&error.to_string()))?.to_jwk();
        if let Some(members) = jwk.as_object_mut() {
            members.insert("d".to_owned(), json!(encoding::encode(scalar.as_ref())));
        }
        let text = Zeroizing::new(format!("{jwk:#}\n"));
        store(path, &text).map_err(|error| Failure::io("write", path, &error))?;
        return Ok(key);
    }
    let document = private(path, &damaged)?;
    let member = |name: &str| document.root().get(name).and_then(Node::as_str);
    if (member("kty"), member("crv")) != (Some("EC"), Some("secp256k1")) {
        return Err(damaged("write a private JWK with `kty` EC, `crv` secp256k1 and `d`"));
    }
    let scalar = secret(&document).ok_or_else(|| damaged("`d` is not 32 bytes in base64url"))?;
    Secp256k1Key::from_scalar(*scalar).map(SecretKey::from).map_err(|error| damaged(&error.to_string()))
}

/// The document of a key file that nobody else can read.
fn private(path: &Path, damaged: &dyn Fn(&str) -> Failure) -> Result<json::Document, Failure> {
    let file = File::open(path).map_err(|error| missing_or(path, &error))?;
    check_private(path, &file)?;
    let mut bytes = Zeroizing::new(Vec::new());
    let most = u64::from(Limits::DOCUMENT.bytes) + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|error| Failure::io("read", path, &error))?;
    json::Document::parse(&bytes, &Limits::DOCUMENT).map_err(|error| damaged(&error.to_string()))
}

/// The secret half of a private JWK.
fn secret(document: &json::Document) -> Option<Zeroizing<[u8; 32]>> {
    let text = document.root().get("d").and_then(Node::as_str)?;
    let bytes = Zeroizing::new(encoding::decode_url(text)?);
    <[u8; 32]>::try_from(bytes.as_slice()).ok().map(Zeroizing::new)
}

/// A key that others can read is a key that others can sign with.
#[cfg(unix)]
fn check_private(path: &Path, file: &File) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata().map_err(|error| Failure::io("read", path, &error))?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let message = format!("others can read the key file `{}` (mode {mode:03o})", path.display());
        let help =
            format!("close it with `chmod 600 {}`, and make a new key if strangers use this machine", path.display());
        return Err(Failure::exposed(message).help(help));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_: &Path, _: &File) -> Result<(), Failure> {
    Ok(())
}

fn missing_or(path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Failure::files(format!("there is no key at `{}`", path.display()))
            .help("make one with `rialto keys new`, or name another file with --key");
    }
    Failure::io("read", path, error)
}
