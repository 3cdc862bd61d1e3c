//! scratch
#![allow(clippy::all)]
use reference::*;
fn st(v: &Value) -> String {
    if let Value::String(s) = v { s.clone() } else { panic!("{v:?}") }
}
fn arr(v: &Value) -> Vec<Value> {
    if let Value::Array(s) = v { s.clone() } else { panic!("{v:?}") }
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
    let subs: Vec<String> =
        arr(&parse(&std::fs::read("/tmp/refscratch/subs.json").unwrap(), &big).unwrap()).iter().map(st).collect();
    let mut bad = 0;
    let mut n = 0;
    for c in arr(&parse(&std::fs::read("/tmp/refscratch/cases.json").unwrap(), &big).unwrap()) {
        let c = arr(&c);
        let (p, r) = (st(&c[0]), st(&c[1]));
        let got = match matches(&p, "") {
            Err(e) => {
                let _ = e;
                "X".to_owned()
            }
            Ok(_) => subs.iter().map(|s| if matches(&p, s).unwrap() { '1' } else { '0' }).collect(),
        };
        n += 1;
        if got != r {
            bad += 1;
            if bad < 60 {
                println!("{p:?} node {r} ref {got}")
            }
        }
    }
    println!("{n} {bad}");
}
