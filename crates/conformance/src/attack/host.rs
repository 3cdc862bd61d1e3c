//! A host of DID documents that does not mean well. It listens on loopback without TLS, which a node asks only where
//! its operator has opened private networks.

use super::bytes::{Names, bytes};
use anyhow::{Context, Result};
use json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The host; it ends with the program.
pub(crate) struct Host {
    port: u16,
    manners: Arc<Manners>,
}

#[derive(Default)]
struct Manners {
    /// How it answers.
    told: Mutex<(Value, Names)>,
    asked: AtomicUsize,
}

impl Host {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let manners = Arc::new(Manners::default());
        let known = Arc::clone(&manners);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let known = Arc::clone(&known);
                std::thread::spawn(move || known.answer(stream, port));
            }
        });
        Ok(Self { port, manners })
    }

    /// A DID that leads here; each name is another one.
    pub(crate) fn did(&self, name: &str) -> String {
        format!("did:web:localhost%3A{}:{name}", self.port)
    }

    /// Where it is.
    pub(crate) fn address(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Tells the host how to answer: `status`, `headers`, `body`, or `document` with changes, `key` for whose,
    /// `paths` for what stands elsewhere, and `drip_ms` for slowness.
    pub(crate) fn tell(&self, manners: &Value, names: &Names) {
        *self.manners.told.lock().unwrap_or_else(PoisonError::into_inner) = (manners.clone(), names.clone());
        self.manners.asked.store(0, Ordering::SeqCst);
    }

    /// How often it was asked since.
    pub(crate) fn asked(&self) -> usize {
        self.manners.asked.load(Ordering::SeqCst)
    }
}

impl Manners {
    fn answer(&self, stream: TcpStream, port: u16) -> Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut request = String::new();
        reader.read_line(&mut request)?;
        // A client that tries TLS first is told that none is spoken.
        let Some(path) = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()) else { return Ok(()) };
        let path = path.to_owned();
        while reader.read_line(&mut request)? > 2 {}
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (told, names) = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let there = told.get("paths").and_then(|paths| paths.get(&path));
        let body = match (there, told.get("body")) {
            (Some(there), _) => super::bytes::value(there, &names)?.to_string().into_bytes(),
            (None, Some(body)) => bytes(body, &names)?,
            (None, None) => document(&path, port, &told, &names)?.to_string().into_bytes(),
        };
        let status = told.get("status").and_then(Value::as_u64).unwrap_or(200);
        let mut head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n");
        for (name, value) in told.get("headers").and_then(Value::as_object).into_iter().flatten() {
            head += &format!("{name}: {}\r\n", value.as_str().unwrap_or_default());
        }
        if !head.contains("Content-Length") && !head.contains("Transfer-Encoding") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        speak(stream, &[head.into_bytes(), body].concat(), told.get("drip_ms").and_then(Value::as_u64))
    }
}

fn speak(mut stream: TcpStream, said: &[u8], drip_ms: Option<u64>) -> Result<()> {
    let Some(pause) = drip_ms else { return Ok(stream.write_all(said)?) };
    for byte in said {
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(pause));
    }
    Ok(())
}

/// The document of the DID that a path belongs to, with changes.
fn document(path: &str, port: u16, told: &Value, names: &Names) -> Result<Value> {
    let name = path.trim_matches('/').trim_end_matches("/did.json").replace('/', ":");
    let did = format!("did:web:localhost%3A{port}:{name}");
    let mut document = json!({
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": did,
        "verificationMethod": [{
            "id": format!("{did}#key"),
            "type": "Ed25519VerificationKey2020",
            "controller": did,
            "publicKeyMultibase": names.get("multibase"),
        }],
        "assertionMethod": [format!("{did}#key")],
    });
    for (name, spelled) in told.get("document").and_then(Value::as_object).into_iter().flatten() {
        let value = super::bytes::value(spelled, names)?;
        document.as_object_mut().context("a document is an object")?.insert(name.clone(), value);
    }
    Ok(document)
}
