//! One connection: how long it may be silent, and a signed word where the HTTP library would hang up or say no unsigned.
//!
//! The bytes pass through here below the library, the requests are told from above. Between two requests nobody is owed
//! more than a while; a head that has begun must end soon; a reply that nobody takes is not held for ever.
//!
//! INVARIANT: with no request under way, a connection ends in bounded time whatever the other side does.

use crate::listen::Patience;
use crate::sources::Guest;
use std::any::Any;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

/// What the requests of a connection let the bytes know.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug)]
struct State {
    begun: u64,
    under_way: usize,
    /// When the last request ended, or the connection began.
    quiet_since: Instant,
}

/// A request under way, until this is dropped.
pub(crate) struct UnderWay(Progress);

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { begun: 0, under_way: 0, quiet_since: Instant::now() })))
    }

    /// A head is read in full.
    pub(crate) fn begin(&self) -> UnderWay {
        self.change(|state| (state.begun, state.under_way) = (state.begun + 1, state.under_way + 1));
        UnderWay(self.clone())
    }

    /// Something goes on beyond the reply to a request.
    fn hold(&self) -> UnderWay {
        self.change(|state| state.under_way += 1);
        UnderWay(self.clone())
    }

    fn now(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.change(|state| (state.under_way, state.quiet_since) = (state.under_way - 1, Instant::now()));
    }
}

/// What a request needs to go on beyond its reply: the connection does not count as silent and keeps its place, and it
/// is told when the node stops.
#[derive(Clone)]
pub(crate) struct Invitation {
    pub(crate) progress: Progress,
    pub(crate) place: Arc<dyn Any + Send + Sync>,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) guest: Guest,
}

/// Something that goes on beyond the reply, until this is dropped.
pub(crate) struct Stay {
    _under_way: UnderWay,
    _place: Arc<dyn Any + Send + Sync>,
    stop: watch::Receiver<bool>,
    /// Whose bounds hold for what goes on.
    pub(crate) guest: Guest,
}

impl Invitation {
    pub(crate) fn stay(&self) -> Stay {
        Stay {
            _under_way: self.progress.hold(),
            _place: Arc::clone(&self.place),
            stop: self.stop.clone(),
            guest: self.guest.clone(),
        }
    }
}

impl Stay {
    /// Ends when the node stops.
    pub(crate) async fn stopping(&mut self) {
        // Whoever would tell is gone: so is the node.
        let _ = self.stop.wait_for(|stopping| *stopping).await;
    }
}

/// What the library says by itself, without a word of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// The head took too long.
    SlowHead,
    /// The bytes are no HTTP.
    Malformed,
    /// The head has too many bytes or fields.
    HeadTooLarge,
    /// The address has too many bytes.
    AddressTooLong,
}

impl Unsaid {
    /// What a reply of the library means; a reply of ours carries the name of its request.
    fn read(reply: &[u8], slow: bool) -> Option<Self> {
        let status = reply.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let unsaid = match status {
            b"400" if slow => Self::SlowHead,
            b"400" => Self::Malformed,
            b"431" => Self::HeadTooLarge,
            b"414" => Self::AddressTooLong,
            _ => return None,
        };
        let ours = reply.windows(NAMED.len()).any(|window| window == NAMED);
        (!ours).then_some(unsaid)
    }

    /// The whole reply around a signed body.
    pub(crate) fn reply(self, id: &str, body: &[u8]) -> Vec<u8> {
        let line = match self {
            Self::SlowHead => "408 Request Timeout",
            Self::Malformed => "400 Bad Request",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::AddressTooLong => "414 URI Too Long",
        };
        let mut reply = format!(
            "HTTP/1.1 {line}\r\ncontent-type: application/oap+json; charset=utf-8\r\noap-request-id: {id}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        )
        .into_bytes();
        reply.extend_from_slice(body);
        reply
    }
}

/// The header field that every reply of ours has.
const NAMED: &[u8] = b"\r\noap-request-id: ";

/// The beginning of HTTP/2, as far as it is the beginning of nothing else.
const SECOND: &[u8] = b"PRI";

/// A byte that no head may hold, and the end of a head, before which the library does not look: it reads, and says no.
const NO_HTTP: &[u8] = b"\0\r\n\r\n";

/// A stream that is watched.
pub(crate) struct Watched<S, W> {
    stream: S,
    progress: Progress,
    patience: Patience,
    /// Writes the reply in place of the library's.
    words: W,
    opening: Vec<u8>,
    /// Requests that had begun when the head under way did.
    counted: u64,
    head_since: Option<Instant>,
    slow: bool,
    silence: Pin<Box<Sleep>>,
    stall: Option<Pin<Box<Sleep>>>,
    /// What is said in place of the library's words, and how much of it is.
    instead: Option<(Vec<u8>, usize)>,
}

impl<S, W: Fn(Unsaid) -> Vec<u8>> Watched<S, W> {
    pub(crate) fn new(stream: S, progress: Progress, patience: Patience, words: W) -> Self {
        Self {
            stream,
            progress,
            patience,
            words,
            opening: Vec::new(),
            counted: 0,
            head_since: None,
            slow: false,
            silence: Box::pin(sleep_until(Instant::now())),
            stall: None,
            instead: None,
        }
    }

