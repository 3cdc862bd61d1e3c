//! From an operation and its arguments to a request, and from the reply to a result.
//!
//! INVARIANT: an argument stays where its parameter stands: none leads to another path, another header or another host.

use super::proof::Prepared;
use super::{CallError, Fit};
use crate::outbound::Response;
use description::{Call, Operation, Place};
use json::{Document, Limits, Map, Value, json};
use schema::Validator;
use url::Url;

/// How large an answer may be.
const REPLY_LIMITS: Limits =
    Limits { subject: "reply", bytes: 1024 * 1024, nodes: 200_000, string_bytes: 1024 * 1024, ..Limits::DOCUMENT };

/// Header fields that an argument does not set.
const OURS: [&str; 13] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-digest",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "signature",
    "signature-input",
    "te",
    "transfer-encoding",
];

/// The request of a call; `server` is where calls go, `id` is the name of this one.
pub(super) fn prepare(operation: &Operation, arguments: &Map, server: Url, id: &str) -> Result<Prepared, CallError> {
    match &operation.call {
        Call::Rpc => {
            let body = json!({"jsonrpc": "2.0", "id": id, "method": operation.name, "params": arguments});
            Ok(posted(server, &body))
        }
        // The text gives conversations no form (decisions/0200).
        Call::Words => Ok(posted(server, &Value::Object(arguments.clone()))),
        Call::Http { method, path } => http(operation, arguments, server, method, path),
    }
}

fn posted(url: Url, body: &Value) -> Prepared {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Prepared { method: "POST".to_owned(), url, headers, body: body.to_string().into_bytes() }
}

fn http(
    operation: &Operation,
    arguments: &Map,
    server: Url,
    method: &str,
    template: &str,
) -> Result<Prepared, CallError> {
    let (mut path, mut query) = (template.to_owned(), Vec::new());
    let (mut headers, mut cookies, mut body) = (Vec::new(), Vec::new(), Vec::new());
    for param in &operation.params {
        let Some(value) = arguments.get(&param.name) else { continue };
        let wrong = |reason: &str| CallError::Argument {
            name: param.name.clone(),
            at: json::Pointer::root(),
            reason: reason.to_owned(),
        };
        match param.place {
            Place::Path => {
                let text = spelled(value);
                if text.is_empty() || text.chars().all(|c| c == '.') {
                    return Err(wrong("it would lead to another path"));
                }
                path = path.replace(&format!("{{{}}}", param.name), &escaped(&text));
            }
            Place::Query | Place::Named => match value {
                Value::Array(items) => query.extend(items.iter().map(|item| (param.name.clone(), spelled(item)))),
                value => query.push((param.name.clone(), spelled(value))),
            },
            Place::Header => {
                let (name, text) = (param.name.to_ascii_lowercase(), spelled(value));
                if OURS.contains(&name.as_str()) || !is_field_name(&name) {
                    return Err(wrong("this header field is not an argument's to set"));
                }
                if !is_field_value(&text) {
                    return Err(wrong("it cannot stand in a header field"));
                }
                headers.push((name, text));
            }
            Place::Cookie => cookies.push(format!("{}={}", escaped(&param.name), escaped(&spelled(value)))),
            Place::Body => body = value.to_string().into_bytes(),
        }
    }
    if !cookies.is_empty() {
        headers.push(("cookie".to_owned(), cookies.join("; ")));
    }
    if !body.is_empty() {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
    }
    let base = server.path().trim_end_matches('/').to_owned();
    let (path, fixed) = path.split_once('?').map_or((path.as_str(), None), |(path, fixed)| (path, Some(fixed)));
    let mut url = server;
    url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
    url.set_query(fixed);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(Prepared { method: method.to_owned(), url, headers, body })
}

/// A value as text.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A text that means nothing but itself in a URL.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn is_field_value(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// The result in a reply, or what the agent said instead.
pub(super) fn result(call: &Call, id: &str, response: &Response) -> Result<Value, CallError> {
    if [401, 403].contains(&response.status) {
        let challenge = response.field("www-authenticate").and_then(trust::http::Challenge::read);
        return Err(CallError::Refused { status: response.status, reason: challenge.and_then(|told| told.error) });
    }
    let read = || Document::parse(&response.body, &REPLY_LIMITS).map(|document| document.root().to_value());
    match call {
        Call::Rpc if response.status == 200 => {
            let reply = read().map_err(|error| CallError::Reply(format!("it is no JSON: {error}")))?;
            rpc_result(id, reply)
        }
        Call::Http { .. } | Call::Words if (200..300).contains(&response.status) => {
            let text = || Value::String(String::from_utf8_lossy(&response.body).into_owned());
            match read() {
                Ok(value) => Ok(value),
                Err(_) if response.body.is_empty() => Ok(Value::Null),
                Err(error) if response.is_json() => Err(CallError::Reply(format!("it is no JSON: {error}"))),
                Err(_) => Ok(text()),
            }
        }
        Call::Rpc | Call::Http { .. } | Call::Words => {
            let said = Box::new(read().unwrap_or(Value::Null));
            Err(CallError::Answered { code: Some(i64::from(response.status)), said })
        }
    }
}

