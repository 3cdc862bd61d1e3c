//! What strace notes of a process, as far as it changes a folder.

use std::collections::HashMap;
use std::path::Path;

/// The calls that are noted.
pub(crate) const CALLS: &str = "openat,pwrite64,write,ftruncate,fsync,fdatasync,rename,unlink";

/// Something that happened to a file of the folder, by its name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It was opened and may have been made.
    Open {
        file: String,
        makes: bool,
        cuts: bool,
    },
    Write {
        file: String,
        at: usize,
        bytes: Vec<u8>,
    },
    Cut {
        file: String,
        length: usize,
    },
    Sync {
        file: String,
    },
    /// The folder was synced: names that were made or went are so from now on.
    SyncFolder,
    Rename {
        from: String,
        to: String,
    },
    Unlink {
        file: String,
    },
    /// The victim was told that so many changes are safe.
    Acknowledged(u64),
}

/// The calls of a log that succeeded and concern the folder.
pub(crate) fn calls(log: &str, folder: &Path) -> Vec<Call> {
    let (mut halves, mut calls) = (HashMap::new(), Vec::new());
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let whole = match (rest.strip_suffix(" <unfinished ...>"), rest.strip_prefix("<... ")) {
            (Some(begun), _) => {
                halves.insert(thread, begun.to_owned());
                continue;
            }
            (None, Some(resumed)) => match (halves.remove(thread), resumed.split_once(" resumed>")) {
                (Some(begun), Some((_, ended))) => format!("{begun}{ended}"),
                _ => continue,
            },
            (None, None) => rest.to_owned(),
        };
        calls.extend(Call::parse(&whole, folder));
    }
    calls
}

impl Call {
    /// One call, as strace writes it with `-y` and `-xx`.
    pub(crate) fn parse(line: &str, folder: &Path) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(") = ")?;
        if result.starts_with('-') {
            return None;
        }
        let inside = |path: &str| Path::new(path).strip_prefix(folder).ok()?.to_str().map(str::to_owned);
        // The file of a descriptor stands in angle brackets behind it.
        let described = || Some(decoded_text(arguments.split_once('<')?.1.split_once('>')?.0));
        let quoted: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
        let numbers = || arguments.rsplit(", ").map_while(|number| number.parse::<usize>().ok());
        Some(match name {
            "openat" => {
                let file = inside(&decoded_text(quoted.first()?)).filter(|file| !file.is_empty())?;
                Self::Open { file, makes: arguments.contains("O_CREAT"), cuts: arguments.contains("O_TRUNC") }
            }
            "pwrite64" => {
                let mut bytes = decoded(quoted.first()?);
                bytes.truncate(result.trim().parse().ok()?);
                Self::Write { file: inside(&described()?)?, at: numbers().next()?, bytes }
            }
            "write" => {
                let text = decoded_text(quoted.first()?);
                Self::Acknowledged(text.trim().strip_prefix("acknowledged ")?.parse().ok()?)
            }
            "ftruncate" => Self::Cut { file: inside(&described()?)?, length: numbers().next()? },
            "fsync" | "fdatasync" => match inside(&described()?)? {
                file if file.is_empty() => Self::SyncFolder,
                file => Self::Sync { file },
            },
            "rename" => Self::Rename {
                from: inside(&decoded_text(quoted.first()?))?,
                to: inside(&decoded_text(quoted.get(1)?))?,
            },
            "unlink" => Self::Unlink { file: inside(&decoded_text(quoted.first()?))? },
            _ => return None,
        })
    }
}

fn decoded(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).filter_map(|digits| u8::from_str_radix(digits, 16).ok()).collect()
}

fn decoded_text(text: &str) -> String {
    String::from_utf8_lossy(&decoded(text)).into_owned()
}
