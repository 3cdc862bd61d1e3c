//! OAS Agent: the document of an agent, read strictly.
//!
//! Unknown fields are refused, those that begin with `x-` are passed over. A field that may be absent may be `null` where
//! the text says `None`. All that is wrong is found in one reading (decisions/0212).
//!
//! INVARIANT: an [`Agent`] has only assertions that compile within the bounds, and distinct keys and aliases.

mod fields;
mod keys;
mod warnings;

use crate::alias::aliases;
use crate::assertion::{Assertion, Invalid, Scope};
use crate::{Code, Finding, Name, NameRule, Reference};
use fields::Fields;
use json::{Limits, Pointer, yaml};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

/// The `kind` of this version of the text.
pub const KIND: &str = "openagentspec:v1/agent";

/// How large a document may be.
pub const DOCUMENT_LIMITS: Limits = Limits {
    subject: "agent document",
    bytes: 256 * 1024,
    depth: 32,
    nodes: 10_000,
    keys: 1_024,
    key_bytes: 1_024,
    string_bytes: 64 * 1024,
};

/// Capabilities of one agent, at most.
pub(crate) const CAPABILITIES_MAX: usize = 128;

/// Exposed values of one agent, at most.
pub(crate) const EXPOSED_MAX: usize = 64;

/// An agent, as its document says it.
#[derive(Clone, Debug)]
pub struct Agent {
    /// What it is called.
    pub name: Name,
    /// What it is, in the third person.
    pub description: String,
    /// What it is for, in the second person.
    pub intent: String,
    /// Whose it is.
    pub owner: String,
    /// What it may use, in the order of the references.
    pub capabilities: Vec<Capability>,
    /// What is checked before a user's words reach the model.
    pub input_guardrail: Option<Guardrail>,
    /// What is checked before the model's words reach the user.
    pub output_guardrail: Option<Guardrail>,
    /// What is answered beside the text.
    pub exposes: Vec<Exposed>,
    /// How long it remembers, and how often it may go round.
    pub lifespan: Lifespan,
    /// What works and hardly as its author thinks.
    pub warnings: Vec<Finding>,
    source: Arc<[u8]>,
    digest: String,
    marks: Arc<yaml::Yaml>,
}

/// A tool or agent that an agent may use, and under which conditions.
#[derive(Clone, Debug)]
pub struct Capability {
    /// What it refers to.
    pub reference: Reference,
    /// What the Engagement calls it.
    pub key: String,
    /// What the model calls it.
    pub alias: String,
    /// Whether outputs are kept in the Engagement.
    pub collect_results: bool,
    /// Whether the caller's own identity is used.
    pub user_identity: bool,
    /// Credentials that the server knows by this name.
    pub static_identity: Option<String>,
    /// What must hold before a call.
    pub input: Restriction,
    /// What must hold before its result is used.
    pub output: Restriction,
}

/// What must hold at one end of a call.
#[derive(Clone, Debug, Default)]
pub struct Restriction {
    /// Who must agree.
    pub review: Option<Reviewer>,
    /// What must be true of the Engagement.
    pub assertion: Option<Assertion>,
}

/// Who is asked, as the document says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reviewer {
    /// `user`: whoever began the engagement.
    Caller,
    /// `owner`: the owner of the agent.
    Owner,
    /// `user:…`: this user.
    User(String),
    /// An agent that is named as one.
    Agent(Reference),
    /// An agent of this name if there is one, or else a user.
    Named(String),
}

/// A tool that judges what is said, and what must be true of its judgement.
#[derive(Clone, Debug)]
pub struct Guardrail {
    /// The tool.
    pub tool: Name,
    /// What must be true of its output.
    pub assertion: Assertion,
}

/// A value that is answered beside the text.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// What it is called.
    pub key: String,
    /// Where it comes from.
    pub selection: Assertion,
}

/// How long an agent remembers, and how often it may go round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifespan {
    /// Whether an engagement may know of earlier ones.
    pub retain_memory: bool,
    /// How often a block of calls may be repeated, and the last time is one too many.
    pub short_circuit: Option<u32>,
}

impl Agent {
    /// Reads a document; everything that keeps it out is told.
    pub fn read(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        Self::read_as(bytes, NameRule::Text)
    }

    /// Reads a document under another rule for names.
    pub fn read_as(bytes: &[u8], rule: NameRule) -> Result<Self, Vec<Finding>> {
        let yaml = yaml::parse(bytes, &DOCUMENT_LIMITS).map_err(|refusal| vec![Finding::from(refusal)])?;
        if !yaml.document.root().is_object() {
            let finding = Finding::new(Code::FieldType, Pointer::root(), "an agent is a map of fields");
            return Err(vec![placed(&yaml, bytes, finding)]);
        }
        let mut found = Vec::new();
        let agent = read(Fields::root(yaml.document.root(), &mut found), rule);
        match agent {
            Some(mut agent) if found.is_empty() => {
                agent.source = bytes.into();
                agent.digest = hex_digest(bytes);
                agent.marks = Arc::new(yaml);
                let found = warnings::warnings(&agent).into_iter();
                agent.warnings = found.map(|finding| agent.placed(finding)).collect();
                Ok(agent)
            }
            _ => Err(found.into_iter().map(|finding| placed(&yaml, bytes, finding)).collect()),
        }
    }

