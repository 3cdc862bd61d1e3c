//! ADP Table 2, ADP Security Mechanism: what access to an agent and to its parts demands (R21 to R26, R34 to R39).
//!
//! A `security` further down replaces the one of the agent, it is never merged with it. All names are demanded together.
//! What cannot be understood denies; what is not said is not public: only an explicit `nosec` is (decisions/0162).

use crate::Rule;
use crate::finding::{E0, EE, EW, Grade, Grades, WW};
use crate::reader::{Member, Reader};
use crate::uri::is_web;
use crate::vocabulary::Spelling;
use json::{Kind, Node, Pointer};
use std::collections::{BTreeMap, BTreeSet};
use trust::{Did, Method};

/// Definitions inside definitions (`combo`) are followed this far.
const COMBINED_DEPTH_MAX: usize = 4;

/// Definitions that one access may add up to; combinations of combinations multiply.
const SCHEMES_MAX: usize = 256;

/// What a description says about access.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// By name; without effect until something names them.
    pub definitions: BTreeMap<String, Scheme>,
    /// What is demanded of whoever deals with the agent.
    pub agent: Activation,
}

/// One way of access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheme {
    /// Where it is defined.
    pub at: Pointer,
    /// `didwba`, or another word.
    pub scheme: Option<String>,
    /// Whom a didwba scheme names.
    pub did: Option<Did>,
    /// Where the credentials go, in newer documents.
    pub location: Option<String>,
    /// Under which name they go there.
    pub name: Option<String>,
    combined: Option<Combined>,
}

/// A scheme made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Combined {
    All(Vec<String>),
    One(Vec<String>),
    /// Neither, both, or too few.
    Unclear,
}

/// What an element says in `security`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Nothing: what holds for the agent holds here.
    #[default]
    Absent,
    /// Names of definitions, all of them demanded.
    Names(Vec<String>),
    /// Definitions that stand here themselves, all of them demanded.
    Inline(Vec<Scheme>),
    /// Something, and nobody knows what.
    Unreadable,
}

/// What access demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nobody said; this is not public.
    Unspecified,
    /// Open to everybody, in so many words.
    Public,
    /// All of these.
    Demands(Vec<Requirement>),
    /// Not to be had: a name that is not defined, a definition that cannot be understood.
    Denied,
}

/// One thing that access demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Authentication by did:wba; the DID is that of the agent who is called.
    DidWba(Option<Did>),
    /// Another scheme, by its word.
    Other(String),
    /// One of several ways.
    OneOf(Vec<Vec<Requirement>>),
}

impl Security {
    /// What access to an element demands; `own` is what the element itself says.
    pub fn access(&self, own: &Activation) -> Access {
        let activation = if *own == Activation::Absent { &self.agent } else { own };
        let mut left = SCHEMES_MAX;
        let requirements = match activation {
            Activation::Absent => return Access::Unspecified,
            Activation::Names(names) if names.is_empty() => return Access::Unspecified,
            Activation::Names(names) => self.all(names, 0, &mut left),
            Activation::Inline(schemes) => self.schemes(schemes.iter(), 0, &mut left),
            Activation::Unreadable => None,
        };
        match requirements {
            None => Access::Denied,
            Some(requirements) if requirements.is_empty() => Access::Public,
            Some(requirements) => Access::Demands(requirements),
        }
    }

    fn all(&self, names: &[String], depth: usize, left: &mut usize) -> Option<Vec<Requirement>> {
        let schemes: Option<Vec<&Scheme>> = names.iter().map(|name| self.definitions.get(name)).collect();
        self.schemes(schemes?.into_iter(), depth, left)
    }

