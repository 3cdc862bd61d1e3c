//! RFC 0020 A.3: a question put to a node, its answer proved and held against the question, page by page.

use crate::failure::Failure;
use crate::files::Text;
use crate::handshake;
use crate::page::Page;
use crate::peer::{Message, Peer, Said};
use crate::question::Sent;
use aql::{Audit, Intent, Limits};
use json::{Node, json};

/// What a node answered, page by page.
pub(crate) struct Answered {
    /// Each page as it came, and what its audit found.
    pub(crate) pages: Vec<(Said, Audit)>,
    /// All of it, to be shown.
    pub(crate) page: Page,
}

/// Asks a node; `all` follows the answer to its last page.
pub(crate) fn ask(peer: &Peer, text: &Text, sent: &Sent, all: bool) -> Result<Answered, Failure> {
    let mut answered = Answered { pages: Vec::new(), page: Page::default() };
    let mut cursor = None;
    loop {
        let said = peer.ask(Message::Intent { bytes: sent.message(), cursor }, text)?;
        let root = said.document.root();
        if let Some(agreement) = &sent.agreement {
            handshake::check(agreement, root, peer.address())?;
        }
        let audit = aql::audit(&sent.intent, root, &Limits::STANDARD, answered.page.found.len());
        let next = root.get("next_cursor").and_then(Node::as_str).map(str::to_owned);
        let page = Page::read(&sent.intent, root);
        // An empty page with a cursor could be followed for ever.
        let goes_on = all && !page.found.is_empty() && audit.conforms();
        answered.page.append(page);
        answered.pages.push((said, audit));
        match next.filter(|_| goes_on) {
            Some(next) => cursor = Some(next),
            None => return Ok(answered),
        }
    }
}

impl Answered {
    /// Whether every page keeps to the question.
    pub(crate) fn conforms(&self) -> bool {
        self.pages.iter().all(|(_, audit)| audit.conforms())
    }

    /// How many leaves and scores were computed again.
    pub(crate) fn recomputed(&self) -> (usize, usize) {
        let checked = self.pages.iter().map(|(_, audit)| &audit.checked);
        checked.fold((0, 0), |(leaves, scores), checked| (leaves + checked.leaves_settled, scores + checked.scores))
    }

    /// Whether the answer is so short that one wants to know why.
    pub(crate) fn is_meagre(&self, intent: &Intent) -> bool {
        let found = self.page.found.len();
        found < FEW.min(intent.room()) && !self.page.more
    }
}

/// Fewer answers than this are explained without being asked.
const FEW: usize = 3;

/// Asks a node why: about one candidate, or about the question as a whole.
pub(crate) fn ask_why(peer: &Peer, text: &Text, sent: &Sent, candidate_id: Option<&str>) -> Result<Said, Failure> {
    let mut bytes = b"{".to_vec();
    if let Some(id) = candidate_id {
        bytes.extend_from_slice(b"\"candidate_id\":");
        bytes.extend_from_slice(&json::canonical_value(&json!(id)));
        bytes.push(b',');
    }
    bytes.extend_from_slice(b"\"intent\":");
    bytes.extend_from_slice(&sent.bytes);
    bytes.push(b'}');
    peer.ask(Message::Explain { bytes }, text)
}
