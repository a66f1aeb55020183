//! Removes everything of a node from a runtime.

use k8s_cri::v1::{
    ContainerFilter, ListContainersRequest, ListPodSandboxRequest, PodSandboxFilter,
};
use tracing::warn;

use super::client::{ConnectError, Service, call};
use super::settings::{Network, Settings};
use super::{cni, identity, resources, sandboxes};

/// Removes the sandboxes of a node with their containers, their cgroups, and the configuration of its network if that
/// is the agent's; not their files. Returns the number of containers. For a node whose agent has ended.
///
/// # Errors
/// If there is no runtime, or it does not answer.
pub async fn sweep(settings: &Settings, node: &str) -> Result<usize, ConnectError> {
    let service = Service::connect(settings).await?;
    let failed = |what| {
        let endpoint = settings.endpoint.clone();
        move |status| ConnectError::of(endpoint, what, status)
    };
    let labels = identity::of_node(node);
    let containers = ListContainersRequest {
        filter: Some(ContainerFilter {
            label_selector: labels.clone(),
            ..ContainerFilter::default()
        }),
    };
    let containers = call(service.runtime().list_containers(containers)).await;
    let count = containers.map_err(failed("list containers"))?;
    let count = count.containers.len();
    let listed = ListPodSandboxRequest {
        filter: Some(PodSandboxFilter {
            label_selector: labels,
            ..PodSandboxFilter::default()
        }),
    };
    let listed = call(service.runtime().list_pod_sandbox(listed)).await;
    let mut outcome = Ok(count);
    for sandbox in listed.map_err(failed("list sandboxes"))?.items {
        let ended = sandboxes::end(&service, &sandbox.id).await;
        // The others are removed all the same.
        outcome = outcome.and(ended.map(|()| count).map_err(failed("remove a sandbox")));
    }
    if let Err(error) = resources::remove_cgroups(&service, node) {
        warn!(%error, "cannot remove the cgroups of a node");
    }
    if settings.network == Network::Routes
        && outcome.is_ok()
        && let Err(error) = cni::remove(settings).await
    {
        warn!(%error, "cannot remove the network of a node");
    }
    outcome
}
