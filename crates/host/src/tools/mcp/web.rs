//! MCP over streamable HTTP: each message a POST, answered by JSON or by a stream; a GET for what nobody asked for.
//!
//! Written here and not taken from the library, because requests leave through the client that is handed in
//! (decisions/0221).

use super::guard::{Guard, MESSAGE_BYTES_MAX};
use super::{LinkError, Signals};
use crate::Secret;
use crate::http::{Http, HttpError, Request, Response};
use crate::sse::Events;
use json::Value;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long one stream is listened to before it is asked for again.
const LISTEN: Duration = Duration::from_secs(600);

/// The pause before it is asked for again.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

/// Bytes of one stream.
const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Messages that wait to be looked at.
const WAITING_MAX: usize = 64;

/// How a server is reached.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) url: String,
    /// The header field and the words before the credential.
    pub(super) credential: (String, String),
    pub(super) time: Duration,
}

/// What all messages of a session share.
struct Line {
    http: Arc<dyn Http>,
    address: Address,
    credential: Option<Secret>,
    agreed: Mutex<Agreed>,
    guard: Mutex<Guard>,
    heard: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    signals: Arc<Signals>,
    tasks: Mutex<JoinSet<()>>,
}

/// What the server said at the beginning.
#[derive(Default)]
struct Agreed {
    session: Option<String>,
    version: Option<String>,
    is_listening: bool,
}

/// A session with a server elsewhere.
pub(super) struct Web {
    line: Arc<Line>,
    waiting: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
}

impl Web {
    pub(super) fn new(
        http: &Arc<dyn Http>,
        address: &Address,
        credential: Option<Secret>,
        signals: Arc<Signals>,
    ) -> Self {
        let (heard, waiting) = mpsc::channel(WAITING_MAX);
        let (http, address) = (Arc::clone(http), address.clone());
        let (agreed, guard, tasks) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { line: Arc::new(Line { http, address, credential, agreed, guard, heard, signals, tasks }), waiting }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn request(&self, method: &str, body: Option<Vec<u8>>, time: Duration) -> Request {
        let mut headers = vec![("accept".to_owned(), "application/json, text/event-stream".to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if let Some(secret) = &self.credential {
            let (name, words) = &self.address.credential;
            headers.push((name.clone(), format!("{words}{}", secret.expose())));
        }
        let agreed = locked(&self.agreed);
        headers.extend(agreed.session.iter().map(|id| ("mcp-session-id".to_owned(), id.clone())));
        headers.extend(agreed.version.iter().map(|version| ("mcp-protocol-version".to_owned(), version.clone())));
        let (method, url) = (method.to_owned(), self.address.url.clone());
        Request { method, url, headers, body, time, bytes_max: STREAM_BYTES_MAX }
    }

    async fn post(self: Arc<Self>, body: Vec<u8>) -> Result<(), LinkError> {
        let response = self.http.send(self.request("POST", Some(body), self.address.time)).await.map_err(failed)?;
        match response.status {
            200..300 => {}
            // A session that the server no longer knows has done nothing for this message; some say 400 to that.
            400 | 404 => {
                self.signals.end();
                return Err(LinkError::Unsent("the server has ended the session"));
            }
            401 | 403 => return Err(LinkError::Unsent("the server refuses the credential")),
            402..500 => return Err(LinkError::Unsent("the server refuses the request")),
            _ => return Err(LinkError::Lost("the server answers with an error of HTTP")),
        }
        if let Some(id) = response.header("mcp-session-id") {
            locked(&self.agreed).session.get_or_insert_with(|| id.to_owned());
        }
        if response.status == 202 {
            self.listen();
            return Ok(());
        }
        if response.is_events() {
            let line = Arc::clone(&self);
            locked(&self.tasks).spawn(async move {
                if line.follow(response).await.is_err() {
                    line.signals.end();
                }
            });
            return Ok(());
        }
        let bytes = response.whole().await.map_err(failed)?;
        self.hear(&bytes).await
    }

    /// Hears the events of a stream to its end.
    async fn follow(&self, mut response: Response) -> Result<(), LinkError> {
        let mut events = Events::new(MESSAGE_BYTES_MAX);
        while let Some(bytes) = response.body.next().await.map_err(failed)? {
            events.push(&bytes).map_err(|_| LinkError::Lost("the server says more than is taken"))?;
            while let Some(event) = events.next() {
                self.hear(&event).await?;
            }
        }
        Ok(())
    }

    async fn hear(&self, bytes: &[u8]) -> Result<(), LinkError> {
        let is_unagreed = locked(&self.agreed).version.is_none();
        if is_unagreed && let Ok(value) = serde_json::from_slice::<Value>(bytes) {
            let version = value.pointer("/result/protocolVersion").and_then(Value::as_str);
            locked(&self.agreed).version = version.map(str::to_owned);
        }
        let admitted = locked(&self.guard).admit(bytes);
        match admitted {
            Ok(None) => Ok(()),
            Ok(Some(message)) => self.heard.send(message).await.map_err(|_| LinkError::Lost("nobody listens any more")),
            Err(_) => {
                self.signals.end();
                Err(LinkError::Lost("the server says more than is borne"))
            }
        }
    }

    /// Listens, once, to what the server says without being asked; where it has no such stream, that is well.
    fn listen(self: &Arc<Self>) {
        if std::mem::replace(&mut locked(&self.agreed).is_listening, true) {
            return;
        }
        let line = Arc::clone(self);
        locked(&self.tasks).spawn(async move {
            while let Ok(response) = line.http.send(line.request("GET", None, LISTEN)).await {
                if !response.is_success() || !response.is_events() {
                    return;
                }
                // It ends now and then, and is asked for again.
                let _ = line.follow(response).await;
                sleep(LISTEN_PAUSE).await;
            }
        });
    }
}

fn failed(error: HttpError) -> LinkError {
    match error {
        HttpError::Refused(why) => LinkError::Unsent(why),
        HttpError::Unreachable => LinkError::Unsent("nobody answers"),
        HttpError::Lost => LinkError::Lost("the connection ended before the answer did"),
        HttpError::Timeout => LinkError::Lost("there was no answer in time"),
        HttpError::TooLarge => LinkError::Lost("the server says more than is taken"),
        HttpError::Unusable(why) => LinkError::Lost(why),
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // Those who listen hold the line, and the line holds them.
        locked(&self.line.tasks).abort_all();
    }
}

impl Transport<RoleClient> for Web {
    type Error = LinkError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), LinkError>> + Send + 'static {
        let line = Arc::clone(&self.line);
        async move {
            let body = serde_json::to_vec(&item).map_err(|_| LinkError::Unsent("the message cannot be written"))?;
            line.post(body).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let signals = Arc::clone(&self.line.signals);
        tokio::select! {
            message = self.waiting.recv() => message,
            () = signals.ended() => None,
        }
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        locked(&self.line.tasks).abort_all();
        let has_session = locked(&self.line.agreed).session.is_some();
        if has_session {
            // The server may not care.
            let _ = self.line.http.send(self.line.request("DELETE", None, LISTEN_PAUSE)).await;
        }
        self.line.signals.end();
        Ok(())
    }
}
