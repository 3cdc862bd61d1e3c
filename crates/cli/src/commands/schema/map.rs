//! `rialto schema map`: mappings applied, turned round, joined, signed, verified and tested (RFC 0024 §3.3).

use super::File;
use crate::failure::{Exit, Failure};
use crate::keys::KeyChoice;
use crate::output::text::{json_line, json_lines, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, count, paint};
use crate::{clock, files};
use json::{Limits, Value, json};
use schema::{Loss, Mapping, Publishers};
use std::path::PathBuf;
use trust::{Did, DidDocument};

/// Work with mappings between versions
#[derive(clap::Subcommand)]
pub(crate) enum Map {
    Apply(Apply),
    Invert(Invert),
    Compose(Compose),
    Sign(Sign),
    Verify(Verify),
    Test(Test),
}

impl Map {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Apply(command) => command.run(),
            Self::Invert(command) => command.run(),
            Self::Compose(command) => command.run(),
            Self::Sign(command) => command.run(),
            Self::Verify(command) => command.run(),
            Self::Test(command) => command.run(),
        }
    }
}

/// Translate a document; what is lost is told
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto schema map apply spec/families/a2a-card-0.3-to-1.0.json card.json \\
    --conforms-to spec/families/a2a-card-1.0.schema.json")]
pub(crate) struct Apply {
    /// The mapping
    mapping: PathBuf,

    /// The document; `-` for standard input
    document: PathBuf,

    /// Go back instead
    #[arg(long)]
    back: bool,

    /// Refuse a result that does not conform to this schema
    #[arg(long, value_name = "SCHEMA")]
    conforms_to: Option<PathBuf>,

    /// Print the document and the losses as one JSON document
    #[arg(long)]
    json: bool,
}

impl Apply {
    fn run(self) -> Result<Exit, Failure> {
        let (mapping, document) = (File::read(&self.mapping)?, File::read(&self.document)?);
        let read = mapping.mapping()?;
        let read = if self.back { read.invert().map_err(|refusal| mapping.refused(&refusal))? } else { read };
        let translation = read.translate(&document.value).map_err(|refusal| document.refused(&refusal))?;
        if let Some(path) = &self.conforms_to {
            let checked = File::read(path)?.validator()?.check(&translation.document);
            checked.map_err(|refusal| document.refused(&refusal))?;
        }
        if self.json {
            let losses: Vec<Value> = translation.losses.iter().map(Loss::to_value).collect();
            let value = json!({"document": translation.document, "losses": losses});
            output::print(&json_line(&json::canonical_value(&value)))?;
        } else {
            output::print(&json_lines(&format!("{:#}", translation.document)))?;
            translation.losses.iter().for_each(|loss| output::note(&spelled(loss)));
        }
        Ok(Exit::Fine)
    }
}

fn spelled(loss: &Loss) -> String {
    let place = |place: &Option<json::Pointer>| place.as_ref().map(|place| format!(" {place}")).unwrap_or_default();
    let arrow = if loss.from.is_some() && loss.to.is_some() { " →" } else { "" };
    format!("{}{}{arrow}{} ({})", loss.kind.name(), place(&loss.from), place(&loss.to), loss.why)
}

/// Turn a mapping round
#[derive(clap::Args)]
pub(crate) struct Invert {
    /// The mapping
    mapping: PathBuf,
}

impl Invert {
    fn run(self) -> Result<Exit, Failure> {
        let file = File::read(&self.mapping)?;
        let turned = file.mapping()?.invert().map_err(|refusal| file.refused(&refusal))?;
        output::print(&json_lines(&format!("{:#}", turned.to_value())))?;
        Ok(Exit::Fine)
    }
}

/// Join mappings into one that does what they do one after the other
#[derive(clap::Args)]
pub(crate) struct Compose {
    /// Mappings, each beginning where the one before it ends
    #[arg(required = true, num_args = 2.., value_name = "MAPPING")]
    mappings: Vec<PathBuf>,
}

impl Compose {
    fn run(self) -> Result<Exit, Failure> {
        let mut composed: Option<Mapping> = None;
        for path in &self.mappings {
            let file = File::read(path)?;
            let next = file.mapping()?;
            composed = Some(match composed {
                None => next,
                Some(before) => schema::compose(&before, &next).map_err(|refusal| file.refused(&refusal))?,
            });
        }
        if let Some(composed) = composed {
            output::print(&json_lines(&format!("{:#}", composed.to_value())))?;
        }
        Ok(Exit::Fine)
    }
}

/// Sign a mapping as its publisher
#[derive(clap::Args)]
pub(crate) struct Sign {
    /// The mapping
    mapping: PathBuf,

    /// Where the signed mapping goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    key: KeyChoice,
}

impl Sign {
    fn run(self) -> Result<Exit, Failure> {
        let file = File::read(&self.mapping)?;
        let (mapping, key) = (file.mapping()?, self.key.stored()?);
        let signed = mapping.sign(key.did_key(), clock::now(), &key);
        let signed = signed.map_err(|error| Failure::refused(format!("{}: {error}", file.text.name)))?;
        files::write(self.output.as_deref(), &json_lines(&format!("{signed:#}")))?;
        Ok(Exit::Fine)
    }
}

/// Decide whether a mapping is to be believed
///
/// The publisher of the destination schema has to have signed it. Without --publisher that is the did:web of the
/// schema's host, whose DID document is read from --did-document. Nothing is fetched.
#[derive(clap::Args)]
pub(crate) struct Verify {
    /// The signed mapping
    mapping: PathBuf,

