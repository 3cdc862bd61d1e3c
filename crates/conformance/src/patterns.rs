//! RFC 0020 A.1: random patterns to `aql` and to the `RegExp` of another engine, V8 in Node.
//!
//! The text takes its patterns from ECMA-262, and V8 is what most of those who write such patterns have at hand. The twin
//! cannot stand in for it here, since the same people read the standard twice. Patterns are drawn from the whole grammar
//! of the `u` flag, with mistakes among them; subjects are short texts of characters on which engines like to differ.
//!
//! Properties are asked of characters whose properties have not changed for many versions of Unicode, and names of groups
//! are used once: Node may know an older edition of either.

use crate::chance::Chance;
use anyhow::{Context, Result, bail};
use aql::{Code, Limits, Pattern};
use json::Pointer;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Patterns that are put to Node together.
const BATCH: usize = 200;
/// Subjects of each pattern.
const SUBJECTS: usize = 20;
/// Steps that the bounded engine may use for one subject.
const STEPS: u64 = 1_000_000;

/// Tells for each line, a pattern and its subjects, which of them match; or that there is no such pattern.
///
/// Each character is tried as a beginning, as the standard has it under the `u` flag. Left to itself V8 also begins between
/// the two code units of one character, where `\B` holds that holds nowhere else: `/\B/u.test('a\u{1f388}0')` is true.
const SCRIPT: &str = "\
const matches = (regexp, subject) => {
  const at = index => (regexp.lastIndex = index, regexp.test(subject));
  let index = 0;
  for (const character of subject) {
    if (at(index)) return true;
    index += character.length;
  }
  return at(index);
};
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', line => {
  const [pattern, subjects] = JSON.parse(line);
  let told = '!';
  try {
    const regexp = new RegExp(pattern, 'uy');
    told = subjects.map(subject => matches(regexp, subject) ? '1' : '0').join('');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  process.stdout.write(told + '\\n');
});";

/// Characters of subjects and literals: letters, digits, every kind of white space and line end, word characters that
/// are none in ASCII, characters of two and more bytes and of two code units, and what the grammar uses itself.
const CHARACTERS: [char; 40] = [
    'a', 'b', 'c', 'A', 'B', 'Z', '0', '1', '9', '_', ' ', '\t', '\n', '\r', '\u{b}', '\u{c}', '\u{a0}', '\u{180e}',
    '\u{2028}', '\u{2029}', '\u{3000}', '\u{feff}', 'é', 'ß', 'ſ', '\u{212a}', 'Σ', 'ς', '٣', '漢', '😀', '🎈',
    '\u{301}', '-', ']', '^', '$', '.', '/', '\u{0}',
];

/// Those that half of all texts are made of, so that something matches.
const USUAL: [char; 4] = ['a', 'b', '0', ' '];

/// What may be asked of a property.
const PROPERTIES: [&str; 16] = [
    "L",
    "Lu",
    "Ll",
    "Nd",
    "N",
    "P",
    "Zs",
    "Mn",
    "Letter",
    "Alphabetic",
    "White_Space",
    "Uppercase",
    "Script=Greek",
    "sc=Latin",
    "Script_Extensions=Han",
    "General_Category=Decimal_Number",
];

/// Patterns with a mistake, or with what only looks like one.
const ODD: [&str; 34] = [
    "{",
    "}",
    "]",
    "[",
    "(",
    ")",
    "*",
    "+",
    "?",
    "a**",
    "a{2,1}",
    "a{,2}",
    "a{1",
    "{1}",
    "[b-a]",
    "[\\d-z]",
    "[a-\\w]",
    "\\-",
    "\\a",
    "\\8",
    "\\01",
    "\\x4",
    "\\u12",
    "\\u{110000}",
    "\\p{Nothing}",
    "\\p{Script=Nobody}",
    "\\k<no>",
    "(?=a)*",
    "(?<=a)+",
    "^*",
    "\\b?",
    "(?<1a>b)",
    "(?i:a)",
    "\\c1",
];

/// What a run of comparisons saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Patterns and subjects on which both engines said the same.
    pub pairs: u64,
    /// Patterns that both refuse.
    pub invalid: u64,
    /// Patterns that need a feature which `aql` says it does not have.
    pub unsupported: u64,
    /// Pairs for which the bounded engine has too few steps, and says so.
    pub out_of_steps: u64,
}

