//! `crawl`: agents of others, looked for politely, kept, and withdrawn when they are gone.

use crate::host::{Asked, Host, Reply};
use crate::node::Node;
use crate::run::{Home, Ran};
use json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use trust::{ProofForm, SecretKey, SigningKey};

fn crawl(home: &Home, seed: &str, more: &[&str]) -> Ran {
    let data = home.path("data");
    let arguments = ["crawl", seed, "--data", &data, "--private-networks", "--per-minute", "60000", "--json"];
    home.run(&[&arguments[..], more].concat())
}

/// The did:wba of an agent of a host.
fn did(address: &str, name: &str) -> trust::Did {
    trust::wba_name(address.trim_start_matches("http://"), &[name]).unwrap()
}

fn did_document(address: &str, name: &str) -> Value {
    let key = SecretKey::from(SigningKey::from_seed([7; 32]));
    let url = format!("{address}/{name}/ad.json");
    trust::wba_document(&did(address, name), &key, Some(&url), "2026-01-01T00:00:00Z", ProofForm::Sdk).unwrap()
}

fn description(address: &str, name: &str, more: Value) -> Value {
    let did = did(address, name).to_string();
    let mut description = json!({
        "@context": "https://agent-network-protocol.com/ad#", "@type": "ad:AgentDescription",
        "@id": format!("{address}/{name}/ad.json"), "name": name, "did": did, "description": "An agent.",
        "securityDefinitions": {"didwba_sc": {"scheme": "didwba", "did": did}}, "security": "didwba_sc",
    });
    description.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    description
}

fn page(address: &str, names: &[String], next: Option<usize>) -> Reply {
    let item = |name: &String| json!({"@type": "ad:AgentDescription", "@id": format!("{address}/{name}/ad.json")});
    let mut page = json!({"@type": "CollectionPage", "items": names.iter().map(item).collect::<Vec<_>>()});
    if let Some(next) = next {
        page["next"] = json!(format!("{address}/.well-known/agent-descriptions?page={next}"));
    }
    Reply::json(&page)
}

/// Answers with a document, or says that it is the one that the other side has.
fn tagged(asked: &Asked, reply: Reply, tag: &str) -> Reply {
    let tag = format!("\"{tag}\"");
    if asked.header("if-none-match") == Some(&tag) { Reply::status(304) } else { reply.with("ETag", &tag) }
}

fn outcomes(report: &Value) -> Vec<(String, String)> {
    let text = |agent: &Value, name: &str| agent[name].as_str().unwrap().to_owned();
    let agents = report["agents"].as_array().unwrap().iter();
    let mut told: Vec<(String, String)> = agents
        .map(|agent| (text(agent, "url").split('/').nth(3).unwrap().to_owned(), text(agent, "outcome")))
        .collect();
    told.sort();
    told
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, outcome)| ((*name).to_owned(), (*outcome).to_owned())).collect()
}

#[test]
fn agents_are_kept_asked_for_again_without_waste_and_withdrawn_when_they_are_gone() {
    let (home, day) = (Home::new("crawl"), Arc::new(AtomicUsize::new(1)));
    let today = Arc::clone(&day);
    let host = Host::start(move |asked, address| {
        let day = today.load(Ordering::SeqCst);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let product =
            json!({"products": [{"@type": "Product", "name": "Tide", "@id": format!("{address}/tide.json")}]});
        match asked.path.as_str() {
            "/.well-known/agent-descriptions" if day == 1 => {
                tagged(asked, page(address, &names(&["ada", "bob"]), Some(2)), "p1")
            }
            "/.well-known/agent-descriptions" => tagged(asked, page(address, &names(&["ada"]), Some(2)), "p1b"),
            "/.well-known/agent-descriptions?page=2" => tagged(asked, page(address, &names(&["cyd"]), None), "p2"),
            "/ada/ad.json" => tagged(asked, Reply::json(&description(address, "ada", product)), "a"),
            "/bob/ad.json" | "/cyd/ad.json" if day < 3 || asked.path.starts_with("/bob") => {
                let name = asked.path.split('/').nth(1).unwrap();
                tagged(asked, Reply::json(&description(address, name, json!({}))), name)
            }
            "/tide.json" => tagged(asked, Reply::json(&json!({"name": "Tide", "price": day})), &format!("t{day}")),
            path if path.ends_with("/did.json") => Reply::json(&did_document(address, path.split('/').nth(1).unwrap())),
            _ => Reply::status(404),
        }
    });
    let seed = format!("{}/", host.address);
    let first = crawl(&home, &seed, &[]).exits(0).json();
    assert_eq!(outcomes(&first), expected(&[("ada", "new"), ("bob", "new"), ("cyd", "new")]), "{first}");
    assert_eq!((&first["pages"], &first["documents"], &first["unmodified"]), (&json!(2), &json!(1), &json!(0)));
    let again = crawl(&home, &seed, &[]).exits(0).json();
    let unchanged = [("ada", "unchanged"), ("bob", "unchanged"), ("cyd", "unchanged")];
    assert_eq!(outcomes(&again), expected(&unchanged), "{again}");
    assert_eq!((&again["unmodified"], &again["goes_on"]), (&json!(6), &json!(false)), "{again}");
    day.store(2, Ordering::SeqCst);
    let second = crawl(&home, &seed, &[]).exits(0).json();
    let expected_second = [("ada", "changed"), ("bob", "withdrawn"), ("cyd", "unchanged")];
    assert_eq!(outcomes(&second), expected(&expected_second), "{second}");
    day.store(3, Ordering::SeqCst);
    let third = crawl(&home, &seed, &[]).exits(0).json();
    assert_eq!(outcomes(&third), expected(&[("ada", "changed"), ("cyd", "withdrawn")]), "{third}");
    day.store(1, Ordering::SeqCst);
    let back = crawl(&home, &seed, &[]).exits(0).json();
    assert_eq!(outcomes(&back), expected(&[("ada", "changed"), ("bob", "changed"), ("cyd", "changed")]), "{back}");
}

