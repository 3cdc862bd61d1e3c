//! The bounds of what tools, models and other agents may send to a server, by name, for the table that it publishes.

use crate::configuration::{ENTRIES_MAX, MEMORY_MAX};
use crate::definition::{DESCRIPTION_BYTES_MAX, SCHEMA_BYTES_MAX};
use crate::model::provider;
use crate::tool::{OUTPUT_BYTES_MAX, REMOTE_TIME_MAX, TIME_DEFAULT, TIME_MAX};
use crate::tools;
use json::{Map, Value, json};

/// Every bound, by name.
pub fn limits() -> Value {
    let ours = [
        ("entries", ENTRIES_MAX as u64),
        ("description_bytes", DESCRIPTION_BYTES_MAX as u64),
        ("schema_bytes", SCHEMA_BYTES_MAX as u64),
        ("output_bytes", OUTPUT_BYTES_MAX as u64),
        ("call_seconds_default", TIME_DEFAULT.as_secs()),
        ("call_seconds", TIME_MAX.as_secs()),
        ("remote_call_seconds", REMOTE_TIME_MAX.as_secs()),
        ("memory_turns", MEMORY_MAX),
    ];
    let all = ours.into_iter().chain(tools::bounds()).chain(provider::bounds());
    Value::Object(all.map(|(name, bound)| (name.to_owned(), json!(bound))).collect::<Map>())
}
