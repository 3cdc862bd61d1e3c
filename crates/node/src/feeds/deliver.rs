//! RFC 0020 §3.6, A.10: one task walks the change log and writes what each subscriber is told of it.
//!
//! A step takes some changes, finds out whom they concern, and commits the events together with the new position: after
//! a crash it is done again from there, so nothing is lost and nothing told twice. What a subscriber does not take now
//! waits, record by record, and is told later as one event from what was told to what is (decisions/0092).

use super::{Feeds, Live, REST, Signal, State};
use crate::catalog::parsed;
use crate::clock::instant;
use crate::collection::{Collection, subject};
use crate::descriptions;
use crate::evidence::{self, Moment};
use crate::gate::{self, View, Viewer};
use crate::publish::commit_refused;
use crate::refusal::Error;
use crate::resolve::evaluator;
use aql::{Candidate, Fuel, Signals};
use feed::subscription::{JOURNAL_BYTES_MAX, PENDING_MAX, RATE_MAX, UNDECIDED_MAX};
use feed::{Cause, Event, EventType, Seen, SetChange, Waiting, rate, told};
use json::Document;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{Batch, Change, Feed, Hash, Kind, Operation, Pending, Phase, Sequence, Standing};

/// Changes of the log in one step.
const CHANGES: usize = 256;
/// Changes that concern nobody before the position is written all the same.
const UNWRITTEN: u64 = 1_000;
/// Records that waited and are told in one step, for each subscriber.
const FLUSHED: usize = 256;
/// How long the task waits for the log to grow before it looks at the clock.
const NAP: Duration = Duration::from_secs(1);
/// The same while something waits for the minute to pass.
const DOZE: Duration = Duration::from_millis(200);
/// How long it waits after a failure.
const RECOVERY: Duration = Duration::from_secs(1);
/// Milliseconds between two looks at the clock for each standing intent.
const HOUSE_MS: i64 = 200;
/// Milliseconds between two looks for what is too old.
const SWEEP_MS: i64 = 600_000;
/// Events that are forgotten of one journal at once.
const FORGOTTEN: usize = 10_000;

/// What a step has made and not committed.
#[derive(Default)]
pub(super) struct Draft {
    feed: Feed,
    standings: BTreeMap<u64, Standing>,
    /// What waits and what no longer does, on top of what the store knows.
    waiting: HashMap<(u64, String), Option<Waiting>>,
    /// Which records subscribers were told to be in their answers and which no longer, on top of what the store knows.
    told: HashMap<(u64, String), Option<bool>>,
    bodies: HashMap<u64, Option<Body>>,
    /// Those that end with this step.
    pub(super) ended: Vec<u64>,
}

/// A stored record, read once for all who are told of it.
pub(super) struct Body {
    bytes: Vec<u8>,
    id: String,
    public: Face,
    /// Those who may see more of it than everybody.
    audience: BTreeSet<String>,
}

impl Body {
    /// The hash of what everybody may see of it.
    pub(super) fn public(&self) -> Hash {
        self.public.hash
    }
}

/// A record as somebody sees it.
struct Face {
    view: View,
    hash: Hash,
    apart: Hash,
}

impl Face {
    fn of(bytes: &[u8], viewer: &Viewer) -> Result<Self, Error> {
        let view = View::of(parsed(bytes)?, viewer)?;
        let record = view.record();
        let hash = Hash::of(&json::canonical(record));
        let apart = Hash::of(&json::canonical_without(record, "conformance"));
        Ok(Self { view, hash, apart })
    }
}

