//! RFC 0024 §3.3 "a function of source fields": the closed list, and nothing else (decisions/0123).
//!
//! INVARIANT: every function is total: it ends, in time linear in its input, with a value or with none.

use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use json::{Instant, Kind, Value, json};

/// What a text argument may measure.
const TEXT_BYTES_MAX: usize = 256;

/// The largest factor between two units.
const FACTOR_MAX: u64 = 1_000_000_000;

/// How far a decimal point moves.
const DIGITS_MAX: i32 = 18;

/// The largest integer that a document holds.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// A function of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    NumberToString,
    StringToNumber,
    BooleanToString,
    StringToBoolean,
    Negate,
    Multiply(u64),
    Divide(u64),
    DecimalScale(i32),
    Lower,
    Upper,
    WrapArray,
    First,
    Join(String),
    Split(String),
    AddPrefix(String),
    StripPrefix(String),
    MajorMinor,
    WithPatch,
    TimestampToSeconds,
    SecondsToTimestamp,
}

impl Function {
    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        let name = at.required("fn")?;
        let arguments = at.member("args");
        let argument = |wanted: &str| -> Result<At<'_>, Refusal> {
            let arguments = at.required("args")?;
            arguments.closed(&[wanted])?;
            arguments.required(wanted)
        };
        let function = match name.string()? {
            "number_to_string" => Self::NumberToString,
            "string_to_number" => Self::StringToNumber,
            "boolean_to_string" => Self::BooleanToString,
            "string_to_boolean" => Self::StringToBoolean,
            "negate" => Self::Negate,
            "multiply" => Self::Multiply(factor(&argument("by")?)?),
            "divide" => Self::Divide(factor(&argument("by")?)?),
            "decimal_scale" => Self::DecimalScale(digits(&argument("digits")?)?),
            "lower" => Self::Lower,
            "upper" => Self::Upper,
            "wrap_array" => Self::WrapArray,
            "first" => Self::First,
            "join" => Self::Join(text(&argument("separator")?)?),
            "split" => Self::Split(text(&argument("separator")?)?),
            "add_prefix" => Self::AddPrefix(text(&argument("text")?)?),
            "strip_prefix" => Self::StripPrefix(text(&argument("text")?)?),
            "major_minor" => Self::MajorMinor,
            "with_patch" => Self::WithPatch,
            "timestamp_to_seconds" => Self::TimestampToSeconds,
            "seconds_to_timestamp" => Self::SecondsToTimestamp,
            _ => return name.refuse(Code::FunctionUnknown, "this is no function of the closed list"),
        };
        match arguments {
            Some(arguments) if function.arguments().is_none() => {
                arguments.refuse(Code::UnknownField, "this function takes no arguments")
            }
            _ => Ok(function),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::NumberToString => "number_to_string",
            Self::StringToNumber => "string_to_number",
            Self::BooleanToString => "boolean_to_string",
            Self::StringToBoolean => "string_to_boolean",
            Self::Negate => "negate",
            Self::Multiply(_) => "multiply",
            Self::Divide(_) => "divide",
            Self::DecimalScale(_) => "decimal_scale",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::WrapArray => "wrap_array",
            Self::First => "first",
            Self::Join(_) => "join",
            Self::Split(_) => "split",
            Self::AddPrefix(_) => "add_prefix",
            Self::StripPrefix(_) => "strip_prefix",
            Self::MajorMinor => "major_minor",
            Self::WithPatch => "with_patch",
            Self::TimestampToSeconds => "timestamp_to_seconds",
            Self::SecondsToTimestamp => "seconds_to_timestamp",
        }
    }

    pub(crate) fn arguments(&self) -> Option<Value> {
        match self {
            Self::Multiply(by) | Self::Divide(by) => Some(json!({"by": by})),
            Self::DecimalScale(digits) => Some(json!({"digits": digits})),
            Self::Join(separator) | Self::Split(separator) => Some(json!({"separator": separator})),
            Self::AddPrefix(text) | Self::StripPrefix(text) => Some(json!({"text": text})),
            Self::NumberToString
            | Self::StringToNumber
            | Self::BooleanToString
            | Self::StringToBoolean
            | Self::Negate
            | Self::Lower
            | Self::Upper
            | Self::WrapArray
            | Self::First
            | Self::MajorMinor
            | Self::WithPatch
            | Self::TimestampToSeconds
            | Self::SecondsToTimestamp => None,
        }
    }

    /// The function that leads back, as far as one does; what it does not bring back is told value by value.
    pub(crate) fn inverse(&self) -> Option<Self> {
        Some(match self {
            Self::NumberToString => Self::StringToNumber,
            Self::StringToNumber => Self::NumberToString,
            Self::BooleanToString => Self::StringToBoolean,
            Self::StringToBoolean => Self::BooleanToString,
            Self::Negate => Self::Negate,
            Self::Multiply(by) => Self::Divide(*by),
            Self::Divide(by) => Self::Multiply(*by),
            Self::DecimalScale(digits) => Self::DecimalScale(-digits),
            Self::Lower | Self::Upper => return None,
            Self::WrapArray => Self::First,
            Self::First => Self::WrapArray,
            Self::Join(separator) => Self::Split(separator.clone()),
            Self::Split(separator) => Self::Join(separator.clone()),
            Self::AddPrefix(text) => Self::StripPrefix(text.clone()),
            Self::StripPrefix(text) => Self::AddPrefix(text.clone()),
            Self::MajorMinor => Self::WithPatch,
            Self::WithPatch => Self::MajorMinor,
            Self::TimestampToSeconds => Self::SecondsToTimestamp,
            Self::SecondsToTimestamp => Self::TimestampToSeconds,
        })
    }

    /// The value of the function; none where the argument is not one it is made for.
    pub(crate) fn apply(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::NumberToString, Value::Number(number)) => Some(json!(number_text(number.as_f64()?))),
            (Self::StringToNumber, Value::String(text)) => read_number(text),
            (Self::BooleanToString, Value::Bool(truth)) => Some(json!(if *truth { "true" } else { "false" })),
            (Self::StringToBoolean, Value::String(text)) => match text.as_str() {
                "true" => Some(json!(true)),
                "false" => Some(json!(false)),
                _ => None,
            },
            (Self::Negate, Value::Bool(truth)) => Some(json!(!truth)),
            (Self::Multiply(by), Value::Number(number)) => number_value(number.as_f64()? * *by as f64),
            (Self::Divide(by), Value::Number(number)) => number_value(number.as_f64()? / *by as f64),
            (Self::DecimalScale(digits), Value::String(text)) => shift(text, *digits).map(Value::String),
            (Self::Lower, Value::String(text)) => Some(json!(text.to_lowercase())),
            (Self::Upper, Value::String(text)) => Some(json!(text.to_uppercase())),
            (Self::WrapArray, value) => Some(json!([value])),
            (Self::First, Value::Array(elements)) => elements.first().cloned(),
            (Self::Join(separator), Value::Array(elements)) => {
                let texts: Option<Vec<&str>> = elements.iter().map(Value::as_str).collect();
                // No element and one empty element would be the same text.
                texts.filter(|texts| !texts.is_empty()).map(|texts| json!(texts.join(separator)))
            }
            (Self::Split(separator), Value::String(text)) => {
                Some(json!(text.split(separator.as_str()).collect::<Vec<_>>()))
            }
            (Self::AddPrefix(prefix), Value::String(text)) => Some(json!(format!("{prefix}{text}"))),
            (Self::StripPrefix(prefix), Value::String(text)) => {
                text.strip_prefix(prefix.as_str()).map(|rest| json!(rest))
            }
            (Self::MajorMinor, Value::String(text)) => {
                let version = crate::Version::parse(text)?.to_string();
                Some(json!(version.split('.').take(2).collect::<Vec<_>>().join(".")))
            }
            (Self::WithPatch, Value::String(text)) => {
                let version = crate::Version::parse(text)?.to_string();
                Some(json!(if version.split('.').count() == 2 { format!("{version}.0") } else { version }))
            }
            (Self::TimestampToSeconds, Value::String(text)) => Some(json!(Instant::parse_rfc3339(text)?.seconds())),
            (Self::SecondsToTimestamp, Value::Number(number)) => {
                let seconds = number.as_i64().filter(|seconds| (SECOND_FIRST..=SECOND_LAST).contains(seconds))?;
                Some(json!(Instant::from_unix(seconds, 0).to_string()))
            }
            _ => None,
        }
    }
}

