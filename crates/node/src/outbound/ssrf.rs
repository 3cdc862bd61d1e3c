//! Every way to write a forbidden place, at every place where something is fetched: straight, by a redirect, by a name
//! that changes its address. Listening sockets count who comes.
//!
//! 127.0.0.2 plays the public internet where somebody must answer, and everything else is what must not be reached. The
//! everyday run takes a part of the redirects and of the changing names; `cargo xtask ssrf` takes all.

use super::spellings::{HOSTS_FORBIDDEN, HOSTS_LEADING_INSIDE, HOSTS_UNREADABLE};
use super::tests::{Answer, NOW_VALID, Server, certificate, ok, reply, roots, start, test_network};
use super::*;
use crate::{Clock, Config, Error as JobError, Node};
use json::{Value, json};
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use trust::SigningKey;

/// The name that the public internet knows.
const PUBLIC: &str = "agent.example.com";
const OUTSIDE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));
const INSIDE: [IpAddr; 2] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Tries with a name that changes its address; and of how many redirects one is tried.
fn extent() -> (usize, usize) {
    if setting("RIALTO_SSRF").is_some() { (10_000, 1) } else { (600, 16) }
}

#[expect(clippy::disallowed_methods, reason = "`cargo xtask ssrf` says how much is tried, and where it is told")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Tells `cargo xtask ssrf` what was counted.
fn tell(part: &str, tries: usize, sites: usize, connections: usize) {
    if let Some(folder) = setting("RIALTO_SSRF") {
        let told = json!({"part": part, "tries": tries, "sites": sites, "forbidden_connections": connections});
        std::fs::write(format!("{folder}/{part}.json"), told.to_string()).unwrap();
    }
}

fn spellings() -> impl Iterator<Item = &'static str> {
    HOSTS_FORBIDDEN.iter().chain(HOSTS_UNREADABLE).chain(HOSTS_LEADING_INSIDE).copied()
}

/// Sockets on one port of this machine that nobody may come to.
struct Forbidden {
    port: u16,
    visitors: Arc<AtomicUsize>,
}

impl Forbidden {
    /// Listens beside whoever has the port on 127.0.0.2.
    async fn beside(port: u16) -> Self {
        let visitors = Arc::new(AtomicUsize::new(0));
        for address in INSIDE {
            // A machine without IPv6 has no such address, and then nobody can come to it.
            let Ok(listener) = tokio::net::TcpListener::bind((address, port)).await else {
                assert!(address.is_ipv6(), "port {port} is taken");
                continue;
            };
            let count = Arc::clone(&visitors);
            tokio::spawn(async move {
                while listener.accept().await.is_ok() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Self { port, visitors }
    }

    async fn alone() -> Self {
        let free = tokio::net::TcpListener::bind((OUTSIDE, 0)).await.unwrap();
        Self::beside(free.local_addr().unwrap().port()).await
    }

    fn visitors(&self) -> usize {
        self.visitors.load(Ordering::SeqCst)
    }
}

/// A resolver that finds the public name outside, and every other one inside; in `turns` the public one moves, too.
struct Zone {
    turns: &'static [&'static [IpAddr]],
    asked: AtomicUsize,
}

impl Zone {
    fn new(turns: &'static [&'static [IpAddr]]) -> Arc<Self> {
        Arc::new(Self { turns, asked: AtomicUsize::new(0) })
    }
}

impl Lookup for Zone {
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let found = if name == PUBLIC { self.turns[turn % self.turns.len()].to_vec() } else { INSIDE.to_vec() };
        Box::pin(async move { Ok(found) })
    }
}

/// A door with every rule of a release but one: 127.0.0.2 may be reached.
fn door(zone: Arc<Zone>, roots: RootCertStore) -> Door {
    let policy = DoorPolicy { per_minute: u32::MAX, bring_per_minute: u32::MAX, ..DoorPolicy::default() };
    let reach: Reach = |address| address == OUTSIDE;
    Door { silence: Duration::ZERO, ..Door::with(policy, reach, zone, roots).unwrap() }
}

