//! `setpoint why`: what an object waits for, and who did what about it, asked of any gateway.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::{apply, text};

/// Two of everything: whoever is asked, all that know something answer.
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

/// What is waited for, by its reason.
fn wait<'a>(why: &'a Value, reason: &str) -> Option<&'a Value> {
    list(why, "/waits")
        .iter()
        .find(|wait| wait["reason"] == reason)
}

/// The answer, as soon as it tells of such a wait.
fn until_waiting(cluster: &Cluster, object: &str, reason: &str) -> Value {
    eventually(&format!("{object} waits: {reason}"), || {
        let why = cluster.setpoint_json(1, &format!("why {object} -n production"))?;
        match wait(&why, reason) {
            Some(_) => Ok(why),
            None => Err(why["waits"].to_string()),
        }
    })
}

/// The rounds of a service, whichever replica leads.
fn rounds<'a>(why: &'a Value, service: &str) -> Vec<&'a Value> {
    let observers = list(why, "/observers").iter();
    let of_service = observers.filter(|observer| observer["service"] == service);
    of_service
        .flat_map(|observer| list(observer, "/rounds"))
        .collect()
}

fn steps(round: &Value) -> String {
    let steps = list(round, "/steps").iter();
    let steps = steps.map(|step| {
        format!(
            "{} because {}",
            text(step, "/action"),
            text(step, "/because")
        )
    });
    steps.collect::<Vec<_>>().join("; ")
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
fn a_pod_that_fits_nowhere_is_told_what_speaks_against_each_node() {
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
    let why = until_waiting(&cluster, "po/big", "Unschedulable");
    let wait = wait(&why, "Unschedulable").expect("it was just there");
    assert!(
        text(wait, "/message").contains("Insufficient cpu"),
        "{wait}"
    );
    assert_eq!(list(wait, "/verdicts").len(), 2, "{wait}");
    for verdict in list(wait, "/verdicts") {
        assert_eq!(
            verdict["objections"],
            serde_json::json!(["Insufficient cpu"]),
            "{wait}"
        );
    }
    assert!(!rounds(&why, "scheduler").is_empty(), "{why}");
    let silent = list(&why, "/observers")
        .iter()
        .filter(|one| one["silent"] != "");
    assert_eq!(silent.count(), 0, "{}", why["observers"]);
    // One of each is there, leading or not, and the agent of both nodes.
    assert_eq!(
        list(&why, "/observers").len(),
        2 * 3 + 1,
        "{}",
        why["observers"]
    );
    let writers = list(&why, "/managers").iter().map(|one| text(one, "/name"));
    let writers: Vec<_> = writers.collect();
    assert!(
        writers.contains(&"kubectl-create") && writers.contains(&"scheduler"),
        "{writers:?}"
    );

    let page = cluster.setpoint_at(0, "why pod big -n production");
    assert!(
        page.success && page.stdout.contains("Unschedulable"),
        "{page:?}"
    );
    assert!(
        page.stdout.contains("node-0-0: Insufficient cpu"),
        "{page:?}"
    );
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
    let (_, silent) = page.split_once("Did not answer:").expect("one is dead");
    assert!(
        silent.contains("replicaset-controller-1: ") && silent.contains("cannot be reached"),
        "{page}"
    );
}

#[test]
fn a_pod_whose_container_crashes_is_told_until_when_it_rests() {
    let cluster = cluster(1, 0);
    let kubectl = cluster.kubectl();
    kubectl.ok("create namespace production");
    create(
        &kubectl,
        &pod("crash", "{name: a, image: a, command: [sh, -c, exit 3]}"),
    );
    // Events wait for each other before they are written: the wait is known sooner.
    let why = eventually("it says until when, and the Events have come", || {
        let why = until_waiting(&cluster, "pod/crash", "CrashLoopBackOff");
        let until = wait(&why, "CrashLoopBackOff").and_then(|wait| wait["untilNs"].as_i64());
        let told = |reason| {
            list(&why, "/events")
                .iter()
                .any(|one| one["reason"] == reason)
        };
        match until {
            Some(1..) if told("BackOff") && told("Scheduled") => Ok(why),
            _ => Err(format!("{} {}", why["waits"], why["events"])),
        }
    });
    let wait = wait(&why, "CrashLoopBackOff").expect("it was just there");
    assert!(text(wait, "/message").contains("exit code 3"), "{wait}");
    let rounds = rounds(&why, "node-agent");
    let started = rounds.iter().find(|round| steps(round).contains("Start"));
    assert!(started.is_some(), "{rounds:?}");
}

#[test]
fn a_rollout_that_is_blocked_names_the_pod_and_what_became_of_a_deleted_pod_is_still_known() {
    let cluster = cluster(0, 2);
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    kubectl.ok("set resources deployment/web-frontend -n production --requests=cpu=1000");
    let why = until_waiting(&cluster, "deploy/web-frontend", "Unschedulable");
    let wait = wait(&why, "Unschedulable").expect("it was just there");
    let blocked = text(wait, "/on/name");
    assert!(blocked.starts_with("web-frontend-"), "{wait}");
    let own = rounds(&why, "deployment-controller");
    assert!(
        own.iter()
            .any(|round| steps(round).contains("no ReplicaSet has this template")),
        "{own:?}"
    );

    let of_pod = cluster.setpoint_json(0, &format!("why pod/{blocked} -n production"));
    let of_pod = of_pod.expect("it exists");
    let owners: Vec<_> = list(&of_pod, "/owners")
        .iter()
        .map(|one| text(one, "/resource"))
        .collect();
    assert_eq!(owners, ["replicasets.apps", "deployments.apps"]);
    let made = rounds(&of_pod, "replicaset-controller");
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(
        steps(made[0]).ends_with("because fewer Pods than replicas"),
        "{made:?}"
    );
    assert_eq!(made[0]["touched"]["name"], blocked);

    kubectl.ok("rollout undo deployment/web-frontend -n production");
    let gone = eventually("the Pod is gone", || {
        let why = cluster.setpoint_json(1, &format!("why pod/{blocked} -n production"))?;
        let gone = why["exists"] == false;
        gone.then_some(why.clone()).ok_or(why.to_string())
    });
    assert_eq!(gone["cause"]["writer"], "replicaset-controller", "{gone}");
    let rounds = rounds(&gone, "replicaset-controller");
    assert!(
        rounds
            .iter()
            .any(|round| steps(round).contains("more Pods than replicas")),
        "{rounds:?}"
    );
    let page = cluster.setpoint_at(0, &format!("why pod/{blocked} -n production"));
    assert!(
        page.stdout.contains("it does not exist any more"),
        "{page:?}"
    );
}
