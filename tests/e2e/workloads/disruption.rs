//! PodDisruptionBudgets.

use super::{cluster, create, names, until};

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: web}}
"#;

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

#[test]
fn an_eviction_waits_for_its_budget() {
    let cluster = cluster(2);
    let kubectl = cluster.kubectl();
    create(&kubectl, WEB);
    until(&kubectl, "pdb/web", ".status.currentHealthy", "3");
    until(&kubectl, "pdb/web", ".status.desiredHealthy", "3");
    until(&kubectl, "pdb/web", ".status.disruptionsAllowed", "0");
    let pods = names(&kubectl, "pods -l app=web");
    let evict = |pod: &str| {
        let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
        let eviction = format!(
            r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{pod}"}}}}"#
        );
        kubectl.with(&format!("create --raw {path}"), &eviction)
    };
    let refused = evict(&pods[0]);
    assert!(refused.stderr.contains(VIOLATED), "{}", refused.stderr);

    kubectl.ok(r#"patch pdb web --type=merge -p {"spec":{"maxUnavailable":1}}"#);
    until(&kubectl, "pdb/web", ".status.disruptionsAllowed", "1");
    assert!(evict(&pods[0]).success);
    kubectl.ok(&format!("wait pod/{} --for=delete --timeout=60s", pods[0]));
    // The Pod in its place is counted once it is ready.
    until(&kubectl, "pdb/web", ".status.currentHealthy", "3");
    until(&kubectl, "pdb/web", ".status.disruptionsAllowed", "1");
    until(&kubectl, "pdb/web", ".status.disruptedPods", "");
    assert!(!names(&kubectl, "pods -l app=web").contains(&pods[0]));
}
