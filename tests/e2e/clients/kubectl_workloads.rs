//! The commands of kubectl about workloads and nodes.

use setpoint_tests::{Cluster, Kubectl, Size, eventually};

/// All commands in one test, because starting a cluster takes most of the time.
#[test]
fn kubectl_runs_workloads_and_drains_nodes() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    a_pod_is_run_described_and_deleted(&kubectl);
    a_deployment_is_scaled_exposed_and_autoscaled(&kubectl);
    its_template_is_set_and_rolled_back(&kubectl);
    a_node_is_tainted_cordoned_and_drained(&kubectl);
}

fn a_pod_is_run_described_and_deleted(kubectl: &Kubectl) {
    assert_eq!(
        kubectl.ok("run one --image=nginx:1.25 --labels=app=one"),
        "pod/one created\n"
    );
    kubectl.ok("wait pod/one --for=condition=Ready --timeout=30s");
    kubectl.ok("wait pod/one --for=jsonpath={.status.phase}=Running --timeout=30s");
    let text = kubectl.ok("describe pod one");
    for part in [
        "Service Account:  default",
        "Scheduled",
        "nginx:1.25",
        "QoS Class:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(kubectl.ok("events --for pod/one").contains("Scheduled"));
    assert!(kubectl.ok("get events.events.k8s.io").contains("Scheduled"));
    kubectl.ok("expose pod one --port=80");
    assert!(kubectl.ok("describe service one").contains("app=one"));
    let deleted = kubectl.ok("delete pod one --now");
    assert!(deleted.starts_with("pod \"one\" deleted"), "{deleted}");
    kubectl.ok("delete service one");
}

fn a_deployment_is_scaled_exposed_and_autoscaled(kubectl: &Kubectl) {
    kubectl.ok("create deployment web --image=nginx:1.25 --replicas=2");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(
        kubectl.ok("scale deployment web --replicas=3 --current-replicas=2"),
        "deployment.apps/web scaled\n"
    );
    kubectl.ok("wait deployment/web --for=jsonpath={.status.readyReplicas}=3 --timeout=60s");
    assert_eq!(
        kubectl.ok("expose deployment web --port=80 --target-port=8080"),
        "service/web exposed\n"
    );
    kubectl.ok("autoscale deployment web --min=2 --max=5 --cpu-percent=80");
    let table = kubectl.ok("get hpa web");
    assert!(table.contains("Deployment/web"), "{table}");
    let old = kubectl.json("get horizontalpodautoscalers.v1.autoscaling web");
    assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 80);
    assert!(kubectl.ok("describe hpa web").contains("80%"));
    kubectl.ok("delete hpa web");
}

fn its_template_is_set_and_rolled_back(kubectl: &Kubectl) {
    kubectl.ok("set image deployment/web nginx=nginx:1.26");
    kubectl.ok("set env deployment/web A=b");
    kubectl.ok("set resources deployment/web --requests=cpu=10m,memory=16Mi");
    kubectl.ok("set serviceaccount deployment/web default");
    kubectl.ok("rollout pause deployment/web");
    kubectl.ok("rollout resume deployment/web");
    kubectl.ok("rollout restart deployment/web");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    assert!(
        kubectl
            .ok("rollout history deployment/web")
            .contains("REVISION")
    );
    kubectl.ok("rollout undo deployment/web --to-revision=1");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    let image =
        kubectl.ok("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}");
    assert_eq!(image, "nginx:1.25");
}

fn a_node_is_tainted_cordoned_and_drained(kubectl: &Kubectl) {
    let nodes = kubectl.ok("get nodes -o name");
    let node = nodes
        .lines()
        .next()
        .and_then(|name| name.strip_prefix("node/"))
        .expect("there is a node");
    kubectl.ok(&format!("taint node {node} dedicated=a:NoSchedule"));
    kubectl.ok(&format!("taint node {node} dedicated-"));
    kubectl.ok(&format!("cordon {node}"));
    assert!(
        kubectl
            .ok(&format!("get node {node}"))
            .contains("SchedulingDisabled")
    );
    let drained = kubectl.ok(&format!(
        "drain {node} --ignore-daemonsets --force --timeout=60s"
    ));
    assert!(
        drained.contains(&format!("node/{node} drained")),
        "{drained}"
    );
    eventually("no Pod of the Deployment is on the node", || {
        let pods = kubectl.ok(&format!(
            "get pods -l app=web --field-selector spec.nodeName={node} -o name"
        ));
        pods.is_empty().then_some(()).ok_or(pods)
    });
    kubectl.ok(&format!("uncordon {node}"));
    kubectl.ok("rollout status deployment/web --timeout=60s");
}
