//! `rialto describe FILE|URL`: what a description says, and what is to be said about it.

use super::{Found, verdict};
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::output::text::{json_line, shown};
use crate::output::{self, STRONG, count, paint};
use crate::{advice, clock};
use description::{
    Access, Activation, Call, Code, Definition, Findings, Mode, Operation, Origin, Reading, Refusal, Requirement,
};
use json::{Document, Limits, Pointer, Value, json, yaml};
use node::{Door, DoorPolicy, Errand, Line, Message};
use std::path::Path;
use std::time::Duration;

/// How long one exchange with a host may take.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub(crate) struct Check {
    /// A description or the definition of an interface: a file, `-`, or an http or https URL
    #[arg(required = true, value_name = "FILE|URL")]
    target: Option<String>,

    /// Judge by the letter of the text
    #[arg(long)]
    strict: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where a description was found, with the document of its DID where that could be had.
struct Fetched {
    url: String,
    did_document: Option<Document>,
}

impl Check {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mode = if self.strict { Mode::Strict } else { Mode::Lenient };
        let target = self.target.unwrap_or_default();
        let (text, fetched) = if description::is_web(&target) {
            let (text, fetched) = fetch(&target)?;
            (text, Some(fetched))
        } else {
            (Text::read(Path::new(&target))?, None)
        };
        if is_definition(&text) {
            return define(&text, mode, self.json);
        }
        let origin = fetched.as_ref().map(|fetched| Origin {
            url: &fetched.url,
            did_document: fetched.did_document.as_ref().map(Document::root),
        });
        let reading = description::read(&text.bytes, origin.as_ref()).map_err(|error| text.unreadable(error))?;
        let definitions = embedded(&reading);
        let mut found = vec![Found { text: &text, inside: Pointer::root(), findings: &reading.findings }];
        found.extend(definitions.iter().map(|(at, definition)| Found {
            text: &text,
            inside: at.clone(),
            findings: &definition.findings,
        }));
        let all: Vec<&Findings> = found.iter().map(|found| found.findings).collect();
        let shown = if self.json {
            as_json(&reading, &definitions, &found, origin.as_ref())
        } else {
            let findings: String = found.iter().map(|found| found.described(mode)).collect();
            format!("{findings}{}{}", about(&reading, &definitions, origin.as_ref()), verdict(&all, mode))
        };
        output::print(&shown)?;
        Ok(if all.iter().all(|findings| findings.passes(mode)) { Exit::Fine } else { Exit::No })
    }
}

/// Whether this is the definition of an interface and no description: no JSON, or with the marks of one.
fn is_definition(text: &Text) -> bool {
    match Document::parse(&text.bytes, &description::DEFINITION_LIMITS) {
        Ok(document) => {
            ["openapi", "openrpc", "swagger", "methods"].iter().any(|name| document.root().get(name).is_some())
        }
        Err(_) => [".yaml", ".yml"].iter().any(|end| text.name.ends_with(end)),
    }
}

/// The definitions that a description carries in itself, with their places.
fn embedded(reading: &Reading) -> Vec<(Pointer, Definition)> {
    let mut definitions = Vec::new();
    for at in reading.agent.interfaces.iter().filter_map(|interface| interface.content.as_ref()) {
        let Some(node) = at.find(reading.document().root()) else { continue };
        match Definition::read(node) {
            Ok(definition) => definitions.push((at.clone(), definition)),
            Err(refusal) => output::warn(&format!("what is embedded at `{at}` is not read: {}", refusal.detail)),
        }
    }
    definitions
}

/// Asks a host that the person at the terminal named, and then the host of the DID that was found there.
fn fetch(url: &str) -> Result<(Text, Fetched), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::files(format!("nothing can be sent: {error}")))?;
    runtime.block_on(async {
        let bytes = ask(url).await?;
        let text = Text { name: url.to_owned(), bytes };
        let did = description::read(&text.bytes, None).ok().and_then(|reading| reading.agent.did);
        let did_document = match did.and_then(|did| did.document_url()) {
            Some(address) => did_document(&address).await,
            None => None,
        };
        Ok((text, Fetched { url: url.to_owned(), did_document }))
    })
}

