//! A real node, started by the real binary, for tests that ask it.

use crate::run::{Home, market};
use json::{Document, Limits};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;

/// A node that runs until it is dropped.
pub(crate) struct Node {
    child: Child,
    pub(crate) url: String,
    pub(crate) did: String,
}

impl Node {
    /// Starts a node on a free port, with its data in the home's folder `data`.
    pub(crate) fn start(home: &Home) -> Self {
        Self::start_with(home, "127.0.0.1:0", &[])
    }

    pub(crate) fn start_with(home: &Home, listen: &str, more: &[&str]) -> Self {
        Self::start_in(home, &[], listen, more)
    }

    pub(crate) fn start_in(home: &Home, environment: &[(&str, &str)], listen: &str, more: &[&str]) -> Self {
        let data = home.path("data");
        let arguments = [&["serve", "--json", "--log", "warn", "--data", &data, "--listen", listen], more].concat();
        let mut child = home.command(environment, &arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            panic!("{}", String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap());
        }
        let told = Document::parse(line.as_bytes(), &Limits::OURS).unwrap().root().to_value();
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        Self { url: text("address"), did: text("did"), child }
    }

    /// What stands at a path, as it came.
    pub(crate) fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    /// Sends bytes and gives the body of what comes back.
    pub(crate) fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Asks the node to end, as a system does; its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// What it has written into its log when it is at its end, as a system asks it to be.
    pub(crate) fn log(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success(), "{log}");
        log
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Imports the bundled market into the home's folder `data`.
pub(crate) fn stock(home: &Home) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(market(name))).unwrap();
    let all: String = ["manifests", "offers", "knowledge"].map(read).concat();
    let arguments = ["import", "-", "--data", &home.path("data")];
    home.run_with(&[], &all, &arguments).exits(0).says("460 kept, 0 unchanged, 0 refused");
}

/// Listens on a free port and treats each connection as `serve` says; gives the address.
pub(crate) fn stranger(serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap());
        }
    });
    url
}

/// Somebody between us and a node who changes a word of every reply.
pub(crate) fn liar(port: u16, word: &'static str, instead: &'static str) -> String {
    assert_eq!(word.len(), instead.len());
    stranger(move |mut stream| {
        // A caller keeps its connection for the next message, so it is ours to serve until they hang up.
        std::thread::spawn(move || {
            let mut node = TcpStream::connect(("127.0.0.1", port)).unwrap();
            loop {
                let request = read_message(&mut stream);
                if request.is_empty() {
                    break;
                }
                node.write_all(&request).unwrap();
                let reply = String::from_utf8(read_message(&mut node)).unwrap();
                stream.write_all(reply.replace(word, instead).as_bytes()).unwrap();
            }
        });
    })
}

/// One HTTP message with a length; nothing where the other side has hung up.
fn read_message(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = Vec::new();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        message.extend_from_slice(line.as_bytes());
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    message.extend_from_slice(&body);
    message
}
