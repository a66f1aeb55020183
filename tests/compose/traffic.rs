//! Services that carry traffic: from Pods, from the machine of the engine, and without their proxy.

use setpoint_tests::{Address, Kubectl, eventually, http};

use crate::engine::docker;
use crate::project::Project;

/// The Pod that clients run in.
const CLIENT: &str = "client";
/// The Services of these tests, one for each type that has ports of nodes.
const SERVICES: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: production}
spec:
  type: NodePort
  selector: {app: web-frontend}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: production}
spec:
  containers:
  - name: client
    image: busybox:1.36
    command: [sleep, \"3600\"]
";

/// Checks all ways to a Service, in a cluster that runs the Deployment web-frontend.
pub fn services_carry_traffic(project: &Project, kubectl: &Kubectl) {
    let applied = kubectl.with("apply", SERVICES);
    assert!(applied.success, "{applied:?}");
    kubectl.ok("wait pod/client -n production --for=condition=Ready --timeout=120s");
    eventually("a Pod reaches the Service by its name", || {
        page(kubectl, "http://web")
    });
    a_pod_reaches_the_api(kubectl);
    addresses_that_no_service_has_are_refused(project, kubectl);
    let port = kubectl.ok("get service web -n production -o jsonpath={.spec.ports[0].nodePort}");
    eventually("the machine reaches the node port", || {
        published(port.trim())
    });
    nothing_changes_when_the_proxy_is_killed(project, kubectl);
    kubectl.ok("delete service/web -n production");
    eventually("the port of a Service that is gone is closed", || {
        let left = project.forwarders();
        left.is_empty().then_some(()).ok_or(format!("{left:?}"))
    });
    kubectl.ok("delete pod/client -n production --grace-period=1");
}

/// Requests a page of the Deployment from the Pod.
fn page(kubectl: &Kubectl, url: &str) -> Result<(), String> {
    let command = format!("exec {CLIENT} -n production -- wget -qO- -T5 {url}");
    let output = kubectl.run(&command);
    let is_it = output.stdout.contains("Welcome to nginx");
    is_it.then_some(()).ok_or(output.stdout + &output.stderr)
}

/// Requests the same page at a port of the machine.
fn published(port: &str) -> Result<(), String> {
    let address = Address::plain(&format!("127.0.0.1:{port}"));
    let page = http::get(&address, "/").map_err(|error| format!("{error:#}"))?;
    let is_it = page.body.contains("Welcome to nginx");
    is_it.then_some(()).ok_or(page.body)
}

/// Checks that the variables of each container lead to a gateway, and that its names do.
fn a_pod_reaches_the_api(kubectl: &Kubectl) {
    let service = kubectl.ok("get service kubernetes -o jsonpath={.spec.clusterIP}");
    let variables = kubectl.ok(&format!("exec {CLIENT} -n production -- env"));
    let host = format!("KUBERNETES_SERVICE_HOST={service}");
    assert!(variables.contains(&host), "{host}: {variables}");
    // The wget of busybox knows too little of TLS; a gateway answers so to whoever does not speak it.
    for place in [service.as_str(), "kubernetes.default.svc"] {
        eventually("a Pod reaches the API by its Service", || {
            let get = format!("exec {CLIENT} -n production -- wget -qO- -T5 http://{place}:443/");
            let said = kubectl.run(&get).stderr;
            let is_it = said.contains("400 Bad Request");
            is_it.then_some(()).ok_or(said)
        });
    }
}

fn addresses_that_no_service_has_are_refused(project: &Project, kubectl: &Kubectl) {
    let url = format!("http://{}.60.1", project.prefix());
    let output = kubectl.run(&format!(
        "exec {CLIENT} -n production -- wget -qO- -T5 {url}"
    ));
    assert!(output.stderr.contains("refused"), "{}", output.stderr);
}

/// Services stay programmed without the proxy, and the next one programs what changed meanwhile.
fn nothing_changes_when_the_proxy_is_killed(project: &Project, kubectl: &Kubectl) {
    let proxies = project.service("proxy");
    assert_eq!(proxies.len(), 1);
    docker(&["kill", &proxies[0]]);
    for _ in 0..20 {
        page(kubectl, "http://web").expect("a dead proxy changes nothing");
    }
    kubectl.ok("expose deployment/web-frontend -n production --name late --port 80");
    docker(&["start", &proxies[0]]);
    eventually("the Service of that time is programmed", || {
        page(kubectl, "http://late")
    });
    let holders = project.service("services");
    docker(&["restart", "-t", "1", &holders[0]]);
    eventually("the proxy programs a new network namespace", || {
        page(kubectl, "http://web")
    });
}
