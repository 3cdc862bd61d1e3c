//! The public Python library's own server, unmodified, behind its own verifier: found, crawled and called by us; and our
//! node, found, listed and called by the library's own clients. TLS on localhost under an authority of the test.

use crate::agents::library::Library;
use crate::node::Node;
use crate::run::Home;
use json::{Value, json};

/// Makes a did:wba of ours on the library's host and publishes its document there.
fn named(home: &Home, library: &mut Library, place: &str, more: &[&str]) -> String {
    let place = format!("localhost:{}{place}", library.port);
    let document = home.run(&[&["did", "new", &place], more].concat()).exits(0).json();
    let did = document["id"].as_str().unwrap().to_owned();
    publish(library, &document);
    did
}

fn publish(library: &mut Library, document: &Value) {
    let did = trust::Did::parse(document["id"].as_str().unwrap()).unwrap();
    let url = did.document_url().unwrap();
    let path = url.split_once(&format!(":{}", library.port)).unwrap().1;
    library.ask(&json!({"do": "publish", "path": path, "document": document}));
}

fn calls_the_library(version: &str) {
    let home = Home::new(&format!("peers-{version}"));
    home.run(&["keys", "new"]).exits(0);
    let mut library = Library::start(version, "server");
    let authority = library.authority.to_str().unwrap().to_owned();
    let port = library.port;
    let server = library.ask(&json!({"do": "agent", "port": port}));
    publish(&mut library, &server["document"]);
    let (url, did) = (server["url"].as_str().unwrap(), server["document"]["id"].as_str().unwrap());
    let run = |arguments: &[&str]| {
        home.run_with(&[("SSL_CERT_FILE", &authority)], "", &[arguments, &["--private-networks"]].concat())
    };
    // Its server shows one interface to everybody and the other to whoever proves a name.
    run(&["call", url])
        .exits(0)
        .says("whoami()")
        .says("access by didwba")
        .says("its DID stands behind it")
        .says("unread");
    run(&["call", url, "add", "a=10", "b=20"]).exits(1).complains("error[identity_required]");
    let key = home.path("bob.json");
    let names = [
        (named(&home, &mut library, "/user/alice", &[]), vec![]),
        (named(&home, &mut library, "/user/bob", &["--secp256k1", &key]), vec!["--secp256k1", key.as_str()]),
        (named(&home, &mut library, "", &[]), vec![]),
    ];
    run(&["call", url, "--did", &names[0].0]).exits(0).says("add(a, b)").says("whoami()");
    for (name, more) in &names {
        for legacy in [&[][..], &["--legacy"]] {
            let arguments = [&["call", url, "add", "a=10", "b=20", "--json", "--did", name][..], more, legacy].concat();
            let told = run(&arguments).exits(0).json();
            assert_eq!(
                (&told["result"], &told["fit"], &told["bound"]),
                (&json!(30), &json!("fits"), &json!(true)),
                "{told}"
            );
            let arguments = [&["call", did, "whoami", "--json", "--did", name][..], more, legacy].concat();
            assert_eq!(run(&arguments).exits(0).json()["result"]["did"], name.as_str());
        }
    }
    // A name whose document nobody publishes proves nothing.
    let nobody = names[0].0.replace(":user:", ":other:");
    run(&["call", url, "add", "a=1", "b=2", "--did", &nobody]).exits(1).complains("error[authentication_refused]");
    run(&["call", url, "add", "a=1", "--did", &names[0].0]).exits(1).complains("error[argument_missing]");
    let data = home.path("data");
    let crawled = run(&["crawl", url, "--data", &data, "--per-minute", "6000", "--json"]).exits(0).json();
    assert_eq!(crawled["agents"][0]["outcome"], "new", "{crawled}");
    assert_eq!(crawled["agents"][0]["did"], did, "{crawled}");
    let again = run(&["crawl", url, "--data", &data, "--per-minute", "6000", "--json"]).exits(0).json();
    // Its server writes the moment of the question into the description.
    assert!(["changed", "unchanged"].map(Value::from).contains(&again["agents"][0]["outcome"]), "{again}");
}

#[test]
fn the_server_of_anp_0_9_2_is_crawled_and_called() {
    calls_the_library("0.9.2");
}

#[test]
fn the_server_of_anp_1_0_7_is_crawled_and_called() {
    calls_the_library("1.0.7");
}

