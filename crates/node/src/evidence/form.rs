//! RFC 0020 §3.5: the three forms of evidence: a plain word, a performance record (RFC 0009 §3.2) and a conformance
//! receipt (RFC 0019).
//!
//! A performance record and a conformance receipt carry the signature of whoever issued them, so anybody may bring
//! them; what counts is who signed, not who brought it.

use super::Word;
use crate::outbound::registrable;
use crate::refusal::{Class, Refusal};
use aql::{Instant, Level, Signals};
use json::{Document, Node, Pointer};
use trust::{Did, DidDocument, SignatureError, SignedList};
use url::Url;

/// Seconds for which a conformance receipt counts at most.
const RECEIPT_SECONDS: i64 = 90 * 24 * 3_600;
/// Dimensions of one performance record.
const DIMENSIONS_MAX: usize = 32;

/// Who stands for a piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Issuer {
    /// Whoever publishes it.
    Publisher,
    /// Somebody whose own signature is inside.
    Signer(Did),
}

enum Form {
    Plain,
    Performance,
    Conformance,
}

fn form(record: Node<'_>) -> Form {
    if text(record, "type") == Some("conformance") && record.get("implementation").is_some() {
        Form::Conformance
    } else if record.get("dimensions").is_some() {
        Form::Performance
    } else {
        Form::Plain
    }
}

fn text<'a>(record: Node<'a>, name: &str) -> Option<&'a str> {
    record.get(name)?.as_str()
}

fn instant(record: Node<'_>, name: &str) -> Option<Instant> {
    text(record, name).and_then(Instant::parse_rfc3339)
}

/// Whom a piece of evidence is about.
pub(crate) fn subject(record: Node<'_>) -> Option<&str> {
    match form(record) {
        Form::Plain => text(record, "subject_did"),
        Form::Performance => text(record, "subject"),
        Form::Conformance => text(record.get("implementation")?, "did"),
    }
}

/// Whose word a piece of evidence is; the place of what is wrong when nobody can be named.
pub(crate) fn issuer(record: Node<'_>, publisher: &str) -> Result<Issuer, Refusal> {
    let wrong = |name: &str, detail: &str| {
        let at = Pointer::root().child("record").child(name);
        Refusal::new(Class::InvalidInput, "invalid_evidence", detail).at(at)
    };
    match form(record) {
        Form::Plain => Ok(Issuer::Publisher),
        Form::Performance => {
            let named = Did::parse(text(record, "issuer").unwrap_or_default());
            let named = named.map_err(|_| wrong("issuer", "the DID of whoever judges belongs here"))?;
            text(record, "subject").ok_or_else(|| wrong("subject", "the DID of whoever is judged belongs here"))?;
            instant(record, "issued_at").ok_or_else(|| wrong("issued_at", "RFC 3339 with an offset, please"))?;
            score(record).ok_or_else(|| wrong("dimensions", "each dimension has a `score` from 0 to its `max`"))?;
            let unsigned = record.get("issuer_signature").is_none();
            Ok(if unsigned && named.as_str() == publisher { Issuer::Publisher } else { Issuer::Signer(named) })
        }
        Form::Conformance => {
            let by = attestor(record).ok_or_else(|| wrong("signatures", "somebody must have signed the receipt"))?;
            instant(record, "timestamp").ok_or_else(|| wrong("timestamp", "RFC 3339 with an offset, please"))?;
            let by = Did::parse(by).map_err(|_| wrong("signatures", "`by` names a DID"))?;
            Ok(Issuer::Signer(by))
        }
    }
}

/// Checks the signature that a piece of evidence carries inside.
pub(crate) fn check(record: &Document, signer: &DidDocument) -> Result<(), SignatureError> {
    let root = record.root();
    let verified = match form(root) {
        Form::Plain => return Ok(()),
        Form::Performance => trust::verify_member(record, "issuer_signature", signer),
        Form::Conformance => SignedList::read(record, "peer_witnesses").and_then(|list| list.verify_with(signer)),
    };
    verified.map(drop)
}

