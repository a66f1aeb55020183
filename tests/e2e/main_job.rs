//! The steps of the README: apply, get, scale, delete, roll out, kill.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::{apply, is_ready, manifest, pods, text, until_ready};

/// Longer than controllers take between two writes.
const QUIET: Duration = Duration::from_secs(1);

/// All steps of the README in one test, because starting a cluster takes most of the time.
#[test]
fn a_deployment_is_applied_scaled_repaired_and_rolled_out() {
    let cluster = Cluster::start(Size {
        process_nodes: 3,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    three_pods_run_on_three_nodes(&kubectl);
    kubectl_shows_the_usual_tables(&kubectl);
    kubectl_reads_openapi_and_pages(&kubectl);
    applying_again_changes_nothing(&kubectl);
    a_watch_streams_scaling(&kubectl);
    a_deleted_pod_is_replaced(&kubectl);
    a_killed_process_is_restarted(&cluster, &kubectl);
    a_rollout_keeps_max_surge_and_max_unavailable(&kubectl);
    deleting_the_deployment_deletes_its_pods(&kubectl);
}

fn three_pods_run_on_three_nodes(kubectl: &Kubectl) {
    let pods = until_ready(kubectl, 3);
    let nodes: BTreeSet<_> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    assert_eq!(nodes.len(), 3, "spread over the nodes: {nodes:?}");
    assert!(
        pods.iter()
            .all(|pod| text(pod, "/status/phase") == "Running")
    );
}

/// Returns the lines of a table with single spaces, once it shows the expected state.
fn ready_table(kubectl: &Kubectl) -> Vec<String> {
    let is_deployment = |line: &&String| {
        line.starts_with("deployment.apps/web-frontend ")
            && line.contains(" 3/3 3 3 ")
            && line.contains("nginx:1.25")
    };
    let is_pod =
        |line: &&String| line.starts_with("pod/web-frontend-") && line.contains(" 1/1 Running 0 ");
    eventually("all objects are shown as ready", || {
        let table = kubectl.ok("get deploy,rs,pods -n production -o wide");
        let folded: Vec<_> = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let deployments = folded.iter().filter(is_deployment).count();
        let pods = folded.iter().filter(is_pod).count();
        ((deployments, pods) == (1, 3))
            .then_some(folded)
            .ok_or(table)
    })
}

fn kubectl_shows_the_usual_tables(kubectl: &Kubectl) {
    let table = ready_table(kubectl);
    let heads = [
        "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
        "NAME DESIRED CURRENT READY AGE CONTAINERS IMAGES SELECTOR",
        "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES",
    ];
    for head in heads {
        assert!(
            table.iter().any(|line| line == head),
            "{head} is missing in {table:#?}"
        );
    }
    eventually("describe shows the scaling", || {
        let described = kubectl.ok("describe deployment web-frontend -n production");
        let shown = described.contains("ScalingReplicaSet");
        shown.then_some(()).ok_or(described)
    });
}

/// kubectl reads OpenAPI v2 in protobuf to apply a `List`, whose kind no other document has.
fn kubectl_reads_openapi_and_pages(kubectl: &Kubectl) {
    let configmap = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let items = ["one", "two"].map(configmap);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let output = kubectl.with("apply -n production", &list.to_string());
    assert!(
        output.stdout.contains("configmap/two created"),
        "{output:?}"
    );
    let paged = kubectl.ok("get configmaps -n production --chunk-size=1 -o name");
    assert!(paged.contains("configmap/one\nconfigmap/two\n"), "{paged}");
    for output in ["plaintext", "plaintext-openapiv2"] {
        let text = kubectl.ok(&format!(
            "explain deployment.spec.template.spec.containers --output={output}"
        ));
        assert!(text.contains("imagePullPolicy"), "{text}");
    }
    let scale = kubectl.ok("get deployment web-frontend -n production --subresource=scale");
    let head = scale.lines().next().unwrap_or_default();
    let head: Vec<_> = head.split_whitespace().collect();
    assert_eq!(head, ["NAME", "DESIRED", "AVAILABLE", "AGE"]);
}

fn applying_again_changes_nothing(kubectl: &Kubectl) {
    let versions = |kubectl: &Kubectl| {
        kubectl
            .ok("get deploy,rs,pods -n production -o jsonpath={.items[*].metadata.resourceVersion}")
    };
    let before = eventually("the controllers have stopped writing", || {
        let before = versions(kubectl);
        std::thread::sleep(QUIET);
        let now = versions(kubectl);
        (now == before).then_some(now).ok_or(before)
    });
    let output = kubectl.with("apply", &manifest());
    assert!(
        output
            .stdout
            .contains("deployment.apps/web-frontend unchanged"),
        "{output:?}"
    );
    assert_eq!(versions(kubectl), before);
}

fn a_watch_streams_scaling(kubectl: &Kubectl) {
    let mut watch = kubectl.command("get pods -n production -w --no-headers");
    let mut watch = watch
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    kubectl.ok("scale deployment/web-frontend -n production --replicas=5");
    let mut seen = BTreeSet::new();
    for line in lines.map_while(Result::ok) {
        let running = line.split_whitespace().nth(2) == Some("Running");
        seen.extend(
            line.split_whitespace()
                .next()
                .filter(|_| running)
                .map(str::to_owned),
        );
        if seen.len() == 5 {
            break;
        }
    }
    watch.kill().expect("kubectl is running");
    watch.wait().expect("kubectl is a child of the test");
    assert_eq!(seen.len(), 5);
    until_ready(kubectl, 5);
    kubectl.ok("scale deployment/web-frontend -n production --replicas=2");
    until_ready(kubectl, 2);
    kubectl.ok("scale deployment/web-frontend -n production --replicas=3");
    until_ready(kubectl, 3);
}

fn a_deleted_pod_is_replaced(kubectl: &Kubectl) {
    let name = text(&pods(kubectl)[0], "/metadata/name").to_owned();
    kubectl.ok(&format!("delete pod {name} -n production"));
    let pods = until_ready(kubectl, 3);
    assert!(pods.iter().all(|pod| text(pod, "/metadata/name") != name));
}

fn a_killed_process_is_restarted(cluster: &Cluster, kubectl: &Kubectl) {
    let name = text(&pods(kubectl)[0], "/metadata/name").to_owned();
    kill_container(cluster, kubectl, &name);
    eventually("the container is restarted", || {
        restarted(kubectl, &name, 1)
    });
    kill_container(cluster, kubectl, &name);
    let waiting = eventually("the second restart backs off", || {
        let pod = kubectl.json(&format!("get pod {name} -n production"));
        let reason = text(&pod, "/status/containerStatuses/0/state/waiting/reason").to_owned();
        (reason == "CrashLoopBackOff")
            .then_some(pod.clone())
            .ok_or(reason)
    });
    assert!(
        text(
            &waiting,
            "/status/containerStatuses/0/state/waiting/message"
        )
        .contains("back-off 10s")
    );
    let table = kubectl.ok(&format!("get pod {name} -n production --no-headers"));
    assert!(table.contains("CrashLoopBackOff"), "{table}");
    eventually("the container is restarted after the backoff", || {
        restarted(kubectl, &name, 2)
    });
}

fn restarted(kubectl: &Kubectl, name: &str, times: u64) -> Result<(), String> {
    let pod = kubectl.json(&format!("get pod {name} -n production"));
    let count = pod
        .pointer("/status/containerStatuses/0/restartCount")
        .and_then(Value::as_u64);
    (count == Some(times) && is_ready(&pod))
        .then_some(())
        .ok_or(format!("restartCount {count:?}"))
}

/// Kills the Pod's process, whose id the agent records in `<state-dir>/pods/<uid>/<container>/<attempt>/pid`.
fn kill_container(cluster: &Cluster, kubectl: &Kubectl, name: &str) {
    let pod = kubectl.json(&format!("get pod {name} -n production"));
    let id = text(&pod, "/status/containerStatuses/0/containerID");
    let attempt = id
        .strip_prefix("process://")
        .expect("the container is a process");
    let note = cluster
        .node(text(&pod, "/spec/nodeName"))
        .join("pods")
        .join(attempt)
        .join("pid");
    let pid = std::fs::read_to_string(note).expect("the agent recorded the id");
    kill(
        Pid::from_raw(pid.trim().parse().expect("a number")),
        Signal::SIGKILL,
    )
    .expect("the process is running");
}

fn a_rollout_keeps_max_surge_and_max_unavailable(kubectl: &Kubectl) {
    until_ready(kubectl, 3);
    // The Deployment's status is updated after that of its Pods.
    kubectl.ok("wait deployment/web-frontend -n production --for=jsonpath={.status.readyReplicas}=3 --timeout=60s");
    kubectl.ok("set image deployment/web-frontend -n production nginx=nginx:1.26");
    eventually("the rollout ends", || {
        let deployment = kubectl.json("get deployment web-frontend -n production");
        let count = |field: &str| deployment["status"][field].as_u64().unwrap_or_default();
        assert!(count("readyReplicas") >= 3, "{}", deployment["status"]);
        assert!(count("replicas") <= 4, "{}", deployment["status"]);
        let observed =
            deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"];
        let done = observed && count("updatedReplicas") == 3 && count("replicas") == 3;
        done.then_some(()).ok_or(deployment["status"].to_string())
    });
    kubectl.ok("rollout status deployment/web-frontend -n production --timeout=60s");
    let pods = until_ready(kubectl, 3);
    assert!(
        pods.iter()
            .all(|pod| text(pod, "/spec/containers/0/image") == "nginx:1.26")
    );
    let history = kubectl.ok("rollout history deployment/web-frontend -n production");
    assert!(history.contains('1') && history.contains('2'), "{history}");
    kubectl.ok("rollout undo deployment/web-frontend -n production");
    kubectl.ok("rollout status deployment/web-frontend -n production --timeout=60s");
    let pods = until_ready(kubectl, 3);
    assert!(
        pods.iter()
            .all(|pod| text(pod, "/spec/containers/0/image") == "nginx:1.25")
    );
}

fn deleting_the_deployment_deletes_its_pods(kubectl: &Kubectl) {
    kubectl.ok("delete deployment web-frontend -n production");
    eventually("all objects are deleted", || {
        let left = kubectl.ok("get deploy,rs,pods -n production -o name");
        left.is_empty().then_some(()).ok_or(left)
    });
}
