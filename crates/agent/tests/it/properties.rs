//! OAS Engagement: what holds in every engagement, whatever the document, the model, the tools and the reviewers do.
//!
//! Everything that comes from a tool or is said carries a mark of its own, so that it can be looked for everywhere.

use agent::{
    Agent, Begun, Decision, Effect, Engagement, Failure, Function, Identity, Message, Name, NameRule, Next, Outcome,
    Place, ProposedCall, Registry, Stage, Step, Target, Tool, Transcript, User, World, memory, messages, next, play,
};
use json::{Value, json};
use proptest::prelude::*;

/// Choices, one after the other; always the first when none is left.
struct Dice {
    rolls: Vec<u8>,
    at: usize,
}

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        let roll = self.rolls.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(roll) % sides
    }
}

const TOOLS: [&str; 3] = ["alpha", "beta", "gamma"];

/// What expressions are made of.
const WORDS: [&str; 40] = [
    "recent",
    "history",
    ".a-b",
    ".[0]",
    "[0]",
    ".inputs",
    ".l",
    "user",
    ".id",
    "'x'",
    "1",
    "0.5",
    "true",
    "null",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ": ",
    ", ",
    " && ",
    " || ",
    " == ",
    " + ",
    " < ",
    " in ",
    " ? ",
    "!",
    "-",
    ".all(x, ",
    ".map(x, ",
    ".exists(x, ",
    "x",
    "has(",
    "size(",
    ".?",
    "started_at",
    "._total",
];

fn document(dice: &mut Dice) -> String {
    let mut text =
        "kind: openagentspec:v1/agent\nname: a\ndescription: An a.\nintent: You a.\nowner: o\ncapabilities:\n"
            .to_owned();
    for tool in TOOLS {
        let assertions = ["true", "false", "recent.KEY.inputs.n < 2", "size(history.KEY) < 2", "nothing"];
        let outputs =
            ["true", "recent.KEY.outputs.open", "!recent.KEY.outputs.open", "nothing", "recent._name == 'KEY'"];
        let part = |name: &str, chosen: &str, review: usize| {
            let review = ["", ", require_review: owner", ", require_review: user"][review];
            format!(", {name}_restriction: {{assertion: \"{}\"{review}}}", chosen.replace("KEY", tool))
        };
        let input = part("input", assertions[dice.roll(5)], dice.roll(3));
        let output = part("output", outputs[dice.roll(5)], dice.roll(3));
        let collect = dice.roll(3) > 0;
        text.push_str(&format!("  {tool}: {{collect_results: {collect}{input}{output}}}\n"));
    }
    let guards = ["", "  input: {tool_name: guard, assertion: ok}\n", "  output: {tool_name: guard, assertion: ok}\n"];
    let guards = match dice.roll(4) {
        3 => format!("{}{}", guards[1], guards[2]),
        one => guards[one].to_owned(),
    };
    if !guards.is_empty() {
        text.push_str(&format!("guardrails:\n{guards}"));
    }
    text.push_str("exposes: {all: history, last: recent}\n");
    text.push_str(["", "lifespan: {short_circuit: 2}\n", "lifespan: {retain_memory: false}\n"][dice.roll(3)]);
    text
}

/// Everybody does as the dice fall.
struct Chance {
    dice: Dice,
    marks: usize,
    messages: Vec<Message>,
    order: Vec<&'static str>,
}

impl Chance {
    fn mark(&mut self) -> String {
        self.marks += 1;
        format!("mark-{}-", self.marks)
    }
}

impl World for Chance {
    fn model(&mut self, messages: &[Message], _: &[Function]) -> (Option<String>, Vec<ProposedCall>) {
        self.order.push("model");
        self.messages.extend_from_slice(messages);
        let calls = (0..self.dice.roll(4)).map(|position| {
            let name = ["alpha", "beta", "gamma", "ask_user", "nobody"][self.dice.roll(5)].to_owned();
            let arguments = match self.dice.roll(4) {
                0 => "{}".to_owned(),
                1 => "nonsense".to_owned(),
                _ => json!({"n": self.dice.roll(4), "question": "which?"}).to_string(),
            };
            ProposedCall { id: format!("{position}"), name, arguments }
        });
        let calls = calls.collect();
        (Some(self.mark()), calls)
    }

