//! Act: sets the replicas, and records Events.

use setpoint_controller::{Client, ObjectRef, Receipt, Recorder, events};
use setpoint_model::Key;
use setpoint_proto::autoscaling_v2::HorizontalPodAutoscaler;
use setpoint_proto::{ApiError, Retry};

use crate::{Action, AutoscalerView, ScaleView, World};

/// Sets the replicas of the version of the target that was read.
pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let Action::Scale { replicas, .. } = action;
    if let (Ok(scale), Some(target)) = (&world.scale, target(world)) {
        client.update_scale(&target, &scale.with(*replicas)).await?;
    }
    // No informer holds the target: its scale is read again before each decision.
    Ok(Receipt::none())
}

/// Returns a reference to the target; `None` if its kind is not known.
pub(crate) fn target(world: &World) -> Option<ObjectRef> {
    let scale = world.scale.as_ref().ok()?;
    Some(reference(&world.autoscaler, scale))
}

fn reference(autoscaler: &AutoscalerView, scale: &ScaleView) -> ObjectRef {
    let key = Key::new(&autoscaler.meta.key.namespace, &autoscaler.spec.target.name);
    key.in_resource(scale.resource.as_str())
}

/// Records the result of a change. That the target has changed meanwhile is not recorded: the next reconcile reads it
/// again.
pub(crate) fn record(
    events: &Recorder,
    autoscaler: &AutoscalerView,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let about = events::reference::<HorizontalPodAutoscaler>(&autoscaler.meta);
    let Action::Scale { replicas, reason } = action;
    let size = format!("New size: {replicas}; reason: {reason}");
    match result {
        Ok(_) => events.normal(&about, "SuccessfulRescale", size),
        Err(error) if is_overtaken(error) => {}
        Err(error) => events.warning(&about, "FailedRescale", format!("{size}; error: {error}")),
    }
}

/// Records what could not be read or computed, every time, as upstream does.
pub(crate) fn warn(
    events: &Recorder,
    autoscaler: &AutoscalerView,
    warnings: &[(&'static str, String)],
) {
    let about = events::reference::<HorizontalPodAutoscaler>(&autoscaler.meta);
    for (reason, message) in warnings {
        events.warning(&about, reason, message);
    }
}

/// Returns whether the object of a write has changed since it was read.
pub(crate) fn is_overtaken(error: &ApiError) -> bool {
    error.reason.retry() == Retry::AfterRefresh
}
