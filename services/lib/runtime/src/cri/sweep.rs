//! Removes everything of a node from a runtime.

use k8s_cri::v1::{ListPodSandboxRequest, PodSandboxFilter};
use tracing::warn;

use super::client::{ConnectError, Service, call};
use super::settings::Settings;
use super::{identity, resources, sandboxes};

/// Removes the sandboxes of a node with their containers, and their cgroups; not their files. For a node whose agent
/// has ended for good.
///
/// # Errors
/// If there is no runtime.
pub async fn sweep(settings: &Settings, node: &str) -> Result<(), ConnectError> {
    let service = Service::connect(settings).await?;
    let request = ListPodSandboxRequest {
        filter: Some(PodSandboxFilter {
            label_selector: identity::of_node(node),
            ..PodSandboxFilter::default()
        }),
    };
    let listed = call(service.runtime().list_pod_sandbox(request)).await;
    let listed = listed.map(|answer| answer.items).unwrap_or_else(|status| {
        warn!(%status, "cannot list the sandboxes of a node");
        Vec::new()
    });
    for sandbox in listed {
        if let Err(status) = sandboxes::end(&service, &sandbox.id).await {
            warn!(sandbox = sandbox.id, %status, "cannot remove a sandbox");
        }
    }
    if let Err(error) = resources::remove_cgroups(&service, node) {
        warn!(%error, "cannot remove the cgroups of a node");
    }
    Ok(())
}
