//! What works in a document, and hardly as its author thinks.
//!
//! An assertion that speaks of what is not there fails whenever it is asked, so these are warnings and no errors.

use super::Agent;
use crate::assertion::{Assertion, ELEMENT};
use crate::{Code, Finding};
use json::Pointer;

/// The fields of the Engagement.
const ROOTS: [&str; 4] = ["history", "recent", "started_at", "user"];

/// Names of types, which CEL reads as variables.
const TYPES: [&str; 12] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "optional", "string", "type", "uint"];

/// Everything that deserves a second look.
pub(super) fn warnings(agent: &Agent) -> Vec<Finding> {
    let mut found = names(agent);
    voices(agent, &mut found);
    for capability in &agent.capabilities {
        let at = Pointer::root().child("capabilities").child(&capability.reference);
        if let Some(assertion) = &capability.input.assertion {
            let judged = Judged { agent, at: at.child("input_restriction").child("assertion"), own_output: None };
            judged.look(assertion, &mut found);
        }
        if let Some(assertion) = &capability.output.assertion {
            let own_output = Some(capability.key.as_str());
            let judged = Judged { agent, at: at.child("output_restriction").child("assertion"), own_output };
            judged.look(assertion, &mut found);
        }
    }
    for exposed in &agent.exposes {
        let at = Pointer::root().child("exposes").child(&exposed.key);
        Judged { agent, at, own_output: None }.look(&exposed.selection, &mut found);
    }
    found
}

/// An assertion in its place.
struct Judged<'a> {
    agent: &'a Agent,
    at: Pointer,
    /// The capability whose fresh output it sees, collected or not.
    own_output: Option<&'a str>,
}

impl Judged<'_> {
    fn look(&self, assertion: &Assertion, found: &mut Vec<Finding>) {
        for mention in assertion.mentions() {
            let mut parts = mention.iter().map(String::as_str);
            let Some(root) = parts.next() else { continue };
            if !ROOTS.contains(&root) {
                if !TYPES.contains(&root) {
                    let detail = format!("the Engagement has no `{root}`; it has `{}`", ROOTS.join("`, `"));
                    self.find(Code::UnknownVariable, detail, found);
                }
                continue;
            }
            if let ("recent" | "history", Some(key)) = (root, parts.next()) {
                self.look_at_key(root, key, parts.any(|part| part == "outputs"), found);
            }
        }
    }

    fn look_at_key(&self, root: &str, key: &str, reads_outputs: bool, found: &mut Vec<Finding>) {
        let own = match root {
            "recent" => ["_name"].as_slice(),
            _ => ["_list", "_total"].as_slice(),
        };
        if own.contains(&key) || key == ELEMENT {
            return;
        }
        match self.agent.capability(key) {
            None => {
                let detail = format!("the agent has no capability `{key}`, so `{root}` never has it");
                self.find(Code::UnknownInAssertion, detail, found);
            }
            Some(capability) if reads_outputs && !capability.collect_results && self.own_output != Some(key) => {
                let detail = format!("outputs of `{key}` are not collected, so they are never there");
                self.find(Code::NotCollected, detail, found);
            }
            Some(_) => {}
        }
    }

    fn find(&self, code: Code, detail: String, found: &mut Vec<Finding>) {
        found.push(Finding::new(code, self.at.clone(), detail));
    }
}

/// The text wants a description in the third person and an intent in the second.
fn voices(agent: &Agent, found: &mut Vec<Finding>) {
    let first = |text: &str| text.split_whitespace().next().unwrap_or_default().to_lowercase();
    let description = first(&agent.description);
    if ["i", "i'm", "you", "your", "my", "we"].contains(&description.as_str()) {
        let detail = "a description speaks of the agent in the third person";
        found.push(Finding::new(Code::Voice, Pointer::root().child("description"), detail));
    }
    if ["i", "i'm", "my", "we"].contains(&first(&agent.intent).as_str()) {
        let detail = "an intent speaks to the agent, in the second person";
        found.push(Finding::new(Code::Voice, Pointer::root().child("intent"), detail));
    }
}

/// What is odd about names.
fn names(agent: &Agent) -> Vec<Finding> {
    let mut found = Vec::new();
    if !agent.name.has_sound_labels() {
        found.push(labels(Pointer::root().child("name")));
    }
    for capability in &agent.capabilities {
        let at = Pointer::root().child("capabilities").child(&capability.reference);
        if !capability.reference.name().has_sound_labels() {
            found.push(labels(at.clone()));
        }
        if capability.key != capability.reference.name().as_str() {
            let detail = format!(
                "another capability is called `{}` too; in assertions this one is `recent[\"{}\"]`",
                capability.reference.name(),
                capability.key
            );
            found.push(Finding::new(Code::SharedName, at.clone(), detail));
        }
        let reads_as = |other: &str| {
            ["inputs", "outputs"].iter().any(|part| {
                let inside = format!("{other}.{part}");
                capability.key == inside || capability.key.starts_with(&format!("{inside}."))
            })
        };
        if let Some(other) = agent.capabilities.iter().find(|other| reads_as(&other.key)) {
            let detail = format!(
                "`recent.{}` reads like a part of `{}`; write `recent[\"{}\"]`",
                capability.key, other.key, capability.key
            );
            found.push(Finding::new(Code::AmbiguousName, at, detail));
        }
    }
    if agent.lifespan.short_circuit == Some(1) {
        let detail = "with 1 no call is ever allowed; the second of two equal calls is refused with 2";
        found.push(Finding::new(
            Code::NothingAllowed,
            Pointer::root().child("lifespan").child("short_circuit"),
            detail,
        ));
    }
    found
}

fn labels(at: Pointer) -> Finding {
    Finding::new(
        Code::NameLabels,
        at,
        "DNS would not take this name: between dots stand 1 to 63 characters, no hyphen at an end",
    )
}
