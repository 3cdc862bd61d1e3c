//! What the core protocol calls discovery: which action of this tool fits a wish in plain words.
//!
//! It is a door-plate, not a search: the wish is held against the words with which the manifest describes its actions.
//! Who looks for somebody else's services asks with an intent (decisions/0111).

use crate::invoke::ACTION;
use crate::node::Node;
use crate::publish::text;
use crate::refusal::{Class, Error, Refusal};
use crate::versions;
use json::{Document, Limits, Pointer, Value, json};
use std::collections::BTreeSet;
use trust::Did;

const MEMBERS: [&str; 3] = ["intent", "principal_did", "constraints"];
/// Characters of a wish.
pub(crate) const WISH_CHARS_MAX: usize = 4_000;
/// Letters that two words must share to be taken for one.
const STEM: usize = 4;

impl Node {
    /// The actions whose description shares words with a wish, signed; nothing goes out and nothing is kept.
    pub fn discover(&self, bytes: &[u8], base: &str) -> Result<Vec<u8>, Error> {
        let wish = read(bytes)?;
        self.versions.count(versions::DISCOVER, None, None, self.clock.millis());
        let manifest = self.manifest(base);
        let described = described(&manifest);
        let confidence = confidence(&wish, &described);
        let action = json!({"id": ACTION, "confidence": confidence, "estimated_cost_eur": 0});
        Ok(self.identity.sign(json!({
            "type": "oap.discover",
            "tool_did": self.identity.did().as_str(),
            "at": self.clock.now().to_string(),
            "matching_actions": if confidence > 0.0 { vec![action] } else { Vec::new() },
        })))
    }
}

/// The wish of a message.
fn read(bytes: &[u8]) -> Result<String, Error> {
    let document = Document::parse(bytes, &Limits::INTENT)?;
    let root = document.root();
    let wrong = |code, detail: &str, name: &str| {
        Error::from(Refusal::new(Class::InvalidInput, code, detail).at(Pointer::root().child(name)))
    };
    if !root.is_object() {
        return Err(Refusal::new(Class::InvalidInput, "wrong_type", "a wish is an object with `intent`").into());
    }
    if let Some((name, _)) =
        root.members().find(|(name, _)| !MEMBERS.contains(name) && !versions::MEMBERS.contains(name))
    {
        return Err(wrong("unknown_field", "a wish has `intent`, `principal_did` and `constraints`", name));
    }
    let wish = text(&document, "intent")?;
    let length = wish.chars().count();
    if wish.trim().is_empty() || length > WISH_CHARS_MAX {
        let detail = "say in plain words what is wanted";
        let refusal = Refusal::new(Class::InvalidInput, "invalid_value", detail).at(Pointer::root().child("intent"));
        return Err(refusal.limited("discover.wish_chars", WISH_CHARS_MAX as u64, length as u64).into());
    }
    if let Some(principal) = root.get("principal_did")
        && principal.as_str().is_none_or(|did| Did::parse(did).is_err())
    {
        return Err(wrong("invalid_did", "a DID belongs here", "principal_did"));
    }
    // The one action costs nothing and is open to all, so that no constraint on cost or terms can exclude it.
    if root.get("constraints").is_some_and(|constraints| !constraints.is_object()) {
        return Err(wrong("wrong_type", "an object belongs here", "constraints"));
    }
    Ok(wish)
}

/// The words of the tool and of its one action.
fn described(manifest: &Value) -> BTreeSet<String> {
    let named = ["/tool/description_for_humans", "/tool/description_for_agents", "/actions/0/summary"];
    let texts = named.into_iter().chain(["/actions/0/description_for_agents", "/actions/0/id"]);
    let texts = texts.filter_map(|place| manifest.pointer(place)?.as_str());
    let categories = manifest.pointer("/tool/categories").and_then(Value::as_array).into_iter().flatten();
    texts.chain(categories.filter_map(Value::as_str)).flat_map(words).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() >= STEM);
    parts.map(str::to_lowercase)
}

/// The share of a wish's words that the description has, too, in hundredths.
fn confidence(wish: &str, described: &BTreeSet<String>) -> f64 {
    let wished: BTreeSet<String> = words(wish).collect();
    let alike = |left: &str, right: &str| left.starts_with(right) || right.starts_with(left);
    let known = wished.iter().filter(|word| described.iter().any(|other| alike(word, other))).count();
    if wished.is_empty() { 0.0 } else { (known as f64 / wished.len() as f64 * 100.0).round() / 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure(wish: &str) -> f64 {
        let described = words("Finds manifests, offers and knowledge nodes that satisfy a signed intent").collect();
        confidence(wish, &described)
    }

    #[test]
    fn shared_words_make_sure_and_other_words_do_not() {
        assert_eq!(sure("find offers"), 1.0);
        assert_eq!(sure("FIND an offer, please"), 0.67);
        assert_eq!(sure("boil an egg slowly"), 0.0);
        assert_eq!(sure("a b c"), 0.0);
    }

    #[test]
    fn a_wish_that_is_none_is_refused_at_its_place() {
        let code = |text: &str| match read(text.as_bytes()) {
            Err(Error::Refusal(refusal)) => (refusal.code, refusal.at.as_str().to_owned()),
            other => panic!("{other:?}"),
        };
        let long = format!(r#"{{"intent":"{}"}}"#, "a".repeat(WISH_CHARS_MAX + 1));
        for (text, expected, at) in [
            ("[]", "wrong_type", ""),
            ("{}", "missing_field", "/intent"),
            (r#"{"intent":1}"#, "wrong_type", "/intent"),
            (r#"{"intent":" "}"#, "invalid_value", "/intent"),
            (&long, "invalid_value", "/intent"),
            (r#"{"intent":"x","principal_did":"x"}"#, "invalid_did", "/principal_did"),
            (r#"{"intent":"x","constraints":[]}"#, "wrong_type", "/constraints"),
            (r#"{"intent":"x","wish":1}"#, "unknown_field", "/wish"),
        ] {
            assert_eq!(code(text), (expected, at.to_owned()), "{text}");
        }
        assert_eq!(read(br#"{"intent":"x","principal_did":"did:web:a.example","constraints":{"a":1}}"#).unwrap(), "x");
    }
}
