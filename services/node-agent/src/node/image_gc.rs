//! Removes unused images when the disk of the images is nearly full, as the kubelet's image garbage collection does.

use std::time::Duration;

use setpoint_controller::{Recorder, events};
use setpoint_proto::core;
use setpoint_runtime::Runtime;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::node::eviction::Observation;

/// Interval between two collections.
const INTERVAL: Duration = Duration::from_secs(300);

/// Settings of the collection of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Use of the disk in percent from which on images are removed; 100 for never.
    pub high_threshold_percent: u8,
    /// Use of the disk in percent down to which images are removed.
    pub low_threshold_percent: u8,
    /// Time since its pull before which no image is removed.
    pub min_age: Duration,
}

/// Collects images at intervals until dropped. `observe` returns the space on their disk.
pub async fn run<R: Runtime>(
    runtime: &R,
    policy: Policy,
    observe: impl Fn() -> Option<Observation>,
    events: &Recorder,
    node: &core::Node,
) {
    loop {
        sleep(INTERVAL).await;
        let Some(bytes) = observe().and_then(|disk| excess(disk, policy)) else {
            continue;
        };
        info!(
            bytes,
            "the disk of the images is nearly full; removing unused images"
        );
        let freed = runtime.remove_images(bytes, policy.min_age).await;
        if freed < bytes {
            let message = format!(
                "Failed to garbage collect required amount of images. Attempted to free {bytes} bytes, but only found {freed} bytes eligible to free."
            );
            warn!(message);
            events.warning(&events::reference_to(node), "FreeDiskSpaceFailed", message);
        }
    }
}

/// Returns the number of bytes to free; `None` below the high threshold. Pure.
fn excess(disk: Observation, policy: Policy) -> Option<u64> {
    let (available, capacity) = (i128::from(disk.available), i128::from(disk.capacity));
    let free_percent = (available * 100).checked_div(capacity)?;
    let is_off = policy.high_threshold_percent >= 100;
    if is_off || 100 - free_percent < i128::from(policy.high_threshold_percent) {
        return None;
    }
    let wanted = capacity * (100 - i128::from(policy.low_threshold_percent)) / 100;
    u64::try_from(wanted - available).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_above_the_high_threshold_is_freed_down_to_the_low_one() {
        let policy = Policy {
            high_threshold_percent: 85,
            low_threshold_percent: 80,
            min_age: Duration::ZERO,
        };
        let excess = |available, capacity| {
            super::excess(
                Observation {
                    available,
                    capacity,
                },
                policy,
            )
        };
        assert_eq!(excess(160, 1000), None);
        assert_eq!(excess(150, 1000), Some(50));
        assert_eq!(excess(0, 1000), Some(200));
        assert_eq!(excess(0, 0), None, "its capacity is unknown");
        assert_eq!(excess(i64::MAX, i64::MAX), None);
    }

    #[test]
    fn a_high_threshold_of_a_hundred_percent_turns_the_collection_off() {
        let never = Policy {
            high_threshold_percent: 100,
            low_threshold_percent: 80,
            min_age: Duration::ZERO,
        };
        let full = Observation {
            available: 0,
            capacity: 1000,
        };
        assert_eq!(excess(full, never), None);
    }
}
