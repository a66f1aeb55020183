//! What is counted, under the kubelet's names.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{Histogram, exponential_buckets, register_histogram};

use crate::world::World;

static POD_START: LazyLock<Histogram> = LazyLock::new(|| {
    let buckets = exponential_buckets(0.05, 2.0, 14).expect("start and factor are positive");
    let help = "Seconds from the creation of a Pod until it was reported to run.";
    register_histogram!("kubelet_pod_start_sli_duration_seconds", help, buckets)
        .expect("the name is registered once")
});

/// A Pod was looked at, and is reported as it is now.
pub fn reported(world: &World) {
    let Some(pod) = world
        .pod
        .as_ref()
        .filter(|pod| pod.object.status.phase == "Pending")
    else {
        return;
    };
    let running = crate::status::status(world).is_some_and(|status| status.phase == "Running");
    let created = pod.object.metadata.creation_timestamp.timestamp();
    if let Some(created) = created.filter(|_| running) {
        let took = Duration::try_from(world.now.duration_since(created));
        POD_START.observe(took.unwrap_or_default().as_secs_f64());
    }
}
