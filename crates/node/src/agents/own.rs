//! ADP Interface, ANP-08: what the node itself does as an agent: it searches, explains, and keeps descriptions.
//!
//! Whoever is registered sent the description himself: it is fetched where he says it stands, or, when he sends it along,
//! his DID must list that address. Only the agent that a description names registers it or takes it back.

use super::{Node, Plate};
use crate::clock::Clock;
use crate::descriptions::{Found, Linked, Place};
use crate::outbound::{Errand, FetchError};
use crate::refusal::{Class, Error, Refusal};
use description::{Link, LinkKind, Origin, Reading};
use json::{Node as JsonNode, Pointer, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trust::{Did, DidDocument};

/// The name of the node among its agents.
pub const AGENT: &str = "rialto";
/// What people call it.
pub(super) const TITLE: &str = "Rialto node";
/// Documents behind a description that are fetched when somebody registers it; a crawler fetches more.
pub(crate) const LINKED_MAX: usize = 8;
/// How long all of them may take.
const LINKED_TIME: Duration = Duration::from_secs(10);
/// When somebody may come again whose domain was asked too often.
const AGAIN_MS: u64 = 60_000;

/// What the node is called with.
type Params<'a> = JsonNode<'a>;

pub(super) fn plate() -> Plate {
    let text = |description: &str| json!({"type": "string", "description": description});
    let signed =
        json!({"type": "object", "description": "Signed by the node over its RFC 8785 form without `signature`."});
    let param =
        |name: &str, required: bool, schema: Value| json!({"name": name, "required": required, "schema": schema});
    let method = |name: &str, description: &str, params: Vec<Value>| {
        json!({
            "name": name, "description": description, "params": params, "paramStructure": "by-name",
            "result": {"name": "result", "schema": signed},
        })
    };
    Plate {
        title: TITLE.to_owned(),
        description:
            "Finds agents, tools, offers and knowledge that satisfy an RFC 0020 intent, says why, and keeps the \
                      descriptions of agents that register."
                .to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        methods: vec![
            method(
                "search",
                "Answers an RFC 0020 intent with a signed IntentResponse; a decision record says why each candidate is there.",
                vec![
                    param("intent", true, intent()),
                    param("cursor", false, text("`next_cursor` of the page before.")),
                ],
            ),
            method(
                "explain",
                "Says why a candidate is or is not in the answer to an intent, or what the intent as a whole runs into.",
                vec![
                    param("intent", true, intent()),
                    param("candidate_id", false, text("Which candidate; without one, the question is explained.")),
                ],
            ),
            method(
                "register",
                "Keeps the Agent Description of the caller, so that searches find it; again after each change.",
                vec![
                    param("agentDescriptionUrl", true, text("Where the description stands.")),
                    param(
                        "agentDescription",
                        false,
                        json!({
                            "type": "object",
                            "description": "The description itself; the caller's DID document must list the address. \
                                            Without it the description is fetched.",
                        }),
                    ),
                ],
            ),
            method(
                "withdraw",
                "Takes the registered description of the caller back.",
                vec![param("agentDescriptionUrl", true, text("Where the description stands."))],
            ),
        ],
    }
}

/// An intent as clients may check it before they send it; what is left open here is checked by the node.
fn intent() -> Value {
    let object = json!({"type": "object"});
    json!({
        "type": "object",
        "description": "An RFC 0020 intent. With a signature it is its issuer's; without one its issuer is the caller.",
        "required": ["intent_id", "issuer_did", "category", "constraints", "projection", "validity"],
        "properties": {
            "intent_id": {"type": "string"},
            "issuer_did": {"type": "string"},
            "category": {"enum": ["discovery", "commercial", "knowledge", "action", "delegation"]},
            "constraints": {"anyOf": [object, {"type": "array", "items": object}]},
            "projection": {
                "type": "object", "required": ["include"],
                "properties": {"include": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
            },
            "validity": {
                "type": "object", "required": ["from", "to"],
                "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
            },
        },
    })
}

/// What the node answers: a signed document, as the bytes that were signed.
pub(super) async fn call(
    node: &Arc<Node>,
    method: &str,
    params: Params<'_>,
    caller: Option<&Did>,
) -> Result<Option<Vec<u8>>, Error> {
    let answer = match method {
        "search" => {
            only(params, &["intent", "cursor"])?;
            let cursor = optional_text(params, "cursor")?;
            node.search(&json::canonical(member(params, "intent")?), cursor, caller).await?
        }
        "explain" => {
            only(params, &["intent", "candidate_id"])?;
            node.explain_to(&json::canonical(params), caller).await?
        }
        "register" => {
            only(params, &["agentDescriptionUrl", "agentDescription"])?;
            let url = text(params, "agentDescriptionUrl")?;
            let sent = params.get("agentDescription").map(json::canonical);
            node.register(url, sent, proved(caller)?).await?
        }
        "withdraw" => {
            only(params, &["agentDescriptionUrl"])?;
            node.unregister(text(params, "agentDescriptionUrl")?, proved(caller)?).await?
        }
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

pub(super) fn proved(caller: Option<&Did>) -> Result<&Did, Refusal> {
    let detail = "whoever registers or withdraws proves who he is; sign the request by did:wba";
    caller.ok_or_else(|| Refusal::new(Class::AuthRequired, "caller_unknown", detail))
}

fn only(params: Params<'_>, known: &[&str]) -> Result<(), Refusal> {
    match params.members().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let detail = format!("this method takes {}", known.join(" and "));
            Err(Refusal::new(Class::InvalidInput, "unknown_field", detail).at(Pointer::root().child(name)))
        }
    }
}

fn member<'a>(params: Params<'a>, name: &str) -> Result<JsonNode<'a>, Refusal> {
    let missing = || Refusal::new(Class::InvalidInput, "missing_field", format!("the method needs `{name}`"));
    params.get(name).ok_or_else(|| missing().at(Pointer::root().child(name)))
}

