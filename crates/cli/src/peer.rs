//! A node that we ask over HTTP, and the proof of what it says.
//!
//! Everything a node says is signed: answers by their `resolver_did`, all else in the envelope of the core protocol. A
//! did:key is verified offline; the keys of a did:web are fetched from its own host, and only when that host is the one
//! we talk to, or brought along in a file.
//!
//! INVARIANT: nothing of a node is shown as its word before its signature holds.

use crate::failure::Failure;
use crate::files::Text;
use crate::{advice, question};
use json::{Document, Node, Pointer};
use node::{Client, ClientError, Reply};
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;
use trust::{Did, DidDocument, Method};

/// Which node is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Destination {
    /// The address of the node: https, or http on this machine
    #[arg(long, value_name = "URL", env = "RIALTO_NODE", default_value = "http://127.0.0.1:7420")]
    pub(crate) to: String,

    /// The DID document of a signer whose DID is neither a did:key nor at the address that is asked
    #[arg(long, value_name = "FILE")]
    pub(crate) did_document: Option<PathBuf>,
}

/// Attempts while a node says that we send too much.
const ATTEMPTS: usize = 30;
/// The longest that we wait between two attempts.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node, and how to reach it.
pub(crate) struct Peer {
    runtime: Runtime,
    caller: Caller,
}

/// What sends and verifies; shared by messages that are under way together.
#[derive(Clone)]
struct Caller {
    client: Client,
    did_document: Option<PathBuf>,
}

/// What a node said, proved.
pub(crate) struct Said {
    /// The bytes as they came, under the node's address.
    pub(crate) text: Text,
    pub(crate) document: Document,
    /// Who signed.
    pub(crate) signer: Did,
}

/// A message to a node.
#[derive(Clone)]
pub(crate) enum Message {
    Intent { bytes: Vec<u8>, cursor: Option<String> },
    Explain { bytes: Vec<u8> },
    Publish { bytes: Vec<u8> },
    Withdraw { id: String, bytes: Vec<u8> },
    Subscribe { bytes: Vec<u8>, snapshot: bool, webhook: Option<String> },
    Subscription { id: String },
    Events { id: String, after: u64, wait_seconds: u64 },
    Replay { id: String, from: u64 },
    Control { id: String, bytes: Vec<u8> },
}

impl Peer {
    /// Prepares to ask; nothing is sent yet.
    pub(crate) fn new(destination: &Destination) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
        let client = Client::new(&destination.to).map_err(|error| match &error {
            ClientError::Address(_) | ClientError::PlainHttp(_) => {
                Failure::usage(error.to_string()).help(error.advice())
            }
            ClientError::Setup(_) | ClientError::Exchange { .. } => unreached(&error),
        })?;
        Ok(Self { runtime, caller: Caller { client, did_document: destination.did_document.clone() } })
    }

    /// The address of the node.
    pub(crate) fn address(&self) -> &str {
        self.caller.client.address()
    }

    /// Sends a message and gives the proved reply; `about` is where the message came from.
    pub(crate) fn ask(&self, message: Message, about: &Text) -> Result<Said, Failure> {
        self.runtime.block_on(self.caller.ask(message)).map_err(|refused| refused.about(about))
    }

    /// The same, for whoever goes on after a refusal.
    pub(crate) fn try_ask(&self, message: Message) -> Result<Said, Refused> {
        self.runtime.block_on(self.caller.ask(message))
    }

    /// Whether a document is the word of whoever signed another.
    pub(crate) fn verify_as(&self, document: &Document, said: &Said) -> Result<(), Failure> {
        let keys = self.runtime.block_on(self.caller.keys_of(&said.signer))?;
        question::verify_kept(document, &keys).map(|_| ()).map_err(|error| said.text.unproved(&error))
    }

    /// Sends messages together and gives what came of each, in their order.
    pub(crate) fn ask_all(&self, messages: Vec<Message>) -> Vec<Result<Said, Refused>> {
        self.runtime.block_on(async {
            let send = |message| {
                let caller = self.caller.clone();
                tokio::spawn(async move { caller.ask(message).await })
            };
            let under_way: Vec<_> = messages.into_iter().map(send).collect();
            let mut outcomes = Vec::with_capacity(under_way.len());
            for task in under_way {
                let ended = |error| Refused::Failure(Failure::files(format!("a message was not sent: {error}")));
                outcomes.push(task.await.map_err(ended).flatten());
            }
            outcomes
        })
    }

    /// The manifest of the node and what it is called; nothing where none is published.
    pub(crate) fn manifest(&self) -> Result<Option<(Vec<u8>, String)>, Failure> {
        let reply = self.runtime.block_on(self.caller.client.get(&[".well-known", "oap-tool.json"]));
        let reply = reply.map_err(|error| unreached(&error))?;
        let document = Document::parse(&reply.body, &json::Limits::OURS).ok().filter(|_| reply.status == 200);
        let named = document.and_then(|document| document.root().get("tool")?.get("did")?.as_str().map(str::to_owned));
        Ok(named.map(|did| (reply.body, did)))
    }

    /// Whether a node answers at the address, and under which name.
    pub(crate) fn health(&self) -> Option<String> {
        let reply = self.runtime.block_on(self.caller.client.get(&["health"])).ok()?;
        let document = Document::parse(&reply.body, &json::Limits::DOCUMENT).ok()?;
        document.root().get("did").and_then(Node::as_str).map(str::to_owned)
    }
}

