//! Changes the limits of running containers.

use bollard::models::{ContainerInspectResponse, ContainerUpdateBody};
use setpoint_proto::core::ResourceRequirements;

use super::create::resource_limits;
use super::identity::Labels;
use super::{Shared, engine_error};
use crate::runtime::{ContainerId, Error, Limits};

/// The label with the requests and limits that a container was started with. A label cannot be changed: an agent that was
/// restarted gives a container that has been resized its limits once more.
const RESOURCES: &str = "setpoint.dev/resources";

/// Returns the label of a container with these requests and limits.
pub fn label(resources: &ResourceRequirements) -> Option<(String, String)> {
    let value = serde_json::to_string(resources).ok()?;
    Some((RESOURCES.to_owned(), value))
}

/// Returns the requests and limits that a container was started with; `None` if an older agent did.
pub fn started_with(container: &ContainerInspectResponse) -> Option<ResourceRequirements> {
    let labels: &Labels = container.config.as_ref()?.labels.as_ref()?;
    serde_json::from_str(labels.get(RESOURCES)?).ok()
}

impl Shared {
    /// Changes the limits of a running container. Memory that it uses is not taken from it, since the kernel would kill it.
    pub(super) async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        let container = self.table.lock().running(id)?.clone();
        let (runtime_id, limits) = (container.runtime_id.clone(), Limits::of(resources));
        let had = container.resources.as_ref().map(Limits::of);
        let had = had.map_or(0, |had| had.memory);
        if limits.memory > 0 && (had == 0 || limits.memory < had) {
            let usage = self.reading(container).await;
            let usage = usage.map_or(0, |(_, reading)| reading.memory);
            if u64::try_from(limits.memory).is_ok_and(|limit| limit < usage) {
                return Err(Error::Config(format!(
                    "attempting to set container {:?} memory limit ({}) below current usage ({usage})",
                    id.name, limits.memory
                )));
            }
        }
        let host = resource_limits(limits, self.engine.cpus);
        let update = ContainerUpdateBody {
            cpu_shares: host.cpu_shares,
            nano_cpus: host.nano_cpus,
            memory: host.memory,
            memory_swap: host.memory_swap,
            ..ContainerUpdateBody::default()
        };
        let updated = self
            .engine
            .client
            .update_container(&runtime_id, update)
            .await;
        updated.map_err(|error| engine_error(format!("resize container {id}"), error))?;
        self.table.lock().set_resources(id, resources)
    }
}
