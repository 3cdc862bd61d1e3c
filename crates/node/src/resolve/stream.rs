//! RFC 0020 §3.7: the asynchronous form of an answer: an acknowledgement, each candidate by itself, and the end.
//!
//! R2 to R5 are those of the other form: the pages of the answer are made and kept as always, and each entry of a page
//! becomes an IntentResponse of its own with a signature of its own. So a stream that broke off goes on where it
//! stopped, with the same bytes, as long as the pages are kept; and whoever reads slowly holds up nobody.
//!
//! RFC 0024 §3.5: each part says which version it is in and whether that one goes, from the first to the last.

use super::expiry;
use super::receive::{Accepted, check_category};
use crate::clock::instant;
use crate::invoke::ACTION;
use crate::lanes::Lane;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use crate::versions::{self, Notice};
use json::{Document, Limits, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::Hash;
use trust::Did;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place in the stream, from 0.
    pub seq: u64,
    /// What it is.
    pub event: &'static str,
    /// The signed document.
    pub bytes: Vec<u8>,
}

/// An answer that is sent candidate by candidate.
#[derive(Debug)]
pub struct Stream {
    node: Arc<Node>,
    accepted: Arc<Accepted>,
    lane: Lane,
    /// The last event that the reader has.
    last: Option<u64>,
    seq: u64,
    ready: VecDeque<Part>,
    step: Step,
    candidates: u64,
    rejected: u64,
    /// The hashes of the pages so far.
    pages: Vec<u8>,
    evaluated_at: String,
}

#[derive(Clone, Debug)]
enum Step {
    Acknowledge,
    Page(Option<String>),
    Complete,
    Done,
}

impl Node {
    /// Answers a signed intent as a stream, after the event that the reader has.
    pub async fn stream(self: &Arc<Self>, bytes: &[u8], last: Option<&str>) -> Result<Stream, Error> {
        self.stream_for(None, bytes, last).await
    }

    /// The same for whoever proved to have sent the request.
    pub async fn stream_for(
        self: &Arc<Self>,
        caller: Option<&Did>,
        bytes: &[u8],
        last: Option<&str>,
    ) -> Result<Stream, Error> {
        let last = last.map(feed::cursor::read).transpose().map_err(|_| {
            let detail = "`Last-Event-ID` is a whole number, as an event of this stream carries it";
            Refusal::new(Class::InvalidInput, "invalid_cursor", detail)
        })?;
        let received = self.receive(bytes)?.brought_by(caller);
        check_category(&received.intent)?;
        let keys = self.issuer_keys(&received).await?;
        let delegation = self.delegation(&received, keys.as_deref()).await?;
        let lane = Lane::of(&received.intent.constraints);
        let accepted = self.work(move || received.verify(keys.as_deref(), delegation)).await?;
        Ok(Stream {
            node: Arc::clone(self),
            accepted: Arc::new(accepted),
            lane,
            last,
            seq: 0,
            ready: VecDeque::new(),
            step: Step::Acknowledge,
            candidates: 0,
            rejected: 0,
            pages: Vec::new(),
            evaluated_at: String::new(),
        })
    }
}

impl Stream {
    /// What the headers before the first event say about the version of the answer; nothing when it stays.
    pub fn notice(&self) -> Option<Notice> {
        let warning = Document::built(self.accepted.exchange.as_ref()?.warning.as_ref()?)?;
        self.node.versions.notice(warning.root())
    }

    /// Makes the first page, so that whoever is refused hears that and nothing else.
    pub async fn begin(&mut self) -> Result<(), Error> {
        if matches!(self.step, Step::Acknowledge) {
            self.acknowledge();
            self.read_page(None).await?;
        }
        Ok(())
    }

