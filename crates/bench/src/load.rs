//! Load: one who asks question after question, and many at once.
//!
//! INVARIANT: what is sent was signed before, and what came back is verified after the clock was read.

use crate::clock::{start, timed};
use crate::http::{Connection, Line};
use anyhow::{Result, ensure};
use rustix::event::{Timespec, epoll};
use serde::Serialize;
use std::time::Duration;

/// Of this many answers to a crowd one is kept to be verified.
const KEPT_ONE_IN: usize = 16;
/// No answer takes longer.
const PATIENCE: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

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
///
/// One thread looks after all of them: a thread for each would take the processors from the node for waking it.
pub fn all_at_once(authority: &str, requests: &[Vec<u8>], connections: usize, limit: Duration) -> Result<Served> {
    let mut requests = requests.iter();
    let mut lines: Vec<Line> = (0..connections).map(|_| Line::open(authority)).collect::<Result<_>>()?;
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (line, number) in lines.iter().zip(0..) {
        epoll::add(&ready, line.socket(), epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
    }
    let (mut answers, mut kept, mut waiting) = (0, Vec::new(), 0);
    let begun = start();
    let mut ask = |line: &mut Line| match requests.next().filter(|_| begun.elapsed() < limit) {
        Some(request) => line.ask(request).map(|()| 1),
        None => Ok(0),
    };
    for line in &mut lines {
        waiting += ask(line)?;
    }
    let mut events = Vec::with_capacity(connections);
    while waiting > 0 {
        epoll::wait(&ready, rustix::buffer::spare_capacity(&mut events), Some(&PATIENCE))?;
        ensure!(!events.is_empty(), "the node has not answered for {} seconds", PATIENCE.tv_sec);
        for event in events.drain(..) {
            let Some(line) = lines.get_mut(event.data.u64() as usize) else { continue };
            if let Some(body) = line.answer()? {
                if answers % KEPT_ONE_IN == 0 {
                    kept.push(body.to_vec());
                }
                answers += 1;
                waiting = waiting - 1 + ask(line)?;
            }
        }
    }
    Ok(Served { answers, seconds: begun.elapsed().as_secs_f64(), kept })
}
