//! RFC 0020 A.7: the named bounds that keep evaluation polynomial.
//!
//! The text relies on bounds that the published schema does not have; these are ours. A node publishes them in its
//! manifest, so that two resolvers refuse the same questions.

/// Bounds on one intent.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bounds on the JSON itself.
    pub json: json::Limits,
    /// Leaves of the constraint tree.
    pub leaves: usize,
    /// Nodes from the root of the constraint tree to its deepest leaf.
    pub tree_depth: usize,
    /// Entries of an `in` or `not_in` list.
    pub list: usize,
    /// Pointers of a projection, `include` and `exclude` together.
    pub pointers: usize,
    /// Bytes of a path.
    pub path_bytes: usize,
    /// Segments of a path.
    pub path_segments: usize,
    /// Descendant operators in a path; two in a row mean what one means and are refused below this limit, too.
    pub path_descendants: usize,
    /// Characters of a pattern.
    pub pattern_chars: usize,
    /// Patterns of one intent.
    pub patterns: usize,
    /// Bytes of a compiled pattern.
    pub pattern_bytes: usize,
    /// Entries of a budget's distribution.
    pub top_k: u64,
    /// Seconds that a one-shot intent may stay open.
    pub validity_seconds: i64,
    /// Seconds that a subscription may stay open.
    pub subscription_seconds: i64,
    /// Seconds by which the issuer's clock may be ahead of ours.
    pub skew_seconds: i64,
}

impl Limits {
    /// What a node accepts from strangers.
    pub const STANDARD: Self = Self {
        json: json::Limits::INTENT,
        leaves: 256,
        tree_depth: 16,
        list: 1_000,
        pointers: 128,
        path_bytes: 512,
        path_segments: 32,
        path_descendants: 2,
        pattern_chars: 1_000,
        patterns: 8,
        pattern_bytes: 256 * 1024,
        top_k: 1_000,
        validity_seconds: 24 * 3600,
        subscription_seconds: 92 * 24 * 3600,
        skew_seconds: 300,
    };
}

/// Bounds on the work of one evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Fuel {
    /// Steps of the backtracking engine for one subject.
    pub match_steps: u64,
    /// Steps of the backtracking engine for one intent.
    pub intent_steps: u64,
    /// Values visited and blocks of bytes compared for one intent.
    pub visits: u64,
}

impl Fuel {
    /// What a stranger's intent may cost.
    pub const STANDARD: Self = Self { match_steps: 100_000, intent_steps: 5_000_000, visits: 2_000_000 };
    /// No bound on visits; for work on one's own machine.
    pub const OWN: Self = Self { match_steps: 100_000, intent_steps: u64::MAX, visits: u64::MAX };
}
