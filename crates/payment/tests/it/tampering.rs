//! RFC 0020 B.2: whoever changes a byte of a document in a chain is found out, and the document is named.

use crate::stage::{self, Stage, answer, intent_body, mandate_body, offer, principal, signed};
use json::{Document, Limits};
use payment::wallet::Holdings;
use payment::{Keyring, Ledger, Payment, Period, Story, spending, trace};

fn paid() -> Stage {
    let mut stage = Stage::new(Holdings::usual());
    let intent = signed(intent_body(), &principal());
    let answer = answer(&intent, &[offer("a", "40.00", 0.9), offer("b", "20.00", 0.8), offer("c", "10.00", 0.7)]);
    let mandate = stage.mandate(mandate_body()).unwrap();
    let plan = stage.pay(&intent, &answer, &mandate).unwrap();
    assert_eq!(plan.sessions.len(), 3);
    stage
}

fn story(stage: &Stage) -> &Story {
    stage.ledger.story("urn:oap:intent:lunch-1").unwrap()
}

fn receipts(ledger: &Ledger) -> Vec<&Document> {
    ledger.receipts(&stage::did(&principal()))
}

#[test]
fn a_whole_chain_has_no_flaw_and_leads_from_the_receipt_to_the_intent() {
    let stage = paid();
    let found = trace(story(&stage), &receipts(&stage.ledger), &Keyring::default());
    assert_eq!(found.flaws, []);
    assert_eq!(found.tree["settled"], "100");
    assert_eq!(found.tree["payments"].as_array().unwrap().len(), 3);
    let (again, flaws) = Ledger::replay(&stage.log);
    assert_eq!((flaws, again.tip()), (vec![], stage.ledger.tip()));
    let all = spending(&again, None, Period::default());
    assert_eq!(all.iter().map(|one| one.amount.to_string()).collect::<Vec<_>>(), ["50", "30", "20"]);
    assert!(all.iter().all(|one| one.intent_id == "urn:oap:intent:lunch-1" && one.receipt_id.is_some()));
    let later = Period { from: Some(stage::now().plus(1)), to: None };
    assert!(spending(&again, None, later).is_empty());
}

/// Every document of a story with its name in a trace.
fn documents(story: &Story) -> Vec<(String, Document)> {
    let mut all = vec![("intent".to_owned(), copy(&story.intent))];
    all.extend(story.answers.iter().enumerate().map(|(number, answer)| (format!("answers/{number}"), copy(answer))));
    for (number, payment) in story.payments.iter().enumerate() {
        let parts = [
            ("mandate", Some(&payment.mandate)),
            ("request", Some(&payment.request)),
            ("session", payment.session.as_ref()),
            ("confirmation", payment.confirmation.as_ref()),
            ("receipt", payment.receipt.as_ref()),
        ];
        for (name, document) in parts {
            all.extend(document.map(|document| (format!("payments/{number}/{name}"), copy(document))));
        }
    }
    all
}

fn copy(document: &Document) -> Document {
    document.root().to_document()
}

fn replaced(story: &Story, name: &str, with: Document) -> Story {
    let mut story = story.clone();
    let parts: Vec<&str> = name.split('/').collect();
    let number = parts.get(1).map_or(0, |number| number.parse().unwrap());
    let payment = |story: &mut Story, set: fn(&mut Payment, Document), with| set(&mut story.payments[number], with);
    match (parts[0], parts.get(2).copied()) {
        ("intent", _) => story.intent = with,
        ("answers", _) => story.answers[number] = with,
        (_, Some("mandate")) => payment(&mut story, |payment, with| payment.mandate = with, with),
        (_, Some("request")) => payment(&mut story, |payment, with| payment.request = with, with),
        (_, Some("session")) => payment(&mut story, |payment, with| payment.session = Some(with), with),
        (_, Some("confirmation")) => payment(&mut story, |payment, with| payment.confirmation = Some(with), with),
        _ => payment(&mut story, |payment, with| payment.receipt = Some(with), with),
    }
    story
}

#[test]
fn a_changed_byte_of_any_document_is_named_by_the_signatures_and_links_alone() {
    let stage = paid();
    let (story, receipts, keys) = (story(&stage), receipts(&stage.ledger), Keyring::default());
    let mut tried = 0;
    for (name, document) in documents(story) {
        let bytes = json::canonical(document.root());
        // One payment of three is enough; an optimised build tries every byte, else `stride` is prime, so that over the
        // documents every kind of place is met.
        let stride = match cfg!(debug_assertions) {
            false => 1,
            true if name.starts_with("payments/") => 7,
            true => 31,
        };
        if ["payments/0", "payments/2"].iter().any(|other| name.starts_with(other)) {
            continue;
        }
        for position in (0..bytes.len()).step_by(stride) {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            // What is no JSON any more cannot be taken for the document.
            let Ok(changed) = Document::parse(&changed, &Limits::OURS) else { continue };
            if json::canonical(changed.root()) == bytes {
                continue;
            }
            tried += 1;
            let found = trace(&replaced(story, &name, changed), &receipts, &keys);
            assert!(found.flaws.iter().any(|flaw| flaw.document == name), "{name} byte {position}: {:?}", found.flaws);
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn a_changed_byte_of_the_ledger_is_named_by_its_line() {
    let stage = paid();
    let lines: Vec<&[u8]> = payment::lines(&stage.log).collect();
    let mut start = 0;
    for (number, line) in lines.iter().enumerate() {
        for position in (start..start + line.len()).step_by(97) {
            let mut changed = stage.log.clone();
            changed[position] ^= 1;
            let (ledger, flaws) = Ledger::replay(&changed);
            // The last line is held by the head, which names its digest.
            let held = ledger.tip().digest() != stage.ledger.tip().digest();
            assert!(!flaws.is_empty() || (number + 1 == lines.len() && held), "line {number}, byte {position}");
        }
        start += line.len() + 1;
    }
}

#[test]
fn a_receipt_that_is_missing_or_moved_breaks_the_chain() {
    let stage = paid();
    let (story, receipts, keys) = (story(&stage), receipts(&stage.ledger), Keyring::default());
    let missing: Vec<&Document> = receipts.iter().skip(1).copied().collect();
    let found = trace(story, &missing, &keys);
    assert!(found.flaws.iter().all(|flaw| flaw.document.ends_with("/receipt")) && !found.flaws.is_empty());
    let moved = vec![receipts[1], receipts[0], receipts[2]];
    assert!(!trace(story, &moved, &keys).flaws.is_empty());
}
