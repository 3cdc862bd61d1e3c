//! `verify --intent`: an answer held against its question.

use crate::pages::steady;
use crate::run::{Home, Ran, intent, market};
use json::{Document, Value, json};
use trust::SigningKey;

/// A question of the examples, signed, and the answer of the engine.
struct Exchange {
    home: Home,
    question: String,
    answer: String,
}

impl Exchange {
    fn new(name: &str) -> Self {
        let home = Home::new(name);
        home.run(&["keys", "new"]).exits(0);
        let mut draft = json_of(&std::fs::read_to_string(example()).unwrap());
        draft["intent_id"] = json!("urn:oap:intent:audited");
        let draft = home.file("draft.json", &draft.to_string());
        let question = home.path("question.json");
        home.run(&["sign", &draft, "-o", &question]).exits(0);
        let market = market("manifests");
        let asked = ["resolve", "--intent", &question, "--candidates", &market, "--json", "--pretty"];
        let answer = home.file("answer.json", &home.run(&asked).exits(0).out);
        Self { home, question, answer }
    }

    /// The answer with something else in it, signed by the resolver again.
    fn lie(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut answer = json_of(&self.home.read("answer.json"));
        change(&mut answer);
        let file = self.home.file("changed.json", &answer.to_string());
        let lie = self.home.path("lie.json");
        self.home.run(&["sign", "--as-is", &file, "-o", &lie]).exits(0);
        lie
    }

    fn verify(&self, answer: &str, more: &[&str]) -> Ran {
        self.home.run(&[&["verify", answer, "--intent", &self.question], more].concat())
    }

    /// A page without what changes from run to run.
    fn page(&self, ran: &Ran) -> String {
        steady(&format!("{}{}", ran.out, ran.err).replace(&self.home.path(""), ""))
    }
}

fn example() -> String {
    format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), intent("affordable-certified-translation"))
}

fn json_of(text: &str) -> Value {
    Document::parse(text.as_bytes(), &json::Limits::OURS).unwrap().root().to_value()
}

#[test]
fn a_good_answer() {
    let exchange = Exchange::new("audit-good");
    let ran = exchange.verify(&exchange.answer, &[]).exits(0);
    insta::assert_snapshot!(exchange.page(&ran));
    let value = exchange.verify(&exchange.answer, &["--json"]).exits(0).json();
    assert_eq!((&value["conforms"], &value["verified"]), (&json!(true), &json!(true)));
    assert_eq!(value["violations"], json!([]));
    assert!(value["checked"]["leaves_settled"].as_u64().unwrap() > 0, "{value}");
    let piped = ["verify", "-", "--intent", &exchange.question];
    exchange.home.run_with(&[], &exchange.home.read("answer.json"), &piped).exits(0).says("conforms stdin");
}

#[test]
fn a_lie_that_its_resolver_signed() {
    let exchange = Exchange::new("audit-lie");
    let lie = exchange.lie(|answer| {
        let candidate = &mut answer["candidates"][0];
        candidate["payload"]["margin"] = json!("\u{1b}[31m40 %");
        candidate["decision_record"]["constraint_evaluations"][0]["passed"] = json!(false);
        candidate["score"] = json!(0.99);
    });
    exchange.home.run(&["verify", &lie]).exits(0).says("verified");
    let ran = exchange.verify(&lie, &[]).exits(1);
    assert!(!ran.out.contains('\u{1b}'));
    insta::assert_snapshot!(exchange.page(&ran));
    let value = exchange.verify(&lie, &["--json"]).exits(1).json();
    assert_eq!((&value["conforms"], &value["verified"]), (&json!(false), &json!(true)));
    let found: Vec<&str> =
        value["violations"].as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap()).collect();
    for code in ["payload_beyond_include", "constraints_not_met", "ranking_differs"] {
        assert!(found.contains(&code), "{found:?}");
    }
}

#[test]
fn a_tampered_answer_is_nobodys() {
    let exchange = Exchange::new("audit-tampered");
    let mut answer = json_of(&exchange.home.read("answer.json"));
    answer["candidates"][0]["score"] = json!(0.99);
    let tampered = exchange.home.file("tampered.json", &answer.to_string());
    let record = exchange.home.path("record.json");
    exchange.verify(&tampered, &["--record", &record]).exits(1).complains("error[signature_invalid]");
    assert!(!std::path::Path::new(&record).exists(), "nobody is blamed for what they did not sign");
    let value = exchange.verify(&tampered, &["--json"]).exits(1).json();
    assert_eq!((&value["verified"], &value["error"]["code"]), (&json!(false), &json!("signature_invalid")));
}

#[test]
fn an_unsigned_answer() {
    let exchange = Exchange::new("audit-unsigned");
    let mut answer = json_of(&exchange.home.read("answer.json"));
    answer.as_object_mut().unwrap().remove("signature");
    let unsigned = exchange.home.file("unsigned.json", &answer.to_string());
    let ran = exchange.verify(&unsigned, &[]).exits(1);
    insta::assert_snapshot!(exchange.page(&ran));
}

