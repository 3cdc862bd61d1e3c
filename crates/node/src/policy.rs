//! RFC 0020 §3.6 and §3.7: the policy stack, applied at the resolver, and the decision record it leaves.
//!
//! Four layers run in their order: platform, legal, organization, personal. The first that blocks is the last that
//! runs. What each of them asks stands in `docs/decisions/0051`.
//!
//! INVARIANT: pure: the same record, intent, delegation and rules give the same verdict.

use crate::refusal::Error;
use aql::{Amount, Category, Intent};
use json::{Document, Limits, Node, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use trust::Delegation;

/// The operator's own rules, in the data folder; without the file there are none.
pub(crate) const RULES_FILE: &str = "policy.json";
/// Bytes of that file.
const RULES_BYTES: usize = 256 * 1024;

/// What the organization that runs the node does not let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    blocked_tools: BTreeSet<String>,
    blocked_side_effects: BTreeSet<String>,
    blocked_data_classes: BTreeSet<String>,
}

/// What the stack said about one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    layers: Vec<&'static str>,
    rules: Vec<&'static str>,
    conditions: Vec<String>,
    outcome: Outcome,
}

/// From the mildest to the strictest; the strictest that any layer says is the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allow,
    AllowWithConditions,
    RequireConsent,
    Block,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowWithConditions => "allow_with_conditions",
            Self::RequireConsent => "require_consent",
            Self::Block => "block",
        }
    }
}

/// What the layers look at.
struct Case<'a> {
    record: Node<'a>,
    intent: &'a Intent,
    delegation: Option<&'a Delegation>,
    rules: &'a Rules,
}

