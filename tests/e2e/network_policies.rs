//! NetworkPolicies that no node enforces.

use setpoint_tests::{Cluster, eventually};

use crate::workloads::create;

const DENY: &str = r#"
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}}
"#;

#[test]
fn a_policy_gets_a_warning_event_since_it_has_no_effect() {
    let mut cluster = Cluster::bare();
    cluster.service("controller-manager", 0, &[]);
    let kubectl = cluster.kubectl();
    create(&kubectl, DENY);
    eventually("an Event says that the policy is not enforced", || {
        let selector = "involvedObject.kind=NetworkPolicy,involvedObject.name=deny";
        let columns = "-o jsonpath={.items[*].type}={.items[*].reason}";
        let found = kubectl.run(&format!("get events --field-selector {selector} {columns}"));
        let told = found.stdout == "Warning=NotEnforced";
        told.then_some(()).ok_or(found.stdout)
    });
}
