//! NetworkPolicies restrict the connections of Pods with networks of their own.

use serde_json::{Value, json};
use setpoint_testkit::enter_namespace;
use setpoint_tests::{Kubectl, eventually};

use super::local::{Local, NETWORK, WHAT, serve};

fn apply(kubectl: &Kubectl, name: &str, ingress: &Value) {
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": ingress},
    });
    let output = kubectl.with("apply", &policy.to_string());
    assert!(output.success, "{}", output.stderr);
}

/// Waits until the Pod `from` has answers from a Service, or has none.
fn connects(kubectl: &Kubectl, from: &str, at: &str, expected: bool) {
    eventually("the policies have their effect", || {
        let line = format!("exec {from} -- busybox nc -w 1 {at} 80");
        let is_answered = kubectl.run(&line).stdout.starts_with("web-");
        (is_answered == expected)
            .then_some(())
            .ok_or(format!("{from}: {is_answered}"))
    });
}

#[test]
fn policies_restrict_pods_also_while_the_proxy_is_dead() {
    let test = "services::policies::policies_restrict_pods_also_while_the_proxy_is_dead";
    if !enter_namespace(test, WHAT, &NETWORK) {
        return;
    }
    let local = Local::up();
    let kubectl = local.kubectl();
    let at = serve(&kubectl, 2).ip().to_string();
    for name in ["friend", "stranger"] {
        kubectl.ok(&format!(
            "run {name} --image=client --command -- sleep 1000"
        ));
    }
    kubectl.ok("wait pod/friend pod/stranger --for=condition=Ready --timeout=60s");
    connects(&kubectl, "stranger", &at, true);
    apply(&kubectl, "deny", &json!([]));
    connects(&kubectl, "friend", &at, false);
    let friends = json!([{"podSelector": {"matchLabels": {"run": "friend"}}}]);
    apply(
        &kubectl,
        "friends",
        &json!([{"from": friends, "ports": [{"port": 80}]}]),
    );
    connects(&kubectl, "friend", &at, true);
    // Probes come from the node, and its own Service is open to a Pod that is its endpoint.
    kubectl.ok("rollout restart deployment/web");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    connects(&kubectl, "deployment/web", &at, true);

    local.kill("proxy-0");
    connects(&kubectl, "friend", &at, true);
    connects(&kubectl, "stranger", &at, false);
    local.start(&[]);
    connects(&kubectl, "stranger", &at, false);
    let conditions =
        "-o jsonpath={.items[*].status.conditions[?(@.type==\"NetworkPoliciesEnforced\")].status}";
    let nodes = kubectl.ok(&format!(
        "get nodes -l setpoint.dev/runtime=process {conditions}"
    ));
    assert!(
        !nodes.is_empty() && nodes.split(' ').all(|status| status == "True"),
        "{nodes}"
    );
    let events = kubectl.ok("get events --field-selector reason=NotEnforced -o name");
    assert_eq!(events, "");
    kubectl.ok("delete networkpolicy --all");
    connects(&kubectl, "stranger", &at, true);
}
