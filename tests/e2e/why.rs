//! `setpoint why` explains the state of an object, through any gateway.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::{apply, text};

/// Starts two replicas of every service; any gateway collects the responses of all.
fn cluster(process_nodes: usize, simulated_nodes: usize) -> Cluster {
    Cluster::start(Size {
        gateways: 2,
        replicas: 2,
        process_nodes,
        simulated_nodes,
    })
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the wait with this reason.
fn wait<'a>(why: &'a Value, reason: &str) -> Option<&'a Value> {
    list(why, "/waits")
        .iter()
        .find(|wait| wait["reason"] == reason)
}

/// Returns the response of a gateway once it is as expected. Replicas record their decisions at different times, and
/// slow ones are missing in a response.
fn until(cluster: &Cluster, gateway: usize, object: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("the explanation of {object} is complete"), || {
        let why = cluster.setpoint_json(gateway, &format!("why {object} -n production"))?;
        match is_so(&why) {
            true => Ok(why),
            false => Err(format!("{why:#}")),
        }
    })
}

/// Returns the number of replicas that did not respond.
fn silent(why: &Value) -> usize {
    let observers = list(why, "/observers").iter();
    observers.filter(|one| one["silent"] != "").count()
}

/// Returns the names of the managers of the subject's fields.
fn managers(why: &Value) -> Vec<&str> {
    let managers = list(why, "/managers").iter();
    managers.map(|one| text(one, "/name")).collect()
}

/// Returns the reconciles of all replicas of a service.
fn reconciles<'a>(why: &'a Value, service: &str) -> Vec<&'a Value> {
    let observers = list(why, "/observers").iter();
    let of_service = observers.filter(|observer| observer["service"] == service);
    of_service
        .flat_map(|observer| list(observer, "/reconciles"))
        .collect()
}

fn steps(reconcile: &Value) -> String {
    let steps = list(reconcile, "/steps").iter();
    let steps = steps.map(|step| {
        format!(
            "{} because {}",
            text(step, "/action"),
            text(step, "/because")
        )
    });
    steps.collect::<Vec<_>>().join("; ")
}

/// Returns whether a service has recently executed such a step.
fn has_stepped(why: &Value, service: &str, step: &str) -> bool {
    let reconciles = reconciles(why, service);
    reconciles.iter().any(|one| steps(one).contains(step))
}

fn create(kubectl: &Kubectl, manifest: &str) {
    let output = kubectl.with("create -n production", manifest);
    assert!(output.success, "{}", output.stderr);
}

fn pod(name: &str, container: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - {container}\n"
    )
}

#[test]
fn a_pod_that_fits_nowhere_lists_the_reason_of_each_node() {
    let mut cluster = cluster(0, 2);
    let kubectl = cluster.kubectl();
    kubectl.ok("create namespace production");
    create(
        &kubectl,
        &pod(
            "big",
            "{name: a, image: a, resources: {requests: {cpu: '1000'}}}",
        ),
    );
    // Two replicas of each service, leading or not, the agent of both nodes, and the housekeeping.
    let observers = 2 * 3 + 2;
    let why = until(&cluster, 1, "po/big", |why| {
        let wait = wait(why, "Unschedulable");
        let verdicts = wait.map_or(0, |wait| list(wait, "/verdicts").len());
        let answered = (list(why, "/observers").len(), silent(why)) == (observers, 0);
        let has_written = managers(why).contains(&"scheduler");
        verdicts == 2 && answered && has_written && !reconciles(why, "scheduler").is_empty()
    });
    let wait = wait(&why, "Unschedulable").expect("the wait was found before");
    assert!(
        text(wait, "/message").contains("Insufficient cpu"),
        "{wait}"
    );
    for verdict in list(wait, "/verdicts") {
        assert_eq!(
            verdict["objections"],
            serde_json::json!(["Insufficient cpu"]),
            "{wait}"
        );
    }
    let writers = managers(&why);
    assert!(writers.contains(&"kubectl-create"), "{writers:?}");

    eventually("another gateway returns the same page", || {
        let page = cluster.setpoint_at(0, "why pod big -n production");
        let expected = ["Unschedulable", "node-0-0: Insufficient cpu"];
        let whole = page.success
            && expected
                .iter()
                .all(|expected| page.stdout.contains(expected));
        whole.then_some(()).ok_or(format!("{page:?}"))
    });
    let unknown = cluster.setpoint_at(0, "why pod/none -n production");
    assert!(
        !unknown.success && unknown.stderr.contains("\"none\" not found"),
        "{unknown:?}"
    );
    let unknown = cluster.setpoint_at(0, "why gizmo/none");
    assert!(
        unknown.stderr.contains("doesn't have a resource type"),
        "{unknown:?}"
    );

    cluster.process("replicaset-controller-1").kill();
    let page = cluster.setpoint_at(0, "why pod/big -n production").stdout;
    let (_, silent) = page
        .split_once("Did not answer:")
        .expect("a replica was killed");
    assert!(
        silent.contains("replicaset-controller-1: ") && silent.contains("cannot be reached"),
        "{page}"
    );
}

