//! Tests of patches: examples of upstream's semantics, and properties.

mod strategic_cases;

use proptest::prelude::*;
use serde_json::{Value, json};
use setpoint_proto::{ApiError, Reason};

use super::{Error, json as json_patch, merge, strategic};
use crate::{Kind, kinds};

fn kind(resource: &str) -> &'static Kind {
    kinds().by_resource(resource).unwrap()
}

fn pod(document: Value, patch: Value) -> Result<Value, Error> {
    strategic(kind("pods"), document, patch)
}

fn containers(names: &[&str]) -> Value {
    let containers: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "image": "nginx"}))
        .collect();
    json!({"spec": {"containers": containers}})
}

fn names(document: &Value) -> Vec<&str> {
    let containers = document["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect()
}

/// Checks RF6: the message names the operation and its path, in upstream's words.
#[test]
fn an_operation_that_cannot_be_applied_is_named_with_its_path() {
    let document = json!({"data": {"c": "3"}, "list": [1]});
    for (operation, expected) in [
        (
            json!({"op": "test", "path": "/data/c", "value": "4"}),
            "testing value /data/c failed: test failed",
        ),
        (
            json!({"op": "test", "path": "/none/c", "value": "4"}),
            "test operation does not apply: is missing path: /none/c: missing value",
        ),
        (
            json!({"op": "remove", "path": "/data/none"}),
            "error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            json!({"op": "remove", "path": "/none/c"}),
            r#"remove operation does not apply: doc is missing path: "/none/c": missing value"#,
        ),
        (
            json!({"op": "remove", "path": "/list/3"}),
            "error in remove for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            json!({"op": "add", "path": "/none/c", "value": 1}),
            r#"add operation does not apply: doc is missing path: "/none/c": missing value"#,
        ),
        (
            json!({"op": "add", "path": "/list/x", "value": 1}),
            r#"error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax"#,
        ),
        (
            json!({"op": "replace", "path": "/none/c", "value": 1}),
            "replace operation does not apply: doc is missing path: /none/c: missing value",
        ),
        (
            json!({"op": "replace", "path": "/list/3", "value": 1}),
            "replace operation does not apply: doc is missing key: /list/3: missing value",
        ),
        (
            json!({"op": "move", "from": "/none/c", "path": "/data/d"}),
            "move operation does not apply: doc is missing from path: /none/c: missing value",
        ),
        (
            json!({"op": "copy", "from": "/data/c", "path": "/none/d"}),
            "copy operation does not apply: doc is missing destination path: /none/d: missing value",
        ),
    ] {
        let patch = json!([{"op": "test", "path": "/data/c", "value": "3"}, operation]);
        let error = json_patch(kind("configmaps"), document.clone(), patch).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let cause = ApiError::from(error).causes()[0].clone();
        assert_eq!(
            (cause.field.as_str(), cause.message.as_str()),
            ("patch", expected)
        );
    }
}

#[test]
fn a_container_is_merged_by_its_name() {
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "nginx:2", "tty": true}]}});
    let patched = pod(containers(&["a", "b", "c"]), patch).unwrap();
    assert_eq!(names(&patched), ["a", "b", "c"]);
    assert_eq!(
        patched["spec"]["containers"][1],
        json!({"name": "b", "image": "nginx:2", "tty": true})
    );
    assert_eq!(
        patched["spec"]["containers"][0],
        json!({"name": "a", "image": "nginx"})
    );
}

#[test]
fn a_new_container_comes_first_without_nulls_and_directives() {
    let patch =
        json!({"spec": {"containers": [{"name": "b", "tty": null, "$setElementOrder/env": []}]}});
    let patched = pod(containers(&["a"]), patch).unwrap();
    assert_eq!(
        patched["spec"]["containers"],
        json!([{"name": "b"}, {"name": "a", "image": "nginx"}])
    );
}

#[test]
fn an_entry_is_deleted_by_its_key() {
    let patch = json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}, {"name": "c", "tty": true}]}});
    let patched = pod(containers(&["a", "b"]), patch).unwrap();
    assert_eq!(names(&patched), ["c", "b"]);
}

#[test]
fn a_list_is_replaced_on_request() {
    let patch = json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}});
    let patched = pod(containers(&["a", "b"]), patch).unwrap();
    assert_eq!(patched, json!({"spec": {"containers": [{"name": "z"}]}}));
}

#[test]
fn an_object_is_replaced_or_emptied_on_request() {
    let document = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}}});
    let patch = json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}, "annotations": {"$patch": "delete"}}});
    let patched = pod(document, patch).unwrap();
    assert_eq!(
        patched,
        json!({"metadata": {"labels": {"c": "3"}, "annotations": {}}})
    );
}

