//! ADP Table 1: the agent, its owner, and what it offers (R09 to R20).

use crate::finding::{EE, EW, NONE_W, WI, WW};
use crate::read::Form;
use crate::reader::{ANY_URI, Reader, URI};
use crate::{Activation, Interface, Rule, Security, interface, security};
use json::{Instant, Kind, Node, Pointer, Value};
use trust::Did;

/// What a description says, whatever its form; members that we do not know stay in the document.
#[derive(Clone, Debug, Default)]
pub struct AgentDescription {
    /// Its types, as they are written.
    pub types: Vec<String>,
    /// Its identifier, mostly its address.
    pub id: Option<String>,
    /// Who the agent is, from the JSON as it stands.
    pub did: Option<Did>,
    /// What people call it.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Its version, a text or an object.
    pub version: Option<Value>,
    /// The language of its texts.
    pub language: Option<String>,
    /// When the description was made.
    pub created: Option<Instant>,
    /// When it was last changed.
    pub modified: Option<Instant>,
    /// Whose it is.
    pub owner: Option<Owner>,
    /// Its products, services and pieces of information.
    pub resources: Vec<Resource>,
    /// The ways of dealing with it.
    pub interfaces: Vec<Interface>,
    /// Addresses to call where an embedded interface names none.
    pub servers: Vec<String>,
    /// What access demands.
    pub security: Security,
}

/// Whose an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its types, as they are written.
    pub types: Vec<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its identifiers and addresses, with their places.
    pub links: Vec<(Pointer, String)>,
}

/// Something that an agent offers.
#[derive(Clone, Debug)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its place in the description.
    pub at: Pointer,
    /// Its types, as they are written.
    pub types: Vec<String>,
    /// Its name.
    pub name: Option<String>,
    /// What it is, in words.
    pub description: Option<String>,
    /// Where more about it is found, with the places of these links.
    pub links: Vec<(Pointer, String)>,
    /// What it says about access.
    pub security: Activation,
}

/// What somebody offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A product.
    Product,
    /// A service.
    Service,
    /// Anything else that the newer text lists.
    Information,
}

/// Reads everything but `@context`.
pub(crate) fn read(reader: &mut Reader, root: Node<'_>, form: Form) -> AgentDescription {
    let at = Pointer::root();
    let types = reader.types(root, &at, Rule::R09);
    let id = reader.optional(root, &at, "@id", &["url", "id"]);
    let id = id.and_then(|member| reader.text_that(&member, Rule::R10, EW, URI));
    let did = did(reader, root, &at, form);
    let name = name(reader, root, &at);
    let description = reader.optional_text(root, &at, "description", Rule::R13, EW);
    let version = version(reader, root, &at);
    let created = reader.moment(root, &at, "created", Rule::R15);
    let modified = reader.moment(root, &at, "modified", Rule::R16);
    let owner = owner(reader, root, &at);
    // Definitions come first, so that every later `security` can be held against them.
    let security = security::read(reader, root, &at);
    let resources = resources(reader, &security, root, &at);
    let interfaces = interfaces(reader, &security, root, &at, form);
    let servers = reader.look(root, &at, "servers", &[]).map(|member| servers(member.node)).unwrap_or_default();
    let language = reader.context.language.clone();
    let agent = AgentDescription {
        types,
        id,
        did,
        name,
        description,
        version,
        language,
        created,
        modified,
        owner,
        resources,
        interfaces,
        servers,
        security,
    };
    agent.check(reader);
    agent
}

/// The addresses of a list of servers, of those that have one.
pub(crate) fn servers(list: Node<'_>) -> Vec<String> {
    list.elements().filter_map(|server| server.get("url")?.as_str()).map(str::to_owned).collect()
}

fn did(reader: &mut Reader, root: Node<'_>, at: &Pointer, form: Form) -> Option<Did> {
    let elsewhere: &[&str] = if form == Form::Legacy { &["identifier", "sku"] } else { &[] };
    let member = reader.optional(root, at, "did", elsewhere)?;
    let text = reader.text(&member, Rule::R11, EE)?;
    let did = Did::parse(&text).ok();
    if did.is_none() {
        reader.findings.add(Rule::R11, &member.at, EW, "this is no DID");
    }
    did
}

fn name(reader: &mut Reader, root: Node<'_>, at: &Pointer) -> Option<String> {
    let member = reader.required(root, at, "name", &[], Rule::R12, EE)?;
    let name = reader.text(&member, Rule::R12, EE)?;
    if name.trim().is_empty() {
        reader.findings.add(Rule::R12, &member.at, EE, "the name is empty");
    }
    Some(name)
}