type Layer = fn(&Case<'_>, &mut Verdict);

const LAYERS: [(&str, Layer); 4] = [("L1", platform), ("L2", legal), ("L3", organization), ("L4", personal)];

/// Runs the stack over a candidate of the categories it is for; `None` for all others.
pub(crate) fn decide(
    record: Node<'_>,
    intent: &Intent,
    delegation: Option<&Delegation>,
    rules: &Rules,
) -> Option<Verdict> {
    match intent.category {
        Category::Action | Category::Delegation => {}
        Category::Commercial | Category::Knowledge | Category::Discovery | Category::Subscription => return None,
    }
    let case = Case { record, intent, delegation, rules };
    let mut verdict =
        Verdict { layers: Vec::new(), rules: Vec::new(), conditions: Vec::new(), outcome: Outcome::Allow };
    for (name, layer) in LAYERS {
        verdict.layers.push(name);
        layer(&case, &mut verdict);
        if verdict.blocks() {
            break;
        }
    }
    Some(verdict)
}

/// L1: what holds on this platform, first of all RFC 0017: what cannot be undone waits.
fn platform(case: &Case<'_>, verdict: &mut Verdict) {
    if case.intent.category != Category::Action {
        return;
    }
    match case.text("side_effects") {
        None => {
            verdict.allow_if("platform.side_effects_undeclared", "the effects are not declared; ask before it runs")
        }
        Some("irreversible") => cooling_off(case, verdict),
        Some(_) => {}
    }
}

fn cooling_off(case: &Case<'_>, verdict: &mut Verdict) {
    let least = case.text("irreversibility_class").and_then(|class| cooling_off_least(class, case.intent));
    let declared = case.record.get("irreversibility_cooling_off_seconds").and_then(Node::as_u64);
    match (least, declared) {
        (Some(least), Some(declared)) if declared >= least => {
            // How long is the record's to say, and the projection's to show.
            let condition = "it runs after its cooling-off time, and consent can be withdrawn until then";
            verdict.allow_if("platform.cooling_off", condition);
        }
        (Some(_), Some(_)) => verdict.block("platform.cooling_off_too_short"),
        _ => verdict.block("platform.irreversibility_undeclared"),
    }
}

/// Amounts above this, in units of the currency, wait for a day.
const LARGE: u128 = 1_000;
const HOUR: u64 = 3_600;

/// The shortest time that an irreversible action of a class may wait (RFC 0017 §4.1).
fn cooling_off_least(class: &str, intent: &Intent) -> Option<u64> {
    let amount = intent.budget.as_ref().map(|budget| budget.ceiling.amount);
    let large = amount.is_some_and(|amount| amount > Amount::from_units(LARGE * 10_u128.pow(18)));
    match class {
        "legal_status_change" | "immovable_property" => Some(72 * HOUR),
        "bodily_intervention" => Some(24 * HOUR),
        "irreversible_financial" if large => Some(24 * HOUR),
        "irreversible_financial" | "public_disclosure" => Some(HOUR),
        _ => None,
    }
}

/// L2: a person decides where the record or its risk class asks for one.
fn legal(case: &Case<'_>, verdict: &mut Verdict) {
    if case.record.get("requires_consent").and_then(Node::as_bool) == Some(true) {
        verdict.ask("legal.consent_required", "the principal consents before it is invoked");
    }
    if case.text("risk_class") == Some("high") {
        verdict.ask("legal.high_risk", "a person oversees it: its risk class is high");
    }
}

/// L3: what the organization that runs the node wants.
fn organization(case: &Case<'_>, verdict: &mut Verdict) {
    let tool = case.text("tool_did").or_else(|| case.record.get("tool")?.get("did")?.as_str());
    if tool.is_some_and(|tool| case.rules.blocked_tools.contains(tool)) {
        verdict.block("organization.tool_blocked");
    }
    if case.text("side_effects").is_some_and(|effect| case.rules.blocked_side_effects.contains(effect)) {
        verdict.block("organization.side_effects_blocked");
    }
    if case.data_classes().any(|class| case.rules.blocked_data_classes.contains(class)) {
        verdict.block("organization.data_class_blocked");
    }
}

/// L4: how far the principal lets the one who asks go, and who pays (RFC 0004 §3.4).
fn personal(case: &Case<'_>, verdict: &mut Verdict) {
    if let Some(delegation) = case.delegation {
        let scope = &delegation.scope;
        let action = case.text("action_id").or_else(|| case.text("id"));
        if case.intent.category == Category::Action && !action.is_some_and(|action| scope.actions.contains(action)) {
            verdict.block("personal.action_outside_delegation");
        }
        let allowed = |class| scope.data_categories.as_ref().is_none_or(|allowed| allowed.contains(class));
        if !case.data_classes().all(allowed) {
            verdict.block("personal.data_outside_delegation");
        }
        let deepest = case.record.get("delegation").and_then(|block| block.get("max_delegation_depth"));
        if deepest.and_then(Node::as_u64).is_some_and(|deepest| delegation.tokens.len() as u64 >= deepest) {
            verdict.block("personal.delegation_too_deep");
        }
    }
    if case.intent.category == Category::Delegation {
        let payer = case.delegation.map_or(case.intent.issuer_did.as_str(), |delegation| delegation.payer.as_str());
        verdict.allow_if("personal.cost_attribution", format!("the cost is attributed to {payer}"));
    }
}

impl<'a> Case<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.record.get(name)?.as_str()
    }

    fn data_classes(&self) -> impl Iterator<Item = &'a str> {
        self.record.get("data_classes_in").into_iter().flat_map(Node::elements).filter_map(Node::as_str)
    }
}

impl Verdict {
    fn say(&mut self, rule: &'static str, outcome: Outcome) {
        self.rules.push(rule);
        self.outcome = self.outcome.max(outcome);
    }

    fn block(&mut self, rule: &'static str) {
        self.say(rule, Outcome::Block);
    }

    fn ask(&mut self, rule: &'static str, condition: &str) {
        self.say(rule, Outcome::RequireConsent);
        self.conditions.push(condition.to_owned());
    }

    fn allow_if(&mut self, rule: &'static str, condition: impl Into<String>) {
        self.say(rule, Outcome::AllowWithConditions);
        self.conditions.push(condition.into());
    }

    /// Whether the candidate must not be returned.
    pub(crate) fn blocks(&self) -> bool {
        self.outcome == Outcome::Block
    }

    /// Why, for the decision record of the candidate.
    pub(crate) fn explanation(&self) -> String {
        format!("policy_block: {}", self.rules.last().copied().unwrap_or_default())
    }