    fn schemes<'a>(
        &'a self,
        schemes: impl Iterator<Item = &'a Scheme>,
        depth: usize,
        left: &mut usize,
    ) -> Option<Vec<Requirement>> {
        let mut requirements = Vec::new();
        for scheme in schemes {
            *left = left.checked_sub(1)?;
            requirements.extend(self.requirements(scheme, depth, left)?);
        }
        Some(requirements)
    }

    /// What one scheme demands; `None` when it cannot be understood.
    fn requirements(&self, scheme: &Scheme, depth: usize, left: &mut usize) -> Option<Vec<Requirement>> {
        match (scheme.scheme.as_deref()?, &scheme.combined) {
            ("nosec", _) => Some(Vec::new()),
            ("didwba", _) => Some(vec![Requirement::DidWba(scheme.did.clone())]),
            ("combo", _) if depth == COMBINED_DEPTH_MAX => None,
            ("combo", Some(Combined::All(names))) => self.all(names, depth + 1, left),
            ("combo", Some(Combined::One(names))) => {
                let way = |name| self.all(std::slice::from_ref(name), depth + 1, left);
                let ways: Option<Vec<_>> = names.iter().map(way).collect();
                ways.map(|ways| vec![Requirement::OneOf(ways)])
            }
            ("combo", _) => None,
            (other, _) => Some(vec![Requirement::Other(other.to_owned())]),
        }
    }

    /// The names of the definitions that something activates, directly or through others.
    fn active<'a>(&'a self, activations: impl Iterator<Item = &'a Activation>) -> BTreeSet<&'a str> {
        let mut waiting: Vec<&str> = activations
            .filter_map(|activation| match activation {
                Activation::Names(names) => Some(names.iter().map(String::as_str)),
                Activation::Absent | Activation::Inline(_) | Activation::Unreadable => None,
            })
            .flatten()
            .collect();
        let mut reached = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            let Some(scheme) = self.definitions.get(name) else { continue };
            if !reached.insert(name) {
                continue;
            }
            match &scheme.combined {
                Some(Combined::All(names) | Combined::One(names)) => waiting.extend(names.iter().map(String::as_str)),
                Some(Combined::Unclear) | None => {}
            }
        }
        reached
    }
}

/// Reads definitions and activation at the level of the agent.
pub(crate) fn read(reader: &mut Reader, root: Node<'_>, at: &Pointer) -> Security {
    let definitions = definitions(reader, root, at);
    let member = reader.required(root, at, "security", &[], Rule::R21, EW);
    let agent = match &member {
        Some(member) => activation(reader, member, Rule::R21, EW),
        None => Activation::Absent,
    };
    let security = Security { definitions, agent };
    if let Some(member) = &member {
        security.check_names(reader, member);
    }
    let activated = match &security.agent {
        Activation::Names(names) => names.iter().any(|name| security.definitions.contains_key(name)),
        Activation::Inline(schemes) => !schemes.is_empty(),
        Activation::Absent | Activation::Unreadable => false,
    };
    // Whoever goes by the letter sees neither a prefixed `security` nor a definition that stands in it.
    let by_the_letter = member.is_some_and(|member| member.spelling == Spelling::Text)
        && matches!(&security.agent, Activation::Names(_))
        && root.get("securityDefinitions").is_some();
    match (activated, by_the_letter) {
        (true, true) => {}
        (true, false) => reader.findings.add(Rule::R24, &at.child("security"), E0, NOTHING_ACTIVE),
        (false, _) => reader.findings.add(Rule::R24, &at.child("security"), EW, NOTHING_ACTIVE),
    }
    summed_up(reader, at);
    security
}

const NOTHING_ACTIVE: &str = "no definition is activated for the agent";

/// R38 is R21, R22 and R24 together.
fn summed_up(reader: &mut Reader, at: &Pointer) {
    let parts = [Rule::R21, Rule::R22, Rule::R24];
    let broken = reader.findings.all().iter().filter(|finding| parts.contains(&finding.rule));
    let (mut strict, mut lenient) = (None, None);
    for finding in broken {
        strict = strict.max(finding.grade(crate::Mode::Strict).filter(|grade| *grade == Grade::Error));
        lenient = lenient.max(finding.grade(crate::Mode::Lenient).filter(|grade| *grade >= Grade::Warning));
    }
    if strict.is_some() || lenient.is_some() {
        let grades = Grades(strict, lenient.map(|_| Grade::Warning));
        reader.findings.add(Rule::R38, at, grades, "the configuration of security is not whole");
    }
}