/// The years 0000 to 9999, which RFC 3339 can write.
const SECOND_FIRST: i64 = -62_167_219_200;
const SECOND_LAST: i64 = 253_402_300_799;

fn factor(at: &At<'_>) -> Result<u64, Refusal> {
    let factor = at.integer()?;
    match (2..=FACTOR_MAX).contains(&factor) {
        true => Ok(factor),
        false => at.refuse(Code::InvalidValue, format!("a factor is a whole number from 2 to {FACTOR_MAX}")),
    }
}

fn digits(at: &At<'_>) -> Result<i32, Refusal> {
    let number = at.node.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= f64::from(DIGITS_MAX));
    number.map_or_else(
        || at.refuse(Code::InvalidValue, format!("a whole number from -{DIGITS_MAX} to {DIGITS_MAX} belongs here")),
        |number| Ok(number as i32),
    )
}

fn text(at: &At<'_>) -> Result<String, Refusal> {
    let text = at.string()?;
    match (1..=TEXT_BYTES_MAX).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => at.refuse(Code::InvalidValue, format!("a text of 1 to {TEXT_BYTES_MAX} bytes belongs here")),
    }
}

pub(crate) fn number_value(number: f64) -> Option<Value> {
    if !number.is_finite() || number.abs() > INTEGER_MAX {
        return None;
    }
    Some(if number.fract() == 0.0 { json!(number as i64) } else { json!(number) })
}

