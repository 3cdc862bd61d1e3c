//! OAS Engagement: `recent.search-faqs.inputs` and `history.crm.[0]`, as the text writes them, turned into CEL.
//!
//! Names of tools hold `-` and `.`, which CEL reads as a subtraction and a selection. Behind `recent.` and `history.` the
//! longest name of a capability that stands there is put in backticks, which `has()` takes as well; a dot before a bracket
//! goes away. Nothing that means something in CEL changes its meaning, since a map minus anything is an error
//! (decisions/0214).
//!
//! INVARIANT: nothing inside a text, a comment or backticks is touched.

/// An expression in CEL, and where its bytes stood before.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The expression.
    pub(crate) text: String,
    /// For each byte of it, the byte of the original.
    origins: Vec<usize>,
}

impl Rewritten {
    /// Line and column in the original, from 1, of a line and column here.
    pub(crate) fn original(&self, source: &str, line: usize, column: usize) -> (usize, usize) {
        let before: usize = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let offset = before + column.saturating_sub(1);
        let origin = self.origins.get(offset).copied().unwrap_or(source.len());
        let before = source.get(..origin).unwrap_or(source);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).unwrap_or_default().chars().count();
        (before.matches('\n').count() + 1, column + 1)
    }
}

/// Words that CEL keeps for itself and that are names of tools all the same.
const KEPT: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The expression in CEL.
pub(crate) fn rewrite(source: &str, keys: &[String]) -> Rewritten {
    let mut writer = Writer { source, out: Rewritten { text: String::new(), origins: Vec::new() }, at: 0 };
    let mut word_before = String::new();
    while let Some(rest) = source.get(writer.at..).filter(|rest| !rest.is_empty()) {
        let length = quoted(rest).or_else(|| comment(rest)).unwrap_or(0);
        if length > 0 {
            writer.copy(length);
            word_before.clear();
            continue;
        }
        let word = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
        if word > 0 {
            let is_root = !writer.out.text.trim_end().ends_with('.');
            word_before = if is_root { rest.get(..word).unwrap_or_default().to_owned() } else { String::new() };
            writer.copy(word);
            continue;
        }
        if rest.starts_with('.') {
            let after = rest.get(1..).unwrap_or_default().trim_start();
            if after.starts_with('[') {
                writer.skip(1);
            } else {
                writer.copy(1);
                if matches!(word_before.as_str(), "recent" | "history") {
                    let blank = rest.len() - 1 - after.len();
                    writer.copy(blank);
                    writer.name(keys);
                }
            }
            word_before.clear();
            continue;
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if !rest.starts_with(char::is_whitespace) {
            word_before.clear();
        }
        writer.copy(first);
    }
    writer.out
}

struct Writer<'a> {
    source: &'a str,
    out: Rewritten,
    at: usize,
}

impl Writer<'_> {
    fn copy(&mut self, length: usize) {
        let end = (self.at + length).min(self.source.len());
        self.out.text.push_str(self.source.get(self.at..end).unwrap_or_default());
        self.out.origins.extend(self.at..end);
        self.at = end;
    }

    fn skip(&mut self, length: usize) {
        self.at += length;
    }

    fn put(&mut self, character: char) {
        self.out.text.push(character);
        self.out.origins.push(self.at);
    }

    /// The longest key that stands here, in backticks where it needs them.
    fn name(&mut self, keys: &[String]) {
        let rest = self.source.get(self.at..).unwrap_or_default();
        let stands_here = |key: &&String| {
            let after = rest.strip_prefix(key.as_str()).map(|after| after.chars().next());
            let goes_on = |next: char| next.is_ascii_alphanumeric() || next == '-' || next == '_';
            after.is_some_and(|next| next.is_none_or(|next| !goes_on(next)))
        };
        let Some(key) = keys.iter().filter(stands_here).max_by_key(|key| key.len()) else { return };
        let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !key.starts_with(|c: char| c.is_ascii_digit())
            && !KEPT.contains(&key.as_str());
        if is_plain {
            self.copy(key.len());
        } else {
            self.put('`');
            self.copy(key.len());
            self.put('`');
        }
    }
}

