//! Hostile callers: the costliest messages of the entry points E1 and E2, without a pause.
//!
//! Each has a connection of its own and waits for nobody but the node. Only as many of them as they have processors work at
//! a moment: more could not, and where they share their processors with the node, a crowd that stands ready there delays
//! everybody, which no stranger far away can do.

use crate::cores::Cores;
use anyhow::{Context, Result};
use aql::Instant;
use bench::http::post;
use conformance::crash::clock;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketType};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use trust::{Digest, SigningKey};

/// What they do.
pub(crate) const KINDS: [&str; 8] =
    ["slow heads", "long bodies", "deep bodies", "resets", "forgeries", "patterns", "descents", "needles"];

/// The lowest priority: what the machine has left, where the callers are on it, too.
const NICE: i32 = 19;
/// How long a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Sockets that one caller of slow heads holds.
const SLOW_SOCKETS: usize = 8;
/// Streams that are opened and reset with one call of the system.
const RESETS: u32 = 50;

/// What was said to callers of each kind, and how often.
pub(crate) type Seen = BTreeMap<(String, String), usize>;

/// A crowd that means ill.
struct Fury {
    over: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Seen>>,
}

impl Fury {
    /// Lets them loose.
    fn unleash(authority: &str, count: usize, kinds: &[&'static str]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(Turns::new(std::thread::available_parallelism().map_or(1, usize::from)));
        let callers = (0..count).map(|number| {
            let kind = kinds.get(number % kinds.len()).copied().unwrap_or_default();
            let caller = Caller::new(authority, number, kind, Arc::clone(&over), Arc::clone(&turns));
            std::thread::spawn(move || caller.rage())
        });
        Self { callers: callers.collect(), over }
    }

    /// Calls them off; what the node said to them.
    fn end(self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Seen::new();
        for caller in self.callers {
            for (said, count) in caller.join().unwrap_or_default() {
                *all.entry(said).or_default() += count;
            }
        }
        all
    }
}

/// The crowd in a process of its own, since it stands for other machines: on processors of its own, or with only what
/// nobody else wants of those that there are. Until its standard input ends.
pub(crate) struct Away(Child);

impl Away {
    /// Lets them loose; `arguments` make this program unleash them on `authority`.
    pub(crate) fn unleash(authority: &str, arguments: &[String], cores: Option<&Cores>) -> Result<Self> {
        let program = std::env::current_exe()?;
        let command = |idle: bool| {
            let mut command = if idle { Command::new("chrt") } else { Command::new(&program) };
            if idle {
                command.args(["--idle", "0"]).arg(&program);
            }
            command.args(["--mode", "fury", "--authority", authority]).args(arguments);
            for core in cores.iter().flat_map(|cores| &cores.crowd) {
                command.args(["--core".to_owned(), core.to_string()]);
            }
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            command.spawn()
        };
        let idle = cores.is_none();
        Ok(Self(command(idle).or_else(|_| command(false))?))
    }

    /// Calls them off; what the node said to them.
    pub(crate) fn end(mut self) -> Result<Seen> {
        drop(self.0.stdin.take());
        let mut told = String::new();
        self.0.stdout.take().context("the crowd is silent")?.read_to_string(&mut told)?;
        self.0.wait()?;
        let line = |line: &str| {
            let mut parts = line.split('\t').map(str::to_owned);
            let (kind, said, count) = (parts.next()?, parts.next()?, parts.next()?);
            Some(((kind, said), count.parse().ok()?))
        };
        told.lines().map(|words| line(words).with_context(|| format!("the crowd said {words}"))).collect()
    }
}

/// The other side of [`Away`].
pub(crate) fn rage(authority: &str, count: usize, kinds: &[&'static str]) -> Result<()> {
    let fury = Fury::unleash(authority, count, kinds);
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    for ((kind, said), count) in fury.end() {
        println!("{kind}\t{said}\t{count}");
    }
    Ok(())
}

/// So many may work at a time.
struct Turns {
    left: Mutex<usize>,
    free: Condvar,
}

impl Turns {
    fn new(count: usize) -> Self {
        Self { left: Mutex::new(count), free: Condvar::new() }
    }

    /// Works when it is one's turn; who waits for the node must not be in here.
    fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *self.free.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner) -= 1;
        let done = work();
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.free.notify_one();
        done
    }
}

struct Caller {
    authority: String,
    from: Ipv4Addr,
    kind: &'static str,
    key: SigningKey,
    over: Arc<AtomicBool>,
    turns: Arc<Turns>,
    count: AtomicU64,
}

impl Caller {
    fn new(authority: &str, number: usize, kind: &'static str, over: Arc<AtomicBool>, turns: Arc<Turns>) -> Self {
        let key = SigningKey::from_seed(*Digest::of(format!("hostile {number}").as_bytes()).as_bytes());
        let from = Ipv4Addr::new(127, 0, 1, (number % 250) as u8 + 1);
        Self { authority: authority.to_owned(), from, kind, key, over, turns, count: AtomicU64::new(0) }
    }

