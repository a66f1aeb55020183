//! Publishes the network of a cluster of several machines for those that join.

use anyhow::Context as _;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::rbac::{ClusterRoleBinding, Role, RoleBinding};

use crate::connection::{Connection, ensure};
use crate::launcher::{ClusterNetwork, ClusterSpec, StateDir};

/// Writes the ConfigMap, and the roles by which it is read.
///
/// # Errors
/// If the gateway refuses it.
pub async fn publish(state_dir: &StateDir, spec: &ClusterSpec) -> anyhow::Result<()> {
    let [map, role, binding, proxies] = ClusterNetwork::of(spec.network)?.objects()?;
    let connection = Connection::new(state_dir.clone(), Some(spec.addresses()));
    let gateway = connection.gateway()?;
    let written = async {
        ensure::<ConfigMap>(&gateway, map).await?;
        ensure::<Role>(&gateway, role).await?;
        ensure::<RoleBinding>(&gateway, binding).await?;
        ensure::<ClusterRoleBinding>(&gateway, proxies).await
    };
    let written = written.await;
    written.context("the network of the cluster cannot be published for other machines")
}
