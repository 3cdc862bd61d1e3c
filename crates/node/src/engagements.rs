//! OAS Server: engagements with the agents of this node, from the first word to the last.
//!
//! `agent::next` decides what must happen, `run` does it, and `journal` writes it down: what is decided is written before
//! an effect begins, and what came of the effect before anything follows from it; on disk it is before a call that may not
//! be made twice. Whoever waits (for a user, a reviewer,
//! credentials, another engagement) holds nothing; whatever they wait for starts `run` again, and so does a restart.
//!
//! | Room | Job |
//! |---|---|
//! | `hosted` | the agents of this node and what each is given |
//! | `journal` | an engagement in memory, level with its journal |
//! | `run`, `perform` | what is next, done and written down |
//! | `serving` | engagements that serve another one |
//! | `reviews` | who decides what, and whether they may |
//! | `alarm` | when the time of a review is over |
//! | `budget` | what an engagement may use, and what is left of it for one that serves it |
//! | `accounts` | what each user and each owner has used today, and may |
//! | `stop` | how a node that stops leaves its engagements |
//! | `ask` | the tool by which an agent puts an intent to this node |
//! | `visits`, `remotes` | agents elsewhere: by their description, and by their document in the version that counts |
//! | `published` | agents as others find and call them: described, by JSON-RPC, by MCP |
//! | `guesses` | who may hear of an engagement, and how often somebody may name one in vain |
//! | `view` | what a caller, a reviewer and an owner are shown |
//!
//! INVARIANT: one task at a time moves an engagement. Nobody but its caller and the agent's owner is told that it exists.

mod accounts;
mod alarm;
mod ask;
mod budget;
mod guesses;
mod hosted;
mod journal;
mod perform;
mod published;
mod remotes;
mod reviews;
mod run;
mod serving;
mod stop;
mod view;
mod visits;

pub use hosted::{Hosting, HostingError, Person, Resident, Withheld, approve_tool};
pub use reviews::{Decided, Listed, Settled};
pub use stop::FAREWELL;

use crate::chance;
use crate::clock::instant;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use accounts::Accounts;
use agent::{Allowance, Begun, Engagement, Remembered, Step, User};
use alarm::Alarm;
use guesses::{GUESSES_MAX, Guesses, Role};
use host::Toolbox;
use journal::{Live, Seat, Seen, Survives};
use json::{Map, Value, json};
use remotes::Remotes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stop::Stop;
use store::{Engaged, Reached};
use tokio::sync::{Semaphore, watch};

/// Bytes of what a user says at once.
pub const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Milliseconds that a caller may wait for a change.
pub const WAIT_MS_MAX: u64 = 25_000;
/// Engagements that a list names.
pub const LISTED_MAX: usize = 100;
/// Engagements that are moved at once; the others wait for their turn.
pub(crate) const RUNNING_MAX: usize = 256;
/// Engagements within engagements.
pub(crate) const DEPTH_MAX: usize = 4;
/// Seconds for which a review is open.
pub(crate) const REVIEW_SECONDS: i64 = 24 * 3_600;
/// Seconds of work on one word of a user, where the operator says nothing.
pub(crate) const WORK_SECONDS: u64 = 3_600;
/// Bytes of what an agent is reminded of.
const MEMORY_BYTES_MAX: usize = 64 * 1024;
/// Hexadecimal digits of the name of an engagement that serves another: 160 bits.
const CHILD_CHARS: usize = 40;
/// How long somebody waits for the task that moves an engagement.
const TURN_TIME: Duration = Duration::from_secs(5);

/// The engagements of a node.
pub struct Engagements {
    node: Arc<Node>,
    toolbox: Toolbox,
    models: BTreeMap<String, Arc<dyn host::Model>>,
    hosted: BTreeMap<String, Arc<Resident>>,
    /// Documents of engagements that began with an earlier version, by digest.
    earlier: Mutex<HashMap<String, Arc<agent::Agent>>>,
    people: Vec<Person>,
    options: agent::Options,
    strangers: bool,
    seats: Mutex<HashMap<String, Arc<Seat>>>,
    places: Semaphore,
    remotes: Remotes,
    stop: watch::Sender<Stop>,
    /// Whether collectors are shown what is said, put in and brought out.
    content: bool,
    /// Whether the disk was quick when it was last waited for.
    swift: AtomicBool,
    guesses: Guesses,
    accounts: Accounts,
    alarm: Alarm,
    /// Digests of definitions that the operator was warned of.
    warned: Mutex<BTreeSet<String>>,
    /// How many definitions of tools are in the file of those that were seen.
    pinned: Mutex<usize>,
}

