//! Refusal codes: what the list promises is what the crates say, and no crate or case has a code that is not listed.
//!
//! A crate says its codes in a function `code`, or in the function `name` of a type called `Code`. The node and the
//! server also say them where they refuse: `Refusal::new(class, code, …)` and `code: "…"`.

use super::Finding;
use crate::corpus::CaseFile;
use crate::files::TextFile;
use crate::refusals::{self, Refusals};
use std::collections::BTreeSet;

/// Codes that are listed and never said, listed twice, or said or expected and not listed.
pub fn check(refusals: &Refusals, files: &[TextFile], corpus: &[CaseFile]) -> Vec<Finding> {
    let source: Vec<&TextFile> =
        files.iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/")).collect();
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for (family, refusal) in refusals.codes() {
        let code = refusal.code.as_str();
        if !listed.insert(code) {
            findings.push(Finding::new(refusals::LIST, format!("`{code}` stands twice")));
        }
        if !source.iter().any(|file| says(&file.text, code, family.spoken)) {
            let problem = format!("`{code}` is listed and no crate says it: remove it, or find who renamed it");
            findings.push(Finding::new(refusals::LIST, problem));
        }
    }
    for file in source {
        let refuses = REFUSING.iter().any(|folder| file.path.starts_with(folder));
        let refused = if refuses { refused(&file.text) } else { Vec::new() };
        for code in said(&file.text).into_iter().chain(refused).filter(|code| !listed.contains(code)) {
            let problem = format!("says `{code}`, which {} does not list", refusals::LIST);
            findings.push(Finding::new(file.path.as_str(), problem));
        }
    }
    for file in corpus {
        for case in &file.cases {
            if let Some(code) = case.expect.get("code").and_then(serde_json::Value::as_str)
                && !listed.contains(code)
            {
                let problem = format!("case `{}` expects `{code}`, which {} does not list", case.id, refusals::LIST);
                findings.push(Finding::new(file.path.as_str(), problem));
            }
        }
    }
    findings
}

/// Where codes are said beside their refusals.
const REFUSING: [&str; 2] = ["crates/node/src/", "crates/server/src/"];

/// The codes that stand where something is refused: the first literal after the class.
fn refused(source: &str) -> Vec<&str> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut codes = Vec::new();
    for mark in ["Refusal::new(", "(Class::", " code: \""] {
        for (position, _) in source.match_indices(mark) {
            let rest = source.get(position + mark.len() - 1..).unwrap_or_default();
            let statement = rest.split([';', '{']).next().unwrap_or_default();
            codes.extend(statement.split('"').nth(1).filter(|literal| is_code(literal)));
        }
    }
    codes
}

fn is_code(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Whether a code stands in the source as a literal or, when it is spoken, at the beginning or inside of one.
fn says(source: &str, code: &str, spoken: bool) -> bool {
    let lines = source.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    if spoken {
        let within = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == code);
        lines.filter(|line| line.contains('"')).any(within)
    } else {
        let literal = format!("\"{code}\"");
        lines.into_iter().any(|line| line.contains(&literal))
    }
}

/// The codes a file gives away in its functions for them.
fn said(source: &str) -> Vec<&str> {
    let mut codes = Vec::new();
    let mut of_code = false;
    let mut inside = false;
    for line in source.lines() {
        if line.starts_with("impl ") {
            of_code = line == "impl Code {";
        } else if line.contains("fn code(") || (of_code && line.contains("fn name(")) {
            inside = line.contains("-> &'static str");
        } else if line == "    }" {
            inside = false;
        } else if inside && let Some((_, after)) = line.split_once("=> \"") {
            codes.extend(after.split('"').next());
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    const LIST: &str = r#"
[[family]]
title = "Reading"
when = "First."
refusal = [
    { code = "json_syntax", meaning = "m", section = "s", advice = "a" },
    { code = "never_said", meaning = "m", section = "s", advice = "a" },
]

[[family]]
title = "Judging"
when = "Last."
spoken = true
refusal = [{ code = "cost_undefined", meaning = "m", section = "s", advice = "a" }]
"#;

    #[test]
    fn codes_are_read_from_their_functions_only() {
        let source = "impl Code {\n    pub fn name(self) -> &'static str {\n            Self::A => \"a_a\",\n    }\n}\n\
                      impl Operator {\n    pub fn name(self) -> &'static str {\n            Self::B => \"b_b\",\n    }\n}\n\
                      impl E {\n    fn code(&self) -> &'static str {\n            Self::C => \"c_c\",\n    }\n\
                          fn other() -> u8 {\n            1 => \"d_d\",\n    }\n}\n";
        assert_eq!(said(source), ["a_a", "c_c"]);
    }

    #[test]
    fn codes_are_read_where_something_is_refused() {
        let source = "let a = Refusal::new(Class::A, \"a_a\", \"words\");\nlet b = (Class::B, \"b_b\");\n\
                      Refusal { code: \"c_c\", ..other }\nlet d = Refusal::new(class, code, detail);\nlet e = \"d_d\";\n\
                      #[cfg(test)]\nRefusal::new(Class::A, \"e_e\", \"\");\n";
        assert_eq!(refused(source), ["a_a", "a_a", "b_b", "c_c"]);
        let files = [TextFile::new("crates/node/src/a.rs", source)];
        let findings = check(&Refusals::read(LIST).unwrap(), &files, &[]);
        assert!(findings.iter().any(|finding| finding.to_string().contains("says `b_b`")));
    }

    #[test]
    fn list_source_and_corpus_are_compared() {
        let source =
            "fn name() { \"json_syntax\" }\n// \"never_said\"\nfn why() { format!(\"budget: cost_undefined\") }\n";
        let cases = r#"{"theme":"x","section":"s","cases":[
            {"id":"one","requirement":"A","expect":{"code":"json_syntax"}},
            {"id":"two","requirement":"A","expect":{"code":"brand_new"}}]}"#;
        let files = [TextFile::new("crates/json/src/a.rs", source), TextFile::new("conformance/aql/x.json", cases)];
        let findings = check(&Refusals::read(LIST).unwrap(), &files, &corpus::cases(&files).unwrap());
        let found: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`never_said` is listed and no crate says it"));
        assert!(found[1].contains("case `two` expects `brand_new`"));
    }
}
