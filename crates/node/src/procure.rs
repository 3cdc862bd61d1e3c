//! RFC 0020 §4: procurement intents of RFC 0013 §3.4, accepted where intents are, told apart by their category.
//!
//! A procurement intent is turned into a commercial intent over the same offers and answered like one. What it asks
//! for and an offer cannot say is refused, never left out. `docs/decisions/0053` has the table.
//!
//! INVARIANT: the order of checks is that of an intent: all that is local before anybody is asked for keys.

use crate::delegation::check_ends;
use crate::gate::Viewer;
use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use crate::replies;
use crate::resolve::{Accepted, reused};
use crate::versions::PROCUREMENT;
use aql::{Amount, Instant, Intent, Limits};
use json::{Document, Kind, Pointer, Value, json};
use schema::Exchange;
use std::sync::Arc;
use trust::{Delegation, Did, SignedList};

/// The categories of RFC 0013.
const CATEGORIES: [&str; 6] = [
    "physical_goods",
    "digital_goods",
    "scheduled_service",
    "professional_service",
    "transportation",
    "information_retrieval",
];

const MEMBERS: [&str; 16] = [
    "intent_id",
    "category",
    "issued_at",
    "expires_at",
    "principal_did",
    "agent_did",
    "delegation_chain",
    "constraints",
    "budget",
    "ranking_policy",
    "fallbacks",
    "broadcast_to",
    "signatures",
    "schema_version",
    "version_negotiation",
    "schema_id",
];

/// Alternatives that an intent may name.
pub(crate) const FALLBACKS_MAX: usize = 16;

/// A procurement intent that was read.
#[derive(Debug)]
struct Procurement {
    intent_id: String,
    principal: Did,
    agent: Did,
    /// As commercial intents: what is wanted, then the alternatives in their order.
    intents: Vec<Intent>,
    /// In which versions it is read and answered, where it says so.
    exchange: Option<Exchange>,
}

/// The document, when bytes that are no intent are a procurement intent.
pub(crate) fn recognized(bytes: &[u8]) -> Option<Document> {
    let document = Document::parse(bytes, &Limits::STANDARD.json).ok()?;
    let payload = schema::NegotiatedRequest::read(document.root()).map_or(document.root(), |request| request.payload);
    let document = payload.to_document();
    let category = document.root().get("category")?.as_str()?;
    // An intent of RFC 0020 with a category of RFC 0013 stays the mistake that it is.
    let own = document.root().get("principal_did").is_some();
    (own && CATEGORIES.contains(&category)).then_some(document)
}

impl Node {
    /// Answers a procurement intent with the offers that satisfy it.
    pub(crate) async fn procure(
        self: &Arc<Self>,
        bytes: &[u8],
        document: Document,
        cursor: Option<&str>,
    ) -> Result<Vec<u8>, Error> {
        let (mut procurement, digest) = (Procurement::read(&document, self.clock.now())?, replies::digest(bytes));
        procurement.exchange = self.hear(PROCUREMENT, bytes)?.exchange().cloned();
        let key = replies::key(procurement.principal.as_str(), &procurement.intent_id, "");
        if self.replies.is_other(key, digest, self.clock.millis())? {
            return Err(reused().into());
        }
        let (delegation, viewer) = self.check_signers(&document, &procurement).await?;
        let (node, cursor) = (Arc::clone(self), cursor.map(str::to_owned));
        self.work(move || {
            let chosen = node.first_satisfiable(procurement, (&delegation, &viewer), &document, digest)?;
            node.answer_once(&chosen, cursor.as_deref())
        })
        .await
    }

