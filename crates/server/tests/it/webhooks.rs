//! Events that are brought to an address: over real connections, with receivers that take, fail, hang, lead elsewhere
//! and go away.

use crate::subscriptions::{control, house, path, priced, standing};
use crate::{House, asker, escaped, provider, withdrawal};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use json::{Document, Limits, Value, json};
use node::{Clock, Config, Node};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trust::encoding::decode;

/// How a receiver answers one event.
#[derive(Clone, Debug)]
enum Manner {
    Take,
    Say(u16),
    Wait(u64),
    Hang,
    Elsewhere,
    /// Sends an intent to a node before it answers.
    Meanwhile(reqwest::Client, String, String),
}

/// What came to a receiver.
#[derive(Clone, Debug)]
struct Brought {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Brought {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn value(&self) -> Value {
        Document::parse(&self.body, &Limits::OURS).unwrap().root().to_value()
    }

    fn cursor(&self) -> u64 {
        self.value()["cursor"].as_u64().unwrap()
    }
}

#[derive(Clone)]
struct Receiver {
    url: String,
    /// How the next ones are answered; then all are taken.
    manners: Arc<Mutex<VecDeque<Manner>>>,
    brought: Arc<Mutex<Vec<Brought>>>,
    challenges: Arc<Mutex<Vec<Brought>>>,
    /// Whether challenges are said back.
    agrees: Arc<Mutex<Manner>>,
}

impl Receiver {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            url: format!("https://127.0.0.1:{}/events", listener.local_addr().unwrap().port()),
            manners: Arc::default(),
            brought: Arc::default(),
            challenges: Arc::default(),
            agrees: Arc::new(Mutex::new(Manner::Take)),
        };
        let router = Router::new().route("/events", post(receive)).with_state(receiver.clone());
        tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        receiver
    }

    fn behaves(&self, manners: &[Manner]) {
        self.manners.lock().unwrap().extend(manners.iter().cloned());
    }

    fn all(&self) -> Vec<Brought> {
        self.brought.lock().unwrap().clone()
    }

    /// So many messages, waited for; not one more comes soon after.
    async fn exactly(&self, count: usize) -> Vec<Brought> {
        for _ in 0..400 {
            if self.all().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let all = self.all();
        assert_eq!(all.len(), count, "{:?}", all.iter().map(|one| one.header("webhook-id")).collect::<Vec<_>>());
        all
    }

    fn query(&self) -> String {
        format!("?transport=webhook&endpoint={}", escaped(&self.url))
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    let brought = Brought { headers, body: body.to_vec() };
    let value = brought.value();
    if value["type"] == "oap.subscription.challenge" {
        receiver.challenges.lock().unwrap().push(brought);
        let agrees = receiver.agrees.lock().unwrap().clone();
        return match agrees {
            Manner::Meanwhile(client, url, intent) => {
                let sent =
                    client.post(url).header("content-type", "application/json").body(intent).send().await.unwrap();
                assert_eq!(sent.status(), 200);
                json!({"challenge": value["challenge"]}).to_string().into_response()
            }
            Manner::Take => json!({"challenge": value["challenge"]}).to_string().into_response(),
            other => answer(other).await,
        };
    }
    receiver.brought.lock().unwrap().push(brought);
    let manner = receiver.manners.lock().unwrap().pop_front().unwrap_or(Manner::Take);
    answer(manner).await
}

async fn answer(manner: Manner) -> Response {
    let status = |status: u16| StatusCode::from_u16(status).unwrap();
    match manner {
        Manner::Take => status(204).into_response(),
        Manner::Say(code) => status(code).into_response(),
        Manner::Wait(seconds) => (status(429), [("retry-after", seconds.to_string())]).into_response(),
        Manner::Hang => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            status(204).into_response()
        }
        Manner::Meanwhile(..) => status(500).into_response(),
        Manner::Elsewhere => (status(302), [("location", "/elsewhere".to_owned())]).into_response(),
    }
}

