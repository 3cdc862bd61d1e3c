//! `resolve` and `explain`: answers, reasons, and what strangers put into records.

use crate::run::{Home, Ran, intent, market};
use json::{Value, json};

/// An example, and what an independent evaluator answers to it.
struct Example {
    intent: &'static str,
    market: &'static str,
    /// The ids in rank order, without what they have in common; `!` marks those over budget.
    ids: &'static [&'static str],
    around: (&'static str, &'static str),
    rejected: usize,
    shares: &'static str,
}

const TOOLS: (&str, &str) = ("did:web:", ".example");
const OFFERS: (&str, &str) = ("urn:oap:offer:", "");

const EXAMPLES: &[Example] = &[
    Example {
        intent: "affordable-certified-translation",
        market: "manifests",
        ids: &["vistula-language-house", "northlight-translations", "!quayside-translation-bureau"],
        around: TOOLS,
        rejected: 109,
        shares: "30.00 to #1",
    },
    Example {
        intent: "quick-weather-for-europe",
        market: "manifests",
        ids: &["windrose-weather-data", "fjordcast", "stratus-point-forecasts"],
        around: TOOLS,
        rejected: 109,
        shares: "",
    },
    Example {
        intent: "legal-research-inside-the-eu",
        market: "manifests",
        ids: &["statute-lantern", "emerald-law-search", "treaty-reading-room", "!codex-navigator"],
        around: TOOLS,
        rejected: 108,
        shares: "0.80 to #1",
    },
    Example {
        intent: "tools-that-accept-geojson",
        market: "manifests",
        ids: &[
            "windrose-weather-data",
            "highpass-imagery",
            "isobar-analytics",
            "rotorview-inspection",
            "radarfield-observation",
            "furrow-and-row-advice",
            "plotline-permits",
        ],
        around: TOOLS,
        rejected: 105,
        shares: "",
    },
    Example {
        intent: "final-steps-with-second-thoughts",
        market: "manifests",
        ids: &["stonebridge-transfers", "swiftwater-payouts", "cadastre-gate", "town-square-newswire"],
        around: TOOLS,
        rejected: 108,
        shares: "",
    },
    Example {
        intent: "courier-before-friday-evening",
        market: "offers",
        ids: &[
            "harbourline-couriers:log-parcel-standard-2",
            "tandem-parcel-cooperative:log-parcel-green-1",
            "polder-cargo-bikes:log-parcel-green-1",
        ],
        around: OFFERS,
        rejected: 66,
        shares: "54.00 to #1, 27.00 to #2, 9.00 to #3",
    },
    Example {
        intent: "vegetarian-lunch-for-forty",
        market: "offers",
        ids: &[
            "market-hall-kitchen:cat-box-2",
            "copper-ladle-catering:cat-buffet-cold-1",
            "market-hall-kitchen:cat-buffet-cold-1",
            "long-table-collective:cat-buffet-cold-1",
            "green-spoon-canteen:cat-buffet-cold-1",
            "!olive-terrace-events:cat-tapas-1",
        ],
        around: OFFERS,
        rejected: 66,
        shares: "900.00 to #1",
    },
    Example {
        intent: "printed-brackets-with-returns",
        market: "offers",
        ids: &["layerworks-foundry:am-sls-pa12-1"],
        around: OFFERS,
        rejected: 67,
        shares: "240.00 to #1",
    },
    Example {
        intent: "battery-reading-list",
        market: "knowledge",
        ids: &["solid-electrolyte-review", "dendrites-under-pressure", "sodium-ion-cold", "sodium-ion-cost"],
        around: ("https://energy-storage-notes.example/nodes/", ""),
        rejected: 53,
        shares: "8.12 to #1, 5.40 to #2, 4.32 to #3, 2.16 to #4",
    },
];

fn resolve(home: &Home, intent: &str, market: &str, more: &[&str]) -> Ran {
    let arguments = [&["resolve", "--intent", intent, "--candidates", market], more].concat();
    home.run(&arguments)
}

fn ids(list: &Value) -> Vec<String> {
    let name = |entry: &Value| entry["candidate_id"].as_str().unwrap().to_owned();
    list.as_array().into_iter().flatten().map(name).collect()
}

