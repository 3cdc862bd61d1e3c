//! RFC 0020 §3.3 and A.3 R4, sentence by sentence.

use super::*;
use crate::canonical::canonical;
use crate::parse::value;

#[track_caller]
fn check(projection: &str, document: &str, payload: &str) {
    let shown = project(&value(projection), &value(document)).unwrap().unwrap();
    assert_eq!(canonical(&shown), payload, "{projection} of {document}");
}

#[track_caller]
fn check_failure(projection: &str, document: &str, failure: &[&str]) {
    let missing = project(&value(projection), &value(document)).unwrap().unwrap_err();
    assert_eq!(missing, failure, "{projection} of {document}");
}

#[track_caller]
fn check_refused(projection: &str, code: &'static str, at: &str) {
    assert_eq!(project(&value(projection), &value("{}")).unwrap_err(), Refusal::new(code, at), "{projection}");
}

#[test]
fn an_included_node_is_kept_with_its_subtree() {
    check(r#"{"include":["/a"]}"#, r#"{"a":{"b":[1,{"c":2}]},"z":0}"#, r#"{"a":{"b":[1,{"c":2}]}}"#);
    check(r#"{"include":["/a"]}"#, r#"{"a":null,"z":0}"#, r#"{"a":null}"#);
    check(r#"{"include":["/"]}"#, r#"{"a":1,"z":0}"#, r#"{"a":1,"z":0}"#);
    check(r#"{"include":[""]}"#, "5", "5");
    check(r#"{"include":["/a","/a/b"]}"#, r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1,"c":2}}"#);
}

#[test]
fn ancestors_of_kept_nodes_are_bare() {
    check(r#"{"include":["/a/b/c"]}"#, r#"{"a":{"b":{"c":1,"d":2},"e":3},"f":4}"#, r#"{"a":{"b":{"c":1}}}"#);
    check(
        r#"{"include":["/**/id"]}"#,
        r#"{"id":1,"x":{"id":2,"y":3},"z":[{"id":4}]}"#,
        r#"{"id":1,"x":{"id":2},"z":[{"id":4}]}"#,
    );
}

#[test]
fn excluded_nodes_are_removed_with_their_subtrees() {
    check(r#"{"include":["/a"],"exclude":["/a/b/c"]}"#, r#"{"a":{"b":{"c":{"x":1},"d":2}}}"#, r#"{"a":{"b":{"d":2}}}"#);
    check(
        r#"{"include":["/"],"exclude":["/**/secret"]}"#,
        r#"{"a":[{"secret":1,"b":2}],"secret":3}"#,
        r#"{"a":[{"b":2}]}"#,
    );
    check(r#"{"include":["/a"],"exclude":["/nope"]}"#, r#"{"a":1}"#, r#"{"a":1}"#);
    check(r#"{"include":["/a"],"exclude":[]}"#, r#"{"a":1}"#, r#"{"a":1}"#);
}

#[test]
fn array_positions_are_kept() {
    check(r#"{"include":["/a/1"]}"#, r#"{"a":[10,20,30]}"#, r#"{"a":[null,20]}"#);
    check(r#"{"include":["/a/0"]}"#, r#"{"a":[10,20,30]}"#, r#"{"a":[10]}"#);
    check(r#"{"include":["/a/*/x"]}"#, r#"{"a":[{"y":1},{"x":2,"y":3},{"y":4}]}"#, r#"{"a":[null,{"x":2}]}"#);
    check(r#"{"include":["/a"],"exclude":["/a/0"]}"#, r#"{"a":[1,2,3]}"#, r#"{"a":[null,2,3]}"#);
    check(r#"{"include":["/a"],"exclude":["/a/2"]}"#, r#"{"a":[1,2,3]}"#, r#"{"a":[1,2]}"#);
    check(r#"{"include":["/a"],"exclude":["/a/1","/a/2"]}"#, r#"{"a":[1,2,3,4]}"#, r#"{"a":[1,null,null,4]}"#);
    check(r#"{"include":["/a/0/b","/a/2"]}"#, r#"{"a":[{"b":1,"c":2},3,null]}"#, r#"{"a":[{"b":1},null,null]}"#);
}

#[test]
fn a_kept_container_may_lose_all_its_children() {
    check(r#"{"include":["/a"],"exclude":["/a/*"]}"#, r#"{"a":{"b":1}}"#, r#"{"a":{}}"#);
    check(r#"{"include":["/a"],"exclude":["/a/*"]}"#, r#"{"a":[1,2]}"#, r#"{"a":[]}"#);
    check(r#"{"include":["/"],"exclude":["/*"]}"#, r#"{"a":1}"#, "{}");
    check(r#"{"include":["/a"]}"#, r#"{"a":[]}"#, r#"{"a":[]}"#);
}

#[test]
fn an_include_is_supplied_by_one_node_that_is_not_removed() {
    check_failure(r#"{"include":["/nope"]}"#, r#"{"a":1}"#, &["/nope"]);
    check_failure(r#"{"include":["/z","/a","/y/*"]}"#, r#"{"a":1,"y":[]}"#, &["/z", "/y/*"]);
    check_failure(r#"{"include":["/a/b"],"exclude":["/a"]}"#, r#"{"a":{"b":1}}"#, &["/a/b"]);
    check_failure(r#"{"include":["/a"],"exclude":["/a"]}"#, r#"{"a":1}"#, &["/a"]);
    check_failure(r#"{"include":["/a"],"exclude":["/"]}"#, r#"{"a":1}"#, &["/a"]);
    check_failure(r#"{"include":["/a/*"],"exclude":["/a/*"]}"#, r#"{"a":[1]}"#, &["/a/*"]);
    check(r#"{"include":["/a/*"],"exclude":["/a/0"]}"#, r#"{"a":[1,2]}"#, r#"{"a":[null,2]}"#);
    check_failure(r#"{"include":["/a","/a/b"],"exclude":["/a/b"]}"#, r#"{"a":{"b":1}}"#, &["/a/b"]);
    check_failure(r#"{"include":["/x~1y","/x~1y"]}"#, "{}", &["/x~1y", "/x~1y"]);
}

#[test]
fn a_flawed_projection_is_refused() {
    check_refused("[]", "wrong_type", "/projection");
    check_refused("{}", "missing_field", "/projection/include");
    check_refused(r#"{"include":[]}"#, "empty_list", "/projection/include");
    check_refused(r#"{"include":"/a"}"#, "wrong_type", "/projection/include");
    check_refused(r#"{"include":["/a",1]}"#, "wrong_type", "/projection/include/1");
    check_refused(r#"{"include":["a"]}"#, "invalid_pointer", "/projection/include/0");
    check_refused(r#"{"include":["/a"],"exclude":["/~"]}"#, "invalid_pointer", "/projection/exclude/0");
    check_refused(r#"{"include":["/a"],"exclude":["/**/**"]}"#, "path_too_complex", "/projection/exclude/0");
    check_refused(r#"{"include":["/a"],"x":1}"#, "unknown_field", "/projection/x");
    let many = vec![r#""/a""#; 64].join(",");
    check(&format!(r#"{{"include":[{many}],"exclude":[{}]}}"#, many.replace("/a", "/b")), r#"{"a":1}"#, r#"{"a":1}"#);
    let more = format!(r#"{{"include":[{many},"/a"],"exclude":[{many}]}}"#);
    check_refused(&more, "too_many_pointers", "/projection");
}

#[test]
fn a_value_is_shown_only_with_all_that_is_below_it() {
    let document = value(r#"{"a":{"b":1,"c":2},"d":3}"#);
    let check = |projection: &str, path: &str, shown: bool| {
        let projection = value(projection);
        let cut = Projection::read(&Field::new(&projection, "")).unwrap().cut(&document);
        let node = &Path::read(path, "").unwrap().reach(&document)[0];
        assert_eq!(cut.shows_all_of(&node.location), shown, "{path}");
    };
    check(r#"{"include":["/a"]}"#, "/a", true);
    check(r#"{"include":["/a"]}"#, "/a/b", true);
    check(r#"{"include":["/a"]}"#, "/d", false);
    check(r#"{"include":["/a"]}"#, "/", false);
    check(r#"{"include":["/a"],"exclude":["/a/b"]}"#, "/a", false);
    check(r#"{"include":["/a"],"exclude":["/a/b"]}"#, "/a/b", false);
    check(r#"{"include":["/a"],"exclude":["/a/b"]}"#, "/a/c", true);
    check(r#"{"include":["/a/b","/a/c"]}"#, "/a", false);
}
