//! `rialto agent approve`: the definition of a tool that changed, taken as it is now (OAS Agent, capabilities).

use crate::failure::{Exit, Failure};
use crate::house::DataFolder;
use crate::output::text::shown;
use crate::output::{self, GOOD, paint};

/// Let agents call a tool again whose definition changed
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  rialto agent approve time.convert-time sha-256:9f1c…

The node says in its log, and `rialto agent list` at any time, which tool changed and what its digest is now. Until it is
approved no model is shown it. A node that runs takes the approval with the next engagement.")]
pub(crate) struct Approve {
    /// The name of the tool
    tool: String,

    /// The digest of the definition that you have read, as the node's log has it
    digest: String,

    #[command(flatten)]
    data: DataFolder,
}

impl Approve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let digits = self.digest.strip_prefix("sha-256:").unwrap_or_default();
        if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            return Err(Failure::usage("a digest is `sha-256:` and 64 hexadecimal digits")
                .help("the node's log has it, with the word `now`"));
        }
        let data = self.data.path()?;
        let known = node::approve_tool(&data, &self.tool, &self.digest)
            .map_err(|error| Failure::files(format!("{}: {error}", data.display())))?;
        if !known {
            return Err(Failure::refused(format!("no node with this folder has seen a tool `{}`", shown(&self.tool)))
                .help("check the name, and the folder with --data"));
        }
        output::print(&format!("{} {}\n", paint(GOOD, "approved"), shown(&self.tool)))?;
        Ok(Exit::Fine)
    }
}
