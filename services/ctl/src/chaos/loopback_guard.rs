//! Refuses clusters on other machines: faults are injected only into local ones.

use std::net::{IpAddr, UdpSocket};

use anyhow::{Context, bail};
use tokio::net::lookup_host;

/// Fails unless all `addresses`, comma-separated, belong to this machine.
pub async fn require_local(addresses: &str) -> anyhow::Result<()> {
    for address in addresses.split(',') {
        let found = lookup_host(authority(address)).await;
        let found = found.with_context(|| format!("cannot resolve {address}"))?;
        for socket in found {
            if !is_local(socket.ip()) {
                bail!(
                    "{address} is not on this machine: chaos works only on clusters of this machine"
                );
            }
        }
    }
    Ok(())
}

/// Returns the host and the port of a URI; 80 is the default port.
fn authority(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let after_bracket = authority.rsplit(']').next().unwrap_or(authority);
    match after_bracket.contains(':') {
        true => authority.to_owned(),
        false => format!("{authority}:80"),
    }
}

/// Whether `ip` belongs to this machine: a socket can be bound to local addresses only.
fn is_local(ip: IpAddr) -> bool {
    !ip.is_unspecified() && (ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_addresses_of_this_machine_are_accepted() {
        for local in [
            "http://127.0.0.1:6443",
            "http://127.0.0.1:1,http://127.8.9.1",
        ] {
            require_local(local).await.unwrap();
        }
        // 192.0.2.0/24 is reserved for documentation (RFC 5737).
        for remote in [
            "http://192.0.2.1:6443",
            "http://127.0.0.1:1,http://192.0.2.1",
            "http://0.0.0.0:1",
        ] {
            let error = require_local(remote).await.unwrap_err().to_string();
            assert!(error.contains("is not on this machine"), "{error}");
        }
    }

    #[test]
    fn an_authority_has_a_port() {
        assert_eq!(authority("http://[::1]"), "[::1]:80");
        assert_eq!(authority("http://[::1]:7/x"), "[::1]:7");
        assert_eq!(authority("localhost:6443"), "localhost:6443");
    }
}