/// Why a message brought nothing.
pub(crate) enum Refused {
    /// The node says no, and signed it.
    ByNode(Box<Refusal>),
    /// It did not come that far.
    Failure(Failure),
}

/// A no, as the envelope tells it.
pub(crate) struct Refusal {
    code: String,
    at: Pointer,
    message: String,
    retry_after: Option<Duration>,
    address: String,
}

fn at_a_place(at: &Pointer) -> bool {
    !at.as_str().is_empty()
}

impl Refused {
    /// The code of a refusal by the node; nothing when nobody answered.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::ByNode(refusal) => Some(&refusal.code),
            Self::Failure(_) => None,
        }
    }

    /// The failure, with its place in the document that was sent.
    pub(crate) fn about(self, text: &Text) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::ByNode(refusal) => {
                let position = text.locate(&refusal.at).filter(|_| !text.bytes.is_empty() && at_a_place(&refusal.at));
                let position = position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
                let at = if at_a_place(&refusal.at) { format!(", {}", refusal.at) } else { String::new() };
                let place = format!("{}{position}{at}, refused by {}", text.name, refusal.address);
                let help = advice::on(&refusal.code);
                let failure = Failure::refused(refusal.message).at(place).coded(refusal.code, &refusal.at);
                match help {
                    Some(help) => failure.help(help),
                    None => failure,
                }
            }
        }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Caller {
    async fn ask(&self, message: Message) -> Result<Said, Refused> {
        for _ in 1..ATTEMPTS {
            match self.ask_once(message.clone()).await {
                Err(Refused::ByNode(refusal)) if refusal.retry_after.is_some() => {
                    tokio::time::sleep(refusal.retry_after.unwrap_or_default().min(PATIENCE)).await;
                }
                outcome => return outcome,
            }
        }
        self.ask_once(message).await
    }

    async fn ask_once(&self, message: Message) -> Result<Said, Refused> {
        let reply = match message {
            Message::Intent { bytes, cursor } => self.client.post(&["oap", "intent"], cursor.as_deref(), bytes).await,
            Message::Explain { bytes } => self.client.post(&["oap", "explain"], None, bytes).await,
            Message::Publish { bytes } => self.client.post(&["oap", "records"], None, bytes).await,
            Message::Withdraw { id, bytes } => self.client.delete(&["oap", "records", &id], bytes).await,
            Message::Subscribe { bytes, snapshot, webhook } => {
                let mut query = vec![("snapshot", if snapshot { "true" } else { "false" })];
                match &webhook {
                    Some(endpoint) => query.extend([("transport", "webhook"), ("endpoint", endpoint.as_str())]),
                    None => query.push(("transport", "poll")),
                }
                self.client.post_where(&["oap", "subscribe"], &query, bytes).await
            }
            Message::Subscription { id } => self.client.get(&["oap", "subscriptions", &id]).await,
            Message::Events { id, after, wait_seconds } => {
                let (after, wait) = (after.to_string(), wait_seconds.to_string());
                let query = [("after", after.as_str()), ("wait", wait.as_str())];
                self.client.get_where(&["oap", "subscriptions", &id, "events"], &query).await
            }
            Message::Replay { id, from } => {
                let path = ["oap", "subscriptions", &id, "events"];
                self.client.get_where(&path, &[("replay_from", &from.to_string())]).await
            }
            Message::Control { id, bytes } => {
                self.client.post(&["oap", "subscriptions", &id, "control"], None, bytes).await
            }
        };
        self.proved(reply.map_err(|error| unreached(&error))?).await
    }

    /// Reads a reply and checks who signed it; a proved refusal is an error.
    async fn proved(&self, reply: Reply) -> Result<Said, Refused> {
        let address = self.client.address();
        let text = Text { name: address.to_owned(), bytes: reply.body };
        let document = Document::parse(&text.bytes, &json::Limits::OURS).map_err(|_| foreign(address, reply.status))?;
        let signer = signer(document.root()).ok_or_else(|| foreign(address, reply.status))?;
        let signer =
            Did::parse(signer).map_err(|error| Failure::refused(format!("{address} signs as nobody: {error}")))?;
        let keys = self.keys_of(&signer).await?;
        question::verify_kept(&document, &keys).map_err(|error| text.unproved(&error))?;
        match document.root().get("error") {
            Some(error) => Err(Refused::ByNode(Box::new(refusal(error, address)))),
            None => Ok(Said { text, document, signer }),
        }
    }

    async fn keys_of(&self, signer: &Did) -> Result<DidDocument, Failure> {
        if signer.method() == Method::Key {
            return question::keys_of(signer, &[]);
        }
        if let Some(path) = &self.did_document {
            return question::keys_of(signer, std::slice::from_ref(path));
        }
        let url = signer.document_url().unwrap_or_default();
        let Some(reply) = self.client.get_own(&url).await.map_err(|error| unreached(&error))? else {
            return question::keys_of(signer, &[]);
        };
        let text = Text { name: url, bytes: reply.body };
        let document = text.document(&json::Limits::DOCUMENT)?;
        DidDocument::read(document.root(), signer).map_err(|error| text.unproved(&error))
    }
}

