//! RFC 0020 §3.7: the same streams over a WebSocket: texts of `seq`, `event` and `data`.
//!
//! What comes back on a journal is a signed request of the subscriber, as at the control address. A socket that is closed
//! with 1009 asks for less: the rate is halved until the issuer asks for another.
//!
//! A message counts as a request does: against its source's bounds, for a place, and in how it stands. So do pings, which
//! are answered while an answer is made or sent. RFC 6455 §7.4.1 names the codes with which somebody is closed who breaks
//! the rules.
//!
//! A page of another origin gets none: no browser asks before it opens a socket.

use crate::connection::Stay;
use crate::sources::Guest;
use axum::body::Body;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, Response};
use node::{Class, Error, Follower, HEARTBEAT_MS, Heard, Node, Refusal};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tungstenite::error::ProtocolError;

/// Bytes of one frame that comes in.
const FRAME_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one message that comes in.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// How long it takes at most to say goodbye to somebody who goes.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a route is given that may become a socket.
pub(crate) type Asked = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// The socket that a caller asks for, when it may have one.
pub(crate) fn wanted(asked: Asked, headers: &HeaderMap) -> Option<WebSocketUpgrade> {
    let upgrade = asked.ok().filter(|_| !headers.contains_key(ORIGIN))?;
    Some(upgrade.max_frame_size(FRAME_BYTES_MAX).max_message_size(MESSAGE_BYTES_MAX))
}

/// Follows a journal on a socket.
pub(crate) fn follow(upgrade: WebSocketUpgrade, node: Arc<Node>, follower: Follower, stay: Stay) -> Response<Body> {
    upgrade.on_upgrade(move |socket| {
        let guest = stay.guest.clone();
        guest.within(async move {
            let mut socket = socket;
            let end = send(&mut socket, &node, follower, stay).await;
            end.say(socket).await;
        })
    })
}

/// Answers the intent that comes as the first message, candidate by candidate.
pub(crate) fn answer(
    upgrade: WebSocketUpgrade,
    node: Arc<Node>,
    last: Option<String>,
    patience: Duration,
    stay: Stay,
) -> Response<Body> {
    upgrade.on_upgrade(move |socket| {
        let guest = stay.guest.clone();
        guest.within(async move {
            let mut socket = socket;
            let end = resolve(&mut socket, &node, last, patience, stay).await;
            end.say(socket).await;
        })
    })
}

/// How a socket ends.
enum End {
    /// With a word of ours.
    Close(u16, &'static str),
    /// With the word of whoever is at the other end.
    Goodbye,
    /// Nobody is there any more.
    Gone,
}

impl End {
    const STOP: Self = Self::Close(close_code::AWAY, "the node stops");