impl fmt::Debug for Engagements {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Engagements({} agents)", self.hosted.len())
    }
}

/// Who begins an engagement, and for whom.
#[derive(Clone, Debug, Default)]
struct Begins {
    user: Option<User>,
    on_behalf_of: Option<String>,
    /// The engagement that it serves, and the place in it.
    parent: Option<(String, String)>,
    /// What is left for it of the other's budget.
    allowance: Option<Allowance>,
    memory: Vec<Remembered>,
}

impl Engagements {
    /// The agents of this node, by name.
    pub fn hosted(&self) -> impl Iterator<Item = &Resident> {
        self.hosted.values().map(Arc::as_ref)
    }

    /// An agent of this node.
    pub fn agent(&self, name: &str) -> Result<&Resident, Error> {
        let detail = "this node hosts no agent of this name; GET /agents lists them";
        let none = || Refusal::new(Class::NotFound, "agent_not_found", detail);
        self.hosted.get(name).map(Arc::as_ref).ok_or_else(|| none().into())
    }

    /// The tools of this node.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Whether somebody who proves nothing may begin an engagement.
    pub fn welcomes_strangers(&self) -> bool {
        self.strangers
    }

    /// Begins an engagement with an agent; its name, once it is on disk.
    pub async fn begin(self: &Arc<Self>, name: &str, caller: Option<&str>, text: &str) -> Result<String, Error> {
        let hosted = self.hosted.get(name).cloned();
        let Some(hosted) = hosted else { return Err(self.agent(name).err().unwrap_or_else(|| Error::fault("agents"))) };
        check_text(text)?;
        if caller.is_none() && (!self.strangers || hosted.agent.lends_identity() && !self.options.lends_to_strangers) {
            let detail = "this agent acts in somebody's name; sign the request, or send a token";
            return Err(Refusal::new(Class::AuthRequired, "authentication_required", detail).into());
        }
        self.check_day(&Self::payer_of(&hosted.agent, caller))?;
        let user = caller.map(|caller| self.user(caller));
        let id = chance::name()?;
        let memory = self.memory(&hosted, user.as_ref())?;
        let begins = Begins { user, memory, ..Begins::default() };
        let live = self.begin_as(id.clone(), &hosted.agent, begins, text).await?;
        // It may begin to work meanwhile; nobody is told before it is on disk.
        let entry = live.entry;
        self.start(live);
        self.settle_with_others(entry).await?;
        Ok(id)
    }

    /// Writes down that an engagement began, with the first words.
    async fn begin_as(&self, id: String, agent: &Arc<agent::Agent>, begins: Begins, text: &str) -> Result<Live, Error> {
        let now = self.node.clock().millis();
        let begun = Begun {
            id: id.clone(),
            started_at: instant(now).to_string(),
            agent: agent.name.to_string(),
            document: agent.digest().to_owned(),
            user: begins.user.clone(),
            on_behalf_of: begins.on_behalf_of,
            memory: begins.memory,
            allowance: begins.allowance,
            remotes: self.versions(agent),
        };
        let engaged = Engaged {
            id,
            agent: agent.name.to_string(),
            document: agent.digest().to_owned(),
            caller: begins.user.map(|user| user.id),
            parent: begins.parent,
            begun_at: now,
            reached: Reached::Running,
            reviewer: None,
            due: 0,
        };
        let mut live = self.live(engaged, Engagement::begin(begun), Arc::clone(agent));
        live.record(Step::UserSaid { text: text.to_owned() })?;
        self.write(&mut live, Reached::Running, None, Survives::Kill).await?;
        Ok(live)
    }

    /// A user says more.
    pub async fn say(self: &Arc<Self>, id: &str, caller: Option<&str>, text: &str) -> Result<(), Error> {
        check_text(text)?;
        let engaged = self.sought(id, caller, Role::Caller)?;
        let payer = self.payer(&engaged)?;
        self.move_on(id, |live| {
            if live.engagement.status().is_final() {
                return Err(over().into());
            }
            // Heard, it would end the engagement; refused, it can be said tomorrow.
            self.check_day(&payer)?;
            live.record(Step::UserSaid { text: text.to_owned() }).map_err(|_| busy().into())
        })
        .await
    }

    /// Ends an engagement, and what it waits for.
    pub async fn cancel(self: &Arc<Self>, id: &str, caller: Option<&str>) -> Result<(), Error> {
        let engaged = self.sought(id, caller, Role::Party)?;
        self.cancel_all(engaged, caller.unwrap_or("caller")).await
    }

