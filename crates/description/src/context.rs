//! ADP Table 1 `@context`: the rules for it (R02 to R08), and what it says about prefixes and language.
//!
//! A context is read as it stands in the document. One that is only named by its URL stays a name: it is never fetched,
//! and the only one that we know is the namespace of the text itself.

use crate::Rule;
use crate::finding::{EE, EW, Findings, WI};
use crate::read::Form;
use crate::uri::{is_any_uri, is_iri};
use crate::vocabulary::{AD, is_ad};
use json::{Kind, Node, Pointer};
use oxilangtag::LanguageTag;
use std::collections::BTreeMap;

/// What a context says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// Terms and prefixes with what they stand for.
    names: BTreeMap<String, String>,
    vocabulary: Option<String>,
    pub(crate) language: Option<String>,
}

impl Context {
    /// Reads the member `@context` of a description.
    pub(crate) fn read(root: Node<'_>, form: Form, findings: &mut Findings) -> Self {
        let at = Pointer::root().child("@context");
        let mut context = Self::default();
        let Some(node) = root.get("@context") else {
            let grades = if form.is_newer() { EW } else { EE };
            findings.add(Rule::R02, &at, grades, "`@context` is absent");
            return context;
        };
        match node.kind() {
            Kind::String => {
                if !node.as_str().is_some_and(is_any_uri) {
                    findings.add(Rule::R03, &at, EE, "`@context` is a text and no URL");
                }
                context.identified(&at, node.as_str() == Some(AD), node.as_str().into_iter(), findings);
            }
            Kind::Object => {
                findings.add(Rule::R03, &at, EW, "`@context` is a map; the text has a URL or an array there");
                context.take(node, &at, findings);
                context.identified(&at, false, std::iter::empty(), findings);
            }
            Kind::Array => context.listed(node, &at, findings),
            Kind::Null | Kind::Bool | Kind::Number => {
                findings.add(Rule::R03, &at, EE, "`@context` is neither a URL nor an array");
                return context;
            }
        }
        if context.language.is_none() && !has_language(node) {
            findings.add(Rule::R08, &at, WI, "nothing says in which language the texts are");
        }
        context
    }

    fn listed(&mut self, list: Node<'_>, at: &Pointer, findings: &mut Findings) {
        let mut maps = 0;
        for (position, element) in list.elements().enumerate() {
            let at = at.child(position);
            match element.kind() {
                Kind::String => {
                    if !element.as_str().is_some_and(is_any_uri) {
                        findings.add(Rule::R05, &at, EE, "this text in `@context` is no URL");
                    }
                }
                Kind::Object => {
                    maps += 1;
                    if maps > 1 {
                        findings.add(Rule::R06, &at, WI, "the names of `@context` are spread over several maps");
                    }
                    self.take(element, &at, findings);
                }
                Kind::Null | Kind::Bool | Kind::Number | Kind::Array => {
                    findings.add(Rule::R05, &at, EE, "this element of `@context` is neither a text nor a map");
                }
            }
        }
        let texts = || list.elements().filter_map(Node::as_str);
        self.identified(at, texts().any(|text| text == AD), texts(), findings);
    }

    /// R04: whether the context says that this is a description.
    fn identified<'a>(
        &self,
        at: &Pointer,
        listed: bool,
        mut texts: impl Iterator<Item = &'a str>,
        findings: &mut Findings,
    ) {
        if listed {
            return;
        }
        let known = texts.any(is_ad)
            || self.names.values().any(|iri| is_ad(iri))
            || self.vocabulary.as_deref().is_some_and(is_ad);
        let (grades, message) = match known {
            true => (EW, "the namespace of agent descriptions is only hinted at, not listed"),
            false => (EE, "nothing in `@context` says that this is an agent description"),
        };
        findings.add(Rule::R04, at, grades, message);
    }

    /// One map of names.
    fn take(&mut self, map: Node<'_>, at: &Pointer, findings: &mut Findings) {
        for (name, value) in map.members() {
            let at = at.child(name);
            match name {
                "@language" => self.take_language(value, &at, findings),
                "@vocab" | "@base" => {
                    let text = value.as_str().filter(|text| text.is_empty() || is_any_uri(text));
                    if text.is_none() && !value.is_null() {
                        findings.add(Rule::R07, &at, EW, "this stands for no URL");
                    }
                    if name == "@vocab" {
                        self.vocabulary =
                            text.filter(|text| is_iri(text)).map(str::to_owned).or(self.vocabulary.take());
                    }
                }
                _ if name.starts_with('@') => {}
                _ => self.take_name(name, value, &at, findings),
            }
        }
    }

    fn take_name(&mut self, name: &str, value: Node<'_>, at: &Pointer, findings: &mut Findings) {
        // An expanded definition says its IRI inside; `null` takes a name back.
        let written = if value.is_object() { value.get("@id") } else { Some(value) };
        match written.map(|node| (node.as_str(), node.is_null())) {
            Some((Some(iri), _)) if is_iri(iri) || iri.starts_with('@') => {
                self.names.insert(name.to_owned(), iri.to_owned());
            }
            Some((None, true)) | None => {}
            Some(_) => findings.add(Rule::R07, at, EW, "this name stands for no URL"),
        }
    }

    fn take_language(&mut self, value: Node<'_>, at: &Pointer, findings: &mut Findings) {
        match value.as_str() {
            Some(tag) if LanguageTag::parse(tag).is_ok() => self.language = Some(tag.to_owned()),
            Some(_) => findings.add(Rule::R08, at, EW, "this is no language tag of BCP 47"),
            None if value.is_null() => {}
            None => findings.add(Rule::R08, at, EW, "a language tag is a text"),
        }
    }

    /// What a term or a compact name stands for, as far as this context says it.
    pub(crate) fn expand(&self, written: &str) -> String {
        if let Some(iri) = self.names.get(written) {
            return iri.clone();
        }
        match written.split_once(':') {
            Some((_, rest)) if rest.starts_with("//") => written.to_owned(),
            Some((prefix, rest)) => match self.names.get(prefix) {
                Some(iri) => format!("{iri}{rest}"),
                None if prefix == "ad" => format!("{AD}{rest}"),
                None => written.to_owned(),
            },
            None => format!("{}{written}", self.vocabulary.as_deref().unwrap_or_default()),
        }
    }

    /// Other names that the context gives to a JSON-LD keyword.
    pub(crate) fn aliases_of(&self, keyword: &str) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |(_, iri)| *iri == keyword).map(|(name, _)| name.as_str())
    }

    /// Prefixes of namespaces; `ad` is one of ours where nobody says otherwise.
    pub(crate) fn prefixes_of(&self, wanted: fn(&str) -> bool) -> impl Iterator<Item = &str> {
        let usual = (!self.names.contains_key("ad")).then_some("ad");
        let bound = self.names.iter().filter(move |(_, iri)| wanted(iri)).map(|(name, _)| name.as_str());
        usual.into_iter().chain(bound)
    }
}

/// Whether a language is said at all, be it wrongly.
fn has_language(context: Node<'_>) -> bool {
    let says = |node: Node<'_>| node.get("@language").is_some_and(|language| !language.is_null());
    says(context) || context.elements().any(says)
}
