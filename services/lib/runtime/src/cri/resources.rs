//! Changes the limits of running containers, and gives each Pod a cgroup below that of its QoS class.
//!
//! ```text
//! /setpoint_<node>/pod<uid>               Guaranteed
//! /setpoint_<node>/burstable/pod<uid>     Burstable
//! /setpoint_<node>/besteffort/pod<uid>    BestEffort
//! ```

use std::io;

use k8s_cri::v1::UpdateContainerResourcesRequest;
use setpoint_proto::core::ResourceRequirements;
use tokio::task::spawn_blocking;

use super::client::{Service, call, failed};
use super::settings::CgroupDriver;
use super::{Shared, create, state_error};
use crate::cgroup::Cgroups;
use crate::{Container, ContainerId, Error, Limits, PodResources, SandboxConfig, State};

/// Returns the cgroups of a node; `None` if systemd manages them, or this process cannot.
pub fn cgroups(service: &Service, node: &str) -> Option<Cgroups> {
    match service.cgroup_driver {
        CgroupDriver::Cgroupfs => Cgroups::of_machine(node),
        CgroupDriver::Systemd => None,
    }
}

/// Removes the cgroups of a node whose containers are gone.
///
/// # Errors
/// If one still has processes.
pub fn remove_cgroups(service: &Service, node: &str) -> io::Result<()> {
    let Some(cgroups) = cgroups(service, node) else {
        return Ok(());
    };
    let classes = ["burstable", "besteffort", ""].into_iter();
    let mut cgroups = classes.map(|class| cgroups.below(class));
    cgroups.try_for_each(|cgroups| cgroups.remove_all())
}

/// Returns the part of a path that a QoS class has.
fn class(config: &SandboxConfig) -> &'static str {
    match config.qos_class.as_str() {
        "Burstable" => "burstable",
        "BestEffort" => "besteffort",
        _ => "",
    }
}

/// Returns the slice of a Pod, as systemd names one below those of its class: each dash is a step down.
fn slice(config: &SandboxConfig) -> String {
    let uid = config.uid.replace('-', "_");
    match class(config) {
        "" => format!("setpoint-pod{uid}.slice"),
        class => format!("setpoint-{class}-pod{uid}.slice"),
    }
}

impl Shared {
    /// Returns the cgroup of a Pod as the runtime names it; empty if it has none of its own.
    pub(super) fn cgroup_parent(&self, config: &SandboxConfig) -> String {
        match (&self.cgroups, self.service.cgroup_driver) {
            (Some(cgroups), _) => cgroups.below(class(config)).of_pod(&config.uid),
            (None, CgroupDriver::Systemd) => slice(config),
            (None, CgroupDriver::Cgroupfs) => String::new(),
        }
    }

    /// Makes the cgroup of a Pod, with the limits that it has as a whole, and returns it.
    pub(super) async fn make_cgroup(&self, config: &SandboxConfig) -> Result<String, Error> {
        if let Some(cgroups) = &self.cgroups {
            let (own, uid) = (cgroups.below(class(config)), config.uid.clone());
            let shared = Limits {
                millicpu_share: config.millicpu_share,
                ..Limits::default()
            };
            let limits = config.resources.map_or(shared, |pod| pod.all);
            let made = blocking(move || own.create(&uid, limits)).await;
            made.map_err(|source| of_cgroup(&config.uid, source))?;
        }
        Ok(self.cgroup_parent(config))
    }

    /// Removes the cgroup of a Pod without containers.
    pub(super) async fn remove_cgroup(&self, config: &SandboxConfig) -> Result<(), Error> {
        let Some(cgroups) = &self.cgroups else {
            return Ok(());
        };
        let (own, uid) = (cgroups.below(class(config)), config.uid.clone());
        let removed = blocking(move || own.remove(&uid)).await;
        removed.map_err(|source| of_cgroup(&config.uid, source))
    }

