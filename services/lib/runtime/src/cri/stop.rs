//! Stops containers: the runtime sends the stop signal of the image first, and SIGKILL after the grace period. The stop
//! signal of a Pod's spec is sent by the agent.

#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_cri::v1::{
    ContainerFilter, ContainerState, ContainerStatus, ContainerStatusRequest, StopContainerRequest,
};
use rustix::process::Signal;
use setpoint_model::time::after;
use setpoint_task::catch_panic;
use tokio::time::timeout;
use tonic::Status;
use tracing::{info, warn};

use super::Shared;
use super::client::{call, is_not_found, within};
use crate::process::process_handle::{Process, ProcessHandle};
use crate::{ContainerId, Error, State};

/// Time within which the runtime must have killed a container after its grace period.
const KILL_TIMEOUT: Duration = Duration::from_secs(120);

impl Shared {
    /// Asks the runtime to stop a container, without waiting for that.
    pub(super) fn stop(this: &Arc<Self>, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        let deadline = after(Timestamp::now(), grace);
        let runtime_id = {
            let mut table = this.table.lock();
            let container = table.container(id)?;
            match &mut container.state {
                State::Running {
                    stopping: Some(sooner),
                    ..
                } if *sooner <= deadline => return Ok(()),
                State::Running { stopping, .. } => *stopping = Some(deadline),
                _ => return Ok(()),
            }
            container.runtime_id.clone()
        };
        let (this, id) = (Arc::clone(this), id.clone());
        tokio::spawn(catch_panic("stop", async move {
            let grace = this.send_stop_signal(&id, &runtime_id, grace).await;
            if let Err(status) = this.stop_and_refresh(&runtime_id, grace).await {
                warn!(container = %id, %status, "cannot stop the container");
                this.forget_stop(&id, deadline);
            }
        }));
        Ok(())
    }

    /// Sends a container the signal that its spec names, and waits until it has ended, for at most `grace`. Returns the
    /// grace period that the runtime is to give it: the CRI has no such signal before Kubernetes 1.33.
    async fn send_stop_signal(
        &self,
        id: &ContainerId,
        runtime_id: &str,
        grace: Duration,
    ) -> Duration {
        let wanted = {
            let configs = self.configs.lock();
            configs
                .get(id)
                .and_then(|config| signal(&config.stop_signal))
        };
        let Some(wanted) = wanted.filter(|_| !grace.is_zero()) else {
            return grace;
        };
        let Some(process) = self.init_handle(runtime_id).await else {
            warn!(container = %id, "cannot find the process of a container; stopping it by the signal of its image");
            return grace;
        };
        process.signal(wanted);
        // In vain if it has not ended then: it is killed at once.
        let _ = timeout(grace, process.gone()).await;
        Duration::ZERO
    }

    /// Returns a handle of a container's own process, if the runtime tells it.
    async fn init_handle(&self, runtime_id: &str) -> Option<ProcessHandle> {
        let pid = self.init_process(runtime_id).await?;
        let handle = Process::of(pid).ok()?.open().ok()??;
        // Asked again, since another process may have had the pid before the handle was opened.
        (self.init_process(runtime_id).await == Some(pid)).then_some(handle)
    }

    async fn stop_and_refresh(&self, runtime_id: &str, grace: Duration) -> Result<(), Status> {
        // A part of a second is one, since zero would kill at once.
        let seconds = grace.as_millis().div_ceil(1000);
        let request = StopContainerRequest {
            container_id: runtime_id.to_owned(),
            timeout: i64::try_from(seconds).unwrap_or(i64::MAX),
        };
        let limit = grace.saturating_add(KILL_TIMEOUT);
        match within(limit, self.service.runtime().stop_container(request)).await {
            Err(status) if !is_not_found(&status) => return Err(status),
            _ => {}
        }
        let filter = ContainerFilter {
            id: runtime_id.to_owned(),
            ..ContainerFilter::default()
        };
        for listed in self.list_containers(filter).await? {
            self.refresh(&listed).await?;
        }
        Ok(())
    }

    /// Returns the status of a container; `None` if the runtime does not have it. One whose state the runtime does not
    /// know is stopped first, as by the kubelet, so that it cannot run beside the one that replaces it.
    pub(super) async fn known_status(
        &self,
        runtime_id: &str,
    ) -> Result<Option<ContainerStatus>, Status> {
        let status = self.status(runtime_id).await?;
        let is_unknown =
            |status: &ContainerStatus| status.state() == ContainerState::ContainerUnknown;
        if !status.as_ref().is_some_and(is_unknown) {
            return Ok(status);
        }
        let request = StopContainerRequest {
            container_id: runtime_id.to_owned(),
            timeout: 0,
        };
        match call(self.service.runtime().stop_container(request)).await {
            // It is found again by the next list, which must not fail for this one.
            Err(error) if !is_not_found(&error) => {
                warn!(container = runtime_id, %error, "cannot stop a container without a known state");
                return Ok(status);
            }
            _ => info!(
                container = runtime_id,
                "stopped a container without a known state"
            ),
        }
        self.status(runtime_id).await
    }

    async fn status(&self, runtime_id: &str) -> Result<Option<ContainerStatus>, Status> {
        let request = ContainerStatusRequest {
            container_id: runtime_id.to_owned(),
            verbose: false,
        };
        match call(self.service.runtime().container_status(request)).await {
            Err(status) if is_not_found(&status) => Ok(None),
            answer => Ok(answer?.status),
        }
    }

    /// Lets a stop that has failed be requested again.
    fn forget_stop(&self, id: &ContainerId, deadline: Timestamp) {
        let pod = {
            let mut table = self.table.lock();
            if let Ok(container) = table.container(id)
                && let State::Running { stopping, .. } = &mut container.state
                && *stopping == Some(deadline)
            {
                *stopping = None;
            }
            table.key(&id.uid)
        };
        if let Some(pod) = pod {
            (self.wake)(&pod);
        }
    }
}

/// Returns the signal of a name; `None` for an empty one, and for those of applications, which have no names here.
pub fn signal(name: &str) -> Option<Signal> {
    let known: nix::sys::signal::Signal = name.parse().ok()?;
    Signal::from_named_raw(known as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_the_names_of_the_api() {
        assert_eq!(signal("SIGUSR1"), Some(Signal::USR1));
        assert_eq!(signal("SIGTERM"), Some(Signal::TERM));
        assert_eq!(signal("SIGRTMIN+3"), None);
        assert_eq!(signal(""), None);
    }
}
