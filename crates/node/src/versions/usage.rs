//! Who still uses which version, so that the operator knows whom a withdrawal would hit (RFC 0024 §3.5).
//!
//! Every message that has a schema is counted, and every document in one: an intent in an explanation, a manifest in a
//! publication. Counted after the signature holds, kept in a file of the data folder beside the profile, and shown to nobody else.
//! The counts are for planning: a kill loses the last seconds of them.
//!
//! INVARIANT: of each version at most [`ISSUERS_MAX`] issuers are kept, those who asked last.

use crate::clock::instant;
use json::{Document, Limits, Value, json};
use schema::Version;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where it is kept, in the data folder.
pub(crate) const VERSIONS_FILE: &str = "versions.json";

/// Issuers that are remembered for one version of one schema.
pub(crate) const ISSUERS_MAX: usize = 1_000;

/// Milliseconds after which it is written down again.
const WRITE_EVERY: i64 = 5_000;

#[derive(Debug)]
pub(super) struct Usage {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<(String, Version), Count>,
    /// Whether there is something that the file does not have.
    changed: bool,
    written: i64,
}

/// How much a version is used.
#[derive(Debug, Default)]
struct Count {
    messages: u64,
    since: i64,
    last: i64,
    issuers: HashMap<String, Seen>,
    /// Issuers who had to make room for others.
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    messages: u64,
    last: i64,
}

impl Usage {
    /// Goes on from what the folder has; what cannot be read is begun anew.
    pub(super) fn open(data: &Path, now: i64) -> Self {
        let path = data.join(VERSIONS_FILE);
        let read = std::fs::read(&path).ok();
        let kept = read.as_deref().map(|bytes| Document::parse(bytes, &Limits::OURS).ok().and_then(|file| load(&file)));
        if matches!(kept, Some(None)) {
            tracing::warn!(file = VERSIONS_FILE, "who uses which version cannot be read and is counted anew");
        }
        let counts = kept.flatten().unwrap_or_default();
        // The profile in the file may be an older one.
        Self { path, state: Mutex::new(State { counts, changed: true, written: now }) }
    }

    pub(super) fn count(&self, schema: &str, version: Version, issuer: Option<&str>, now: i64) {
        let mut state = self.lock();
        state.changed = true;
        let count = state.counts.entry((schema.to_owned(), version)).or_default();
        if count.messages == 0 {
            count.since = now;
        }
        count.messages += 1;
        count.last = now;
        let Some(issuer) = issuer else { return };
        if let Some(seen) = count.issuers.get_mut(issuer) {
            *seen = Seen { messages: seen.messages + 1, last: now };
            return;
        }
        if count.issuers.len() >= ISSUERS_MAX {
            let oldest = count.issuers.iter().min_by_key(|(_, seen)| seen.last).map(|(did, _)| did.clone());
            oldest.and_then(|did| count.issuers.remove(&did));
            count.forgotten += 1;
        }
        count.issuers.insert(issuer.to_owned(), Seen { messages: 1, last: now });
    }

    pub(super) fn forget(&self, issuer: &str) {
        let mut state = self.lock();
        for count in state.counts.values_mut() {
            count.issuers.remove(issuer);
        }
        state.changed = true;
    }

    pub(super) fn keep(&self, profile: impl FnOnce() -> Value, now: i64) {
        if now - self.lock().written >= WRITE_EVERY {
            self.keep_now(profile, now);
        }
    }

    pub(super) fn keep_now(&self, profile: impl FnOnce() -> Value, now: i64) {
        let mut state = self.lock();
        if !state.changed {
            return;
        }
        let text = format!("{:#}\n", state.told(&profile(), now));
        (state.changed, state.written) = (false, now);
        drop(state);
        let beside = self.path.with_extension("new");
        if let Err(error) = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &self.path)) {
            tracing::warn!(%error, file = VERSIONS_FILE, "who uses which version cannot be written down");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn told(&self, profile: &Value, now: i64) -> Value {
        let count = |((schema, version), count): (&(String, Version), &Count)| {
            let mut issuers: Vec<_> = count.issuers.iter().collect();
            issuers.sort_by(|left, right| right.1.messages.cmp(&left.1.messages).then_with(|| left.0.cmp(right.0)));
            let issuer = |(did, seen): (&String, &Seen)| json!({"did": did, "messages": seen.messages, "last": instant(seen.last).to_string()});
            json!({
                "schema": schema, "version": version.to_string(), "messages": count.messages,
                "since": instant(count.since).to_string(), "last": instant(count.last).to_string(),
                "issuers": issuers.into_iter().map(issuer).collect::<Vec<_>>(), "forgotten": count.forgotten,
            })
        };
        json!({
            "written_at": instant(now).to_string(),
            "schema_compatibility": profile,
            "usage": self.counts.iter().map(count).collect::<Vec<_>>(),
        })
    }
}

