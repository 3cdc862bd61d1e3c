//! OAS Server: the agents of a node, and what each is given: tools, a model, a budget.
//!
//! A document is kept in the store by its digest before anybody can begin an engagement with it, so an engagement goes by
//! the version that it began with for as long as it lives.
//!
//! INVARIANT: no model is shown the definition of a tool that is in quarantine or was rejected.

use super::accounts::Accounts;
use super::alarm::Alarm;
use super::ask::{ASK, asking};
use super::guesses::Guesses;
use super::remotes::Remotes;
use super::stop::Stop;
use super::visits::Envoy;
use super::{Engagements, RUNNING_MAX};
use crate::node::Node;
use crate::outbound::Hosted;
use crate::refusal::Error;
use agent::{Agent, Begun, Check, Code, Finding, Grade, Name, NameRule, Options, Reference, Registry, Reviewer};
use host::{Budget, Configuration, Http, Means, Pins, State, ToolError, Toolbox, Visits};
use json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};
use store::{Journal, Spec};
use tokio::sync::{Semaphore, watch};

/// Where the digests of approved definitions of tools are kept, in the data folder.
const PINS: &str = "tools.json";

/// What an operator hosts.
#[derive(Debug)]
pub struct Hosting {
    /// Tools, credentials, models and budgets.
    pub configuration: Configuration,
    /// The documents of the agents, each with the name of its file.
    pub documents: Vec<(String, Vec<u8>)>,
    /// Who is who, for documents that name people otherwise than by DID.
    pub people: Vec<Person>,
    /// What the node allows beyond the text, or less.
    pub options: Options,
    /// Whether somebody who proves nothing may begin an engagement.
    pub strangers: bool,
}

/// Somebody whom documents name otherwise than by DID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// What this person proves to be.
    pub did: String,
    /// What documents may say instead.
    pub id: Option<String>,
    /// The person's address.
    pub email: Option<String>,
}

impl Person {
    pub(super) fn is_called(&self, name: &str) -> bool {
        [&self.id, &self.email].into_iter().flatten().any(|known| known == name)
    }
}

/// Why agents cannot be hosted.
#[derive(Debug, thiserror::Error)]
pub enum HostingError {
    /// A document is not taken, for these reasons.
    #[error("{file}: {}{hint}", told(found))]
    Document {
        /// Its file.
        file: String,
        /// What is wrong with it.
        found: Vec<Finding>,
        /// What is there instead, and what may help.
        hint: String,
    },
    /// A document names a static identity for which there is no credential.
    #[error(
        "{file}: the static identity `{identity}` has no credential: {why}; mend `credentials.static.{identity}` in the operator's file"
    )]
    Credential {
        /// The file that names it.
        file: String,
        /// The identity.
        identity: String,
        /// Why there is none.
        why: String,
    },
    /// Two documents have one name.
    #[error("{file}: another agent is called `{name}`")]
    Taken {
        /// The second file.
        file: String,
        /// The name.
        name: String,
    },
    /// The configuration is not taken.
    #[error("the configuration of tools and models: {0}")]
    Configuration(#[from] host::ConfigurationError),
    /// An agent of another server cannot be had.
    #[error("{file}: `{reference}`: {why}")]
    Remote {
        /// The file that refers to it.
        file: String,
        /// The reference.
        reference: String,
        /// Why not.
        why: String,
    },
    /// No model is configured for an agent.
    #[error("{file}: no model is configured for `{name}`; say `model:` in the configuration")]
    NoModel {
        /// Its file.
        file: String,
        /// Its name.
        name: String,
    },
    /// Something broke here.
    #[error("{0}")]
    Broken(String),
}

fn told(found: &[Finding]) -> String {
    found.iter().map(|finding| format!("{finding} at `{}`", finding.at)).collect::<Vec<_>>().join("; ")
}

/// An agent of this node.
#[derive(Debug)]
pub struct Resident {
    /// What its document says.
    pub agent: Arc<Agent>,
    /// The name of its model.
    pub(super) model: String,
    /// What one engagement may cost.
    pub(super) budget: Budget,
    /// Turns of earlier engagements that it is reminded of.
    pub(super) memory: usize,
    /// What is odd about it here.
    pub warnings: Vec<Finding>,
}

