//! Scenarios: a document, a scripted model, tools that answer as written, and what must come of it.
//!
//! A model is a list of turns, or the word `obeys`: that one does whatever anybody tells it. It carries out each
//! `<<call NAME {…}>>` and `<<say …>>` that it reads in a result or in a user's words, and in its answers it repeats everything
//! that it has seen. What such a model cannot do no model can.

use crate::play::{World, play};
use crate::{
    Agent, Begun, Check, Decision, Engagement, Failure, Function, Identity, Message, Name, NameRule, Outcome, Progress,
    ProposedCall, Reference, Registry, Remembered, Stage, Step, Target, Tool, User, memory,
};
use json::{Limits, Map, Value, yaml};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How large a scenario may be.
const SCENARIO_LIMITS: Limits = Limits { subject: "scenario", bytes: 1024 * 1024, ..Limits::DOCUMENT };

/// A story and its end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, in a sentence.
    #[serde(default)]
    pub why: String,
    /// The file of the agent's document.
    #[serde(default)]
    pub agent: Option<String>,
    /// The agent's document itself.
    #[serde(default)]
    pub document: Option<String>,
    /// Who speaks; nobody in particular when nothing is said.
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    options: ScenarioOptions,
    #[serde(default)]
    tools: BTreeMap<String, Stub>,
    #[serde(default)]
    agents: BTreeMap<String, Stub>,
    #[serde(default)]
    remotes: BTreeMap<String, Stub>,
    #[serde(default)]
    identities: Vec<String>,
    #[serde(default)]
    memory: Vec<Remembered>,
    /// What the user says, one after the other.
    says: Vec<String>,
    #[serde(default)]
    model: Model,
    /// What reviewers decide, one after the other; then they leave it open.
    #[serde(default)]
    reviews: Vec<Decision>,
    expect: Expect,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScenarioOptions {
    ask_user: bool,
    lends_to_strangers: bool,
    denial_ends: bool,
    calls: Option<usize>,
    turns: Option<usize>,
    bytes: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Stub {
    description: String,
    parameters: Option<Value>,
    /// One output after the other; the last again and again.
    returns: Vec<Value>,
    /// What it says when it fails, which it does each time.
    fails: Option<String>,
    writes: bool,
    after: BTreeSet<String>,
    text_argument: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Model {
    Word(Obeys),
    Script(Vec<Turn>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Obeys {
    Obeys,
}

impl Default for Model {
    fn default() -> Self {
        Self::Script(Vec::new())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Turn {
    say: Option<String>,
    /// One function and its arguments each; a text stands for arguments as they are written.
    calls: Vec<BTreeMap<String, Value>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    status: Option<String>,
    failure: Option<String>,
    answer: Option<String>,
    /// Calls that are made, in their order.
    calls: Option<Vec<BTreeMap<String, Value>>>,
    /// Everything that is asked, in its order: `model`, `guard NAME`, or the key of a capability.
    order: Option<Vec<String>>,
    /// `KEY WHY` of calls that are not made.
    denied: Option<Vec<String>>,
    /// `KEY WHY` of calls whose results are not used.
    withheld: Option<Vec<String>>,
    /// `KEY user`, `KEY nobody` or `KEY static NAME`.
    identities: Option<Vec<String>>,
    /// `REVIEWER STAGE KEY` of everybody who is asked.
    reviewers: Option<Vec<String>>,
    exposes: Option<Map>,
    expose_errors: Option<Vec<String>>,
    /// The Engagement in the end.
    object: Option<Value>,
    /// Function names before the model.
    functions: Option<Vec<String>>,
    /// What the model's messages have somewhere.
    shown: Vec<String>,
    /// What nobody may get to see: the model, the caller, the next engagement.
    hidden: Vec<String>,
    /// What the next engagement would know.
    memory: Option<Vec<Remembered>>,
}

/// Makes the judge of a tool's inputs from its JSON Schema.
pub type Compile<'a> = &'a dyn Fn(&Value) -> Result<Arc<dyn Check>, String>;

/// What came of a scenario.
#[derive(Debug)]
pub struct Played {
    /// The engagement in the end.
    pub engagement: Engagement,
    /// What differs from what was expected, one sentence each.
    pub mismatches: Vec<String>,
}

impl Scenario {
    /// Reads a scenario, YAML or JSON.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let yaml = yaml::parse(bytes, &SCENARIO_LIMITS).map_err(|refusal| match refusal.position {
            Some((line, column)) => format!("{line}:{column}: {}", refusal.detail),
            None => refusal.detail,
        })?;
        Self::of(yaml.document.root().to_value())
    }

    /// Reads a scenario that is a value already.
    pub fn of(value: Value) -> Result<Self, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// Plays it with an agent.
    pub fn play(&self, agent: &Agent, compile: Compile<'_>) -> Result<Played, String> {
        let registry = self.registry(agent, compile)?;
        if let Some(finding) = registry.judge(agent).iter().find(|finding| finding.grade() == crate::Grade::Error) {
            return Err(format!("the scenario has not got all that the agent needs: {finding}"));
        }
        let mut engagement = Engagement::begin(Begun {
            id: "scenario".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            agent: agent.name.to_string(),
            document: agent.digest().to_owned(),
            user: self.user.clone(),
            memory: self.memory.clone(),
            ..Begun::default()
        });
        let mut stage = Staged { scenario: self, seen: Seen::default(), used: BTreeMap::new(), turn: 0, review: 0 };
        for text in &self.says {
            if engagement.record(Step::UserSaid { text: text.clone() }).is_err() {
                break;
            }
            let told = |_| "the engagement went astray".to_owned();
            play(agent, &registry, &mut engagement, &mut stage).map_err(told)?;
        }
        let seen = stage.seen;
        let mismatches = self.expect.compare(agent, &engagement, &seen);
        Ok(Played { engagement, mismatches })
    }

    fn registry(&self, agent: &Agent, compile: Compile<'_>) -> Result<Registry, String> {
        let mut registry = Registry::default();
        let name = |text: &str| Name::read(text, NameRule::Both).map_err(|why| format!("`{text}`: {why}"));
        for (text, stub) in &self.tools {
            let parameters = stub.parameters.clone().unwrap_or_else(|| json::json!({"type": "object"}));
            let check = compile(&parameters)?;
            let tool = Tool {
                text_argument: stub.text_argument.clone(),
                writes: stub.writes,
                after: stub.after.clone(),
                ..Tool::new(stub.description.clone(), parameters, check)
            };
            registry.add_tool(&name(text)?, tool).map_err(|taken| taken.to_string())?;
        }
        for (text, stub) in &self.agents {
            registry.add_agent(&name(text)?, &stub.description).map_err(|taken| taken.to_string())?;
        }
        for (text, stub) in &self.remotes {
            let reference = Reference::read(text, NameRule::Both).map_err(|why| format!("`{text}`: {why}"))?;
            registry.add_remote(&reference, &stub.description);
        }
        self.identities.iter().for_each(|identity| registry.add_identity(identity));
        // Whoever hosts an agent has it.
        let _ = registry.add_agent(&agent.name, &agent.description);
        let options = &mut registry.options;
        options.ask_user = self.options.ask_user;
        options.lends_to_strangers = self.options.lends_to_strangers;
        options.denial_ends = self.options.denial_ends;
        options.limits.calls = self.options.calls.unwrap_or(options.limits.calls);
        options.limits.turns = self.options.turns.unwrap_or(options.limits.turns);
        options.limits.bytes = self.options.bytes.unwrap_or(options.limits.bytes);
        Ok(registry)
    }
}

/// What anybody got to see.
#[derive(Debug, Default)]
struct Seen {
    order: Vec<String>,
    calls: Vec<(String, Value)>,
    identities: Vec<String>,
    reviewers: Vec<String>,
    messages: Vec<Message>,
    functions: Vec<String>,
}

/// A world in which everybody keeps to the script.
struct Staged<'a> {
    scenario: &'a Scenario,
    seen: Seen,
    used: BTreeMap<String, usize>,
    turn: usize,
    review: usize,
}

impl Staged<'_> {
    fn answer(&mut self, name: &str, stub: Option<&Stub>) -> Outcome {
        let Some(stub) = stub else { return Outcome::Error("there is no such tool".to_owned()) };
        if let Some(message) = &stub.fails {
            return Outcome::Error(message.clone());
        }
        let used = self.used.entry(name.to_owned()).or_default();
        let output = stub.returns.get(*used).or(stub.returns.last()).cloned();
        *used += 1;
        Outcome::Output(output.unwrap_or_else(|| json::json!({})))
    }
}

impl World for Staged<'_> {
    fn model(&mut self, messages: &[Message], functions: &[Function]) -> (Option<String>, Vec<ProposedCall>) {
        self.seen.order.push("model".to_owned());
        self.seen.functions = functions.iter().map(|function| function.name.clone()).collect();
        self.seen.messages.extend_from_slice(messages);
        let turn = self.turn;
        self.turn += 1;
        match &self.scenario.model {
            Model::Word(Obeys::Obeys) => obey(messages, turn),
            Model::Script(script) => match script.get(turn) {
                Some(script) => scripted(script, turn),
                None => (Some("done".to_owned()), Vec::new()),
            },
        }
    }

    fn call(&mut self, target: &Target, inputs: &Value, identity: &Identity) -> Outcome {
        let (name, stub) = match target {
            Target::Tool(name) => (name, self.scenario.tools.get(name)),
            Target::Agent(name) => (name, self.scenario.agents.get(name)),
            Target::Remote { reference, .. } => (reference, self.scenario.remotes.get(reference)),
        };
        self.seen.order.push(name.clone());
        self.seen.calls.push((name.clone(), inputs.clone()));
        self.seen.identities.push(match identity {
            Identity::User => format!("{name} user"),
            Identity::Nobody => format!("{name} nobody"),
            Identity::Static(identity) => format!("{name} static {identity}"),
        });
        self.answer(name, stub)
    }

    fn guard(&mut self, tool: &str, _: &Value) -> Outcome {
        self.seen.order.push(format!("guard {tool}"));
        let stub = self.scenario.tools.get(tool);
        self.answer(tool, stub)
    }

    fn review(&mut self, reviewer: &str, stage: Stage, capability: &str) -> Option<Decision> {
        self.seen.reviewers.push(format!("{reviewer} {} {capability}", stage.name()));
        let decision = self.scenario.reviews.get(self.review).copied();
        self.review += 1;
        decision
    }
}

