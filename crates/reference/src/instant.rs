//! RFC 0020 A.1: ISO-8601 timestamps as instants, in the profile of RFC 3339.
//!
//! INVARIANT: two timestamps are the same instant iff their `Instant`s are equal. The calendar is the proleptic
//! Gregorian one, with the years 0000 to 9999, and a year 0000 that is a leap year.

/// A point in time: the nanoseconds since the beginning of the year 0000 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(i128);

const NANOSECONDS: i128 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

impl Instant {
    /// A timestamp inside a document: a date alone is midnight UTC, and a time without an offset is UTC.
    pub(crate) fn parse(text: &str) -> Option<Instant> {
        let (date, time) = split_date(text)?;
        if time.is_empty() { Some(at_second(date, 0, 0)) } else { read_time(date, time, Offset::Optional) }
    }

    /// RFC 3339 `date-time`, whose time and offset are both required.
    pub(crate) fn parse_date_time(text: &str) -> Option<Instant> {
        let (date, time) = split_date(text)?;
        read_time(date, time, Offset::Required)
    }

    /// The instant some seconds later.
    pub(crate) fn plus_seconds(self, seconds: i64) -> Instant {
        Instant(self.0 + i128::from(seconds) * NANOSECONDS)
    }
}

#[derive(PartialEq)]
enum Offset {
    Required,
    Optional,
}

/// Reads `YYYY-MM-DD` and gives the number of the day, counted from 0000-01-01, and the rest of the text.
fn split_date(text: &str) -> Option<(i64, &str)> {
    let (year, text) = digits(text, 4)?;
    let (month, text) = digits(text.strip_prefix('-')?, 2)?;
    let (day, text) = digits(text.strip_prefix('-')?, 2)?;
    if day < 1 || day > days_in_month(year, month)? {
        return None;
    }
    // The leap years before this one: every fourth, not every hundredth, but every four hundredth, from year 0.
    let leap_days = (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
    let mut days = 365 * year + leap_days;
    for earlier in 1..month {
        days += days_in_month(year, earlier)?;
    }
    Some((days + day - 1, text))
}

/// Reads `Thh:mm:ss[.fraction][offset]` on a day.
fn read_time(day: i64, text: &str, offset: Offset) -> Option<Instant> {
    let text = text.strip_prefix(['T', 't'])?;
    let (hour, text) = digits(text, 2)?;
    let (minute, text) = digits(text.strip_prefix(':')?, 2)?;
    let (second, text) = digits(text.strip_prefix(':')?, 2)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (nanoseconds, text) = fraction(text)?;
    let offset_seconds = match text {
        "Z" | "z" => 0,
        "" if offset == Offset::Optional => 0,
        written => read_offset(written)?,
    };
    let seconds = hour * 3_600 + minute * 60 + second - offset_seconds;
    // A leap second ends a day of UTC, so that counting it as one more second gives the following midnight.
    if second == 60 && seconds.rem_euclid(DAY_SECONDS) != 0 {
        return None;
    }
    Some(at_second(day, seconds, nanoseconds))
}

/// Reads `.digits`, if it is there, and cuts it off after nanoseconds.
fn fraction(text: &str) -> Option<(i128, &str)> {
    let Some(text) = text.strip_prefix('.') else { return Some((0, text)) };
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (written, text) = text.split_at_checked(length)?;
    let nanoseconds: String = written.chars().chain("000000000".chars()).take(9).collect();
    if written.is_empty() { None } else { Some((nanoseconds.parse().ok()?, text)) }
}

/// Reads `+hh:mm` or `-hh:mm` as seconds.
fn read_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, text) = digits(text.strip_prefix(['+', '-'])?, 2)?;
    let (minutes, text) = digits(text.strip_prefix(':')?, 2)?;
    let readable = hours <= 23 && minutes <= 59 && text.is_empty();
    if readable { Some(sign * (hours * 3_600 + minutes * 60)) } else { None }
}

fn at_second(day: i64, seconds: i64, nanoseconds: i128) -> Instant {
    Instant(i128::from(day * DAY_SECONDS + seconds) * NANOSECONDS + nanoseconds)
}

/// Reads exactly so many digits.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let readable = number.bytes().all(|byte| byte.is_ascii_digit());
    if readable { Some((number.parse().ok()?, rest)) } else { None }
}

