//! A node on a stage: cases are played against it one after the other, and it is looked at after each.

use super::Verdict;
use super::bytes::{Names, bytes, fill};
use super::case::{Case, Crowd, Expect, Publish, Raw, Send, Socket, Start, Step, Types};
use super::host::Host;
use super::message::{Senders, places};
use super::secure::Listener;
use super::wire::{Connection, Reply, exchange, raw};
use super::{case, crowd, folder, h2, hosted, rotation, socket, storm, types};
use crate::crash::{Program, Running, start};
use anyhow::{Context, Result, ensure};
use json::{Document, Limits, Pointer, Value};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use trust::{Did, DidDocument, Signed};

/// How many times longer everything may take in a build for tests, beside other tests.
pub(super) const SLACK: u64 = if cfg!(debug_assertions) { 4 } else { 1 };

/// Bytes of a refusal: it says what is wrong and repeats nothing.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;
/// Bytes that a node may write into its log while it is attacked.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Cheap questions that are asked beside costly ones, at the most.
const CHEAP_MAX: usize = 400;

/// A word that stands in every credential of the agents of the corpus, and may stand nowhere else.
const CANARY: &str = "attack-canary";

/// What a node is started with, with the names of those who will send, the folder of the corpus and that above its own.
pub(crate) fn arguments(spelled: &[String], corpus: &Path, beside: &Path) -> Vec<String> {
    let senders = Senders::new();
    let names = Names::from([
        ("issuer", senders.issuer.did_key().to_string()),
        ("other", senders.other.did_key().to_string()),
        ("corpus", corpus.display().to_string()),
        ("beside", beside.display().to_string()),
    ]);
    spelled.iter().map(|argument| fill(argument, &names)).collect()
}

pub(crate) struct Stage<'a> {
    program: &'a Program,
    host: &'a Host,
    node: Running,
    /// Another node, which speaks TLS.
    secure: Option<Listener>,
    keys: DidDocument,
    senders: Senders,
    count: usize,
    messages: usize,
}

/// What earlier steps of a case left: bodies and replies.
#[derive(Default)]
struct Before(Vec<(Vec<u8>, Reply)>);

impl<'a> Stage<'a> {
    pub(crate) fn open(program: &'a Program, host: &'a Host) -> Result<Self> {
        let (node, _) = program.serve()?;
        let keys = keys(node.url.trim_start_matches("http://"))?;
        let stage = Self { program, host, node, secure: None, keys, senders: Senders::new(), count: 0, messages: 0 };
        // Memory that any work takes for the first time is not counted for the first case.
        let names = stage.names("warm", "warm");
        stage.exchange("POST", "/oap/intent", &[], &stage.senders.intent(&Value::Null, &names)?)?;
        Ok(stage)
    }

    fn authority(&self) -> &str {
        self.node.url.trim_start_matches("http://")
    }

    fn names(&self, run: &str, fresh: &str) -> Names {
        Names::from([
            ("run", run.to_owned()),
            ("fresh", fresh.to_owned()),
            ("issuer", self.senders.issuer.did_key().to_string()),
            ("other", self.senders.other.did_key().to_string()),
            ("node", self.keys.did().to_string()),
            ("authority", self.authority().to_owned()),
            ("hosted", self.host.did(run)),
            ("host", self.host.address()),
            ("secure", self.secure.as_ref().map(Listener::port).unwrap_or_default().to_owned()),
            ("multibase", self.senders.issuer.public().to_multibase()),
        ])
    }