#[test]
fn why_shows_the_end_of_a_crashing_containers_backoff() {
    let cluster = cluster(1, 0);
    let kubectl = cluster.kubectl();
    kubectl.ok("create namespace production");
    create(
        &kubectl,
        &pod("crash", "{name: a, image: a, command: [sh, -c, exit 3]}"),
    );
    // Events are written in batches, so the wait is known earlier.
    let why = until(&cluster, 1, "pod/crash", |why| {
        let until = wait(why, "CrashLoopBackOff").and_then(|wait| wait["untilNs"].as_i64());
        let events = list(why, "/events");
        let reported = |reason| events.iter().any(|one| one["reason"] == reason);
        let started = has_stepped(why, "node-agent", "Start");
        until > Some(0) && reported("BackOff") && reported("Scheduled") && started
    });
    let wait = wait(&why, "CrashLoopBackOff").expect("the wait was found before");
    assert!(text(wait, "/message").contains("exit code 3"), "{wait}");
}

#[test]
fn why_names_the_pod_that_blocks_a_rollout_and_still_explains_a_deleted_pod() {
    let cluster = cluster(0, 2);
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    kubectl.ok("set resources deployment/web-frontend -n production --requests=cpu=1000");
    let why = until(&cluster, 1, "deploy/web-frontend", |why| {
        let because = "no ReplicaSet has this template";
        wait(why, "Unschedulable").is_some() && has_stepped(why, "deployment-controller", because)
    });
    let wait = wait(&why, "Unschedulable").expect("the wait was found before");
    let blocked = text(wait, "/on/name");
    assert!(blocked.starts_with("web-frontend-"), "{wait}");

    let pod = format!("pod/{blocked}");
    let of_pod = until(&cluster, 0, &pod, |why| {
        let known = list(why, "/owners").len() == 2;
        known && !reconciles(why, "replicaset-controller").is_empty()
    });
    let owners: Vec<_> = list(&of_pod, "/owners")
        .iter()
        .map(|one| text(one, "/resource"))
        .collect();
    assert_eq!(owners, ["replicasets.apps", "deployments.apps"]);
    let made = reconciles(&of_pod, "replicaset-controller");
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(
        steps(made[0]).ends_with("because fewer Pods than replicas"),
        "{made:?}"
    );
    assert_eq!(made[0]["touched"]["name"], blocked);

    kubectl.ok("rollout undo deployment/web-frontend -n production");
    let gone = until(&cluster, 1, &pod, |why| {
        let because = "more Pods than replicas";
        why["exists"] == false && has_stepped(why, "replicaset-controller", because)
    });
    assert_eq!(gone["cause"]["writer"], "replicaset-controller", "{gone}");
    let page = cluster.setpoint_at(0, &format!("why {pod} -n production"));
    assert!(
        page.stdout.contains("it does not exist any more"),
        "{page:?}"
    );
}
