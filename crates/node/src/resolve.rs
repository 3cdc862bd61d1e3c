//! RFC 0020 A.3: an intent in, a signed answer out.
//!
//! | Rule | Where |
//! |---|---|
//! | R1 receive | `receive` |
//! | R2 enumerate | the crate `index` |
//! | R3 filter, R4 project, R5 rank | `select`, and the crate `aql` for each candidate |
//! | R6 sign | here; `stream` signs each candidate by itself |

mod receive;
mod select;
mod spread;
mod pages;
mod stream;
mod foremost;

pub use foremost::Foremost;
pub(crate) use pages::Pages;
pub(crate) use receive::{Accepted, Received, reused, verify};
pub(crate) use select::{Judged, Market, candidate, evaluator};
pub use stream::{Part, Stream};

use crate::chance;
use crate::collection::Collection;
use crate::evidence::Moment;
use crate::gate::{Own, Viewer};
use crate::lanes::Lane;
use crate::node::Node;
use crate::policy::{self, Verdict};
use crate::procure;
use crate::quota::Purpose;
use crate::refusal::Error;
use crate::replies::{self, Known};
use crate::versions;
use aql::{Category, Constraints, Decision, Intent, Recorded, Resolution, Responder};
use json::{Document, Pointer, Value, json};
use pages::Walk;
use std::sync::Arc;
use tracing::debug_span;
use trust::Did;

/// Candidates on one page of an answer.
pub const PAGE: usize = 100;
/// Rejected candidates that an answer names.
pub const REJECTED: usize = 20;
/// The same where there are many candidates: each is loaded to say why, and an explanation tells of any other.
pub(crate) const REJECTED_OF_MANY: usize = 5;
/// Bytes of one page, as far as one candidate lets it.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Candidates of an answer whose places are looked for when somebody asks about one.
const RANKS_TOLD: usize = 1_000;

/// A page of an answer before it is written.
struct Page {
    matches: Vec<Decided>,
    rejections: Vec<Decided>,
    /// Candidates of the pages before.
    before: usize,
    more: bool,
}

/// A candidate after the policy stack, where its category has one.
pub(crate) struct Decided {
    pub(crate) judged: Judged,
    pub(crate) verdict: Option<Verdict>,
    /// The candidate of the same owner that it repeats, and comes after the others for that.
    pub(crate) repeats: Option<String>,
}

/// A page as it is sent, and the policy decisions that it names.
struct Written {
    response_id: String,
    answer: Vec<u8>,
    policies: Vec<Value>,
}

impl Node {
    /// Answers a signed intent, or the next page of it.
    pub async fn answer(self: &Arc<Self>, bytes: &[u8], cursor: Option<&str>) -> Result<Vec<u8>, Error> {
        let refused = match self.receive(bytes) {
            Ok(received) => return self.answer_received(received, cursor).await,
            Err(refused) => refused,
        };
        match procure::recognized(bytes) {
            Some(document) => self.procure(bytes, document, cursor).await,
            None => Err(refused),
        }
    }

    /// Answers an intent that somebody sent who is proved: signed, or his own.
    pub(crate) async fn search(
        self: &Arc<Self>,
        bytes: &[u8],
        cursor: Option<&str>,
        sender: Option<&Did>,
    ) -> Result<Vec<u8>, Error> {
        self.answer_received(self.receive_from(bytes, sender)?, cursor).await
    }

    /// Answers an intent whose cheap checks have passed.
    pub(crate) async fn answer_received(
        self: &Arc<Self>,
        received: Received,
        cursor: Option<&str>,
    ) -> Result<Vec<u8>, Error> {
        let form = received.form;
        let answered = async {
            receive::check_category(&received.intent)?;
            let keys = self.issuer_keys(&received).await?;
            let delegation = self.delegation(&received, keys.as_deref()).await?;
            let cursor = cursor.map(str::to_owned);
            let (node, lane) = (Arc::clone(self), Lane::of(&received.intent.constraints));
            self.work_in(lane, move || {
                let accepted = received.verify(keys.as_deref(), delegation)?;
                node.answer_once(&accepted, cursor.as_deref())
            })
            .await
        };
        answered.await.map_err(|error| versions::beneath(form, error))
    }

