//! `rialto conformance` and the crash loop on the real binary: green on an honest node, red on one that is not.

use crate::run::Home;
use conformance::crash::{Crowd, FeedTorment, Program, Torment, clock, crowd, torment, torment_feed};
use json::{Value, json};
use probe::{Examination, Exchange, Http, Level, Reply, Request, Settings, Target, examine};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

fn program(home: &Home) -> Program {
    Program::new(Path::new(env!("CARGO_BIN_EXE_rialto")), Path::new(&home.path("")))
}

/// HTTP with somebody in between.
struct Between(Http, fn(&str, &mut Reply));

impl Exchange for Between {
    fn exchange(&self, request: &Request<'_>) -> Result<Reply, probe::Error> {
        let mut reply = self.0.exchange(request)?;
        (self.1)(request.url, &mut reply);
        Ok(reply)
    }
}

fn examined(url: &str, only: &str, between: fn(&str, &mut Reply)) -> Examination {
    let exchange = Between(Http::new().unwrap(), between);
    let target = Target::at(url, Box::new(exchange)).unwrap();
    let (only, clock) = (Some(only.to_owned()), Arc::new(clock));
    let settings = Settings { only, connections: 8, seed: [1; 32], clock, publisher: None };
    examine(target, settings, &|_, _| {}).unwrap()
}

