//! `rialto agent list|show`: the agents that a node hosts (OAS Server), and those of a folder for `agent run`.

use crate::failure::{Exit, Failure};
use crate::hosting;
use crate::output;
use crate::output::table::{Align, Cell, Table};
use crate::output::text::{json_line, shown};
use crate::peer::Destination;
use json::{Document, Limits, Value};
use node::{Client, Hosting, Reply};
use std::fs;
use std::path::Path;

/// List the agents that a node hosts
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto agent list --to https://node.example")]
pub(crate) struct List {
    #[command(flatten)]
    destination: Destination,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show the document of an agent that a node hosts, byte for byte
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto agent show receptionist")]
pub(crate) struct Show {
    /// The agent's name
    name: String,

    #[command(flatten)]
    destination: Destination,
}

impl List {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let reply = get(&self.destination, &["agents"])?;
        let listed = Document::parse(&reply.body, &Limits::OURS).map(|document| document.root().to_value());
        let listed = listed.map_err(|_| Failure::files("the node's list of agents is not understood"))?;
        if self.json {
            output::print(&json_line(&json::canonical_value(&listed)))?;
            return Ok(Exit::Fine);
        }
        let mut table = Table::new(0, &[("agent", Align::Left), ("owner", Align::Left), ("description", Align::Left)]);
        for agent in listed.get("agents").and_then(Value::as_array).into_iter().flatten() {
            let cell = |name: &str| Cell::from(shown(agent.get(name).and_then(Value::as_str).unwrap_or_default()));
            table.row(["name", "owner", "description"].into_iter().map(cell).collect());
        }
        output::print(&table.draw(output::width()))?;
        warn_of_withheld(&listed);
        Ok(Exit::Fine)
    }
}

/// Says which tools the agents cannot use, and what lets them.
fn warn_of_withheld(listed: &Value) {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    for agent in listed.get("agents").and_then(Value::as_array).into_iter().flatten() {
        for tool in agent.get("withheld_tools").and_then(Value::as_array).into_iter().flatten() {
            let (name, code, why) = (text(tool, "tool"), text(tool, "code"), text(tool, "message"));
            let remedy = match tool.get("approved") {
                Some(_) => format!("; once you have read it: rialto agent approve {name} {}", text(tool, "now")),
                None => String::new(),
            };
            output::warn(&format!("{} cannot use {name}: {why} ({code}){remedy}", text(agent, "name")));
        }
    }
}

impl Show {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let reply = get(&self.destination, &["agents", &self.name])?;
        let text = String::from_utf8(reply.body).map_err(|_| Failure::files("the document is no text"))?;
        output::print(&text)?;
        Ok(Exit::Fine)
    }
}

fn get(destination: &Destination, path: &[&str]) -> Result<Reply, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
    let failed = |error: node::ClientError| Failure::files(error.to_string()).help(error.advice());
    let reply = runtime.block_on(Client::new(&destination.to).map_err(failed)?.get(path)).map_err(failed)?;
    match reply.status {
        200 => Ok(reply),
        404 => Err(Failure::refused("the node hosts no such agent").help("`rialto agent list` shows those it hosts")),
        status => Err(Failure::files(format!("the node answers with status {status}"))),
    }
}

/// What is hosted to talk to the agent of one document: it, those beside it, and the configuration.
pub(super) fn read_hosting(file: &Path, config: Option<&Path>) -> Result<(Hosting, String), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let config = config.map_or_else(|| folder.join("host.yaml"), Path::to_owned);
    let mut hosting = hosting::hosting(&config)?;
    let bytes = fs::read(file).map_err(|error| Failure::io("read", file, &error))?;
    let agent = agent::Agent::read(&bytes).map_err(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        Failure::refused(found.join("\n")).at(file.display().to_string())
    })?;
    hosting.documents.push((file.display().to_string(), bytes));
    for path in hosting::documents(folder)? {
        let Ok(bytes) = fs::read(&path) else { continue };
        // A document that cannot be read is somebody else's business, as long as nobody refers to it.
        let Ok(other) = agent::Agent::read(&bytes) else { continue };
        if other.name != agent.name {
            hosting.documents.push((path.display().to_string(), bytes));
        }
    }
    Ok((hosting, agent.name.to_string()))
}