/// Waits until the state of a subscription's webhook is as wanted.
async fn until(house: &House, ack: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut state = Value::Null;
    for _ in 0..200 {
        state = house.get(&path(ack)).await.ok(&house.node);
        crate::interface::valid("rialto-subscription-state.schema.json", &state);
        if wanted(&state["webhook"]) {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{state:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_agreed_gets_every_event_in_order_and_signed() {
    let ((house, _), receiver) = (house().await, Receiver::open().await);
    let ack = house.subscribe(&receiver.query(), &standing("brought", &asker(), |_| {})).await;
    crate::interface::valid("rialto-subscription-ack.schema.json", &ack);
    assert_eq!((&ack["transport"], &ack["endpoint"]), (&json!("webhook"), &json!(receiver.url)));
    assert_eq!(receiver.challenges.lock().unwrap().len(), 1);
    for (number, amount) in ["1.00", "2.00", "3.00"].into_iter().enumerate() {
        house.publish(&format!("brought-{number}"), "manifest", priced(amount)).await;
    }
    let id = provider().did_key().as_str().to_owned();
    let gone = withdrawal(&provider(), "brought-gone", &id);
    house.send(reqwest::Method::DELETE, &format!("/oap/records/{}", escaped(&id)), &gone).await.ok(&house.node);
    let brought = receiver.exactly(4).await;
    let journal = house.events(&ack, 0, 4).await;
    let told: Vec<Value> = brought.iter().map(Brought::value).collect();
    assert_eq!(told, journal);
    let name = ack["subscription_id"].as_str().unwrap().rsplit(':').next().unwrap();
    let public = trust::PublicKey::from_multibase(
        house.node.identity().document()["verificationMethod"][0]["publicKeyMultibase"].as_str().unwrap(),
    )
    .unwrap();
    for (cursor, message) in (1..).zip(&brought) {
        assert_eq!(message.header("webhook-id"), format!("evt_{name}_{cursor}"));
        let signed = format!("evt_{name}_{cursor}.{}.", message.header("webhook-timestamp"));
        let signed = [signed.as_bytes(), &message.body].concat();
        let signature = message.header("webhook-signature").strip_prefix("v1a,").unwrap();
        assert!(public.verifies(&signed, &decode(signature).unwrap()));
        // The same by RFC 9421, which covers the address, too.
        let input = message.header("signature-input").strip_prefix("rialto=").unwrap();
        let base = format!(
            "\"@method\": POST\n\"@target-uri\": {}\n\"content-digest\": {}\n\"content-type\": application/json\n\
             \"webhook-id\": {}\n\"webhook-timestamp\": {}\n\"@signature-params\": {input}",
            receiver.url,
            message.header("content-digest"),
            message.header("webhook-id"),
            message.header("webhook-timestamp"),
        );
        let signature = message.header("signature").strip_prefix("rialto=:").unwrap().strip_suffix(':').unwrap();
        assert!(public.verifies(base.as_bytes(), &decode(signature).unwrap()));
    }
    let state = until(&house, &ack, |webhook| webhook["delivered"] == 4).await;
    assert_eq!(state["webhook"]["state"], "running");
    // The end is brought, too, and nothing after it.
    let end = control("brought-end", &ack, &asker(), "withdraw", json!({}));
    house.post(&format!("{}/control", path(&ack)), &end).await.ok(&house.node);
    let brought = receiver.exactly(5).await;
    assert_eq!(brought[4].value()["state"], "ended");
    assert_eq!(brought[4].header("webhook-id"), format!("end_{name}"));
    let metrics = String::from_utf8(house.get("/metrics").await.bytes).unwrap();
    assert!(metrics.contains("rialto_webhook_delivered 5"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_events_who_did_not_say_the_challenge_back() {
    let ((house, _), receiver) = (house().await, Receiver::open().await);
    for (number, manner) in [Manner::Say(200), Manner::Say(404), Manner::Elsewhere].into_iter().enumerate() {
        *receiver.agrees.lock().unwrap() = manner;
        let intent = standing(&format!("unwilling-{number}"), &asker(), |_| {});
        let refused = house.post(&format!("/oap/subscribe{}", receiver.query()), &intent).await;
        refused.refused(&house.node, 422, "webhook_unverified");
    }
    for (number, endpoint) in [
        "http://127.0.0.1:9/",
        "https://user@127.0.0.1:9000/",
        "https://169.254.169.254/",
        "nowhere",
        "https://127.0.0.1:22/",
    ]
    .into_iter()
    .enumerate()
    {
        let intent = standing(&format!("forbidden-{number}"), &asker(), |_| {});
        let query = format!("?transport=webhook&endpoint={}", escaped(endpoint));
        let refused = house.post(&format!("/oap/subscribe{query}"), &intent).await;
        refused.refused(&house.node, 400, "webhook_forbidden");
    }
    let long = format!("https://127.0.0.1:9000/{}", "x".repeat(2048));
    let intent = standing("forbidden-long", &asker(), |_| {});
    let query = format!("?transport=webhook&endpoint={}", escaped(&long));
    let refused = house.post(&format!("/oap/subscribe{query}"), &intent).await;
    let refused = refused.refused(&house.node, 400, "webhook_forbidden");
    assert_eq!(refused["error"]["details"]["limit"]["name"], "webhooks.endpoint_bytes");
    for query in ["?transport=webhook", "?endpoint=https%3A%2F%2Fa.example%2F", "?transport=pigeon"] {
        let refused = house.post(&format!("/oap/subscribe{query}"), &intent).await;
        refused.refused(&house.node, 400, "invalid_value");
    }
    // A challenge goes out only for somebody whose signature holds.
    let mut forged = standing("forged", &asker(), |_| {});
    forged["max_event_rate_per_minute"] = json!(7);
    let before = receiver.challenges.lock().unwrap().len();
    assert_eq!(house.post(&format!("/oap/subscribe{}", receiver.query()), &forged).await.status, 401);
    assert_eq!(receiver.challenges.lock().unwrap().len(), before);
    house.publish("unwilling", "manifest", priced("1.00")).await;
    assert_eq!(receiver.exactly(0).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_under_the_same_name_and_nothing_is_left_out() {
    let ((house, time), receiver) = (house().await, Receiver::open().await);
    receiver.behaves(&[Manner::Say(500), Manner::Elsewhere, Manner::Take, Manner::Say(400)]);
    let ack = house.subscribe(&receiver.query(), &standing("retried", &asker(), |_| {})).await;
    house.publish("retried-1", "manifest", priced("1.00")).await;
    house.publish("retried-2", "manifest", priced("2.00")).await;
    receiver.exactly(1).await;
    let state = until(&house, &ack, |webhook| webhook["attempts"] == 1).await;
    assert_eq!(state["webhook"]["delivered"], 0);
    // Five seconds and a quarter, then thirty and a quarter.
    time.fetch_add(7_000, Ordering::SeqCst);
    receiver.exactly(2).await;
    until(&house, &ack, |webhook| webhook["attempts"] == 2).await;
    time.fetch_add(38_000, Ordering::SeqCst);
    receiver.exactly(4).await;
    until(&house, &ack, |webhook| webhook["delivered"] == 1 && webhook["attempts"] == 1).await;
    time.fetch_add(7_000, Ordering::SeqCst);
    let brought = receiver.exactly(5).await;
    let cursors: Vec<u64> = brought.iter().map(Brought::cursor).collect();
    assert_eq!(cursors, [1, 1, 1, 2, 2]);
    let ids: Vec<&str> = brought.iter().map(|message| message.header("webhook-id")).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[3] == ids[4] && ids[2] != ids[3], "{ids:?}");
    until(&house, &ack, |webhook| webhook["delivered"] == 2 && webhook["attempts"] == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_holds_up_nobody_else() {
    let time = Arc::new(AtomicI64::new(crate::NOW));
    let clock = Clock::Set(Arc::clone(&time));
    let house = House::configured(|config| {
        config.clock = clock;
        config.door.bring = Duration::from_millis(700);
    })
    .await;
    let (slow, quick) = (Receiver::open().await, Receiver::open().await);
    slow.behaves(&[Manner::Hang]);
    let slowly = house.subscribe(&slow.query(), &standing("slow", &asker(), |_| {})).await;
    house.subscribe(&quick.query(), &standing("quick", &asker(), |_| {})).await;
    for number in 0..5 {
        house.publish(&format!("slow-{number}"), "manifest", priced(&format!("{number}.50"))).await;
    }
    assert_eq!(quick.exactly(5).await.len(), 5);
    assert_eq!(slow.all().len(), 1);
    until(&house, &slowly, |webhook| webhook["attempts"] == 1).await;
    time.fetch_add(7_000, Ordering::SeqCst);
    let cursors: Vec<u64> = slow.exactly(6).await.iter().map(Brought::cursor).collect();
    assert_eq!(cursors, [1, 1, 2, 3, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_is_left_alone_until_it_agrees_again() {
    let ((house, time), receiver) = (house().await, Receiver::open().await);
    receiver.behaves(&[Manner::Take, Manner::Say(410)]);
    let ack = house.subscribe(&receiver.query(), &standing("gone", &asker(), |_| {})).await;
    for number in 1..=3 {
        house.publish(&format!("gone-{number}"), "manifest", priced(&format!("{number}.00"))).await;
    }
    let state = until(&house, &ack, |webhook| webhook["state"] == "gone").await;
    let letters = &state["webhook"]["dead_letters"];
    assert_eq!((&letters[0]["cursor"], &letters[0]["status"]), (&json!(2), &json!(410)));
    time.fetch_add(3_600_000, Ordering::SeqCst);
    receiver.exactly(2).await;
    let again = |name: &str, from: u64| control(name, &ack, &asker(), "replay", json!({"from": from}));
    *receiver.agrees.lock().unwrap() = Manner::Say(404);
    let refused = house.post(&format!("{}/control", path(&ack)), &again("gone-1", 2)).await;
    refused.refused(&house.node, 422, "webhook_unverified");
    receiver.exactly(2).await;
    *receiver.agrees.lock().unwrap() = Manner::Take;
    let ahead = house.post(&format!("{}/control", path(&ack)), &again("gone-2", 9)).await;
    ahead.refused(&house.node, 400, "invalid_cursor");
    let state = house.post(&format!("{}/control", path(&ack)), &again("gone-3", 2)).await.ok(&house.node);
    assert_eq!((&state["webhook"]["state"], &state["webhook"]["dead_letters"]), (&json!("running"), &json!([])));
    let cursors: Vec<u64> = receiver.exactly(4).await.iter().map(Brought::cursor).collect();
    assert_eq!(cursors, [1, 2, 2, 3]);
    // What nobody brings cannot be brought again.
    let other = house.subscribe("", &standing("polled", &asker(), |_| {})).await;
    let asked = control("polled", &other, &asker(), "replay", json!({"from": 1}));
    let refused = house.post(&format!("{}/control", path(&other)), &asked).await;
    refused.refused(&house.node, 409, "not_a_webhook");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_to_be_left_alone_is_and_is_told_less() {
    let ((house, time), receiver) = (house().await, Receiver::open().await);
    receiver.behaves(&[Manner::Wait(120)]);
    let ack = house.subscribe(&receiver.query(), &standing("busy", &asker(), |_| {})).await;
    house.publish("busy", "manifest", priced("1.00")).await;
    let state = until(&house, &ack, |webhook| webhook["attempts"] == 1).await;
    time.fetch_add(60_000, Ordering::SeqCst);
    receiver.exactly(1).await;
    time.fetch_add(61_000, Ordering::SeqCst);
    receiver.exactly(2).await;
    let later = until(&house, &ack, |webhook| webhook["delivered"] == 1).await;
    assert_eq!((&later["max_event_rate_per_minute"], &state["webhook"]["attempts"]), (&json!(3000), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_of_failures_is_few_attempts_and_a_day_is_the_end() {
    let ((house, time), receiver) = (house().await, Receiver::open().await);
    receiver.behaves(&vec![Manner::Say(500); 100]);
    let ack = house.subscribe(&receiver.query(), &standing("failing", &asker(), |_| {})).await;
    house.publish("failing", "manifest", priced("1.00")).await;
    let (mut attempts, mut hours) = (0, Vec::new());
    while hours.len() < 40 {
        let state =
            until(&house, &ack, |webhook| webhook["state"] == "given_up" || webhook["attempts"] != attempts).await;
        if state["webhook"]["state"] == "given_up" {
            let letter = &state["webhook"]["dead_letters"][0];
            assert_eq!((&letter["cursor"], &letter["status"]), (&json!(1), &json!(500)));
            assert!(receiver.all().len() < 40);
            assert!(hours.iter().filter(|hour| **hour < 1.0).count() <= 20, "{hours:?}");
            return;
        }
        attempts = state["webhook"]["attempts"].as_u64().unwrap();
        hours.push((time.load(Ordering::SeqCst) - crate::NOW) as f64 / 3_600_000.0);
        let due = aql::Instant::parse_rfc3339(state["webhook"]["next_attempt_at"].as_str().unwrap()).unwrap();
        time.store((due.seconds() + 1) * 1_000, Ordering::SeqCst);
    }
    panic!("never given up: {hours:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_signs_beside_the_key_and_its_successor_beside_it() {
    let ((house, time), receiver) = (house().await, Receiver::open().await);
    let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
    let request = house.request(reqwest::Method::POST, &format!("/oap/subscribe{}", receiver.query()));
    let request = request.header("content-type", "application/json").header("webhook-secret", secrets[0]);
    let intent = standing("secret", &asker(), |_| {});
    let ack = crate::Answer::of(request.body(intent.to_string())).await.ok(&house.node);
    house.publish("secret-1", "manifest", priced("1.00")).await;
    receiver.exactly(1).await;
    let next = control("secret", &ack, &asker(), "secret", json!({"secret": secrets[1]}));
    house.post(&format!("{}/control", path(&ack)), &next).await.ok(&house.node);
    house.publish("secret-2", "manifest", priced("2.00")).await;
    receiver.exactly(2).await;
    time.fetch_add(25 * 3_600_000, Ordering::SeqCst);
    let mut late = crate::publication(&provider(), "secret-3", "manifest", priced("3.00"));
    late["issued_at"] = json!("2026-05-02T12:59:00Z");
    late.as_object_mut().unwrap().remove("signature");
    house.post("/oap/records", &crate::sign(late, &provider())).await.ok(&house.node);
    let brought = receiver.exactly(3).await;
    let kinds = |message: &Brought| -> Vec<String> {
        message.header("webhook-signature").split(' ').map(|one| one.split(',').next().unwrap().to_owned()).collect()
    };
    let found: Vec<Vec<String>> = brought.iter().map(kinds).collect();
    assert_eq!(found, [vec!["v1a", "v1"], vec!["v1a", "v1", "v1"], vec!["v1a", "v1"]]);
    assert_ne!(brought[0].header("webhook-signature"), brought[2].header("webhook-signature"));
    // Nothing shows a secret.
    let state = house.get(&path(&ack)).await.ok(&house.node).to_string();
    assert!(!state.contains("whsec_") && !ack.to_string().contains("whsec_"));
    let wrong = control("secret-wrong", &ack, &asker(), "secret", json!({"secret": "whsec_short"}));
    house.post(&format!("{}/control", path(&ack)), &wrong).await.refused(&house.node, 400, "invalid_value");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_for_what_is_brought_and_a_restart_goes_on_from_there() {
    let ((house, time), receiver) = (house().await, Receiver::open().await);
    let ack = house.subscribe(&receiver.query(), &standing("restarted", &asker(), |_| {})).await;
    house.publish("restarted-1", "manifest", priced("1.00")).await;
    receiver.exactly(1).await;
    // What is in the journal and not brought yet stays there while it is paused, and over a restart.
    receiver.behaves(&[Manner::Say(503)]);
    house.publish("restarted-2", "manifest", priced("2.00")).await;
    receiver.exactly(2).await;
    let pause = control("restarted-pause", &ack, &asker(), "pause", json!({}));
    house.post(&format!("{}/control", path(&ack)), &pause).await.ok(&house.node);
    time.fetch_add(60_000, Ordering::SeqCst);
    receiver.exactly(2).await;
    let House { node, folder, stop, served, .. } = house;
    let _ = stop.unwrap().send(());
    served.unwrap().await.unwrap();
    Arc::into_inner(node).unwrap().close().unwrap();
    let config = Config {
        data: folder.path().to_owned(),
        clock: Clock::Set(time),
        door: node::DoorPolicy { private_networks: true, ..node::DoorPolicy::default() },
        ..Config::default()
    };
    let node = Arc::new(Node::open(&config, &mut |_, _| {}).unwrap());
    receiver.exactly(2).await;
    let resume = control("restarted-resume", &ack, &asker(), "resume", json!({}));
    node.control(ack["subscription_id"].as_str().unwrap(), resume.to_string().as_bytes()).await.unwrap();
    let cursors: Vec<u64> = receiver.exactly(3).await.iter().map(Brought::cursor).collect();
    assert_eq!(cursors, [1, 2, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_intent_of_the_same_name_that_comes_while_an_address_is_asked_is_not_mistaken() {
    let ((house, _), receiver) = (house().await, Receiver::open().await);
    let first = standing("twice", &asker(), |body| body["max_event_rate_per_minute"] = json!(7));
    let second = standing("twice", &asker(), |_| {});
    let at = format!("{}/oap/subscribe", house.url);
    *receiver.agrees.lock().unwrap() = Manner::Meanwhile(house.client.clone(), at.clone(), first.to_string());
    let answer = house.post(&format!("/oap/subscribe{}", receiver.query()), &second).await;
    answer.refused(&house.node, 409, "intent_id_reused");
    // The same intent gets what it got.
    let same = standing("same", &asker(), |_| {});
    *receiver.agrees.lock().unwrap() = Manner::Meanwhile(house.client.clone(), at, same.to_string());
    let ack = house.post(&format!("/oap/subscribe{}", receiver.query()), &same).await.ok(&house.node);
    assert_eq!(house.subscribe("", &same).await, ack);
    house.close().await;
}
