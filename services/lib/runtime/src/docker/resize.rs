//! Changes the limits of running containers.

use bollard::models::{ContainerInspectResponse, ContainerUpdateBody};
use setpoint_proto::core::ResourceRequirements;

use super::create::resource_limits;
use super::identity::Labels;
use super::{Shared, engine_error};
use crate::{Container, ContainerId, Error, Limits, PodResources, State};

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

impl Shared {
    /// Changes the limits of a running container. Memory that it uses is not taken from it, since the kernel would kill
    /// it.
    pub(super) async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        let (container, pod) = {
            let mut table = self.table.lock();
            let pod = table.sandbox(&id.uid)?.config.resources;
            (table.running(id)?.clone(), pod)
        };
        let each = pod.map_or(Limits::default(), |pod| pod.each);
        let limits = Limits::of(resources).or(each);
        let had = container.resources.as_ref().map(Limits::of);
        let had = had.map_or(0, |had| had.or(each).memory);
        if limits.memory > 0 && (had == 0 || limits.memory < had) {
            let usage = self.reading(container.clone()).await;
            let usage = usage.map_or(0, |(_, reading)| reading.memory);
            if u64::try_from(limits.memory).is_ok_and(|limit| limit < usage) {
                return Err(Error::Config(format!(
                    "attempting to set container {:?} memory limit ({}) below current usage ({usage})",
                    id.name, limits.memory
                )));
            }
        }
        self.limit(&container, limits).await?;
        self.table.lock().set_resources(id, resources)
    }

    /// Gives a container of the engine these limits.
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

    /// Gives a running Pod other resources as a whole: first its cgroup what allows both, then containers without
    /// limits of their own the new ones, and at last its cgroup the new ones. Returns whether the Pod has a cgroup.
    pub(super) async fn resize_pod(
        &self,
        uid: &str,
        resources: PodResources,
    ) -> Result<bool, Error> {
        let (had, running) = {
            let mut table = self.table.lock();
            let sandbox = table.sandbox(uid)?;
            let running = sandbox.alive().cloned().collect::<Vec<_>>();
            (sandbox.config.resources, running)
        };
        let bounded = self.cgroup_of(uid).is_some();
        if bounded {
            let raised = had.map_or(resources, |had| had.raised_to(resources));
            self.set_cgroup(uid, raised.all).await?;
        }
        let running = running.iter();
        for container in running.filter(|one| matches!(one.state, State::Running { .. })) {
            let own = container
                .resources
                .as_ref()
                .map(Limits::of)
                .unwrap_or_default();
            let limits = own.or(resources.each);
            if limits != own {
                self.limit(container, limits).await?;
            }
        }
        if bounded {
            self.set_cgroup(uid, resources.all).await?;
        }
        self.table.lock().sandbox(uid)?.config.resources = Some(resources);
        Ok(bounded)
    }
}