async fn ask(url: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |why: String| {
        let help = "check the address; somebody must serve the description there, and without sending you elsewhere";
        Failure::files(format!("`{url}` cannot be read: {why}")).help(help)
    };
    let line = Line::new(PATIENCE, Errand::Description.bytes_max()).map_err(|error| cannot(error.to_string()))?;
    let headers = [("accept", "application/json, application/ld+json, */*;q=0.5")];
    let message = Message { method: "GET", url, headers: &headers, body: None };
    let reply = line.exchange(&message).await.map_err(|error| cannot(error.to_string()))?;
    if reply.status != 200 {
        return Err(cannot(format!("the host answers {}", reply.status)));
    }
    Ok(reply.body)
}

/// The document of a DID; a stranger named its host, so the door decides whether it is asked.
async fn did_document(address: &str) -> Option<Document> {
    let door = Door::new(DoorPolicy::default()).ok()?;
    let fetched = door.fetch(Errand::DidDocument, address, clock::moment()).await;
    let read = match fetched {
        Ok(bytes) => Document::parse(&bytes, &Limits::DOCUMENT).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    read.map_err(|why| {
        output::note(&format!("the DID document cannot be had, so nobody knows whose word this is: {why}"))
    })
    .ok()
}

/// `rialto describe` for the definition of an interface.
fn define(text: &Text, mode: Mode, json: bool) -> Result<Exit, Failure> {
    let definition = Definition::parse(&text.bytes).map_err(|refusal| refused(text, &refusal))?;
    let found = Found { text, inside: Pointer::root(), findings: &definition.findings };
    let shown = if json {
        let value = json!({
            "format": definition.format.name(),
            "title": definition.title,
            "servers": definition.servers,
            "operations": definition.operations.iter().map(operation_value).collect::<Vec<_>>(),
            "findings": found.to_values(),
            "strict": definition.findings.passes(Mode::Strict),
            "lenient": definition.findings.passes(Mode::Lenient),
        });
        json_line(&json::canonical_value(&value))
    } else {
        let title = definition.title.as_deref().unwrap_or("an interface without a title");
        let head = format!("{}, {}\n", paint(STRONG, shown(title)), definition.format.name());
        let operations: String = definition.operations.iter().map(operation_line).collect();
        format!("{}{head}{operations}{}", found.described(mode), verdict(&[&definition.findings], mode))
    };
    output::print(&shown)?;
    Ok(if definition.findings.passes(mode) { Exit::Fine } else { Exit::No })
}

/// Why a document is no definition.
pub(super) fn refused(text: &Text, refusal: &Refusal) -> Failure {
    let position = match (refusal.code, refusal.position) {
        (_, Some(position)) => Some(position),
        (Code::Yaml(yaml::Code::Json(_)), None) => text.locate(&refusal.at),
        (_, None) => None,
    };
    let position = position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
    let code = refusal.code.name();
    let failure = Failure::refused(&refusal.detail).at(format!("{}{position}", text.name)).coded(code, &refusal.at);
    match advice::on(code) {
        Some(advice) => failure.help(advice),
        None => failure,
    }
}

fn operation_line(operation: &Operation) -> String {
    let params: Vec<String> = operation
        .params
        .iter()
        .map(|param| format!("{}{}", param.name, if param.required { "" } else { "?" }))
        .collect();
    let call = match &operation.call {
        Call::Rpc | Call::Words => String::new(),
        Call::Http { method, path } => format!("  {method} {path}"),
    };
    shown(&format!("  {}({}){call}", operation.name, params.join(", "))) + "\n"
}

fn operation_value(operation: &Operation) -> Value {
    let call = match &operation.call {
        Call::Rpc => json!({"by": "json-rpc"}),
        Call::Http { method, path } => json!({"by": "http", "method": method, "path": path}),
        Call::Words => json!({"by": "words"}),
    };
    json!({
        "name": operation.name, "at": operation.at.as_str(), "description": operation.description, "call": call,
        "params": operation.params_schema(), "result": operation.result,
    })
}

/// What access demands, in words.
fn demanded(access: &Access) -> String {
    match access {
        Access::Unspecified => "access unspecified".to_owned(),
        Access::Public => "public".to_owned(),
        Access::Denied => "access denied".to_owned(),
        Access::Demands(requirements) => format!("access by {}", all_of(requirements)),
    }
}

fn all_of(requirements: &[Requirement]) -> String {
    let word = |requirement: &Requirement| match requirement {
        Requirement::DidWba(_) => "didwba".to_owned(),
        Requirement::Other(scheme) => scheme.clone(),
        Requirement::OneOf(ways) => {
            let ways: Vec<String> =
                ways.iter().map(|way| if way.is_empty() { "nothing".into() } else { all_of(way) }).collect();
            format!("({})", ways.join(" or "))
        }
    };
    requirements.iter().map(word).collect::<Vec<_>>().join(" and ")
}

/// What the description says, in a few lines.
fn about(reading: &Reading, definitions: &[(Pointer, Definition)], origin: Option<&Origin<'_>>) -> String {
    let agent = &reading.agent;
    let name = agent.name.as_deref().unwrap_or("an agent without a name");
    let did = agent.did.as_ref().map(|did| format!(", {did}")).unwrap_or_default();
    let access = demanded(&reading.access(&Activation::Absent));
    let mut drawn =
        format!("{}{}, {}; {}\n", paint(STRONG, shown(name)), shown(&did), reading.form.name(), shown(&access));
    for interface in &agent.interfaces {
        let name = interface.name.as_deref().or(interface.description.as_deref()).unwrap_or("an interface");
        let (name, protocol) = (name.trim_end_matches('.'), interface.protocol.as_deref().unwrap_or("no protocol"));
        let access = demanded(&reading.access(&interface.security));
        drawn.push_str(&format!("  {}\n", shown(&format!("{name}, {protocol}; {access}"))));
        for (_, definition) in definitions.iter().filter(|(at, _)| Some(at) == interface.content.as_ref()) {
            drawn.extend(definition.operations.iter().map(|operation| format!("  {}", operation_line(operation))));
        }
    }
    if let Some(bound) = origin.map(|origin| origin.binds(agent)) {
        let words = match bound {
            Ok(()) => "its DID lists this address: the agent's own word",
            Err(_) => "its DID does not confirm this address",
        };
        drawn.push_str(&format!("  {words}\n"));
    }
    drawn.push_str(&format!("  {}\n", count(reading.links.len(), "link")));
    drawn
}

fn as_json(
    reading: &Reading,
    definitions: &[(Pointer, Definition)],
    found: &[Found<'_>],
    origin: Option<&Origin<'_>>,
) -> String {
    let agent = &reading.agent;
    let interfaces = agent.interfaces.iter().map(|interface| {
        let operations = definitions.iter().find(|(at, _)| Some(at) == interface.content.as_ref());
        json!({
            "at": interface.at.as_str(), "id": interface.id, "name": interface.name, "protocol": interface.protocol,
            "url": interface.url, "access": demanded(&reading.access(&interface.security)),
            "operations": operations.map(|(_, definition)| definition.operations.iter().map(operation_value).collect::<Vec<_>>()),
        })
    });
    let links =
        reading.links.iter().map(|link| json!({"kind": link.kind.name(), "at": link.at.as_str(), "url": link.url}));
    let passes = |mode| found.iter().all(|found| found.findings.passes(mode));
    let value = json!({
        "form": reading.form.name(),
        "name": agent.name,
        "did": agent.did.as_ref().map(ToString::to_string),
        "access": demanded(&reading.access(&Activation::Absent)),
        "bound": origin.map(|origin| origin.binds(agent).is_ok()),
        "interfaces": interfaces.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "findings": found.iter().flat_map(Found::to_values).collect::<Vec<_>>(),
        "omitted": found.iter().map(|found| found.findings.omitted()).sum::<usize>(),
        "strict": passes(Mode::Strict),
        "lenient": passes(Mode::Lenient),
    });
    json_line(&json::canonical_value(&value))
}

/// Reads a description that must be accepted by the letter, or says why it is not.
pub(super) fn strictly(text: &Text) -> Result<Reading, Failure> {
    let reading = description::read(&text.bytes, None).map_err(|error| text.unreadable(error))?;
    if reading.findings.passes(Mode::Strict) {
        return Ok(reading);
    }
    let found = Found { text, inside: Pointer::root(), findings: &reading.findings };
    output::say(found.described(Mode::Strict).trim_end());
    Err(Failure::refused(format!("`{}` is not accepted by the strict reader", text.name)).help("mend the errors above"))
}

/// A definition from a file.
pub(super) fn definition(path: &Path) -> Result<Definition, Failure> {
    let text = Text::read(path)?;
    let definition = Definition::parse(&text.bytes).map_err(|refusal| refused(&text, &refusal))?;
    if !definition.findings.passes(Mode::Lenient) {
        let found = Found { text: &text, inside: Pointer::root(), findings: &definition.findings };
        output::say(found.described(Mode::Lenient).trim_end());
        return Err(Failure::refused(format!("`{}` is no sound definition", files::name(path))));
    }
    Ok(definition)
}
