//! scratch
#![allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::expect_used
)]
use reference::*;
fn get<'a>(v: &'a Value, k: &str) -> Option<&'a Value> {
    if let Value::Object(m) = v { m.iter().find(|(n, _)| n == k).map(|(_, v)| v) } else { None }
}
fn st(v: &Value) -> String {
    if let Value::String(s) = v { s.clone() } else { panic!("{v:?}") }
}
fn arr(v: &Value) -> Vec<Value> {
    if let Value::Array(s) = v { s.clone() } else { panic!("{v:?}") }
}
fn s(x: &str) -> Value {
    Value::String(x.to_owned())
}
fn refusal(r: &Refusal) -> Value {
    Value::object(vec![("code".into(), s(r.code)), ("at".into(), s(&r.at))])
}
fn sub(expect: &Value, got: &Value) -> bool {
    // expected members must be equal
    match (expect, got) {
        (Value::Object(e), Value::Object(_)) => e.iter().all(|(k, v)| {
            get(got, k).is_some_and(|g| {
                if k == "explanation" {
                    st(g).contains(&st(v))
                } else if k == "payload" || k == "value" || k == "candidate_value" {
                    g == v
                } else {
                    sub(v, g)
                }
            })
        }),
        (Value::Array(e), Value::Array(g)) => e.len() == g.len() && e.iter().zip(g).all(|(a, b)| sub(a, b)),
        _ => expect == got,
    }
}
fn leaf(l: &LeafRecord) -> Value {
    let mut m = vec![
        ("path".into(), s(&l.path)),
        ("operator".into(), s(&l.operator)),
        ("value".into(), l.value.clone()),
        ("passed".into(), Value::Bool(l.passed)),
    ];
    if let Some(c) = &l.candidate_value {
        m.push(("candidate_value".into(), c.clone()))
    }
    if let Some(c) = &l.reason {
        m.push(("reason".into(), s(c)))
    }
    Value::object(m)
}
fn run(c: &Value) -> Value {
    let kind = st(get(c, "kind").unwrap());
    let lim = match get(c, "limits") {
        Some(Value::String(x)) if x == "intent" => Limits::intent(),
        _ => Limits::document(),
    };
    let ok = || Value::object(vec![]);
    match kind.as_str() {
        "evaluate" => match evaluate(get(c, "constraints").unwrap(), get(c, "document").unwrap()) {
            Ok(e) => Value::object(vec![
                ("holds".into(), Value::Bool(e.holds)),
                ("leaves".into(), Value::Array(e.leaves.into_iter().map(Value::Bool).collect())),
            ]),
            Err(r) => refusal(&r),
        },
        "refuse" | "accept" => {
            let i = match get(c, "text") {
                Some(t) => match parse(st(t).as_bytes(), &Limits::intent()) {
                    Ok(v) => v,
                    Err(r) => return refusal(&r),
                },
                None => get(c, "intent").unwrap().clone(),
            };
            match read_intent(&i) {
                Ok(_) => ok(),
                Err(r) => refusal(&r),
            }
        }
        "parse" => {
            let b: Vec<u8> = if let Some(t) = get(c, "text") {
                st(t).into_bytes()
            } else if let Some(h) = get(c, "hex") {
                let h = st(h);
                (0..h.len() / 2).map(|i| u8::from_str_radix(&h[2 * i..2 * i + 2], 16).unwrap()).collect()
            } else {
                let r = get(c, "repeat").unwrap();
                let n = if let Some(Value::Number(n)) = get(r, "times") { *n as usize } else { panic!() };
                st(get(r, "text").unwrap()).repeat(n).into_bytes()
            };
            match parse(&b, &lim) {
                Ok(v) => Value::object(vec![("canonical".into(), s(&canonical(&v)))]),
                Err(r) => refusal(&r),
            }
        }
        "project" => match project(get(c, "projection").unwrap(), get(c, "document").unwrap()) {
            Ok(Ok(p)) => Value::object(vec![("payload".into(), p)]),
            Ok(Err(f)) => Value::object(vec![("failure".into(), Value::Array(f.iter().map(|x| s(x)).collect()))]),
            Err(r) => refusal(&r),
        },
        "order" => Value::object(vec![(
            "order".into(),
            s(match order(get(c, "left").unwrap(), get(c, "right").unwrap()) {
                None => "incomparable",
                Some(std::cmp::Ordering::Less) => "less",
                Some(std::cmp::Ordering::Equal) => "equal",
                _ => "greater",
            }),
        )]),
        "pattern" => match matches(&st(get(c, "pattern").unwrap()), &st(get(c, "subject").unwrap())) {
            Ok(b) => Value::object(vec![("matches".into(), Value::Bool(b))]),
            Err(r) => refusal(&r),
        },
        "window" => {
            match window(get(c, "validity").unwrap(), &st(get(c, "category").unwrap()), &st(get(c, "now").unwrap())) {
                Ok(()) => ok(),
                Err(r) => refusal(&r),
            }
        }
        "resolve" => {
            let ob = match get(c, "over_budget") {
                Some(Value::String(x)) if x == "reject" => OverBudget::Reject,
                _ => OverBudget::Flag,
            };
            match resolve(get(c, "intent").unwrap(), &arr(get(c, "candidates").unwrap()), ob) {
                Err(r) => refusal(&r),
                Ok(r) => Value::object(vec![
                    (
                        "candidates".into(),
                        Value::Array(
                            r.candidates
                                .iter()
                                .map(|x| {
                                    Value::object(vec![
                                        ("id".into(), s(&x.id)),
                                        ("outcome".into(), s(x.outcome)),
                                        ("rank".into(), Value::Number(x.rank as f64)),
                                        ("score".into(), Value::Number(x.score)),
                                        ("over_budget".into(), Value::Bool(x.over_budget)),
                                        ("payload".into(), x.payload.clone()),
                                        ("explanation".into(), s(&x.explanation)),
                                        ("evaluations".into(), Value::Array(x.evaluations.iter().map(leaf).collect())),
                                    ])
                                })
                                .collect(),
                        ),
                    ),
                    (
                        "rejected".into(),
                        Value::Array(
                            r.rejected
                                .iter()
                                .map(|x| {
                                    Value::object(vec![
                                        ("id".into(), s(&x.id)),
                                        ("outcome".into(), s(x.outcome)),
                                        ("explanation".into(), s(&x.explanation)),
                                        ("evaluations".into(), Value::Array(x.evaluations.iter().map(leaf).collect())),
                                    ])
                                })
                                .collect(),
                        ),
                    ),
                    (
                        "shares".into(),
                        Value::Array(
                            r.shares
                                .iter()
                                .map(|(i, a)| Value::object(vec![("id".into(), s(i)), ("amount".into(), s(a))]))
                                .collect(),
                        ),
                    ),
                ]),
            }
        }
        _ => s("skip"),
    }
}
fn exact(expect: &Value, got: &Value) -> bool {
    // evaluations must not have extra members
    if let (Some(Value::Array(e)), Some(Value::Array(g))) = (get(expect, "evaluations"), get(got, "evaluations")) {
        return e.len() == g.len()
            && e.iter().zip(g).all(|(a, b)| {
                ["reason", "candidate_value"]
                    .iter()
                    .all(|k| get(a, k).is_some() == get(b, k).is_some() || get(a, "path").is_none())
            });
    }
    true
}
fn main() {
    let big = Limits {
        bytes: 1 << 30,
        depth: 2000,
        nodes: 1 << 30,
        keys: 1 << 30,
        key_bytes: 1 << 30,
        string_bytes: 1 << 30,
    };
    let mut n = 0;
    let mut bad = 0;
    let mut skip = 0;
    for f in std::fs::read_dir("conformance/aql").unwrap() {
        let p = f.unwrap().path();
        let v = match parse(&std::fs::read(&p).unwrap(), &big) {
            Ok(v) => v,
            Err(r) => {
                println!("{} {r}", p.display());
                continue;
            }
        };
        for c in arr(get(&v, "cases").unwrap()) {
            let t = std::time::Instant::now();
            let got = run(&c);
            if t.elapsed().as_millis() > 200 {
                println!("SLOW {} {:?}", st(get(&c, "id").unwrap()), t.elapsed())
            }
            n += 1;
            if got == s("skip") {
                skip += 1;
                continue;
            }
            let e = get(&c, "expect").unwrap();
            let mut good = sub(e, &got);
            if get(e, "code").is_none() && get(&got, "code").is_some() {
                good = false
            }
            for k in ["candidates", "rejected"] {
                if let (Some(Value::Array(a)), Some(Value::Array(b))) = (get(e, k), get(&got, k)) {
                    if a.len() == b.len() {
                        good &= a.iter().zip(b).all(|(x, y)| exact(x, y))
                    }
                }
            }
            if !good {
                bad += 1;
                let cs = |v: &Value| canonical(v).chars().take(900).collect::<String>();
                println!(
                    "{} {}\n  why {}\n  exp {}\n  got {}\n  in  {}",
                    p.file_name().unwrap().to_string_lossy(),
                    st(get(&c, "id").unwrap()),
                    get(&c, "why").map(canonical).unwrap_or_default(),
                    cs(e),
                    cs(&got),
                    cs(&c)
                );
            }
        }
    }
    println!("{n} cases, {skip} skipped, {bad} bad");
}
