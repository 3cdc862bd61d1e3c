//! What the crawler remembers, in a folder beside the store: what it found where, and how far it came.
//!
//! A journal of one JSON document a line, appended as things happen and written anew when a crawl ends; bodies lie beside
//! it under their digests, for hosts that say that nothing changed. A line that was cut off by a crash is passed over, and
//! a body that is not what its name says counts for nothing: whatever is lost is fetched again.
//!
//! INVARIANT: what was kept of an agent is in the store before the journal says so.

use crate::refusal::Error;
use json::{Document, Limits, Node, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use trust::Digest;

/// The folder of the crawler, in the data folder.
const FOLDER: &str = "crawl";
const JOURNAL: &str = "journal.ndjson";
const BODIES: &str = "bodies";

/// What was found at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) digest: String,
}

/// An agent that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptAgent {
    /// Under which address it is kept.
    pub(super) at: String,
    /// The domain that listed it, where one did.
    pub(super) listed_by: Option<String>,
}

/// The memory of the crawler.
#[derive(Debug)]
pub(super) struct State {
    folder: PathBuf,
    journal: File,
    pub(super) known: BTreeMap<String, Known>,
    pub(super) kept: BTreeMap<String, KeptAgent>,
    /// What the crawl under way has done with.
    pub(super) done: BTreeSet<String>,
    /// Whence the crawl under way began; none when the last one ended.
    seeds: Option<Vec<String>>,
}

impl State {
    /// Opens the memory in a data folder.
    pub(super) fn open(data: &Path) -> Result<Self, Error> {
        let folder = data.join(FOLDER);
        fs::create_dir_all(folder.join(BODIES)).map_err(Error::fault)?;
        let path = folder.join(JOURNAL);
        let journal = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::fault)?;
        let mut state =
            Self { folder, journal, known: BTreeMap::new(), kept: BTreeMap::new(), done: BTreeSet::new(), seeds: None };
        let mut lines = BufReader::new(File::open(&path).map_err(Error::fault)?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(Error::fault)? > 0 {
            match Document::parse(&line, &Limits::DOCUMENT) {
                Ok(document) if line.ends_with(b"\n") => state.take(document.root()),
                _ => {}
            }
            line.clear();
        }
        // A line that was cut off must not swallow the next one.
        state.journal.write_all(b"\n").map_err(Error::fault)?;
        Ok(state)
    }

    fn take(&mut self, line: Node<'_>) {
        let text = |name: &str| line.get(name).and_then(Node::as_str).map(str::to_owned);
        let url = text("url").unwrap_or_default();
        match text("is").as_deref() {
            Some("begun") => {
                let seeds = line.get("seeds").map(Node::elements).into_iter().flatten();
                self.seeds = Some(seeds.filter_map(Node::as_str).map(str::to_owned).collect());
                self.done.clear();
            }
            Some("ended") => {
                self.seeds = None;
                self.done.clear();
            }
            Some("found") => {
                let digest = text("digest").unwrap_or_default();
                let known = Known { etag: text("etag"), last_modified: text("last_modified"), digest };
                self.known.insert(url, known);
            }
            Some("lost") => drop(self.known.remove(&url)),
            Some("done") => drop(self.done.insert(url)),
            Some("kept") => {
                let at = text("at").unwrap_or_else(|| url.clone());
                self.kept.insert(url, KeptAgent { at, listed_by: text("listed_by") });
            }
            Some("withdrawn") => drop(self.kept.remove(&url)),
            _ => {}
        }
    }

    /// Writes a line down and takes it in.
    fn note(&mut self, line: Value) -> Result<(), Error> {
        let mut bytes = json::canonical_value(&line);
        bytes.push(b'\n');
        self.journal.write_all(&bytes).map_err(Error::fault)?;
        self.take(Document::of(&line).map_err(Error::fault)?.root());
        Ok(())
    }

    /// Begins a crawl, or goes on with the one from the same seeds that was cut off; says whether it goes on.
    pub(super) fn begin(&mut self, seeds: &[String], anew: bool) -> Result<bool, Error> {
        if !anew && self.seeds.as_deref() == Some(seeds) {
            return Ok(true);
        }
        self.note(json!({"is": "begun", "seeds": seeds}))?;
        Ok(false)
    }

    /// Remembers what was found at an address.
    pub(super) fn found(
        &mut self,
        url: &str,
        body: &[u8],
        etag: Option<&str>,
        last_modified: Option<&str>,
    ) -> Result<(), Error> {
        let digest = Digest::of(body).to_string();
        let path = self.body_path(&digest);
        if !path.exists() {
            let beside = path.with_extension("new");
            fs::write(&beside, body).and_then(|()| fs::rename(&beside, &path)).map_err(Error::fault)?;
        }
        let known = Known {
            etag: etag.map(str::to_owned),
            last_modified: last_modified.map(str::to_owned),
            digest: digest.clone(),
        };
        if self.known.get(url) == Some(&known) {
            return Ok(());
        }
        let line = json!({"is": "found", "url": url, "digest": digest, "etag": etag, "last_modified": last_modified});
        self.note(line)
    }

    /// What was found at an address the last time, if it is still whole.
    pub(super) fn body(&self, url: &str) -> Option<Vec<u8>> {
        let known = self.known.get(url)?;
        let body = fs::read(self.body_path(&known.digest)).ok()?;
        (Digest::of(&body).to_string() == known.digest).then_some(body)
    }

