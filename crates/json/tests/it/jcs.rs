//! RFC 8785: the published inputs give the published bytes.
//!
//! One input holds a number beyond 2^53, which we refuse by intention; with a smaller one in its place the rest of it
//! is checked as well.

use json::{Document, Limits, canonical};

/// The one number of the vectors that no reader of ours accepts: as it is written, and as it is canonical.
const BEYOND: (&str, &str) = ("1E30", "1e+30");

#[test]
fn the_published_vectors_have_their_bytes() {
    let Some(folder) = crate::beside("jcs/testdata") else { return };
    let mut refused = Vec::new();
    for name in ["arrays", "french", "structures", "unicode", "values", "weird"] {
        let read = |part: &str| std::fs::read_to_string(folder.join(part).join(format!("{name}.json"))).unwrap();
        let (mut input, mut output) = (read("input"), read("output"));
        if let Err(error) = Document::parse(input.as_bytes(), &Limits::DOCUMENT) {
            refused.push((name, error.code.name(), error.at.to_string()));
            input = input.replace(BEYOND.0, "7");
            output = output.replace(BEYOND.1, "7");
        }
        let document = Document::parse(input.as_bytes(), &Limits::DOCUMENT).unwrap();
        assert_eq!(String::from_utf8(canonical(document.root())).unwrap(), output, "{name}");
        let again = Document::parse(output.as_bytes(), &Limits::DOCUMENT).unwrap();
        assert_eq!(canonical(again.root()), output.as_bytes(), "{name}");
    }
    assert_eq!(refused, [("values", "number_out_of_range", "/numbers/1".to_owned())]);
}
