//! Stops containers: the runtime sends the stop signal first, and SIGKILL after the grace period.

#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_cri::v1::{ContainerFilter, StopContainerRequest};
use setpoint_model::time::after;
use setpoint_task::catch_panic;
use tonic::Status;
use tracing::warn;

use super::Shared;
use super::client::{is_not_found, within};
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
            if let Err(status) = this.stop_and_refresh(&runtime_id, grace).await {
                warn!(container = %id, %status, "cannot stop the container");
                this.forget_stop(&id, deadline);
            }
        }));
        Ok(())
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
