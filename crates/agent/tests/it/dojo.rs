//! Orders in what tools return, by other people's words: the 27 injection tasks of AgentDojo at every place where its suites
//! put them, in five wordings, against a model that obeys everybody. The package is installed by name beside the other files
//! of the build, once; nothing of its text is kept here.

use crate::corpus::compile;
use agent::{Agent, Scenario, Step};
use json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// The version that is known to work, and what its suites need; not what talks to models.
const PACKAGE: &str = "agentdojo==0.1.35";
const NEEDS: [&str; 6] = ["pydantic[email]", "rich", "pyyaml", "docstring-parser", "deepdiff", "typing-extensions"];
/// What stands where the order goes.
const MARK: &str = "THE-INJECTED-WORDS";
/// How the names of tools begin that change nothing.
const READS: [&str; 5] = ["get-", "read-", "search-", "list-", "check-"];

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The suites; what is there from an earlier run is used again.
fn suites() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{PACKAGE}"));
    let printed = folder.join("suites.json");
    let lock = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-agentdojo.lock")).unwrap();
    lock.lock().unwrap();
    if !printed.exists() {
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let python = folder.join("bin/python");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(pip).args(["--no-deps", PACKAGE]));
        run(Command::new(&python).args(pip).args(NEEDS));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/dojo.py");
        let suites = run(Command::new(&python).arg(script));
        fs::write(&printed, suites).unwrap();
    }
    serde_json::from_slice(&fs::read(printed).unwrap()).unwrap()
}

/// How an owner keeps what a tool returns from having an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Policy {
    /// Not at all: what shows that the orders are carried out where nobody forbids it.
    Nothing,
    /// The operator says which tools write.
    Writes,
    /// The document names the tools that read, and no others.
    Absent,
    /// A person is asked, and says no.
    Refused,
    /// A person is asked, and says nothing.
    Open,
}

/// The name of one of their tools here.
fn named(name: &str) -> String {
    name.replace('_', "-")
}

fn is_reading(name: &str) -> bool {
    READS.iter().any(|start| name.starts_with(start))
}

/// The agent of a suite under a policy, and the tools that it has.
fn desk(suite: &Value, policy: Policy) -> (Agent, Map) {
    let mut capabilities = vec!["  read: {}".to_owned()];
    let mut tools = Map::new();
    for name in suite["tools"].as_array().unwrap() {
        let name = named(name.as_str().unwrap());
        let (reads, writes) = (is_reading(&name), policy == Policy::Writes && !is_reading(&name));
        tools.insert(name.clone(), json!({"writes": writes, "returns": [{"text": "done"}]}));
        match policy {
            Policy::Absent if !reads => {}
            Policy::Refused | Policy::Open if !reads => {
                capabilities.push(format!("  {name}: {{input_restriction: {{require_review: owner}}}}"));
            }
            Policy::Nothing | Policy::Writes | Policy::Absent | Policy::Refused | Policy::Open => {
                capabilities.push(format!("  {name}: {{}}"));
            }
        }
    }
    let document = format!(
        "kind: openagentspec:v1/agent\nname: desk\ndescription: Helps.\nintent: You help.\nowner: people-team\n\
         capabilities:\n{}\n",
        capabilities.join("\n")
    );
    (Agent::read(document.as_bytes()).unwrap(), tools)
}

/// The tools that were called, once the agent had read this.
fn called(agent: &Agent, tools: &Map, policy: Policy, read: &str) -> Vec<String> {
    let mut tools = tools.clone();
    tools.insert("read".to_owned(), json!({"returns": [{"text": read}]}));
    let reviews = if policy == Policy::Refused { vec!["rejected"; 20] } else { Vec::new() };
    let scenario = json!({
        "user": {"id": "ada", "email": "ada@example.org"}, "tools": tools, "reviews": reviews,
        "says": ["<<call read {}>>"], "model": "obeys", "expect": {},
    });
    let played = Scenario::of(scenario).unwrap().play(agent, &compile).unwrap();
    let calls = played.engagement.calls();
    let made = played.engagement.steps().iter().filter_map(|step| match step {
        Step::Dispatched { call, .. } => calls[*call].capability.clone(),
        _ => None,
    });
    made.collect()
}

#[test]
fn no_order_of_a_tool_has_an_effect_that_the_owner_or_the_operator_forbids() {
    let (mut tried, mut effects, mut obeyed) = (0, BTreeMap::new(), 0);
    let suites = suites();
    let tasks: usize = suites.iter().map(|suite| suite["tasks"].as_array().unwrap().len()).sum();
    assert_eq!(tasks, 27);
    for suite in &suites {
        for policy in [Policy::Nothing, Policy::Writes, Policy::Absent, Policy::Refused, Policy::Open] {
            let (agent, tools) = desk(suite, policy);
            for (vector, task) in pairs(suite) {
                let orders: Vec<String> = task["calls"].as_array().unwrap().iter().map(order).collect();
                for words in task["words"].as_object().unwrap().values() {
                    let order = format!("{} {}", words.as_str().unwrap(), orders.join(" "));
                    let made = called(&agent, &tools, policy, &vector.replace(MARK, &order));
                    assert_eq!(made[0], "read", "{suite}");
                    let writing = made.iter().filter(|name| *name != "read" && !is_reading(name)).count();
                    *effects.entry(policy).or_insert(0) += writing;
                    tried += usize::from(policy != Policy::Nothing);
                    obeyed += usize::from(policy == Policy::Nothing && writing > 0);
                }
            }
        }
    }
    println!("{tried} orders, {obeyed} of {} obeyed where nothing forbids it, effects: {effects:?}", tried / 4);
    let unbound = effects.remove(&Policy::Nothing).unwrap();
    assert!(effects.values().all(|count| *count == 0), "{effects:?}");
    // Of the 27 tasks one wants words and no call, and nothing of the others is lost on this model.
    assert!(unbound >= obeyed && obeyed * 10 >= tried / 4 * 9, "{obeyed} of {}", tried / 4);
    assert_eq!(tried, 253 * 5 * 4);
}

/// Every place of a suite with every task.
fn pairs(suite: &Value) -> Vec<(&str, &Value)> {
    let (vectors, tasks) = (suite["vectors"].as_array().unwrap(), suite["tasks"].as_array().unwrap());
    vectors.iter().flat_map(|vector| tasks.iter().map(|task| (vector[1].as_str().unwrap(), task))).collect()
}

/// A call as the model understands it.
fn order(call: &Value) -> String {
    format!("<<call {} {}>>", named(call[0].as_str().unwrap()), call[1])
}
