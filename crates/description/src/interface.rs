//! ADP Table 5: the ways of dealing with an agent (R27 to R34).

use crate::finding::{E0, EW, W0, WW};
use crate::reader::{ANY_URI, Member, Reader};
use crate::vocabulary::{Spelling, term_of};
use crate::{Activation, Rule, Security};
use json::{Kind, Node, Pointer};

/// One way of dealing with an agent.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its place in the description.
    pub at: Pointer,
    /// Its identifier.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// What kind of interface it is.
    pub kind: InterfaceKind,
    /// How it is described, such as `JSON-RPC 2.0` or `openrpc`.
    pub protocol: Option<String>,
    /// Where its definition lies.
    pub url: Option<String>,
    /// Where its definition stands in the description itself.
    pub content: Option<Pointer>,
    /// Its version.
    pub version: Option<String>,
    /// Whether a person has to agree before it is used; no evidence that one did.
    pub human_authorization: bool,
    /// What it says about access.
    pub security: Activation,
}

/// What kind of interface it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// In words.
    NaturalLanguage,
    /// By calls.
    Api,
    /// By calls, as the newer text names it.
    Structured,
    /// Any other, as it is written.
    Other(String),
    /// Nothing is said.
    Unsaid,
}

/// Protocols that the text names.
const PROTOCOLS: [&str; 2] = ["YAML", "JSON-RPC 2.0"];

/// Protocols that ANP-07 names.
const NEWER_PROTOCOLS: [&str; 4] = ["YAML", "openrpc", "MCP", "WebRTC"];

/// Reads one interface.
pub(crate) fn read(reader: &mut Reader, security: &Security, newer: bool, object: Node<'_>, at: Pointer) -> Interface {
    let kind = kind(reader, newer, object, &at);
    let member = reader.required(object, &at, "@id", &["id"], Rule::R28, EW);
    let id = member.and_then(|member| reader.text_that(&member, Rule::R28, EW, ANY_URI));
    let name = required_text(reader, object, &at, "name", Rule::R29);
    let description = required_text(reader, object, &at, "description", Rule::R30);
    let protocol = protocol(reader, newer, object, &at);
    let content = reader.look(object, &at, "content", &[]).map(|member| member.at);
    let absent = if content.is_some() { E0 } else { EW };
    let url = reader.required(object, &at, "url", &[], Rule::R32, absent);
    let url = url.and_then(|member| reader.text_that(&member, Rule::R32, EW, ANY_URI));
    let version = reader.optional_text(object, &at, "version", Rule::R33, EW);
    let human_authorization = object.get("humanAuthorization").and_then(Node::as_bool).unwrap_or(false);
    let security = security.element(reader, object, &at, Rule::R34);
    Interface { at, id, name, description, kind, protocol, url, content, version, human_authorization, security }
}

fn required_text(reader: &mut Reader, object: Node<'_>, at: &Pointer, term: &str, rule: Rule) -> Option<String> {
    let member = reader.required(object, at, term, &[], rule, EW)?;
    reader.text(&member, rule, EW)
}

fn kind(reader: &mut Reader, newer: bool, object: Node<'_>, at: &Pointer) -> InterfaceKind {
    let Some(member) = reader.required(object, at, "@type", &["type"], Rule::R27, EW) else {
        return InterfaceKind::Unsaid;
    };
    let Some(written) = one_type(reader, &member) else { return InterfaceKind::Unsaid };
    let kind = match term_of(&reader.context, &written).as_deref() {
        Some("NaturalLanguageInterface") => InterfaceKind::NaturalLanguage,
        Some("APIInterface") => InterfaceKind::Api,
        Some("StructuredInterface") => InterfaceKind::Structured,
        _ => InterfaceKind::Other(written),
    };
    let grades = match kind {
        InterfaceKind::NaturalLanguage | InterfaceKind::Api => return kind,
        InterfaceKind::Structured if newer => W0,
        InterfaceKind::Structured | InterfaceKind::Other(_) | InterfaceKind::Unsaid => WW,
    };
    // A type under its newer name is already no type for whoever goes by the letter.
    if member.spelling == Spelling::Text || grades == WW {
        reader.findings.add(Rule::R27, &member.at, grades, "the text does not know this type of interface");
    }
    kind
}

/// The type; of several, the first.
fn one_type(reader: &mut Reader, member: &Member<'_>) -> Option<String> {
    if member.node.kind() == Kind::Array {
        reader.findings.add(Rule::R27, &member.at, EW, "an interface has one type");
        return member.node.elements().find_map(Node::as_str).map(str::to_owned);
    }
    reader.text(member, Rule::R27, EW)
}

fn protocol(reader: &mut Reader, newer: bool, object: Node<'_>, at: &Pointer) -> Option<String> {
    let member = reader.required(object, at, "protocol", &[], Rule::R31, EW)?;
    if member.node.is_object() {
        reader.findings.add(Rule::R31, &member.at, EW, "this is an object, and a text belongs here");
        let part = |name: &str| member.node.get(name).and_then(Node::as_str);
        let name = part("name")?;
        return Some(part("version").map_or(name.to_owned(), |version| format!("{name} {version}")));
    }
    let protocol = reader.text(&member, Rule::R31, EW)?;
    if !PROTOCOLS.contains(&protocol.as_str()) {
        let grades = if newer && NEWER_PROTOCOLS.contains(&protocol.as_str()) { W0 } else { WW };
        reader.findings.add(Rule::R31, &member.at, grades, "the text does not know this protocol");
    }
    Some(protocol)
}
