//! Chaos stays on this machine: an address that is not one of it is refused.

use std::net::{IpAddr, UdpSocket};

use anyhow::{Context, bail};
use tokio::net::lookup_host;

/// Fails unless every one of these addresses, comma separated, is of this machine.
pub async fn ensure(addresses: &str) -> anyhow::Result<()> {
    for address in addresses.split(',') {
        let found = lookup_host(authority(address)).await;
        let found = found.with_context(|| format!("cannot find {address}"))?;
        for socket in found {
            if !is_here(socket.ip()) {
                bail!("{address} is not on this machine: chaos is for clusters that run here");
            }
        }
    }
    Ok(())
}

/// Host and port of a URI.
fn authority(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let after_bracket = authority.rsplit(']').next().unwrap_or(authority);
    match after_bracket.contains(':') {
        true => authority.to_owned(),
        false => format!("{authority}:80"),
    }
}

/// Only an address of one's own can be listened on.
fn is_here(ip: IpAddr) -> bool {
    !ip.is_unspecified() && (ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_addresses_of_this_machine_are_accepted() {
        for here in [
            "http://127.0.0.1:6443",
            "http://127.0.0.1:1,http://127.8.9.1",
        ] {
            ensure(here).await.unwrap();
        }
        // One of the addresses that are never given to anybody (RFC 5737).
        for elsewhere in [
            "http://192.0.2.1:6443",
            "http://127.0.0.1:1,http://192.0.2.1",
            "http://0.0.0.0:1",
        ] {
            let error = ensure(elsewhere).await.unwrap_err().to_string();
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
