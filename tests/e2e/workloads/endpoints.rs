//! The endpoints of Services.

use super::{cluster, create, names, until};

const SERVED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: web, ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: outside}
subsets: [{addresses: [{ip: 203.0.113.7}], ports: [{port: 8080}]}]
"#;

const OF_WEB: &str = "endpointslices -l kubernetes.io/service-name=web";
const READY: &str = ".items[*].endpoints[*].conditions.ready";

#[test]
fn services_follow_their_pods_and_their_endpoints() {
    let cluster = cluster(2);
    let kubectl = cluster.kubectl();
    create(&kubectl, SERVED);
    until(&kubectl, OF_WEB, READY, "true true true");
    until(&kubectl, OF_WEB, ".items[*].ports[*].port", "8080");
    let ips = addresses(&kubectl.ok("get pods -o jsonpath={.items[*].status.podIP}"));
    let listed = kubectl.ok("get endpoints web -o jsonpath={.subsets[*].addresses[*].ip}");
    assert_eq!(addresses(&listed), ips);
    kubectl.ok("scale deployment web --replicas=1");
    until(&kubectl, OF_WEB, READY, "true");
    let outside = "endpointslices -l kubernetes.io/service-name=outside";
    let address = ".items[*].endpoints[*].addresses[0]";
    until(&kubectl, outside, address, "203.0.113.7");

    kubectl.ok("delete service web outside");
    until(
        &kubectl,
        "endpoints",
        ".items[*].metadata.name",
        "kubernetes",
    );
    until(&kubectl, OF_WEB, ".items[*].metadata.name", "");
    assert_eq!(names(&kubectl, outside), [] as [&str; 0]);
}

fn addresses(list: &str) -> Vec<String> {
    let mut addresses: Vec<_> = list.split_whitespace().map(str::to_owned).collect();
    addresses.sort();
    addresses
}

#[test]
fn endpoints_are_hinted_to_the_clients_of_their_zone() {
    let cluster = cluster(1);
    let kubectl = cluster.kubectl();
    create(&kubectl, SERVED);
    until(&kubectl, OF_WEB, READY, "true true true");
    let zones = ".items[*].endpoints[*].hints.forZones[*].name";
    until(&kubectl, OF_WEB, zones, "");
    kubectl.ok("label nodes --all topology.kubernetes.io/zone=east");
    until(
        &kubectl,
        OF_WEB,
        ".items[*].endpoints[*].zone",
        "east east east",
    );
    let prefer = r#"{"spec":{"trafficDistribution":"PreferSameZone"}}"#;
    kubectl.ok(&format!("patch service web -p {prefer}"));
    until(&kubectl, OF_WEB, zones, "east east east");
}
