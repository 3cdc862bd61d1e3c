//! RFC 0020 §3.7: readers of journals over server-sent events, thousands of them in one thread.
//!
//! HTTP/1.1 as lean as a load generator must be: a connection for each reader, opened some at a time, and opened again
//! after the last event when it breaks. What is heard goes to an [`Ear`], which judges it.
//!
//! INVARIANT: what is heard of one journal is heard in the order in which it was sent.

use anyhow::{Context, Result, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Connections that wait for the head of their reply at a time; a node has only so many places for that.
const OPENING_MAX: usize = 64;
/// Sockets that are looked at together.
const TOGETHER: usize = 1_024;
/// Bytes that are read of one socket at once.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that a reader keeps room for while nothing of a frame is there.
const ROOM_BYTES: usize = 4 * 1024;
/// Looks after which a node that had no place is asked again.
const REST: Duration = Duration::from_millis(20);

/// Somebody who judges what readers hear.
pub trait Ear {
    /// A reader hears an event with the cursor that its frame names.
    fn event(&mut self, reader: usize, cursor: u64, document: &[u8]);
    /// A reader hears something that is no event, such as `oap.heartbeat`.
    fn notice(&mut self, reader: usize, kind: &str, document: &[u8]);
    /// A reader is refused, other than for want of room.
    fn refused(&mut self, reader: usize, status: u16, body: &[u8]);
}

/// Many readers, each of one journal.
#[derive(Debug)]
pub struct Readers {
    epoll: OwnedFd,
    authority: Option<String>,
    readers: Vec<Reader>,
    /// Those that have to be opened.
    closed: VecDeque<usize>,
    /// Those that wait for the head of their reply.
    opening: usize,
    open: usize,
    scratch: Vec<u8>,
    /// How often a connection was opened.
    pub connections: usize,
    /// How often a node had no place for one.
    pub turned_away: usize,
}

#[derive(Debug)]
struct Reader {
    path: String,
    after: u64,
    stream: Option<TcpStream>,
    state: State,
    /// What has come of a head or of a chunk.
    input: Vec<u8>,
    /// What has come of a frame.
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Body,
}

/// Why a connection is at its end.
enum End {
    /// The other side closed it.
    Closed,
    /// There was no room.
    TurnedAway,
    /// There was a reason.
    Refused(u16, Vec<u8>),
}

impl Readers {
    /// Nobody yet, and no node.
    pub fn new() -> Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            authority: None,
            readers: Vec::new(),
            closed: VecDeque::new(),
            opening: 0,
            open: 0,
            scratch: vec![0; READ_BYTES],
            connections: 0,
            turned_away: 0,
        })
    }

    /// One more reader, of the journal at a path; tells its number.
    pub fn add(&mut self, path: String) -> usize {
        let reader = Reader { path, after: 0, stream: None, state: State::Head, input: Vec::new(), text: Vec::new() };
        self.readers.push(reader);
        self.closed.push_back(self.readers.len() - 1);
        self.readers.len() - 1
    }

    /// How many readers are reading.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Every reader goes to the node at an address, after what it has.
    pub fn go(&mut self, authority: &str) {
        self.leave();
        self.authority = Some(authority.to_owned());
    }

    /// Every reader hangs up.
    pub fn leave(&mut self) {
        self.authority = None;
        for number in 0..self.readers.len() {
            self.hang_up(number);
        }
    }

    /// Every reader forgets what it has.
    pub fn rewind(&mut self) {
        self.leave();
        self.readers.iter_mut().for_each(|reader| reader.after = 0);
    }

    /// Hears what was sent before the node went, and hangs up.
    pub fn take_leave(&mut self, ear: &mut impl Ear) -> Result<()> {
        self.authority = None;
        // Every socket of a process that is gone has an end.
        for _ in 0..100 {
            if self.open + self.opening == 0 {
                break;
            }
            self.listen(ear, Duration::from_millis(10))?;
        }
        self.leave();
        Ok(())
    }

    /// Opens what has to be opened, and hears what comes, for a while at most.
    pub fn listen(&mut self, ear: &mut impl Ear, patience: Duration) -> Result<()> {
        let turned_away = self.turned_away;
        self.open_some();
        let patience = if self.closed.is_empty() { patience } else { patience.min(REST) };
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        let mut events = Vec::with_capacity(TOGETHER);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            let number = event.data.u64() as usize;
            if let Some(end) = self.read(number, ear)? {
                self.hang_up(number);
                match end {
                    End::Closed => {}
                    End::TurnedAway => self.turned_away += 1,
                    End::Refused(status, body) => ear.refused(number, status, &body),
                }
            }
        }
        if self.turned_away > turned_away {
            std::thread::sleep(REST);
        }
        Ok(())
    }

    fn open_some(&mut self) {
        let Some(authority) = self.authority.clone() else { return };
        while self.opening < OPENING_MAX {
            let Some(number) = self.closed.pop_front() else { return };
            if self.begin(number, &authority).is_err() {
                // Nobody is there; the next look may find somebody.
                self.closed.push_back(number);
                return;
            }
            self.connections += 1;
            self.opening += 1;
        }
    }

    fn begin(&mut self, number: usize, authority: &str) -> Result<()> {
        let reader = self.readers.get_mut(number).context("no such reader")?;
        let mut stream = TcpStream::connect(authority)?;
        stream.set_nodelay(true)?;
        let last = if reader.after == 0 { String::new() } else { format!("Last-Event-ID: {}\r\n", reader.after) };
        let path = &reader.path;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: text/event-stream\r\n{last}\r\n");
        stream.write_all(head.as_bytes())?;
        stream.set_nonblocking(true)?;
        epoll::add(&self.epoll, &stream, EventData::new_u64(number as u64), EventFlags::IN)?;
        (reader.stream, reader.state) = (Some(stream), State::Head);
        Ok(())
    }

    fn hang_up(&mut self, number: usize) {
        let Some(reader) = self.readers.get_mut(number) else { return };
        if reader.stream.take().is_none() {
            return;
        }
        match reader.state {
            State::Head => self.opening -= 1,
            State::Body => self.open -= 1,
        }
        (reader.input, reader.text) = (Vec::new(), Vec::new());
        self.closed.push_back(number);
    }

    /// Reads what is there for one reader; why no more will come, if so.
    fn read(&mut self, number: usize, ear: &mut impl Ear) -> Result<Option<End>> {
        let Some(reader) = self.readers.get_mut(number) else { return Ok(None) };
        let Some(stream) = &mut reader.stream else { return Ok(None) };
        let count = match stream.read(&mut self.scratch) {
            Ok(0) => return Ok(Some(End::Closed)),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
            Err(_) => return Ok(Some(End::Closed)),
        };
        reader.input.extend_from_slice(self.scratch.get(..count).unwrap_or_default());
        if reader.state == State::Head {
            match reader.head()? {
                None => return Ok(None),
                Some(Err(end)) => return Ok(Some(end)),
                Some(Ok(())) => {
                    reader.state = State::Body;
                    self.opening -= 1;
                    self.open += 1;
                }
            }
        }
        let whole = reader.chunks()?;
        reader.frames(number, ear)?;
        Ok(whole.then_some(End::Closed))
    }
}