    fn call(&mut self, _: &Target, _: &Value, _: &Identity) -> Outcome {
        self.order.push("tool");
        let mark = self.mark();
        match self.dice.roll(5) {
            0 => Outcome::Error(mark),
            roll => Outcome::Output(json!({"open": roll > 2, "mark": mark})),
        }
    }

    fn guard(&mut self, _: &str, _: &Value) -> Outcome {
        self.order.push("guard");
        match self.dice.roll(8) {
            0 => Outcome::Output(json!({"ok": false})),
            1 => Outcome::Error("down".to_owned()),
            _ => Outcome::Output(json!({"ok": true})),
        }
    }

    fn review(&mut self, _: &str, _: Stage, _: &str) -> Option<Decision> {
        match self.dice.roll(6) {
            0 => None,
            1 => Some(Decision::Rejected),
            2 => Some(Decision::Expired),
            _ => Some(Decision::Approved),
        }
    }
}

fn registry(ask_user: bool) -> Registry {
    let mut registry = Registry::default();
    for name in TOOLS.iter().chain(&["guard"]) {
        let schema = json!({"type": "object"});
        let check = crate::corpus::compile(&schema).unwrap();
        registry.add_tool(&Name::read(name, NameRule::Text).unwrap(), Tool::new("", schema, check)).unwrap();
    }
    registry.options.ask_user = ask_user;
    registry
}

/// Marks of outputs that nobody released, and of those that are not collected.
fn secrets(engagement: &Engagement, agent: &Agent) -> (Vec<String>, Vec<String>) {
    let (mut withheld, mut uncollected) = (Vec::new(), Vec::new());
    for step in engagement.steps() {
        let Step::Returned { call, outcome } = step else { continue };
        let mark = match outcome {
            Outcome::Output(value) => value["mark"].as_str().unwrap().to_owned(),
            Outcome::Error(mark) => mark.clone(),
        };
        let made = &engagement.calls()[*call];
        if made.released().is_none() {
            withheld.push(mark);
        } else if !agent.capability(made.capability.as_ref().unwrap()).unwrap().collect_results {
            uncollected.push(mark);
        }
    }
    (withheld, uncollected)
}