#[test]
fn every_example_is_answered_as_an_independent_evaluator_answers_it() {
    let home = Home::new("examples");
    home.run(&["keys", "new"]).exits(0);
    for example in EXAMPLES {
        let (intent, market) = (intent(example.intent), market(example.market));
        let response = resolve(&home, &intent, &market, &["--json", "--rejected", "1000"]).exits(0).json();
        let (before, after) = example.around;
        let expected: Vec<String> =
            example.ids.iter().map(|id| format!("{before}{}{after}", id.trim_start_matches('!'))).collect();
        assert_eq!(ids(&response["candidates"]), expected, "{}", example.intent);
        for (id, found) in example.ids.iter().zip(response["candidates"].as_array().unwrap()) {
            assert_eq!(found["over_budget"] == json!(true), id.starts_with('!'), "{id}");
        }
        assert_eq!(ids(&response["rejected"]).len(), example.rejected, "{}", example.intent);
        let shown = resolve(&home, &intent, &market, &[]).exits(0);
        assert!(shown.out.contains(example.shares) && shown.err.is_empty(), "{}", shown.out);
    }
}

#[test]
fn free_and_dear_studies_stand_in_one_answer() {
    let home = Home::new("floods");
    let response = resolve(&home, &intent("openly-licensed-flood-studies"), &market("knowledge"), &["--json"]).json();
    let found = ids(&response["candidates"]);
    let expected = ["gauge-network-alps", "alpine-flash-floods", "drought-then-flood"];
    for (id, name) in found.iter().zip(expected) {
        assert_eq!(*id, format!("https://river-basin-library.example/nodes/{name}"));
    }
    assert_eq!(found.len(), 7);
    assert!(found.last().unwrap().ends_with("/forecast-lead-time"));
    assert_eq!(response["candidates"][6]["over_budget"], true);
}

#[test]
fn the_signed_answer_verifies_and_a_changed_one_does_not() {
    let home = Home::new("answers");
    home.run(&["keys", "new"]).exits(0);
    for pretty in [&["--json"][..], &["--json", "--pretty"]] {
        let answer = resolve(&home, &intent("courier-before-friday-evening"), &market("offers"), pretty).exits(0);
        let file = home.file("answer.json", &answer.out);
        let proof = home.run(&["verify", &file, "--json"]).exits(0).json();
        assert_eq!(proof["kind"], "response");
        assert_eq!(proof["signer"], home.run(&["keys", "show", "--json"]).json()["did"]);
        let changed = home.file("changed.json", &answer.out.replace("38.20", "38.21"));
        let refused = home.run(&["verify", &changed]).exits(1);
        refused.complains("error[signature_invalid]").complains("changed.json:").complains("/signature/value");
    }
}

#[test]
fn over_budget_candidates_can_be_rejected_instead() {
    let home = Home::new("over-budget");
    let (intent, market) = (intent("affordable-certified-translation"), market("manifests"));
    let more = ["--json", "--rejected", "1000", "--over-budget", "reject"];
    let response = resolve(&home, &intent, &market, &more).exits(0).json();
    assert_eq!(ids(&response["candidates"]).len(), 2);
    let quayside = response["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["candidate_id"] == "did:web:quayside-translation-bureau.example");
    assert_eq!(quayside.unwrap()["decision_record"]["outcome"], "over_budget");
}

#[test]
fn rejected_ones_are_named_up_to_a_number() {
    let home = Home::new("rejected");
    let (intent, market) = (intent("affordable-certified-translation"), market("manifests"));
    let some = resolve(&home, &intent, &market, &["--json", "--rejected", "4"]).json();
    assert_eq!(ids(&some["rejected"]).len(), 4);
    let shown = resolve(&home, &intent, &market, &["--rejected", "3"]).exits(0);
    shown.says("109 rejected").says("the 3 nearest misses").says("performance_score 0.62 is below 0.75");
    let none = resolve(&home, &intent, &market, &["--rejected", "0"]).exits(0);
    assert!(!none.says("109 rejected").out.contains("nearest"));
}

const DRAFT: &str = r#"{"category": "discovery", "constraints": {"path": "/kind", "operator": "eq", "value": "tool"},
    "projection": {"include": ["/id", "/kind"]}}"#;