    /// Plays a case and looks at the node afterwards.
    pub(crate) fn play(&mut self, case: &Case) -> Result<Verdict> {
        let (begun, before, sent) = (start(), self.resident()?, self.messages);
        let mut wrong = None;
        let nobody = [Value::Null];
        let each: &[Value] = if case.each.is_empty() { &nobody } else { &case.each };
        for variant in each {
            if let Err(error) = self.play_variant(case, variant) {
                let which = if variant.is_null() { String::new() } else { format!("{variant}: ") };
                wrong = Some(format!("{which}{error:#}"));
                break;
            }
        }
        let health = exchange(self.authority(), b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if !self.node.is_alive() {
            wrong = Some(format!("the process has ended: {}", self.program.said()));
            self.node = self.program.serve()?.0;
        } else if !health.as_ref().is_ok_and(|reply| reply.status == 200) {
            wrong = wrong.or_else(|| Some(format!("the node is not healthy: {health:?}")));
        }
        let grown = self.resident()?.saturating_sub(before);
        if grown > case.memory_mib << 20 {
            wrong = wrong.or_else(|| Some(format!("the memory has grown by {} MiB", grown >> 20)));
        }
        Ok(Verdict {
            row: case.row.clone(),
            id: case.id.clone(),
            wrong,
            messages: self.messages - sent,
            grown_bytes: grown,
            millis: begun.elapsed().as_millis() as u64,
        })
    }

    fn play_variant(&mut self, case: &Case, variant: &Value) -> Result<()> {
        self.count += 1;
        let run = format!("r{}", self.count);
        let mut before = Before::default();
        let (each, code) = match variant {
            Value::Array(pair) => (pair.first().cloned().unwrap_or_default(), pair.get(1).and_then(Value::as_str)),
            single => (single.clone(), None),
        };
        for (number, step) in case.steps.iter().enumerate() {
            let mut names = self.names(&run, &format!("{run}-{number}"));
            if !each.is_null() {
                names.insert("each", String::from_utf8(bytes(&each, &names)?)?);
            }
            self.step(step, &names, code, &mut before).with_context(|| format!("step {number}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, names: &Names, code: Option<&str>, before: &mut Before) -> Result<()> {
        match step {
            Step::Send(send) => return self.send(send, names, code, before),
            Step::Raw(sent) => self.raw(sent, names)?,
            Step::Socket(socket) => self.socket(socket, names, before)?,
            Step::Frames(frames) => {
                self.messages += h2::flood(self.authority(), frames)?;
            }
            Step::Host(manners) => self.host.tell(manners, names),
            Step::Start(started) => self.start(started)?,
            Step::Mutate(count) => self.mutate(*count, names)?,
            Step::Publish(publish) => self.publish(publish, names)?,
            Step::Lint(lint) => {
                self.messages += 1;
                hosted::lint(self.program, lint, names, code)?;
            }
            Step::Hosting(hosting) => {
                self.messages += 1;
                hosted::refuses(self.program, hosting, names)?;
            }
            Step::Folder(change) => folder::change(self.program, &mut self.node, change)?,
            Step::Secure(secure) => self.secure = Some(Listener::start(self.program, secure)?),
            Step::Tls(tls) => {
                self.messages += 1;
                self.secure.as_mut().context("nobody speaks TLS")?.hears(tls, names)?;
            }
            Step::Types(types) => self.types(types, names)?,
            Step::Rotate(rotate) => {
                let run = names.get("run").map(String::as_str).unwrap_or_default();
                self.messages += rotation::rotate(self.program, &mut self.node, run, rotate)?;
                self.keys = keys(self.authority())?;
            }
            Step::Crowd(crowd) => self.crowd(crowd, names)?,
            Step::Crawl(crawl) => {
                self.messages += 1;
                hosted::crawl(self.program, crawl, &self.host.address())?;
            }
            Step::Reconnect(reconnect) => {
                let path = with_replies(&reconnect.path, before)?;
                self.node.kill()?;
                self.node = self.program.serve()?.0;
                self.messages += storm::reconnect(self.authority(), &path, reconnect)?;
            }
        }
        before.0.push((Vec::new(), Reply::default()));
        Ok(())
    }

    fn raw(&mut self, sent: &Raw, names: &Names) -> Result<()> {
        self.messages += sent.sockets;
        let replies = raw(self.authority(), sent, names)?;
        let Some(code) = &sent.code else { return Ok(()) };
        ensure!(replies.len() == sent.sockets, "{} of {} sockets had a whole reply", replies.len(), sent.sockets);
        replies.iter().try_for_each(|reply| self.is_refused_by(code, reply))
    }

    /// Opens one WebSocket after the other, and looks at what became of the last.
    fn socket(&mut self, socket: &Socket, names: &Names, before: &Before) -> Result<()> {
        let path = fill(&with_replies(&socket.path, before)?, names);
        let mut told = socket::Told::default();
        for turn in 0..socket.times {
            let mut names = names.clone();
            if socket.times > 1 {
                names.insert("fresh", format!("{}-{turn}", names.get("fresh").cloned().unwrap_or_default()));
                names.insert("n", turn.to_string());
            }
            let message = socket.intent.as_ref().map(|changes| self.senders.intent(changes, &names)).transpose()?;
            self.messages += 1 + socket.frames.iter().map(|frame| frame.times).sum::<usize>();
            told = socket::play(self.authority(), socket, message.as_deref(), &path, &names)?;
            let refused = told.texts.iter().find_map(|text| text.pointer("/data/error/details/code"));
            if socket.until.is_some() && refused.and_then(Value::as_str) == socket.until.as_deref() {
                break;
            }
        }
        ensure!(told.handshake.status == socket.status, "the status is {}", told.handshake.status);
        ensure!(
            socket.close.is_none() || told.close == socket.close,
            "it is closed with {:?}: {:?}",
            told.close,
            told.texts
        );
        ensure!(told.pongs >= socket.pongs, "there are {} pongs", told.pongs);
        if let Some(events) = &socket.events {
            let heard: Vec<_> = told.texts.iter().filter_map(|text| text.get("event")?.as_str()).collect();
            ensure!(heard == *events, "it tells {heard:?}");
        }
        let Some(code) = &socket.code else { return Ok(()) };
        if told.handshake.status != 101 {
            return self.is_refused_by(code, &told.handshake);
        }
        let refusal = told.texts.iter().find(|text| text.get("event").is_some_and(|event| event == "oap.error"));
        let refusal =
            refusal.and_then(|text| text.get("data")).with_context(|| format!("it tells {:?}", told.texts))?;
        self.is_refused_by(code, &Reply { body: refusal.to_string().into_bytes(), ..Reply::default() })
    }

    /// A refusal under the node's signature, with this code.
    fn is_refused_by(&self, code: &str, reply: &Reply) -> Result<()> {
        let shown: String = String::from_utf8_lossy(&reply.body).chars().take(600).collect();
        self.is_a_refusal(reply).with_context(|| shown.clone())?;
        let said: Value = serde_json::from_slice(&reply.body)?;
        let told = said.pointer("/error/details/code").and_then(Value::as_str);
        ensure!(told == Some(code), "the code is {told:?}: {shown}");
        Ok(())
    }

    fn send(&mut self, send: &Send, names: &Names, code: Option<&str>, before: &mut Before) -> Result<()> {
        let mut headers: Vec<(String, String)> = vec![("Host".into(), self.authority().to_owned())];
        for (name, value) in &send.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name.clone(), fill(value, names)));
        }
        let path = fill(&with_replies(&send.path, before)?, names);
        let begun = start();
        let mut last = (Vec::new(), Reply::default());
        let mut connection = Connection::open(self.authority())?;
        for turn in 0..send.times {
            let mut names = names.clone();
            if send.times > 1 {
                names.insert("fresh", format!("{}-{turn}", names.get("fresh").cloned().unwrap_or_default()));
                names.insert("n", turn.to_string());
            }
            let mut filled: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), fill(value, &names))).collect();
            let body = self.body(send, &names, before)?;
            if let Some(name) = &send.signed_by {
                let target = format!("{}{path}", self.node.url);
                let nonce = format!("attack-{}", self.messages);
                filled.extend(self.senders.proof(name, (&send.method, &target, &body), &nonce)?);
            }
            let request = request(&send.method, &path, &filled, &body);
            self.messages += send.at_once;
            let reply = if send.at_once > 1 {
                self.all_at_once(&request, send.at_once)?
            } else {
                match connection.exchange(&request) {
                    Ok(reply) => reply,
                    // A refusal may close the connection; the next message has one of its own.
                    Err(_) => {
                        connection = Connection::open(self.authority())?;
                        connection.exchange(&request)?
                    }
                }
            };
            last = (body, reply);
            let said = String::from_utf8_lossy(&last.1.body);
            if send.until.as_ref().is_some_and(|code| said.contains(&format!("\"code\":\"{code}\""))) {
                break;
            }
        }
        let took = begun.elapsed().as_millis() as u64;
        let expect = &send.expect;
        if let Some(most) = expect.within_ms {
            ensure!(took <= most * SLACK, "it took {took} ms");
        }
        self.judge(expect, code, &last.1, names, before)?;
        if let Some(expected) = expect.fetches {
            ensure!(self.host.asked() == expected, "the host was asked {} times", self.host.asked());
        }
        before.0.push(last);
        Ok(())
    }

    /// The same request over many connections; every reply must be the same bytes.
    fn all_at_once(&self, request: &[u8], count: usize) -> Result<Reply> {
        let authority = self.authority();
        let replies = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..count).map(|_| scope.spawn(|| exchange(authority, request))).collect();
            asked.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        let mut first: Option<Reply> = None;
        for reply in replies {
            let reply = reply.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            if let Some(first) = &first {
                ensure!(first.body == reply.body, "the same message has two replies");
            }
            first.get_or_insert(reply);
        }
        first.context("nobody asked")
    }

    fn body(&self, send: &Send, names: &Names, before: &Before) -> Result<Vec<u8>> {
        if let Some(step) = send.again {
            return before.0.get(step).map(|(body, _)| body.clone()).context("no such step");
        }
        if let Some(spelled) = &send.bytes {
            let spelled = bytes(spelled, names)?;
            return match String::from_utf8(spelled) {
                Ok(text) => Ok(with_replies(&text, before)?.into_bytes()),
                Err(no_text) => Ok(no_text.into_bytes()),
            };
        }
        if let Some(changes) = &send.publication {
            return self.senders.publication(changes, names);
        }
        if let Some(changes) = &send.mapping {
            return self.senders.mapping(changes, names);
        }
        match &send.intent {
            Some(changes) => self.senders.intent(changes, names),
            None => Ok(Vec::new()),
        }
    }

    fn judge(&self, expect: &Expect, code: Option<&str>, reply: &Reply, names: &Names, before: &Before) -> Result<()> {
        let text = String::from_utf8_lossy(&reply.body);
        let shown: String = text.chars().take(600).collect();
        if let Some(status) = expect.status {
            ensure!(reply.status == status, "the status is {}: {shown}", reply.status);
        }
        ensure!(
            expect.status_in.is_empty() || expect.status_in.contains(&reply.status),
            "the status is {}: {shown}",
            reply.status
        );
        if reply.status >= 400 {
            self.is_a_refusal(reply).with_context(|| shown.clone())?;
        }
        for lacking in &expect.lacks {
            let lacking = fill(lacking, names);
            ensure!(!text.contains(&lacking) && !reply.head.contains(&lacking), "`{lacking}` is repeated: {shown}");
        }
        if let Some(step) = expect.same_as {
            let (_, earlier) = before.0.get(step).context("no such step")?;
            ensure!(earlier.body == reply.body, "another reply than that to step {step}: {shown}");
        }
        let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let detail = |pointer: &str| said.pointer(pointer).and_then(Value::as_str);
        let wanted = expect.code.as_deref().or(code);
        for (wanted, pointer) in [
            (wanted, "/error/details/code"),
            (expect.pointer.as_deref(), "/error/details/pointer"),
            (expect.limit.as_deref(), "/error/details/limit/name"),
        ] {
            ensure!(wanted.is_none() || wanted == detail(pointer), "`{pointer}` is {:?}: {shown}", detail(pointer));
        }
        let code = detail("/error/details/code");
        ensure!(
            expect.code_in.is_empty() || expect.code_in.iter().any(|wanted| Some(wanted.as_str()) == code),
            "the code is {code:?}: {shown}"
        );
        let candidates = said.get("candidates").and_then(Value::as_array);
        if let Some(count) = expect.candidates {
            ensure!(candidates.map(Vec::len) == Some(count), "{:?} candidates: {shown}", candidates.map(Vec::len));
        }
        if let Some(ids) = &expect.ids {
            let wanted: BTreeSet<String> = ids.iter().map(|id| fill(id, names)).collect();
            let found: BTreeSet<String> = candidates
                .into_iter()
                .flatten()
                .filter_map(|found| found.get("candidate_id")?.as_str().map(str::to_owned))
                .collect();
            ensure!(found == wanted, "the candidates are {found:?}");
        }
        for (pointer, value) in &expect.has {
            let value = super::bytes::value(value, names)?;
            ensure!(said.pointer(pointer) == Some(&value), "`{pointer}` is {:?}: {shown}", said.pointer(pointer));
        }
        for pointer in &expect.absent {
            ensure!(said.pointer(pointer).is_none(), "`{pointer}` is there: {shown}");
        }
        Ok(())
    }

    /// Signed by the node, of the shape of a refusal and of no other document, and short.
    fn is_a_refusal(&self, reply: &Reply) -> Result<()> {
        let document = Document::parse(&reply.body, &Limits::OURS).context("a refusal that is no JSON")?;
        let signed = Signed::read(&document).and_then(|signed| signed.verify_with(&self.keys));
        signed.map_err(|error| anyhow::anyhow!("a refusal that the node did not sign: {error}"))?;
        let said = document.root().to_value();
        ensure!(said.pointer("/error/details/type").and_then(Value::as_str) == Some("oap.error"), "no refusal");
        for other in ["candidates", "output", "decision_record", "record", "intent_id"] {
            ensure!(said.get(other).is_none(), "a refusal with `{other}` could be taken for something else");
        }
        ensure!(reply.body.len() <= REFUSAL_BYTES_MAX, "a refusal of {} bytes", reply.body.len());
        Ok(())
    }

    /// Changes one small place of a signed intent after the other; none is answered.
    fn mutate(&mut self, count: usize, names: &Names) -> Result<()> {
        let good: Value = serde_json::from_slice(&self.senders.intent(&Value::Null, names)?)?;
        let mut found = Vec::new();
        places(&good, &Pointer::root(), &mut found);
        let mut connection = Connection::open(self.authority())?;
        for number in 0..count {
            let place = found.get(number % found.len()).context("an empty intent")?;
            let mut changed = good.clone();
            let slot = changed.pointer_mut(place.as_str()).with_context(|| format!("nothing at {place:?}"))?;
            alter(slot, number / found.len());
            let body = changed.to_string().into_bytes();
            let headers = [("Host".to_owned(), self.authority().to_owned())];
            self.messages += 1;
            let reply = connection.exchange(&request("POST", "/oap/intent", &headers, &body))?;
            ensure!(reply.status >= 400, "a change at `{}` is accepted: {changed}", place.as_str());
            self.is_a_refusal(&reply)?;
        }
        Ok(())
    }

    fn publish(&mut self, publish: &Publish, names: &Names) -> Result<()> {
        let mut connection = Connection::open(self.authority())?;
        for number in 0..publish.count {
            let mut names = names.clone();
            names.insert("n", number.to_string());
            names.insert("fresh", format!("{}-{number}", names.get("fresh").cloned().unwrap_or_default()));
            let by = publish.by.as_deref().unwrap_or("issuer");
            let changes = json::json!({"by": by, "set": {"/kind": publish.kind, "/record": publish.record}});
            let body = self.senders.publication(&changes, &names)?;
            let headers = [("Host".to_owned(), self.authority().to_owned())];
            self.messages += 1;
            let reply = connection.exchange(&request("POST", "/oap/records", &headers, &body))?;
            ensure!(reply.status == 200, "a record is refused: {}", String::from_utf8_lossy(&reply.body));
        }
        Ok(())
    }

    /// Asks with every operator and every value for records with every value.
    fn types(&mut self, types: &Types, names: &Names) -> Result<()> {
        for (place, value) in types.values.iter().enumerate() {
            let mut names = names.clone();
            names.insert("fresh", format!("{}-record-{place}", names.get("fresh").cloned().unwrap_or_default()));
            let changes = json::json!({"set": {"/record": types::record(place, value, &names)}});
            let reply = self.exchange("POST", "/oap/records", &[], &self.senders.publication(&changes, &names)?)?;
            ensure!(reply.status == 200, "a record is refused: {}", String::from_utf8_lossy(&reply.body));
        }
        let mut connection = Connection::open(self.authority())?;
        for (number, asked) in types::questions(types, names)?.iter().enumerate() {
            let mut names = names.clone();
            names.insert("fresh", format!("{}-{number}", names.get("fresh").cloned().unwrap_or_default()));
            let headers = [("Host".to_owned(), self.authority().to_owned())];
            let body = self.senders.intent(&asked.changes, &names)?;
            self.messages += 1;
            let reply = connection.exchange(&request("POST", "/oap/intent", &headers, &body))?;
            if reply.status >= 400 {
                self.is_a_refusal(&reply)?;
            }
            types::judge(asked, &reply)?;
        }
        Ok(())
    }

    fn crowd(&mut self, crowd: &Crowd, names: &Names) -> Result<()> {
        let many = |name: &str, changes: &Value, count: usize| -> Result<Vec<Vec<u8>>> {
            let one = |number: usize| {
                let mut names = names.clone();
                names.insert("fresh", format!("{}-{name}-{number}", names.get("fresh").cloned().unwrap_or_default()));
                self.senders.intent(changes, &names)
            };
            (0..count).map(one).collect()
        };
        let (costly, cheap) = (many("costly", &crowd.intent, crowd.count)?, many("cheap", &Value::Null, CHEAP_MAX)?);
        let replies = crowd::crowd(self.authority(), crowd, &costly, &cheap)?;
        self.messages += replies.len();
        let (answered, others): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
        let (late, refused): (Vec<_>, Vec<_>) = others.into_iter().partition(|reply| reply.status == 504);
        late.iter().try_for_each(|reply| self.is_refused_by(&crowd.late, reply))?;
        for reply in &refused {
            self.is_refused_by(&crowd.code, reply)?;
            let said: Value = serde_json::from_slice(&reply.body)?;
            let limit = said.pointer("/error/details/limit/name").and_then(Value::as_str);
            ensure!(reply.status == 429 && limit == Some(crowd.limit.as_str()), "{}, {limit:?}", reply.status);
        }
        let (answered, refused) = (answered.len(), refused.len());
        ensure!(answered >= crowd.answered_min, "{answered} are answered, {refused} refused");
        ensure!(refused >= crowd.refused_min, "{answered} are answered, {refused} refused");
        Ok(())
    }

    /// Stops the node, changes the mode of a file, and looks how it does not start; then puts everything back.
    fn start(&mut self, started: &Start) -> Result<()> {
        self.node.ask_to_end()?;
        self.node.wait()?;
        let file = self.program.data().join(&started.file);
        let before = fs::metadata(&file)?.permissions();
        fs::set_permissions(&file, fs::Permissions::from_mode(u32::from_str_radix(&started.mode, 8)?))?;
        let said_before = self.program.said().len();
        let ended = self.program.refuses_to_start();
        fs::set_permissions(&file, before)?;
        self.node = self.program.serve()?.0;
        let said = self.program.said().get(said_before..).unwrap_or_default().to_owned();
        let code = ended.context("the node starts all the same")?;
        ensure!(code == started.exit, "the exit code is {code}: {said}");
        ensure!(said.contains(&started.says), "it says: {said}");
        Ok(())
    }

    fn exchange(&self, method: &str, path: &str, headers: &[(String, String)], body: &[u8]) -> Result<Reply> {
        let mut all = vec![("Host".to_owned(), self.authority().to_owned())];
        all.extend_from_slice(headers);
        exchange(self.authority(), &request(method, path, &all, body))
    }

    /// Bytes of the node in memory.
    fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.node.pid().as_raw_nonzero()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kibibytes << 10)
    }

    /// Stops the node and looks for what must not be in its log, and for a log that has grown too long.
    pub(crate) fn close(mut self) -> Result<Vec<String>> {
        self.node.ask_to_end()?;
        self.node.wait()?;
        let mut leaks = Vec::new();
        let key: Value = serde_json::from_slice(&fs::read(self.program.data().join("node.key"))?)?;
        let secret = key.get("d").and_then(Value::as_str).context("the node's key has no secret")?;
        let said = self.program.said();
        if said.contains(secret) {
            leaks.push("the node's key stands in its log".to_owned());
        }
        if said.len() as u64 > LOG_BYTES_MAX {
            leaks.push(format!("the log has {} bytes", said.len()));
        }
        if said.contains("panicked") {
            let line = said.lines().find(|line| line.contains("panicked")).unwrap_or_default();
            leaks.push(format!("the log tells of a panic: {line}"));
        }
        if said.contains(CANARY) || !holding(self.program.data(), CANARY.as_bytes())?.is_empty() {
            leaks.push("a credential of an agent's tool stands in the log or in the data folder".to_owned());
        }
        for path in holding(self.program.data(), secret.as_bytes())? {
            if !path.ends_with("node.key") {
                leaks.push(format!("the node's key stands in {}", path.display()));
            }
        }
        Ok(leaks)
    }
}

