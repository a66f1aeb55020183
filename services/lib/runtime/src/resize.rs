//! Changes the limits of running containers and Pods, by the runtime of the containers and by the cgroups of Pods.

use std::io;

use parking_lot::Mutex;
use setpoint_proto::core::ResourceRequirements;
use tokio::task::spawn_blocking;

use crate::cgroup::Cgroups;
use crate::table::Table;
use crate::{Container, ContainerId, Error, Limits, PodResources, SandboxConfig, State};

/// A runtime that limits containers.
pub trait Resizable: Send + Sync {
    /// Returns the state in memory.
    fn table(&self) -> &Mutex<Table>;

    /// Returns the cgroups of which one is that of the Pod; `None` if it has none.
    fn pod_cgroups(&self, sandbox: &SandboxConfig) -> Option<Cgroups>;

    /// Returns the memory that a container uses, in bytes; zero if that is not known.
    fn memory(&self, container: &Container) -> impl Future<Output = u64> + Send;

    /// Gives a running container these limits.
    ///
    /// # Errors
    /// If the runtime refuses it.
    fn limit(
        &self,
        container: &Container,
        limits: Limits,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Changes the limits of a running container. Memory that it uses is not taken from it, since the kernel would kill it.
///
/// # Errors
/// If the container does not run, uses more, or the runtime refuses it.
pub async fn resize(
    runtime: &impl Resizable,
    id: &ContainerId,
    resources: &ResourceRequirements,
) -> Result<(), Error> {
    let (container, each) = {
        let mut table = runtime.table().lock();
        let pod = table.sandbox(&id.uid)?.config.resources;
        let each = pod.map_or(Limits::default(), |pod| pod.each);
        (table.running(id)?.clone(), each)
    };
    let limits = Limits::of(resources).or(each);
    let had = container.resources.as_ref().map(Limits::of);
    let had = had.map_or(0, |had| had.or(each).memory);
    if limits.memory > 0 && (had == 0 || limits.memory < had) {
        let usage = runtime.memory(&container).await;
        if u64::try_from(limits.memory).is_ok_and(|limit| limit < usage) {
            return Err(Error::Config(format!(
                "attempting to set container {:?} memory limit ({}) below current usage ({usage})",
                id.name, limits.memory
            )));
        }
    }
    runtime.limit(&container, limits).await?;
    runtime.table().lock().set_resources(id, resources)
}

/// Gives a running Pod other resources as a whole: first its cgroup what allows both, then containers without limits of
/// their own the new ones, and at last its cgroup the new ones. Returns whether the Pod has a cgroup.
///
/// # Errors
/// As [`resize`].
pub async fn resize_pod(
    runtime: &impl Resizable,
    uid: &str,
    resources: PodResources,
) -> Result<bool, Error> {
    let (config, running) = {
        let mut table = runtime.table().lock();
        let sandbox = table.sandbox(uid)?;
        let running = sandbox.alive().cloned().collect::<Vec<_>>();
        (sandbox.config.clone(), running)
    };
    let cgroups = runtime.pod_cgroups(&config);
    let had = config.resources;
    let raised = had.map_or(resources, |had| had.raised_to(resources));
    set_pod(cgroups.as_ref(), uid, raised.all).await?;
    let running = running.iter();
    for container in running.filter(|one| matches!(one.state, State::Running { .. })) {
        let own = container.resources.as_ref().map(Limits::of);
        let own = own.unwrap_or_default();
        let limits = own.or(resources.each);
        if limits != own {
            runtime.limit(container, limits).await?;
        }
    }
    set_pod(cgroups.as_ref(), uid, resources.all).await?;
    runtime.table().lock().sandbox(uid)?.config.resources = Some(resources);
    Ok(cgroups.is_some())
}

/// Sets the limits of a Pod, if it has a cgroup. Memory that it uses is not taken from it.
async fn set_pod(cgroups: Option<&Cgroups>, uid: &str, limits: Limits) -> Result<(), Error> {
    let Some(cgroups) = cgroups.cloned() else {
        return Ok(());
    };
    let own = uid.to_owned();
    let set = blocking(uid, move || cgroups.lower_or_raise(&own, limits));
    set.await?.map_or(Ok(()), |usage| {
        Err(Error::Config(format!(
            "attempting to set pod memory limit ({}) below current usage ({usage})",
            limits.memory
        )))
    })
}

/// Accesses the cgroup of a Pod in a thread of its own: the kernel may wait.
///
/// # Errors
/// Those of the access.
pub async fn blocking<T: Send + 'static>(
    uid: &str,
    access: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = spawn_blocking(access).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|source| Error::State {
        what: format!("the cgroup of Pod {uid}"),
        source,
    })
}
