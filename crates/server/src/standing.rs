//! How well sources have behaved lately, and the line for those who have not.
//!
//! Whoever sends mostly what must be refused costs as much as whoever asks something, and there can be many of them. So
//! their connections and requests go one after the other, in the order in which they came, while everybody else goes at
//! once (decisions/0063), and they are heard in the back room, by a thread that leaves the others first (`back`). Nothing stands still: the line moves as fast as one thread works, and a source is out of it
//! soon after it has bettered itself.
//!
//! INVARIANT: standing decides when somebody is heard, never what is said.
//! INVARIANT: a source that is mostly answered is never in the line, and none is where sources have no bounds.

use crate::sources::Source;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Response, StatusCode, Version};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Refusals beyond answers from which on a source is in the line.
const POOR: f64 = 8.0;
/// The most that is held against a source, so that it is forgiven in bounded time.
const WORST: f64 = 32.0;
/// What a second makes good.
const FORGIVEN_PER_SECOND: f64 = 2.0;
/// How long one of the line goes alone; what takes longer waits for something, and the next may go.
const ALONE: Duration = Duration::from_millis(20);
/// How long a turn is waited for; whoever hears soon that there is none can come back.
const TURN: Duration = Duration::from_secs(2);
/// Sources that are remembered before those who have made good are forgotten.
const REMEMBERED_MAX: usize = 65_536;

/// Who has behaved how.
#[derive(Debug)]
pub(crate) struct Standings {
    /// Whether a source is somebody; where it may be everybody, nobody is held to account for others.
    kept: bool,
    known: Mutex<HashMap<Source, Standing>>,
    connections: Semaphore,
    requests: Semaphore,
    alone: Duration,
    turn: Duration,
}

/// What is held against a source, as of a moment.
#[derive(Clone, Copy, Debug)]
struct Standing {
    fault: f64,
    at: Instant,
}

/// What somebody stands in line for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// To be let in.
    Connection,
    /// To be answered.
    Request,
}

impl Standing {
    fn fault_at(self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.fault - passed * FORGIVEN_PER_SECOND).max(0.0)
    }
}

impl Standings {
    pub(crate) fn new(kept: bool) -> Self {
        let [connections, requests] = [1, 1].map(Semaphore::new);
        Self { kept, known: Mutex::default(), connections, requests, alone: ALONE, turn: TURN }
    }

    /// Notes what a source was told; the node's own failures are not held against anybody.
    pub(crate) fn note(&self, source: Source, told: StatusCode) {
        if told.is_client_error() {
            self.change(source, 1.0, Instant::now());
        } else if told.is_success() {
            self.change(source, -1.0, Instant::now());
        }
    }

    /// Notes a connection that broke the rules of its protocol.
    pub(crate) fn note_broken(&self, source: Source) {
        self.change(source, POOR / 2.0, Instant::now());
    }

    /// Whether a source is in the line.
    fn is_poor(&self, source: Source, now: Instant) -> bool {
        self.known().get(&source).is_some_and(|standing| standing.fault_at(now) >= POOR)
    }

    /// Does something of a source, when it is its turn if it has to stand in line; nothing when its turn does not come.
    pub(crate) async fn in_turn<T>(&self, source: Source, line: Line, deed: impl Future<Output = T>) -> Option<T> {
        if !self.is_poor(source, Instant::now()) {
            return Some(deed.await);
        }
        let line = match line {
            Line::Connection => &self.connections,
            Line::Request => &self.requests,
        };
        let turn = timeout(self.turn, line.acquire()).await.ok()?;
        let mut deed = pin!(deed);
        if let Ok(done) = timeout(self.alone, &mut deed).await {
            return Some(done);
        }
        drop(turn);
        Some(deed.await)
    }

    /// Whether a source is heard in the back room.
    pub(crate) fn is_for_the_back(&self, source: Source) -> bool {
        self.is_poor(source, Instant::now())
    }

