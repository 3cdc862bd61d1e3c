//! `keys`, `sign` and `verify`: who may sign, and who did.

use crate::run::{Home, intent};
use json::{Document, Value, json};
use trust::SigningKey;

#[test]
fn a_key_is_made_once_and_shown_without_its_seed() {
    let home = Home::new("keys");
    let made = home.run(&["keys", "new"]).exits(0);
    let stored = json_of(&home.read("key.json"));
    let seed = stored["d"].as_str().unwrap().to_owned();
    let shown = home.run(&["keys", "show"]).exits(0);
    let for_programs = home.run(&["keys", "show", "--json"]).exits(0);
    assert_eq!(made.out, shown.out);
    assert_eq!(for_programs.json()["public_key_jwk"]["x"], stored["x"]);
    let did = for_programs.json()["did"].as_str().unwrap().to_owned();
    shown.says(&did);
    let again = home.run(&["keys", "new"]).exits(3);
    again.complains("there is a key already").complains("--force");
    for ran in [made, shown, for_programs, again] {
        assert!(!ran.out.contains(&seed) && !ran.err.contains(&seed));
    }
    home.run(&["keys", "new", "--force"]).exits(0);
    assert_ne!(home.run(&["keys", "show", "--json"]).json()["did"], did);
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 1, "nothing but the key is left behind");
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new("key-modes");
    let file = home.path("deep/er/key.json");
    home.run(&["keys", "new", "--file", &file]).exits(0);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(home.path("deep/er")).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let ran = home.run(&["keys", "show", "--file", &file]).exits(78);
    ran.complains("others can read the key file").complains("(mode 640)").complains("chmod 600");
    home.run(&["sign", &intent("battery-reading-list"), "--key", &file]).exits(78).complains("chmod 600");
}

#[test]
fn the_key_is_found_where_it_was_said_to_be() {
    let home = Home::new("key-places");
    let file = home.path("mine.json");
    home.run(&["keys", "show"]).exits(3).complains("rialto keys new");
    home.run(&["keys", "new", "--key", &file]).exits(0);
    let did = home.run(&["keys", "show", "--file", &file, "--json"]).json()["did"].clone();
    let by_variable = home.run_with(&[("RIALTO_KEY", &file)], "", &["keys", "show", "--json"]).exits(0);
    assert_eq!(by_variable.json()["did"], did);
    let by_xdg = [("RIALTO_HOME", ""), ("XDG_DATA_HOME", &home.path("data"))];
    home.run_with(&by_xdg, "", &["keys", "new"]).exits(0).says("data/rialto/key.json");
    let by_home = [("RIALTO_HOME", ""), ("HOME", &home.path("me"))];
    home.run_with(&by_home, "", &["keys", "new"]).exits(0).says("me/.local/share/rialto/key.json");
    let missing = home.path("none.json");
    let asked = ["resolve", "--intent", &intent("battery-reading-list"), "--candidates", "x", "--key", &missing];
    home.run(&asked).exits(3).complains("there is no key at");
}

#[test]
fn a_damaged_key_file_is_named() {
    let home = Home::new("damaged-keys");
    home.run(&["keys", "new"]).exits(0);
    let good = json_of(&home.read("key.json"));
    let with = |name: &str, value: Value| {
        let mut key = good.clone();
        key[name] = value;
        key.to_string()
    };
    for text in [
        "nonsense".to_owned(),
        with("crv", json!("P-256")),
        with("d", json!("AAAA")),
        with("d", Value::Null),
        with("x", json!("wmcYGCReVjh8Dz1Ubsrdc4KZW4CGiV9tFqrhe7WCK48")),
    ] {
        std::fs::write(home.path("key.json"), &text).unwrap();
        let ran = home.run(&["keys", "show"]).exits(3);
        ran.complains("is no key file");
    }
}

#[test]
fn a_draft_is_completed_checked_and_signed() {
    let home = Home::new("sign-draft");
    let did = make_key(&home);
    let file = intent("courier-before-friday-evening");
    let ran = home.run(&["sign", &file]).exits(0);
    ran.complains("filled in intent_id urn:oap:intent:").complains(&format!("filled in issuer_did {did}"));
    ran.complains("filled in validity");
    let signed = ran.json();
    assert_eq!(signed["issuer_did"], did);
    assert_eq!(signed["category"], "commercial");
    let path = home.file("signed.json", &ran.out);
    let verified = home.run(&["verify", &path]).exits(0);
    verified.says("verified").says(&did).says("intent").says("sha256:").says("open until");
    let again = home.run(&["sign", &path, "--compact"]).exits(0);
    again.complains("the signature that was there is replaced");
    assert_eq!(again.json(), signed, "Ed25519 signs the same bytes the same way");
    assert_eq!(again.out.lines().count(), 1);
}

