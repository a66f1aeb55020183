//! The plan of the endpointslice-controller: worked examples, and properties over random Pods and crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use setpoint_controller::{View as _, Whole};
use setpoint_endpointslice_controller::{Action, PodView, SLICE_MAX, World, Zones, plan};
use setpoint_proto::Resource;
use setpoint_proto::core::{Endpoints, Pod, Service};
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proto::meta::ObjectMeta;

/// The objects of one Service, as the API would have them after the actions of the controller.
#[derive(Clone)]
struct Cluster {
    service: Service,
    pods: BTreeMap<String, Pod>,
    slices: BTreeMap<String, EndpointSlice>,
    endpoints: Option<Endpoints>,
    zones: Zones,
    seed: u64,
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("it is an object of the kind")
}

fn service(spec: Value) -> Service {
    let metadata =
        json!({"namespace": "shop", "name": "web", "uid": "s", "labels": {"tier": "front"}});
    read(json!({"metadata": metadata, "spec": spec}))
}

/// Returns a Service with a selector and a port with a name.
fn selecting() -> Service {
    let port = json!({"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web"});
    service(
        json!({"clusterIP": "10.96.0.9", "ipFamilies": ["IPv4"], "selector": {"app": "web"}, "ports": [port]}),
    )
}

fn pod(name: &str, ip: &str, ready: bool) -> Pod {
    let ready = if ready { "True" } else { "False" };
    let port = json!({"name": "web", "protocol": "TCP", "containerPort": 8080});
    read(json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "node-0", "containers": [{"name": "main", "ports": [port]}]},
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }))
}

impl Cluster {
    fn of(service: Service, pods: impl IntoIterator<Item = Pod>) -> Self {
        let pods = pods.into_iter().map(|pod| (pod.metadata.name.clone(), pod));
        Self {
            service,
            pods: pods.collect(),
            slices: BTreeMap::new(),
            endpoints: None,
            zones: Zones::new(),
            seed: 0,
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        self.seed += 1;
        let world = World {
            zones: self.zones.clone(),
            service: Arc::new(Whole::of(self.service.clone())),
            pods: self
                .pods
                .values()
                .cloned()
                .map(PodView::of)
                .map(Arc::new)
                .collect(),
            slices: self
                .slices
                .values()
                .cloned()
                .map(Whole::of)
                .map(Arc::new)
                .collect(),
            endpoints: self.endpoints.clone().map(Whole::of).map(Arc::new),
            seed: self.seed << 32,
        };
        plan(&world)
            .steps
            .into_iter()
            .map(|step| step.action)
            .collect()
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Create(slice) | Action::Update(slice) => {
                self.slices.insert(slice.metadata.name.clone(), *slice);
            }
            Action::Delete(slice) => {
                self.slices.remove(&slice.key.name).expect("it exists");
            }
            Action::CreateEndpoints(new) | Action::UpdateEndpoints(new) => {
                self.endpoints = Some(*new);
            }
        }
    }

    /// Executes plans until one is empty; returns the number of writes.
    fn settle(&mut self) -> usize {
        let actions = self.actions();
        let writes = actions.len();
        actions.into_iter().for_each(|action| self.apply(action));
        let more = self.actions();
        assert!(more.is_empty(), "a second plan has work left: {more:?}");
        writes
    }

    /// Returns the addresses of the slices with their conditions `ready`, `serving` and `terminating`.
    fn addresses(&self) -> Vec<(String, [Option<bool>; 3])> {
        let endpoints = self.slices.values().flat_map(|slice| &slice.endpoints);
        let found = endpoints.map(|one| {
            let are = &one.conditions;
            (
                one.addresses[0].clone(),
                [are.ready, are.serving, are.terminating],
            )
        });
        found.collect()
    }
}