async fn run(door: &Door, errand: Errand, url: &str) -> Result<Vec<u8>, FetchError> {
    match errand {
        Errand::Challenge | Errand::Webhook => {
            let answered = door.send(errand, url, &Parcel { headers: &[], body: b"{}", is_question: true }, start());
            match answered.await? {
                Answered { status: 300..400, .. } => Err(FetchError::Redirect),
                Answered { body, .. } => Ok(body),
            }
        }
        // The crawler and whoever calls an agent want the whole reply.
        Errand::Description | Errand::Linked | Errand::Robots | Errand::Tool => {
            let (method, body) = if errand == Errand::Tool { ("POST", &b"{}"[..]) } else { ("GET", &b""[..]) };
            let inquiry = Inquiry { method, url, headers: &[], body };
            door.inquire(errand, &inquiry, start()).await.map(|response| response.body)
        }
        Errand::DidDocument | Errand::Mapping | Errand::Schema => door.fetch(errand, url, start()).await,
    }
}

#[tokio::test]
async fn ssrf_no_spelling_is_fetched_from() {
    let forbidden = Forbidden::alone().await;
    // The rules of a release, without an exception.
    let (policy, zone) = (
        DoorPolicy { per_minute: u32::MAX, bring_per_minute: u32::MAX, ..DoorPolicy::default() },
        Zone::new(&[&INSIDE]),
    );
    let door = Door::with(policy.clone(), policy.reach(), zone.clone(), roots(None)).unwrap();
    let mut tries = 0;
    for host in spellings() {
        for errand in Errand::ALL {
            for url in [format!("https://{host}:{}/x", forbidden.port), format!("http://{host}:{}/x", forbidden.port)] {
                let outcome = run(&door, errand, &url).await;
                let refused = matches!(outcome, Err(FetchError::HostForbidden | FetchError::Url));
                assert!(refused, "{errand:?} {url}: {outcome:?}");
                tries += 1;
            }
        }
    }
    assert_eq!(zone.asked.load(Ordering::SeqCst), HOSTS_LEADING_INSIDE.len() * Errand::ALL.len());
    assert_eq!(forbidden.visitors(), 0);
    tell("straight", tries, Errand::ALL.len(), forbidden.visitors());
}

/// The messages that make the node look for somebody's keys.
const MESSAGES: [&str; 6] = ["intent", "explain", "publish", "withdraw", "data_delete", "invoke"];

