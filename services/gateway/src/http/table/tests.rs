//! The cells of each kind.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use setpoint_codec::kinds;

use super::*;

const NOW: &str = "2026-01-01T01:00:00Z";

/// Returns the cells of an object by column.
fn cells(resource: &str, object: Value) -> BTreeMap<String, Value> {
    let kind = kinds().by_resource(resource).unwrap();
    let object = kind.from_json(object.to_string().as_bytes()).unwrap();
    let row = row(&*object, Include::Metadata, "v1", NOW.parse().unwrap());
    let columns = columns(kind);
    let names = columns
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap());
    let cells = row["cells"].as_array().unwrap().iter();
    names.map(str::to_owned).zip(cells.cloned()).collect()
}

fn pod(spec: Value, status: Value) -> BTreeMap<String, Value> {
    let created = "2026-01-01T00:59:30Z";
    let metadata = json!({ "name": "web", "creationTimestamp": created });
    cells(
        "pods",
        json!({ "metadata": metadata, "spec": spec, "status": status }),
    )
}

fn one_container() -> Value {
    json!({ "containers": [{ "name": "web" }] })
}

fn with_state(state: Value) -> Value {
    json!({ "phase": "Running", "containerStatuses": [{ "name": "web", "state": state }] })
}

#[test]
fn a_row_has_name_and_age() {
    let cells = pod(one_container(), json!({ "phase": "Pending" }));
    assert_eq!(cells["Name"], "web");
    assert_eq!(cells["Age"], "30s");
    assert_eq!(cells["Status"], "Pending");
    assert_eq!(cells["Ready"], "0/1");
    assert_eq!(cells["Restarts"], "0");
    assert_eq!(cells["Node"], "<none>");
    assert_eq!(cells["Readiness Gates"], "<none>");
}

#[test]
fn the_status_of_a_pod_is_the_state_of_its_containers() {
    for (state, expected) in [
        (
            json!({ "waiting": { "reason": "ContainerCreating" } }),
            "ContainerCreating",
        ),
        (
            json!({ "waiting": { "reason": "CrashLoopBackOff" } }),
            "CrashLoopBackOff",
        ),
        (
            json!({ "terminated": { "exitCode": 1, "reason": "Error" } }),
            "Error",
        ),
        (json!({ "terminated": { "exitCode": 3 } }), "ExitCode:3"),
        (
            json!({ "terminated": { "signal": 9, "exitCode": 137 } }),
            "Signal:9",
        ),
        (
            json!({ "terminated": { "exitCode": 0, "reason": "Completed" } }),
            "Completed",
        ),
        (json!({ "running": {} }), "Running"),
    ] {
        assert_eq!(pod(one_container(), with_state(state))["Status"], expected);
    }
}

#[test]
fn a_running_container_outweighs_a_completed_one() {
    let two = json!({ "containers": [{ "name": "a" }, { "name": "b" }] });
    let done =
        json!({ "name": "a", "state": { "terminated": { "exitCode": 0, "reason": "Completed" } } });
    let runs = json!({ "name": "b", "ready": true, "state": { "running": {} } });
    let status = json!({
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }],
        "containerStatuses": [done, runs],
    });
    let cells = pod(two, status);
    assert_eq!(
        (&cells["Status"], &cells["Ready"]),
        (&json!("Running"), &json!("1/2"))
    );
}

#[test]
fn restarts_have_the_time_since_the_last_one() {
    let restarted = json!({
        "name": "web",
        "ready": true,
        "restartCount": 2,
        "state": { "running": {} },
        "lastState": { "terminated": { "exitCode": 137, "finishedAt": "2026-01-01T00:59:55Z" } },
    });
    let status = json!({ "phase": "Running", "containerStatuses": [restarted] });
    assert_eq!(pod(one_container(), status)["Restarts"], "2 (5s ago)");
}

#[test]
fn the_status_of_a_pod_begins_with_its_init_containers() {
    let spec = json!({ "containers": [{ "name": "web" }], "initContainers": [{ "name": "a" }, { "name": "b" }] });
    let init = |state: Value| {
        let done = json!({ "name": "a", "state": { "terminated": { "exitCode": 0 } } });
        let next = json!({ "name": "b", "state": state });
        json!({ "phase": "Pending", "initContainerStatuses": [done, next] })
    };
    for (state, expected) in [
        (json!({ "running": {} }), "Init:1/2"),
        (
            json!({ "waiting": { "reason": "PodInitializing" } }),
            "Init:1/2",
        ),
        (
            json!({ "waiting": { "reason": "CrashLoopBackOff" } }),
            "Init:CrashLoopBackOff",
        ),
        (
            json!({ "terminated": { "exitCode": 2, "reason": "Error" } }),
            "Init:Error",
        ),
        (
            json!({ "terminated": { "exitCode": 2 } }),
            "Init:ExitCode:2",
        ),
    ] {
        assert_eq!(pod(spec.clone(), init(state))["Status"], expected);
    }
}

#[test]
fn a_pod_being_deleted_is_terminating_unless_it_has_ended() {
    let deleting = |phase: &str| {
        let metadata = json!({ "name": "web", "deletionTimestamp": NOW });
        let pod =
            json!({ "metadata": metadata, "spec": one_container(), "status": { "phase": phase } });
        cells("pods", pod)["Status"].clone()
    };
    assert_eq!(deleting("Running"), "Terminating");
    assert_eq!(deleting("Succeeded"), "Succeeded");
}