fn days_in_month(year: i64, month: i64) -> Option<i64> {
    let leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 if leap_year => Some(29),
        2 => Some(28),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_same(left: &str, right: &str) {
        assert_eq!(Instant::parse(left).unwrap(), Instant::parse(right).unwrap(), "{left} against {right}");
    }

    #[track_caller]
    fn check_before(left: &str, right: &str) {
        assert!(Instant::parse(left).unwrap() < Instant::parse(right).unwrap(), "{left} against {right}");
    }

    #[test]
    fn spellings_of_one_instant() {
        check_same("2026-05-04T12:00:00Z", "2026-05-04t12:00:00z");
        check_same("2026-05-04T12:00:00Z", "2026-05-04T14:00:00+02:00");
        check_same("2026-05-04T12:00:00Z", "2026-05-04T00:30:00-11:30");
        check_same("2026-05-04T12:00:00Z", "2026-05-04T12:00:00");
        check_same("2026-05-04T12:00:00Z", "2026-05-04T12:00:00-00:00");
        check_same("2026-05-04T12:00:00Z", "2026-05-04T12:00:00.000Z");
        check_same("2026-05-04", "2026-05-04T00:00:00Z");
        check_same("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z");
        check_same("2024-02-29T23:59:59+23:59", "2024-02-29T00:00:59Z");
        check_same("2026-05-04T12:00:00.5Z", "2026-05-04T12:00:00.500000000Z");
    }

    #[test]
    fn fractions_beyond_nanoseconds_are_cut() {
        check_same("2026-05-04T12:00:00.1234567899Z", "2026-05-04T12:00:00.123456789Z");
        check_before("2026-05-04T12:00:00.123456788Z", "2026-05-04T12:00:00.123456789Z");
        check_same("2026-05-04T12:00:00.9999999999Z", "2026-05-04T12:00:00.999999999Z");
    }

    #[test]
    fn a_leap_second_is_the_following_midnight() {
        check_same("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z");
        check_same("2016-12-31T15:59:60-08:00", "2017-01-01T00:00:00Z");
        check_same("2017-01-01T05:29:60+05:30", "2017-01-01T00:00:00Z");
        for text in
            ["2016-12-31T23:58:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T22:59:60Z", "2016-12-31T23:59:61Z"]
        {
            assert!(Instant::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_calendar_is_gregorian() {
        check_before("0000-01-01", "0000-12-31");
        check_before("1999-12-31T23:59:59.999999999Z", "2000-01-01");
        check_before("2023-02-28", "2023-03-01");
        let day = |text: &str| Instant::parse(text).unwrap().0 / NANOSECONDS / i128::from(DAY_SECONDS);
        assert_eq!(day("0000-01-01"), 0);
        assert_eq!(day("0001-01-01"), 366);
        assert_eq!(day("1970-01-01"), 719_528);
        assert_eq!(day("2000-03-01") - day("2000-02-28"), 2);
        assert_eq!(day("1900-03-01") - day("1900-02-28"), 1);
        assert_eq!(day("9999-12-31"), 3_652_424);
    }

    #[test]
    fn anything_else_is_no_timestamp() {
        for text in [
            "",
            "2026",
            "2026-05",
            "2026-5-4",
            "20260504",
            "2026-05-04 12:00:00Z",
            "2026-05-04T",
            "2026-05-04T12:00Z",
            "2026-05-04T12:00:00.Z",
            "2026-05-04T12:00:00,5Z",
            "2026-05-04T24:00:00Z",
            "2026-05-04T12:60:00Z",
            "2026-05-04T12:00:00+24:00",
            "2026-05-04T12:00:00+01:60",
            "2026-05-04T12:00:00+0100",
            "2026-05-04T12:00:00+01",
            "2026-05-04T12:00:00ZZ",
            "2026-05-04Z",
            "2026-13-01",
            "2026-00-01",
            "2026-04-31",
            "2026-02-29",
            "1900-02-29",
            "2026-05-00",
            "+2026-05-04",
            "-2026-05-04",
            "12026-05-04",
            " 2026-05-04",
            "2026-05-04 ",
            "\u{0662}026-05-04",
            "2026-05-04T12:00:00\u{2212}01:00",
            "2026-05-04T12:00:\u{e9}",
        ] {
            assert!(Instant::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_date_time_has_a_time_and_an_offset() {
        assert!(Instant::parse_date_time("2026-05-04T12:00:00Z").is_some());
        assert!(Instant::parse_date_time("2026-05-04t12:00:00.5+01:00").is_some());
        for text in ["2026-05-04", "2026-05-04T12:00:00", "2026-05-04T12:00:00.5"] {
            assert!(Instant::parse_date_time(text).is_none(), "{text}");
        }
    }

    #[test]
    fn seconds_can_be_added() {
        let noon = Instant::parse("2026-05-04T12:00:00Z").unwrap();
        assert_eq!(noon.plus_seconds(-300), Instant::parse("2026-05-04T11:55:00Z").unwrap());
    }
}
