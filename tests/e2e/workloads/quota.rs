//! ResourceQuotas.

use super::{cluster, until};

#[test]
fn the_status_of_a_quota_follows_the_objects_of_its_namespace() {
    let cluster = cluster(1);
    let kubectl = cluster.kubectl();
    kubectl.ok("create quota few --hard=services=3");
    until(&kubectl, "quota/few", ".status.used.services", "1");
    kubectl.ok("create service clusterip web --tcp=80");
    until(&kubectl, "quota/few", ".status.used.services", "2");
    kubectl.ok("patch quota few -p {\"spec\":{\"hard\":{\"services\":\"4\"}}}");
    until(&kubectl, "quota/few", ".status.hard.services", "4");
    kubectl.ok("delete service web");
    until(&kubectl, "quota/few", ".status.used.services", "1");
}
