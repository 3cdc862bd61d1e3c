//! RFC 0020 §3.6: events are brought to an address that agreed to get them.
//!
//! Each subscriber of this kind has a task that goes along its own journal: one message at a time, tried again as
//! `feed::webhook::verdict` says, and written down once the receiver has it. After a crash the message that was under way
//! is sent again, with the same `webhook-id` (decisions/0140). All tasks share one thread; what waits for the disk waits
//! beside it.
//!
//! INVARIANT: nothing is sent to an address that has not said a challenge back since it last was given up.

use super::{Checked, Feeds};
use crate::chance;
use crate::clock::{Clock, instant};
use crate::outbound::{Dids, Door, Errand, FetchError, Parcel};
use crate::publish::commit_refused;
use crate::refusal::{Class, Error, Refusal};
use feed::webhook::{
    self, Attempt, DEAD_LETTERS_MAX, ENDPOINT_BYTES_MAX, GIVE_UP_SECONDS, Message, Secret, Verdict, verdict,
};
use json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Batch, Course, DeadLetter, Event, Feed, Phase, Store, Subscription, Webhook};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// Events that are read from a journal at once.
const EVENTS: usize = 16;
/// Bytes after which no more are read at once.
const BYTES: usize = 256 * 1024;
/// How long a task waits when the door is full; that is no attempt.
const DOOR_FULL: Duration = Duration::from_secs(1);
/// How long a task waits after a fault of ours.
const RECOVERY: Duration = Duration::from_secs(1);
/// The shortest and the longest sleep before it is looked at the clock again.
const SLEEP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Where a subscriber wants events to be brought.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The address.
    pub url: String,
    /// What messages are signed with beside the node's key.
    pub secret: Option<Secret>,
}

/// Figures about what was brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Messages that receivers have.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Events that were given up.
    pub dead: u64,
    /// Addresses that messages are sent to.
    pub running: u64,
    /// Addresses that nothing is sent to until somebody asks for it.
    pub stopped: u64,
}

/// All webhooks of a node.
#[derive(Debug)]
pub(super) struct Webhooks {
    hooks: Mutex<HashMap<u64, Arc<Hook>>>,
    arrivals: UnboundedSender<Arc<Hook>>,
    /// Until the task takes it.
    arriving: Mutex<Option<UnboundedReceiver<Arc<Hook>>>>,
    delivered: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Hook {
    number: u64,
    id: String,
    state: Mutex<State>,
    /// Rung when there may be something to bring.
    bell: Notify,
}

#[derive(Debug)]
struct State {
    webhook: Webhook,
    /// How often somebody changed by hand what is brought next; an attempt that began before says nothing about it.
    turn: u64,
}

impl Hook {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> (Webhook, u64) {
        let state = self.state();
        (state.webhook.clone(), state.turn)
    }

    /// Writes down how it goes, unless somebody changed it by hand since `turn`.
    fn change(
        &self,
        store: &Store,
        turn: u64,
        at: i64,
        change: impl FnOnce(&mut Webhook, &mut Feed),
    ) -> Result<(), Error> {
        let mut state = self.state();
        if state.turn != turn {
            return Ok(());
        }
        let (mut webhook, mut feed) = (state.webhook.clone(), Feed::default());
        change(&mut webhook, &mut feed);
        feed.webhooks.push((self.number, webhook.clone()));
        store.deliver(Batch { at, ..Batch::default() }, feed).map_err(commit_refused)?;
        state.webhook = webhook;
        Ok(())
    }
}

impl Webhooks {
    /// Those that the store knows, each with the name of its subscription.
    pub(super) fn new(known: Vec<(u64, String, Webhook)>) -> Self {
        let (arrivals, arriving) = unbounded_channel();
        let webhooks = Self {
            hooks: Mutex::default(),
            arrivals,
            arriving: Mutex::new(Some(arriving)),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dead: AtomicU64::new(0),
        };
        for (number, id, webhook) in known {
            webhooks.take_in(number, &id, webhook);
        }
        webhooks
    }

    fn hooks(&self) -> MutexGuard<'_, HashMap<u64, Arc<Hook>>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, number: u64) -> Option<Arc<Hook>> {
        self.hooks().get(&number).cloned()
    }

    pub(super) fn take_in(&self, number: u64, id: &str, webhook: Webhook) {
        let state = Mutex::new(State { webhook, turn: 0 });
        let hook = Arc::new(Hook { number, id: id.to_owned(), state, bell: Notify::new() });
        self.hooks().insert(number, Arc::clone(&hook));
        // Nobody listens when the node ends.
        let _ = self.arrivals.send(hook);
    }

