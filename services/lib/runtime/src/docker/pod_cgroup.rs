//! Gives Pods with resources of their own a cgroup.

use std::sync::atomic::Ordering;

use bollard::models::{SystemInfo, SystemInfoCgroupDriverEnum, SystemInfoCgroupVersionEnum};
use tracing::warn;

use super::Shared;
use crate::cgroup::Cgroups;
use crate::resize::blocking;
use crate::{Error, SandboxConfig};

/// Returns the cgroups of a cluster; `None` if the engine names cgroups otherwise than by their paths, or this process
/// cannot manage them.
pub fn find(info: &SystemInfo, cluster: &str) -> Option<Cgroups> {
    let by_path = info.cgroup_driver == Some(SystemInfoCgroupDriverEnum::CGROUPFS);
    let is_v2 = info.cgroup_version? == SystemInfoCgroupVersionEnum::_2;
    by_path.then(|| Cgroups::find(is_v2, cluster)).flatten()
}

impl Shared {
    /// Returns the cgroups of Pods, if the agent manages those of the engine.
    pub(super) fn cgroups(&self) -> Option<&Cgroups> {
        let foreign = self.foreign_cgroups.load(Ordering::Relaxed);
        self.engine.cgroups.as_ref().filter(|_| !foreign)
    }

    /// Returns the cgroup of a Pod that has one, as the engine names it.
    pub(super) fn cgroup_of(&self, uid: &str) -> Option<String> {
        let cgroups = self.cgroups().filter(|cgroups| cgroups.exists(uid))?;
        Some(cgroups.of_pod(uid))
    }

    /// Makes the cgroup of a Pod with resources of its own, and returns it.
    pub(super) async fn make_cgroup(
        &self,
        config: &SandboxConfig,
    ) -> Result<Option<String>, Error> {
        let (Some(resources), Some(cgroups)) = (config.resources, self.cgroups()) else {
            return Ok(None);
        };
        let (own, uid) = (cgroups.clone(), config.uid.clone());
        let make = move || own.create(&uid, resources.all);
        blocking(&config.uid, make).await?;
        Ok(Some(cgroups.of_pod(&config.uid)))
    }

    /// Finds out whether the engine has put a container below the cgroup that this agent has made. An engine on another
    /// machine has not.
    pub(super) fn verify_cgroup(&self, uid: &str, runtime_id: &str) {
        let Some(cgroups) = self.cgroups() else {
            return;
        };
        if !cgroups.holds(uid, runtime_id) {
            warn!(
                "the engine has other cgroups: the resources of Pods as a whole are not enforced"
            );
            self.foreign_cgroups.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the cgroup of a Pod without containers.
    pub(super) async fn remove_cgroup(&self, uid: &str) -> Result<(), Error> {
        let Some(cgroups) = self.engine.cgroups.clone() else {
            return Ok(());
        };
        let own = uid.to_owned();
        blocking(uid, move || cgroups.remove(&own)).await
    }
}