    async fn say(self, mut socket: WebSocket) {
        match self {
            Self::Close(code, reason) => {
                let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
            }
            // Reading on sends the answer to a close, after which there is nothing to read.
            Self::Goodbye => drop(timeout(GOODBYE, socket.recv()).await),
            Self::Gone => {}
        }
    }
}

/// What came in.
enum Sent {
    Text(Utf8Bytes),
    /// A ping or a pong; the library answers it.
    Sign,
    Close(Option<CloseFrame>),
    End(End),
}

fn read(guest: &Guest, message: Option<Result<Message, axum::Error>>) -> Sent {
    match message {
        Some(Ok(Message::Text(text))) => Sent::Text(text),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => counted(guest).map_or_else(Sent::End, |()| Sent::Sign),
        Some(Ok(Message::Close(frame))) => Sent::Close(frame),
        Some(Ok(Message::Binary(_))) => Sent::End(End::Close(close_code::UNSUPPORTED, "messages are texts")),
        Some(Err(error)) => Sent::End(broken(guest, error)),
        None => Sent::End(End::Gone),
    }
}

/// Counts what needs no answer.
fn counted(guest: &Guest) -> Result<(), End> {
    guest.count().map_err(|_| End::Close(close_code::POLICY, "this source sends more than the node answers"))
}

/// How a socket ends on which something came that is no message.
fn broken(guest: &Guest, error: axum::Error) -> End {
    let end = match error.into_inner().downcast::<tungstenite::Error>().map(|error| *error) {
        Ok(tungstenite::Error::Capacity(_)) => End::Close(close_code::SIZE, "longer than a message may be"),
        Ok(tungstenite::Error::Utf8(_)) => End::Close(close_code::INVALID, "a text is UTF-8"),
        Ok(tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => End::Gone,
        Ok(tungstenite::Error::Protocol(_)) => End::Close(close_code::PROTOCOL, "no frame as RFC 6455 writes it"),
        // The connection is lost, and nobody hears a word.
        _ => End::Gone,
    };
    if matches!(end, End::Close(..)) {
        guest.note_broken();
    }
    end
}

async fn send(socket: &mut WebSocket, node: &Arc<Node>, mut follower: Follower, mut stay: Stay) -> End {
    let id = follower.id().to_owned();
    loop {
        // What comes in meanwhile does not have the journal read from anew.
        let mut next = pin!(follower.next(Duration::from_millis(HEARTBEAT_MS)));
        let heard = loop {
            let sent = tokio::select! {
                heard = &mut next => break heard,
                message = socket.recv() => read(&stay.guest, message),
                () = stay.stopping() => return End::STOP,
            };
            let told = match sent {
                Sent::Text(request) => asked(node, &stay.guest, &id, request.as_bytes()).await,
                Sent::Sign => continue,
                Sent::Close(frame) => {
                    if frame.is_some_and(|frame| frame.code == close_code::SIZE)
                        && let Err(error) = node.slow_down(&id).await
                    {
                        tracing::warn!(%error, "a subscriber who asks for less cannot be given less");
                    }
                    return End::Goodbye;
                }
                Sent::End(end) => return end,
            };
            let is_refused = told.is_err();
            if socket.send(told.unwrap_or_else(|refusal| refusal)).await.is_err() {
                return End::Gone;
            }
            if is_refused && stay.guest.is_sent_away() {
                return End::Close(close_code::AGAIN, "most of this source's messages are refused; come again");
            }
        };
        let told = match heard {
            Ok(Heard::Event(event)) => text(Some(event.cursor), "oap.manifest.event", &event.body),
            Ok(Heard::Truncated(notice)) => text(None, "oap.subscription.truncated", &notice),
            Ok(Heard::Silence(heartbeat)) => text(None, "oap.heartbeat", &heartbeat),
            Ok(Heard::Ended(state)) => {
                let _ = socket.send(text(None, "oap.subscription.ended", &state)).await;
                return End::Close(close_code::NORMAL, "the subscription is over");
            }
            Err(error) => {
                tracing::warn!(%error, "a socket breaks off");
                return End::Close(close_code::ERROR, "the node failed here");
            }
        };
        if socket.send(told).await.is_err() {
            return End::Gone;
        }
    }
}

/// Carries out a request that came on the socket, or refuses it.
async fn asked(node: &Arc<Node>, guest: &Guest, id: &str, request: &[u8]) -> Result<Message, Message> {
    let obeyed = guest.hear(node.control(id, request)).await;
    let state = obeyed.map_err(|error| text(None, "oap.error", &refused(node, &error)))?;
    Ok(text(None, "oap.subscription.state", &state))
}

async fn resolve(
    socket: &mut WebSocket,
    node: &Arc<Node>,
    last: Option<String>,
    patience: Duration,
    mut stay: Stay,
) -> End {
    let intent = match first(socket, patience, &mut stay).await {
        Ok(intent) => intent,
        Err(end) => return end,
    };
    let guest = stay.guest.clone();
    let begun = guest.hear(async {
        let mut stream = node.stream(intent.as_bytes(), last.as_deref()).await?;
        stream.begin().await?;
        Ok(stream)
    });
    let mut stream = match meanwhile(socket, &mut stay, begun).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            let _ = socket.send(text(None, "oap.error", &refused(node, &error))).await;
            return End::Close(close_code::POLICY, "the intent is refused");
        }
        Err(end) => return end,
    };
    loop {
        match meanwhile(socket, &mut stay, stream.next()).await {
            Ok(Ok(Some(part))) => {
                if socket.send(text(Some(part.seq), part.event, &part.bytes)).await.is_err() {
                    return End::Gone;
                }
            }
            Ok(Ok(None)) => return End::Close(close_code::NORMAL, "this is all"),
            Ok(Err(error)) => {
                let _ = socket.send(text(None, "oap.error", &refused(node, &error))).await;
                return End::Close(close_code::ERROR, "the answer breaks off");
            }
            Err(end) => return end,
        }
    }
}

/// The first message, waited for no longer than for a body.
async fn first(socket: &mut WebSocket, patience: Duration, stay: &mut Stay) -> Result<Utf8Bytes, End> {
    let mut late = pin!(sleep(patience));
    loop {
        let sent = tokio::select! {
            message = socket.recv() => read(&stay.guest, message),
            () = &mut late => {
                return Err(End::Close(close_code::POLICY, "the first message is an intent, as a text"));
            }
            () = stay.stopping() => return Err(End::STOP),
        };
        match sent {
            Sent::Text(intent) => return Ok(intent),
            Sent::Sign => {}
            Sent::Close(_) => return Err(End::Goodbye),
            Sent::End(end) => return Err(end),
        }
    }
}

/// Waits for something; pings are answered meanwhile, and whoever goes is not waited for.
async fn meanwhile<T>(socket: &mut WebSocket, stay: &mut Stay, deed: impl Future<Output = T>) -> Result<T, End> {
    let mut deed = pin!(deed);
    loop {
        let sent = tokio::select! {
            done = &mut deed => return Ok(done),
            () = stay.stopping() => return Err(End::STOP),
            message = socket.recv() => read(&stay.guest, message),
        };
        match sent {
            // A socket is for one intent; what else is said on it counts and means nothing.
            Sent::Text(_) => counted(&stay.guest)?,
            Sent::Sign => {}
            Sent::Close(_) => return Err(End::Goodbye),
            Sent::End(end) => return Err(end),
        }
    }
}

/// One message; what a reader need not remember has no `seq`.
fn text(seq: Option<u64>, event: &str, document: &[u8]) -> Message {
    let seq = seq.map(|seq| format!(",\"seq\":{seq}")).unwrap_or_default();
    let document = String::from_utf8_lossy(document);
    Message::Text(format!("{{\"data\":{document},\"event\":\"{event}\"{seq}}}").into())
}

fn refused(node: &Node, error: &Error) -> Vec<u8> {
    let id = crate::request::own_id();
    match error {
        Error::Refusal(refusal) => node.refuse(&id, refusal),
        Error::Fault(fault) | Error::Exposed(fault) => {
            tracing::error!(fault, "a job on a socket failed");
            let detail = "the node failed here, and its operator is told; the same message may be sent again";
            node.refuse(&id, &Refusal::new(Class::Internal, "internal_error", detail))
        }
    }
}
