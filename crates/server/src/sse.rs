//! RFC 0020 §3.7: server-sent events: one signed document in each `data:` line.
//!
//! A task reads and a body hands on, with room for a few frames between them: whoever takes nothing is given nothing,
//! and the connection's own patience ends it. `id:` is what a browser sends back as `Last-Event-ID`; `seq:` is the same
//! for those who know the core protocol.
//!
//! INVARIANT: a document is one line, because its canonical form escapes every line break.

use crate::connection::Stay;
use crate::request;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response};
use hyper::body::Frame;
use node::{Follower, Heard, Stream};
use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Frames between the task that reads and the connection that sends.
const FRAMES: usize = 2;
/// Milliseconds after which a reader comes again, and as many more at most, so that not all come at once.
const RETRY_MS: u64 = 1_000;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

/// Whether a caller asks for a stream.
pub(crate) fn is_wanted(accept: Option<&HeaderValue>) -> bool {
    let accept = accept.and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/event-stream"))
}

/// The last event that a reader has.
pub(crate) fn last(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|last| last.to_str().ok())
}

/// One frame; without an id for what a reader need not remember.
pub(crate) fn frame(id: Option<u64>, event: &str, document: &[u8]) -> Bytes {
    let mut head = String::new();
    if let Some(id) = id {
        let _ = write!(head, "seq: {id}\nid: {id}\n");
    }
    let _ = write!(head, "event: {event}\ndata: ");
    [head.as_bytes(), document, b"\n\n"].concat().into()
}

/// Where a task puts its frames.
pub(crate) type Outlet = Sender<Bytes>;

/// A reply whose body is what is put into the outlet.
pub(crate) fn open() -> (Outlet, Response<Body>) {
    let (outlet, frames) = channel(FRAMES);
    let mut response = Response::new(Body::new(Inlet(frames)));
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (outlet, response)
}

/// The first words of a stream: when to come again.
pub(crate) fn greeting(jitter: u8) -> Bytes {
    let more = RETRY_MS * u64::from(jitter) / u64::from(u8::MAX);
    format!("retry: {}\n\n", RETRY_MS + more).into()
}

/// Sends a journal as it grows, until it ends, the reader goes, or the node stops.
pub(crate) async fn send(mut follower: Follower, outlet: Outlet, mut stay: Stay, silence: Duration) {
    if outlet.send(greeting(request::jitter())).await.is_err() {
        return;
    }
    loop {
        let heard = tokio::select! {
            heard = follower.next(silence) => heard,
            () = outlet.closed() => return,
            () = stay.stopping() => return,
        };
        let (frame, last) = match heard {
            Ok(Heard::Event(event)) => (frame(Some(event.cursor), "oap.manifest.event", &event.body), false),
            Ok(Heard::Truncated(notice)) => (frame(None, "oap.subscription.truncated", &notice), false),
            Ok(Heard::Silence(heartbeat)) => (frame(None, "oap.heartbeat", &heartbeat), false),
            Ok(Heard::Ended(state)) => (frame(None, "oap.subscription.ended", &state), true),
            Err(error) => {
                tracing::warn!(%error, "a stream breaks off");
                return;
            }
        };
        if outlet.send(frame).await.is_err() || last {
            return;
        }
    }
}

/// Sends an answer candidate by candidate, until its end, the reader goes, or the node stops.
pub(crate) async fn answer(mut stream: Stream, outlet: Outlet, mut stay: Stay) {
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            () = outlet.closed() => return,
            () = stay.stopping() => return,
        };
        match next {
            Ok(Some(part)) => {
                if outlet.send(frame(Some(part.seq), part.event, &part.bytes)).await.is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "an answer breaks off");
                return;
            }
        }
    }
}

/// A body of frames.
struct Inlet(Receiver<Bytes>);

impl HttpBody for Inlet {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_sent_to_those_who_ask_for_one() {
        let asked = |accept: &'static str| is_wanted(Some(&HeaderValue::from_static(accept)));
        assert!(asked("text/event-stream") && asked("application/json, text/event-stream;q=0.5"));
        assert!(!asked("*/*") && !asked("application/json") && !is_wanted(None));
    }

    #[test]
    fn a_frame_is_one_line_for_each_field() {
        let frame = frame(Some(7), "oap.manifest.event", br#"{"a":"\n\nevent: x"}"#);
        let expected = "seq: 7\nid: 7\nevent: oap.manifest.event\ndata: {\"a\":\"\\n\\nevent: x\"}\n\n";
        assert_eq!(frame, expected.as_bytes());
    }
}
