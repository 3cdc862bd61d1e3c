//! OAS Server: whether an engagement may be spoken of to whoever names it, and how often somebody may name one in vain.
//!
//! The name of an engagement is 128 bits of chance, and for one that a stranger began it is the only proof there is. So
//! whoever names too many that are not there, or not theirs, is told to wait before anything is looked up. Somebody with
//! a name is counted by it, somebody without one by the source of the request (decisions/0280).
//!
//! INVARIANT: nobody is told more than the same 404 of an engagement that is not theirs, at work or not, there or not.
//! INVARIANT: one caller's guesses are never counted against another caller.

use super::{Engagements, unknown};
use crate::quota::household;
use crate::refusal::{Class, Error, Refusal};
use crate::source;
use agent::Step;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use store::Engaged;

/// Names in vain before somebody has to wait.
pub(super) const GUESSES_MAX: u64 = 100;
/// Milliseconds after which one of them is forgiven: a hundred in an hour.
const FORGIVEN_MS: i64 = 36_000;
/// Who is remembered before those who were forgiven are forgotten.
const REMEMBERED_MAX: usize = 65_536;

/// What somebody must be to an engagement to be told of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Its caller.
    Caller,
    /// The owner of its agent.
    Owner,
    /// Either of them.
    Party,
    /// Either of them, or somebody who was asked to review something in it.
    Reviewer,
}

/// Who names engagements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Guesser {
    Caller(String),
    Source(IpAddr),
}

impl Guesser {
    /// Whoever asks now; nobody where neither a name nor a source is known.
    fn of(caller: Option<&str>) -> Option<Self> {
        match caller {
            Some(caller) => Some(Self::Caller(caller.to_owned())),
            None => source::current().map(|source| Self::Source(household(source))),
        }
    }
}

/// How often whom was told that there is no such engagement.
#[derive(Debug, Default)]
pub(super) struct Guesses(Mutex<HashMap<Guesser, i64>>);

impl Guesses {
    /// Refuses whoever has guessed too often. What is kept of a guesser is the moment when everything is forgiven.
    fn check(&self, guesser: Option<&Guesser>, now: i64) -> Result<(), Refusal> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(forgiven_at) = guesser.and_then(|guesser| known.get(guesser)) else { return Ok(()) };
        let most = GUESSES_MAX as i64 * FORGIVEN_MS;
        let wait = forgiven_at - now - (most - FORGIVEN_MS);
        if wait <= 0 {
            return Ok(());
        }
        let detail = "too many engagements were named that are not there, or not the caller's; wait";
        let refusal = Refusal::new(Class::RateLimited, "too_many_requests", detail);
        let refusal = refusal.limited("engagement.guesses", GUESSES_MAX, GUESSES_MAX + 1);
        Err(refusal.retry_after(u64::try_from(wait).unwrap_or_default()))
    }

    /// Counts a name in vain.
    fn count(&self, guesser: Option<Guesser>, now: i64) {
        let Some(guesser) = guesser else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those who were forgiven make room first, then those who have guessed a little; whoever is left has
        // guessed often and is not forgotten for a newcomer.
        for least in [0, GUESSES_MAX as i64 * FORGIVEN_MS / 2] {
            if known.len() >= REMEMBERED_MAX {
                known.retain(|_, forgiven_at| *forgiven_at - now > least);
            }
        }
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&guesser) {
            return;
        }
        let forgiven_at = known.entry(guesser).or_insert(now);
        *forgiven_at = (*forgiven_at).max(now) + FORGIVEN_MS;
    }
}

impl Engagements {
    /// The engagement of a name, where whoever names it is what they must be to it.
    pub(super) fn sought(&self, id: &str, caller: Option<&str>, role: Role) -> Result<Engaged, Error> {
        let (guesser, now) = (Guesser::of(caller), self.node.clock().millis());
        self.guesses.check(guesser.as_ref(), now)?;
        let engaged = match self.resting(id) {
            Some(seen) => Some(seen.engaged.clone()),
            None => self.node.store.engagement(id)?,
        };
        if let Some(engaged) = engaged
            && self.is(&engaged, caller, role)?
        {
            return Ok(engaged);
        }
        self.guesses.count(guesser, now);
        Err(unknown().into())
    }

    /// Whether somebody is that to an engagement.
    pub(super) fn is(&self, engaged: &Engaged, caller: Option<&str>, role: Role) -> Result<bool, Error> {
        let is_caller = || self.is_callers(engaged, caller);
        let is_owner = || Ok::<_, Error>(self.is_owner(self.document(&engaged.document)?.as_ref(), caller));
        match role {
            Role::Caller => Ok(is_caller()),
            Role::Owner => is_owner(),
            Role::Party => Ok(is_caller() || is_owner()?),
            Role::Reviewer => Ok(is_caller() || is_owner()? || self.was_asked(&engaged.id, caller)?),
        }
    }

    /// Whether somebody was asked to review something in an engagement.
    fn was_asked(&self, id: &str, caller: Option<&str>) -> Result<bool, Error> {
        let Some(caller) = caller else { return Ok(false) };
        let live = self.load(id)?;
        Ok(live.engagement.steps().iter().any(|step| match step {
            Step::ReviewAsked { review, .. } => self.means(&review.reviewer, caller),
            _ => false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guesser(number: u32) -> Option<Guesser> {
        Some(Guesser::Caller(format!("did:example:{number}")))
    }

    #[test]
    fn after_a_hundred_names_in_vain_somebody_waits_and_nobody_else() {
        let guesses = Guesses::default();
        for _ in 0..GUESSES_MAX {
            assert!(guesses.check(guesser(1).as_ref(), 5).is_ok());
            guesses.count(guesser(1), 5);
        }
        let refusal = guesses.check(guesser(1).as_ref(), 5).unwrap_err();
        assert_eq!((refusal.code, refusal.retry_after_ms), ("too_many_requests", Some(36_000)));
        assert!(guesses.check(guesser(1).as_ref(), 5 + FORGIVEN_MS - 1).is_err());
        assert!(guesses.check(guesser(1).as_ref(), 5 + FORGIVEN_MS).is_ok(), "one of them is forgiven");
        guesses.count(guesser(1), 5 + FORGIVEN_MS);
        assert!(guesses.check(guesser(1).as_ref(), 5 + FORGIVEN_MS).is_err());
        assert!(guesses.check(guesser(2).as_ref(), 5).is_ok());
        assert!(guesses.check(None, 5).is_ok(), "where nobody is known nobody is counted");
    }

    #[test]
    fn many_guessers_use_bounded_memory_and_hide_nobody_who_guessed_often() {
        let guesses = Guesses::default();
        (0..GUESSES_MAX).for_each(|_| guesses.count(guesser(0), 0));
        (1..REMEMBERED_MAX as u32 + 100).for_each(|number| guesses.count(guesser(number), 0));
        assert!(guesses.0.lock().unwrap().len() <= REMEMBERED_MAX);
        assert!(guesses.check(guesser(0).as_ref(), 0).is_err());
    }
}
