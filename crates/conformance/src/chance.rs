//! Where random questions come from: a seeded generator, or bytes that a fuzzer chose.

/// A source of choices. The same seed or bytes give the same choices.
#[derive(Clone, Debug)]
pub struct Chance<'a> {
    bytes: &'a [u8],
    state: u64,
}

impl Chance<'static> {
    /// Choices from a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { bytes: &[], state: seed }
    }
}

impl<'a> Chance<'a> {
    /// Choices from bytes, then from a fixed seed when they are used up.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, state: 0 }
    }

    /// The next 64 random bits (SplitMix64 once the bytes are used up).
    pub fn bits(&mut self) -> u64 {
        if let Some((&first, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            // A byte decides small choices alone; larger ones take more.
            return u64::from(first);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.bits() % bound as u64) as usize }
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<'b, T>(&mut self, choices: &'b [T]) -> Option<&'b T> {
        let position = self.below(choices.len());
        choices.get(position)
    }

    /// One of several words.
    pub fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick(words).copied().unwrap_or_default()
    }
}
