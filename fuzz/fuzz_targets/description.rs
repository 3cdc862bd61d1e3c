//! ADP Table 1, ADP Interface, ANP-08: descriptions, definitions of interfaces and pages of discovery, as text.
//!
//! Whatever is read, the bytes are kept, a finding stands at a place of the document or right below one, links lead to the
//! web, and nothing is public that does not say so. What the strict accept, the lenient accept. What is JSON, YAML reads as
//! the same value or refuses. A method by JSON-RPC is the same after it was written out as OpenRPC.

#![no_main]

use description::{Access, Activation, Call, Definition, Findings, Mode, Page, parse_yaml, read};
use json::{Document, Node, Pointer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    describe(data);
    define(data);
    if let Ok(page) = Page::read(data, "https://a.example/.well-known/agent-descriptions") {
        assert!(page.items.iter().all(|item| description::is_web(&item.url)));
        assert!(page.next.is_none_or(|next| description::same_origin(&next, "https://a.example/")));
    }
    if let (Ok(yaml), Ok(json)) = (parse_yaml(data), Document::parse(data, &description::DEFINITION_LIMITS)) {
        assert!(yaml.root() == json.root(), "YAML reads another document");
    }
});

fn describe(data: &[u8]) {
    let Ok(reading) = read(data, None) else { return };
    assert_eq!(reading.bytes(), data);
    check(&reading.findings, Some(reading.document().root()));
    assert!(reading.links.iter().all(|link| description::is_web(&link.url)));
    let text = fuzzing::text(data);
    let own = reading.agent.interfaces.iter().map(|interface| &interface.security);
    for activation in own.chain([&Activation::Absent]) {
        let public = reading.access(activation) == Access::Public;
        assert!(!public || text.contains("nosec") || text.contains('\\'), "nobody said that this is public: {text}");
    }
}

fn check(findings: &Findings, root: Option<Node<'_>>) {
    assert!(findings.passes(Mode::Lenient) || !findings.passes(Mode::Strict), "the lenient are stricter");
    for finding in findings.all() {
        let above = finding.at.as_str().rsplit_once('/').map_or("", |(above, _)| above);
        let above = Pointer::parse(above).expect("a place is a pointer");
        assert!(root.is_none_or(|root| above.find(root).is_some()), "{} is at no place", finding.rule.number());
    }
}

fn define(data: &[u8]) {
    let Ok(definition) = Definition::parse(data) else { return };
    check(&definition.findings, None);
    let written = definition.to_openrpc();
    let Ok(document) = Document::of(&written) else { return };
    let again = Definition::read(document.root()).expect("what is written can be read");
    let called = definition.operations.iter().filter(|operation| operation.call == Call::Rpc);
    for (before, after) in called.zip(&again.operations) {
        assert_eq!(before.name, after.name);
        assert_eq!(before.params.len(), after.params.len());
    }
}
