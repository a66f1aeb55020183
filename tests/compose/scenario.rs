//! A scenario with the cluster in containers: apply, scale, kill, restart, delete.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::Value;
use setpoint_tests::{Address, Kubectl, REFUSED, eventually, http};

use crate::engine::{docker, try_docker};
use crate::project::{Project, root};
use crate::traffic::services_carry_traffic;

/// Number of consecutive calls that must succeed after a gateway was killed; many times the number of gateways.
const CALLS: usize = 20;

/// Checks S4 in containers: no acknowledged write is lost by scaling, kills and restarts.
#[test]
fn a_cluster_in_containers_survives_scaling_kills_and_restarts_with_compose_2() {
    if let Some(project) = Project::new(&["docker", "compose"]) {
        tell(&project);
    }
}

#[test]
fn a_cluster_in_containers_survives_scaling_kills_and_restarts_with_compose_1() {
    if let Some(project) = Project::new(&["docker-compose"]) {
        tell(&project);
    }
}

fn tell(project: &Project) {
    let kubectl = project.kubectl();
    project.compose("up -d --no-build");
    nodes(&kubectl, &["node-1", "node-2", "node-3"]);
    the_port_speaks_tls_and_the_kubeconfig_is_private(project);
    pods_are_containers(project, &kubectl);
    names_resolve_in_the_network_of_pods(project);
    services_carry_traffic(project, &kubectl);
    the_cascade_is_a_trace(project);
    replicas_come_and_go_while_pods_run(project, &kubectl);
    kubectl_continues_when_a_gateway_is_killed(project, &kubectl);
    no_request_of_a_service_was_refused(project);
    objects_outlive_restarts(project, &kubectl);
    down_leaves_nothing(project, &kubectl);
}

/// Checks V20: nothing is sent in clear text.
fn the_port_speaks_tls_and_the_kubeconfig_is_private(project: &Project) {
    let place = format!("127.0.0.1:{}", project.port());
    let refused = http::get(&Address::plain(&place), "/version").expect("it answers");
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("to an HTTPS server"),
        "{}",
        refused.body
    );
    let kubeconfig = fs::metadata(project.kubeconfig()).expect("it is there");
    assert_eq!(kubeconfig.mode() & 0o777, 0o600);
    let checkout = fs::metadata(root()).expect("it is there");
    assert_eq!(kubeconfig.uid(), checkout.uid());
}

/// Checks that the roles of services are sufficient, and that all have found their credentials.
fn no_request_of_a_service_was_refused(project: &Project) {
    let log = project.compose("logs --no-color gateway");
    let mut refused = log.lines().filter(|line| line.contains(REFUSED));
    assert_eq!(refused.next(), None);
}

/// Waits until exactly these nodes, or more, are Ready.
fn nodes(kubectl: &Kubectl, names: &[&str]) {
    eventually("the nodes are Ready", || {
        let output = kubectl.run("get nodes --no-headers --request-timeout=5s");
        let ready = |name: &&str| {
            let mut lines = output
                .stdout
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>());
            lines.any(|words| words.starts_with(&[name, "Ready"]))
        };
        let all = names.iter().all(ready);
        all.then_some(())
            .ok_or_else(|| output.stdout.clone() + &output.stderr)
    });
}

fn pods_are_containers(project: &Project, kubectl: &Kubectl) {
    let manifest = root().join("deploy/manifests/web-frontend.yaml");
    kubectl.ok(&format!("apply -f {}", manifest.display()));
    ready(project, kubectl, 3);
    let pods = pods(kubectl);
    let containers = project.pod_containers();
    assert_eq!(containers.len(), 3, "{containers:?}");
    for pod in &pods {
        let name = text(pod, "/metadata/name");
        let prefix = format!(
            "k8s_nginx_{name}_production_{}_0 ",
            text(pod, "/metadata/uid")
        );
        let shown = containers
            .iter()
            .any(|container| container.starts_with(&prefix));
        assert!(shown, "docker ps shows {name}: {containers:?}");
    }
    let network = format!("{}_pods", project.name());
    let url = format!("http://{}/", text(&pods[0], "/status/podIP"));
    // The container runs before its server listens.
    eventually("a Pod answers at its address", || {
        let page = fetched(&network, &url)?;
        let is_it = page.contains("Welcome to nginx");
        is_it.then_some(()).ok_or(page)
    });
}

/// Sends a GET request from a container of this network.
fn fetched(network: &str, url: &str) -> Result<String, String> {
    let client = ["run", "--rm", "--network", network, "busybox:1.36"];
    try_docker(&[&client[..], &["wget", "-qO-", "-T5", url]].concat())
}

/// Asks the cluster's DNS, whose replicas have the name of their service there.
fn names_resolve_in_the_network_of_pods(project: &Project) {
    let network = format!("{}_pods", project.name());
    let name = "kube-dns.kube-system.svc.cluster.local";
    let client = ["run", "--rm", "--network", &network, "busybox:1.36"];
    let service = format!("{}.0.10", project.prefix());
    eventually("the name of a Service resolves", || {
        let found = try_docker(&[&client[..], &["nslookup", name, "dns"]].concat())?;
        let is_it = found.contains(&service);
        is_it.then_some(()).ok_or(found)
    });
}

