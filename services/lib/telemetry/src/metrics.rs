//! The registration of families of metrics, each once in a process, in Prometheus' default registry.

use prometheus::{
    HistogramVec, IntCounterVec, IntGaugeVec, register_histogram_vec, register_int_counter_vec,
    register_int_gauge_vec,
};

/// The invariant of all registrations.
pub const UNIQUE: &str = "metric names are unique";

/// Registers a family of counters.
///
/// # Panics
/// If the name is taken.
pub fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register_int_counter_vec!(name, help, labels).expect(UNIQUE)
}

/// Registers a family of gauges.
///
/// # Panics
/// If the name is taken.
pub fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register_int_gauge_vec!(name, help, labels).expect(UNIQUE)
}

/// Registers a family of histograms with these buckets.
///
/// # Panics
/// If the name is taken.
pub fn histograms(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    register_histogram_vec!(name, help, labels, buckets.to_vec()).expect(UNIQUE)
}
