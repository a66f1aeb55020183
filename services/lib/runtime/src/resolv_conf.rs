//! The file /etc/resolv.conf of the machine, which those of Pods are made of.

use std::fs;
use std::io;
use std::net::IpAddr;

use crate::Dns;

/// Path of the file, on the machine and in containers.
pub const PATH: &str = "/etc/resolv.conf";
/// The file with the name servers that systemd-resolved asks, of a machine whose own file names the loopback.
const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// Returns the text of the machine's file; for Pods with networks of their own, that of systemd-resolved if the machine
/// asks name servers at its loopback, which these Pods do not reach.
///
/// # Errors
/// If it cannot be read.
pub fn node_file(own_network: bool) -> io::Result<String> {
    let text = fs::read_to_string(PATH)?;
    let servers = Dns::parse(&text).nameservers;
    let is_loopback = |text: &String| text.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match own_network && !servers.is_empty() && servers.iter().all(is_loopback) {
        true => Ok(fs::read_to_string(RESOLVED).unwrap_or(text)),
        false => Ok(text),
    }
}
