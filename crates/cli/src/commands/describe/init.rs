//! `rialto describe init`: a description from flags, from a definition, and for the rest from a short dialogue.

use super::check::{definition, strictly};
use super::spec::Spec;
use crate::clock;
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::output::text::json_lines;
use crate::output::{self};
use description::{Call, Definition, Draft, DraftDefinition, DraftInterface, DraftOwner};
use json::Instant;
use std::io::{BufRead, stdin};
use std::path::{Path, PathBuf};
use trust::{Did, Method};

/// Draft a description that every reader accepts
///
/// What no flag and no definition says is asked for, one line each; an empty line takes what stands in brackets. The
/// description names a did:wba: `did:wba:HOST` unless you say otherwise.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto describe init --url https://agent.example/ad.json --openrpc interface.json -o ad.json
  rialto describe init --url https://agent.example/ad.json --openapi openapi.yaml --owner 'Ferry Works' -o ad.json
  rialto describe init --url https://agent.example/agents/pilot/ad.json --agent pilot.yaml -o ad.json")]
pub(crate) struct Init {
    /// Where the description will be found
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// What people call the agent
    #[arg(long)]
    name: Option<String>,

    /// The agent's did:wba
    #[arg(long)]
    did: Option<String>,

    /// What it does
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Its version
    #[arg(long)]
    version: Option<String>,

    /// The language of the texts
    #[arg(long, value_name = "TAG", default_value = "en")]
    language: String,

    /// The organization it belongs to
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// An OpenRPC document, or a list of JSON-RPC methods, that defines an interface; embedded, too
    #[arg(long, value_name = "FILE")]
    openrpc: Vec<PathBuf>,

    /// An OpenAPI document that defines an interface
    #[arg(long, value_name = "FILE")]
    openapi: Vec<PathBuf>,

    /// A document that describes an interface in words
    #[arg(long, value_name = "FILE")]
    words: Vec<PathBuf>,

    /// An OpenAgentSpec file: its name, description, owner and capabilities are the agent's, its intent is an interface
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,

    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What a definition says that the description would say again.
#[derive(Default)]
struct Known {
    name: Option<String>,
    description: Option<String>,
    version: Option<String>,
}

impl Init {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut definitions = Vec::new();
        for (paths, kind) in
            [(&self.openrpc, Kind::OpenRpc), (&self.openapi, Kind::OpenApi), (&self.words, Kind::Words)]
        {
            for path in paths {
                definitions.push((path, kind, definition(path)?));
            }
        }
        let spec = self.agent.as_deref().map(Spec::read).transpose()?;
        let known = known(definitions.iter().map(|(_, _, definition)| definition));
        let mut lines = stdin().lock();
        let url = ask(self.url, None, "--url", "where will the description be found", &mut lines)?;
        if !description::is_web(&url) {
            return Err(
                Failure::usage("--url is no http or https address").help("write it like https://agent.example/ad.json")
            );
        }
        // What the file says needs no question.
        let (said_name, said_description) = match &spec {
            Some(spec) => (self.name.or(Some(spec.name.clone())), self.description.or(Some(spec.description.clone()))),
            None => (self.name, self.description),
        };
        let name = ask(said_name, known.name, "--name", "what do people call the agent", &mut lines)?;
        let description = ask(said_description, known.description, "--description", "what does it do", &mut lines)?;
        let usual = format!("did:wba:{}", authority(&url).replace(':', "%3A"));
        let did = did(&ask(self.did, Some(usual), "--did", "what is its DID", &mut lines)?)?;
        let interfaces: Result<Vec<_>, _> =
            definitions.iter().map(|(path, kind, definition)| interface(&url, path, *kind, definition)).collect();
        let mut interfaces = interfaces?;
        if let (Some(spec), Some(path)) = (&spec, &self.agent) {
            let file = file_name(path)?;
            interfaces.push(DraftInterface {
                name: spec.name.clone(),
                description: spec.intent.clone(),
                url: beside(&url, file),
                definition: DraftDefinition::Words,
            });
        }
        let services = spec.as_ref().map(|spec| spec.services(&url)).unwrap_or_default();
        let owner = self.owner.or(spec.map(|spec| spec.owner));
        let now = Instant::from_unix(clock::now().seconds(), 0);
        let draft = Draft {
            url,
            name,
            did,
            description,
            version: self.version.or(known.version),
            language: self.language,
            created: Some(now),
            modified: Some(now),
            owner: owner.map(|name| DraftOwner::Organization(name, None)),
            products: Vec::new(),
            services,
            interfaces,
        };
        let written = format!("{:#}", draft.write());
        strictly(&Text::carried("the draft", &written))?;
        files::write(self.output.as_deref(), &json_lines(&written))?;
        output::note("`rialto describe publish` lays it out for a web host; its DID document should list the address");
        Ok(Exit::Fine)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    OpenRpc,
    OpenApi,
    Words,
}

fn known<'a>(definitions: impl Iterator<Item = &'a Definition>) -> Known {
    definitions.fold(Known::default(), |known, definition| Known {
        name: known.name.or(definition.title.clone()),
        description: known.description.or(definition.description.clone()),
        version: known.version.or(definition.version.clone()),
    })
}

