//! Publishes the network of a cluster of several machines for those that join.

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::rbac::{ClusterRoleBinding, Role, RoleBinding};
use setpoint_proto::{Reason, Resource};

use crate::connection::Connection;
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

/// Creates an object, or sets its fields if it is there.
async fn ensure<T: Resource + DeserializeOwned>(
    gateway: &Client,
    wanted: Value,
) -> anyhow::Result<()> {
    let metadata = &wanted["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    let key = Key::new(text("namespace"), text("name"));
    let object: T = serde_json::from_value(wanted.clone())?;
    match gateway.create(&object).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            gateway.patch::<T>(&key, "", wanted).await?;
        }
        created => drop(created?),
    }
    Ok(())
}