impl Feeds {
    /// Delivers until the node ends; a failure is told to the log and tried again.
    pub(super) fn deliver_until_stopped(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            let patience = match self.rest_or_step() {
                Ok(None) => continue,
                Ok(Some(patience)) => patience,
                Err(error) => {
                    tracing::error!(%error, "a step of delivery failed and is tried again");
                    RECOVERY
                }
            };
            let position = self.state().map_or(Sequence::MAX, |state| state.position);
            self.store.wait_past(position, patience);
        }
    }

    /// Sleeps while nobody wants to know anything, else makes a step; says how long there is nothing to do.
    fn rest_or_step(&self) -> Result<Option<Duration>, Error> {
        let mut state = self.state()?;
        if self.stopping.load(Ordering::Acquire) {
            return Ok(None);
        }
        if state.live.is_empty() {
            // Journals of those who were there grow old, too.
            let (now, mut draft) = (self.clock.millis(), Draft::default());
            self.keep_house(&mut state, &mut draft, now)?;
            self.commit(&mut state, draft, now)?;
            let _ = self.roused.wait_timeout(state, REST);
            return Ok(None);
        }
        drop(state);
        self.step()
    }

    /// Delivers some changes and what has waited long enough; says how long there is nothing to do.
    fn step(&self) -> Result<Option<Duration>, Error> {
        let mut state = self.state()?;
        let (now, mut draft) = (self.clock.millis(), Draft::default());
        self.fell(&mut state)?;
        let position = state.position;
        if !self.catch_up(&mut state, position)? {
            return Ok(None);
        }
        self.keep_house(&mut state, &mut draft, now)?;
        let changes = self.store.changes_after(state.position, CHANGES)?;
        let last = changes.last().map(|change| change.sequence);
        if let Some(last) = last {
            // What others say of a record is known as far as the log is read.
            self.catalog.read_to(&self.store, last)?;
            self.grow(&mut state, &mut draft, &changes)?;
            for change in &changes {
                self.concern(&mut state, &mut draft, change, now)?;
            }
            draft.feed.position = Some(last);
        }
        let position = last.unwrap_or(state.position);
        self.flush(&mut state, &mut draft, position, now)?;
        let busy = !draft.feed.events.is_empty() || changes.len() == CHANGES;
        self.commit(&mut state, draft, now)?;
        state.position = position;
        if changes.len() < CHANGES {
            self.level_at.store(now, Ordering::Release);
        }
        let patience = if state.lagging.is_empty() { NAP } else { DOZE };
        Ok((!busy).then_some(patience))
    }

    /// Finds out whom a change concerns.
    fn concern(&self, state: &mut State, draft: &mut Draft, change: &Change, now: i64) -> Result<(), Error> {
        let since = change.sequence;
        let about = match change.kind {
            Kind::Manifest | Kind::Description => {
                let latest = if change.operation == Operation::Put { change.sequence } else { 0 };
                let told = change.replaces.unwrap_or_default();
                vec![(change.id.clone(), Waiting { since, told, latest, evidence: false })]
            }
            Kind::Evidence => {
                let waiting = |number| Waiting { since, told: number, latest: number, evidence: true };
                let subjects = self.subjects(change)?.into_iter();
                subjects.map(|(id, number)| (id, waiting(number))).collect()
            }
            Kind::Offer | Kind::Knowledge | Kind::Receipt => Vec::new(),
        };
        for (record, waiting) in about {
            self.concern_about(state, draft, change, (&record, waiting), now)?;
        }
        Ok(())
    }

    fn concern_about(
        &self,
        state: &mut State,
        draft: &mut Draft,
        change: &Change,
        (record, waiting): (&str, Waiting),
        now: i64,
    ) -> Result<(), Error> {
        let (mut concerned, mut out_of_fuel) = (BTreeSet::new(), Vec::new());
        for number in BTreeSet::from([waiting.told, waiting.latest]) {
            let Some(body) = self.body(draft, number)? else { continue };
            let found = state.audience.of(body.public.view.record(), Fuel::STANDARD);
            out_of_fuel.extend(found.undecided);
            concerned.extend(found.satisfied);
            let named = body.audience.iter().filter_map(|issuer| state.issuers.get(issuer));
            concerned.extend(named.flatten());
        }
        out_of_fuel.into_iter().for_each(|number| undecided(state, draft, number, now));
        for number in concerned {
            let Some(live) = state.live.get(&number).filter(|live| live.start < change.sequence) else { continue };
            if waiting.evidence && !live.asks_others() {
                continue;
            }
            let news = News { number, record, position: change.sequence, now };
            self.tell(state, draft, &news, waiting)?;
        }
        Ok(())
    }

    /// The manifest or description that a piece of evidence is about, or the descriptions of the agent it is about, each
    /// with its number.
    fn subjects(&self, change: &Change) -> Result<Vec<(String, u64)>, Error> {
        let number = if change.operation == Operation::Put { Some(change.sequence) } else { change.replaces };
        let Some(record) = number.map(|number| self.store.by_number(number)).transpose()?.flatten() else {
            return Ok(Vec::new());
        };
        let view = View::of(parsed(&record.body)?, &Viewer::Public)?;
        let Some(subject) = evidence::subject(view.record()) else { return Ok(Vec::new()) };
        let mut found = Vec::from_iter(self.store.record(subject)?);
        found.extend(descriptions::of_agent(&self.catalog, &self.store, subject)?);
        // A later revision is told of by its own change.
        found.retain(|record| {
            matches!(record.kind, Kind::Manifest | Kind::Description) && record.number < change.sequence
        });
        Ok(found.into_iter().map(|record| (record.id, record.number)).collect())
    }

    /// Tells a subscriber of a record now, or lets it wait.
    fn tell(&self, state: &mut State, draft: &mut Draft, news: &News<'_>, waiting: Waiting) -> Result<(), Error> {
        let key = (news.number, news.record.to_owned());
        if let Some(before) = self.waiting(draft, news.number, news.record)? {
            draft.waiting.insert(key, Some(before.and(waiting)));
            return Ok(());
        }
        // What is not visible need not wait.
        let Some(outcome) = self.outcome(state, draft, news, waiting)? else { return Ok(()) };
        if self.has_room(state, draft, news.number, news.now)? {
            self.write(state, draft, news, &outcome)?;
        } else {
            draft.waiting.insert(key, Some(waiting));
        }
        Ok(())
    }

    fn waiting(&self, draft: &Draft, number: u64, record: &str) -> Result<Option<Waiting>, Error> {
        if let Some(known) = draft.waiting.get(&(number, record.to_owned())) {
            return Ok(*known);
        }
        let kept = self.store.pending_about(number, record)?;
        Ok(kept.map(|kept| Waiting {
            since: kept.since,
            told: kept.told,
            latest: kept.latest,
            evidence: kept.evidence,
        }))
    }

    /// Whether a subscriber takes one more event now.
    fn has_room(&self, state: &mut State, draft: &Draft, number: u64, now: i64) -> Result<bool, Error> {
        let Some(live) = state.live.get(&number) else { return Ok(false) };
        let standing = draft.standings.get(&number).unwrap_or(&live.standing);
        if standing.phase != Phase::Active {
            return Ok(false);
        }
        if standing.bytes >= JOURNAL_BYTES_MAX {
            if state.full.insert(number) {
                tracing::warn!(
                    subscription = live.id,
                    "a journal is full; what comes waits until its oldest is forgotten"
                );
            }
            return Ok(false);
        }
        if let Some(deciding) = rate::deciding(standing.cursor, standing.rate) {
            let new = deciding > live.standing.cursor;
            let at = if new { Some(now) } else { self.store.event_time(number, deciding)? };
            if at.is_some_and(|at| rate::wait(at, now) > 0) {
                return Ok(false);
            }
        }
        let principal = live.principal.clone();
        let account = state.principals.entry(principal).or_default();
        Ok(account.told.take(now, usize::try_from(RATE_MAX).unwrap_or(usize::MAX)))
    }

    /// Writes an event.
    fn write(
        &self,
        state: &mut State,
        draft: &mut Draft,
        news: &News<'_>,
        (told, before, after): &Outcome,
    ) -> Result<(), Error> {
        let Some(live) = state.live.get(&news.number) else { return Ok(()) };
        let inclusion = self.proof(&mut state.tree, news.record, news.position)?;
        let standing = draft.standings.entry(news.number).or_insert_with(|| live.standing.clone());
        let (before, after) = (before.as_ref(), after.as_ref());
        let shown = Shown { told: *told, record: news.record, before, after, snapshot: false, inclusion: &inclusion };
        draft.feed.events.push(self.journal(news.number, &live.id, standing, &shown, news.now));
        if live.asks_others() {
            // Of what is taken back nothing need be known: whatever has its name next is another.
            let inside = (told.1 != EventType::Withdrawn).then_some(told.0 != SetChange::Left);
            draft.told.insert((news.number, news.record.to_owned()), inside);
        }
        Ok(())
    }

    /// Signs one more entry of a journal.
    pub(super) fn journal(
        &self,
        number: u64,
        id: &str,
        standing: &mut Standing,
        shown: &Shown<'_>,
        now: i64,
    ) -> store::Event {
        let emitted_at = instant(now).to_string();
        let event = Event {
            subscription_id: id,
            cursor: standing.cursor + 1,
            publisher_did: self.identity.did().as_str(),
            emitted_at: &emitted_at,
            change: shown.told.0,
            by: shown.told.1,
            manifest_id: shown.record,
            before: shown.before,
            after: shown.after,
            snapshot: shown.snapshot,
            inclusion: shown.inclusion,
        };
        let mut chained = standing.chain.0.to_vec();
        chained.extend(event.write(None, None));
        standing.chain = Hash::of(&chained);
        let chain_hash = format!("sha256:{}", standing.chain);
        let signature = self.identity.signature(&event.write(Some(&chain_hash), None));
        let body = event.write(Some(&chain_hash), Some(&signature));
        standing.cursor += 1;
        standing.bytes += body.len() as u64;
        // What a subscriber asked to begin with does not count as one of the minute.
        let at = if shown.snapshot { -now } else { now };
        store::Event { subscription: number, cursor: standing.cursor, at, body }
    }

    /// What a subscriber would be told.
    fn outcome(
        &self,
        state: &State,
        draft: &mut Draft,
        news: &News<'_>,
        waiting: Waiting,
    ) -> Result<Option<Outcome>, Error> {
        let News { number, position, now, .. } = *news;
        let Some(live) = state.live.get(&number) else { return Ok(None) };
        let known = self.known(draft, live, news, waiting)?;
        let before = match (self.body(draft, waiting.told)?, known) {
            (None, _) | (Some(_), Some(false)) => None,
            (Some(body), Some(true)) => self.seen(live, body, live.intent.quality_floor.clone())?,
            (Some(body), None) => {
                let signals = self.signals(live, &body.id, body.public.view.record(), waiting.since - 1, now)?;
                self.seen(live, body, signals)?
            }
        };
        let after = match self.body(draft, waiting.latest)? {
            Some(body) => {
                let signals = self.signals(live, &body.id, body.public.view.record(), position, now)?;
                self.seen(live, body, signals)?
            }
            None => None,
        };
        let cause = if waiting.evidence { Cause::Evidence } else { Cause::Record };
        let told = told(before.as_ref(), after.as_ref(), waiting.latest != 0, cause);
        Ok(told.map(|told| (told, before, after)))
    }

    /// Whether a record is in the answer as far as the subscriber was told; none where the record itself tells.
    ///
    /// What others say of a record fades without a change. So what was told is remembered where that counts, and not
    /// judged again (decisions/0285).
    fn known(&self, draft: &Draft, live: &Live, news: &News<'_>, waiting: Waiting) -> Result<Option<bool>, Error> {
        if !live.asks_others() {
            return Ok(None);
        }
        let told = match draft.told.get(&(news.number, news.record.to_owned())) {
            Some(told) => *told,
            None => self.store.told(news.number, news.record)?,
        };
        // Of what was there before it began, a subscriber who did not ask for it was told nothing.
        let is_new = live.is_whole || waiting.told > live.start;
        Ok(told.or(is_new.then_some(false)))
    }

    /// A record as a subscriber sees it, when it is in the answer.
    fn seen(&self, live: &Live, body: &Body, signals: Signals) -> Result<Option<Seen>, Error> {
        if body.audience.contains(&live.issuer) {
            let own = Face::of(&body.bytes, &live.viewer)?;
            return Ok(self.judged(live, &own, signals));
        }
        Ok(self.judged(live, &body.public, signals))
    }

    /// What others say of a record, or else of whom it is about, for an intent that asks for it.
    fn signals(
        &self,
        live: &Live,
        id: &str,
        record: json::Node<'_>,
        sequence: Sequence,
        now: i64,
    ) -> Result<Signals, Error> {
        if !live.asks_others() {
            return Ok(Signals::default());
        }
        let evidence = self.catalog.evidence()?;
        let mut moment = Moment { now: instant(now), sequence };
        if !evidence.reaches(moment) {
            // What was said then is forgotten. What is said now counts; the changes in between find that it was told.
            moment.sequence = Sequence::MAX;
        }
        let about = |subject| evidence.about(subject, moment);
        let said = about(id).or_else(|| about(subject(Collection::Manifests, record)?));
        Ok(said.unwrap_or_default())
    }

    fn judged(&self, live: &Live, face: &Face, signals: Signals) -> Option<Seen> {
        let record: Document = face.view.record().to_document();
        let id = aql::own_id(record.root()).unwrap_or_default();
        let candidate = Candidate::new(id, record, None, signals);
        // A filter that cannot be asked within its fuel is not satisfied.
        let judgement = aql::judge(&live.intent, &candidate, self.over_budget, &mut evaluator()).ok()?;
        let is_match = judgement.is_match(self.over_budget);
        let payload = judgement.payload.filter(|_| is_match)?;
        let over_budget = judgement.over_budget;
        Some(Seen { payload, over_budget, hash: format!("sha256:{}", face.hash), apart: face.apart.0 })
    }

    /// One record of the answer as it stands, for a snapshot; `None` when it is not in it.
    pub(super) fn standing_at(&self, live: &Live, bytes: &[u8], at: Sequence) -> Result<Option<(String, Seen)>, Error> {
        let face = Face::of(bytes, &live.viewer)?;
        let id = aql::own_id(face.view.record()).unwrap_or_default();
        let signals = self.signals(live, &id, face.view.record(), at, self.clock.millis())?;
        Ok(self.judged(live, &face, signals).map(|seen| (id, seen)))
    }

    /// The record with a number, read once in a step; none for nought.
    pub(super) fn body<'a>(&self, draft: &'a mut Draft, number: u64) -> Result<Option<&'a Body>, Error> {
        if number == 0 {
            return Ok(None);
        }
        let body = match draft.bodies.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let record = self.store.by_number(number)?;
                let body = record.map(|record| -> Result<Body, Error> {
                    let audience = gate::audience_of(&parsed(&record.body)?)?;
                    let public = Face::of(&record.body, &Viewer::Public)?;
                    Ok(Body { bytes: record.body, id: record.id, public, audience })
                });
                vacant.insert(body.transpose()?)
            }
        };
        Ok(body.as_ref())
    }

    /// Tells what has waited, as far as there is room now.
    fn flush(&self, state: &mut State, draft: &mut Draft, position: Sequence, now: i64) -> Result<(), Error> {
        for number in state.lagging.clone() {
            for pending in self.store.pending(number, FLUSHED)? {
                let key = (number, pending.record.clone());
                let known = draft.waiting.get(&key).copied();
                let Some(waiting) = known.unwrap_or(Some(Waiting {
                    since: pending.since,
                    told: pending.told,
                    latest: pending.latest,
                    evidence: pending.evidence,
                })) else {
                    continue;
                };
                let news = News { number, record: &pending.record, position, now };
                if let Some(outcome) = self.outcome(state, draft, &news, waiting)? {
                    if !self.has_room(state, draft, number, now)? {
                        break;
                    }
                    self.write(state, draft, &news, &outcome)?;
                }
                draft.waiting.insert(key, None);
            }
        }
        Ok(())
    }

    /// Ends what is over, goes on with what paused for a while, and forgets what is too old.
    fn keep_house(&self, state: &mut State, draft: &mut Draft, now: i64) -> Result<(), Error> {
        if (now - state.kept_at).abs() < HOUSE_MS {
            return Ok(());
        }
        state.kept_at = now;
        state.forget_parted(now);
        for (number, live) in &state.live {
            let standing = &live.standing;
            if live.expires_at <= now {
                draft.end(*number, standing, "expired", now);
            } else if standing.phase == Phase::Paused && standing.resumes_at != 0 && standing.resumes_at <= now {
                let resumed = Standing { phase: Phase::Active, resumes_at: 0, ..standing.clone() };
                draft.standings.insert(*number, resumed);
            }
        }
        for number in &state.lagging {
            if let Some(live) = state.live.get(number)
                && live.standing.phase != Phase::Ended
                && self.store.pending_count(*number)? > PENDING_MAX
            {
                draft.end(*number, &live.standing, "fell_behind", now);
            }
        }
        if now - state.swept_at >= SWEEP_MS {
            state.swept_at = now;
            self.sweep(draft, now)?;
        }
        Ok(())
    }

    /// Forgets events past their retention, and standing intents that ended so long ago.
    fn sweep(&self, draft: &mut Draft, now: i64) -> Result<(), Error> {
        let oldest = now - i64::from(self.retention_days) * 86_400_000;
        let mut number = 0;
        loop {
            let some = self.store.subscriptions_after(number, super::STRIDE)?;
            let Some(last) = some.last() else { return Ok(()) };
            number = last.number;
            for subscription in some {
                let number = subscription.number;
                let mut standing = draft.standings.get(&number).cloned().unwrap_or(subscription.standing);
                if standing.phase == Phase::Ended && standing.ended_at < oldest && standing.ended_at != 0 {
                    draft.feed.removed.push(number);
                    continue;
                }
                let begun = standing.first;
                // Mostly the first event is young, and then so are all others: nobody waits until they are read.
                let is_due = self.store.oldest_events(number, 1)?.first().is_some_and(|(_, at, _)| at.abs() < oldest);
                let old = if is_due { self.store.oldest_events(number, FORGOTTEN)? } else { Vec::new() };
                for (cursor, at, bytes) in old {
                    if at.abs() >= oldest {
                        break;
                    }
                    standing.first = cursor + 1;
                    standing.bytes = standing.bytes.saturating_sub(bytes);
                }
                if standing.first != begun {
                    draft.feed.forgotten.push((number, standing.first));
                    draft.standings.insert(number, standing);
                }
            }
        }
    }

    /// Writes a step, and tells those who read along once it is on disk.
    fn commit(&self, state: &mut State, draft: Draft, now: i64) -> Result<(), Error> {
        let Draft { mut feed, standings, waiting, told, ended, .. } = draft;
        feed.told = told.into_iter().map(|((number, record), inside)| (number, record, inside)).collect();
        let mut lagging = state.lagging.clone();
        for ((subscription, record), waiting) in waiting {
            match waiting {
                Some(Waiting { since, told, latest, evidence }) => {
                    lagging.insert(subscription);
                    feed.pending.push(Pending { subscription, record, since, told, latest, evidence });
                }
                None => feed.settled.push((subscription, record)),
            }
        }
        let changed = |(number, standing): (&u64, &Standing)| {
            let known = state.live.get(number).map(|live| &live.standing);
            (known != Some(standing)).then(|| (*number, standing.clone()))
        };
        feed.standings = standings.iter().filter_map(changed).collect();
        let walked = feed.position.take();
        if feed.is_empty() && walked.is_none_or(|walked| walked - state.persisted < UNWRITTEN) {
            // Changes that concern nobody are walked again after a crash, and concern nobody again.
            return Ok(());
        }
        feed.position = walked;
        state.tree.to_write(&mut feed);
        let removed = feed.removed.clone();
        let events: Vec<Arc<store::Event>> = feed.events.iter().cloned().map(Arc::new).collect();
        let settled: BTreeSet<u64> = feed.settled.iter().map(|(number, _)| *number).collect();
        self.store.deliver(Batch { at: now, ..Batch::default() }, feed).map_err(commit_refused)?;
        state.persisted = walked.unwrap_or(state.persisted);
        state.tree.is_written();
        removed.iter().for_each(|number| self.webhooks.let_go(*number));
        state.lagging = lagging;
        for number in settled {
            if self.store.pending_count(number)? == 0 {
                state.lagging.remove(&number);
            }
        }
        for (number, standing) in standings {
            if let Some(live) = state.live.get_mut(&number) {
                if standing.bytes < JOURNAL_BYTES_MAX {
                    state.full.remove(&number);
                }
                live.standing = standing;
                self.webhooks.ring(number);
            }
        }
        for event in events {
            self.signal(event.subscription, Signal::Event(event));
        }
        for number in ended {
            state.let_go(number);
            self.signal(number, Signal::Ended);
        }
        Ok(())
    }

    /// Ends a standing intent at once.
    pub(super) fn end(&self, state: &mut State, number: u64, reason: &'static str, batch: Batch) -> Result<(), Error> {
        let Some(live) = state.live.get(&number) else { return Ok(()) };
        let now = self.clock.millis();
        let standing = ended(&live.standing, reason, now);
        let feed = Feed { standings: vec![(number, standing)], ..Feed::default() };
        self.store.deliver(batch, feed).map_err(commit_refused)?;
        state.let_go(number);
        self.signal(number, Signal::Ended);
        Ok(())
    }
}

