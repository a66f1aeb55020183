//! What the gateway counts, under the names, labels and buckets that Kubernetes' dashboards know.

mod in_flight;
mod request;
mod watching;
mod written;

use prometheus::{
    HistogramVec, IntCounterVec, IntGaugeVec, register_histogram_vec, register_int_counter_vec,
    register_int_gauge_vec,
};

pub(crate) use request::{About, Request};
pub(crate) use watching::Watching;
pub(crate) use written::{converged, fenced, flapped, written};

/// A metric is registered once, under a name that nothing else here has.
const ONCE: &str = "metric names are unique";

/// A family of counters.
pub(crate) fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register_int_counter_vec!(name, help, labels).expect(ONCE)
}

/// A family of gauges.
pub(crate) fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register_int_gauge_vec!(name, help, labels).expect(ONCE)
}

/// A family of histograms.
pub(crate) fn histograms(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    register_histogram_vec!(name, help, labels, buckets.to_vec()).expect(ONCE)
}
