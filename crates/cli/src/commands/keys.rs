//! `rialto keys`: make a key, show who it makes us, let a node's next key follow.

use crate::failure::{Exit, Failure};
use crate::house::DataFolder;
use crate::keys;
use crate::output::text::{json_line, shown};
use crate::output::{self, DIM, paint};
use json::json;
use std::path::{Path, PathBuf};
use trust::SigningKey;

/// Make and show the key that signs
#[derive(clap::Subcommand)]
pub(crate) enum Keys {
    New(New),
    Show(Show),
    Rotate(Rotate),
}

/// Make an Ed25519 key
///
/// The file is readable by you alone. Whoever has it can ask and answer in your name; its seed is never printed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto keys new\n  rialto keys new --file team.json")]
pub(crate) struct New {
    #[command(flatten)]
    place: Place,

    /// Replace the key that is there; nobody can sign with the old one again
    #[arg(long)]
    force: bool,
}

/// Show who the key makes you: its DID and its public half
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto keys show\n  rialto keys show --json")]
pub(crate) struct Show {
    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Let another key follow the one a node signs with
///
/// Stop the node first, and start it again afterwards. The new key stands in the node's DID document at once and signs
/// ten minutes later, when everybody who remembers the document has it. The old one stays in the document with the
/// moment since which it no longer counts, so that what it signed can be verified for ever; its secret is not kept. A
/// node without --public-url is called by its key: it gets another name, and what it signed is still verified by the old
/// one.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  rialto keys rotate\n  rialto keys rotate --data /var/lib/rialto --now")]
pub(crate) struct Rotate {
    #[command(flatten)]
    data: DataFolder,

    /// Sign with the new key at once: somebody else may have the old one
    #[arg(long)]
    now: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Place {
    /// The key file [default: key.json in $RIALTO_HOME or the user's data directory]
    #[arg(long, visible_alias = "key", value_name = "FILE", env = "RIALTO_KEY", hide_env_values = true)]
    file: Option<PathBuf>,
}

impl Keys {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::New(new) => {
                let path = keys::path(new.place.file.as_deref())?;
                let key = keys::create(&path, new.force)?;
                output::print(&described(&key, &path))?;
            }
            Self::Show(show) => {
                let path = keys::path(show.place.file.as_deref())?;
                let key = keys::load(&path)?;
                output::print(&if show.json { as_json(&key, &path) } else { described(&key, &path) })?;
            }
            Self::Rotate(rotate) => output::print(&rotate.run()?)?,
        }
        Ok(Exit::Fine)
    }
}

impl Rotate {
    fn run(&self) -> Result<String, Failure> {
        let data = self.data.path()?;
        let rotation = node::folder::rotate(&data, &node::Clock::System, self.now).map_err(|error| {
            let failure = Failure::files(format!("the key cannot be rotated: {error}"));
            match data.join("store").is_dir() {
                true => failure,
                false => failure.help("name the folder of your node with --data; `rialto serve` makes it, with a key"),
            }
        })?;
        if self.json {
            let value = json!({"old": rotation.old, "new": rotation.new, "from": rotation.from.to_string()});
            return Ok(json_line(&json::canonical_value(&value)));
        }
        // Whether the node will be called by its key is not known here: that is said when it starts.
        let from = match self.now {
            true => rotation.from.to_string(),
            false => format!("{}; a node without --public-url: its next start", rotation.from),
        };
        let rows = [("old", rotation.old), ("new", rotation.new), ("from", from)];
        Ok(rows.iter().map(|(name, value)| format!("{} {value}\n", paint(DIM, format!("{name:<5}")))).collect())
    }
}

fn described(key: &SigningKey, path: &Path) -> String {
    let rows = [
        ("did", key.did_key().to_string()),
        ("kid", key.key_id().to_string()),
        ("key", "Ed25519, signs with EdDSA".to_owned()),
        ("file", shown(&path.display().to_string())),
    ];
    rows.iter().map(|(name, value)| format!("{} {value}\n", paint(DIM, format!("{name:<5}")))).collect()
}

fn as_json(key: &SigningKey, path: &Path) -> String {
    let value = json!({
        "did": key.did_key().as_str(),
        "file": path.display().to_string(),
        "kid": key.key_id().to_string(),
        "public_key_jwk": key.public().to_jwk(),
    });
    json_line(&json::canonical_value(&value))
}
