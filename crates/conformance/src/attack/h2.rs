//! Frames of HTTP/2 (RFC 9113), far too many of them, over a connection that begins with the preface.

use super::case::Frames;
use super::stage::SLACK;
use crate::crash::start;
use anyhow::{Result, bail, ensure};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Frames that are written at once.
const BURST: usize = 1_000;

/// Sends the frames; the node may close the connection or bear them, within the time. Returns how many went out.
pub(crate) fn flood(authority: &str, frames: &Frames) -> Result<usize> {
    let mut stream = TcpStream::connect(authority)?;
    let within = Duration::from_millis(frames.within_ms * SLACK);
    stream.set_write_timeout(Some(within))?;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat())?;
    // What the node says is thrown away, so that its own buffers never fill up.
    let mut ear = stream.try_clone()?;
    let listening = std::thread::spawn(move || {
        let mut block = [0; 64 * 1024];
        while ear.read(&mut block).is_ok_and(|count| count > 0) {}
    });
    let begun = start();
    let mut sent = 0;
    if frames.kind == "continuation" || frames.kind == "empty_data" {
        let flags = if frames.kind == "continuation" { 0 } else { END_HEADERS };
        stream.write_all(&frame(HEADERS, flags, 1, &head(authority)))?;
    }
    while sent < frames.count {
        let burst: Vec<u8> = (sent..frames.count.min(sent + BURST))
            .map(|number| one(&frames.kind, number, authority))
            .collect::<Result<Vec<_>>>()?
            .concat();
        if stream.write_all(&burst).is_err() {
            break;
        }
        sent += BURST;
        ensure!(begun.elapsed() < within, "{sent} frames took more than {} ms", frames.within_ms);
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    if listening.join().is_err() {
        bail!("the listening thread panicked");
    }
    Ok(sent)
}

fn one(kind: &str, number: usize, authority: &str) -> Result<Vec<u8>> {
    let stream = (number as u32 * 2 + 1) & 0x7fff_ffff;
    Ok(match kind {
        "reset" => [
            frame(HEADERS, END_HEADERS | END_STREAM, stream, &head(authority)),
            frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()),
        ]
        .concat(),
        "continuation" => frame(CONTINUATION, 0, 1, &[0x00, 0x01, b'a', 0x01, b'b']),
        "empty_data" => frame(DATA, 0, 1, &[]),
        "settings" => frame(SETTINGS, 0, 0, &[]),
        "ping" => frame(PING, 0, 0, &[0; 8]),
        other => bail!("no frames are called `{other}`"),
    })
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = length.get(1..).unwrap_or_default().to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// `GET /` of the static table of RFC 7541, and an authority spelled out.
fn head(authority: &str) -> Vec<u8> {
    let mut head = vec![0x82, 0x86, 0x84, 0x01, authority.len() as u8];
    head.extend_from_slice(authority.as_bytes());
    head
}
