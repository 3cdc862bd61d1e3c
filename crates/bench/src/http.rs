//! HTTP/1.1 over one kept connection, as lean as a load generator must be.
//!
//! Requests are whole byte strings made beforehand, so that the timed part is writing, waiting and reading.
//!
//! INVARIANT: a response is read to its end before the next request goes out; only `Content-Length` is understood.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No answer of ours takes longer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// One connection to a node.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Connection {
    /// Connects to `host:port`.
    pub fn open(authority: &str) -> Result<Self> {
        let stream = TcpStream::connect(authority).with_context(|| format!("nobody listens at {authority}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream: BufReader::with_capacity(64 * 1024, stream), line: Vec::new() })
    }

    /// Sends a request and reads the body of its response; returns the status.
    pub fn exchange(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<u16> {
        self.stream.get_mut().write_all(request)?;
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("`{status_line}` is no status line"))?;
        let mut length = None;
        loop {
            let header = self.line()?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<u64>()?);
            }
        }
        let length = length.context("the response says no length")?;
        body.clear();
        let read = self.stream.by_ref().take(length).read_to_end(body)?;
        ensure!(read as u64 == length, "the response ended after {read} of {length} bytes");
        Ok(status)
    }

    /// Like [`Connection::exchange`], where anything but 200 is a failure that shows the body.
    pub fn succeed(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<()> {
        let status = self.exchange(request, body)?;
        if status != 200 {
            bail!("the node answered {status}: {}", String::from_utf8_lossy(body));
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        ensure!(!self.line.is_empty(), "the connection was closed");
        Ok(String::from_utf8_lossy(&self.line).trim_end().to_owned())
    }
}

/// A connection that is looked at when there is something to read.
#[derive(Debug)]
pub struct Line {
    stream: TcpStream,
    response: Vec<u8>,
    filled: usize,
}

impl Line {
    /// Connects to `host:port`.
    pub fn open(authority: &str) -> Result<Self> {
        let stream = TcpStream::connect(authority).with_context(|| format!("nobody listens at {authority}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, response: vec![0; 64 * 1024], filled: 0 })
    }

    /// What is to be watched.
    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request.
    pub fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.filled = 0;
        Ok(self.stream.write_all(request)?)
    }

    /// Reads what is there, which must be something; the body of the response once all of it is. Anything but 200 is a
    /// failure that shows the body.
    pub fn answer(&mut self) -> Result<Option<&[u8]>> {
        let Self { stream, response, filled } = self;
        if *filled == response.len() {
            response.resize(2 * response.len(), 0);
        }
        let read = stream.read(response.get_mut(*filled..).unwrap_or_default())?;
        ensure!(read > 0, "the connection was closed");
        *filled += read;
        let response = response.get(..*filled).unwrap_or_default();
        let Some(end) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(response.get(..end).unwrap_or_default())?;
        let body = response.get(end + 4..).unwrap_or_default();
        let mut lines = head.lines();
        let status_line = lines.next().unwrap_or_default();
        let length = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
        });
        if body.len() < length.context("the response says no length")?? {
            return Ok(None);
        }
        if status_line.split(' ').nth(1) != Some("200") {
            bail!("the node answered `{status_line}`: {}", String::from_utf8_lossy(body));
        }
        Ok(Some(body))
    }
}

/// The bytes of a POST.
pub fn post(authority: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/oap+json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The bytes of a GET.
pub fn get(authority: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes()
}

/// The part of `http://host:port` that one connects to.
pub fn authority(address: &str) -> &str {
    address.trim_start_matches("http://").trim_end_matches('/')
}