#[test]
fn a_deployment_shows_its_replicas_and_template() {
    let cells = cells(
        "deployments.apps",
        json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 3,
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "spec": { "containers": [
                    { "name": "a", "image": "nginx:1.25" },
                    { "name": "b", "image": "busybox" },
                ] } },
            },
            "status": { "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1 },
        }),
    );
    assert_eq!(cells["Ready"], "2/3");
    assert_eq!(cells["Up-to-date"], 3);
    assert_eq!(cells["Available"], 1);
    assert_eq!(cells["Containers"], "a,b");
    assert_eq!(cells["Images"], "nginx:1.25,busybox");
    assert_eq!(cells["Selector"], "app=web");
    assert_eq!(cells["Age"], "<unknown>");
}

#[test]
fn a_node_shows_its_status_roles_and_addresses() {
    let node = |ready: &str, unschedulable: bool| {
        let node = json!({
            "metadata": { "name": "a", "labels": { "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge" } },
            "spec": { "unschedulable": unschedulable },
            "status": {
                "conditions": [{ "type": "Ready", "status": ready }],
                "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
                "nodeInfo": { "kubeletVersion": "v1.33.0" },
            },
        });
        cells("nodes", node)
    };
    let cells = node("True", true);
    assert_eq!(cells["Status"], "Ready,SchedulingDisabled");
    assert_eq!(cells["Roles"], "control-plane,edge");
    assert_eq!(cells["Version"], "v1.33.0");
    assert_eq!(cells["Internal-IP"], "10.0.0.1");
    assert_eq!(cells["External-IP"], "<none>");
    assert_eq!(cells["OS-Image"], "<unknown>");
    assert_eq!(node("False", false)["Status"], "NotReady");
}

#[test]
fn a_service_shows_its_ports() {
    let service = |spec: Value| {
        cells(
            "services",
            json!({ "metadata": { "name": "web" }, "spec": spec }),
        )
    };
    let ports = json!([{ "port": 80, "nodePort": 30080, "protocol": "TCP" }, { "port": 53, "protocol": "UDP" }]);
    let cells = service(
        json!({ "type": "LoadBalancer", "clusterIP": "10.0.0.9", "ports": ports, "selector": { "app": "web" } }),
    );
    assert_eq!(cells["Port(s)"], "80:30080/TCP,53/UDP");
    assert_eq!(cells["Cluster-IP"], "10.0.0.9");
    assert_eq!(cells["External-IP"], "<pending>");
    assert_eq!(cells["Selector"], "app=web");
    let cells = service(json!({ "type": "ExternalName", "externalName": "example.org" }));
    assert_eq!(cells["External-IP"], "example.org");
    assert_eq!(cells["Port(s)"], "<none>");
}

#[test]
fn an_event_shows_its_object_age_and_message() {
    let cells = cells(
        "events",
        json!({
            "metadata": { "name": "web.1" },
            "involvedObject": { "kind": "Pod", "name": "web" },
            "lastTimestamp": "2026-01-01T00:58:00Z",
            "type": "Warning",
            "reason": "Failed",
            "message": "it broke\n",
            "source": { "component": "scheduler", "host": "a" },
        }),
    );
    assert_eq!(cells["Object"], "pod/web");
    assert_eq!(cells["Last Seen"], "2m");
    assert_eq!(cells["Message"], "it broke");
    assert_eq!(cells["Source"], "scheduler, a");
    assert_eq!(cells["Count"], 1);
}

#[test]
fn a_row_includes_as_much_of_the_object_as_requested() {
    let kind = kinds().by_resource("configmaps").unwrap();
    let object = kind
        .from_json(br#"{"metadata":{"name":"c"},"data":{"a":"b"}}"#)
        .unwrap();
    let row = |include| row(&*object, include, "v1", Timestamp::UNIX_EPOCH);
    assert_eq!(row(Include::Nothing)["object"], Value::Null);
    assert_eq!(
        row(Include::Metadata)["object"]["kind"],
        "PartialObjectMetadata"
    );
    assert_eq!(row(Include::Object)["object"]["data"]["a"], "b");
}

#[test]
fn the_row_of_a_pod_that_has_ended_is_completed() {
    let kind = kinds().by_resource("pods").unwrap();
    let conditions = |phase: &str| {
        let pod = json!({ "status": { "phase": phase } }).to_string();
        let pod = kind.from_json(pod.as_bytes()).unwrap();
        row(&*pod, Include::Metadata, "v1", Timestamp::UNIX_EPOCH)["conditions"].clone()
    };
    assert_eq!(conditions("Running"), Value::Null);
    for phase in ["Succeeded", "Failed"] {
        let condition = &conditions(phase)[0];
        assert_eq!(condition["type"], "Completed");
        assert_eq!(condition["reason"], phase);
    }
}

#[test]
fn a_definition_has_the_time_of_its_creation() {
    let resource = "customresourcedefinitions.apiextensions.k8s.io";
    let metadata = json!({ "name": "tabs.example.com", "creationTimestamp": NOW });
    let cells = cells(resource, json!({ "metadata": metadata }));
    assert_eq!(cells["Name"], "tabs.example.com");
    assert_eq!(cells["Created At"], NOW);
    assert_eq!(cells.len(), 2);
}
