//! A small cluster as an index, and questions about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use setpoint_controller::{Delta, View};
use setpoint_dns::{Index, NamespaceView, PodMode, PodView, ServiceView, SliceView, Zone};
use setpoint_proto::core::{Namespace, Pod, Service, ServicePort};
use setpoint_proto::discovery::{Endpoint, EndpointPort, EndpointSlice};

pub fn zone() -> Zone {
    Zone {
        origin: Name::from_ascii("cluster.local.").unwrap(),
        ttl: 30,
        pods: PodMode::Insecure,
        reverse: vec![("10.0.0.0".parse().unwrap(), 8)],
        addresses: vec!["10.9.9.9".parse().unwrap()],
    }
}

pub fn query(name: &str, of: RecordType) -> Query {
    Query::query(Name::from_ascii(name).unwrap(), of)
}

pub fn change<V: View>(old: Option<V::Object>, new: Option<V::Object>) -> Delta<V> {
    Delta {
        old: old.map(|object| Arc::new(V::of(object))),
        new: new.map(|object| Arc::new(V::of(object))),
        cause: None,
        revision: setpoint_model::Revision::default(),
    }
}

pub fn namespace(name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = name.to_owned();
    namespace
}

/// A Service in `default` with ports as `name/protocol/number`.
pub fn service(name: &str, ip: &str, ports: &[&str]) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "default".to_owned();
    service.metadata.name = name.to_owned();
    service.spec.r#type = "ClusterIP".to_owned();
    service.spec.cluster_ip = ip.to_owned();
    service.spec.ports = ports
        .iter()
        .map(|port| {
            let parts: Vec<_> = port.split('/').collect();
            ServicePort {
                name: parts[0].to_owned(),
                protocol: parts[1].to_owned(),
                port: parts[2].parse().unwrap(),
                ..ServicePort::default()
            }
        })
        .collect();
    service
}

pub fn external(name: &str, target: &str) -> Service {
    let mut service = service(name, "", &[]);
    service.spec.r#type = "ExternalName".to_owned();
    service.spec.external_name = target.to_owned();
    service
}

/// A slice in `default` of endpoints as `hostname/address`, perhaps with `!` before one that is not ready.
pub fn slice(name: &str, service: &str, endpoints: &[&str], ports: &[&str]) -> EndpointSlice {
    let mut slice = EndpointSlice::default();
    slice.metadata.namespace = "default".to_owned();
    slice.metadata.name = name.to_owned();
    let label = ("kubernetes.io/service-name".to_owned(), service.to_owned());
    slice.metadata.labels = BTreeMap::from([label]);
    slice.address_type = "IPv4".to_owned();
    slice.endpoints = endpoints
        .iter()
        .map(|endpoint| {
            let ready = !endpoint.starts_with('!');
            let (hostname, address) = endpoint.trim_start_matches('!').split_once('/').unwrap();
            let mut endpoint = Endpoint {
                addresses: vec![address.to_owned()],
                hostname: (!hostname.is_empty()).then(|| hostname.to_owned()),
                ..Endpoint::default()
            };
            endpoint.conditions.ready = Some(ready);
            endpoint
        })
        .collect();
    slice.ports = ports
        .iter()
        .map(|port| {
            let parts: Vec<_> = port.split('/').collect();
            EndpointPort {
                name: Some(parts[0].to_owned()),
                protocol: Some(parts[1].to_owned()),
                port: Some(parts[2].parse().unwrap()),
                app_protocol: None,
            }
        })
        .collect();
    slice
}

pub fn pod(name: &str, address: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = "default".to_owned();
    pod.metadata.name = name.to_owned();
    pod.status.pod_ip = address.to_owned();
    pod.status.phase = "Running".to_owned();
    pod
}

/// The objects that most tests ask about.
pub fn index() -> Index {
    let mut index = Index::default();
    for name in ["default", "empty", "kube-system"] {
        index.namespace_changed(&change::<NamespaceView>(None, Some(namespace(name))));
    }
    let mut dns = service("kube-dns", "10.96.0.10", &["dns/UDP/53"]);
    dns.metadata.namespace = "kube-system".to_owned();
    let services = [
        dns,
        service("web", "10.96.0.20", &["http/TCP/80", "/TCP/81"]),
        service("db", "None", &["sql/TCP/5432"]),
        service("idle", "None", &["http/TCP/80"]),
        external("shop", "www.example.com"),
        external("self", "web.default.svc.cluster.local"),
        external("loop", "loop.default.svc.cluster.local"),
        external("number", "10.1.2.3"),
    ];
    for one in services {
        index.service_changed(&change::<ServiceView>(None, Some(one)));
    }
    let endpoints = [
        "db-0/10.0.0.1",
        "db-1/10.0.0.2",
        "/10.0.0.3",
        "!db-3/10.0.0.4",
    ];
    let slices = [
        slice("db-x", "db", &endpoints, &["sql/TCP/5432"]),
        slice("db-y", "db", &["db-0/10.0.0.1"], &["metrics/TCP/9187"]),
        slice("idle-x", "idle", &["!idle-0/10.0.0.5"], &["http/TCP/80"]),
        slice("web-x", "web", &["/10.0.0.6"], &["http/TCP/8080"]),
    ];
    for one in slices {
        index.slice_changed(&change::<SliceView>(None, Some(one)));
    }
    index.pod_changed(&change::<PodView>(None, Some(pod("web-0", "10.0.0.6"))));
    index
}
