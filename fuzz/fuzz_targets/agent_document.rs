//! OAS Agent: documents of agents, as text.
//!
//! Whatever is read, the bytes are kept, names before the Engagement and before the model are distinct, and an engagement
//! can begin. Whatever is refused, there is at least one mistake, and each has a place.

#![no_main]

use agent::{Agent, Begun, Engagement, Grade, NameRule, Next, Registry, Step, Wait, next};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

fuzz_target!(|data: &[u8]| {
    for rule in [NameRule::Text, NameRule::Both] {
        match Agent::read_as(data, rule) {
            Ok(agent) => taken(&agent, data),
            Err(findings) => {
                assert!(!findings.is_empty());
                assert!(findings.iter().all(|finding| finding.grade() == Grade::Error));
            }
        }
    }
});

fn taken(agent: &Agent, data: &[u8]) {
    assert_eq!(agent.source(), data);
    assert!(agent.warnings.iter().all(|finding| finding.grade() == Grade::Warning && finding.position.is_some()));
    let keys: BTreeSet<&str> = agent.capabilities.iter().map(|capability| capability.key.as_str()).collect();
    let aliases: BTreeSet<&str> = agent.capabilities.iter().map(|capability| capability.alias.as_str()).collect();
    assert_eq!((keys.len(), aliases.len()), (agent.capabilities.len(), agent.capabilities.len()));
    assert!(aliases.iter().all(|alias| (1..=64).contains(&alias.len())));
    let mut engagement = Engagement::begin(Begun {
        id: "e".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        agent: agent.name.to_string(),
        document: agent.digest().to_owned(),
        user: None,
        on_behalf_of: None,
        memory: Vec::new(),
        ..Begun::default()
    });
    let registry = Registry::default();
    assert_eq!(next(agent, &registry, &engagement), Next::Wait(Wait::User));
    engagement.record(Step::UserSaid { text: "x".to_owned() }).expect("the user begins");
    next(agent, &registry, &engagement);
}
