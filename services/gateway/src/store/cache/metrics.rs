//! What the cache counts, under the names that Kubernetes' dashboards know.

use std::sync::LazyLock;

use prometheus::{
    Histogram, IntCounterVec, IntGauge, IntGaugeVec, register_histogram, register_int_counter_vec,
    register_int_gauge, register_int_gauge_vec,
};

/// A metric is registered once, under a name that nothing else here has.
const ONCE: &str = "metric names are unique";

pub(super) static DISPATCHED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Events handed to watchers.";
    register_int_counter_vec!(
        "apiserver_watch_cache_events_dispatched_total",
        help,
        &["resource"]
    )
    .expect(ONCE)
});

pub(super) static EXPIRED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Watchers that fell off the end of the log.";
    register_int_counter_vec!("apiserver_terminated_watchers_total", help, &["resource"])
        .expect(ONCE)
});

pub(super) static OBJECTS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Objects of a kind.";
    register_int_gauge_vec!("apiserver_storage_objects", help, &["resource"]).expect(ONCE)
});

pub(super) static REVISION: LazyLock<IntGauge> = LazyLock::new(|| {
    let help = "The newest revision in the cache.";
    register_int_gauge!("apiserver_watch_cache_resource_version", help).expect(ONCE)
});

pub(super) static READ_WAIT: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "How long reads waited for the cache to reach their revision.";
    register_histogram!("apiserver_watch_cache_read_wait_seconds", help).expect(ONCE)
});
