//! WebSockets (RFC 6455), by hand: a handshake, frames of any making, and what the node says to them.

use super::bytes::{Names, bytes, fill};
use super::case::{Frame, Socket};
use super::stage::SLACK;
use super::wire::{Connection, Reply};
use anyhow::{Context, Result, ensure};
use json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PONG: u8 = 10;

/// What became of a socket.
#[derive(Default)]
pub(crate) struct Told {
    /// The reply to the handshake.
    pub(crate) handshake: Reply,
    /// The texts that came.
    pub(crate) texts: Vec<Value>,
    /// The code with which it was closed.
    pub(crate) close: Option<u16>,
    pub(crate) pongs: usize,
}

/// Opens a socket, sends a message where there is one and the frames, and listens until the node has nothing more to say.
pub(crate) fn play(
    authority: &str,
    socket: &Socket,
    message: Option<&[u8]>,
    path: &str,
    names: &Names,
) -> Result<Told> {
    let mut connection = Connection::open(authority)?;
    let mut handshake = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    .into_bytes();
    for (name, value) in &socket.headers {
        handshake.extend(fill(name, names).bytes());
        handshake.extend(b": ");
        handshake.extend(bytes(value, names)?);
        handshake.extend(b"\r\n");
    }
    handshake.extend(b"\r\n");
    let mut handshake = connection.exchange(&handshake)?;
    if handshake.status != 101 {
        return Ok(Told { handshake, ..Told::default() });
    }
    let mut heard = std::mem::take(&mut handshake.body);
    let mut stream = connection.into_stream();
    stream.set_read_timeout(Some(Duration::from_millis(socket.within_ms * SLACK)))?;
    stream.set_write_timeout(Some(Duration::from_millis(socket.within_ms * SLACK)))?;
    // What the node says is heard while it is spoken to, so that its buffers never fill up.
    let ear = stream.try_clone()?;
    let listening = std::thread::spawn(move || listen(ear));
    let _ = speak(&mut stream, socket, message, names);
    let (more, ended) = listening.join().map_err(|_| anyhow::anyhow!("the listening thread panicked"))?;
    heard.extend(more);
    let mut told = read(&heard).context("what the node says is no WebSocket")?;
    told.handshake = handshake;
    ensure!(ended, "a socket is open after {} ms; it told {:?}", socket.within_ms, told.texts);
    Ok(told)
}

fn speak(stream: &mut TcpStream, socket: &Socket, message: Option<&[u8]>, names: &Names) -> Result<()> {
    if let Some(message) = message {
        stream.write_all(&frame(TEXT, message, &Made::WELL))?;
    }
    for spelled in &socket.frames {
        let Frame { opcode, part, bare, length, times, .. } = *spelled;
        let made = Made { part, bare, length };
        let frame = frame(opcode, &bytes(&spelled.payload, names)?, &made);
        stream.write_all(&frame.repeat(times))?;
    }
    Ok(())
}

/// Everything until the end, and whether there was one.
fn listen(mut stream: TcpStream) -> (Vec<u8>, bool) {
    let mut heard = Vec::new();
    let mut block = [0; 64 * 1024];
    loop {
        match stream.read(&mut block) {
            Ok(0) => return (heard, true),
            Ok(count) => heard.extend_from_slice(block.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (heard, error.kind() == ErrorKind::ConnectionReset),
        }
    }
}

/// How a frame differs from a good one.
struct Made {
    part: bool,
    bare: bool,
    length: Option<u64>,
}

impl Made {
    const WELL: Self = Self { part: false, bare: false, length: None };
}

fn frame(opcode: u8, payload: &[u8], made: &Made) -> Vec<u8> {
    let mut frame = vec![opcode | if made.part { 0 } else { 0x80 }];
    let mask = if made.bare { 0 } else { 0x80 };
    match made.length.unwrap_or(payload.len() as u64) {
        length @ 0..126 => frame.push(mask | length as u8),
        length @ 126..65_536 => {
            frame.push(mask | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(mask | 127);
            frame.extend(length.to_be_bytes());
        }
    }
    if !made.bare {
        // A mask of noughts is a mask.
        frame.extend([0; 4]);
    }
    frame.extend_from_slice(payload);
    frame
}

/// The frames of a node: none is masked, all are in one piece. A last one may be cut off by a reset.
fn read(mut heard: &[u8]) -> Result<Told> {
    let mut told = Told::default();
    while let Some((opcode, payload)) = next(&mut heard) {
        match opcode {
            TEXT => told.texts.push(serde_json::from_slice(payload)?),
            PONG => told.pongs += 1,
            CLOSE => told.close = payload.first_chunk::<2>().map(|code| u16::from_be_bytes(*code)),
            other => anyhow::bail!("a frame of kind {other}"),
        }
    }
    Ok(told)
}

fn next<'h>(heard: &mut &'h [u8]) -> Option<(u8, &'h [u8])> {
    let ([first, second], rest) = heard.split_first_chunk::<2>()?;
    let (length, rest) = match second {
        126 => rest.split_first_chunk::<2>().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?,
        127 => rest.split_first_chunk::<8>().map(|(length, rest)| (u64::from_be_bytes(*length) as usize, rest))?,
        length => (usize::from(*length), rest),
    };
    let (payload, rest) = rest.split_at_checked(length)?;
    *heard = rest;
    Some((first & 0x0f, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let payload = vec![b'1'; length];
            let bare = Made { bare: true, ..Made::WELL };
            let frames = [frame(TEXT, b"{}", &bare), frame(PONG, &payload, &bare)].concat();
            let mut heard = frames.as_slice();
            assert_eq!(next(&mut heard), Some((TEXT, &b"{}"[..])));
            assert_eq!(next(&mut heard), Some((PONG, payload.as_slice())));
            assert!(heard.is_empty());
        }
        let told = read(&frame(CLOSE, &1009_u16.to_be_bytes(), &Made { bare: true, ..Made::WELL })).unwrap();
        assert_eq!((told.close, told.pongs, told.texts.len()), (Some(1009), 0, 0));
    }
}
