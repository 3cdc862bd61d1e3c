//! A host of our own on loopback that answers as a test says and remembers what it was asked.

use json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A host that answers until the test ends.
pub(crate) struct Host {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What is answered.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Host {
    /// Answers each request; `answer` gets the address of the host, too.
    pub(crate) fn start(answer: impl Fn(&Asked, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        let host = Self { address: address.clone(), asked: Arc::default() };
        let (seen, answer) = (Arc::clone(&host.asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer, address) = (Arc::clone(&seen), Arc::clone(&answer), address.clone());
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    // Whoever tries TLS first is hung up on, and comes again without.
                    let Some(asked) = Asked::read(&mut stream) else { return };
                    seen.lock().unwrap().push(asked.clone());
                    let _ = stream.write_all(&answer(&asked, &address).bytes());
                });
            }
        });
        host
    }

    /// Everything that it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Asked {
    fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        // A greeting of TLS begins like this, and whoever sends it waits for an answer.
        if reader.fill_buf().ok()?.first() == Some(&0x16) {
            return None;
        }
        let mut first = Vec::new();
        reader.read_until(b'\n', &mut first).ok()?;
        let first = String::from_utf8(first).ok()?;
        let mut words = first.split_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut asked = Self { method, path, headers, body: Vec::new() };
        let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        asked.body = vec![0; length];
        reader.read_exact(&mut asked.body).ok()?;
        Some(asked)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Reply {
    pub(crate) fn json(value: &Value) -> Self {
        Self::text("application/json", &value.to_string())
    }

    pub(crate) fn text(kind: &str, text: &str) -> Self {
        Self::status(200).with("Content-Type", kind).body(text)
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn body(mut self, text: &str) -> Self {
        self.body = text.as_bytes().to_vec();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = self.body.len();
        let head =
            format!("HTTP/1.1 {} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n", self.status);
        [head.as_bytes(), &self.body].concat()
    }
}
