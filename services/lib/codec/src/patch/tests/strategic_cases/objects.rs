//! Objects, maps, and `$retainKeys`.

use serde_json::json;

use super::{check, check_refused};

#[test]
fn fields_of_objects_are_set_changed_and_removed() {
    check(
        "pods",
        "metadata",
        &[
            (
                "an empty patch",
                json!({"name": "a"}),
                json!({}),
                json!({"name": "a"}),
            ),
            (
                "a new field",
                json!({"name": "a"}),
                json!({"uid": "u"}),
                json!({"name": "a", "uid": "u"}),
            ),
            (
                "another value",
                json!({"name": "a", "uid": "u"}),
                json!({"uid": "v"}),
                json!({"name": "a", "uid": "v"}),
            ),
            (
                "a null",
                json!({"name": "a", "uid": "u"}),
                json!({"uid": null}),
                json!({"name": "a"}),
            ),
            (
                "a null of a field that is not there",
                json!({"name": "a"}),
                json!({"uid": null}),
                json!({"name": "a"}),
            ),
            (
                "a null and a new field",
                json!({"name": "a"}),
                json!({"name": null, "uid": "u"}),
                json!({"uid": "u"}),
            ),
            (
                "all fields",
                json!({"name": "a", "uid": "u"}),
                json!({"name": null, "uid": null}),
                json!({}),
            ),
        ],
    );
}

#[test]
fn maps_are_merged_replaced_and_emptied() {
    let labels = || json!({"labels": {"a": "1", "b": "2"}});
    check(
        "pods",
        "metadata",
        &[
            (
                "a new key",
                labels(),
                json!({"labels": {"c": "3"}}),
                json!({"labels": {"a": "1", "b": "2", "c": "3"}}),
            ),
            (
                "another value",
                labels(),
                json!({"labels": {"a": "9"}}),
                json!({"labels": {"a": "9", "b": "2"}}),
            ),
            (
                "a null of a key",
                labels(),
                json!({"labels": {"b": null}}),
                json!({"labels": {"a": "1"}}),
            ),
            ("an empty map", labels(), json!({"labels": {}}), labels()),
            (
                "a null of the map",
                labels(),
                json!({"labels": null}),
                json!({}),
            ),
            (
                "a map that is new, with a null",
                json!({}),
                json!({"labels": {"a": "1", "b": null}}),
                json!({"labels": {"a": "1"}}),
            ),
            (
                "replace",
                labels(),
                json!({"labels": {"$patch": "replace", "c": "3"}}),
                json!({"labels": {"c": "3"}}),
            ),
            (
                "replace by nothing",
                labels(),
                json!({"labels": {"$patch": "replace"}}),
                json!({"labels": {}}),
            ),
            (
                "delete",
                labels(),
                json!({"labels": {"$patch": "delete"}}),
                json!({"labels": {}}),
            ),
            (
                "delete with content, which is ignored",
                labels(),
                json!({"labels": {"$patch": "delete", "c": "3"}}),
                json!({"labels": {}}),
            ),
            (
                "replace of the parent",
                labels(),
                json!({"$patch": "replace", "name": "n"}),
                json!({"name": "n"}),
            ),
            (
                "another type",
                labels(),
                json!({"labels": "x"}),
                json!({"labels": "x"}),
            ),
        ],
    );
    check(
        "pods",
        "spec",
        &[
            (
                "a nested message in a list of messages",
                json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}),
                json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "2"}}}]}),
                json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]}),
            ),
            (
                "replace of a message",
                json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}}),
                json!({"securityContext": {"$patch": "replace", "runAsUser": 3}}),
                json!({"securityContext": {"runAsUser": 3}}),
            ),
        ],
    );
}

#[test]
fn other_keys_than_those_retained_are_dropped() {
    let strategy =
        || json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
    check(
        "deployments.apps",
        "spec",
        &[
            (
                "without the directive",
                strategy(),
                json!({"strategy": {"rollingUpdate": {"maxUnavailable": 2}}}),
                json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 2}}}),
            ),
            (
                "without the directive, empty",
                strategy(),
                json!({"strategy": {}}),
                strategy(),
            ),
            (
                "change a field and drop another",
                strategy(),
                json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
                json!({"strategy": {"type": "Recreate"}}),
            ),
            (
                "keep a field that is not in the patch",
                strategy(),
                json!({"strategy": {"$retainKeys": ["type", "rollingUpdate"]}}),
                strategy(),
            ),
            (
                "a null of a dropped field",
                strategy(),
                json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": null}}),
                json!({"strategy": {"type": "Recreate"}}),
            ),
            (
                "nothing",
                strategy(),
                json!({"strategy": {"$retainKeys": []}}),
                json!({"strategy": {}}),
            ),
            (
                "an object that is new",
                json!({}),
                json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
                json!({"strategy": {"type": "Recreate"}}),
            ),
        ],
    );
    let volume =
        || json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]});
    check(
        "pods",
        "spec",
        &[
            (
                "the other source of a volume",
                volume(),
                json!({
                    "$setElementOrder/volumes": [{"name": "a"}, {"name": "b"}],
                    "volumes": [{"$retainKeys": ["name", "hostPath"], "name": "a", "hostPath": {"path": "/x"}}],
                }),
                json!({"volumes": [{"name": "a", "hostPath": {"path": "/x"}}, {"name": "b", "emptyDir": {}}]}),
            ),
            (
                "a volume that is new, before those that it does not name",
                volume(),
                json!({"volumes": [{"$retainKeys": ["name", "emptyDir"], "name": "c", "emptyDir": {}}]}),
                json!({"volumes": [{"name": "c", "emptyDir": {}}, {"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]}),
            ),
        ],
    );
    check_refused(
        "deployments.apps",
        "spec",
        &[
            (
                "a field that is not retained",
                strategy(),
                json!({"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}),
                "retainKeys",
            ),
            (
                "names that are no list",
                strategy(),
                json!({"strategy": {"$retainKeys": "type"}}),
                "retainKeys",
            ),
        ],
    );
}
