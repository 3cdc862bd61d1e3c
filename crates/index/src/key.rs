//! RFC 0020 A.1: what a value is filed as.

pub(crate) use aql::key::{Ordered, decimal_key, is_first_of_key, moment_key, number_key};
use json::Node;

/// Bytes of a text that is filed whole; a longer one is filed by its hash and stays possible only.
pub(crate) const TEXT_MAX: usize = 64;

/// The key of a long text (FNV-1a): who makes two texts share one is asked about more often, and nothing else.
pub(crate) fn long_key(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a value is filed as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Filed<'a> {
    Null,
    Bool(bool),
    Number(u64),
    Text(&'a str),
    Array,
    Object,
}

impl<'a> Filed<'a> {
    pub(crate) fn of(node: Node<'a>) -> Self {
        match node.kind() {
            json::Kind::Null => Self::Null,
            json::Kind::Bool => Self::Bool(node.as_bool().unwrap_or_default()),
            json::Kind::Number => Self::Number(number_key(node.as_f64().unwrap_or_default())),
            json::Kind::String => Self::Text(node.as_str().unwrap_or_default()),
            json::Kind::Array => Self::Array,
            json::Kind::Object => Self::Object,
        }
    }
}
