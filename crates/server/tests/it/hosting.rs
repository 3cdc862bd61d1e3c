//! OAS Server: every case of `conformance/hosting`, put over HTTPS to a node that hosts the documents of the file.

use crate::{Answer, House, asker, client_tls, tls};
use host::Configuration;
use json::{Document, Limits, Map, Value, json};
use node::{Engagements, Hosting};
use reqwest::Method;
use server::{Listening, Tls};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;
use trust::SigningKey;

fn corpus() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/hosting/server.json");
    Document::parse(&std::fs::read(path).unwrap(), &Limits::OURS).unwrap().root().to_value()
}

/// The operator's file: a model for each agent, which says what the file has it say.
fn configuration(file: &Value) -> String {
    let (mut models, mut agents) = (Map::new(), Map::new());
    for (name, text) in file["says"].as_object().unwrap() {
        let rules =
            json!([{"when": {"contains": "ünïcödé"}, "text": "I heard ünïcödé."}, {"when": {"turn": 0}, "text": text}]);
        models.insert(name.clone(), json!({"kind": "scripted", "script": {"rules": rules}}));
        agents.insert(name.clone(), json!({"model": name}));
    }
    json!({"models": models, "agents": agents}).to_string()
}

/// A node that offers the agents of the file to everybody, and a client that trusts it and is not sent on.
async fn offering(file: &Value) -> House {
    let house = House::open().await;
    let (chain, key, roots) = tls::certificate(&house.folder);
    let configuration = configuration(file);
    let configuration = Configuration::read(configuration.as_bytes(), house.folder.path(), &|_| None).unwrap();
    let documents = file["documents"].as_object().unwrap().iter();
    let documents = documents.map(|(name, text)| (format!("{name}.yaml"), text.as_str().unwrap().into()));
    let (people, options) = (Vec::new(), agent::Options::default());
    let hosting = Hosting { configuration, documents: documents.collect(), people, options, strangers: true };
    let engagements = Engagements::open(Arc::clone(&house.node), hosting).await.unwrap();
    let spoken = Tls::read(&chain, &key).unwrap();
    let listening = Listening::on("127.0.0.1:0".parse().unwrap(), Some(spoken)).await.unwrap();
    let url = listening.url();
    let router = server::hosting(Arc::clone(&house.node), engagements, None, true);
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(server::serve(listening, Arc::clone(&house.node), router, async {
        let _ = stopped.await;
    }));
    let config = client_tls(roots, rustls::DEFAULT_VERSIONS);
    let client = reqwest::Client::builder().tls_backend_preconfigured(config).no_proxy();
    let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
    House { url, client, stop: Some(stop), served: Some(served), ..house }
}

/// What a case remembers of its named steps: the answer, and a value for each text in braces.
#[derive(Default)]
struct Remembered {
    answers: BTreeMap<String, Vec<u8>>,
    etags: BTreeMap<String, String>,
    values: Vec<(String, String)>,
}

