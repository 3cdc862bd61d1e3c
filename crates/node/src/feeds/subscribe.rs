//! RFC 0020 §3.6: a standing intent comes in, and what its issuer asks of it later.
//!
//! It is received like any other intent (R1). Under the lock of delivery the answer as it stands is taken down, where
//! that was asked for, and the subscription begins with the change after it: there is no hole between the two. One
//! commit writes the subscription and the beginning of its journal; the acknowledgement is signed before and kept with
//! it, so that the same intent gets the same acknowledgement. An address that events are to be brought to is asked
//! before, once it is proved who wants that.

use super::deliver::Shown;
use super::follow::replayable;
use super::webhooks::check_endpoint;
use super::{Checked, Endpoint, Feeds, Live, State, domain_of};
use crate::chance;
use crate::clock::{Clock, instant};
use crate::collection::Collection;
use crate::gate::{self, Viewer};
use crate::node::Node;
use crate::outbound::Dids;
use crate::publish::{SKEW_SECONDS, WINDOW_SECONDS, check_window, commit_refused, issued_at, missing, text};
use crate::quota::Purpose;
use crate::refusal::{Class, Error, Refusal};
use crate::resolve::{Accepted, Received, reused, verify};
use crate::versions::{self, MEMBERS, beneath};
use aql::{Category, Constraints, Instant};
use feed::subscription::{
    DOMAIN_MAX, ISSUER_MAX, RATE_MAX, SNAPSHOT_MAX, TOTAL_MAX, UNFILED_ISSUER_MAX, UNFILED_TOTAL_MAX,
};
use feed::webhook::Secret;
use feed::{Acknowledgement, EventType, Request, Seen, SetChange, Transport};
use json::{Document, Limits, Pointer, Value, json};
use std::sync::{Arc, Mutex};
use store::{Batch, Feed, Hash, Mark, Marked, Phase, Sequence, Standing, Subscription, Webhook};
use trust::{Did, Signed};

/// How a subscriber wants to be told.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The address under which the node was reached.
    pub base: String,
    /// Whether the journal begins with the answer as it stands.
    pub snapshot: bool,
    /// How events travel.
    pub transport: Transport,
    /// Where they are brought, with that transport.
    pub endpoint: Option<Endpoint>,
}

/// The beginning of a subscription's name; what follows are 128 random bits.
const NAME: &str = "urn:rialto:subscription:";
const CONTROL: &str = "urn:rialto:control:";
const CONTROL_MEMBERS: [&str; 10] = [
    "control_id",
    "subscription_id",
    "request",
    "seconds",
    "max_event_rate_per_minute",
    "from",
    "secret",
    "issuer_did",
    "issued_at",
    "signature",
];
/// The largest cursor that a number of JSON holds.
const CURSOR_MAX: u64 = (1 << 53) - 1;
/// Seconds that a pause may last before it ends by itself; a subscription does not last longer either.
const PAUSE_SECONDS_MAX: u64 = 92 * 86_400;

/// Something that an issuer asks of its subscription.
struct Control {
    document: Document,
    digest: Hash,
    name: String,
    issuer: Did,
    issued_at: Instant,
    request: Request,
}

impl Node {
    /// Answers an intent, or takes it in when it is one that stays open.
    pub async fn answer_or_subscribe(
        self: &Arc<Self>,
        bytes: &[u8],
        cursor: Option<&str>,
        terms: &Terms,
    ) -> Result<Vec<u8>, Error> {
        self.answer_or_subscribe_for(None, bytes, cursor, terms).await
    }

    /// The same for whoever proved to have sent the request.
    pub async fn answer_or_subscribe_for(
        self: &Arc<Self>,
        caller: Option<&Did>,
        bytes: &[u8],
        cursor: Option<&str>,
        terms: &Terms,
    ) -> Result<Vec<u8>, Error> {
        match self.receive(bytes) {
            Ok(received) if received.intent.category == Category::Subscription => {
                self.subscribe_received(received, terms).await
            }
            Ok(received) => self.answer_received(received.brought_by(caller), cursor).await,
            // A procurement intent is no intent until it is turned into one.
            Err(_) => self.answer(bytes, cursor).await,
        }
    }

    /// Whether somebody sent an intent that stays open, whatever else may be wrong with it.
    pub fn stays_open(&self, bytes: &[u8]) -> bool {
        self.receive(bytes).is_ok_and(|received| received.intent.category == Category::Subscription)
    }