#[test]
fn what_nobody_stands_behind_and_what_may_not_be_read_is_not_kept() {
    let home = Home::new("crawl-refused");
    let host = Host::start(|asked, address| match asked.path.as_str() {
        "/robots.txt" => Reply::text("text/plain", "User-agent: *\nDisallow: /secret/\n"),
        "/.well-known/agent-descriptions" => {
            let names = ["copy", "good", "lost", "nobody", "rubbish", "secret", "wrong"];
            page(address, &names.map(str::to_owned), None)
        }
        // It names the DID of another, whose document lists another address.
        "/copy/ad.json" => Reply::json(&description(address, "good", json!({}))),
        "/nobody/ad.json" => {
            let mut alone = description(address, "nobody", json!({}));
            alone.as_object_mut().unwrap().remove("did");
            alone["securityDefinitions"]["didwba_sc"].as_object_mut().unwrap().remove("did");
            Reply::json(&alone)
        }
        "/rubbish/ad.json" => Reply::text("application/json", "{"),
        "/wrong/ad.json" => Reply::json(&description(address, "wrong", json!({"security": "undefined"}))),
        "/good/ad.json" | "/secret/ad.json" => Reply::json(&description(address, "good", json!({}))),
        "/lost/ad.json" => Reply::json(&description(address, "lost", json!({}))),
        "/good/did.json" => Reply::json(&did_document(address, "good")),
        "/wrong/did.json" => Reply::json(&did_document(address, "wrong")),
        _ => Reply::status(404),
    });
    let report = crawl(&home, &format!("{}/", host.address), &[]).exits(1).json();
    let told = [
        ("copy", "refused"),
        ("good", "new"),
        ("lost", "refused"),
        ("nobody", "new"),
        ("rubbish", "refused"),
        ("secret", "unread"),
        ("wrong", "refused"),
    ];
    assert_eq!(outcomes(&report), expected(&told), "{report}");
    let codes: Vec<&str> =
        report["findings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    for code in ["agent_description_unbound", "did_unresolvable", "json_syntax", "robots_disallowed"] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
    assert!(host.asked().iter().all(|asked| !asked.path.starts_with("/secret")));
}

#[test]
fn a_list_without_end_and_a_description_with_ten_thousand_links_are_bounded() {
    let home = Home::new("crawl-bounds");
    let host = Host::start(|asked, address| match asked.path.split_once('?') {
        Some(("/.well-known/agent-descriptions", rest)) => {
            let number: usize = rest.trim_start_matches("page=").parse().unwrap();
            page(address, &[format!("x{number}")], Some(number + 1))
        }
        None if asked.path == "/.well-known/agent-descriptions" => page(address, &["links".to_owned()], Some(2)),
        None if asked.path == "/links/ad.json" => {
            let link = |number: usize| {
                let at = format!("{address}/p/{number}.json");
                json!({"@type": "Product", "name": "P", "@id": at})
            };
            Reply::json(&description(address, "links", json!({"products": (0..3_000).map(link).collect::<Vec<_>>()})))
        }
        None if asked.path == "/links/did.json" => Reply::json(&did_document(address, "links")),
        _ => Reply::status(404),
    });
    let report = crawl(&home, &format!("{}/", host.address), &["--pages", "5", "--agents", "3"]).exits(1).json();
    assert_eq!(report["pages"], 5, "{report}");
    let asked = |begin: &str| host.asked().iter().filter(|asked| asked.path.starts_with(begin)).count();
    assert_eq!((asked("/p/"), asked("/.well-known/agent-descriptions")), (20, 5));
    let codes = report["findings"].to_string();
    for bound in ["crawl.pages", "crawl.agents", "crawl.documents_per_agent"] {
        assert!(codes.contains(bound), "{bound} in {codes}");
    }
}

#[test]
fn a_crawl_that_was_killed_goes_on_where_it_was() {
    const AGENTS: usize = 40;
    let home = Home::new("crawl-killed");
    let host = Host::start(|asked, address| {
        let name = asked.path.split('/').nth(1).unwrap();
        match asked.path.as_str() {
            "/.well-known/agent-descriptions" => {
                page(address, &(0..AGENTS).map(|number| format!("n{number}")).collect::<Vec<_>>(), None)
            }
            path if path.ends_with("/did.json") => Reply::json(&did_document(address, name)),
            path if path.ends_with("/ad.json") => {
                std::thread::sleep(Duration::from_millis(30));
                Reply::json(&description(address, name, json!({})))
            }
            _ => Reply::status(404),
        }
    });
    let (seed, data) = (format!("{}/", host.address), home.path("data"));
    let read = |host: &Host| host.asked().iter().filter(|asked| asked.path.ends_with("/ad.json")).count();
    let arguments = ["crawl", &seed, "--data", &data, "--private-networks", "--per-minute", "60000"];
    let mut child = home.command(&[], &arguments).spawn().unwrap();
    while read(&host) < AGENTS / 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = read(&host);
    let report = crawl(&home, &seed, &[]).exits(0).json();
    assert_eq!(report["goes_on"], true, "{report}");
    let (done, kept) = (report["done_before"].as_u64().unwrap(), outcomes(&report).len() as u64);
    assert!(done >= before as u64 - 2 && done > 0, "{done} of {before}");
    assert_eq!(done + kept, AGENTS as u64, "{report}");
    assert_eq!((read(&host) - before) as u64, kept, "nobody is asked twice");
    let after = crawl(&home, &seed, &[]).exits(0).json();
    assert_eq!(
        (after["goes_on"].clone(), after["outcomes"]["unchanged"].clone()),
        (json!(false), json!(AGENTS)),
        "{after}"
    );
}

#[test]
fn a_host_that_wants_to_be_left_alone_is_waited_for() {
    let (home, busy) = (Home::new("crawl-busy"), Arc::new(AtomicUsize::new(0)));
    let host = Host::start(move |asked, address| match asked.path.as_str() {
        "/ada/ad.json" if busy.fetch_add(1, Ordering::SeqCst) == 0 => Reply::status(429).with("Retry-After", "1"),
        "/ada/ad.json" => Reply::json(&description(address, "ada", json!({}))),
        "/ada/did.json" => Reply::json(&did_document(address, "ada")),
        _ => Reply::status(404),
    });
    let report = crawl(&home, &format!("{}/ada/ad.json", host.address), &[]).exits(0).json();
    assert_eq!(outcomes(&report), expected(&[("ada", "new")]), "{report}");
    let closed = Host::start(|asked, _| match asked.path.as_str() {
        "/robots.txt" => Reply::status(500),
        _ => Reply::json(&json!({})),
    });
    let report = crawl(&home, &format!("{}/", closed.address), &[]).exits(1).json();
    assert!(report["findings"].to_string().contains("robots_disallowed"), "{report}");
    assert!(closed.asked().iter().all(|asked| asked.path == "/robots.txt"));
    home.run(&["crawl", "not a domain"]).exits(2);
}

#[test]
fn a_node_of_the_core_protocol_is_greeted_first_and_left_alone_when_it_suddenly_offers_less() {
    let (home, theirs) = (Home::new("crawl-node"), Home::new("crawl-node-theirs"));
    let node = Node::start(&theirs);
    let manifest: Value = serde_json::from_str(&node.get("/.well-known/oap-tool.json")).unwrap();
    let (day, told) = (Arc::new(AtomicUsize::new(1)), manifest.clone());
    let today = Arc::clone(&day);
    let host = Host::start(move |asked, address| match asked.path.as_str() {
        "/.well-known/oap-tool.json" => {
            let mut manifest = told.clone();
            if today.load(Ordering::SeqCst) == 2 {
                manifest.as_object_mut().unwrap().remove("schema_compatibility").unwrap();
            }
            Reply::json(&manifest)
        }
        "/.well-known/agent-descriptions" => page(address, &[], None),
        _ => Reply::status(404),
    });
    let lists = || host.asked().iter().filter(|asked| asked.path == "/.well-known/agent-descriptions").count();
    let report = crawl(&home, &format!("{}/", host.address), &[]).exits(0).json();
    assert_eq!((&report["nodes"], lists()), (&json!(1), 1), "{report}");
    let remembered = home.read("versions.json");
    assert!(remembered.contains(&node.did) && remembered.contains(&host.address), "{remembered}");
    day.store(2, Ordering::SeqCst);
    let report = crawl(&home, &format!("{}/", host.address), &[]).exits(1).json();
    assert_eq!((&report["nodes"], lists()), (&json!(0), 1), "{report}");
    assert!(report["findings"].to_string().contains("publishes no versions any more"), "{report}");
}
