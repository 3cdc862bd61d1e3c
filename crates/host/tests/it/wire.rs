//! Both ends of a real connection: a client over TCP, and a server that answers what it is told, cut as it is told.

use host::{Body, Http, HttpError, HttpRequest, HttpResponse, Pending};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

/// A client without TLS.
pub(crate) struct Wire;

struct Chunks {
    reader: BufReader<TcpStream>,
    /// Bytes that are left; `None` when they come in chunks.
    left: Option<usize>,
    time: Duration,
    ended: bool,
}

impl Http for Wire {
    fn send(&self, request: HttpRequest) -> Pending<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let time = request.time;
            timeout(time, exchange(request)).await.unwrap_or(Err(HttpError::Timeout))
        })
    }
}

async fn exchange(request: HttpRequest) -> Result<HttpResponse, HttpError> {
    let url = Url::parse(&request.url).unwrap();
    let authority = format!("{}:{}", url.host_str().unwrap(), url.port_or_known_default().unwrap());
    let mut stream = TcpStream::connect(&authority).await.map_err(|_| HttpError::Unreachable)?;
    let target = format!("{}{}", url.path(), url.query().map(|query| format!("?{query}")).unwrap_or_default());
    let body = request.body.unwrap_or_default();
    let mut head = format!("{} {target} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n", request.method);
    for (name, value) in &request.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    write!(head, "content-length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(&[head.as_bytes(), &body].concat()).await.map_err(|_| HttpError::Lost)?;
    let mut reader = BufReader::new(stream);
    let (first, headers) = read_head(&mut reader).await.ok_or(HttpError::Lost)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(HttpError::Lost)?;
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let left = match header("transfer-encoding") {
        Some(_) => None,
        None => Some(header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default()),
    };
    let body = Box::new(Chunks { reader, left, time: request.time, ended: false });
    Ok(HttpResponse { status, headers, body })
}

async fn read_head(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<(String, String)>)> {
    let (mut first, mut headers) = (String::new(), Vec::new());
    if reader.read_line(&mut first).await.ok()? == 0 {
        return None;
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        match line.trim_end().split_once(':') {
            None => return Some((first, headers)),
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
        }
    }
}

impl Body for Chunks {
    fn next(&mut self) -> Pending<'_, Result<Option<Vec<u8>>, HttpError>> {
        Box::pin(async {
            let time = self.time;
            timeout(time, self.chunk()).await.unwrap_or(Err(HttpError::Timeout))
        })
    }
}

impl Chunks {
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        if self.ended {
            return Ok(None);
        }
        let length = match self.left.take() {
            Some(length) => {
                self.ended = true;
                length
            }
            None => {
                let mut line = String::new();
                self.reader.read_line(&mut line).await.map_err(|_| HttpError::Lost)?;
                usize::from_str_radix(line.trim(), 16).map_err(|_| HttpError::Lost)?
            }
        };
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).await.map_err(|_| HttpError::Lost)?;
        if !self.ended {
            let mut end = [0; 2];
            self.reader.read_exact(&mut end).await.map_err(|_| HttpError::Lost)?;
        }
        self.ended |= length == 0;
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

/// What a server answers to one request.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Sent one after the other.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// The connection ends before the answer does.
    pub(crate) cut: bool,
    /// Nothing is answered at all.
    pub(crate) silent: bool,
}

impl Answer {
    /// A document.
    pub(crate) fn json(status: u16, value: &json::Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, pieces: vec![value.to_string().into_bytes()], ..Self::default() }
    }

    /// A stream of events, cut into pieces of so many bytes.
    pub(crate) fn events(stream: &str, size: usize) -> Self {
        let headers = vec![("content-type", "text/event-stream; charset=utf-8".to_owned())];
        let pieces = stream.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
        Self { status: 200, headers, pieces, ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// What a server was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A server that gives its answers in their order, one for each request; the last one is given again.
pub(crate) struct Server {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut reader = BufReader::new(stream);
                let Some((line, headers)) = read_head(&mut reader).await else { continue };
                let length = headers.iter().find(|(name, _)| name == "content-length");
                let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
                reader.read_exact(&mut body).await.unwrap();
                let count = {
                    let mut heard = heard.lock().unwrap();
                    heard.push(Asked { line: line.trim_end().to_owned(), headers, body });
                    heard.len()
                };
                let answer = answers.get(count - 1).or(answers.last()).unwrap().clone();
                tokio::spawn(answer_with(reader.into_inner(), answer));
            }
        });
        Self { url, asked }
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer_with(mut stream: TcpStream, answer: Answer) {
    if answer.silent {
        std::future::pending::<()>().await;
    }
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", answer.status);
    for (name, value) in &answer.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    for piece in &answer.pieces {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        if stream.write_all(&chunk).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
    if !answer.cut {
        // Whoever asked may have heard enough.
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
}