/// The document of the node at an address.
fn keys(authority: &str) -> Result<DidDocument> {
    let request = format!("GET /.well-known/did.json HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let document = Document::parse(&exchange(authority, request.as_bytes())?.body, &Limits::OURS)?;
    let did = Did::parse(document.root().get("id").and_then(json::Node::as_str).context("the node has no name")?)?;
    DidDocument::read(document.root(), &did).map_err(|error| anyhow::anyhow!("{error}"))
}

/// A text may take values from earlier replies: `{reply 0 /next_cursor}`.
fn with_replies(text: &str, before: &Before) -> Result<String> {
    let Some((start, rest)) = text.split_once("{reply ") else { return Ok(text.to_owned()) };
    let (named, end) = rest.split_once('}').context("a brace is missing")?;
    let (step, pointer) = named.split_once(' ').context("which value?")?;
    let (_, reply) = before.0.get(step.parse::<usize>()?).context("no such step")?;
    let reply: Value = serde_json::from_slice(&reply.body)?;
    let value = reply.pointer(pointer).and_then(Value::as_str);
    let value = value.with_context(|| format!("no `{pointer}` in {reply}"))?;
    Ok(format!("{start}{value}{}", with_replies(end, before)?))
}

/// Files below a folder that hold some bytes.
fn holding(folder: &std::path::Path, wanted: &[u8]) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(holding(&path, wanted)?);
        } else if fs::read(&path)?.windows(wanted.len()).any(|window| window == wanted) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The bytes of a request; what the caller says of a header counts, an empty value leaves it out.
