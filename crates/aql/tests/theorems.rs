//! RFC 0020 A.4, A.5, A.6, A.7, A.8: the five theorems, as tests that carry their names.
//!
//! Random intents and candidates come from the generators of the differential run, so that what is proved here on
//! thousands of them is the same language that is compared there on millions.
#![cfg(test)]

#[path = "theorems/oracle.rs"]
mod oracle;

use aql::{Candidate, Constraints, Evaluator, Fuel, Intent, Limits, Operator, Outcome, OverBudget, Resolution};
use conformance::chance::Chance;
use conformance::differential::compare_resolution;
use conformance::{Answer, Case, Fast, Implementation, generate};
use json::{Document, Pointer, Value, json};
use oracle::{Cost, Standing};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A random intent with candidates that often have to do with it.
struct Question {
    intent: Value,
    candidates: Vec<Value>,
}

impl Question {
    /// The answers of A.2 need an intent that is read; a flawed one is asked again with the next choices.
    fn draw(chance: &mut Chance<'_>) -> Self {
        loop {
            let candidates: Vec<Value> = (0..6).map(|number| generate::candidate(chance, number)).collect();
            let first = candidates[0].get("record").unwrap_or(&candidates[0]);
            let mut intent = generate::intent(chance, first);
            if chance.one_in(3) {
                // Trees that hold for everybody let the later checks speak.
                intent["constraints"] = json!({"path": "/a", "operator": "exists", "value": true});
            }
            if chance.one_in(2) {
                intent["projection"] = json!({"include": ["/"]});
            }
            if let (true, Value::Object(members)) = (chance.one_in(2), &mut intent) {
                members.remove("quality_floor");
            }
            if intent.get("budget").is_some() && !chance.one_in(3) {
                intent["budget"]["currency"] = json!("EUR");
            }
            if Intent::read(Document::of(&intent).unwrap().root(), &Limits::STANDARD).is_ok() {
                return Self { intent, candidates };
            }
        }
    }

    fn read(&self) -> (Intent, Vec<Candidate>) {
        let intent = Intent::read(Document::of(&self.intent).unwrap().root(), &Limits::STANDARD).unwrap();
        let candidates = self.candidates.iter().enumerate();
        let read = |(position, value)| Candidate::read(Document::of(value).unwrap(), position + 1).unwrap();
        (intent, candidates.map(read).collect())
    }

    fn standing(&self, position: usize) -> Standing {
        Standing::of(&self.intent, &self.candidates[position]).unwrap()
    }
}

/// Where among the candidates each match stands.
fn positions(resolution: &Resolution<'_>, candidates: &[Candidate]) -> Vec<usize> {
    let position = |found: &Candidate| candidates.iter().position(|other| std::ptr::eq(other, found)).unwrap();
    resolution.matches.iter().map(|found| position(found.candidate)).collect()
}

/// Says how many candidates were returned, flagged and turned away.
fn check_soundness(question: &Question) -> [usize; 3] {
    let (intent, candidates) = question.read();
    let resolution = aql::resolve(&intent, &candidates, OverBudget::Flag, Fuel::STANDARD).unwrap();
    let mut flagged = 0;
    for (position, found) in positions(&resolution, &candidates).into_iter().zip(&resolution.matches) {
        let standing = question.standing(position);
        let payload = Document::parse(found.judgement.payload.as_deref().unwrap(), &json::Limits::OURS).unwrap();
        assert!(standing.constraints, "{}", question.intent);
        assert!(standing.quality, "{}", question.intent);
        assert_eq!(Some(payload.root().to_value()), standing.payload);
        match found.judgement.outcome {
            Outcome::Accept => assert_eq!(standing.cost, Cost::Fits, "{}", question.intent),
            Outcome::OverBudget => {
                flagged += 1;
                assert!(found.judgement.over_budget);
                assert_eq!(standing.cost, Cost::Over, "{}", question.intent);
            }
            Outcome::Reject | Outcome::BelowQualityFloor => panic!("a rejected candidate was returned"),
        }
    }
    [resolution.matches.len() - flagged, flagged, resolution.rejections.len()]
}