/// JSON-RPC 2.0: the presence of `error` decides, and an answer is to the question that was asked.
fn rpc_result(id: &str, mut reply: Value) -> Result<Value, CallError> {
    let wrong = |what: &str| CallError::Reply(what.to_owned());
    let members = reply.as_object_mut().ok_or_else(|| wrong("it is no object"))?;
    if let Some(error) = members.remove("error") {
        let code = error.get("code").and_then(Value::as_i64);
        return Err(CallError::Answered { code, said: Box::new(error) });
    }
    if members.get("id").and_then(Value::as_str) != Some(id) {
        return Err(wrong("it answers another question"));
    }
    members.remove("result").ok_or_else(|| wrong("it has neither `result` nor `error`"))
}

/// Whether a result is what the definition promises.
pub(super) fn fit(operation: &Operation, result: &Value) -> Fit {
    match (&operation.call, &operation.result) {
        (Call::Words, _) | (_, None) => Fit::Unsaid,
        (_, Some(schema)) => match Validator::compile(schema) {
            Err(_) => Fit::Unchecked,
            Ok(validator) => {
                validator.check(result).map_or_else(|refusal| Fit::Breaks(Box::new(refusal)), |()| Fit::Fits)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use description::Definition;

    fn book() -> Operation {
        let param = |name: &str, place: &str| json!({"name": name, "in": place, "schema": {}, "required": true});
        let definition = json!({"openapi": "3.0.0", "info": {"title": "B", "version": "1"}, "paths": {
            "/berths/{berth}/at": {"put": {"operationId": "book", "parameters": [
                param("berth", "path"), param("day", "query"), param("X-Ship", "header"), param("mood", "cookie"),
                param("Authorization", "header"),
            ], "responses": {}}},
        }});
        Definition::parse(definition.to_string().as_bytes()).unwrap().operations.remove(0)
    }

    fn prepared(arguments: Value) -> Result<Prepared, &'static str> {
        let server = Url::parse("https://a.example/v1/").unwrap();
        let Value::Object(arguments) = arguments else { panic!("an object") };
        prepare(&book(), &arguments, server, "1").map_err(|error| error.code())
    }

    #[test]
    fn an_argument_stays_where_its_parameter_stands() {
        let made =
            prepared(json!({"berth": "a/../b?c#d", "day": ["1&2", true], "X-Ship": "Ada", "mood": "x;y"})).unwrap();
        assert_eq!(made.url.as_str(), "https://a.example/v1/berths/a%2F..%2Fb%3Fc%23d/at?day=1%262&day=true");
        let headers = [("x-ship", "Ada"), ("cookie", "mood=x%3By")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!((made.method.as_str(), made.headers.as_slice()), ("PUT", &headers[..]));
        for wrong in [
            json!({"berth": ".."}),
            json!({"berth": "."}),
            json!({"berth": ""}),
            json!({"berth": "1", "X-Ship": "a\r\nhost: b"}),
            json!({"berth": "1", "Authorization": "Bearer x"}),
        ] {
            assert_eq!(prepared(wrong.clone()).unwrap_err(), "argument_invalid", "{wrong}");
        }
    }

    #[test]
    fn an_answer_is_to_the_question_that_was_asked() {
        for (reply, expected) in [
            (json!({"jsonrpc": "2.0", "id": "1", "result": 30}), Ok(json!(30))),
            (json!({"jsonrpc": "2.0", "id": "1", "result": null}), Ok(json!(null))),
            (json!({"jsonrpc": "2.0", "id": "2", "result": 30}), Err("reply_invalid")),
            (json!({"jsonrpc": "2.0", "id": "1"}), Err("reply_invalid")),
            (json!([]), Err("reply_invalid")),
            (json!({"id": "1", "result": 30, "error": null}), Err("call_answered_with_error")),
            (json!({"id": null, "error": {"code": -32601, "message": "no"}}), Err("call_answered_with_error")),
        ] {
            assert_eq!(rpc_result("1", reply.clone()).map_err(|error| error.code()), expected, "{reply}");
        }
    }
}