/// A piece of evidence as it counts; nothing when it is about nobody, or about whoever says it.
pub(super) fn read(source: u64, came: i64, publisher: &str, record: Node<'_>) -> Option<(String, Word)> {
    let subject = subject(record)?.to_owned();
    let (issuer, valid_from, valid_until, interaction, signals) = match form(record) {
        Form::Plain => (publisher, None, instant(record, "valid_until"), None, plain(record)),
        Form::Performance => {
            let score = score(record)?;
            let about = text(record, "interaction_receipt").or_else(|| text(record, "record_id"))?;
            let interaction = (about.to_owned(), instant(record, "issued_at")?);
            let signals =
                Signals { performance_score: Some(score), provider_reputation: Some(score), ..Signals::default() };
            (text(record, "issuer")?, None, instant(record, "valid_until"), Some(interaction), signals)
        }
        Form::Conformance => {
            let window = record.get("validity");
            let last = instant(record, "timestamp")?.plus(RECEIPT_SECONDS);
            let until = window.and_then(|window| instant(window, "not_after")).map_or(last, |until| until.min(last));
            let from = window.and_then(|window| instant(window, "not_before"));
            let signals = Signals { conformance_level: level(record), ..Signals::default() };
            (attestor(record)?, from, Some(until), None, signals)
        }
    };
    let (issuer, root) = (issuer.to_owned(), root(issuer));
    let word = Word { source, issuer, root, came, signals, valid_from, valid_until, interaction };
    (word.issuer != subject).then_some((subject, word))
}

/// The owner behind a name, as far as it can be seen: the domain of a name on the web, else the name itself.
fn root(issuer: &str) -> String {
    let url = Did::parse(issuer).ok().and_then(|did| did.document_url()).and_then(|url| Url::parse(&url).ok());
    let host = url.as_ref().and_then(Url::host_str);
    host.map_or(issuer, registrable).to_owned()
}

fn plain(record: Node<'_>) -> Signals {
    let number = |name: &str| record.get(name).and_then(Node::as_f64);
    let fraction = |name: &str| number(name).filter(|value| (0.0..=1.0).contains(value));
    Signals {
        performance_score: fraction("performance_score"),
        provider_reputation: fraction("provider_reputation"),
        latency_p99_ms: number("latency_p99_ms").filter(|latency| *latency >= 0.0),
        conformance_level: text(record, "conformance_level").and_then(Level::parse),
        cooling_off_minutes: number("cooling_off_minutes").filter(|minutes| *minutes >= 0.0),
    }
}

/// The mean of `score / max` over the dimensions; nothing when one of them is no fraction.
fn score(record: Node<'_>) -> Option<f64> {
    let dimensions = record.get("dimensions")?;
    let fraction = |(_, dimension): (&str, Node<'_>)| {
        let (score, max) = (dimension.get("score")?.as_f64()?, dimension.get("max")?.as_f64()?);
        (max > 0.0 && (0.0..=max).contains(&score)).then_some(score / max)
    };
    if !dimensions.is_object() || dimensions.is_empty() || dimensions.len() > DIMENSIONS_MAX {
        return None;
    }
    let fractions: Vec<f64> = dimensions.members().map(fraction).collect::<Option<_>>()?;
    Some(fractions.iter().sum::<f64>() / fractions.len() as f64)
}

/// Who signed a conformance receipt: the first who is not the implementation itself, else the implementation.
fn attestor(record: Node<'_>) -> Option<&str> {
    let own = text(record.get("implementation")?, "did")?;
    let named = record.get("signatures").into_iter().flat_map(Node::elements).filter_map(|entry| text(entry, "by"));
    let mut signers = named.filter_map(|by| by.split('#').next()).peekable();
    let first = signers.peek().copied();
    signers.find(|signer| *signer != own).or(first)
}

/// The highest level of the family that the receipt names first; none when a test failed.
fn level(record: Node<'_>) -> Option<Level> {
    let failed = record.get("results_summary")?.get("failed")?.as_u64()?;
    let named = record.get("claimed_levels")?;
    let first = named.at(0)?.as_str()?;
    let family = first.get(..1)?;
    let levels = named.elements().filter_map(Node::as_str).filter(|level| level.starts_with(family));
    let highest = levels.max().filter(|_| failed == 0)?;
    Level::parse(highest)
}