pub(super) fn request(method: &str, path: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let said = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        head += &format!("{name}: {value}\r\n");
    }
    if !said("Content-Type") && method != "GET" {
        head += "Content-Type: application/oap+json\r\n";
    }
    if !said("Content-Length") && !said("Transfer-Encoding") && (!body.is_empty() || method != "GET") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "\r\n";
    [head.as_bytes(), body].concat()
}

/// Makes another value of one, each turn another.
fn alter(slot: &mut Value, turn: usize) {
    *slot = match &*slot {
        Value::String(text) => {
            let mut letters: Vec<char> = text.chars().collect();
            let at = turn.wrapping_mul(7) % letters.len().max(1);
            match letters.get_mut(at) {
                Some(letter) => *letter = if *letter == 'A' { 'B' } else { 'A' },
                None => letters.push('A'),
            }
            Value::String(letters.into_iter().collect())
        }
        Value::Bool(truth) => Value::Bool(!*truth),
        other => Value::String(format!("{other}{turn}")),
    };
}

/// Verdicts by row.
pub(crate) fn rows(verdicts: &[Verdict]) -> std::collections::BTreeMap<(u32, u32), Vec<&Verdict>> {
    let mut rows = std::collections::BTreeMap::<_, Vec<_>>::new();
    for verdict in verdicts {
        rows.entry(case::order(&verdict.row)).or_default().push(verdict);
    }
    rows
}
