//! RFC 0020 §3.1: the window during which an intent is open, and whether it is open now.
//!
//! Both ends belong to the window. A clock may be a little ahead of the issuer's, never behind its end.

use crate::fields::Field;
use crate::instant::Instant;
use crate::refusal::Refusal;
use crate::value::Value;

/// How much earlier than its beginning an intent is already accepted.
const SKEW_SECONDS: i64 = 300;

/// The longest window of an intent, and that of a subscription.
const SPAN_SECONDS_MAX: i64 = 24 * 3_600;
const SUBSCRIPTION_SPAN_SECONDS_MAX: i64 = 92 * 24 * 3_600;

/// The categories of RFC 0020 §3.6.
pub(crate) const CATEGORIES: [&str; 6] =
    ["commercial", "knowledge", "action", "delegation", "discovery", "subscription"];

/// Checks that an intent of a category with this validity block is open now.
pub fn window(validity: &Value, category: &str, now: &str) -> Result<(), Refusal> {
    let (from, to) = read_validity(&Field::new(validity, "/validity"))?;
    if !CATEGORIES.contains(&category) {
        return Err(Refusal::new("invalid_value", "/category"));
    }
    let now = Instant::parse_date_time(now).ok_or_else(|| Refusal::new("invalid_timestamp", ""))?;
    let span_max = if category == "subscription" { SUBSCRIPTION_SPAN_SECONDS_MAX } else { SPAN_SECONDS_MAX };
    if now > to {
        Err(Refusal::new("intent_expired", "/validity"))
    } else if now < from.plus_seconds(-SKEW_SECONDS) {
        Err(Refusal::new("intent_not_yet_valid", "/validity"))
    } else if to > from.plus_seconds(span_max) {
        Err(Refusal::new("validity_too_long", "/validity"))
    } else {
        Ok(())
    }
}

/// Reads a validity block.
pub(crate) fn read_validity(block: &Field) -> Result<(Instant, Instant), Refusal> {
    let fields = block.closed(&["from", "to"])?;
    let from = fields.required("from")?;
    let to = fields.required("to")?;
    let start = read_instant(&from)?;
    let end = read_instant(&to)?;
    if start < end { Ok((start, end)) } else { Err(to.refusal("validity_invalid")) }
}

fn read_instant(field: &Field) -> Result<Instant, Refusal> {
    Instant::parse_date_time(field.text()?).ok_or_else(|| field.refusal("invalid_timestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check(from: &str, to: &str, category: &str, now: &str, refused: Option<(&str, &str)>) {
        let validity = value(&format!(r#"{{"from":"{from}","to":"{to}"}}"#));
        let refusal = window(&validity, category, now).err();
        let refusal = refusal.as_ref().map(|refusal| (refusal.code, refusal.at.as_str()));
        assert_eq!(refusal, refused);
    }

    #[track_caller]
    fn check_at(now: &str, code: Option<&str>) {
        let refused = code.map(|code| (code, "/validity"));
        check("2026-05-04T12:00:00Z", "2026-05-04T13:00:00Z", "discovery", now, refused);
    }

    #[test]
    fn both_ends_belong_to_the_window() {
        check_at("2026-05-04T12:30:00Z", None);
        check_at("2026-05-04T12:00:00Z", None);
        check_at("2026-05-04T15:00:00+02:00", None);
        check_at("2026-05-04T13:00:00.000000001Z", Some("intent_expired"));
        check_at("2026-05-04T11:55:00Z", None);
        check_at("2026-05-04T11:54:59.999Z", Some("intent_not_yet_valid"));
    }

    #[test]
    fn a_window_is_not_too_long() {
        let too_long = Some(("validity_too_long", "/validity"));
        let (start, now) = ("2026-05-04T12:00:00Z", "2026-05-04T12:00:00Z");
        check(start, "2026-05-05T12:00:00Z", "discovery", now, None);
        check(start, "2026-05-05T12:00:01Z", "commercial", now, too_long);
        check(start, "2026-05-05T12:00:01Z", "subscription", now, None);
        check(start, "2026-08-04T12:00:00Z", "subscription", now, None);
        check(start, "2026-08-04T12:00:01Z", "subscription", now, too_long);
    }

    #[test]
    fn a_flawed_window_is_refused() {
        let (start, now) = ("2026-05-04T12:00:00Z", "2026-05-04T12:00:00Z");
        check(start, start, "discovery", now, Some(("validity_invalid", "/validity/to")));
        check(start, "2026-05-04T11:00:00Z", "discovery", now, Some(("validity_invalid", "/validity/to")));
        check("2026-05-04", "2026-05-05T00:00:00Z", "discovery", now, Some(("invalid_timestamp", "/validity/from")));
        check(start, "2026-05-04T13:00:00", "discovery", now, Some(("invalid_timestamp", "/validity/to")));
        check(start, "2026-05-04T13:00:00Z", "discovery", "now", Some(("invalid_timestamp", "")));
        check(start, "2026-05-04T13:00:00Z", "barter", now, Some(("invalid_value", "/category")));
        for (validity, code, at) in [
            ("[]", "wrong_type", "/validity"),
            ("{}", "missing_field", "/validity/from"),
            (r#"{"from":1,"to":2}"#, "wrong_type", "/validity/from"),
            (r#"{"from":"2026-05-04T12:00:00Z"}"#, "missing_field", "/validity/to"),
            (r#"{"from":"2026-05-04T12:00:00Z","to":"2026-05-04T13:00:00Z","x":1}"#, "unknown_field", "/validity/x"),
        ] {
            assert_eq!(window(&value(validity), "discovery", now), Err(Refusal::new(code, at)), "{validity}");
        }
    }
}
