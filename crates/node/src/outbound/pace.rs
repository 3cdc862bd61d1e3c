//! How much goes through the door at a time, and how often to one place.
//!
//! Places are told apart by a keyed hash into a fixed number of slots. So the tables never grow, nothing has to be
//! thrown out (which would hand a flooder a fresh allowance), and nobody can choose whom to share a slot with.
//!
//! INVARIANT: memory is fixed when the door is made.

use super::policy::{Destination, DoorPolicy};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Sixteen times more than a busy minute has domains; two share a slot rarely.
const DOMAIN_SLOTS: usize = 16_384;

/// Many times more than requests can be under way.
const HOST_SLOTS: usize = 2_048;

/// Requests that wait or are under way; whoever comes on top is told so at once.
const PLACES: usize = 1_024;

const MINUTE: Duration = Duration::from_secs(60);

/// Who may go now.
pub(super) struct Pace {
    hasher: RandomState,
    places: Semaphore,
    all: Semaphore,
    hosts: Vec<Semaphore>,
    domains: Mutex<Vec<Option<Instant>>>,
    spacing: Duration,
}

/// A turn at the door; it ends when this is dropped.
pub(super) struct Turn<'a> {
    _all: SemaphorePermit<'a>,
    _host: SemaphorePermit<'a>,
}

impl Pace {
    pub(super) fn new(policy: &DoorPolicy) -> Self {
        Self {
            hasher: RandomState::new(),
            places: Semaphore::new(PLACES),
            all: Semaphore::new(policy.parallel),
            hosts: std::iter::repeat_with(|| Semaphore::new(policy.parallel_per_host)).take(HOST_SLOTS).collect(),
            domains: Mutex::new(vec![None; DOMAIN_SLOTS]),
            spacing: MINUTE / policy.per_minute.max(1),
        }
    }

    /// A place among those who wait, while there is one.
    pub(super) fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// Counts a request for its domain; whether the domain's minute had room for it.
    ///
    /// A slot holds the moment at which its whole allowance is back; each request moves that moment on.
    pub(super) fn count(&self, destination: &Destination, now: Instant) -> bool {
        let slot = self.slot(destination.registrable(), DOMAIN_SLOTS);
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(full_at) = domains.get_mut(slot) else { return false };
        let next = full_at.map_or(now, |at| at.max(now)) + self.spacing;
        let room = next.saturating_duration_since(now) <= MINUTE;
        if room {
            *full_at = Some(next);
        }
        room
    }

    /// Waits for a turn. The host comes first, so that who waits for a slow host takes no room from the others.
    pub(super) async fn turn(&self, destination: &Destination) -> Option<Turn<'_>> {
        let host = self.hosts.get(self.slot(destination.host(), HOST_SLOTS))?.acquire().await.ok()?;
        let all = self.all.acquire().await.ok()?;
        Some(Turn { _all: all, _host: host })
    }

    fn slot(&self, name: &str, slots: usize) -> usize {
        usize::try_from(self.hasher.hash_one(name) % slots as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(host: &str) -> Destination {
        let policy = DoorPolicy::default();
        policy.admit(&format!("https://{host}/"), policy.reach()).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made from nothing; the test moves it itself")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_domain_gets_sixty_requests_and_then_one_a_second() {
        let (pace, start) = (Pace::new(&DoorPolicy::default()), start());
        let victim = destination("victim.com");
        assert_eq!((0..1_000).filter(|_| pace.count(&victim, start)).count(), 60);
        let later = start + Duration::from_secs(7);
        assert_eq!((0..1_000).filter(|_| pace.count(&victim, later)).count(), 7);
        let rested = start + Duration::from_secs(600);
        assert_eq!((0..1_000).filter(|_| pace.count(&victim, rested)).count(), 60);
    }

    #[test]
    fn random_names_count_to_their_domain() {
        let (pace, start) = (Pace::new(&DoorPolicy::default()), start());
        let asked = (0..10_000).filter(|n| pace.count(&destination(&format!("r{n}.a.victim.com")), start)).count();
        assert_eq!(asked, 60);
    }

    #[test]
    fn other_domains_are_not_held_up() {
        let (pace, start) = (Pace::new(&DoorPolicy::default()), start());
        while pace.count(&destination("victim.com"), start) {}
        // Of a hundred others one may share the slot.
        let served = (0..100).filter(|n| pace.count(&destination(&format!("a.other{n}.com")), start)).count();
        assert!(served >= 98, "{served}");
    }
}
