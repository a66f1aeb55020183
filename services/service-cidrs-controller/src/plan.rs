//! Plan: adds the finalizer, and removes it from a range that nobody uses any more.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::Plan;
use setpoint_model::Cidr;

use crate::RangeView;

/// The finalizer of ServiceCIDRs, as upstream.
pub(crate) const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// The time after which every gateway has seen a deletion, as upstream.
const GRACE: Duration = Duration::from_secs(10);

/// Everything that the decision about one ServiceCIDR depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The ServiceCIDR.
    pub range: Arc<RangeView>,
    /// The ranges of all others that stay.
    pub others: Vec<Cidr>,
    /// An address of a Service that no other range has.
    pub in_use: Option<Ipv4Addr>,
    /// The time.
    pub now: Timestamp,
}

/// A write of the version that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Add the finalizer.
    Protect,
    /// Remove the finalizer, if no Service has an address that would be in no range.
    Release,
}

/// Plans for one ServiceCIDR.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    match world.range.meta.deleting {
        false if !is_protected(&world.range) => plan.step(Action::Protect, "it has no finalizer"),
        true if is_protected(&world.range) && world.in_use.is_none() => match wait(world) {
            Duration::ZERO => plan.step(Action::Release, "no Service needs it"),
            wait => plan.look_again(wait),
        },
        _ => {}
    }
    plan
}

/// Returns whether a ServiceCIDR has the finalizer.
pub(crate) fn is_protected(range: &RangeView) -> bool {
    let mut finalizers = range.object.metadata.finalizers.iter();
    finalizers.any(|finalizer| finalizer == FINALIZER)
}

/// Returns the ranges of IPv4 of a ServiceCIDR.
pub(crate) fn ranges(range: &RangeView) -> impl Iterator<Item = Cidr> {
    let texts = range.object.spec.cidrs.iter();
    texts.filter_map(|text| text.parse().ok())
}

/// Returns whether an address is in one of these ranges and in no other.
pub fn blocks(own: &[Cidr], others: &[Cidr], address: Ipv4Addr) -> bool {
    let is_in = |ranges: &[Cidr]| ranges.iter().any(|range| range.contains(address));
    is_in(own) && !is_in(others)
}

/// Returns the rest of the time until every gateway has seen the deletion.
fn wait(world: &World) -> Duration {
    let deleted = &world.range.object.metadata.deletion_timestamp;
    let deleted = deleted.as_ref().and_then(|time| time.timestamp());
    let passed = world.now.duration_since(deleted.unwrap_or(world.now));
    GRACE.saturating_sub(Duration::try_from(passed).unwrap_or_default())
}
