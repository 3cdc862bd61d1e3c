//! The node, used as anybody uses it: `rialto import`, `rialto serve`, a socket.

use crate::clock::{start, timed};
use crate::http::{Connection, authority, get};
use anyhow::{Context, Result, bail, ensure};
use json::{Document, Node as JsonNode};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use trust::{Did, DidDocument, Signed};

/// After this long a node that was asked to end is ended.
const STOP_SECONDS_MAX: u64 = 60;

/// Where the binary and its data are, and what else to tell it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary `rialto`.
    pub binary: PathBuf,
    /// Passed on to `rialto serve`.
    pub serve_arguments: Vec<String>,
    /// What its environment has beside ours.
    pub environment: Vec<(String, String)>,
    /// The folder of its data.
    pub data: PathBuf,
    /// Where it writes what it says while it works.
    pub log: PathBuf,
}

/// A node that is ready.
#[derive(Debug)]
pub struct Node {
    child: Child,
    /// `host:port`.
    pub authority: String,
    /// Who signs its answers.
    pub signer: Signer,
}

/// What the kernel says a process holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Bytes resident now.
    pub resident_bytes: u64,
    /// The most bytes that were ever resident.
    pub peak_bytes: u64,
}

/// The line with which a node says that it is ready.
#[derive(Deserialize)]
struct Ready {
    address: String,
    did: String,
}

impl Program {
    /// Imports NDJSON and returns the seconds it took.
    pub fn import(&self, records: &Path) -> Result<f64> {
        let mut command = Command::new(&self.binary);
        command.arg("import").arg(records).args(["--kind", "manifest", "--data"]).arg(&self.data);
        let log = File::create(&self.log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let (status, took) = timed(|| command.status());
        let status = status.with_context(|| format!("`{}` cannot be run", self.binary.display()))?;
        ensure!(status.success(), "`rialto import` failed: {}", self.said());
        Ok(took.as_secs_f64())
    }

    /// Starts the node and returns it with the seconds from start to ready.
    pub fn serve(&self) -> Result<(Node, f64)> {
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data"]).arg(&self.data);
        command.args(&self.serve_arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&self.log)?);
        let begun = start();
        let mut child = command.spawn().with_context(|| format!("`{}` cannot be run", self.binary.display()))?;
        let mut lines = BufReader::new(child.stdout.take().context("the node has no output")?).lines();
        let ready = lines.next().transpose()?;
        let took = begun.elapsed().as_secs_f64();
        let Some(ready) = ready else {
            child.wait()?;
            bail!("`rialto serve` ended before it was ready: {}", self.said());
        };
        // Whatever else it prints must not make it wait.
        std::thread::spawn(move || lines.for_each(drop));
        match Node::greet(&ready) {
            Ok((authority, signer)) => Ok((Node { child, authority, signer }, took)),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Bytes that its data take on disk.
    pub fn disk_bytes(&self) -> Result<u64> {
        disk_bytes(&self.data)
    }

    fn said(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
    }
}

fn disk_bytes(path: &Path) -> Result<u64> {
    let metadata = std::fs::symlink_metadata(path)?;
    let mut bytes = metadata.blocks() * 512;
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path)? {
            bytes += disk_bytes(&entry?.path())?;
        }
    }
    Ok(bytes)
}

impl Node {
    fn greet(line: &str) -> Result<(String, Signer)> {
        let ready: Ready = serde_json::from_str(line).with_context(|| format!("`{line}` does not say who is ready"))?;
        let authority = authority(&ready.address).to_owned();
        let signer = Signer::of(&ready.did, &authority)?;
        Ok((authority, signer))
    }

    /// What it holds in memory.
    pub fn memory(&self) -> Result<Memory> {
        Memory::read(&std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?)
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let begun = start();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > Duration::from_secs(STOP_SECONDS_MAX) {
                bail!("the node did not end within {STOP_SECONDS_MAX} s of being asked");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Memory {
    fn read(status: &str) -> Result<Self> {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kilobytes: u64 = line.and_then(|line| line.trim().split(' ').next()?.parse().ok())?;
            Some(kilobytes * 1024)
        };
        let read = bytes("VmRSS").zip(bytes("VmHWM"));
        let (resident_bytes, peak_bytes) = read.context("the kernel does not say what the node holds in memory")?;
        Ok(Self { resident_bytes, peak_bytes })
    }
}

/// RFC 0020 A.3 R6: whose signature every answer must carry.
#[derive(Clone, Debug)]
pub struct Signer {
    did: Did,
    keys: DidDocument,
}

impl Signer {
    /// Finds the keys of a DID: in its name, else in the document that the node serves.
    pub fn of(did: &str, authority: &str) -> Result<Self> {
        let did = Did::parse(did)?;
        let keys = match DidDocument::of_key(&did) {
            Ok(keys) => keys,
            Err(_) => {
                let mut body = Vec::new();
                Connection::open(authority)?.succeed(&get(authority, "/.well-known/did.json"), &mut body)?;
                DidDocument::read(Document::parse(&body, &json::Limits::DOCUMENT)?.root(), &did)?
            }
        };
        Ok(Self { did, keys })
    }

    /// Reads an answer that this signer signed, or says what is wrong with it.
    pub fn verify(&self, bytes: &[u8]) -> Result<Document> {
        let document = self.verify_envelope(bytes)?;
        let resolver = Signed::read(&document)?.issuer("resolver_did")?;
        ensure!(resolver == self.did, "{resolver} answered, not {}", self.did);
        Ok(document)
    }

    /// The same for an acknowledgement, which names its signer in the key's id alone.
    pub fn verify_envelope(&self, bytes: &[u8]) -> Result<Document> {
        let document = Document::parse(bytes, &json::Limits::OURS)?;
        Signed::read(&document)?.verify_with(&self.keys)?;
        Ok(document)
    }
}

/// The candidates of an answer, in order.
pub fn candidate_ids(answer: &Document) -> Vec<String> {
    let candidates = answer.root().get("candidates");
    let id = |candidate: JsonNode<'_>| candidate.get("candidate_id").and_then(JsonNode::as_str).map(str::to_owned);
    candidates.map(|candidates| candidates.elements().filter_map(id).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_kernel_says() {
        let status = "Name:\trialto\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nThreads:\t4\n";
        let memory = Memory::read(status).unwrap();
        assert_eq!(memory, Memory { resident_bytes: 1024 * 1024, peak_bytes: 2048 * 1024 });
        assert!(Memory::read("Name:\tzombie\n").is_err());
    }

    #[test]
    fn a_node_that_says_anything_else_is_not_ready() {
        assert!(Node::greet("listening on 127.0.0.1:80").is_err());
        let did = trust::SigningKey::from_seed([9; 32]).did_key();
        let line = format!(r#"{{"address":"http://127.0.0.1:8123/","did":"{did}"}}"#);
        assert_eq!(Node::greet(&line).unwrap().0, "127.0.0.1:8123");
    }
}
