//! RFC 9309: what a host lets programs read.
//!
//! The groups that name us count, else those for everybody; of the rules that fit, the longest decides, and of two as
//! long the one that allows. `Crawl-delay` is no part of the text and is kept all the same.

use std::time::Duration;

/// Our name in these files.
const NAME: &str = "rialto";

/// Rules that are read of one file.
const RULES_MAX: usize = 5_000;

/// The longest pause between two requests that a host gets.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// What a host lets us read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Robots {
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    allows: bool,
    pattern: String,
}

impl Robots {
    /// Everything is allowed: the host has no such file.
    pub(super) fn open() -> Self {
        Self::default()
    }

    /// Nothing is allowed: the host could not say what is.
    pub(super) fn closed() -> Self {
        Self { rules: vec![Rule { allows: false, pattern: "/".to_owned() }], delay: None }
    }

    /// Reads a file; lines that are none are passed over.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (mut ours, mut everybodys) = (None, Self::default());
        // Whom the group is for: us, everybody; and whether its rules have begun.
        let (mut us, mut all, mut begun) = (false, false, false);
        let lines = text.trim_start_matches('\u{feff}').lines();
        for line in lines.filter_map(|line| line.split('#').next()?.split_once(':')).take(RULES_MAX) {
            let (name, value) = (line.0.trim().to_ascii_lowercase(), line.1.trim());
            if name == "user-agent" {
                if std::mem::take(&mut begun) {
                    (us, all) = (false, false);
                }
                us |= names_us(value);
                all |= value == "*";
                if us {
                    ours.get_or_insert_with(Self::default);
                }
                continue;
            }
            begun |= ["allow", "disallow", "crawl-delay"].contains(&name.as_str());
            for group in [ours.as_mut().filter(|_| us), Some(&mut everybodys).filter(|_| all)].into_iter().flatten() {
                group.add(&name, value);
            }
        }
        ours.unwrap_or(everybodys)
    }

    fn add(&mut self, name: &str, value: &str) {
        match name {
            "allow" | "disallow" if !value.is_empty() => {
                self.rules.push(Rule { allows: name == "allow", pattern: normal(value) });
            }
            "crawl-delay" => {
                let seconds = value.parse::<f64>().ok().filter(|seconds| (0.0..1e6).contains(seconds));
                self.delay = seconds.map(|seconds| Duration::from_secs_f64(seconds).min(DELAY_MAX)).or(self.delay);
            }
            _ => {}
        }
    }

    /// Whether a path with its query may be read; the file itself always may.
    pub(super) fn allows(&self, path: &str) -> bool {
        let path = normal(path);
        let fitting = self.rules.iter().filter(|rule| fits(&rule.pattern, &path));
        let decided = fitting.max_by_key(|rule| (rule.pattern.len(), rule.allows));
        path == "/robots.txt" || decided.is_none_or(|rule| rule.allows)
    }

    /// The pause that the host asks for between two requests.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay
    }
}

fn names_us(value: &str) -> bool {
    let end = value.find(|c: char| !c.is_ascii_alphabetic() && c != '-' && c != '_').unwrap_or(value.len());
    value.get(..end).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}

/// One spelling for one path: escapes in upper case, and none where none is needed.
fn normal(path: &str) -> String {
    let (mut normal, bytes) = (String::new(), path.as_bytes());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape = path.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(plain) if plain.is_ascii_alphanumeric() || b"-._~".contains(&plain) => {
                normal.push(char::from(plain));
                at += 3;
            }
            Some(other) => {
                normal.push_str(&format!("%{other:02X}"));
                at += 3;
            }
            None if byte.is_ascii_graphic() => {
                normal.push(char::from(*byte));
                at += 1;
            }
            None => {
                normal.push_str(&format!("%{byte:02X}"));
                at += 1;
            }
        }
    }
    normal
}

/// Whether a path begins as a pattern says; `*` is any text, a `$` at the end is the end. Its time is the product of
/// both lengths at most.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let Some(rest) = pieces.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return !whole || rest.is_empty() };
    let mut rest = rest;
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    if whole { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, cases: &[(&str, bool)]) {
        let robots = Robots::read(file.as_bytes());
        for (path, allowed) in cases {
            assert_eq!(robots.allows(path), *allowed, "{path} under\n{file}");
        }
    }

    #[test]
    fn the_longest_rule_decides() {
        check(
            "User-agent: *\nDisallow: /private\nAllow: /private/open\n",
            &[
                ("/", true),
                ("/private", false),
                ("/private/x", false),
                ("/private/open/x", true),
                ("/robots.txt", true),
            ],
        );
        check("User-agent: *\nAllow: /a\nDisallow: /a\n", &[("/a", true)]);
        check("User-agent: *\nDisallow: /\n", &[("/", false), ("/a", false), ("/robots.txt", true)]);
        check("User-agent: *\nDisallow:\n", &[("/", true)]);
    }

    #[test]
    fn a_group_that_names_us_counts_alone() {
        let file = "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: Rialto/2.0\nDisallow: /b\n\n\
                    user-agent: rialto\nDisallow: /c # both of ours count\n";
        check(file, &[("/a", true), ("/b", false), ("/c", false)]);
        check("User-agent: rialtobot\nDisallow: /\n", &[("/a", true)]);
        check("Disallow: /\nUser-agent: other\nDisallow: /\n", &[("/a", true)]);
    }

    #[test]
    fn stars_and_ends_are_understood() {
        check(
            "User-agent: *\nDisallow: /*.yaml$\nDisallow: /x*y*z\nDisallow: /end$\n",
            &[
                ("/a/b.yaml", false),
                ("/a/b.yaml?x", true),
                ("/xyz", false),
                ("/x1y2z3", false),
                ("/xzy", true),
                ("/end", false),
                ("/end/", true),
            ],
        );
        let long = format!("User-agent: *\nDisallow: /{}b\n", "*a".repeat(500));
        check(&long, &[(&format!("/{}", "a".repeat(5_000)), true)]);
    }

    #[test]
    fn one_path_has_one_spelling() {
        check(
            "User-agent: *\nDisallow: /%7Ejo/\u{e9}\n",
            &[("/~jo/%c3%a9", false), ("/%7ejo/%C3%A9", false), ("/~jo", true)],
        );
        check("User-agent: *\nDisallow: /a%2fb\n", &[("/a%2Fb", false), ("/a/b", true)]);
    }

    #[test]
    fn a_pause_is_kept_within_reason() {
        let delay = |text: &str| Robots::read(format!("User-agent: *\nCrawl-delay: {text}\n").as_bytes()).delay();
        assert_eq!(delay("2.5"), Some(Duration::from_millis(2_500)));
        assert_eq!(delay("86400"), Some(DELAY_MAX));
        for none in ["-1", "soon", "inf", "NaN", ""] {
            assert_eq!(delay(none), None, "{none}");
        }
        assert!(!Robots::closed().allows("/a"));
        assert!(Robots::open().allows("/a"));
    }
}
