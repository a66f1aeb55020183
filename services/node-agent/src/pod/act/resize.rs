//! Resizes of running containers.

use setpoint_runtime::{ContainerId, PodResources, Runtime};

use super::error::runtime_message;
use super::{Error, Executor};
use crate::pod::fields::{self, Column};
use crate::pod::world::{AssignedPod, World};

impl<R: Runtime> Executor<R> {
    /// Gives a Pod as a whole other resources.
    pub(super) async fn resize_pod(
        &self,
        pod: &AssignedPod,
        resources: PodResources,
    ) -> Result<(), Error> {
        let resized = self
            .runtime
            .resize_pod(&pod.object.metadata.uid, resources)
            .await;
        let bounded = resized.map_err(|error| Error::Resize(runtime_message(&error)))?;
        // For other Pods an Event was recorded when they started.
        if !bounded && pod.object.status.resources.is_none() {
            self.events.cannot_be_bounded(&pod.object);
        }
        Ok(())
    }

    /// Gives a running container the resources of its spec.
    pub(super) async fn resize(
        &self,
        world: &World,
        pod: &AssignedPod,
        id: &ContainerId,
    ) -> Result<(), Error> {
        let running = world.running(&id.name);
        let Some((container, running)) = pod.container(&id.name).zip(running) else {
            return Ok(());
        };
        let resized = self.runtime.resize(id, &container.resources).await;
        resized.map_err(|error| Error::Resize(runtime_message(&error)))?;
        let had_limits = running
            .resources
            .as_ref()
            .is_some_and(|has| !has.limits.is_empty());
        if let (Some(column), false) = (Column::of(&self.runtime), had_limits) {
            let ignored = fields::ignored(&pod.object.spec, column);
            let of_container = format!("{{{}}}.resources.limits", id.name);
            let ignored = ignored
                .into_iter()
                .filter(|field| field.path.ends_with(&of_container));
            self.events
                .unsupported(&pod.object, &ignored.collect::<Vec<_>>());
        }
        Ok(())
    }
}
