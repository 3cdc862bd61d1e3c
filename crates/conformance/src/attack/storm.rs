//! Everybody coming back at once: streams that go on where they stopped, after a node was killed.

use super::case::Reconnect;
use super::stage::SLACK;
use crate::crash::start;
use anyhow::{Context, Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How a node answers that has as many readers of a journal as it takes.
const BUSY: &str = "HTTP/1.1 429";
/// How soon such a reader comes again.
const AGAIN: Duration = Duration::from_millis(100);

/// Opens streams at once, so many as one journal has readers, again and again; each must tell every event after the last
/// one that its reader had, in order. How many there were.
pub(crate) fn reconnect(authority: &str, path: &str, storm: &Reconnect) -> Result<usize> {
    let begun = start();
    let within = Duration::from_millis(storm.within_ms * SLACK);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: text/event-stream\r\nLast-Event-ID: {}\r\n\r\n",
        storm.last
    );
    for round in 0..storm.rounds {
        let open = || -> Result<(TcpStream, String)> {
            let mut socket = TcpStream::connect(authority)?;
            socket.write_all(request.as_bytes())?;
            socket.set_nonblocking(true)?;
            Ok((socket, String::new()))
        };
        let mut sockets = (0..storm.clients).map(|_| open()).collect::<Result<Vec<_>>>()?;
        let wanted: Vec<u64> = (storm.last + 1..=storm.until).collect();
        while sockets.iter().any(|(_, told)| cursors(told).len() < wanted.len()) {
            ensure!(begun.elapsed() < within, "round {round}: not everybody has everything after {within:?}");
            for (socket, told) in &mut sockets {
                // The node may not have noticed yet that the readers of the round before are gone.
                if told.starts_with(BUSY) {
                    std::thread::sleep(AGAIN);
                    (*socket, *told) = open()?;
                }
                let mut block = [0; 16 * 1024];
                match socket.read(&mut block) {
                    Ok(0) => anyhow::bail!("round {round}: a stream was closed: {told}"),
                    Ok(read) => told.push_str(&String::from_utf8_lossy(block.get(..read).unwrap_or_default())),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error).context("a stream broke"),
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        for (_, told) in &sockets {
            ensure!(cursors(told) == wanted, "round {round}: a stream told {:?}", cursors(told));
        }
    }
    Ok(storm.clients * storm.rounds)
}

/// The cursors that a stream told, in its order; the last line may not be whole yet.
fn cursors(told: &str) -> Vec<u64> {
    let whole = told.rfind('\n').and_then(|end| told.get(..end)).unwrap_or_default();
    whole.lines().filter_map(|line| line.strip_prefix("id: ")?.trim().parse().ok()).collect()
}