fn scripted(turn: &Turn, number: usize) -> (Option<String>, Vec<ProposedCall>) {
    let proposed = |(position, (name, arguments)): (usize, (&String, &Value))| ProposedCall {
        id: format!("{number}-{position}"),
        name: name.clone(),
        arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
    };
    (turn.say.clone(), turn.calls.iter().flatten().enumerate().map(proposed).collect())
}

/// Does what it is told, and tells everything it knows.
fn obey(messages: &[Message], number: usize) -> (Option<String>, Vec<ProposedCall>) {
    let fresh = messages.iter().rev().take_while(|message| !matches!(message, Message::Assistant { .. }));
    let mut calls = Vec::new();
    let mut say = Vec::new();
    for text in fresh.filter_map(words) {
        for order in orders(&unescaped(text)) {
            match order.split_once(' ') {
                Some(("call", rest)) => {
                    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                    let id = format!("{number}-{}", calls.len());
                    calls.push(ProposedCall { id, name: name.to_owned(), arguments: arguments.to_owned() });
                }
                Some(("say", rest)) => say.push(rest.to_owned()),
                _ => {}
            }
        }
    }
    if calls.is_empty() {
        say.extend(messages.iter().filter_map(words).map(unescaped));
    }
    (Some(say.join("\n")), calls)
}

