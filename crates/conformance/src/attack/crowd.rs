//! RFC 0020 A.7: many costly questions at once, while somebody asks cheap ones.

use super::case::Crowd;
use super::stage::{SLACK, request};
use super::wire::{Reply, exchange};
use crate::crash::start;
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sends every costly question over a connection of its own, and cheap ones for as long as those take; each cheap one
/// must be answered in its time. The replies to the costly ones.
pub(crate) fn crowd(authority: &str, crowd: &Crowd, costly: &[Vec<u8>], cheap: &[Vec<u8>]) -> Result<Vec<Reply>> {
    let host = [("Host".to_owned(), authority.to_owned())];
    let ask = |body: &[u8]| exchange(authority, &request("POST", "/oap/intent", &host, body));
    let waiting = AtomicUsize::new(costly.len());
    std::thread::scope(|scope| {
        let asked: Vec<_> = costly
            .iter()
            .map(|body| {
                scope.spawn(|| {
                    let reply = ask(body);
                    waiting.fetch_sub(1, Ordering::AcqRel);
                    reply
                })
            })
            .collect();
        let mut slowest = 0;
        for body in cheap {
            let begun = start();
            let reply = ask(body)?;
            ensure!(reply.status == 200, "a cheap question is refused: {}", String::from_utf8_lossy(&reply.body));
            slowest = slowest.max(begun.elapsed().as_millis() as u64);
            if waiting.load(Ordering::Acquire) == 0 {
                break;
            }
        }
        ensure!(slowest <= crowd.cheap_ms * SLACK, "a cheap question took {slowest} ms");
        asked.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?).collect()
    })
}
