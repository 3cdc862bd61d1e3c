//! The operator's file: what is given to whom, and what is refused where.

use crate::world::{Nobody, read};
use host::{Budget, EngagementSetting, Http};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const FILE: &str = "
model: cheap
budget: {tokens: 1000, seconds: 60}
models:
  cheap: {kind: scripted, script: {turns: [{text: hello}]}}
  dear: {kind: scripted, script: {turns: [{text: hello}], price: {output_per_million: '15.00'}}}
agents:
  hr-agent: {model: dear, budget: {tokens: 5}}
";

#[test]
fn an_agent_is_given_its_own_settings_and_else_those_of_the_server() {
    let configuration = read(FILE, Path::new(".")).unwrap();
    let hr = configuration.agent("hr-agent");
    assert_eq!(hr.model.as_deref(), Some("dear"));
    assert_eq!(hr.budget, Budget { tokens: Some(5), money_micros: None, time: Some(Duration::from_secs(60)) });
    let other = configuration.agent("anybody");
    assert_eq!((other.model.as_deref(), other.budget.tokens), (Some("cheap"), Some(1000)));
    let http: Arc<dyn Http> = Arc::new(Nobody);
    assert_eq!(configuration.model("dear", &http).unwrap().price().output_micros, 15_000_000);
    assert!(configuration.model("unheard-of", &http).is_none());
}

#[test]
fn what_engagements_are_allowed_is_said_by_the_operator_or_not_allowed() {
    let silent = read(FILE, Path::new(".")).unwrap();
    assert_eq!((silent.engagements(), silent.remote_time()), (EngagementSetting::default(), host::TIME_DEFAULT));
    let text = "engagements: {ask_user: true, denial_ends: true}\nremote_agents: {timeout_seconds: 3600}";
    let said = read(text, Path::new(".")).unwrap();
    let expected = EngagementSetting { ask_user: true, lends_to_strangers: false, denial_ends: true };
    assert_eq!((said.engagements(), said.remote_time()), (expected, host::REMOTE_TIME_MAX));
    let lends = read("engagements: {lends_to_strangers: true}", Path::new(".")).unwrap().engagements();
    assert_eq!(lends, EngagementSetting { lends_to_strangers: true, ..EngagementSetting::default() });
}

#[test]
fn what_nobody_knows_is_refused_with_its_place() {
    for (text, at) in [
        ("tols: {}", "/tols"),
        ("tools: []", "/tools"),
        ("tools: {A: {kind: static}}", "/tools/A"),
        ("tools: {a_b: {kind: static}}", "/tools/a_b"),
        ("tools: {a: {description: x}}", "/tools/a/kind"),
        ("tools: {a: {kind: shell, description: x}}", "/tools/a/kind"),
        ("tools: {a: {kind: static, returns: 1}}", "/tools/a/description"),
        ("tools: {a: {kind: static, description: x}}", "/tools/a/returns"),
        ("tools: {a: {kind: static, description: x, returns: 1, retruns: 2}}", "/tools/a/retruns"),
        ("tools: {a: {kind: static, description: x, returns: 1, input: {type: 7}}}", "/tools/a/input"),
        ("tools: {a: {kind: static, description: x, returns: 1, timeout_seconds: 0}}", "/tools/a/timeout_seconds"),
        ("tools: {a: {kind: static, description: x, returns: 1, timeout_seconds: 301}}", "/tools/a/timeout_seconds"),
        ("tools: {a: {kind: command, description: x, command: ls -l}}", "/tools/a/command"),
        ("tools: {a: {kind: command, description: x, command: []}}", "/tools/a/command"),
        ("credentials: {static: {bot: {secret: x}}}", "/credentials/static/bot/env"),
        ("tools: {a: {kind: anp}}", "/tools/a/agent"),
        ("tools: {a: {kind: anp, agent: x, rename: {b: C}}}", "/tools/a/rename/b"),
        ("tools: {a: {kind: static, description: x, returns: 1, consent: 'http://b.example'}}", "/tools/a/consent"),
        ("tools: {a: {kind: static, description: x, returns: 1, writes: 1}}", "/tools/a/writes"),
        ("agents: {a: {memory: 101}}", "/agents/a/memory"),
        ("telemetry: {content: 1}", "/telemetry/content"),
        ("engagements: {ask_user: 1}", "/engagements/ask_user"),
        ("engagements: {ask: true}", "/engagements/ask"),
        ("remote_agents: {timeout_seconds: 0}", "/remote_agents/timeout_seconds"),
        ("remote_agents: {timeout_seconds: 3601}", "/remote_agents/timeout_seconds"),
        ("remote_agents: {timeout: 1}", "/remote_agents/timeout"),
        ("model: gone", "/model"),
        ("agents: {a: {model: gone}}", "/agents/a/model"),
        ("models: {a: {kind: psychic}}", "/models/a/kind"),
        ("models: {a: {kind: scripted, file: nowhere.yaml}}", "/models/a/file"),
        ("budget: {tokens: -1}", "/budget/tokens"),
        ("budget: {money: '1.1234567'}", "/budget/money"),
        ("a: 1\na: 2", "/a"),
    ] {
        let error = read(text, Path::new(".")).unwrap_err();
        assert_eq!(error.at.as_str(), at, "{text}: {error}");
        assert_eq!(error.code(), "host_configuration_invalid");
    }
}
