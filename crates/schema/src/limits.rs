//! RFC 0024 §8: every bound on what strangers bring here, under the name that a refusal has for it.

use crate::mapping::{MAPPING_LIMITS, OUTPUT_BYTES_FREE, OUTPUT_FACTOR_MAX, STEPS_MAX, path, rule};
use crate::{profile, validate};
use json::{Value, json};

/// The bounds on mappings, profiles and schemas, as a table to be published.
pub fn limits() -> Value {
    json!({
        "mapping": {
            "bytes": MAPPING_LIMITS.bytes, "nodes": MAPPING_LIMITS.nodes,
            "steps": STEPS_MAX, "rules": rule::RULES_MAX, "depth": rule::DEPTH_MAX, "entries": rule::ENTRIES_MAX,
            "path_bytes": path::PATH_BYTES_MAX, "path_segments": path::PATH_SEGMENTS_MAX,
            "output_factor": OUTPUT_FACTOR_MAX, "output_bytes_free": OUTPUT_BYTES_FREE,
        },
        "profile": {
            "schemas": profile::SCHEMAS_MAX, "versions": profile::VERSIONS_MAX, "mappings": profile::MAPPINGS_MAX,
        },
        "schema": {
            "subschemas": validate::SUBSCHEMAS_MAX, "depth": validate::DEPTH_MAX,
            "references": validate::REFERENCES_MAX, "alternatives": validate::WORK_MAX, "effort": validate::EFFORT_MAX,
            "pattern_chars": validate::PATTERN_CHARS_MAX, "pattern_places": validate::PATTERN_PLACES_MAX,
            "pattern_bytes": validate::PATTERN_BYTES_MAX,
        },
    })
}
