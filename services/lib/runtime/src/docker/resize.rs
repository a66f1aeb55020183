//! The limits of running containers.

use bollard::models::{ContainerInspectResponse, ContainerUpdateBody};
use parking_lot::Mutex;
use setpoint_proto::core::ResourceRequirements;

use super::create::resource_limits;
use super::identity::Labels;
use super::{Shared, engine_error};
use crate::cgroup::Cgroups;
use crate::resize::Resizable;
use crate::table::Table;
use crate::{Container, Error, Limits, SandboxConfig};

/// The label with the requests and limits that a container was started with. A label cannot be changed: an agent that
/// was restarted gives a container that has been resized its limits once more.
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

impl Resizable for Shared {
    fn table(&self) -> &Mutex<Table> {
        &self.table
    }

    fn pod_cgroups(&self, sandbox: &SandboxConfig) -> Option<Cgroups> {
        let own = |cgroups: &&Cgroups| cgroups.exists(&sandbox.uid);
        self.cgroups().filter(own).cloned()
    }

    async fn memory(&self, container: &Container) -> u64 {
        let usage = self.reading(container.clone()).await;
        usage.map_or(0, |(_, reading)| reading.memory)
    }

    async fn limit(&self, container: &Container, limits: Limits) -> Result<(), Error> {
        let host = resource_limits(limits, self.engine.cpus);
        let update = ContainerUpdateBody {
            cpu_shares: host.cpu_shares,
            nano_cpus: host.nano_cpus,
            memory: host.memory,
            memory_swap: host.memory_swap,
            ..ContainerUpdateBody::default()
        };
        let client = &self.engine.client;
        let updated = client.update_container(&container.runtime_id, update).await;
        let what = || format!("resize container {}", container.id);
        updated
            .map(|_| ())
            .map_err(|error| engine_error(what(), error))
    }
}