    /// Takes a standing intent in; any other is refused.
    pub async fn subscribe(self: &Arc<Self>, bytes: &[u8], terms: &Terms) -> Result<Vec<u8>, Error> {
        let received = self.receive(bytes)?;
        if received.intent.category != Category::Subscription {
            let detail = "only an intent of the category `subscription` stays open; send others to `/oap/intent`";
            let at = Pointer::root().child("category");
            return Err(Refusal::new(Class::InvalidInput, "category_not_supported", detail).at(at).into());
        }
        self.subscribe_received(received, terms).await
    }

    async fn subscribe_received(self: &Arc<Self>, received: Received, terms: &Terms) -> Result<Vec<u8>, Error> {
        let form = received.form;
        let subscribed = self.take_in(received, terms).await;
        subscribed.map_err(|error| beneath(form, error))
    }

    async fn take_in(self: &Arc<Self>, received: Received, terms: &Terms) -> Result<Vec<u8>, Error> {
        let keys = self.issuer_keys(&received).await?;
        let delegation = self.delegation(&received, keys.as_deref()).await?;
        let node = Arc::clone(self);
        let begun = self.off_thread(move || {
            let accepted = received.verify(keys.as_deref(), delegation)?;
            let intent = json::canonical(accepted.document.root());
            let exchange = accepted.exchange.clone();
            if let Some(known) = node.known(&accepted, &intent)? {
                return Ok(Err(node.recorded(exchange.as_ref(), known)?));
            }
            node.charge(&accepted.issuer, Purpose::Message)?;
            node.feeds.check_room(&accepted)?;
            node.count(&accepted);
            Ok(Ok((accepted, intent, exchange)))
        });
        let (accepted, intent, exchange) = match begun.await? {
            Ok(begun) => begun,
            Err(known) => return Ok(known),
        };
        let (node, terms, id) = (Arc::clone(self), terms.clone(), format!("{NAME}{}", chance::name()?));
        if let Some(endpoint) = &terms.endpoint {
            check_endpoint(&self.door, &endpoint.url)?;
            self.feeds.challenge(&self.door, &id, &endpoint.url).await?;
        }
        self.off_thread(move || {
            let acknowledged = node.feeds.subscribe(accepted, intent, id, &terms)?;
            node.recorded(exchange.as_ref(), acknowledged)
        })
        .await
    }

    /// What was acknowledged, when the same intent came before.
    fn known(&self, accepted: &Accepted, intent: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let known = self.store.subscription_of(accepted.issuer.as_str(), &accepted.intent.intent_id)?;
        match known {
            Some(known) if known.intent == intent => Ok(Some(known.acknowledgement)),
            Some(_) => Err(reused().into()),
            None => Ok(None),
        }
    }

    /// How a subscription stands, signed.
    pub fn subscription(&self, id: &str) -> Result<Vec<u8>, Error> {
        let subscription = self.feeds.find(id)?;
        self.feeds.described(&subscription)
    }

    /// Carries out what the issuer of a subscription asks of it, and says how it stands then.
    pub async fn control(self: &Arc<Self>, id: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let control = read(id, bytes)?;
        check_window(control.issued_at, self.clock.now())?;
        let subscription = self.feeds.find(id)?;
        if subscription.issuer != control.issuer.as_str() {
            let detail = "only whoever signed the intent may change what became of it";
            let at = Pointer::root().child("issuer_did");
            return Err(Refusal::new(Class::PolicyBlock, "issuer_not_authorized", detail).at(at).into());
        }
        match self.store.marked(control.issuer.as_str(), &control.name, control.digest)? {
            Marked::Same(_) => return self.feeds.described(&subscription),
            Marked::Other => return Err(name_reused().into()),
            Marked::New => {}
        }
        let keys = self.keys_of(&control.issuer).await?;
        let node = Arc::clone(self);
        let proved = self.off_thread(move || {
            verify(&control.document, &keys)?;
            node.charge(&control.issuer, Purpose::Message)?;
            node.versions.count(versions::CONTROL, None, Some(control.issuer.as_str()), node.clock.millis());
            Ok(control)
        });
        let control = proved.await?;
        if let (Request::Replay(_), Some(url)) = (&control.request, self.feeds.given_up(subscription.number)) {
            self.feeds.challenge(&self.door, id, &url).await?;
        }
        let (node, id) = (Arc::clone(self), id.to_owned());
        self.off_thread(move || {
            node.feeds.obey(&subscription, &control)?;
            node.subscription(&id)
        })
        .await
    }

