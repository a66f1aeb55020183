//! The computed table cells of Services.

use std::collections::BTreeMap;

use serde_json::Value;
use setpoint_proto::core::{Service, ServicePort};

/// Returns the cell of a computed column.
pub(super) fn cell(service: &Service, column: &str) -> Option<Value> {
    Some(match column {
        "Cluster-IP" => or_none(service.spec.cluster_ip.clone()).into(),
        "External-IP" => external(service).into(),
        "Port(s)" => or_none(join(service.spec.ports.iter().map(port))).into(),
        "Selector" => or_none(labels(&service.spec.selector)).into(),
        _ => return None,
    })
}

fn join(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(",")
}

fn port(port: &ServicePort) -> String {
    match port.node_port {
        0 => format!("{}/{}", port.port, port.protocol),
        node => format!("{}:{node}/{}", port.port, port.protocol),
    }
}

fn external(service: &Service) -> String {
    let spec = &service.spec;
    let fixed = spec.external_ips.join(",");
    match spec.r#type.as_str() {
        "ExternalName" => spec.external_name.clone(),
        "LoadBalancer" => {
            let ingress = service.status.load_balancer.ingress.iter();
            let given = ingress.map(|i| if i.ip.is_empty() { &i.hostname } else { &i.ip });
            let mut all: Vec<&str> = given.map(String::as_str).collect();
            all.extend(spec.external_ips.iter().map(String::as_str));
            match all.is_empty() {
                true => "<pending>".into(),
                false => all.join(","),
            }
        }
        _ => or_none(fixed),
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".into()
    } else {
        text
    }
}

fn labels(labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}