#[test]
fn a_wrong_draft_is_not_signed() {
    let home = Home::new("sign-wrong");
    make_key(&home);
    let out = home.path("out.json");
    let ran = home.run(&["sign", &intent("broken/unknown-operator"), "-o", &out]).exits(1);
    ran.complains("error[unknown_operator]").complains("/constraints/operator");
    assert!(!std::path::Path::new(&out).exists());
    let other = home.file("other.json", r#"{"issuer_did": "did:web:somebody.example", "note": 1}"#);
    for more in [&[][..], &["--as-is"]] {
        let ran = home.run(&[&["sign", &other], more].concat()).exits(1);
        ran.complains("did:web:somebody.example").complains("other.json:1:16");
    }
    home.run(&["sign", &home.file("list.json", "[1]"), "--as-is"]).exits(1).complains("only an object can be signed");
}

#[test]
fn other_objects_are_signed_when_they_name_us_or_as_they_are() {
    let home = Home::new("sign-objects");
    let did = make_key(&home);
    let ours = home.file("ours.json", &json!({"issuer_did": did, "note": "a\u{9b}b"}).to_string());
    let signed = home.run(&["sign", &ours]).exits(0);
    home.run_with(&[], &signed.out, &["verify", "-"]).exits(0).says("object");
    let nameless = home.file("nameless.json", r#"{"note": 1}"#);
    home.run(&["sign", &nameless]).exits(1).complains("--as-is");
    let signed = home.run(&["sign", "--as-is", &nameless]).exits(0);
    let path = home.file("signed.json", &signed.out);
    home.run(&["verify", &path]).exits(1).complains("does not say who signed it");
    home.run(&["verify", &path, "--signer", &did]).exits(0);
    let other = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
    home.run(&["verify", &path, "--signer", other]).exits(1).complains("error[kid_not_authorized]");
    home.run(&["verify", &path, "--signer", "nobody"]).exits(2);
}

#[test]
fn every_change_is_noticed() {
    let home = Home::new("tampering");
    make_key(&home);
    let signed = home.run(&["sign", &intent("battery-reading-list")]).exits(0).json();
    let check = |change: &dyn Fn(&mut Value), code: &str, at: &str| {
        let mut changed = signed.clone();
        change(&mut changed);
        let path = home.file("changed.json", &changed.to_string());
        home.run(&["verify", &path]).exits(1).complains(&format!("error[{code}]")).complains(at);
        let verdict = home.run(&["verify", &path, "--json"]).exits(1).json();
        assert_eq!(
            (&verdict["verified"], &verdict["error"]["code"], &verdict["error"]["at"]),
            (&json!(false), &json!(code), &json!(at)),
        );
    };
    check(&|intent| intent["budget"]["amount"] = json!("20000.00"), "signature_invalid", "/signature/value");
    check(&|intent| intent["extra"] = json!(1), "signature_invalid", "/signature/value");
    check(&|intent| intent["signature"]["alg"] = json!("none"), "alg_not_allowed", "/signature/alg");
    check(&|intent| intent["signature"]["alg"] = json!("ES256"), "alg_key_mismatch", "/signature/alg");
    check(&|intent| intent["signature"]["value"] = json!("AAAA"), "signature_encoding", "/signature/value");
    check(&|intent| intent["signature"]["kid"] = json!("other"), "kid_not_authorized", "/signature/kid");
    check(&|intent| intent["signature"] = Value::Null, "signature_missing", "/signature");
    check(&|intent| intent["issuer_did"] = json!("did:key:z6Mk"), "invalid_did", "/issuer_did");
}

#[test]
fn other_methods_need_their_document() {
    let home = Home::new("did-web");
    let key = SigningKey::from_seed([7; 32]);
    let did = "did:web:issuer.example";
    let draft = r#"{"category": "discovery", "constraints": {"path": "/a", "operator": "exists", "value": true},
        "projection": {"include": ["/a"]}, "intent_id": "urn:oap:intent:1", "issuer_did": "did:web:issuer.example",
        "validity": {"from": "2020-01-01T00:00:00Z", "to": "2020-01-01T01:00:00Z"}}"#;
    let mut value = json_of(draft);
    let bytes = json::canonical_value(&value);
    value["signature"] = json!({"alg": "EdDSA", "value": trust::encoding::encode(&key.sign(&bytes))});
    let signed = home.file("signed.json", &value.to_string());
    let document = json!({
        "id": did,
        "verificationMethod": [{
            "id": format!("{did}#k"), "type": "Multikey", "controller": did,
            "publicKeyMultibase": key.public().to_multibase(),
        }],
        "assertionMethod": [format!("{did}#k")],
    });
    let document = home.file("did.json", &document.to_string());
    let alone = home.run(&["verify", &signed]).exits(1);
    alone.complains("error[did_method_unsupported]").complains("https://issuer.example/.well-known/did.json");
    alone.complains("--did-document");
    let verified = home.run(&["verify", &signed, "--did-document", &document]).exits(0);
    verified.says(did).says("the window closed at 2020-01-01T01:00:00Z");
    let candidates = home.file("one.ndjson", "{\"a\":1}\n");
    let asked = ["explain", "--intent", &signed, "--candidates", &candidates, "line-1"];
    home.run(&asked).exits(1).complains("--did-document");
    home.run(&[&asked[..], &["--did-document", &document]].concat()).exits(0).says("accept");
    let foreign = home.file("foreign.json", r#"{"id": "did:web:other.example"}"#);
    home.run(&["verify", &signed, "--did-document", &foreign]).exits(1).complains("error[did_document_invalid]");
}

fn json_of(text: &str) -> Value {
    Document::parse(text.as_bytes(), &json::Limits::OURS).unwrap().root().to_value()
}

fn make_key(home: &Home) -> String {
    home.run(&["keys", "new"]).exits(0);
    home.run(&["keys", "show", "--json"]).json()["did"].as_str().unwrap().to_owned()
}
