//! The community's Ed25519 edge cases: which of 914 signatures strict rules let through.
//!
//! The vectors are data of another project and lie beside this one, if at all.

use std::path::Path;
use trust::{Algorithm, PublicKey};

#[test]
fn strict_rules_accept_a_pinned_set() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora/cctv/ed25519vectors.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: the Ed25519 edge cases are not beside the project");
        return;
    };
    let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 914);
    let mut accepted = std::collections::BTreeMap::<String, usize>::new();
    for vector in vectors {
        let text = |name: &str| vector[name].as_str().unwrap();
        let key = PublicKey::from_bytes(Algorithm::EdDsa, &hex(text("key")));
        if key.is_ok_and(|key| key.verifies(text("msg").as_bytes(), &hex(text("sig")))) {
            let flags = vector["flags"].as_array().into_iter().flatten();
            let flags: Vec<_> = flags.map(|flag| flag.as_str().unwrap()).collect();
            *accepted.entry(flags.join(" ")).or_default() += 1;
        }
    }
    // No point of small order, no encoding but the canonical one and no sum that is off by a small-order residue gets
    // through. What is left are honest signatures and keys that have a small-order part which cancels out; the usual
    // libraries accept those as well.
    assert_eq!(
        accepted.into_iter().collect::<Vec<_>>(),
        [
            (String::new(), 1),
            ("low_order_component_A".to_owned(), 7),
            ("low_order_component_R low_order_component_A".to_owned(), 35),
        ]
    );
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|start| u8::from_str_radix(&text[start..start + 2], 16).unwrap()).collect()
}
