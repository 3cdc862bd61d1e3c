//! RFC 0020 §5: whoever asks learns nothing of what was not meant for them.

use crate::answers::{Tally, compare};
use crate::secrets::{Secret, Secrets, buyer};
use crate::world::{World, code, did, ids, intent, manifest, parse, person, publication, sign, unique};
use conformance::chance::Chance;
use json::{Value, json};
use node::{Error, Exhibit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use trust::SigningKey;

/// Pairs of answers that every run compares; `RIALTO_PAIRS` asks for more.
const PAIRS: usize = 600;
/// Questions about one small market.
const ROUND: usize = 300;

/// A random intent over a market, named and signed.
fn random_intent(chance: &mut Chance<'_>, secrets: &Secrets, issuer: &SigningKey) -> Vec<u8> {
    let record = secrets.any(chance);
    let mut intent = crate::market::intent_about(chance, &record);
    intent["intent_id"] = json!(format!("urn:oap:intent:{}", unique()));
    intent["issuer_did"] = json!(did(issuer));
    sign(intent, issuer)
}

/// Two nodes with one key, so that what they say differs in nothing but chance.
fn twins() -> [World; 2] {
    let first = World::new();
    let key = first.config.data.join("node.key");
    let second = World::with(|config| {
        std::fs::create_dir_all(&config.data).unwrap();
        std::fs::copy(key, config.data.join("node.key")).unwrap();
    });
    [first, second]
}

/// What a node said, byte for byte, but for the random part of names, and for the signature, which covers them.
fn masked(said: &Result<Vec<u8>, Error>) -> Vec<u8> {
    let bytes = match said {
        Ok(bytes) => bytes,
        Err(error) => return format!("{error:?}").into_bytes(),
    };
    let mut text = String::from_utf8(bytes.clone()).unwrap();
    let names =
        ["\"response_id\":\"urn:oap:intent-response:", "\"decision_id\":\"urn:rialto:decision:", "\"next_cursor\":\""];
    let signature = "\"value\":\"";
    let found = names.iter().map(|name| text.find(name).map(|at| at + name.len()));
    let signed = text.rfind(signature).map(|at| at + signature.len());
    let random: Vec<String> =
        found.chain([signed]).flatten().map(|start| text[start..].split('"').next().unwrap().to_owned()).collect();
    for name in random {
        text = text.replace(&name, &"?".repeat(name.len()));
    }
    text.into_bytes()
}

/// What came of many pairs.
#[derive(Debug, Default)]
struct Pairs {
    compared: usize,
    explained: usize,
    later_pages: usize,
    refused: usize,
    different_beneath: usize,
}

impl Pairs {
    fn add(&mut self, other: &Self) {
        self.compared += other.compared;
        self.explained += other.explained;
        self.later_pages += other.later_pages;
        self.refused += other.refused;
        self.different_beneath += other.different_beneath;
    }
}

/// Asks both nodes the same, to the last page, and for reasons now and then.
fn compare_twins(worlds: &[World; 2], message: &[u8], chance: &mut Chance<'_>, pairs: &mut Pairs) {
    let mut cursors = [None::<String>, None];
    loop {
        let said = [0, 1].map(|which: usize| worlds[which].answer(message, cursors[which].as_deref()));
        let [left, right] = said.each_ref().map(masked);
        assert!(left == right, "{}\n{}\n{}", show(message), show(&left), show(&right));
        if said[0].is_err() {
            pairs.refused += 1;
            return;
        }
        cursors = said.map(|said| parse(&said.ok()?).root().get("next_cursor")?.as_str().map(str::to_owned));
        if cursors[0].is_none() {
            break;
        }
        pairs.later_pages += 1;
    }
    pairs.compared += 1;
    if chance.one_in(8) {
        let candidate = match chance.below(4) {
            0 => None,
            1 => Some(format!("did:web:t{}", chance.below(8))),
            2 => Some(format!("urn:o:{}", chance.below(8))),
            _ => Some(format!("did:web:t{}#act{}", chance.below(8), chance.below(2))),
        };
        let mut request = json!({"intent": parse(message).root().to_value()});
        if let Some(candidate) = candidate {
            request["candidate_id"] = json!(candidate);
        }
        let request = json::canonical_value(&request);
        let said = worlds.each_ref().map(|world| world.runtime.block_on(world.node().explain(&request)));
        let [left, right] = said.each_ref().map(masked);
        assert!(left == right, "{}\n{}\n{}", show(&request), show(&left), show(&right));
        pairs.explained += 1;
    }
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Publishes a market and its twin, and compares answers about them.
fn round(seed: u64, (records, questions): (usize, usize), pairs: &mut Pairs) {
    let mut chance = Chance::seeded(seed);
    let (worlds, secrets) = (twins(), Secrets::random(&mut chance, records));
    let twin = secrets.twin(&mut chance);
    let all =
        |secrets: &Secrets| [secrets.manifests.clone(), secrets.offers.clone(), secrets.knowledge.clone()].concat();
    let differ = |(left, right): &(Secret, Secret)| left.record != right.record;
    pairs.different_beneath += all(&secrets).into_iter().zip(all(&twin)).filter(differ).count();
    secrets.import_into(&worlds[0]);
    twin.import_into(&worlds[1]);
    for _ in 0..questions {
        let issuer = if chance.one_in(2) { person(1) } else { buyer() };
        let from = if chance.one_in(2) { &secrets } else { &twin };
        let message = random_intent(&mut chance, from, &issuer);
        compare_twins(&worlds, &message, &mut chance, pairs);
    }
    for secret in [&secrets.manifests, &secrets.offers].into_iter().flatten() {
        let id = secret.record["tool"]["did"].as_str().or_else(|| secret.record["offer_id"].as_str()).unwrap();
        let shown = worlds.each_ref().map(|world| match world.node().record(id).unwrap() {
            Exhibit::Original(record) => (parse(&record.body).root().get("record").unwrap().to_value(), None),
            Exhibit::View { bytes, digest, .. } => (json!(show(&masked(&Ok(bytes)))), Some(digest)),
        });
        assert_eq!(shown[0], shown[1]);
    }
}

#[expect(clippy::disallowed_methods, reason = "whoever wants more pairs than every run compares says so")]
fn wanted() -> usize {
    std::env::var("RIALTO_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(PAIRS)
}

#[test]
fn pairs_that_differ_in_hidden_fields_get_the_same_answers() {
    let wanted = wanted();
    let (seeds, sum) = (AtomicU64::new(0), Mutex::new(Pairs::default()));
    let work = || {
        loop {
            let (seed, mut pairs) = (seeds.fetch_add(1, Ordering::Relaxed), Pairs::default());
            if sum.lock().unwrap().compared >= wanted {
                return;
            }
            // Small markets name everybody in an answer; large ones are asked by the index.
            let (records, questions) =
                if seed % 32 == 1 { (130, ROUND / 6) } else { ([4, 9][seed as usize % 2], ROUND) };
            round(seed, (records, questions), &mut pairs);
            let mut sum = sum.lock().unwrap();
            sum.add(&pairs);
            // A long run that is broken off has said how far it came.
            if seed % 512 == 511 {
                println!("so far {sum:?}");
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let pairs = sum.into_inner().unwrap();
    println!("{pairs:?}");
    assert!(pairs.compared >= wanted && pairs.different_beneath * 50 > pairs.compared, "{pairs:?}");
    assert!(pairs.explained * 20 > pairs.compared && pairs.refused < pairs.compared, "{pairs:?}");
}

#[test]
fn an_answer_is_the_one_over_the_issuers_own_views() {
    let (mut tally, mut different) = (Tally::default(), 0);
    for (seed, (records, questions)) in [(6, 40), (40, 40), (80, 40)].into_iter().enumerate() {
        let mut chance = Chance::seeded(1_000 + seed as u64);
        let (mut world, secrets) = (World::new(), Secrets::random(&mut chance, records));
        secrets.import_into(&world);
        let (public, own) = (secrets.seen(Secret::public), secrets.seen(Secret::buyers));
        different += public.manifests.iter().zip(&own.manifests).filter(|(public, own)| public != own).count();
        for question in 0..questions {
            match question {
                10 => world.reopen(),
                20 => world.crash(),
                30 => world.forget_index(),
                _ => {}
            }
            compare(&world, &public, &random_intent(&mut chance, &secrets, &person(1)), &mut tally);
            compare(&world, &own, &random_intent(&mut chance, &secrets, &buyer()), &mut tally);
        }
    }
    assert!(tally.compared > 150 && tally.matches > 400 && tally.out_of_fuel < 5, "{tally:?}");
    assert!(different > 20, "{different}");
}

/// A tool whose price is for the buyer alone.
fn priced(owner: &SigningKey, name: &str, amount: &str) -> Value {
    let model = json!({"type": "per_call", "amount": amount, "currency": "EUR"});
    let record = manifest(owner, name, json!({"pricing": {"models": [model]}, "colour": "red"}));
    let mut message = publication(owner, "manifest", record);
    message["restricted"] = json!([{"path": "/pricing", "audience": [did(&buyer())]}]);
    message
}

fn leaf(path: &str, operator: &str, value: Value) -> Value {
    json!({"path": path, "operator": operator, "value": value})
}

#[test]
fn who_is_named_can_ask_for_what_is_restricted() {
    let (mut world, owner) = (World::new(), person(3));
    for (name, amount) in [("dear", "90"), ("cheap", "2")] {
        world.publish(&sign(priced(&owner, name, amount), &owner)).unwrap();
    }
    let question = json!({
        "constraints": leaf("/pricing/models/*/currency", "eq", json!("EUR")),
        "projection": {"include": ["/pricing"]},
        "budget": {"amount": "100", "currency": "EUR", "allocation": "single_winner"},
    });
    for start in 0..4 {
        let page = world.ask(&buyer(), question.clone());
        assert_eq!(ids(&page), ["did:web:cheap.example", "did:web:dear.example"]);
        assert_eq!(page["candidates"][0]["payload"]["pricing"]["models"][0]["amount"], "2");
        let page = world.ask(&person(1), question.clone());
        assert_eq!(ids(&page), Vec::<String>::new());
        assert!(!page.to_string().contains("\"90\""), "{page}");
        match start {
            0 => world.reopen(),
            1 => world.crash(),
            _ => world.forget_index(),
        }
    }
    // Replaced without a restriction, everybody sees it; withdrawn, nobody does.
    let open = manifest(
        &owner,
        "dear",
        json!({"pricing": {"models": [{"type": "per_call", "amount": "80", "currency": "EUR"}]}}),
    );
    world.put(&owner, "manifest", open);
    assert_eq!(ids(&world.ask(&person(1), question.clone())), ["did:web:dear.example"]);
    assert_eq!(ids(&world.ask(&buyer(), question.clone())).len(), 2);
    world.take_back(&owner, "did:web:cheap.example");
    assert_eq!(ids(&world.ask(&buyer(), question)), ["did:web:dear.example"]);
}

#[test]
fn a_bisection_of_a_hidden_number_finds_nothing() {
    let (world, owner) = (World::new(), person(3));
    let mut message = publication(&owner, "manifest", manifest(&owner, "t", json!({"internal": {"floor": 17}})));
    message["restricted"] = json!([{"path": "/internal/floor", "audience": [did(&buyer())]}]);
    world.publish(&sign(message, &owner)).unwrap();
    world.put(&owner, "manifest", manifest(&owner, "u", json!({"internal": {}})));
    for bound in 0..64 {
        for constraint in
            [leaf("/internal/floor", "lt", json!(bound)), json!({"not": leaf("/**/floor", "gte", json!(bound))})]
        {
            let page = world.ask(&person(1), json!({"constraints": constraint}));
            let found = ids(&page);
            assert!(found.is_empty() || found.len() == 2, "{bound} {found:?}");
        }
    }
    let page = world.ask(&buyer(), json!({"constraints": leaf("/internal/floor", "eq", json!(17))}));
    assert_eq!(ids(&page), ["did:web:t.example"]);
}

#[test]
fn pages_keep_the_views_of_the_first() {
    let (world, owner) = (World::new(), person(3));
    let lines: Vec<u8> = (0..250)
        .flat_map(|number| {
            let message = sign(priced(&owner, &format!("t{number:03}"), "5"), &owner);
            [message, vec![b'\n']].concat()
        })
        .collect();
    world.node().import(std::io::Cursor::new(lines), None, &mut |_| {}).unwrap();
    let question = json!({
        "constraints": leaf("/pricing/models/0/amount", "eq", json!("5")), "resolution_policy": "full_set",
        "projection": {"include": ["/pricing"]},
    });
    let message = sign(intent(&buyer(), question.clone()), &buyer());
    let (mut found, mut before, mut cursor) = (Vec::new(), 0, None::<String>);
    for page in 0..3 {
        let answer = world.answer(&message, cursor.as_deref()).unwrap();
        let read = world.audited(&message, &answer, before);
        before += ids(&read).len();
        found.extend(ids(&read));
        cursor = read["next_cursor"].as_str().map(str::to_owned);
        // One that was shown and one that is still to come change, and another goes.
        for number in [page, 240 + page] {
            world.publish(&sign(priced(&owner, &format!("t{number:03}"), "6"), &owner)).unwrap();
        }
        world.take_back(&owner, &format!("did:web:t{:03}.example", 230 + page));
    }
    assert!(cursor.is_none());
    assert_eq!(found, (0..250).map(|number| format!("did:web:t{number:03}.example")).collect::<Vec<_>>());
    let now = world.pages(&sign(intent(&buyer(), question), &buyer())).unwrap();
    assert_eq!(now.iter().map(|page| ids(page).len()).sum::<usize>(), 250 - 3 - 6);
}

#[test]
fn a_stranger_is_shown_a_view_that_is_not_the_publishers_document() {
    let (world, owner) = (World::new(), person(3));
    let shown = |amount: &str| {
        world.publish(&sign(priced(&owner, "t", amount), &owner)).unwrap();
        match world.node().record("did:web:t.example").unwrap() {
            Exhibit::View { bytes, digest, publisher, .. } => (world.opened(&bytes), digest, publisher),
            Exhibit::Original(record) => panic!("{}", show(&record.body)),
        }
    };
    let (view, digest, publisher) = shown("7");
    assert_eq!(publisher, did(&owner));
    assert_eq!((&view["type"], &view["record"]["colour"]), (&json!("oap.record.view"), &json!("red")));
    for hidden in ["pricing", "signature", "restricted", "revision", "record_hash"] {
        assert!(!view.to_string().contains(hidden), "{view}");
    }
    // Neither the document nor its hash tells that something hidden changed.
    assert_eq!(shown("8"), (view, digest, publisher));
}

#[test]
fn an_issuer_whom_nobody_verified_sees_what_everybody_sees() {
    let named = "did:web:buyer.example";
    let world = World::with(|config| config.unverified_issuer = Some(trust::Did::parse(named).unwrap()));
    let owner = person(3);
    let mut message = priced(&owner, "t", "7");
    message["restricted"][0]["audience"] = json!([named]);
    world.publish(&sign(message, &owner)).unwrap();
    let ask = |path: &str| {
        let mut intent =
            intent(&person(1), json!({"issuer_did": named, "constraints": leaf(path, "exists", json!(true))}));
        intent["signature"] = json!({"alg": "EdDSA", "value": "probe-signature"});
        ids(&parse(&world.answer(&json::canonical_value(&intent), None).unwrap()).root().to_value())
    };
    assert_eq!(ask("/colour"), ["did:web:t.example"]);
    assert!(ask("/pricing").is_empty());
}

#[test]
fn evidence_and_receipts_speak_with_what_everybody_may_see() {
    let (world, owner, judge) = (World::new(), person(3), person(4));
    world.put(&owner, "manifest", manifest(&owner, "t", json!({})));
    let restrict = |kind: &str, record: Value, path: &str| {
        let mut message = publication(&judge, kind, record);
        message["restricted"] = json!([{"path": path, "audience": [did(&buyer())]}]);
        world.publish(&sign(message, &judge)).unwrap();
    };
    let word = json!({
        "id": "urn:e:1", "issuer_did": did(&judge), "subject_did": "did:web:t.example",
        "performance_score": 0.9, "provider_reputation": 0.8,
    });
    restrict("evidence", word, "/performance_score");
    let receipt = json!({"id": "urn:r:1", "receipt_id": "urn:r:1", "principal_did": did(&judge), "amount": "12"});
    restrict("receipt", receipt, "/amount");
    for issuer in [person(1), buyer()] {
        let floor = |name: &str| ids(&world.ask(&issuer, json!({"quality_floor": {name: 0.5}}))).len();
        assert_eq!((floor("performance_score"), floor("provider_reputation")), (0, 1));
    }
    let audit = parse(&world.node().audit(&did(&judge), 10).unwrap()).root().to_value();
    assert_eq!(audit["receipts"], json!([{"id": "urn:r:1", "receipt_id": "urn:r:1", "principal_did": did(&judge)}]));
}

#[test]
fn restrictions_that_cannot_be_kept_are_refused() {
    let (world, owner) = (World::new(), person(3));
    let publish = |restricted: Value| {
        let mut message = priced(&owner, "t", "7");
        message["restricted"] = restricted;
        world.publish(&sign(message, &owner))
    };
    assert_eq!(code(publish(json!([{"path": "/tool", "audience": [did(&buyer())]}]))), "record_name_restricted");
    assert_eq!(code(publish(json!([{"path": "/pricing", "audience": []}]))), "empty_list");
    // Without a signature over them, restrictions are nobody's: such a line of an import is not kept at all.
    let line =
        json!({"record": manifest(&owner, "t", json!({})), "restricted": [{"path": "/a", "audience": ["did:web:b"]}]});
    let imported = world.node().import(std::io::Cursor::new(line.to_string()), None, &mut |_| {}).unwrap();
    assert_eq!((imported.refused, imported.kept), (1, 0));
}

#[test]
fn one_issuer_has_so_many_views_and_no_more() {
    let (world, owner) = (World::new(), person(3));
    let line = |number: usize| [sign(priced(&owner, &format!("t{number}"), "5"), &owner), vec![b'\n']].concat();
    let lines: Vec<u8> = (0..1_024).flat_map(line).collect();
    let imported = world.node().import(std::io::Cursor::new(lines), None, &mut |_| {}).unwrap();
    assert_eq!(imported.kept, 1_024);
    let full = world.publish(&sign(priced(&owner, "more", "5"), &owner));
    let Err(Error::Refusal(refusal)) = full else { panic!("{full:?}") };
    let limit = refusal.limit.unwrap();
    assert_eq!((refusal.code, &*limit.name, limit.max, limit.got), ("audience_full", "views", 1_024, 1_025));
    // One that is there already may be replaced.
    world.publish(&sign(priced(&owner, "t7", "4"), &owner)).unwrap();
    let question = json!({"constraints": leaf("/pricing/models/0/amount", "eq", json!("4"))});
    assert_eq!(ids(&world.ask(&buyer(), question)), ["did:web:t7.example"]);
}
