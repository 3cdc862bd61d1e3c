//! Tools behind HTTP: what is sent where, and what is made of what comes back.

use crate::wire::{Answer, Server, Wire};
use crate::world::{open_with, read};
use host::{Identity, Pins, ToolError, Toolbox};
use json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

const DOCUMENT: &str = "
openapi: 3.1.0
info: {title: Orders, version: '1'}
servers: [{url: 'SERVER/v1'}]
paths:
  /orders/{order_id}/lines/{line}:
    get:
      operationId: getLine
      description: Reads one line of an order.
      parameters:
        - {name: order_id, in: path, required: true, schema: {type: string}}
        - {name: line, in: path, required: true, schema: {type: integer}}
        - {name: fields, in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
      responses:
        '200':
          content: {application/json: {schema: {$ref: '#/components/schemas/Line'}}}
  /orders:
    post:
      operationId: place_order
      summary: Places an order.
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, required: [item]}}}
      responses: {'201': {description: placed}}
components:
  schemas:
    Line: {type: object, required: [item], properties: {item: {type: string}}}
";

async fn open(text: &str, folder: &Path) -> Toolbox {
    open_with(
        &format!("{text}\ncredentials: {{static: {{bot: {{env: MARKER}}}}}}"),
        folder,
        Arc::new(Wire),
        Pins::new(),
    )
    .await
}

async fn call(toolbox: &Toolbox, name: &str, inputs: Value) -> Result<Value, ToolError> {
    toolbox.call(name, &inputs, Identity::Static("bot"), "call-7", Some(PATIENCE)).await
}

async fn shop(answer: Answer) -> (Server, Toolbox, tempfile::TempDir) {
    let (server, folder) = (Server::start(vec![answer]).await, tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("orders.yaml"), DOCUMENT.replace("SERVER", &server.url)).unwrap();
    let text = "tools: {shop: {kind: openapi, document: orders.yaml, hosts: [127.0.0.1], idempotent: [getLine]}}";
    let toolbox = open(text, folder.path()).await;
    (server, toolbox, folder)
}

#[tokio::test]
async fn an_operation_is_called_as_its_document_says() {
    let (server, toolbox, _folder) = shop(Answer::json(200, &json!({"item": "pen"}))).await;
    assert_eq!(toolbox.names(), ["shop.getline", "shop.place-order"]);
    let line = toolbox.tool("shop.getline").unwrap();
    assert!(line.definition().idempotent && line.definition().description.starts_with("Reads"));
    assert!(line.definition().input.pointer("/properties/session").is_none(), "cookies are not for models");
    assert!(line.definition().input.pointer("/properties/Authorization").is_none(), "nor is the credential");
    let inputs = json!({"order_id": "../../a b?c#d/e", "line": 3, "fields": ["a", "b&c"], "X-Trace": "t"});
    assert_eq!(call(&toolbox, "shop.getline", inputs).await, Ok(json!({"item": "pen"})));
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "GET /v1/orders/..%2F..%2Fa%20b%3Fc%23d%2Fe/lines/3?fields=a&fields=b%26c HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some("Bearer marker-5f2d"), "the credential is the operator's");
    assert_eq!((asked.header("x-trace"), asked.header("idempotency-key")), (Some("t"), Some("call-7")));
    for (inputs, code) in [
        (json!({"order_id": "..", "line": 3}), "tool_call_invalid"),
        (json!({"order_id": "a", "line": 3, "X-Trace": "a\r\nhost: b"}), "tool_call_invalid"),
        (json!({"order_id": "a", "line": 3, "host": "127.0.0.1"}), "tool_call_invalid"),
        (json!({"order_id": "a", "line": 3, "Authorization": "Bearer mine"}), "tool_call_invalid"),
        (json!({"order_id": "a"}), "tool_call_invalid"),
    ] {
        assert_eq!(call(&toolbox, "shop.getline", inputs.clone()).await.unwrap_err().code(), code, "{inputs}");
    }
    assert_eq!(server.asked().len(), 1);
    let outputs = call(&toolbox, "shop.place-order", json!({"body": {"item": "pen"}})).await;
    assert_eq!(outputs, Ok(json!({"item": "pen"})));
    assert_eq!(server.asked()[1].line, "POST /v1/orders HTTP/1.1");
    assert_eq!(server.asked()[1].json(), json!({"item": "pen"}));
}

