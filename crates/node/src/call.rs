//! Another agent, called as its description says: found, read, chosen, proved, asked, checked (ADP Interface, ANP-02).
//!
//! Whoever calls names an agent and a method. Everything between comes from strangers: the description, the definitions
//! of its interfaces, the addresses of its servers. So all of it goes through the door, what is sent is held against the
//! schemas before, and what comes back after.
//!
//! INVARIANT: nothing is sent that the description does not let in, and nobody is told more than the operation takes.

mod arguments;
mod error;
mod proof;
mod request;

pub use arguments::{Argument, Given};
pub use error::CallError;
pub use proof::Credentials;

use crate::chance;
use crate::clock::Clock;
use crate::descriptions::listed;
use crate::outbound::{Dids, Door, Errand, Response};
use description::{
    Access, Call, Definition, Grade, Interface, Mode, Operation, Origin, Page, Reading, Requirement, WELL_KNOWN, is_web,
};
use json::{Document, Value};
use proof::{Prepared, Tokens};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use trust::{Did, DidDocument};
use url::Url;

/// Definitions of one agent that are fetched.
pub const DEFINITIONS_MAX: usize = 20;

/// Somebody who goes to other agents.
#[derive(Debug)]
pub struct Visitor {
    door: Arc<Door>,
    dids: Dids,
    clock: Clock,
    credentials: Option<Credentials>,
    tokens: Mutex<Tokens>,
}

/// An agent whose description was read.
#[derive(Debug)]
pub struct Agent {
    /// Where the description was found.
    pub url: String,
    /// What it says.
    pub reading: Reading,
    /// Whether its DID stands behind it.
    pub is_bound: bool,
}

/// An interface whose definition was read.
#[derive(Debug)]
pub struct Offer {
    /// The interface, as the description has it.
    pub interface: Interface,
    /// What access demands.
    pub access: Access,
    /// What can be called.
    pub definition: Definition,
    /// Where the definition was found; what it refers to is meant from there.
    base: String,
}

/// What is to be called, and with what.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The name of the operation.
    pub method: String,
    /// The name or the identifier of the interface, where several have the method.
    pub interface: Option<String>,
    /// What is given to it.
    pub arguments: Vec<Argument>,
    /// Whether a person agreed.
    pub is_agreed: bool,
}

/// What a call brought.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was asked.
    pub url: String,
    /// The result.
    pub result: Value,
    /// Whether it is what the definition promises.
    pub fit: Fit,
    /// As whom we asked.
    pub proved: Option<Did>,
}

/// How a result stands to the schema of its operation.
#[derive(Clone, Debug)]
pub enum Fit {
    /// It conforms.
    Fits,
    /// There is no schema.
    Unsaid,
    /// The schema cannot be used.
    Unchecked,
    /// It does not conform.
    Breaks(Box<schema::Refusal>),
}

impl Visitor {
    /// A visitor that goes through this door; without credentials it is let in only where everybody is.
    pub fn new(door: Arc<Door>, clock: Clock, credentials: Option<Credentials>) -> Self {
        Self { dids: Dids::new(Arc::clone(&door)), door, clock, credentials, tokens: Mutex::default() }
    }

    /// Finds an agent by the address of its description, by its DID or by its domain, and reads what it says of itself.
    pub async fn find(&self, agent: &str) -> Result<Agent, CallError> {
        if is_web(agent) {
            return self.read(agent, None).await;
        }
        if agent.starts_with("did:") {
            let did = Did::parse(agent).map_err(|_| CallError::Agent(agent.to_owned()))?;
            let keys = self.dids.resolve(&did, Clock::monotonic()).await?;
            let url = keys.descriptions().find(|url| is_web(url)).map(str::to_owned);
            let url = url.ok_or_else(|| CallError::Undescribed(agent.to_owned()))?;
            return self.read(&url, Some(keys)).await;
        }
        let domain = Url::parse(&format!("https://{agent}/")).ok();
        let plain = domain.filter(|url| url.path() == "/" && !agent.contains(['/', '@', '?', '#']));
        let domain = plain.ok_or_else(|| CallError::Agent(agent.to_owned()))?;
        let url = self.listed(agent, &domain).await?;
        self.read(&url, None).await
    }

    /// The only agent that a domain lists.
    async fn listed(&self, name: &str, domain: &Url) -> Result<String, CallError> {
        let mut list = domain.clone();
        list.set_path(WELL_KNOWN);
        let response = self.fetch(Errand::Description, list.as_str()).await?;
        let page = Page::read(&response.body, &response.url)
            .map_err(|error| CallError::Description { url: list.to_string(), reason: error.to_string() })?;
        match page.items.as_slice() {
            [] => Err(CallError::Undescribed(name.to_owned())),
            [only] if page.next.is_none() => Ok(only.url.clone()),
            several => Err(CallError::Ambiguous {
                domain: name.to_owned(),
                agents: several.iter().map(|item| item.url.clone()).collect(),
            }),
        }
    }

