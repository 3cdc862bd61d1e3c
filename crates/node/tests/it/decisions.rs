//! RFC 0020 §5: a decision record by itself.

use crate::world::{World, code, intent, manifest, person, sign};
use json::{Value, json};

#[test]
fn a_decision_record_can_be_fetched_alone() {
    let mut world = World::new();
    for (name, wanted) in [("a", 1), ("b", 2), ("c", 1)] {
        world.put(&person(2), "manifest", manifest(&person(2), name, json!({"wanted": wanted})));
    }
    let with = json!({"constraints": {"path": "/wanted", "operator": "eq", "value": 1}});
    let message = sign(intent(&person(1), with), &person(1));
    let answer = world.answer(&message, None).unwrap();
    let page = world.audited(&message, &answer, 0);
    for reopened in [false, true] {
        let entries = ["candidates", "rejected"].map(|list| page[list].as_array().unwrap().clone()).concat();
        assert_eq!(entries.len(), 3);
        for entry in entries {
            check(&world, &page, &entry);
        }
        if !reopened {
            world.crash();
        }
    }
    let response = page["response_id"].as_str().unwrap();
    let one_off = format!("{}x#candidate-1", &response[..response.len() - 1]);
    let unknown =
        [format!("{response}#candidate-3"), response.to_owned(), one_off, "urn:x#candidate-1".into(), "#".into()];
    for id in unknown {
        assert_eq!(code(world.node().decision(&id)), "decision_not_found", "{id}");
    }
}

fn check(world: &World, page: &Value, entry: &Value) {
    let id = entry["decision_record"]["decision_id"].as_str().unwrap();
    let said = world.opened(&world.node().decision(id).unwrap());
    assert_eq!(said["type"], "oap.decision");
    for member in ["candidate_id", "decision_record"] {
        assert_eq!(said[member], entry[member]);
    }
    for member in ["intent_id", "response_id", "resolver_did"] {
        assert_eq!(said[member], page[member]);
    }
}