#[tokio::test]
async fn a_document_hands_no_header_of_the_operator_to_a_model() {
    let (server, folder) = (Server::start(vec![Answer::json(200, &json!({}))]).await, tempfile::tempdir().unwrap());
    let header =
        |name: &str| format!("        - {{name: {name}, in: header, required: true, schema: {{type: string}}}}\n");
    let taken = ["X-API-Key", "x-tenant", "Transfer-Encoding", "Proxy-Authorization", "Host", "Cookie", "X Y"];
    let headers: String = taken.map(header).concat() + &header("X-Trace");
    let document = format!(
        "openapi: 3.1.0\ninfo: {{title: T, version: '1'}}\nservers: [{{url: '{}'}}]\npaths:\n  /look:\n    get:\n      \
         operationId: look\n      description: Looks.\n      parameters:\n{headers}      \
         responses: {{'200': {{description: found}}}}\n",
        server.url
    );
    std::fs::write(folder.path().join("look.yaml"), document).unwrap();
    let text =
        "tools: {shop: {kind: openapi, document: look.yaml, credential_header: x-api-key, headers: {X-Tenant: ours}}}";
    let toolbox = open(text, folder.path()).await;
    let input = &toolbox.tool("shop.look").unwrap().definition().input.clone();
    assert_eq!(input["required"], json!(["X-Trace"]), "what is not a model's to say is not wanted of it");
    for name in taken {
        let refused = call(&toolbox, "shop.look", json!({"X-Trace": "t", name: "mine"})).await.unwrap_err();
        assert_eq!(refused.code(), "tool_call_invalid", "{name}");
    }
    call(&toolbox, "shop.look", json!({"X-Trace": "t"})).await.unwrap();
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    let told = (asked[0].header("x-api-key"), asked[0].header("x-tenant"), asked[0].header("x-trace"));
    assert_eq!(told, (Some("marker-5f2d"), Some("ours"), Some("t")));
}

#[tokio::test]
async fn what_comes_back_is_told_apart() {
    for (answer, code, unknown) in [
        (Answer::json(404, &json!({"message": "no such order"})), "tool_failed", false),
        (Answer::json(503, &json!({})), "tool_outcome_unknown", true),
        (Answer::json(200, &json!({"itm": 1})), "tool_protocol_error", false),
        (Answer { pieces: vec![b"<html>".to_vec()], ..Answer::json(200, &json!({})) }, "tool_protocol_error", false),
        (Answer { cut: true, ..Answer::json(200, &json!({"item": "pen"})) }, "tool_outcome_unknown", true),
    ] {
        let (_server, toolbox, _folder) = shop(answer).await;
        let error = call(&toolbox, "shop.getline", json!({"order_id": "a", "line": 1})).await.unwrap_err();
        assert_eq!((error.code(), error.is_outcome_unknown()), (code, unknown), "{error}");
    }
    let silent = Answer { silent: true, ..Answer::default() };
    let (_server, toolbox, _folder) = shop(silent).await;
    let inputs = json!({"order_id": "a", "line": 1});
    let late = toolbox.call("shop.getline", &inputs, Identity::Nobody, "c", Some(Duration::from_millis(300))).await;
    assert_eq!(late, Err(ToolError::Timeout));
    let nobody = "tools: {a: {kind: json-rpc, description: x, url: 'http://127.0.0.1:1/', method: m}}";
    let toolbox = open(nobody, Path::new(".")).await;
    let error = call(&toolbox, "a", json!({})).await.unwrap_err();
    assert!(error.was_refused() && error.code() == "tool_unavailable", "{error}");
}

