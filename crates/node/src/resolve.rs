//! RFC 0020 A.3: an intent in, a signed answer out.
//!
//! | Rule | Where |
//! |---|---|
//! | R1 receive | `receive` |
//! | R2 enumerate | the crate `index` |
//! | R3 filter, R4 project, R5 rank | `select`, and the crate `aql` for each candidate |
//! | R6 sign | here |

mod receive;
mod select;
mod pages;

pub(crate) use pages::Pages;
pub(crate) use receive::{Accepted, Received, reused, verify};
pub(crate) use select::{Judged, Market, candidate, evaluator, judge};

use crate::chance;
use crate::collection::Collection;
use crate::evidence::Moment;
use crate::gate::{Own, Viewer};
use crate::node::{Node, Purpose};
use crate::refusal::Error;
use crate::replies::{self, Known};
use aql::{Category, Constraints, Intent, Resolution, Responder};
use json::{Document, Pointer, json};
use pages::Walk;
use std::sync::Arc;
use tracing::debug_span;

/// Candidates on one page of an answer.
pub const PAGE: usize = 100;
/// Rejected candidates that an answer names.
pub const REJECTED: usize = 20;
/// Bytes of one page, as far as one candidate lets it.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Candidates of an answer whose places are looked for when somebody asks about one.
const RANKS_TOLD: usize = 1_000;

/// A page of an answer before it is written.
struct Page {
    matches: Vec<Judged>,
    rejections: Vec<Judged>,
    /// Candidates of the pages before.
    before: usize,
    more: bool,
}

impl Node {
    /// Answers a signed intent, or the next page of it.
    pub async fn answer(self: &Arc<Self>, bytes: &[u8], cursor: Option<&str>) -> Result<Vec<u8>, Error> {
        self.answer_received(self.receive(bytes)?, cursor).await
    }

    /// Answers an intent whose cheap checks have passed.
    pub(crate) async fn answer_received(
        self: &Arc<Self>,
        received: Received,
        cursor: Option<&str>,
    ) -> Result<Vec<u8>, Error> {
        let keys = self.issuer_keys(&received).await?;
        let cursor = cursor.map(str::to_owned);
        let node = Arc::clone(self);
        self.work(move || {
            let accepted = received.verify(keys.as_deref())?;
            node.answer_once(&accepted, cursor.as_deref())
        })
        .await
    }

    /// The same bytes again are the same answer; other bytes under the same name are refused.
    fn answer_once(&self, accepted: &Accepted, cursor: Option<&str>) -> Result<Vec<u8>, Error> {
        if cursor == Some("") {
            return Err(pages::unknown().into());
        }
        let (intent, now) = (&accepted.intent, self.clock.millis());
        let key = replies::key(&intent.issuer_did, &intent.intent_id, cursor.unwrap_or_default());
        match self.replies.claim(key, accepted.digest, now)? {
            Known::Answered(answer) => return Ok(answer),
            Known::Other => return Err(reused().into()),
            Known::New => {}
        }
        let answered = self.resolve(accepted, cursor, key).and_then(|answer| {
            let _keep = debug_span!("keep").entered();
            self.replies.keep(key, accepted.digest, expiry(intent), &answer, now)?;
            Ok(answer)
        });
        if answered.is_err() {
            self.replies.give_up(key);
        }
        answered
    }

    fn resolve(&self, accepted: &Accepted, cursor: Option<&str>, key: replies::Key) -> Result<Vec<u8>, Error> {
        let now = self.clock.millis();
        let mut walk = match cursor {
            Some(cursor) => {
                self.pages.check(cursor, accepted.digest, now)?;
                self.charge(&accepted.issuer, Purpose::Message)?;
                self.pages.take(cursor, accepted.digest, now)?
            }
            None => {
                self.charge(&accepted.issuer, Purpose::Message)?;
                debug_span!("enumerate").in_scope(|| self.walk(accepted))?
            }
        };
        let (page, next, answer) = self.bounded_page(&accepted.intent, &mut walk, key)?;
        if let Some(next) = next {
            walk.returned += page.matches.len();
            self.pages.keep(&next, walk, now);
        }
        Ok(answer)
    }

    /// The beginning of an answer: everybody who may be in it, as of now.
    fn walk(&self, accepted: &Accepted) -> Result<Walk, Error> {
        let intent = &accepted.intent;
        self.with_market(accepted, |market| {
            Ok(Walk {
                digest: accepted.digest,
                moment: market.moment,
                viewer: accepted.viewer.clone(),
                queue: market.queue(intent, self.over_budget)?,
                returned: 0,
                expires: expiry(intent),
            })
        })
    }