    /// Notes what has come.
    fn heard(&mut self, bytes: &[u8]) {
        let missing = SECOND.len().saturating_sub(self.opening.len());
        self.opening.extend(bytes.iter().take(missing));
        let state = self.catch_up();
        if state.under_way == 0 && !bytes.is_empty() {
            self.head_since.get_or_insert_with(Instant::now);
        }
    }

    /// A head that was under way is no longer once its request has begun.
    fn catch_up(&mut self) -> State {
        let state = self.progress.now();
        if state.begun != self.counted {
            (self.counted, self.head_since) = (state.begun, None);
        }
        state
    }

    /// When the other side has been silent for too long; never while it is ours to speak.
    fn deadline(&mut self) -> Option<Instant> {
        let state = self.catch_up();
        if state.under_way > 0 {
            return None;
        }
        let first = state.begun == 0;
        Some(match self.head_since {
            Some(since) if self.opening != SECOND || first => since + self.patience.head,
            _ if first => state.quiet_since + self.patience.head,
            _ => state.quiet_since + self.patience.idle,
        })
    }
}

impl<S: AsyncWrite + Unpin, W> Watched<S, W> {
    /// Writes, and gives up on whoever takes nothing for too long.
    fn write(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), context) {
            self.stall = None;
            return Poll::Ready(written);
        }
        let patience = self.patience.idle;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + patience)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Says what is said in place of the library's words, to the end.
    fn say_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((words, said)) = self.instead.take() {
            let rest = words.get(said..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match self.write(context, |stream, context| stream.poll_write(context, rest)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(more)) => self.instead = Some((words, said + more)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.instead = Some((words, said));
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin, W: Fn(Unsaid) -> Vec<u8> + Unpin> AsyncRead for Watched<S, W> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, into) {
            this.heard(into.filled().get(before..).unwrap_or_default());
            return Poll::Ready(read);
        }
        let Some(deadline) = this.deadline() else { return Poll::Pending };
        if this.silence.deadline() != deadline {
            this.silence.as_mut().reset(deadline);
        }
        ready!(this.silence.as_mut().poll(context));
        let answerable = this.opening != SECOND && into.remaining() >= NO_HTTP.len();
        if this.head_since.is_some() && !this.slow && answerable {
            this.slow = true;
            into.put_slice(NO_HTTP);
        }
        // Nothing read is the end of the stream.
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, W: Fn(Unsaid) -> Vec<u8> + Unpin> AsyncWrite for Watched<S, W> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.instead.is_none() {
            this.instead = Unsaid::read(bytes, this.slow).map(|unsaid| ((this.words)(unsaid), 0));
        }
        if this.instead.is_some() {
            ready!(this.say_instead(context))?;
            return Poll::Ready(Ok(bytes.len()));
        }
        this.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        if self.instead.is_some() || Unsaid::read(first, self.slow).is_some() {
            return self.poll_write(context, first);
        }
        self.get_mut().write(context, |stream, context| stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_words_are_told_from_ours() {
        let theirs = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: x\r\n\r\n";
        assert_eq!(Unsaid::read(theirs, false), Some(Unsaid::Malformed));
        assert_eq!(Unsaid::read(theirs, true), Some(Unsaid::SlowHead));
        let large = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(Unsaid::read(large, false), Some(Unsaid::HeadTooLarge));
        for ours in [
            &b"HTTP/1.1 400 Bad Request\r\ncontent-type: x\r\noap-request-id: 1\r\n\r\n{}"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 4",
            b"{\"HTTP/1.1 400\":1}",
            b"",
        ] {
            assert_eq!(Unsaid::read(ours, false), None, "{ours:?}");
        }
    }

    #[test]
    fn a_reply_instead_is_whole() {
        let reply = String::from_utf8(Unsaid::SlowHead.reply("abc", b"{}")).unwrap();
        assert!(reply.starts_with("HTTP/1.1 408 Request Timeout\r\n"));
        assert!(reply.ends_with("oap-request-id: abc\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"), "{reply}");
    }
}
