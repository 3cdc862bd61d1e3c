//! `rialto describe publish --static DIR`: descriptions as plain files that any web host can serve.
//!
//! INVARIANT: nothing is written unless everything can be, and nothing outside the folder.

use super::check::strictly;
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::output::text::json_lines;
use crate::output::{self, count};
use description::{Interface, Item, Origin, Reading, Unbound, WELL_KNOWN, pages, same_origin};
use json::{Document, Limits};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trust::Did;

/// Lay descriptions out as plain files for any web host
///
/// Each description goes where its `@id` says, the definitions of its interfaces beside it (those that are embedded, and
/// files of the same name beside the description), and the list of all to `/.well-known/agent-descriptions`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto describe publish ad.json --static public/ --did-document did.json

Only descriptions that the strict reader accepts are laid out. Serve JSON files as `application/json`.")]
pub(crate) struct Publish {
    /// Descriptions, all of one host
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The folder that the web host serves as its root
    #[arg(long = "static", value_name = "DIR")]
    folder: PathBuf,

    /// The document of a DID that the descriptions name; laid out where the DID says
    #[arg(long, value_name = "FILE")]
    did_document: Vec<PathBuf>,

    /// Descriptions on one page of the list
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    per_page: u16,
}

/// What will be written: by its path below the folder.
type Plan = BTreeMap<String, Vec<u8>>;

impl Publish {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut plan = Plan::new();
        let mut described: Vec<(String, Reading)> = Vec::new();
        for path in &self.files {
            let text = Text::read(path)?;
            let reading = strictly(&text)?;
            let url = address(&text, &reading)?;
            if described.first().is_some_and(|(first, _)| !same_origin(first, &url)) {
                return Err(Failure::refused(format!("`{}` belongs to another host than the first", text.name))
                    .help("publish the descriptions of each host into a folder of its own"));
            }
            put(&mut plan, place(&url)?, text.bytes.clone())?;
            for interface in &reading.agent.interfaces {
                definition(&mut plan, path, &url, interface, &reading)?;
            }
            described.push((url, reading));
        }
        list(&mut plan, &described, usize::from(self.per_page))?;
        for path in &self.did_document {
            did_document(&mut plan, path, &described)?;
        }
        write(&plan, &self.folder)?;
        output::print(&plan.keys().map(|path| format!("{path}\n")).collect::<String>())?;
        output::note(&format!("wrote {} to {}", count(plan.len(), "file"), self.folder.display()));
        output::note("serve all but YAML as `application/json`, also the list, whose name has no ending");
        Ok(Exit::Fine)
    }
}

/// Where a description says that it is found.
fn address(text: &Text, reading: &Reading) -> Result<String, Failure> {
    reading.agent.id.clone().filter(|id| description::is_web(id)).ok_or_else(|| {
        Failure::refused(format!("`{}` does not say where it is found", text.name))
            .help("give it an `@id` that is an https address")
    })
}

/// The path of a URL below the root of its host, if it is one that every host serves from a file.
fn place(url: &str) -> Result<String, Failure> {
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    let plain = |segment: &str| {
        let letters = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
        letters && !segment.is_empty() && segment != "." && segment != ".."
    };
    if path.split('/').all(plain) {
        return Ok(path.to_owned());
    }
    Err(Failure::refused(format!("`{url}` is no address of a plain file"))
        .help("use letters, digits, `-`, `_`, `.` and `~` in the path, and neither query nor fragment"))
}

fn put(plan: &mut Plan, path: String, bytes: Vec<u8>) -> Result<(), Failure> {
    let below = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    if plan.keys().any(|planned| below(planned, &path) || below(&path, planned)) {
        return Err(Failure::refused(format!("`{path}` would be a file and a folder")));
    }
    match plan.get(&path) {
        Some(planned) if *planned != bytes => Err(Failure::refused(format!("two documents want to be `{path}`"))),
        _ => {
            plan.insert(path, bytes);
            Ok(())
        }
    }
}

/// The definition of an interface: embedded, or a file of its name beside the description.
fn definition(
    plan: &mut Plan,
    file: &Path,
    agent: &str,
    interface: &Interface,
    reading: &Reading,
) -> Result<(), Failure> {
    let link = reading.links.iter().find(|link| link.at == interface.at.child("url"));
    let Some(url) = link.map(|link| &link.url).filter(|url| same_origin(url, agent)) else { return Ok(()) };
    let path = place(url)?;
    let embedded = interface.content.as_ref().and_then(|at| at.find(reading.document().root()));
    let name = path.rsplit('/').next().unwrap_or_default();
    let beside = file.with_file_name(name);
    if beside.is_file() && !files::is_stream(file) {
        return put(plan, path, Text::read(&beside)?.bytes);
    }
    match embedded {
        Some(content) => put(plan, path, json_lines(&format!("{:#}", content.to_value())).into_bytes()),
        None if plan.contains_key(&path) => Ok(()),
        None => {
            output::warn(&format!("nobody wrote `{name}`, which an interface names; put it beside the description"));
            Ok(())
        }
    }
}

/// The list of all descriptions, page by page (ANP-08).
fn list(plan: &mut Plan, described: &[(String, Reading)], per_page: usize) -> Result<(), Failure> {
    let item =
        |(url, reading): &(String, Reading)| Item { url: url.clone(), name: reading.agent.name.clone(), handle: None };
    let items: Vec<Item> = described.iter().map(item).collect();
    let origin: String =
        items.first().map(|item| item.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")).unwrap_or_default();
    // A plain host knows no queries, so every page is a file.
    let address = |number: usize| match number {
        1 => format!("{origin}{WELL_KNOWN}"),
        _ => format!("{origin}{WELL_KNOWN}-{number}"),
    };
    for (url, page) in pages(&items, per_page, address) {
        put(plan, place(&url)?, json_lines(&format!("{page:#}")).into_bytes())?;
    }
    Ok(())
}

/// A DID document, where its DID says; and whether it lists the descriptions that name it.
fn did_document(plan: &mut Plan, path: &Path, described: &[(String, Reading)]) -> Result<(), Failure> {
    let text = Text::read(path)?;
    let document: Document = text.document(&Limits::DOCUMENT)?;
    let id = document.root().get("id").and_then(|id| id.as_str()).and_then(|id| Did::parse(id).ok());
    let address = id.as_ref().and_then(Did::document_url);
    let near = address.filter(|address| described.iter().any(|(url, _)| same_origin(url, address)));
    let Some(address) = near else {
        return Err(Failure::refused(format!("`{}` is no DID document of this host", text.name))
            .help("give the document of a did:wba or did:web on the host of the descriptions"));
    };
    for (url, reading) in described.iter().filter(|(_, reading)| reading.agent.did == id) {
        let origin = Origin { url, did_document: Some(document.root()) };
        if origin.binds(&reading.agent) == Err(Unbound::NotListed) {
            output::warn(&format!(
                "the DID document does not list {url}; add the service {{\"type\": \"AgentDescription\", \"serviceEndpoint\": \"{url}\"}}"
            ));
        }
    }
    put(plan, place(&address)?, text.bytes.clone())
}

fn write(plan: &Plan, folder: &Path) -> Result<(), Failure> {
    for (path, bytes) in plan {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| Failure::io("make", parent, &error))?;
        }
        std::fs::write(&path, bytes).map_err(|error| Failure::io("write", &path, &error))?;
    }
    Ok(())
}