#[test]
fn the_node_meets_q1_to_q3_and_s1_to_s3_in_every_case_that_can_be_put() {
    let home = Home::new("examined");
    // Events are brought to the examiner, who is on this machine.
    let (node, _) = program(&home).with(&["--private-networks".to_owned()]).serve().unwrap();
    let shown = home.path("data/conformance-receipt.json");
    let ran = home.run(&["conformance", &node.url, "--level", "Q3", "--json", "--receipt", &shown]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let failed: Vec<&Value> = report["requirements"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|found| found["failed"].as_array().unwrap())
        .collect();
    assert_eq!(failed, [&json!(null); 0]);
    assert_eq!((ran.code, &report["q1"], &report["left_behind"]), (0, &json!("met"), &json!([])), "{}", ran.err);
    assert_eq!(report["q2"], json!("met"));
    // V3 needs a key whose mappings the operator trusts.
    let levels = json!({
        "Q1": "met", "Q2": "met", "Q3": "met", "S1": "met", "S2": "met", "S3": "met",
        "V1": "met", "V2": "met", "V3": "not_shown",
    });
    assert_eq!((&report["levels"], &report["unshown"]), (&levels, &json!([])));
    assert!(report["passed"].as_u64().unwrap() >= 1_841, "{}", report["passed"]);
    assert!(report["not_applicable"].as_u64().unwrap() <= 46, "{}", report["not_applicable"]);
    let found = &report["completeness"];
    assert_eq!((&found["aql_completeness_ratio"], &found["unexpected"]), (&json!(1.0), &json!(0)), "{found}");
    assert_eq!(report["surface"], json!({"levels": ["L0", "L1"], "l0": [], "l1": []}));
    the_receipt_is_sound_and_shown(&node.url, &report, &std::fs::read(&shown).unwrap());
}

/// What the examination said stands in the receipt, signed, and the node shows it as it is.
#[track_caller]
fn the_receipt_is_sound_and_shown(url: &str, report: &Value, bytes: &[u8]) {
    let receipt = json::Document::parse(bytes, &json::Limits::DOCUMENT).unwrap();
    let list = trust::SignedList::read(&receipt, "peer_witnesses").unwrap();
    let examiner = list.signers().next().unwrap().clone();
    list.verify_with(&trust::DidDocument::of_key(&examiner).unwrap()).unwrap();
    let value = receipt.root().to_value();
    assert_eq!(value["aql_completeness_ratio"], json!(1));
    assert_eq!((&value["aql_levels"], &value["claimed_levels"]), (&json!(["Q1", "Q2"]), &json!(["L0", "L1"])));
    assert_eq!((&value["implementation"]["did"], &value["results_summary"]["failed"]), (&report["did"], &json!(0)));
    assert_eq!(value["results_hash"], json!(trust::Digest::of(&json::canonical_value(report)).to_string()));
    assert_eq!(
        (&value["attestor"]["did"], &value["attestor"]["method"]),
        (&json!(examiner.as_str()), &json!("live_witness"))
    );
    let get = |path: &str| {
        let url = format!("{url}{path}");
        Http::new().unwrap().exchange(&Request { method: "GET", url: &url, media_type: "", body: &[] }).unwrap()
    };
    let shown = get("/oap/conformance-receipt");
    assert_eq!((shown.status, shown.body.as_slice()), (200, bytes));
    let manifest: Value = serde_json::from_slice(&get("/.well-known/oap-tool.json").body).unwrap();
    assert_eq!(manifest["conformance"]["claimed_levels"], json!(["L0", "L1"]));
}

#[test]
fn a_node_that_leaves_answers_out_has_a_lower_ratio() {
    let home = Home::new("examined-for-completeness");
    let (node, _) = program(&home).serve().unwrap();
    // Pages after the first get lost on the way.
    let short = examined(&node.url, "aql_completeness_ratio", |url, reply| {
        if url.contains("cursor=") {
            *reply = Reply { status: 500, body: b"{}".to_vec() };
        }
    });
    let short = short.completeness.unwrap();
    assert!(short.ratio() < 1.0 && !short.flaws.is_empty() && !short.is_whole(), "{short:?}");
}

#[test]
fn a_report_for_people_names_requirements_and_reasons() {
    let home = Home::new("examined-a-little");
    let (node, _) = program(&home).serve().unwrap();
    let ran = home.run(&["conformance", &node.url, "--only", "AQL-SIG"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    for words in ["AQL-SIG-09", "A.3 R1", "cannot be put over HTTP", "RFC 0020 level Q1 is met"] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    let nobody = home.run(&["conformance", "http://127.0.0.1:1"]);
    assert!(nobody.code == 1 && nobody.err.contains("cannot be examined"), "{}", nobody.err);
}

#[test]
fn without_an_endpoint_for_records_refusals_are_tried_and_nothing_is_shown() {
    let home = Home::new("examined-without-records");
    let (node, _) = program(&home).serve().unwrap();
    let without_records = |url: &str, reply: &mut Reply| {
        if url.ends_with("oap-tool.json") {
            let mut manifest: Value = serde_json::from_slice(&reply.body).unwrap();
            manifest["endpoints"].as_object_mut().unwrap().remove("records");
            reply.body = manifest.to_string().into_bytes();
        }
    };
    let examination = examined(&node.url, "AQL-INT", without_records);
    let (passed, failed, _) = examination.totals();
    assert!(!examination.has_records && passed > 50 && failed == 0, "{:?}", examination.totals());
    assert_eq!(examined(&node.url, "AQL-ALG", without_records).q1(), Level::NotShown);
}

#[test]
fn a_node_that_says_the_opposite_is_found_out() {
    let home = Home::new("examined-in-between");
    let (node, _) = program(&home).serve().unwrap();
    // Whoever changes an answer breaks its signature.
    let forged = examined(&node.url, "exists-", |url, reply| {
        if url.ends_with("/oap/intent") {
            reply.body = String::from_utf8_lossy(&reply.body).replace("\"accept\"", "\"reject\"").into_bytes();
        }
    });
    assert_eq!(forged.q1(), Level::NotMet);
    assert!(
        forged.findings.iter().flat_map(|found| &found.failed).any(|(_, why)| why.contains("not signed by the node"))
    );
    // A refusal that becomes an answer is one, too.
    let lax = examined(&node.url, "AQL-INT-06", |url, reply| {
        if url.ends_with("/oap/intent") && reply.status == 400 {
            reply.body = b"{}".to_vec();
        }
    });
    assert_eq!(lax.q1(), Level::NotMet);
}

/// A node that from its third start on wakes up with what it knew at the second.
fn forgetful(home: &Home) -> Program {
    let (data, old) = (home.path("data"), home.path("old"));
    let binary = env!("CARGO_BIN_EXE_rialto");
    let script = format!(
        "#!/bin/sh\nif [ -d '{old}' ]; then rm -rf '{data}'; cp -r '{old}' '{data}'; \
         elif [ -d '{data}' ]; then cp -r '{data}' '{old}'; fi\nexec '{binary}' \"$@\"\n"
    );
    let path = home.file("forgetful", &script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Program::new(Path::new(&path), Path::new(&home.path("")))
}

#[test]
fn a_node_that_forgets_is_found_out() {
    let home = Home::new("forgets");
    let toll = torment(&forgetful(&home), &Torment { cycles: 2, seed: 3 }, &mut |_| {}).unwrap();
    assert!(toll.broken.lost > 0 && toll.broken.sequence > 0 && !toll.is_clean(), "{toll:?}");
}

#[test]
fn a_node_keeps_its_word_through_kills() {
    let home = Home::new("killed");
    let toll = torment(&program(&home), &Torment { cycles: 3, seed: 11 }, &mut |_| {}).unwrap();
    assert!(toll.is_clean(), "{toll:?}");
    assert!(toll.acknowledged > 0 && toll.looks > 500 && toll.cycles == 3, "{toll:?}");
}

#[test]
fn a_node_that_forgets_what_it_told_is_found_out() {
    let home = Home::new("forgets-what-it-told");
    let wanted = FeedTorment { cycles: 2, subscribers: 12, between_ms: (1_000, 1_500), seed: 7 };
    match torment_feed(&forgetful(&home), &wanted, &mut |_| {}) {
        Ok(toll) => assert!(!toll.is_clean() && !toll.told.is_empty(), "{toll:?}"),
        // Whoever withdraws a record that was acknowledged and is forgotten finds it out at once.
        Err(error) => assert!(format!("{error:#}").contains("record_not_found"), "{error:#}"),
    }
}

#[test]
fn subscribers_hear_everything_once_through_kills() {
    let home = Home::new("killed-while-telling");
    let wanted = FeedTorment { cycles: 4, subscribers: 40, between_ms: (300, 1_200), seed: 13 };
    let toll = torment_feed(&program(&home), &wanted, &mut |_| {}).unwrap();
    assert!(toll.is_clean(), "{toll:?}");
    assert!(toll.events > 100 && toll.verified > 0 && toll.read_again == toll.events, "{toll:?}");
}

#[test]
fn a_crowd_hears_everything_once() {
    let home = Home::new("crowd");
    let program = program(&home).with(&["--connections", "5000"].map(str::to_owned));
    let wanted = Crowd { clients: 60, events_per_second: 120, alike: 10, seconds: 2 };
    let report = crowd(&program, &wanted, &mut |_| {}).unwrap();
    assert!(report.is_clean() && report.verified > 0, "{report:?}");
    assert_eq!((report.events, report.read_again), (report.publications * 10, report.publications * 10), "{report:?}");
    assert_eq!(report.connections, 60, "{report:?}");
}

#[test]
fn a_manifest_tells_how_many_connections_there_may_be() {
    let home = Home::new("many-connections");
    let (node, _) = program(&home).with(&["--connections", "5000"].map(str::to_owned)).serve().unwrap();
    let url = format!("{}/.well-known/oap-tool.json", node.url);
    let request = Request { method: "GET", url: &url, media_type: "application/json", body: &[] };
    let manifest = Http::new().unwrap().exchange(&request).unwrap();
    assert!(String::from_utf8_lossy(&manifest.body).contains("\"connections\":5000,"));
}
