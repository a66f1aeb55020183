//! Pods that wait for a suitable node.

use std::fmt::Write as _;

use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::text;

const PODS: usize = 200;

/// Checks F3 and C6: nodes that become schedulable while the scheduler marks Pods unschedulable are not missed.
#[test]
fn pods_being_marked_unschedulable_are_bound_when_nodes_become_schedulable() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 3,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    for node in names(&kubectl) {
        kubectl.ok(&format!("cordon {node}"));
    }
    assert!(
        cluster.process("scheduler-0").stop(),
        "it exits without an error"
    );
    let created = kubectl.with("create", &manifests());
    assert!(created.success, "{}", created.stderr);
    cluster.process("scheduler-0").restart();

    eventually("the first Pod is marked unschedulable", || {
        let events = kubectl.ok("get events -o name --field-selector reason=FailedScheduling");
        (!events.is_empty()).then_some(()).ok_or(events)
    });
    for node in &names(&kubectl)[..2] {
        kubectl.ok(&format!("uncordon {node}"));
    }
    eventually("every Pod has a node", || {
        let waiting = kubectl.ok("get pods -o name --field-selector spec.nodeName=");
        let left = waiting.lines().count();
        (left == 0).then_some(()).ok_or(format!("{left} wait"))
    });
}

fn names(kubectl: &Kubectl) -> Vec<String> {
    let nodes = kubectl.json("get nodes");
    let items = nodes["items"].as_array().into_iter().flatten();
    items
        .map(|node| text(node, "/metadata/name").to_owned())
        .collect()
}

fn manifests() -> String {
    let mut manifests = String::new();
    for n in 0..PODS {
        let _ = write!(
            manifests,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: waiting-{n}, namespace: default}}\n\
             spec: {{containers: [{{name: main, image: busybox}}]}}\n"
        );
    }
    manifests
}

/// Checks F5: constraints that are not evaluated do not count as satisfied, and a host port is used by one Pod only.
#[test]
fn a_pod_with_an_unmet_or_unsupported_hard_constraint_is_pending_with_a_reason() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let claim = "resourceClaims: [{name: gpu, resourceClaimName: gpu}]";
    let port =
        "containers: [{name: main, image: busybox, ports: [{containerPort: 80, hostPort: 8080}]}]";
    create(&kubectl, "claiming", &format!("{CONTAINERS}, {claim}"));
    for name in ["first", "second"] {
        create(&kubectl, name, port);
        until_bound(&kubectl, name);
    }
    create(&kubectl, "third", port);
    let ports = "2 node(s) didn't have free ports for the requested pod ports";
    for (name, reason) in [("claiming", "spec.resourceClaims"), ("third", ports)] {
        until_unschedulable(&kubectl, name, reason);
        let why = cluster.setpoint_json(0, &format!("why pod/{name} -n default"));
        let why = why.expect("there is a response").to_string();
        assert!(why.contains(reason), "{why}");
    }
}

const CONTAINERS: &str = "containers: [{name: main, image: busybox}]";

/// Checks F5 and C6: of three Pods that repel each other, two have a node each, and the third one gets that of the
/// first that is deleted.
#[test]
fn anti_affinity_keeps_pods_apart() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let anti_affinity = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
         [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}";
    let spec = format!("{CONTAINERS}, {anti_affinity}");
    let mut nodes = ["first", "second"].map(|name| {
        create(&kubectl, name, &spec);
        until_bound(&kubectl, name)
    });
    nodes.sort();
    assert_eq!(nodes.to_vec(), names(&kubectl));
    create(&kubectl, "third", &spec);
    let refused = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: \
                   0/2 nodes are available: 2 No preemption victims found for incoming pod.";
    until_unschedulable(&kubectl, "third", refused);
    kubectl.ok("delete pod first --wait=false");
    until_bound(&kubectl, "third");
}

/// Checks C7 and F5: on a full node, a Pod of low priority is marked and deleted, and one of high priority gets its
/// room.
#[test]
fn a_pod_of_high_priority_preempts_on_a_full_node() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    kubectl.ok("create priorityclass urgent --value=1000");
    let of_cpu = |cpu: u32| {
        format!(
            "containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: {cpu}}}}}}}]"
        )
    };
    create(&kubectl, "small", &of_cpu(1));
    create_with(
        &kubectl,
        "large",
        "finalizers: [example.com/keep]",
        &of_cpu(30),
    );
    let node = until_bound(&kubectl, "large");
    until_bound(&kubectl, "small");
    let urgent = format!("priorityClassName: urgent, {}", of_cpu(20));
    create(&kubectl, "urgent", &urgent);
    assert_eq!(until_bound(&kubectl, "urgent"), node);
    let victim = kubectl.json("get pod large");
    let conditions = victim["status"]["conditions"].as_array().cloned();
    let marked = conditions.into_iter().flatten().any(|condition| {
        text(&condition, "/type") == "DisruptionTarget"
            && text(&condition, "/reason") == "PreemptionByScheduler"
    });
    assert!(
        marked && !text(&victim, "/metadata/deletionTimestamp").is_empty(),
        "{victim}"
    );
    let spared = kubectl.json("get pod small");
    assert!(
        spared["metadata"]["deletionTimestamp"].is_null(),
        "{spared}"
    );
    let uid = text(&kubectl.json("get pod urgent"), "/metadata/uid").to_owned();
    let said = format!("Preempted by pod {uid} on node {node}");
    eventually("an Event about the victim says so", || {
        let field = "reason=Preempted,involvedObject.name=large";
        let events = kubectl.ok(&format!("get events -o yaml --field-selector {field}"));
        events.contains(&said).then_some(()).ok_or(events)
    });
}

fn until_bound(kubectl: &Kubectl, name: &str) -> String {
    eventually("the Pod has a node", || {
        let pod = kubectl.json(&format!("get pod {name}"));
        let node = text(&pod, "/spec/nodeName").to_owned();
        (!node.is_empty()).then_some(node).ok_or(pod.to_string())
    })
}

fn create(kubectl: &Kubectl, name: &str, spec: &str) {
    create_with(kubectl, name, "labels: {app: web}", spec);
}

fn create_with(kubectl: &Kubectl, name: &str, meta: &str, spec: &str) {
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, {meta}}}\nspec: {{{spec}}}\n"
    );
    let created = kubectl.with("create", &manifest);
    assert!(created.success, "{}", created.stderr);
}

fn until_unschedulable(kubectl: &Kubectl, name: &str, reason: &str) {
    eventually("the condition and an Event have the reason", || {
        let pod = kubectl.json(&format!("get pod {name}"));
        let conditions = pod["status"]["conditions"].as_array();
        let refused = conditions.into_iter().flatten().any(|condition| {
            text(condition, "/reason") == "Unschedulable"
                && text(condition, "/message").contains(reason)
        });
        let events = kubectl.json(&format!(
            "get events --field-selector reason=FailedScheduling,involvedObject.name={name}"
        ));
        let shown = events["items"].to_string().contains(reason);
        (refused && shown).then_some(()).ok_or(pod.to_string())
    });
}
