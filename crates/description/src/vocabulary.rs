//! ADP Namespaces: the terms of the text, however a document spells them.
//!
//! The text writes its members plainly, and under the context of its own sample they would expand into schema.org. So a
//! member is looked for by its plain name first, then under every spelling of the namespace; a *type* is compared by what
//! it expands to, because there a prefix decides (decisions/0161).

use crate::context::Context;
use json::Node;

/// The namespace of the text.
pub(crate) const AD: &str = "https://agent-network-protocol.com/ad#";

/// The same namespace at a host that early documents name.
pub(crate) const AD_VARIANT: &str = "https://service.agent-network-protocol.com/ad#";

/// Everyday terms; both schemes are in use.
const SCHEMA_ORG: [&str; 2] = ["https://schema.org/", "http://schema.org/"];

/// Namespaces in which a term of the text is at home, in the order in which they are asked.
fn homes() -> impl Iterator<Item = &'static str> {
    [AD, AD_VARIANT].into_iter().chain(SCHEMA_ORG)
}

/// Whether this is the namespace of the text, at either host.
pub(crate) fn is_ad(iri: &str) -> bool {
    iri == AD || iri == AD_VARIANT
}

/// How a member is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As in the text.
    Text,
    /// With a prefix or a namespace.
    Namespaced,
    /// As in the plain JSON of ANP-07.
    Newer,
}

/// The name under which an object has a term; `newer` are the names that ANP-07 uses for it.
pub(crate) fn spelled(context: &Context, object: Node<'_>, term: &str, newer: &[&str]) -> Option<(String, Spelling)> {
    if object.get(term).is_some() {
        return Some((term.to_owned(), Spelling::Text));
    }
    if let Some(alias) = context.aliases_of(term).find(|alias| object.get(alias).is_some()) {
        return Some((alias.to_owned(), Spelling::Text));
    }
    if let Some(name) = newer.iter().find(|name| object.get(name).is_some()) {
        return Some(((*name).to_owned(), Spelling::Newer));
    }
    if term.starts_with('@') {
        return None;
    }
    let prefixed = context.prefixes_of(is_ad).map(|prefix| format!("{prefix}:{term}"));
    let whole = homes().map(|home| format!("{home}{term}"));
    let name = prefixed.chain(whole).find(|name| object.get(name).is_some())?;
    Some((name, Spelling::Namespaced))
}

/// The term of the text that a type means; `None` when it is from elsewhere.
pub(crate) fn term_of(context: &Context, written: &str) -> Option<String> {
    let expanded = context.expand(written);
    match homes().find_map(|home| expanded.strip_prefix(home)) {
        Some(term) => Some(term.to_owned()),
        None => (!expanded.contains(':')).then_some(expanded),
    }
}
