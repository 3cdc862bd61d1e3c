//! RFC 3339: timestamps as instants. RFC 0020 A.1 compares them and RFC 0024 §3.5 counts days with them.
//!
//! A date alone is midnight UTC and a time without an offset is UTC (`docs/decisions`); fractions are cut after
//! nanoseconds; a leap second, which only 23:59:60 UTC can be, is the midnight that follows.

/// A moment in time, counted from 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    seconds: i64,
    nanos: u32,
}

impl Instant {
    /// The moment that many seconds after the epoch.
    pub fn from_unix(seconds: i64, nanos: u32) -> Self {
        Self { seconds: seconds + i64::from(nanos / 1_000_000_000), nanos: nanos % 1_000_000_000 }
    }

    /// Whole seconds since the epoch.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds since the last whole second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// The moment that many seconds later.
    #[must_use]
    pub fn plus(self, seconds: i64) -> Self {
        Self { seconds: self.seconds.saturating_add(seconds), nanos: self.nanos }
    }

    /// Reads a date, or a date and time with or without an offset.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text.as_bytes() };
        let days = reader.date()?;
        if reader.rest.is_empty() {
            return Some(Self { seconds: days * 86_400, nanos: 0 });
        }
        let (instant, _) = reader.time(days)?;
        reader.rest.is_empty().then_some(instant)
    }

    /// Reads an RFC 3339 date and time, which carries its offset.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text.as_bytes() };
        let days = reader.date()?;
        let (instant, offset) = reader.time(days)?;
        (reader.rest.is_empty() && offset).then_some(instant)
    }
}

/// Prints RFC 3339 in UTC, with as many fraction digits as needed.
impl std::fmt::Display for Instant {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(out, "{year:04}")?;
        // Each of them has two digits, and a hundred more keeps a zero in front.
        let mut digits = itoa::Buffer::new();
        for (before, number) in [("-", month), ("-", day), ("T", hour), (":", minute), (":", second)] {
            out.write_str(before)?;
            out.write_str(digits.format(100 + number).get(1..).unwrap_or_default())?;
        }
        if self.nanos > 0 {
            out.write_str(".")?;
            let fraction = digits.format(1_000_000_000 + self.nanos).get(1..).unwrap_or_default();
            out.write_str(fraction.trim_end_matches('0'))?;
        }
        out.write_str("Z")
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn date(&mut self) -> Option<i64> {
        let year = self.digits(4)?;
        self.expect(b'-')?;
        let month = self.digits(2)?;
        self.expect(b'-')?;
        let day = self.digits(2)?;
        ((1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month))
            .then(|| days_from_civil(year, month, day))
    }

    /// Reads what follows a date; also says whether an offset was written.
    fn time(&mut self, days: i64) -> Option<(Instant, bool)> {
        if !matches!(self.take()?, b'T' | b't') {
            return None;
        }
        let hour = self.digits(2)?;
        self.expect(b':')?;
        let minute = self.digits(2)?;
        self.expect(b':')?;
        let second = self.digits(2)?;
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let nanos = self.fraction()?;
        let (offset, written) = self.offset()?;
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
        // A sixty-first second exists only at the end of a UTC day.
        if second == 60 && seconds.rem_euclid(86_400) != 0 {
            return None;
        }
        Some((Instant { seconds, nanos }, written))
    }

    fn fraction(&mut self) -> Option<u32> {
        let Some((b'.', after)) = self.rest.split_first() else { return Some(0) };
        let count = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = after.split_at(count);
        self.rest = rest;
        let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
        (count > 0).then(|| padded.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    fn offset(&mut self) -> Option<(i64, bool)> {
        let sign = match self.rest.first() {
            None => return Some((0, false)),
            Some(b'Z' | b'z') => {
                self.take();
                return Some((0, true));
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.take();
        let hours = self.digits(2)?;
        self.expect(b':')?;
        let minutes = self.digits(2)?;
        (hours <= 23 && minutes <= 59).then_some((sign * (hours * 3600 + minutes * 60), true))
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.take()? == byte).then_some(())
    }

    fn take(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_moment_is_that_moment() {
        let moment = Instant::parse("2026-06-01T12:00:00Z").unwrap();
        for text in [
            "2026-06-01T12:00:00+00:00",
            "2026-06-01t12:00:00z",
            "2026-06-01T14:00:00+02:00",
            "2026-06-01T06:30:00-05:30",
            "2026-06-01T12:00:00",
            "2026-06-01T12:00:00.000",
            "2026-06-02T01:59:00+13:59",
        ] {
            assert_eq!(Instant::parse(text), Some(moment), "{text}");
        }
        assert_eq!(Instant::parse("2026-06-01"), Some(moment.plus(-43_200)));
        assert_eq!(Instant::parse("2016-12-31T23:59:60Z"), Instant::parse("2017-01-01T00:00:00Z"));
        assert_eq!(Instant::parse("2017-01-01T01:59:60+02:00"), Instant::parse("2017-01-01T00:00:00Z"));
        assert_eq!(Instant::parse("2026-06-01T12:00:00.1234567899Z").unwrap().nanos, 123_456_789);
    }

    #[test]
    fn what_is_no_timestamp_is_none() {
        for text in [
            "",
            "2026",
            "2026-06",
            "2026-13-01",
            "2026-02-29",
            "2026-06-01T",
            "2026-06-01 12:00:00Z",
            "2026-06-01T24:00:00Z",
            "2026-06-01T12:00Z",
            "2026-06-01T12:00:00+0200",
            "2026-06-01T12:00:00+24:00",
            "2026-06-01T12:00:00.Z",
            "2026-06-01T12:00:60Z",
            "2026-06-01T12:60:00Z",
            "2026-06-01T23:59:61Z",
            "2026-06-01T12:00:00Z ",
            "26-06-01",
            "2026-6-1",
            "2026-06-01Z",
            "20260601T120000Z",
        ] {
            assert_eq!(Instant::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_moment_is_its_seconds_and_what_is_left_of_the_next_one() {
        for (seconds, nanos, whole, rest) in
            [(5, 7, 5, 7), (-5, 1_000_000_000, -4, 0), (5, 3_999_999_999, 8, 999_999_999)]
        {
            let moment = Instant::from_unix(seconds, nanos);
            assert_eq!((moment.seconds(), moment.nanos()), (whole, rest));
        }
    }

    #[test]
    fn validity_wants_the_offset() {
        assert!(Instant::parse_rfc3339("2026-06-01T12:00:00Z").is_some());
        assert!(Instant::parse_rfc3339("2026-06-01T12:00:00").is_none());
        assert!(Instant::parse_rfc3339("2026-06-01").is_none());
    }

    #[test]
    fn days_and_dates_agree_for_ten_thousand_years() {
        let mut expected = days_from_civil(0, 1, 1);
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(days_from_civil(year, month, day), expected);
                    assert_eq!(civil_from_days(expected), (year, month, day));
                    expected += 1;
                }
            }
        }
        assert_eq!(days_from_civil(1970, 1, 1), 0);
    }

    #[test]
    fn a_moment_prints_as_it_reads() {
        for text in ["2026-11-15T20:40:00Z", "1969-12-31T23:59:59.5Z", "9999-12-31T23:59:59.999999999Z"] {
            assert_eq!(Instant::parse(text).unwrap().to_string(), text);
        }
    }
}