/// The text that RFC 8785 writes.
fn number_text(number: f64) -> String {
    let mut writer = json::Writer::default();
    writer.number(number);
    String::from_utf8(writer.finish()).unwrap_or_default()
}

/// A JSON number and nothing else; other spellings of numbers are texts.
fn read_number(text: &str) -> Option<Value> {
    let document = json::Document::parse(text.as_bytes(), &json::Limits::DOCUMENT).ok()?;
    let number = document.root();
    (number.kind() == Kind::Number && text.trim() == text).then(|| number.to_value())
}

/// Moves the point of a decimal text.
fn shift(text: &str, digits: i32) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) || text.ends_with('.') || text.len() > 64 {
        return None;
    }
    let mut all: String = format!("{whole}{fraction}");
    let mut point = whole.len() as i32 + digits;
    if point < 1 {
        all = "0".repeat((1 - point) as usize) + &all;
        point = 1;
    }
    while (all.len() as i32) < point {
        all.push('0');
    }
    let (whole, fraction) = all.split_at_checked(point as usize)?;
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        rest => rest,
    };
    let fraction = if digits > 0 { fraction } else { fraction.trim_end_matches('0') };
    Some(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") })
}

/// A function of several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Derivation {
    /// All of them, texts, one after the other.
    Concat(String),
    /// The first that is there.
    FirstPresent,
    /// How many elements or members it has.
    Count,
    /// One of the pieces of a text.
    Part(String, usize),
}