fn load(file: &Document) -> Option<BTreeMap<(String, Version), Count>> {
    let millis = |node: json::Node<'_>, name: &str| {
        let time = json::Instant::parse_rfc3339(node.get(name)?.as_str()?)?;
        Some(time.seconds() * 1_000 + i64::from(time.nanos() / 1_000_000))
    };
    let number = |node: json::Node<'_>, name: &str| node.get(name)?.as_u64();
    let mut counts = BTreeMap::new();
    for told in file.root().get("usage")?.elements() {
        let version = Version::parse(told.get("version")?.as_str()?)?;
        let mut count = Count {
            messages: number(told, "messages")?,
            since: millis(told, "since")?,
            last: millis(told, "last")?,
            issuers: HashMap::new(),
            forgotten: number(told, "forgotten")?,
        };
        for issuer in told.get("issuers")?.elements().take(ISSUERS_MAX) {
            let seen = Seen { messages: number(issuer, "messages")?, last: millis(issuer, "last")? };
            count.issuers.insert(issuer.get("did")?.as_str()?.to_owned(), seen);
        }
        counts.insert((told.get("schema")?.as_str()?.to_owned(), version), count);
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> Version {
        Version::parse("1.2").unwrap()
    }

    fn written(folder: &Path) -> Value {
        let bytes = std::fs::read(folder.join(VERSIONS_FILE)).unwrap();
        Document::parse(&bytes, &Limits::OURS).unwrap().root().to_value()
    }

    #[test]
    fn counts_go_on_after_a_restart_and_a_damaged_file_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(folder.path(), 0);
        for (issuer, now) in [("did:key:a", 1_000), ("did:key:b", 2_000), ("did:key:a", 3_000)] {
            usage.count("urn:x:a", version(), Some(issuer), now);
        }
        usage.keep(|| json!({}), WRITE_EVERY);
        let usage = Usage::open(folder.path(), 0);
        usage.count("urn:x:a", version(), Some("did:key:a"), 4_000);
        usage.count("urn:x:b", version(), None, 4_000);
        usage.keep_now(|| json!({}), 4_000);
        let told = written(folder.path());
        assert_eq!(told["usage"][0]["messages"], 4);
        assert_eq!(told["usage"][0]["since"], "1970-01-01T00:00:01Z");
        assert_eq!(told["usage"][0]["issuers"][0]["did"], "did:key:a");
        assert_eq!(told["usage"][0]["issuers"][0]["messages"], 3);
        assert_eq!((&told["usage"][1]["messages"], &told["usage"][1]["issuers"]), (&json!(1), &json!([])));
        usage.forget("did:key:a");
        usage.keep_now(|| json!({}), 5_000);
        assert!(!written(folder.path()).to_string().contains("did:key:a"));
        std::fs::write(folder.path().join(VERSIONS_FILE), "{").unwrap();
        assert!(Usage::open(folder.path(), 0).lock().counts.is_empty());
    }

    #[test]
    fn a_crowd_pushes_out_those_who_asked_longest_ago() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(folder.path(), 0);
        for (now, number) in (0..ISSUERS_MAX + 3).enumerate() {
            usage.count("urn:x:a", version(), Some(&format!("did:key:{number}")), now as i64);
        }
        let state = usage.lock();
        let count = state.counts.values().next().unwrap();
        assert_eq!((count.issuers.len(), count.forgotten, count.messages), (ISSUERS_MAX, 3, ISSUERS_MAX as u64 + 3));
        assert!(!count.issuers.contains_key("did:key:2") && count.issuers.contains_key("did:key:3"));
    }
}
