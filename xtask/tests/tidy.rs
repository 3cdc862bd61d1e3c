//! Tidiness is a test: the same rules as `cargo xtask tidy`, on this very tree.

#[test]
fn the_house_is_tidy() {
    let findings = xtask::tidy::findings(&xtask::root()).unwrap();
    let listed: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{} untidy places:\n{}", listed.len(), listed.join("\n"));
}