impl Engagements {
    /// Opens the tools, reads the documents and keeps them; nothing is hosted unless everything can be.
    pub async fn open(node: Arc<Node>, hosting: Hosting) -> Result<Arc<Self>, HostingError> {
        let http = Hosted::new(Arc::clone(&node.door)).map_err(|error| HostingError::Broken(error.to_string()))?;
        Self::open_through(node, hosting, Arc::new(http)).await
    }

    /// The same with another way out for tools, models and remote agents.
    pub async fn open_through(
        node: Arc<Node>,
        hosting: Hosting,
        http: Arc<dyn Http>,
    ) -> Result<Arc<Self>, HostingError> {
        let broken = |error: &dyn ToString| HostingError::Broken(error.to_string());
        let configuration = hosting.configuration;
        let pins = pinned(&node.data).map_err(|error| broken(&error))?;
        let visits: Arc<dyn Visits> = Arc::new(Envoy::new(&node));
        let means = Means { http: Arc::clone(&http), pins, visits: Some(visits) };
        let toolbox = Toolbox::open(&configuration, means).await?;
        let remotes_read = Remotes::new(Arc::clone(&http), configuration.remote_time());
        toolbox.add(asking(&node));
        let mut agents = Vec::new();
        for (file, bytes) in hosting.documents {
            let wrong = |found| HostingError::Document { file: file.clone(), found, hint: String::new() };
            let agent = Agent::read(&bytes).map_err(wrong)?;
            if agents.iter().any(|(_, known): &(String, Arc<Agent>)| known.name == agent.name) {
                return Err(HostingError::Taken { file, name: agent.name.to_string() });
            }
            for reference in remotes(&agent) {
                if toolbox.tool(&reference).is_none() {
                    let remote = remotes_read.read(&reference).await;
                    let refused = |why: ToolError| (file.clone(), reference.clone(), why.to_string());
                    let remote = remote.map_err(refused);
                    toolbox.add(remote.map_err(|(file, reference, why)| HostingError::Remote {
                        file,
                        reference,
                        why,
                    })?);
                }
            }
            agents.push((file, Arc::new(agent)));
        }
        let seen = toolbox.pins();
        pin(&node.data, &seen).map_err(|error| broken(&error))?;
        let (alarm, asked) = Alarm::new();
        let warned = Mutex::new(warn(&toolbox));
        let mut engagements = Self {
            node,
            toolbox,
            models: BTreeMap::new(),
            hosted: BTreeMap::new(),
            earlier: Mutex::default(),
            people: hosting.people,
            options: hosting.options,
            strangers: hosting.strangers,
            seats: Mutex::new(HashMap::new()),
            places: Semaphore::new(RUNNING_MAX),
            remotes: remotes_read,
            stop: watch::Sender::new(Stop::Not),
            content: configuration.shows_content(),
            swift: AtomicBool::new(true),
            guesses: Guesses::default(),
            accounts: Accounts::new(configuration.budgets_per_day()),
            alarm,
            warned,
            pinned: Mutex::new(seen.len()),
        };
        let everything = engagements.everything(agents.iter().map(|(_, agent)| agent.as_ref()));
        for (file, agent) in agents {
            let name = agent.name.to_string();
            let (errors, mut warnings): (Vec<_>, Vec<_>) =
                everything.judge(&agent).into_iter().partition(|finding| finding.grade() == Grade::Error);
            if !errors.is_empty() {
                let hint = hint(&errors, &engagements.toolbox);
                return Err(HostingError::Document { file, found: errors, hint });
            }
            engagements.check_identities(&file, &agent)?;
            warnings.extend(agent.warnings.iter().cloned());
            let given = configuration.agent(&name);
            let Some(model) = given.model else { return Err(HostingError::NoModel { file, name }) };
            if let Some(opened) = configuration.model(&model, &http) {
                engagements.models.insert(model.clone(), opened);
            }
            engagements.hosted.insert(
                name,
                Arc::new(Resident { agent, model, budget: given.budget, memory: given.memory, warnings }),
            );
        }
        engagements.keep_documents().map_err(|error| broken(&error))?;
        engagements.keep_versions().map_err(|error| broken(&error))?;
        engagements.count_today().map_err(|error| broken(&error))?;
        let engagements = Arc::new(engagements);
        engagements.introduce();
        engagements.keep_fresh();
        engagements.keep_time(asked);
        Ok(engagements)
    }

