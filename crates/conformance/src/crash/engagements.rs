//! OAS Engagement: a node killed at each step of an engagement's journal, and started again.
//!
//! The agent is guarded at both ends, writes something by a tool that may not be repeated, and asks somebody first; it is
//! begun with by itself, and by another agent that has it write. The
//! tools are programs: where a kill is due, one of them kills the node that started it, exactly there; where none runs,
//! the kill follows the answer that says how far the engagement has come. Then nothing may be lost, and whatever the tool
//! wrote under one call's name it may have written once.

use super::program::{Program, Running};
use super::script::Faults;
use anyhow::{Context, Result, ensure};
use json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where a node is killed, by the last step that its journal has then.
const POINTS: [(&str, &str); 9] = [
    ("user_said", "at once"),
    ("user_said", "in the input guardrail"),
    ("review_asked", "at rest"),
    ("review_decided", "at once"),
    ("dispatched", "before the effect"),
    ("dispatched", "after the effect"),
    ("dispatched", "in a call that may be repeated"),
    ("model_said", "in the output guardrail"),
    ("answered", "at rest"),
];

/// The same where another agent asked this one: by the last step of the engagement that serves.
const SERVED: [(&str, &str); 6] = [
    ("user_said", "in the input guardrail"),
    ("review_asked", "at rest"),
    ("review_decided", "a little later each time"),
    ("dispatched", "before the effect"),
    ("dispatched", "after the effect"),
    ("model_said", "in the output guardrail"),
];

/// Milliseconds by which a kill comes later each time, and after how many times it comes at once again.
const LATER_MS: u64 = 2;
const LATER_ROUNDS: usize = 25;

/// How long an engagement may take to come somewhere.
const PATIENCE: Duration = Duration::from_secs(120);

/// Kills a node so many times at each point; `progress` hears of every kill.
pub fn engagements(program: &Program, rounds: usize, progress: &mut dyn FnMut(&Faults)) -> Result<Faults> {
    let begun = super::start();
    let folder = tempfile::tempdir()?;
    let mut house = House::open(program, folder.path())?;
    let mut faults = Faults::default();
    let points = POINTS.map(|(step, moment)| (Whom::Writer, step, moment)).into_iter();
    for (whom, step, moment) in points.chain(SERVED.map(|(step, moment)| (Whom::Head, step, moment))) {
        for round in 0..rounds {
            house.later = Duration::from_millis(LATER_MS * (round % LATER_ROUNDS) as u64);
            house.play(whom, step, moment, &mut faults)?;
            faults.note("kills");
            faults.note(&format!("kills after `{step}`{}, {moment}", whom.told()));
            faults.seconds = begun.elapsed().as_secs_f64();
            progress(&faults);
        }
    }
    house.settle(&mut faults)?;
    faults.seconds = begun.elapsed().as_secs_f64();
    Ok(faults)
}

/// Whom an engagement is begun with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// The agent that writes.
    Writer,
    /// The agent that has the other one write.
    Head,
}

impl Whom {
    fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Head => "head",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Writer => "",
            Self::Head => " of one that serves",
        }
    }
}

/// A node with two agents, the owner's key, and what the tool wrote.
struct House {
    program: Program,
    running: Option<Running>,
    folder: PathBuf,
    /// How long after a decision the node is killed, where that is not at once.
    later: Duration,
    /// Every engagement, with the number of effects that it must have had in the end; none where that is unknown.
    begun: BTreeMap<String, Option<usize>>,
}

impl House {
    fn open(program: &Program, folder: &Path) -> Result<Self> {
        let agents = folder.join("agents");
        fs::create_dir_all(&agents)?;
        let house = Self {
            program: program.at(folder).with(&[
                "--agents".to_owned(),
                agents.display().to_string(),
                "--agents-for-strangers".to_owned(),
            ]),
            running: None,
            folder: folder.to_owned(),
            later: Duration::ZERO,
            begun: BTreeMap::new(),
        };
        house.rialto(&["keys", "new"])?;
        let key: Value = serde_json::from_slice(&house.rialto(&["keys", "show", "--json"])?)?;
        let owner = key.get("did").and_then(Value::as_str).context("the key has no name")?;
        fs::write(agents.join("host.yaml"), configuration(folder))?;
        fs::write(agents.join("writer.yaml"), document(owner))?;
        fs::write(agents.join("head.yaml"), delegating(owner))?;
        Ok(house)
    }