    /// Ends an engagement and all that serve it. Those that cannot be ended at once hear of it and end by themselves.
    async fn cancel_all(self: &Arc<Self>, engaged: Engaged, by: &str) -> Result<(), Error> {
        let (mut left, mut refused) = (vec![engaged.id], None);
        while let Some(id) = left.pop() {
            // Whoever moves it now hears of it, and tells whoever serves it; if nobody does, it is done here.
            self.seat(&id).cancelled.send_replace(Some(by.to_owned()));
            let step = Step::Cancelled { by: by.to_owned() };
            match self.move_on(&id, |live| live.record(step).map_err(|_| over().into())).await {
                Ok(()) => {}
                Err(Error::Refusal(refusal)) if refusal.code == "engagement_over" => {}
                Err(error @ Error::Refusal(_)) => refused = Some(error),
                Err(error) => return Err(error),
            }
            left.extend(self.serving(&self.load(&id)?)?);
        }
        refused.map_or(Ok(()), Err)
    }

    /// Tries again what waited for a user's credentials.
    pub async fn credentials_arrived(self: &Arc<Self>, id: &str, caller: Option<&str>) -> Result<(), Error> {
        self.sought(id, caller, Role::Caller)?;
        self.move_on(id, |live| {
            let waits = live.engagement.calls().iter().position(|call| call.lacks_credentials);
            let detail = "this engagement does not wait for credentials";
            let none = || Refusal::new(Class::Conflict, "engagement_not_waiting", detail);
            let call = waits.ok_or_else(|| Error::from(none()))?;
            live.record(Step::CredentialsArrived { call })
        })
        .await
    }

    /// Takes the turn of an engagement, lets a step be added, writes it down and goes on.
    async fn move_on(
        self: &Arc<Self>,
        id: &str,
        step: impl FnOnce(&mut Live) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let seat = self.seat(id);
        let turn = tokio::time::timeout(TURN_TIME, seat.turn.lock()).await.map_err(|_| Error::from(busy()))?;
        let mut live = self.load(id)?;
        step(&mut live)?;
        self.write(&mut live, Reached::Running, None, Survives::PowerLoss).await?;
        self.tell_those_served(&live.engaged)?;
        drop(turn);
        self.start(live);
        Ok(())
    }

    fn seat(&self, id: &str) -> Arc<Seat> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds those any more; one look in a while keeps the list as short as what happens now.
        if seats.len() > 2 * RUNNING_MAX {
            seats.retain(|_, seat| Arc::strong_count(seat) > 1);
        }
        Arc::clone(seats.entry(id.to_owned()).or_default())
    }

    /// What is to be seen of an engagement that rests, where somebody sat at it lately.
    fn resting(&self, id: &str) -> Option<Arc<Seen>> {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.get(id).and_then(|seat| seat.seen())
    }

    fn engaged(&self, id: &str) -> Result<Engaged, Error> {
        self.node.store.engagement(id)?.ok_or_else(|| unknown().into())
    }

    /// The document of a version that some engagement began with.
    fn document(&self, digest: &str) -> Result<Arc<agent::Agent>, Error> {
        if let Some(hosted) = self.hosted.values().find(|hosted| hosted.agent.digest() == digest) {
            return Ok(Arc::clone(&hosted.agent));
        }
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = earlier.get(digest) {
            return Ok(Arc::clone(agent));
        }
        let spec =
            self.node.store.spec(digest)?.ok_or_else(|| Error::fault("the document of an engagement is gone"))?;
        let read =
            agent::Agent::read(&spec.body).map_err(|_| Error::fault("the document of an engagement is unread"))?;
        let agent = Arc::new(read);
        earlier.insert(digest.to_owned(), Arc::clone(&agent));
        Ok(agent)
    }

    /// The engagement as its journal has it.
    fn load(&self, id: &str) -> Result<Live, Error> {
        let engaged = self.engaged(id)?;
        let (agent, written) = (self.document(&engaged.document)?, self.node.store.steps(id)?);
        let steps: Result<Vec<Step>, _> = written.iter().map(|noted| serde_json::from_slice(&noted.body)).collect();
        let steps = steps.map_err(|error| Error::fault(format!("a step of `{id}` is not understood: {error}")))?;
        let engagement = Engagement::fold(steps).map_err(|error| Error::fault(format!("`{id}`: {error}")))?;
        Ok(self.live(engaged, engagement, agent).written(&written))
    }

    /// What an agent is reminded of: the last turns with this user, where the operator and the document let it remember.
    fn memory(&self, hosted: &Resident, user: Option<&User>) -> Result<Vec<Remembered>, Error> {
        let Some(user) = user.filter(|_| hosted.memory > 0 && hosted.agent.lifespan.retain_memory) else {
            return Ok(Vec::new());
        };
        for engaged in self.node.store.engagements_of(&user.id, LISTED_MAX)? {
            if engaged.agent != hosted.agent.name.as_str() || engaged.parent.is_some() {
                continue;
            }
            let live = self.load(&engaged.id)?;
            let mut turns = agent::memory(&live.agent, &live.engagement);
            let mut bytes = 0;
            let fitting = turns.iter().rev().take(hosted.memory).take_while(|turn| {
                bytes += turn.user.len() + turn.answer.len();
                bytes <= MEMORY_BYTES_MAX
            });
            let forgotten = turns.len() - fitting.count();
            if forgotten < turns.len() {
                return Ok(turns.split_off(forgotten));
            }
        }
        Ok(Vec::new())
    }

    fn user(&self, caller: &str) -> User {
        let mut known = self.people.iter().filter(|person| person.did == caller);
        let email = known.find_map(|person| person.email.clone());
        User { id: caller.to_owned(), email }
    }

    /// Whether a name in a document means this caller: by DID, by the operator's name for it, or by address.
    fn means(&self, name: &str, caller: &str) -> bool {
        name == caller || self.people.iter().any(|person| person.did == caller && person.is_called(name))
    }

    fn is_callers(&self, engaged: &Engaged, caller: Option<&str>) -> bool {
        match (&engaged.caller, caller) {
            (Some(begun_by), Some(caller)) => begun_by == caller,
            // Whoever began without a name has the engagement's own name for a proof, where no agent began it.
            (None, _) => engaged.parent.is_none(),
            (Some(_), None) => false,
        }
    }

    fn is_owner(&self, agent: &agent::Agent, caller: Option<&str>) -> bool {
        caller.is_some_and(|caller| self.means(&agent.owner, caller))
    }
}