    /// Lets a source that is mostly refused come again, to be heard in the back room.
    pub(crate) fn send_away(&self, source: Source, version: Version, mut response: Response<Body>) -> Response<Body> {
        let refused = response.status().is_client_error() && version == Version::HTTP_11;
        if refused && !node::stands_back() && self.is_for_the_back(source) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn change(&self, source: Source, by: f64, now: Instant) {
        if !self.kept {
            return;
        }
        let mut known = self.known();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, standing| standing.fault_at(now) > 0.0);
        }
        let before = known.get(&source).map_or(0.0, |standing| standing.fault_at(now));
        match (before + by).clamp(0.0, WORST) {
            0.0 => drop(known.remove(&source)),
            fault if known.len() < REMEMBERED_MAX || known.contains_key(&source) => {
                known.insert(source, Standing { fault, at: now });
            }
            _ => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Source, Standing>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::task::yield_now;

    const LONG: Duration = Duration::from_secs(600);

    fn source(last: u8) -> Source {
        Source::of([192, 0, 2, last].into())
    }

    fn with(alone: Duration, turn: Duration) -> Arc<Standings> {
        let standings = Standings { alone, turn, ..Standings::new(true) };
        let later = Instant::now() + LONG;
        (0..8).for_each(|_| standings.change(source(1), 1.0, later));
        Arc::new(standings)
    }

    #[tokio::test]
    async fn whoever_is_mostly_refused_is_in_the_line_until_it_is_forgiven() {
        let (standings, now) = (Standings::new(true), Instant::now());
        let refuse = |times: usize| (0..times).for_each(|_| standings.change(source(1), 1.0, now));
        refuse(7);
        assert!(!standings.is_poor(source(1), now), "a few mistakes are nothing");
        refuse(1);
        assert!(standings.is_poor(source(1), now) && !standings.is_poor(source(2), now));
        refuse(1_000);
        assert!(standings.is_poor(source(1), now + Duration::from_secs(12)));
        let later = now + Duration::from_millis(12_001);
        assert!(!standings.is_poor(source(1), later), "bounded, however much it was");
    }

    #[tokio::test]
    async fn where_a_source_may_be_everybody_nobody_is_in_the_line() {
        let (standings, now) = (Standings::new(false), Instant::now());
        (0..1_000).for_each(|_| standings.change(source(1), 1.0, now));
        assert!(!standings.is_poor(source(1), now));
    }

    #[tokio::test]
    async fn what_counts_is_what_the_sender_did() {
        let cases = [
            (StatusCode::BAD_REQUEST, true),
            (StatusCode::UNAUTHORIZED, true),
            (StatusCode::TOO_MANY_REQUESTS, true),
            (StatusCode::OK, false),
            (StatusCode::SERVICE_UNAVAILABLE, false),
            (StatusCode::INTERNAL_SERVER_ERROR, false),
        ];
        for (told, counts) in cases {
            let standings = Standings::new(true);
            (0..100).for_each(|_| standings.note(source(1), told));
            assert_eq!(standings.is_poor(source(1), Instant::now()), counts, "{told}");
        }
        let standings = Standings::new(true);
        for _ in 0..100 {
            standings.note(source(1), StatusCode::OK);
            standings.note(source(1), StatusCode::BAD_REQUEST);
        }
        assert!(!standings.is_poor(source(1), Instant::now()), "whoever is answered as often as refused is not poor");
        (0..2).for_each(|_| standings.note_broken(source(2)));
        standings.note_broken(source(2));
        assert!(standings.is_poor(source(2), Instant::now()));
    }

    #[tokio::test]
    async fn the_line_goes_one_by_one_and_everybody_else_at_once() {
        let standings = with(LONG, LONG);
        let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let poor = (0..20).map(|_| {
            let (standings, at_once, most) = (Arc::clone(&standings), Arc::clone(&at_once), Arc::clone(&most));
            tokio::spawn(async move {
                let deed = async {
                    most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    for _ in 0..10 {
                        yield_now().await;
                    }
                    at_once.fetch_sub(1, Ordering::SeqCst);
                };
                standings.in_turn(source(1), Line::Request, deed).await
            })
        });
        let poor: Vec<_> = poor.collect();
        yield_now().await;
        let other = standings.in_turn(source(2), Line::Request, async { most.load(Ordering::SeqCst) }).await;
        assert_eq!(other, Some(1), "while the first of the line is at it");
        for deed in poor {
            assert_eq!(deed.await.unwrap(), Some(()));
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn nobody_holds_the_line_up() {
        let standings = with(Duration::from_millis(1), LONG);
        let first = Arc::clone(&standings);
        let stuck = tokio::spawn(async move {
            first.in_turn(source(1), Line::Request, std::future::pending::<()>()).await;
        });
        yield_now().await;
        assert_eq!(standings.in_turn(source(1), Line::Request, async { 7 }).await, Some(7));
        stuck.abort();
    }

    #[tokio::test]
    async fn whose_turn_does_not_come_is_told_so() {
        let standings = with(LONG, Duration::from_millis(1));
        let first = Arc::clone(&standings);
        let stuck = tokio::spawn(async move {
            first.in_turn(source(1), Line::Request, std::future::pending::<()>()).await;
        });
        yield_now().await;
        assert_eq!(standings.in_turn(source(1), Line::Request, async { 7 }).await, None);
        assert_eq!(standings.in_turn(source(1), Line::Connection, async { 7 }).await, Some(7), "a line of its own");
        stuck.abort();
    }
}