    /// Reads a description; a DID that was named must stand behind it.
    async fn read(&self, url: &str, named: Option<Arc<DidDocument>>) -> Result<Agent, CallError> {
        let response = self.fetch(Errand::Description, url).await?;
        let wrong = |reason: String| CallError::Description { url: url.to_owned(), reason };
        let first = description::read(&response.body, None).map_err(|error| wrong(error.to_string()))?;
        let keys = match (&named, &first.agent.did) {
            (Some(keys), Some(own)) if keys.did() == own => named.clone(),
            (Some(_), _) => return Err(CallError::Unbound(url.to_owned())),
            (None, Some(did)) => self.dids.resolve(did, Clock::monotonic()).await.ok(),
            (None, None) => None,
        };
        let document = keys.as_deref().map(listed).transpose()?;
        let origin = Origin { url: &response.url, did_document: document.as_ref().map(Document::root) };
        let reading = description::read(&response.body, Some(&origin)).map_err(|error| wrong(error.to_string()))?;
        let is_bound = origin.binds(&reading.agent).is_ok();
        if named.is_some() && !is_bound {
            return Err(CallError::Unbound(url.to_owned()));
        }
        let error = reading.findings.of(Mode::Lenient).find(|(grade, _)| *grade == Grade::Error);
        if let Some((_, finding)) = error {
            return Err(wrong(format!("{} at `{}`: {}", finding.rule.number(), finding.at, finding.message)));
        }
        Ok(Agent { url: response.url, reading, is_bound })
    }

    /// A document of the agent: asked for as anybody, and as us where anybody is not let in.
    async fn fetch(&self, errand: Errand, url: &str) -> Result<Response, CallError> {
        let parsed = Url::parse(url).map_err(|_| CallError::Agent(url.to_owned()))?;
        let accept = "application/json, application/ld+json, application/yaml;q=0.9, */*;q=0.5".to_owned();
        let prepared = Prepared {
            method: "GET".to_owned(),
            url: parsed,
            headers: vec![("accept".to_owned(), accept)],
            body: Vec::new(),
        };
        let mut response = self.send(errand, &prepared, false).await?;
        if response.status == 401 && self.credentials.is_some() {
            response = self.send(errand, &prepared, true).await?;
        }
        match response.status {
            200 => Ok(response),
            401 if self.credentials.is_none() => Err(CallError::Identity),
            401 | 403 => Err(request::result(&Call::Words, "", &response).err().unwrap_or(CallError::Identity)),
            status => Err(CallError::Absent { url: url.to_owned(), status }),
        }
    }

    /// The interfaces of an agent with what they define; what cannot be read is told beside them.
    pub async fn offers(&self, agent: &Agent) -> (Vec<Offer>, Vec<(String, CallError)>) {
        let (mut offers, mut unread) = (Vec::new(), Vec::new());
        let mut fetched: BTreeMap<String, Definition> = BTreeMap::new();
        for interface in &agent.reading.agent.interfaces {
            let read = match (&interface.content, link_of(agent, interface)) {
                (Some(at), _) => embedded(agent, at).map(|definition| (definition, agent.url.clone())),
                (None, None) => continue,
                (None, Some(url)) => match fetched.get(&url) {
                    Some(definition) => Ok((definition.clone(), url)),
                    None if fetched.len() == DEFINITIONS_MAX => continue,
                    None => self.definition(&url).await.map(|definition| {
                        fetched.insert(url.clone(), definition.clone());
                        (definition, url)
                    }),
                },
            };
            match read {
                Ok((definition, base)) => {
                    let access = agent.reading.access(&interface.security);
                    offers.push(Offer { interface: interface.clone(), access, definition, base });
                }
                Err(error) => unread.push((interface.at.to_string(), error)),
            }
        }
        // The same operations are often offered twice, under the words of both texts; those with more to say come first.
        offers.sort_by_key(|offer| offer.definition.operations.iter().all(|operation| operation.call == Call::Words));
        (offers, unread)
    }

    async fn definition(&self, url: &str) -> Result<Definition, CallError> {
        let response = self.fetch(Errand::Linked, url).await?;
        Definition::parse(&response.body).map_err(|refusal| CallError::Definition(refusal.detail))
    }

