//! Further ServiceCIDRs.

use setpoint_tests::{Cluster, eventually};

use crate::workloads::create;

const SECOND: &str = r#"
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: second}
spec: {cidrs: [10.88.0.0/24]}
"#;

#[test]
fn a_further_range_gives_addresses_and_stays_while_a_service_has_one() {
    let mut cluster = Cluster::bare();
    cluster.service("controller-manager", 0, &[]);
    let kubectl = cluster.kubectl();
    let ready = |expected: &str| {
        eventually(&format!("the condition is {expected}"), || {
            let ready = "{.status.conditions[?(@.type=='Ready')]";
            let path = format!("-o jsonpath={ready}.status}}={ready}.reason}}");
            let found = kubectl.run(&format!("get servicecidr second {path}"));
            let holds = found.stdout == expected;
            holds.then_some(()).ok_or(found.stdout)
        });
    };
    let web = "create service clusterip web --tcp=80 --clusterip=10.88.0.7";
    let refused = kubectl.run(web).stderr;
    let why =
        "failed to allocate IP 10.88.0.7: the provided network does not match the current range";
    assert!(refused.contains(why), "{refused}");
    create(&kubectl, SECOND);
    ready("True=");
    kubectl.ok(web);
    kubectl.ok("delete servicecidr second --wait=false");
    ready("False=Terminating");
    kubectl.ok("delete service web");
    kubectl.ok("wait --for=delete servicecidr/second --timeout=60s");
}