    fn keep_documents(&self) -> Result<(), Error> {
        let at = self.node.clock().millis();
        let spec = |hosted: &Resident| Spec {
            digest: hosted.agent.digest().to_owned(),
            agent: hosted.agent.name.to_string(),
            at,
            body: hosted.agent.source().to_vec(),
        };
        let specs = self.hosted.values().map(|hosted| spec(hosted)).collect();
        self.node.store.note(Journal { specs, ..Journal::default() }).map(drop).map_err(Error::fault)
    }

    /// All that this node has, for judging documents.
    fn everything<'a>(&self, agents: impl Iterator<Item = &'a Agent>) -> Registry {
        let mut registry = Registry::default();
        registry.options = self.options.clone();
        for name in self.toolbox.names() {
            self.add_tool(&mut registry, &name);
        }
        for agent in agents {
            // A name that is taken twice was refused before.
            let _ = registry.add_agent(&agent.name, &agent.description);
            self.add_identities(&mut registry, agent);
            self.add_remotes(&mut registry, agent, None);
        }
        registry
    }

    /// The agents of other servers, as they are now or in the versions that an engagement began with.
    fn add_remotes(&self, registry: &mut Registry, agent: &Agent, begun: Option<&Begun>) {
        for capability in &agent.capabilities {
            let reference = capability.reference.to_string();
            let kept = begun.and_then(|begun| self.version(begun, &reference));
            if matches!(capability.reference, Reference::Remote { .. })
                && let Some(tool) = kept.or_else(|| self.tool(&reference))
                // A document is judged by what there is; a model is shown what may be called.
                && (begun.is_none() || *tool.state() == State::Ready)
            {
                registry.add_remote(&capability.reference, &tool.definition().description);
            }
        }
    }

    /// Whether there is a credential for every static identity that a document names.
    fn check_identities(&self, file: &str, agent: &Agent) -> Result<(), HostingError> {
        for identity in agent.capabilities.iter().filter_map(|capability| capability.static_identity.as_ref()) {
            if let Some(why) = self.toolbox.vault().lacks(identity) {
                return Err(HostingError::Credential { file: file.to_owned(), identity: identity.clone(), why });
            }
        }
        Ok(())
    }

    fn add_identities(&self, registry: &mut Registry, agent: &Agent) {
        let named = agent.capabilities.iter().filter_map(|capability| capability.static_identity.as_ref());
        for identity in named.filter(|identity| self.toolbox.vault().knows(identity)) {
            registry.add_identity(identity);
        }
    }

    fn add_tool(&self, registry: &mut Registry, name: &str) {
        let (Some(tool), Ok(named)) = (self.toolbox.tool(name), Name::read(name, NameRule::Text)) else { return };
        let definition = tool.definition();
        let check = Arc::new(Inputs(Arc::clone(&tool)));
        let mut known = agent::Tool::new(definition.description.clone(), definition.input.clone(), check);
        known.idempotent = definition.idempotent;
        known.writes = tool.remarks().writes;
        known.after = tool.remarks().after.iter().cloned().collect();
        known.text_argument = match tool.text_inputs("") {
            Value::Object(members) => members.keys().next().cloned(),
            _ => None,
        };
        let _ = registry.add_tool(&named, known);
    }

    /// A tool as it is now. One in quarantine is looked up among what its operator approved since the node began.
    pub(super) fn tool(&self, name: &str) -> Option<Arc<host::Tool>> {
        self.keep_pins();
        let tool = self.toolbox.tool(name)?;
        match tool.state() {
            State::Quarantined { .. } if self.was_approved(name, tool.digest()) => self.toolbox.tool(name),
            State::Ready | State::Quarantined { .. } | State::Rejected(_) => Some(tool),
        }
    }

    /// Keeps the definitions of tools that came after the start: they can be approved like others, and another definition is
    /// noticed after a restart, too.
    fn keep_pins(&self) {
        let mut kept = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if self.toolbox.pin_count() == *kept {
            return;
        }
        let seen = self.toolbox.pins();
        match pin(&self.node.data, &seen) {
            Ok(()) => *kept = seen.len(),
            Err(error) => tracing::warn!(%error, "what was seen of tools cannot be kept"),
        }
    }

    /// Takes an approval that was given beside the running node; `false` where none is about this definition.
    fn was_approved(&self, name: &str, digest: &str) -> bool {
        let pins = match pinned(&self.node.data) {
            Ok(pins) => pins,
            Err(error) => {
                tracing::warn!(%error, "what was approved cannot be read");
                return false;
            }
        };
        let taken = pins.get(name).is_some_and(|approved| approved == digest) && self.toolbox.approve(name, digest);
        if taken {
            tracing::info!(tool = name, digest, "the definition of a tool was approved");
        }
        taken
    }

    /// Leaves out a tool whose definition no model may read, and tells the operator once for each definition.
    fn withhold(&self, registry: &mut Registry, name: &str, tool: &Arc<host::Tool>) {
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.digest().to_owned()) {
            warn_of(name, tool);
        }
        // Without the tool a bare name would mean the agent of that name; so the name stays, and nothing of what it says.
        if let (true, Ok(named)) = (self.hosted.contains_key(name), Name::read(name, NameRule::Text)) {
            let check = Arc::new(Inputs(Arc::clone(tool)));
            let _ = registry.add_tool(&named, agent::Tool::new(WITHHELD, json!({"type": "object"}), check));
        }
    }

    /// The tools of an agent that no model is shown now.
    pub fn withheld(&self, agent: &Agent) -> Vec<Withheld> {
        let guardrails = [&agent.input_guardrail, &agent.output_guardrail].into_iter().flatten();
        let mut names: BTreeSet<String> = guardrails.map(|guardrail| guardrail.tool.to_string()).collect();
        for reference in agent.capabilities.iter().map(|capability| &capability.reference) {
            match reference {
                Reference::Bare(_) | Reference::Remote { .. } => drop(names.insert(reference.to_string())),
                Reference::Agent(_) => {}
            }
        }
        let tools = names.iter().filter_map(|name| self.tool(name));
        tools.filter_map(|tool| Withheld::of(&tool)).collect()
    }

    /// What of this node one agent can refer to, as it is now.
    pub(super) fn registry(&self, agent: &Agent, begun: &Begun) -> Arc<Registry> {
        let mut registry = Registry::default();
        registry.options = self.options.clone();
        let budget = self.budget(agent.name.as_str(), begun);
        registry.options.limits.tokens = budget.tokens.or(registry.options.limits.tokens);
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for capability in &agent.capabilities {
            if let Reference::Bare(name) | Reference::Agent(name) = &capability.reference {
                names.insert(name.as_str());
            }
            for reviewer in [&capability.input.review, &capability.output.review].into_iter().flatten() {
                match reviewer {
                    Reviewer::Agent(reference) => drop(names.insert(reference.name().as_str())),
                    Reviewer::Named(name) => drop(names.insert(name)),
                    Reviewer::Caller | Reviewer::Owner | Reviewer::User(_) => {}
                }
            }
        }
        for guardrail in [&agent.input_guardrail, &agent.output_guardrail].into_iter().flatten() {
            names.insert(guardrail.tool.as_str());
        }
        for name in names {
            match self.tool(name) {
                Some(tool) if *tool.state() != State::Ready => self.withhold(&mut registry, name, &tool),
                Some(_) | None => self.add_tool(&mut registry, name),
            }
            if let Some(hosted) = self.hosted.get(name) {
                let _ = registry.add_agent(&hosted.agent.name, &hosted.agent.description);
            }
        }
        self.add_identities(&mut registry, agent);
        self.add_remotes(&mut registry, agent, Some(begun));
        Arc::new(registry)
    }

    /// Whether the credentials for a tool are this node's own affair.
    pub(super) fn is_own_tool(name: &str) -> bool {
        name == ASK
    }
}