    /// Halves what a subscriber is told in a minute, because a reader cannot take more.
    pub async fn slow_down(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let (node, id) = (Arc::clone(self), id.to_owned());
        self.off_thread(move || node.feeds.slow_down(node.feeds.find(&id)?.number)).await
    }

    /// Whether the issuer of a subscription still stands behind it.
    pub(crate) async fn recheck(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        self.feeds.recheck(&self.dids, &self.feeds.find(id)?).await
    }
}

impl Feeds {
    /// Whether the issuer of a subscription still stands behind it; one whose key is gone is told nothing more.
    pub(super) async fn recheck(self: &Arc<Self>, dids: &Dids, subscription: &Subscription) -> Result<(), Error> {
        let (Ok(issuer), false) = (Did::parse(&subscription.issuer), subscription.standing.phase == Phase::Ended)
        else {
            return Ok(());
        };
        let document = Document::parse(&subscription.intent, &aql::Limits::STANDARD.json).map_err(Error::fault)?;
        let held = match dids.resolve(&issuer, Clock::monotonic()).await {
            Ok(keys) => verify(&document, &keys),
            Err(error) => Err(Refusal::new(error.class(), error.code(), error.to_string()).into()),
        };
        match held {
            Err(Error::Refusal(refusal)) if refusal.class == Class::AuthRequired => {
                let (feeds, number) = (Arc::clone(self), subscription.number);
                let ended = tokio::task::spawn_blocking(move || feeds.end_now(number, "key_revoked"));
                ended.await.map_err(Error::fault)?
            }
            // Somebody who cannot be asked just now has revoked nothing.
            _ => Ok(()),
        }
    }

    /// A subscription by its name.
    pub(super) fn find(&self, id: &str) -> Result<Subscription, Error> {
        let unknown = || {
            let detail = "no subscription has this name; it may have ended so long ago that nothing is kept of it";
            Refusal::new(Class::NotFound, "subscription_not_found", detail)
        };
        Ok(self.store.subscription(id)?.ok_or_else(unknown)?)
    }

    /// Whether there is room for one more, before anybody is asked for it.
    fn check_room(&self, accepted: &Accepted) -> Result<(), Error> {
        Ok(self.state()?.check_room(&accepted.issuer, principal_of(accepted), &accepted.intent.constraints)?)
    }

    /// Brings the tree level with the log, without holding up delivery for longer than some changes take.
    fn level(&self) -> Result<(), Error> {
        loop {
            let mut state = self.state()?;
            self.fell(&mut state)?;
            if self.catch_up(&mut state, self.store.sequence())? {
                return Ok(());
            }
        }
    }

