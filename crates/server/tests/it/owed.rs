//! What a node with a manifest owes to everybody: discovery, a conformance receipt, its receipt chain, verification.

use crate::interface::valid;
use crate::{Answer, House, asker, escaped, provider, routes::of_category};
use json::{Document, Value, json};
use reqwest::StatusCode;
use trust::{Digest, SigningKey, encoding};

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_in_plain_words_finds_the_action_or_nothing() {
    let house = House::open().await;
    let wish = json!({"intent": "find offers for a signed intent", "principal_did": asker().did_key().as_str()});
    valid("rialto-discover-request.schema.json", &wish);
    let found = house.post("/oap/discover", &wish).await.ok(&house.node);
    valid("rialto-discover.schema.json", &found);
    assert_eq!(found["matching_actions"][0]["id"], "resolve_intent");
    assert!(found["matching_actions"][0]["confidence"].as_f64().unwrap() > 0.9);
    let nothing = house.post("/oap/discover", &json!({"intent": "boil eggs"})).await.ok(&house.node);
    assert_eq!(nothing["matching_actions"], json!([]));
    house.post("/oap/discover", &json!({"intent": 7})).await.refused(&house.node, 400, "wrong_type");
}

/// Answers two questions of the category knowledge and gives their receipts.
async fn delivered(house: &House) -> Vec<Value> {
    let record = json!({"id": "urn:k:1", "@type": "oap.knowledge", "publisher_did": provider().did_key().as_str()});
    house.publish("k", "knowledge", record).await;
    let mut receipts = Vec::new();
    for name in ["one", "two"] {
        let answer = house.post("/oap/intent", &of_category(name, "knowledge")).await.ok(&house.node);
        let name = escaped(answer["response_id"].as_str().unwrap());
        let proof = house.get(&format!("/oap/consumption/{name}")).await.ok(&house.node);
        receipts.extend(proof["output"]["receipts"].as_array().unwrap().clone());
    }
    receipts
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, StatusCode::OK, "{}", String::from_utf8_lossy(&answer.bytes));
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let lines = answer.bytes.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n');
    lines.map(|line| Document::parse(line, &json::Limits::OURS).unwrap().root().to_value()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_of_receipts_can_be_followed_and_tells_nothing_else() {
    let house = House::open().await;
    let receipts = delivered(&house).await;
    let shown = house.get("/oap/receipt-chain/export").await;
    let mut links = lines(&shown);
    let last = links.pop().unwrap();
    valid("rialto-receipt-chain.schema.json", &last);
    let mut previous = "genesis".to_owned();
    for (receipt, link) in receipts.iter().zip(&links) {
        assert_eq!(link["previous_receipt_hash"], json!(previous));
        previous = Digest::of(&json::canonical_value(receipt)).to_string();
        assert_eq!(link, &json!({"receipt_hash": previous, "previous_receipt_hash": link["previous_receipt_hash"]}));
    }
    assert_eq!((links.len(), &last["links"], &last["head"]), (receipts.len(), &json!(2), &json!(previous)));
    assert!(!String::from_utf8_lossy(&shown.bytes).contains(asker().did_key().as_str()), "nobody is named");
    let document = Document::of(&last).unwrap();
    let keys = trust::DidDocument::of_key(house.node.identity().did()).unwrap();
    trust::Signed::read(&document).unwrap().verify_with(&keys).unwrap();
    for cursor in ["x", "0-1", "7-0", "-1-0"] {
        let page = house.get(&format!("/oap/receipt-chain/export?cursor={cursor}")).await;
        page.refused(&house.node, 400, "invalid_cursor");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_verified_and_a_forged_one_is_not() {
    let house = House::open().await;
    let receipt = delivered(&house).await.remove(0);
    let said = house.post("/oap/receipt-verify", &receipt).await.ok(&house.node);
    valid("rialto-receipt-verification.schema.json", &said);
    assert_eq!((&said["valid"], &said["in_chain"]), (&json!(true), &json!(true)));
    let mut other = receipt.clone();
    other["principal_did"] = json!(provider().did_key().as_str());
    house.post("/oap/receipt-verify", &other).await.refused(&house.node, 401, "signature_invalid");
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    house.post("/oap/receipt-verify", &unsigned).await.refused(&house.node, 401, "signature_missing");
    let mut foreign = receipt.clone();
    foreign["signatures"][0]["by"] = json!("did:web:somebody.example");
    house.post("/oap/receipt-verify", &foreign).await.refused(&house.node, 422, "receipt_unverifiable");
    let mut broken = receipt.clone();
    broken["previous_receipt_hash"] = json!("sha256:1");
    house.post("/oap/receipt-verify", &broken).await.refused(&house.node, 400, "invalid_value");
    let mut many = receipt.clone();
    let entry = |seed: u8| {
        let by = SigningKey::from_seed([seed; 32]).did_key().to_string();
        json!({"by": by, "alg": "EdDSA", "value": receipt["signatures"][0]["value"]})
    };
    many["signatures"] = (10..19).map(entry).collect();
    house.post("/oap/receipt-verify", &many).await.refused(&house.node, 400, "invalid_value");
    house.post("/oap/receipt-verify", &json!([])).await.refused(&house.node, 400, "wrong_type");
    // A receipt that somebody else issued is sound, and not one of ours.
    let mut theirs = receipt;
    theirs.as_object_mut().unwrap().remove("signatures");
    let said = house.post("/oap/receipt-verify", &listed(theirs, &provider())).await.ok(&house.node);
    assert_eq!((&said["valid"], &said["in_chain"]), (&json!(true), &json!(false)));
    assert_eq!(said["signers"], json!([provider().did_key().as_str()]));
}

/// Signs a document whose signatures stand in a list.
fn listed(mut document: Value, key: &SigningKey) -> Value {
    let value = encoding::encode(&key.sign(&json::canonical_value(&document)));
    document["signatures"] = json!([{"by": key.key_id().to_string(), "alg": "EdDSA", "value": value}]);
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conformance_receipt_is_shown_when_it_is_about_this_node_and_holds() {
    let house = House::open().await;
    let receipt = |did: &str, until: &str| {
        json!({
            "receipt_id": "urn:oap:conformance:1", "type": "conformance", "timestamp": "2026-05-01T11:00:00Z",
            "implementation": {"did": did, "name": "Rialto node", "version": "0.1.0"}, "claimed_levels": ["L0", "L1"],
            "validity": {"not_before": "2026-05-01T11:00:00Z", "not_after": until},
        })
    };
    let ours = house.node.identity().did().as_str();
    let good = listed(receipt(ours, "2026-07-30T11:00:00Z"), &asker());
    let mut altered = good.clone();
    altered["claimed_levels"] = json!(["L5"]);
    let bad = [
        ("nothing", None),
        ("no JSON", Some("{".to_owned())),
        ("too long", Some(" ".repeat(300_000))),
        ("over", Some(listed(receipt(ours, "2026-05-01T12:00:00Z"), &asker()).to_string())),
        ("of another", Some(listed(receipt("did:web:b.example", "2026-07-30T11:00:00Z"), &asker()).to_string())),
        ("unsigned", Some(receipt(ours, "2026-07-30T11:00:00Z").to_string())),
        ("altered", Some(altered.to_string())),
    ];
    let path = house.folder.path().join("conformance-receipt.json");
    for (what, text) in bad {
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        house.get("/oap/conformance-receipt").await.refused(&house.node, 404, "receipt_not_found");
        let manifest = house.get("/.well-known/oap-tool.json").await.json();
        assert!(manifest.get("conformance").is_none(), "{what}");
        assert!(manifest["endpoints"].get("conformance_receipt").is_none(), "{what}");
    }
    let text = format!("{good:#}\n");
    std::fs::write(&path, &text).unwrap();
    for address in ["/oap/conformance-receipt", "/oap-conformance-receipt.json"] {
        let shown = house.get(address).await;
        assert_eq!((shown.status, shown.bytes), (StatusCode::OK, text.clone().into_bytes()), "byte for byte");
    }
    let manifest = house.get("/.well-known/oap-tool.json").await.json();
    valid("oap-manifest.schema.json", &manifest);
    assert_eq!(manifest["conformance"]["claimed_levels"], json!(["L0", "L1"]));
    assert_eq!(manifest["conformance"]["receipt_uri"], manifest["endpoints"]["conformance_receipt"]);
}