    /// The principal signed, or an agent with a chain from the principal.
    ///
    /// Whoever signed is who the answer is made for: a chain lends authority, not eyes.
    async fn check_signers(
        &self,
        document: &Document,
        procurement: &Procurement,
    ) -> Result<(Option<Delegation>, Viewer), Error> {
        let Procurement { principal, agent, .. } = procurement;
        let list = SignedList::read(document, "signatures")?;
        let by_principal = list.signers().any(|signer| signer == principal);
        let signer = if by_principal { principal } else { agent };
        list.verify_with(self.keys_of(signer).await?.as_ref())?;
        let delegation = self.chain_of(document).await?;
        match &delegation {
            Some(delegation) => check_ends(delegation, principal.as_str(), Some(agent.as_str()))?,
            None if by_principal => {}
            None => {
                let detail = "the agent signed alone; add the chain from `principal_did` to `agent_did`";
                let at = Pointer::root().child("delegation_chain");
                return Err(Refusal::new(Class::PolicyBlock, "delegation_invalid", detail).at(at).into());
            }
        }
        Ok((delegation, Viewer::Named(signer.clone())))
    }

    /// What is wanted, or the first alternative that anybody offers when nobody offers that.
    fn first_satisfiable(
        &self,
        procurement: Procurement,
        (delegation, viewer): (&Option<Delegation>, &Viewer),
        document: &Document,
        digest: [u8; 16],
    ) -> Result<Accepted, Error> {
        let mut first = None;
        let single = procurement.intents.len() == 1;
        for intent in procurement.intents {
            let (document, issuer) = (document.root().to_document(), procurement.principal.clone());
            let (delegation, viewer) = (delegation.clone(), viewer.clone());
            let (schema, exchange) = (PROCUREMENT, procurement.exchange.clone());
            let accepted = Accepted { intent, delegation, document, digest, issuer, viewer, schema, exchange };
            if single || self.has_matches(&accepted)? {
                return Ok(accepted);
            }
            first.get_or_insert(accepted);
        }
        first.ok_or_else(|| Error::fault("a procurement intent asks for nothing"))
    }
}

impl Procurement {
    fn read(document: &Document, now: Instant) -> Result<Self, Error> {
        let root = Place { value: document.root().to_value(), at: Pointer::root() };
        root.closed(&MEMBERS)?;
        let intent_id = root.required("intent_id")?.text()?;
        let principal = did(&root.required("principal_did")?)?;
        let agent = did(&root.required("agent_did")?)?;
        let window = window(&root, now)?;
        let fallbacks = root.member("fallbacks").map(|list| list.elements()).transpose()?.unwrap_or_default();
        if fallbacks.len() > FALLBACKS_MAX {
            let detail = "there are more alternatives than the node tries; name fewer";
            let refusal = Refusal::new(Class::InvalidInput, "list_too_long", detail).at(root.at.child("fallbacks"));
            return Err(refusal.limited("procurement.fallbacks", FALLBACKS_MAX as u64, fallbacks.len() as u64).into());
        }
        let wanted = root.required("constraints")?;
        let mut variants = vec![wanted.clone()];
        for fallback in &fallbacks {
            variants.push(relaxed(&wanted, fallback)?);
        }
        let mut intents = Vec::new();
        for constraints in variants {
            let value = commercial(&root, &constraints, &window, &intent_id, &principal, &agent)?;
            let intent = Document::of(&value).map_err(Error::fault)?;
            intents.push(Intent::read(intent.root(), &Limits::STANDARD)?);
        }
        Ok(Self { intent_id, principal, agent, intents, exchange: None })
    }
}

/// The window in which it may be answered; as long as that of an intent.
fn window(root: &Place, now: Instant) -> Result<Value, Error> {
    let window = json!({"from": root.required("issued_at")?.moment()?, "to": root.required("expires_at")?.moment()?});
    let document = Document::of(&window).map_err(Error::fault)?;
    let at_the_end = |refusal: aql::Refusal| Refusal::from(refusal).at(root.at.child("expires_at"));
    let validity = aql::Validity::of(document.root()).map_err(at_the_end)?;
    validity.check(aql::Category::Commercial, now, &Limits::STANDARD).map_err(at_the_end)?;
    Ok(window)
}

