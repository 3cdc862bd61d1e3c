//! Load: one who asks question after question, and many at once.
//!
//! INVARIANT: what is sent was signed before, and what came back is verified after the clock was read.

use crate::clock::{start, timed};
use crate::http::Connection;
use anyhow::Result;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Of this many answers to a crowd one is kept to be verified.
const KEPT_ONE_IN: usize = 16;

/// One request after the other over one connection: how long each took and what came back.
pub fn one_by_one(authority: &str, requests: &[Vec<u8>]) -> Result<Vec<(Duration, Vec<u8>)>> {
    let mut connection = Connection::open(authority)?;
    let mut exchange = |request: &Vec<u8>| {
        let mut body = Vec::with_capacity(64 * 1024);
        let (answered, took) = timed(|| connection.succeed(request, &mut body));
        answered?;
        Ok((took, body))
    };
    requests.iter().map(&mut exchange).collect()
}

/// What a crowd was answered.
#[derive(Debug, Serialize)]
pub struct Served {
    /// Answers in all.
    pub answers: usize,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// A sample of the answers.
    #[serde(skip)]
    pub kept: Vec<Vec<u8>>,
}

impl Served {
    /// Answers in a second.
    pub fn per_second(&self) -> f64 {
        self.answers as f64 / self.seconds
    }
}

/// Requests over many connections at once, until they are used up or the time is.
pub fn all_at_once(authority: &str, requests: &[Vec<u8>], connections: usize, limit: Duration) -> Result<Served> {
    let opened: Vec<Connection> = (0..connections).map(|_| Connection::open(authority)).collect::<Result<_>>()?;
    let next = AtomicUsize::new(0);
    let begun = start();
    let work = |mut connection: Connection| -> Result<(usize, Vec<Vec<u8>>)> {
        let (mut done, mut kept, mut body) = (0, Vec::new(), Vec::with_capacity(64 * 1024));
        while begun.elapsed() < limit {
            let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            connection.succeed(request, &mut body)?;
            if done % KEPT_ONE_IN == 0 {
                kept.push(body.clone());
            }
            done += 1;
        }
        Ok((done, kept))
    };
    let shares: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = opened.into_iter().map(|connection| scope.spawn(|| work(connection))).collect();
        running.into_iter().map(|thread| thread.join()).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut served = Served { answers: 0, seconds, kept: Vec::new() };
    for share in shares {
        let (done, kept) = share.map_err(|_| anyhow::anyhow!("a thread of the load generator broke"))??;
        served.answers += done;
        served.kept.extend(kept);
    }
    Ok(served)
}
