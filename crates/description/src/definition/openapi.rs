//! ADP Overview: OpenAPI 3, whose operations are HTTP requests.

use super::{Builder, Call, Operation, Parameter, Place};
use crate::Rule;
use crate::finding::{EE, EW, WI};
use json::{Kind, Node, Pointer, Value};

/// The methods that a path item may have.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

pub(super) fn read(builder: &mut Builder<'_>) {
    let at = Pointer::root().child("paths");
    let Some(paths) = builder.root.get("paths").filter(|paths| paths.is_object()) else {
        builder.findings.add(Rule::I8, &at, EE, "`paths` is no object");
        return;
    };
    for (path, item) in paths.members() {
        let at = at.child(path);
        let Some(item) = builder.follow(item, &at) else { continue };
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            if !builder.has_room(&at) {
                return;
            }
            read_operation(builder, path, method, item, operation, &at);
        }
    }
}

fn read_operation<'a>(
    builder: &mut Builder<'a>,
    path: &str,
    method: &str,
    item: Node<'a>,
    operation: Node<'a>,
    above: &Pointer,
) {
    let (at, method) = (above.child(method), method.to_ascii_uppercase());
    let text = |name: &str| operation.get(name).and_then(Node::as_str);
    let name = text("operationId").filter(|name| !name.is_empty());
    if name.is_none() {
        builder.findings.add(Rule::I1, &at.child("operationId"), WI, "the operation has no `operationId`");
    }
    let name = name.map_or_else(|| format!("{method} {path}"), str::to_owned);
    let description = text("description").or(text("summary")).map(str::to_owned);
    let mut params = Vec::new();
    // What the operation says of a parameter wins over what its path says.
    for (holder, at) in [(operation, &at), (item, above)] {
        let at = at.child("parameters");
        for (position, param) in holder.get("parameters").map(Node::elements).into_iter().flatten().enumerate() {
            let Some(param) = parameter(builder, param, &at.child(position)) else { continue };
            if !params.iter().any(|known: &Parameter| known.name == param.name && known.place == param.place) {
                params.push(param);
            }
        }
    }
    params.extend(body(builder, operation, &at));
    let result = result(builder, operation, &at);
    let call = Call::Http { method, path: path.to_owned() };
    builder.operations.push(Operation { name, at, description, call, params, result });
}

fn parameter<'a>(builder: &mut Builder<'a>, param: Node<'a>, at: &Pointer) -> Option<Parameter> {
    let param = builder.follow(param, at)?;
    let text = |name: &str| param.get(name).and_then(Node::as_str);
    let place = match text("in") {
        Some("path") => Place::Path,
        Some("query") => Place::Query,
        Some("header") => Place::Header,
        Some("cookie") => Place::Cookie,
        _ => {
            builder.findings.add(Rule::I3, &at.child("in"), EW, "nothing says where this parameter goes");
            return None;
        }
    };
    let Some(name) = text("name").filter(|name| !name.is_empty()) else {
        builder.findings.add(Rule::I3, &at.child("name"), EW, "this parameter has no name");
        return None;
    };
    let (schema, place_of_schema) = match param.get("schema") {
        Some(schema) => (Some(schema), at.child("schema")),
        None => represented(param, at),
    };
    let schema = builder.schema(schema, &place_of_schema);
    let required = place == Place::Path || param.get("required").and_then(Node::as_bool).unwrap_or(false);
    Some(Parameter {
        name: name.to_owned(),
        place,
        required,
        description: text("description").map(str::to_owned),
        schema,
    })
}

fn body<'a>(builder: &mut Builder<'a>, operation: Node<'a>, at: &Pointer) -> Option<Parameter> {
    let at = at.child("requestBody");
    let body = builder.follow(operation.get("requestBody")?, &at)?;
    let (schema, place_of_schema) = represented(body, &at);
    Some(Parameter {
        name: "body".to_owned(),
        place: Place::Body,
        required: body.get("required").and_then(Node::as_bool).unwrap_or(false),
        description: body.get("description").and_then(Node::as_str).map(str::to_owned),
        schema: builder.schema(schema, &place_of_schema),
    })
}

/// The schema of the JSON among several representations, or of the first, with its place.
fn represented<'a>(holder: Node<'a>, at: &Pointer) -> (Option<Node<'a>>, Pointer) {
    let at = at.child("content");
    let Some(content) = holder.get("content").filter(|content| content.kind() == Kind::Object) else {
        return (None, at);
    };
    let json = content.members().find(|(name, _)| name.split(';').next().is_some_and(|name| name.ends_with("json")));
    match json.or_else(|| content.members().next()) {
        Some((name, media)) => (media.get("schema"), at.child(name).child("schema")),
        None => (None, at),
    }
}

/// The schema of the first answer that is a success.
fn result<'a>(builder: &mut Builder<'a>, operation: Node<'a>, at: &Pointer) -> Option<Value> {
    let at = at.child("responses");
    let responses = operation.get("responses").map(Node::members).into_iter().flatten();
    let success = responses.min_by_key(|(status, _)| match status.as_bytes() {
        [b'2', ..] => 0,
        b"default" => 1,
        _ => 2,
    });
    let Some((status, response)) = success.filter(|(status, _)| status.starts_with('2') || *status == "default") else {
        builder.findings.add(Rule::I4, &at, WI, "nothing says what comes back");
        return None;
    };
    let at = at.child(status);
    let response = builder.follow(response, &at)?;
    let (schema, place_of_schema) = represented(response, &at);
    Some(builder.schema(Some(schema?), &place_of_schema))
}
