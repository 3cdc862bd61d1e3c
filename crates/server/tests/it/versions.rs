//! RFC 0024 at the door: statuses, headers and signed bodies of a node that speaks versions.

use crate::subscriptions::Socket;
use crate::{House, NOW, asker, escaped, intent, interface, manifest, provider, publication, sign};
use json::{Instant, Value, json};
use node::Clock;
use node::folder::{self, Ending};
use node::versions::INTENT;
use reqwest::Method;
use schema::{SchemaId, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// An intent in a version, signed.
fn spoken(name: &str, version: &str) -> Value {
    let mut body = intent(name);
    body.as_object_mut().unwrap().remove("signature");
    body["schema_version"] = json!(version);
    sign(body, &asker())
}

async fn announce(house: &House, sunset: &str) {
    let ending = Ending {
        schema: SchemaId::parse(INTENT).unwrap(),
        version: Version::parse("1.2").unwrap(),
        sunset: Instant::parse_rfc3339(sunset).unwrap(),
        successor: Version::parse("1.3"),
    };
    let (did, clock) = (house.node.identity().did(), house.node.clock());
    let (_, message) = folder::announcement(house.folder.path(), did, clock, &ending).unwrap();
    let message = json::Document::parse(&message, &json::Limits::OURS).unwrap().root().to_value();
    house.post("/oap/records", &message).await.ok(&house.node);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_its_version_and_a_refusal_what_would_work() {
    let house = House::open().await;
    house.publish("a", "manifest", manifest()).await;
    let answer = house.post("/oap/intent", &spoken("bare", "1.2")).await.ok(&house.node);
    interface::valid("oap-intent-response.schema.json", &answer);
    assert_eq!((&answer["schema_version"], answer["candidates"].as_array().unwrap().len()), (&json!("1.2"), 1));
    let wrapped = json!({"schema_version": "1.3", "payload": intent("wrapped")});
    let answer = house.post("/oap/intent", &wrapped).await;
    assert_eq!(answer.ok(&house.node)["schema_version"], "1.3");
    assert!(!answer.headers.contains_key("deprecation"));
    let refused = house.post("/oap/intent", &spoken("unknown", "9.9")).await;
    let refused = refused.refused(&house.node, 409, "schema_version_not_accepted");
    assert_eq!(refused["error"]["details"]["versions"]["would_work"][1]["schema_version"], "1.3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_goes_is_warned_of_in_body_and_headers_and_then_gone() {
    let house = House::open().await;
    announce(&house, "2026-11-01T00:00:00Z").await;
    let answer = house.post("/oap/intent", &spoken("old", "1.2")).await;
    let body = answer.ok(&house.node);
    interface::valid("oap-intent-response.schema.json", &body);
    assert_eq!(body["deprecation_warning"]["sunset"], "2026-11-01T00:00:00Z");
    assert_eq!(answer.header("deprecation"), "@1777636800");
    assert_eq!(answer.header("sunset"), "Sun, 01 Nov 2026 00:00:00 GMT");
    let link = answer.header("link");
    assert!(link.ends_with("rel=\"deprecation\"; type=\"application/json\""), "{link}");
    let record = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
    let announced = house.get(&record).await.json();
    assert_eq!(announced["record"]["sunset"], "2026-11-01T00:00:00Z");
    let why = house.post("/oap/explain", &json!({"intent": spoken("why", "1.2")})).await;
    assert_eq!(why.ok(&house.node)["output"]["deprecation_warning"]["sunset"], "2026-11-01T00:00:00Z");
    assert_eq!(why.header("sunset"), "Sun, 01 Nov 2026 00:00:00 GMT");
    let answer = house.post("/oap/intent", &spoken("new", "1.3")).await;
    assert!(answer.ok(&house.node).get("deprecation_warning").is_none() && !answer.headers.contains_key("sunset"));
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    interface::valid("oap-manifest.schema.json", &manifest);
    let marked = &manifest["schema_compatibility"][INTENT]["deprecations"]["1.2"];
    assert_eq!((&marked["deprecated"], &marked["sunset"]), (&json!(true), &json!("2026-11-01T00:00:00Z")));
    let (kind, id) = ("DELETE", record.rsplit('/').next().unwrap());
    let body = crate::withdrawal(&provider(), "w", &id.replace("%3A", ":"));
    let refused = house.send(kind.parse::<Method>().unwrap(), &record, &body).await;
    refused.refused(&house.node, 409, "deprecation_reduced");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_warns_in_the_headers_before_it_and_in_each_of_its_parts() {
    let house = House::open().await;
    house.publish("a", "manifest", manifest()).await;
    announce(&house, "2026-11-01T00:00:00Z").await;
    let streamed = async |intent: Value| {
        let request = house.request(Method::POST, "/oap/intent").header("accept", "text/event-stream");
        let response = request.header("content-type", "application/json").body(intent.to_string()).send().await;
        let response = response.unwrap();
        let headers = response.headers().clone();
        let text = response.text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let parts = data.map(|part| json::Document::parse(part.as_bytes(), &json::Limits::OURS).unwrap());
        (headers, parts.map(|part| part.root().to_value()).collect::<Vec<_>>())
    };
    let (headers, parts) = streamed(spoken("old", "1.2")).await;
    assert_eq!(headers["deprecation"], "@1777636800");
    assert_eq!(headers["sunset"], "Sun, 01 Nov 2026 00:00:00 GMT");
    assert!(headers["link"].to_str().unwrap().contains("rel=\"deprecation\""));
    assert_eq!(parts.len(), 3, "the acknowledgement, the candidate, the end");
    for part in &parts {
        assert_eq!((&part["schema_version"], &part["deprecation_warning"]["version"]), (&json!("1.2"), &json!("1.2")));
    }
    interface::valid("oap-response-envelope.schema.json", &parts[0]);
    interface::valid("oap-intent-response.schema.json", &parts[1]);
    interface::valid("oap-response-envelope.schema.json", &parts[2]);
    let (headers, parts) = streamed(spoken("new", "1.3")).await;
    assert!(!headers.contains_key("deprecation") && !headers.contains_key("sunset"));
    assert!(parts.iter().all(|part| part["schema_version"] == "1.3" && part.get("deprecation_warning").is_none()));
    let (_, parts) = streamed(intent("silent")).await;
    assert!(parts.iter().all(|part| part.get("schema_version").is_none()));
    // A socket is open before anybody knows which version will be asked for.
    let (_, mut socket) = Socket::open(&house, "/oap/intent/socket", "").await;
    socket.send(1, spoken("socket", "1.2").to_string().as_bytes()).await;
    for _ in 0..3 {
        assert_eq!(socket.text(&house.node).await["data"]["deprecation_warning"]["sunset"], "2026-11-01T00:00:00Z");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_version_is_gone() {
    let hand = Arc::new(AtomicI64::new(NOW));
    let house = House::configured(|config| config.clock = Clock::Set(Arc::clone(&hand))).await;
    announce(&house, "2026-08-01T00:00:00Z").await;
    hand.store(NOW + 92 * 86_400_000, Ordering::Release);
    let mut late = spoken("late", "1.2");
    late["validity"] = json!({"from": "2026-08-01T11:00:00Z", "to": "2026-08-01T12:30:00Z"});
    late.as_object_mut().unwrap().remove("signature");
    let refused = house.post("/oap/intent", &sign(late, &asker())).await;
    let refused = refused.refused(&house.node, 410, "schema_version_withdrawn");
    assert_eq!(refused["error"]["details"]["versions"]["would_work"][0]["schema_version"], "1.3");
    let profile = house.node.manifest(&house.url)["schema_compatibility"][INTENT].clone();
    assert_eq!((&profile["accepts"], profile.get("deprecations")), (&json!(["1.3"]), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_takes_the_version_fields_around_it_and_inside_it() {
    let house = House::open().await;
    let published = publication(&provider(), "one", "manifest", manifest());
    let wrapped = json!({"schema_version": "1.0", "payload": published});
    let answer = house.post("/oap/records", &wrapped).await.ok(&house.node);
    interface::valid("oap-response-envelope.schema.json", &answer);
    assert_eq!(answer["schema_version"], "1.0");
    let mut bare = publication(&provider(), "two", "manifest", manifest());
    bare.as_object_mut().unwrap().remove("signature");
    bare["schema_version"] = json!("1.0");
    interface::valid("rialto-publication.schema.json", &sign(bare.clone(), &provider()));
    assert_eq!(house.post("/oap/records", &sign(bare, &provider())).await.ok(&house.node)["schema_version"], "1.0");
    let wish = json!({"intent": "find a translator", "schema_version": "1.0"});
    assert_eq!(house.post("/oap/discover", &wish).await.ok(&house.node)["schema_version"], "1.0");
    let question = json!({"schema_version": "1.0", "payload": {"intent": spoken("why", "1.2")}});
    assert_eq!(house.post("/oap/explain", &question).await.ok(&house.node)["schema_version"], "1.0");
    for (path, message) in [
        ("/oap/records", json!({"schema_version": "2.0", "payload": {}})),
        ("/oap/discover", json!({"intent": "x", "schema_version": "2.0"})),
        ("/oap/explain", json!({"schema_version": "2.0", "payload": {}})),
        ("/oap/invoke", json!({"schema_version": "2.0", "payload": {}})),
        ("/oap/data/delete", json!({"schema_version": "2.0", "payload": {}})),
        ("/oap/receipt-verify", json!({"schema_version": "2.0", "payload": {}})),
    ] {
        house.post(path, &message).await.refused(&house.node, 409, "schema_version_not_accepted");
    }
    let id = escaped(provider().did_key().as_str());
    let withdrawal = crate::withdrawal(&provider(), "gone", provider().did_key().as_str());
    let wrapped = json!({"schema_version": "1.0", "payload": withdrawal});
    let answer = house.send(Method::DELETE, &format!("/oap/records/{id}"), &wrapped).await;
    assert_eq!(answer.ok(&house.node)["schema_version"], "1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_names_every_schema_and_its_mappings_are_there() {
    let house = House::open().await;
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    let profile = &manifest["schema_compatibility"];
    for name in interface::names() {
        let id = interface::read(&interface::folder().join(&name))["$id"].as_str().unwrap().to_owned();
        assert!(profile.get(&id).is_some(), "{name}");
    }
    let mut seen = 0;
    for entry in profile.as_object().unwrap().values() {
        for link in entry["mappings"].as_array().unwrap() {
            let path = link["url"].as_str().unwrap().strip_prefix(&house.url).unwrap();
            let mapping = house.get(path).await.ok(&house.node);
            interface::valid("oap-schema-mapping.schema.json", &mapping);
            assert_eq!(mapping["publisher_did"], house.node.identity().did().as_str());
            seen += 1;
        }
    }
    assert_eq!(seen, 4);
    house.get("/oap/mappings/oap-intent-1.2-to-7.0").await.refused(&house.node, 404, "mapping_not_found");
}
