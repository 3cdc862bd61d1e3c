//! RFC 0004 §3.2: every rule of a delegation chain broken once, and random chains with one change.

use super::*;
use json::{Value, json};
use proptest::prelude::*;
use std::sync::Arc;

const NOW: i64 = 1_772_366_400;

fn person(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

fn node() -> Did {
    person(99).did_key()
}

/// Claims of the link at a position from person `position + 1` to the next.
fn claims(position: u8) -> Value {
    json!({
        "iss": person(position + 1).did_key().as_str(),
        "sub": person(position + 2).did_key().as_str(),
        "aud": node().as_str(),
        "iat": NOW - 10,
        "exp": NOW + 300 - i64::from(position),
        "jti": format!("del_{position}"),
        "parent_session_id": "ses_1",
        "delegation_depth": position + 1,
        "max_delegation_depth": 5,
        "scope": {
            "actions": ["search.web", "fetch.url"],
            "max_invocations": 10,
            "max_cost_eur": "0.50",
            "data_categories": ["public"],
            "max_wall_time_seconds": 60,
        },
    })
}

fn chain(length: u8) -> Vec<Value> {
    (0..length).map(claims).collect()
}

/// Signs each link with the key of whoever its `iss` should be.
fn signed(links: &[Value]) -> Vec<String> {
    (1..).zip(links).map(|(number, link)| sign_token(link, &person(number))).collect()
}

fn verify(tokens: &[String]) -> Result<Option<Delegation>, ChainError> {
    let list: Vec<Value> = tokens.iter().map(|token| json!({"jwt": token})).collect();
    let list = Document::of(&json!(list)).unwrap();
    let chain = Chain::read(list.root(), &Pointer::root().child("delegation_chain"))?;
    let keys: Vec<Arc<DidDocument>> = chain.issuers().map(|did| Arc::new(DidDocument::of_key(did).unwrap())).collect();
    chain.verify(&keys, &node(), NOW)
}

fn check(links: &[Value]) -> Result<Option<Delegation>, ChainError> {
    verify(&signed(links))
}

#[track_caller]
fn refused(links: &[Value], at: usize, problem: &ChainProblem) {
    let error = check(links).unwrap_err();
    assert_eq!((error.code(), &error.problem), ("delegation_invalid", problem), "{error}");
    assert_eq!(error.at.as_str(), format!("/delegation_chain/{at}/jwt"));
}

#[test]
fn a_chain_tells_who_acts_for_whom_and_how_far() {
    let mut links = chain(3);
    links[2]["scope"] = json!({"actions": ["fetch.url"], "max_invocations": 1, "max_cost_eur": "0.1",
        "data_categories": [], "max_wall_time_seconds": 1});
    let delegation = check(&links).unwrap().unwrap();
    assert_eq!(delegation.principal, person(1).did_key());
    assert_eq!(delegation.holder, person(4).did_key());
    assert_eq!(delegation.payer, person(1).did_key());
    assert_eq!(delegation.scope.actions, BTreeSet::from(["fetch.url".to_owned()]));
    let tokens: Vec<(&str, Option<u64>, Option<u64>)> = delegation
        .tokens
        .iter()
        .map(|token| (token.name.as_str(), token.max_invocations, token.max_wall_time_seconds))
        .collect();
    let above = |name| (name, Some(10), Some(60));
    assert_eq!(tokens, [above("del_0"), above("del_1"), ("del_2", Some(1), Some(1))]);
    let issuers: Vec<&Did> = delegation.tokens.iter().map(|token| &token.issuer).collect();
    assert_eq!(issuers, [&person(1).did_key(), &person(2).did_key(), &person(3).did_key()]);
    assert_eq!((delegation.expires, delegation.tokens[2].expires), (NOW + 298, NOW + 298));
    assert_eq!(check(&[]).unwrap(), None);
    assert!(check(&chain(5)).is_ok());
}

#[test]
fn costs_go_up_until_a_token_says_that_its_holder_pays() {
    for (pays_itself, payer) in [(None, 1), (Some(0), 2), (Some(1), 3), (Some(2), 4)] {
        let mut links = chain(3);
        if let Some(position) = pays_itself {
            links[position]["billing"] = json!("sub_agent");
        }
        assert_eq!(check(&links).unwrap().unwrap().payer, person(payer).did_key());
    }
}

#[test]
fn every_rule_broken_once_is_told_with_its_place() {
    use ChainProblem::{Audience, Broken, Cycle, Depth, Expired, NotYetValid, TooLong, Wider};
    let other = || json!(person(50).did_key().as_str());
    let cases: [(usize, &str, Value, ChainProblem); 24] = [
        (0, "/aud", other(), Audience),
        (1, "/aud", json!([]), Audience),
        (1, "/iat", json!(NOW + 61), NotYetValid),
        (1, "/nbf", json!(NOW + 61), NotYetValid),
        (0, "/exp", json!(NOW), Expired),
        (1, "/exp", json!(NOW - 11), Expired),
        (0, "/exp", json!(NOW + 591), TooLong),
        (0, "/delegation_depth", json!(2), Depth),
        (1, "/delegation_depth", json!(1), Depth),
        (1, "/max_delegation_depth", json!(1), Depth),
        (0, "/max_delegation_depth", json!(6), Depth),
        (0, "/sub", other(), Broken),
        (2, "/sub", json!(person(1).did_key().as_str()), Cycle),
        (2, "/sub", json!(person(3).did_key().as_str()), Cycle),
        (2, "/jti", json!("del_0"), Cycle),
        (1, "/exp", json!(NOW + 301), Wider("exp")),
        (1, "/scope/actions", json!(["search.web", "pay.now"]), Wider("scope.actions")),
        (1, "/scope/max_invocations", json!(11), Wider("scope.max_invocations")),
        (1, "/scope/max_cost_eur", json!("0.500000000000000001"), Wider("scope.max_cost_eur")),
        (1, "/scope/data_categories", json!(["health"]), Wider("scope.data_categories")),
        (1, "/scope/max_wall_time_seconds", json!(61), Wider("scope.max_wall_time_seconds")),
        (2, "/scope/max_invocations", Value::Null, Wider("scope.max_invocations")),
        (2, "/scope/data_categories", Value::Null, Wider("scope.data_categories")),
        (2, "/scope/max_cost_eur", Value::Null, Wider("scope.max_cost_eur")),
    ];
    for (link, pointer, value, problem) in cases {
        let mut links = chain(3);
        put(&mut links[link], pointer, value);
        // A token for somebody else breaks the chain at the next one.
        let at = if problem == Broken { link + 1 } else { link };
        refused(&links, at, &problem);
    }
    let mut links = chain(2);
    links[0]["max_delegation_depth"] = json!(3);
    refused(&links, 1, &Depth);
}

/// `null` takes the member away.
fn put(link: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = link.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
    match value {
        Value::Null => drop(parent.remove(name)),
        value => drop(parent.insert(name.to_owned(), value)),
    }
}

#[test]
fn a_claim_that_is_missing_or_of_another_kind_is_told() {
    let needed = ["iss", "sub", "aud", "iat", "exp", "jti", "delegation_depth", "max_delegation_depth", "scope"];
    for name in needed {
        for value in [Value::Null, json!({"x": 1}), json!(-1)] {
            let mut links = chain(1);
            put(&mut links[0], &format!("/{name}"), value);
            let error = check(&links).unwrap_err();
            assert!(matches!(error.problem, ChainProblem::Form(_)), "{name}: {error}");
        }
    }
    let wrong = [
        ("/nbf", json!("soon")),
        ("/billing", json!("nobody")),
        ("/scope/actions", json!("all")),
        ("/scope/actions", json!([1])),
        ("/scope/max_invocations", json!("10")),
        ("/scope/max_cost_eur", json!(0.5)),
        ("/scope/max_cost_eur", json!("1e3")),
        ("/scope/max_cost_eur", json!(".5")),
        ("/scope/max_cost_eur", json!("1234567890123456789")),
        ("/scope/max_wall_time_seconds", json!(1.5)),
        ("/scope/only_on_sundays", json!(true)),
    ];
    for (pointer, value) in wrong {
        let mut links = chain(1);
        put(&mut links[0], pointer, value);
        assert!(matches!(check(&links).unwrap_err().problem, ChainProblem::Form(_)), "{pointer}");
    }
    let mut links = chain(1);
    links[0]["something_else"] = json!(1);
    assert!(check(&links).is_ok(), "a claim that bounds nothing is nobody's harm");
}

#[test]
fn six_links_are_too_many() {
    let error = check(&chain(6)).unwrap_err();
    assert_eq!(error.problem, ChainProblem::TooManyLinks);
    assert_eq!(error.limit, limit("delegation.links", 5, 6));
    assert_eq!(error.at.as_str(), "/delegation_chain");
}

#[test]
fn a_token_is_signed_by_its_iss_in_the_one_way() {
    let good = signed(&chain(2));
    assert!(verify(&good).is_ok());
    let token = |header: Value, key: &SigningKey| {
        let signed = format!(
            "{}.{}",
            encoding::encode(header.to_string().as_bytes()),
            encoding::encode(claims(1).to_string().as_bytes())
        );
        format!("{signed}.{}", encoding::encode(&key.sign(signed.as_bytes())))
    };
    let kid = person(2).key_id().to_string();
    assert!(verify(&[good[0].clone(), token(json!({"alg": "EdDSA"}), &person(2))]).is_ok());
    let signature = |problem| ChainProblem::Signature(problem);
    let (by, header) = (person(3), json!({"alg": "EdDSA"}));
    let cases = [
        (token(header.clone(), &by), Some(signature(Problem::SignatureInvalid))),
        (
            token(json!({"alg": "EdDSA", "kid": by.key_id().to_string()}), &by),
            Some(signature(Problem::KidNotAuthorized)),
        ),
        (token(json!({"alg": "ES256", "kid": kid}), &person(2)), Some(signature(Problem::AlgKeyMismatch))),
        (token(json!({"alg": "none"}), &person(2)), None),
        (token(json!({"alg": "HS256"}), &person(2)), None),
        (token(json!({"alg": "EdDSA", "typ": "at+jwt"}), &person(2)), None),
        (token(json!({"alg": "EdDSA", "jwk": person(2).public().to_jwk()}), &person(2)), None),
        (token(json!({"alg": "EdDSA", "crit": ["b64"], "b64": false}), &person(2)), None),
        (token(json!({"alg": "EdDSA", "kid": 7}), &person(2)), None),
        (format!("{}=", good[1]), None),
        (good[1].replacen('.', "", 1), None),
        (String::new(), None),
        ("..".into(), None),
        ("e30.e30.e30".into(), None),
    ];
    for (token, problem) in cases {
        let error = verify(&[good[0].clone(), token]).unwrap_err();
        assert_eq!(error.at.as_str(), "/delegation_chain/1/jwt");
        match problem {
            Some(problem) => assert_eq!(error.problem, problem),
            None => assert!(matches!(error.problem, ChainProblem::Form(_)), "{error}"),
        }
    }
}

#[test]
fn keys_of_somebody_else_prove_nothing() {
    let list = Document::of(&json!([{"jwt": signed(&chain(1))[0]}])).unwrap();
    let other = Arc::new(DidDocument::of_key(&person(7).did_key()).unwrap());
    for keys in [vec![], vec![other]] {
        let chain = Chain::read(list.root(), &Pointer::root()).unwrap();
        let error = chain.verify(&keys, &node(), NOW).unwrap_err();
        assert_eq!(error.problem, ChainProblem::Signature(Problem::KeyNotFound));
    }
}

#[test]
fn a_decimal_counts_exactly() {
    for (text, value) in [("0", Some(0)), ("0.000000000000000001", Some(1)), ("1.5", Some(1_500_000_000_000_000_000))] {
        assert_eq!(units(text), value);
    }
    for text in ["", ".", "1.", ".1", "-1", "1,0", "1.0000000000000000001", "٣"] {
        assert_eq!(units(text), None, "{text}");
    }
}

/// A change of one link that breaks a rule, whatever the chain is.
fn broken(link: &mut Value, how: usize) {
    let scope = &mut link["scope"];
    let grown = |value: &Value| json!(value.as_u64().unwrap() + 1_000);
    match how {
        0 => link["aud"] = json!("did:web:elsewhere.example"),
        1 => link["exp"] = json!(NOW - 1),
        2 => link["iat"] = json!(NOW + 3_600),
        3 => link["exp"] = json!(link["iat"].as_i64().unwrap() + 601),
        4 => link["delegation_depth"] = grown(&link["delegation_depth"]),
        5 => link["max_delegation_depth"] = json!(6),
        6 => link["iss"] = json!(person(60).did_key().as_str()),
        7 => link["sub"] = link["iss"].clone(),
        8 => scope["max_cost_eur"] = json!("x"),
        9 => scope["actions"] = json!(null),
        10 => link["jti"] = json!(""),
        _ => scope["more"] = json!(1),
    }
}

/// A change of a link below another that gives more than there was.
fn widened(link: &mut Value, how: usize) {
    let scope = &mut link["scope"];
    match how {
        0 => scope["actions"].as_array_mut().unwrap().push(json!("one.more")),
        1 => scope["data_categories"].as_array_mut().unwrap().push(json!("one more")),
        2 => scope["max_invocations"] = json!(1_000_000),
        3 => scope["max_cost_eur"] = json!("1000000"),
        4 => scope["max_wall_time_seconds"] = json!(1_000_000),
        _ => drop(scope.as_object_mut().unwrap().remove("max_invocations")),
    }
}

prop_compose! {
    /// A chain whose scopes shrink by chance.
    fn chains()(length in 1..=5_u8, cuts in prop::collection::vec((0..3_u64, 0..2_usize, any::<bool>()), 5)) -> Vec<Value> {
        let mut links = chain(length);
        let (mut calls, mut actions) = (20, vec!["a", "b", "c", "d", "e"]);
        for (link, (fewer, dropped, private)) in links.iter_mut().zip(cuts) {
            calls -= fewer;
            actions.truncate(actions.len() - dropped.min(actions.len()));
            link["scope"]["max_invocations"] = json!(calls);
            link["scope"]["actions"] = json!(actions);
            link["scope"]["max_cost_eur"] = json!(format!("{calls}.{calls:02}"));
            if private {
                link["parent_invocation_id"] = json!("inv_1");
            }
        }
        links
    }
}

proptest! {
    #[test]
    fn random_chains_hold_and_one_change_breaks_them(
        links in chains(), position in any::<prop::sample::Index>(), how in 0..18_usize, byte in any::<prop::sample::Index>(),
    ) {
        let tokens = signed(&links);
        let held = verify(&tokens).unwrap().unwrap();
        prop_assert_eq!(held.holder, person(links.len() as u8 + 1).did_key());
        let position = position.index(links.len());
        let mut changed = links.clone();
        if how < 12 {
            broken(&mut changed[position], how);
        } else if position > 0 {
            widened(&mut changed[position], how - 12);
        }
        if changed != links {
            prop_assert!(check(&changed).is_err(), "{how} at {position}");
        }
        // The same tokens with one character changed, one left out, or two exchanged.
        let mut forged = tokens.clone();
        let at = byte.index(forged[position].len());
        let old = forged[position].as_bytes()[at];
        let new = if old == b'A' { "B" } else { "A" };
        forged[position].replace_range(at..=at, new);
        prop_assert!(verify(&forged).is_err(), "character {at} of token {position}");
        if links.len() > 1 {
            let mut fewer = tokens.clone();
            fewer.remove(0);
            prop_assert!(verify(&fewer).is_err());
            let mut turned = tokens;
            turned.swap(position, (position + 1) % links.len());
            prop_assert!(verify(&turned).is_err());
        }
    }
}

#[test]
fn the_edges_of_a_window_belong_to_it() {
    let with = |changes: &[(&str, i64)]| {
        let mut links = chain(1);
        changes.iter().for_each(|(name, value)| links[0][*name] = json!(value));
        check(&links).map_err(|error| (error.problem, error.limit.map(|limit| (limit.max, limit.got))))
    };
    let (skew, longest) = (SKEW_SECONDS, DELEGATION_SECONDS_MAX);
    for good in [
        &[("iat", NOW + skew), ("exp", NOW + skew + 1)][..],
        &[("nbf", NOW + skew)],
        &[("iat", NOW - 10), ("exp", NOW - 10 + longest)],
        &[("exp", NOW + 1)],
    ] {
        assert!(with(good).is_ok(), "{good:?}");
    }
    let (early, late) = (ChainProblem::NotYetValid, ChainProblem::Expired);
    let too_long = Some((longest.unsigned_abs(), longest.unsigned_abs() + 1));
    for (bad, problem, limit) in [
        (&[("iat", NOW + skew + 1), ("exp", NOW + skew + 2)][..], &early, None),
        (&[("nbf", NOW + skew + 1)], &early, None),
        (&[("iat", NOW - 10), ("exp", NOW - 9 + longest)], &ChainProblem::TooLong, too_long),
        (&[("exp", NOW)], &late, None),
    ] {
        assert_eq!(with(bad).unwrap_err(), (problem.clone(), limit), "{bad:?}");
    }
    // A link may last as long as the one above it, and no longer.
    let mut links = chain(2);
    links[1]["exp"] = links[0]["exp"].clone();
    assert!(check(&links).is_ok());
    links[1]["exp"] = json!(NOW + 301);
    assert_eq!(check(&links).unwrap_err().problem, ChainProblem::Wider("exp"));
}
