//! One run: the same corpus and the same questions for the node and for PostgreSQL, one after the other.

use crate::clock::{start, timed};
use crate::corpus::Corpus;
use crate::figures::Latency;
use crate::http::{Connection, post};
use crate::intent::Crowd;
use crate::load::{Served, all_at_once, one_by_one};
use crate::node::{Node, Program, Signer, candidate_ids};
use crate::peer::{self, Interview, Server};
use crate::question::{Asker, Kind, Question};
use crate::report::{CorpusFigures, NodeFigures, PeerFigures, Report, Row};
use crate::shares;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where intents and publications are sent.
pub const INTENT_PATH: &str = "/oap/intent";
const RECORDS_PATH: &str = "/oap/records";

/// How long each side is asked questions of a kind before the first is timed: both are measured warm.
const WARM_UP: Duration = Duration::from_secs(2);
/// Questions of each kind that are drawn for it.
const WARM_UP_MAX: usize = 4_000;
/// So many of them are asked also where they take longer.
const WARM_UP_MIN: usize = 3;
/// Questions of each kind whose matches PostgreSQL counts.
const COUNTED: usize = 5;

/// What a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Manifests in the corpus.
    pub manifests: u64,
    /// What the corpus and the questions are drawn from.
    pub seed: u64,
    /// Timed questions of each kind.
    pub samples: usize,
    /// Timed questions of each kind for PostgreSQL; they are the first of the others.
    pub peer_samples: usize,
    /// Seconds of each load by a crowd; none without.
    pub load_seconds: u64,
    /// Requests that are signed for each of them at most.
    pub load_requests: usize,
    /// Connections that ask at once.
    pub connections: usize,
    /// Connections that publish at once.
    pub publishers: usize,
    /// The node's binary; without it PostgreSQL is measured alone.
    pub rialto: Option<PathBuf>,
    /// Passed on to `rialto serve`.
    pub serve_arguments: Vec<String>,
    /// Whether PostgreSQL is measured.
    pub with_postgres: bool,
    /// Where the run may write.
    pub folder: PathBuf,
    /// Where the imported data stay for the next run; when they are there, nothing is imported.
    pub data: Option<PathBuf>,
}

/// The questions of one kind.
struct Series {
    kind: Kind,
    warm_up: Vec<Question>,
    timed: Vec<Question>,
}

/// The ids that each question of a series found, as far as it was asked.
type Found = Vec<Vec<String>>;

/// Does all of it.
pub fn run(plan: &Plan) -> Result<Report> {
    let corpus = Corpus::new(plan.seed);
    let mut asker = Asker::new(&corpus, plan.manifests, plan.seed);
    let series: Vec<Series> = Kind::ALL.into_iter().map(|kind| Series::draw(kind, &mut asker, plan.samples)).collect();
    let records = plan.folder.join("manifests.ndjson");
    say(&format!("writing {} manifests", plan.manifests));
    let (bytes, took) = timed(|| corpus.write_file(plan.manifests, &records));
    let corpus_figures = CorpusFigures { bytes: bytes?, seconds: took.as_secs_f64() };
    let mut report = Report {
        manifests: plan.manifests,
        corpus: corpus_figures,
        rows: series.iter().map(|series| Row::new(series.kind)).collect(),
        node: None,
        peer: None,
        shares: Vec::new(),
    };
    let mut node_found = vec![Found::new(); series.len()];
    if let Some(binary) = &plan.rialto {
        let program = Program {
            binary: binary.clone(),
            serve_arguments: plan.serve_arguments.clone(),
            environment: Vec::new(),
            data: plan.data.clone().unwrap_or_else(|| plan.folder.join("data")),
            log: plan.folder.join("rialto.log"),
        };
        node_found = measure_node(plan, &program, &corpus, &records, &series, &mut asker, &mut report)?;
        if plan.data.is_none() {
            std::fs::remove_dir_all(&program.data)?;
        }
    }
    std::fs::remove_file(&records)?;
    if plan.with_postgres {
        let peer_found = measure_peer(plan, &corpus, &series, &mut report)?;
        for ((row, ours), theirs) in report.rows.iter_mut().zip(&node_found).zip(&peer_found) {
            row.compare(ours, theirs);
        }
    }
    Ok(report)
}

