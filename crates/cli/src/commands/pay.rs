//! `rialto pay`: what an answered intent allocates is paid through a wallet (RFC 0020 Appendix B).

use crate::clock;
use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::keys::KeyChoice;
use crate::ledger::{Place, keyring, refused};
use crate::output::text::{json_line, shown};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, paint};
use crate::paying::{Outcome, Payer};
use crate::purse::{Purse, Said};
use aql::{Intent, Limits};
use json::{Document, Value, json};
use payment::{Keyring, Mandate, Plan, Planned, Story, Terms, Wanted};
use std::path::PathBuf;

/// Pay what an answer allocates
///
/// Plans one session for each candidate that the intent's allocation pays, sets the money aside in the ledger before it
/// asks the wallet, and never lets the sum exceed the budget. A run that was cut off is run again: nothing is paid twice.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto ask lunch.json --save answer.json --save-intent question.json
  rialto pay answer.json --intent question.json --mandate mandate.json --to http://127.0.0.1:7430

Exits with 1 when a payment was refused or failed.")]
pub(crate) struct Pay {
    /// The signed answer, page by page
    #[arg(required = true, value_name = "ANSWER")]
    answers: Vec<PathBuf>,

    /// The signed question
    #[arg(long, value_name = "FILE")]
    intent: PathBuf,

    /// The mandate that the principal signed
    #[arg(long, value_name = "FILE")]
    mandate: PathBuf,

    /// The address of the wallet: https, or http on this machine
    #[arg(long, value_name = "URL", env = "RIALTO_WALLET")]
    to: String,

    /// Pay each candidate its price, where the answer shows one within its share, and not its whole share
    #[arg(long)]
    by_price: bool,

    /// The instrument to pay with [default: the wallet chooses among those that are permitted]
    #[arg(long, value_name = "ID")]
    instrument: Option<String>,

    /// The commerce primitive
    #[arg(long, value_name = "NAME", default_value = "retail_purchase", value_parser = payment::PRIMITIVES)]
    primitive: String,

    /// What the payment is for, in words
    #[arg(long, value_name = "TEXT", default_value = "candidates of an answered intent")]
    purpose: String,

    /// Show what would be paid, and pay nothing
    #[arg(long)]
    dry_run: bool,

