//! OAS Agent, `user_identity` and `static_identity`: in whose name a tool is used.
//!
//! INVARIANT: a user's call never falls back to somebody else's credential.

use crate::fields::Fields;
use crate::{ConfigurationError, Secret};
use json::{Pointer, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a credential.
const CREDENTIAL_BYTES_MAX: u64 = 64 * 1024;

/// In whose name a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// In that of the calling user.
    User(&'a str),
    /// With the credentials that the document names.
    Static(&'a str),
    /// In nobody's.
    Nobody,
}

/// The identity for a capability; `None` when the document asks for a user and there is none.
pub fn identity<'a>(
    user_identity: bool,
    static_identity: Option<&'a str>,
    caller: Option<&'a str>,
) -> Option<Identity<'a>> {
    match (user_identity, static_identity, caller) {
        (true, _, Some(user)) => Some(Identity::User(user)),
        (true, Some(name), None) | (false, Some(name), _) => Some(Identity::Static(name)),
        (true, None, None) => None,
        (false, None, _) => Some(Identity::Nobody),
    }
}

/// Where a credential comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The environment, as it was at the beginning.
    Known(Secret),
    /// A variable that was not set.
    Unset,
    /// A file, read whenever it is needed, so that it may be changed.
    File(PathBuf),
}

impl Source {
    /// Reads `{env: NAME}` or `{file: PATH}`.
    pub(crate) fn read(value: &Value, at: &Pointer, world: &World<'_>) -> Result<Self, ConfigurationError> {
        let fields = Fields::of(value, at)?;
        let source = Self::read_from(&fields, world)?;
        fields.finish()?;
        Ok(source)
    }

    fn read_from(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        match (fields.text("env")?, fields.text("file")?) {
            (Some(name), None) => Ok(match (world.environment)(name) {
                Some(text) => Self::Known(Secret::new(text)),
                None => Self::Unset,
            }),
            (None, Some(path)) => Ok(Self::File(world.folder.join(path))),
            _ => Err(fields.wrong("env", "a credential comes from `env` or from `file`")),
        }
    }

    /// The credential; `None` when there is none now.
    pub(crate) fn secret(&self) -> Option<Secret> {
        match self {
            Self::Known(secret) => Some(secret.clone()),
            Self::Unset => None,
            Self::File(path) => {
                let mut text = String::new();
                File::open(path).ok()?.take(CREDENTIAL_BYTES_MAX).read_to_string(&mut text).ok()?;
                text.truncate(text.trim_end().len());
                Some(Secret::new(text)).filter(|secret| !secret.expose().is_empty())
            }
        }
    }
}

/// What reading a configuration needs of the world.
pub(crate) struct World<'a> {
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// The folder that relative paths begin in.
    pub(crate) folder: &'a Path,
}

/// The credentials that an operator gave, by user and tool or by the name that documents use.
#[derive(Clone, Debug, Default)]
pub struct Vault {
    by_user: BTreeMap<(String, String), Source>,
    by_name: BTreeMap<String, Source>,
}

impl Vault {
    /// Reads `credentials`: `static` by name, `users` as a list of tool, user and source.
    pub(crate) fn read(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        let mut vault = Self::default();
        for (name, value, at) in fields.entries("static")? {
            vault.by_name.insert(name.to_owned(), Source::read(value, &at, world)?);
        }
        for (position, value) in fields.list("users")?.iter().enumerate() {
            let entry = Fields::of(value, &fields.at("users").child(position))?;
            let key = (entry.needed_text("tool")?.to_owned(), entry.needed_text("user")?.to_owned());
            let source = Source::read_from(&entry, world)?;
            if vault.by_user.insert(key, source).is_some() {
                return Err(entry.wrong("user", "this user has a credential for this tool already"));
            }
            entry.finish()?;
        }
        Ok(vault)
    }

    /// Whether documents may name this static identity.
    pub fn knows(&self, static_identity: &str) -> bool {
        self.by_name.contains_key(static_identity)
    }

