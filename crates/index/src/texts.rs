//! The distinct texts at a path: sorted, each written as what differs from the one before, in blocks.
//!
//! A text is *covered* when trigrams lead to all of its units; what is not covered is found by asking every text.

use crate::bytes::{Put, Reader, position, u32_at};
use crate::error::IndexError;
use crate::posting::{Gathered, Stored};

/// Texts of a block; its first one is written whole, so that blocks can be searched.
const BLOCK: usize = 16;
/// The bit beside the length of the common beginning.
const COVERED: u8 = 1 << 7;

/// Where the texts stand in their file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextsHead {
    starts_at: u32,
    refs_at: u32,
    blocks_at: u32,
    blocks_len: u32,
    len: u32,
    /// The numbers of the blocks with a text that is not covered.
    asked_at: u32,
    asked_len: u32,
}

impl TextsHead {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        [self.starts_at, self.refs_at, self.blocks_at, self.blocks_len, self.len, self.asked_at, self.asked_len]
            .iter()
            .for_each(|number| out.put_u32(*number));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            starts_at: reader.u32()?,
            refs_at: reader.u32()?,
            blocks_at: reader.u32()?,
            blocks_len: reader.u32()?,
            len: reader.u32()?,
            asked_at: reader.u32()?,
            asked_len: reader.u32()?,
        })
    }
}

/// Texts on their way into a file.
#[derive(Debug, Default)]
pub(crate) struct TextsWriter {
    starts: Vec<u8>,
    refs: Vec<u8>,
    blocks: Vec<u8>,
    asked: Vec<u32>,
    last: Vec<u8>,
    len: usize,
}

impl TextsWriter {
    /// Adds a text above the last one, of at most 127 bytes; without units there is nothing to add.
    pub(crate) fn push(
        &mut self,
        text: &[u8],
        covered: bool,
        units: &mut Gathered,
        out: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        if units.len() == 0 {
            return Ok(());
        }
        let common = if self.len.is_multiple_of(BLOCK) {
            self.starts.put_u32(position(&self.blocks)?);
            0
        } else {
            self.last.iter().zip(text).take_while(|(left, right)| left == right).count()
        };
        let rest = text.get(common..).unwrap_or_default();
        self.blocks.push(common as u8 | if covered { COVERED } else { 0 });
        self.blocks.push(rest.len() as u8);
        self.blocks.extend_from_slice(rest);
        self.last.truncate(common);
        self.last.extend_from_slice(rest);
        self.refs.put_u32(units.write(out)?);
        let block = (self.len / BLOCK) as u32;
        if !covered && self.asked.last() != Some(&block) {
            self.asked.push(block);
        }
        self.len += 1;
        Ok(())
    }

    pub(crate) fn finish(self, out: &mut Vec<u8>) -> Result<TextsHead, IndexError> {
        let starts_at = position(out)?;
        out.extend_from_slice(&self.starts);
        let refs_at = position(out)?;
        out.extend_from_slice(&self.refs);
        let blocks_at = position(out)?;
        out.extend_from_slice(&self.blocks);
        let asked_at = position(out)?;
        self.asked.iter().for_each(|block| out.put_u32(*block));
        position(out)?;
        let (blocks_len, len, asked_len) = (self.blocks.len() as u32, self.len as u32, self.asked.len() as u32);
        Ok(TextsHead { starts_at, refs_at, blocks_at, blocks_len, len, asked_at, asked_len })
    }
}

/// Texts in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts<'a> {
    /// The whole file.
    file: &'a [u8],
    starts: &'a [u8],
    refs: &'a [u8],
    blocks: &'a [u8],
    asked: &'a [u8],
}

impl<'a> Texts<'a> {
    pub(crate) fn new(file: &'a [u8], head: &TextsHead) -> Option<Self> {
        let run = |at: u32, len: usize| file.get(at as usize..)?.get(..len);
        Some(Self {
            file,
            starts: run(head.starts_at, (head.len as usize).div_ceil(BLOCK) * 4)?,
            refs: run(head.refs_at, head.len as usize * 4)?,
            blocks: run(head.blocks_at, head.blocks_len as usize)?,
            asked: run(head.asked_at, head.asked_len as usize * 4)?,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.refs.len() / 4
    }

    /// The units of a text; no units when it is not there.
    pub(crate) fn find(&self, text: &str) -> Option<Stored<'a>> {
        let mut walk = self.walk_from(text.as_bytes())?;
        while walk.next()? {
            match walk.text().cmp(text.as_bytes()) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return walk.stored(),
                std::cmp::Ordering::Greater => break,
            }
        }
        Some(Stored::List(&[]))
    }