#[test]
fn null_removes_a_field() {
    let document = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"nodeName": "n"}});
    let patched = pod(
        document,
        json!({"metadata": {"labels": {"a": null}}, "spec": null}),
    )
    .unwrap();
    assert_eq!(patched, json!({"metadata": {"labels": {"b": "2"}}}));
}

#[test]
fn a_list_without_a_merge_key_is_replaced() {
    let document = json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}});
    let patched = pod(document, json!({"spec": {"tolerations": [{"key": "c"}]}})).unwrap();
    assert_eq!(patched, json!({"spec": {"tolerations": [{"key": "c"}]}}));
}

#[test]
fn scalars_are_merged_into_a_set_and_taken_out_again() {
    let document = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d", "a"]}});
    let patched = pod(document, patch).unwrap();
    assert_eq!(
        patched,
        json!({"metadata": {"finalizers": ["d", "a", "c"]}})
    );
}

#[test]
fn entries_are_sorted_by_the_order_directive() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}],
        "containers": [{"name": "d", "image": "new"}],
    }});
    let patched = pod(containers(&["a", "b", "c"]), patch).unwrap();
    assert_eq!(names(&patched), ["b", "c", "d", "a"]);
}

#[test]
fn an_order_alone_reorders() {
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}});
    assert_eq!(
        names(&pod(containers(&["a", "b"]), patch).unwrap()),
        ["b", "a"]
    );
}

#[test]
fn a_patch_whose_entries_are_not_in_its_own_order_is_rejected() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        "containers": [{"name": "b"}, {"name": "a"}],
    }});
    assert!(matches!(
        pod(containers(&["a"]), patch),
        Err(Error::Malformed(_))
    ));
}

#[test]
fn retained_keys_drop_the_others() {
    let document =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let patched = strategic(kind("deployments.apps"), document.clone(), patch).unwrap();
    assert_eq!(patched, json!({"spec": {"strategy": {"type": "Recreate"}}}));
    let patch =
        json!({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}});
    assert!(matches!(
        strategic(kind("deployments.apps"), document, patch),
        Err(Error::Unfit(_))
    ));
}

#[test]
fn nulls_and_directives_are_accepted_beside_retain_keys() {
    let document = json!({"spec": {"volumes": [
        {"name": "a", "emptyDir": {}, "projected": {"sources": []}},
    ]}});
    let patch = json!({"spec": {"volumes": [{
        "name": "a", "$retainKeys": ["name", "configMap"], "emptyDir": null, "configMap": {"name": "c"},
        "$setElementOrder/x": [],
    }]}});
    let patched = pod(document, patch).unwrap();
    assert_eq!(
        patched["spec"]["volumes"],
        json!([{"name": "a", "configMap": {"name": "c"}}])
    );
}

#[test]
fn directives_are_removed_from_new_values() {
    let patch = json!({"metadata": {"labels": {
        "$retainKeys": ["a"], "$deleteFromPrimitiveList/x": ["b"], "$setElementOrder/y": [], "a": "1",
    }}, "spec": {"affinity": {"nodeAffinity": {"$patch": "replace"}, "podAffinity": {}}}});
    assert_eq!(
        pod(json!({}), patch).unwrap(),
        json!({"metadata": {"labels": {"a": "1"}}, "spec": {"affinity": {"nodeAffinity": {}, "podAffinity": {}}}})
    );
}

#[test]
fn an_order_with_a_null_keeps_the_list() {
    let patch =
        json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": null}});
    let patched = pod(containers(&["a", "b"]), patch).unwrap();
    assert_eq!(names(&patched), ["a", "b"]);
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}]}});
    assert_eq!(
        pod(json!({"spec": {}}), patch).unwrap(),
        json!({"spec": {}})
    );
}

#[test]
fn malformed_patches_are_bad_requests_and_unfit_ones_are_invalid() {
    for (error, reason) in [
        (Error::Malformed("m".into()), Reason::BadRequest),
        (Error::TooLarge("m".into()), Reason::RequestEntityTooLarge),
    ] {
        let error = ApiError::from(error);
        assert_eq!((error.reason, &*error.message), (reason, "m"));
    }
    let error = ApiError::from(Error::Unfit("m".into()));
    assert_eq!(error.reason, Reason::Invalid);
    assert_eq!(
        error.message,
        "the server rejected our request due to an error in our request"
    );
    assert_eq!(error.details.unwrap().causes[0].message, "m");
}

#[test]
fn ports_are_merged_by_container_port_only() {
    let document = json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 443}]}});
    let patch = json!({"spec": {"ports": [{"port": 80, "name": "web"}]}});
    let patched = strategic(kind("services"), document, patch).unwrap();
    assert_eq!(
        patched["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 443}])
    );
}