/// How long the text or the name in backticks is that begins here.
fn quoted(rest: &str) -> Option<usize> {
    let bare = rest.trim_start_matches(['r', 'R', 'b', 'B']);
    let prefix = rest.len() - bare.len();
    let raw = rest.get(..prefix)?.contains(['r', 'R']);
    let quote = bare.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    if prefix > 2 || (quote == '`' && prefix > 0) {
        return None;
    }
    let triple = quote.to_string().repeat(3);
    let end = if quote != '`' && bare.starts_with(&triple) { triple } else { quote.to_string() };
    let mut at = end.len();
    while let Some(inside) = bare.get(at..).filter(|inside| !inside.is_empty()) {
        if inside.starts_with(&end) {
            return Some(prefix + at + end.len());
        }
        let escaped = inside.starts_with('\\') && !raw && quote != '`';
        let step: usize = inside.chars().take(if escaped { 2 } else { 1 }).map(char::len_utf8).sum();
        at += step;
    }
    Some(rest.len())
}

fn comment(rest: &str) -> Option<usize> {
    rest.starts_with("//").then(|| rest.find('\n').unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, rewritten: &str) {
        let keys = ["crm", "crm-lookup", "crm.lookup", "search-faqs", "in", "7zip", "x_y"].map(str::to_owned);
        assert_eq!(rewrite(source, &keys).text, rewritten);
    }

    #[test]
    fn names_behind_recent_and_history_are_put_in_backticks() {
        check("recent.search-faqs.inputs.q == ''", "recent.`search-faqs`.inputs.q == ''");
        check("has(recent.search-faqs.outputs)", "has(recent.`search-faqs`.outputs)");
        check("recent . search-faqs . inputs", "recent . `search-faqs` . inputs");
        check("recent.crm.inputs", "recent.crm.inputs");
        check("recent.crm-lookup.inputs", "recent.`crm-lookup`.inputs");
        check("recent.crm.lookup.inputs", "recent.`crm.lookup`.inputs");
        check("recent.crm.lookups", "recent.crm.lookups");
        check("recent.in.inputs + recent.7zip.inputs", "recent.`in`.inputs + recent.`7zip`.inputs");
        check("recent.x_y.inputs", "recent.x_y.inputs");
        check("size(history.crm)-1 < 2", "size(history.crm)-1 < 2");
    }

    #[test]
    fn a_dot_before_a_bracket_goes_away() {
        check("history.crm.[0].inputs", "history.crm[0].inputs");
        check("history.search-faqs.[0]", "history.`search-faqs`[0]");
        check("history.crm . [0]", "history.crm  [0]");
    }

    #[test]
    fn texts_comments_and_other_things_stay_as_they_are() {
        for source in [
            "'recent.search-faqs' == \"history.crm.[0]\"",
            "'it\\'s recent.search-faqs'",
            "r'\\' + 'recent.search-faqs'",
            "\"\"\"a \" recent.search-faqs\"\"\"",
            "x.recent.search-faqs",
            "myrecent.search-faqs",
            "recent.`search-faqs`.inputs",
            "recent[\"search-faqs\"].inputs",
            "true // recent.search-faqs",
            "'never closed recent.search-faqs",
            "recent.unknown-tool.inputs",
            "é + recent",
        ] {
            check(source, source);
        }
        check("true // x\n && recent.search-faqs", "true // x\n && recent.`search-faqs`");
    }

    #[test]
    fn places_are_those_of_the_original() {
        let keys = ["search-faqs".to_owned()];
        let source = "recent.search-faqs.x ==\n  history.search-faqs.[0] %";
        let rewritten = rewrite(source, &keys);
        let column = |text: &str, line: usize| text.lines().nth(line - 1).unwrap().find(['=', '%']).unwrap() + 1;
        for line in [1, 2] {
            let here = (line, column(source, line));
            assert_eq!(rewritten.original(source, line, column(&rewritten.text, line)), here);
        }
        assert_eq!(rewritten.original(source, 9, 9), (2, 28));
    }
}
