//! A disk that keeps what was synced, and of the rest as much as it likes.
//!
//! Writes to one file reach the disk in any order, each of them whole, not at all, or some of its sectors. Names are
//! made, changed and removed in order, and last when the folder is synced; syncing a file does not make its name last.

use super::trace::Call;
use std::collections::BTreeMap;
use std::path::Path;

const SECTOR: usize = 512;

/// Numbers that are the same in each run.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// What a file holds on disk, and what was done to it since.
#[derive(Clone, Debug, Default)]
struct File {
    synced: Vec<u8>,
    since: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut(usize),
}

#[derive(Clone, Debug)]
enum Naming {
    Made { name: String, file: usize },
    Renamed { from: String, to: String },
    Gone { name: String },
}

#[derive(Debug, Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    /// The names as they are for whoever looks now.
    names: BTreeMap<String, usize>,
    /// The names as they are on disk.
    lasting: BTreeMap<String, usize>,
    since: Vec<Naming>,
    acknowledged: u64,
}

/// A disk as it may be found after the power went.
pub(crate) struct Image {
    files: BTreeMap<String, Vec<u8>>,
    pub(crate) acknowledged: u64,
    pub(crate) how: &'static str,
}

impl Change {
    /// Does it, as a whole or only in some sectors.
    fn apply(&self, file: &mut Vec<u8>, kept: &mut dyn FnMut() -> bool) {
        match self {
            Self::Cut(length) => file.resize(*length, 0),
            Self::Write { at, bytes } => {
                for (number, sector) in bytes.chunks(SECTOR).enumerate().filter(|_| kept()) {
                    let start = at + number * SECTOR;
                    file.resize(file.len().max(start + sector.len()), 0);
                    file[start..start + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Made { name, file } => drop(names.insert(name.clone(), *file)),
            Self::Renamed { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Gone { name } => drop(names.remove(name)),
        }
    }
}

impl Disk {
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Lets a call happen.
    pub(crate) fn take(&mut self, call: &Call) {
        match call {
            Call::Open { file, makes, cuts } => match self.names.get(file) {
                Some(&known) if *cuts => self.files[known].since.push(Change::Cut(0)),
                Some(_) => {}
                None if *makes && !is_shared_memory(file) => {
                    self.files.push(File::default());
                    self.rename(Naming::Made { name: file.clone(), file: self.files.len() - 1 });
                }
                None => {}
            },
            Call::Write { file, at, bytes } => self.change(file, Change::Write { at: *at, bytes: bytes.clone() }),
            Call::Cut { file, length } => self.change(file, Change::Cut(*length)),
            Call::Sync { file } => {
                if let Some(&known) = self.names.get(file) {
                    let file = &mut self.files[known];
                    for change in std::mem::take(&mut file.since) {
                        change.apply(&mut file.synced, &mut || true);
                    }
                }
            }
            Call::SyncFolder => {
                self.lasting = self.names.clone();
                self.since.clear();
            }
            Call::Rename { from, to } => self.rename(Naming::Renamed { from: from.clone(), to: to.clone() }),
            Call::Unlink { file } => self.rename(Naming::Gone { name: file.clone() }),
            Call::Acknowledged(sequence) => self.acknowledged = *sequence,
        }
    }

    fn rename(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.since.push(naming);
    }

    fn change(&mut self, file: &str, change: Change) {
        if let Some(&known) = self.names.get(file) {
            self.files[known].since.push(change);
        }
    }

    /// Some of the disks that may be found now: with nothing that was not synced, with all of it, then by chance.
    pub(crate) fn images(&self, most: usize, chance: &mut Chance) -> Vec<Image> {
        let unsynced: usize = self.files.iter().map(|file| file.since.len()).sum::<usize>() + self.since.len();
        let mut images = vec![self.image("nothing unsynced", &mut |_| 0, &mut || Keep::Nothing)];
        if unsynced == 0 {
            return images;
        }
        images.push(self.image("everything", &mut |count| count, &mut || Keep::All));
        // So many differ at most; there is no use in more of the same.
        let different = if unsynced < 16 { (1 << unsynced) + unsynced } else { usize::MAX };
        for number in 2..most.min(different) {
            let how = if number % 2 == 0 { "some writes" } else { "some sectors" };
            let mut seeds = (Chance::new(chance.next()), Chance::new(chance.next()));
            let keep = &mut || match (seeds.1.below(4), number % 2) {
                (0 | 1, _) => Keep::Nothing,
                (2, 1) => Keep::Sectors(seeds.1.next()),
                _ => Keep::All,
            };
            images.push(self.image(how, &mut |count| seeds.0.below(count + 1), keep));
        }
        images
    }

    fn image(
        &self,
        how: &'static str,
        namings: &mut dyn FnMut(usize) -> usize,
        keep: &mut dyn FnMut() -> Keep,
    ) -> Image {
        let mut names = self.lasting.clone();
        let lasting = namings(self.since.len());
        self.since.iter().take(lasting).for_each(|naming| naming.apply(&mut names));
        let file = |known: usize| {
            let mut held = self.files[known].synced.clone();
            for change in &self.files[known].since {
                match keep() {
                    Keep::Nothing => {}
                    Keep::All => change.apply(&mut held, &mut || true),
                    Keep::Sectors(seed) => {
                        let mut sectors = Chance::new(seed);
                        change.apply(&mut held, &mut || sectors.below(2) == 0);
                    }
                }
            }
            held
        };
        let mut file = file;
        let files = names.into_iter().map(|(name, known)| (name, file(known))).collect();
        Image { files, acknowledged: self.acknowledged, how }
    }
}

/// How much of a change is on disk.
enum Keep {
    Nothing,
    All,
    Sectors(u64),
}

/// The engine's shared memory is no file to it: it is made anew from the write-ahead log.
fn is_shared_memory(file: &str) -> bool {
    file.ends_with("-shm")
}

impl Image {
    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// Writes the disk into a folder, in place of what is there.
    pub(crate) fn write(&self, folder: &Path) {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).unwrap();
        for (name, bytes) in &self.files {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
}
