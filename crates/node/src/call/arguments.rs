//! What is given to an operation, and whether it takes that.

use super::CallError;
use description::{Operation, Parameter, Place};
use json::{Document, Limits, Map, Value};
use schema::Validator;

/// Something that is given to an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Given,
}

/// A value as somebody gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// As text: what it means is said by the operation's schema.
    Text(String),
    /// As JSON.
    Json(Value),
}

/// How large an argument may be.
pub(super) const ARGUMENT_LIMITS: Limits = Limits { subject: "argument", ..Limits::DOCUMENT };

/// The arguments of a call, each of them as its schema has it.
pub(super) fn settle(operation: &Operation, given: &[Argument]) -> Result<Map, CallError> {
    let mut settled = Map::new();
    for Argument { name, value } in given {
        let (param, member) = find(operation, name)?;
        let schema = if member { property(param, name) } else { Some(&param.schema) };
        let value = match value {
            Given::Json(value) => value.clone(),
            Given::Text(text) => meant(text, schema),
        };
        if member {
            let body = settled.entry(param.name.clone()).or_insert_with(|| Value::Object(Map::new()));
            body.as_object_mut().map(|body| body.insert(name.clone(), value));
        } else {
            settled.insert(name.clone(), value);
        }
    }
    for param in &operation.params {
        match settled.get(&param.name) {
            Some(value) => check(param, value)?,
            None if param.required => {
                return Err(CallError::Missing { method: operation.name.clone(), name: param.name.clone() });
            }
            None => {}
        }
    }
    Ok(settled)
}

/// The parameter of a name, or the body that has a member of this name.
fn find<'a>(operation: &'a Operation, name: &str) -> Result<(&'a Parameter, bool), CallError> {
    if let Some(param) = operation.params.iter().find(|param| param.name == name) {
        return Ok((param, false));
    }
    let body = operation.params.iter().find(|param| param.place == Place::Body && property(param, name).is_some());
    body.map(|body| (body, true)).ok_or_else(|| CallError::Unknown {
        method: operation.name.clone(),
        name: name.to_owned(),
        known: operation.params.iter().map(|param| param.name.clone()).collect(),
    })
}

fn property<'a>(param: &'a Parameter, name: &str) -> Option<&'a Value> {
    param.schema.get("properties")?.get(name)
}

/// What a text means: itself where the schema takes texts, else the JSON that it is, if it is some.
fn meant(text: &str, schema: Option<&Value>) -> Value {
    let kind = schema.and_then(|schema| schema.get("type"));
    let takes_text = match kind {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    let read = || Document::parse(text.as_bytes(), &ARGUMENT_LIMITS).ok().map(|document| document.root().to_value());
    let plain = || Value::String(text.to_owned());
    if takes_text { plain() } else { read().unwrap_or_else(plain) }
}

/// A schema that nobody can use says nothing about a value; the agent will judge it.
fn check(param: &Parameter, value: &Value) -> Result<(), CallError> {
    let Ok(validator) = Validator::compile(&param.schema) else { return Ok(()) };
    validator.check(value).map_err(|refusal| CallError::Argument {
        name: param.name.clone(),
        at: refusal.at,
        reason: refusal.detail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use description::Definition;
    use json::json;

    fn operation(definition: &Value) -> Operation {
        Definition::parse(definition.to_string().as_bytes()).unwrap().operations.remove(0)
    }

    fn add() -> Operation {
        let number = json!({"type": "integer"});
        operation(&json!({"openrpc": "1.3.2", "methods": [{"name": "add", "params": [
            {"name": "a", "required": true, "schema": number}, {"name": "b", "required": true, "schema": number},
            {"name": "note", "schema": {"type": "string"}},
        ], "result": {"name": "r", "schema": number}}]}))
    }

    fn text(name: &str, value: &str) -> Argument {
        Argument { name: name.to_owned(), value: Given::Text(value.to_owned()) }
    }

    #[test]
    fn texts_become_what_the_schema_takes() {
        let settled = settle(&add(), &[text("a", "1"), text("b", "2"), text("note", "3")]).unwrap();
        assert_eq!(Value::Object(settled), json!({"a": 1, "b": 2, "note": "3"}));
    }

    #[test]
    fn what_the_operation_does_not_take_is_named() {
        for (given, code) in [
            (vec![text("a", "1")], "argument_missing"),
            (vec![text("a", "1"), text("b", "2"), text("c", "3")], "argument_unknown"),
            (vec![text("a", "1"), text("b", "two")], "argument_invalid"),
            (vec![text("a", "1.5"), text("b", "2")], "argument_invalid"),
        ] {
            assert_eq!(settle(&add(), &given).unwrap_err().code(), code, "{given:?}");
        }
    }

    #[test]
    fn members_of_a_body_may_be_given_by_their_own_names() {
        let body = json!({"type": "object", "required": ["ship"], "properties": {
            "ship": {"type": "string"}, "length": {"type": "number"},
        }});
        let book = operation(&json!({"openapi": "3.1.0", "info": {"title": "B", "version": "1"}, "paths": {
            "/berths/{berth}": {"post": {"operationId": "book", "parameters": [
                {"name": "berth", "in": "path", "required": true, "schema": {"type": "string"}},
            ], "requestBody": {"required": true, "content": {"application/json": {"schema": body}}}, "responses": {}}},
        }}));
        let settled = settle(&book, &[text("berth", "7"), text("ship", "12"), text("length", "12")]).unwrap();
        assert_eq!(Value::Object(settled), json!({"berth": "7", "body": {"ship": "12", "length": 12}}));
        assert_eq!(settle(&book, &[text("berth", "7")]).unwrap_err().code(), "argument_missing");
        let broken = settle(&book, &[text("berth", "7"), text("length", "12")]).unwrap_err();
        assert_eq!(broken.code(), "argument_invalid");
    }
}
