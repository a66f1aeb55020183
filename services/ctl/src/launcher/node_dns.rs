//! The DNS that runs on each machine that is a node: Pods ask it first, and the Service of the cluster's DNS if it
//! does not answer.
//!
//! It listens on a link-local address of the loopback, which is the same on each machine and is reached from no other,
//! as NodeLocal DNSCache does. The address outlives the process: the kernel then refuses questions at once, where
//! resolvers would wait for an answer.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use anyhow::bail;

use super::joined::Joined;
use super::network::bridge::ip;
use super::state_dir::StateDir;

/// The service of the cluster's DNS.
pub const DNS: &str = "dns";
/// The address of NodeLocal DNSCache, of which a machine has none beside this one.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 20, 10);
/// An address of the loopback where nobody listens alone.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 169, 20, 10);
/// The port that resolvers ask.
const PORT: u16 = 53;

/// Returns where it listens.
pub fn listen() -> String {
    format!("{ADDRESS}:{PORT}")
}

/// Returns the name servers of Pods, comma-separated: this one, and the Service of the cluster's.
pub fn servers(cluster: Ipv4Addr) -> String {
    format!("{ADDRESS},{cluster}")
}

/// Gives this machine the address.
///
/// # Errors
/// If `ip` fails.
pub fn add_address() -> anyhow::Result<()> {
    // Of scope host: the kernel does not choose it for connections to elsewhere.
    ip(&format!("address replace {ADDRESS}/32 dev lo scope host\n"))
}

/// Takes the address from this machine, if a node of this state directory has it.
///
/// # Errors
/// If `ip` fails.
pub fn forget(state_dir: &StateDir) -> anyhow::Result<()> {
    let mut joined = Joined::all(state_dir).into_iter();
    match joined.any(|joined| joined.machine().is_some()) {
        // Succeeds without the address, too.
        true => ip(&format!("address flush dev lo to {ADDRESS}\n")),
        false => Ok(()),
    }
}

/// Checks that nothing listens where it is to.
///
/// # Errors
/// If a process does.
pub fn check_free() -> anyhow::Result<()> {
    match is_taken(PORT) {
        true => bail!(
            "{ADDRESS}:{PORT}, where the Pods of this node ask for names, is taken by another process of this machine"
        ),
        false => Ok(()),
    }
}

/// Returns whether a process listens at the address, or at all addresses, which only the second tells while this
/// machine does not have the first.
fn is_taken(port: u16) -> bool {
    let mut addresses = [ADDRESS, ELSEWHERE].into_iter();
    addresses.any(|address| {
        let bound = UdpSocket::bind((address, port));
        bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_ask_the_dns_of_their_node_first() {
        let servers = servers(Ipv4Addr::new(10, 96, 0, 10));
        assert_eq!(servers, "169.254.20.10,10.96.0.10");
        assert_eq!(listen(), "169.254.20.10:53");
    }

    #[test]
    fn a_port_is_taken_by_those_who_listen_at_all_addresses() {
        let everywhere = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert!(is_taken(port));
        drop(everywhere);
        let elsewhere = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_taken(elsewhere.local_addr().unwrap().port()));
    }
}