fn meta(object: &impl Resource) -> &ObjectMeta {
    object.meta()
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
    let slice = cluster.slices.values().next().unwrap();
    assert_eq!(slice.address_type, "IPv4");
    assert_eq!(slice.ports[0].port, Some(8080));
    assert_eq!(meta(slice).owner_references[0].uid, "s");
    let labels = json!({
        "tier": "front",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    assert_eq!(json!(meta(slice).labels), labels);
    let endpoints = cluster.endpoints.as_ref().unwrap();
    let of = |addresses: &[setpoint_proto::core::EndpointAddress]| {
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
    let endpoints = cluster.endpoints.as_ref().unwrap();
    assert_eq!(of(&endpoints.subsets[0].addresses).len(), 3);
}

#[test]
fn a_service_without_endpoints_has_one_empty_slice() {
    let mut cluster = Cluster::of(selecting(), []);
    cluster.settle();
    let empty = cluster.slices.values().next().unwrap().clone();
    assert!(empty.endpoints.is_empty() && empty.ports.is_empty());
    assert_eq!(cluster.slices.len(), 1);

    cluster.pods = Cluster::of(selecting(), [pod("a", "10.0.0.1", true)]).pods;
    cluster.settle();
    assert_eq!(cluster.slices.len(), 1, "the empty slice is gone");
    cluster.pods.clear();
    cluster.settle();
    assert_eq!(cluster.slices.len(), 1);
    assert!(cluster.addresses().is_empty());
}

#[test]
fn pods_with_other_numbers_of_a_named_port_have_slices_of_their_own() {
    let mut other = pod("b", "10.0.0.2", true);
    other.spec.containers[0].ports[0].container_port = 9090;
    let mut cluster = Cluster::of(selecting(), [pod("a", "10.0.0.1", true), other]);
    cluster.settle();
    let ports = cluster.slices.values().map(|slice| slice.ports[0].port);
    assert_eq!(
        ports.collect::<BTreeSet<_>>(),
        [Some(8080), Some(9090)].into()
    );
    assert_eq!(cluster.endpoints.as_ref().unwrap().subsets.len(), 2);
}

#[test]
fn a_headless_service_names_the_hosts_of_its_pods() {
    let mut named = pod("a", "10.0.0.1", true);
    named.spec.hostname = "a".into();
    named.spec.subdomain = "web".into();
    let mut elsewhere = pod("b", "10.0.0.2", true);
    elsewhere.spec.hostname = "b".into();
    elsewhere.spec.subdomain = "db".into();
    let headless = service(json!({"clusterIP": "None", "selector": {"app": "web"}}));
    let mut cluster = Cluster::of(headless, [named, elsewhere]);
    cluster.settle();
    let slice = cluster.slices.values().next().unwrap();
    let hostnames = slice.endpoints.iter().map(|one| one.hostname.as_deref());
    assert_eq!(hostnames.collect::<Vec<_>>(), [Some("a"), None]);
    assert!(
        meta(slice)
            .labels
            .contains_key("service.kubernetes.io/headless")
    );
}

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
    cluster.endpoints = Some(read(written));
    cluster.settle();
    let slice = cluster.slices.values().next().unwrap();
    let manager = &meta(slice).labels["endpointslice.kubernetes.io/managed-by"];
    assert_eq!(manager, "endpointslicemirroring-controller.k8s.io");
    assert_eq!(cluster.addresses()[1].1, [Some(false), None, None]);

    cluster.endpoints = None;
    cluster.settle();
    assert!(cluster.slices.is_empty());
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

#[test]
fn a_pod_that_becomes_unready_costs_two_writes_among_many() {
    let pods = (0..250).map(|n| pod(&format!("p{n}"), &format!("10.0.1.{n}"), true));
    let mut cluster = Cluster::of(selecting(), pods);
    cluster.settle();
    assert_eq!(cluster.slices.len(), 3);
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

proptest! {
    /// A crash leaves any part of a plan undone.
    #[test]
    fn each_pod_is_in_one_slice_whatever_crashes(
        rounds in prop::collection::vec((prop::collection::btree_map(0_u8..250, any::<bool>(), 0..250), 0_usize..6), 1..6),
    ) {
        let mut cluster = Cluster::of(selecting(), []);
        for (pods, done) in rounds {
            let pods = pods.into_iter().map(|(n, ready)| pod(&format!("p{n}"), &format!("10.0.1.{n}"), ready));
            cluster.pods = Cluster::of(selecting(), pods).pods;
            let actions = cluster.actions();
            actions.into_iter().take(done).for_each(|action| cluster.apply(action));
        }
        cluster.settle();
        let addresses: Vec<_> = cluster.addresses().into_iter().map(|(ip, _)| ip).collect();
        let wanted: BTreeSet<_> = cluster.pods.values().map(|pod| pod.status.pod_ip.clone()).collect();
        prop_assert_eq!(addresses.len(), wanted.len());
        prop_assert_eq!(addresses.into_iter().collect::<BTreeSet<_>>(), wanted);
        for slice in cluster.slices.values() {
            prop_assert!(slice.endpoints.len() <= SLICE_MAX);
        }
    }
}

/// The zone of an endpoint, and the zones and nodes of its hints.
type Hinted = (Option<String>, Vec<String>, Vec<String>);

/// The zone and the hints of each endpoint, by the Pod's name.
fn hints(cluster: &Cluster) -> BTreeMap<String, Hinted> {
    let endpoints = cluster.slices.values().flat_map(|slice| &slice.endpoints);
    let hinted = endpoints.map(|endpoint| {
        let hints = endpoint.hints.clone().unwrap_or_default();
        let zones = hints.for_zones.into_iter().map(|zone| zone.name);
        let nodes = hints.for_nodes.into_iter().map(|node| node.name);
        let name = endpoint.target_ref.clone().expect("it is a Pod").name;
        (
            name,
            (endpoint.zone.clone(), zones.collect(), nodes.collect()),
        )
    });
    hinted.collect()
}

#[test]
fn ready_endpoints_are_hinted_to_clients_of_their_zone_or_node_as_the_service_prefers() {
    let on = |name: &str, ip: &str, ready, node: &str| {
        let mut pod = pod(name, ip, ready);
        pod.spec.node_name = node.into();
        pod
    };
    let pods = [
        on("east", "10.0.0.1", true, "node-e"),
        on("unready", "10.0.0.2", false, "node-e"),
        on("nowhere", "10.0.0.3", true, "node-n"),
    ];
    let mut cluster = Cluster::of(selecting(), pods);
    cluster.zones.insert("node-e".into(), "east".into());
    let east = || Some("east".to_owned());
    let one = |name: &str| vec![name.to_owned()];
    let none = Vec::new;
    let zonal = [
        ("east".to_owned(), (east(), one("east"), none())),
        ("nowhere".to_owned(), (None, none(), none())),
        ("unready".to_owned(), (east(), none(), none())),
    ];
    let nodal = [
        ("east".to_owned(), (east(), one("east"), one("node-e"))),
        ("nowhere".to_owned(), (None, none(), one("node-n"))),
        ("unready".to_owned(), (east(), none(), none())),
    ];
    for (preference, expected) in [
        (Some("PreferClose"), &zonal),
        (Some("PreferSameNode"), &nodal),
        (Some("PreferSameZone"), &zonal),
    ] {
        cluster.service.spec.traffic_distribution = preference.map(str::to_owned);
        cluster.settle();
        assert_eq!(hints(&cluster), expected.clone().into(), "{preference:?}");
    }
    cluster.service.spec.traffic_distribution = None;
    cluster.settle();
    let hinted =
        |(_, zones, nodes): &(_, Vec<String>, Vec<String>)| !zones.is_empty() || !nodes.is_empty();
    assert!(!hints(&cluster).values().any(hinted));
    cluster.zones.insert("node-n".into(), "north".into());
    cluster.settle();
    assert_eq!(hints(&cluster)["nowhere"].0.as_deref(), Some("north"));
}