    fn subscribe(&self, accepted: Accepted, intent: Vec<u8>, id: String, terms: &Terms) -> Result<Vec<u8>, Error> {
        self.level()?;
        let principal = principal_of(&accepted).clone();
        let Accepted { intent: asked, issuer, .. } = accepted;
        let mut state = self.state()?;
        // The same intent, or another of the same name, may have come while an address was asked.
        if let Some(known) = self.store.subscription_of(issuer.as_str(), &asked.intent_id)? {
            return if known.intent == intent { Ok(known.acknowledgement) } else { Err(reused().into()) };
        }
        state.check_room(&issuer, &principal, &asked.constraints)?;
        let (number, now) = (state.next, self.clock.millis());
        let rate = asked.max_event_rate_per_minute.unwrap_or(1).min(RATE_MAX);
        let mut live = Live {
            id: id.clone(),
            issuer: issuer.as_str().to_owned(),
            principal: principal.as_str().to_owned(),
            domain: domain_of(&issuer),
            start: 0,
            expires_at: (asked.validity.to().seconds() + 1).saturating_mul(1_000),
            standing: Standing::new(rate),
            intent: asked,
            viewer: Viewer::Named(issuer),
            unfiled: false,
            is_whole: terms.snapshot,
            undecided: 0,
        };
        let (start, standing_now) = self.look(&live, terms.snapshot)?;
        live.start = start;
        let mut standing = Standing::new(rate);
        while !self.catch_up(&mut state, start)? {}
        let events = standing_now
            .iter()
            .map(|(record, seen)| {
                let told = (SetChange::Entered, EventType::Created);
                let inclusion = self.proof(&mut state.tree, record, start)?;
                let shown =
                    Shown { told, record, before: None, after: Some(seen), snapshot: true, inclusion: &inclusion };
                Ok(self.journal(number, &id, &mut standing, &shown, now))
            })
            .collect::<Result<_, Error>>()?;
        let remembered = standing_now.iter().filter(|_| live.asks_others());
        let told = remembered.map(|(record, _)| (number, record.clone(), Some(true))).collect();
        let acknowledgement = Acknowledgement {
            subscription_id: &id,
            intent_id: &live.intent.intent_id,
            publisher_did: self.identity.did().as_str(),
            base: &terms.base,
            transport: terms.transport,
            endpoint: terms.endpoint.as_ref().map(|endpoint| endpoint.url.as_str()),
            rate,
            retention_days: self.retention_days,
            valid_until: &live.intent.validity.to().to_string(),
            issued_at: &instant(now).to_string(),
            snapshot: terms.snapshot.then_some(standing_now.len() as u64),
        };
        let subscription = Subscription {
            number,
            id: id.clone(),
            issuer: live.issuer,
            principal: live.principal,
            intent_id: live.intent.intent_id.clone(),
            intent,
            acknowledgement: self.identity.sign(acknowledgement.to_value()),
            start,
            expires_at: live.expires_at,
            standing,
        };
        // Nobody else waits for what came before the first standing intent.
        let first = state.live.is_empty();
        let position = first.then_some(start);
        let webhook = terms
            .endpoint
            .as_ref()
            .map(|endpoint| Webhook::new(endpoint.url.clone(), endpoint.secret.as_ref().map(Secret::reveal)));
        let webhooks = webhook.iter().map(|webhook| (number, webhook.clone())).collect();
        let subscribed = vec![subscription.clone()];
        let feed = Feed { position, subscribed, events, told, webhooks, ..Feed::default() };
        self.store.deliver(Batch { at: now, ..Batch::default() }, feed).map_err(commit_refused)?;
        if first {
            (state.position, state.persisted) = (start, start);
        }
        state.next += 1;
        let acknowledged = subscription.acknowledgement.clone();
        state.take_in(subscription, live.intent)?;
        drop(state);
        // The key was looked at just now.
        self.checks().insert(number, Arc::new(Checked(Mutex::new(Clock::monotonic()))));
        if let Some(webhook) = webhook {
            self.webhooks.take_in(number, &id, webhook);
        }
        self.roused.notify_all();
        Ok(acknowledged)
    }

    /// The change up to which everything is known, and the answer as it stands then, where it is wanted.
    fn look(&self, live: &Live, wanted: bool) -> Result<(Sequence, Vec<(String, Seen)>), Error> {
        self.catalog.read_to(&self.store, self.store.sequence())?;
        let (start, sources) = {
            let indexes = self.catalog.indexes()?;
            let mut sources = Vec::new();
            if wanted {
                let index = indexes.of(Collection::Manifests);
                let possible = index.enumerate(&live.intent.constraints)?.possible;
                check_snapshot(possible.len())?;
                sources.extend(possible.iter().filter_map(|unit| index.source(unit)));
                sources.extend(gate::manifests_named(&indexes, &live.issuer)?);
                sources.sort_unstable();
                sources.dedup();
            }
            (indexes.applied(), sources)
        };
        let mut found = Vec::new();
        for some in sources.chunks(STRIDE) {
            for body in self.store.bodies(some)?.into_iter().flatten() {
                found.extend(self.standing_at(live, &body, start)?);
            }
        }
        check_snapshot(found.len() as u64)?;
        Ok((start, found))
    }