    fn rage(&self) -> Seen {
        // A failure to be polite to the machine is no reason to stop.
        let _ = rustix::process::setpriority_process(None, NICE);
        let mut seen = Seen::new();
        let mut stream = None;
        while !self.over.load(Ordering::Relaxed) {
            let said = match self.kind {
                "slow heads" => self.slow_heads(),
                "resets" => self.resets(),
                _ => self.exchange(&mut stream),
            };
            *seen.entry((self.kind.to_owned(), said)).or_default() += 1;
        }
        seen
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let to: SocketAddr = self.authority.parse().map_err(std::io::Error::other)?;
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(self.from, 0))?;
        rustix::net::connect(&socket, &to)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// One message over a kept connection, and the first line of the reply.
    fn exchange(&self, kept: &mut Option<TcpStream>) -> String {
        let mut once = || -> std::io::Result<String> {
            let mut stream = match kept.take() {
                Some(stream) => stream,
                None => self.connect()?,
            };
            let message = self.turns.within(|| post(&self.authority, "/oap/intent", &self.body()));
            self.send(&stream, &message)?;
            // Waiting for the reply is nobody's work; reading it is.
            stream.peek(&mut [0])?;
            let status = self.turns.within(|| read_reply(&mut stream))?;
            *kept = Some(stream);
            Ok(status)
        };
        once().unwrap_or_else(|error| {
            // Nothing is gained by hammering at a door that was shut.
            std::thread::sleep(Duration::from_millis(10));
            match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("nothing for {} s", PATIENCE.as_secs()),
                _ => "closed the connection".to_owned(),
            }
        })
    }

    /// Sends a message, a part in each turn as far as the node takes it.
    fn send(&self, stream: &TcpStream, mut message: &[u8]) -> std::io::Result<()> {
        let part = |message: &[u8]| self.turns.within(|| rustix::net::send(stream, message, SendFlags::DONTWAIT));
        while !message.is_empty() {
            match part(message) {
                Ok(sent) => message = message.get(sent..).unwrap_or_default(),
                Err(Errno::AGAIN) => {
                    let patience = Timespec::try_from(PATIENCE).map_err(std::io::Error::other)?;
                    let mut writable = [PollFd::new(stream, PollFlags::OUT)];
                    if rustix::event::poll(&mut writable, Some(&patience))? == 0 {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn body(&self) -> Vec<u8> {
        match self.kind {
            "long bodies" => vec![b' '; 65_537],
            "deep bodies" => vec![b'['; 60_000],
            "forgeries" => {
                let mut forged = self.intent(json!({"path": "/tool/name", "operator": "exists", "value": true}));
                if let Some(members) = forged.as_object_mut() {
                    members.insert("category".into(), json!("knowledge"));
                }
                forged.to_string().into_bytes()
            }
            "patterns" => self.signed((0..8).map(|number| {
                let pattern = format!("^(\\w+\\s?)+\\1x{{{number},9}}$");
                json!({"path": "/**/name", "operator": "matches", "value": pattern})
            })),
            "descents" => self.signed((0..200).map(|number| {
                json!({"path": format!("/**/actions/**/p{number}"), "operator": "ne", "value": number})
            })),
            _ => self.signed((0..250).map(|number| {
                json!({"path": "/**", "operator": "contains", "value": format!("a needle that is nowhere {number}")})
            })),
        }
    }

    /// An intent of which one of many constraints must hold, so that none can be left out.
    fn signed(&self, leaves: impl Iterator<Item = Value>) -> Vec<u8> {
        self.intent(json!({"any_of": leaves.collect::<Vec<_>>()})).to_string().into_bytes()
    }

    fn intent(&self, constraints: Value) -> Value {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let time = |seconds: i64| Instant::from_unix(clock() + seconds, 0).to_string();
        let mut intent = json!({
            "intent_id": format!("urn:oap:intent:hostile-{}-{number}", self.from),
            "issuer_did": self.key.did_key().as_str(),
            "category": "discovery",
            "constraints": constraints,
            "projection": {"include": ["/tool/did"]},
            "validity": {"from": time(-60), "to": time(3_600)},
        });
        // An intent without a signature is refused, which is hostile enough.
        let _ = trust::sign(&mut intent, &self.key);
        intent
    }

    /// Holds sockets open with heads that never end.
    fn slow_heads(&self) -> String {
        let mut sockets: Vec<TcpStream> = (0..SLOW_SOCKETS).filter_map(|_| self.connect().ok()).collect();
        for stream in &mut sockets {
            let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
        }
        for _ in 0..100 {
            if self.over.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            sockets.retain_mut(|stream| stream.write_all(b"a").is_ok());
            if sockets.is_empty() {
                return "closed every socket".to_owned();
            }
        }
        "had not closed all when it was over".to_owned()
    }

    /// Opens streams of HTTP/2 and resets them at once.
    fn resets(&self) -> String {
        let once = || -> std::io::Result<()> {
            let stream = self.connect()?;
            self.send(&stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")?;
            for first in (0..5_000u32).step_by(RESETS as usize) {
                let frames = self.turns.within(|| (first..first + RESETS).flat_map(reset).collect::<Vec<u8>>());
                self.send(&stream, &frames)?;
                if self.over.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(())
        };
        match once() {
            Ok(()) => "bore the resets".to_owned(),
            Err(_) => "closed the connection".to_owned(),
        }
    }
}

/// A stream of HTTP/2 that is opened and reset.
fn reset(number: u32) -> Vec<u8> {
    let id = (number * 2 + 1).to_be_bytes();
    let head = [&[0, 0, 14, 1, 5], &id[..], &[0x82, 0x86, 0x84, 0x01, 9], b"localhost"].concat();
    [&head[..], &[0, 0, 4, 3, 0], &id, &[0, 0, 0, 8]].concat()
}

/// The status of a reply, which is read to its end.
fn read_reply(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        head.push_str(&line);
        line.clear();
    }
    let head = head.to_ascii_lowercase();
    let status = head.split(' ').nth(1).ok_or(ErrorKind::UnexpectedEof)?.to_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    std::io::copy(&mut reader.take(length.unwrap_or_default()), &mut std::io::sink())?;
    Ok(status)
}
