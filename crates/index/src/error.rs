//! What can go wrong with an index; none of it loses anything, for the index can be built anew.

use std::path::Path;

/// Why the index could not be opened, asked or changed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file is not what was written; discard the index and build it anew.
    #[error("`{0}` is damaged")]
    Damaged(Box<str>),
    /// A file was written by another version; discard the index and build it anew.
    #[error("`{file}` has format {version}, which this program does not write")]
    OtherFormat {
        /// The file.
        file: Box<str>,
        /// Its format.
        version: u32,
    },
    /// What was made does not fit: the index has changed since, or it is another one.
    #[error("the made segment does not belong here")]
    Misplaced,
    /// A segment would be larger than its format can address.
    #[error("a segment would be larger than its format can address")]
    TooLarge,
    /// The operating system refused.
    #[error("`{file}`: {source}")]
    Io {
        /// The file.
        file: Box<str>,
        /// What it said.
        source: std::io::Error,
    },
}

impl IndexError {
    pub(crate) fn damaged(file: &Path) -> Self {
        Self::Damaged(name(file))
    }

    pub(crate) fn io(file: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { file: name(file), source }
    }
}

fn name(file: &Path) -> Box<str> {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into()
}

/// There are no unit numbers left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index has no unit numbers left; build it anew")]
pub struct Full;