#[test]
fn a_bad_line_is_named_and_skipped() {
    let home = Home::new("bad-lines");
    let draft = home.file("draft.json", DRAFT);
    let lines = "{\"id\":\"a\",\"kind\":\"tool\"}\n{\"id\":\"b\",\"kind\":\"tool\",\"kind\":\"x\"}\n\n{\"id\":\n{\"record\":{},\"quality\":{\"performance_score\":7}}\n{\"id\":\"c\",\"kind\":\"tool\"}\n";
    let candidates = home.file("lines.ndjson", lines);
    let ran = resolve(&home, &draft, &candidates, &[]).exits(0);
    ran.says("2 answers among 2 candidates").says("3 lines skipped");
    ran.complains("lines.ndjson:2: skipped, json_duplicate_key at /kind");
    ran.complains("lines.ndjson:4: skipped, json_syntax");
    ran.complains("lines.ndjson:5: skipped, invalid_value at /quality/performance_score");
    let empty = home.file("empty.ndjson", "\n\n");
    resolve(&home, &draft, &empty, &[]).exits(1).complains("there is no candidate in");
}

#[test]
fn text_of_strangers_cannot_act_on_the_terminal() {
    let home = Home::new("hostile");
    home.run(&["keys", "new"]).exits(0);
    let draft = home.file("draft.json", DRAFT);
    let hostile = "\\u001b]0;gone\\u0007\\u009b2J\\u202egnp.exe\\r\\nroot";
    let line = |id: &str, kind: &str| format!("{{\"id\":\"{id}\",\"kind\":\"{kind}\",\"{id}\":\"{id}\"}}\n");
    let raw = "\u{7f}\u{9b}31m\u{200b}\u{2066}";
    let lines =
        [line(hostile, "tool"), line(&format!("{raw}x"), "tool"), line("plain", hostile), line(raw, "y")].concat();
    let bad = format!("{{\"{raw}\":1,\"{raw}\":2}}\n");
    let candidates = home.file("hostile.ndjson", &(lines + &bad));
    let escaped = "\u{1b}]0;gone\u{7}\u{9b}2J\u{202e}gnp.exe\r\nroot";
    let asked = ["--intent", &draft, "--candidates", &candidates];
    let runs = [
        home.run(&[&["resolve"], &asked[..]].concat()).exits(0),
        home.run(&[&["resolve", "--json"], &asked[..]].concat()).exits(0),
        home.run(&[&["resolve", "--json", "--pretty"], &asked[..]].concat()).exits(0),
        home.run(&[&["explain", escaped], &asked[..]].concat()).exits(0),
        home.run(&[&["explain", escaped, "--json"], &asked[..]].concat()).exits(0),
        home.run(&[&["explain", "\u{1b}[2Jnobody"], &asked[..]].concat()).exits(1),
    ];
    for ran in &runs {
        for character in (ran.out.clone() + &ran.err).chars() {
            let harmless = character == '\n' || !character.is_control();
            assert!(
                harmless && !"\u{202e}\u{2066}\u{200b}".contains(character),
                "{character:?} in {}{}",
                ran.out,
                ran.err
            );
        }
    }
    runs[0].says("\\u001b]0;gone\\u0007\\u009b2J\\u202egnp.exe\\u000d\\u000aroot").complains("hostile.ndjson:5:");
    // The escapes are spelling only: the answer is still the one that was signed.
    let answer = home.file("answer.json", &runs[1].out);
    home.run(&["verify", &answer]).exits(0);
    assert_eq!(runs[1].json()["candidates"].as_array().unwrap().len(), 2);
}

#[test]
fn mistakes_in_an_intent_stop_it_with_code_and_place() {
    let home = Home::new("broken");
    for (name, code, place) in [
        ("unknown-operator", "unknown_operator", "unknown-operator.json:3:54, /constraints/operator, RFC 0020 A.8"),
        ("pattern-not-closed", "invalid_regex", "pattern-not-closed.json:3:78, /constraints/value"),
        ("path-without-slash", "invalid_pointer", "path-without-slash.json:3:28, /constraints/path"),
    ] {
        let ran = resolve(&home, &intent(&format!("broken/{name}")), &market("manifests"), &[]).exits(1);
        ran.complains(&format!("error[{code}]")).complains(place).complains("help:");
        assert!(ran.out.is_empty());
    }
    for name in ["exists-with-false", "range-that-cannot-hold"] {
        let ran = resolve(&home, &intent(&format!("broken/{name}")), &market("manifests"), &[]).exits(0);
        ran.says("no answer among 112 candidates").says("112 rejected: all by constraints");
    }
}