async fn send(node: &Arc<Node>, message: &str, did: &str, number: usize) -> Result<Vec<u8>, JobError> {
    let forged = json!({"alg": "EdDSA", "value": "A".repeat(86)});
    let own = SigningKey::from_seed([1; 32]).did_key();
    let intent = |issuer: &str| {
        json!({
            "intent_id": format!("urn:oap:intent:{number}"), "issuer_did": issuer, "category": "discovery",
            "constraints": {"path": "/a", "operator": "exists", "value": true}, "projection": {"include": ["/a"]},
            "validity": {"from": "2026-03-01T11:00:00Z", "to": "2026-03-01T13:00:00Z"}, "signature": forged,
        })
    };
    let publication = |more: Value| {
        let mut body = json!({
            "publication_id": format!("urn:rialto:publication:{number}"), "publisher_did": did,
            "issued_at": "2026-03-01T12:00:00Z", "signature": forged,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let bytes = |value: &Value| json::canonical_value(value);
    match message {
        "intent" => node.answer(&bytes(&intent(did)), None).await,
        "explain" => node.explain(&bytes(&json!({"intent": intent(did)}))).await,
        "publish" => {
            let record = json!({"kind": "offer", "record": {"offer_id": format!("urn:offer:{number}")}});
            node.publish(&bytes(&publication(record))).await
        }
        "withdraw" => node.withdraw("urn:x", &bytes(&publication(json!({"withdraw": "urn:x"})))).await,
        "data_delete" => {
            let request = json!({
                "request_id": format!("urn:rialto:deletion:{number}"), "principal_did": did,
                "issued_at": "2026-03-01T12:00:00Z", "signature": forged,
            });
            node.delete_data(&bytes(&request)).await
        }
        _ => {
            let request = json!({
                "oap_version": "1.0", "request_id": format!("r{number}"), "action": "resolve_intent",
                "principal_did": did, "input": intent(own.as_str()), "signature": forged,
            });
            node.invoke(&bytes(&request)).await
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ssrf_no_message_makes_the_node_go_there() {
    let forbidden = Forbidden::alone().await;
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::Set(Arc::new(1_772_366_400_000.into()));
    let config = Config { data: folder.path().to_owned(), clock, ..Config::default() };
    let mut node = Node::open(&config, &mut |_, _| {}).unwrap();
    let policy = DoorPolicy { per_minute: u32::MAX, bring_per_minute: u32::MAX, ..DoorPolicy::default() };
    let door = Door::with(policy.clone(), policy.reach(), Zone::new(&[&INSIDE]), roots(None)).unwrap();
    node.dids = Dids::new(Arc::new(door));
    let (node, mut tries) = (Arc::new(node), 0);
    for host in spellings() {
        for method in ["web", "wba"] {
            for message in MESSAGES {
                let did = format!("did:{method}:{host}%3A{}", forbidden.port);
                let outcome = send(&node, message, &did, tries).await;
                let Err(JobError::Refusal(refusal)) = &outcome else { panic!("{message} {did}: {outcome:?}") };
                assert!(["did_host_forbidden", "invalid_did"].contains(&refusal.code), "{message} {did}: {refusal:?}");
                tries += 1;
            }
        }
    }
    assert_eq!(forbidden.visitors(), 0);
    tell("messages", tries, MESSAGES.len(), forbidden.visitors());
}

/// An agent that registers names the place of its description.
#[tokio::test(flavor = "multi_thread")]
async fn ssrf_no_registration_makes_the_node_go_there() {
    let forbidden = Forbidden::alone().await;
    let folder = tempfile::tempdir().unwrap();
    let config = Config { data: folder.path().to_owned(), ..Config::default() };
    let mut node = Node::open(&config, &mut |_, _| {}).unwrap();
    let policy = DoorPolicy { per_minute: u32::MAX, bring_per_minute: u32::MAX, ..DoorPolicy::default() };
    let door = Door::with(policy.clone(), policy.reach(), Zone::new(&[&INSIDE]), roots(None)).unwrap();
    node.door = Arc::new(door);
    let (node, mut tries) = (Arc::new(node), 0);
    let caller = SigningKey::from_seed([1; 32]).did_key();
    for host in spellings() {
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{host}:{}/ad.json", forbidden.port);
            let params = json!({"agentDescriptionUrl": url});
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "register", "params": params});
            let answer = node.rpc(crate::AGENT, &json::canonical_value(&call), Some(&caller), "r").await;
            let answer = json::Document::parse(&answer.bytes.unwrap(), &json::Limits::OURS).unwrap().root().to_value();
            let code = answer["error"]["data"]["error"]["details"]["code"].as_str().unwrap();
            assert!(["description_address_forbidden", "invalid_value"].contains(&code), "{url}: {code}");
            tries += 1;
        }
    }
    assert_eq!((forbidden.visitors(), node.store().sequence()), (0, 0));
    tell("registrations", tries, 1, forbidden.visitors());
}

/// A server outside that sends everybody on to what the path names, and a forbidden one on its port.
async fn sender() -> (Server, Forbidden, RootCertStore) {
    let (acceptor, certificate) = certificate(PUBLIC, NOW_VALID);
    let answer = |path: &str| {
        let (_, rest) = path.split_once("/to/").unwrap_or_default();
        let (number, port) = rest.split_once('/').unwrap_or_default();
        match (number.parse::<usize>(), port.parse::<u16>()) {
            (Ok(number), Ok(port)) => sent_on(number, port),
            _ => ok(b"{}"),
        }
    };
    let outside = Server::listen("127.0.0.2:0", Some(acceptor), answer).await;
    let forbidden = Forbidden::beside(outside.port).await;
    (outside, forbidden, roots(Some(certificate)))
}

/// Where redirects lead: each spelling with two schemes, and by way of a first hop that is allowed.
fn locations(port: u16) -> Vec<String> {
    let mut locations = Vec::new();
    for host in spellings() {
        locations.push(format!("https://{host}:{port}/x"));
        locations.push(format!("http://{host}:{port}/x"));
        locations.push(format!("//{host}:{port}/x"));
    }
    for other in ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "https://u:p@agent.example.com/", ""]
    {
        locations.push(other.to_owned());
    }
    locations
}

fn sent_on(number: usize, port: u16) -> Answer {
    let statuses = ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"];
    let location = match locations(port).get(number / 2) {
        // An even number leads there at once, an odd one by another page of this host.
        Some(location) if number.is_multiple_of(2) => location.clone(),
        _ => format!("/to/{}/{port}", number - 1),
    };
    let headers = format!("Location: {location}\r\nContent-Length: 0\r\n");
    reply(statuses[number % statuses.len()], &headers, b"")
}

#[tokio::test(flavor = "multi_thread")]
async fn ssrf_no_redirect_leads_there() {
    let (outside, forbidden, roots) = sender().await;
    let door = door(Zone::new(&[&[OUTSIDE]]), roots);
    let (_, step) = extent();
    let mut tries = 0;
    for number in (0..locations(outside.port).len() * 2).step_by(step) {
        for errand in Errand::ALL {
            let url = format!("https://{PUBLIC}:{0}/to/{number}/{0}", outside.port);
            assert_eq!(run(&door, errand, &url).await, Err(FetchError::Redirect), "{errand:?} {number}");
            tries += 1;
        }
    }
    assert!(outside.requests() >= tries, "somebody was asked each time");
    assert_eq!(forbidden.visitors(), 0);
    tell("redirects", tries, Errand::ALL.len(), forbidden.visitors());
}

#[tokio::test(flavor = "multi_thread")]
async fn ssrf_a_name_that_changes_its_address_leads_there_never() {
    let (outside, forbidden, roots) = sender().await;
    const TURNS: &[&[IpAddr]] = &[&[OUTSIDE], &[INSIDE[0]], &[OUTSIDE], &[OUTSIDE, INSIDE[0]], &[INSIDE[1]]];
    let zone = Zone::new(TURNS);
    let door = door(zone.clone(), roots);
    let (wanted, mut found) = (extent().0, 0);
    for number in 0..wanted {
        let errand = Errand::ALL[number % Errand::ALL.len()];
        let outcome = run(&door, errand, &format!("https://{PUBLIC}:{}/", outside.port)).await;
        match outcome {
            Ok(_) => found += 1,
            Err(error) => assert_eq!(error, FetchError::HostForbidden),
        }
    }
    assert_eq!((zone.asked.load(Ordering::SeqCst), found), (wanted, wanted * 2 / 5));
    assert_eq!((outside.requests(), forbidden.visitors()), (found, 0));
    tell("rebinding", wanted, Errand::ALL.len(), forbidden.visitors());
}

/// A stranger outside whose list, descriptions, links and servers all lead inside.
async fn stranger() -> (Server, Forbidden, RootCertStore) {
    let (acceptor, certificate) = certificate(PUBLIC, NOW_VALID);
    let answer = |path: &str| {
        let (port, rest) = path.trim_start_matches('/').split_once('/').unwrap_or(("443", path));
        let at = |host: &str| format!("https://{host}:{port}/x/ad.json");
        let places: Vec<&str> = spellings().collect();
        let described = |more: Value| {
            let mut description = json!({
                "@context": "https://agent-network-protocol.com/ad#", "name": "A", "description": "A",
                "securityDefinitions": {"open": {"scheme": "nosec"}}, "security": "open",
            });
            description.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            description
        };
        let page = match rest.split_once('/') {
            Some(("links", _)) => {
                let product = |host: &&str| json!({"@type": "Product", "name": "P", "@id": at(host)});
                described(json!({"products": places.iter().map(product).collect::<Vec<_>>()}))
            }
            Some(("names", number)) => {
                let host = places[number.trim_end_matches("/ad.json").parse::<usize>().unwrap()];
                described(json!({"did": format!("did:wba:{host}%3A{port}")}))
            }
            Some(("calls", number)) => {
                let host = places[number.trim_end_matches("/ad.json").parse::<usize>().unwrap()];
                let method =
                    json!({"name": "m", "description": "m", "params": [], "result": {"name": "r", "schema": {}}});
                let content = json!({"openrpc": "1.3.2", "servers": [{"url": at(host)}], "methods": [method]});
                described(
                    json!({"interfaces": [{"@type": "ad:APIInterface", "protocol": "openrpc", "content": content}]}),
                )
            }
            _ => return reply("404 Not Found", "Content-Length: 0\r\n", b""),
        };
        ok(page.to_string().as_bytes())
    };
    let outside = Server::listen("127.0.0.2:0", Some(acceptor), answer).await;
    let forbidden = Forbidden::beside(outside.port).await;
    (outside, forbidden, roots(Some(certificate)))
}

struct Silent;

impl crate::crawl::Listener for Silent {
    fn progress(&mut self, _: &crate::crawl::Report, _: usize) {}

    fn greet(&mut self, _: &str, _: &[u8]) -> Result<(), (String, String)> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ssrf_no_crawl_and_no_call_leads_there() {
    use crate::call::{CallError, Order, Visitor};
    use crate::crawl::{Bounds, Plan, Seed};
    let (outside, forbidden, roots) = stranger().await;
    let folder = tempfile::tempdir().unwrap();
    let config = Config { data: folder.path().to_owned(), ..Config::default() };
    let mut node = Node::open(&config, &mut |_, _| {}).unwrap();
    node.door = Arc::new(door(Zone::new(&[&[OUTSIDE]]), roots));
    node.dids = Dids::new(Arc::clone(&node.door));
    let base = format!("https://{PUBLIC}:{0}/{0}", outside.port);
    let (count, mut tries) = (spellings().count(), 0);
    let mut seeds: Vec<Seed> = (0..count).filter_map(|n| Seed::parse(&format!("{base}/names/{n}/ad.json"))).collect();
    seeds.extend(Seed::parse(&format!("{base}/links/ad.json")));
    for host in spellings() {
        seeds.extend(Seed::parse(&format!("{host}:{}", outside.port)));
        seeds.extend(Seed::parse(&format!("https://{host}:{}/x/ad.json", outside.port)));
    }
    assert!(seeds.len() > 2 * count, "most spellings can be asked for");
    tries += seeds.len() + count;
    let bounds = Bounds { documents_per_agent: 10_000, hosts: 10_000, ..Bounds::default() };
    let plan = Plan { seeds, bounds, per_minute: std::num::NonZeroU32::MAX, parallel: 16, anew: false };
    let report = node.crawl(&plan, &mut Silent).await.unwrap();
    assert!(report.agents > count as u64 / 2 && report.findings.len() > count, "{report:?}");
    let visitor = Visitor::new(Arc::clone(&node.door), Clock::System, None);
    for number in 0..count {
        let agent = visitor.find(&format!("{base}/calls/{number}/ad.json")).await.unwrap();
        let order = Order { method: "m".to_owned(), ..Order::default() };
        let outcome = visitor.call(&agent, &order).await;
        let refused = matches!(
            &outcome,
            Err(CallError::Unreached { error: FetchError::HostForbidden | FetchError::Url, .. } | CallError::Server)
        );
        assert!(refused, "{number}: {outcome:?}");
        tries += 1;
    }
    for host in spellings() {
        let outcome = visitor.find(&format!("{host}:{}", outside.port)).await;
        assert!(outcome.is_err(), "{host}");
        tries += 1;
    }
    assert!(outside.requests() > count);
    assert_eq!(forbidden.visitors(), 0);
    tell("agents", tries, 5, forbidden.visitors());
}

/// The sockets count: whoever is let through is seen.
#[tokio::test(flavor = "multi_thread")]
async fn ssrf_a_door_that_lets_everybody_through_is_found_out() {
    let forbidden = Forbidden::alone().await;
    let open = Door::with(test_network(), |_| true, Zone::new(&[&INSIDE]), roots(None)).unwrap();
    for host in ["127.0.0.1", "0x7f.1", "2130706433", "inner.example.com", "[::ffff:127.0.0.1]"] {
        let before = forbidden.visitors();
        let outcome = run(&open, Errand::Schema, &format!("https://{host}:{}/", forbidden.port)).await;
        assert!(outcome.is_err(), "{host}");
        assert!(forbidden.visitors() > before, "{host}");
    }
}
