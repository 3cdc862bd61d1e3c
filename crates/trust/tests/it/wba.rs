//! did:wba and signed requests: every case of `conformance/wba` against this crate.
//!
//! The cases were made with other libraries, and those that the public Python library has an opinion about were put to
//! it.

use json::{Document, Limits};
use serde_json::{Map, Value, json};
use trust::http::{AuthError, COMPONENTS, Credentials, Headers, Proved, Request, Signing, sign};
use trust::{Binding, Did, DidDocument, PublicKey, SecretKey, SigningKey};

type Outcome = Result<Value, Value>;

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("{} has no text `{name}`", case["id"]))
}

fn number(case: &Value, name: &str) -> i64 {
    case[name].as_i64().unwrap_or_else(|| panic!("{} has no number `{name}`", case["id"]))
}

/// As a stranger's bytes, so that what is read is read strictly.
fn parsed(value: &Value) -> Document {
    Document::parse(value.to_string().as_bytes(), &Limits::DOCUMENT).unwrap()
}

fn code(code: &str) -> Value {
    json!({"code": code})
}

fn name(case: &Value) -> Outcome {
    let did = Did::parse(text(case, "did")).map_err(|error| code(error.code()))?;
    let binding = did.binding().map(|binding| match binding {
        Binding::E1(thumbprint) => format!("e1_{thumbprint}"),
        Binding::K1(thumbprint) => format!("k1_{thumbprint}"),
    });
    Ok(json!({"url": did.document_url(), "binding": binding}))
}

fn thumbprint(case: &Value) -> Outcome {
    let key = PublicKey::from_jwk(parsed(&case["jwk"]).root()).unwrap();
    Ok(json!({"thumbprint": key.thumbprint()}))
}

fn document(case: &Value) -> Outcome {
    let did = Did::parse(text(case, "did")).unwrap();
    let document = DidDocument::read(parsed(&case["document"]).root(), &did)
        .map_err(|error| json!({"code": error.code(), "at": error.at.as_str()}))?;
    let names =
        |keys: &mut dyn Iterator<Item = (&str, &PublicKey)>| keys.map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    Ok(json!({
        "authenticates": names(&mut document.authenticating_keys()),
        "asserts": names(&mut document.asserting_keys()),
    }))
}

fn signer(case: &Value, documents: &Value) -> DidDocument {
    let value = &documents[text(case, "document")];
    DidDocument::read(parsed(value).root(), &Did::parse(value["id"].as_str().unwrap()).unwrap()).unwrap()
}

fn proved(proved: Result<Proved, AuthError>) -> Outcome {
    proved.map(|proved| json!({"did": proved.did().as_str(), "once": proved.once})).map_err(|error| code(error.code()))
}

fn request(case: &Value, documents: &Value) -> Outcome {
    let fields: Vec<(&str, &str)> = case["headers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let (headers, body) = (Headers::new(&fields), text(case, "body").as_bytes());
    let refuse = |error: AuthError| code(error.code());
    let Credentials::Signature(signature) = Credentials::read(&headers).map_err(refuse)? else {
        panic!("{} brings no signature", case["id"])
    };
    signature.check(!body.is_empty(), number(case, "now")).map_err(refuse)?;
    let request = Request { method: text(case, "method"), target: "", headers, body };
    proved(signature.verify(&signer(case, documents), &request, &[text(case, "target").to_owned()]))
}

fn legacy(case: &Value, documents: &Value) -> Outcome {
    let fields = [("authorization", text(case, "header"))];
    let refuse = |error: AuthError| code(error.code());
    let Credentials::Legacy(legacy) = Credentials::read(&Headers::new(&fields)).map_err(refuse)? else {
        panic!("{} brings no older header", case["id"])
    };
    legacy.check(number(case, "now")).map_err(refuse)?;
    let hosts: Vec<&str> = case["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap()).collect();
    proved(legacy.verify(&signer(case, documents), &hosts))
}

fn signed(case: &Value) -> Outcome {
    let digits = text(case, "seed");
    let seed = std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap());
    let key = SecretKey::from(SigningKey::from_seed(seed));
    let signing = Signing {
        key: &key,
        keyid: text(case, "keyid"),
        created: number(case, "created"),
        expires: number(case, "expires"),
        nonce: text(case, "nonce"),
    };
    let (method, target, body) = (text(case, "method"), text(case, "target"), text(case, "body").as_bytes());
    let fields = sign(&Request { method, target, headers: Headers::new(&[]), body }, &signing, &COMPONENTS);
    Ok(fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>().into())
}

/// Puts a case to the crate, and says what came out otherwise.
pub(crate) fn judge(theme: &Value, case: &Value) -> Option<String> {
    let outcome = match text(case, "kind") {
        "name" => name(case),
        "thumbprint" => thumbprint(case),
        "document" => document(case),
        "request" => request(case, &theme["documents"]),
        "legacy" => legacy(case, &theme["documents"]),
        "sign" => signed(case),
        other => panic!("{}: no kind `{other}`", case["id"]),
    };
    let told = outcome.unwrap_or_else(|refused| refused);
    (told != case["expect"]).then(|| format!("{told} instead of {}", case["expect"]))
}

#[test]
fn every_case_of_the_corpus() {
    let verdicts = corpus::put("wba", "", judge).unwrap();
    assert_eq!(corpus::surprises(&verdicts), [""; 0]);
    assert!(verdicts.len() >= 120, "only {} cases were read", verdicts.len());
}
