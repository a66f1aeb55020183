//! The slices and the Endpoints of Services with a selector: worked examples.

use std::collections::BTreeSet;

use serde_json::json;
use setpoint_endpointslice_controller::Addresses;
use setpoint_proto::core::{EndpointAddress, Endpoints};
use setpoint_proto::discovery::EndpointSlice;

use crate::cluster::{Cluster, pod, read, selecting, service};

/// Checks RF9: an address that validation would refuse is in no write, and the user is told of it once.
/// The loopback range of a cluster whose Pods are there is that of endpoints, and the rest of the loopback is not.
#[test]
fn pods_of_the_loopback_range_of_the_cluster_are_endpoints() {
    let wrong = Addresses {
        endpoint_loopback_range: "10.0.0.0/8".to_owned(),
    };
    assert_eq!(
        wrong.loopback().unwrap_err(),
        r#"endpoint_loopback_range: "10.0.0.0/8" is not a range within 127.0.0.0/8"#
    );
    let settings = Addresses {
        endpoint_loopback_range: "127.77.0.0/16".to_owned(),
    };
    let range = settings
        .loopback()
        .expect("it is right")
        .expect("it is set");
    setpoint_model::ip::allow_loopback_endpoints(range);
    let pods = [
        pod("near", "127.77.0.9", true),
        pod("far", "127.78.0.9", true),
    ];
    let mut cluster = Cluster::of(selecting(), pods);
    cluster.settle();
    let addresses = cluster.addresses().into_iter().map(|(ip, _)| ip);
    assert_eq!(addresses.collect::<Vec<_>>(), ["127.77.0.9"]);
    let problem = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    let report = format!("address 127.78.0.9 of Pod far {problem}");
    assert_eq!(cluster.reports, [report]);
}

