//! RFC 0020 §3.6 delegation: the chain that an intent carries, and whether the intent stays inside of it.
//!
//! The issuer's own signature is checked first: nobody is asked for the keys of a chain on the word of a stranger.
//! `docs/decisions/0050` says which ends a chain must have.

use crate::node::Node;
use crate::refusal::{Class, Error, Refusal};
use crate::resolve::{Received, verify};
use aql::{Amount, Category, Intent};
use json::{Document, Pointer};
use trust::{Chain, Delegation, DidDocument};

/// The currency in which RFC 0004 bounds what a delegate may spend.
const CURRENCY: &str = "EUR";

impl Node {
    /// What an intent's chain says; `None` when it carries none.
    pub(crate) async fn delegation(
        &self,
        received: &Received,
        keys: Option<&DidDocument>,
    ) -> Result<Option<Delegation>, Error> {
        self.check_meant(received)?;
        let intent = &received.intent;
        // Whoever is not checked acts for nobody.
        let Some(keys) = keys.filter(|_| has_chain(&received.document)) else { return Ok(None) };
        verify(&received.document, keys)?;
        let delegation = self.chain_of(&received.document).await?;
        if let Some(delegation) = &delegation {
            check_ends(delegation, &intent.issuer_did, intent.agent_did.as_deref())?;
            check_budget(delegation, intent)?;
        }
        Ok(delegation)
    }

    /// decisions/0256: where the operator says so, an action is decided about when somebody bound the intent to this node:
    /// by the request that brought it, or by a chain, each token of which names its audience.
    fn check_meant(&self, received: &Received) -> Result<(), Refusal> {
        let meant = received.is_sent_here() || has_chain(&received.document);
        if !self.audience_binding || received.intent.category != Category::Action || meant {
            return Ok(());
        }
        let detail = "an intent for an action must be meant for this node; sign the request as RFC 9421 has it, as the \
                      issuer, or carry a delegation whose audience is this node";
        let at = Pointer::root().child("category");
        Err(Refusal::new(Class::AuthRequired, "audience_binding_required", detail).at(at))
    }

    /// Verifies the chain of a document, fetching the keys of those who signed it.
    pub(crate) async fn chain_of(&self, document: &Document) -> Result<Option<Delegation>, Error> {
        let at = place();
        let Some(list) = document.root().get("delegation_chain") else { return Ok(None) };
        let chain = Chain::read(list, &at)?;
        let mut keys = Vec::new();
        for issuer in chain.issuers() {
            keys.push(self.keys_of(issuer).await.map_err(|error| beneath(error, &at))?);
        }
        Ok(chain.verify(&keys, self.identity.did(), self.clock.now().seconds())?)
    }
}

pub(crate) fn has_chain(document: &Document) -> bool {
    document.root().get("delegation_chain").is_some_and(|chain| !chain.is_empty())
}

/// A chain runs from the issuer to the agent that acts for it, or ends at the issuer, who then acts for somebody else.
pub(crate) fn check_ends(delegation: &Delegation, issuer: &str, agent: Option<&str>) -> Result<(), Refusal> {
    let (principal, holder) = (delegation.principal.as_str(), delegation.holder.as_str());
    let fits = match agent.filter(|agent| *agent != issuer) {
        Some(agent) => principal == issuer && holder == agent,
        None => holder == issuer,
    };
    if fits {
        return Ok(());
    }
    let detail =
        "the chain has other ends; it runs from `issuer_did` to `agent_did`, or to `issuer_did` without an agent";
    Err(Refusal::new(Class::PolicyBlock, "delegation_invalid", detail).at(place()))
}

/// A delegate may not offer to spend more than it got.
fn check_budget(delegation: &Delegation, intent: &Intent) -> Result<(), Refusal> {
    let Some(most) = delegation.scope.max_cost_eur.as_deref().and_then(Amount::parse) else { return Ok(()) };
    let ceiling = intent.budget.as_ref().map(|budget| &budget.ceiling);
    if ceiling.is_some_and(|ceiling| ceiling.currency == CURRENCY && ceiling.amount <= most) {
        return Ok(());
    }
    let detail = "the chain bounds the cost; give the intent a `budget` in EUR that stays within `max_cost_eur`";
    let at = Pointer::root().child("budget");
    Err(Refusal::new(Class::PolicyBlock, "delegation_scope_exceeded", detail).at(at))
}

fn place() -> Pointer {
    Pointer::root().child("delegation_chain")
}

fn beneath(error: Error, at: &Pointer) -> Error {
    match error {
        Error::Refusal(refusal) => (*refusal).at(at.clone()).into(),
        fault => fault,
    }
}
