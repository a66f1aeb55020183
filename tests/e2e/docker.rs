//! Pods as containers of a Docker engine.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, eventually};

use crate::engine::{Engine, IMAGE};
use crate::web::{is_ready, text};

fn pod() -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: words}}
data: {{greeting: hello}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web}}
spec:
  volumes: [{{name: words, configMap: {{name: words}}}}]
  initContainers: [{{name: first, image: {IMAGE}, command: [echo, prepared]}}]
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c]
    args: ['cat /etc/words/greeting && echo \" $WHO\" && trap exit TERM; sleep 1000000 & wait']
    env: [{{name: WHO, value: $(NAME)}}, {{name: NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]
    volumeMounts: [{{name: words, mountPath: /etc/words}}]
    resources: {{limits: {{cpu: 100m, memory: 32Mi}}}}
  - name: side
    image: {IMAGE}
"
    )
}

/// One test, because starting a cluster takes most of the time.
#[test]
fn a_pod_runs_as_containers_that_are_restarted_after_kills_and_kept_by_a_restarted_agent() {
    let Some(engine) = Engine::find() else { return };
    let mut cluster = engine.cluster();
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", &pod());
    assert!(applied.success, "{}", applied.stderr);
    a_pod_runs_in_three_containers(&engine, &kubectl);
    a_killed_container_is_restarted(&engine, &kubectl);
    kubectl_reads_logs(&kubectl);
    kubectl_debugs_a_container_from_beside_it(&kubectl);
    containers_have_the_files_of_their_account(&kubectl);
    a_killed_pause_container_is_replaced_by_a_new_sandbox(&engine, &kubectl);
    a_restarted_agent_keeps_running_containers(&engine, &mut cluster, &kubectl);
    a_pod_deleted_while_the_agent_is_stopped_is_removed_at_its_restart(
        &engine,
        &mut cluster,
        &kubectl,
    );
    a_deleted_pod_leaves_no_container(&engine, &kubectl);
    a_pod_whose_image_cannot_be_pulled_reports_the_reason(&kubectl);
}

fn ready(kubectl: &Kubectl, restarts: [i64; 2]) -> Value {
    eventually(
        &format!("the Pod is Ready after {restarts:?} restarts"),
        || {
            let output = kubectl.run("get pod web -o json");
            let pod: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            let statuses = pod["status"]["containerStatuses"].as_array();
            let counts: Vec<_> = statuses
                .into_iter()
                .flatten()
                .map(|status| status["restartCount"].as_i64().unwrap_or(-1))
                .collect();
            match is_ready(&pod) && counts == restarts {
                true => Ok(pod),
                false => Err(output.stdout + &output.stderr),
            }
        },
    )
}

/// Returns how often the init container was restarted.
fn init_restarts(pod: &Value) -> Option<i64> {
    pod.pointer("/status/initContainerStatuses/0/restartCount")?
        .as_i64()
}

fn a_pod_runs_in_three_containers(engine: &Engine, kubectl: &Kubectl) {
    let pod = ready(kubectl, [0, 0]);
    let running = engine.running();
    let uid = text(&pod, "/metadata/uid");
    let names = ["POD", "main", "side"].map(|name| format!("k8s_{name}_web_default_{uid}_0/"));
    assert_eq!(running.len(), 3, "{running:?}");
    for (found, name) in running.iter().zip(&names) {
        assert!(found.starts_with(name), "{running:?}");
    }
    let main = running[1].split('/').nth(1).expect("an id");
    assert_eq!(
        text(&pod, "/status/containerStatuses/0/containerID"),
        format!("docker://{main}")
    );
    let pause = running[0].split('/').nth(1).expect("an id");
    let address = engine.docker(&format!(
        "inspect -f {{{{range.NetworkSettings.Networks}}}}{{{{.IPAddress}}}}{{{{end}}}} {pause}"
    ));
    assert_eq!(text(&pod, "/status/podIP"), address.trim());
    // A container may be ready before its program has written its output.
    eventually("docker returns the log", || {
        let log = engine.docker(&format!("logs {main}"));
        (log == "hello $(NAME)\n").then_some(()).ok_or(log)
    });
    let limits = engine.docker(&format!(
        "inspect -f {{{{.HostConfig.NanoCpus}}}}/{{{{.HostConfig.Memory}}}} {main}"
    ));
    assert_eq!(limits.trim(), "100000000/33554432");
}

fn a_killed_container_is_restarted(engine: &Engine, kubectl: &Kubectl) {
    engine.kill("k8s_main_");
    let pod = ready(kubectl, [1, 0]);
    assert_eq!(init_restarts(&pod), Some(0));
    let last = "/status/containerStatuses/0/lastState/terminated";
    assert_eq!(
        pod.pointer(last).map(|end| end["exitCode"].clone()),
        Some(137.into())
    );
}

fn containers_have_the_files_of_their_account(kubectl: &Kubectl) {
    let read = |container: &str, file: &str| {
        let path = format!("/var/run/secrets/kubernetes.io/serviceaccount/{file}");
        kubectl.ok(&format!("exec web -c {container} -- cat {path}"))
    };
    for container in ["main", "side"] {
        assert_eq!(read(container, "namespace"), "default");
        let ca = read(container, "ca.crt");
        assert!(ca.starts_with("-----BEGIN CERTIFICATE-----"), "{ca}");
    }
    let token = read("main", "token");
    // kubectl sends no token of its own over HTTP.
    let review = format!(
        "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {{token: {token}}}\n"
    );
    let reviewed = kubectl.with("create -o jsonpath={.status.user.username}", &review);
    let user = "system:serviceaccount:default:default";
    assert_eq!(reviewed.stdout, user, "{}", reviewed.stderr);
    let written = "exec web -c main -- sh -c echo>/var/run/secrets/kubernetes.io/serviceaccount/x";
    let refused = kubectl.fails(written);
    assert!(refused.contains("Read-only file system"), "{refused}");
}

