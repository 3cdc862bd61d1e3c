//! ADP Overview: a description is the entrance, and these are the doors behind it (R42).
//!
//! Links are data. Nothing here follows them; whoever does, does it under a policy of its own.

use crate::finding::{Findings, WW};
use crate::{AgentDescription, ResourceKind, Rule, uri};
use json::Pointer;

/// Something that a description leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it leads to.
    pub kind: LinkKind,
    /// Where it stands.
    pub at: Pointer,
    /// The whole address, http or https.
    pub url: String,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The owner.
    Owner,
    /// A product.
    Product,
    /// A service.
    Service,
    /// A piece of information.
    Information,
    /// The definition of an interface.
    Interface,
}

impl LinkKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Product => "product",
            Self::Service => "service",
            Self::Information => "information",
            Self::Interface => "interface",
        }
    }
}

/// All links, resolved from `base`; what leads nowhere on the web is a finding (D7).
pub(crate) fn of(agent: &AgentDescription, base: Option<&str>, findings: &mut Findings) -> Vec<Link> {
    let owner = agent.owner.iter().flat_map(|owner| &owner.links).map(|link| (LinkKind::Owner, link.clone()));
    let offered = agent.resources.iter().flat_map(|resource| {
        let kind = match resource.kind {
            ResourceKind::Product => LinkKind::Product,
            ResourceKind::Service => LinkKind::Service,
            ResourceKind::Information => LinkKind::Information,
        };
        resource.links.iter().map(move |link| (kind, link.clone()))
    });
    let interfaces = agent
        .interfaces
        .iter()
        .filter_map(|interface| Some((LinkKind::Interface, (interface.at.child("url"), interface.url.clone()?))));
    let mut links = Vec::new();
    for (kind, (at, reference)) in owner.chain(offered).chain(interfaces) {
        match uri::resolve(base, &reference) {
            Some(url) => links.push(Link { kind, at, url }),
            None => findings.add(Rule::D7, &at, WW, "this link leads nowhere on the web"),
        }
    }
    links
}