    /// The DID document of a signer whose DID is no did:key; may be repeated
    #[arg(long = "did-document", value_name = "FILE")]
    did_documents: Vec<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    key: KeyChoice,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Pay {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let keys = keyring(&self.did_documents)?;
        let intent_text = Text::read(&self.intent)?;
        let intent = intent_text.document(&Limits::STANDARD.json)?;
        let read = Intent::read(intent.root(), &Limits::STANDARD).map_err(|refusal| intent_text.refused(&refusal))?;
        let answers: Vec<Document> = self
            .answers
            .iter()
            .map(|path| Text::read(path)?.document(&json::Limits::OURS))
            .collect::<Result<_, _>>()?;
        self.prove(&intent, &answers, &keys)?;
        let (mandate, mandate_document) = self.mandate(&read, &keys)?;
        let pages: Vec<json::Node<'_>> = answers.iter().map(Document::root).collect();
        let terms = if self.by_price { Terms::Price } else { Terms::Share };
        let plan = payment::plan(&read, &pages, terms).map_err(|refusal| refused(&intent_text.name, &refusal))?;
        if self.dry_run {
            return self.show(&read, &plan, &[]).map(|()| Exit::Fine);
        }
        let key = self.key.stored()?;
        if key.did_key() != mandate.agent {
            return Err(Failure::refused(format!("the mandate permits {}, and the key is another's", mandate.agent))
                .help("pay with the key of that agent (--key FILE)"));
        }
        let purse = Purse::new(&self.to, &mandate.wallet)?;
        let keys = purse.with_keys(keys)?;
        let mut kept = self.place.open()?;
        let stopped = |refusal| refused("the ledger", &refusal);
        kept.step(|ledger| ledger.open(&intent, clock::now()))?.map_err(stopped)?;
        for answer in &answers {
            kept.step(|ledger| ledger.answer(&read.intent_id, answer, clock::now()))?.map_err(stopped)?;
        }
        if let Said::No(no) =
            purse.post(&["oap", "payment", "mandates"], &json::canonical(mandate_document.root()), &keys)?
        {
            return Err(no.failure(purse.address()));
        }
        let wanted = Wanted {
            instrument_id: self.instrument.as_deref(),
            commerce_primitive: &self.primitive,
            purpose: &self.purpose,
        };
        let payer = Payer {
            key: &key,
            keys: &keys,
            purse: &purse,
            intent: &intent,
            mandate: &mandate,
            mandate_document: &mandate_document,
            wanted: &wanted,
        };
        let outcomes: Vec<Outcome> =
            plan.sessions.iter().map(|planned| payer.pay(&mut kept, planned)).collect::<Result<_, _>>()?;
        self.show(&read, &plan, &outcomes)?;
        let well = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Paid { .. } | Outcome::Waiting { .. }));
        Ok(if well { Exit::Fine } else { Exit::No })
    }

    /// Nothing is paid for a question or an answer that is not what it must be.
    fn prove(&self, intent: &Document, answers: &[Document], keys: &Keyring) -> Result<(), Failure> {
        let copy = |document: &Document| document.root().to_document();
        let story = Story { intent: copy(intent), answers: answers.iter().map(copy).collect(), payments: Vec::new() };
        match payment::trace(&story, &[], keys).flaws.into_iter().next() {
            None => Ok(()),
            Some(flaw) => {
                let place = format!("{}, {}", flaw.document, flaw.at);
                Err(Failure::refused(flaw.detail).at(place).coded(flaw.code, &flaw.at))
            }
        }
    }

    fn mandate(&self, intent: &Intent, keys: &Keyring) -> Result<(Mandate, Document), Failure> {
        let text = Text::read(&self.mandate)?;
        let document = text.document(&json::Limits::INTENT)?;
        let mandate = Mandate::verified(&document, keys).map_err(|refusal| refused(&text.name, &refusal))?;
        mandate.check_window(clock::now()).map_err(|refusal| refused(&text.name, &refusal))?;
        if mandate.principal.as_str() != intent.issuer_did {
            return Err(Failure::refused("the mandate is of another principal than the intent's issuer")
                .help("the intent's `issuer_did` and the mandate's `principal_did` are the same"));
        }
        Ok((mandate, document))
    }

    fn show(&self, intent: &Intent, plan: &Plan, outcomes: &[Outcome]) -> Result<(), Failure> {
        if self.json {
            let sessions: Vec<Value> = plan
                .sessions
                .iter()
                .enumerate()
                .map(|(number, planned)| for_programs(planned, outcomes.get(number)))
                .collect();
            let left: Vec<Value> =
                plan.left_out.iter().map(|left| json!({"offer_ref": left.offer_ref, "why": left.why.name()})).collect();
            let told = json!({"intent_id": intent.intent_id, "sessions": sessions, "left_out": left});
            return output::print(&json_line(told.to_string().as_bytes()));
        }
        let mut text = format!("{}\n", paint(STRONG, shown(&intent.intent_id)));
        for (number, planned) in plan.sessions.iter().enumerate() {
            text.push_str(&for_people(planned, outcomes.get(number)));
        }
        for left in &plan.left_out {
            let why = paint(DIM, left.why.name().replace('_', " "));
            text.push_str(&format!("  {} {}, {why}\n", paint(DIM, "–"), shown(&left.offer_ref)));
        }
        if plan.sessions.is_empty() {
            text.push_str("  nothing to pay\n");
        }
        output::print(&text)
    }
}

fn for_programs(planned: &Planned, outcome: Option<&Outcome>) -> Value {
    let mut value = json!({
        "offer_ref": planned.offer_ref,
        "counterparty_did": planned.counterparty.as_str(),
        "amount": planned.amount.amount.to_string(),
        "currency": planned.amount.currency,
    });
    let told = match outcome {
        None => json!({"outcome": "planned"}),
        Some(Outcome::Paid { session_id, receipt_id }) => {
            json!({"outcome": "paid", "session_id": session_id, "receipt_id": receipt_id})
        }
        Some(Outcome::Waiting { session_id }) => json!({"outcome": "waiting", "session_id": session_id}),
        Some(Outcome::Refused { code, message }) => json!({"outcome": "refused", "code": code, "message": message}),
        Some(Outcome::Failed { code }) => json!({"outcome": "failed", "code": code}),
    };
    if let (Value::Object(members), Value::Object(more)) = (&mut value, told) {
        members.extend(more);
    }
    value
}

fn for_people(planned: &Planned, outcome: Option<&Outcome>) -> String {
    let (mark, told) = match outcome {
        None => (paint(DIM, "·"), String::new()),
        Some(Outcome::Paid { receipt_id, .. }) => {
            (paint(GOOD, "✓"), paint(DIM, format!("paid, {}", shown(receipt_id))))
        }
        Some(Outcome::Waiting { session_id }) => {
            let told = format!("waits for the principal: rialto confirm {}", shown(session_id));
            (paint(WARN, "…"), told)
        }
        Some(Outcome::Refused { code, message }) => (paint(BAD, "✗"), format!("{}: {}", shown(code), shown(message))),
        Some(Outcome::Failed { code }) => (paint(BAD, "✗"), format!("failed: {}", shown(code))),
    };
    let (amount, offer) = (planned.amount.to_string(), shown(&planned.offer_ref));
    format!("  {mark} {amount} for {offer}\n    to {}  {told}\n", shown(planned.counterparty.as_str()))
}