    fn obey(&self, subscription: &Subscription, control: &Control) -> Result<(), Error> {
        let (number, now) = (subscription.number, self.clock.millis());
        let mark = Mark {
            issuer: control.issuer.as_str().to_owned(),
            name: control.name.clone(),
            digest: control.digest,
            expires_at: (control.issued_at.seconds() + WINDOW_SECONDS + SKEW_SECONDS).saturating_mul(1_000),
        };
        let batch = Batch { mark: Some(mark), at: now, ..Batch::default() };
        if let Request::Replay(from) = control.request {
            // What was told can be brought again, also when nothing more is told.
            replayable(subscription, from)?;
            return self.bring_again(subscription, from, batch);
        }
        let mut state = self.state()?;
        let Some(live) = state.live.get(&number) else {
            let detail = "this subscription is over; nothing about it changes any more";
            return Err(Refusal::new(Class::Gone, "subscription_ended", detail).into());
        };
        let standing = live.standing.clone();
        let standing = match &control.request {
            Request::Replay(_) => return Ok(()),
            Request::Secret(secret) => return self.sign_with(number, secret, batch),
            Request::Withdraw => return self.end(&mut state, number, "withdrawn", batch),
            Request::Pause(seconds) => {
                let resumes_at =
                    seconds.map_or(0, |seconds| now.saturating_add_unsigned(seconds.saturating_mul(1_000)));
                Standing { phase: Phase::Paused, resumes_at, ..standing }
            }
            Request::Resume => Standing { phase: Phase::Active, resumes_at: 0, ..standing },
            // Never more than the intent asked for.
            Request::BackPressure(rate) => {
                let most = live.intent.max_event_rate_per_minute.unwrap_or(1).min(RATE_MAX);
                Standing { rate: (*rate).min(most), ..standing }
            }
        };
        self.stand(&mut state, number, standing, batch)?;
        drop(state);
        self.store.wake();
        Ok(())
    }

    pub(super) fn slow_down(&self, number: u64) -> Result<(), Error> {
        let mut state = self.state()?;
        let Some(live) = state.live.get(&number) else { return Ok(()) };
        let standing = Standing { rate: (live.standing.rate / 2).max(1), ..live.standing.clone() };
        let batch = Batch { at: self.clock.millis(), ..Batch::default() };
        self.stand(&mut state, number, standing, batch)
    }

    /// Writes how a subscription stands from now on.
    fn stand(&self, state: &mut State, number: u64, standing: Standing, batch: Batch) -> Result<(), Error> {
        let feed = Feed { standings: vec![(number, standing.clone())], ..Feed::default() };
        self.store.deliver(batch, feed).map_err(commit_refused)?;
        if let Some(live) = state.live.get_mut(&number) {
            live.standing = standing;
        }
        self.webhooks.ring(number);
        Ok(())
    }

    pub(super) fn end_now(&self, number: u64, reason: &'static str) -> Result<(), Error> {
        let batch = Batch { at: self.clock.millis(), ..Batch::default() };
        self.end(&mut *self.state()?, number, reason, batch)
    }

    /// How a subscription stands, signed.
    pub(super) fn described(&self, subscription: &Subscription) -> Result<Vec<u8>, Error> {
        let standing = &subscription.standing;
        let mut value = json!({
            "type": "oap.subscription.state",
            "subscription_id": subscription.id,
            "intent_id": subscription.intent_id,
            "publisher_did": self.identity.did().as_str(),
            "state": phase_name(standing.phase),
            "cursor": standing.cursor,
            "first_cursor": standing.first,
            "max_event_rate_per_minute": standing.rate,
            "waiting": self.store.pending_count(subscription.number)?,
            "valid_until": instant(subscription.expires_at - 1_000).to_string(),
            "at": self.clock.now().to_string(),
        });
        if let Some(members) = value.as_object_mut() {
            if standing.resumes_at != 0 {
                members.insert("resumes_at".to_owned(), json!(instant(standing.resumes_at).to_string()));
            }
            members.extend(self.brought(subscription)?.map(|brought| ("webhook".to_owned(), brought)));
            if standing.phase == Phase::Ended {
                members.insert("reason".to_owned(), json!(standing.reason));
                members.insert("receipt".to_owned(), self.receipt(subscription));
            }
        }
        Ok(self.identity.sign(value))
    }

    /// The receipt of a subscription that is over: what was asked, and the hash over all that was told.
    pub(super) fn receipt(&self, subscription: &Subscription) -> Value {
        let name = subscription.id.rsplit(':').next().unwrap_or_default();
        self.identity.sign_receipt(json!({
            "receipt_id": format!("urn:oap:receipt:{name}"),
            "type": "subscription",
            "timestamp": instant(subscription.standing.ended_at).to_string(),
            "principal_did": subscription.principal,
            "agent_did": subscription.issuer,
            "tool_did": self.identity.did().as_str(),
            "input_hash": format!("sha256:{}", Hash::of(&subscription.intent)),
            "output_hash": format!("sha256:{}", subscription.standing.chain),
            "previous_receipt_hash": "genesis",
        }))
    }
}