    fn body_path(&self, digest: &str) -> PathBuf {
        let name: String = digest.chars().filter(char::is_ascii_alphanumeric).collect();
        self.folder.join(BODIES).join(name)
    }

    /// The crawl under way has done with an address.
    pub(super) fn done(&mut self, url: &str) -> Result<(), Error> {
        if self.done.contains(url) { Ok(()) } else { self.note(json!({"is": "done", "url": url})) }
    }

    /// An agent is kept under an address.
    pub(super) fn kept(&mut self, url: &str, at: &str, listed_by: Option<&str>) -> Result<(), Error> {
        let agent = KeptAgent { at: at.to_owned(), listed_by: listed_by.map(str::to_owned) };
        if self.kept.get(url) == Some(&agent) {
            return Ok(());
        }
        self.note(json!({"is": "kept", "url": url, "at": at, "listed_by": listed_by}))
    }

    /// An agent is not kept any more.
    pub(super) fn withdrawn(&mut self, url: &str) -> Result<(), Error> {
        self.note(json!({"is": "withdrawn", "url": url}))?;
        self.note(json!({"is": "lost", "url": url}))
    }

    /// Ends the crawl: the journal is written anew without what is over, and bodies that nobody needs go.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.note(json!({"is": "ended"}))?;
        let (path, mut text) = (self.folder.join(JOURNAL), Vec::new());
        for (url, known) in &self.known {
            let Known { etag, last_modified, digest } = known;
            let line =
                json!({"is": "found", "url": url, "digest": digest, "etag": etag, "last_modified": last_modified});
            text.extend(json::canonical_value(&line));
            text.push(b'\n');
        }
        for (url, KeptAgent { at, listed_by }) in &self.kept {
            let line = json!({"is": "kept", "url": url, "at": at, "listed_by": listed_by});
            text.extend(json::canonical_value(&line));
            text.push(b'\n');
        }
        let beside = path.with_extension("new");
        let written = File::create(&beside).and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
        written.and_then(|()| fs::rename(&beside, &path)).map_err(Error::fault)?;
        self.journal = OpenOptions::new().append(true).open(&path).map_err(Error::fault)?;
        self.sweep();
        Ok(())
    }

    /// What cannot be removed today is removed another day.
    fn sweep(&self) {
        let needed: BTreeSet<PathBuf> = self.known.values().map(|known| self.body_path(&known.digest)).collect();
        for entry in fs::read_dir(self.folder.join(BODIES)).into_iter().flatten().flatten() {
            if !needed.contains(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.example/ad.json";

    fn seeds() -> Vec<String> {
        vec!["a.example".to_owned()]
    }

    #[test]
    fn a_crawl_that_was_cut_off_goes_on_and_one_that_ended_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::open(folder.path()).unwrap();
        assert!(!state.begin(&seeds(), false).unwrap());
        state.found(URL, b"{}", Some("\"1\""), None).unwrap();
        state.done(URL).unwrap();
        state.kept(URL, URL, Some("a.example")).unwrap();
        let mut state = State::open(folder.path()).unwrap();
        assert!(state.begin(&seeds(), false).unwrap());
        assert!(state.done.contains(URL));
        assert_eq!(state.body(URL).as_deref(), Some(&b"{}"[..]));
        assert!(!state.begin(&["b.example".to_owned()], false).unwrap());
        assert!(state.done.is_empty());
        state.end().unwrap();
        let mut state = State::open(folder.path()).unwrap();
        assert_eq!(state.known[URL].etag.as_deref(), Some("\"1\""));
        assert_eq!(state.kept[URL].listed_by.as_deref(), Some("a.example"));
        assert!(!state.begin(&seeds(), false).unwrap());
        assert!(state.done.is_empty());
    }

    #[test]
    fn what_a_crash_left_is_passed_over_and_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::open(folder.path()).unwrap();
        state.begin(&seeds(), false).unwrap();
        state.found(URL, b"{}", None, None).unwrap();
        state.done(URL).unwrap();
        let path = folder.path().join(FOLDER).join(JOURNAL);
        let text = fs::read(&path).unwrap();
        for cut in 0..text.len() {
            fs::write(&path, &text[..cut]).unwrap();
            let mut state = State::open(folder.path()).unwrap();
            state.done("https://a.example/next").unwrap();
            let state = State::open(folder.path()).unwrap();
            assert!(state.done.contains("https://a.example/next"), "{cut}");
        }
        fs::write(&path, &text).unwrap();
        let state = State::open(folder.path()).unwrap();
        let body = fs::read_dir(folder.path().join(FOLDER).join(BODIES)).unwrap().next().unwrap().unwrap().path();
        fs::write(body, b"[]").unwrap();
        assert_eq!(state.body(URL), None);
    }

    #[test]
    fn bodies_that_nobody_needs_go_with_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::open(folder.path()).unwrap();
        state.begin(&seeds(), false).unwrap();
        state.found(URL, b"1", None, None).unwrap();
        state.found(URL, b"2", None, None).unwrap();
        let count = || fs::read_dir(folder.path().join(FOLDER).join(BODIES)).unwrap().count();
        assert_eq!(count(), 2);
        state.end().unwrap();
        assert_eq!((count(), state.body(URL).as_deref()), (1, Some(&b"2"[..])));
        state.withdrawn(URL).unwrap();
        state.end().unwrap();
        assert_eq!(count(), 0);
    }
}
