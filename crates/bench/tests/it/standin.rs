//! The benchmark against a node that is none: a thread that asks every record and signs what it says.

use crate::agreement::candidates;
use aql::{Candidate, Fuel, Instant, Intent, Limits, OverBudget, Responder};
use bench::corpus::Corpus;
use bench::http::{Connection, get, post};
use bench::intent::Crowd;
use bench::load::all_at_once;
use bench::node::Signer;
use bench::question::{Asker, Kind, Question};
use bench::run::{INTENT_PATH, Plan, ask, run};
use bench::{growth, shares};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trust::{Algorithm, SigningKey, encoding};

const MANIFESTS: u64 = 300;

/// What the stand-in does with what it is asked.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Honest,
    /// Alters what it signed.
    Forging,
    /// Refuses.
    Refusing,
}

fn key() -> SigningKey {
    SigningKey::from_seed([200; 32])
}

/// Serves until the test ends; returns where.
fn serve(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let candidates = Arc::new(candidates(&Corpus::new(1), MANIFESTS));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let candidates = candidates.clone();
            std::thread::spawn(move || converse(stream, &candidates, manner));
        }
    });
    authority
}

fn converse(stream: TcpStream, candidates: &[Candidate], manner: Manner) {
    let mut stream = BufReader::new(stream);
    while let Some((path, request)) = read(&mut stream) {
        let respond = || if path == INTENT_PATH { answer(&request, candidates) } else { acknowledge(&request) };
        let (status, body) = match manner {
            Manner::Refusing => ("429 Too Many Requests", b"{\"code\":\"quota\"}".to_vec()),
            Manner::Honest => ("200 OK", respond()),
            Manner::Forging => {
                let text = String::from_utf8(respond()).unwrap();
                ("200 OK", text.replacen("\"rank\":1,", "\"rank\":2,", 1).into_bytes())
            }
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).unwrap();
    }
}

