//! OAS Engagement: `loop { next → perform → journal }`, until somebody else has to act.

use super::journal::{Live, Seat, Survives};
use super::{Begins, DEPTH_MAX, Engagements, child_id};
use crate::refusal::Error;
use agent::{Identity, Next, Outcome, Status, Step, Target, User, Wait, next};
use json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::Reached;
use tracing::{Instrument, debug_span};

/// What became of an engagement that another one needs.
enum Child {
    /// It is at its end, or has answered.
    Done(Outcome),
    /// It waits for somebody.
    Waits,
}

impl Engagements {
    /// Goes on with everything that a restart interrupted, and with reviews whose time is over.
    pub fn resume(self: &Arc<Self>) -> Result<usize, Error> {
        let running = self.node.store.engagements_at(Reached::Running)?;
        let count = running.len();
        for engaged in running {
            self.start_again(engaged.id);
        }
        for engaged in self.node.store.engagements_at(Reached::Waiting)?.into_iter().filter(|engaged| engaged.due > 0) {
            self.wake_at(engaged.id, engaged.due);
        }
        Ok(count)
    }

    /// Goes on with an engagement, in a task of its own.
    pub(super) fn start(self: &Arc<Self>, live: Live) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(_place) = this.places.acquire().await else { return };
            this.run(live).await;
        });
    }

    /// The same for one that is on disk only.
    fn start_again(self: &Arc<Self>, id: String) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(_place) = this.places.acquire().await else { return };
            this.run_again(&id).await;
        });
    }

    /// Looks at an engagement again when the time of its review is over.
    pub(super) fn wake_at(self: &Arc<Self>, id: String, due: i64) {
        let this = Arc::downgrade(self);
        let left = u64::try_from(due - self.node.clock().millis()).unwrap_or_default();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(left + 1)).await;
            if let Some(this) = this.upgrade() {
                this.start_again(id);
            }
        });
    }

    async fn run_again(self: &Arc<Self>, id: &str) {
        let seat = self.seat(id);
        let _turn = seat.turn.lock().await;
        match self.load(id) {
            Ok(live) => self.run_seated(live, &seat).await,
            Err(error) => tracing::error!(engagement = id, %error, "an engagement cannot be read"),
        }
    }

    async fn run(self: &Arc<Self>, mut live: Live) {
        let seat = self.seat(&live.engaged.id);
        let _turn = seat.turn.lock().await;
        // Somebody may have moved it between the step that started this and our turn.
        if seat.tick.borrow().abs_diff(live.engagement.steps().len() as u64) > 0 {
            match self.load(&live.engaged.id) {
                Ok(later) => live = later,
                Err(error) => return tracing::error!(%error, "an engagement cannot be read"),
            }
        }
        self.run_seated(live, &seat).await;
    }

    async fn run_seated(self: &Arc<Self>, mut live: Live, seat: &Seat) {
        let span = debug_span!(
            "invoke_agent",
            otel.name = %format_args!("invoke_agent {}", live.agent.name),
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = live.agent.name.as_str(),
            gen_ai.conversation.id = live.engaged.id,
        );
        if let Err(error) = self.drive(&mut live, seat).instrument(span).await {
            // It stays as its journal has it, and the next start goes on from there.
            return tracing::error!(engagement = live.engaged.id, %error, "an engagement stopped");
        }
        let parent = live.engaged.parent.clone();
        live.rest();
        if let Some((parent, _)) = parent {
            self.start_again(parent);
        }
    }

    /// Does what is next until somebody else has to act.
    async fn drive(self: &Arc<Self>, live: &mut Live, seat: &Seat) -> Result<(), Error> {
        loop {
            let ended_by = seat.cancelled.borrow().clone();
            if let Some(by) = ended_by
                && !live.engagement.status().is_final()
            {
                live.record(Step::Cancelled { by })?;
            }
            match next(&live.agent, &live.registry, &live.engagement) {
                Next::Record(step) => live.record(step)?,
                Next::Perform(_) if self.is_stopping() => {
                    return self.write(live, Reached::Running, None, Survives::PowerLoss).await;
                }
                Next::Perform(effect) => self.perform(live, seat, effect).await?,
                Next::Over => return self.write(live, Reached::Over, None, Survives::PowerLoss).await,
                Next::Wait(wait) => {
                    if !self.waits(live, seat, wait).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether there is something to do although somebody is waited for.
    async fn waits(self: &Arc<Self>, live: &mut Live, seat: &Seat, wait: Wait) -> Result<bool, Error> {
        match wait {
            Wait::User | Wait::Credentials { .. } => {
                self.write(live, Reached::Waiting, None, Survives::PowerLoss).await?
            }
            Wait::Outcome { .. } => {
                let owner = live.agent.owner.clone();
                self.write(live, Reached::Waiting, Some((owner, 0)), Survives::PowerLoss).await?;
            }
            Wait::Review { call, stage, review } => return self.reviewed(live, call, stage, review).await,
            Wait::Return { call, target: Some(Target::Agent(name)), inputs, identity, .. } => {
                return self.await_agent(live, call, &name, &inputs, identity).await;
            }
            Wait::Return { call, target: Some(Target::Tool(name)), inputs, identity: Some(identity), idempotent }
                if idempotent || live.repeat.take() == Some(call) =>
            {
                self.call(live, seat, call, &name, &inputs, &identity).await?;
                return Ok(true);
            }
            Wait::Return { call, .. } => {
                live.record(Step::OutcomeUnknown { call })?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Has another agent of this node do something; `false` when that agent waits for somebody.
    pub(super) async fn await_agent(
        self: &Arc<Self>,
        live: &mut Live,
        call: usize,
        name: &str,
        inputs: &Value,
        identity: Option<Identity>,
    ) -> Result<bool, Error> {
        let text = inputs.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        let user = match identity {
            Some(Identity::User) => live.engagement.begun().user.clone(),
            _ => None,
        };
        match self.child(live, &call.to_string(), name, user, &text).await? {
            Child::Done(outcome) => {
                live.record(Step::Returned { call, outcome })?;
                Ok(true)
            }
            Child::Waits => {
                self.write(live, Reached::Waiting, None, Survives::PowerLoss).await?;
                Ok(false)
            }
        }
    }

    /// The engagement that serves a place of this one, begun where it was not, and run as far as it goes.
    async fn child(
        self: &Arc<Self>,
        live: &Live,
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
        let seat = self.seat(&id);
        {
            let _turn = seat.turn.lock().await;
            let mut child = self.load(&id)?;
            if child.engaged.reached == Reached::Running {
                Box::pin(self.drive(&mut child, &seat)).await?;
            }
        }
        Ok(outcome(&self.load(&id)?))
    }

    /// Runs the agent that reviews something; nothing while it waits for somebody.
    pub(super) async fn verdict_of(
        self: &Arc<Self>,
        live: &Live,
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

    fn depth(&self, live: &Live) -> Result<usize, Error> {
        let (mut depth, mut parent) = (1, live.engaged.parent.clone());
        while let Some((id, _)) = parent {
            depth += 1;
            parent = self.engaged(&id)?.parent;
        }
        Ok(depth)
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
