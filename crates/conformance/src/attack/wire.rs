//! Sockets without manners: bytes out, and whatever comes back.

use super::bytes::{Names, bytes};
use super::case::Raw;
use super::stage::SLACK;
use crate::crash::start;
use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(40);

/// A reply to a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A connection that is kept.
pub(crate) struct Connection(TcpStream);

impl Connection {
    pub(crate) fn open(authority: &str) -> Result<Self> {
        let stream = TcpStream::connect(authority)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// The connection as it is, for what is no longer HTTP.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.0
    }

    /// Reads what has come; a process that was stopped for a while goes on.
    fn receive(&mut self, block: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.0.read(block) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Sends a whole request and reads its reply.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Reply> {
        // The node may refuse and close before it has read everything; what it said is still there.
        let _ = self.0.write_all(request);
        let mut seen = Vec::new();
        let mut block = [0; 16 * 1024];
        let head_end = loop {
            if let Some(at) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            match self.receive(&mut block)? {
                0 => bail!("the connection was closed without a reply"),
                count => seen.extend_from_slice(block.get(..count).unwrap_or_default()),
            }
        };
        let body = seen.split_off(head_end);
        let head = String::from_utf8_lossy(&seen).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        let length = length(&head).unwrap_or_default();
        let mut reply = Reply { status, head, body };
        let chunked = reply.head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked");
        while reply.body.len() < length || chunked && !reply.body.ends_with(b"0\r\n\r\n") {
            match self.receive(&mut block)? {
                0 => bail!("the reply broke off"),
                count => reply.body.extend_from_slice(block.get(..count).unwrap_or_default()),
            }
        }
        Ok(reply)
    }
}

/// One message over a connection of its own.
pub(crate) fn exchange(authority: &str, request: &[u8]) -> Result<Reply> {
    Connection::open(authority)?.exchange(request)
}

/// What became of one socket.
struct Seen {
    bytes: Vec<u8>,
    closed: bool,
}

/// Sends bytes over many sockets, and looks at what the node does with them; the first reply to each.
pub(crate) fn raw(authority: &str, raw: &Raw, names: &Names) -> Result<Vec<Reply>> {
    let first = bytes(&raw.bytes, names)?;
    let drip = raw.drip.as_ref().map(|drip| Ok::<_, anyhow::Error>((bytes(&drip.bytes, names)?, drip.pause_ms)));
    let drip = drip.transpose()?;
    let within = Duration::from_millis(raw.within_ms * if raw.closed { SLACK } else { 1 });
    let mut sockets = Vec::new();
    for number in 0..raw.sockets {
        let mut stream = TcpStream::connect(authority).with_context(|| format!("socket {number}"))?;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(within))?;
        let _ = stream.write_all(&first);
        stream.set_nonblocking(true)?;
        sockets.push((stream, Seen { bytes: Vec::new(), closed: false }));
    }
    let begun = start();
    let mut last_drip = begun;
    let mut honest: Option<Duration> = None;
    while begun.elapsed() < within && sockets.iter().any(|(_, seen)| !seen.closed) {
        if let Some((bytes, pause)) = &drip
            && last_drip.elapsed() >= Duration::from_millis(*pause)
        {
            last_drip = start();
            sockets.iter_mut().filter(|(_, seen)| !seen.closed).for_each(|(stream, _)| {
                let _ = stream.write(bytes);
            });
        }
        sockets.iter_mut().for_each(|(stream, seen)| read(stream, seen));
        if raw.honest_ms.is_some() {
            let asked = start();
            let reply = exchange(authority, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            ensure!(reply.context("a good client is not answered")?.status == 200, "a good client is refused");
            honest = honest.max(Some(asked.elapsed()));
        }
        // An answer without a close ends the wait where no close is demanded.
        if !raw.closed && drip.is_none() && sockets.iter().all(|(_, seen)| seen.closed || whole(&seen.bytes).is_some())
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    judge(raw, &sockets.iter().map(|(_, seen)| seen).collect::<Vec<_>>(), honest)?;
    for (stream, _) in &sockets {
        let _ = stream.shutdown(Shutdown::Both);
    }
    Ok(sockets.iter().filter_map(|(_, seen)| whole(&seen.bytes)).collect())
}

/// The first reply, once all of it is there.
fn whole(seen: &[u8]) -> Option<Reply> {
    let end = seen.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let (head, rest) = seen.split_at_checked(end)?;
    let head = String::from_utf8_lossy(head).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = rest.get(..length(&head).unwrap_or_default())?.to_vec();
    Some(Reply { status, head, body })
}

/// The length that a head announces.
fn length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

fn read(stream: &mut TcpStream, seen: &mut Seen) {
    let mut block = [0; 16 * 1024];
    while !seen.closed {
        match stream.read(&mut block) {
            Ok(0) => seen.closed = true,
            Ok(count) => seen.bytes.extend_from_slice(block.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => seen.closed = true,
        }
    }
}

fn judge(raw: &Raw, sockets: &[&Seen], honest: Option<Duration>) -> Result<()> {
    for seen in sockets {
        let text = String::from_utf8_lossy(&seen.bytes);
        ensure!(seen.closed || !raw.closed, "a socket is open after {} ms; it said {text:?}", raw.within_ms);
        let responses = text.matches("HTTP/1.1 ").count();
        if let Some(most) = raw.responses_max {
            ensure!(responses <= most, "there are {responses} responses: {text}");
        }
        let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
        if let Some(expected) = raw.status {
            ensure!(status == Some(expected), "the status is {status:?}, not {expected}: {text}");
        }
    }
    if let (Some(most), Some(took)) = (raw.honest_ms, honest) {
        ensure!(took <= Duration::from_millis(most * SLACK), "a good client waited for {} ms", took.as_millis());
    }
    Ok(())
}
