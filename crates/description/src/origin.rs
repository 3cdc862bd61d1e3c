//! Where a description was found, and whether its DID agrees (D2 to D4).
//!
//! Anybody can copy a description to another host. It is its agent's own word when the DID that it names lists the very
//! address where it was found, and that address is on the host of the DID.

use crate::finding::{Findings, II, WW};
use crate::{AgentDescription, Rule, uri};
use json::{Node, Pointer};
use trust::Did;

/// Where a description was found.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The address, after redirects.
    pub url: &'a str,
    /// The document of the DID that it names, where somebody fetched it.
    pub did_document: Option<Node<'a>>,
}

/// Why a description is not proved to be its agent's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbound {
    /// It names no DID.
    NoDid,
    /// The document of its DID is not at hand, or is that of another DID.
    NoDocument,
    /// The document does not list this address.
    NotListed,
    /// The address is on another host than the DID.
    OtherHost,
}

impl Origin<'_> {
    /// Whether the description at this address is its agent's own.
    pub fn binds(&self, agent: &AgentDescription) -> Result<(), Unbound> {
        let did = agent.did.as_ref().ok_or(Unbound::NoDid)?;
        let document = self.did_document.ok_or(Unbound::NoDocument)?;
        if document.get("id").and_then(Node::as_str) != Some(did.as_str()) {
            return Err(Unbound::NoDocument);
        }
        if !lists(document, self.url) {
            return Err(Unbound::NotListed);
        }
        if host_of(did).is_none_or(|host| uri::host(self.url).as_ref() != Some(&host)) {
            return Err(Unbound::OtherHost);
        }
        Ok(())
    }

    pub(crate) fn check(&self, root: Node<'_>, agent: &AgentDescription, findings: &mut Findings) {
        if let Some(document) = self.did_document
            && !lists(document, self.url)
        {
            let message = "the DID document lists no description at this address";
            findings.add(Rule::D2, &Pointer::root().child("did"), WW, message);
        }
        for name in ["@id", "url"] {
            if root.get(name).and_then(Node::as_str).is_some_and(|id| id != self.url) {
                let message = "the description was found at another address";
                findings.add(Rule::D3, &Pointer::root().child(name), WW, message);
            }
        }
        let host = agent.did.as_ref().and_then(host_of);
        if host.is_some_and(|host| uri::host(self.url).as_ref() != Some(&host)) {
            let message = "the DID is on another host than the description";
            findings.add(Rule::D4, &Pointer::root().child("did"), II, message);
        }
    }
}

fn host_of(did: &Did) -> Option<String> {
    did.document_url().as_deref().and_then(uri::host)
}

/// Whether a DID document names this address as that of a description.
fn lists(document: Node<'_>, url: &str) -> bool {
    let is = |node: Node<'_>, text: &str| {
        node.as_str() == Some(text) || node.elements().any(|element| element.as_str() == Some(text))
    };
    let services = document.get("service").map(Node::elements);
    services.into_iter().flatten().any(|service| {
        let described = service.get("type").is_some_and(|kind| is(kind, "AgentDescription"));
        described && service.get("serviceEndpoint").is_some_and(|endpoint| is(endpoint, url))
    })
}
