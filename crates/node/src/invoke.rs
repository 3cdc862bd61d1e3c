//! RFC 0020 §3.7: an intent inside the core protocol's request envelope, for callers who know nothing but `invoke`.
//!
//! The envelope is signed by the principal, the intent in it by its issuer. Both are checked; the answer is the same
//! IntentResponse, inside the signed response envelope.

use crate::node::Node;
use crate::publish::{missing, text};
use crate::refusal::{Class, Error, Refusal};
use crate::resolve::verify;
use crate::versions;
use json::{Document, Limits, Pointer};
use std::sync::Arc;
use trust::Signed;

/// The one action of a node.
pub(crate) const ACTION: &str = "resolve_intent";

/// Characters of a request's name.
const NAME_CHARS_MAX: usize = 128;

impl Node {
    /// Carries out an action that a request envelope asks for.
    pub async fn invoke(self: &Arc<Self>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let request = Document::parse(bytes, &Limits::DOCUMENT)?;
        let name = request_name(&request)?;
        let input = request.root().get("input").ok_or_else(|| missing("input"))?;
        if text(&request, "action")? != ACTION {
            let detail = format!("the only action here is `{ACTION}`");
            let at = Pointer::root().child("action");
            return Err(Refusal::new(Class::NotFound, "unknown_action", detail).at(at).into());
        }
        let intent = json::canonical(input);
        let principal = Signed::read(&request)?.issuer("principal_did")?;
        // The intent's own cheap checks come before anybody is asked for the principal's keys.
        let received = self.receive(&intent).map_err(beneath_input)?;
        let keys = self.keys_of(&principal).await?;
        verify(&request, &keys)?;
        self.versions.count(versions::REQUEST, None, Some(principal.as_str()), self.clock.millis());
        let answer = self.answer_received(received, None).await.map_err(beneath_input)?;
        let answer = Document::parse(&answer, &Limits::OURS).map_err(Error::fault)?;
        Ok(self.envelope(&name, answer.root().to_value(), self.clock.millis()))
    }
}

fn request_name(request: &Document) -> Result<String, Error> {
    if !request.root().is_object() {
        return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a request envelope is an object").into());
    }
    let name = text(request, "request_id")?;
    if name.is_empty() || name.len() > NAME_CHARS_MAX {
        let at = Pointer::root().child("request_id");
        return Err(Refusal::new(Class::InvalidInput, "invalid_value", "a short name belongs here").at(at).into());
    }
    Ok(name)
}

/// A place in the intent is a place beneath `input` for whoever sent the envelope.
fn beneath_input(error: Error) -> Error {
    match error {
        Error::Refusal(refusal) => {
            let place = format!("/input{}", refusal.at.as_str());
            let at = Pointer::parse(&place).unwrap_or_else(|_| Pointer::root().child("input"));
            (*refusal).at(at).into()
        }
        fault => fault,
    }
}