#[test]
fn pods_with_addresses_that_no_slice_may_have_are_no_endpoints() {
    for (refused, problem) in [
        (
            "127.49.240.6",
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            "169.254.10.1",
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
    ] {
        let pods = [pod("far", "10.0.0.1", true), pod("near", refused, true)];
        let mut cluster = Cluster::of(selecting(), pods);
        assert_eq!(cluster.settle(), 3, "an Event, one slice and the Endpoints");
        let addresses = cluster.addresses().into_iter().map(|(ip, _)| ip);
        assert_eq!(addresses.collect::<Vec<_>>(), ["10.0.0.1"]);
        let subsets = &cluster.endpoints().subsets;
        assert_eq!(subsets[0].addresses.len(), 1);
        let report = format!("address {refused} of Pod near {problem}");
        assert_eq!(cluster.reports, [report]);
        // The Service has an empty slice if no Pod has another address.
        cluster.pods.remove("far");
        cluster.settle();
        assert_eq!(cluster.addresses(), []);
        assert_eq!(cluster.slices().len(), 1);
        assert_eq!(cluster.reports.len(), 1);
    }
    let mut cluster = Cluster::of(selecting(), [pod("far", "10.0.0.1", true)]);
    cluster.settle();
    assert!(cluster.reports.is_empty());
}

#[test]
fn slices_and_endpoints_have_the_pods_with_their_conditions() {
    let mut leaving = pod("leaving", "10.0.0.3", true);
    leaving.metadata.deletion_timestamp = Some(Default::default());
    let mut ended = pod("ended", "10.0.0.4", true);
    ended.status.phase = "Succeeded".into();
    let mut portless = pod("portless", "10.0.0.5", true);
    portless.spec.containers[0].ports.clear();
    let ready = pod("ready", "10.0.0.1", true);
    let starting = pod("starting", "10.0.0.2", false);
    let pods = [ready, starting, leaving, ended, portless];
    let mut cluster = Cluster::of(selecting(), pods);
    assert_eq!(cluster.settle(), 2, "one slice, and the Endpoints");

    let (yes, no) = (Some(true), Some(false));
    let expected = [
        ("10.0.0.3".to_owned(), [no, yes, yes]),
        ("10.0.0.1".to_owned(), [yes, yes, no]),
        ("10.0.0.2".to_owned(), [no, no, no]),
    ];
    assert_eq!(cluster.addresses(), expected);
    let slice = cluster.slice();
    assert_eq!(slice.address_type, "IPv4");
    assert_eq!(slice.ports[0].port, Some(8080));
    assert_eq!(slice.metadata.owner_references[0].uid, "s");
    let labels = json!({
        "tier": "front",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    assert_eq!(json!(slice.metadata.labels), labels);
    let endpoints = cluster.endpoints();
    let of = |addresses: &[EndpointAddress]| {
        let ips = addresses.iter().map(|one| one.ip.clone());
        ips.collect::<Vec<_>>()
    };
    assert_eq!(of(&endpoints.subsets[0].addresses), ["10.0.0.1"]);
    assert_eq!(of(&endpoints.subsets[0].not_ready_addresses), ["10.0.0.2"]);

    cluster.service.spec.publish_not_ready_addresses = true;
    cluster.settle();
    assert!(
        cluster
            .addresses()
            .iter()
            .all(|(_, [ready, ..])| *ready == yes)
    );
    let endpoints = cluster.endpoints();
    assert_eq!(of(&endpoints.subsets[0].addresses).len(), 3);
}

#[test]
fn a_service_without_endpoints_has_one_empty_slice() {
    let mut cluster = Cluster::of(selecting(), []);
    cluster.settle();
    let empty = cluster.slice();
    assert!(empty.endpoints.is_empty() && empty.ports.is_empty());
    assert_eq!(cluster.slices().len(), 1);

    cluster.pods = Cluster::of(selecting(), [pod("a", "10.0.0.1", true)]).pods;
    cluster.settle();
    assert_eq!(cluster.slices().len(), 1, "the empty slice is gone");
    cluster.pods.clear();
    cluster.settle();
    assert_eq!(cluster.slices().len(), 1);
    assert!(cluster.addresses().is_empty());
}

#[test]
fn pods_with_other_numbers_of_a_named_port_have_slices_of_their_own() {
    let mut other = pod("b", "10.0.0.2", true);
    other.spec.containers[0].ports[0].container_port = 9090;
    let mut cluster = Cluster::of(selecting(), [pod("a", "10.0.0.1", true), other]);
    cluster.settle();
    let slices = cluster.slices();
    let ports = slices.iter().map(|slice| slice.ports[0].port);
    assert_eq!(
        ports.collect::<BTreeSet<_>>(),
        [Some(8080), Some(9090)].into()
    );
    assert_eq!(cluster.endpoints().subsets.len(), 2);
}

#[test]
fn a_headless_service_names_the_hosts_of_its_pods() {
    let mut named = pod("a", "10.0.0.1", true);
    named.spec.hostname = "a".into();
    named.spec.subdomain = "web".into();
    let mut elsewhere = pod("b", "10.0.0.2", true);
    elsewhere.spec.hostname = "b".into();
    elsewhere.spec.subdomain = "db".into();
    let mut nameless = pod("c", "10.0.0.3", true);
    nameless.spec.subdomain = "web".into();
    let headless = service(json!({"clusterIP": "None", "selector": {"app": "web"}}));
    let mut cluster = Cluster::of(headless, [named, elsewhere, nameless]);
    cluster.settle();
    let slice = cluster.slice();
    let hostnames = slice.endpoints.iter().map(|one| one.hostname.as_deref());
    assert_eq!(hostnames.collect::<Vec<_>>(), [Some("a"), None, None]);
    assert!(
        slice
            .metadata
            .labels
            .contains_key("service.kubernetes.io/headless")
    );
}

#[test]
fn a_pod_that_becomes_unready_costs_two_writes_among_many() {
    let pods = (0..250).map(|n| pod(&format!("p{n}"), &format!("10.0.1.{n}"), true));
    let mut cluster = Cluster::of(selecting(), pods);
    cluster.settle();
    assert_eq!(cluster.slices().len(), 3);
    cluster
        .pods
        .insert("p7".into(), pod("p7", "10.0.1.7", false));
    assert_eq!(cluster.settle(), 2, "its slice, and the Endpoints");
    cluster.pods.remove("p9");
    cluster
        .pods
        .insert("new".into(), pod("new", "10.0.2.1", true));
    assert_eq!(
        cluster.settle(),
        2,
        "the new one takes the place of the old one"
    );
}

#[test]
fn a_service_that_is_being_deleted_and_an_alias_have_no_endpoints() {
    let mut deleting = selecting();
    deleting.metadata.deletion_timestamp = Some(Default::default());
    let mut alias = selecting();
    alias.spec.r#type = "ExternalName".into();
    for service in [deleting, alias] {
        let mut cluster = Cluster::of(service, [pod("a", "10.0.0.1", true)]);
        assert!(cluster.actions().is_empty());
    }
}

#[test]
fn slices_and_endpoints_have_the_labels_of_the_service_except_for_headless() {
    let mut cluster = Cluster::of(selecting(), [pod("a", "10.0.0.1", true)]);
    cluster.settle();
    let labels = &mut cluster.service.metadata.labels;
    labels.insert("service.kubernetes.io/headless".into(), "x".into());
    assert_eq!(cluster.settle(), 0);
    let labels = &mut cluster.service.metadata.labels;
    labels.insert("tier".into(), "back".into());
    assert_eq!(cluster.settle(), 2);
    let slice = cluster.slice();
    let endpoints = cluster.endpoints();
    for labels in [&slice.metadata.labels, &endpoints.metadata.labels] {
        assert_eq!(labels["tier"], "back");
    }
}

#[test]
fn slices_of_others_and_those_that_are_being_deleted_are_left_alone() {
    let mut cluster = Cluster::of(selecting(), [pod("a", "10.0.0.1", true)]);
    cluster.settle();
    let slice = cluster.slice();
    let (mut other, mut deleting) = (slice.clone(), slice.clone());
    let manager = "endpointslice.kubernetes.io/managed-by".to_owned();
    other.metadata.name = "x".into();
    other.metadata.labels.insert(manager, "example.com".into());
    deleting.metadata.name = "y".into();
    deleting.metadata.deletion_timestamp = Some(Default::default());
    cluster
        .objects
        .remove::<EndpointSlice>(&slice.metadata.name);
    cluster.objects.put(other);
    cluster.objects.put(deleting);
    let before = cluster.slices();
    assert_eq!(cluster.settle(), 1, "another slice");
    assert!(before.iter().all(|slice| cluster.slices().contains(slice)));
}

#[test]
fn endpoints_that_are_being_deleted_are_left_alone() {
    let mut cluster = Cluster::of(selecting(), []);
    cluster.settle();
    cluster.objects.amend("web", |endpoints: &mut Endpoints| {
        endpoints.metadata.deletion_timestamp = Some(Default::default());
    });
    let before = cluster.endpoints();
    cluster.pods = Cluster::of(selecting(), [pod("a", "10.0.0.1", true)]).pods;
    cluster.settle();
    assert_eq!(cluster.endpoints(), before);
}

#[test]
fn a_pod_has_one_endpoint_in_each_family_of_the_service() {
    let mut dual = pod("dual", "10.0.0.1", true);
    let ips = ["10.0.0.1", "10.0.0.9", "fd00::1"];
    dual.status.pod_ips = ips.map(|ip| read(json!({ "ip": ip }))).into();
    let mut single = pod("single", "10.0.0.2", true);
    single.status.pod_ips.clear();
    let pods = [dual, single, pod("none", "", true), pod("odd", "ten", true)];
    for (families, expected) in [
        (&[][..], &["10.0.0.1", "10.0.0.2"][..]),
        (&["IPv4"], &["10.0.0.1", "10.0.0.2"]),
        (&["IPv6"], &["fd00::1"]),
        (&["IPv6", "IPv4"], &["10.0.0.1", "10.0.0.2", "fd00::1"]),
    ] {
        let mut service = selecting();
        service.spec.ip_families = families.iter().map(ToString::to_string).collect();
        let mut cluster = Cluster::of(service, pods.clone());
        cluster.settle();
        let slices = cluster.slices();
        let found = slices.iter().flat_map(|slice| {
            let addresses = slice.endpoints.iter().map(|one| one.addresses[0].as_str());
            addresses.map(|ip| (slice.address_type == "IPv6", ip))
        });
        let found: BTreeSet<_> = found.collect();
        let expected = expected.iter().map(|ip| (ip.contains(':'), *ip));
        assert_eq!(found, expected.collect(), "{families:?}");
        let subsets = &cluster.endpoints().subsets;
        let first = families.first().is_some_and(|first| *first == "IPv6");
        let listed = subsets.iter().flat_map(|subset| &subset.addresses);
        assert!(listed.clone().all(|one| one.ip.contains(':') == first));
        assert!(listed.count() > 0);
    }
}

#[test]
fn an_empty_slice_is_of_the_first_family_of_the_service() {
    for (families, family) in [(&["IPv6", "IPv4"][..], "IPv6"), (&[], "IPv4")] {
        let mut service = selecting();
        service.spec.ip_families = families.iter().map(ToString::to_string).collect();
        let mut cluster = Cluster::of(service, []);
        cluster.settle();
        let slice = cluster.slice();
        assert_eq!(slice.address_type, family);
    }
}

#[test]
fn a_named_port_is_found_by_its_protocol_in_containers_and_sidecars() {
    let port = |name: &str, protocol: &str, port: i32| json!({"name": name, "protocol": protocol, "containerPort": port});
    let mut server = pod("a", "10.0.0.1", true);
    server.spec.containers[0].ports = read(json!([
        port("", "TCP", 1),
        port("dns", "UDP", 53),
        port("dns", "TCP", 5353)
    ]));
    server.spec.init_containers = read(json!([
        {"name": "setup", "ports": [port("setup", "TCP", 2)]},
        {"name": "proxy", "restartPolicy": "Always", "ports": [port("proxy", "TCP", 15001)]},
    ]));
    for (protocol, target, expected) in [
        ("TCP", json!("dns"), Some(5353)),
        ("UDP", json!("dns"), Some(53)),
        ("TCP", json!("proxy"), Some(15001)),
        ("TCP", json!("setup"), None),
        ("TCP", json!(9000), Some(9000)),
    ] {
        let ports = json!([{"protocol": protocol, "port": 80, "targetPort": target}]);
        let service = service(json!({"selector": {"app": "web"}, "ports": ports}));
        let mut cluster = Cluster::of(service, [server.clone()]);
        cluster.settle();
        let slice = cluster.slice();
        let found = slice.ports.first().and_then(|port| port.port);
        assert_eq!(found, expected, "{protocol} {target}");
    }
}

#[test]
fn endpoints_list_a_thousand_addresses_the_ready_ones_first_and_say_that_others_are_missing() {
    let numbered = |n: usize, ready| {
        let ip = format!("10.0.{}.{}", n / 250, n % 250);
        pod(&format!("p{n}"), &ip, ready)
    };
    let pods = (0..999).map(|n| numbered(n, n > 0));
    let others = (999..1_001).map(|n| {
        let mut pod = numbered(n, n > 999);
        pod.spec.containers[0].ports[0].container_port = 9090;
        pod
    });
    let mut cluster = Cluster::of(selecting(), pods.chain(others));
    let annotation = "endpoints.kubernetes.io/over-capacity";
    let counts = |cluster: &Cluster| {
        let endpoints = cluster.endpoints();
        let count = |one: &setpoint_proto::core::EndpointSubset| {
            (one.addresses.len(), one.not_ready_addresses.len())
        };
        let said = endpoints.metadata.annotations.get(annotation).cloned();
        (
            endpoints.subsets.iter().map(count).collect::<Vec<_>>(),
            said,
        )
    };
    cluster.settle();
    let truncated = (vec![(998, 1), (1, 0)], Some("truncated".to_owned()));
    assert_eq!(counts(&cluster), truncated);
    cluster.pods.remove("p999");
    cluster.settle();
    assert_eq!(counts(&cluster), (vec![(998, 1), (1, 0)], None));
}
