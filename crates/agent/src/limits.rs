//! The bounds of an engagement: how much of a server one conversation may use.

/// What one engagement may use; whatever passes a bound ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that the model may attempt.
    pub calls: usize,
    /// Turns of the model.
    pub turns: usize,
    /// Bytes of everything that was said, put in and brought out.
    pub bytes: usize,
    /// Tokens that the model may read and write together, where somebody counts them.
    pub tokens: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { calls: 50, turns: 100, bytes: 4 * 1024 * 1024, tokens: None }
    }
}

impl Limits {
    /// Their names in the limits table, and what they are.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let mut named = vec![
            ("engagement.calls", self.calls as u64),
            ("engagement.turns", self.turns as u64),
            ("engagement.bytes", self.bytes as u64),
        ];
        named.extend(self.tokens.map(|tokens| ("engagement.tokens", tokens)));
        named
    }
}
