//! Finds and checks free ports on 127.0.0.1.

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use anyhow::Context;

use crate::advice::advised;

/// Returns `count` different ports that are free now. Another process may take them before they are used.
pub fn free(count: usize) -> anyhow::Result<Vec<u16>> {
    let held: io::Result<Vec<_>> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect();
    // All listeners stay open until the last port is found, so that the ports differ.
    let held = held.context("no free port on 127.0.0.1")?;
    held.iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect()
}

/// Fails if another process listens on `port`; the error names `what` the port is for.
pub fn check(port: u16, what: &str) -> anyhow::Result<()> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(advised(
            format!("port {port} for {what} is taken by another process"),
            "ss -ltnp, which says by which, or setpoint up with another --port or --etcd-port",
        )),
        Err(error) => Err(error).with_context(|| format!("cannot use port {port} for {what}")),
    }
}

/// Returns whether a port is free for both protocols.
pub fn is_free_for_dns(port: u16) -> bool {
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
    udp.is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_free_and_different() {
        let ports = free(20).unwrap();
        assert!(ports.iter().all(|port| check(*port, "a test").is_ok()));
        assert_eq!(
            ports.iter().collect::<std::collections::HashSet<_>>().len(),
            20
        );
    }

    #[test]
    fn a_taken_port_is_named() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = check(port, "etcd-0").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("port {port} for etcd-0 is taken")),
            "{error}"
        );
    }
}
