//! `rialto verify --intent`: an answer, held against the question it answers (RFC 0020 §3.3, §3.7, §5).
//!
//! Both signatures come first: nobody is blamed for what they did not sign, nor for a question nobody asked.

use super::{Proof, Verify};
use crate::failure::{Exit, Failure};
use crate::files::{self, Text};
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, count, paint, violations};
use crate::performance::{self, Observed};
use crate::{clock, draft};
use aql::{Audit, Checked, Intent, Limits};
use json::{Document, Node, json};
use std::path::{Path, PathBuf};
use trust::Signed;

/// An answer with its question, both proved, and what came of it.
struct Held {
    question: Proof,
    intent: Intent,
    answer: Proof,
    response_id: Option<String>,
    audit: Audit,
}

/// Runs the command.
pub(super) fn verify(command: &Verify, intent: &Path) -> Result<Exit, Failure> {
    if files::is_stream(&command.file) && files::is_stream(intent) {
        return Err(
            Failure::usage("both the answer and --intent are standard input").help("put one of the two into a file")
        );
    }
    let (question, answer) = (Text::read(intent)?, Text::read(&command.file)?);
    let held = hold(&question, &answer, command)?;
    let text = if command.json { held.as_json() } else { held.described(&question, &answer) };
    output::print(&text)?;
    if let Some(path) = &command.record {
        let observed = Observed {
            intent_id: &held.intent.intent_id,
            intent_digest: held.question.digest,
            response_id: held.response_id.as_deref(),
            response_digest: held.answer.digest,
            resolver: &held.answer.signer,
        };
        let record = performance::record(&observed, &held.audit, &command.key.stored()?, clock::now())?;
        files::write(Some(path), &record)?;
    }
    Ok(if held.audit.conforms() { Exit::Fine } else { Exit::No })
}

/// Proves both documents and compares them.
fn hold(question: &Text, answer: &Text, command: &Verify) -> Result<Held, Failure> {
    let (intent, asked) =
        Intent::parse(&question.bytes, &Limits::STANDARD).map_err(|error| question.refused(&error))?;
    let given = answer.document(&json::Limits::OURS)?;
    if draft::is_intent(given.root()) {
        return Err(Failure::usage(format!("{} is a question, not an answer", answer.name))
            .help("name the answer first and its question with --intent"));
    }
    let documents = &command.did_document;
    let proved_question = prove(question, &asked, "issuer_did", documents)?;
    let proved_answer = prove(answer, &given, "resolver_did", documents)?;
    let audit = aql::audit(&intent, given.root(), &Limits::STANDARD, command.earlier);
    let response_id = given.root().get("response_id").and_then(Node::as_str).map(str::to_owned);
    Ok(Held { question: proved_question, intent, answer: proved_answer, response_id, audit })
}

/// Checks that the DID in `member`, and nobody else, signed a document.
fn prove(text: &Text, document: &Document, member: &str, did_documents: &[PathBuf]) -> Result<Proof, Failure> {
    let signed = Signed::read(document).map_err(|error| text.unproved(&error))?;
    let signer = signed.issuer(member).map_err(|error| text.unproved(&error))?;
    let needed = if signer.method() == trust::Method::Key { &[] } else { did_documents };
    Proof::of(text, document, signer, needed)
}

impl Held {
    fn described(&self, question: &Text, answer: &Text) -> String {
        let (word, style) = if self.audit.conforms() { ("conforms", GOOD) } else { ("violates", BAD) };
        let mut text = format!("{} {}\n", paint(style, word), shown(&answer.name));
        let mut row = |name: &str, value: &str| {
            text.push_str(&format!("  {} {value}\n", paint(DIM, format!("{name:<9}"))));
        };
        row("question", &format!("{} {}", shown(&question.name), paint(DIM, shown(&self.intent.intent_id))));
        row("asked by", self.question.signer.as_str());
        row("answer by", self.answer.signer.as_str());
        row("digest", &format!("{} {}", self.answer.digest, paint(DIM, "of the answer's signed bytes")));
        row("looked at", &looked_at(&self.audit.checked));
        row("leaves", &leaves(&self.audit.checked));
        row("scores", &format!("{} computed again", self.audit.checked.scores));
        text + &violations::show(&self.audit, answer)
    }

    fn as_json(&self) -> String {
        let value = json!({
            "answer": self.answer.to_value(),
            "checked": performance::checked(&self.audit.checked),
            "conforms": self.audit.conforms(),
            "intent": self.question.to_value(),
            "verified": true,
            "violations": performance::violations(&self.audit.violations),
            "violations_untold": self.audit.untold,
        });
        json_line(&json::canonical_value(&value))
    }
}

fn looked_at(checked: &Checked) -> String {
    format!("{}, {} rejected", count(checked.candidates, "candidate"), checked.rejected)
}

fn leaves(checked: &Checked) -> String {
    format!(
        "{} computed again from the payloads, {} open, {} of rejected candidates",
        checked.leaves_settled, checked.leaves_open, checked.leaves_rejected
    )
}
