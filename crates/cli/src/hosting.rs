//! The folder of hosted agents: documents, and beside them what the operator gives.
//!
//! Every `.yaml` file is the document of an agent, but for `host.yaml` (tools, credentials, models, budgets) and
//! `people.yaml` (who is who: a list of `did`, `id`, `email`).

use crate::environment;
use crate::failure::Failure;
use host::Configuration;
use json::yaml;
use node::{Hosting, Person};
use std::fs;
use std::path::{Path, PathBuf};

/// The operator's file about tools and models.
const HOST: &str = "host.yaml";
/// Who is who.
const PEOPLE: &str = "people.yaml";

/// Which agents a node hosts.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct HostedAgents {
    /// Host the agents whose OpenAgentSpec documents lie in this folder, `.yaml` each
    #[arg(long, value_name = "DIR")]
    agents: Option<PathBuf>,

    /// Tools, credentials, models and budgets of hosted agents [default: host.yaml in the folder of the agents]
    #[arg(long, value_name = "FILE", requires = "agents")]
    agents_config: Option<PathBuf>,

    /// Let somebody who proves nothing begin an engagement; whoever has its address can then read it
    #[arg(long, requires = "agents")]
    agents_for_strangers: bool,
}

impl HostedAgents {
    /// What is to be hosted; nothing where no folder is named.
    pub(crate) fn read(&self) -> Result<Option<Hosting>, Failure> {
        let Some(folder) = &self.agents else { return Ok(None) };
        let config = self.agents_config.clone().unwrap_or_else(|| folder.join(HOST));
        let mut hosting = hosting(&config)?;
        hosting.people = people(&folder.join(PEOPLE))?;
        hosting.strangers = self.agents_for_strangers;
        for path in documents(folder)? {
            let bytes = fs::read(&path).map_err(|error| Failure::io("read", &path, &error))?;
            hosting.documents.push((path.display().to_string(), bytes));
        }
        Ok(Some(hosting))
    }
}

/// What an operator's file gives, and no agents yet.
pub(crate) fn hosting(config: &Path) -> Result<Hosting, Failure> {
    let bytes = fs::read(config).map_err(|error| {
        Failure::io("read", config, &error).help("hosted agents need a file of tools and models: docs/engagements.md")
    })?;
    let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let configuration = Configuration::read(&bytes, folder, &environment::variable)
        .map_err(|error| Failure::files(format!("{}: {error}", config.display())))?;
    let allowed = configuration.engagements();
    let options = agent::Options {
        ask_user: allowed.ask_user,
        lends_to_strangers: allowed.lends_to_strangers,
        denial_ends: allowed.denial_ends,
        ..agent::Options::default()
    };
    Ok(Hosting { configuration, documents: Vec::new(), people: Vec::new(), options, strangers: false })
}

/// The documents in a folder, in the order of their names.
pub(crate) fn documents(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: &std::io::Error| Failure::io("read", folder, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
        let is_document = path.file_name().is_some_and(|name| name != HOST && name != PEOPLE);
        if is_yaml && is_document {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn people(path: &Path) -> Result<Vec<Person>, Failure> {
    let Ok(bytes) = fs::read(path) else { return Ok(Vec::new()) };
    let wrong = |detail: &str| Failure::files(format!("{}: {detail}", path.display()));
    let read = yaml::parse(&bytes, &json::Limits::DOCUMENT).map_err(|refusal| wrong(&refusal.detail))?;
    let list = read.document.root().to_value();
    let list = list.as_array().ok_or_else(|| wrong("a list of people is expected, each with `did`, `id`, `email`"))?;
    let mut people = Vec::new();
    for person in list {
        let text = |name: &str| person.get(name).and_then(json::Value::as_str).map(str::to_owned);
        let did = text("did").ok_or_else(|| wrong("somebody has no `did`"))?;
        people.push(Person { did, id: text("id"), email: text("email") });
    }
    Ok(people)
}
