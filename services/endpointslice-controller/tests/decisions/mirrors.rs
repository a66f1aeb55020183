//! The slices of Services without a selector, which mirror their Endpoints.

use serde_json::{Value, json};
use setpoint_proto::core::Endpoints;
use setpoint_proto::discovery::EndpointSlice;

use crate::cluster::{Cluster, pod, read, selecting, service};

#[test]
fn endpoints_of_a_service_without_a_selector_are_mirrored() {
    let mut cluster = Cluster::of(service(json!({"clusterIP": "10.96.0.9"})), []);
    assert_eq!(cluster.settle(), 0);
    let subset = json!({
        "addresses": [{"ip": "10.1.2.3"}],
        "notReadyAddresses": [{"ip": "10.1.2.4"}],
        "ports": [{"name": "http", "port": 9376, "protocol": "TCP"}],
    });
    let written = json!({"metadata": {"namespace": "shop", "name": "web"}, "subsets": [subset]});
    cluster.objects.create::<Endpoints>(read(written)).unwrap();
    cluster.settle();
    let slice = cluster.slice();
    let manager = &slice.metadata.labels["endpointslice.kubernetes.io/managed-by"];
    assert_eq!(manager, "endpointslicemirroring-controller.k8s.io");
    assert_eq!(cluster.addresses()[1].1, [Some(false), None, None]);

    cluster.objects.remove::<Endpoints>("web");
    cluster.settle();
    assert!(cluster.slices().is_empty());
}

#[test]
fn a_service_that_loses_its_selector_keeps_its_endpoints() {
    let mut cluster = Cluster::of(selecting(), [pod("a", "10.0.0.1", true)]);
    cluster.settle();
    cluster.service.spec.selector.clear();
    cluster.pods.clear();
    assert_eq!(cluster.settle(), 0);
    assert_eq!(cluster.addresses().len(), 1);
}

/// Returns a Service without a selector whose Endpoints have this metadata and an address.
fn mirrored(metadata: Value) -> Cluster {
    let mut cluster = Cluster::of(service(json!({"clusterIP": "10.96.0.9"})), []);
    let mut endpoints: Endpoints = read(json!({
        "metadata": metadata,
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}],
    }));
    (endpoints.metadata.namespace, endpoints.metadata.name) = ("shop".into(), "web".into());
    cluster.objects.create(endpoints).expect("they are valid");
    cluster
}

#[test]
fn endpoints_of_a_controller_and_those_that_ask_for_it_are_not_mirrored() {
    let skip = "endpointslice.kubernetes.io/skip-mirror";
    for (metadata, slices) in [
        (json!({}), 1),
        (json!({"labels": {skip: "false"}}), 1),
        (json!({"labels": {skip: "true"}}), 0),
        (
            json!({"labels": {"endpoints.kubernetes.io/managed-by": "x"}}),
            0,
        ),
        (
            json!({"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}),
            0,
        ),
    ] {
        let mut cluster = mirrored(metadata.clone());
        cluster.settle();
        assert_eq!(cluster.slices().len(), slices, "{metadata}");
    }
}

#[test]
fn a_mirror_has_the_annotations_of_the_endpoints_that_are_about_addresses() {
    let kept = json!({"team": "shop"});
    let annotations = json!({
        "team": "shop",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z",
    });
    let mut cluster = mirrored(json!({ "annotations": annotations }));
    cluster.settle();
    let annotations = |cluster: &Cluster| {
        let slice = cluster.slice();
        json!(slice.metadata.annotations)
    };
    assert_eq!(annotations(&cluster), kept);
    cluster.objects.edit("web", |endpoints: &mut Endpoints| {
        let team = ("team".to_owned(), "stock".to_owned());
        endpoints.metadata.annotations.extend([team]);
    });
    assert_eq!(cluster.settle(), 1);
    assert_eq!(annotations(&cluster), json!({"team": "stock"}));
}

#[test]
fn endpoints_of_a_user_get_the_service_as_their_owner() {
    let owner = |cluster: &Cluster| {
        let endpoints = cluster.endpoints();
        let owners = endpoints.metadata.owner_references.iter();
        owners.map(|owner| owner.uid.clone()).collect::<Vec<_>>()
    };
    let mut cluster = mirrored(json!({}));
    cluster.settle();
    assert_eq!(owner(&cluster), ["s"]);
    let other =
        json!({"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o", "controller": true});
    let mut cluster = mirrored(json!({"ownerReferences": [other]}));
    cluster.settle();
    assert_eq!(owner(&cluster), ["o"]);
}

#[test]
fn a_mirrored_endpoint_has_what_its_address_says_and_a_malformed_address_has_none() {
    let target = json!({"kind": "Pod", "namespace": "shop", "name": "db-0"});
    let address =
        json!({"ip": "10.1.2.3", "hostname": "db-0", "nodeName": "node-a", "targetRef": target});
    let port = json!({"name": "sql", "port": 5432, "protocol": "TCP", "appProtocol": "postgres"});
    let mut cluster = mirrored(json!({}));
    let subset =
        json!({"addresses": [address, {"ip": "ten"}, {"ip": "10.1.2.4"}], "ports": [port]});
    cluster.objects.amend("web", |endpoints: &mut Endpoints| {
        endpoints.subsets = vec![read(subset)];
    });
    cluster.settle();
    let slice = cluster.slice();
    let ready = json!({"ready": true});
    let expected = json!([
        {"addresses": ["10.1.2.3"], "conditions": ready, "hostname": "db-0", "nodeName": "node-a", "targetRef": target},
        {"addresses": ["10.1.2.4"], "conditions": ready},
    ]);
    assert_eq!(json!(slice.endpoints), expected);
    assert_eq!(json!(slice.ports), json!([port]));
}

#[test]
fn mirrors_are_deleted_once_the_service_has_a_selector() {
    let mut cluster = mirrored(json!({}));
    cluster.settle();
    let mirror = cluster.slice();
    let mut deleting = mirror.clone();
    deleting.metadata.name = "deleting".into();
    deleting.metadata.deletion_timestamp = Some(Default::default());
    cluster.objects.put(deleting);
    cluster.service = selecting();
    cluster.settle();
    let is_there = |name: &str| cluster.objects.get::<EndpointSlice>(name).is_some();
    assert!(!is_there(&mirror.metadata.name));
    assert!(is_there("deleting"), "it is left alone");
}
