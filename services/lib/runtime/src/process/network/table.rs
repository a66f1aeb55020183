//! The table of nftables of a node: the source address of what leaves the machine, and host ports. Pure.
//!
//! Host ports answer at the address of the node, or at that which the container names. A Pod that connects to its own
//! gets the address of the node as its source, without which the reply would not pass here.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use crate::{HostPort, SandboxConfig};

/// Returns the transaction that replaces the table by one for these Pods.
pub fn whole(
    table: &str,
    bridge: &str,
    node: Ipv4Addr,
    range: &str,
    pods: &[SandboxConfig],
) -> String {
    let lookups = PROTOCOLS.map(|protocol| {
        format!("    dnat ip to ip daddr . {protocol} dport map @{protocol}-ports\n")
    });
    let maps = PROTOCOLS.map(|protocol| {
        format!(
            "  map {protocol}-ports {{ type ipv4_addr . inet_service : ipv4_addr . inet_service ; }}\n"
        )
    });
    let (lookups, maps) = (lookups.concat(), maps.concat());
    let mut text = format!(
        "{}table ip {table} {{
{maps}  set hairpin {{ type ipv4_addr . ipv4_addr ; }}
  chain prerouting {{
    type nat hook prerouting priority -100
{lookups}  }}
  chain output {{
    type nat hook output priority -100
{lookups}  }}
  chain postrouting {{
    type nat hook postrouting priority 100
    ip saddr {range} oifname != \"{bridge}\" masquerade
    ct status dnat ip saddr . ip daddr @hairpin masquerade
  }}
}}
",
        remove(table)
    );
    pods.iter()
        .for_each(|pod| text.push_str(&add_ports(table, node, pod)));
    text
}

/// The protocols of host ports.
const PROTOCOLS: [&str; 2] = ["tcp", "udp"];

/// Returns the transaction that removes the table if it is there.
pub fn remove(table: &str) -> String {
    format!("add table ip {table}\ndelete table ip {table}\n")
}

/// Returns the transaction that adds the host ports of a Pod; empty if it has none.
pub fn add_ports(table: &str, node: Ipv4Addr, pod: &SandboxConfig) -> String {
    let mut text = String::new();
    for port in ports(pod) {
        let (protocol, at, to) = (port.protocol.to_lowercase(), address(port, node), pod.ip);
        let HostPort {
            port,
            container_port,
            ..
        } = port;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "add element ip {table} {protocol}-ports {{ {at} . {port} : {to} . {container_port} }}"
        );
    }
    if !text.is_empty() {
        let _ = writeln!(
            text,
            "add element ip {table} hairpin {{ {0} . {0} }}",
            pod.ip
        );
    }
    text
}

/// Returns the transaction that removes the host ports of a Pod; empty if it has none.
pub fn remove_ports(table: &str, node: Ipv4Addr, pod: &SandboxConfig) -> String {
    // What is added first is there: of a node that was started anew, or of a Pod that was connected in part.
    let mut text = add_ports(table, node, pod);
    for port in ports(pod) {
        let (protocol, at) = (port.protocol.to_lowercase(), address(port, node));
        let _ = writeln!(
            text,
            "delete element ip {table} {protocol}-ports {{ {at} . {} }}",
            port.port
        );
    }
    if !text.is_empty() {
        let _ = writeln!(
            text,
            "delete element ip {table} hairpin {{ {0} . {0} }}",
            pod.ip
        );
    }
    text
}

fn ports(pod: &SandboxConfig) -> impl Iterator<Item = &HostPort> {
    let ports = pod.host_ports.iter();
    ports.filter(|port| {
        PROTOCOLS
            .iter()
            .any(|known| port.protocol.eq_ignore_ascii_case(known))
    })
}

fn address(port: &HostPort, node: Ipv4Addr) -> Ipv4Addr {
    port.ip.filter(|ip| !ip.is_unspecified()).unwrap_or(node)
}