    /// The next event; nothing after the last.
    pub async fn next(&mut self) -> Result<Option<Part>, Error> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(part));
            }
            match self.step.clone() {
                Step::Acknowledge => self.acknowledge(),
                Step::Page(cursor) => self.read_page(cursor).await?,
                Step::Complete => {
                    let document = self.of_version(self.completion());
                    self.add("oap.complete", |_| document);
                    self.step = Step::Done;
                }
                Step::Done => return Ok(None),
            }
        }
    }

    fn acknowledge(&mut self) {
        let document = self.of_version(self.acknowledgement());
        self.add("oap.intent.ack", |_| document);
        self.step = Step::Page(None);
    }

    /// A part that belongs to no page, with what was agreed about versions.
    fn of_version(&self, mut part: Value) -> Value {
        if let Some(exchange) = &self.accepted.exchange {
            versions::record(exchange, &mut part);
        }
        part
    }

    /// Signs an event, unless the reader has it.
    fn add(&mut self, event: &'static str, document: impl FnOnce(&Node) -> Value) {
        let seq = self.seq;
        self.seq += 1;
        if self.last.is_none_or(|last| seq > last) {
            let bytes = self.node.identity.sign(document(&self.node));
            self.ready.push_back(Part { seq, event, bytes });
        }
    }

    async fn read_page(&mut self, cursor: Option<String>) -> Result<(), Error> {
        let page = self.page(cursor).await?;
        self.pages.extend(Hash::of(&page).0);
        let page = Document::parse(&page, &Limits::OURS).map_err(Error::fault)?;
        let root = page.root();
        let text = |name: &str| root.get(name).and_then(json::Node::as_str).unwrap_or_default().to_owned();
        let (response_id, evaluated_at) = (text("response_id"), text("evaluated_at"));
        for (list, event) in [("candidates", "oap.intent.candidate"), ("rejected", "oap.intent.rejected")] {
            for (number, entry) in (1..).zip(root.get(list).into_iter().flat_map(json::Node::elements)) {
                match list {
                    "candidates" => self.candidates += 1,
                    _ => self.rejected += 1,
                }
                let intent_id = self.accepted.intent.intent_id.clone();
                self.add(event, |node| {
                    let mut response = json!({
                        "candidates": [],
                        "evaluated_at": evaluated_at,
                        "intent_id": intent_id,
                        "resolver_did": node.identity.did().as_str(),
                        "resolver_role": "provider",
                        "response_id": format!("{response_id}/{list}/{number}"),
                    });
                    if let Some(members) = response.as_object_mut() {
                        members.insert(list.to_owned(), json!([entry.to_value()]));
                        // What was agreed about versions holds for each part.
                        for name in ["schema_version", "deprecation_warning"] {
                            members.extend(root.get(name).map(|said| (name.to_owned(), said.to_value())));
                        }
                    }
                    response
                });
            }
        }
        self.evaluated_at = evaluated_at;
        self.step = match root.get("next_cursor").and_then(json::Node::as_str) {
            Some(next) => Step::Page(Some(next.to_owned())),
            None => Step::Complete,
        };
        Ok(())
    }

    /// A page of the answer, made now or kept; whoever asks too fast waits a moment.
    async fn page(&self, cursor: Option<String>) -> Result<Vec<u8>, Error> {
        loop {
            let (node, accepted, cursor) = (Arc::clone(&self.node), Arc::clone(&self.accepted), cursor.clone());
            let answered = self.node.work_in(self.lane, move || node.answer_once(&accepted, cursor.as_deref())).await;
            match answered {
                Err(Error::Refusal(refusal)) if refusal.class == Class::RateLimited && !self.pages.is_empty() => {
                    if self.node.clock.millis() > expiry(&self.accepted.intent) {
                        return Err(Error::Refusal(refusal));
                    }
                    tokio::time::sleep(Duration::from_millis(refusal.retry_after_ms.unwrap_or(1_000))).await;
                }
                answered => return answered,
            }
        }
    }

    fn name(&self) -> String {
        let intent = &self.accepted.intent;
        trust::Digest::of(format!("{} {}", intent.issuer_did, intent.intent_id).as_bytes()).to_string()
    }

    fn acknowledgement(&self) -> Value {
        json!({
            "oap_version": "1.0",
            "request_id": self.accepted.intent.intent_id,
            "response_id": format!("urn:rialto:response:{}", self.name()),
            "timestamp": instant(self.node.clock.millis()).to_string(),
            "status": "accepted",
            "output": {
                "type": "oap.intent.ack",
                "intent_id": self.accepted.intent.intent_id,
                "resolver_did": self.node.identity.did().as_str(),
            },
        })
    }

    fn completion(&self) -> Value {
        let (intent, node) = (&self.accepted.intent, &self.node);
        let receipt = node.identity.sign_receipt(json!({
            "receipt_id": format!("urn:oap:receipt:{}", self.name()),
            "type": "invocation",
            "timestamp": self.evaluated_at,
            "principal_did": intent.issuer_did,
            "agent_did": intent.agent_did.as_ref().unwrap_or(&intent.issuer_did),
            "tool_did": node.identity.did().as_str(),
            "action_id": ACTION,
            "input_hash": format!("sha256:{}", Hash::of(&json::canonical(self.accepted.document.root()))),
            "output_hash": format!("sha256:{}", Hash::of(&self.pages)),
            "previous_receipt_hash": "genesis",
        }));
        json!({
            "oap_version": "1.0",
            "request_id": intent.intent_id,
            "response_id": format!("urn:rialto:response:{}#complete", self.name()),
            "timestamp": self.evaluated_at,
            "status": "ok",
            "output": {
                "type": "oap.complete",
                "intent_id": intent.intent_id,
                "candidates": self.candidates,
                "rejected": self.rejected,
                "receipt": receipt,
                "resolver_did": node.identity.did().as_str(),
            },
        })
    }
}
