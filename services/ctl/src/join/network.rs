//! The network of a node that is a machine of its own: what the cluster has published, and the address of the machine.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use anyhow::{Context as _, bail};
use serde_json::Value;
use setpoint_tls::Pinned;

use super::gateway::{Failure, Gateway};
use crate::launcher::{ClusterNetwork, cluster_network};
use crate::token::Token;

/// Returns the network of the cluster; `None` if it is one of a single machine, which publishes none.
///
/// # Errors
/// If the gateway does not answer, or what it has is damaged.
pub async fn read(
    gateway: &Gateway,
    cluster: &Pinned,
    token: &Token,
) -> anyhow::Result<Option<ClusterNetwork>> {
    let (namespace, name) = (cluster_network::NAMESPACE, cluster_network::NAME);
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let answer = gateway.get_as(cluster, token, &path).await;
    let answer = answer.map_err(|failure| match failure {
        Failure::Unreachable(error) | Failure::Untrusted(error) => {
            error.context(format!("{gateway} cannot be asked about its network"))
        }
    })?;
    match answer.status.as_u16() {
        200 => {
            let map: Value = serde_json::from_str(&answer.body)?;
            let data = serde_json::from_value(map["data"].clone())?;
            ClusterNetwork::parse(&data).map(Some)
        }
        // Without the ConfigMap, there is no role to read it either.
        403 | 404 => Ok(None),
        _ => bail!("the gateway answers {} about its network", answer.status),
    }
}

/// Returns the address by which this machine reaches a gateway.
///
/// # Errors
/// If there is no route to it, or it is on the loopback.
pub fn local_address(gateway: &Gateway) -> anyhow::Result<Ipv4Addr> {
    let advice = "--address names the address at which others reach this machine";
    let found = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Sends nothing: the kernel looks the route up.
        socket.connect(gateway.place())?;
        socket.local_addr()
    };
    let found = found().with_context(|| format!("no route to {gateway}; {advice}"))?;
    match found.ip() {
        IpAddr::V4(address) if !address.is_loopback() => Ok(address),
        other => bail!("this machine reaches {gateway} from {other}; {advice}"),
    }
}