fn definitions(reader: &mut Reader, root: Node<'_>, at: &Pointer) -> BTreeMap<String, Scheme> {
    let mut definitions = BTreeMap::new();
    let Some(member) = reader.required(root, at, "securityDefinitions", &[], Rule::R22, EW) else { return definitions };
    if !member.node.is_object() {
        reader.findings.add(Rule::R22, &member.at, EW, "`securityDefinitions` is no object");
        return definitions;
    }
    for (name, value) in member.node.members() {
        let at = member.at.child(name);
        if value.is_object() {
            definitions.insert(name.to_owned(), scheme(reader, value, &at));
        } else {
            reader.findings.add(Rule::R22, &at, EW, "this definition is no object");
        }
    }
    definitions
}

/// One definition (ADP Table 2).
fn scheme(reader: &mut Reader, object: Node<'_>, at: &Pointer) -> Scheme {
    let member = reader.required(object, at, "scheme", &[], Rule::R35, EW);
    let word = member.as_ref().and_then(|member| reader.text(member, Rule::R35, EW));
    if let (Some(word), Some(member)) = (&word, &member)
        && word != "didwba"
    {
        reader.findings.add(Rule::R35, &member.at, EW, "the text knows `didwba` only");
    }
    let did = match word.as_deref() {
        None | Some("didwba") => scheme_did(reader, object, at),
        Some(_) => None,
    };
    reader.types(object, at, Rule::R37);
    reader.optional_text(object, at, "description", Rule::R37, EW);
    secrets(reader, object, at);
    let quiet = |name: &str| object.get(name).and_then(Node::as_str).map(str::to_owned);
    Scheme { at: at.clone(), scheme: word, did, location: quiet("in"), name: quiet("name"), combined: combined(object) }
}

fn scheme_did(reader: &mut Reader, object: Node<'_>, at: &Pointer) -> Option<Did> {
    let member = reader.required(object, at, "did", &[], Rule::R36, EW)?;
    let text = reader.text(&member, Rule::R36, EW)?;
    let did = Did::parse(&text).ok().filter(|did| did.method() == Method::Wba);
    if did.is_none() {
        reader.findings.add(Rule::R36, &member.at, EW, "this is no did:wba identifier");
    }
    did
}

fn combined(object: Node<'_>) -> Option<Combined> {
    let names = |member: &str| -> Option<Vec<String>> {
        object.get(member).map(|list| list.elements().filter_map(Node::as_str).map(str::to_owned).collect())
    };
    match (names("allOf"), names("oneOf")) {
        (None, None) => None,
        (Some(names), None) if names.len() > 1 => Some(Combined::All(names)),
        (None, Some(names)) if names.len() > 1 => Some(Combined::One(names)),
        _ => Some(Combined::Unclear),
    }
}

/// Names of members that hold what nobody else may know; compared without case, `-` and `_`.
const SECRETS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "clientsecret",
    "token",
    "accesstoken",
    "refreshtoken",
    "bearertoken",
    "apikey",
    "privatekey",
    "secretkey",
    "mnemonic",
];

/// D8: whatever looks like a secret, at any depth of a definition.
fn secrets(reader: &mut Reader, node: Node<'_>, at: &Pointer) {
    for (name, value) in node.members() {
        let at = at.child(name);
        let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
        let named = SECRETS.contains(&plain.as_str()) || plain.starts_with("privatekey");
        // The word may also name the address where one is had.
        let empty = value.is_null() || value.as_str().is_some_and(|text| text.is_empty() || is_web(text));
        if named && !empty {
            reader.findings.add(Rule::D8, &at, EE, "this looks like a secret");
        } else {
            secrets(reader, value, &at);
        }
    }
    for (position, element) in node.elements().enumerate() {
        secrets(reader, element, &at.child(position));
    }
}

