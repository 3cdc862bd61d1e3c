//! OAS References: a bare name, `oagent://name`, or `oagent://host[/path]/name`.
//!
//! A reference is remote exactly when a `/` follows the authority (decisions/0210).
//!
//! INVARIANT: the last part of every reference is a [`Name`]; a remote one has neither user, query nor fragment.

use crate::{InvalidName, Name, NameRule};
use std::fmt;

/// What a reference to an agent alone begins with.
const SCHEME: &str = "oagent://";

/// Bytes of a reference, at most.
const REFERENCE_BYTES_MAX: usize = 1_024;

/// What a capability refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// A tool of that name, or an agent when there is no such tool.
    Bare(Name),
    /// An agent of this server.
    Agent(Name),
    /// An agent of another server.
    Remote {
        /// Its host, with a port where one is written.
        authority: String,
        /// What stands between host and name, without slashes around it.
        path: String,
        /// The agent's name there.
        name: Name,
    },
}

/// Why a text is no reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    /// The name in it is none.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The host or port is none.
    #[error("a remote reference names a host, and a port if it must, and nothing else before the first `/`")]
    Authority,
    /// A part of the path is none.
    #[error("a remote reference has a plain path: no empty part, no `.` or `..`, no query, no fragment")]
    Path,
    /// Longer than 1,024 bytes.
    #[error("a reference has at most 1,024 bytes")]
    TooLong,
}

impl Reference {
    /// Reads a reference.
    pub fn read(text: &str, rule: NameRule) -> Result<Self, InvalidReference> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(InvalidReference::TooLong);
        }
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Ok(Self::Bare(Name::read(text, rule)?));
        };
        let Some((authority, path)) = rest.split_once('/') else {
            return Ok(Self::Agent(Name::read(rest, rule)?));
        };
        if !is_authority(authority) {
            return Err(InvalidReference::Authority);
        }
        let (path, name) = match path.rsplit_once('/') {
            Some((path, name)) if path.split('/').all(is_segment) => (path, name),
            Some(_) => return Err(InvalidReference::Path),
            None => ("", path),
        };
        if name.is_empty() {
            return Err(InvalidReference::Path);
        }
        Ok(Self::Remote { authority: authority.to_owned(), path: path.to_owned(), name: Name::read(name, rule)? })
    }

    /// The name at its end.
    pub fn name(&self) -> &Name {
        match self {
            Self::Bare(name) | Self::Agent(name) | Self::Remote { name, .. } => name,
        }
    }

    /// Where a remote agent is described: `https` in place of `oagent`.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Bare(_) | Self::Agent(_) => None,
            Self::Remote { .. } => Some(format!("https://{}", self.to_string().strip_prefix(SCHEME)?)),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare(name) => write!(out, "{name}"),
            Self::Agent(name) => write!(out, "{SCHEME}{name}"),
            Self::Remote { authority, path, name } if path.is_empty() => write!(out, "{SCHEME}{authority}/{name}"),
            Self::Remote { authority, path, name } => write!(out, "{SCHEME}{authority}/{path}/{name}"),
        }
    }
}

fn is_authority(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let label = |label: &str| {
        let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !label.is_empty() && label.len() <= 63 && plain && !label.starts_with('-') && !label.ends_with('-')
    };
    let port = port.is_none_or(|port| !port.starts_with('0') && port.parse::<u16>().is_ok());
    host.len() <= 253 && host.split('.').all(label) && port
}

fn is_segment(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    !text.is_empty() && text != "." && text != ".." && plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, kind: &str, name: &str, url: Option<&str>) {
        let reference = Reference::read(text, NameRule::Text).unwrap();
        let found = match reference {
            Reference::Bare(_) => "bare",
            Reference::Agent(_) => "agent",
            Reference::Remote { .. } => "remote",
        };
        assert_eq!((found, reference.name().as_str(), reference.url().as_deref()), (kind, name, url));
        assert_eq!(reference.to_string(), text);
    }

    #[test]
    fn the_three_forms() {
        check("hr-agent", "bare", "hr-agent", None);
        check("oagent://hr-agent", "agent", "hr-agent", None);
        check("oagent://a.b", "agent", "a.b", None);
        check("oagent://a.b/c", "remote", "c", Some("https://a.b/c"));
        check("oagent://a.b:8443/x/~y/c.d", "remote", "c.d", Some("https://a.b:8443/x/~y/c.d"));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "",
            "oagent://",
            "oagent:///x",
            "oagent://a/",
            "oagent://a/b/",
            "oagent://a//b",
            "oagent://u@a/b",
            "oagent://a/b?c",
            "oagent://a/b#c",
            "oagent://a/../b",
            "oagent://a/./b",
            "oagent://a/B",
            "oagent://a:0/b",
            "oagent://a:65536/b",
            "oagent://a:/b",
            "oagent://a/%2e/b",
            "https://a/b",
            "OAGENT://a",
            "oagent://A",
            "oagent://-a/b",
            "oagent://a..b/c",
            "a/b",
        ] {
            assert!(Reference::read(text, NameRule::Text).is_err(), "{text}");
        }
        let long = format!("oagent://a/{}b", "x/".repeat(600));
        assert_eq!(Reference::read(&long, NameRule::Text), Err(InvalidReference::TooLong));
    }
}
