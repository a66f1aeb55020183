//! Ends everything of a cluster, for an engine that is to be left empty.

use bollard::Docker;
use bollard::errors::Error as Refusal;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::{StreamExt as _, TryStreamExt as _};

use super::engine::{self, Unusable};
use super::identity::{CLUSTER, filter};
use super::settings::Settings;
use super::{settle, volume};

/// How many containers are removed at once.
const AT_ONCE: usize = 16;

/// Removes all containers of Pods of this cluster, and their volumes; says how many containers they were.
///
/// # Errors
/// When the engine does not answer, or refuses.
pub async fn sweep(settings: &Settings, cluster: &str) -> Result<usize, Unusable> {
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
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    volume::remove(&client, &labels).await?;
    Ok(count)
}

/// The cluster that the agent's own Compose project is, or the usual one.
///
/// # Errors
/// When the engine does not answer.
pub async fn own_cluster(settings: &Settings) -> Result<String, Unusable> {
    Ok(engine::own_cluster(&engine::client(settings).await?).await)
}

async fn remove(client: &Docker, id: String) -> Result<(), Refusal> {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    settle(client.remove_container(&id, Some(options)).await)
}
