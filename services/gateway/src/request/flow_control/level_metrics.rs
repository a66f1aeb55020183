//! The metrics of a level over time, and those of the virtual time of its queues, with the names, labels and buckets of
//! Kubernetes.

use std::sync::{Arc, LazyLock};

use prometheus::{Gauge, GaugeVec};
use setpoint_fairness::{Bounds, QueueSet};

use super::metrics::float_gauges;
use crate::metrics::{TimeHistogram, TimeHistograms, time_histograms};

const PHASE_LEVEL: [&str; 2] = ["phase", "priority_level"];
const BOUND: [&str; 2] = ["priority_level", "bound"];
const EXECUTING: &str = "executing";
const WAITING: &str = "waiting";

static SEATS: LazyLock<TimeHistograms> = LazyLock::new(|| {
    time_histograms(
        "apiserver_flowcontrol_priority_level_seat_utilization",
        "Nanoseconds by the part of the seats of a level that were in use.",
        &PHASE_LEVEL,
        &[
            0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
        ],
    )
});

static REQUESTS: LazyLock<TimeHistograms> = LazyLock::new(|| {
    time_histograms(
        "apiserver_flowcontrol_priority_level_request_utilization",
        "Nanoseconds by the number of requests of a level, as a part of its seats or of the places in its queues.",
        &PHASE_LEVEL,
        &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0],
    )
});

static READS_AND_WRITES: LazyLock<TimeHistograms> = LazyLock::new(|| {
    time_histograms(
        "apiserver_flowcontrol_read_vs_write_current_requests",
        "Nanoseconds by the number of requests, as a part of all seats or of the places in all queues.",
        &["phase", "request_kind"],
        &[
            0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
        ],
    )
});

static DEMAND: LazyLock<TimeHistograms> = LazyLock::new(|| {
    time_histograms(
        "apiserver_flowcontrol_demand_seats",
        "Nanoseconds by the seats that a level could use, as a part of those that it has.",
        &["priority_level"],
        &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0],
    )
});

/// Declares gauges of the virtual time of levels, in seat-seconds.
macro_rules! virtual_times {
    ($($constant:ident($name:literal, $help:literal, $labels:expr);)+) => {
        $(static $constant: LazyLock<GaugeVec> = LazyLock::new(|| {
            float_gauges(concat!("apiserver_flowcontrol_", $name), $help, $labels)
        });)+
    };
}

virtual_times! {
    CURRENT_R("current_r", "Virtual time of the last change.", &["priority_level"]);
    DISPATCH_R("dispatch_r", "Virtual time of the last dispatch.", &["priority_level"]);
    LATEST_S("latest_s", "Virtual time at which the request that was dispatched last begins.", &["priority_level"]);
    NEXT_S("next_s_bounds", "Virtual times at which the next requests of the queues begin.", &BOUND);
    NEXT_DISCOUNTED_S(
        "next_discounted_s_bounds",
        "The same, less the estimated work of the requests that are executed.",
        &BOUND
    );
}

/// The series of a level.
#[derive(Debug)]
pub(super) struct LevelSeries {
    seats: Arc<TimeHistogram>,
    executing: Arc<TimeHistogram>,
    waiting: Arc<TimeHistogram>,
    demand: Arc<TimeHistogram>,
    current: Gauge,
    dispatched: Gauge,
    latest: Gauge,
    next: [Gauge; 2],
    discounted: [Gauge; 2],
}

impl LevelSeries {
    pub(super) fn of(level: &str) -> Self {
        let gauge = |gauges: &GaugeVec| gauges.with_label_values(&[level]);
        let bounds = |gauges: &GaugeVec| {
            ["min", "max"].map(|bound| gauges.with_label_values(&[level, bound]))
        };
        Self {
            seats: SEATS.with_label_values(&[EXECUTING, level]),
            executing: REQUESTS.with_label_values(&[EXECUTING, level]),
            waiting: REQUESTS.with_label_values(&[WAITING, level]),
            demand: DEMAND.with_label_values(&[level]),
            current: gauge(&CURRENT_R),
            dispatched: gauge(&DISPATCH_R),
            latest: gauge(&LATEST_S),
            next: bounds(&NEXT_S),
            discounted: bounds(&NEXT_DISCOUNTED_S),
        }
    }

    /// Sets what the seats and the waiting requests are a part of.
    pub(super) fn set_limits(&self, seats: usize, places: usize) {
        for histogram in [&self.seats, &self.executing, &self.demand] {
            histogram.set_denominator(seats);
        }
        self.waiting.set_denominator(places);
    }

    /// Notes the state of the queues after a change.
    pub(super) fn observe<D, W>(&self, set: &QueueSet<D, W>) {
        self.seats.set(set.seats());
        self.executing.set(set.executing());
        self.waiting.set(set.waiting());
        self.demand.set(set.seats() + set.seats_waiting());
        self.current.set(set.virtual_time());
        let Some(dispatch) = set.last_dispatch() else {
            return;
        };
        self.dispatched.set(dispatch.virtual_time);
        self.latest.set(dispatch.begin);
        set_bounds(&self.next, dispatch.begins);
        set_bounds(&self.discounted, dispatch.discounted);
    }

    /// Notes the number of requests of an exempt level, each of which has a seat.
    pub(super) fn observe_exempt(&self, executing: usize) {
        for histogram in [&self.seats, &self.executing, &self.demand] {
            histogram.set(executing);
        }
    }
}

fn set_bounds([min, max]: &[Gauge; 2], bounds: Bounds) {
    min.set(bounds.min);
    max.set(bounds.max);
}

/// A read or a write, waiting or executed, until it is dropped.
#[derive(Debug)]
pub(super) struct Counted(&'static TimeHistogram);

/// The histograms of reads and of writes that wait, and of those that are executed.
static COUNTED: LazyLock<[[Arc<TimeHistogram>; 2]; 2]> = LazyLock::new(|| {
    [WAITING, EXECUTING].map(|phase| {
        ["readOnly", "mutating"].map(|kind| READS_AND_WRITES.with_label_values(&[phase, kind]))
    })
});

/// Sets what the requests that wait, and the reads and writes that are executed, are a part of.
pub(super) fn set_limits(places: usize, [reads, writes]: [usize; 2]) {
    let [waiting, executing] = &*COUNTED;
    for histogram in waiting {
        histogram.set_denominator(places);
    }
    for (histogram, limit) in executing.iter().zip([reads, writes]) {
        histogram.set_denominator(limit);
    }
}

impl Counted {
    /// Counts a request of a verb as waiting.
    pub(super) fn waiting(verb: &str) -> Self {
        Self::of(&COUNTED[0], verb)
    }

    /// Counts a request of a verb as executed.
    pub(super) fn executing(verb: &str) -> Self {
        Self::of(&COUNTED[1], verb)
    }

    fn of(histograms: &'static [Arc<TimeHistogram>; 2], verb: &str) -> Self {
        let is_write = !["get", "list", "watch"].contains(&verb);
        let histogram = &histograms[usize::from(is_write)];
        histogram.add(1.0);
        Self(histogram)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}
