//! Removes everything of a cluster from the engine.

use bollard::Docker;
use bollard::errors::Error as BollardError;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::{StreamExt as _, TryStreamExt as _};

use super::engine::{self, ConnectError};
use super::identity::{CLUSTER, filter};
use super::settings::Settings;
use super::{ignore_not_found, volume};

/// Number of containers that are removed concurrently.
const MAX_CONCURRENT: usize = 16;

/// Removes all containers and volumes of a cluster; returns the number of containers.
///
/// # Errors
/// If the engine does not answer or returns an error.
pub async fn sweep(settings: &Settings, cluster: &str) -> Result<usize, ConnectError> {
    let client = engine::client(settings).await?;
    let labels = [(CLUSTER, cluster)];
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&filter(&labels))
        .build();
    let found = client.list_containers(Some(options)).await?;
    let count = found.len();
    let removals = found
        .into_iter()
        .filter_map(|container| container.id)
        .map(|id| remove(&client, id));
    futures::stream::iter(removals)
        .buffer_unordered(MAX_CONCURRENT)
        .try_collect::<()>()
        .await?;
    volume::remove(&client, &labels).await?;
    Ok(count)
}

/// Returns the agent's Compose project, or the default cluster.
///
/// # Errors
/// If the engine does not answer.
pub async fn own_cluster(settings: &Settings) -> Result<String, ConnectError> {
    Ok(engine::own_cluster(&engine::client(settings).await?).await)
}

async fn remove(client: &Docker, id: String) -> Result<(), BollardError> {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    ignore_not_found(client.remove_container(&id, Some(options)).await)
}
