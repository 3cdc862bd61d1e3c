//! RFC 8785: the one text of a value.
//!
//! RFC 0020 A.3 R6 signs this text, and the decimal value of a number is the decimal that its text here denotes.

use crate::value::Value;

/// The canonical text of a value.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(true) => "true".to_owned(),
        Value::Bool(false) => "false".to_owned(),
        Value::Number(number) => number_text(*number),
        Value::String(text) => string_text(text),
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(canonical).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}:{}", string_text(key), canonical(value))).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// RFC 8785 §3.2.2.3, which is Number::toString of ECMA-262.
///
/// With the digits `d1 d2 ... dk` the number is `0.d1d2...dk` times ten to the power `point`.
pub(crate) fn number_text(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if number < 0.0 {
        return format!("-{}", number_text(-number));
    }
    let text = shortest_text(number);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent + 1;
    if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let whole: String = digits.chars().take(length(point)).collect();
        let fraction: String = digits.chars().skip(length(point)).collect();
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{}", exponent.abs())
    }
}

/// The number in exponent form, with as few digits as read back to it, and among those the nearest ones.
///
/// Where two are equally near, RFC 8785 takes the even one, as a note of ECMA-262 recommends. Rust's shortest form does
/// not promise that; its form with a given number of digits does, but may read back to a neighbour.
fn shortest_text(number: f64) -> String {
    let shortest = format!("{number:e}");
    let digits = shortest.chars().take_while(|character| *character != 'e').filter(char::is_ascii_digit).count();
    let nearest = format!("{number:.places$e}", places = digits.saturating_sub(1));
    if nearest.parse() == Ok(number) { nearest } else { shortest }
}

fn zeros(count: i32) -> String {
    "0".repeat(length(count))
}

fn length(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// RFC 8785 §3.2.2.2: only what must be escaped is escaped, in the shortest way.
fn string_text(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::value;

    #[track_caller]
    fn check_number(number: f64, text: &str) {
        assert_eq!(number_text(number), text);
        assert_eq!(text.parse::<f64>().unwrap(), number);
    }

    #[test]
    fn numbers_are_written_like_ecmascript() {
        check_number(0.0, "0");
        check_number(-0.0, "0");
        check_number(1.0, "1");
        check_number(-1.5, "-1.5");
        check_number(0.1, "0.1");
        check_number(0.1 + 0.2, "0.30000000000000004");
        check_number(100.0, "100");
        check_number(123.456, "123.456");
        check_number(9007199254740991.0, "9007199254740991");
        check_number(0.000001, "0.000001");
        check_number(0.0000001, "1e-7");
        check_number(0.00000123, "0.00000123");
        check_number(1.23e-7, "1.23e-7");
        check_number(5e-324, "5e-324");
        check_number(1e20, "100000000000000000000");
        check_number(1e21, "1e+21");
        check_number(1.5e21, "1.5e+21");
        check_number(f64::MAX, "1.7976931348623157e+308");
        check_number(1e9 / 3.0, "333333333.3333333");
        check_number(1E30, "1e+30");
        check_number(4.50, "4.5");
        check_number(2e-3, "0.002");
        check_number(1e-27, "1e-27");
    }

    #[test]
    fn of_two_equally_near_numbers_the_even_one_is_written() {
        check_number(1424953923781206.0 + 0.25, "1424953923781206.2");
        check_number(1199254740333333.0 + 0.25, "1199254740333333.2");
        check_number(1199254740333333.0 + 0.75, "1199254740333333.8");
        check_number(2f64.powi(-44), "5.684341886080802e-14");
    }

    #[test]
    fn strings_are_escaped_no_more_than_needed() {
        let all = "\u{8}\t\n\u{c}\r\"\\/\u{0}\u{1}\u{1f}\u{7f}\u{20ac}\u{1f600}";
        assert_eq!(string_text(all), "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0000\\u0001\\u001f\u{7f}\u{20ac}\u{1f600}\"");
    }

    #[test]
    fn members_are_sorted_by_utf_16_and_nothing_else_is_written() {
        let text =
            "{ \"\\u20ac\": 1, \"\\r\": [ ], \"\\ufb33\": {}, \"1\": [1.0, true , null], \"\\ud83d\\ude00\": \"x\" }";
        let expected = "{\"\\r\":[],\"1\":[1,true,null],\"\u{20ac}\":1,\"\u{1f600}\":\"x\",\"\u{fb33}\":{}}";
        assert_eq!(canonical(&value(text)), expected);
    }

    #[test]
    fn reading_the_text_gives_the_value_back() {
        let document = value(r#"{"a":[0.1,1e-9,-5,"\u0000\ud83d\ude00"],"b":{"":false}}"#);
        assert_eq!(value(&canonical(&document)), document);
    }
}
