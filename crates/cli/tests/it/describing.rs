//! `describe`: judging, drafting and laying out descriptions, as people do it.

use crate::run::Home;
use json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

const URL: &str = "https://ferry.example/agents/tides/ad.json";

fn drafted(home: &Home) -> String {
    let path = home.path("ad.json");
    let openrpc = "examples/descriptions/tides-openrpc.json";
    home.run(&[
        "describe",
        "init",
        "--url",
        URL,
        "--did",
        "did:wba:ferry.example:agents:tides",
        "--name",
        "Tide Tables",
        "--description",
        "Says when a ferry can land.",
        "--owner",
        "Ferry Works",
        "--openrpc",
        openrpc,
        "-o",
        &path,
    ])
    .exits(0);
    path
}

#[test]
fn a_description_in_the_shape_of_the_texts_own_sample_is_accepted_leniently_only() {
    let home = Home::new("describe-sample");
    let sample = "examples/descriptions/pilot-early.json";
    let ran = home.run(&["describe", sample]).exits(0);
    ran.says("accepted by the lenient reader: 10 warnings, 1 remark")
        .says("pilot-early.json:2:15")
        .says("access unspecified");
    let ran = home.run(&["describe", sample, "--strict"]).exits(1);
    ran.says("R38").says("at /interfaces/0/@id, ADP Table 5").says("help: give the interface an `@id`");
    let found = home.run(&["describe", sample, "--json"]).exits(0).json();
    assert_eq!((&found["strict"], &found["lenient"]), (&json!(false), &json!(true)));
    let mut rules: Vec<&str> =
        found["findings"].as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap()).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["R03", "R04", "R08", "R21", "R22", "R24", "R28", "R28", "R29", "R29", "R38"]);
}

#[test]
fn what_is_no_json_or_not_there_is_told_apart_by_the_exit_code() {
    let home = Home::new("describe-unread");
    let broken = home.file("broken.json", "{\"name\": \"x\" // no\n}");
    home.run(&["describe", &broken]).exits(1).complains("json_syntax");
    home.run(&["describe", "nowhere.json"]).exits(3);
    home.run(&["describe"]).exits(2);
    home.run_with(&[], "[]", &["describe", "-"]).exits(1).says("R01");
}

#[test]
fn a_draft_passes_strict_and_carries_its_definition() {
    let home = Home::new("describe-init");
    let path = drafted(&home);
    let found = home.run(&["describe", &path, "--strict", "--json"]).exits(0).json();
    assert_eq!((&found["form"], &found["strict"]), (&json!("hybrid"), &json!(true)));
    assert_eq!(found["interfaces"][1]["operations"][0]["name"], json!("high_water"));
    home.run(&["describe", &path, "--strict"]).exits(0).says("high_water(harbour, day?)").says("access by didwba");
}

#[test]
fn a_dialogue_asks_for_what_no_flag_says_and_a_definition_answers_part_of_it() {
    let home = Home::new("describe-dialogue");
    let openapi = "examples/descriptions/berths-openapi.yaml";
    let answers = "https://harbour.example/ad.json\n\n\n\n";
    let ran = home.run_with(&[], answers, &["describe", "init", "--openapi", openapi]).exits(0);
    ran.complains("what do people call the agent? [Berths]").complains("[did:wba:harbour.example]");
    let written = ran.json();
    assert_eq!((&written["name"], &written["version"]), (&json!("Berths"), &json!("2.1")));
    assert_eq!(written["interfaces"][0]["url"], json!("https://harbour.example/berths-openapi.yaml"));
    home.run_with(&[], "", &["describe", "init"]).exits(2).complains("--url");
    home.run(&["describe", "init", "--url", "ferry"]).exits(2).complains("no http or https address");
    let did = ["describe", "init", "--url", URL, "--name", "x", "--description", "y", "--did", "did:web:ferry.example"];
    home.run(&did).exits(2).complains("did:wba only");
}

#[test]
fn a_description_is_laid_out_as_plain_files() {
    let home = Home::new("describe-publish");
    let (path, folder) = (drafted(&home), home.path("public"));
    let document = json!({"id": "did:wba:ferry.example:agents:tides", "verificationMethod": [], "authentication": []});
    let document = home.file("did.json", &document.to_string());
    let ran = home.run(&["describe", "publish", &path, "--static", &folder, "--did-document", &document]).exits(0);
    ran.complains("does not list https://ferry.example/agents/tides/ad.json");
    assert_eq!(
        ran.out,
        ".well-known/agent-descriptions\nagents/tides/ad.json\nagents/tides/did.json\nagents/tides/tides-openrpc.json\n"
    );
    assert_eq!(home.read("public/agents/tides/ad.json"), home.read("ad.json"));
    let list = home.run(&["describe", &home.path("public/agents/tides/tides-openrpc.json"), "--json"]).exits(0).json();
    assert_eq!(list["operations"][0]["name"], json!("high_water"));
    let listed = home.read("public/.well-known/agent-descriptions");
    assert!(listed.contains(URL) && listed.contains("CollectionPage"), "{listed}");
}