/// Says how many candidates belonged to the answer.
fn check_completeness(question: &Question) -> usize {
    let (intent, candidates) = question.read();
    let resolution = aql::resolve(&intent, &candidates, OverBudget::Flag, Fuel::STANDARD).unwrap();
    let standings: Vec<Standing> = (0..candidates.len()).map(|position| question.standing(position)).collect();
    let those = |wanted: fn(&Standing) -> bool| -> BTreeSet<usize> {
        (0..candidates.len()).filter(|&position| wanted(&standings[position])).collect()
    };
    let (answers, over_budget) = (those(Standing::answers), those(Standing::is_over_budget));
    let returned: BTreeSet<usize> = positions(&resolution, &candidates).into_iter().collect();
    assert_eq!(returned.len() + resolution.left_out, answers.len() + over_budget.len(), "{}", question.intent);
    assert_eq!(resolution.rejections.len(), candidates.len() - answers.len() - over_budget.len());
    let cut = question.intent["resolution_policy"] == "single_best" || question.intent["budget"].get("top_k").is_some();
    if !cut {
        assert_eq!(returned, answers.union(&over_budget).copied().collect(), "{}", question.intent);
    } else if resolution.left_out > 0 {
        // A cut takes from the end, so an answer gives way to nothing but another answer.
        assert!(returned.is_subset(&answers) || answers.is_subset(&returned), "{}", question.intent);
    }
    // With the strict reading of A.2 the answer is exactly the answer set.
    let strict = aql::resolve(&intent, &candidates, OverBudget::Reject, Fuel::STANDARD).unwrap();
    let returned: BTreeSet<usize> = positions(&strict, &candidates).into_iter().collect();
    assert!(returned.is_subset(&answers));
    assert_eq!(returned.len() + strict.left_out, answers.len());
    answers.len()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..900)
}

/// So many cases; `PROPTEST_CASES`, which is 256 where nobody sets it, makes them more or fewer in proportion.
fn cases(cases: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: cases * usual.cases / 256, failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn theorem_1_returned_candidates_satisfy_the_intent(bytes in bytes()) {
        check_soundness(&Question::draw(&mut Chance::from_bytes(&bytes)));
    }

    #[test]
    fn theorem_2_nothing_that_satisfies_is_left_out(bytes in bytes()) {
        check_completeness(&Question::draw(&mut Chance::from_bytes(&bytes)));
    }

    #[test]
    fn theorem_3_two_resolvers_agree(bytes in bytes()) {
        let mut chance = Chance::from_bytes(&bytes);
        let question = Question::draw(&mut chance);
        let difference = compare_resolution(&question.intent, &question.candidates, chance.one_in(4)).err();
        prop_assert!(difference.is_none(), "{:?}", difference);
    }

    #[test]
    fn theorem_3_the_order_of_candidates_decides_nothing(bytes in bytes()) {
        let mut chance = Chance::from_bytes(&bytes);
        let Question { intent, candidates } = Question::draw(&mut chance);
        let candidates = with_ids(&candidates);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, chance.below(last + 1));
        }
        let shuffled: Vec<Value> = order.iter().map(|&position| candidates[position].clone()).collect();
        let (straight, crossed) = (resolved(&intent, &candidates), resolved(&intent, &shuffled));
        prop_assert_eq!(&straight["candidates"], &crossed["candidates"]);
        prop_assert_eq!(&straight["shares"], &crossed["shares"]);
        let rejected = |answer: &Value| answer["rejected"].as_array().unwrap().clone();
        let id = |entry: &Value| entry["id"].as_str().unwrap().to_owned();
        let place = |entry: &Value| shuffled.iter().position(|candidate| candidate["id"] == entry["id"]);
        let mut expected = rejected(&straight);
        expected.sort_by_key(place);
        prop_assert_eq!(expected.iter().map(id).collect::<Vec<_>>(), rejected(&crossed).iter().map(id).collect::<Vec<_>>());
        prop_assert_eq!(expected, rejected(&crossed));
    }
}

