//! Lists with `$setElementOrder` and `$patch`.

use serde_json::json;

use super::{check, check_refused};

#[test]
fn entries_of_the_patch_are_in_its_order_and_others_keep_their_places() {
    let list = |names: &[&str]| {
        let entries: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({ "containers": entries })
    };
    let order = |names: &[&str]| list(names)["containers"].clone();
    check(
        "pods",
        "spec",
        &[
            (
                "all entries",
                list(&["1", "2", "3"]),
                list(&["3", "1", "2"]),
                list(&["3", "1", "2"]),
            ),
            (
                "some entries",
                list(&["1", "2", "3"]),
                list(&["3", "1"]),
                list(&["2", "3", "1"]),
            ),
            (
                "an order with an entry that is not there",
                list(&["1", "3"]),
                json!({"$setElementOrder/containers": order(&["3", "2", "1"]), "containers": order(&["3", "1"])}),
                list(&["3", "1"]),
            ),
            (
                "an order without changes",
                list(&["1", "2", "3"]),
                json!({"$setElementOrder/containers": order(&["3", "2", "1"])}),
                list(&["3", "2", "1"]),
            ),
            (
                "an empty order",
                list(&["1", "2"]),
                json!({"$setElementOrder/containers": []}),
                list(&["1", "2"]),
            ),
            (
                "an order of a list that is not there",
                json!({}),
                json!({"$setElementOrder/containers": order(&["1"])}),
                json!({}),
            ),
            (
                "new entries at both ends",
                list(&["1", "2"]),
                json!({"$setElementOrder/containers": order(&["4", "1", "2", "3"]), "containers": order(&["4", "3"])}),
                list(&["4", "1", "2", "3"]),
            ),
            (
                "entries of another writer stay before what they preceded",
                list(&["s", "1", "t", "2"]),
                json!({"$setElementOrder/containers": order(&["2", "1"])}),
                list(&["s", "t", "2", "1"]),
            ),
            (
                "an entry of another writer stays behind the last",
                list(&["1", "2", "s"]),
                json!({"$setElementOrder/containers": order(&["1", "2", "3"]), "containers": order(&["3"])}),
                list(&["1", "2", "3", "s"]),
            ),
            (
                "a nested order",
                json!({"containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}]}]}),
                json!({
                    "$setElementOrder/containers": [{"name": "a"}],
                    "containers": [{"name": "a", "$setElementOrder/env": [{"name": "Y"}, {"name": "X"}]}],
                }),
                json!({"containers": [{"name": "a", "env": [{"name": "Y"}, {"name": "X"}]}]}),
            ),
        ],
    );
    check_refused(
        "pods",
        "spec",
        &[
            (
                "another order than that of the directive",
                list(&["1", "3", "2"]),
                json!({"$setElementOrder/containers": order(&["1", "2", "3"]), "containers": order(&["3", "1"])}),
                "doesn't match",
            ),
            (
                "an entry that the directive lacks",
                list(&["1"]),
                json!({"$setElementOrder/containers": order(&["1"]), "containers": order(&["2"])}),
                "doesn't match",
            ),
            (
                "an order that is no list",
                list(&["1"]),
                json!({"$setElementOrder/containers": {}}),
                "list",
            ),
            (
                "an entry of the order without its key",
                list(&["1"]),
                json!({"$setElementOrder/containers": [{"image": "1"}]}),
                "does not contain declared merge key: name",
            ),
        ],
    );
}

#[test]
fn entries_are_deleted_and_lists_replaced_by_directives() {
    let two = || json!({"containers": [{"name": "a"}, {"name": "b"}]});
    check(
        "pods",
        "spec",
        &[
            (
                "delete one",
                two(),
                json!({"containers": [{"name": "a", "$patch": "delete"}]}),
                json!({"containers": [{"name": "b"}]}),
            ),
            (
                "delete all",
                two(),
                json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "$patch": "delete"}]}),
                json!({"containers": []}),
            ),
            (
                "delete what is not there",
                two(),
                json!({"containers": [{"name": "c", "$patch": "delete"}]}),
                two(),
            ),
            (
                "delete from an empty list",
                json!({"containers": []}),
                json!({"containers": [{"name": "a", "$patch": "delete"}]}),
                json!({"containers": []}),
            ),
            (
                "delete in a list that is new",
                json!({}),
                json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}),
                json!({"containers": [{"name": "b"}]}),
            ),
            (
                "delete all of one key",
                json!({"containers": [{"name": "a"}, {"name": "a", "image": "1"}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "$patch": "delete"}]}),
                json!({"containers": [{"name": "b"}]}),
            ),
            (
                "delete one and change another",
                two(),
                json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": "1"}]}),
                json!({"containers": [{"name": "b", "image": "1"}]}),
            ),
            (
                "delete in order, as kubectl apply does",
                json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
                json!({
                    "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
                    "containers": [{"name": "a", "$patch": "delete"}],
                }),
                json!({"containers": [{"name": "c"}, {"name": "b"}]}),
            ),
            (
                "delete in a nested list",
                json!({"containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}]}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "X", "$patch": "delete"}]}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "Y"}]}]}),
            ),
            (
                "replace",
                two(),
                json!({"containers": [{"name": "z"}, {"$patch": "replace"}]}),
                json!({"containers": [{"name": "z"}]}),
            ),
            (
                "replace by nothing",
                two(),
                json!({"containers": [{"$patch": "replace"}]}),
                json!({"containers": []}),
            ),
            (
                "replace and delete",
                two(),
                json!({"containers": [{"$patch": "replace"}, {"name": "a", "$patch": "delete"}, {"name": "z"}]}),
                json!({"containers": [{"name": "z"}]}),
            ),
            (
                "replace of one entry's content",
                json!({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}),
                json!({"volumes": [{"name": "v", "emptyDir": {"$patch": "replace"}}]}),
                json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            ),
        ],
    );
    check_refused(
        "pods",
        "spec",
        &[
            (
                "merge of a list",
                two(),
                json!({"containers": [{"name": "a", "$patch": "merge"}]}),
                "merging lists cannot yet be specified in the patch",
            ),
            (
                "merge of an object",
                two(),
                json!({"$patch": "merge"}),
                "unknown patch type: merge",
            ),
            (
                "an unknown directive in a list",
                two(),
                json!({"containers": [{"name": "a", "$patch": "explode"}]}),
                "unknown patch type: explode",
            ),
            (
                "a directive that is no text",
                two(),
                json!({"$patch": 1}),
                "unknown patch type: 1",
            ),
            (
                "delete without the key",
                two(),
                json!({"containers": [{"$patch": "delete"}]}),
                "does not contain declared merge key: name",
            ),
            (
                "delete without the key, in order",
                two(),
                json!({
                    "$setElementOrder/containers": [{"name": "b"}],
                    "containers": [{"image": "1", "$patch": "delete"}],
                }),
                "does not contain declared merge key: name",
            ),
            (
                "an entry without its key",
                two(),
                json!({"containers": [{"image": "1"}]}),
                "does not contain declared merge key: name",
            ),
            (
                "an entry without its key, in order",
                two(),
                json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"image": "1"}]}),
                "does not contain declared merge key: name",
            ),
            (
                "an entry that is no object",
                two(),
                json!({"containers": ["a"]}),
                "does not contain declared merge key: name",
            ),
        ],
    );
}
