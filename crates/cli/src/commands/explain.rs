//! `rialto explain`: the whole decision about one candidate (RFC 0020 §3.7).

use super::Asking;
use crate::explanation::Explanation;
use crate::failure::{Exit, Failure};
use crate::keys::Signer;
use crate::nearest::nearest;
use crate::output::text::json_line;
use crate::output::{self, decision};
use crate::{candidates, clock};
use aql::Candidate;

/// Names that are suggested for an unknown id.
const SUGGESTIONS: usize = 3;

/// Explain why one candidate is in the answer or not
///
/// Shows every condition with what was found, the cost against the budget, each quality signal against its floor,
/// whether the record supplies what the projection asks for, and how the score comes about.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto explain --intent examples/intents/quick-weather-for-europe.json \\
    --candidates examples/market/manifests.ndjson did:web:fjordcast.example")]
pub(crate) struct Explain {
    /// The id of the candidate, as `rialto resolve` prints it
    id: String,

    #[command(flatten)]
    asking: Asking,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        self.asking.check()?;
        let now = clock::now();
        let signer = Signer::new(&self.asking.key);
        let question = self.asking.question(&signer, now)?;
        // Why something was rejected yesterday is still a good question today.
        if question.closed.is_some() {
            output::warn("the intent's window is not open; this is how it would be judged");
        }
        let intent = question.intent.value();
        let candidates = candidates::read(&self.asking.candidates)?.list;
        let candidate = find(&candidates, &self.id)?;
        let explanation = Explanation::of(intent, &candidates, candidate, self.asking.over_budget.into(), now)?;
        output::print(&if self.json {
            json_line(&json::canonical_value(&explanation.to_value()))
        } else {
            decision::show(&explanation)
        })?;
        Ok(Exit::Fine)
    }
}

/// The candidate of that name; when several have it, the first.
fn find<'a>(candidates: &'a [Candidate], id: &str) -> Result<&'a Candidate, Failure> {
    let mut named = candidates.iter().filter(|candidate| candidate.id == id);
    if let Some(candidate) = named.next() {
        match named.count() {
            0 => {}
            more => output::note(&format!("{more} more lines have this id; this is the first one")),
        }
        return Ok(candidate);
    }
    let likely = nearest(id, candidates.iter().map(|candidate| candidate.id.as_str()), SUGGESTIONS);
    let help = match likely.as_slice() {
        [] => "`rialto resolve` prints the ids".to_owned(),
        likely => format!("did you mean {}?", likely.join(" or ")),
    };
    Err(Failure::refused(format!("there is no candidate `{id}` among {}", candidates.len())).help(help))
}
