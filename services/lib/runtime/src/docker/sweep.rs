//! Removes everything of a cluster from the engine.

use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as BollardError;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::warn;

use super::engine::{self, ConnectError};
use super::identity::{CLUSTER, Identity, filter};
use super::settings::Settings;
use super::{ignore_not_found, volume};

/// Number of containers that are removed concurrently.
const MAX_CONCURRENT: usize = 16;
/// Number of attempts to remove a container, and the pause between them.
const REMOVAL_ATTEMPTS: u32 = 10;
const REMOVAL_PAUSE: Duration = Duration::from_millis(300);

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
    // Without those through which files are copied, which never run.
    let labels_of = |container: &ContainerSummary| container.labels.clone().unwrap_or_default();
    let of_pods = found
        .iter()
        .filter(|one| Identity::parse(&labels_of(one)).is_some());
    let count = of_pods.count();
    let removals = found
        .into_iter()
        .filter_map(|container| container.id)
        .map(|id| remove(&client, id));
    futures::stream::iter(removals)
        .buffer_unordered(MAX_CONCURRENT)
        .try_collect::<()>()
        .await?;
    volume::remove(&client, &labels).await?;
    if let Some(cgroups) = super::pod_cgroup::find(&client.info().await?, cluster) {
        let removed = spawn_blocking(move || cgroups.remove_all()).await;
        if let Ok(Err(error)) = removed {
            warn!(%error, "cannot remove the cgroups of Pods");
        }
    }
    Ok(count)
}

/// Returns the agent's Compose project, or the default cluster.
///
/// # Errors
/// If the engine does not answer.
pub async fn own_cluster(settings: &Settings) -> Result<String, ConnectError> {
    Ok(engine::own_cluster(&engine::client(settings).await?).await)
}

/// Removes a container. Some storage drivers fail while the file system of a container that was just killed is
/// unmounted, so that errors of the engine are retried.
async fn remove(client: &Docker, id: String) -> Result<(), BollardError> {
    let mut attempts = 1..REMOVAL_ATTEMPTS;
    loop {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let removed = ignore_not_found(client.remove_container(&id, Some(options)).await);
        match removed {
            Err(BollardError::DockerResponseServerError {
                status_code: 500, ..
            }) if attempts.next().is_some() => sleep(REMOVAL_PAUSE).await,
            removed => return removed,
        }
    }
}
