//! RFC 0004 §3.2 and §3.5: arbitrary tokens as a chain of delegation.
//!
//! As bytes they are read or refused at their place. As claims, one object in a line, they are signed by those who stand
//! in the chain, so that everything behind the signature is reached: what holds then is no longer, no later and no wider
//! than any of its links says.

#![no_main]

use json::{Document, Limits, Pointer, Value, json};
use libfuzzer_sys::fuzz_target;
use trust::{Chain, Delegation, Did, DidDocument, SigningKey};

const NOW: i64 = 1_772_366_400;

fuzz_target!(|data: &[u8]| {
    if let Ok(document) = Document::parse(data, &Limits::INTENT) {
        let _ = read(document.root());
    }
    let text = String::from_utf8_lossy(data);
    let claims: Vec<Value> = text.lines().take(6).filter_map(|line| serde_json::from_str(line).ok()).collect();
    if claims.iter().all(Value::is_object) {
        let claims: Vec<Value> = claims.iter().enumerate().map(|(position, said)| completed(position, said)).collect();
        if let Some(delegation) = held(&claims) {
            check(&claims, &delegation);
        }
    }
});

fn read(list: json::Node<'_>) -> Option<Chain> {
    match Chain::read(list, &Pointer::root().child("delegation_chain")) {
        Ok(chain) => Some(chain),
        Err(error) => {
            assert_eq!(error.code(), "delegation_invalid");
            assert!(error.at.as_str().starts_with("/delegation_chain"));
            None
        }
    }
}

fn person(number: usize) -> SigningKey {
    SigningKey::from_seed([u8::try_from(number + 1).unwrap_or(u8::MAX); 32])
}

fn node() -> Did {
    SigningKey::from_seed([99; 32]).did_key()
}

/// What a token of this position would say, with what the input says instead; whoever signs is who the position asks for.
fn completed(position: usize, said: &Value) -> Value {
    let mut claims = json!({
        "iss": person(position).did_key().as_str(), "sub": person(position + 1).did_key().as_str(),
        "aud": node().as_str(), "iat": NOW, "exp": NOW + 300, "jti": format!("t{position}"),
        "delegation_depth": position + 1, "max_delegation_depth": 5, "scope": {"actions": ["draw"]},
    });
    if let (Some(claims), Some(said)) = (claims.as_object_mut(), said.as_object()) {
        claims.extend(said.clone());
    }
    claims
}

fn held(claims: &[Value]) -> Option<Delegation> {
    let tokens: Vec<Value> = claims
        .iter()
        .enumerate()
        .map(|(position, claims)| json!({"jwt": trust::sign_token(claims, &person(position))}))
        .collect();
    let document = Document::of(&Value::Array(tokens)).ok()?;
    let chain = read(document.root())?;
    let keys: Vec<_> = (0..claims.len())
        .filter_map(|n| DidDocument::of_key(&person(n).did_key()).ok())
        .map(std::sync::Arc::new)
        .collect();
    chain.verify(&keys, &node(), NOW).ok()?
}

fn check(claims: &[Value], held: &Delegation) {
    assert!(claims.len() <= trust::DELEGATION_LINKS_MAX);
    assert_eq!(held.tokens.len(), claims.len());
    assert_eq!(held.principal, person(0).did_key());
    assert!(held.expires > NOW && held.expires <= NOW + trust::DELEGATION_SECONDS_MAX + 60);
    for (position, (said, token)) in claims.iter().zip(&held.tokens).enumerate() {
        assert_eq!(said["iss"], json!(person(position).did_key().as_str()), "somebody else signed");
        assert_eq!(said["jti"], json!(token.name));
        assert!(held.expires <= token.expires, "it outlives a link");
        let actions = said["scope"]["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(held.scope.actions.iter().all(|action| actions.contains(&json!(action))), "an action from nowhere");
        for (above, below) in [
            (token.max_invocations, held.scope.max_invocations),
            (token.max_wall_time_seconds, held.scope.max_wall_time_seconds),
        ] {
            assert!(above.is_none_or(|above| below.is_some_and(|below| below <= above)), "a bound got lost");
        }
    }
}
