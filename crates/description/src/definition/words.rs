//! ADP Interface: interfaces in words. The text gives them no form beyond being YAML; so whatever says what it is about
//! is one operation that takes a message and gives one.

use super::{Builder, Call, Operation, Parameter, Place};
use json::{Node, Pointer, json};

/// What such a document may say of itself.
const SIGNS: [&str; 6] = ["description", "endpoint", "instructions", "name", "prompt", "title"];

/// Whether this can be one: an object that says in a text what it is about.
pub(super) fn is_one(root: Node<'_>) -> bool {
    SIGNS.iter().any(|name| root.get(name).and_then(Node::as_str).is_some())
}

pub(super) fn read(builder: &mut Builder<'_>) {
    let root = builder.root;
    let text = |names: &[&str]| names.iter().find_map(|name| root.get(name)?.as_str()).map(str::to_owned);
    let message = Parameter {
        name: "message".to_owned(),
        place: Place::Named,
        required: true,
        description: text(&["prompt", "instructions"]),
        schema: json!({"type": "string"}),
    };
    builder.operations.push(Operation {
        name: text(&["name", "title"]).unwrap_or_else(|| "talk".to_owned()),
        at: Pointer::root(),
        description: text(&["description", "instructions", "prompt"]),
        call: Call::Words,
        params: vec![message],
        result: Some(json!({"type": "string"})),
    });
}