#[tokio::test]
async fn a_method_of_json_rpc_gives_its_result_or_its_error() {
    let server = Server::start(vec![
        Answer::json(200, &json!({"jsonrpc": "2.0", "id": "call-7", "result": [1, 2]})),
        Answer::json(
            200,
            &json!({"jsonrpc": "2.0", "id": "call-7", "error": {"code": -1, "message": "no marker-5f2d"}}),
        ),
        Answer::json(200, &json!({"hello": 1})),
    ])
    .await;
    let text = format!(
        "tools: {{sum: {{kind: json-rpc, description: Adds., url: '{}/rpc', method: add, credential_header: x-key}}}}",
        server.url
    );
    let toolbox = open(&text, Path::new(".")).await;
    assert_eq!(call(&toolbox, "sum", json!({"a": 1})).await, Ok(json!([1, 2])));
    let asked = &server.asked()[0];
    assert_eq!(asked.json(), json!({"jsonrpc": "2.0", "id": "call-7", "method": "add", "params": {"a": 1}}));
    assert_eq!((asked.header("x-key"), asked.header("authorization")), (Some("marker-5f2d"), None));
    let failed = call(&toolbox, "sum", json!({})).await.unwrap_err();
    assert_eq!(failed, ToolError::Failed("no [credential withheld]".to_owned()));
    assert_eq!(call(&toolbox, "sum", json!({})).await.unwrap_err().code(), "tool_protocol_error");
}

#[tokio::test]
async fn plain_json_goes_to_one_address_or_to_listed_hosts() {
    let server = Server::start(vec![Answer::json(200, &json!({"ok": true}))]).await;
    let authority = server.url.strip_prefix("http://").unwrap();
    let text = format!(
        "
tools:
  post: {{kind: http-json, description: x, url: '{0}/p?key=1', headers: {{X-A: b}}}}
  get: {{kind: http-json, description: x, url: '{0}/g?key=1', method: GET}}
  any: {{kind: http-json, description: x, hosts: ['{authority}', api.example]}}
",
        server.url
    );
    let toolbox = open(&text, Path::new(".")).await;
    for (name, inputs, line) in [
        ("post", json!({"a": [1]}), "POST /p?key=1 HTTP/1.1"),
        ("get", json!({"q": "a&b", "n": 2}), "GET /g?key=1&n=2&q=a%26b HTTP/1.1"),
        ("any", json!({"url": format!("{}/x?y#", server.url).trim_end_matches('#')}), "GET /x?y HTTP/1.1"),
    ] {
        assert_eq!(call(&toolbox, name, inputs).await, Ok(json!({"ok": true})), "{name}");
        assert_eq!(server.asked().last().unwrap().line, line);
    }
    assert_eq!(server.asked()[0].header("x-a"), Some("b"));
    let asked = server.asked().len();
    for url in [
        "http://127.0.0.1/x".to_owned(),
        "http://127.0.0.1:1/".to_owned(),
        "https://api.example.evil.test/".to_owned(),
        format!("http://api.example@{authority}/"),
        format!("http://{authority}@api.example/"),
        "file:///etc/passwd".to_owned(),
        "//api.example/".to_owned(),
        "".to_owned(),
    ] {
        let error = call(&toolbox, "any", json!({"url": url})).await.unwrap_err();
        assert_eq!(error.code(), "tool_call_invalid", "{url}");
    }
    assert_eq!(server.asked().len(), asked);
}

#[test]
fn what_an_operator_says_of_a_remote_tool_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("orders.yaml"), DOCUMENT.replace("SERVER", "https://shop.example")).unwrap();
    for (tool, at) in [
        ("kind: json-rpc, description: x, method: m", "/tools/a/url"),
        ("kind: json-rpc, description: x, url: 'ftp://a/', method: m", "/tools/a/url"),
        ("kind: json-rpc, description: x, url: 'https://u:p@a/', method: m", "/tools/a/url"),
        ("kind: json-rpc, description: x, url: 'https://a/'", "/tools/a/method"),
        ("kind: http-json, description: x", "/tools/a/url"),
        ("kind: http-json, description: x, url: 'https://a/', hosts: [b]", "/tools/a/url"),
        ("kind: http-json, description: x, url: 'https://a/', method: TRACE", "/tools/a/method"),
        ("kind: openapi, document: nowhere.yaml", "/tools/a/document"),
        ("kind: openapi, document: orders.yaml, operations: [gone]", "/tools/a/operations"),
        ("kind: openapi, document: orders.yaml, hosts: [other.example]", "/tools/a/hosts"),
    ] {
        let error = read(&format!("tools: {{a: {{{tool}}}}}"), folder.path()).unwrap_err();
        assert_eq!(error.at.as_str(), at, "{tool}: {error}");
    }
}
