//! ADP Table 1: what all tables share: members that must be there and members that may, texts, types, identifiers.

use crate::context::Context;
use crate::finding::{EW, Findings, Grade, Grades, WI};
use crate::vocabulary::{Spelling, spelled, term_of};
use crate::{Rule, uri};
use json::{Instant, Kind, Node, Pointer};

/// A member with its place.
pub(crate) struct Member<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) at: Pointer,
    pub(crate) spelling: Spelling,
}

/// Reads and judges at once.
pub(crate) struct Reader {
    pub(crate) context: Context,
    pub(crate) findings: Findings,
}

impl Reader {
    /// The member of a term, without a word about it.
    pub(crate) fn look<'a>(&self, object: Node<'a>, at: &Pointer, term: &str, newer: &[&str]) -> Option<Member<'a>> {
        let (name, spelling) = spelled(&self.context, object, term, newer)?;
        Some(Member { node: object.get(&name)?, at: at.child(&name), spelling })
    }

    /// A member that may be there.
    pub(crate) fn optional<'a>(
        &mut self,
        object: Node<'a>,
        at: &Pointer,
        term: &str,
        newer: &[&str],
    ) -> Option<Member<'a>> {
        let member = self.look(object, at, term, newer)?;
        if member.spelling == Spelling::Namespaced {
            let message = format!("`{term}` is written with a namespace; whoever goes by the text does not see it");
            self.findings.add(Rule::R40, &member.at, WI, message);
        }
        Some(member)
    }

    /// A member that must be there; `absent` is what it weighs when it is not.
    pub(crate) fn required<'a>(
        &mut self,
        object: Node<'a>,
        at: &Pointer,
        term: &str,
        newer: &[&str],
        rule: Rule,
        absent: Grades,
    ) -> Option<Member<'a>> {
        let Some(member) = self.look(object, at, term, newer) else {
            self.findings.add(rule, &at.child(term), absent, format!("`{term}` is absent"));
            return None;
        };
        let grades = match member.spelling {
            Spelling::Text => return Some(member),
            Spelling::Namespaced => Grades(absent.0, Some(Grade::Info)),
            Spelling::Newer => Grades(absent.0, None),
        };
        self.findings.add(rule, &member.at, grades, format!("`{term}` stands here under another name"));
        Some(member)
    }

    /// The text of a member.
    pub(crate) fn text(&mut self, member: &Member<'_>, rule: Rule, grades: Grades) -> Option<String> {
        let text = member.node.as_str();
        if text.is_none() {
            let message = format!("this is {}, and a text belongs here", member.node.kind().name());
            self.findings.add(rule, &member.at, grades, message);
        }
        text.map(str::to_owned)
    }

    /// The text of a member that may be there.
    pub(crate) fn optional_text(
        &mut self,
        object: Node<'_>,
        at: &Pointer,
        term: &str,
        rule: Rule,
        grades: Grades,
    ) -> Option<String> {
        let member = self.optional(object, at, term, &[])?;
        self.text(&member, rule, grades)
    }

    /// A text that is one more thing: a URI, an `anyURI`.
    pub(crate) fn text_that(
        &mut self,
        member: &Member<'_>,
        rule: Rule,
        grades: Grades,
        (fits, message): (fn(&str) -> bool, &'static str),
    ) -> Option<String> {
        let text = self.text(member, rule, grades)?;
        if !fits(&text) {
            self.findings.add(rule, &member.at, grades, message);
            return None;
        }
        Some(text)
    }

    /// A date and time; without an offset it is UTC, as XML Schema leaves it open.
    pub(crate) fn moment(&mut self, object: Node<'_>, at: &Pointer, term: &str, rule: Rule) -> Option<Instant> {
        let member = self.optional(object, at, term, &[])?;
        let text = self.text(&member, rule, EW)?;
        let moment = Instant::parse(&text).filter(|_| text.contains(['T', 't']));
        if moment.is_none() {
            self.findings.add(rule, &member.at, EW, "this is no date and time");
        }
        moment
    }

    /// The types of an element as they are written; anything but texts is a finding.
    pub(crate) fn types(&mut self, object: Node<'_>, at: &Pointer, rule: Rule) -> Vec<String> {
        let Some(member) = self.optional(object, at, "@type", &["type"]) else { return Vec::new() };
        let texts: Vec<String> = match member.node.kind() {
            Kind::String => member.node.as_str().map(str::to_owned).into_iter().collect(),
            _ => member.node.elements().filter_map(Node::as_str).map(str::to_owned).collect(),
        };
        let sound = match member.node.kind() {
            Kind::String => true,
            Kind::Array => texts.len() == member.node.len(),
            Kind::Null | Kind::Bool | Kind::Number | Kind::Object => false,
        };
        if !sound {
            self.findings.add(rule, &member.at, EW, "a type is a text, several types are an array of texts");
        }
        texts
    }

    /// Whether one of the types means a term of the text.
    pub(crate) fn is_one_of(&self, types: &[String], terms: &[&str]) -> bool {
        types.iter().filter_map(|written| term_of(&self.context, written)).any(|term| terms.contains(&term.as_str()))
    }

    /// The objects of a list; a single object is a list of one for the lenient.
    pub(crate) fn objects<'a>(&mut self, member: &Member<'a>, rule: Rule, grades: Grades) -> Vec<(Node<'a>, Pointer)> {
        match member.node.kind() {
            Kind::Array => {}
            Kind::Object => {
                self.findings.add(rule, &member.at, grades, "this is one object, and an array belongs here");
                return vec![(member.node, member.at.clone())];
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
                self.findings.add(rule, &member.at, grades, "an array of objects belongs here");
            }
        }
        let mut objects = Vec::new();
        for (position, element) in member.node.elements().enumerate() {
            let at = member.at.child(position);
            if element.is_object() {
                objects.push((element, at));
            } else {
                self.findings.add(rule, &at, grades, "this element is no object");
            }
        }
        objects
    }
}

/// What `@id` of an agent must be.
pub(crate) const URI: (fn(&str) -> bool, &str) =
    (uri::is_uri, "this is no URI; it has no scheme, or a character too many");

/// What other identifiers and links must be.
pub(crate) const ANY_URI: (fn(&str) -> bool, &str) = (uri::is_any_uri, "this is no URI");