/// Records of a snapshot that are loaded at once.
const STRIDE: usize = 256;

impl State {
    /// Whether there is room for one more standing intent.
    fn check_room(&mut self, issuer: &Did, principal: &Did, filter: &Constraints) -> Result<(), Refusal> {
        let (account, unfiled) =
            self.principals.get(principal.as_str()).map_or((0, 0), |account| (account.subscriptions, account.unfiled));
        let domain = domain_of(issuer).and_then(|domain| self.domains.get(&domain).copied()).unwrap_or_default();
        let used = [
            ("subscriptions.issuer", ISSUER_MAX, account),
            ("subscriptions.domain", DOMAIN_MAX, domain),
            ("subscriptions.total", TOTAL_MAX, self.live.len()),
        ];
        let full = |used: &(&str, usize, usize)| used.2 >= used.1;
        if let Some(used) = used.into_iter().find(full) {
            let detail = "there is no room for another standing intent; withdraw one that is no longer needed";
            return Err(too_many(used, detail));
        }
        let all = self.audience.unfiled();
        let used = [
            ("subscriptions.unfiled_issuer", UNFILED_ISSUER_MAX, unfiled),
            ("subscriptions.unfiled_total", UNFILED_TOTAL_MAX, all),
        ];
        match used.into_iter().find(full) {
            Some(used) if self.only_excludes(filter) => {
                let detail = "there is no room for another filter that only says what a record must not have; add \
                              something that it must have";
                Err(too_many(used, detail))
            }
            _ => Ok(()),
        }
    }

    /// Whether a filter says nothing about what a record has, so that every change would be held against it.
    fn only_excludes(&mut self, filter: &Constraints) -> bool {
        let before = self.audience.unfiled();
        self.audience.insert(self.next, filter);
        let only_excludes = self.audience.unfiled() > before;
        self.audience.remove(self.next);
        only_excludes
    }
}

fn too_many((name, most, used): (&str, usize, usize), detail: &str) -> Refusal {
    let refusal = Refusal::new(Class::RateLimited, "too_many_subscriptions", detail);
    refusal.limited(name, most as u64, used as u64 + 1)
}

/// On whose account a standing intent stands.
fn principal_of(accepted: &Accepted) -> &Did {
    accepted.delegation.as_ref().map_or(&accepted.issuer, |delegation| &delegation.principal)
}

fn check_snapshot(records: u64) -> Result<(), Refusal> {
    if records <= SNAPSHOT_MAX as u64 {
        return Ok(());
    }
    let detail = "the answer as it stands is too large to begin with; ask once for it, page by page, or narrow it";
    let refusal = Refusal::new(Class::Unprocessable, "snapshot_too_large", detail);
    Err(refusal.limited("subscriptions.snapshot", SNAPSHOT_MAX as u64, records))
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Active => "active",
        Phase::Paused => "paused",
        Phase::Ended => "ended",
    }
}

fn read(id: &str, bytes: &[u8]) -> Result<Control, Error> {
    let document = Document::parse(bytes, &Limits::INTENT)?;
    let root = document.root();
    if !root.is_object() {
        return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a request is an object").into());
    }
    if let Some((name, _)) = root.members().find(|(name, _)| !CONTROL_MEMBERS.contains(name) && !MEMBERS.contains(name))
    {
        let detail = format!("a request about a subscription has {}", CONTROL_MEMBERS.join(", "));
        return Err(Refusal::new(Class::InvalidInput, "unknown_field", detail).at(Pointer::root().child(name)).into());
    }
    let name = text(&document, "control_id")?;
    if !name.strip_prefix(CONTROL).is_some_and(|rest| !rest.is_empty() && rest.len() <= 256) {
        return Err(invalid("control_id", "a name such as `urn:rialto:control:…` belongs here").into());
    }
    if text(&document, "subscription_id")? != id {
        return Err(invalid("subscription_id", "the address names another subscription than the message").into());
    }
    let request = request(&document)?;
    let issued_at = issued_at(&document)?;
    root.get("issuer_did").ok_or_else(|| missing("issuer_did"))?;
    let issuer = Signed::read(&document)?.issuer("issuer_did")?;
    Ok(Control { digest: Hash::of(bytes), name, issuer, issued_at, request, document })
}