#[test]
fn the_random_questions_have_answers() {
    let (mut returned, mut flagged, mut rejected, mut answers) = (0, 0, 0, 0);
    for seed in 0..600 {
        let question = Question::draw(&mut Chance::seeded(seed));
        let counts = check_soundness(&question);
        returned += counts[0];
        flagged += counts[1];
        rejected += counts[2];
        answers += check_completeness(&question);
    }
    let counts = [returned, flagged, rejected, answers];
    assert!(counts.iter().all(|count| *count > 40), "{counts:?}");
}

/// Candidates with names of their own, so that no name depends on the line.
fn with_ids(candidates: &[Value]) -> Vec<Value> {
    let named = |(position, candidate): (usize, &Value)| {
        let mut candidate = match candidate.get("record") {
            Some(_) => candidate.clone(),
            None => json!({"record": candidate}),
        };
        candidate["id"] = json!(format!("candidate-{position}"));
        candidate
    };
    candidates.iter().enumerate().map(named).collect()
}

fn resolved(intent: &Value, candidates: &[Value]) -> Value {
    let inputs = [("intent".to_owned(), intent.clone()), ("candidates".to_owned(), json!(candidates))];
    let case = Case {
        id: "permuted".to_owned(),
        requirement: String::new(),
        why: String::new(),
        kind: "resolve".to_owned(),
        expect: json!({}),
        inputs: inputs.into_iter().collect(),
    };
    match Fast.answer(&case) {
        Answer::Result(answer) => answer,
        Answer::NoOpinion => panic!("the engine resolves"),
    }
}

/// Paths of every kind; the last ones are longer than strangers may send.
const PATHS: [&str; 10] = [
    "",
    "/a/a/a",
    "/a/0/x",
    "/*",
    "/*/*/x",
    "/**",
    "/**/x",
    "/a/**/a/**/x",
    "/**/a/**/a/**/a/**/x",
    "/**/*/**/a/*/**/*/**/x",
];

/// What one tree over one document costs in visits.
fn visits(constraints: &Value, document: &Document) -> u64 {
    let limits = Limits { path_descendants: 8, ..Limits::STANDARD };
    let tree = Document::of(constraints).unwrap();
    let constraints = Constraints::read(tree.root(), Pointer::root(), &limits).unwrap();
    let mut evaluator = Evaluator::new(Fuel::OWN);
    evaluator.evaluate(&constraints, document.root()).unwrap();
    evaluator.meter.visits
}

fn nested(levels: usize, inner: Value, wrap: fn(Value) -> Value) -> Document {
    Document::of(&(0..levels).fold(inner, |value, _| wrap(value))).unwrap()
}

/// The document of a size.
type Family = fn(usize) -> Document;

