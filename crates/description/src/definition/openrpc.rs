//! ADP Interface: OpenRPC, and lists of JSON-RPC methods in its spirit.

use super::{Builder, Call, Definition, Operation, Parameter, Place};
use crate::Rule;
use crate::finding::{EE, EW, WI};
use crate::write::put;
use json::{Kind, Node, Pointer, Value, json};

pub(super) fn read(builder: &mut Builder<'_>) {
    let at = Pointer::root().child("methods");
    let Some(methods) = builder.root.get("methods") else {
        builder.findings.add(Rule::I8, &at, EE, "`methods` is absent");
        return;
    };
    match methods.kind() {
        Kind::Array => {
            for (position, method) in methods.elements().enumerate() {
                if !builder.has_room(&at) {
                    return;
                }
                read_method(builder, None, method, &at.child(position));
            }
        }
        Kind::Object => {
            for (name, method) in methods.members() {
                if !builder.has_room(&at) {
                    return;
                }
                read_method(builder, Some(name), method, &at.child(name));
            }
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
            builder.findings.add(Rule::I8, &at, EE, "`methods` is no array");
        }
    }
}

fn read_method<'a>(builder: &mut Builder<'a>, key: Option<&str>, method: Node<'a>, at: &Pointer) {
    let Some(method) = builder.follow(method, at) else { return };
    let text = |name: &str| method.get(name).and_then(Node::as_str);
    let Some(name) = text("name").or(key).filter(|name| !name.is_empty()) else {
        builder.findings.add(Rule::I1, &at.child("name"), EW, "this method has no name and cannot be called");
        return;
    };
    let description = text("description").or(text("summary")).map(str::to_owned);
    let params = params(builder, method, at);
    let result = result(builder, method, at);
    builder.operations.push(Operation {
        name: name.to_owned(),
        at: at.clone(),
        description,
        call: Call::Rpc,
        params,
        result,
    });
}

/// A list of named schemas, or one schema of an object.
fn params<'a>(builder: &mut Builder<'a>, method: Node<'a>, at: &Pointer) -> Vec<Parameter> {
    let at = at.child("params");
    let Some(params) = method.get("params") else { return Vec::new() };
    match params.kind() {
        Kind::Array => {
            let read = params.elements().enumerate().filter_map(|(n, param)| listed(builder, param, &at.child(n)));
            read.collect()
        }
        Kind::Object => described(builder, params, &at),
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
            builder.findings.add(Rule::I3, &at, EW, "`params` is no array");
            Vec::new()
        }
    }
}

fn listed<'a>(builder: &mut Builder<'a>, param: Node<'a>, at: &Pointer) -> Option<Parameter> {
    let param = builder.follow(param, at)?;
    let Some(name) = param.get("name").and_then(Node::as_str).filter(|name| !name.is_empty()) else {
        builder.findings.add(Rule::I3, &at.child("name"), EW, "this parameter has no name");
        return None;
    };
    let schema = builder.schema(param.get("schema"), &at.child("schema"));
    let required = param.get("required").and_then(Node::as_bool).unwrap_or(false);
    let description = param.get("description").and_then(Node::as_str).map(str::to_owned);
    Some(Parameter { name: name.to_owned(), place: Place::Named, required, description, schema })
}

fn described<'a>(builder: &mut Builder<'a>, params: Node<'a>, at: &Pointer) -> Vec<Parameter> {
    let Some(params) = builder.follow(params, at) else { return Vec::new() };
    // Without `properties` the members themselves are the parameters.
    let is_schema =
        params.get("properties").is_some() || params.get("type").is_some_and(|kind| kind.as_str().is_some());
    let properties = if is_schema { params.get("properties") } else { Some(params) };
    let required = |name: &str| {
        let list = params.get("required").map(Node::elements).into_iter().flatten();
        list.filter_map(Node::as_str).any(|required| required == name)
    };
    let at = if is_schema { at.child("properties") } else { at.clone() };
    let members = properties.map(Node::members).into_iter().flatten();
    let read = members.map(|(name, schema)| Parameter {
        name: name.to_owned(),
        place: Place::Named,
        required: is_schema && required(name),
        description: schema.get("description").and_then(Node::as_str).map(str::to_owned),
        schema: builder.schema(Some(schema), &at.child(name)),
    });
    read.collect()
}

fn result<'a>(builder: &mut Builder<'a>, method: Node<'a>, at: &Pointer) -> Option<Value> {
    let at = at.child("result");
    let Some(result) = method.get("result").filter(|result| result.is_object()) else {
        builder.findings.add(Rule::I4, &at, WI, "nothing says what comes back");
        return None;
    };
    let result = builder.follow(result, &at)?;
    let (schema, at) = match result.get("schema") {
        Some(schema) => (schema, at.child("schema")),
        None => (result, at),
    };
    Some(builder.schema(Some(schema), &at))
}

/// The OpenRPC document of a definition, with every schema written out and every member that known clients ask for.
pub(super) fn write(definition: &Definition) -> Value {
    let methods: Vec<Value> =
        definition.operations.iter().filter(|operation| operation.call == Call::Rpc).map(write_method).collect();
    let servers: Vec<Value> = definition.servers.iter().map(|url| json!({"name": "main", "url": url})).collect();
    let title = definition.title.as_deref().unwrap_or("Interface");
    let mut info = json!({
        "title": title,
        "version": definition.version.as_deref().unwrap_or("1.0.0"),
        "x-anp-protocol-type": "ANP",
        "x-anp-protocol-version": "1.0.0",
    });
    if let Some(description) = &definition.description {
        put(&mut info, "description", json!(description));
    }
    json!({
        "openrpc": "1.3.2", "info": info, "servers": servers, "methods": methods, "security": [{"didwba": []}],
    })
}

fn write_method(operation: &Operation) -> Value {
    let params: Vec<Value> = operation.params.iter().map(write_param).collect();
    json!({
        "name": operation.name,
        "description": operation.description.as_deref().unwrap_or(&operation.name),
        "params": params,
        "result": {"name": "result", "schema": operation.result.clone().unwrap_or_else(|| json!({}))},
    })
}

fn write_param(param: &Parameter) -> Value {
    let mut written = json!({"name": param.name, "required": param.required, "schema": param.schema});
    if let Some(description) = &param.description {
        put(&mut written, "description", json!(description));
    }
    written
}