/// The agents of other servers that an agent refers to.
fn remotes(agent: &Agent) -> Vec<String> {
    let references = agent.capabilities.iter().map(|capability| &capability.reference);
    references.filter(|reference| matches!(reference, Reference::Remote { .. })).map(ToString::to_string).collect()
}

/// Tools that an operator is told of whose document names another one.
const HINTED_MAX: usize = 20;

/// What is there instead of what a document refers to, and what may help.
fn hint(found: &[Finding], toolbox: &Toolbox) -> String {
    let has = |code: Code| found.iter().any(|finding| finding.code == code);
    let mut hint = String::new();
    if has(Code::UnknownCapability) || has(Code::UnknownGuardrail) {
        let names: Vec<String> = toolbox.names().iter().take(HINTED_MAX).map(|name| format!("`{name}`")).collect();
        hint.push_str(&format!("; the tools here are {}; mend the name, or add one under `tools`", names.join(", ")));
        for (entry, problem) in toolbox.problems() {
            hint.push_str(&format!("; the tools of `{entry}` cannot be had: {problem}"));
        }
    }
    if has(Code::UnknownIdentity) {
        hint.push_str("; give it a credential under `credentials.static` in the operator's file");
    }
    hint
}

/// Tells the operator which tools cannot be called, and why; the digests of their definitions.
fn warn(toolbox: &Toolbox) -> BTreeSet<String> {
    for (entry, problem) in toolbox.problems() {
        tracing::warn!(entry, problem, "tools cannot be had");
    }
    let mut warned = BTreeSet::new();
    for name in toolbox.names() {
        let Some(tool) = toolbox.tool(&name).filter(|tool| *tool.state() != State::Ready) else { continue };
        warn_of(&name, &tool);
        warned.insert(tool.digest().to_owned());
    }
    warned
}

