//! Reads the corpus: JSON files by theme, and the exact list of expected failures.

use crate::embedded;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// One case: an input and what must come of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Unique in the corpus.
    pub id: String,
    /// A requirement of `spec/requirements.toml`.
    pub requirement: String,
    /// The point of the case.
    pub why: String,
    /// What is done with the inputs.
    pub kind: String,
    /// What must come of it.
    pub expect: Value,
    /// The inputs, by name.
    #[serde(flatten)]
    pub inputs: serde_json::Map<String, Value>,
}

impl Case {
    /// An input by name.
    pub fn input(&self, name: &str) -> &Value {
        self.inputs.get(name).unwrap_or(&Value::Null)
    }

    /// The bytes of an input given as text, as hexadecimal digits, or as a text repeated.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if let Some(text) = self.input("text").as_str() {
            return Some(text.as_bytes().to_vec());
        }
        if let Some(hex) = self.input("hex").as_str() {
            let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
            let pair = |pair: &[u8]| match pair {
                [high, low] => Some(digit(*high)? * 16 + digit(*low)?),
                _ => None,
            };
            return hex.as_bytes().chunks(2).map(pair).collect();
        }
        let repeat = self.inputs.get("repeat")?;
        let times = repeat.get("times")?.as_u64()? as usize;
        let part = |name: &str| repeat.get(name).and_then(Value::as_str).unwrap_or_default();
        Some(format!("{}{}{}", part("before"), repeat.get("text")?.as_str()?.repeat(times), part("after")).into_bytes())
    }
}

#[derive(Deserialize)]
struct Theme {
    theme: String,
    cases: Vec<Case>,
}

/// A case that an implementation is known to fail.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedFailure {
    /// Which implementation.
    pub implementation: String,
    /// Which case.
    pub case: String,
    /// Why it is so today.
    pub reason: String,
}

#[derive(Default, Deserialize)]
struct ExpectedFailures {
    #[serde(default)]
    expected: Vec<ExpectedFailure>,
}

/// All cases, by theme.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The themes in the order of their files.
    pub themes: Vec<(String, Vec<Case>)>,
    /// What is known to fail.
    pub expected_failures: Vec<ExpectedFailure>,
}

impl Corpus {
    /// Reads every theme of a folder, and `expected-failures.toml` beside it.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .with_context(|| format!("no corpus at {}", folder.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        files.sort();
        let mut texts = Vec::with_capacity(files.len());
        for file in files {
            texts.push((file.display().to_string(), std::fs::read_to_string(&file)?));
        }
        let expected = folder.with_file_name("expected-failures.toml");
        let expected = if expected.exists() { std::fs::read_to_string(expected)? } else { String::new() };
        let expected: ExpectedFailures = toml::from_str(&expected).context("expected-failures.toml")?;
        let themes = themes(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
        Ok(Self { themes, expected_failures: expected.expected })
    }

    /// The corpus that this program carries: the language and the node.
    pub fn embedded() -> Result<Self> {
        Ok(Self { themes: themes(embedded::THEMES.iter().copied())?, expected_failures: Vec::new() })
    }

    /// Every case with its theme.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &Case)> {
        self.themes.iter().flat_map(|(theme, cases)| cases.iter().map(move |case| (theme.as_str(), case)))
    }
}

/// Reads files of cases; an id stands once in all of them.
fn themes<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<(String, Vec<Case>)>> {
    let (mut themes, mut seen) = (Vec::new(), HashSet::new());
    for (name, text) in files {
        let theme: Theme = serde_json::from_str(text).with_context(|| name.to_owned())?;
        if let Some(twice) = theme.cases.iter().find(|case| !seen.insert(case.id.clone())) {
            bail!("{name}: the case `{}` stands twice in the corpus", twice.id);
        }
        themes.push((theme.theme, theme.cases));
    }
    Ok(themes)
}
