//! RFC 0024 §3.3: a mapping translates documents of one version of a schema into another.
//!
//! The text lists what a mapping contains and leaves its language open. Ours is a closed set of rules over places
//! (decisions/0123): no code of strangers, an inverse where every rule has one, and a report of what was lost.
//!
//! INVARIANT: a mapping that was read is within its bounds, no two of its rules meet, and one that calls itself
//! bidirectional has an inverse.

mod admit;
mod function;
pub(crate) mod path;
mod plan;
mod program;
mod route;
pub(crate) mod rule;
mod translate;
mod translator;

pub use admit::{Trusted, admit, protected};
pub use route::{compose, route};
pub use translate::{Loss, LossKind, OUTPUT_BYTES_FREE, OUTPUT_FACTOR_MAX, Translation};
pub use translator::{Translated, Translator};

use crate::identifier::SchemaId;
use crate::read::{At, Values};
use crate::refusal::{Code, Refusal};
use crate::version::Version;
use json::{Document, Instant, Node, Value, json};
use rule::{Body, MEMBERS};
use trust::{Did, Digest};

/// Steps of a composed mapping.
pub const STEPS_MAX: usize = 4;

/// Bounds on the bytes of a mapping document.
pub const MAPPING_LIMITS: json::Limits = json::Limits {
    subject: "mapping",
    bytes: 256 * 1024,
    depth: 64,
    nodes: 20_000,
    keys: 1_024,
    key_bytes: 256,
    string_bytes: 64 * 1024,
};

const HEADER: [&str; 9] = [
    "mapping_id",
    "source",
    "destination",
    "directionality",
    "steps",
    "publisher_did",
    "published_at",
    "signature",
    "description",
];

/// Whether a mapping also leads back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directionality {
    /// There only.
    Unidirectional,
    /// There and back.
    Bidirectional,
}

impl Directionality {
    /// The word of the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unidirectional => "unidirectional",
            Self::Bidirectional => "bidirectional",
        }
    }

    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        match at.string()? {
            "unidirectional" => Ok(Self::Unidirectional),
            "bidirectional" => Ok(Self::Bidirectional),
            _ => at.refuse(Code::InvalidValue, "`unidirectional` or `bidirectional` belongs here"),
        }
    }
}

/// A version of a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edition {
    /// The schema.
    pub schema: SchemaId,
    /// Its version.
    pub version: Version,
}

impl Edition {
    fn read(at: &At<'_>) -> Result<Self, Refusal> {
        at.closed(&["schema", "version"])?;
        Ok(Self { schema: SchemaId::read(&at.required("schema")?)?, version: Version::read(&at.required("version")?)? })
    }

    fn to_value(&self) -> Value {
        json!({"schema": self.schema.as_str(), "version": self.version.to_string()})
    }
}

/// A translation from one version of a schema to another.
#[derive(Clone, Debug)]
pub struct Mapping {
    id: String,
    directionality: Directionality,
    steps: Vec<Step>,
    description: Option<String>,
    publisher: Option<Did>,
    published_at: Option<Instant>,
}

/// One stretch of the way.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    source: Edition,
    destination: Edition,
    body: Body,
}

impl Mapping {
    /// Reads a mapping, signed or not; whether it is to be believed is [`admit`]'s question.
    pub fn read(node: Node<'_>) -> Result<Self, Refusal> {
        let at = At::root(node);
        let members: Vec<&str> = HEADER.into_iter().chain(MEMBERS).collect();
        at.closed(&members)?;
        let id = at.required("mapping_id")?;
        let text = id.string()?;
        if text.strip_prefix("urn:oap:mapping:").is_none_or(str::is_empty) {
            return id.refuse(Code::InvalidValue, "a name such as `urn:oap:mapping:action-1.1-to-1.2` belongs here");
        }
        let (source, destination) =
            (Edition::read(&at.required("source")?)?, Edition::read(&at.required("destination")?)?);
        let directionality = Directionality::read(&at.required("directionality")?)?;
        let mapping = Self {
            id: text.to_owned(),
            directionality,
            steps: steps(&at, source, destination)?,
            description: at.member("description").map(|text| text.string().map(str::to_owned)).transpose()?,
            publisher: at.member("publisher_did").map(|did| read_did(&did)).transpose()?,
            published_at: at.member("published_at").map(|time| time.instant()).transpose()?,
        };
        if directionality == Directionality::Bidirectional && mapping.turned().is_none() {
            let detail = "not every rule leads back; say `unidirectional`";
            return at.required("directionality")?.refuse(Code::NotInvertible, detail);
        }
        Ok(mapping)
    }

    /// Reads the bytes of a mapping within [`MAPPING_LIMITS`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, Document), Refusal> {
        let document = Document::parse(bytes, &MAPPING_LIMITS)?;
        Ok((Self::read(document.root())?, document))
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it reads.
    pub fn source(&self) -> Option<&Edition> {
        self.steps.first().map(|step| &step.source)
    }

    /// What it writes.
    pub fn destination(&self) -> Option<&Edition> {
        self.steps.last().map(|step| &step.destination)
    }