    /// Why there is no credential for a static identity that documents may name.
    pub fn lacks(&self, static_identity: &str) -> Option<String> {
        match self.by_name.get(static_identity)? {
            source if source.secret().is_some() => None,
            Source::File(path) => Some(format!("`{}` cannot be read, or is empty", path.display())),
            Source::Known(_) | Source::Unset => Some("the variable that it should come from is not set".to_owned()),
        }
    }

    /// The credential for an entry of the tools; `Err` when there should be one and is none.
    pub fn credential(&self, entry: &str, identity: Identity<'_>) -> Result<Option<Secret>, MissingCredential> {
        let source = match identity {
            Identity::Nobody => return Ok(None),
            Identity::User(user) => self.by_user.get(&(entry.to_owned(), user.to_owned())),
            Identity::Static(name) => self.by_name.get(name),
        };
        source.and_then(Source::secret).map(Some).ok_or(MissingCredential)
    }
}

/// Nobody gave a credential for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no credential for this tool and identity")]
pub struct MissingCredential;

#[cfg(test)]
mod tests {
    use super::*;
    use json::json;

    #[test]
    fn the_document_decides_in_whose_name() {
        let (user, fixed) = (Some("ada"), Some("bot"));
        for (user_identity, static_identity, caller, expected) in [
            (true, None, user, Some(Identity::User("ada"))),
            (true, fixed, user, Some(Identity::User("ada"))),
            (true, fixed, None, Some(Identity::Static("bot"))),
            (true, None, None, None),
            (false, fixed, user, Some(Identity::Static("bot"))),
            (false, fixed, None, Some(Identity::Static("bot"))),
            (false, None, user, Some(Identity::Nobody)),
            (false, None, None, Some(Identity::Nobody)),
        ] {
            assert_eq!(identity(user_identity, static_identity, caller), expected);
        }
    }

    fn vault(value: &Value, folder: &Path) -> Result<Vault, ConfigurationError> {
        let environment = |name: &str| (name == "SET").then(|| "marker-env".to_owned());
        Vault::read(&Fields::of(value, &Pointer::root())?, &World { environment: &environment, folder })
    }

    #[test]
    fn a_credential_is_found_for_its_own_user_and_tool_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ada"), "marker-file\n").unwrap();
        let given = json!({
            "static": {"bot": {"env": "SET"}, "gone": {"env": "UNSET"}},
            "users": [{"tool": "crm", "user": "ada", "file": "ada"}],
        });
        let vault = vault(&given, folder.path()).unwrap();
        let found = |entry, identity| {
            vault.credential(entry, identity).map(|secret| secret.map(|secret| secret.expose().to_owned()))
        };
        assert_eq!(found("crm", Identity::User("ada")), Ok(Some("marker-file".to_owned())));
        assert_eq!(found("any", Identity::Static("bot")), Ok(Some("marker-env".to_owned())));
        assert_eq!(found("crm", Identity::Nobody), Ok(None));
        for (entry, identity) in [
            ("crm", Identity::User("bob")),
            ("mail", Identity::User("ada")),
            ("crm", Identity::Static("gone")),
            ("crm", Identity::Static("unheard-of")),
        ] {
            assert_eq!(found(entry, identity), Err(MissingCredential), "{entry} {identity:?}");
        }
        std::fs::write(folder.path().join("ada"), "changed").unwrap();
        assert_eq!(found("crm", Identity::User("ada")), Ok(Some("changed".to_owned())));
        assert!(!format!("{vault:?}").contains("marker"), "{vault:?}");
    }

    #[test]
    fn a_credential_has_one_source_and_one_entry() {
        let here = Path::new(".");
        for given in [
            json!({"static": {"bot": {}}}),
            json!({"static": {"bot": {"env": "A", "file": "b"}}}),
            json!({"static": {"bot": {"value": "marker"}}}),
            json!({"users": [{"tool": "a", "user": "b", "env": "A"}, {"tool": "a", "user": "b", "env": "B"}]}),
        ] {
            assert!(vault(&given, here).is_err(), "{given}");
        }
    }
}
