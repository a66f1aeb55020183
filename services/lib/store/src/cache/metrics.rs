//! Metrics of the cache, with the names, labels and buckets of Kubernetes where it has them.

use std::sync::LazyLock;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use setpoint_codec::{Kind, kinds};
use setpoint_telemetry::metrics::{counters, gauges, histograms};

const LABELS: [&str; 2] = ["group", "resource"];

/// The buckets that Kubernetes uses for this metric.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0,
];

/// The gauge is exact up to 53 bits. Kubernetes keeps the last 15 digits, too.
const MODULUS: u64 = 1_000_000_000_000_000;

static DISPATCHED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Events that the watch cache has added to its log for watchers, each counted once.";
    counters(
        "apiserver_watch_cache_events_dispatched_total",
        help,
        &LABELS,
    )
});

static EXPIRED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Watchers that were closed because they fell behind the log, or because their clients stalled.";
    counters("apiserver_terminated_watchers_total", help, &LABELS)
});

static STALLED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Watchers that were closed because their clients did not take their events.";
    counters("setpoint_watchers_stalled_total", help, &LABELS)
});

static INITIAL: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Objects sent to watchers as initial state.";
    counters("apiserver_init_events_total", help, &LABELS)
});

static OBJECTS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Objects of a kind that are stored.";
    gauges("apiserver_storage_objects", help, &["resource"])
});

static CAPACITY: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Capacity of the log of the watch cache, in events. All kinds share one log.";
    gauges("apiserver_watch_cache_capacity", help, &LABELS)
});

static UNDECODABLE: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Number of stored object decode errors split by object type.";
    counters("apiserver_storage_decode_errors_total", help, &LABELS)
});

static REVISION: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "The newest revision in the watch cache, its last 15 digits. All kinds share one.";
    gauges("apiserver_watch_cache_resource_version", help, &LABELS)
});

static READ_WAIT: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help =
        "Seconds that reads waited for the watch cache to reach the revision they asked for.";
    let name = "apiserver_watch_cache_read_wait_seconds";
    histograms(name, help, &LABELS, SECONDS)
});

static CHECKS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Comparisons of the watch cache with the store, by their outcome.";
    let labels = ["group", "resource", "status"];
    counters("apiserver_storage_consistency_checks_total", help, &labels)
});

fn labels(kind: &Kind) -> [&str; 2] {
    [&kind.group, &kind.plural]
}

pub(super) fn dispatched(kind: &Kind) -> IntCounter {
    DISPATCHED.with_label_values(&labels(kind))
}

pub(super) fn expired(kind: &Kind) -> IntCounter {
    EXPIRED.with_label_values(&labels(kind))
}

/// Counts a watcher whose client stalled.
pub(super) fn stalled(kind: &Kind) {
    EXPIRED.with_label_values(&labels(kind)).inc();
    STALLED.with_label_values(&labels(kind)).inc();
}

/// Counts a stored value that could not be decoded.
pub(super) fn undecodable(kind: &Kind) {
    UNDECODABLE.with_label_values(&labels(kind)).inc();
}

pub(super) fn initial(kind: &Kind) -> IntCounter {
    INITIAL.with_label_values(&labels(kind))
}

pub(super) fn objects(kind: &Kind) -> IntGauge {
    OBJECTS.with_label_values(&[&kind.resource()])
}

pub(super) fn read_wait(kind: &Kind) -> Histogram {
    READ_WAIT.with_label_values(&labels(kind))
}

/// Removes the series of a kind that is no longer served. Those that do not exist are ignored.
pub(super) fn forget(kind: &Kind) {
    for counters in [&DISPATCHED, &EXPIRED, &STALLED, &INITIAL, &UNDECODABLE] {
        let _ = counters.remove_label_values(&labels(kind));
    }
    let _ = OBJECTS.remove_label_values(&[&kind.resource()]);
    let _ = READ_WAIT.remove_label_values(&labels(kind));
    for status in CHECK_STATUSES {
        let _ = CHECKS.remove_label_values(&[&kind.group, &kind.plural, status]);
    }
}

/// Sets the capacity of the log, in records.
pub(super) fn set_capacity(records: usize) {
    let records = i64::try_from(records).unwrap_or(i64::MAX);
    for kind in kinds().iter() {
        CAPACITY.with_label_values(&labels(kind)).set(records);
    }
}

/// The outcomes of comparisons: consistent, not consistent, and an error.
const CHECK_STATUSES: [&str; 3] = ["success", "failure", "error"];

fn checks(kind: &Kind, consistent: Option<bool>) -> IntCounter {
    let [success, failure, error] = CHECK_STATUSES;
    let status = match consistent {
        Some(true) => success,
        Some(false) => failure,
        None => error,
    };
    CHECKS.with_label_values(&[&kind.group, &kind.plural, status])
}

/// Counts a comparison of a kind with the store: whether it was consistent, or `None` for an error.
pub(super) fn checked(kind: &Kind, consistent: Option<bool>) {
    checks(kind, consistent).inc();
}

/// Creates the counters of comparisons at zero, so that their first increase is visible to `rate`.
pub(super) fn init_checks() {
    for kind in kinds().iter() {
        for consistent in [Some(true), Some(false), None] {
            checks(kind, consistent);
        }
    }
}

/// Sets the revision of the cache.
pub(super) fn reached(revision: u64) {
    static GAUGES: LazyLock<Vec<IntGauge>> = LazyLock::new(|| {
        let gauge = |kind| REVISION.with_label_values(&labels(kind));
        kinds().iter().map(gauge).collect()
    });
    let shown = (revision % MODULUS).cast_signed();
    GAUGES.iter().for_each(|gauge| gauge.set(shown));
}