impl Reader {
    /// The head of the reply, once it is there: a stream, or why not.
    fn head(&mut self) -> Result<Option<Result<(), End>>> {
        let Some(end) = find(&self.input, b"\r\n\r\n") else { return Ok(None) };
        let head = String::from_utf8_lossy(self.input.get(..end).unwrap_or_default()).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status line")?;
        if status == 200 {
            ensure!(head.contains("transfer-encoding: chunked"), "a stream without chunks: {head}");
            self.input.drain(..end + 4);
            return Ok(Some(Ok(())));
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let body = self.input.get(end + 4..).unwrap_or_default();
        if length.is_some_and(|length| body.len() < length) {
            return Ok(None);
        }
        let end = if matches!(status, 429 | 503) { End::TurnedAway } else { End::Refused(status, body.to_vec()) };
        Ok(Some(Err(end)))
    }

    /// Takes the whole chunks out of what has come; whether the last is among them.
    fn chunks(&mut self) -> Result<bool> {
        let mut taken = 0;
        let mut last = false;
        while let Some(rest) = self.input.get(taken..)
            && let Some(line) = find(rest, b"\r\n")
        {
            let digits = std::str::from_utf8(rest.get(..line).unwrap_or_default())?;
            let length = usize::from_str_radix(digits, 16).with_context(|| format!("`{digits}` is no length"))?;
            let Some(chunk) = rest.get(line + 2..line + 2 + length).filter(|_| rest.len() >= line + length + 4) else {
                break;
            };
            self.text.extend_from_slice(chunk);
            taken += line + length + 4;
            if length == 0 {
                last = true;
                break;
            }
        }
        take(&mut self.input, taken);
        Ok(last)
    }

    /// Hands on the whole frames.
    fn frames(&mut self, number: usize, ear: &mut impl Ear) -> Result<()> {
        let mut taken = 0;
        while let Some(rest) = self.text.get(taken..)
            && let Some(end) = find(rest, b"\n\n")
        {
            let frame = std::str::from_utf8(rest.get(..end).unwrap_or_default())?;
            let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            match (field("id"), field("event"), field("data")) {
                (Some(cursor), Some("oap.manifest.event"), Some(document)) => {
                    let cursor = cursor.parse().with_context(|| format!("`{cursor}` is no cursor"))?;
                    self.after = cursor;
                    ear.event(number, cursor, document.as_bytes());
                }
                (_, Some(kind), Some(document)) => ear.notice(number, kind, document.as_bytes()),
                _ => {}
            }
            taken += end + 2;
        }
        take(&mut self.text, taken);
        Ok(())
    }
}

/// Takes the first bytes away; an empty buffer keeps little room.
fn take(buffer: &mut Vec<u8>, count: usize) {
    buffer.drain(..count);
    if buffer.is_empty() {
        buffer.shrink_to(ROOM_BYTES);
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Vec<String>);

    impl Ear for Heard {
        fn event(&mut self, _: usize, cursor: u64, document: &[u8]) {
            self.0.push(format!("{cursor} {}", String::from_utf8_lossy(document)));
        }

        fn notice(&mut self, _: usize, kind: &str, _: &[u8]) {
            self.0.push(kind.to_owned());
        }

        fn refused(&mut self, _: usize, status: u16, body: &[u8]) {
            self.0.push(format!("{status} {}", String::from_utf8_lossy(body)));
        }
    }

    /// Answers each connection with some pieces and closes it; tells the heads that came.
    fn serve(replies: Vec<Vec<&'static str>>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let serving = std::thread::spawn(move || {
            let answer = |pieces: Vec<&'static str>| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = vec![0; 4_096];
                let count = stream.read(&mut head).unwrap();
                for piece in pieces {
                    stream.write_all(piece.as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_millis(20));
                }
                String::from_utf8_lossy(&head[..count]).into_owned()
            };
            replies.into_iter().map(answer).collect()
        });
        (authority, serving)
    }

    #[test]
    fn a_stream_in_pieces_is_heard_and_goes_on_after_its_last_event() {
        const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (authority, serving) = serve(vec![
            vec![
                HEAD,
                "d\r\nretry: 1000\n\n\r\n2",
                "3\r\nid: 1\nevent: oap.ma",
                "nifest.event\ndat\r\n5\r\na: x\n\r\n",
                "1\r\n\n\r\n",
            ],
            vec!["HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"],
            vec![HEAD, "1f\r\nevent: oap.heartbeat\ndata: {}\n\n\r\n0\r\n\r\n"],
            vec!["HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\n", "wrong"],
        ]);
        let (mut readers, mut heard) = (Readers::new().unwrap(), Heard::default());
        readers.add("/journal".into());
        readers.go(&authority);
        for _ in 0..200 {
            readers.listen(&mut heard, Duration::from_millis(10)).unwrap();
            if heard.0.len() == 3 {
                break;
            }
        }
        assert_eq!(heard.0, ["1 x", "oap.heartbeat", "400 wrong"]);
        assert_eq!((readers.turned_away, readers.open()), (1, 0));
        readers.leave();
        let heads = serving.join().unwrap();
        assert!(!heads[0].contains("Last-Event-ID") && heads[3].contains("Last-Event-ID: 1"), "{heads:?}");
    }
}