    fn rialto(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(self.program.binary());
        let output = command.env("RIALTO_HOME", self.folder.join("home")).args(arguments).output()?;
        ensure!(output.status.success(), "`rialto {arguments:?}`: {}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    }

    fn node(&mut self) -> Result<&mut Running> {
        if self.running.is_none() {
            self.running = Some(self.program.serve()?.0);
        }
        self.running.as_mut().context("the node does not run")
    }

    /// Has a tool kill the node when it is called next.
    fn arm(&self, moment: &str) -> Result<()> {
        Ok(fs::write(self.folder.join(moment.replace(' ', "-")), "")?)
    }

    /// One engagement that is interrupted at a point and then goes on.
    fn play(&mut self, whom: Whom, step: &str, moment: &str, faults: &mut Faults) -> Result<()> {
        let repeatable = moment == "in a call that may be repeated";
        let by_tool = moment.contains("effect") || moment.starts_with("in ");
        if by_tool {
            self.arm(moment)?;
        }
        let id = self.begin(whom, if repeatable { "look" } else { "write" })?;
        self.begun.insert(id.clone(), Some(usize::from(!repeatable)));
        if moment == "at once" && step == "user_said" {
            return self.kill_and_go_on(&id, faults);
        }
        if !repeatable && moment != "in the input guardrail" {
            self.come_to(&id, &["awaiting-review"])?;
            if step == "review_asked" {
                self.kill()?;
            }
            self.approve(&id)?;
            if step == "review_decided" {
                if moment != "at once" {
                    std::thread::sleep(self.later);
                }
                return self.kill_and_go_on(&id, faults);
            }
        }
        if by_tool {
            self.wait_for_the_end()?;
        } else {
            self.come_to(&id, &["completed"])?;
            self.kill()?;
        }
        self.go_on(&id, faults)
    }

    fn kill_and_go_on(&mut self, id: &str, faults: &mut Faults) -> Result<()> {
        self.kill()?;
        self.go_on(id, faults)
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut running) = self.running.take() {
            running.kill()?;
        }
        Ok(())
    }

    /// Waits until a tool has killed the node.
    fn wait_for_the_end(&mut self) -> Result<()> {
        let begun = super::start();
        if let Some(running) = &mut self.running {
            while running.is_alive() {
                ensure!(begun.elapsed() < PATIENCE, "nobody killed the node");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.running = None;
        Ok(())
    }

    /// Starts the node again and brings the engagement to its end, with whatever a person has to say.
    fn go_on(&mut self, id: &str, faults: &mut Faults) -> Result<()> {
        loop {
            let state =
                self.come_to(id, &["completed", "awaiting-review", "outcome-unknown", "failed", "cancelled"])?;
            match state.get("status").and_then(Value::as_str).unwrap_or_default() {
                "completed" => return Ok(()),
                "awaiting-review" => self.approve(id)?,
                "outcome-unknown" => {
                    faults.note("calls whose outcome nobody knew");
                    // A person would look; here nobody says anything, and so nothing is done twice.
                    self.begun.insert(id.to_owned(), None);
                    return Ok(());
                }
                status => {
                    faults.tell(format!("{id} ended as {status}: {state}"));
                    return Ok(());
                }
            }
        }
    }

    fn begin(&mut self, whom: Whom, text: &str) -> Result<String> {
        let body = json!({"text": text}).to_string();
        let path = format!("/agents/{}", whom.name());
        let reply = self.node()?.line().send("POST", &path, body.as_bytes())?;
        let said: Value = serde_json::from_slice(&reply.body).context("no engagement was begun")?;
        ensure!(reply.status == 303, "{}: {said}", reply.status);
        Ok(said.get("engagement").and_then(Value::as_str).context("the engagement has no name")?.to_owned())
    }

    fn come_to(&mut self, id: &str, wanted: &[&str]) -> Result<Value> {
        let begun = super::start();
        loop {
            let state = self.node()?.get(&format!("/engagements/{id}?wait=5"));
            if let Ok(reply) = state {
                ensure!(reply.status == 200, "{id} is lost: status {}", reply.status);
                let state: Value = serde_json::from_slice(&reply.body)?;
                let status = state.get("status").and_then(Value::as_str).unwrap_or_default();
                if wanted.contains(&status) {
                    return Ok(state);
                }
            } else if !self.node()?.is_alive() {
                self.running = None;
            }
            ensure!(begun.elapsed() < PATIENCE, "{id} never came to {wanted:?}");
        }
    }

    fn approve(&mut self, id: &str) -> Result<()> {
        // The list of reviews shows so many, and calls that nobody settles here wait in it, too.
        let state = self.come_to(id, &["awaiting-review"])?;
        let url = self.node()?.url.clone();
        let review = match state.pointer("/review/id").and_then(Value::as_str) {
            Some(review) => review.to_owned(),
            // What waits is another agent's affair, and its owner's. One review waits at a time here.
            None => {
                let listed: Value =
                    serde_json::from_slice(&self.rialto(&["reviews", "list", "--json", "--to", &url])?)?;
                let mut listed =
                    listed.as_array().into_iter().flatten().filter_map(|review| review.get("id")?.as_str());
                listed.next().context("no review waits")?.to_owned()
            }
        };
        self.rialto(&["reviews", "approve", &review, "--to", &url]).map(|_| ())
    }

    /// Looks at everything that was ever begun, and at what the tool wrote.
    fn settle(&mut self, faults: &mut Faults) -> Result<()> {
        let mut effects: BTreeMap<String, usize> = BTreeMap::new();
        for line in fs::read_to_string(self.folder.join("effects")).unwrap_or_default().lines() {
            *effects.entry(line.to_owned()).or_default() += 1;
        }
        for (call, count) in &effects {
            if *count > 1 {
                faults.tell(format!("{call} had its effect {count} times"));
            }
        }
        faults.most("effects", effects.values().sum());
        let begun = self.begun.clone();
        for (id, wanted) in begun {
            let reply = self.node()?.get(&format!("/engagements/{id}"))?;
            if reply.status != 200 {
                faults.tell(format!("{id} is lost"));
            }
            let served = served(&id);
            let of_it = |call: &str| call.starts_with(&id) || call.starts_with(&served);
            let found = effects.iter().filter(|(call, _)| of_it(call)).map(|(_, count)| count).sum::<usize>();
            if wanted.is_some_and(|wanted| wanted != found) {
                faults.tell(format!("{id} had {found} effects"));
            }
            faults.note("engagements");
        }
        self.kill()
    }
}

/// The name of the engagement that serves the first call of another one.
fn served(id: &str) -> String {
    let digest = store::Hash::of(format!("rialto engagement\n{id}\n0").as_bytes());
    digest.to_string().chars().take(40).collect()
}

/// A program that kills the node where it is told to, and writes its call's name down where it has an effect.
fn script(folder: &Path, before: &[&str], effect: bool, after: &[&str], says: &str) -> String {
    let place = |name: &str| folder.join(name.replace(' ', "-")).display().to_string();
    // Whoever began the engagement has heard its name by then; the node waits for this program and does nothing else.
    let dies =
        |moment: &&str| format!("if rm '{}' 2>/dev/null; then sleep 0.2; kill -9 $PPID; exit 1; fi; ", place(moment));
    let mut script = "cat > /dev/null; ".to_owned();
    script.extend(before.iter().map(dies));
    if effect {
        script.push_str(&format!("echo \"$RIALTO_CALL_ID\" >> '{}'; ", place("effects")));
    }
    script.extend(after.iter().map(dies));
    script.push_str(&format!("echo '{says}'"));
    json!(["/bin/sh", "-c", script]).to_string()
}

fn configuration(folder: &Path) -> String {
    let write = script(folder, &["before the effect"], true, &["after the effect"], "{}");
    let look = script(folder, &["in a call that may be repeated"], false, &[], "{}");
    let input = script(folder, &["in the input guardrail"], false, &[], r#"{"safe": true}"#);
    let output = script(folder, &["in the output guardrail"], false, &[], r#"{"safe": true}"#);
    format!(
        r#"tools:
  write: {{kind: command, description: Writes., command: {write}}}
  look: {{kind: command, description: Looks., idempotent: true, command: {look}}}
  listen: {{kind: command, description: Judges., command: {input}}}
  proofread: {{kind: command, description: Judges., command: {output}}}
models:
  script:
    kind: scripted
    script:
      rules:
        - {{when: {{result_of: writer}}, text: Delegated.}}
        - {{when: {{offered: writer}}, calls: [{{tool: writer, inputs: {{text: write}}}}]}}
        - {{when: {{result_of: write}}, text: Written.}}
        - {{when: {{result_of: look}}, text: Looked.}}
        - {{when: {{contains: look}}, calls: [{{tool: look, inputs: {{}}}}]}}
        - {{when: {{contains: write}}, calls: [{{tool: write, inputs: {{}}}}]}}
model: script
"#
    )
}

fn document(owner: &str) -> String {
    format!(
        r"kind: openagentspec:v1/agent
name: writer
description: Writes when it may.
intent: You write.
owner: {owner}
capabilities:
  write: {{user_identity: false, input_restriction: {{require_review: owner}}}}
  look: {{user_identity: false}}
guardrails:
  input: {{tool_name: listen, assertion: safe}}
  output: {{tool_name: proofread, assertion: safe}}
"
    )
}

fn delegating(owner: &str) -> String {
    format!(
        r"kind: openagentspec:v1/agent
name: head
description: Has somebody write.
intent: You have it written.
owner: {owner}
capabilities:
  writer: {{user_identity: false}}
"
    )
}