/// The same question as a commercial intent.
fn commercial(
    root: &Place,
    constraints: &Place,
    window: &Value,
    intent_id: &str,
    principal: &Did,
    agent: &Did,
) -> Result<Value, Refusal> {
    let budget = root.required("budget")?;
    budget.closed(&["max_amount", "currency", "preferred_amount"])?;
    let (most, currency) = (budget.required("max_amount")?.amount()?, budget.required("currency")?.text()?);
    let mut all = vec![
        // An offer commits to one intent, or stands for whoever asks.
        json!({"any_of": [leaf("/intent_id", "eq", json!(intent_id)), {"not": leaf("/intent_id", "exists", json!(true))}]}),
        json!({"any_of": [leaf("/valid_until", "gte", window_end(window)), {"not": leaf("/valid_until", "exists", json!(true))}]}),
        // RFC 0013 wants no offer above the cap at all, where RFC 0020 would flag it.
        leaf("/price/currency", "eq", json!(currency)),
        leaf("/price/amount", "lte", json!(most)),
    ];
    for (name, wanted) in constraints.members()? {
        all.extend(leaves(&name, &wanted)?);
    }
    if let Some(addressed) = root.member("broadcast_to") {
        all.push(leaf("/provider_did", "in", json!(addressed.texts()?)));
    }
    let mut intent = json!({
        "intent_id": intent_id,
        "issuer_did": principal.as_str(),
        "agent_did": agent.as_str(),
        "category": "commercial",
        "constraints": {"all_of": all},
        "projection": {"include": [""]},
        "budget": {"amount": most, "currency": currency, "allocation": "single_winner"},
        "validity": window,
    });
    if let (Some(members), Some(floor)) = (intent.as_object_mut(), least_reputation(root)?) {
        members.insert("quality_floor".into(), json!({"provider_reputation": floor}));
    }
    Ok(intent)
}

/// Offers must hold at least until the question closes.
fn window_end(window: &Value) -> Value {
    window.get("to").cloned().unwrap_or_default()
}

/// The weights of a ranking policy are the agent's; its floor is ours to keep.
fn least_reputation(root: &Place) -> Result<Option<Value>, Refusal> {
    const WEIGHTS: [&str; 5] =
        ["weight_price", "weight_latency", "weight_reputation", "weight_carbon_intensity", "minimum_reputation_score"];
    let Some(policy) = root.member("ranking_policy") else { return Ok(None) };
    policy.closed(&WEIGHTS)?;
    let Some(floor) = policy.member("minimum_reputation_score") else { return Ok(None) };
    match floor.value.as_f64().filter(|score| (0.0..=1.0).contains(score)) {
        Some(_) => Ok(Some(floor.value)),
        None => Err(floor.refuse("invalid_value", "a number from 0 to 1 belongs here")),
    }
}

/// What one constraint asks of an offer.
fn leaves(name: &str, wanted: &Place) -> Result<Vec<Value>, Refusal> {
    let goods = |name: &str| format!("/goods_identification/{name}");
    let committed = "/delivery_commitment/committed_by";
    Ok(match name {
        "product_identifier" => {
            let mut leaves = Vec::new();
            for (part, place) in wanted.members()? {
                match part.as_str() {
                    "gtin" | "isbn" | "model_number" => leaves.push(leaf(&goods(&part), "eq", json!(place.text()?))),
                    _ => return Err(unsupported(&place)),
                }
            }
            leaves
        }
        "size" | "color" | "origin_location" | "destination_location" => {
            vec![leaf(&goods(name), "eq", json!(wanted.text()?))]
        }
        "quantity" => {
            let count = wanted.value.as_u64().filter(|count| *count > 0);
            let count = count.ok_or_else(|| wanted.refuse("invalid_value", "a whole number from 1 belongs here"))?;
            vec![leaf(&goods(name), "gte", json!(count))]
        }
        "delivery_by" | "service_window_end" => vec![leaf(committed, "lte", json!(wanted.moment()?))],
        "service_window_start" => vec![leaf(committed, "gte", json!(wanted.moment()?))],
        "required_certifications" => {
            let path = goods("certifications");
            wanted.texts()?.into_iter().map(|certificate| leaf(&path, "contains", json!(certificate))).collect()
        }
        "excluded_providers" => vec![leaf("/provider_did", "not_in", json!(wanted.texts()?))],
        // Where it goes is between the agent and whoever delivers.
        "delivery_address_did" => Vec::new(),
        _ => return Err(unsupported(wanted)),
    })
}