#[test]
fn an_intent_is_answered_in_its_window_only_and_explained_at_any_time() {
    let home = Home::new("window");
    home.run(&["keys", "new"]).exits(0);
    let late = DRAFT.replacen(
        '{',
        "{\"validity\": {\"from\": \"2020-01-01T00:00:00Z\", \"to\": \"2020-01-01T01:00:00Z\"},",
        1,
    );
    let draft = home.file("late-draft.json", &late);
    let signed = home.path("late.json");
    home.run(&["sign", &draft, "-o", &signed]).exits(0).complains("intent_expired");
    let candidates = home.file("one.ndjson", "{\"id\":\"a\",\"kind\":\"tool\"}\n");
    let refused = resolve(&home, &signed, &candidates, &[]).exits(1);
    refused.complains("error[intent_expired]").complains("/validity, RFC 0020 §3.1");
    let explained = home.run(&["explain", "--intent", &signed, "--candidates", &candidates, "a"]).exits(0);
    explained.says("accept, rank 1 of 1").complains("window is not open");
}

#[test]
fn a_signed_intent_is_verified_before_it_is_answered() {
    let home = Home::new("signed-intent");
    home.run(&["keys", "new"]).exits(0);
    let signed = home.path("signed.json");
    home.run(&["sign", &intent("quick-weather-for-europe"), "-o", &signed]).exits(0);
    let answered = resolve(&home, &signed, &market("manifests"), &[]).exits(0);
    assert!(answered.says("3 answers").err.is_empty());
    let changed = home.file("changed.json", &home.read("signed.json").replace("0.999", "0.1"));
    resolve(&home, &changed, &market("manifests"), &[]).exits(1).complains("error[signature_invalid]");
}

#[test]
fn nobody_asks_in_the_name_of_another() {
    let home = Home::new("other-issuer");
    home.run(&["keys", "new"]).exits(0);
    let draft = home.file("draft.json", &DRAFT.replacen('{', "{\"issuer_did\": \"did:web:somebody.example\",", 1));
    let ran = resolve(&home, &draft, &market("manifests"), &[]).exits(1);
    ran.complains("`issuer_did` is did:web:somebody.example").complains("draft.json:1:16, /issuer_did");
}

#[test]
fn a_pattern_that_needs_too_many_steps_has_no_answer() {
    let home = Home::new("steps");
    let draft = DRAFT.replace("\"eq\", \"value\": \"tool\"", "\"matches\", \"value\": \"^(a|aa)+\\\\1$\"");
    let draft = home.file("draft.json", &draft);
    let candidates = home.file("long.ndjson", &format!("{{\"id\":\"a\",\"kind\":\"{}!\"}}\n", "a".repeat(2_000)));
    let ran = resolve(&home, &draft, &candidates, &[]).exits(1);
    ran.complains("error[regex_budget_exceeded]");
}

#[test]
fn standard_input_serves_one_of_the_two() {
    let home = Home::new("stdin");
    let candidates = home.file("one.ndjson", "{\"id\":\"a\",\"kind\":\"tool\"}\n");
    let asked = ["resolve", "--intent", "-", "--candidates", &candidates];
    home.run_with(&[], DRAFT, &asked).exits(0).says("1 answer among 1 candidate\n");
    let wrong = home.run_with(&[], &DRAFT.replace("\"eq\"", "\"is\""), &asked).exits(1);
    wrong.complains("stdin:1:").complains("/constraints/operator");
    home.run(&["resolve", "--intent", "-", "--candidates", "-"]).exits(2).complains("both");
    home.run(&["resolve", "--intent", "x.json"]).exits(2);
    home.run(&["resolve", "--intent", "no-such-file.json", "--candidates", "-"]).exits(3).complains("no-such-file");
}