    /// Tells a task that there may be something to bring.
    pub(super) fn ring(&self, number: u64) {
        if let Some(hook) = self.hooks().get(&number) {
            hook.bell.notify_one();
        }
    }

    fn forget(&self, number: u64) {
        self.hooks().remove(&number);
    }

    /// Forgets one of which nothing is kept any more, however it stands; its task ends.
    pub(super) fn let_go(&self, number: u64) {
        let Some(hook) = self.hooks().remove(&number) else { return };
        let mut state = hook.state();
        // What is under way says nothing about it any more.
        (state.webhook.course, state.turn) = (Course::Done, state.turn + 1);
        drop(state);
        hook.bell.notify_one();
    }

    pub(super) fn figures(&self) -> Brought {
        let load = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let mut brought = Brought {
            delivered: load(&self.delivered),
            failed: load(&self.failed),
            dead: load(&self.dead),
            ..Brought::default()
        };
        for hook in self.hooks().values() {
            match hook.state().webhook.course {
                Course::Running => brought.running += 1,
                Course::Gone | Course::GivenUp => brought.stopped += 1,
                Course::Done => {}
            }
        }
        brought
    }
}

impl Feeds {
    /// How it goes with what is brought to a subscriber, for whoever asks how its subscription stands.
    pub(super) fn brought(&self, subscription: &Subscription) -> Result<Option<Value>, Error> {
        let Some(hook) = self.webhooks.find(subscription.number) else { return Ok(None) };
        let (webhook, _) = hook.now();
        let letters = self.store.dead_letters(subscription.number)?;
        let letters: Vec<Value> = letters
            .iter()
            .map(|letter| {
                json!({
                    "cursor": letter.cursor,
                    "at": instant(letter.at).to_string(),
                    "attempts": letter.attempts,
                    "status": letter.status,
                })
            })
            .collect();
        let mut value = json!({
            "endpoint": webhook.endpoint,
            "state": course_name(webhook.course),
            "delivered": webhook.delivered,
            "attempts": webhook.attempts,
            "dead_letters": letters,
        });
        if let (true, Some(members)) = (webhook.attempts > 0, value.as_object_mut()) {
            members.insert("next_attempt_at".to_owned(), json!(instant(webhook.due_at).to_string()));
        }
        Ok(Some(value))
    }

    /// Goes back to an event and brings it and what follows it again.
    pub(super) fn bring_again(&self, subscription: &Subscription, from: u64, batch: Batch) -> Result<(), Error> {
        let hook = self.webhooks.find(subscription.number).ok_or_else(not_brought)?;
        let letters = self.store.dead_letters(subscription.number)?;
        let again = letters.into_iter().filter(|letter| letter.cursor >= from);
        let buried = again.map(|letter| (letter.subscription, letter.cursor)).collect();
        self.by_hand(&hook, batch, buried, |webhook| {
            *webhook = Webhook {
                course: Course::Running,
                delivered: from.saturating_sub(1),
                attempts: 0,
                first_at: 0,
                due_at: 0,
                ..webhook.clone()
            };
        })
    }

    /// Signs with another secret from now on, and for a while with the one before, too.
    pub(super) fn sign_with(&self, number: u64, secret: &Secret, batch: Batch) -> Result<(), Error> {
        let hook = self.webhooks.find(number).ok_or_else(not_brought)?;
        let until = batch.at.saturating_add(webhook::SECRET_SECONDS * 1_000);
        self.by_hand(&hook, batch, Vec::new(), |webhook| {
            webhook.secrets.retain(|(_, ends_at)| *ends_at == 0);
            webhook.secrets.iter_mut().for_each(|(_, ends_at)| *ends_at = until);
            webhook.secrets.push((secret.reveal(), 0));
        })
    }

    fn by_hand(
        &self,
        hook: &Hook,
        batch: Batch,
        buried: Vec<(u64, u64)>,
        change: impl FnOnce(&mut Webhook),
    ) -> Result<(), Error> {
        let mut state = hook.state();
        let mut webhook = state.webhook.clone();
        change(&mut webhook);
        let feed = Feed { webhooks: vec![(hook.number, webhook.clone())], buried, ..Feed::default() };
        self.store.deliver(batch, feed).map_err(commit_refused)?;
        *state = State { webhook, turn: state.turn + 1 };
        drop(state);
        hook.bell.notify_one();
        Ok(())
    }

    /// Where a challenge goes before anything is brought to a subscriber again, when it was given up.
    pub(super) fn given_up(&self, number: u64) -> Option<String> {
        let (webhook, _) = self.webhooks.find(number)?.now();
        (webhook.course != Course::Running).then_some(webhook.endpoint)
    }

