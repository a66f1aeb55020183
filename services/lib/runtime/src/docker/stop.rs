//! Stops containers: the stop signal first, SIGKILL after the grace period.

#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::query_parameters::KillContainerOptionsBuilder;
use jiff::Timestamp;
use setpoint_model::time::after;
use setpoint_task::catch_panic;
use tracing::warn;

use super::{Shared, engine_error, is_not_found};
use crate::{ContainerId, Error, State};

impl Shared {
    /// Sends a container its image's stop signal, and kills it after `grace`.
    pub(super) async fn stop(
        self: &Arc<Self>,
        id: &ContainerId,
        grace: Duration,
    ) -> Result<(), Error> {
        let deadline = after(Timestamp::now(), grace);
        let (runtime_id, first) = {
            let mut table = self.table.lock();
            let container = table.container(id)?;
            match container.state {
                State::Running {
                    stopping: Some(sooner),
                    ..
                } if sooner <= deadline => return Ok(()),
                State::Running { stopping, .. } => {
                    (container.runtime_id.clone(), stopping.is_none())
                }
                _ => return Ok(()),
            }
        };
        if first && !grace.is_zero() {
            self.send_stop_signal(id, &runtime_id).await?;
        }
        if let Ok(container) = self.table.lock().container(id)
            && let State::Running { stopping, .. } = &mut container.state
        {
            *stopping = Some(deadline);
        }
        if grace.is_zero() {
            self.kill(&runtime_id, "SIGKILL").await;
            return Ok(());
        }
        let this = Arc::clone(self);
        // If this task panics, the next relist kills the container.
        tokio::spawn(catch_panic("stop", async move {
            tokio::time::sleep(grace).await;
            this.kill_overdue().await;
        }));
        Ok(())
    }

    async fn send_stop_signal(&self, id: &ContainerId, runtime_id: &str) -> Result<(), Error> {
        let inspected = match self.engine.client.inspect_container(runtime_id, None).await {
            Err(error) if is_not_found(&error) => return Ok(()),
            inspected => {
                inspected.map_err(|error| engine_error(format!("stop container {id}"), error))?
            }
        };
        let signal = inspected.config.and_then(|config| config.stop_signal);
        self.kill(runtime_id, signal.as_deref().unwrap_or("SIGTERM"))
            .await;
        Ok(())
    }

    /// Kills all containers whose grace period is over. After an error the next relist retries.
    pub(super) async fn kill_overdue(&self) {
        let now = Timestamp::now();
        let alive = self.table.lock().alive();
        let late = |state: &State| matches!(state, State::Running { stopping: Some(by), .. } if *by <= now);
        for container in alive.iter().filter(|container| late(&container.state)) {
            self.kill(&container.runtime_id, "SIGKILL").await;
        }
    }

    pub(super) async fn kill(&self, runtime_id: &str, signal: &str) {
        let options = KillContainerOptionsBuilder::default()
            .signal(signal)
            .build();
        match self
            .engine
            .client
            .kill_container(runtime_id, Some(options))
            .await
        {
            Ok(())
            | Err(BollardError::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => {}
            Err(error) => {
                warn!(container = runtime_id, signal, %error, "cannot signal the container")
            }
        }
    }
}