/// What was said, or what is known, or what the person answers.
fn ask(
    said: Option<String>,
    usual: Option<String>,
    flag: &str,
    question: &str,
    lines: &mut impl BufRead,
) -> Result<String, Failure> {
    if let Some(said) = said {
        return Ok(said);
    }
    let shown = usual.as_ref().map(|usual| format!(" [{usual}]")).unwrap_or_default();
    output::note(&format!("{question}?{shown}"));
    let answer = files::line(lines).map_err(|error| Failure::files(format!("no answer can be read: {error}")))?;
    let answer = answer.map(|line| String::from_utf8_lossy(&line).trim().to_owned()).filter(|line| !line.is_empty());
    answer.or(usual).ok_or_else(|| {
        Failure::usage(format!("{question}? nothing says it")).help(format!("answer, or give it with {flag}"))
    })
}

fn did(text: &str) -> Result<Did, Failure> {
    let did = Did::parse(text).map_err(|error| Failure::usage(format!("--did: {error}")))?;
    if did.method() != Method::Wba {
        return Err(Failure::usage("the text knows did:wba only").help("give a did:wba with --did"));
    }
    Ok(did)
}

/// Host and port of a URL.
fn authority(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

fn interface(agent: &str, path: &Path, kind: Kind, definition: &Definition) -> Result<DraftInterface, Failure> {
    let file = file_name(path)?;
    let by_rpc = definition.operations.iter().any(|operation| operation.call == Call::Rpc);
    let written = match kind {
        Kind::OpenRpc if !by_rpc => {
            let failure = Failure::refused(format!("`{}` has no method of JSON-RPC", path.display()));
            return Err(failure.help("give OpenAPI with --openapi, and interfaces in words with --words"));
        }
        Kind::OpenRpc => DraftDefinition::OpenRpc(definition.to_openrpc()),
        Kind::OpenApi => DraftDefinition::OpenApi,
        Kind::Words => DraftDefinition::Words,
    };
    let name = definition.title.clone().unwrap_or_else(|| file.to_owned());
    let description = definition.description.clone().unwrap_or_else(|| match definition.operations.as_slice() {
        [] => name.clone(),
        operations => operations.iter().take(5).map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
    });
    Ok(DraftInterface { name, description, url: beside(agent, file), definition: written })
}

/// The name under which a file lies beside the description.
fn file_name(path: &Path) -> Result<&str, Failure> {
    path.file_name().and_then(|name| name.to_str()).filter(|name| is_plain(name)).ok_or_else(|| {
        Failure::usage(format!("the name of `{}` cannot stand in an address", path.display()))
            .help("use letters, digits, `-`, `_` and `.`")
    })
}

fn beside(agent: &str, file: &str) -> String {
    let folder = agent.rsplit_once('/').map_or(agent, |(folder, _)| folder);
    format!("{folder}/{file}")
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