/// The text types it `VersionInfo` and never says what that is (decisions/0160).
fn version(reader: &mut Reader, root: Node<'_>, at: &Pointer) -> Option<Value> {
    let member = reader.optional(root, at, "version", &[])?;
    if !matches!(member.node.kind(), Kind::String | Kind::Object) {
        reader.findings.add(Rule::R14, &member.at, WI, "this says hardly a version");
    }
    Some(member.node.to_value())
}

fn owner(reader: &mut Reader, root: Node<'_>, at: &Pointer) -> Option<Owner> {
    let member = reader.optional(root, at, "owner", &[])?;
    if !member.node.is_object() {
        reader.findings.add(Rule::R17, &member.at, EW, "the owner is no object");
        return None;
    }
    let types = reader.types(member.node, &member.at, Rule::R17);
    if !reader.is_one_of(&types, &["Person", "Organization"]) {
        reader.findings.add(Rule::R17, &member.at, WW, "the owner is neither called a person nor an organization");
    }
    let name = reader.look(member.node, &member.at, "name", &[]);
    let name = name.and_then(|name| name.node.as_str()).map(str::to_owned);
    Some(Owner { types, name, links: links(reader, member.node, &member.at) })
}

/// Identifiers and addresses by which something can be found.
fn links(reader: &Reader, object: Node<'_>, at: &Pointer) -> Vec<(Pointer, String)> {
    let mut links: Vec<(Pointer, String)> = Vec::new();
    for term in ["@id", "url", "id"] {
        let found = reader.look(object, at, term, &[]).and_then(|member| Some((member.at, member.node.as_str()?)));
        if let Some((at, link)) = found
            && !links.iter().any(|(_, known)| known == link)
        {
            links.push((at, link.to_owned()));
        }
    }
    links
}

fn resources(reader: &mut Reader, security: &Security, root: Node<'_>, at: &Pointer) -> Vec<Resource> {
    let mut resources = Vec::new();
    for (term, newer, rule, grades, kind) in [
        ("products", &[][..], Rule::R18, EW, ResourceKind::Product),
        ("services", &[][..], Rule::R19, EW, ResourceKind::Service),
        // The newer text misspells its word, and so does everybody.
        ("Infomations", &["Informations", "informations"][..], Rule::R18, NONE_W, ResourceKind::Information),
    ] {
        let Some(member) = reader.optional(root, at, term, newer) else { continue };
        for (object, at) in reader.objects(&member, rule, grades) {
            resources.push(resource(reader, security, kind, object, at));
        }
    }
    resources
}

fn resource(reader: &mut Reader, security: &Security, listed: ResourceKind, object: Node<'_>, at: Pointer) -> Resource {
    let rule = if listed == ResourceKind::Service { Rule::R19 } else { Rule::R18 };
    let types = reader.types(object, &at, rule);
    let kind = match listed {
        ResourceKind::Information if reader.is_one_of(&types, &["Product"]) => ResourceKind::Product,
        ResourceKind::Information if reader.is_one_of(&types, &["Service"]) => ResourceKind::Service,
        ResourceKind::Product | ResourceKind::Service | ResourceKind::Information => listed,
    };
    let text = |term: &str| Some(reader.look(object, &at, term, &[])?.node.as_str()?.to_owned());
    let (name, description) = (text("name"), text("description"));
    let links = links(reader, object, &at);
    for (at, link) in &links {
        if !(ANY_URI.0)(link) {
            reader.findings.add(rule, at, EW, ANY_URI.1);
        }
    }
    let security = security.element(reader, object, &at, Rule::R39);
    Resource { kind, at, types, name, description, links, security }
}

fn interfaces(reader: &mut Reader, security: &Security, root: Node<'_>, at: &Pointer, form: Form) -> Vec<Interface> {
    let Some(member) = reader.optional(root, at, "interfaces", &[]) else { return Vec::new() };
    let objects = reader.objects(&member, Rule::R20, EW);
    objects.into_iter().map(|(object, at)| interface::read(reader, security, form.is_newer(), object, at)).collect()
}

impl AgentDescription {
    /// What several members say together: D1, D5, D6.
    fn check(&self, reader: &mut Reader) {
        let own = self.interfaces.iter().map(|interface| &interface.security);
        let elements: Vec<&Activation> = own.chain(self.resources.iter().map(|resource| &resource.security)).collect();
        self.security.check_dids(reader, self.did.as_ref(), &elements);
        let mut seen = std::collections::BTreeSet::new();
        for interface in &self.interfaces {
            if interface.id.as_ref().is_some_and(|id| !seen.insert(id)) {
                reader.findings.add(Rule::D5, &interface.at.child("@id"), WW, "another interface has this `@id`");
            }
        }
        if let (Some(created), Some(modified)) = (self.created, self.modified)
            && modified < created
        {
            reader.findings.add(
                Rule::D6,
                &Pointer::root().child("modified"),
                WW,
                "it was modified before it was created",
            );
        }
    }
}
