//! OAS Engagement: `loop { next → perform → journal }`, until somebody else has to act.

use super::Engagements;
use super::journal::{Live, Seat, Survives};
use super::serving::Child;
use crate::refusal::Error;
use agent::{Identity, Next, Step, Target, Wait, next};
use json::Value;
use std::sync::Arc;
use store::Reached;
use tracing::{Instrument, debug_span};

impl Engagements {
    /// Goes on with everything that a restart interrupted, with whatever was left to an engagement that serves it, and
    /// with reviews whose time is over.
    ///
    /// Whoever others served is looked at even where nothing is to be done: a program before decisions/0291 wrote that they
    /// wait, and a kill then could lose that the one they waited for is done.
    pub fn resume(self: &Arc<Self>) -> Result<usize, Error> {
        let running = self.node.store.engagements_at(Reached::Running)?;
        let count = running.len();
        for engaged in running {
            self.start_again(engaged.id);
        }
        for engaged in self.node.store.engagements_at(Reached::Waiting)?.into_iter().filter(|engaged| engaged.due > 0) {
            self.wake_at(engaged.id, engaged.due);
        }
        for engaged in self.node.store.engagements_served()? {
            self.start_again(engaged.id);
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
    pub(super) fn start_again(self: &Arc<Self>, id: String) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(_place) = this.places.acquire().await else { return };
            this.run_again(&id).await;
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
    pub(super) async fn drive(self: &Arc<Self>, live: &mut Live, seat: &Seat) -> Result<(), Error> {
        live.worked.go_on();
        live.payer = Some(self.payer(&live.engaged)?);
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
            Wait::Return {
                call,
                target: Some(Target::Tool(name) | Target::Remote { reference: name, .. }),
                inputs,
                identity: Some(identity),
                idempotent,
            } if idempotent || live.repeat.take() == Some(call) => {
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
            Child::Waits => self.leave(live).await.map(|()| false),
        }
    }
}
