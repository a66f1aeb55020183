//! Metrics of the agent, with the kubelet's names.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{Histogram, IntCounter, register_histogram, register_int_counter};
use setpoint_proto::core::Pod;

static POD_START: LazyLock<Histogram> = LazyLock::new(|| {
    // The kubelet's buckets.
    let buckets = vec![
        0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0,
        300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
    ];
    let help = "Seconds from the creation of a Pod until its status is Running. Creation timestamps have a resolution of one second.";
    register_histogram!("kubelet_pod_start_sli_duration_seconds", help, buckets)
        .expect("metric names are unique")
});

static CLIENT_RENEWALS: LazyLock<IntCounter> = LazyLock::new(|| {
    let name = "kubelet_certificate_manager_client_expiration_renew_errors";
    let help = "Attempts to renew the client certificate that have failed.";
    register_int_counter!(name, help).expect("metric names are unique")
});

static SERVING_RENEWALS: LazyLock<IntCounter> = LazyLock::new(|| {
    let name = "kubelet_server_expiration_renew_errors";
    let help = "Attempts to renew the serving certificate that have failed.";
    register_int_counter!(name, help).expect("metric names are unique")
});

/// Counts an attempt to renew a certificate that has failed.
pub fn renewal_failed(is_serving: bool) {
    match is_serving {
        true => SERVING_RENEWALS.inc(),
        false => CLIENT_RENEWALS.inc(),
    }
}

/// Observes the start latency of a Pod whose status becomes running, if it was pending.
pub fn observe_pod_start(pod: &Pod, now: Timestamp) {
    let created = pod.metadata.creation_timestamp.timestamp();
    if let Some(created) = created.filter(|_| pod.status.phase == "Pending") {
        let took = Duration::try_from(now.duration_since(created));
        POD_START.observe(took.unwrap_or_default().as_secs_f64());
    }
}
