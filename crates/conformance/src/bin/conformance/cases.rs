//! What the cases of each corpus mean, as the tests of the crates have it that they are about.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, and a case that cannot be read ends the run"
)]

#[path = "../../../../agent/tests/it/corpus.rs"]
pub(crate) mod agent;
#[path = "../../../../description/tests/it/corpus.rs"]
pub(crate) mod description;
#[path = "../../../../payment/tests/it/corpus.rs"]
pub(crate) mod payment;
#[path = "../../../../schema/tests/it/corpus.rs"]
pub(crate) mod schema;
#[path = "../../../../trust/tests/it/wba.rs"]
pub(crate) mod wba;