    /// Asks an address whether it wants the events of a subscription.
    pub(super) async fn challenge(&self, door: &Door, subscription_id: &str, url: &str) -> Result<(), Error> {
        let token = chance::name()?;
        let body = self.identity.sign(webhook::challenge(subscription_id, &token));
        let (id, timestamp) = (format!("chl_{token}"), self.clock.millis() / 1_000);
        let message = Message { id: &id, timestamp, url, body: &body };
        let headers = self.identity.webhook_headers(&message, &[]);
        let parcel = Parcel { headers: &headers, body: &body, is_question: true };
        let answered = door.send(Errand::Challenge, url, &parcel, Clock::monotonic()).await;
        match answered {
            Ok(answered) if webhook::answers(&token, answered.status, &answered.body) => Ok(()),
            Err(FetchError::RateLimited) => {
                let detail = "too many requests wait to be sent to this host; try again later";
                let refusal = Refusal::new(Class::RateLimited, "too_many_requests", detail);
                Err(refusal.retry_after(5_000).into())
            }
            Err(error @ (FetchError::Url | FetchError::HostForbidden | FetchError::PortForbidden)) => {
                Err(forbidden(error))
            }
            // What else came back is not told: the address need not be the asker's.
            Ok(_) | Err(_) => {
                let detail = "the address did not say the challenge back; it must answer with a status of success and \
                              the member `challenge` of what it is sent";
                Err(Refusal::new(Class::Unprocessable, "webhook_unverified", detail).into())
            }
        }
    }
}

/// Whether an address may be one that events are brought to.
pub(super) fn check_endpoint(door: &Door, url: &str) -> Result<(), Error> {
    if url.len() > ENDPOINT_BYTES_MAX {
        let refusal = Refusal::new(Class::InvalidInput, "webhook_forbidden", "the address is longer than allowed");
        let got = url.len() as u64;
        return Err(refusal.limited("webhooks.endpoint_bytes", ENDPOINT_BYTES_MAX as u64, got).into());
    }
    door.check(url).map_err(forbidden)
}

fn forbidden(error: FetchError) -> Error {
    let detail = format!("events are not brought to this address: {error}");
    Refusal::new(Class::InvalidInput, "webhook_forbidden", detail).into()
}

fn not_brought() -> Refusal {
    let detail = "the events of this subscription are not brought to an address; read them from its journal";
    Refusal::new(Class::Conflict, "not_a_webhook", detail)
}

fn course_name(course: Course) -> &'static str {
    match course {
        Course::Running => "running",
        Course::Gone => "gone",
        Course::GivenUp => "given_up",
        Course::Done => "done",
    }
}

