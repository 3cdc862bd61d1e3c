//! The file `current`: which segments there are, which of their units live, and up to which change they know.
//!
//! INVARIANT: it is replaced as a whole, after everything that it names is on the disk.

use crate::Unit;
use crate::bytes::{self, Put, Reader};
use crate::error::IndexError;
use crate::paths::Paths;
use crate::segment::{files, write_durably};
use roaring::RoaringBitmap;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

const NAME: &str = "current";
const NEXT: &str = "current.next";

/// What the file says.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) applied: u64,
    /// The number of the first unit after all segments.
    pub(crate) next_unit: Unit,
    pub(crate) paths: Paths,
    pub(crate) segments: Vec<Named>,
}

/// A segment as it is named.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) id: u64,
    pub(crate) checksum: u32,
    pub(crate) trigrams_len: u64,
    pub(crate) living: RoaringBitmap,
}

/// Reads the file; nothing when there is none.
pub(crate) fn read(folder: &Path) -> Result<Option<Current>, IndexError> {
    let file = folder.join(NAME);
    let bytes = match std::fs::read(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(IndexError::io(&file))?,
    };
    let (body, _) = bytes::framed(&bytes, &file)?;
    parse(Reader::new(body)).map(Some).ok_or_else(|| IndexError::damaged(&file))
}

fn parse(mut reader: Reader<'_>) -> Option<Current> {
    let (applied, next_unit) = (reader.u64()?, reader.u32()?);
    let paths = Paths::read(&mut reader)?;
    let count = reader.u32()?;
    let mut segments = Vec::new();
    for _ in 0..count {
        let (id, checksum, trigrams_len) = (reader.u64()?, reader.u32()?, reader.u64()?);
        let len = reader.u32()? as usize;
        let living = RoaringBitmap::deserialize_from(reader.take(len)?).ok()?;
        segments.push(Named { id, checksum, trigrams_len, living });
    }
    reader.is_empty().then_some(Current { applied, next_unit, paths, segments })
}

/// A file that is being written; the segments follow in the order of their units.
#[derive(Debug)]
pub(crate) struct CurrentWriter {
    out: Vec<u8>,
}

impl CurrentWriter {
    pub(crate) fn new(applied: u64, next_unit: Unit, paths: &Paths, segments: usize) -> Self {
        let mut out = bytes::begin();
        out.put_u64(applied);
        out.put_u32(next_unit);
        paths.write(&mut out);
        out.put_u32(segments as u32);
        Self { out }
    }

    pub(crate) fn segment(
        &mut self,
        id: u64,
        checksum: u32,
        trigrams_len: u64,
        living: &RoaringBitmap,
    ) -> Result<(), IndexError> {
        self.out.put_u64(id);
        self.out.put_u32(checksum);
        self.out.put_u64(trigrams_len);
        self.out.put_u32(living.serialized_size() as u32);
        // A vector takes everything.
        living.serialize_into(&mut self.out).map_err(|_| IndexError::TooLarge)
    }

    /// Replaces the file.
    pub(crate) fn replace(mut self, folder: &Path) -> Result<(), IndexError> {
        bytes::end(&mut self.out);
        let (next, file) = (folder.join(NEXT), folder.join(NAME));
        write_durably(&next, &self.out)?;
        std::fs::rename(&next, &file).map_err(IndexError::io(&file))?;
        sync(folder)
    }
}

/// Waits until the names in a folder are on the disk.
pub(crate) fn sync(folder: &Path) -> Result<(), IndexError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(IndexError::io(folder))
}

/// Removes the files of the index that nobody names.
pub(crate) fn sweep(folder: &Path, keep: impl Iterator<Item = u64>) -> Result<(), IndexError> {
    let keep: HashSet<PathBuf> = keep.flat_map(|id| files(folder, id)).collect();
    ours(folder)?.into_iter().filter(|file| !keep.contains(file) && !file.ends_with(NAME)).try_for_each(remove)
}

/// Removes all files of the index, the one that names the others first.
pub(crate) fn discard(folder: &Path) -> Result<(), IndexError> {
    let mut files = ours(folder)?;
    files.sort_by_key(|file| !file.ends_with(NAME));
    files.into_iter().try_for_each(remove)
}

fn ours(folder: &Path) -> Result<Vec<PathBuf>, IndexError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(IndexError::io(folder))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(IndexError::io(folder))?.path();
        let is_segment = file.extension().is_some_and(|extension| extension == "values" || extension == "trigrams");
        if is_segment || file.ends_with(NAME) || file.ends_with(NEXT) {
            files.push(file);
        }
    }
    Ok(files)
}

pub(crate) fn remove(file: PathBuf) -> Result<(), IndexError> {
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(IndexError::io(&file)(error)),
        _ => Ok(()),
    }
}