/// What stands in a `security`; `inline` is what a definition that stands there itself weighs.
fn activation(reader: &mut Reader, member: &Member<'_>, rule: Rule, inline: Grades) -> Activation {
    let node = member.node;
    match node.kind() {
        Kind::String => Activation::Names(node.as_str().map(str::to_owned).into_iter().collect()),
        Kind::Array => {
            let names: Vec<String> = node.elements().filter_map(Node::as_str).map(str::to_owned).collect();
            if names.len() == node.len() {
                return Activation::Names(names);
            }
            reader.findings.add(rule, &member.at, EE, "a name in `security` is no text, so access is denied");
            Activation::Unreadable
        }
        Kind::Object if node.get("scheme").is_some() || is_map_of_objects(node) => {
            reader.findings.add(rule, &member.at, inline, "a definition stands where its name belongs");
            Activation::Inline(inline_schemes(reader, node, &member.at))
        }
        Kind::Object | Kind::Null | Kind::Bool | Kind::Number => {
            reader.findings.add(rule, &member.at, EE, "nobody can tell what `security` demands, so access is denied");
            Activation::Unreadable
        }
    }
}

fn is_map_of_objects(node: Node<'_>) -> bool {
    !node.is_empty() && node.members().all(|(_, value)| value.is_object())
}

/// One definition, or several by name.
fn inline_schemes(reader: &mut Reader, node: Node<'_>, at: &Pointer) -> Vec<Scheme> {
    if node.get("scheme").is_some() {
        return vec![scheme(reader, node, at)];
    }
    node.members().map(|(name, value)| scheme(reader, value, &at.child(name))).collect()
}

impl Security {
    /// What an interface, a product or a service says in its own `security`.
    pub(crate) fn element(&self, reader: &mut Reader, object: Node<'_>, at: &Pointer, rule: Rule) -> Activation {
        let Some(member) = reader.optional(object, at, "security", &[]) else { return Activation::Absent };
        let activation = activation(reader, &member, rule, WW);
        if matches!(&activation, Activation::Names(names) if names.is_empty()) {
            reader.findings.add(
                Rule::R39,
                &member.at,
                WW,
                "nothing is demanded here, and nothing says that this is meant",
            );
        }
        self.check_names(reader, &member);
        activation
    }

    /// R23: names without a definition.
    fn check_names(&self, reader: &mut Reader, member: &Member<'_>) {
        let unknown = |node: Node<'_>| node.as_str().is_some_and(|name| !self.definitions.contains_key(name));
        const MESSAGE: &str = "this name is not defined, so access is denied";
        if unknown(member.node) {
            reader.findings.add(Rule::R23, &member.at, EE, MESSAGE);
        }
        for (position, element) in member.node.elements().enumerate() {
            if unknown(element) {
                reader.findings.add(Rule::R23, &member.at.child(position), EE, MESSAGE);
            }
        }
    }

    /// D1: the DID of the agent against those of the schemes that are in use.
    pub(crate) fn check_dids(&self, reader: &mut Reader, did: Option<&Did>, elements: &[&Activation]) {
        let Some(did) = did else { return };
        let activations = || elements.iter().copied().chain([&self.agent]);
        let named = self.active(activations()).into_iter().filter_map(|name| self.definitions.get(name));
        let inline = activations().filter_map(|activation| match activation {
            Activation::Inline(schemes) => Some(schemes),
            Activation::Absent | Activation::Names(_) | Activation::Unreadable => None,
        });
        for scheme in named.chain(inline.flatten()) {
            if scheme.did.as_ref().is_some_and(|theirs| theirs != did) {
                let message = "this scheme is about another DID than the description";
                reader.findings.add(Rule::D1, &scheme.at.child("did"), EE, message);
            }
        }
    }
}
