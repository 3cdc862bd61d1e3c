//! An agent as OpenAgentSpec defines it (OAS Agent), as far as its description repeats it.

use super::check::refused;
use crate::failure::Failure;
use crate::files::Text;
use description::DraftResource;
use json::{Kind, Node, Pointer};
use std::path::Path;

/// The one version of the text.
const KIND: &str = "openagentspec:v1/agent";

/// Characters of a name.
const NAME_MAX: usize = 253;

/// What the file says.
pub(super) struct Spec {
    pub(super) name: String,
    /// What the agent does, in the third person.
    pub(super) description: String,
    /// Its goal, in the second person.
    pub(super) intent: String,
    pub(super) owner: String,
    /// References to the tools and agents that it may use.
    pub(super) capabilities: Vec<String>,
}

impl Spec {
    /// Reads a file and says what is wrong with it, if something is.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = Text::read(path)?;
        let document = description::parse_yaml(&text.bytes).map_err(|refusal| refused(&text, &refusal))?;
        let root = document.root();
        let wrong = |name: &str, what: &str| {
            let at = Pointer::root().child(name);
            Failure::refused(format!("`{name}` {what}")).at(text.name.clone()).coded("invalid_value", &at)
        };
        let required = |name: &str| {
            let value = root.get(name).and_then(Node::as_str).filter(|value| !value.trim().is_empty());
            value.map(str::to_owned).ok_or_else(|| wrong(name, "must be a text"))
        };
        if required("kind")? != KIND {
            return Err(wrong("kind", "names another version").help(format!("this reads `{KIND}`")));
        }
        let name = required("name")?;
        if !is_name(&name) {
            return Err(wrong("name", "is no DNS subdomain of RFC 1123").help("use a-z, 0-9, `-` and `.`"));
        }
        let capabilities = match root.get("capabilities") {
            None => Vec::new(),
            Some(map) if map.kind() == Kind::Object => map.members().map(|(name, _)| name.to_owned()).collect(),
            Some(map) if map.is_null() => Vec::new(),
            Some(_) => return Err(wrong("capabilities", "must be a map")),
        };
        if let Some(stranger) = capabilities.iter().find(|reference| target(reference).is_none()) {
            return Err(wrong("capabilities", &format!("has `{stranger}`, which names neither a tool nor an agent")));
        }
        Ok(Self {
            name,
            description: required("description")?,
            intent: required("intent")?,
            owner: required("owner")?,
            capabilities,
        })
    }

    /// What it can do, as the description at an address lists it.
    pub(super) fn services(&self, agent: &str) -> Vec<DraftResource> {
        let service = |reference: &String| {
            let (name, address) = target(reference)?;
            let url = address.unwrap_or_else(|| format!("{agent}#capability-{name}"));
            Some(DraftResource { name: name.to_owned(), description: format!("Uses {name}."), url })
        };
        self.capabilities.iter().filter_map(service).collect()
    }
}

/// OAS Names & References: what a reference names, and the address of an agent elsewhere.
fn target(reference: &str) -> Option<(&str, Option<String>)> {
    let Some(rest) = reference.strip_prefix("oagent://") else {
        return is_name(reference).then_some((reference, None));
    };
    match rest.rsplit_once('/') {
        None => is_name(rest).then_some((rest, None)),
        Some((_, name)) => {
            let url = format!("https://{rest}");
            (is_name(name) && description::is_web(&url)).then_some((name, Some(url)))
        }
    }
}

fn is_name(name: &str) -> bool {
    let inside = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    let ends = [name.bytes().next(), name.bytes().next_back()];
    inside && name.len() <= NAME_MAX && ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_tool_or_an_agent_here_or_elsewhere() {
        for (reference, expected) in [
            ("search", Some(("search", None))),
            ("oagent://pilot", Some(("pilot", None))),
            ("oagent://a.example/agents/pilot", Some(("pilot", Some("https://a.example/agents/pilot")))),
            ("Search", None),
            ("-x", None),
            ("", None),
            ("oagent://u@a.example/pilot", None),
            ("oagent://a.example/", None),
        ] {
            let found = target(reference);
            let found = found.as_ref().map(|(name, url)| (*name, url.as_deref()));
            assert_eq!(found, expected, "{reference}");
        }
    }
}