fn optional_text<'a>(params: Params<'a>, name: &str) -> Result<Option<&'a str>, Refusal> {
    let wrong =
        || Refusal::new(Class::InvalidInput, "wrong_type", "a text belongs here").at(Pointer::root().child(name));
    params.get(name).map(|member| member.as_str().ok_or_else(wrong)).transpose()
}

fn text<'a>(params: Params<'a>, name: &str) -> Result<&'a str, Refusal> {
    member(params, name)?;
    Ok(optional_text(params, name)?.unwrap_or_default())
}

impl Node {
    /// Keeps the description of whoever calls.
    async fn register(self: &Arc<Self>, url: &str, sent: Option<Vec<u8>>, caller: &Did) -> Result<Vec<u8>, Error> {
        let (place, keys) = (Place::read(url)?, self.keys_of(caller).await?);
        let bytes = match sent {
            Some(bytes) => {
                self.check_sent(&place, &bytes, caller, &keys)?;
                bytes
            }
            None => self.fetched(place.url.as_str()).await?,
        };
        let reading = description::read(&bytes, Some(&Origin { url: place.url.as_str(), did_document: None }))?;
        if reading.agent.did.as_ref() != Some(caller) {
            return Err(crate::descriptions::not_yours().into());
        }
        let linked = self.fetched_behind(&reading, &place).await;
        let (node, caller) = (Arc::clone(self), caller.clone());
        self.off_thread(move || {
            let found = Found {
                url: place.url.as_str(),
                bytes: &bytes,
                linked: &linked,
                keys: Some(&keys),
                vouched_by: Some(&caller),
            };
            let described = node.describe(&found)?;
            let mut output = json!({
                "type": "rialto.description.ack",
                "record_id": described.id,
                "url": place.url.as_str(),
                "did": caller.as_str(),
                "revision": described.revision,
                "state": "active",
                "accepted": {"strict": described.strict, "lenient": true},
                "findings": described.findings,
                "resolver_did": node.identity.did().as_str(),
            });
            if let (Some(sequence), Some(members)) = (described.sequence, output.as_object_mut()) {
                members.insert("sequence".into(), json!(sequence));
            }
            Ok(node.envelope(&described.id, output, node.clock.millis()))
        })
        .await
    }