/// Who says that it is theirs: in an answer at the root, in an envelope inside.
fn signer(root: Node<'_>) -> Option<&str> {
    let places = [Some(root), root.get("output"), root.get("error").and_then(|error| error.get("details"))];
    let named = places.into_iter().flatten().find_map(|place| place.get("resolver_did"));
    // What a subscriber is told names its publisher.
    named.or_else(|| root.get("publisher_did")).and_then(Node::as_str)
}

fn refusal(error: Node<'_>, address: &str) -> Refusal {
    let details = error.get("details");
    let text = |name: &str| details.and_then(|details| details.get(name)).and_then(Node::as_str);
    let retry = details.and_then(|details| details.get("retry_after_ms")).and_then(Node::as_f64);
    Refusal {
        code: text("code").unwrap_or("refused").to_owned(),
        // What we put around a signed intent is not in the file.
        at: text("pointer")
            .and_then(|at| Pointer::parse(at.strip_prefix("/payload").unwrap_or(at)).ok())
            .unwrap_or_else(Pointer::root),
        message: error.get("message").and_then(Node::as_str).unwrap_or("the node refuses").to_owned(),
        retry_after: retry.filter(|millis| *millis >= 0.0).map(|millis| Duration::from_millis(millis as u64)),
        address: address.to_owned(),
    }
}

fn unreached(error: &ClientError) -> Failure {
    Failure::files(error.to_string()).help(error.advice())
}

fn foreign(address: &str, status: u16) -> Failure {
    Failure::files(format!("{address} does not answer like a node: HTTP status {status} and no signed document"))
        .help("check the address; something else may listen there, or stand before the node")
}