/// The path and the body of the next request.
fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        } else if let Some(request) = line.strip_prefix("POST ") {
            path = request.split(' ').next().unwrap().to_owned();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn answer(request: &[u8], candidates: &[Candidate]) -> Vec<u8> {
    let (intent, document) = Intent::parse(request, &Limits::STANDARD).unwrap();
    trust::verify_did_key(&document, "issuer_did").unwrap();
    let resolution = aql::resolve(&intent, candidates, OverBudget::Flag, Fuel::OWN).unwrap();
    let (key, response_id) = (key(), "urn:oap:intent-response:standin");
    let did = key.did_key();
    let responder = Responder {
        response_id,
        resolver_did: did.as_str(),
        evaluated_at: Instant::from_unix(1_790_000_000, 0),
        rejected_max: 3,
        next_cursor: None,
        recorded: aql::Recorded::default(),
    };
    let body = responder.write(&intent, &resolution, None).unwrap();
    let signature = json::json!({
        "alg": Algorithm::EdDsa.name(),
        "kid": key.key_id().to_string(),
        "value": encoding::encode(&key.sign(&body)),
    });
    responder.write(&intent, &resolution, Some(&signature)).unwrap()
}

fn acknowledge(publication: &[u8]) -> Vec<u8> {
    let document = json::Document::parse(publication, &json::Limits::DOCUMENT).unwrap();
    trust::verify_did_key(&document, "publisher_did").unwrap();
    let mut body = json::json!({"type": "oap.record.ack", "resolver_did": key().did_key().as_str()});
    trust::sign(&mut body, &key()).unwrap();
    body.to_string().into_bytes()
}

fn questions(count: usize) -> Vec<Question> {
    let corpus = Corpus::new(1);
    let mut asker = Asker::new(&corpus, MANIFESTS, 1);
    Kind::ALL.into_iter().cycle().take(count).map(|kind| asker.ask(kind)).collect()
}

fn signer(authority: &str) -> Signer {
    Signer::of(key().did_key().as_str(), authority).unwrap()
}

/// A program that says it is ready and waits, with the stand-in where it says it listens.
fn program(folder: &Path, authority: &str) -> PathBuf {
    let path = folder.join("rialto");
    let did = key().did_key();
    let script = format!(
        "#!/bin/sh\nif [ $1 = import ]; then mkdir -p $6 && cp $2 $6/; exit; fi\n\
         echo '{{\"address\":\"http://{authority}\",\"did\":\"{did}\"}}'\nexec sleep 600\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_whole_run_measures_everything_and_finds_the_same_on_both_sides() {
    let authority = serve(Manner::Honest);
    let folder = tempfile::tempdir().unwrap();
    bench::open_to_others(folder.path()).unwrap();
    let plan = Plan {
        manifests: MANIFESTS,
        seed: 1,
        samples: 4,
        peer_samples: 3,
        load_seconds: 60,
        load_requests: 40,
        connections: 2,
        publishers: 4,
        rialto: Some(program(folder.path(), &authority)),
        serve_arguments: Vec::new(),
        with_postgres: bench::peer::installed().is_some(),
        folder: folder.path().to_owned(),
        data: None,
    };
    let report = run(&plan).unwrap();
    let node = report.node.as_ref().unwrap();
    assert_eq!(node.verified_answers, 4 * Kind::ALL.len());
    for served in [&node.selective, &node.mixed, &node.publications] {
        assert_eq!(served.as_ref().unwrap().answers, 40);
    }
    assert!(node.disk_bytes > 0 && node.memory.peak_bytes >= node.memory.resident_bytes);
    if plan.with_postgres {
        for row in &report.rows {
            assert_eq!((row.compared, row.same), (3, 3), "{}", row.kind.name());
        }
        assert!(report.mean_ratio().is_some() && report.peer.is_some());
    }
    let page = growth::markdown(std::slice::from_ref(&report));
    assert!(page.contains("| p50 of the round trip | 300 |") && page.contains("| ready after start |"), "{page}");
    growth::write_charts(&[report], folder.path()).unwrap();
    let chart = std::fs::read_to_string(folder.path().join("node-latency.svg")).unwrap();
    assert!(chart.contains("selective conjunction") && chart.ends_with("</svg>\n"));
}

#[test]
fn every_answer_is_timed_and_verified_and_its_cost_is_taken_apart() {
    let authority = serve(Manner::Honest);
    let asked = ask(&authority, &signer(&authority), &questions(24), &mut Crowd::new()).unwrap();
    assert_eq!((asked.durations.len(), asked.found.len()), (24, 24));
    assert!(asked.durations.iter().all(|took| *took > Duration::ZERO));
    assert!(asked.found.iter().all(|ids| (1..=10).contains(&ids.len())), "{:?}", asked.found);
    let shares = shares::measure(&asked.intents, &asked.answers).unwrap();
    assert!(shares.len() == 4 && shares.iter().all(|share| share.microseconds > 0.0), "{shares:?}");
}

#[test]
fn a_forged_answer_ends_the_run() {
    let authority = serve(Manner::Forging);
    let error = ask(&authority, &signer(&authority), &questions(8), &mut Crowd::new()).unwrap_err();
    assert!(format!("{error:#}").contains("an answer does not verify"), "{error:#}");
}

#[test]
fn an_answer_of_somebody_else_ends_the_run() {
    let authority = serve(Manner::Honest);
    let other = Signer::of(SigningKey::from_seed([201; 32]).did_key().as_str(), &authority).unwrap();
    assert!(ask(&authority, &other, &questions(1), &mut Crowd::new()).is_err());
}

#[test]
fn a_refusal_ends_the_run_and_is_shown() {
    let authority = serve(Manner::Refusing);
    let error = ask(&authority, &signer(&authority), &questions(1), &mut Crowd::new()).unwrap_err();
    assert!(format!("{error:#}").contains("429") && format!("{error:#}").contains("quota"), "{error:#}");
}

#[test]
fn a_crowd_gets_every_answer_once_until_the_time_is_up() {
    let authority = serve(Manner::Honest);
    let intents = Crowd::new().sign_all(&questions(64)).unwrap();
    let requests: Vec<Vec<u8>> = intents.iter().map(|intent| post(&authority, INTENT_PATH, intent)).collect();
    let served = all_at_once(&authority, &requests, 4, Duration::from_secs(60)).unwrap();
    assert_eq!(served.answers, 64);
    assert!(served.kept.len() >= 4 && served.per_second() > 0.0);
    served.kept.iter().for_each(|answer| drop(signer(&authority).verify(answer).unwrap()));
    let none = all_at_once(&authority, &requests, 4, Duration::ZERO).unwrap();
    assert_eq!(none.answers, 0);
}

#[test]
fn publications_are_signed_by_their_publishers() {
    let mut line = String::new();
    Corpus::new(1).write(5, &mut line);
    let mut crowd = Crowd::new();
    let [first, second] = [(); 2].map(|()| crowd.sign_publication(&line).unwrap());
    assert_ne!(first, second);
    let document = json::Document::parse(&first, &json::Limits::DOCUMENT).unwrap();
    trust::verify_did_key(&document, "publisher_did").unwrap();
    let at = |names: &[&str]| {
        let found = names.iter().try_fold(document.root(), |node, name| node.get(name));
        found.and_then(json::Node::as_str).unwrap().to_owned()
    };
    assert_eq!(at(&["kind"]), "manifest");
    assert!(at(&["publication_id"]).starts_with("urn:rialto:publication:"));
    assert_eq!(at(&["record", "tool", "publisher", "did"]), at(&["publisher_did"]));
}

#[test]
fn a_response_that_breaks_off_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 512];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"half\":").unwrap();
    });
    let mut connection = Connection::open(&authority).unwrap();
    let error = connection.exchange(&get(&authority, "/"), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("after 8 of 50 bytes"), "{error}");
}
