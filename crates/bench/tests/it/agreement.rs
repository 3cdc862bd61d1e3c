//! Both sides are asked the same: SQL on a real PostgreSQL finds the ten that `aql` finds by asking every record.

use aql::{Candidate, Fuel, Instant, Intent, Limits, OverBudget};
use bench::corpus::Corpus;
use bench::intent::intent;
use bench::peer::{self, Interview, Server};
use bench::question::{Asker, Kind, Question};
use json::Document;

const MANIFESTS: u64 = 2_000;
const QUESTIONS: usize = 12;

pub(crate) fn candidates(corpus: &Corpus, count: u64) -> Vec<Candidate> {
    let read = |number: u64| {
        let mut line = String::new();
        corpus.write(number, &mut line);
        let document = Document::parse(line.as_bytes(), &json::Limits::DOCUMENT).unwrap();
        Candidate::read(document, number as usize + 1).unwrap()
    };
    (0..count).map(read).collect()
}

fn by_asking_every_record(question: &Question, candidates: &[Candidate]) -> Vec<String> {
    let now = Instant::from_unix(1_790_000_000, 0);
    let document = Document::of(&intent(question, "urn:oap:intent:a", "did:key:z6Mk", now)).unwrap();
    let intent = Intent::read(document.root(), &Limits::STANDARD).unwrap();
    let resolution = aql::resolve(&intent, candidates, OverBudget::Flag, Fuel::OWN).unwrap();
    resolution.matches.iter().map(|found| found.candidate.id.clone()).collect()
}

#[test]
fn sql_and_the_language_find_the_same_ten() {
    let Some(programs) = peer::installed() else {
        eprintln!("skipped: PostgreSQL is not installed");
        return;
    };
    let corpus = Corpus::new(7);
    let candidates = candidates(&corpus, MANIFESTS);
    let folder = tempfile::tempdir().unwrap();
    bench::open_to_others(folder.path()).unwrap();
    let server = Server::start(&programs, &folder.path().join("postgres"), MANIFESTS).unwrap();
    server.import(&corpus, MANIFESTS).unwrap();
    let mut asker = Asker::new(&corpus, MANIFESTS, 7);
    for kind in Kind::ALL {
        let mut interview = Interview::new(&server, kind).unwrap();
        let mut full = 0;
        for _ in 0..QUESTIONS {
            let question = asker.ask(kind);
            let wanted = by_asking_every_record(&question, &candidates);
            let (found, _) = interview.ask(&question).unwrap();
            assert_eq!(found, wanted, "{} {}", kind.name(), question.constraints);
            assert!(!wanted.is_empty(), "{} finds nothing: {}", kind.name(), question.constraints);
            let all = interview.count(&question).unwrap();
            assert_eq!(all.min(10), wanted.len() as i64);
            full += usize::from(all > 10);
        }
        if kind == Kind::Broad {
            assert_eq!(full, QUESTIONS, "a broad question has more answers than it shows");
        }
    }
}