    /// Whether it leads back.
    pub fn directionality(&self) -> Directionality {
        self.directionality
    }

    /// How many mappings it is made of.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Who says that he published it.
    pub fn publisher(&self) -> Option<&Did> {
        self.publisher.as_ref()
    }

    /// The mapping that leads back.
    pub fn invert(&self) -> Result<Self, Refusal> {
        self.turned().ok_or_else(|| {
            let detail = "there is no way back: a rule of this mapping has no inverse";
            Refusal::new(Code::NotInvertible, json::Pointer::root().child("rules"), detail)
        })
    }

    fn turned(&self) -> Option<Self> {
        let turn = |step: &Step| {
            Some(Step {
                source: step.destination.clone(),
                destination: step.source.clone(),
                body: step.body.inverse()?,
            })
        };
        let steps: Vec<Step> = self.steps.iter().rev().map(turn).collect::<Option<_>>()?;
        let id = match self.id.strip_suffix(":back") {
            Some(there) => there.to_owned(),
            None => format!("{}:back", self.id),
        };
        // The publisher of this direction has signed nothing about the other.
        Some(Self { id, steps, publisher: None, published_at: None, ..self.clone() })
    }

    /// The document, ready to be signed; its RFC 8785 form is the canonical one.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "mapping_id": self.id,
            "directionality": self.directionality.name(),
        });
        let plain = if let [step] = self.steps.as_slice() { Some(step) } else { None };
        if let Some(step) = plain {
            step.body.write(&mut value);
        }
        let Value::Object(members) = &mut value else { return value };
        if let (Some(source), Some(destination)) = (self.source(), self.destination()) {
            members.insert("source".to_owned(), source.to_value());
            members.insert("destination".to_owned(), destination.to_value());
        }
        if plain.is_none() {
            let step = |step: &Step| {
                let mut value = json!({"source": step.source.to_value(), "destination": step.destination.to_value()});
                step.body.write(&mut value);
                value
            };
            members.insert("steps".to_owned(), self.steps.iter().map(step).collect());
        }
        let texts = [
            ("description", self.description.clone()),
            ("publisher_did", self.publisher.as_ref().map(Did::to_string)),
            ("published_at", self.published_at.map(|time| time.to_string())),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                members.insert(name.to_owned(), json!(text));
            }
        }
        value
    }

    /// The document with its publisher and signature (RFC 0024 §3.3 "the publisher signature").
    pub fn sign(
        &self,
        publisher: Did,
        published_at: Instant,
        key: &trust::SigningKey,
    ) -> Result<Value, trust::SignError> {
        let mapping = Self { publisher: Some(publisher), published_at: Some(published_at), ..self.clone() };
        let mut value = mapping.to_value();
        trust::sign(&mut value, key)?;
        Ok(value)
    }

    /// The digest of what the mapping does, whoever signed it and whenever.
    pub fn digest(&self) -> Digest {
        let bare = Self { publisher: None, published_at: None, description: None, ..self.clone() };
        Digest::of(&json::canonical_value(&bare.to_value()))
    }
}

fn steps(at: &At<'_>, source: Edition, destination: Edition) -> Result<Vec<Step>, Refusal> {
    let mut count = 0;
    let Some(list) = at.member("steps") else {
        at.required("rules")?;
        if source == destination {
            return at.required("destination")?.refuse(Code::MappingCycle, "a mapping leads to another version");
        }
        let body = Body::read(at, &mut count, 1)?;
        return Ok(vec![Step { source, destination, body }]);
    };
    if let Some(name) = MEMBERS.into_iter().find(|name| at.node.get(name).is_some()) {
        let detail = "a composed mapping has its rules inside its steps";
        return Err(Refusal::new(Code::UnknownField, at.at.child(name), detail));
    }
    let elements = list.elements()?;
    if elements.is_empty() || elements.len() > STEPS_MAX {
        let place = list.at.clone();
        return Err(Refusal::limit(Code::MappingTooLarge, place, "mapping.steps", STEPS_MAX, elements.len()));
    }
    let mut steps = Vec::with_capacity(elements.len());
    for element in &elements {
        let members: Vec<&str> = ["source", "destination"].into_iter().chain(MEMBERS).collect();
        element.closed(&members)?;
        let step = Step {
            source: Edition::read(&element.required("source")?)?,
            destination: Edition::read(&element.required("destination")?)?,
            body: Body::read(element, &mut count, 1)?,
        };
        steps.push(step);
    }
    route::check_chain(&steps, &list.at)?;
    let ends = (steps.first().map(|step| &step.source), steps.last().map(|step| &step.destination));
    if ends != (Some(&source), Some(&destination)) {
        return list.refuse(Code::RouteMissing, "the steps lead from `source` to `destination`");
    }
    Ok(steps)
}

fn read_did(at: &At<'_>) -> Result<Did, Refusal> {
    Did::parse(at.string()?).or_else(|error| at.refuse(Code::InvalidValue, error.to_string()))
}