/// Counts a record on which a filter ran out of its fuel; one that does so again and again is given up, with a reason,
/// since whoever has it hears less than the whole answer.
pub(super) fn undecided(state: &mut State, draft: &mut Draft, number: u64, now: i64) {
    let Some(live) = state.live.get_mut(&number) else { return };
    live.undecided += 1;
    let standing = draft.standings.get(&number).unwrap_or(&live.standing).clone();
    // Also later than at the first that is too much: the step that ended it may have failed.
    if live.undecided >= UNDECIDED_MAX && standing.phase != Phase::Ended {
        tracing::warn!(subscription = live.id, "a standing filter runs out of its fuel, and is given up");
        draft.end(number, &standing, "filter_too_costly", now);
    }
}

impl Draft {
    fn end(&mut self, number: u64, standing: &Standing, reason: &'static str, now: i64) {
        self.standings.insert(number, ended(standing, reason, now));
        self.ended.push(number);
    }
}

fn ended(standing: &Standing, reason: &str, now: i64) -> Standing {
    Standing { phase: Phase::Ended, ended_at: now, reason: reason.to_owned(), ..standing.clone() }
}

/// To whom a record is news, and as of when.
struct News<'a> {
    number: u64,
    record: &'a str,
    position: Sequence,
    now: i64,
}

type Outcome = ((feed::SetChange, feed::EventType), Option<Seen>, Option<Seen>);

/// What an entry of a journal shows.
pub(super) struct Shown<'a> {
    pub(super) told: (feed::SetChange, feed::EventType),
    pub(super) record: &'a str,
    pub(super) before: Option<&'a Seen>,
    pub(super) after: Option<&'a Seen>,
    pub(super) snapshot: bool,
    /// The proof that the record is in the tree.
    pub(super) inclusion: &'a [u8],
}