fn request(document: &Document) -> Result<Request, Error> {
    let number = |name: &str, most: u64| -> Result<Option<u64>, Refusal> {
        let Some(member) = document.root().get(name) else { return Ok(None) };
        let wrong = || invalid(name, &format!("a whole number from 1 to {most} belongs here"));
        member.as_u64().filter(|number| (1..=most).contains(number)).map(Some).ok_or_else(wrong)
    };
    let seconds = number("seconds", PAUSE_SECONDS_MAX)?;
    let rate = number("max_event_rate_per_minute", RATE_MAX)?;
    Ok(match text(document, "request")?.as_str() {
        "pause" => Request::Pause(seconds),
        "resume" => Request::Resume,
        "withdraw" => Request::Withdraw,
        "back_pressure" => Request::BackPressure(rate.ok_or_else(|| missing("max_event_rate_per_minute"))?),
        "replay" => Request::Replay(number("from", CURSOR_MAX)?.ok_or_else(|| missing("from"))?),
        "secret" => {
            let wrong = || invalid("secret", "`whsec_` and 24 to 64 bytes in base64 belong here");
            Request::Secret(Secret::read(&text(document, "secret")?).ok_or_else(wrong)?)
        }
        _ => {
            let detail = "pause, resume, back_pressure, replay, secret or withdraw belongs here";
            return Err(invalid("request", detail).into());
        }
    })
}

fn invalid(name: &str, detail: &str) -> Refusal {
    Refusal::new(Class::InvalidInput, "invalid_value", detail).at(Pointer::root().child(name))
}

fn name_reused() -> Refusal {
    let detail = "another message of yours has this `control_id`; give each a name of its own";
    Refusal::new(Class::Conflict, "request_id_reused", detail).at(Pointer::root().child("control_id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use aql::Intent;

    fn filter(constraints: &Value) -> Constraints {
        let intent = json!({
            "intent_id": "urn:oap:intent:x", "issuer_did": "did:web:a.example", "category": "discovery",
            "constraints": constraints, "projection": {"include": ["/tool/did"]},
            "validity": {"from": "2026-03-01T11:55:00Z", "to": "2026-03-01T12:00:00Z"},
        });
        let document = Document::of(&intent).unwrap();
        Intent::read(document.root(), &aql::Limits::STANDARD).unwrap().constraints
    }

    #[track_caller]
    fn is_full(state: &mut State, issuer: &str, filter: &Constraints, bound: Option<&str>) {
        let did = Did::parse(issuer).unwrap();
        let limit = state.check_room(&did, &did, filter).err().and_then(|refusal| refusal.limit);
        assert_eq!(limit.as_ref().map(|limit| limit.name.as_str()), bound);
    }

    #[test]
    fn a_domain_and_a_node_have_so_many_standing_intents_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data: folder.path().to_owned(), ..Config::default() };
        let node = Node::open(&config, &mut |_, _| {}).unwrap();
        let mut state = node.feeds.state().unwrap();
        let named = filter(&json!({"path": "/tool/name", "operator": "eq", "value": "x"}));
        let other = filter(&json!({"not": {"path": "/tool/name", "operator": "eq", "value": "x"}}));
        is_full(&mut state, "did:web:a.example.com", &named, None);
        // All names under one domain count together.
        state.domains.insert("example.com".to_owned(), DOMAIN_MAX);
        is_full(&mut state, "did:web:b.example.com", &named, Some("subscriptions.domain"));
        is_full(&mut state, "did:web:example.org", &named, None);
        for number in 1..=UNFILED_TOTAL_MAX as u64 {
            is_full(&mut state, "did:web:example.org", &other, None);
            state.audience.insert(1_000_000 + number, &other);
        }
        is_full(&mut state, "did:web:example.org", &other, Some("subscriptions.unfiled_total"));
        is_full(&mut state, "did:web:example.org", &named, None);
    }

    #[test]
    fn a_snapshot_has_so_many_records_and_no_more() {
        assert!(check_snapshot(SNAPSHOT_MAX as u64).is_ok());
        assert_eq!(check_snapshot(SNAPSHOT_MAX as u64 + 1).map_err(|refusal| refusal.code), Err("snapshot_too_large"));
    }
}
