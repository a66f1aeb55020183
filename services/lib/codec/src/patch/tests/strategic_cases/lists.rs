//! Lists that are replaced, merged by key, or merged as sets, with `$deleteFromPrimitiveList`.

use serde_json::json;

use super::{check, check_refused};

#[test]
fn lists_without_a_strategy_are_replaced() {
    check(
        "pods",
        "spec",
        &[
            (
                "scalars",
                json!({"containers": [{"name": "a", "command": ["x", "y"]}]}),
                json!({"containers": [{"name": "a", "command": ["y", "z"]}]}),
                json!({"containers": [{"name": "a", "command": ["y", "z"]}]}),
            ),
            (
                "objects",
                json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
                json!({"tolerations": [{"key": "b", "operator": "Exists"}]}),
                json!({"tolerations": [{"key": "b", "operator": "Exists"}]}),
            ),
            (
                "by an empty list",
                json!({"tolerations": [{"key": "a"}]}),
                json!({"tolerations": []}),
                json!({"tolerations": []}),
            ),
            (
                "a null",
                json!({"tolerations": [{"key": "a"}]}),
                json!({"tolerations": null}),
                json!({}),
            ),
        ],
    );
}

#[test]
fn lists_are_merged_by_key() {
    let two = || json!({"containers": [{"name": "a"}, {"name": "b", "image": "2"}]});
    check(
        "pods",
        "spec",
        &[
            (
                "a field of an entry",
                two(),
                json!({"containers": [{"name": "a", "image": "1"}]}),
                json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
            ),
            (
                "another value",
                two(),
                json!({"containers": [{"name": "b", "image": "9"}]}),
                json!({"containers": [{"name": "a"}, {"name": "b", "image": "9"}]}),
            ),
            (
                "a null in an entry",
                two(),
                json!({"containers": [{"name": "b", "image": null}]}),
                json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            ),
            (
                "a list that is new",
                json!({}),
                json!({"containers": [{"name": "a", "image": null}]}),
                json!({"containers": [{"name": "a"}]}),
            ),
            ("an empty list", two(), json!({"containers": []}), two()),
            (
                "an empty list into one",
                json!({"containers": []}),
                json!({"containers": []}),
                json!({"containers": []}),
            ),
            (
                "a null of the list",
                two(),
                json!({"containers": null}),
                json!({}),
            ),
            (
                "an entry of a nested list",
                json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "9"}]}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "9"}]}]}),
            ),
            (
                "a nested list that replaces",
                json!({"containers": [{"name": "a", "args": ["1"]}, {"name": "b", "args": ["2"]}]}),
                json!({"containers": [{"name": "b", "args": ["3", "4"]}]}),
                json!({"containers": [{"name": "a", "args": ["1"]}, {"name": "b", "args": ["3", "4"]}]}),
            ),
            (
                "by a number",
                json!({"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}]}]}),
                json!({"containers": [{"name": "a", "ports": [{"containerPort": 81, "name": "x"}]}]}),
                json!({"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "x"}]}]}),
            ),
            (
                "by ip",
                json!({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}]}),
                json!({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["b"]}, {"ip": "2.2.2.2", "hostnames": ["c"]}]}),
                json!({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["b"]}, {"ip": "2.2.2.2", "hostnames": ["c"]}]}),
            ),
        ],
    );
}

#[test]
fn sets_of_scalars_are_merged_reduced_and_ordered() {
    let set = |values: &[&str]| json!({ "finalizers": values });
    check(
        "pods",
        "metadata",
        &[
            (
                "a value that is there",
                set(&["1", "2"]),
                set(&["2", "3"]),
                set(&["1", "2", "3"]),
            ),
            (
                "all values in another order",
                set(&["1", "2", "3"]),
                set(&["3", "1", "2"]),
                set(&["3", "1", "2"]),
            ),
            (
                "some values in another order",
                set(&["1", "2", "3"]),
                set(&["3", "1"]),
                set(&["2", "3", "1"]),
            ),
            ("an empty set", set(&["1"]), set(&[]), set(&["1"])),
            (
                "a value twice, before those that it does not name",
                set(&["1"]),
                set(&["2", "2"]),
                set(&["2", "1"]),
            ),
            (
                "delete",
                set(&["1", "2", "3"]),
                json!({"$deleteFromPrimitiveList/finalizers": ["3"]}),
                set(&["1", "2"]),
            ),
            (
                "delete in order",
                set(&["1", "2", "3", "4"]),
                json!({"$setElementOrder/finalizers": ["1", "2"], "$deleteFromPrimitiveList/finalizers": ["3"]}),
                set(&["1", "2", "4"]),
            ),
            (
                "delete a value that is there twice",
                set(&["1", "3", "3", "4"]),
                json!({"$deleteFromPrimitiveList/finalizers": ["3"]}),
                set(&["1", "4"]),
            ),
            (
                "delete one and add another",
                set(&["1", "2", "3"]),
                json!({
                    "$setElementOrder/finalizers": ["1", "2", "4"],
                    "$deleteFromPrimitiveList/finalizers": ["3"],
                    "finalizers": ["4"],
                }),
                set(&["1", "2", "4"]),
            ),
            (
                "delete what is not there",
                set(&["1"]),
                json!({"$deleteFromPrimitiveList/finalizers": ["9"]}),
                set(&["1"]),
            ),
            (
                "delete from a set that is not there",
                json!({}),
                json!({"$deleteFromPrimitiveList/finalizers": ["9"]}),
                json!({}),
            ),
            (
                "an order with a value that is not there",
                set(&["1", "3"]),
                json!({"$setElementOrder/finalizers": ["3", "2", "1"]}),
                set(&["3", "1"]),
            ),
        ],
    );
    check_refused(
        "pods",
        "metadata",
        &[
            (
                "another order than that of the directive",
                set(&["1", "3", "2"]),
                json!({"$setElementOrder/finalizers": ["1", "2", "3"], "finalizers": ["3", "1"]}),
                "doesn't match",
            ),
            (
                "values to delete that are no list",
                set(&["1"]),
                json!({"$deleteFromPrimitiveList/finalizers": "1"}),
                "invalid patch format of primitive list",
            ),
        ],
    );
}