fn the_cascade_is_a_trace(project: &Project) {
    let network = format!("{}_control", project.name());
    let url = "http://jaeger:16686/api/traces?service=gateway&limit=100";
    eventually("Jaeger knows of the node agents' part", || {
        let found = fetched(&network, url)?;
        let all = found.contains(r#""serviceName":"node-agent""#);
        all.then_some(()).ok_or(found)
    });
}

fn replicas_come_and_go_while_pods_run(project: &Project, kubectl: &Kubectl) {
    let before = project.pod_containers();
    project.compose("up -d --no-build --scale replicaset-controller=4 --scale node-agent=6");
    assert_eq!(project.service("replicaset-controller").len(), 4);
    replicas_have_announced_themselves(project, kubectl);
    nodes(
        kubectl,
        &["node-1", "node-2", "node-3", "node-4", "node-5", "node-6"],
    );
    project.compose("up -d --no-build --scale replicaset-controller=1 --scale node-agent=1");
    assert_eq!(project.service("node-agent").len(), 1);
    assert_eq!(
        project.pod_containers(),
        before,
        "Pods run on without their agents"
    );
    project.compose("up -d --no-build");
    nodes(kubectl, &["node-1", "node-2", "node-3"]);

    kubectl.ok("scale deployment/web-frontend -n production --replicas 5");
    ready(project, kubectl, 5);
    let after = project.pod_containers();
    assert!(
        before.iter().all(|container| after.contains(container)),
        "{before:?} {after:?}"
    );
    kubectl.ok("scale deployment/web-frontend -n production --replicas 3");
    ready(project, kubectl, 3);
}

/// Waits until each replica has written its Lease, for which it needs a certificate.
fn replicas_have_announced_themselves(project: &Project, kubectl: &Kubectl) {
    eventually("each replica has announced itself", || {
        let leases = kubectl.ok("get leases -n setpoint-replicas -o name");
        let mut replicas = project.service("replicaset-controller");
        replicas.retain(|id| !leases.contains(&format!("/replicaset-controller-{id}")));
        replicas
            .is_empty()
            .then_some(())
            .ok_or_else(|| format!("not {replicas:?}: {leases}"))
    });
}

/// Checks I3 from outside: kubectl does not fail when a gateway is killed.
fn kubectl_continues_when_a_gateway_is_killed(project: &Project, kubectl: &Kubectl) {
    let gateways = project.service("gateway");
    assert_eq!(gateways.len(), 2);
    docker(&["kill", &gateways[0]]);
    for _ in 0..CALLS {
        kubectl.ok("get deployments -n production --request-timeout=10s");
    }
    kubectl.ok("scale deployment/web-frontend -n production --replicas 4");
    ready(project, kubectl, 4);
    docker(&["start", &gateways[0]]);
}

fn objects_outlive_restarts(project: &Project, kubectl: &Kubectl) {
    let uid = || {
        // Gateways become ready one at a time.
        eventually("a gateway answers", || {
            let get = "get deployment/web-frontend -n production -o jsonpath={.metadata.uid}";
            let output = kubectl.run(get);
            output.success.then_some(output.stdout).ok_or(output.stderr)
        })
    };
    let before = uid();
    project.compose("restart");
    ready(project, kubectl, 4);
    assert_eq!(uid(), before);

    project.down("");
    gone("down leaves nothing but volumes", || project.left(false));
    project.compose("up -d --no-build");
    ready(project, kubectl, 4);
    assert_eq!(uid(), before);
}

fn down_leaves_nothing(project: &Project, kubectl: &Kubectl) {
    project.down("-v");
    gone("down -v leaves nothing", || project.left(true));
    project.compose("up -d --no-build front");
    let namespaces = eventually("the new cluster answers", || {
        let output = kubectl.run("get namespaces --no-headers --request-timeout=5s");
        output.success.then_some(output.stdout).ok_or(output.stderr)
    });
    assert!(
        !namespaces.contains("production"),
        "forgotten: {namespaces}"
    );
}

/// Waits until nothing is left; the engine lists objects for a short time while it removes them.
fn gone(what: &str, left: impl Fn() -> Vec<String>) {
    eventually(what, || {
        let left = left();
        let none = left.is_empty();
        none.then_some(()).ok_or_else(|| format!("{left:?}"))
    });
}

/// Waits until exactly this number of Pods is ready with a running container.
fn ready(project: &Project, kubectl: &Kubectl, count: usize) {
    eventually("the Pods are ready and run", || {
        let output = kubectl.run("get pods -n production --no-headers --request-timeout=5s");
        let lines: Vec<_> = output.stdout.lines().collect();
        let ready = lines.iter().filter(|line| line.contains("1/1")).count();
        let containers = project.pod_containers();
        let all = [ready, lines.len(), containers.len()] == [count; 3];
        all.then_some(())
            .ok_or_else(|| format!("{}{}{containers:?}", output.stdout, output.stderr))
    });
}

fn pods(kubectl: &Kubectl) -> Vec<Value> {
    let list = kubectl.json("get pods -n production");
    list["items"].as_array().cloned().unwrap_or_default()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