#[expect(clippy::disallowed_methods, reason = "the node goes by the clock of this machine")]
fn now() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A question of somebody, who proves it by sending it.
fn intent(issuer: &str, name: &str) -> Value {
    let at = |seconds: i64| json::Instant::from_unix(now() + seconds, 0).to_string();
    json!({
        "intent_id": format!("urn:oap:intent:{name}"), "issuer_did": issuer, "category": "discovery",
        "constraints": {"path": "/name", "operator": "exists", "value": true}, "projection": {"include": ["/name"]},
        "validity": {"from": at(-60), "to": at(3_000)},
    })
}

fn is_asked_by_the_library(version: &str) {
    let (home, theirs) = (Home::new(&format!("peers-asked-{version}")), Home::new(&format!("peers-node-{version}")));
    let mut library = Library::start(version, "client");
    let authority = library.authority.to_str().unwrap().to_owned();
    let pem = library.authority.with_file_name("server.pem");
    std::fs::set_permissions(&pem, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (origin, pem) = (format!("https://localhost:{}", free.port()), pem.to_str().unwrap().to_owned());
    let tls = ["--private-networks", "--public-url", &origin, "--certificate", &pem, "--certificate-key", &pem];
    let _node = Node::start_in(&theirs, &[("SSL_CERT_FILE", &authority)], &free.to_string(), &tls);
    let url = format!("{origin}/agents/rialto/ad.json");
    for (profile, segments) in [("e1", json!(["user", "alice"])), ("k1", json!(["user", "bob"])), ("e1", json!(null))] {
        let made = json!({"do": "create", "port": library.port, "profile": profile, "segments": segments});
        let document = library.ask(&made)["document"].take();
        publish(&mut library, &document);
        let did = document["id"].as_str().unwrap();
        let name = did.rsplit(':').next().unwrap();
        let asked = intent(did, &format!("{name}-1"));
        let found = library.ask(&json!({
            "do": "discover", "document": document, "url": url, "method": "search", "params": {"intent": asked},
        }));
        assert_eq!(found["name"], "Rialto node", "{found}");
        assert!(
            found["tools"].to_string().contains("\"search\"") && found["methods"].to_string().contains("\"explain\"")
        );
        assert_eq!(found["result"]["intent_id"], asked["intent_id"], "{found}");
        let asked = intent(did, &format!("{name}-2"));
        let crawled = library.ask(&json!({
            "do": "crawl", "document": document, "url": url, "tool": "search", "arguments": {"intent": asked},
        }));
        assert!(crawled["tools"].to_string().contains("\"search\""), "{crawled}");
        assert!(crawled["result"].to_string().contains(asked["intent_id"].as_str().unwrap()), "{crawled}");
    }
    // The same node, found and called by us.
    home.run(&["keys", "new"]).exits(0);
    let did = named(&home, &mut library, "/user/carol", &[]);
    let run = |arguments: &[&str]| {
        home.run_with(&[("SSL_CERT_FILE", &authority)], "", &[arguments, &["--private-networks"]].concat())
    };
    let domain = origin.trim_start_matches("https://");
    let question = format!("intent:={}", intent(&did, "carol-1"));
    let told = run(&["call", domain, "search", &question, "--did", &did, "--json"]).exits(0).json();
    assert_eq!((&told["bound"], &told["proved"]), (&json!(true), &json!(did)), "{told}");
    assert_eq!(told["result"]["intent_id"], "urn:oap:intent:carol-1", "{told}");
    let data = home.path("data");
    let crawled = run(&["crawl", domain, "--data", &data, "--per-minute", "6000", "--json"]).exits(0).json();
    assert_eq!((&crawled["agents"][0]["outcome"], &crawled["nodes"]), (&json!("new"), &json!(1)), "{crawled}");
    let again = run(&["crawl", domain, "--data", &data, "--per-minute", "6000", "--json"]).exits(0).json();
    assert_eq!(again["agents"][0]["outcome"], "unchanged", "{again}");
}

#[test]
fn anp_0_9_2_lists_and_calls_what_the_node_offers() {
    is_asked_by_the_library("0.9.2");
}

#[test]
fn anp_1_0_7_lists_and_calls_what_the_node_offers() {
    is_asked_by_the_library("1.0.7");
}