/// The thread that brings events, until this is dropped.
#[derive(Debug)]
pub(crate) struct Postman {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Postman {
    pub(crate) fn start(feeds: &Arc<Feeds>, door: Arc<Door>, dids: Dids) -> Result<Self, Error> {
        let arriving = feeds.webhooks.arriving.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut arriving = arriving.ok_or_else(|| Error::fault("events are brought by one thread only"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::fault)?;
        let post = Post { feeds: Arc::clone(feeds), door, dids };
        let (stop, mut stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                let mut tasks = JoinSet::new();
                loop {
                    tokio::select! {
                        _ = &mut stopped => return,
                        Some(hook) = arriving.recv() => {
                            tasks.spawn(Task::new(post.clone(), hook).run());
                        }
                        Some(_) = tasks.join_next() => {}
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name("feed-postman".into()).spawn(run).map_err(Error::fault)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Postman {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What every task works with.
#[derive(Clone)]
struct Post {
    feeds: Arc<Feeds>,
    door: Arc<Door>,
    dids: Dids,
}

/// One subscriber's messages, one after the other.
struct Task {
    post: Post,
    hook: Arc<Hook>,
    /// Events that were read and not brought yet.
    backlog: VecDeque<Event>,
    /// When what was read may no longer be what is next.
    turn: u64,
    checked: Arc<Checked>,
}

/// What a task does next.
enum Next {
    /// Goes on at once.
    On,
    /// Waits for the bell.
    Ring,
    /// Waits for the bell, and no longer than this.
    RingOr(Duration),
    /// Nothing any more.
    Over,
}

/// What is brought.
enum Letter {
    Event(Event),
    /// Events up to this one are no longer kept.
    Gap(u64, Vec<u8>),
    /// It is over.
    End(Vec<u8>),
}

impl Task {
    fn new(post: Post, hook: Arc<Hook>) -> Self {
        let checked = post.feeds.checked(hook.number);
        Self { post, hook, backlog: VecDeque::new(), turn: 0, checked }
    }

    async fn run(mut self) {
        loop {
            let next = match self.step().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::error!(%error, "a message to a subscriber cannot be brought and is tried again");
                    tokio::time::sleep(RECOVERY).await;
                    Next::On
                }
            };
            match next {
                Next::On => {}
                Next::Ring => self.hook.bell.notified().await,
                Next::RingOr(patience) => {
                    let _ = tokio::time::timeout(patience, self.hook.bell.notified()).await;
                }
                Next::Over => {
                    self.post.feeds.webhooks.forget(self.hook.number);
                    self.post.feeds.checks().remove(&self.hook.number);
                    return;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Next, Error> {
        let (webhook, turn) = self.hook.now();
        if turn != self.turn {
            self.turn = turn;
            self.backlog.clear();
        }
        match webhook.course {
            Course::Running => {}
            Course::Gone | Course::GivenUp => return Ok(Next::Ring),
            Course::Done => return Ok(Next::Over),
        }
        let now = self.post.feeds.clock.millis();
        if webhook.attempts > 0 && webhook.due_at > now {
            let left = Duration::from_millis((webhook.due_at - now).unsigned_abs());
            return Ok(Next::RingOr((left / 10).clamp(SLEEP.0, SLEEP.1)));
        }
        let Some(subscription) = self.subscription().await? else { return Ok(Next::Over) };
        if self.checked.is_due() {
            self.post.feeds.recheck(&self.post.dids, &subscription).await?;
            return Ok(Next::On);
        }
        if subscription.standing.phase == Phase::Paused {
            return Ok(Next::Ring);
        }
        match self.letter(&subscription, webhook.delivered).await? {
            Some(letter) => self.bring(&subscription, webhook, letter).await,
            None => Ok(Next::Ring),
        }
    }

    async fn subscription(&self) -> Result<Option<Subscription>, Error> {
        let (feeds, id) = (Arc::clone(&self.post.feeds), self.hook.id.clone());
        aside(move || Ok(feeds.store.subscription(&id)?)).await
    }

    /// What is brought next, after an event.
    async fn letter(&mut self, subscription: &Subscription, delivered: u64) -> Result<Option<Letter>, Error> {
        while self.backlog.front().is_some_and(|event| event.cursor <= delivered) {
            self.backlog.pop_front();
        }
        if self.backlog.is_empty() {
            let (feeds, number) = (Arc::clone(&self.post.feeds), self.hook.number);
            let read = aside(move || Ok(feeds.store.events_after(number, delivered, EVENTS, BYTES)?));
            self.backlog.extend(read.await?);
        }
        let feeds = &self.post.feeds;
        match self.backlog.front() {
            Some(first) if first.cursor > delivered + 1 => {
                let before_first = first.cursor - 1;
                Ok(Some(Letter::Gap(before_first, feeds.truncated(&subscription.id, delivered, before_first))))
            }
            Some(event) => Ok(Some(Letter::Event(event.clone()))),
            None if subscription.standing.phase == Phase::Ended => {
                let (feeds, ended) = (Arc::clone(feeds), subscription.clone());
                Ok(Some(Letter::End(aside(move || feeds.described(&ended)).await?)))
            }
            None => Ok(None),
        }
    }

    /// Brings one message, once, and writes down what came of it.
    async fn bring(&mut self, subscription: &Subscription, webhook: Webhook, letter: Letter) -> Result<Next, Error> {
        let feeds = &self.post.feeds;
        let began = feeds.clock.millis();
        let (id, body) = match &letter {
            Letter::Event(event) => (webhook::message_id(&subscription.id, event.cursor), event.body.as_slice()),
            Letter::Gap(before_first, body) => (webhook::gap_id(&subscription.id, *before_first), body.as_slice()),
            Letter::End(body) => (webhook::end_id(&subscription.id), body.as_slice()),
        };
        let message = Message { id: &id, timestamp: began / 1_000, url: &webhook.endpoint, body };
        let good = webhook.secrets.iter().filter(|(_, until)| *until == 0 || *until > began);
        let secrets: Vec<Secret> = good.filter_map(|(secret, _)| Secret::read(secret)).collect();
        let headers = feeds.identity.webhook_headers(&message, &secrets);
        let parcel = Parcel { headers: &headers, body, is_question: false };
        let sent = self.post.door.send(Errand::Webhook, &webhook.endpoint, &parcel, Clock::monotonic()).await;
        let attempt = match sent {
            Ok(answered) => Attempt::Answered { status: answered.status, retry_after: answered.retry_after },
            Err(FetchError::RateLimited) => return Ok(Next::RingOr(DOOR_FULL)),
            Err(_) => Attempt::Failed,
        };
        self.write_down(webhook, &letter, attempt, began).await?;
        if matches!(attempt, Attempt::Answered { status: 429, .. }) {
            let (feeds, number) = (Arc::clone(feeds), self.hook.number);
            aside(move || feeds.slow_down(number)).await?;
        }
        Ok(Next::On)
    }

    async fn write_down(&self, webhook: Webhook, letter: &Letter, attempt: Attempt, began: i64) -> Result<(), Error> {
        let (feeds, hook, turn) = (Arc::clone(&self.post.feeds), Arc::clone(&self.hook), self.turn);
        let now = feeds.clock.millis();
        let attempts = webhook.attempts + 1;
        let first = if webhook.attempts == 0 { began } else { webhook.first_at };
        let chance = u64::from_be_bytes(chance::bytes::<8>()?);
        let tried = usize::try_from(attempts).unwrap_or(usize::MAX);
        let verdict = verdict(attempt, tried, first / 1_000, now / 1_000, chance);
        let status = match attempt {
            Attempt::Answered { status, .. } => status,
            Attempt::Failed => 0,
        };
        let (delivered, cursor, is_last) = match letter {
            Letter::Event(event) => (event.cursor, Some(event.cursor), false),
            Letter::Gap(before_first, _) => (*before_first, None, false),
            Letter::End(_) => (webhook.delivered, None, true),
        };
        let figures = &feeds.webhooks;
        match verdict {
            Verdict::Delivered => figures.delivered.fetch_add(1, Ordering::Relaxed),
            Verdict::Again(_) | Verdict::Dead(_) => figures.failed.fetch_add(1, Ordering::Relaxed),
        };
        if matches!(verdict, Verdict::Dead(_)) {
            figures.dead.fetch_add(u64::from(cursor.is_some()), Ordering::Relaxed);
            tracing::warn!(subscription = hook.id, status, attempts, "a subscriber's address is given up");
        }
        aside(move || {
            let kept = feeds.store.dead_letters(hook.number)?;
            hook.change(&feeds.store, turn, now, |webhook, feed| match verdict {
                Verdict::Delivered => {
                    (webhook.delivered, webhook.attempts, webhook.first_at, webhook.due_at) = (delivered, 0, 0, 0);
                    webhook.course = if is_last { Course::Done } else { Course::Running };
                }
                Verdict::Again(seconds) => {
                    (webhook.attempts, webhook.first_at) = (attempts, first);
                    webhook.due_at = now.saturating_add_unsigned(seconds.saturating_mul(1_000));
                }
                Verdict::Dead(cause) => {
                    (webhook.attempts, webhook.first_at, webhook.due_at) = (0, 0, 0);
                    webhook.course = match cause {
                        webhook::Cause::Gone => Course::Gone,
                        webhook::Cause::TooLate => Course::GivenUp,
                    };
                    if let Some(cursor) = cursor {
                        let letter = DeadLetter { subscription: hook.number, cursor, at: now, attempts, status };
                        feed.dead_letters.push(letter);
                        let oldest = kept.len().saturating_sub(DEAD_LETTERS_MAX - 1);
                        feed.buried.extend(kept.iter().take(oldest).map(|letter| (letter.subscription, letter.cursor)));
                    }
                }
            })
        })
        .await
    }
}

/// Does something that waits for the disk where it holds up nobody's messages.
pub(super) async fn aside<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(job).await.map_err(Error::fault)?
}

/// The bounds, by the names they have in the table of limits.
pub(crate) fn limits(policy: &crate::outbound::DoorPolicy) -> Value {
    json!({
        "endpoint_bytes": ENDPOINT_BYTES_MAX,
        "secret_bytes_min": webhook::SECRET_BYTES_MIN,
        "secret_bytes": webhook::SECRET_BYTES_MAX,
        "challenge_answer_bytes": webhook::ANSWER_BYTES_MAX,
        "attempt_seconds": webhook::ATTEMPT_SECONDS,
        "retry_after_seconds": webhook::RETRY_AFTER_MAX,
        "give_up_seconds": GIVE_UP_SECONDS,
        "dead_letters": DEAD_LETTERS_MAX,
        "parallel": policy.bring_parallel,
        "parallel_per_endpoint": 1,
        "parallel_per_host": policy.bring_parallel_per_host,
        "domain_per_minute": policy.bring_per_minute,
    })
}