/// Documents that grow with a size: in width, in depth, in both.
fn families() -> [(&'static str, Family); 5] {
    [
        ("wide array", |size| Document::of(&json!({"a": vec![json!({"x": 1}); size]})).unwrap()),
        ("wide object", |size| {
            let members = (0..size).map(|number| (format!("k{number}"), json!({"a": {"x": number}})));
            Document::of(&Value::Object(members.collect())).unwrap()
        }),
        ("deep objects", |size| nested(size / 8, json!({"x": 1}), |value| json!({"a": value}))),
        ("deep arrays", |size| nested(size / 8, json!([1]), |value| json!([value, 2]))),
        ("comb", |size| nested(size / 16, json!({"x": 1}), |value| json!({"a": value, "b": {"a": [{"x": 2}]}}))),
    ]
}

/// Steps that a leaf may cost beside the values of the document: the longest path of [`PATHS`], and the root twice.
const STEPS_MAX: u64 = 11;

#[test]
fn theorem_4_cost_is_polynomial_by_counted_steps() {
    for (family, document) in families() {
        for path in PATHS {
            let leaf = json!({"path": path, "operator": "eq", "value": "nowhere"});
            let mut earlier: Option<u64> = None;
            for size in [256, 512, 1_024] {
                let document = document(size);
                let nodes = document.nodes() as u64;
                let cost = visits(&leaf, &document);
                assert!(0 < cost && cost <= nodes + STEPS_MAX, "{family} {path}: {cost} visits for {nodes} values");
                // Twice the document is at most twice the visits, up to the few values of its outer frame.
                assert!(earlier.is_none_or(|earlier| cost <= 2 * earlier + 4), "{family} {path}: {earlier:?}, {cost}");
                for leaves in [7, 64] {
                    let tree = json!({"any_of": vec![leaf.clone(); leaves]});
                    assert!(visits(&tree, &document) <= leaves as u64 * cost, "{family} {path}");
                }
                earlier = Some(cost);
            }
        }
    }
}

#[test]
fn theorem_4_a_descendant_operator_looks_at_each_value_once() {
    for (family, document) in families() {
        for path in PATHS.into_iter().filter(|path| path.starts_with("/**")) {
            let leaf = json!({"path": path, "operator": "eq", "value": "nowhere"});
            let [once, twice] = [512, 1_024].map(|size| {
                let document = document(size);
                let (cost, nodes) = (visits(&leaf, &document), document.nodes() as u64);
                assert!(
                    (nodes..=nodes + STEPS_MAX).contains(&cost),
                    "{family} {path}: {cost} visits for {nodes} values"
                );
                cost
            });
            assert!((2 * once).abs_diff(twice) <= 2 * STEPS_MAX, "{family} {path}: {once}, then {twice}");
        }
    }
}

#[test]
fn theorem_4_four_descendant_operators_over_a_hundred_levels() {
    let document = nested(100, json!({"y": 1}), |value| json!({"a": value}));
    let leaf = |path: &str| json!({"path": path, "operator": "exists", "value": true});
    let cost = visits(&leaf("/**/a/**/a/**/a/**/z"), &document);
    assert!(cost <= document.nodes() as u64 + STEPS_MAX, "{cost} visits for {} values", document.nodes());
    // The chain reaches the one `y` in some 160,000 ways and shows it once.
    let tree = Document::of(&leaf("/**/a/**/a/**/a/**/y")).unwrap();
    let limits = Limits { path_descendants: 4, ..Limits::STANDARD };
    let constraints = Constraints::read(tree.root(), Pointer::root(), &limits).unwrap();
    let mut shown = 0;
    let _ = constraints.leaves()[0].path.reach(document.root(), &mut 0, |_| {
        shown += 1;
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!(shown, 1);
}

#[test]
fn theorem_4_long_texts_lists_and_runs_are_charged() {
    for size in [1_000, 2_000, 4_000] {
        let (letters, digits) = ("b".repeat(size * 64), "1".repeat(size * 64));
        let moment = format!("2026-01-01T00:00:00.{}", "1".repeat(size * 64 - 20));
        for (text, operator, operand) in [
            (&letters, "contains", json!("a")),
            (&letters, "matches", json!("a")),
            (&digits, "lt", json!(1)),
            (&digits, "lte", json!("0.30000000000000000001")),
            (&moment, "gt", json!("2027-01-01")),
            (&moment, "gte", json!("2027-01-01")),
            (&moment, "before", json!("2025-01-01")),
            (&moment, "after", json!("2027-01-01")),
            (&moment, "within", json!(["2025-01-01", "2025-01-02"])),
            (&moment, "outside", json!(["2026-01-01", "2026-01-02"])),
        ] {
            let document = Document::of(&json!({"x": text})).unwrap();
            let leaf = json!({"path": "/x", "operator": operator, "value": operand});
            assert!(charged(&leaf, &document, size as u64), "{operator}");
        }
        let numbers = json!({"path": "/x", "operator": "in", "value": (0..size.min(1_000)).collect::<Vec<_>>()});
        assert!(charged(&numbers, &Document::of(&json!({"x": -1})).unwrap(), 1_000 / 8));
        let array = Document::of(&json!({"x": vec![0; size]})).unwrap();
        let mut run = vec![0; 20];
        run[19] = 1;
        let cost = visits(&json!({"path": "/x", "operator": "contains", "value": run}), &array);
        let bound = 21 * array.nodes() as u64 + STEPS_MAX;
        assert!(19 * size as u64 <= cost && cost <= bound, "{cost} of {bound}");
    }
}

/// Whether a leaf with a path of one step costs this much beside the step.
fn charged(leaf: &Value, document: &Document, blocks: u64) -> bool {
    (blocks..=blocks + 4).contains(&visits(leaf, document))
}

/// Reads a leaf with this operator and an operand that fits it, if it is one of the fifteen.
fn read_operator(name: &str) -> Result<Operator, (&'static str, String)> {
    let operand = match name {
        "in" | "not_in" => json!([1]),
        "within" | "outside" => json!(["2026-01-01", "2026-01-02"]),
        "before" | "after" => json!("2026-01-01"),
        "matches" => json!("a"),
        _ => json!(1),
    };
    let leaf = Document::of(&json!({"path": "/a", "operator": name, "value": operand})).unwrap();
    match Constraints::read(leaf.root(), Pointer::root().child("constraints"), &Limits::STANDARD) {
        Ok(constraints) => Ok(constraints.leaves()[0].operator),
        Err(refusal) => Err((refusal.code.name(), refusal.at.to_string())),
    }
}

#[test]
fn theorem_5_the_operator_set_is_closed() {
    let fifteen = [
        "eq", "ne", "lt", "lte", "gt", "gte", "in", "not_in", "contains", "matches", "before", "after", "within",
        "outside", "exists",
    ];
    assert_eq!(Operator::ALL.map(Operator::name), fifteen);
    for name in fifteen {
        assert_eq!(read_operator(name).map(Operator::name), Ok(name));
    }
    let mut strangers = short_words();
    fifteen.iter().for_each(|name| strangers.extend(mutations(name)));
    strangers.retain(|name| !fifteen.contains(&name.as_str()));
    assert!(strangers.len() > 20_000, "{}", strangers.len());
    for name in strangers {
        let refused = Err(("unknown_operator", "/constraints/operator".to_owned()));
        assert_eq!(read_operator(&name), refused, "{name:?}");
    }
}

#[test]
fn theorem_5_both_engines_close_it_at_the_same_place() {
    for name in Operator::ALL.iter().flat_map(|operator| mutations(operator.name())) {
        let leaf = oracle::twin(&json!({"path": "/a", "operator": name, "value": [1]}));
        let twin = reference::evaluate(&leaf, &oracle::twin(&json!({})));
        let unknown =
            twin.is_err_and(|refusal| (refusal.code, &*refusal.at) == ("unknown_operator", "/constraints/operator"));
        assert_eq!(unknown, !Operator::ALL.iter().any(|operator| operator.name() == name), "{name:?}");
    }
}

/// Every text of at most three letters.
fn short_words() -> BTreeSet<String> {
    let mut words = BTreeSet::from([String::new()]);
    for _ in 0..3 {
        let longer =
            words.iter().flat_map(|word| ('a'..='z').chain(['_']).map(move |letter| format!("{word}{letter}")));
        words = longer.chain(words.clone()).collect();
    }
    words
}

/// What slips of the pen, other languages and look-alikes make of a name; the name itself may be among them.
fn mutations(name: &str) -> BTreeSet<String> {
    let letters: Vec<char> = name.chars().collect();
    let text = |letters: &[char]| letters.iter().collect::<String>();
    let mut mutated = BTreeSet::from([
        name.to_uppercase(),
        format!("{}{}", letters[0].to_uppercase(), text(&letters[1..])),
        format!("${name}"),
        format!("not_{name}"),
        format!("{name}_any"),
        format!("{name}s"),
        format!("{name}\0"),
        format!("\u{feff}{name}"),
        name.repeat(2),
        name.chars().rev().collect(),
        name.replace('_', "-"),
        name.replace('e', "\u{435}"),
        name.replace('a', "\u{430}"),
        name.replace('i', "\u{131}"),
        letters.iter().map(|&letter| char::from_u32(letter as u32 + 0xfee0).unwrap()).collect(),
    ]);
    for position in 0..letters.len() {
        let mut fewer = letters.clone();
        fewer.remove(position);
        mutated.insert(text(&fewer));
        for letter in ('a'..='z').chain([' ', '_', '-', '.', 'E', '\u{301}']) {
            let mut other = letters.clone();
            other[position] = letter;
            mutated.insert(text(&other));
            for place in [position, letters.len()] {
                let mut more = letters.clone();
                more.insert(place, letter);
                mutated.insert(text(&more));
            }
        }
        if position > 0 {
            let mut swapped = letters.clone();
            swapped.swap(position - 1, position);
            mutated.insert(text(&swapped));
        }
    }
    mutated
}
