//! RFC 0020 §3.6: where a reader stands in its journal.
//!
//! Cursors are whole numbers from 1, without gaps, each subscription its own; 0 is before the first. They are no
//! secret: whoever has the name of a subscription has its journal, and that name nobody can guess.

/// What of a journal is kept: from `first` to `last`; nothing when `first` is the one after `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The first cursor that is kept, or the next one when none is.
    pub first: u64,
    /// The last cursor that was given.
    pub last: u64,
}

/// Where reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After this cursor, with nothing missing.
    After(u64),
    /// What was asked for is partly gone; it goes on after this cursor.
    Truncated(u64),
}

/// Why something is no place in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorError {
    /// It is no whole number without sign and leading zeros.
    NotANumber,
    /// Nothing is there yet.
    Ahead,
}

impl Journal {
    /// Where a reader goes on who has everything up to a cursor.
    pub fn after(self, cursor: u64) -> Result<Place, CursorError> {
        if cursor > self.last {
            return Err(CursorError::Ahead);
        }
        let before_first = self.first.saturating_sub(1);
        Ok(if cursor < before_first { Place::Truncated(before_first) } else { Place::After(cursor) })
    }
}

/// Reads a cursor as it stands in an address or a header.
pub fn read(text: &str) -> Result<u64, CursorError> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = plain && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| canonical).ok_or(CursorError::NotANumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_on_where_it_stopped() {
        let journal = Journal { first: 5, last: 9 };
        let cases = [
            (9, Ok(Place::After(9))),
            (4, Ok(Place::After(4))),
            (3, Ok(Place::Truncated(4))),
            (0, Ok(Place::Truncated(4))),
            (10, Err(CursorError::Ahead)),
            (u64::MAX, Err(CursorError::Ahead)),
        ];
        for (cursor, expected) in cases {
            assert_eq!(journal.after(cursor), expected, "{cursor}");
        }
        assert_eq!(Journal { first: 1, last: 0 }.after(0), Ok(Place::After(0)));
        assert_eq!(Journal { first: 10, last: 9 }.after(8), Ok(Place::Truncated(9)));
    }

    #[test]
    fn only_plain_numbers_are_cursors() {
        assert_eq!((read("0"), read("17")), (Ok(0), Ok(17)));
        for wrong in ["", "-1", "+1", "01", "1.0", "1e3", " 1", "9223372036854775808000", "x", "\u{661}"] {
            assert_eq!(read(wrong), Err(CursorError::NotANumber), "{wrong}");
        }
    }
}