    /// The DID that publishes the destination schema
    #[arg(long, value_name = "DID")]
    publisher: Option<String>,

    /// The DID document of the publisher, where its DID is not its key
    #[arg(long, value_name = "FILE")]
    did_document: Option<PathBuf>,
}

impl Verify {
    fn run(self) -> Result<Exit, Failure> {
        let file = File::read(&self.mapping)?;
        let mapping = file.mapping()?;
        let schema = mapping.destination().map(|destination| destination.schema.clone());
        let mut publishers = Publishers::default();
        if let (Some(text), Some(schema)) = (&self.publisher, schema.clone()) {
            let did = Did::parse(text).map_err(|error| Failure::usage(format!("--publisher: {error}")))?;
            publishers.pin(schema, did);
        }
        let publisher = schema.and_then(|schema| publishers.of(&schema)).ok_or_else(|| {
            Failure::usage("the destination schema has no host that could have signed")
                .help("name its DID with --publisher")
        })?;
        let signer = self.signer(&publisher)?;
        let document = file.text.document(&schema::MAPPING_LIMITS)?;
        let trusted = schema::admit(&document, &signer, &publishers, None).map_err(|refusal| file.refused(&refusal))?;
        let words = format!("{} signed this mapping, {}", publisher.as_str(), trusted.mapping().digest());
        output::print(&format!("{} {}\n", paint(GOOD, "trusted:"), shown(&words)))?;
        Ok(Exit::Fine)
    }

    fn signer(&self, publisher: &Did) -> Result<DidDocument, Failure> {
        match &self.did_document {
            Some(path) => {
                let file = File::read(path)?;
                let document = file.text.document(&Limits::DOCUMENT)?;
                DidDocument::read(document.root(), publisher).map_err(|error| file.text.unproved(&error))
            }
            None => DidDocument::of_key(publisher).map_err(|_| {
                Failure::usage("the publisher's keys are not in its name")
                    .help("give its DID document with --did-document")
            }),
        }
    }
}

/// Try a mapping on documents: do they conform before and after, and do they come back?
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto schema map test spec/families/a2a-card-0.3-to-1.0.json examples/a2a/cards-0.3.json \\
    --from spec/families/a2a-card-0.3.schema.json --to spec/families/a2a-card-1.0.schema.json

Exits with 1 when a document does not conform, or does not come back outside what is told as lost.")]
pub(crate) struct Test {
    /// The mapping
    mapping: PathBuf,

    /// Files with one document, or a list of documents
    #[arg(required = true, value_name = "DOCUMENTS")]
    documents: Vec<PathBuf>,

    /// Schema of the documents
    #[arg(long, value_name = "SCHEMA")]
    from: Option<PathBuf>,

    /// Schema of their translations
    #[arg(long, value_name = "SCHEMA")]
    to: Option<PathBuf>,
}

impl Test {
    fn run(self) -> Result<Exit, Failure> {
        let mapping = File::read(&self.mapping)?.mapping()?;
        let validator = |path: &Option<PathBuf>| -> Result<_, Failure> {
            path.as_ref().map(|path| File::read(path)?.validator()).transpose()
        };
        let (from, to) = (validator(&self.from)?, validator(&self.to)?);
        let (mut tried, mut wrong, mut text) = (0, 0, String::new());
        for path in &self.documents {
            let file = File::read(path)?;
            let documents = match &file.value {
                Value::Array(list) => list.as_slice(),
                one => std::slice::from_ref(one),
            };
            for (position, document) in documents.iter().enumerate() {
                tried += 1;
                let name = format!("{} {position}", file.text.name);
                match try_one(&mapping, document, from.as_ref(), to.as_ref()) {
                    Ok(losses) => {
                        text.push_str(&format!("{} {}\n", paint(GOOD, "fine"), shown(&name)));
                        losses
                            .iter()
                            .for_each(|loss| text.push_str(&format!("  {}\n", paint(DIM, shown(&spelled(loss))))));
                    }
                    Err(problem) => {
                        wrong += 1;
                        text.push_str(&format!(
                            "{} {}: {}\n",
                            paint(BAD, "wrong"),
                            paint(STRONG, shown(&name)),
                            shown(&problem)
                        ));
                    }
                }
            }
        }
        output::print(&(text + &format!("{}, {wrong} wrong\n", count(tried, "document"))))?;
        Ok(if wrong == 0 { Exit::Fine } else { Exit::No })
    }
}

/// What a document loses, or what is wrong with its translation.
fn try_one(
    mapping: &Mapping,
    document: &Value,
    from: Option<&schema::Validator>,
    to: Option<&schema::Validator>,
) -> Result<Vec<Loss>, String> {
    let conforms = |validator: Option<&schema::Validator>, document: &Value, what: &str| match validator
        .map(|validator| validator.check(document))
    {
        Some(Err(refusal)) => Err(format!("{what} does not conform: {refusal}")),
        _ => Ok(()),
    };
    conforms(from, document, "the document")?;
    let there = mapping.translate(document).map_err(|refusal| refusal.to_string())?;
    conforms(to, &there.document, "its translation")?;
    if let Ok(inverse) = mapping.invert() {
        let back = inverse.translate(&there.document).map_err(|refusal| refusal.to_string())?;
        conforms(from, &back.document, "what comes back")?;
        if there.losses.is_empty() && back.losses.is_empty() && back.document != *document {
            return Err("nothing is told as lost, and another document comes back".to_owned());
        }
    }
    Ok(there.losses)
}
