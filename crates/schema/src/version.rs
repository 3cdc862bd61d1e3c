//! RFC 0024 §2 "Schema Version": three numbers, compared as numbers; a missing patch is 0 (`docs/decisions/0120`).

use crate::read::At;
use crate::refusal::{Code, Refusal};
use std::cmp::Ordering;
use std::fmt;

/// A version of a schema, `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    numbers: [u32; 3],
    /// Whether the patch was written, so that a version is repeated as its sender spells it.
    patch_written: bool,
}

/// Digits of one number; nobody counts further, and it fits.
const DIGITS_MAX: usize = 9;

impl Version {
    /// Reads a version; no sign, no leading zero, nothing before or after it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (major, minor) = (number(parts.next()?)?, number(parts.next()?)?);
        let patch = parts.next();
        let written = patch.is_some();
        let patch = patch.map_or(Some(0), number)?;
        parts.next().is_none().then_some(Self { numbers: [major, minor, patch], patch_written: written })
    }

    pub(crate) fn read(at: &At<'_>) -> Result<Self, Refusal> {
        let wanted = "a version such as `1.2` or `1.2.0` belongs here";
        Self::parse(at.string()?).map_or_else(|| at.refuse(Code::VersionInvalid, wanted), Ok)
    }

    /// The first number, which grows when old readers cannot follow.
    pub fn major(self) -> u32 {
        let [major, _, _] = self.numbers;
        major
    }
}

fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain && (1..=DIGITS_MAX).contains(&text.len()) { text.parse().ok() } else { None }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        if self.patch_written { write!(out, "{major}.{minor}.{patch}") } else { write!(out, "{major}.{minor}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version("1.10") > version("1.9"));
        assert!(version("2.0") > version("1.999.999"));
        assert!(version("1.2.1") > version("1.2"));
        assert_eq!(version("1.2"), version("1.2.0"));
    }

    #[test]
    fn a_version_prints_as_it_was_spelled() {
        for text in ["1.2", "1.2.0", "0.3.17"] {
            assert_eq!(version(text).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_are_none() {
        for text in
            ["", "1", "01.2", "1.02", "1.2-rc", "v1", "v1.2", "1.2.3.4", "1..2", "1.2.", " 1.2", "+1.2", "١.٢", "1.2e3"]
        {
            assert!(Version::parse(text).is_none(), "{text:?}");
        }
        assert!(Version::parse("1.9999999999").is_none());
    }
}