    /// Calls an operation of an agent.
    pub async fn call(&self, agent: &Agent, order: &Order) -> Result<Answer, CallError> {
        let (offers, mut unread) = self.offers(agent).await;
        match self.call_offered(agent, &offers, order).await {
            // An interface that cannot be read may be the one that has it.
            Err(CallError::Method { .. }) if !unread.is_empty() => Err(unread.remove(0).1),
            called => called,
        }
    }

    /// The same with interfaces that were read before.
    pub async fn call_offered(&self, agent: &Agent, offers: &[Offer], order: &Order) -> Result<Answer, CallError> {
        let chosen = |offer: &&Offer| order.interface.as_deref().is_none_or(|name| offer.is_called(name));
        let found = offers.iter().filter(chosen).find_map(|offer| Some((offer, offer.operation(&order.method)?)));
        let Some((offer, operation)) = found else {
            let mut known: Vec<String> = offers.iter().filter(chosen).flat_map(Offer::names).collect();
            known.sort();
            known.dedup();
            return Err(CallError::Method { method: order.method.clone(), known });
        };
        if offer.interface.human_authorization && !order.is_agreed {
            return Err(CallError::Agreement);
        }
        let arguments = arguments::settle(operation, &order.arguments)?;
        let proved = self.may_come(&offer.access)?;
        let server = offer.server(agent, operation)?;
        let id = chance::name()?;
        let prepared = request::prepare(operation, &arguments, server, &id)?;
        let response = self.send(Errand::Tool, &prepared, proved).await?;
        let result = request::result(&operation.call, &id, &response)?;
        let fit = request::fit(operation, &result);
        let proved = self.credentials.as_ref().filter(|_| proved).map(|credentials| credentials.key_id.did().clone());
        Ok(Answer { url: prepared.url.to_string(), result, fit, proved })
    }

    /// Whether a request has to be proved; what we cannot give is refused before anything is sent.
    fn may_come(&self, access: &Access) -> Result<bool, CallError> {
        match access {
            Access::Public => Ok(false),
            // Nobody said. A signature does no harm, and without one the agent decides.
            Access::Unspecified => Ok(self.credentials.is_some()),
            Access::Denied => Err(CallError::Security("it names a scheme that is not defined".to_owned())),
            Access::Demands(requirements) => self.can_meet(requirements),
        }
    }

    fn can_meet(&self, requirements: &[Requirement]) -> Result<bool, CallError> {
        let mut proved = false;
        for requirement in requirements {
            proved |= match requirement {
                Requirement::DidWba(_) if self.credentials.is_some() => true,
                Requirement::DidWba(_) => return Err(CallError::Identity),
                Requirement::Other(scheme) => return Err(CallError::Security(format!("it demands `{scheme}`"))),
                Requirement::OneOf(ways) => {
                    let mut met = ways.iter().map(|way| self.can_meet(way));
                    let first = met.next().unwrap_or_else(|| Err(CallError::Security("it names no way".to_owned())));
                    first.or_else(|error| met.find_map(Result::ok).ok_or(error))?
                }
            };
        }
        Ok(proved)
    }
}

impl Offer {
    /// The operation of a name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.definition.operations.iter().find(|operation| operation.name == name)
    }

    fn names(&self) -> impl Iterator<Item = String> + use<> {
        self.definition.operations.iter().map(|operation| operation.name.clone()).collect::<Vec<_>>().into_iter()
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        [&self.interface.name, &self.interface.id].into_iter().any(|known| known.as_deref() == Some(name))
    }

    /// Where calls go: as the definition says, else as the description says.
    fn server(&self, agent: &Agent, operation: &Operation) -> Result<Url, CallError> {
        let base = Url::parse(&self.base).map_err(|_| CallError::Server)?;
        let named = self.definition.servers.iter().chain(&agent.reading.agent.servers);
        let named = named.filter(|server| !server.contains(['{', '}'])).find_map(|server| base.join(server).ok());
        match (named, &operation.call) {
            (Some(server), _) => Ok(server),
            // OpenAPI: without `servers` calls go to the root of the host of the document.
            (None, Call::Http { .. }) => base.join("/").map_err(|_| CallError::Server),
            (None, Call::Rpc | Call::Words) => Err(CallError::Server),
        }
    }
}

fn embedded(agent: &Agent, at: &json::Pointer) -> Result<Definition, CallError> {
    let node =
        at.find(agent.reading.document().root()).ok_or_else(|| CallError::Definition("it is gone".to_owned()))?;
    Definition::read(node).map_err(|refusal| CallError::Definition(refusal.detail))
}

/// The whole address of an interface's definition.
fn link_of(agent: &Agent, interface: &Interface) -> Option<String> {
    let at = interface.at.child("url");
    agent.reading.links.iter().find(|link| link.at == at).map(|link| link.url.clone())
}