    /// A page within its bounds: one that came out too long is made again with fewer candidates.
    fn bounded_page(
        &self,
        intent: &Intent,
        walk: &mut Walk,
        key: replies::Key,
    ) -> Result<(Page, Option<String>, Vec<u8>), Error> {
        let mut most = PAGE;
        loop {
            let place = walk.queue.place();
            let page = debug_span!("judge").in_scope(|| self.page(intent, walk, most))?;
            let next = if page.more { Some(chance::name()?) } else { None };
            let answer = debug_span!("sign").in_scope(|| self.write(intent, &page, key, next.as_deref()))?;
            let count = page.matches.len();
            if answer.len() <= PAGE_BYTES || count <= 1 {
                return Ok((page, next, answer));
            }
            most = (count * PAGE_BYTES / answer.len()).clamp(1, count - 1);
            walk.queue.return_to(place);
        }
    }

    /// Looks at the market as it is now, with the eyes of whoever asks: nothing is published meanwhile.
    pub(crate) fn with_market<T>(
        &self,
        accepted: &Accepted,
        ask: impl FnOnce(&Market<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.look(&accepted.intent, None, &accepted.viewer, ask)
    }

    /// Looks at the market again, as of the moment that an answer began with.
    fn with_market_at<T>(
        &self,
        intent: &Intent,
        moment: Moment,
        ask: impl FnOnce(&Market<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // The queue remembers the issuer's own views; what is published to him meanwhile is none of this answer.
        self.look(intent, Some(moment), &Viewer::Public, ask)
    }

    fn look<T>(
        &self,
        intent: &Intent,
        moment: Option<Moment>,
        viewer: &Viewer,
        ask: impl FnOnce(&Market<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let collection = Collection::of(intent.category).ok_or_else(|| Error::fault("a feed has no candidates"))?;
        let indexes = self.catalog.indexes()?;
        let evidence = self.catalog.evidence()?;
        let also = (intent.category == Category::Delegation).then_some(&self.delegates);
        let moment = moment.unwrap_or_else(|| Moment { now: self.clock.now(), sequence: indexes.applied() });
        if !evidence.reaches(moment) {
            return Err(pages::unknown().into());
        }
        let own = Own::of(&indexes, &self.store, collection, viewer)?;
        ask(&Market { index: indexes.of(collection), evidence: &evidence, collection, also, moment, own })
    }

    /// Takes candidates in the order of the answer until the page is full, `most` of them.
    fn page(&self, intent: &Intent, walk: &mut Walk, most: usize) -> Result<Page, Error> {
        let before = walk.returned;
        let room = intent.room().saturating_sub(before);
        let wanted = room.min(most);
        // A small market fits on one page, with all of its rejected candidates, unless its records are long.
        let whole = walk.queue.small && most == PAGE;
        // One more than the page holds tells whether there is another page.
        let sought = if whole { usize::MAX } else { wanted.saturating_add(usize::from(room > wanted)) };
        let mut page = Page { matches: Vec::new(), rejections: Vec::new(), before, more: false };
        let mut evaluator = evaluator();
        while page.matches.len() < sought && !walk.queue.is_done() {
            let asked = (sought - page.matches.len()).min(PAGE + 1);
            let (entries, signals) = self.with_market_at(intent, walk.moment, |market| {
                market.recall(&self.store, &mut walk.queue)?;
                market.sort(&mut walk.queue, asked);
                let entries = walk.queue.next(asked);
                let signals = market.signals_of(&walk.queue, &entries);
                Ok((entries, signals))
            })?;
            for judged in
                judge(&self.store, (intent, &walk.viewer), &entries, signals, self.over_budget, &mut evaluator)?
            {
                if !self.is_member(intent, &judged, &mut evaluator)? {
                    continue;
                }
                if judged.judgement.is_match(self.over_budget) {
                    page.matches.push(judged);
                } else if walk.queue.small || judged.judgement.failing.is_empty() {
                    page.rejections.push(judged);
                }
            }
        }
        if page.matches.len() > wanted {
            page.more = !whole && room > wanted;
            walk.queue.give_back(usize::from(page.more));
            page.matches.truncate(wanted);
        }
        self.add_refused(intent, walk, &mut page, &mut evaluator)?;
        Ok(page)
    }

    /// The place of a candidate in the answer, when it is among the first thousand.
    pub(crate) fn rank_of(&self, accepted: &Accepted, id: &str) -> Result<Option<usize>, Error> {
        let (intent, mut walk) = (&accepted.intent, self.walk(accepted)?);
        while walk.returned < RANKS_TOLD {
            let page = self.page(intent, &mut walk, PAGE)?;
            if let Some(position) = page.matches.iter().position(|judged| judged.candidate.id == id) {
                return Ok(Some(page.before + position + 1));
            }
            if !page.more {
                break;
            }
            walk.returned += page.matches.len();
        }
        Ok(None)
    }

    /// Whether a candidate is of the category at all; the index may have been unsure.
    pub(crate) fn is_member(
        &self,
        intent: &Intent,
        judged: &Judged,
        evaluator: &mut aql::Evaluator,
    ) -> Result<bool, Error> {
        let demanding = intent.category == Category::Delegation;
        Ok(!demanding || evaluator.evaluate(&self.delegates, judged.candidate.record())?)
    }

    /// Names those that satisfy the constraints and fail cost or quality; by id, so that every run names the same.
    fn add_refused(
        &self,
        intent: &Intent,
        walk: &mut Walk,
        page: &mut Page,
        evaluator: &mut aql::Evaluator,
    ) -> Result<(), Error> {
        let (refused, signals) = self.with_market_at(intent, walk.moment, |market| {
            market.recall(&self.store, &mut walk.queue)?;
            let refused = walk.queue.refused();
            let signals = market.signals_of(&walk.queue, &refused);
            Ok((refused, signals))
        })?;
        for (few, signals) in refused.chunks(REJECTED).zip(signals.chunks(REJECTED)) {
            if page.rejections.len() >= REJECTED && !walk.queue.small {
                break;
            }
            for judged in
                judge(&self.store, (intent, &walk.viewer), few, signals.to_vec(), self.over_budget, evaluator)?
            {
                let told = walk.queue.small || judged.judgement.failing.is_empty();
                if told && self.is_member(intent, &judged, evaluator)? {
                    page.rejections.push(judged);
                }
            }
        }
        page.rejections.sort_by(|left, right| left.candidate.id.cmp(&right.candidate.id));
        page.rejections.truncate(REJECTED);
        Ok(())
    }

    /// R6: the answer is written once, signed as those bytes and sent as those bytes.
    fn write(&self, intent: &Intent, page: &Page, key: replies::Key, next: Option<&str>) -> Result<Vec<u8>, Error> {
        let ranks = page.before + 1..;
        let resolution = Resolution {
            matches: page.matches.iter().zip(ranks).map(|(judged, rank)| judged.to_match(intent, rank)).collect(),
            rejections: page.rejections.iter().map(Judged::to_rejection).collect(),
            left_out: 0,
        };
        let responder = Responder {
            response_id: &response_id(key)?,
            resolver_did: self.identity.did().as_str(),
            evaluated_at: self.clock.now(),
            rejected_max: REJECTED,
            next_cursor: next,
        };
        Ok(self.identity.sign_last(responder.write(intent, &resolution, None)?))
    }

    /// One decision record of an answer that was given, with a signature of its own (§5).
    pub fn decision(&self, decision_id: &str) -> Result<Vec<u8>, Error> {
        let unknown = || {
            crate::refusal::Refusal::new(
                crate::refusal::Class::NotFound,
                "decision_not_found",
                "no answer with this decision is kept; answers are kept until their intents expire",
            )
        };
        let (response, _) = decision_id.split_once('#').ok_or_else(unknown)?;
        let key = key_of(response).ok_or_else(unknown)?;
        let answer = self.replies.answer(key)?.ok_or_else(unknown)?;
        let answer = Document::parse(&answer, &json::Limits::OURS).map_err(Error::fault)?;
        let root = answer.root();
        let text = |name: &str| root.get(name).and_then(json::Node::as_str);
        if text("response_id") != Some(response) {
            return Err(unknown().into());
        }
        let lists = ["candidates", "rejected"].into_iter().filter_map(|list| root.get(list));
        let named = |entry: &json::Node<'_>| {
            let id = entry.get("decision_record").and_then(|record| record.get("decision_id"));
            id.and_then(json::Node::as_str) == Some(decision_id)
        };
        let entry = lists.flat_map(json::Node::elements).find(named).ok_or_else(unknown)?;
        let member = |name: &str| entry.get(name).map(json::Node::to_value);
        Ok(self.envelope(
            decision_id,
            json!({
                "type": "oap.decision",
                "candidate_id": member("candidate_id"),
                "decision_record": member("decision_record"),
                "intent_id": text("intent_id"),
                "response_id": response,
                "resolver_did": self.identity.did().as_str(),
            }),
            self.clock.millis(),
        ))
    }
}

/// What a candidate for a delegated task must say of itself.
pub(crate) fn delegates() -> Result<Constraints, Error> {
    let leaf = json!({"path": "/delegation/supported", "operator": "eq", "value": true});
    let document = Document::of(&leaf).map_err(Error::fault)?;
    Ok(Constraints::read(document.root(), Pointer::root(), &aql::Limits::STANDARD)?)
}

/// Until when an intent is remembered, in milliseconds since 1970.
fn expiry(intent: &Intent) -> i64 {
    (intent.validity.to().seconds() + aql::Limits::STANDARD.skew_seconds + 1).saturating_mul(1_000)
}

const RESPONSE: &str = "urn:oap:intent-response:";

/// The name of an answer leads back to it, and nobody can guess it.
fn response_id(key: replies::Key) -> Result<String, Error> {
    Ok(format!("{RESPONSE}{}.{}", trust::encoding::encode(&key), chance::name()?))
}

fn key_of(response_id: &str) -> Option<replies::Key> {
    let (key, _) = response_id.strip_prefix(RESPONSE)?.split_once('.')?;
    trust::encoding::decode_url(key)?.try_into().ok()
}
