//! The metrics of queues.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, Opts, exponential_buckets,
};

use super::{UNIQUE, counters, histograms};

const LABELS: &[&str] = &["name"];

/// The metrics of one queue.
pub(crate) struct Queue {
    adds: IntCounter,
    retries: IntCounter,
    waiting: Histogram,
    working: Histogram,
}

impl Queue {
    pub(crate) fn new(name: &str) -> Self {
        static ADDS: LazyLock<IntCounterVec> = LazyLock::new(|| {
            let help =
                "Keys added to the queue; those that were in it already are not added again.";
            counters("workqueue_adds_total", help, LABELS)
        });
        static RETRIES: LazyLock<IntCounterVec> = LazyLock::new(|| {
            let help = "Keys that were handed back since their work failed.";
            counters("workqueue_retries_total", help, LABELS)
        });
        static WAITING: LazyLock<HistogramVec> = LazyLock::new(|| {
            let help = "Seconds that keys waited to be taken. A delayed key waits from the time when it is due.";
            durations("workqueue_queue_duration_seconds", help)
        });
        static WORKING: LazyLock<HistogramVec> = LazyLock::new(|| {
            let help = "Seconds that workers had a key.";
            durations("workqueue_work_duration_seconds", help)
        });
        Self {
            adds: ADDS.with_label_values(&[name]),
            retries: RETRIES.with_label_values(&[name]),
            waiting: WAITING.with_label_values(&[name]),
            working: WORKING.with_label_values(&[name]),
        }
    }

    pub(crate) fn added(&self, keys: u64) {
        self.adds.inc_by(keys);
    }

    pub(crate) fn waited(&self, time: Duration) {
        self.waiting.observe(time.as_secs_f64());
    }

    pub(crate) fn worked(&self, time: Duration) {
        self.working.observe(time.as_secs_f64());
    }

    pub(crate) fn retried(&self) {
        self.retries.inc();
    }
}

/// Registers a histogram with upstream's buckets.
fn durations(name: &str, help: &str) -> HistogramVec {
    let buckets = exponential_buckets(1e-6, 10.0, 10).expect("start and factor are positive");
    histograms(name, help, LABELS, &buckets)
}

/// The load of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// The number of keys that can be taken.
    pub depth: usize,
    /// The number of delayed keys.
    pub delayed: usize,
    /// The number of keys that workers have.
    pub taken: usize,
    /// The sum of the times since they were taken.
    pub unfinished: Duration,
    /// The longest of these times.
    pub longest: Duration,
}

/// `None` once the queue is gone.
type Probe = Box<dyn Fn() -> Option<Load> + Send>;

/// Measures a queue whenever metrics are scraped: a stuck worker reports nothing itself, and a delayed key becomes due
/// without a call.
pub(crate) fn watch_queue(name: &str, probe: impl Fn() -> Option<Load> + Send + 'static) {
    static QUEUES: LazyLock<Queues> = LazyLock::new(|| {
        let queues = Queues::new();
        prometheus::register(Box::new(queues.clone())).expect(UNIQUE);
        queues
    });
    QUEUES.measure(); // so that those that are gone do not pile up where nobody reads metrics
    QUEUES
        .probes
        .lock()
        .push((name.to_owned(), Box::new(probe)));
}

#[derive(Clone)]
struct Queues {
    gauges: [GaugeVec; 4],
    probes: Arc<Mutex<Vec<(String, Probe)>>>,
}

impl Queues {
    fn new() -> Self {
        let gauge = |(name, help): (&str, &str)| {
            GaugeVec::new(Opts::new(name, help), LABELS).expect("name and labels are valid")
        };
        let gauges = [
            (
                "workqueue_depth",
                "Keys that wait to be taken, without those that are delayed.",
            ),
            (
                "setpoint_workqueue_delayed",
                "Keys that are delayed, after a failure or until a scheduled reconcile.",
            ),
            (
                "workqueue_unfinished_work_seconds",
                "Sum of the times since the keys in progress were taken, in seconds.",
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Longest time since a key in progress was taken, in seconds.",
            ),
        ];
        Self {
            gauges: gauges.map(gauge),
            probes: Arc::default(),
        }
    }

    fn of(&self, name: &str) -> [Gauge; 4] {
        let gauge = |family: &GaugeVec| family.with_label_values(&[name]);
        self.gauges.each_ref().map(gauge)
    }

    /// Sums the queues of one name; one that was dropped counts as empty.
    fn measure(&self) {
        let mut probes = self.probes.lock();
        for (name, _) in probes.iter() {
            self.of(name).iter().for_each(|gauge| gauge.set(0.0));
        }
        probes.retain(|(name, probe)| {
            let Some(load) = probe() else { return false };
            let values = [
                load.depth as f64,
                load.delayed as f64,
                load.unfinished.as_secs_f64(),
                load.longest.as_secs_f64(),
            ];
            let gauges = self.of(name);
            gauges
                .iter()
                .zip(values)
                .for_each(|(gauge, value)| gauge.add(value));
            true
        });
    }
}

impl Collector for Queues {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.measure();
        self.gauges.iter().flat_map(Collector::collect).collect()
    }
}