    /// The bytes it was read from.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// The SHA-256 of those bytes, in hexadecimal: the version of the document.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The capability that the Engagement calls by this key.
    pub fn capability(&self, key: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.key == key)
    }

    /// The capability that the model calls by this name.
    pub fn called(&self, alias: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.alias == alias)
    }

    /// Whether somebody without identity would act with credentials of the owner.
    pub fn lends_identity(&self) -> bool {
        self.capabilities.iter().any(|capability| capability.static_identity.is_some())
    }

    /// The finding with its line.
    pub(crate) fn placed(&self, finding: Finding) -> Finding {
        placed(&self.marks, &self.source, finding)
    }
}

impl Default for Lifespan {
    fn default() -> Self {
        Self { retain_memory: true, short_circuit: None }
    }
}

pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The finding with its line; what is wrong inside an assertion carries its own position, counted inside of it.
fn placed(yaml: &yaml::Yaml, source: &[u8], finding: Finding) -> Finding {
    let Some(mark) = yaml.mark(&finding.at) else { return finding };
    let whole = match finding.code {
        Code::UnknownField
        | Code::Reference
        | Code::UnknownCapability
        | Code::SharedName
        | Code::AmbiguousName
        | Code::NeedsCaller => mark.key.unwrap_or(mark.value),
        _ => mark.value,
    };
    let position = match (finding.position, mark.style) {
        (None, _) | (Some(_), yaml::Style::Folded) => whole,
        (Some((1, column)), yaml::Style::Plain) => (mark.value.0, mark.value.1 + column - 1),
        (Some((1, column)), yaml::Style::Quoted) => (mark.value.0, mark.value.1 + column),
        (Some(_), yaml::Style::Plain | yaml::Style::Quoted) => whole,
        (Some((line, column)), yaml::Style::Literal) => {
            let text = std::str::from_utf8(source).unwrap_or_default();
            let first = text.lines().nth(mark.value.0 - 1).unwrap_or_default();
            let indent = first.len() - first.trim_start().len();
            (mark.value.0 + line - 1, indent + column)
        }
    };
    Finding { position: Some(position), ..finding }
}

fn read(mut fields: Fields<'_, '_>, rule: NameRule) -> Option<Agent> {
    fields.know(&[
        "kind",
        "name",
        "description",
        "intent",
        "owner",
        "capabilities",
        "guardrails",
        "exposes",
        "lifespan",
    ]);
    if let Some(kind) = fields.text("kind")
        && kind != KIND
    {
        fields.find(Code::Kind, "kind", format!("`kind` is `{KIND}`"));
    }
    let name = fields.text("name").and_then(|text| match Name::read(&text, rule) {
        Ok(name) => Some(name),
        Err(why) => {
            fields.find(Code::Name, "name", why.to_string());
            None
        }
    });
    let description = fields.text("description");
    let intent = fields.text("intent");
    let owner = fields.text("owner");
    let references = references(&mut fields, rule);
    let keys = keys::keys(&references);
    let scope = Scope::of(&keys);
    let mut capabilities = Vec::new();
    for ((reference, key), alias) in references.into_iter().zip(&keys).zip(aliases(keys.iter().map(String::as_str))) {
        capabilities.extend(capability(&mut fields, reference, key.clone(), alias, &scope, rule));
    }
    let (input_guardrail, output_guardrail) = guardrails(&mut fields, rule);
    let exposes = exposes(&mut fields, &scope);
    let lifespan = lifespan(&mut fields);
    Some(Agent {
        name: name?,
        description: description?,
        intent: intent?,
        owner: owner?,
        capabilities,
        input_guardrail,
        output_guardrail,
        exposes,
        lifespan,
        warnings: Vec::new(),
        source: Arc::from([]),
        digest: String::new(),
        marks: Arc::new(yaml::Yaml::default()),
    })
}

fn references(fields: &mut Fields<'_, '_>, rule: NameRule) -> Vec<Reference> {
    let Some(mut capabilities) = fields.map("capabilities") else { return Vec::new() };
    let names = capabilities.names();
    if names.len() > CAPABILITIES_MAX {
        capabilities.exceeded("capabilities", CAPABILITIES_MAX, names.len());
        return Vec::new();
    }
    let mut references = Vec::new();
    for name in names {
        match Reference::read(&name, rule) {
            Ok(reference) => references.push(reference),
            Err(why) => capabilities.find(Code::Reference, &name, why.to_string()),
        }
    }
    references
}

