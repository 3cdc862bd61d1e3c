//! `rialto agent run FILE.yaml`: talk to an agent in the terminal, and see each decision (OAS Engagement).

use crate::commands::agent::hosted::read_hosting;
use crate::commands::reviews::subject;
use crate::failure::{Exit, Failure};
use crate::house;
use crate::output::text::{json_line, shown};
use crate::output::{self, DIM, STRONG, WARN, paint};
use agent::{Step, step_in_words};
use json::{Value, json};
use node::{Config, Decided, Engagements, Person, Settled};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Talk to an agent in the terminal, with the tools and models of a configuration, and see each decision
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rialto agent run examples/agents/house/receptionist.yaml
  echo 'What time is it in Venice?' | rialto agent run examples/agents/time/timekeeper.yaml --json

What you write is said to the agent, line by line; the end of the input ends the engagement. Whoever the document asks to
review, you are asked.")]
pub(crate) struct Run {
    /// The agent's document
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Tools, credentials, models and budgets [default: host.yaml beside the document]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The data folder of a node whose market the tool `ask` asks; it must not be running [default: an empty one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Who you are to the agent
    #[arg(long = "as", value_name = "ID", default_value = "local")]
    user: String,

    /// Print every step as a line of JSON
    #[arg(long)]
    json: bool,
}

impl Run {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (mut hosting, name) = read_hosting(&self.file, self.config.as_deref())?;
        let owners = hosting.documents.iter().filter_map(|(_, bytes)| agent::Agent::read(bytes).ok());
        // Whoever sits here decides whatever a document lets somebody decide.
        let people = owners.map(|agent| Person { did: self.user.clone(), id: Some(agent.owner), email: None });
        hosting.people.extend(people.collect::<Vec<_>>());
        let fleeting = tempfile::tempdir().map_err(|error| Failure::files(format!("no folder to work in: {error}")))?;
        let data = self.data.clone().unwrap_or_else(|| fleeting.path().to_owned());
        let node = Arc::new(house::open(&Config { data, ..Config::default() })?);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::files(format!("no threads to work with: {error}")))?;
        let engagements = runtime.block_on(Engagements::open(node, hosting));
        let engagements = engagements.map_err(|error| Failure::refused(error.to_string()))?;
        let talk = Talk { runtime, engagements, user: self.user, json: self.json };
        talk.run(&name)
    }
}

/// How many steps of each engagement were told.
type Told = BTreeMap<String, usize>;

/// An engagement with somebody at a terminal.
struct Talk {
    runtime: Runtime,
    engagements: Arc<Engagements>,
    user: String,
    json: bool,
}

impl Talk {
    fn run(&self, name: &str) -> Result<Exit, Failure> {
        let mut begun: Option<String> = None;
        let mut told = Told::new();
        let mut lines = std::io::stdin().lock().lines();
        while let Some(line) = lines.next() {
            let line = line.map_err(|error| Failure::files(format!("nothing more can be read: {error}")))?;
            if line.trim().is_empty() {
                continue;
            }
            let said = async {
                match &begun {
                    Some(id) => self.engagements.say(id, Some(&self.user), &line).await.map(|()| id.clone()),
                    None => self.engagements.begin(name, Some(&self.user), &line).await,
                }
            };
            let id = self.runtime.block_on(said).map_err(refused)?;
            begun = Some(id.clone());
            let status = self.follow(&id, &mut told, &mut || lines.next().and_then(Result::ok))?;
            if ["failed", "cancelled"].contains(&status.as_str()) {
                return Ok(Exit::No);
            }
        }
        Ok(Exit::Fine)
    }

