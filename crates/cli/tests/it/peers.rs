//! The public Python library's own server, unmodified, behind its own verifier: found, crawled and called by us; and our
//! node, found, listed and called by the library's own clients. TLS on localhost under an authority of the test.

use crate::agents::library::Library;
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
