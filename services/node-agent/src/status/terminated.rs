//! The end of containers whose Pod has stopped for good: none is reported as running or waiting.
//!
//! Follows the kubelet's status manager: what never ran, or was lost, counts as failed, so that nobody takes a Pod that
//! was deleted early for one that did its work.

use setpoint_proto::core::{ContainerState, ContainerStateTerminated, ContainerStatus};

use crate::world::LOST;

/// Gives every container an end that has none. Without `initialized`, the main containers were not to run yet and stay
/// as they are, as do the init containers after the last that began.
pub fn all(initialized: bool, init: &mut [ContainerStatus], main: &mut [ContainerStatus]) {
    let begun = match initialized {
        true => init.len(),
        false => init
            .iter()
            .rposition(has_begun)
            .map_or(0, |last| last.saturating_add(1)),
    };
    init.iter_mut().take(begun).for_each(end);
    if initialized {
        main.iter_mut().for_each(end);
    }
}

fn has_begun(status: &ContainerStatus) -> bool {
    status.state.waiting.is_none() || status.last_state.terminated.is_some()
}

fn end(status: &mut ContainerStatus) {
    if status.state.terminated.is_some() {
        return;
    }
    status.ready = false;
    status.started = Some(false);
    status.state = ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: LOST,
            reason: "ContainerStatusUnknown".to_owned(),
            message: "The container could not be located when the pod was terminated".to_owned(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    };
}