impl Derivation {
    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        let name = at.required("fn")?;
        let arguments = at.member("args");
        let no_arguments = |derivation| match &arguments {
            Some(arguments) => arguments.refuse(Code::UnknownField, "this function takes no arguments"),
            None => Ok(derivation),
        };
        match name.string()? {
            "concat" => {
                let Some(arguments) = &arguments else { return Ok(Self::Concat(String::new())) };
                arguments.closed(&["separator"])?;
                Ok(Self::Concat(text(&arguments.required("separator")?)?))
            }
            "first_present" => no_arguments(Self::FirstPresent),
            "count" => no_arguments(Self::Count),
            "part" => {
                let arguments = at.required("args")?;
                arguments.closed(&["separator", "index"])?;
                let index = arguments.required("index")?.integer()? as usize;
                Ok(Self::Part(text(&arguments.required("separator")?)?, index))
            }
            _ => name.refuse(Code::FunctionUnknown, "this is no function of the closed list"),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Concat(_) => "concat",
            Self::FirstPresent => "first_present",
            Self::Count => "count",
            Self::Part(..) => "part",
        }
    }

    pub(crate) fn arguments(&self) -> Option<Value> {
        match self {
            Self::Concat(separator) if !separator.is_empty() => Some(json!({"separator": separator})),
            Self::Part(separator, index) => Some(json!({"separator": separator, "index": index})),
            Self::Concat(_) | Self::FirstPresent | Self::Count => None,
        }
    }

    pub(crate) fn apply(&self, values: &[Option<&Value>]) -> Option<Value> {
        let first = values.iter().flatten().next();
        match self {
            Self::Concat(separator) => {
                let texts: Option<Vec<&str>> = values.iter().map(|value| value.and_then(Value::as_str)).collect();
                texts.map(|texts| json!(texts.join(separator)))
            }
            Self::FirstPresent => first.map(|value| (*value).clone()),
            Self::Count => match first? {
                Value::Array(elements) => Some(json!(elements.len())),
                Value::Object(members) => Some(json!(members.len())),
                _ => None,
            },
            Self::Part(separator, index) => {
                first?.as_str()?.split(separator.as_str()).nth(*index).map(|part| json!(part))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(function: &Function, value: Value, expected: Option<Value>) {
        assert_eq!(function.apply(&value), expected, "{} of {value}", function.name());
    }

    #[test]
    fn every_function_has_its_value_and_its_silence() {
        check(&Function::NumberToString, json!(1.50), Some(json!("1.5")));
        check(&Function::NumberToString, json!("1"), None);
        check(&Function::StringToNumber, json!("1e2"), Some(json!(100)));
        check(&Function::StringToNumber, json!("0x10"), None);
        check(&Function::StringToNumber, json!(" 1"), None);
        check(&Function::StringToBoolean, json!("yes"), None);
        check(&Function::Negate, json!(true), Some(json!(false)));
        check(&Function::Multiply(60), json!(1.5), Some(json!(90)));
        check(&Function::Multiply(1_000_000_000), json!(9_007_199_254_740_991_i64), None);
        check(&Function::Divide(60), json!(90), Some(json!(1.5)));
        check(&Function::First, json!([]), None);
        check(&Function::Join(",".into()), json!(["a", "b"]), Some(json!("a,b")));
        check(&Function::Join(",".into()), json!([]), None);
        check(&Function::Split(",".into()), json!("a,,b"), Some(json!(["a", "", "b"])));
        check(&Function::StripPrefix("urn:".into()), json!("x"), None);
        check(&Function::MajorMinor, json!("0.3.0"), Some(json!("0.3")));
        check(&Function::WithPatch, json!("0.3"), Some(json!("0.3.0")));
        check(&Function::WithPatch, json!("v1"), None);
        check(&Function::TimestampToSeconds, json!("1970-01-01T00:01:00Z"), Some(json!(60)));
        check(&Function::SecondsToTimestamp, json!(60), Some(json!("1970-01-01T00:01:00Z")));
        check(&Function::SecondsToTimestamp, json!(1e15), None);
        check(&Function::Lower, json!("ÀB"), Some(json!("àb")));
    }

    #[test]
    fn a_decimal_point_moves_both_ways() {
        for (text, digits, expected) in
            [("12.34", 2, "1234"), ("1234", -2, "12.34"), ("5", -3, "0.005"), ("0.005", 3, "5"), ("7", 2, "700")]
        {
            assert_eq!(shift(text, digits).as_deref(), Some(expected), "{text} by {digits}");
        }
        for text in ["", ".5", "5.", "-1", "1e3", "١"] {
            assert_eq!(shift(text, 1), None, "{text}");
        }
    }
}
