//! Server-sent events as HTML defines them: bytes in, wherever they are cut, the data of whole events out.
//!
//! INVARIANT: an event that is longer than allowed ends the stream, before it is whole.

use std::collections::VecDeque;

/// Puts events together.
#[derive(Debug)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A carriage return ended a line, so a line feed right after it ends none.
    after_return: bool,
    ready: VecDeque<Vec<u8>>,
    bytes_max: usize,
}

/// An event has more bytes than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (line, data, ready) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { line, data, has_data: false, after_return: false, ready, bytes_max }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    self.line.push(*byte);
                }
            }
            if self.line.len() + self.data.len() > self.bytes_max {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    /// The data of the next whole event.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                self.ready.push_back(std::mem::take(&mut self.data));
            }
            return;
        }
        let Some(value) = line.strip_prefix(b"data:").or((line == b"data").then_some(&[])) else { return };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend(value.strip_prefix(b" ").unwrap_or(value));
        self.has_data = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\r\n\r\nevent: x\rdata: {\"a\":\rdata:1}\r\rdata: zwei ü\nid: 7\n\ndata\n\nretry: 5\n\ndata: cut";

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::new(100);
        for piece in pieces {
            events.push(piece).unwrap();
        }
        std::iter::from_fn(|| events.next()).map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn events_are_the_same_wherever_they_are_cut() {
        let whole = ["{\"a\":\n1}", "zwei ü", ""];
        assert_eq!(read(&[STREAM.as_bytes()]), whole);
        for cut in 0..STREAM.len() {
            let (left, right) = STREAM.as_bytes().split_at(cut);
            assert_eq!(read(&[left, right]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn an_endless_event_is_not_kept() {
        let mut events = Events::new(10);
        assert_eq!(events.push(b"data: 12\n\ndata: 34\n\n"), Ok(()));
        assert_eq!(events.push(b"data: 1\ndata: 2\ndata: 3\ndata: 4\n"), Err(TooLong));
    }
}
