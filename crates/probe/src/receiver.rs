//! RFC 0020 §3.6: a receiver on this machine, for nodes that bring events; it says every challenge back.
//!
//! It speaks plain HTTP: a node that may reach this machine at all is one of a test network.

use anyhow::{Context, Result, ensure};
use json::{Document, Limits, Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use trust::{DidDocument, encoding};

/// Bytes of a message that are read.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How often it is looked whether somebody came.
const LOOK: Duration = Duration::from_millis(10);
/// How many looks a message is waited for.
const LOOKS: usize = 2_000;

/// A message that was brought.
#[derive(Clone, Debug)]
struct Received {
    head: String,
    body: Vec<u8>,
}

/// Takes messages on this machine until it is dropped.
pub struct Receiver {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Listens at a free port.
    pub fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("nobody can be received here")?;
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        let (received, stopping) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (taken, end) = (Arc::clone(&received), Arc::clone(&stopping));
        let take = move || {
            while !end.load(Ordering::Acquire) {
                match listener.accept() {
                    // Whoever breaks off has brought nothing.
                    Ok((socket, _)) => drop(serve(socket, &taken)),
                    Err(_) => std::thread::sleep(LOOK),
                }
            }
        };
        let thread = std::thread::Builder::new().name("receiver".into()).spawn(take)?;
        Ok(Self { port, received, stopping, thread: Some(thread) })
    }

    /// Where it takes messages.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}/events", self.port)
    }

    /// The first so many messages, waited for; the signature over each is the node's.
    pub(crate) fn wait(&self, count: usize, keys: &DidDocument) -> Result<Vec<Value>> {
        for _ in 0..LOOKS {
            if self.messages().len() >= count {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let messages = self.messages();
        ensure!(messages.len() >= count, "{} messages were brought, and {count} are expected", messages.len());
        messages.iter().take(count).map(|message| message.proved(keys)).collect()
    }

    /// What was brought so far, in order: the name of each message and its body.
    pub fn told(&self) -> Vec<(String, Vec<u8>)> {
        let named = |message: &Received| message.field("webhook-id").unwrap_or_default().to_owned();
        self.messages().into_iter().map(|message| (named(&message), message.body)).collect()
    }

    fn messages(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Received {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// What the message says, when the node signed it as Standard Webhooks has it.
    fn proved(&self, keys: &DidDocument) -> Result<Value> {
        let field = |name: &str| self.field(name).with_context(|| format!("a message without `{name}`"));
        let (id, timestamp) = (field("webhook-id")?, field("webhook-timestamp")?);
        let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", &self.body].concat();
        let signatures = field("webhook-signature")?.split(' ').filter_map(|one| one.strip_prefix("v1a,"));
        let holds = signatures
            .filter_map(encoding::decode)
            .any(|signature| keys.signing_keys().any(|(_, key)| key.verifies(&signed, &signature)));
        ensure!(holds, "no signature over the message is the node's");
        let document = Document::parse(&self.body, &Limits::OURS).context("a message that is no strict JSON")?;
        Ok(json!({"id": id, "data": document.root().to_value()}))
    }
}

/// Reads one message and answers it: a challenge with itself, anything else with no more than that it is here.
fn serve(mut socket: TcpStream, received: &Mutex<Vec<Received>>) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    let (head, begun) = loop {
        let read = socket.read(&mut piece)?;
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        // Whoever tries TLS first is told that nobody speaks it here.
        if bytes.first() == Some(&0x16) || bytes.len() > MESSAGE_BYTES_MAX {
            return socket.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some((head, body)) = end.and_then(|end| bytes.split_at_checked(end + 4)) {
            break (String::from_utf8_lossy(head).into_owned(), body.to_vec());
        }
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    };
    let mut message = Received { head, body: begun };
    let length = message.field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0_usize);
    while message.body.len() < length.min(MESSAGE_BYTES_MAX) {
        let read = socket.read(&mut piece)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        message.body.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    let said = Document::parse(&message.body, &Limits::OURS).ok();
    let challenge = said.as_ref().and_then(|said| said.root().get("challenge")).map(|challenge| challenge.to_value());
    let answer = match challenge {
        Some(challenge) => json!({"challenge": challenge}).to_string(),
        None => {
            received.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            String::new()
        }
    };
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
    socket.write_all(&[head.as_bytes(), answer.as_bytes()].concat())
}
