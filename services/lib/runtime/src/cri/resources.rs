//! The limits of running containers, and a cgroup of each Pod below that of its QoS class.
//!
//! ```text
//! /setpoint_<node>/pod<uid>               Guaranteed
//! /setpoint_<node>/burstable/pod<uid>     Burstable
//! /setpoint_<node>/besteffort/pod<uid>    BestEffort
//! ```

use std::io;

use k8s_cri::v1::UpdateContainerResourcesRequest;
use parking_lot::Mutex;

use super::client::{Service, call, failed};
use super::settings::CgroupDriver;
use super::{Shared, create};
use crate::cgroup::Cgroups;
use crate::resize::{Resizable, blocking};
use crate::table::Table;
use crate::{Container, Error, Limits, SandboxConfig};

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
        if let Some(own) = self.pod_cgroups(config) {
            let uid = config.uid.clone();
            let shared = Limits {
                millicpu_share: config.millicpu_share,
                ..Limits::default()
            };
            let limits = config.resources.map_or(shared, |pod| pod.all);
            blocking(&config.uid, move || own.create(&uid, limits)).await?;
        }
        Ok(self.cgroup_parent(config))
    }

    /// Removes the cgroup of a Pod without containers.
    pub(super) async fn remove_cgroup(&self, config: &SandboxConfig) -> Result<(), Error> {
        let (Some(own), uid) = (self.pod_cgroups(config), config.uid.clone()) else {
            return Ok(());
        };
        blocking(&config.uid, move || own.remove(&uid)).await
    }
}

impl Resizable for Shared {
    fn table(&self) -> &Mutex<Table> {
        &self.table
    }

    fn pod_cgroups(&self, sandbox: &SandboxConfig) -> Option<Cgroups> {
        let cgroups = self.cgroups.as_ref();
        cgroups.map(|cgroups| cgroups.below(class(sandbox)))
    }

    async fn memory(&self, container: &Container) -> u64 {
        let usage = self.readings().await;
        let usage = usage.get(&container.id);
        usage.map_or(0, |reading| reading.memory)
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