/// The constraints with one of them relaxed, or taken away by `null`.
fn relaxed(wanted: &Place, fallback: &Place) -> Result<Place, Refusal> {
    fallback.closed(&["relax_field", "to_value"])?;
    let field = fallback.required("relax_field")?;
    let name = field.text()?;
    let name = name.strip_prefix("constraints.").unwrap_or(&name);
    let value = fallback.member("to_value").map_or(Value::Null, |place| place.value);
    let mut relaxed = wanted.clone();
    let members = relaxed.value.as_object_mut().filter(|members| members.contains_key(name));
    let members = members.ok_or_else(|| field.refuse("invalid_value", "this names no constraint of the intent"))?;
    if value.is_null() {
        members.remove(name);
    } else {
        members.insert(name.to_owned(), value);
    }
    Ok(relaxed)
}

fn leaf(path: &str, operator: &str, value: Value) -> Value {
    json!({"path": path, "operator": operator, "value": value})
}

fn unsupported(place: &Place) -> Refusal {
    let detail = "no offer states this in a form that can be compared; leave it out, or ask with an intent of RFC 0020";
    Refusal::new(Class::Unprocessable, "procurement_unsupported", detail).at(place.at.clone())
}

fn did(place: &Place) -> Result<Did, Refusal> {
    Did::parse(&place.text()?).map_err(|error| place.refuse(error.code(), &error.to_string()))
}

/// A value and where it stands.
#[derive(Clone, Debug)]
struct Place {
    value: Value,
    at: Pointer,
}

impl Place {
    fn refuse(&self, code: &'static str, detail: &str) -> Refusal {
        Refusal { code, ..Refusal::new(Class::InvalidInput, "invalid_value", detail).at(self.at.clone()) }
    }

    fn wrong_type(&self, kind: Kind) -> Refusal {
        self.refuse("wrong_type", &format!("{} belongs here", kind.name()))
    }

    fn members(&self) -> Result<Vec<(String, Self)>, Refusal> {
        let members = self.value.as_object().ok_or_else(|| self.wrong_type(Kind::Object))?;
        let place =
            |(name, value): (&String, &Value)| (name.clone(), Self { value: value.clone(), at: self.at.child(name) });
        Ok(members.iter().map(place).collect())
    }

    fn closed(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.members()?.into_iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((_, place)) => Err(place.refuse("unknown_field", &format!("known are {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    fn member(&self, name: &str) -> Option<Self> {
        Some(Self { value: self.value.get(name)?.clone(), at: self.at.child(name) })
    }

    fn required(&self, name: &str) -> Result<Self, Refusal> {
        let missing = || {
            let at = self.at.child(name);
            Refusal::new(Class::InvalidInput, "missing_field", format!("the member `{name}` is missing")).at(at)
        };
        self.member(name).ok_or_else(missing)
    }

    fn text(&self) -> Result<String, Refusal> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong_type(Kind::String))
    }

    fn moment(&self) -> Result<String, Refusal> {
        let text = self.text()?;
        let wrong = || self.refuse("invalid_timestamp", "RFC 3339 with an offset, please");
        Instant::parse_rfc3339(&text).map(|_| text).ok_or_else(wrong)
    }

    fn elements(&self) -> Result<Vec<Self>, Refusal> {
        let list = self.value.as_array().ok_or_else(|| self.wrong_type(Kind::Array))?;
        let place = |(position, value): (usize, &Value)| Self { value: value.clone(), at: self.at.child(position) };
        Ok(list.iter().enumerate().map(place).collect())
    }

    fn texts(&self) -> Result<Vec<String>, Refusal> {
        self.elements()?.iter().map(Self::text).collect()
    }

    fn amount(&self) -> Result<String, Refusal> {
        let text = self.text()?;
        let wrong = || self.refuse("invalid_decimal", "a plain decimal such as `12.50` belongs here");
        Amount::parse(&text).map(|_| text).ok_or_else(wrong)
    }
}
