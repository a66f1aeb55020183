//! Publishes the network of a cluster of several machines for those that join.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_model::users::of_service;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::rbac::{ClusterRoleBinding, Role, RoleBinding};
use tokio::time::sleep;

use crate::connection::{Connection, ensure};
use crate::launcher::{ClusterNetwork, ClusterSpec, StateDir};

/// The time that gateways have to publish `kube-public/cluster-info`, for which they need its namespace first.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// Writes the ConfigMap, and the roles by which it is read. Then waits until machines can find the cluster.
///
/// # Errors
/// If the gateway refuses it.
pub async fn publish(state_dir: &StateDir, spec: &ClusterSpec) -> anyhow::Result<()> {
    let network = ClusterNetwork::of(spec.network)?;
    let connection = Connection::new(state_dir.clone(), Some(spec.addresses()));
    let gateway = connection.gateway()?;
    let written = async {
        ensure::<ConfigMap>(&gateway, network.config_map()?).await?;
        let [role, binding] = ClusterNetwork::readers();
        ensure::<Role>(&gateway, role).await?;
        ensure::<RoleBinding>(&gateway, binding).await?;
        for binding in ClusterNetwork::beside_node_agents() {
            ensure::<ClusterRoleBinding>(&gateway, binding).await?;
        }
        anyhow::Ok(())
    };
    let written = written.await;
    written.context("the network of the cluster cannot be published for other machines")?;
    await_cluster_info(&gateway).await;
    Ok(())
}

/// Waits until everybody may read `cluster-info`, which gateways allow after they have written it. An administrator may
/// have taken this right away, which `setpoint token create` tells.
async fn await_cluster_info(gateway: &Client) {
    let (key, begun) = (
        Key::new("kube-public", of_service("cluster-info")),
        Instant::now(),
    );
    while gateway.get::<RoleBinding>(&key).await.is_err() {
        if begun.elapsed() > PATIENCE {
            eprintln!("The gateways publish no kube-public/cluster-info: no machine can join");
            return;
        }
        sleep(PAUSE).await;
    }
}