/// Tells the operator why a tool cannot be called.
fn warn_of(name: &str, tool: &host::Tool) {
    match tool.state() {
        State::Ready => {}
        State::Quarantined { approved } => tracing::warn!(
            tool = name,
            approved,
            now = tool.digest(),
            "the definition of a tool changed; `rialto agent approve` lets it be called again"
        ),
        State::Rejected(reason) => tracing::warn!(tool = name, %reason, "the definition of a tool is not usable"),
    }
}

/// What stands in place of a description that no model is shown.
const WITHHELD: &str = "It cannot be called now.";

/// A tool that no model is shown now, for its operator and the owners of the agents that refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// What documents call it.
    pub tool: String,
    /// What a call would be told.
    pub code: &'static str,
    /// The same in words.
    pub why: String,
    /// The digest that was approved, where it is another one.
    pub approved: Option<String>,
    /// The digest of the definition as it is now.
    pub now: String,
}

impl Withheld {
    fn of(tool: &host::Tool) -> Option<Self> {
        let (error, approved) = match tool.state() {
            State::Ready => return None,
            State::Quarantined { approved } => (ToolError::Changed, Some(approved.clone())),
            State::Rejected(reason) => (ToolError::Unknown(reason.to_string()), None),
        };
        let (tool, now) = (tool.definition().name.clone(), tool.digest().to_owned());
        Some(Self { tool, code: error.code(), why: error.to_string(), approved, now })
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"tool": self.tool, "code": self.code, "message": self.why, "now": self.now});
        if let (Some(approved), Some(members)) = (&self.approved, value.as_object_mut()) {
            members.insert("approved".to_owned(), json!(approved));
        }
        value
    }
}

/// Approves the definition of a tool that has this digest. A node that runs with this data folder takes it when it next
/// looks at the tool.
pub fn approve_tool(data: &Path, name: &str, digest: &str) -> io::Result<bool> {
    change_pins(data, |pins| match pins.get_mut(name) {
        Some(approved) => {
            digest.clone_into(approved);
            true
        }
        None => false,
    })
}

/// Definitions of tools that were approved before, by the names of their tools.
fn pinned(data: &Path) -> io::Result<Pins> {
    match fs::read(data.join(PINS)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| io::Error::other(format!("{PINS}: {error}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Pins::new()),
        Err(error) => Err(error),
    }
}

/// Keeps what was seen beside what is approved, which may be approved since.
fn pin(data: &Path, seen: &Pins) -> io::Result<()> {
    change_pins(data, |pins| {
        for (name, digest) in seen {
            pins.entry(name.clone()).or_insert_with(|| digest.clone());
        }
        true
    })?;
    Ok(())
}

/// Changes what is approved, and says whether there was something to change. The node and whoever approves beside it do so one
/// after the other: no approval is lost.
fn change_pins(data: &Path, change: impl FnOnce(&mut Pins) -> bool) -> io::Result<bool> {
    let lock = fs::File::create(data.join(format!("{PINS}.lock")))?;
    lock.lock()?;
    let mut pins = pinned(data)?;
    let changed = change(&mut pins);
    if changed {
        let beside = data.join(format!("{PINS}.new"));
        fs::write(&beside, serde_json::to_vec_pretty(&pins)?)?;
        fs::rename(beside, data.join(PINS))?;
    }
    Ok(changed)
}

/// Judges inputs by the schema of a tool.
struct Inputs(Arc<host::Tool>);

impl Check for Inputs {
    fn check(&self, inputs: &Value) -> Result<(), String> {
        self.0.check_inputs(inputs).map_err(|error| error.to_string())
    }
}
