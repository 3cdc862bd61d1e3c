//! A key of a node is followed by another while somebody asks: whatever was answered, before, between and after, is
//! verified with the document that the node has in the end.

use super::case::Rotate;
use super::message::Senders;
use super::stage::request;
use super::wire::exchange;
use crate::crash::{Program, Running};
use anyhow::{Result, ensure};
use json::Value;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A new key signs from the next whole second on.
const NEXT_SECOND: Duration = Duration::from_millis(1_100);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Rotates the key of a node so often; how many answers there were. All of them must be verified in the end.
pub(crate) fn rotate(program: &Program, node: &mut Running, run: &str, rotate: &Rotate) -> Result<usize> {
    let at = Mutex::new(node.authority().to_owned());
    let ended = AtomicBool::new(false);
    let answers = std::thread::scope(|scope| -> Result<Vec<Vec<u8>>> {
        let asking = scope.spawn(|| ask(&at, &ended, run));
        let rotated = (0..rotate.times).try_for_each(|_| turn(program, node, &at));
        ended.store(true, Ordering::Release);
        let answers = asking.join().map_err(|_| anyhow::anyhow!("the thread that asks panicked"))?;
        rotated?;
        answers
    })?;
    ensure!(answers.len() >= rotate.answers_min, "there are {} answers", answers.len());
    let folder = tempfile::tempdir()?;
    let [document, answer] = ["did.json", "answer.json"].map(|name| folder.path().join(name));
    let host = [("Host".to_owned(), node.authority().to_owned())];
    fs::write(&document, exchange(node.authority(), &request("GET", "/.well-known/did.json", &host, &[]))?.body)?;
    for body in &answers {
        fs::write(&answer, body)?;
        let mut command = Command::new(program.binary());
        let judged = command.arg("verify").arg(&answer).arg("--did-document").arg(&document).output()?;
        ensure!(
            judged.status.success(),
            "an answer is not verified: {}{}",
            String::from_utf8_lossy(&judged.stdout),
            String::from_utf8_lossy(&judged.stderr)
        );
    }
    Ok(answers.len())
}

fn turn(program: &Program, node: &mut Running, at: &Mutex<String>) -> Result<()> {
    std::thread::sleep(5 * PAUSE);
    node.ask_to_end()?;
    node.wait()?;
    let mut command = Command::new(program.binary());
    let ran = command.args(["keys", "rotate", "--now", "--json", "--data"]).arg(program.data()).output()?;
    ensure!(ran.status.success(), "no rotation: {}", String::from_utf8_lossy(&ran.stderr));
    std::thread::sleep(NEXT_SECOND);
    *node = program.serve()?.0;
    node.authority().clone_into(&mut at.lock().unwrap_or_else(PoisonError::into_inner));
    std::thread::sleep(5 * PAUSE);
    Ok(())
}

/// Asks until it is over; whoever is not there is asked again.
fn ask(at: &Mutex<String>, ended: &AtomicBool, run: &str) -> Result<Vec<Vec<u8>>> {
    let (senders, mut answers) = (Senders::new(), Vec::new());
    for number in 0.. {
        if ended.load(Ordering::Acquire) {
            break;
        }
        std::thread::sleep(PAUSE);
        let authority = at.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let names = [("run", run.to_owned()), ("fresh", format!("{run}-rotation-{number}"))].into();
        let body = senders.intent(&Value::Null, &names)?;
        let host = [("Host".to_owned(), authority.clone())];
        let Ok(reply) = exchange(&authority, &request("POST", "/oap/intent", &host, &body)) else { continue };
        // Whoever is about to end says so, and signs that, too.
        if reply.status == 200 {
            answers.push(reply.body);
        } else {
            let said = String::from_utf8_lossy(&reply.body).into_owned();
            ensure!(reply.status == 503, "the status is {}: {said}", reply.status);
        }
    }
    Ok(answers)
}
