//! Work that goes on beside the questions: it takes what it needs along and hands back a segment.

use crate::error::IndexError;
use crate::fresh::Fresh;
use crate::merge::merge;
use crate::segment::{Segment, seal};
use roaring::RoaringBitmap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lets one piece of work go on at a time; it ends when the lease is dropped, however the work went.
#[derive(Debug)]
pub(crate) struct Lease(Arc<AtomicBool>);

impl Lease {
    /// Takes the lease unless somebody has it.
    pub(crate) fn take(taken: &Arc<AtomicBool>) -> Option<Self> {
        let free = taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok();
        free.then(|| Self(taken.clone()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What a new segment is made with.
#[derive(Debug)]
pub(crate) struct Making {
    pub(crate) lease: Lease,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) id: u64,
    /// For each path whether one unit can have many values there.
    pub(crate) many: Arc<[bool]>,
}

impl Making {
    fn make(
        self,
        make: impl FnOnce(&dyn Fn(usize) -> bool, &Self) -> Result<Segment, IndexError>,
    ) -> Result<Made, IndexError> {
        let many = |path: usize| self.many.get(path).copied().unwrap_or(true);
        let segment = make(&many, &self)?;
        Ok(Made { segment, _lease: self.lease })
    }
}

/// A frozen part that waits to be written.
#[derive(Debug)]
pub struct Sealing {
    pub(crate) making: Making,
    pub(crate) frozen: Arc<Fresh>,
}

impl Sealing {
    /// Writes the segment and waits until it is on the disk.
    pub fn run(self) -> Result<Made, IndexError> {
        let frozen = self.frozen;
        self.making.make(|many, making| seal(&frozen, many, making.folder.as_deref(), making.id))
    }
}

/// Neighbouring segments that wait to be merged.
#[derive(Debug)]
pub struct Merging {
    pub(crate) making: Making,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) living: RoaringBitmap,
}

impl Merging {
    /// Writes the merged segment and waits until it is on the disk.
    pub fn run(self) -> Result<Made, IndexError> {
        let (segments, living) = (self.segments, self.living);
        self.making.make(|many, making| merge(&segments, &living, many, making.folder.as_deref(), making.id))
    }
}

/// A segment that waits to be adopted.
#[derive(Debug)]
pub struct Made {
    pub(crate) segment: Segment,
    /// Until it is adopted or given up, nothing else is made in its place.
    _lease: Lease,
}