    /// Tells what happens until the agent rests; the status then.
    fn follow(&self, id: &str, told: &mut Told, answer: &mut dyn FnMut() -> Option<String>) -> Result<String, Failure> {
        loop {
            self.tell_all(id, 0, told)?;
            let count = told.get(id).copied().unwrap_or_default();
            let (mut state, known) = self.engagements.state(id, Some(&self.user)).map_err(refused)?;
            let text = |state: &Value, place: &str| {
                state.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let within = text(&state, "/within/engagement");
            let is_judged = within.is_empty() && text(&state, "/review/reviewer").starts_with("oagent://");
            // Where an agent that was asked waits, whoever sits here is asked what that one wants to know.
            let waits = if within.is_empty() { id } else { &within };
            if waits != id {
                (state, _) = self.engagements.state(waits, Some(&self.user)).map_err(refused)?;
            }
            let status = text(&state, "/status");
            match status.as_str() {
                _ if status == "running" || is_judged => {
                    let waited = self.engagements.wait(id, Some(known), Duration::from_secs(5));
                    self.runtime.block_on(waited).map_err(refused)?;
                }
                "awaiting-review" => self.review(waits, answer)?,
                "outcome-unknown" => self.settle(waits, answer)?,
                "awaiting-credentials" => {
                    let consent = state.pointer("/credentials/consent").and_then(Value::as_str);
                    let consent = consent.map(|link| format!("consent at {}, then ", shown(link))).unwrap_or_default();
                    let failure = Failure::refused("the tool wants credentials of yours, and there are none");
                    return Err(failure.help(format!(
                        "{consent}name some in the configuration under `credentials.users`, or say `user_identity: false`"
                    )));
                }
                _ if known as usize > count => {}
                _ => return Ok(status),
            }
        }
    }

    /// Tells what is new in an engagement; what those that serve it did stands before what came of it. Lines of JSON are one
    /// journal, as `rialto agent replay` reads it, so they leave the others out.
    fn tell_all(&self, id: &str, depth: usize, told: &mut Told) -> Result<(), Failure> {
        let trail = self.engagements.audit(id, &self.user).map_err(refused)?;
        let steps = trail.get("steps").and_then(Value::as_array).cloned().unwrap_or_default();
        let served =
            if self.json { Vec::new() } else { self.engagements.those_serving(id, &self.user).map_err(refused)? };
        let known = told.insert(id.to_owned(), steps.len()).unwrap_or_default();
        for step in steps.iter().skip(known) {
            let ended = place_ended(step);
            for (_, child) in served.iter().filter(|(place, _)| Some(place) == ended.as_ref()) {
                self.tell_all(child, depth + 1, told)?;
            }
            match depth {
                0 => self.tell(step)?,
                depth => tell_within(step, depth)?,
            }
        }
        // Those that began since the steps were read are told after the steps that begin them.
        let begun: Vec<String> = steps.iter().filter_map(place_begun).collect();
        for (_, child) in served.iter().filter(|(place, _)| begun.contains(place)) {
            self.tell_all(child, depth + 1, told)?;
        }
        Ok(())
    }

    fn tell(&self, step: &Value) -> Result<(), Failure> {
        if self.json {
            return output::print(&json_line(&json::canonical_value(step)));
        }
        let Some(read) = read(step) else { return Ok(()) };
        match &read {
            Step::Answered { text, exposes, .. } | Step::Asked { text, exposes, .. } => {
                let said: Vec<String> = text.lines().map(|line| paint(STRONG, shown(line))).collect();
                let mut words = format!("{}\n", said.join("\n"));
                if !exposes.is_empty() {
                    let exposed = Value::Object(exposes.clone()).to_string();
                    words.push_str(&format!("  {} {}\n", paint(DIM, "exposed"), shown(&exposed)));
                }
                output::print(&words)
            }
            Step::Failed { failure, .. } => {
                output::print(&format!("{} {}\n", paint(WARN, "the engagement failed:"), failure.code()))
            }
            Step::Begun(_) | Step::UserSaid { .. } => Ok(()),
            step => output::print(&format!("  {}\n", paint(DIM, shown(&step_in_words(step))))),
        }
    }

    fn review(&self, id: &str, answer: &mut dyn FnMut() -> Option<String>) -> Result<(), Failure> {
        let listed = self.engagements.reviews(&self.user, None).map_err(refused)?.reviews;
        let waits = listed.iter().find(|review| review.get("engagement") == Some(&json!(id)));
        let text = |name: &str| waits.and_then(|review| review.get(name)?.as_str()).unwrap_or_default().to_owned();
        let (review, digest) = (text("id"), text("digest"));
        if review.is_empty() {
            return Err(Failure::refused("somebody else is asked to review this, and nobody else is here"));
        }
        let subject = waits.map(subject).unwrap_or_default();
        output::say(&format!("{} {}? [y/N] ", text("stage"), paint(STRONG, subject)));
        let approve = answer().is_some_and(|line| ["y", "yes"].contains(&line.trim().to_lowercase().as_str()));
        let decided = Decided { approve, digest, reason: None };
        self.runtime.block_on(self.engagements.decide(id, &review, &self.user, decided)).map_err(refused)
    }

    fn settle(&self, id: &str, answer: &mut dyn FnMut() -> Option<String>) -> Result<(), Failure> {
        let listed = self.engagements.reviews(&self.user, None).map_err(refused)?.reviews;
        let waits = listed.iter().find(|review| review.get("engagement") == Some(&json!(id)));
        let call = waits.and_then(|waits| waits.get("call")?.as_u64()).unwrap_or_default();
        let subject = waits.map(subject).unwrap_or_default();
        output::say(&format!("nobody knows whether this was carried out: {subject}; make it again? [y/N] "));
        let again = answer().is_some_and(|line| ["y", "yes"].contains(&line.trim().to_lowercase().as_str()));
        let settled = if again { Settled::Repeat } else { Settled::Failed("it is not known what became of it".into()) };
        let call = usize::try_from(call).unwrap_or_default();
        self.runtime.block_on(self.engagements.settle(id, call, &self.user, settled)).map_err(refused)
    }
}

/// A step as the journal has it, without when it was.
fn read(step: &Value) -> Option<Step> {
    let mut bare = step.clone();
    if let Some(members) = bare.as_object_mut() {
        members.remove("at");
    }
    serde_json::from_value(bare).ok()
}

/// The place that a step opens to another engagement.
fn place_begun(step: &Value) -> Option<String> {
    match read(step)? {
        Step::Dispatched { call, .. } => Some(call.to_string()),
        Step::ReviewAsked { call, stage, .. } => Some(format!("{call}/{}", stage.name())),
        _ => None,
    }
}

/// The place of which a step says what came of it, where another engagement may have served it.
fn place_ended(step: &Value) -> Option<String> {
    match read(step)? {
        Step::Returned { call, .. } => Some(call.to_string()),
        Step::ReviewDecided { call, stage, .. } => Some(format!("{call}/{}", stage.name())),
        _ => None,
    }
}

/// Tells a step of an engagement that serves another one, so many levels down.
fn tell_within(step: &Value, depth: usize) -> Result<(), Failure> {
    let Some(step) = read(step) else { return Ok(()) };
    let words = match &step {
        Step::Begun(begun) => format!("{}:", begun.agent),
        Step::UserSaid { .. } => return Ok(()),
        Step::Answered { text, .. } | Step::Asked { text, .. } => format!("it says: {text}"),
        step => step_in_words(step),
    };
    // Its name stands where its caller's steps end, and what it does below the name.
    let indent = "  ".repeat(if matches!(step, Step::Begun(_)) { depth + 1 } else { depth + 2 });
    let lines = words.lines().map(|line| format!("{indent}{}\n", paint(DIM, shown(line))));
    output::print(&lines.collect::<String>())
}

fn refused(error: node::Error) -> Failure {
    Failure::refused(error.to_string())
}