fn capability(
    fields: &mut Fields<'_, '_>,
    reference: Reference,
    key: String,
    alias: String,
    scope: &Scope,
    rule: NameRule,
) -> Option<Capability> {
    let mut capabilities = fields.map("capabilities")?;
    let mut fields = match capabilities.map(&reference.to_string()) {
        Some(fields) => fields,
        // A capability that is `null` has no conditions; anything else was found already.
        None => {
            let (input, output) = (Restriction::default(), Restriction::default());
            return Some(Capability {
                reference,
                key,
                alias,
                collect_results: true,
                user_identity: true,
                static_identity: None,
                input,
                output,
            });
        }
    };
    fields.know(&["collect_results", "user_identity", "static_identity", "input_restriction", "output_restriction"]);
    let collect_results = fields.truth("collect_results").unwrap_or(true);
    let user_identity = fields.truth("user_identity").unwrap_or(true);
    let static_identity = fields.optional_text("static_identity");
    let input = restriction(fields.map("input_restriction"), scope, rule);
    let output = restriction(fields.map("output_restriction"), scope, rule);
    Some(Capability { reference, key, alias, collect_results, user_identity, static_identity, input, output })
}

fn restriction(fields: Option<Fields<'_, '_>>, scope: &Scope, rule: NameRule) -> Restriction {
    let Some(mut fields) = fields else { return Restriction::default() };
    fields.know(&["require_review", "assertion"]);
    let review = fields.optional_text("require_review").and_then(|text| match reviewer(&text, rule) {
        Ok(reviewer) => Some(reviewer),
        Err(why) => {
            fields.find(Code::UnknownReviewer, "require_review", why);
            None
        }
    });
    let assertion =
        fields.optional_text("assertion").and_then(|text| assertion(&mut fields, "assertion", &text, scope));
    Restriction { review, assertion }
}

fn reviewer(text: &str, rule: NameRule) -> Result<Reviewer, String> {
    match text {
        "" => Err("name the user or the agent who is asked".to_owned()),
        "user" => Ok(Reviewer::Caller),
        "owner" => Ok(Reviewer::Owner),
        _ if text.starts_with("oagent://") => {
            Reference::read(text, rule).map(Reviewer::Agent).map_err(|why| why.to_string())
        }
        _ => Ok(match text.strip_prefix("user:") {
            Some(user) => Reviewer::User(user.to_owned()),
            None => Reviewer::Named(text.to_owned()),
        }),
    }
}

fn assertion(fields: &mut Fields<'_, '_>, name: &str, text: &str, scope: &Scope) -> Option<Assertion> {
    match Assertion::compile(text, scope) {
        Ok(assertion) => Some(assertion),
        Err(Invalid { code, position, detail, limit }) => {
            let at = fields.at().child(name);
            fields.add(Finding { code, at, position, detail, limit });
            None
        }
    }
}

fn guardrails(fields: &mut Fields<'_, '_>, rule: NameRule) -> (Option<Guardrail>, Option<Guardrail>) {
    let Some(mut fields) = fields.map("guardrails") else { return (None, None) };
    fields.know(&["input", "output"]);
    let input = fields.map("input").and_then(|fields| guardrail(fields, rule));
    let output = fields.map("output").and_then(|fields| guardrail(fields, rule));
    (input, output)
}

fn guardrail(mut fields: Fields<'_, '_>, rule: NameRule) -> Option<Guardrail> {
    fields.know(&["tool_name", "assertion"]);
    let tool = fields.text("tool_name").and_then(|text| match Name::read(&text, rule) {
        Ok(name) => Some(name),
        Err(_) => {
            fields.find(
                Code::UnknownGuardrail,
                "tool_name",
                "a guardrail names a tool of this server, by its name alone",
            );
            None
        }
    });
    let assertion =
        fields.text("assertion").and_then(|text| assertion(&mut fields, "assertion", &text, &Scope::output()));
    Some(Guardrail { tool: tool?, assertion: assertion? })
}

fn exposes(fields: &mut Fields<'_, '_>, scope: &Scope) -> Vec<Exposed> {
    let Some(mut fields) = fields.map("exposes") else { return Vec::new() };
    let names = fields.names();
    if names.len() > EXPOSED_MAX {
        fields.exceeded("exposes", EXPOSED_MAX, names.len());
        return Vec::new();
    }
    let mut exposes = Vec::new();
    for key in names {
        if key == "text" {
            fields.find(Code::ExposedKey, &key, "`text` is what the agent says; expose this value under another name");
        }
        let selection = fields.text(&key).and_then(|text| assertion(&mut fields, &key, &text, scope));
        exposes.extend(selection.map(|selection| Exposed { key, selection }));
    }
    exposes
}

fn lifespan(fields: &mut Fields<'_, '_>) -> Lifespan {
    let Some(mut fields) = fields.map("lifespan") else { return Lifespan::default() };
    fields.know(&["retain_memory", "short_circuit"]);
    let retain_memory = fields.truth("retain_memory").unwrap_or(true);
    let short_circuit = fields.whole("short_circuit").and_then(|number| match u32::try_from(number) {
        Ok(number) if number >= 1 => Some(number),
        _ => {
            fields.find(Code::ShortCircuit, "short_circuit", "`short_circuit` is an integer from 1 on");
            None
        }
    });
    Lifespan { retain_memory, short_circuit }
}

#[cfg(test)]
mod tests;
