//! `rialto describe`: descriptions of agents, judged, drafted and laid out for a web host (ADP Table 1, ADP Table 5).

mod check;
mod init;
mod publish;
mod spec;

pub(super) use check::{demanded, operation_line, operation_value};

use crate::failure::{Exit, Failure};
use crate::files::Text;
use crate::output::text::{shown, wrap};
use crate::output::{self, BAD, DIM, GOOD, STRONG, WARN, count, paint};
use description::{Findings, Grade, Mode};
use json::{Pointer, Value, json};

/// Judge the description of an agent, draft one, or lay it out for a web host
///
/// Descriptions in JSON-LD, in the newer plain JSON and in both at once are read; documents that define interfaces
/// (OpenAPI, OpenRPC, lists of JSON-RPC methods, interfaces in words) are, too.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Example:
  rialto describe examples/descriptions/tides.json --strict
  rialto describe https://agent.example/ad.json
  rialto describe init --url https://agent.example/ad.json --openrpc interface.json -o ad.json
  rialto describe publish ad.json --static public/

Exits with 1 when the description is not accepted. Lenient reading takes what is in use; --strict is the text."
)]
pub(crate) struct Describe {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    check: check::Check,
}

#[derive(clap::Subcommand)]
enum Command {
    Init(Box<init::Init>),
    Publish(publish::Publish),
}

impl Describe {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self.command {
            None => self.check.run(),
            Some(Command::Init(command)) => command.run(),
            Some(Command::Publish(command)) => command.run(),
        }
    }
}

/// What was found in a document, or in one that is embedded in it at a place.
struct Found<'a> {
    text: &'a Text,
    inside: Pointer,
    findings: &'a Findings,
}

impl Found<'_> {
    fn place(&self, at: &Pointer) -> Pointer {
        let mut place = self.inside.clone();
        Pointer::segments(at.as_str()).flatten().for_each(|segment| place.push(segment));
        place
    }

    /// Line and column; those of YAML are not kept.
    fn position(&self, at: &Pointer) -> Option<(usize, usize)> {
        let first = self.text.bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        matches!(first, Some(b'{' | b'[')).then(|| self.text.locate(at)).flatten()
    }

    /// For people: those that this reader minds.
    fn described(&self, mode: Mode) -> String {
        let room = output::width().saturating_sub(2);
        let mut drawn = String::new();
        for (grade, finding) in self.findings.of(mode) {
            let style = match grade {
                Grade::Error => BAD,
                Grade::Warning => WARN,
                Grade::Info => DIM,
            };
            let at = self.place(&finding.at);
            let position = self.position(&at).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            let head = paint(style, format!("{}:", grade.name()));
            let file = shown(&format!("{}{position}", self.text.name));
            drawn.push_str(&format!("{head} {} {file}\n", paint(STRONG, finding.rule.number())));
            let place = if at.as_str().is_empty() { "the root" } else { at.as_str() };
            drawn.push_str(&format!("  {}\n", paint(DIM, shown(&format!("at {place}, {}", finding.rule.section())))));
            for words in [finding.message.to_string(), format!("help: {}", finding.rule.advice())] {
                wrap(&words, room).iter().for_each(|line| drawn.push_str(&format!("  {line}\n")));
            }
            drawn.push('\n');
        }
        if self.findings.omitted() > 0 {
            drawn.push_str(&format!("  and {} more\n\n", self.findings.omitted()));
        }
        drawn
    }

    /// For programs: all of them, with both grades.
    fn to_values(&self) -> Vec<Value> {
        let grade = |grade: Option<Grade>| grade.map(Grade::name);
        let entry = |finding: &description::Finding| {
            let at = self.place(&finding.at);
            let position = self.position(&at);
            json!({
                "rule": finding.rule.number(),
                "section": finding.rule.section(),
                "at": at.as_str(),
                "line": position.map(|(line, _)| line),
                "column": position.map(|(_, column)| column),
                "strict": grade(finding.grade(Mode::Strict)),
                "lenient": grade(finding.grade(Mode::Lenient)),
                "message": finding.message,
                "advice": finding.rule.advice(),
            })
        };
        self.findings.all().iter().map(entry).collect()
    }
}

/// How a reader is called.
fn called(mode: Mode) -> &'static str {
    match mode {
        Mode::Strict => "strict",
        Mode::Lenient => "lenient",
    }
}

/// The verdict in a line.
fn verdict(all: &[&Findings], mode: Mode) -> String {
    let number =
        |wanted: Grade| all.iter().flat_map(|findings| findings.of(mode)).filter(|(grade, _)| *grade == wanted).count();
    let counts = [(Grade::Error, BAD), (Grade::Warning, WARN), (Grade::Info, DIM)].map(|(grade, style)| {
        (number(grade) > 0).then(|| {
            let noun = if grade == Grade::Info { "remark" } else { grade.name() };
            paint(style, count(number(grade), noun))
        })
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let word = match all.iter().all(|findings| findings.passes(mode)) {
        true => paint(GOOD, "accepted"),
        false => paint(BAD, "not accepted"),
    };
    let tail = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    format!("{word} by the {} reader{tail}\n", called(mode))
}
