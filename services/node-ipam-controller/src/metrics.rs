//! Metrics, under upstream's names.

use std::sync::LazyLock;

use prometheus::{
    GaugeVec, Histogram, IntCounterVec, exponential_buckets, register_gauge_vec, register_histogram,
};
use setpoint_model::Cidr;
use setpoint_telemetry::metrics::{UNIQUE, counters};

use crate::{Occupied, Pool};

const LABELS: &[&str] = &["clusterCIDR"];

static ALLOCATIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Ranges that nodes have got.";
    let name = "node_ipam_controller_cidrset_cidrs_allocations_total";
    counters(name, help, LABELS)
});
static RELEASES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Ranges that have become free.";
    let name = "node_ipam_controller_cidrset_cidrs_releases_total";
    counters(name, help, LABELS)
});
static USAGE: LazyLock<GaugeVec> = LazyLock::new(|| {
    let help = "Share of the ranges that are in use, from 0 to 1.";
    let name = "node_ipam_controller_cidrset_usage_cidrs";
    register_gauge_vec!(name, help, LABELS).expect(UNIQUE)
});
static MAXIMUM: LazyLock<GaugeVec> = LazyLock::new(|| {
    let help = "Ranges that nodes can have, those in Service ranges included.";
    // Upstream's spelling.
    let name = "node_ipam_controller_cirdset_max_cidrs";
    register_gauge_vec!(name, help, LABELS).expect(UNIQUE)
});
static TRIES: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "Ranges that were looked at to find a free one.";
    let name = "node_ipam_controller_cidrset_allocation_tries_per_request";
    let buckets = exponential_buckets(1.0, 5.0, 5).unwrap_or_default();
    register_histogram!(name, help, buckets).expect(UNIQUE)
});

/// A range was assigned.
pub(crate) fn assigned(pool: &Pool, range: Cidr, tries: usize) {
    let whole = pool.ranges().iter().find(|whole| range.is_within(**whole));
    if let Some(whole) = whole {
        ALLOCATIONS.with_label_values(&[whole.to_string()]).inc();
        TRIES.observe(number(tries));
    }
}

/// The ranges in use are these now; `before` has those that were in use when this was called last.
pub(crate) fn occupied(pool: &Pool, before: Option<&Occupied>, now: &Occupied) {
    for (whole, used) in pool.ranges().iter().zip(now.counts()) {
        let (label, parts) = (&[whole.to_string()], pool.parts(*whole));
        ALLOCATIONS.with_label_values(label);
        USAGE
            .with_label_values(label)
            .set(number(used) / number(parts));
        MAXIMUM.with_label_values(label).set(number(parts));
    }
    let released = before.map(|before| before.released(now));
    for (whole, count) in pool.ranges().iter().zip(released.into_iter().flatten()) {
        let releases = RELEASES.with_label_values(&[whole.to_string()]);
        releases.inc_by(count.try_into().unwrap_or(u64::MAX));
    }
}

/// Returns a number of ranges, of which there are never more than a float holds.
fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
