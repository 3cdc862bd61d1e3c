//! `rialto did`: names that are made, judged and looked up.

use crate::run::Home;
use json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn a_name_is_made_with_its_document_and_judged() {
    let home = Home::new("did-new");
    home.run(&["did", "new", "agents.example/user/alice"]).exits(3).complains("rialto keys new");
    home.run(&["keys", "new"]).exits(0);
    for (flags, form) in [(&[][..], "agents' libraries"), (&["--w3c-proof"], "W3C")] {
        let made = home.run(&[&["did", "new", "agents.example:8443/user/alice"], flags].concat()).exits(0);
        let did = made.json()["id"].as_str().unwrap().to_owned();
        assert!(did.starts_with("did:wba:agents.example%3A8443:user:alice:e1_"), "{did}");
        let lies = format!("https://agents.example:8443/user/alice/{}/did.json", did.rsplit(':').next().unwrap());
        made.complains(&lies);
        let path = home.file("did.json", &made.out);
        home.run(&["did", "show", &path]).exits(0).says(&did).says("its Ed25519 key").says(form);
        let shown = home.run(&["did", "show", &path, "--json"]).exits(0).json();
        assert_eq!((&shown["bound"], &shown["proof"], &shown["url"]), (&json!(true), &json!(true), &json!(lies)));
        assert_eq!(shown["keys"][0]["purposes"], json!(["authentication", "assertionMethod"]));
        let altered = home.file("altered.json", &made.out.replace("Multikey", "Multikeys"));
        home.run(&["did", "show", &altered]).exits(1).complains("error[did_document_invalid]").complains("/proof");
        home.run(&["did", "show", &path, "--did", "did:wba:other.example"]).exits(1).complains("somebody else");
    }
    let bare = home.run(&["did", "new", "node.example", "--description", "https://node.example/ad.json"]).exits(0);
    assert_eq!(bare.json()["id"], "did:wba:node.example");
    assert_eq!(bare.json()["service"][0]["serviceEndpoint"], "https://node.example/ad.json");
    let plain = home.run(&["did", "new", "node.example/a", "--plain"]).exits(0).json();
    assert_eq!(plain["id"], "did:wba:node.example:a");
    for place in ["Node.example", "node.example:0/a", "node.example/a b", "/a"] {
        home.run(&["did", "new", place]).exits(2).complains("no place of a did:wba");
    }
}

#[test]
fn a_secp256k1_key_is_made_once_and_kept() {
    let home = Home::new("did-k1");
    let key = home.path("bob.json");
    let make = || home.run(&["did", "new", "agents.example/bob", "--secp256k1", &key]).exits(0).json();
    let document = make();
    assert!(document["id"].as_str().unwrap().starts_with("did:wba:agents.example:bob:k1_"), "{document}");
    assert_eq!(make()["id"], document["id"]);
    let path = home.file("did.json", &document.to_string());
    home.run(&["did", "show", &path]).exits(0).says("its secp256k1 key").says("secp256k1, authentication");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    home.run(&["did", "new", "agents.example/bob", "--secp256k1", &key]).exits(78);
    let other = home.file("other.json", "{}");
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    home.run(&["did", "new", "agents.example/bob", "--secp256k1", &other]).exits(3).complains("no secp256k1 key");
}

/// Answers every request with one document.
fn host(listener: TcpListener, document: String) {
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut head = [0; 4096];
            // Whoever tries TLS first is told by the answer that there is none.
            let _ = connection.read(&mut head);
            let length = document.len();
            let _ = write!(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{document}"
            );
        }
    });
}

#[test]
fn a_document_is_looked_up_and_judged() {
    let home = Home::new("did-resolve");
    home.run(&["keys", "new"]).exits(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("localhost:{}/user", listener.local_addr().unwrap().port());
    let document = home.run(&["did", "new", &place]).exits(0).json();
    let did = document["id"].as_str().unwrap().to_owned();
    host(listener, document.to_string());
    home.run(&["did", "resolve", &did]).exits(1).complains("error[did_host_forbidden]");
    home.run(&["did", "resolve", &did, "--private-networks"]).exits(0).says(&did).says("its Ed25519 key");
    let whole = home.run(&["did", "resolve", &did, "--private-networks", "--json"]).exits(0).json();
    assert_eq!(whole, document);
    let other = did.replace(":user:", ":other:");
    home.run(&["did", "resolve", &other, "--private-networks"]).exits(1).complains("error[did_document_invalid]");
    home.run(&["did", "resolve", "did:plc:abc"]).exits(1).complains("error[did_method_unsupported]");
    home.run(&["did", "resolve", "nobody"]).exits(1).complains("error[invalid_did]");
    let key = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
    home.run(&["did", "resolve", key]).exits(0).says("Ed25519, authentication and assertionMethod");
}