    /// The same bytes again are the same answer; other bytes under the same name are refused.
    pub(crate) fn answer_once(&self, accepted: &Accepted, cursor: Option<&str>) -> Result<Vec<u8>, Error> {
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
                self.charge_question(accepted)?;
                if let Some(chain) = &accepted.delegation {
                    self.tokens.spend(chain, now)?;
                }
                self.count(accepted);
                debug_span!("enumerate").in_scope(|| self.walk(accepted))?
            }
        };
        let (page, next, written) = self.bounded_page(accepted, &mut walk, key)?;
        if let Some(next) = next {
            walk.returned += page.matches.len();
            self.pages.keep(&next, walk, now);
        }
        // What an answer names is there before the answer is.
        if !written.policies.is_empty() {
            let policies = json::canonical_value(&Value::from(written.policies));
            let (key, expires) = (policy_key(&written.response_id), expiry(&accepted.intent));
            self.replies.keep(key, accepted.digest, expires, &policies, now)?;
        }
        self.meter(accepted, &page.matches, key)?;
        Ok(written.answer)
    }

    /// Counts an intent for whoever plans the end of its version.
    pub(crate) fn count(&self, accepted: &Accepted) {
        let (issuer, now) = (Some(accepted.issuer.as_str()), self.clock.millis());
        self.versions.count(accepted.schema, accepted.exchange.as_ref(), issuer, now);
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
        accepted: &Accepted,
        walk: &mut Walk,
        key: replies::Key,
    ) -> Result<(Page, Option<String>, Written), Error> {
        let mut most = PAGE;
        loop {
            let place = walk.queue.place();
            let page = debug_span!("judge").in_scope(|| self.page(accepted, walk, most))?;
            let next = if page.more { Some(chance::name()?) } else { None };
            let written = debug_span!("sign").in_scope(|| self.write(accepted, &page, key, next.as_deref()))?;
            let (count, bytes) = (page.matches.len(), written.answer.len());
            if bytes <= PAGE_BYTES || count <= 1 {
                return Ok((page, next, written));
            }
            most = (count * PAGE_BYTES / bytes).clamp(1, count - 1);
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
    fn page(&self, accepted: &Accepted, walk: &mut Walk, most: usize) -> Result<Page, Error> {
        let intent = &accepted.intent;
        let before = walk.returned;
        let room = intent.room().saturating_sub(before);
        let wanted = room.min(most);
        // A small market fits on one page, with all of its rejected candidates, unless its records are long.
        let whole = walk.queue.small && most == PAGE;
        // One more than the page holds tells whether there is another page.
        let sought = if whole { usize::MAX } else { wanted.saturating_add(usize::from(room > wanted)) };
        let mut page = Page { matches: Vec::new(), rejections: Vec::new(), before, more: false };
        let mut evaluator = evaluator();
        let (mut looked_at, mut asked) = (0, 0);
        let mut last = None;
        while page.matches.len() < sought && !walk.queue.is_done() {
            asked = enough(sought - page.matches.len(), page.matches.len(), looked_at, 2 * asked);
            let (drawn, entries, signals) = self.with_market_at(intent, walk.moment, |market| {
                market.recall(&self.store, &mut walk.queue)?;
                let drawn = market.draw(&mut walk.queue, asked);
                let entries: Vec<select::Entry> = drawn.iter().map(|drawn| drawn.entry).collect();
                let signals = market.signals_of(&walk.queue, &entries);
                Ok((drawn, entries, signals))
            })?;
            looked_at += entries.len();
            let candidates = self.load(&walk.viewer, &entries, signals)?;
            let mut drawn = candidates.into_iter().zip(drawn);
            while let Some((candidate, mut drawn_one)) = drawn.next() {
                if page.matches.len() == sought {
                    walk.queue.give_back(std::iter::once(drawn_one).chain(drawn.map(|(_, drawn)| drawn)));
                    break;
                }
                let judged = self.judge(intent, candidate, &mut evaluator)?;
                if !self.is_member(intent, &judged, &mut evaluator)? {
                    continue;
                }
                let mut decided = self.decide(accepted, judged);
                if decided.judged.judgement.is_match(self.over_budget) {
                    if walk.queue.places(&mut drawn_one, &decided.judged.candidate.id) {
                        decided.repeats.clone_from(&drawn_one.repeats);
                        page.matches.push(decided);
                        last = Some(drawn_one);
                    }
                } else if walk.queue.small || decided.judged.judgement.failing.is_empty() {
                    page.rejections.push(decided);
                }
            }
        }
        if page.matches.len() > wanted {
            page.more = !whole && room > wanted;
            let one_more = page.matches.last().map(|decided| &decided.judged.candidate.id);
            if let Some((last, id)) = last.zip(one_more).filter(|_| page.more) {
                walk.queue.give_back_placed(last, id);
            }
            page.matches.truncate(wanted);
        }
        self.add_refused(intent, walk, &mut page, &mut evaluator)?;
        Ok(page)
    }

    /// Whether anybody at all is in the answer.
    pub(crate) fn has_matches(&self, accepted: &Accepted) -> Result<bool, Error> {
        let mut walk = self.walk(accepted)?;
        Ok(!self.page(accepted, &mut walk, 1)?.matches.is_empty())
    }

    /// Asks the policy stack about a candidate that would be in the answer; what it blocks is not.
    pub(crate) fn decide(&self, accepted: &Accepted, mut judged: Judged) -> Decided {
        if !judged.judgement.is_match(self.over_budget) {
            return Decided { judged, verdict: None, repeats: None };
        }
        let record = judged.candidate.record();
        let verdict = policy::decide(record, &accepted.intent, accepted.delegation.as_ref(), &self.rules);
        if let Some(verdict) = verdict.as_ref().filter(|verdict| verdict.blocks()) {
            judged.judgement.block(verdict.explanation());
        }
        Decided { judged, verdict, repeats: None }
    }

    /// The place of a candidate in the answer, when it is among the first thousand, and whom it repeats.
    pub(crate) fn rank_of(&self, accepted: &Accepted, id: &str) -> Result<Option<(usize, Option<String>)>, Error> {
        let mut walk = self.walk(accepted)?;
        while walk.returned < RANKS_TOLD {
            let page = self.page(accepted, &mut walk, PAGE)?;
            let named = |(_, decided): &(usize, &Decided)| decided.judged.candidate.id == id;
            if let Some((rank, decided)) = (page.before + 1..).zip(&page.matches).find(named) {
                return Ok(Some((rank, decided.repeats.clone())));
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

    /// Names those that satisfy the constraints and fail cost or quality; by digests of ids, so that every node names the same.
    fn add_refused(
        &self,
        intent: &Intent,
        walk: &mut Walk,
        page: &mut Page,
        evaluator: &mut aql::Evaluator,
    ) -> Result<(), Error> {
        let most = if walk.queue.small { REJECTED } else { REJECTED_OF_MANY };
        let (known, refused, signals) = self.with_market_at(intent, walk.moment, |market| {
            market.recall(&self.store, &mut walk.queue)?;
            let known = market.refusals(intent, &walk.queue, most);
            let refused = walk.queue.refused();
            let judging = if known.is_none() { refused.as_slice() } else { &[] };
            let signals = market.signals_of(&walk.queue, judging);
            Ok((known, refused, signals))
        })?;
        if let Some(known) = known {
            debug_assert!(self.are_judged_so(intent, &known, &refused, evaluator));
            let known = known.into_iter().map(|judged| Decided { judged, verdict: None, repeats: None });
            page.rejections.extend(known);
            page.rejections.sort_by(|left, right| left.judged.candidate.id.cmp(&right.judged.candidate.id));
            page.rejections.truncate(most);
            return Ok(());
        }
        for (few, signals) in refused.chunks(most).zip(signals.chunks(most)) {
            if page.rejections.len() >= most && !walk.queue.small {
                break;
            }
            for candidate in self.load(&walk.viewer, few, signals.to_vec())? {
                let judged = self.judge(intent, candidate, evaluator)?;
                let told = walk.queue.small || judged.judgement.failing.is_empty();
                if told && self.is_member(intent, &judged, evaluator)? {
                    page.rejections.push(Decided { judged, verdict: None, repeats: None });
                }
            }
        }
        page.rejections.sort_by(|left, right| left.judged.candidate.id.cmp(&right.judged.candidate.id));
        page.rejections.truncate(most);
        Ok(())
    }

    /// Whether candidates are judged by their records as they were judged without them.
    fn are_judged_so(
        &self,
        intent: &Intent,
        known: &[Judged],
        refused: &[select::Entry],
        evaluator: &mut aql::Evaluator,
    ) -> bool {
        let entries = refused.get(..known.len()).unwrap_or_default();
        let signals = known.iter().map(|judged| judged.candidate.quality().clone()).collect();
        let judge = |candidate| self.judge(intent, candidate, evaluator);
        let judged = self.load(&Viewer::Public, entries, signals);
        let judged = judged.and_then(|loaded| loaded.into_iter().map(judge).collect::<Result<Vec<_>, _>>());
        let evaluated_at = self.clock.now().to_string();
        let evaluated_at = evaluated_at.as_str();
        let told = |Judged { candidate, judgement }: &Judged| {
            let mut writer = json::Writer::default();
            let decision_id = &candidate.id;
            let decision = Decision { decision_id, evaluated_at, intent, candidate, judgement, ranking: None };
            decision.write(&mut writer).is_ok().then(|| writer.finish())
        };
        let same = |(known, judged): (&Judged, &Judged)| {
            known.judgement == judged.judgement && told(known).is_some_and(|known| Some(known) == told(judged))
        };
        judged.is_ok_and(|judged| judged.len() == known.len() && known.iter().zip(&judged).all(same))
    }

    /// R6: the answer is written once, signed as those bytes and sent as those bytes.
    fn write(&self, accepted: &Accepted, page: &Page, key: replies::Key, next: Option<&str>) -> Result<Written, Error> {
        let (intent, exchange) = (&accepted.intent, accepted.exchange.as_ref());
        let (response_id, evaluated_at) = (response_id(key)?, self.clock.now());
        let mut policies = Vec::new();
        let mut named = |decided: &Decided| {
            let verdict = decided.verdict.as_ref()?;
            let name = format!("{response_id}#{POLICY}{}", policies.len() + 1);
            policies.push(verdict.to_record(&name, &evaluated_at.to_string()));
            Some(name)
        };
        let mut resolution = Resolution { matches: Vec::new(), rejections: Vec::new(), left_out: 0 };
        for (decided, rank) in page.matches.iter().zip(page.before + 1..) {
            let mut found = decided.judged.to_match(intent, rank, decided.repeats.as_deref());
            if let Some(name) = named(decided) {
                found.judgement.to_mut().policy_decision_ref = Some(name);
            }
            resolution.matches.push(found);
        }
        for decided in &page.rejections {
            let mut rejection = decided.judged.to_rejection();
            if let Some(name) = named(decided) {
                rejection.judgement.to_mut().policy_decision_ref = Some(name);
            }
            resolution.rejections.push(rejection);
        }
        let version = exchange.map(|exchange| exchange.answer.to_string());
        let responder = Responder {
            response_id: &response_id,
            resolver_did: self.identity.did().as_str(),
            evaluated_at,
            rejected_max: REJECTED,
            next_cursor: next,
            recorded: Recorded {
                schema_version: version.as_deref(),
                deprecation_warning: exchange.and_then(|exchange| exchange.warning.as_ref()),
            },
        };
        let answer = self.versions.outbound(exchange, responder.write(intent, &resolution, None)?)?;
        let answer = self.identity.sign_last(answer);
        self.versions.check_outward(exchange, &answer)?;
        Ok(Written { response_id, answer, policies })
    }

    /// Whether a kept answer has this name; the key alone could be guessed by whoever knows the question.
    pub(crate) fn is_answer(&self, key: replies::Key, response_id: &str) -> Result<bool, Error> {
        let Some(answer) = self.replies.answer(key)? else { return Ok(false) };
        let answer = Document::parse(&answer, &json::Limits::OURS).map_err(Error::fault)?;
        Ok(answer.root().get("response_id").and_then(json::Node::as_str) == Some(response_id))
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
        let (response, part) = decision_id.split_once('#').ok_or_else(unknown)?;
        if part.starts_with(POLICY) {
            return self.policy_decision(response, decision_id)?.ok_or_else(|| unknown().into());
        }
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

impl Node {
    /// A policy decision that an answer names.
    fn policy_decision(&self, response: &str, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(policies) = self.replies.answer(policy_key(response))? else { return Ok(None) };
        let policies = Document::parse(&policies, &json::Limits::OURS).map_err(Error::fault)?;
        let named = |record: &json::Node<'_>| record.get("decision_id").and_then(json::Node::as_str) == Some(name);
        let Some(record) = policies.root().elements().find(named) else { return Ok(None) };
        let output = json!({
            "type": "oap.policy_decision",
            "policy_decision": record.to_value(),
            "response_id": response,
            "resolver_did": self.identity.did().as_str(),
        });
        Ok(Some(self.envelope(name, output, self.clock.millis())))
    }
}

/// How many candidates to look at together for so many that are still wanted: where the index is unsure, some that are looked
/// at fail, and as many of the next will. `most` bounds it after the first time.
fn enough(wanted: usize, matches: usize, looked_at: usize, most: usize) -> usize {
    let expected = wanted.saturating_mul(looked_at + 1).div_ceil(matches + 1);
    let bounded = if looked_at == 0 { wanted } else { expected.min(most) };
    bounded.max(wanted).min(PAGE + 1)
}

/// What a candidate for a delegated task must say of itself.
pub(crate) fn delegates() -> Result<Constraints, Error> {
    let leaf = json!({"path": "/delegation/supported", "operator": "eq", "value": true});
    let document = Document::of(&leaf).map_err(Error::fault)?;
    Ok(Constraints::read(document.root(), Pointer::root(), &aql::Limits::STANDARD)?)
}

/// Until when an intent is remembered, in milliseconds since 1970.
pub(crate) fn expiry(intent: &Intent) -> i64 {
    (intent.validity.to().seconds() + aql::Limits::STANDARD.skew_seconds + 1).saturating_mul(1_000)
}

const RESPONSE: &str = "urn:oap:intent-response:";
/// How the name of a policy decision goes on behind that of its answer.
const POLICY: &str = "policy-";

/// Where the policy decisions of an answer are kept; nobody can guess the name of an answer.
fn policy_key(response_id: &str) -> replies::Key {
    replies::key(response_id, POLICY, "")
}

/// The name of an answer leads back to it, and nobody can guess it.
fn response_id(key: replies::Key) -> Result<String, Error> {
    Ok(format!("{RESPONSE}{}.{}", trust::encoding::encode(&key), chance::name()?))
}

pub(crate) fn key_of(response_id: &str) -> Option<replies::Key> {
    let (key, _) = response_id.strip_prefix(RESPONSE)?.split_once('.')?;
    trust::encoding::decode_url(key)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_looked_at_as_will_do_by_what_was_seen() {
        let check = |(wanted, matches, looked_at, most), expected| {
            assert_eq!(enough(wanted, matches, looked_at, most), expected, "{wanted} {matches} {looked_at} {most}");
        };
        check((10, 0, 0, 0), 10);
        check((usize::MAX, 0, 0, 0), PAGE + 1);
        // All fit so far, half of them do, none does.
        check((1, 9, 9, 20), 1);
        check((5, 5, 10, 20), 10);
        check((10, 0, 10, 20), 20);
        check((10, 0, 1_000, 400), PAGE + 1);
        // Never fewer than are wanted.
        check((7, 3, 10, 6), 7);
    }
}
