//! OAS Agent, agents as tools: engagements that serve another one, as an agent that is called or one that reviews.
//!
//! One that serves has a name that follows from the place that it serves, so it is found again whenever somebody looks. It
//! is driven by whoever needs it, or by itself when somebody decided what it waited for; then it starts the other again.
//! While it waits, the row of the other still says that there is something to do, so a restart looks at it (decisions/0291).
//!
//! INVARIANT: whoever is ended ends all that serve it.
//! INVARIANT: what an engagement that serves waits for is told to its own parties; others hear that something is waited for.

use super::budget::Worked;
use super::guesses::Role;
use super::journal::{Live, Seat, Seen, Survives};
use super::{Begins, DEPTH_MAX, Engagements, child_id};
use crate::refusal::Error;
use agent::{Engagement, Outcome, Progress, Stage, Status, User};
use json::{Map, Value, json};
use std::sync::Arc;
use store::{Engaged, Reached};

/// How the name of a reviewer begins that is an agent.
const AGENT: &str = "oagent://";
/// Hexadecimal digits that tell one way of being held up from another.
const MARK_CHARS: usize = 7;
/// Bits below that mark, for the steps of the engagement itself.
const STEP_BITS: u32 = 32;

/// What became of an engagement that another one needs.
pub(super) enum Child {
    /// It is at its end, or has answered.
    Done(Outcome),
    /// It waits for somebody.
    Waits,
}

/// What holds an engagement up: one that serves it, directly or through others, and waits for a person.
pub(super) struct Held {
    /// The one that waits.
    pub(super) by: Seen,
    /// What tells this wait from others of the same engagement.
    mark: u64,
}

impl Held {
    /// A number that is another one whenever something else is to be seen.
    pub(super) fn number(&self, steps: u64) -> u64 {
        steps | (self.mark << STEP_BITS)
    }
}

impl Engagements {
    /// The engagement that serves a place of this one, begun where it was not, and run as far as it goes. Meanwhile this
    /// one's time stands still; what the other used is added when it is done.
    pub(super) async fn child(
        self: &Arc<Self>,
        live: &mut Live,
        place: &str,
        name: &str,
        user: Option<User>,
        text: &str,
    ) -> Result<Child, Error> {
        let id = child_id(&live.engaged.id, place);
        if self.node.store.engagement(&id)?.is_none() {
            if self.depth(live)? >= DEPTH_MAX {
                let detail = format!("delegation_depth: {DEPTH_MAX} engagements within each other are possible");
                return Ok(Child::Done(Outcome::Error(detail)));
            }
            let Some(hosted) = self.hosted.get(name).cloned() else {
                return Ok(Child::Done(Outcome::Error("this node hosts no agent of this name now".to_owned())));
            };
            let begun = live.engagement.begun();
            let behind = begun.on_behalf_of.clone().or_else(|| begun.user.as_ref().map(|user| user.id.clone()));
            let parent = Some((live.engaged.id.clone(), place.to_owned()));
            let allowance = Some(self.left(live)?);
            let begins = Begins { user, on_behalf_of: behind, parent, allowance, ..Begins::default() };
            self.begin_as(id.clone(), &hosted.agent, begins, text).await?;
        }
        live.worked.pause();
        let served = self.serve(&live.seat, &id).await;
        live.worked.go_on();
        let (child, worked) = served?;
        if matches!(child, Child::Done(_)) {
            live.worked.add(worked.total());
        }
        Ok(child)
    }

