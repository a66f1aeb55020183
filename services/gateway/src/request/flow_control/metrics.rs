//! The metrics of priority and fairness, with the names, labels and buckets of Kubernetes.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    register_gauge, register_gauge_vec,
};
use setpoint_fairness::{Demand, Limits};
use setpoint_telemetry::metrics::UNIQUE;

use crate::metrics::{counters, gauges, histograms};

/// The zero of the clock by which rejections are counted.
pub(super) static START: LazyLock<Instant> =
    LazyLock::new(|| tokio::time::Instant::now().into_std());

const BOTH: [&str; 2] = ["priority_level", "flow_schema"];
const LEVEL: [&str; 1] = ["priority_level"];
const SECONDS: [f64; 13] = [
    0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
];
const LENGTHS: [f64; 8] = [0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const SEATS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const WATCHES: [f64; 6] = [0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0];

/// Declares metrics of one type.
macro_rules! metrics {
    ($(
        $constant:ident: $type:ty =
            $register:ident($name:literal, $help:literal, $labels:expr $(, $buckets:expr)?);
    )+) => {
        $(static $constant: LazyLock<$type> = LazyLock::new(|| {
            $register(concat!("apiserver_flowcontrol_", $name), $help, $labels $(, $buckets)?)
        });)+
    };
}

metrics! {
    REJECTED: IntCounterVec = counters(
        "rejected_requests_total",
        "Requests that were rejected: there was no seat, their queue was full, or their wait timed out.",
        &["priority_level", "flow_schema", "reason"]
    );
    DISPATCHED: IntCounterVec =
        counters("dispatched_requests_total", "Requests that got a seat.", &BOTH);
    INQUEUE: IntGaugeVec = gauges("current_inqueue_requests", "Requests that wait for a seat.", &BOTH);
    INQUEUE_SEATS: IntGaugeVec =
        gauges("current_inqueue_seats", "Seats that requests wait for.", &BOTH);
    EXECUTING: IntGaugeVec = gauges(
        "current_executing_requests",
        "Requests that are executed; watches until their initial state is sent.",
        &BOTH
    );
    EXECUTING_SEATS: IntGaugeVec = gauges(
        "current_executing_seats",
        "Seats of requests that are executed, or of which watchers are told.",
        &BOTH
    );
    QUEUE_LENGTH: HistogramVec = histograms(
        "request_queue_length_after_enqueue",
        "Requests in the queue of a request when it has arrived.",
        &BOTH,
        &LENGTHS
    );
    WAITED: HistogramVec = histograms(
        "request_wait_duration_seconds",
        "Seconds that requests waited in their queues.",
        &["priority_level", "flow_schema", "execute"],
        &SECONDS
    );
    EXECUTED: HistogramVec = histograms(
        "request_execution_seconds",
        "Seconds for which requests were executed; watches until their initial state was sent.",
        &["priority_level", "flow_schema", "type"],
        &SECONDS
    );
    ESTIMATED: HistogramVec =
        histograms("work_estimated_seats", "Seats that requests take.", &BOTH, &SEATS);
    TOLD: HistogramVec = histograms(
        "watch_count_samples",
        "Watches that are told of a write.",
        &BOTH,
        &WATCHES
    );
    NOT_ACCOMMODATED: IntCounterVec = counters(
        "request_dispatch_no_accommodation_total",
        "Times when seats were free, but not enough for the next request.",
        &BOTH
    );
    NOMINAL: IntGaugeVec = gauges("nominal_limit_seats", "Configured seats of a level.", &LEVEL);
    LOWER: IntGaugeVec =
        gauges("lower_limit_seats", "Seats of a level that lends all that it may.", &LEVEL);
    UPPER: IntGaugeVec =
        gauges("upper_limit_seats", "Seats of a level that borrows all that it may.", &LEVEL);
    CURRENT: IntGaugeVec = gauges("current_limit_seats", "Seats of a level now.", &LEVEL);
    WATERMARK: IntGaugeVec = gauges(
        "demand_seats_high_watermark",
        "Most seats that were in use or waited for in the last period.",
        &LEVEL
    );
    AVERAGE: GaugeVec = float_gauges(
        "demand_seats_average",
        "Average seats that were in use or waited for in the last period.",
        &LEVEL
    );
    DEVIATION: GaugeVec = float_gauges(
        "demand_seats_stdev",
        "Standard deviation of the seats that were in use or waited for in the last period.",
        &LEVEL
    );
    SMOOTHED: GaugeVec =
        float_gauges("demand_seats_smoothed", "Smoothed demand for seats.", &LEVEL);
    TARGET: GaugeVec =
        float_gauges("target_seats", "Seats that a level should have.", &LEVEL);
}

static FAIR_FRACTION: LazyLock<Gauge> = LazyLock::new(|| {
    let help = "Part of its target that a level gets.";
    register_gauge!("apiserver_flowcontrol_seat_fair_frac", help).expect(UNIQUE)
});

pub(super) fn float_gauges(name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    register_gauge_vec!(name, help, labels).expect(UNIQUE)
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The series of a schema and its level, which each request finds without a look-up.
#[derive(Debug)]
pub(super) struct Series {
    dispatched: IntCounter,
    inqueue: IntGauge,
    inqueue_seats: IntGauge,
    executing: IntGauge,
    executing_seats: IntGauge,
    queue_length: Histogram,
    /// Of requests that were executed, and of others.
    waited: [Histogram; 2],
    /// Of watches, and of others.
    executed: [Histogram; 2],
    estimated: Histogram,
    told: Histogram,
    not_accommodated: IntCounter,
}

impl Series {
    pub(super) fn of(level: &str, schema: &str) -> Self {
        let labels = [level, schema];
        let with = |last| [level, schema, last];
        Self {
            dispatched: DISPATCHED.with_label_values(&labels),
            inqueue: INQUEUE.with_label_values(&labels),
            inqueue_seats: INQUEUE_SEATS.with_label_values(&labels),
            executing: EXECUTING.with_label_values(&labels),
            executing_seats: EXECUTING_SEATS.with_label_values(&labels),
            queue_length: QUEUE_LENGTH.with_label_values(&labels),
            waited: ["true", "false"].map(|executed| WAITED.with_label_values(&with(executed))),
            executed: ["watch", "regular"].map(|kind| EXECUTED.with_label_values(&with(kind))),
            estimated: ESTIMATED.with_label_values(&labels),
            told: TOLD.with_label_values(&labels),
            not_accommodated: NOT_ACCOMMODATED.with_label_values(&labels),
        }
    }

    pub(super) fn rejected(&self, level: &str, schema: &str, reason: &str) {
        REJECTED.with_label_values(&[level, schema, reason]).inc();
    }

    pub(super) fn estimated(&self, seats: usize) {
        self.estimated.observe(seats as f64);
    }

    pub(super) fn not_accommodated(&self, times: u64) {
        self.not_accommodated.inc_by(times);
    }

    pub(super) fn told(&self, watches: usize) {
        self.told.observe(watches as f64);
    }

    pub(super) fn enqueued(&self, length: usize) {
        if length > 0 {
            self.queue_length.observe(length as f64);
        }
    }

    /// Counts a request that begins to wait, or that ends to.
    pub(super) fn waits(&self, seats: usize, begins: bool) {
        let sign = if begins { 1 } else { -1 };
        self.inqueue.add(sign);
        self.inqueue_seats.add(sign * signed(seats));
    }

    pub(super) fn waited(&self, time: Duration, executed: bool) {
        let [of_executed, of_others] = &self.waited;
        let waited = if executed { of_executed } else { of_others };
        waited.observe(time.as_secs_f64());
    }

    pub(super) fn dispatched(&self, seats: usize) {
        self.dispatched.inc();
        self.executing.inc();
        self.executing_seats.add(signed(seats));
    }

    pub(super) fn executed(&self, time: Duration, is_watch: bool) {
        self.executing.dec();
        let [of_watches, of_others] = &self.executed;
        let executed = if is_watch { of_watches } else { of_others };
        executed.observe(time.as_secs_f64());
    }

    pub(super) fn released(&self, seats: usize) {
        self.executing_seats.sub(signed(seats));
    }
}

/// Sets the limits of a level.
pub(super) fn configured(level: &str, limits: Limits, current: usize) {
    for (gauges, seats) in [
        (&NOMINAL, limits.nominal),
        (&LOWER, limits.minimum),
        (&UPPER, limits.maximum),
        (&CURRENT, current),
    ] {
        gauges.with_label_values(&[level]).set(signed(seats));
    }
}

/// Sets what an adjustment has found.
pub(super) fn adjusted(fair_fraction: f64) {
    FAIR_FRACTION.set(fair_fraction);
}

/// Sets the demand of a level, and the limit that follows from it.
pub(super) fn adjusted_level(level: &str, demand: &Demand, target: f64, limit: usize) {
    let labels = [level];
    WATERMARK
        .with_label_values(&labels)
        .set(signed(demand.high_watermark));
    AVERAGE.with_label_values(&labels).set(demand.average);
    DEVIATION.with_label_values(&labels).set(demand.deviation);
    SMOOTHED.with_label_values(&labels).set(demand.smoothed);
    TARGET.with_label_values(&labels).set(target);
    CURRENT.with_label_values(&labels).set(signed(limit));
}