fn kubectl_reads_logs(kubectl: &Kubectl) {
    eventually("kubectl returns the log", || {
        let log = kubectl.ok("logs web -c main");
        (log == "hello $(NAME)\n").then_some(()).ok_or(log)
    });
    assert_eq!(
        kubectl.ok("logs web -c main --previous --limit-bytes=5"),
        "hello"
    );
    let stamped = kubectl.ok("logs web -c main --timestamps --since=1h");
    assert!(
        stamped.starts_with("20") && stamped.ends_with("Z hello $(NAME)\n"),
        "{stamped}"
    );
}

fn kubectl_debugs_a_container_from_beside_it(kubectl: &Kubectl) {
    let look = "-- sh -c cat</proc/1/cmdline";
    kubectl.ok(&format!(
        "debug web --image={IMAGE} --target=main --container=debugger --attach=false {look}"
    ));
    eventually(
        "the ephemeral container has read the command of its target",
        || {
            let log = kubectl.run("logs web -c debugger");
            let found = log.stdout.contains("sleep 1000000");
            found.then_some(()).ok_or(log.stdout + &log.stderr)
        },
    );
    eventually("the status has the end of the ephemeral container", || {
        let output = kubectl.run("get pod web -o json");
        let pod: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let code = "/status/ephemeralContainerStatuses/0/state/terminated/exitCode";
        let ended = pod.pointer(code).and_then(Value::as_i64) == Some(0) && is_ready(&pod);
        ended.then_some(()).ok_or(output.stdout)
    });
    kubectl.ok(&format!(
        "debug web --image={IMAGE} --copy-to=copy --share-processes --container=debugger --attach=false {look}"
    ));
    eventually("a copy of the Pod runs with a further container", || {
        let output = kubectl.run("logs copy -c debugger");
        // The first process of a Pod is that of its pause container, whose image is the same.
        let found = output.stdout.contains("sleep 1000000");
        found.then_some(()).ok_or(output.stdout + &output.stderr)
    });
    kubectl.ok("delete pod copy --now");
}

fn a_killed_pause_container_is_replaced_by_a_new_sandbox(engine: &Engine, kubectl: &Kubectl) {
    engine.kill("k8s_POD_");
    let pod = ready(kubectl, [2, 1]);
    assert_eq!(init_restarts(&pod), Some(1));
    assert_eq!(kubectl.ok("logs web -c first"), "prepared\n");
    let running = engine.running();
    assert_eq!(running.len(), 3, "{running:?}");
    assert!(running[0].contains("_1/"), "{running:?}");
}

/// Checks N2.
fn a_restarted_agent_keeps_running_containers(
    engine: &Engine,
    cluster: &mut Cluster,
    kubectl: &Kubectl,
) {
    let before = engine.running();
    cluster.process("node-agent-0").kill();
    assert_eq!(engine.running(), before);
    engine.start_agent(cluster);
    // Once a later Pod is handled, the earlier ones have been handled as well.
    let later = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: later}}\nspec: {{containers: [{{name: main, image: '{IMAGE}'}}]}}\n"
    );
    assert!(kubectl.with("apply", &later).success);
    kubectl.ok("wait --for=condition=Ready pod/later --timeout=60s");
    let after = engine.running();
    let same: Vec<_> = after
        .iter()
        .filter(|found| found.contains("_web_"))
        .cloned()
        .collect();
    assert_eq!(same, before);
    ready(kubectl, [2, 1]);
}

/// Checks N3.
fn a_pod_deleted_while_the_agent_is_stopped_is_removed_at_its_restart(
    engine: &Engine,
    cluster: &mut Cluster,
    kubectl: &Kubectl,
) {
    cluster.process("node-agent-0").kill();
    kubectl.ok("delete pod later --grace-period=0 --force");
    assert!(engine.all().iter().any(|found| found.contains("_later_")));
    engine.start_agent(cluster);
    eventually("the Pod's containers are removed", || {
        let all = engine.all();
        match all.iter().any(|found| found.contains("_later_")) {
            true => Err(format!("{all:?}")),
            false => Ok(()),
        }
    });
    ready(kubectl, [2, 1]);
}

/// Checks N4.
fn a_deleted_pod_leaves_no_container(engine: &Engine, kubectl: &Kubectl) {
    kubectl.ok("delete pod web --timeout=60s");
    assert_eq!(engine.all(), Vec::<String>::new());
}

fn a_pod_whose_image_cannot_be_pulled_reports_the_reason(kubectl: &Kubectl) {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: none}\nspec: {containers: [{name: main, image: '127.0.0.1:9/none:1'}]}\n";
    assert!(kubectl.with("apply", pod).success);
    eventually("kubectl shows that the image cannot be pulled", || {
        let listed = kubectl.run("get pod none --no-headers").stdout;
        let reasons = ["ErrImagePull", "ImagePullBackOff"];
        let found = reasons.iter().any(|word| listed.contains(word));
        found.then_some(()).ok_or(listed)
    });
    let refused = kubectl.fails("logs none");
    let why =
        "container \"main\" in pod \"none\" is waiting to start: trying and failing to pull image";
    assert!(refused.contains(why), "{refused}");
}
