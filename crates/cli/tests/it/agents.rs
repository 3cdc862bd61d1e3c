//! The public Python library's own client against the real binary: it signs, gets a token, and brings the token along.

#[path = "../../../trust/tests/it/library.rs"]
pub(crate) mod library;

use crate::node::Node;
use crate::run::Home;
use json::{Value, json};
use library::Library;

/// A call of the library's client; the text must be JSON that names the caller.
fn call(library: &mut Library, document: &Value, url: &str, more: Value) -> Value {
    let mut ask = json!({"do": "call", "document": document, "url": url});
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = library.ask(&ask);
    assert_eq!(reply["status"], 200, "{reply}");
    let said: Value = serde_json::from_str(reply["text"].as_str().unwrap()).unwrap();
    assert_eq!(said["did"], document["id"], "{reply}");
    reply
}

fn authenticates(version: &str) {
    let mut library = Library::start(version, "binary");
    let authority = library.authority.to_str().unwrap().to_owned();
    let start = |name: &str| {
        let home = Home::new(&format!("agents-{version}-{name}"));
        let node = Node::start_in(&home, &[("SSL_CERT_FILE", &authority)], "127.0.0.1:0", &["--private-networks"]);
        (home, node)
    };
    let ((_first_home, first), (_second_home, second)) = (start("first"), start("second"));
    let [first, second] = [&first, &second].map(|node| format!("{}/whoami", node.url));
    for (profile, segments) in [("e1", json!(["user", "alice"])), ("k1", json!(["user", "bob"])), ("e1", json!(null))] {
        let made = json!({"do": "create", "port": library.port, "profile": profile, "segments": segments});
        let document = library.ask(&made)["document"].take();
        let did = trust::Did::parse(document["id"].as_str().unwrap()).unwrap();
        let url = did.document_url().unwrap();
        let path = url.split_once(&format!(":{}", library.port)).unwrap().1;
        library.ask(&json!({"do": "publish", "path": path, "document": document}));
        let signed = call(&mut library, &document, &first, json!({"fresh": true}));
        assert_eq!(signed["tokens"], json!(["127.0.0.1"]), "the client took the token");
        call(&mut library, &document, &first, json!({"method": "POST", "body": {"by": "token"}}));
        // The client brings the first node's token to the second, is told that it is none, and signs.
        call(&mut library, &document, &second, json!({"method": "POST", "body": {"by": "foreign token"}}));
        call(&mut library, &document, &second, json!({"fresh": true, "method": "POST", "body": {"jsonrpc": "2.0"}}));
    }
}

#[test]
fn anp_0_9_2_authenticates_at_the_binary() {
    authenticates("0.9.2");
}

#[test]
fn anp_1_0_7_authenticates_at_the_binary() {
    authenticates("1.0.7");
}
