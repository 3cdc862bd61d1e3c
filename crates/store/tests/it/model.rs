//! Random work against a map in memory, with the store closed and opened in between.

use crate::{put, withdraw};
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::{CommitError, Outcome, Store};

#[derive(Clone, Debug)]
enum Step {
    Put { id: u8, publisher: u8, body: u8 },
    Withdraw { id: u8, publisher: u8 },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..5u8, 0..2u8, 0..3u8).prop_map(|(id, publisher, body)| Step::Put { id, publisher, body }),
        3 => (0..5u8, 0..2u8).prop_map(|(id, publisher)| Step::Withdraw { id, publisher }),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Clone, Debug)]
struct Known {
    publisher: u8,
    body: u8,
    revision: u64,
    active: bool,
}

/// What the model says, and whether the store must have written a change.
fn expect(model: &mut BTreeMap<u8, Known>, step: &Step) -> Option<Result<(bool, u64), ()>> {
    match *step {
        Step::Put { id, publisher, body } => Some(match model.get_mut(&id) {
            Some(known) if known.publisher != publisher => Err(()),
            Some(known) if known.active && known.body == body => Ok((false, known.revision)),
            Some(known) => {
                *known = Known { publisher, body, revision: known.revision + 1, active: true };
                Ok((true, known.revision))
            }
            None => {
                model.insert(id, Known { publisher, body, revision: 1, active: true });
                Ok((true, 1))
            }
        }),
        Step::Withdraw { id, publisher } => Some(match model.get_mut(&id) {
            None => Err(()),
            Some(known) if known.publisher != publisher => Err(()),
            Some(known) => Ok((std::mem::replace(&mut known.active, false), known.revision)),
        }),
        Step::Reopen => None,
    }
}

fn perform(store: &Store, step: &Step) -> Result<(bool, u64), ()> {
    let batch = match *step {
        Step::Put { id, publisher, body } => put(&id.to_string(), &publisher.to_string(), &body.to_string()),
        Step::Withdraw { id, publisher } => withdraw(&id.to_string(), &publisher.to_string()),
        Step::Reopen => return Err(()),
    };
    match store.commit(batch) {
        Ok(committed) => match committed.outcomes[0] {
            Outcome::Changed { revision, .. } => Ok((true, revision)),
            Outcome::Unchanged { revision } => Ok((false, revision)),
        },
        Err(CommitError::CannotWrite { reason, .. }) => panic!("{reason}"),
        Err(_) => Err(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_store_does_what_a_map_does(steps in proptest::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let (mut model, mut changes) = (BTreeMap::new(), 0);
        for step in &steps {
            match expect(&mut model, step) {
                None => {
                    drop(store);
                    store = Store::open(folder.path()).unwrap();
                }
                Some(expected) => {
                    changes += u64::from(matches!(expected, Ok((true, _))));
                    prop_assert_eq!(perform(&store, step), expected);
                }
            }
            prop_assert_eq!(store.sequence(), changes);
        }
        for (id, known) in &model {
            let record = store.record(&id.to_string()).unwrap();
            prop_assert_eq!(record.is_some(), known.active);
            if let Some(record) = record {
                prop_assert_eq!((record.body, record.revision), (known.body.to_string().into_bytes(), known.revision));
            }
        }
        let soundness = store.check().unwrap();
        prop_assert!(soundness.flaws.is_empty(), "{:?}", soundness);
        prop_assert_eq!(soundness.active, model.values().filter(|known| known.active).count() as u64);
    }
}