fn measure_node(
    plan: &Plan,
    program: &Program,
    corpus: &Corpus,
    records: &Path,
    series: &[Series],
    asker: &mut Asker<'_>,
    report: &mut Report,
) -> Result<Vec<Found>> {
    let mut import_seconds = None;
    if !program.data.exists() {
        say("rialto import");
        import_seconds = Some(program.import(records)?);
    }
    say("rialto serve, twice");
    let (node, first_ready_seconds) = program.serve()?;
    node.stop()?;
    let (node, ready_seconds) = program.serve()?;
    let mut crowd = Crowd::new();
    let mut found = Vec::new();
    let mut verified = 0;
    for (series, row) in series.iter().zip(&mut report.rows) {
        say(&format!("rialto: {}", series.kind.name()));
        let asked = ask_node(&node.authority, &node.signer, series, &mut crowd)?;
        verified += asked.answers.len();
        row.node = Some(Latency::of(&asked.durations));
        if series.kind == Kind::SelectiveConjunction {
            report.shares = shares::measure(&asked.intents, &asked.answers)?;
        }
        found.push(asked.found);
    }
    let (mut selective, mut mixed, mut publications) = (None, None, None);
    if plan.load_seconds > 0 {
        say("rialto: many who ask, selective conjunctions");
        selective = Some(ask_in_a_crowd(plan, &node, &[Kind::SelectiveConjunction], asker, &mut crowd)?);
        say("rialto: many who ask, all kinds");
        mixed = Some(ask_in_a_crowd(plan, &node, &Kind::ALL, asker, &mut crowd)?);
    }
    let memory = node.memory()?;
    // Data that stay would be published again by others in the next run.
    if plan.load_seconds > 0 && plan.data.is_none() {
        say("rialto: many who publish");
        publications = Some(publish(plan, &node, corpus, &mut crowd)?);
    }
    node.stop()?;
    report.node = Some(NodeFigures {
        import_seconds,
        first_ready_seconds,
        ready_seconds,
        memory,
        disk_bytes: program.disk_bytes()?,
        verified_answers: verified,
        selective,
        mixed,
        publications,
    });
    Ok(found)
}

/// What one who asked a series got.
#[derive(Debug)]
pub struct Asked {
    /// The intents as they were sent.
    pub intents: Vec<Vec<u8>>,
    /// The answers as they came.
    pub answers: Vec<Vec<u8>>,
    /// How long each took.
    pub durations: Vec<Duration>,
    /// The ids in each.
    pub found: Vec<Vec<String>>,
}

fn ask_node(authority: &str, signer: &Signer, series: &Series, crowd: &mut Crowd) -> Result<Asked> {
    let intents = crowd.sign_all(&series.warm_up)?;
    let requests: Vec<Vec<u8>> = intents.iter().map(|intent| post(authority, INTENT_PATH, intent)).collect();
    let mut connection = Connection::open(authority)?;
    let mut body = Vec::new();
    warm_up(&requests, |request| connection.succeed(request, &mut body).map(drop))?;
    ask(authority, signer, &series.timed, crowd)
}