impl Remembered {
    fn filled(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    fn take(&mut self, name: &str, answer: &Answer, house: &House) {
        self.answers.insert(name.to_owned(), answer.bytes.clone());
        if let Some(etag) = answer.headers.get("etag") {
            self.etags.insert(name.to_owned(), etag.to_str().unwrap().to_owned());
        }
        if let Some(location) = answer.headers.get("location") {
            let place = location.to_str().unwrap().strip_prefix(&house.url).unwrap();
            self.values.push((name.to_owned(), place.to_owned()));
        }
        let type_of = answer.header("content-type").to_owned();
        if type_of.starts_with("application/yaml") {
            let digest = agent::Agent::read(&answer.bytes).unwrap().digest().to_owned();
            self.values.push((format!("{name}/digest"), digest));
        } else if let Some(agents) = answer.json()["agents"].as_array() {
            for (number, agent) in agents.iter().enumerate() {
                if let Some(reference) = agent["reference"].as_str() {
                    let place = reference.replacen("oagent://", "https://", 1).replacen(&house.url, "", 1);
                    self.values.push((format!("{name}/agents/{number}/reference"), place));
                }
            }
        }
    }
}

fn party(name: &str) -> SigningKey {
    match name {
        "first" => asker(),
        "second" => SigningKey::from_seed([9; 32]),
        other => panic!("nobody is called `{other}`"),
    }
}

async fn sent(house: &House, step: &Value, remembered: &Remembered) -> Answer {
    let known = ["get", "post", "path"].iter().find_map(|name| step[*name].as_str());
    let method = match (step.get("get"), step.get("post"), step["method"].as_str()) {
        (Some(_), ..) => Method::GET,
        (_, Some(_), _) => Method::POST,
        (_, _, method) => method.unwrap().parse().unwrap(),
    };
    let path = remembered.filled(known.unwrap());
    if let Some(scheme) = step["scheme"].as_str() {
        assert!(house.url.starts_with(&format!("{scheme}://")), "{}", house.url);
    }
    let body = step.get("body");
    let mut request = match (step["by"].as_str(), body, step["text"].as_str()) {
        (Some(by), body, _) => house.signed(&party(by), method, &path, body),
        (None, Some(body), _) => {
            house.request(method, &path).header("content-type", "application/json").body(body.to_string())
        }
        (None, None, Some(text)) => {
            house.request(method, &path).header("content-type", "application/json").body(text.to_owned())
        }
        (None, None, None) => house.request(method, &path),
    };
    if let Some(accept) = step["accept"].as_str() {
        request = request.header("accept", accept);
    }
    if let Some(known) = step["unless"].as_str() {
        request = request.header("if-none-match", &remembered.etags[known]);
    }
    let answer = Answer::of(request).await;
    if step["follow"] != json!(true) {
        return answer;
    }
    assert_eq!(answer.status, 303);
    house.get(answer.header("location").strip_prefix(&house.url).unwrap()).await
}

/// What is not as a step expects it.
fn judged(house: &House, file: &Value, expect: &Value, answer: &Answer, remembered: &Remembered) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let host = house.address().to_owned();
    for (name, wanted) in expect.as_object().unwrap() {
        let text = wanted.as_str().unwrap_or_default();
        match name.as_str() {
            "status" => check(answer.status.as_u16() == wanted.as_u64().unwrap() as u16, "status"),
            "code" => check(answer.json()["error"]["details"]["code"] == *wanted, "code"),
            "document" => check(answer.bytes == file["documents"][text].as_str().unwrap().as_bytes(), "document"),
            "media_type" => check(answer.header("content-type").split(';').next() == Some(text), "media_type"),
            "bytes" => check(answer.bytes.len() as u64 == wanted.as_u64().unwrap(), "bytes"),
            "location" => {
                let place = answer.headers.get("location").and_then(|place| place.to_str().ok());
                check(place.is_some_and(|place| place.starts_with(&format!("{}/", house.url))), "location");
            }
            "other_than" => check(remembered.answers[text] != answer.bytes, "other_than"),
            "json" => {
                for (pointer, value) in wanted.as_object().unwrap() {
                    let value = match value.as_str() {
                        Some(text) => json!(remembered.filled(text).replace("{host}", &host)),
                        None => value.clone(),
                    };
                    check(answer.json().pointer(pointer) == Some(&value), pointer);
                }
            }
            "present" | "absent" => {
                for pointer in wanted.as_array().unwrap() {
                    let pointer = pointer.as_str().unwrap();
                    check(answer.json().pointer(pointer).is_some() == (name == "present"), pointer);
                }
            }
            other => panic!("nobody knows how to expect `{other}`"),
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_of_the_corpus_holds_over_https() {
    let file = corpus();
    let house = offering(&file).await;
    let mut failed = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let mut remembered = Remembered::default();
        let steps = case["steps"].as_array().unwrap();
        assert_eq!(case["expect"]["steps"], steps.len(), "{}", case["id"]);
        for (number, step) in steps.iter().enumerate() {
            let answer = sent(&house, step, &remembered).await;
            let wrong = judged(&house, &file, &step["expect"], &answer, &remembered);
            let other = json!({"status": 418});
            assert!(
                judged(&house, &file, &other, &answer, &remembered).len() == 1,
                "a judge that lets everything pass"
            );
            if !wrong.is_empty() {
                let said = String::from_utf8_lossy(&answer.bytes);
                failed.push(format!("{} step {number}: {wrong:?}: {} {said}", case["id"], answer.status));
                break;
            }
            if let Some(name) = step["name"].as_str() {
                remembered.take(name, &answer, &house);
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    house.close().await;
}