#[test]
fn an_entry_without_its_merge_key_is_rejected() {
    let refused = pod(
        containers(&["a"]),
        json!({"spec": {"containers": [{"image": "x"}]}}),
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        r#"map: {"image":"x"} does not contain declared merge key: name"#
    );
}

#[test]
fn an_unknown_directive_is_rejected() {
    let refused = pod(containers(&["a"]), json!({"spec": {"$patch": "explode"}}));
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .starts_with("unknown patch type: explode")
    );
    let refused = pod(
        containers(&["a"]),
        json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}),
    );
    assert!(matches!(refused, Err(Error::Malformed(_))));
}

#[test]
fn a_patch_that_is_not_an_object_is_rejected() {
    assert!(matches!(
        pod(json!({}), json!([])),
        Err(Error::Malformed(_))
    ));
    assert!(matches!(
        merge(kind("pods"), json!({}), json!(null)),
        Err(Error::Malformed(_))
    ));
    assert!(matches!(
        json_patch(kind("pods"), json!({}), json!({})),
        Err(Error::Malformed(_))
    ));
}

#[test]
fn a_json_patch_is_applied_completely_or_not_at_all() {
    let document = json!({"metadata": {"name": "a"}});
    let patch = json!([
        {"op": "test", "path": "/metadata/name", "value": "a"},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x"]},
    ]);
    let patched = json_patch(kind("pods"), document.clone(), patch).unwrap();
    assert_eq!(
        patched,
        json!({"metadata": {"name": "a", "finalizers": ["x"]}})
    );
    let patch = json!([{"op": "test", "path": "/metadata/name", "value": "b"}]);
    assert!(matches!(
        json_patch(kind("pods"), document, patch),
        Err(Error::TestFailed(_))
    ));
}

/// Checks F2.
#[test]
fn a_json_patch_tests_the_absence_of_a_key_by_null() {
    let document = json!({"metadata": {"name": "a"}});
    let patch = |path: &str, value: Value| json!([{"op": "test", "path": path, "value": value}]);
    let test = |path: &str, value: Value| {
        json_patch(kind("pods"), document.clone(), patch(path, value)).is_ok()
    };
    assert!(test("/metadata/finalizers", Value::Null));
    assert!(!test("/metadata/finalizers", json!([])));
    assert!(!test("/metadata/name", Value::Null));
    assert!(!test("/spec/replicas", Value::Null));
}

#[test]
fn a_json_patch_that_moves_too_many_list_entries_is_rejected() {
    let document = json!({"spec": {"args": vec![""; 100_000]}});
    for operation in [
        json!({"op": "add", "path": "/spec/args/0", "value": ""}),
        json!({"op": "remove", "path": "/spec/args/0"}),
        json!({"op": "copy", "from": "/spec/args/1", "path": "/spec/args/0"}),
        json!({"op": "move", "from": "/spec/args/0", "path": "/spec/args/1"}),
    ] {
        let patch = |times| json!(vec![operation.clone(); times]);
        let patched = json_patch(kind("pods"), document.clone(), patch(100));
        assert!(patched.is_ok(), "{operation}");
        let patched = json_patch(kind("pods"), document.clone(), patch(10_000));
        assert!(matches!(patched, Err(Error::TooLarge(_))), "{operation}");
    }
}

/// Checks F2.
#[test]
fn a_strategic_merge_patch_that_compares_too_many_entries_is_rejected() {
    let long: Vec<Value> = (0..10_000)
        .map(|n| json!({"name": format!("A{n}")}))
        .collect();
    let document = json!({
        "metadata": {"finalizers": vec!["a.io/b"; 10_000]},
        "spec": {"containers": [{"name": "a", "env": long}]},
    });
    for again in [
        json!({"name": "a", "env": [{"name": "B"}]}),
        json!({"name": "a", "$setElementOrder/env": []}),
    ] {
        let patch = |times| json!({"spec": {"containers": vec![again.clone(); times]}});
        assert!(pod(document.clone(), patch(10)).is_ok(), "{again}");
        let patched = pod(document.clone(), patch(10_000));
        assert!(matches!(patched, Err(Error::TooLarge(_))), "{again}");
    }
}

#[test]
fn a_document_of_the_maximum_size_can_be_merged_into_itself() {
    let finalizers: Vec<_> = (0..1_000).map(|n| format!("{n:03000}")).collect();
    let document = json!({"metadata": {"finalizers": finalizers}});
    let patched = pod(document.clone(), document.clone()).unwrap();
    assert_eq!(patched, document);
}