    /// Drives an engagement that serves the one at this seat; whoever ends that one ends it, too.
    async fn serve(self: &Arc<Self>, served: &Seat, id: &str) -> Result<(Child, Worked), Error> {
        let seat = self.seat(id);
        let driven = async {
            let _turn = seat.turn.lock().await;
            let mut child = self.load(id)?;
            if child.engaged.reached == Reached::Running {
                Box::pin(self.drive(&mut child, &seat)).await?;
            }
            Ok((outcome(&child), child.worked))
        };
        tokio::pin!(driven);
        let mut cancelled = served.cancelled.subscribe();
        tokio::select! {
            biased;
            done = &mut driven => return done,
            ended = cancelled.wait_for(Option::is_some) => {
                // The sender is at the seat, which is held here.
                let by = ended.ok().and_then(|by| by.clone());
                seat.cancelled.send_replace(by);
            }
        }
        driven.await
    }

    /// Runs the agent that reviews something; nothing while it waits for somebody.
    pub(super) async fn verdict_of(
        self: &Arc<Self>,
        live: &mut Live,
        place: &str,
        name: &str,
        text: &str,
    ) -> Result<Option<bool>, Error> {
        match self.child(live, place, name, None, text).await? {
            Child::Waits => Ok(None),
            // Words are never an approval; only the exposed value is.
            Child::Done(Outcome::Output(output)) => Ok(Some(output.get("approved") == Some(&json!(true)))),
            Child::Done(Outcome::Error(_)) => Ok(Some(false)),
        }
    }