#[test]
fn an_answer_to_another_question() {
    let exchange = Exchange::new("audit-other");
    let mut other = json_of(&std::fs::read_to_string(example()).unwrap());
    other["intent_id"] = json!("urn:oap:intent:another");
    other["projection"] = json!({"include": ["/tool/did"]});
    let draft = exchange.home.file("other-draft.json", &other.to_string());
    let other = exchange.home.path("other.json");
    exchange.home.run(&["sign", &draft, "-o", &other]).exits(0);
    let ran = exchange.home.run(&["verify", &exchange.answer, "--intent", &other]).exits(1);
    ran.says("violation: intent_id_differs").says("violation: payload_beyond_include");
    let unsigned = exchange.home.run(&["verify", &exchange.answer, "--intent", &draft]).exits(1);
    unsigned.complains("error[missing_field]");
    let swapped = exchange.home.run(&["verify", &exchange.question, "--intent", &exchange.question]).exits(2);
    swapped.complains("is a question, not an answer");
    exchange.home.run(&["verify", "-", "--intent", "-"]).exits(2).complains("standard input");
    exchange.home.run(&["verify", &exchange.answer, "--record", "x"]).exits(2).complains("--intent");
}

#[test]
fn what_was_found_is_written_down_and_signed() {
    let exchange = Exchange::new("audit-record");
    let lie = exchange.lie(|answer| answer["candidates"][0]["rank"] = json!(7));
    let path = exchange.home.path("record.json");
    exchange.verify(&lie, &["--record", &path]).exits(1).complains("wrote ");
    exchange.home.run(&["verify", &path]).exits(0).says("object");
    let record = json_of(&exchange.home.read("record.json"));
    let digest = |file: &str| exchange.home.run(&["verify", file, "--json"]).exits(0).json()["digest"].clone();
    assert_eq!(record["type"], "rialto.performance_record");
    assert_eq!(record["intent_digest"], digest(&exchange.question));
    assert_eq!(record["response_digest"], digest(&lie));
    assert_eq!(record["subject_did"], json_of(&exchange.home.read("lie.json"))["resolver_did"]);
    assert_eq!(record["intent_id"], "urn:oap:intent:audited");
    let codes: Vec<&Value> = record["violations"].as_array().unwrap().iter().map(|found| &found["code"]).collect();
    assert_eq!(codes, ["rank_out_of_place", "ranking_differs"]);
    let mut members: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let page = include_str!("../../../../docs/performance-record.md");
    let mut listed: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    listed.sort_unstable();
    assert_eq!(members, listed, "docs/performance-record.md lists every member");
    let missing = exchange.home.path("none.json");
    exchange.verify(&lie, &["--record", &path, "--key", &missing]).exits(3).says("rank_out_of_place");
}

#[test]
fn each_signer_brings_its_own_did_document() {
    let exchange = Exchange::new("audit-did-web");
    let key = SigningKey::from_seed([7; 32]);
    let did = "did:web:resolver.example";
    let mut answer = json_of(&exchange.home.read("answer.json"));
    answer["resolver_did"] = json!(did);
    trust::sign(&mut answer, &key).unwrap();
    answer["signature"].as_object_mut().unwrap().remove("kid");
    let file = exchange.home.file("web.json", &answer.to_string());
    let document = json!({
        "id": did,
        "verificationMethod": [{
            "id": format!("{did}#k"), "type": "Multikey", "controller": did,
            "publicKeyMultibase": key.public().to_multibase(),
        }],
        "assertionMethod": [format!("{did}#k")],
    });
    let document = exchange.home.file("did.json", &document.to_string());
    let other = exchange.home.file("other-did.json", r#"{"id": "did:web:other.example"}"#);
    exchange.verify(&file, &[]).exits(1).complains("error[did_method_unsupported]");
    let ran = exchange.verify(&file, &["--did-document", &document]).exits(0);
    ran.says(did);
    assert!(ran.err.is_empty(), "{}", ran.err);
    exchange.verify(&file, &["--did-document", &other, "--did-document", &document]).exits(0);
    exchange.verify(&file, &["--did-document", &other]).exits(1).complains("error[did_document_invalid]");
    // A second name beside the resolver's does not change who has to have signed.
    let thief = SigningKey::from_seed([8; 32]);
    answer["issuer_did"] = json!(thief.did_key().as_str());
    trust::sign(&mut answer, &thief).unwrap();
    let borrowed = exchange.home.file("borrowed.json", &answer.to_string());
    exchange.home.run(&["verify", &borrowed]).exits(0).says(thief.did_key().as_str());
    exchange.verify(&borrowed, &["--did-document", &document]).exits(1).complains("error[kid_not_authorized]");
}