#[test]
fn a_json_patch_may_copy_up_to_the_maximum_size_of_a_request() {
    let copy = json!([{"op": "copy", "from": "/a", "path": "/b"}]);
    for (size, allowed) in [(3 << 20, true), ((3 << 20) + 1, false)] {
        let document = json!({"a": "x".repeat(size - r#""""#.len())});
        let patched = json_patch(kind("pods"), document, copy.clone());
        assert_eq!(patched.is_ok(), allowed, "{size}");
    }
}

/// Checks V15 (CVE-2019-1002100).
#[test]
fn a_json_patch_that_doubles_the_document_repeatedly_is_rejected() {
    let double = |n| json!({"op": "copy", "from": "", "path": format!("/x{n}")});
    let copies: Vec<Value> = (0..40).map(double).collect();
    let document = json!({"metadata": {"name": "a"}, "spec": {}});
    assert!(matches!(
        json_patch(kind("pods"), document, json!(copies)),
        Err(Error::TooLarge(_))
    ));
    let tests = |count| json!(vec![json!({"op": "test", "path": "", "value": {}}); count]);
    assert!(json_patch(kind("pods"), json!({}), tests(10_000)).is_ok());
    assert!(matches!(
        json_patch(kind("pods"), json!({}), tests(10_001)),
        Err(Error::TooLarge(_))
    ));
}

/// Checks DG2: values are not nested in each other until a recursion overflows the stack.
#[test]
fn a_json_patch_that_nests_deeper_than_can_be_read_is_rejected() {
    let operation = |depth: usize, op: Value| {
        let mut one = op;
        one["path"] = "/a".repeat(depth).into();
        one
    };
    let add = |depth| operation(depth, json!({ "op": "add", "value": { "a": {} } }));
    let nest = |count: usize| json!((0..count).map(|n| add(n * 2 + 1)).collect::<Vec<_>>());
    assert!(json_patch(kind("pods"), json!({}), nest(62)).is_ok());
    let refused = json_patch(kind("pods"), json!({}), nest(64));
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    for op in ["copy", "move"] {
        let patch = json!([operation(100, json!({ "op": op, "from": "/b" }))]);
        let deep: Value = serde_json::from_str(&format!(
            r#"{{"a":{{}},"b":{}{}}}"#,
            "[".repeat(60),
            "]".repeat(60)
        ))
        .unwrap();
        let refused = json_patch(kind("pods"), deep, patch);
        assert!(matches!(refused, Err(Error::TooLarge(_))), "{op}");
    }
}

/// Any JSON without nulls, which a merge patch cannot set.
fn any_json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from)
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", any_json(), 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Returns the merge patch from one document to another.
fn difference(from: &Value, to: &Value) -> Value {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let removed = from
                .keys()
                .filter(|key| !to.contains_key(*key))
                .map(|key| (key.clone(), Value::Null));
            let changed = to.iter().map(|(key, value)| {
                (
                    key.clone(),
                    difference(&from.get(key).cloned().unwrap_or_default(), value),
                )
            });
            Value::Object(removed.chain(changed).collect())
        }
        _ => to.clone(),
    }
}

fn any_names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set("[a-f]", 0..6)
        .prop_map(|names| names.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

proptest! {
    #[test]
    fn the_merge_patch_of_a_difference_yields_the_target(from in any_object(), to in any_object()) {
        let patch = difference(&from, &to);
        prop_assert_eq!(merge(kind("pods"), from, patch).unwrap(), to);
    }

    #[test]
    fn without_merge_keys_a_strategic_patch_acts_as_a_merge_patch(from in any_object(), to in any_object()) {
        let (from, to) = (json!({"x": from}), json!({"x": to}));
        let patch = difference(&from, &to);
        prop_assert_eq!(pod(from, patch).unwrap(), to);
    }

    #[test]
    fn a_list_merged_by_key_keeps_entries_that_are_not_in_the_patch(old in any_names(), new in any_names()) {
        let texts = |names: &[String]| containers(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let patch = json!({"spec": {"containers": new.iter().map(|name| json!({"name": name, "tty": true})).collect::<Vec<_>>()}});
        let patched = pod(texts(&old), patch.clone()).unwrap();
        let is_new = |name: &str| new.iter().any(|other| other == name);
        let others = |names: &[&str]| {
            names.iter().filter(|name| !is_new(name)).map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        let found = names(&patched);
        prop_assert_eq!(others(&found), others(&old.iter().map(String::as_str).collect::<Vec<_>>()));
        let named: Vec<_> = found.iter().filter(|name| is_new(name)).map(|name| (*name).to_owned()).collect();
        prop_assert_eq!(named, new);
        prop_assert_eq!(pod(patched.clone(), patch).unwrap(), patched);
    }

    #[test]
    fn applying_any_patch_does_not_panic(document in any_object(), patch in any_object(), operations in any_json()) {
        let (document, patch) = (json!({"spec": document, "metadata": {"labels": {}}}), json!({"spec": {"containers": [patch]}}));
        let _ = pod(document.clone(), patch);
        let _ = json_patch(kind("pods"), document, operations);
    }
}
