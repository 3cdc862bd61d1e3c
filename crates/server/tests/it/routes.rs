//! Every route does what it is for.

use crate::interface::valid;
use crate::{Answer, House, asker, escaped, intent, manifest, provider, publication, sign, withdrawal};
use json::{Value, json};
use reqwest::{Method, StatusCode};

const ENVELOPE: &str = "oap-response-envelope.schema.json";

#[tokio::test(flavor = "multi_thread")]
async fn a_record_comes_is_found_explained_and_goes() {
    let house = House::open().await;
    let (node, did) = (&house.node, provider().did_key().to_string());
    let published = publication(&provider(), "one", "manifest", manifest());
    valid("rialto-publication.schema.json", &published);
    let first = house.post("/oap/records", &published).await;
    let acknowledged = first.ok(node);
    valid(ENVELOPE, &acknowledged);
    let output = &acknowledged["output"];
    assert_eq!(
        (&output["record_id"], &output["state"], &output["sequence"]),
        (&json!(did), &json!("active"), &json!(1))
    );
    assert_eq!(house.post("/oap/records", &published).await.bytes, first.bytes, "the same bytes, the same answer");

    let asked = intent("found");
    valid("oap-intent.schema.json", &asked);
    let answer = house.post("/oap/intent", &asked).await.ok(node);
    valid("oap-intent-response.schema.json", &answer);
    assert_eq!(answer["candidates"][0]["payload"]["tool"]["name"], "Lagoon Translations");

    let decision_id = answer["candidates"][0]["decision_record"]["decision_id"].as_str().unwrap();
    let decision = house.get(&format!("/oap/decisions/{}", escaped(decision_id))).await.ok(node);
    valid(ENVELOPE, &decision);
    assert_eq!(decision["output"]["decision_record"], answer["candidates"][0]["decision_record"]);

    for (question, held) in [
        (json!({"intent": asked, "candidate_id": did}), Some(true)),
        (json!({"intent": asked, "candidate_id": "did:web:nobody.example"}), Some(false)),
        (json!({"intent": asked}), None),
    ] {
        valid("rialto-explain-request.schema.json", &question);
        let explanation = house.post("/oap/explain", &question).await.ok(node);
        valid(ENVELOPE, &explanation);
        assert_eq!(explanation["output"]["held"].as_bool(), held);
    }

    let address = format!("/oap/records/{}", escaped(&did));
    assert_eq!(house.get(&address).await.json(), published);
    let body = withdrawal(&provider(), "two", &did);
    valid("rialto-withdrawal.schema.json", &body);
    let gone = house.send(Method::DELETE, &address, &body).await.ok(node);
    valid(ENVELOPE, &gone);
    assert_eq!(gone["output"]["state"], "withdrawn");
    house.get(&address).await.refused(node, 404, "record_not_found");
    let answer = house.post("/oap/intent", &intent("gone")).await.ok(node);
    assert_eq!(answer["candidates"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_record_is_shown_as_a_view() {
    let house = House::open().await;
    let (node, did) = (&house.node, provider().did_key().to_string());
    let mut message = publication(&provider(), "one", "manifest", manifest());
    message.as_object_mut().unwrap().remove("signature");
    message["restricted"] = json!([{"path": "/pricing", "audience": [did]}]);
    let message = sign(message, &provider());
    valid("rialto-publication.schema.json", &message);
    valid(ENVELOPE, &house.post("/oap/records", &message).await.ok(node));
    let shown = house.get(&format!("/oap/records/{}", escaped(&did))).await;
    for (name, expected) in [("oap-record-kind", "manifest"), ("oap-record-publisher", &*did)] {
        assert_eq!(shown.header(name), expected);
    }
    assert!(["oap-record-revision", "oap-record-sequence"].iter().all(|name| !shown.headers.contains_key(*name)));
    assert!(shown.header("content-type").starts_with("application/oap+json"));
    let view = shown.ok(node);
    valid(ENVELOPE, &view);
    assert_eq!(view["output"]["type"], "oap.record.view");
    assert_eq!(view["output"]["record"]["tool"], manifest()["tool"]);
    assert!(view["output"]["record"].get("pricing").is_none());
}

fn envelope(input: Value) -> Value {
    let body = json!({
        "oap_version": "1.0",
        "request_id": "01JTABCDEFGHJKMNPQRSTVWXYZ",
        "timestamp": "2026-05-01T12:00:00Z",
        "principal_did": asker().did_key().as_str(),
        "agent_did": asker().did_key().as_str(),
        "action": "resolve_intent",
        "input": input,
        "context": {"locale": "en", "currency": "EUR", "jurisdiction_user": "IT", "jurisdiction_agent": "IT"},
    });
    sign(body, &asker())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_can_be_invoked_in_the_core_protocols_envelope() {
    let house = House::open().await;
    house.publish("one", "manifest", manifest()).await;
    let request = envelope(intent("invoked"));
    valid("oap-request-envelope.schema.json", &request);
    let answer = house.post("/oap/invoke", &request).await.ok(&house.node);
    valid(ENVELOPE, &answer);
    assert_eq!(answer["request_id"], "01JTABCDEFGHJKMNPQRSTVWXYZ");
    assert_eq!(answer["output"]["candidates"][0]["payload"]["tool"]["name"], "Lagoon Translations");

    let mut forged = request.clone();
    forged["timestamp"] = json!("2026-05-01T12:00:01Z");
    house.post("/oap/invoke", &forged).await.refused(&house.node, 401, "signature_invalid");
    let mut other = request.clone();
    other["action"] = json!("launch");
    house.post("/oap/invoke", &other).await.refused(&house.node, 404, "unknown_action");
    let mut broken = intent("broken");
    broken["category"] = json!("weather");
    let refused = house.post("/oap/invoke", &envelope(broken)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.signed(&house.node)["error"]["details"]["pointer"], "/input/category");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_shows_the_published_receipts_of_a_principal() {
    let house = House::open().await;
    let me = asker().did_key().to_string();
    for number in 0..3 {
        let receipt = json!({
            "id": format!("urn:oap:receipt:{number}"), "receipt_id": format!("urn:oap:receipt:{number}"),
            "principal_did": me, "tool_did": provider().did_key().as_str(),
        });
        house.publish(&format!("receipt-{number}"), "receipt", receipt).await;
    }
    let audit = house.get(&format!("/oap/audit?principal_did={}&limit=2", escaped(&me))).await.ok(&house.node);
    valid("rialto-audit.schema.json", &audit);
    let ids: Vec<&str> =
        audit["receipts"].as_array().unwrap().iter().map(|receipt| receipt["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &audit["total"]), (vec!["urn:oap:receipt:2", "urn:oap:receipt:1"], &json!(3)));
    let nobody = house.get("/oap/audit?principal_did=did:web:nobody.example").await.ok(&house.node);
    assert_eq!((&nobody["receipts"], &nobody["total"]), (&json!([]), &json!(0)));
    house.get("/oap/audit").await.refused(&house.node, 400, "missing_field");
    house.get(&format!("/oap/audit?principal_did={me}&limit=many")).await.refused(&house.node, 400, "invalid_value");
}

/// An intent of another category that asks for everything.
pub(crate) fn of_category(name: &str, category: &str) -> Value {
    let mut asked = intent(name);
    asked["category"] = json!(category);
    asked["constraints"] = json!({"path": "", "operator": "exists", "value": true});
    asked["projection"] = json!({"include": ["/"]});
    for member in ["budget", "quality_floor", "signature"] {
        asked.as_object_mut().unwrap().remove(member);
    }
    sign(asked, &asker())
}

#[tokio::test(flavor = "multi_thread")]
async fn knowledge_is_delivered_with_its_receipts() {
    let house = House::open().await;
    let did = provider().did_key().to_string();
    let record = json!({"id": "urn:k:1", "@type": "oap.knowledge", "publisher_did": did,
        "price": {"amount": "0.20", "currency": "EUR"}});
    house.publish("k", "knowledge", record).await;
    let answer = house.post("/oap/intent", &of_category("k", "knowledge")).await.ok(&house.node);
    let name = escaped(answer["response_id"].as_str().unwrap());
    let proof = house.get(&format!("/oap/consumption/{name}")).await.ok(&house.node);
    valid(ENVELOPE, &proof);
    assert_eq!(proof["output"]["receipts"][0]["citations"][0]["provider_did"], json!(did));
    let metered = house.get(&format!("/oap/metering?provider_did={}", escaped(&did))).await.ok(&house.node);
    valid(ENVELOPE, &metered);
    let sum = json!({"unit": "knowledge_node", "nodes": 1, "count": 1, "amount": "0.2", "currency": "EUR"});
    assert_eq!(metered["output"]["sums"], json!([sum]));
    house.get("/oap/metering").await.refused(&house.node, 400, "missing_field");
    house.get("/oap/consumption/urn%3Ax").await.refused(&house.node, 404, "receipt_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_decision_about_an_action_is_shown_by_its_name() {
    let house = House::open().await;
    let mut record = manifest();
    record["actions"] = json!([{"id": "translate", "side_effects": "read"}]);
    house.publish("m", "manifest", record).await;
    let asked = of_category("a", "action");
    let answer = house.post("/oap/intent", &asked).await.ok(&house.node);
    valid("oap-intent-response.schema.json", &answer);
    let entry = &answer["candidates"][0];
    let name = escaped(entry["decision_record"]["policy_decision_ref"].as_str().unwrap());
    let policy = house.get(&format!("/oap/decisions/{name}")).await.ok(&house.node);
    valid(ENVELOPE, &policy);
    assert_eq!(policy["output"]["policy_decision"]["outcome"], json!("allow"));
    let question = json!({"intent": asked, "candidate_id": entry["candidate_id"]});
    let explanation = house.post("/oap/explain", &question).await.ok(&house.node);
    valid(ENVELOPE, &explanation);
    assert_eq!(explanation["output"]["policy_decision"]["outcome"], json!("allow"));
}

fn deletion(name: &str) -> Value {
    let body = json!({
        "request_id": format!("urn:rialto:deletion:{name}"),
        "principal_did": provider().did_key().as_str(),
        "issued_at": "2026-05-01T12:00:00Z",
    });
    sign(body, &provider())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_withdraws_what_its_principal_published_and_nothing_else() {
    let house = House::open().await;
    let node = &house.node;
    house.publish("one", "manifest", manifest()).await;
    house.publish("two", "knowledge", json!({"id": "urn:k:1", "title": "tides"})).await;
    let theirs = publication(&asker(), "theirs", "knowledge", json!({"id": "urn:k:2", "title": "bridges"}));
    house.post("/oap/records", &theirs).await.ok(node);

    let request = deletion("all");
    valid("rialto-deletion-request.schema.json", &request);
    let mut forged = request.clone();
    forged["issued_at"] = json!("2026-05-01T12:00:01Z");
    house.post("/oap/data/delete", &forged).await.refused(node, 401, "signature_invalid");
    let first = house.post("/oap/data/delete", &request).await;
    let receipt = first.ok(node);
    valid("oap-deletion-receipt.schema.json", &receipt);
    assert_eq!((&receipt["principal_did"], &receipt["method"]), (&request["principal_did"], &json!("tombstone")));
    house.get(&format!("/oap/records/{}", escaped(provider().did_key().as_str()))).await.refused(
        node,
        404,
        "record_not_found",
    );
    house.get("/oap/records/urn%3Ak%3A1").await.refused(node, 404, "record_not_found");
    assert_eq!(house.get("/oap/records/urn%3Ak%3A2").await.json(), theirs);

    // Whoever caught the request and sends it again later takes nothing away.
    house.publish("three", "knowledge", json!({"id": "urn:k:1", "title": "tides again"})).await;
    assert_eq!(house.post("/oap/data/delete", &request).await.bytes, first.bytes);
    assert_eq!(house.get("/oap/records/urn%3Ak%3A1").await.status, StatusCode::OK);
    let mut other = deletion("all");
    other["issued_at"] = json!("2026-05-01T11:00:00Z");
    let other = sign(other, &provider());
    house.post("/oap/data/delete", &other).await.refused(node, 409, "request_id_reused");
}

#[tokio::test(flavor = "multi_thread")]
async fn incidents_are_what_the_operator_wrote_down() {
    let house = House::open().await;
    let none = house.get("/oap/incident").await.ok(&house.node);
    valid("rialto-incidents.schema.json", &none);
    assert_eq!((&none["incidents"], &none["state"]), (&json!([]), &json!("ok")));
    let line = json!({"incident_id": "urn:x:1", "severity": "low", "status": "resolved"});
    std::fs::write(house.folder.path().join("incidents.ndjson"), format!("{line}\n\nrubbish\n")).unwrap();
    let one = house.get("/oap/incident").await.ok(&house.node);
    valid("rialto-incidents.schema.json", &one);
    assert_eq!(one["incidents"], json!([line]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_says_who_it_is() {
    let house = House::open().await;
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    valid("oap-manifest.schema.json", &manifest);
    let document = house.get("/.well-known/did.json").await.json();
    assert_eq!(document["id"], manifest["tool"]["did"]);
    for (name, address) in manifest["endpoints"].as_object().unwrap() {
        let path = address.as_str().unwrap().strip_prefix(&house.url).unwrap_or_else(|| panic!("{name}: {address}"));
        let answer = house.get(path).await;
        assert_ne!(answer.status, StatusCode::NOT_FOUND, "{name} leads nowhere");
    }
    let health = house.get("/health").await;
    assert_eq!((health.status, &health.json()["status"]), (StatusCode::OK, &json!("ok")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_the_operator_is_the_one_in_the_manifest() {
    let house = House::with(server::Patience::default(), None, Some("https://node.example/")).await;
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    assert_eq!(manifest["endpoints"]["intent"], "https://node.example/oap/intent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_still_right_costs_no_body() {
    let house = House::open().await;
    house.publish("one", "knowledge", json!({"id": "urn:k:a/b c?ü", "title": "tides"})).await;
    let address = format!("/oap/records/{}", escaped("urn:k:a/b c?ü"));
    let whole = house.get(&address).await;
    assert_eq!((whole.status, whole.json()["record"]["title"].clone()), (StatusCode::OK, json!("tides")));
    let etag = whole.header("etag").to_owned();
    assert_eq!((whole.header("oap-record-revision"), whole.header("oap-record-kind")), ("1", "knowledge"));
    for (named, status) in [(etag.as_str(), 304), ("*", 304), ("\"other\", W/\"x\"", 200)] {
        let answer = Answer::of(house.request(Method::GET, &address).header("if-none-match", named)).await;
        assert_eq!(answer.status.as_u16(), status, "{named}");
        assert_eq!((answer.header("etag"), answer.bytes.is_empty()), (etag.as_str(), status == 304));
    }
    let weak =
        Answer::of(house.request(Method::GET, &address).header("if-none-match", format!("\"a\", W/{etag}"))).await;
    assert_eq!(weak.status, StatusCode::NOT_MODIFIED);
    let head = Answer::of(house.request(Method::HEAD, &address)).await;
    assert_eq!((head.status, head.header("etag"), head.bytes.len()), (StatusCode::OK, etag.as_str(), 0));
    house.publish("two", "knowledge", json!({"id": "urn:k:a/b c?ü", "title": "tides, revised"})).await;
    let changed = Answer::of(house.request(Method::GET, &address).header("if-none-match", etag)).await;
    assert_eq!((changed.status, changed.header("oap-record-revision")), (StatusCode::OK, "2"));
    house.get("/oap/records/%FF%FE").await.refused(&house.node, 400, "invalid_value");
}