fn words(message: &Message) -> Option<&str> {
    match message {
        Message::System { .. } | Message::Assistant { .. } => None,
        Message::User { text } | Message::Tool { text, .. } => Some(text),
    }
}

/// A result is JSON; inside of its texts quotes are escaped.
fn unescaped(text: &str) -> String {
    text.replace("\\\"", "\"")
}

fn orders(text: &str) -> Vec<String> {
    let parts = text.split("<<").skip(1);
    parts.filter_map(|part| part.split_once(">>").map(|(order, _)| order.to_owned())).collect()
}

impl Expect {
    fn compare(&self, agent: &Agent, engagement: &Engagement, seen: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        let mut differs = |what: &str, wanted: Option<Value>, got: Value| match wanted {
            Some(wanted) if wanted != got => found.push(format!("{what}: expected {wanted}, got {got}")),
            _ => {}
        };
        let value = |texts: &Option<Vec<String>>| texts.as_ref().map(|texts| Value::from(texts.clone()));
        let answer = engagement.answer();
        differs("status", self.status.clone().map(Value::from), Value::from(engagement.status().name()));
        let failure = engagement.failure().map(Failure::code);
        differs("failure", self.failure.clone().map(Value::from), Value::from(failure));
        differs("answer", self.answer.clone().map(Value::from), Value::from(answer.map(|(text, ..)| text)));
        let calls = self.calls.as_ref().map(|calls| json::json!(calls));
        let made = seen.calls.iter().map(|(name, inputs)| json::json!({name: inputs})).collect();
        differs("calls", calls, made);
        differs("order", value(&self.order), Value::from(seen.order.clone()));
        differs("denied", value(&self.denied), Value::from(refused(engagement, Stage::Input)));
        differs("withheld", value(&self.withheld), Value::from(refused(engagement, Stage::Output)));
        differs("identities", value(&self.identities), Value::from(seen.identities.clone()));
        differs("reviewers", value(&self.reviewers), Value::from(seen.reviewers.clone()));
        let exposes = answer.map(|(_, exposes, _)| Value::Object(exposes.clone())).unwrap_or_default();
        differs("exposes", self.exposes.clone().map(Value::Object), exposes);
        let errors = answer.map(|(.., errors)| errors.to_vec()).unwrap_or_default();
        differs("expose_errors", value(&self.expose_errors), Value::from(errors));
        let object = engagement.object(agent);
        differs("object", self.object.clone(), object.clone());
        differs("functions", value(&self.functions), Value::from(seen.functions.clone()));
        let remembered = memory(agent, engagement);
        differs("memory", self.memory.as_ref().map(|memory| json::json!(memory)), json::json!(remembered));
        let messages = json::json!(seen.messages).to_string();
        for text in self.shown.iter().filter(|text| !messages.contains(text.as_str())) {
            found.push(format!("the model never saw `{text}`"));
        }
        let told = answer.map(|(text, exposes, _)| json::json!([text, exposes])).unwrap_or_default().to_string();
        let remembered = json::json!(remembered).to_string();
        let places = [("model", messages), ("caller", told), ("memory", remembered), ("object", object.to_string())];
        for text in &self.hidden {
            for (place, _) in places.iter().filter(|(_, place)| place.contains(text.as_str())) {
                found.push(format!("`{text}` reached the {place}"));
            }
        }
        found
    }
}

/// `KEY WHY` of calls that were stopped at this end.
fn refused(engagement: &Engagement, stage: Stage) -> Vec<String> {
    let line = |call: &crate::Call| {
        let why = match (&call.progress, stage) {
            (Progress::Denied(why), Stage::Input) | (Progress::Withheld(why), Stage::Output) => why,
            _ => return None,
        };
        Some(format!("{} {}", call.capability.as_deref().unwrap_or(&call.proposed.name), why.name()))
    };
    engagement.calls().iter().filter_map(line).collect()
}
