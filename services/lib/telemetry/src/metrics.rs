//! Registers metrics in Prometheus' default registry, each once in a process.

use prometheus::{
    HistogramVec, IntCounterVec, IntGaugeVec, register_histogram_vec, register_int_counter_vec,
    register_int_gauge_vec,
};

/// The invariant of registrations, for `expect`.
pub const UNIQUE: &str = "metric names are unique";

/// Registers counters.
///
/// # Panics
/// If the name is registered already.
pub fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register_int_counter_vec!(name, help, labels).expect(UNIQUE)
}

/// Registers gauges.
///
/// # Panics
/// If the name is registered already.
pub fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register_int_gauge_vec!(name, help, labels).expect(UNIQUE)
}

/// Registers histograms with these buckets.
///
/// # Panics
/// If the name is registered already.
pub fn histograms(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    register_histogram_vec!(name, help, labels, buckets.to_vec()).expect(UNIQUE)
}