#[test]
fn only_sound_descriptions_of_one_host_with_plain_addresses_are_laid_out() {
    let home = Home::new("describe-publish-not");
    let folder = home.path("public");
    let early = "examples/descriptions/pilot-early.json";
    home.run(&["describe", "publish", early, "--static", &folder])
        .exits(1)
        .complains("not accepted by the strict reader");
    let path = drafted(&home);
    let other = home.read("ad.json").replace("ferry.example", "other.example");
    let other = home.file("other.json", &other);
    home.run(&["describe", "publish", &path, &other, "--static", &folder]).exits(1).complains("another host");
    for address in [
        "https://ferry.example/../ad.json",
        "https://ferry.example/a%2fd.json",
        "https://ferry.example/ad.json?x",
        "https://ferry.example/",
    ] {
        let moved = home.file("moved.json", &home.read("ad.json").replace(URL, address));
        home.run(&["describe", "publish", &moved, "--static", &folder])
            .exits(1)
            .complains("no address of a plain file");
    }
    assert!(!std::path::Path::new(&folder).exists(), "nothing is written unless everything can be");
}

#[test]
fn definitions_are_judged_too() {
    let home = Home::new("describe-definition");
    let ran = home.run(&["describe", "examples/descriptions/berths-openapi.yaml"]).exits(0);
    ran.says("Berths").says("reserve(id, body)  PUT /berths/{id}/reservation").says("berths(depth?)");
    let bomb = home.file("bomb.yaml", "a: &a [x]\nb: [*a]\n");
    home.run(&["describe", &bomb]).exits(1).complains("yaml_alias_not_allowed").complains("bomb.yaml:1:");
}

#[test]
fn a_description_is_fetched_and_held_against_its_address() {
    let home = Home::new("describe-url");
    drafted(&home);
    let body = home.read("ad.json");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/ad.json", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 2048];
        let read = stream.read(&mut request).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let ran = home.run(&["describe", &url]).exits(0);
    assert!(server.join().unwrap().starts_with("GET /ad.json HTTP/1.1"));
    ran.says("D3").says("D4").says("does not confirm this address").complains("the DID document cannot be had");
}

#[test]
fn an_agent_of_openagentspec_is_described_by_its_own_file() {
    let home = Home::new("describe-spec");
    let spec = "examples/descriptions/pilot-agent.yaml";
    let url = "https://harbour.example/agents/pilot/ad.json";
    let drafted =
        home.run(&["describe", "init", "--url", url, "--agent", spec, "--did", "did:wba:harbour.example:agents:pilot"]);
    let drafted = drafted.exits(0);
    let written = drafted.json();
    assert_eq!((&written["name"], &written["owner"]["name"]), (&json!("pilot"), &json!("harbour-office")));
    assert_eq!(written["description"], "Brings ships to a free berth.");
    let names: Vec<&str> =
        written["services"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["berths", "tides"]);
    assert_eq!(written["services"][1]["@id"], "https://ferry.example/agents/tides");
    let words = &written["interfaces"][0];
    assert_eq!(words["url"], "https://harbour.example/agents/pilot/pilot-agent.yaml");
    assert!(words["description"].as_str().unwrap().starts_with("You bring ships"));
    let path = home.file("ad.json", &drafted.out);
    home.run(&["describe", &path, "--strict"]).exits(0);
    for (wrong, place) in [
        ("kind: openagentspec:v2/agent", "kind"),
        ("name: Pilot", "name"),
        ("capabilities: [a]", "capabilities"),
        ("owner: ''", "owner"),
    ] {
        let member = wrong.split(':').next().unwrap();
        let whole =
            std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(spec)).unwrap();
        let mut kept: Vec<&str> = whole.split("\n\n").filter(|part| !part.starts_with(member)).collect();
        kept.push(wrong);
        let file = home.file("wrong.yaml", &kept.join("\n\n"));
        home.run(&["describe", "init", "--url", url, "--agent", &file]).exits(1).complains(&format!("`{place}`"));
    }
}