impl Compared {
    /// Adds another run.
    pub fn add(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.invalid += other.invalid;
        self.unsupported += other.unsupported;
        self.out_of_steps += other.out_of_steps;
    }
}

/// The other engine, in a process of its own.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    asked: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it.
    pub fn start() -> Result<Self> {
        let mut command = Command::new("node");
        command.args(["--eval", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("`node` cannot be started (`apt-get install nodejs`)")?;
        let asked = child.stdin.take().context("node hears nothing")?;
        let told = BufReader::new(child.stdout.take().context("node says nothing")?);
        Ok(Self { child, asked, told })
    }

    /// Compares a batch of random patterns; the first difference is an error that shows it.
    pub fn compare(&mut self, chance: &mut Chance<'_>) -> Result<Compared> {
        let questions: Vec<(String, Vec<String>)> =
            (0..BATCH).map(|_| (pattern(chance), (0..SUBJECTS).map(|_| subject(chance)).collect())).collect();
        let lines: String = questions.iter().map(|question| format!("{}\n", json!(question))).collect();
        self.asked.write_all(lines.as_bytes())?;
        self.asked.flush()?;
        let mut compared = Compared::default();
        for (pattern, subjects) in &questions {
            let mut told = String::new();
            self.told.read_line(&mut told)?;
            compared.add(compare(pattern, subjects, told.trim_end())?);
        }
        Ok(compared)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input; whoever is still at a pattern is not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Holds what `aql` says of a pattern and its subjects against what the other engine told.
fn compare(pattern: &str, subjects: &[String], told: &str) -> Result<Compared> {
    let mut compared = Compared::default();
    let read = match Pattern::read(pattern, &Pointer::root(), &Limits::STANDARD) {
        Ok(read) => read,
        Err(refusal) if refusal.code == Code::InvalidRegex => match told {
            "!" => return Ok(Compared { invalid: 1, ..compared }),
            _ => bail!("aql refuses {pattern:?}, and the other engine reads it: {}", refusal.detail),
        },
        // What is too large or not to be had is said by name; nothing is claimed about it.
        Err(_) => return Ok(Compared { unsupported: 1, ..compared }),
    };
    if told.len() != subjects.len() {
        bail!("aql reads {pattern:?}, and the other engine said {told:?}");
    }
    for (subject, told) in subjects.iter().zip(told.chars()) {
        match read.is_match(subject, &mut { STEPS }) {
            Ok(matches) if matches == (told == '1') => compared.pairs += 1,
            Ok(matches) => bail!("{pattern:?} and {subject:?}: aql says {matches}, the other engine {}", told == '1'),
            Err(_) => compared.out_of_steps += 1,
        }
    }
    Ok(compared)
}

/// A short text.
fn subject(chance: &mut Chance<'_>) -> String {
    // Few characters, so that most patterns match some subjects and not others.
    let few: Vec<char> = (0..1 + chance.below(6)).filter_map(|_| chance.pick(&CHARACTERS).copied()).collect();
    let mut text = String::new();
    for _ in 0..chance.below(10) {
        let from = if chance.one_in(2) { few.as_slice() } else { &USUAL };
        text.extend(chance.pick(from));
    }
    text
}

/// A pattern out of the whole grammar; one in twenty has something odd in it.
fn pattern(chance: &mut Chance<'_>) -> String {
    let mut drawing = Drawing { chance, groups: 0, text: String::new() };
    drawing.alternatives(3);
    let Drawing { groups, mut text, .. } = drawing;
    if chance.one_in(20) {
        let odd = chance.word(&ODD);
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
        text.insert_str(chance.pick(&places).copied().unwrap_or_default(), odd);
    }
    // Backreferences stand where groups are; one in ten patterns refers to a group that may come later or be none.
    if chance.one_in(10) {
        text.push_str(&format!("\\{}", 1 + chance.below(groups + 1)));
    }
    text
}

struct Drawing<'c, 'b> {
    chance: &'c mut Chance<'b>,
    /// How many capturing groups there are so far.
    groups: usize,
    text: String,
}

impl Drawing<'_, '_> {
    fn alternatives(&mut self, depth: usize) {
        for number in 0..=usize::from(self.chance.one_in(3)) + usize::from(self.chance.one_in(6)) {
            if number > 0 {
                self.text.push('|');
            }
            for _ in 0..self.chance.below(4) {
                self.term(depth);
            }
        }
    }

    fn term(&mut self, depth: usize) {
        match self.chance.below(if depth == 0 { 9 } else { 14 }) {
            0..5 => self.literal(),
            5 => self.text.push('.'),
            6 => self.class(),
            7 => self.escape(),
            8 => {
                let assertion = self.chance.word(&["^", "$", "\\b", "\\B"]);
                self.text.push_str(assertion);
                return;
            }
            9..12 => self.group(depth),
            12 => {
                let around = self.chance.word(&["(?=", "(?!", "(?<=", "(?<!"]);
                self.within(around, depth);
                return;
            }
            _ => {
                let number = 1 + self.chance.below(self.groups.max(1));
                self.text.push_str(&if self.groups == 0 { "a".to_owned() } else { format!("(?:\\{number})") });
            }
        }
        self.quantifier();
    }

    fn within(&mut self, opening: &str, depth: usize) {
        self.text.push_str(opening);
        self.alternatives(depth - 1);
        self.text.push(')');
    }

    fn group(&mut self, depth: usize) {
        match self.chance.below(3) {
            0 => self.within("(?:", depth),
            1 => {
                self.groups += 1;
                self.within("(", depth);
            }
            _ => {
                self.groups += 1;
                let name = format!("(?<n{}>", self.groups);
                let named = self.groups;
                self.within(&name, depth);
                if self.chance.one_in(3) {
                    self.text.push_str(&format!("\\k<n{named}>"));
                }
            }
        }
    }

    fn quantifier(&mut self) {
        let (least, more) = (self.chance.below(3), self.chance.below(3));
        let times = match self.chance.below(12) {
            0 => "*".to_owned(),
            1 => "+".to_owned(),
            2 => "?".to_owned(),
            3 => format!("{{{least}}}"),
            4 => format!("{{{least},}}"),
            5 => format!("{{{least},{}}}", least + more),
            _ => return,
        };
        self.text.push_str(&times);
        if self.chance.one_in(3) {
            self.text.push('?');
        }
    }

    /// A character by itself or escaped, in one of the many ways that there are.
    fn literal(&mut self) {
        let from = if self.chance.one_in(2) { &USUAL[..] } else { &CHARACTERS };
        let character = *self.chance.pick(from).unwrap_or(&'a');
        self.character(character, "^$\\.*+?()[]{}|/");
    }

    /// Writes a character; those in `special` mean something by themselves.
    fn character(&mut self, character: char, special: &str) {
        let number = u32::from(character);
        let written = match self.chance.below(8) {
            0 => format!("\\u{{{number:x}}}"),
            1 if number < 0x1_0000 => format!("\\u{number:04X}"),
            1 => {
                let mut units = [0; 2];
                character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
            2 if number < 0x100 => format!("\\x{number:02x}"),
            _ if special.contains(character) => format!("\\{character}"),
            _ => character.to_string(),
        };
        self.text.push_str(&written);
    }

    fn escape(&mut self) {
        let property = self.chance.word(&PROPERTIES);
        let sign = self.chance.word(&["p", "P"]);
        match self.chance.below(3) {
            0 => self.text.push_str(&format!("\\{sign}{{{property}}}")),
            1 => {
                let control = self.chance.word(&["\\t", "\\n", "\\v", "\\f", "\\r", "\\cJ", "\\ci", "\\/", "\\0(?:)"]);
                // `\0` must not stand before a digit.
                self.text.push_str(control);
            }
            _ => {
                let class = self.chance.word(&["\\d", "\\D", "\\w", "\\W", "\\s", "\\S"]);
                self.text.push_str(class);
            }
        }
    }

    fn class(&mut self) {
        let opening = self.chance.word(&["[", "[", "[^"]);
        self.text.push_str(opening);
        for _ in 0..self.chance.below(4) {
            let mut ends = [0; 2].map(|_| *self.chance.pick(&CHARACTERS).unwrap_or(&'a'));
            match self.chance.below(6) {
                0 => {
                    let class = self
                        .chance
                        .word(&["\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\-", "\\p{L}", "\\P{Lu}"]);
                    self.text.push_str(class);
                }
                1 | 2 => {
                    ends.sort_unstable();
                    let [first, last] = ends;
                    self.character(first, "\\]^-");
                    self.text.push('-');
                    self.character(last, "\\]^-");
                }
                _ => {
                    let [only, _] = ends;
                    self.character(only, "\\]^-");
                }
            }
        }
        self.text.push(']');
    }
}