    /// Changes the limits of a running container. Memory that it uses is not taken from it, since the kernel would kill
    /// it.
    pub(super) async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        let (container, each) = {
            let mut table = self.table.lock();
            let pod = table.sandbox(&id.uid)?.config.resources;
            let each = pod.map_or(Limits::default(), |pod| pod.each);
            (table.running(id)?.clone(), each)
        };
        let limits = Limits::of(resources).or(each);
        let had = container.resources.as_ref().map(Limits::of);
        let had = had.map_or(0, |had| had.or(each).memory);
        if limits.memory > 0 && (had == 0 || limits.memory < had) {
            let usage = self.readings().await;
            let usage = usage.get(id).map_or(0, |reading| reading.memory);
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

    async fn limit(&self, container: &Container, limits: Limits) -> Result<(), Error> {
        let config = self.configs.lock().get(&container.id).cloned();
        let oom_score_adj = config.and_then(|config| config.oom_score_adj);
        let request = UpdateContainerResourcesRequest {
            container_id: container.runtime_id.clone(),
            linux: Some(create::resources(limits, oom_score_adj)),
            ..UpdateContainerResourcesRequest::default()
        };
        let updated = call(self.service.runtime().update_container_resources(request)).await;
        let what = format!("resize container {}", container.id.name);
        updated.map(drop).map_err(failed(what))
    }

    /// Gives a running Pod other resources as a whole: first its cgroup what allows both, then containers without
    /// limits of their own the new ones, and at last its cgroup the new ones. Returns whether the Pod has a cgroup.
    pub(super) async fn resize_pod(
        &self,
        uid: &str,
        resources: PodResources,
    ) -> Result<bool, Error> {
        let (config, running) = {
            let mut table = self.table.lock();
            let sandbox = table.sandbox(uid)?;
            let running = sandbox.alive().cloned().collect::<Vec<_>>();
            (sandbox.config.clone(), running)
        };
        let had = config.resources;
        let raised = had.map_or(resources, |had| had.raised_to(resources));
        self.set_cgroup(&config, raised.all).await?;
        let running = running.iter();
        for container in running.filter(|one| matches!(one.state, State::Running { .. })) {
            let own = container.resources.as_ref().map(Limits::of);
            let own = own.unwrap_or_default();
            let limits = own.or(resources.each);
            if limits != own {
                self.limit(container, limits).await?;
            }
        }
        self.set_cgroup(&config, resources.all).await?;
        self.table.lock().sandbox(uid)?.config.resources = Some(resources);
        Ok(self.cgroups.is_some())
    }

    /// Sets the limits of a Pod. Memory that it uses is not taken from it.
    async fn set_cgroup(&self, config: &SandboxConfig, limits: Limits) -> Result<(), Error> {
        let Some(cgroups) = &self.cgroups else {
            return Ok(());
        };
        let (own, uid) = (cgroups.below(class(config)), config.uid.clone());
        let set = blocking(move || own.lower_or_raise(&uid, limits)).await;
        match set.map_err(|source| of_cgroup(&config.uid, source))? {
            None => Ok(()),
            Some(usage) => Err(Error::Config(format!(
                "attempting to set pod memory limit ({}) below current usage ({usage})",
                limits.memory
            ))),
        }
    }
}

/// Accesses cgroups in a thread of its own: the kernel may wait.
async fn blocking<T: Send + 'static>(
    access: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = spawn_blocking(access).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn of_cgroup(uid: &str, source: io::Error) -> Error {
    state_error(format!("the cgroup of Pod {uid}"), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_systemd_is_below_that_of_its_class() {
        let mut config = SandboxConfig {
            uid: "5be0-1".into(),
            qos_class: "Burstable".into(),
            ..SandboxConfig::default()
        };
        assert_eq!(slice(&config), "setpoint-burstable-pod5be0_1.slice");
        config.qos_class = "Guaranteed".into();
        assert_eq!(slice(&config), "setpoint-pod5be0_1.slice");
    }
}