    /// The record of the core protocol's policy stack.
    pub(crate) fn to_record(&self, decision_id: &str, evaluated_at: &str) -> Value {
        let explanation = match self.outcome {
            Outcome::Allow => "no layer objects".to_owned(),
            Outcome::AllowWithConditions => "no layer objects as long as the conditions are kept".to_owned(),
            Outcome::RequireConsent => "a person has to consent".to_owned(),
            Outcome::Block => self.explanation(),
        };
        json!({
            "decision_id": decision_id,
            "evaluated_at": evaluated_at,
            "layers_evaluated": self.layers,
            "applied_rules": self.rules,
            "outcome": self.outcome.name(),
            "conditions": self.conditions,
            "explanation": explanation,
        })
    }
}

impl Rules {
    /// Reads the operator's rules; a file that cannot be read stops the node, since it would let through too much.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(RULES_FILE);
        let wrong = |what: &dyn std::fmt::Display| Error::fault(format!("{}: {what}", path.display()));
        match std::fs::read(&path) {
            Ok(bytes) if bytes.len() <= RULES_BYTES => Self::read(&bytes).map_err(|what| wrong(&what)),
            Ok(_) => Err(wrong(&"the rules are longer than 256 KiB")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(&error)),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let document = Document::parse(bytes, &Limits::DOCUMENT).map_err(|error| error.to_string())?;
        let mut rules = Self::default();
        if !document.root().is_object() {
            return Err("the rules are an object".into());
        }
        for (name, list) in document.root().members() {
            let into = match name {
                "blocked_tools" => &mut rules.blocked_tools,
                "blocked_side_effects" => &mut rules.blocked_side_effects,
                "blocked_data_classes" => &mut rules.blocked_data_classes,
                _ => return Err(format!("there is no rule `{name}`")),
            };
            let texts: Option<BTreeSet<String>> =
                list.elements().map(|text| text.as_str().map(str::to_owned)).collect();
            *into = texts.filter(|_| list.kind() == json::Kind::Array).ok_or(format!("`{name}` is a list of texts"))?;
        }
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(category: &str, more: Value) -> Intent {
        let mut intent = json!({
            "intent_id": "urn:oap:intent:x", "issuer_did": "did:key:z", "category": category,
            "constraints": {"path": "", "operator": "exists", "value": true}, "projection": {"include": ["/"]},
            "validity": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
        });
        intent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Intent::read(Document::of(&intent).unwrap().root(), &aql::Limits::STANDARD).unwrap()
    }

    fn rules() -> Rules {
        let rules = json!({"blocked_tools": ["did:web:bad.example"], "blocked_side_effects": ["external"],
            "blocked_data_classes": ["health"]});
        Rules::read(rules.to_string().as_bytes()).unwrap()
    }

    fn delegation() -> Delegation {
        let did = |n: u8| trust::SigningKey::from_seed([n; 32]).did_key();
        let scope = trust::Scope {
            actions: BTreeSet::from(["draw".into()]),
            data_categories: Some(BTreeSet::from(["public".into()])),
            ..trust::Scope::default()
        };
        let token = trust::Token {
            issuer: did(1),
            name: "t".into(),
            max_invocations: None,
            max_wall_time_seconds: None,
            expires: 0,
        };
        Delegation { principal: did(1), holder: did(2), payer: did(1), scope, expires: 0, tokens: vec![token] }
    }

    /// How the stack decides on an action: how many layers ran, the outcome, the last rule.
    fn stack(record: &Value, budget: &str, delegation: Option<&Delegation>) -> (usize, &'static str, &'static str) {
        let budget = json!({"budget": {"amount": budget, "currency": "EUR", "allocation": "single_winner"}});
        let record = Document::of(record).unwrap();
        let verdict = decide(record.root(), &intent("action", budget), delegation, &rules()).unwrap();
        (verdict.layers.len(), verdict.outcome.name(), verdict.rules.last().copied().unwrap_or_default())
    }

    #[test]
    fn the_first_layer_that_blocks_is_the_last_that_runs() {
        let cases = [
            (json!({"side_effects": "read"}), (4, "allow", "")),
            (json!({}), (4, "allow_with_conditions", "platform.side_effects_undeclared")),
            (json!({"side_effects": "irreversible"}), (1, "block", "platform.irreversibility_undeclared")),
            (
                json!({"side_effects": "read", "requires_consent": true}),
                (4, "require_consent", "legal.consent_required"),
            ),
            (json!({"side_effects": "read", "risk_class": "high"}), (4, "require_consent", "legal.high_risk")),
            (
                json!({"side_effects": "read", "tool_did": "did:web:bad.example"}),
                (3, "block", "organization.tool_blocked"),
            ),
            (json!({"side_effects": "external"}), (3, "block", "organization.side_effects_blocked")),
            (
                json!({"side_effects": "read", "data_classes_in": ["public", "health"]}),
                (3, "block", "organization.data_class_blocked"),
            ),
            (
                json!({"side_effects": "irreversible", "tool_did": "did:web:bad.example"}),
                (1, "block", "platform.irreversibility_undeclared"),
            ),
        ];
        for (record, expected) in cases {
            assert_eq!(stack(&record, "1", None), expected, "{record}");
        }
    }

    #[test]
    fn what_cannot_be_undone_waits_as_long_as_its_class_demands() {
        let day = 86_400;
        let cases = [
            ("legal_status_change", 3 * day, "1"),
            ("immovable_property", 3 * day, "1"),
            ("bodily_intervention", day, "1"),
            ("irreversible_financial", 3_600, "1000"),
            ("irreversible_financial", day, "1000.01"),
            ("public_disclosure", 3_600, "5000"),
        ];
        for (class, least, budget) in cases {
            let waits = |seconds: i64| {
                let record = json!({"side_effects": "irreversible", "irreversibility_class": class,
                    "irreversibility_cooling_off_seconds": seconds});
                stack(&record, budget, None)
            };
            assert_eq!(waits(least), (4, "allow_with_conditions", "platform.cooling_off"), "{class}");
            assert_eq!(waits(least - 1), (1, "block", "platform.cooling_off_too_short"), "{class}");
        }
        let unknown = json!({"side_effects": "irreversible", "irreversibility_class": "other",
            "irreversibility_cooling_off_seconds": 9_999_999});
        assert_eq!(stack(&unknown, "1", None), (1, "block", "platform.irreversibility_undeclared"));
    }

    #[test]
    fn a_delegate_reaches_as_far_as_its_principal_lets_it() {
        let delegation = delegation();
        let check = |record: Value| stack(&record, "1", Some(&delegation));
        assert_eq!(check(json!({"side_effects": "read", "action_id": "draw"})), (4, "allow", ""));
        let outside = (4, "block", "personal.action_outside_delegation");
        assert_eq!(check(json!({"side_effects": "read", "action_id": "sell"})), outside);
        assert_eq!(check(json!({"side_effects": "read"})), outside);
        let data = json!({"side_effects": "read", "action_id": "draw", "data_classes_in": ["location"]});
        assert_eq!(check(data), (4, "block", "personal.data_outside_delegation"));
    }

    #[test]
    fn a_delegated_task_is_paid_by_whoever_gave_the_authority() {
        let (delegation, record) =
            (delegation(), Document::of(&json!({"delegation": {"max_delegation_depth": 2}})).unwrap());
        let intent = intent("delegation", json!({}));
        let paid = |delegation: Option<&Delegation>| decide(record.root(), &intent, delegation, &rules()).unwrap();
        assert_eq!(paid(None).conditions, ["the cost is attributed to did:key:z"]);
        assert_eq!(paid(Some(&delegation)).conditions, [format!("the cost is attributed to {}", delegation.payer)]);
        let deeper =
            Delegation { tokens: [delegation.tokens.clone(), delegation.tokens.clone()].concat(), ..delegation };
        assert!(paid(Some(&deeper)).blocks());
    }

    #[test]
    fn no_other_category_meets_the_stack() {
        let record = Document::of(&json!({"side_effects": "irreversible"})).unwrap();
        for category in ["commercial", "knowledge", "discovery"] {
            assert_eq!(decide(record.root(), &intent(category, json!({})), None, &Rules::default()), None);
        }
    }

    #[test]
    fn rules_that_cannot_be_read_are_told() {
        for text in ["", "[]", "{\"blocked_tool\":[]}", "{\"blocked_tools\":\"x\"}", "{\"blocked_tools\":[1]}"] {
            assert!(Rules::read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(Rules::read(b"{}"), Ok(Rules::default()));
    }
}