fn told(engagement: &Engagement) -> String {
    let shown = |step: &Step| match step {
        Step::Answered { text, exposes, .. } | Step::Asked { text, exposes, .. } => {
            Some(json!([text, exposes]).to_string())
        }
        _ => None,
    };
    engagement.steps().iter().filter_map(shown).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_unreleased_gets_anywhere_and_nothing_runs_after_a_failed_guardrail(
        rolls in prop::collection::vec(any::<u8>(), 0..160), ask_user: bool,
    ) {
        let mut dice = Dice { rolls, at: 0 };
        let agent = Agent::read(document(&mut dice).as_bytes()).unwrap();
        let registry = registry(ask_user);
        let mut world = Chance { dice, marks: 0, messages: Vec::new(), order: Vec::new() };
        let mut engagement = Engagement::begin(Begun {
            id: "e".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            agent: "a".to_owned(),
            document: agent.digest().to_owned(),
            user: Some(User { id: "u".to_owned(), email: None }),
            ..Begun::default()
        });
        let mut said = Vec::new();
        for _ in 0..3 {
            let text = world.mark();
            if engagement.record(Step::UserSaid { text: text.clone() }).is_err() {
                break;
            }
            let before = world.messages.len();
            play(&agent, &registry, &mut engagement, &mut world).unwrap();
            said.push((text, before));
        }

        let (mut again, mut transcript, mut piecemeal) =
            (Engagement::begin(engagement.begun().clone()), Transcript::default(), Vec::new());
        for step in engagement.steps().iter().skip(1) {
            if let Next::Perform(Effect::CallModel { .. }) = next(&agent, &registry, &again) {
                piecemeal.extend(transcript.more(&agent, &again));
                prop_assert_eq!(&piecemeal, &messages(&agent, &again), "what was told before a turn stays as it was");
            }
            again.record(step.clone()).unwrap();
        }

        let messages = json!(world.messages).to_string();
        let shown = told(&engagement);
        let object = engagement.object(&agent).to_string();
        let remembered = json!(memory(&agent, &engagement)).to_string();
        let (withheld, uncollected) = secrets(&engagement, &agent);
        for mark in &withheld {
            for (place, text) in [("model", &messages), ("caller", &shown), ("object", &object), ("memory", &remembered)] {
                prop_assert!(!text.contains(mark.as_str()), "{} reached the {}", mark, place);
            }
        }
        for mark in &uncollected {
            prop_assert!(messages.contains(mark.as_str()) || engagement.failure().is_some() || !shown.contains(mark.as_str()));
            prop_assert!(!object.contains(mark.as_str()) && !shown.contains(mark.as_str()));
        }

        let guarded = matches!(engagement.failure(), Some(Failure::GuardrailFailed | Failure::GuardrailUnavailable));
        if guarded {
            prop_assert_eq!(world.order.last().copied(), Some("guard"));
            prop_assert!(engagement.answer().is_none());
            let last = engagement.steps().iter().rev().find_map(|step| match step {
                Step::GuardrailReturned { place, .. } => Some(*place),
                _ => None,
            });
            if last == Some(Place::Input) {
                let (text, _) = said.last().unwrap();
                prop_assert!(!messages.contains(text.as_str()), "an input that failed reached the model");
            }
            prop_assert_eq!(next(&agent, &registry, &engagement), Next::Over);
            prop_assert!(memory(&agent, &engagement).is_empty());
        }

        let journal: Vec<String> = engagement.steps().iter().map(|step| serde_json::to_string(step).unwrap()).collect();
        let steps: Vec<Step> = journal.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        for end in 1..=steps.len() {
            let half = Engagement::fold(steps[..end].to_vec()).unwrap();
            let decided = next(&agent, &registry, &half);
            if let (Next::Record(step), Some(recorded)) = (&decided, steps.get(end)) {
                prop_assert_eq!(step, recorded, "a restart decides as before");
            }
        }
        let again = Engagement::fold(steps).unwrap();
        prop_assert_eq!(again.object(&agent), engagement.object(&agent));
        prop_assert_eq!(next(&agent, &registry, &again), next(&agent, &registry, &engagement));
    }

    #[test]
    fn expressions_made_of_words_end_and_say_the_same_twice(words in prop::collection::vec(0..WORDS.len(), 1..24)) {
        let text: String = words.iter().map(|word| WORDS[*word]).collect();
        let object = json!({
            "started_at": "2026-01-01T00:00:00Z", "user": {"id": "u"},
            "recent": {"a-b": {"inputs": {"l": [1, 2, 3]}}}, "history": {"a-b": [{"inputs": {}}], "_total": 1},
        });
        if let Ok(assertion) = agent::Assertion::read(&text, &["a-b", "crm"]) {
            let held = assertion.holds(&object);
            prop_assert_eq!(&held, &assertion.holds(&object));
            if held.is_ok() {
                prop_assert_eq!(assertion.select(&object), Ok(json!(true)));
            }
        }
    }

    #[test]
    fn rubbish_is_read_or_refused(text in ".{0,200}") {
        let _ = Agent::read(text.as_bytes());
        let assertion = agent::Assertion::read(&text, &["a-b", "crm"]);
        if let Ok(assertion) = assertion {
            let _ = assertion.holds(&json!({"recent": {"a-b": 1}, "history": {}}));
        }
    }
}