/// Asks questions one by one over one connection and verifies every answer.
pub fn ask(authority: &str, signer: &Signer, questions: &[Question], crowd: &mut Crowd) -> Result<Asked> {
    let intents = crowd.sign_all(questions)?;
    let requests: Vec<Vec<u8>> = intents.iter().map(|intent| post(authority, INTENT_PATH, intent)).collect();
    let (mut durations, mut answers, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for ((took, answer), intent) in one_by_one(authority, &requests)?.into_iter().zip(&intents) {
        let document = signer.verify(&answer).context("an answer does not verify")?;
        let intent: serde_json::Value = serde_json::from_slice(intent)?;
        let answered = document.root().get("intent_id").and_then(json::Node::as_str);
        ensure!(answered == intent.get("intent_id").and_then(|id| id.as_str()), "the answer is for another intent");
        found.push(candidate_ids(&document));
        durations.push(took);
        answers.push(answer);
    }
    Ok(Asked { intents, answers, durations, found })
}

fn ask_in_a_crowd(
    plan: &Plan,
    node: &Node,
    kinds: &[Kind],
    asker: &mut Asker<'_>,
    crowd: &mut Crowd,
) -> Result<Served> {
    let questions: Vec<Question> = kinds.iter().cycle().take(plan.load_requests).map(|kind| asker.ask(*kind)).collect();
    let intents = crowd.sign_all(&questions)?;
    let requests: Vec<Vec<u8>> = intents.iter().map(|intent| post(&node.authority, INTENT_PATH, intent)).collect();
    let limit = Duration::from_secs(plan.load_seconds);
    let served = all_at_once(&node.authority, &requests, plan.connections, limit)?;
    served.kept.iter().try_for_each(|answer| node.signer.verify(answer).map(|_| ()))?;
    Ok(served)
}

fn publish(plan: &Plan, node: &Node, corpus: &Corpus, crowd: &mut Crowd) -> Result<Served> {
    let mut line = String::new();
    let mut request = |number: u64| {
        line.clear();
        corpus.write(plan.manifests + number, &mut line);
        Ok(post(&node.authority, RECORDS_PATH, &crowd.sign_publication(&line)?))
    };
    let requests: Vec<Vec<u8>> = (0..plan.load_requests as u64).map(&mut request).collect::<Result<_>>()?;
    let limit = Duration::from_secs(plan.load_seconds);
    let served = all_at_once(&node.authority, &requests, plan.publishers, limit)?;
    served.kept.iter().try_for_each(|acknowledgement| node.signer.verify_envelope(acknowledgement).map(|_| ()))?;
    Ok(served)
}

fn measure_peer(plan: &Plan, corpus: &Corpus, series: &[Series], report: &mut Report) -> Result<Vec<Found>> {
    let programs = peer::installed().context("PostgreSQL is not installed; `--without-postgres` does without it")?;
    let folder = plan.folder.join("postgres");
    say("PostgreSQL: COPY and GIN");
    let server = Server::start(&programs, &folder, plan.manifests)?;
    let import = server.import(corpus, plan.manifests)?;
    let mut found = Vec::new();
    for (series, row) in series.iter().zip(&mut report.rows) {
        say(&format!("PostgreSQL: {}", series.kind.name()));
        let mut interview = Interview::new(&server, series.kind)?;
        warm_up(&series.warm_up, |question| interview.ask(question).map(drop))?;
        let (mut durations, mut ids) = (Vec::new(), Found::new());
        for question in series.timed.iter().take(plan.peer_samples) {
            let (ten, took) = interview.ask(question)?;
            durations.push(took);
            ids.push(ten);
        }
        let counts = series.timed.iter().take(COUNTED).map(|question| interview.count(question));
        let counts: Vec<i64> = counts.collect::<Result<_>>()?;
        row.matches = Some(counts.iter().sum::<i64>() as f64 / counts.len().max(1) as f64);
        row.peer = Some(Latency::of(&durations));
        found.push(ids);
    }
    report.peer = Some(PeerFigures { version: server.version()?, import });
    drop(server);
    std::fs::remove_dir_all(&folder)?;
    Ok(found)
}

impl Series {
    fn draw(kind: Kind, asker: &mut Asker<'_>, samples: usize) -> Self {
        let mut draw = |count: usize| (0..count).map(|_| asker.ask(kind)).collect();
        Self { kind, warm_up: draw(WARM_UP_MAX), timed: draw(samples) }
    }
}

/// Asks for a while what is not timed.
fn warm_up<Q>(questions: &[Q], mut ask: impl FnMut(&Q) -> Result<()>) -> Result<()> {
    let begun = start();
    for (number, question) in questions.iter().enumerate() {
        if number >= WARM_UP_MIN && begun.elapsed() >= WARM_UP {
            break;
        }
        ask(question)?;
    }
    Ok(())
}

/// Tells whoever waits what is being done.
fn say(what: &str) {
    eprintln!("==> {what}");
}
