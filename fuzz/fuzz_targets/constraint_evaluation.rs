//! RFC 0020 A.1, A.3: whole questions to both engines, with the fuzzer choosing them.
//!
//! The bytes are the choices of `conformance::differential`: constraint trees over records, projections, orders and
//! now and then a whole resolution with money. One differing byte is a finding.

#![no_main]

use conformance::chance::Chance;
use conformance::differential::round;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Err(difference) = round(&mut Chance::from_bytes(data)) {
        panic!("question {}\naql {}\nreference {}", difference.question, difference.fast, difference.twin);
    }
});
