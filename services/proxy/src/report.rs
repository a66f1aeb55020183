//! Events about Services whose sockets cannot be opened.

use std::io;
use std::net::SocketAddrV4;

use setpoint_controller::Reader;
use setpoint_controller::events::{Recorder, reference};
use setpoint_model::Key;
use setpoint_proto::core::Service;

use crate::{NodeView, ServiceView};

/// The reason of Events about ports that carry no traffic.
const FAILED: &str = "FailedToListen";
/// The reason of Events about health checks that do not answer, as in upstream.
const FAILED_CHECK: &str = "FailedToStartServiceHealthcheck";

/// Records that a port of a Service carries no traffic, and why.
pub type Report = Box<dyn Fn(&Key, String) + Send + Sync>;

/// Records that a health check of a Service does not listen at an address, and why.
pub type CheckReport = Box<dyn Fn(&Key, SocketAddrV4, &io::Error) + Send + Sync>;

/// Returns the recorder of Events about ports.
pub fn ports(services: Reader<ServiceView>, events: Recorder) -> Report {
    Box::new(move |key, message| warn(&services, &events, key, FAILED, message))
}

/// Returns the recorder of Events about health checks.
pub fn checks(
    services: Reader<ServiceView>,
    nodes: Reader<NodeView>,
    events: Recorder,
) -> CheckReport {
    Box::new(move |key, at, error| {
        let nodes = nodes.list();
        let node = nodes.iter().find(|node| node.addresses.contains(at.ip()));
        let node = node.map(|node| node.meta.key.name.as_str());
        warn(
            &services,
            &events,
            key,
            FAILED_CHECK,
            check_message(node, key, at, error),
        );
    })
}

fn warn(
    services: &Reader<ServiceView>,
    events: &Recorder,
    key: &Key,
    reason: &'static str,
    message: String,
) {
    if let Some(service) = services.get(key) {
        events.warning(&reference::<Service>(&service.meta), reason, message);
    }
}

/// Returns upstream's message about a health check. An address of no node is one of the whole machine.
fn check_message(node: Option<&str>, key: &Key, at: SocketAddrV4, error: &io::Error) -> String {
    let node = node.map_or_else(|| format!("with address {}", at.ip()), str::to_owned);
    let (service, port) = (key.to_string(), at.port());
    format!(
        "node {node} failed to start healthcheck {service:?} on port {port}: listen tcp {at}: bind: {}",
        reason(error)
    )
}

/// Returns the reason in words that do not change with the system's library.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "address already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "the address is not one of this machine".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; ports below net.ipv4.ip_unprivileged_port_start need root or \
             CAP_NET_BIND_SERVICE"
                .to_owned()
        }
        io::ErrorKind::Unsupported => "the protocol is not supported in user space".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_health_check_that_does_not_start_is_told_in_upstreams_words() {
        let (key, at) = (Key::new("shop", "web"), "192.0.2.11:31000".parse().unwrap());
        let error = io::Error::from(io::ErrorKind::AddrInUse);
        assert_eq!(
            check_message(Some("node-1"), &key, at, &error),
            "node node-1 failed to start healthcheck \"shop/web\" on port 31000: \
             listen tcp 192.0.2.11:31000: bind: address already in use"
        );
        let of_machine = check_message(None, &key, at, &error);
        assert!(of_machine.starts_with("node with address 192.0.2.11 failed"));
    }
}
