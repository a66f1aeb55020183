//! The scheduler's metrics, with upstream's names, labels and buckets.

use std::sync::{Arc, LazyLock, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, exponential_buckets,
    register_histogram, register_int_counter,
};
use setpoint_proto::ApiError;
use setpoint_telemetry::metrics::{UNIQUE, counters, histograms};
use tokio::time::Instant;

use crate::cycle::Scheduler;
use crate::plan::Action;

static ATTEMPTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Decisions on Pods, by result.";
    let labels = &["result", "profile"];
    counters("scheduler_schedule_attempts_total", help, labels)
});
static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from looking at the cluster to the end of the binding, or of saying that there is none.";
    let name = "scheduler_scheduling_attempt_duration_seconds";
    histograms(name, help, &["result", "profile"], &doubling(0.001, 15))
});
static WAITED: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from when a Pod was there to be scheduled to its binding, by the attempts that it took.";
    let name = "scheduler_pod_scheduling_sli_duration_seconds";
    histograms(name, help, &["attempts"], &doubling(0.01, 20))
});
static TRIES: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "Attempts that it took to bind a Pod.";
    let buckets = doubling(1.0, 5);
    register_histogram!("scheduler_pod_scheduling_attempts", help, buckets).expect(UNIQUE)
});

static PREEMPTIONS: LazyLock<IntCounter> = LazyLock::new(|| {
    let help = "Decisions that looked for Pods to preempt.";
    register_int_counter!("scheduler_preemption_attempts_total", help).expect(UNIQUE)
});
static VICTIMS: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "Pods that were preempted for one Pod.";
    let buckets = doubling(1.0, 7);
    register_histogram!("scheduler_preemption_victims", help, buckets).expect(UNIQUE)
});

fn doubling(from: f64, count: usize) -> Vec<f64> {
    exponential_buckets(from, 2.0, count).expect("start and factor are positive")
}

/// Counts a decision, executed or failed.
pub fn attempted(profile: &str, action: &Action, failed: Option<&ApiError>, began: Timestamp) {
    let result = match (failed, action) {
        (Some(_), _) => "error",
        (None, Action::Bind { .. }) => "scheduled",
        (None, _) => "unschedulable",
    };
    let labels = &[result, profile];
    ATTEMPTS.with_label_values(labels).inc();
    let duration = DURATION.with_label_values(labels);
    duration.observe(seconds_since(began));
}

/// Counts a Pod that was bound, with its attempts and the time since which it could be scheduled.
pub fn placed(attempts: u32, since: Timestamp) {
    // As upstream: above this number the label is the same.
    let label = match attempts {
        0..15 => attempts.to_string(),
        _ => "15+".to_owned(),
    };
    let waited = WAITED.with_label_values(&[&label]);
    waited.observe(seconds_since(since));
    TRIES.observe(f64::from(attempts));
}

/// Counts a decision that no node fits: unless there are none, Pods to preempt were looked for.
pub fn looked_for_victims(nodes: usize, victims: usize) {
    if nodes > 0 {
        PREEMPTIONS.inc();
    }
    if victims > 0 {
        VICTIMS.observe(victims as f64);
    }
}

fn seconds_since(then: Timestamp) -> f64 {
    let passed = Timestamp::now().duration_since(then);
    passed.as_secs_f64().max(0.0)
}

/// Exports the number of waiting Pods, measured at each scrape, and the metrics without labels, which begin at zero.
pub fn watch(scheduler: &Arc<Scheduler>) {
    LazyLock::force(&TRIES);
    LazyLock::force(&PREEMPTIONS);
    LazyLock::force(&VICTIMS);
    static PENDING: LazyLock<Pending> = LazyLock::new(|| {
        let pending = Pending::new();
        prometheus::register(Box::new(pending.clone())).expect(UNIQUE);
        pending
    });
    *PENDING.scheduler.lock() = Arc::downgrade(scheduler);
}

/// The number of waiting Pods by queue.
#[derive(Debug, Default, PartialEq)]
struct Waiting {
    active: usize,
    backoff: usize,
    unschedulable: usize,
    gated: usize,
}

impl Waiting {
    /// Counts the waiting Pods; none on a standby.
    fn of(scheduler: &Scheduler) -> Self {
        let Some(load) = scheduler.queue.load() else {
            return Self::default();
        };
        let (backoff, unschedulable) = scheduler.unschedulable.counts(Instant::now());
        let mut gated = 0;
        scheduler.caches.pods.for_each(|pod, _| {
            let gates = pod.wants.as_ref().is_some_and(|wants| wants.gated);
            gated += usize::from(gates && scheduler.is_ours(pod));
        });
        Self {
            active: load.depth + load.taken,
            backoff,
            unschedulable,
            gated,
        }
    }
}

#[derive(Clone)]
struct Pending {
    gauges: IntGaugeVec,
    scheduler: Arc<Mutex<Weak<Scheduler>>>,
}

impl Pending {
    fn new() -> Self {
        let help = "Pods that have no node yet, by what they wait for: their turn (active), the end of their backoff (backoff), a change that makes room (unschedulable), the removal of their gates (gated).";
        let opts = Opts::new("scheduler_pending_pods", help);
        Self {
            gauges: IntGaugeVec::new(opts, &["queue"]).expect("name and label are valid"),
            scheduler: Arc::default(),
        }
    }
}

impl Collector for Pending {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let scheduler = self.scheduler.lock().upgrade();
        let waiting = scheduler.as_deref().map(Waiting::of).unwrap_or_default();
        for (queue, count) in [
            ("active", waiting.active),
            ("backoff", waiting.backoff),
            ("unschedulable", waiting.unschedulable),
            ("gated", waiting.gated),
        ] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.gauges.with_label_values(&[queue]).set(count);
        }
        self.gauges.collect()
    }
}
