//! RFC 0020 §3.7: the same streams over a WebSocket: texts of `seq`, `event` and `data`.
//!
//! What comes back on a journal is a signed request of the subscriber, as at the control address. A socket that is closed
//! with 1009 asks for less: the rate is halved until the issuer asks for another.
//!
//! A page of another origin gets none: no browser asks before it opens a socket.

use crate::connection::Stay;
use axum::body::Body;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, Response};
use node::{Class, Error, Follower, HEARTBEAT_MS, Heard, Node, Refusal};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one frame that comes in.
const FRAME_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one message that comes in.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// What a route is given that may become a socket.
pub(crate) type Asked = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// The socket that a caller asks for, when it may have one.
pub(crate) fn wanted(asked: Asked, headers: &HeaderMap) -> Option<WebSocketUpgrade> {
    let upgrade = asked.ok().filter(|_| !headers.contains_key(ORIGIN))?;
    Some(upgrade.max_frame_size(FRAME_BYTES_MAX).max_message_size(MESSAGE_BYTES_MAX))
}

/// Follows a journal on a socket.
pub(crate) fn follow(upgrade: WebSocketUpgrade, node: Arc<Node>, follower: Follower, stay: Stay) -> Response<Body> {
    upgrade.on_upgrade(move |socket| send(socket, node, follower, stay))
}

/// Answers the intent that comes as the first message, candidate by candidate.
pub(crate) fn answer(
    upgrade: WebSocketUpgrade,
    node: Arc<Node>,
    last: Option<String>,
    patience: Duration,
    stay: Stay,
) -> Response<Body> {
    upgrade.on_upgrade(move |socket| resolve(socket, node, last, patience, stay))
}

async fn send(mut socket: WebSocket, node: Arc<Node>, mut follower: Follower, mut stay: Stay) {
    loop {
        let told = tokio::select! {
            heard = follower.next(Duration::from_millis(HEARTBEAT_MS)) => match heard {
                Ok(Heard::Event(event)) => text(Some(event.cursor), "oap.manifest.event", &event.body),
                Ok(Heard::Truncated(notice)) => text(None, "oap.subscription.truncated", &notice),
                Ok(Heard::Silence(heartbeat)) => text(None, "oap.heartbeat", &heartbeat),
                Ok(Heard::Ended(state)) => {
                    let _ = socket.send(text(None, "oap.subscription.ended", &state)).await;
                    return close(socket, close_code::NORMAL, "the subscription is over").await;
                }
                Err(error) => {
                    tracing::warn!(%error, "a socket breaks off");
                    return close(socket, close_code::ERROR, "the node failed here").await;
                }
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(request))) => asked(&node, follower.id(), request.as_bytes()).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Close(frame))) => {
                    if frame.is_some_and(|frame| frame.code == close_code::SIZE)
                        && let Err(error) = node.slow_down(follower.id()).await
                    {
                        tracing::warn!(%error, "a subscriber who asks for less cannot be given less");
                    }
                    return;
                }
                Some(Ok(Message::Binary(_))) => {
                    return close(socket, close_code::UNSUPPORTED, "requests are texts").await;
                }
                Some(Err(_)) => return close(socket, close_code::SIZE, "longer than a request may be").await,
                None => return,
            },
            () = stay.stopping() => return close(socket, close_code::AWAY, "the node stops").await,
        };
        if socket.send(told).await.is_err() {
            return;
        }
    }
}

/// Carries out a request that came on the socket.
async fn asked(node: &Arc<Node>, id: &str, request: &[u8]) -> Message {
    match node.control(id, request).await {
        Ok(state) => text(None, "oap.subscription.state", &state),
        Err(error) => text(None, "oap.error", &refused(node, &error)),
    }
}

async fn resolve(mut socket: WebSocket, node: Arc<Node>, last: Option<String>, patience: Duration, mut stay: Stay) {
    let first = tokio::select! {
        first = tokio::time::timeout(patience, socket.recv()) => first,
        () = stay.stopping() => return close(socket, close_code::AWAY, "the node stops").await,
    };
    let Ok(Some(Ok(Message::Text(intent)))) = first else {
        return close(socket, close_code::POLICY, "the first message is an intent, as a text").await;
    };
    let mut stream = match node.stream(intent.as_bytes(), last.as_deref()).await {
        Ok(stream) => stream,
        Err(error) => {
            let _ = socket.send(text(None, "oap.error", &refused(&node, &error))).await;
            return close(socket, close_code::POLICY, "the intent is refused").await;
        }
    };
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            () = stay.stopping() => return close(socket, close_code::AWAY, "the node stops").await,
        };
        match next {
            Ok(Some(part)) => {
                if socket.send(text(Some(part.seq), part.event, &part.bytes)).await.is_err() {
                    return;
                }
            }
            Ok(None) => return close(socket, close_code::NORMAL, "this is all").await,
            Err(error) => {
                let _ = socket.send(text(None, "oap.error", &refused(&node, &error))).await;
                return close(socket, close_code::ERROR, "the answer breaks off").await;
            }
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

async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
}
