//! Objects that should not exist any more.

use std::collections::HashMap;

use serde_json::Value;

use crate::snapshot::{Snapshot, is_true, name, text};
use crate::workload::{Kind, NAMESPACES, Shape, Workload};

/// The finalizer of Pods that their Job has not counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Returns the objects that nobody has declared, that are being deleted, or whose owner is gone.
pub fn problems(declared: &[Workload], snapshot: &Snapshot) -> Vec<String> {
    let owners: HashMap<_, _> = snapshot
        .all()
        .map(|(_, object)| (text(object, "/metadata/uid"), object))
        .collect();
    let mut problems: Vec<_> = snapshot.of("nodes").iter().filter_map(node).collect();
    let ours = |object: &Value| NAMESPACES.contains(&text(object, "/metadata/namespace"));
    for (resource, object) in snapshot.all().filter(|(_, object)| ours(object)) {
        let found = why(declared, &owners, resource, object);
        problems.extend(found.map(|why| format!("{}: {why}", name(resource, object))));
    }
    problems
}

fn node(node: &Value) -> Option<String> {
    let name = name("nodes", node);
    if !is_true(node, "Ready") {
        return Some(format!("{name} is not Ready"));
    }
    let tainted = node
        .pointer("/spec/taints/0")
        .filter(|taint| taint["key"] != "setpoint.dev/simulated");
    tainted.map(|taint| format!("{name} has the taint {taint}"))
}

fn why(
    declared: &[Workload],
    owners: &HashMap<&str, &Value>,
    resource: &str,
    object: &Value,
) -> Option<String> {
    if !text(object, "/metadata/deletionTimestamp").is_empty() {
        let finalizers = &object["metadata"]["finalizers"];
        return Some(format!("it is being deleted, with finalizers {finalizers}"));
    }
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    if finalizers.is_some_and(|finalizers| finalizers.iter().any(|one| one == TRACKING)) {
        return Some("its Job has not counted it".to_owned());
    }
    let references = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let mut references = references.into_iter().flatten().peekable();
    if references.peek().is_none() {
        return (!is_declared(declared, resource, object))
            .then(|| "nobody has declared it".to_owned());
    }
    let gone =
        references.find(|owner| !owners.contains_key(owner["uid"].as_str().unwrap_or_default()));
    gone.map(|owner| format!("its owner {owner} is gone"))
}

fn is_declared(declared: &[Workload], resource: &str, object: &Value) -> bool {
    let autoscaled = |shape: &Shape| {
        matches!(
            shape,
            Shape::Replicas {
                load: Some((_, true)),
                ..
            }
        )
    };
    let mut declared = declared.iter().filter(|one| super::is(one, object));
    declared.any(|one| match resource {
        "horizontalpodautoscalers" => one.kind == Kind::Deployment && autoscaled(&one.shape),
        _ => one.kind.resource().1 == resource,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, owner: Option<&str>) -> Value {
        let owners = owner.map(|uid| json!([{"uid": uid, "controller": true}]));
        json!({"metadata": {
            "name": name, "namespace": NAMESPACES[0], "uid": format!("uid-{name}"), "ownerReferences": owners,
        }})
    }

    fn declared(name: &str) -> Workload {
        Workload {
            kind: Kind::DaemonSet,
            namespace: NAMESPACES[0],
            name: name.to_owned(),
            image: 1,
            shape: Shape::Slice(0),
        }
    }

    #[test]
    fn what_has_no_living_owner_and_is_not_declared_is_left_over() {
        let mut snapshot = Snapshot::default();
        snapshot.add("daemonsets", object("kept", None));
        snapshot.add("pods", object("its-pod", Some("uid-kept")));
        assert_eq!(
            problems(&[declared("kept")], &snapshot),
            Vec::<String>::new()
        );
        assert_eq!(problems(&[], &snapshot).len(), 1);
        snapshot.add("pods", object("orphan", Some("uid-gone")));
        let mut counted = object("not-counted", Some("uid-kept"));
        counted["metadata"]["finalizers"] = json!([TRACKING]);
        snapshot.add("pods", counted);
        let found = problems(&[declared("kept")], &snapshot);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("pods soak-0/orphan: its owner"),
            "{found:?}"
        );
    }
}