    /// Ends the engagement that serves a place of this one, where there is one and it is not over, with all that serve it.
    pub(super) async fn end_serving(self: &Arc<Self>, live: &Live, place: &str, by: &str) -> Result<(), Error> {
        let child = self.node.store.engagement(&child_id(&live.engaged.id, place))?;
        let Some(child) = child.filter(|child| child.reached != Reached::Over) else { return Ok(()) };
        match self.cancel_all(child, by).await {
            // Whoever moves it now was told, and ends it.
            Ok(()) | Err(Error::Refusal(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Leaves an engagement to one that serves it and waits for somebody. Its row says that there is something to do.
    pub(super) async fn leave(&self, live: &mut Live) -> Result<(), Error> {
        self.write(live, Reached::Running, None, Survives::PowerLoss).await?;
        live.seat.reached.send_replace(None);
        live.seat.tick.send_modify(|_| {});
        Ok(())
    }

    fn depth(&self, live: &Live) -> Result<usize, Error> {
        let (mut depth, mut parent) = (1, live.engaged.parent.clone());
        while let Some((id, _)) = parent {
            depth += 1;
            parent = self.engaged(&id)?.parent;
        }
        Ok(depth)
    }

    /// Has whoever watches those that this one serves look again.
    pub(super) fn tell_those_served(&self, engaged: &Engaged) -> Result<(), Error> {
        let mut parent = engaged.parent.clone();
        while let Some((id, _)) = parent {
            self.seat(&id).tick.send_modify(|_| {});
            parent = self.engaged(&id)?.parent;
        }
        Ok(())
    }

    /// What holds an engagement up; nothing where it waits itself, or something is being done.
    pub(super) fn held(&self, id: &str, engagement: &Engagement) -> Result<Option<Held>, Error> {
        let (mut way, mut by) = (String::new(), None);
        let mut place = place_served(engagement).map(|place| child_id(id, &place));
        while let Some(child) = place.take() {
            let Some(engaged) = self.node.store.engagement(&child)? else { return Ok(None) };
            let seen = match engaged.reached {
                Reached::Running | Reached::Waiting => self.load(&child)?.seen(),
                Reached::Over => return Ok(None),
            };
            way.push_str(&format!("{child} {}\n", seen.engagement.steps().len()));
            place = place_served(&seen.engagement).map(|place| child_id(&child, &place));
            by = Some((seen, engaged.reached));
        }
        // The last one waits for a person, or is at work, or has answered and its answer was not taken yet.
        let Some((by, Reached::Waiting)) = by else { return Ok(None) };
        match by.engagement.status() {
            Status::AwaitingReview | Status::AwaitingCredentials | Status::OutcomeUnknown => {}
            Status::Running | Status::AwaitingInput | Status::Completed | Status::Failed | Status::Cancelled => {
                return Ok(None);
            }
        }
        let digest: String = store::Hash::of(way.as_bytes()).to_string().chars().take(MARK_CHARS).collect();
        let mark = u64::from_str_radix(&digest, 16).unwrap_or_default().max(1);
        Ok(Some(Held { by, mark }))
    }

    /// Whether somebody is told what exactly is waited for, and where.
    pub(super) fn is_shown(&self, held: &Held, caller: Option<&str>) -> Result<bool, Error> {
        self.is(&held.by.engaged, caller, Role::Party)
    }

    /// The engagements that serve or served this one and that their owner may read, in the order of the calls, each with
    /// its place.
    pub fn those_serving(&self, id: &str, caller: &str) -> Result<Vec<(String, String)>, Error> {
        self.sought(id, Some(caller), Role::Owner)?;
        let live = self.load(id)?;
        let mut served = Vec::new();
        for place in places(&live.engagement) {
            let child = self.node.store.engagement(&child_id(id, &place))?;
            if let Some(child) = child
                && self.is(&child, Some(caller), Role::Owner)?
            {
                served.push((place, child.id));
            }
        }
        Ok(served)
    }

    /// Every engagement that serves this one and is not over.
    pub(super) fn serving(&self, live: &Live) -> Result<Vec<String>, Error> {
        let mut serving = Vec::new();
        for place in places(&live.engagement) {
            let child = self.node.store.engagement(&child_id(&live.engaged.id, &place))?;
            serving.extend(child.filter(|child| child.reached != Reached::Over).map(|child| child.id));
        }
        Ok(serving)
    }
}

/// The name of an agent that reviews; nothing where a person does.
pub(super) fn reviewing_agent(reviewer: &str) -> Option<&str> {
    reviewer.strip_prefix(AGENT)
}

/// The place that an agent serves which reviews one end of a call.
pub(super) fn review_place(call: usize, stage: Stage) -> String {
    format!("{call}/{}", stage.name())
}

/// All places of an engagement that others may serve, in the order in which they are served.
fn places(engagement: &Engagement) -> impl Iterator<Item = String> {
    (0..engagement.calls().len())
        .flat_map(|call| [review_place(call, Stage::Input), call.to_string(), review_place(call, Stage::Output)])
}

/// The place of an engagement that another one may serve right now.
pub(super) fn place_served(engagement: &Engagement) -> Option<String> {
    if engagement.status().is_final() {
        return None;
    }
    let (number, call) = engagement.calls().iter().enumerate().find(|(_, call)| !call.is_over())?;
    match &call.progress {
        Progress::Dispatched => Some(number.to_string()),
        Progress::InReview(stage, review) => reviewing_agent(&review.reviewer).map(|_| review_place(number, *stage)),
        Progress::Proposed
        | Progress::Attempted
        | Progress::Reviewed(..)
        | Progress::Unknown
        | Progress::Returned
        | Progress::Asking
        | Progress::Denied(_)
        | Progress::Released
        | Progress::Withheld(_) => None,
    }
}

/// What an engagement gives to whoever needs it: its words and what is exposed beside them.
fn outcome(child: &Live) -> Child {
    match (child.engagement.status(), child.engagement.answer()) {
        (Status::Completed | Status::AwaitingInput, Some((text, exposes, _))) => {
            let mut output = Map::new();
            output.insert("text".to_owned(), Value::from(text));
            output.extend(exposes.clone());
            Child::Done(Outcome::Output(Value::Object(output)))
        }
        (Status::Failed, _) => {
            let code = child.engagement.failure().map_or("engagement_internal", |failure| failure.code());
            Child::Done(Outcome::Error(format!("the agent failed: {code}")))
        }
        (Status::Cancelled, _) => Child::Done(Outcome::Error("somebody ended the agent's engagement".to_owned())),
        _ => Child::Waits,
    }
}