/// The bounds of engagements, by name.
pub(crate) fn limits() -> Value {
    let mut named = Map::new();
    for (group, bounds) in agent::Limits::default().table().as_object().into_iter().flatten() {
        let bounds = bounds.as_object().into_iter().flatten().filter(|(_, bound)| bound.is_u64());
        let name = |name: &str| if group == "engagement" { name.to_owned() } else { format!("{group}_{name}") };
        named.extend(bounds.map(|(bound, value)| (name(bound), value.clone())));
    }
    let ours = [
        ("text_bytes", TEXT_BYTES_MAX as u64),
        ("depth", DEPTH_MAX as u64),
        ("running", RUNNING_MAX as u64),
        ("review_seconds", REVIEW_SECONDS.unsigned_abs()),
        ("seconds", WORK_SECONDS),
        ("wait_ms", WAIT_MS_MAX),
        ("listed", LISTED_MAX as u64),
        ("memory_bytes", MEMORY_BYTES_MAX as u64),
        ("farewell_seconds", FAREWELL.as_secs()),
        ("guesses", GUESSES_MAX),
    ];
    named.extend(ours.map(|(name, bound)| (name.to_owned(), json!(bound))));
    Value::Object(named)
}

/// The name of an engagement that serves a place of another one: found again after a restart, and guessed by nobody who
/// does not know the other's.
fn child_id(parent: &str, place: &str) -> String {
    let digest = store::Hash::of(format!("rialto engagement\n{parent}\n{place}").as_bytes());
    digest.to_string().chars().take(CHILD_CHARS).collect()
}

fn check_text(text: &str) -> Result<(), Error> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let detail = "this is more than an agent is told at once";
    let refusal = Refusal::new(Class::TooLarge, "engagement_text_too_long", detail);
    Err(refusal.limited("engagement.text_bytes", TEXT_BYTES_MAX as u64, text.len() as u64).into())
}

fn unknown() -> Refusal {
    let detail = "there is no such engagement, or it is somebody else's";
    Refusal::new(Class::NotFound, "engagement_not_found", detail)
}

fn busy() -> Refusal {
    let detail = "the engagement is at work; wait until it asks or has answered";
    Refusal::new(Class::Conflict, "engagement_busy", detail).retry_after(1_000)
}

fn over() -> Refusal {
    Refusal::new(Class::Conflict, "engagement_over", "the engagement is over; begin a new one")
}
