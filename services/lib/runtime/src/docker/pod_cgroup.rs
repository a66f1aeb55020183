//! Gives Pods with resources of their own a cgroup.

use std::io;
use std::sync::atomic::Ordering;

use bollard::models::{SystemInfo, SystemInfoCgroupDriverEnum, SystemInfoCgroupVersionEnum};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::Shared;
use crate::cgroup::Cgroups;
use crate::{Error, Limits, SandboxConfig};

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
        let made = blocking(move || own.create(&uid, resources.all)).await;
        made.map_err(|source| failed(&config.uid, source))?;
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

    /// Sets the limits of a Pod. Memory that it uses is not taken from it.
    pub(super) async fn set_cgroup(&self, uid: &str, limits: Limits) -> Result<(), Error> {
        let Some(cgroups) = self.cgroups().cloned() else {
            return Ok(());
        };
        let own = uid.to_owned();
        let set = blocking(move || cgroups.lower_or_raise(&own, limits));
        match set.await.map_err(|source| failed(uid, source))? {
            None => Ok(()),
            Some(usage) => Err(Error::Config(format!(
                "attempting to set pod memory limit ({}) below current usage ({usage})",
                limits.memory
            ))),
        }
    }

    /// Removes the cgroup of a Pod without containers.
    pub(super) async fn remove_cgroup(&self, uid: &str) -> Result<(), Error> {
        let Some(cgroups) = self.engine.cgroups.clone() else {
            return Ok(());
        };
        let own = uid.to_owned();
        let removed = blocking(move || cgroups.remove(&own)).await;
        removed.map_err(|source| failed(uid, source))
    }
}

/// Accesses cgroups in a thread of its own: the kernel may wait.
async fn blocking<T: Send + 'static>(
    access: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = spawn_blocking(access).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn failed(uid: &str, source: io::Error) -> Error {
    let what = format!("the cgroup of Pod {uid}");
    Error::State { what, source }
}