    /// What is sent along is believed when the sender's DID lists the address, and nobody else's description is there.
    fn check_sent(&self, place: &Place, bytes: &[u8], caller: &Did, keys: &DidDocument) -> Result<(), Error> {
        let url = place.url.as_str();
        let kept = self.description(url)?.and_then(|kept| kept.did);
        if kept.is_some_and(|did| did != caller.as_str()) {
            return Err(crate::descriptions::not_yours().into());
        }
        let reading = description::read(bytes, None)?;
        let listed = crate::descriptions::listed(keys)?;
        let origin = Origin { url, did_document: Some(listed.root()) };
        origin.binds(&reading.agent).map_err(|_| {
            let detail = "the DID of the description does not list this address on its own host; add it as a service of \
                          type `AgentDescription`, or let the node fetch the description";
            let at = Pointer::root().child("agentDescriptionUrl");
            Refusal::new(Class::PolicyBlock, "description_not_bound", detail).at(at).into()
        })
    }

    /// What stands at an address.
    async fn fetched(&self, url: &str) -> Result<Vec<u8>, Error> {
        let fetched = self.door.fetch(Errand::Description, url, Clock::monotonic()).await;
        Ok(fetched.map_err(|error| unfetched(error).at(Pointer::root().child("agentDescriptionUrl")))?)
    }

    /// What stands behind a description, as far as it is on the same host: nobody makes us ask third parties.
    async fn fetched_behind(&self, reading: &Reading, place: &Place) -> Vec<Linked> {
        let near =
            |link: &&Link| link.kind != LinkKind::Owner && description::same_origin(&link.url, place.url.as_str());
        let mut urls: Vec<&str> = reading.links.iter().filter(near).map(|link| link.url.as_str()).collect();
        urls.sort_unstable();
        urls.dedup();
        let mut linked = Vec::new();
        let fetching = async {
            for url in urls.into_iter().take(LINKED_MAX) {
                if let Ok(bytes) = self.door.fetch(Errand::Description, url, Clock::monotonic()).await {
                    linked.push(Linked { url: url.to_owned(), bytes });
                }
            }
        };
        // What is not there in time is not joined in; the description itself is kept all the same.
        let _ = tokio::time::timeout(LINKED_TIME, fetching).await;
        linked
    }

    /// Takes the description of whoever calls back.
    async fn unregister(self: &Arc<Self>, url: &str, caller: &Did) -> Result<Vec<u8>, Error> {
        let place = Place::read(url)?;
        let (node, caller) = (Arc::clone(self), caller.clone());
        self.off_thread(move || {
            let url = place.url.as_str();
            let unknown =
                || Refusal::new(Class::NotFound, "record_not_found", "no description of this address is kept");
            let kept = node.description(url)?.ok_or_else(unknown)?;
            if kept.did.as_deref() != Some(caller.as_str()) {
                return Err(crate::descriptions::not_yours().into());
            }
            node.withdraw_description(url)?;
            let output = json!({
                "type": "rialto.description.ack",
                "record_id": kept.id,
                "url": url,
                "did": caller.as_str(),
                "revision": kept.revision,
                "state": "withdrawn",
                "resolver_did": node.identity.did().as_str(),
            });
            Ok(node.envelope(&kept.id, output, node.clock.millis()))
        })
        .await
    }
}

/// Why a description could not be fetched, as far as it is the caller's business.
fn unfetched(error: FetchError) -> Refusal {
    let detail = error.to_string();
    match error {
        FetchError::Url | FetchError::HostForbidden | FetchError::PortForbidden => {
            Refusal::new(Class::InvalidInput, "description_address_forbidden", detail)
        }
        FetchError::RateLimited => {
            Refusal::new(Class::RateLimited, "description_rate_limited", detail).retry_after(AGAIN_MS)
        }
        FetchError::TooLarge => crate::descriptions::too_large(),
        FetchError::NoRoots
        | FetchError::Unreachable
        | FetchError::Timeout
        | FetchError::Certificate
        | FetchError::NotTls
        | FetchError::Redirect
        | FetchError::ContentEncoding
        | FetchError::Gone
        | FetchError::Status => Refusal::new(Class::Upstream, "description_unreachable", detail),
    }
}
