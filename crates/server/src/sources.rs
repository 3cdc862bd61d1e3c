//! Where requests come from: how many connections one source has, and how many requests it makes.
//!
//! The address at the other end of the connection is the one thing about a stranger that is true before anything is
//! verified. Headers that name another address are not believed. Of IPv6 the first 64 bits count: whoever has one
//! address has the rest of them, too.
//!
//! INVARIANT: nothing that a message says decides whose allowance is used up here.

use crate::reply;
use crate::standing::{Line, Standings};
use axum::http::StatusCode;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use node::{Class, Error, Refusal};
use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Sources whose requests are remembered before those who have been quiet are forgotten.
const SOURCES_MAX: usize = 65_536;

/// How much of a node strangers may use.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time.
    pub connections: usize,
    /// Requests under way at a time.
    pub requests: usize,
    /// Connections of one source at a time; no bound when absent.
    pub source_connections: Option<usize>,
    /// Requests of one source in a second; no bound when absent.
    pub source_requests_per_second: Option<NonZeroU32>,
}

impl Bounds {
    /// On this machine one source is everybody, a proxy perhaps; elsewhere a source is somebody.
    pub fn at(address: IpAddr) -> Self {
        let edge = &node::EDGE;
        let strangers = !address.is_loopback();
        Self {
            connections: edge.connections,
            requests: edge.requests,
            source_connections: strangers.then_some(edge.source_connections),
            source_requests_per_second: strangers.then_some(edge.source_requests_per_second),
        }
    }
}

/// One source, as far as it can be told apart.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) struct Source(IpAddr);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// Who is here, and who has asked lately.
#[derive(Debug)]
pub(crate) struct Sources {
    bounds: Bounds,
    connections: Mutex<HashMap<Source, usize>>,
    requests: Option<DefaultKeyedRateLimiter<Source>>,
    under_way: Semaphore,
    pub(crate) standings: Standings,
}

impl Sources {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        let requests = bounds.source_requests_per_second.map(|rate| RateLimiter::keyed(Quota::per_second(rate)));
        let (connections, under_way) = (Mutex::default(), Semaphore::new(bounds.requests));
        Arc::new(Self {
            bounds,
            connections,
            requests,
            under_way,
            standings: Standings::new(bounds.source_connections.is_some()),
        })
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// A place for one more connection of a source, while it may have one.
    pub(crate) fn enter(self: &Arc<Self>, source: Source) -> Option<Present> {
        let mut connections = self.connections();
        let count = connections.entry(source).or_default();
        if self.bounds.source_connections.is_some_and(|most| *count >= most) {
            return None;
        }
        *count += 1;
        Some(Present { sources: Arc::clone(self), source })
    }

    /// Does something for a request of a source; where one source is everybody, what it does is nobody's.
    pub(crate) async fn within<T>(&self, source: Source, deed: impl Future<Output = T>) -> T {
        match self.bounds.source_requests_per_second {
            Some(_) => node::source::within(source.0, deed).await,
            None => deed.await,
        }
    }

    /// A place for one more request, while there is one.
    pub(crate) fn begin(&self) -> Option<SemaphorePermit<'_>> {
        self.under_way.try_acquire().ok()
    }

    /// Counts a request, while the source has one left.
    pub(crate) fn count(&self, source: Source) -> Result<(), Refusal> {
        if self.charge(source) {
            return Ok(());
        }
        let detail = "this source sends more than the node answers; wait";
        Err(Refusal::new(Class::RateLimited, "too_many_requests", detail).retry_after(1_000))
    }

    fn charge(&self, source: Source) -> bool {
        let Some(requests) = &self.requests else { return true };
        if requests.len() > SOURCES_MAX {
            requests.retain_recent();
        }
        requests.check_key(&source).is_ok()
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<Source, usize>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody at the other end of a connection, for what goes on there beyond the reply to a request.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    sources: Arc<Sources>,
    source: Source,
}

impl Guest {
    pub(crate) fn new(sources: &Arc<Sources>, source: Source) -> Self {
        Self { sources: Arc::clone(sources), source }
    }

    /// Does something for the guest in a task of its own, which would not know by itself whose it is.
    pub(crate) async fn within<T>(self, deed: impl Future<Output = T>) -> T {
        self.sources.within(self.source, deed).await
    }

    /// Counts what the guest sent, while it may send more.
    pub(crate) fn count(&self) -> Result<(), Refusal> {
        self.sources.count(self.source)
    }

    /// Does what a message on a socket asks for as what a request asks for is done: counted, in a place, in turn, and
    /// held against whoever had to be refused.
    pub(crate) async fn hear<T>(&self, deed: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (sources, source) = (&self.sources, self.source);
        let placed = async {
            sources.count(source)?;
            let _place = sources.begin().ok_or_else(Refusal::overloaded)?;
            deed.await
        };
        let done = sources.standings.in_turn(source, Line::Request, placed).await;
        let done = done.unwrap_or_else(|| Err(Refusal::overloaded().into()));
        let told = match &done {
            Ok(_) => StatusCode::OK,
            Err(Error::Refusal(refusal)) => reply::status(refusal.class),
            Err(Error::Fault(_) | Error::Exposed(_)) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        sources.standings.note(source, told);
        done
    }

    /// Notes that the guest broke the rules of its protocol.
    pub(crate) fn note_broken(&self) {
        self.sources.standings.note_broken(self.source);
    }

    /// Whether the guest is to come again, to be heard in the back room.
    pub(crate) fn is_sent_away(&self) -> bool {
        !node::stands_back() && self.sources.standings.is_for_the_back(self.source)
    }
}

/// A connection of a source, until this is dropped.
#[derive(Debug)]
pub(crate) struct Present {
    sources: Arc<Sources>,
    source: Source,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut connections = self.sources.connections();
        if let Some(count) = connections.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::of(text.parse().unwrap())
    }

    #[test]
    fn a_household_of_ipv6_is_one_source() {
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }

    #[test]
    fn a_source_has_its_connections_and_no_more() {
        let bounds = Bounds { source_connections: Some(2), ..Bounds::at("192.0.2.1".parse().unwrap()) };
        let sources = Sources::new(bounds);
        let (here, other) = (source("192.0.2.1"), source("192.0.2.2"));
        let (first, _second) = (sources.enter(here).unwrap(), sources.enter(here).unwrap());
        assert!(sources.enter(here).is_none() && sources.enter(other).is_some());
        drop(first);
        assert!(sources.enter(here).is_some());
        drop(_second);
        assert!(sources.connections().is_empty());
    }

    #[test]
    fn a_source_has_its_requests_and_no_more() {
        let sources = Sources::new(Bounds::at("192.0.2.1".parse().unwrap()));
        let here = source("192.0.2.1");
        assert_eq!((0..100).filter(|_| sources.charge(here)).count(), 20);
        assert!(sources.charge(source("192.0.2.2")));
        let unbounded = Sources::new(Bounds::at("127.0.0.1".parse().unwrap()));
        assert_eq!((0..100).filter(|_| unbounded.charge(source("127.0.0.1"))).count(), 100);
    }
}