    pub(crate) fn walk(&self) -> Walk<'a> {
        self.walk_block(0)
    }

    /// Walks through each block that has a text which is not covered.
    pub(crate) fn walks_of_uncovered(&self) -> impl Iterator<Item = Walk<'a>> {
        let (blocks, _) = self.asked.as_chunks::<4>();
        blocks.iter().map(|block| {
            let block = u32::from_le_bytes(*block) as usize;
            Walk { end: (block + 1) * BLOCK, ..self.walk_block(block) }
        })
    }

    /// Walks from the last block that begins at or below a text.
    pub(crate) fn walk_from(&self, text: &[u8]) -> Option<Walk<'a>> {
        let (starts, _) = self.starts.as_chunks::<4>();
        let block = starts.partition_point(|start| self.first_of(*start).is_some_and(|first| first <= text));
        Some(self.walk_block(block.saturating_sub(1)))
    }

    fn first_of(&self, start: [u8; 4]) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.blocks.get(u32::from_le_bytes(start) as usize..)?);
        reader.u8()?;
        let len = reader.u8()?;
        reader.take(usize::from(len))
    }

    fn walk_block(&self, block: usize) -> Walk<'a> {
        let start = u32_at(self.starts, block * 4).map_or(self.blocks.len(), |start| start as usize);
        let rest = Reader::new(self.blocks.get(start..).unwrap_or_default());
        Walk { texts: *self, rest, next: block * BLOCK, end: usize::MAX, text: Vec::new(), common: 0, covered: false }
    }
}

/// A walk through texts in their order.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    texts: Texts<'a>,
    rest: Reader<'a>,
    next: usize,
    end: usize,
    text: Vec<u8>,
    common: usize,
    covered: bool,
}

impl<'a> Walk<'a> {
    /// Steps on; says whether there is another text, or nothing when the block makes no sense.
    pub(crate) fn next(&mut self) -> Option<bool> {
        if self.rest.is_empty() || self.next >= self.end {
            return Some(false);
        }
        let (common, len) = (self.rest.u8()?, self.rest.u8()?);
        self.covered = common & COVERED != 0;
        self.common = usize::from(common & !COVERED);
        self.text.truncate(self.common);
        self.text.extend_from_slice(self.rest.take(usize::from(len))?);
        self.next += 1;
        Some(true)
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many bytes the text shares with the one before, as far as is written.
    pub(crate) fn common(&self) -> usize {
        self.common
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.covered
    }

    /// The units of the text.
    pub(crate) fn stored(&self) -> Option<Stored<'a>> {
        Stored::at(self.texts.file, u32_at(self.texts.refs, self.next.checked_sub(1)? * 4)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posting::Growing;

    #[test]
    fn texts_are_found_and_walked_in_their_order() {
        let mut texts: Vec<String> = (0..1_000).map(|number| format!("did:key:z{}", number * 7)).collect();
        texts.extend(["", "é", "éa", "a", "zz"].map(str::to_owned));
        texts.sort_unstable();
        let (mut out, mut writer, mut gathered) = (crate::bytes::begin(), TextsWriter::default(), Gathered::default());
        for (number, text) in texts.iter().enumerate() {
            gathered.clear();
            gathered.add_growing(&Growing::One(number as u32));
            writer.push(text.as_bytes(), number % 3 == 0, &mut gathered, &mut out).unwrap();
        }
        let head = writer.finish(&mut out).unwrap();
        let read = Texts::new(&out, &head).unwrap();
        let mut walk = read.walk();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!((walk.next(), walk.text()), (Some(true), text.as_bytes()));
            assert_eq!(walk.is_covered(), number % 3 == 0);
            let found = read.find(text).and_then(Stored::to_set).unwrap();
            assert_eq!(found.iter().collect::<Vec<u32>>(), [number as u32], "{text}");
        }
        assert_eq!(walk.next(), Some(false));
        let mut uncovered = 0;
        for mut walk in read.walks_of_uncovered() {
            while walk.next().unwrap() {
                uncovered += usize::from(!walk.is_covered());
            }
        }
        assert_eq!(uncovered, (0..texts.len()).filter(|number| number % 3 != 0).count());
        for absent in ["did:key:z1", "b", "zzz", "\u{1}"] {
            assert_eq!(read.find(absent).map(Stored::len), Some(0), "{absent}");
        }
        let mut walk = read.walk_from(b"did:key:z7").unwrap();
        while walk.next() == Some(true) && walk.text() < b"did:key:z7".as_slice() {}
        assert_eq!(walk.text(), b"did:key:z7");
    }
}
