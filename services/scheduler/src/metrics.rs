//! The scheduler's metrics, by upstream's names.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{
    Histogram, IntCounterVec, IntGaugeVec, exponential_buckets, register_histogram,
    register_int_counter_vec, register_int_gauge_vec,
};

use crate::pod::PodView;

static PENDING: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Pods that have no node yet, by the queue in which they wait.";
    register_int_gauge_vec!("scheduler_pending_pods", help, &["queue"]).expect("registered once")
});
static ATTEMPTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Decisions on Pods, by result.";
    register_int_counter_vec!("scheduler_schedule_attempts_total", help, &["result"])
        .expect("registered once")
});
static ROUNDS: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "Time from observing to the last binding of a round, in seconds.";
    histogram("scheduler_scheduling_attempt_duration_seconds", help)
});
static WAITED: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "Time from a Pod's creation to its binding, in seconds.";
    histogram("scheduler_pod_scheduling_sli_duration_seconds", help)
});

fn histogram(name: &str, help: &str) -> Histogram {
    let buckets = exponential_buckets(0.001, 2.0, 18).expect("a growing series");
    register_histogram!(name, help, buckets).expect("registered once")
}

/// How many Pods wait where.
pub fn pending(active: usize, unschedulable: usize) {
    let gauge = |queue: &str, count: usize| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        PENDING.with_label_values(&[queue]).set(count);
    };
    gauge("active", active);
    gauge("unschedulable", unschedulable);
}

/// A round is over.
pub fn round(took: Duration) {
    ROUNDS.observe(took.as_secs_f64());
}

/// A Pod has its node.
pub fn scheduled(pod: &PodView, now: Timestamp) {
    ATTEMPTS.with_label_values(&["scheduled"]).inc();
    if let Some(created) = pod.meta.created {
        WAITED.observe(now.duration_since(created).as_secs_f64());
    }
}

/// A Pod fits nowhere.
pub fn unschedulable() {
    ATTEMPTS.with_label_values(&["unschedulable"]).inc();
}

/// A decision could not be carried out.
pub fn failed() {
    ATTEMPTS.with_label_values(&["error"]).inc();
}
