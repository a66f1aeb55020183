//! Warnings about ports of containers that are declared more than once.

use std::collections::{BTreeMap, HashMap};

use setpoint_proto::core::{ContainerPort, PodSpec};

use super::for_each_container;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

/// The number of ports before it that a port is compared with: it bounds the time for lists that no Pod needs.
const COMPARED_MAX: usize = 512;

/// A port with its path.
struct Declared<'s> {
    port: &'s ContainerPort,
    path: String,
}

/// Warns of ports that equal or overlap others, and of names that several ports have.
pub fn warn(spec: &PodSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let declared = declared(spec, path);
    let mut before: HashMap<_, Vec<&Declared<'_>>> = HashMap::new();
    for one in &declared {
        warn_of_address(one, warnings);
        let key = (one.port.container_port, one.port.protocol.as_str());
        let others = before.entry(key).or_default();
        for other in &*others {
            if warnings.is_full() {
                return;
            }
            if let Some(relation) = relation(one.port, other.port) {
                let text = format!(
                    "{}: {relation} port definition with {}",
                    one.path, other.path
                );
                warnings.add(text);
            }
        }
        if others.len() < COMPARED_MAX {
            others.push(one);
        }
    }
    warn_of_names(&declared, warnings);
}

fn declared<'s>(spec: &'s PodSpec, path: &FieldPath<'_>) -> Vec<Declared<'s>> {
    let mut declared = Vec::new();
    for_each_container(spec, path, |container, path| {
        let path = path.field("ports");
        let ports = container.ports.iter().enumerate();
        declared.extend(ports.map(|(index, port)| Declared {
            port,
            path: path.index(index).to_string(),
        }));
    });
    declared
}

/// Warns of an address of the host without a port of the host. The port is written as Go writes it.
fn warn_of_address(declared: &Declared<'_>, warnings: &mut Warnings) {
    let ContainerPort {
        name,
        host_port,
        container_port,
        protocol,
        host_ip,
    } = declared.port;
    if !host_ip.is_empty() && *host_port == 0 {
        warnings.add(format!(
            "{}: hostIP set without hostPort: {{Name:{name} HostPort:{host_port} ContainerPort:{container_port} \
             Protocol:{protocol} HostIP:{host_ip}}}",
            declared.path
        ));
    }
}

/// Returns what is wrong with two ports of the same number and protocol; `None` if they are distinct.
fn relation(one: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    let (same_port, same_ip) = (
        one.host_port == other.host_port,
        one.host_ip == other.host_ip,
    );
    if same_port && same_ip {
        Some("duplicate")
    } else if one.host_port == 0 || other.host_port == 0 {
        Some("overlapping")
    } else if same_port && one.host_ip.is_empty() != other.host_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn warn_of_names(declared: &[Declared<'_>], warnings: &mut Warnings) {
    let mut first: BTreeMap<_, &str> = BTreeMap::new();
    for Declared { port, path } in declared.iter().filter(|one| !one.port.name.is_empty()) {
        let name = port.name.as_str();
        match first.get(name) {
            Some(other) => warnings.add(format!(
                "{path}: duplicate port name {name:?} with {other}, \
                 services and probes that select ports by name will use {other}"
            )),
            None => {
                first.insert(name, path);
            }
        }
    }
}
