//! What the cache counts, under the names, labels and buckets that Kubernetes' dashboards know.

use std::sync::LazyLock;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use setpoint_codec::{Kind, kinds};

use crate::metrics::{counters, gauges, histograms};

const LABELS: [&str; 2] = ["group", "resource"];

/// Upstream's, for this name.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0,
];

/// The gauge holds no more than 53 bits exactly: upstream keeps so many digits too.
const DIGITS: u64 = 1_000_000_000_000_000;

static DISPATCHED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Events that the watch cache put into its log for watchers, each counted once.";
    counters(
        "apiserver_watch_cache_events_dispatched_total",
        help,
        &LABELS,
    )
});

static EXPIRED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Watchers that were closed since they fell off the end of the log, or their clients stalled.";
    counters("apiserver_terminated_watchers_total", help, &LABELS)
});

static STALLED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Watchers that were closed since their clients did not take what they were given.";
    counters("setpoint_watchers_stalled_total", help, &LABELS)
});

static INITIAL: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Objects given to watchers as the state that they begin with.";
    counters("apiserver_init_events_total", help, &LABELS)
});

static OBJECTS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Objects of a kind that are stored.";
    gauges("apiserver_storage_objects", help, &["resource"])
});

static CAPACITY: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Events that the watch cache keeps at most. All kinds share one log, so each may fill all of it.";
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
    histograms(
        "apiserver_watch_cache_read_wait_seconds",
        help,
        &LABELS,
        SECONDS,
    )
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

/// A watcher whose client stalled.
pub(super) fn stalled(kind: &Kind) {
    EXPIRED.with_label_values(&labels(kind)).inc();
    STALLED.with_label_values(&labels(kind)).inc();
}

/// A stored value of the kind could not be read.
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

/// The log has room for so many.
pub(super) fn has_room(records: usize) {
    let records = i64::try_from(records).unwrap_or(i64::MAX);
    for kind in kinds().iter() {
        CAPACITY.with_label_values(&labels(kind)).set(records);
    }
}

fn checks(kind: &Kind, consistent: Option<bool>) -> IntCounter {
    let status = match consistent {
        Some(true) => "success",
        Some(false) => "failure",
        None => "error",
    };
    CHECKS.with_label_values(&[&kind.group, &kind.plural, status])
}

/// Counts a comparison of a kind with the store; `None`: it failed.
pub(super) fn checked(kind: &Kind, consistent: Option<bool>) {
    checks(kind, consistent).inc();
}

/// Makes the counters of comparisons, so that their first increase shows.
pub(super) fn expect_checks() {
    for kind in kinds().iter() {
        for consistent in [Some(true), Some(false), None] {
            checks(kind, consistent);
        }
    }
}

/// The cache has come so far.
pub(super) fn reached(revision: u64) {
    static OF_ALL: LazyLock<Vec<IntGauge>> = LazyLock::new(|| {
        let gauge = |kind| REVISION.with_label_values(&labels(kind));
        kinds().iter().map(gauge).collect()
    });
    let told = (revision % DIGITS).cast_signed();
    OF_ALL.iter().for_each(|gauge| gauge.set(told));
}
