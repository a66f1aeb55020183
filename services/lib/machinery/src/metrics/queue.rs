//! The metrics of queues.

use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
};

use super::{counters, gauges, histograms};

const LABELS: &[&str] = &["name"];

/// The metrics of one queue.
pub(crate) struct Queue {
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    waiting: Histogram,
    working: Histogram,
}

impl Queue {
    pub(crate) fn new(name: &str) -> Self {
        static DEPTH: LazyLock<IntGaugeVec> =
            LazyLock::new(|| gauges("workqueue_depth", "Keys that wait to be taken.", LABELS));
        static ADDS: LazyLock<IntCounterVec> =
            LazyLock::new(|| counters("workqueue_adds_total", "Keys added.", LABELS));
        static RETRIES: LazyLock<IntCounterVec> =
            LazyLock::new(|| counters("workqueue_retries_total", "Rounds that failed.", LABELS));
        static WAITING: LazyLock<HistogramVec> = LazyLock::new(|| {
            let help = "How long keys waited to be taken.";
            histograms("workqueue_queue_duration_seconds", help, LABELS)
        });
        static WORKING: LazyLock<HistogramVec> = LazyLock::new(|| {
            let help = "How long workers had a key.";
            histograms("workqueue_work_duration_seconds", help, LABELS)
        });
        Self {
            depth: DEPTH.with_label_values(&[name]),
            adds: ADDS.with_label_values(&[name]),
            retries: RETRIES.with_label_values(&[name]),
            waiting: WAITING.with_label_values(&[name]),
            working: WORKING.with_label_values(&[name]),
        }
    }

    pub(crate) fn depth(&self, depth: usize, added: u64) {
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
        self.adds.inc_by(added);
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

/// For how long the running keys have been running: all together, and the longest. `None` once the queue is gone.
type Probe = Box<dyn Fn() -> Option<(Duration, Duration)> + Send>;

/// Asks this queue, whenever metrics are read, what its workers are at: a stuck worker reports nothing itself.
pub(crate) fn watch_queue(
    name: &str,
    probe: impl Fn() -> Option<(Duration, Duration)> + Send + 'static,
) {
    static RUNNING: LazyLock<Running> = LazyLock::new(|| {
        let running = Running::new();
        prometheus::register(Box::new(running.clone())).expect("each name is registered once");
        running
    });
    let mut probes = RUNNING.probes.lock();
    probes.retain(|(_, probe)| probe().is_some());
    probes.push((name.to_owned(), Box::new(probe)));
}

#[derive(Clone)]
struct Running {
    unfinished: GaugeVec,
    longest: GaugeVec,
    probes: std::sync::Arc<Mutex<Vec<(String, Probe)>>>,
}

impl Running {
    fn new() -> Self {
        let gauge = |name: &str, help: &str| {
            GaugeVec::new(Opts::new(name, help), LABELS).expect("name and labels are valid")
        };
        Self {
            unfinished: gauge(
                "workqueue_unfinished_work_seconds",
                "How long the keys that workers have now have been with them, together.",
            ),
            longest: gauge(
                "workqueue_longest_running_processor_seconds",
                "How long the worker that is at its key the longest has been at it.",
            ),
            probes: std::sync::Arc::default(),
        }
    }
}

impl Collector for Running {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.unfinished.desc();
        all.extend(self.longest.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for (name, probe) in self.probes.lock().iter() {
            if let Some((together, longest)) = probe() {
                let label = [name.as_str()];
                self.unfinished
                    .with_label_values(&label)
                    .set(together.as_secs_f64());
                self.longest
                    .with_label_values(&label)
                    .set(longest.as_secs_f64());
            }
        }
        let mut all = self.unfinished.collect();
        all.extend(self.longest.collect());
        all
    }
}