fn explain(home: &Home, intent_name: &str, market_name: &str, id: &str, more: &[&str]) -> Ran {
    let (intent, market) = (intent(intent_name), market(market_name));
    home.run(&[&["explain", "--intent", &intent, "--candidates", &market, id], more].concat())
}

#[test]
fn each_reason_is_explained() {
    let home = Home::new("explain");
    let translation = |id: &str| explain(&home, "affordable-certified-translation", "manifests", id, &[]).exits(0);
    translation("did:web:vistula-language-house.example").says("accept, rank 1 of 3").says("✓ 19.80 EUR of 30.00 EUR");
    translation("did:web:quayside-translation-bureau.example").says("✗ 34.00 EUR of 30.00 EUR");
    translation("did:web:amber-coast-script-office.example").says("✗ performance_score    0.62     at least 0.75");
    translation("did:web:lagoon-translations.example").says("✗ conformance_level    unknown  at least L1");
    translation("did:web:atlantic-word-exchange.example").says("✗ no price in EUR");
    translation("did:web:tagus-translation-rooms.example")
        .says("✗ not /data_policy/training_on_principal_data eq \"by_default\"")
        .says("negated: satisfied");
    explain(
        &home,
        "courier-before-friday-evening",
        "offers",
        "urn:oap:offer:nightbarge-freight:log-parcel-standard-1",
        &[],
    )
    .exits(0)
    .says("✗ /delivery_commitment/tracking_endpoint  the record does not supply it");
    explain(&home, "tools-that-accept-geojson", "manifests", "did:web:highpass-imagery.example", &[])
        .exits(0)
        .says("rank 2 of 7");
}

#[test]
fn what_the_policy_leaves_out_still_has_a_score() {
    let home = Home::new("left-out");
    let offers = resolve(&home, &intent("printed-brackets-with-returns"), &market("offers"), &[]).exits(0);
    offers.says("1 answer among 72 candidates, 4 more left out by single_best");
    let draft = DRAFT.replacen('{', "{\"resolution_policy\": \"single_best\",", 1);
    let draft = home.file("draft.json", &draft);
    let candidates = home.file("two.ndjson", "{\"id\":\"a\",\"kind\":\"tool\"}\n{\"id\":\"b\",\"kind\":\"tool\"}\n");
    let ran = home.run(&["explain", "--intent", &draft, "--candidates", &candidates, "b"]).exits(0);
    ran.says("accept, left out: the answer has no room for it").says("score by rialto.rank 1.1");
}

#[test]
fn an_explanation_for_programs_holds_the_decision_record() {
    let home = Home::new("explain-json");
    let id = "did:web:fjordcast.example";
    let value = explain(&home, "quick-weather-for-europe", "manifests", id, &["--json"]).exits(0).json();
    assert_eq!((&value["candidate_id"], &value["rank"]), (&json!(id), &json!(2)));
    let record = &value["decision_record"];
    assert_eq!(record["outcome"], "accept");
    assert_eq!(record["constraint_evaluations"].as_array().unwrap().len(), 4);
    assert_eq!(record["ranking_function"]["function_id"], "rialto.rank");
    assert_eq!(
        value["quality_floor"][0],
        json!({"signal": "performance_score", "floor": 0.8, "found": 0.9, "met": true})
    );
    assert_eq!(value["quality_floor"][1]["floor"], 900);
    assert!(value["projection"].as_array().unwrap().iter().all(|include| include["supplied"] == true));
}

#[test]
fn an_unknown_id_is_answered_with_the_nearest_ones() {
    let home = Home::new("unknown-id");
    let ask = |id: &str| explain(&home, "quick-weather-for-europe", "manifests", id, &[]).exits(1);
    ask("did:web:fjordcst.example").complains("did you mean did:web:fjordcast.example");
    ask("windrose").complains("did:web:windrose-weather-data.example");
    ask("zzzzzzzz").complains("`rialto resolve` prints the ids");
}

#[test]
fn a_reader_who_leaves_early_is_no_failure() {
    let home = Home::new("pipe");
    let (intent, market) = (intent("quick-weather-for-europe"), market("manifests"));
    let mut child = home.command(&[], &["resolve", "--intent", &intent, "--candidates", &market]).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}
