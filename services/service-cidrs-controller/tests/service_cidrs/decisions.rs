//! Tests of the pure parts of the service-cidrs-controller.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use setpoint_controller::{Outcome, View as _, Whole};
use setpoint_model::{Cidr, condition};
use setpoint_proto::networking::ServiceCidr;
use setpoint_service_cidrs_controller::{Action, World, blocks, plan, status};

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

fn now() -> Timestamp {
    "2026-11-29T12:00:00Z".parse().unwrap()
}

/// Returns a world of a ServiceCIDR that was deleted this number of seconds ago, if it was.
fn world(protected: bool, deleted: Option<i64>, in_use: bool) -> World {
    let mut range = ServiceCidr::default();
    range.spec.cidrs = vec!["10.88.0.0/24".into()];
    if protected {
        range.metadata.finalizers.push(FINALIZER.into());
    }
    let at = |seconds| (now() - SignedDuration::from_secs(seconds)).into();
    range.metadata.deletion_timestamp = deleted.map(at);
    World {
        range: Arc::new(Whole::of(range)),
        others: Vec::new(),
        in_use: in_use.then_some(Ipv4Addr::new(10, 88, 0, 7)),
        now: now(),
    }
}

#[test]
fn a_range_is_protected_and_released_once_nobody_needs_it() {
    let decide = |world: &World| {
        let plan = plan(world);
        assert!(plan.steps.len() < 2);
        (plan.steps.first().map(|step| step.action), plan.again)
    };
    assert_eq!(
        decide(&world(false, None, false)),
        (Some(Action::Protect), None)
    );
    assert_eq!(decide(&world(true, None, true)), (None, None));
    let wait = Some(Duration::from_secs(3));
    assert_eq!(decide(&world(true, Some(7), false)), (None, wait));
    assert_eq!(
        decide(&world(true, Some(10), false)),
        (Some(Action::Release), None)
    );
    assert_eq!(decide(&world(true, Some(100), true)), (None, None));
    assert_eq!(
        decide(&world(false, Some(100), false)),
        (None, None),
        "others hold it"
    );
}

#[test]
fn the_condition_says_upstreams_words() {
    let ready = |world: &World| {
        let written = status(world, &Outcome::of(plan(world)))?;
        let ready = condition::get(&written.conditions, "Ready")
            .unwrap()
            .clone();
        Some((ready.status, ready.reason, ready.message))
    };
    let texts = |status: &str, reason: &str, message: &str| {
        Some((status.to_owned(), reason.to_owned(), message.to_owned()))
    };
    assert_eq!(
        ready(&world(false, None, false)),
        None,
        "after its finalizer"
    );
    let is_ready = texts("True", "", "Kubernetes Service CIDR is ready");
    assert_eq!(ready(&world(true, None, true)), is_ready);
    let message = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";
    let blocked = world(true, Some(100), true);
    assert_eq!(ready(&blocked), texts("False", "Terminating", message));
    assert_eq!(ready(&world(true, Some(1), false)), None);
    // Once written, it is not written again.
    let mut range = blocked.range.object.clone();
    range.status = status(&blocked, &Outcome::default()).unwrap();
    let again = World {
        range: Arc::new(Whole::of(range)),
        ..blocked
    };
    assert_eq!(ready(&again), None);
}

proptest! {
    #[test]
    fn an_address_blocks_a_range_if_it_is_in_no_other(
        own in 20_u8..=32, other in 16_u8..=32, shift in 0_u32..4, host in 0_u32..4096,
    ) {
        let base = Ipv4Addr::new(10, 88, 0, 0).to_bits();
        let address = Ipv4Addr::from_bits(base + host);
        let own = Cidr::new(base.into(), own).unwrap();
        let other = Cidr::new((base + shift * 256).into(), other).unwrap();
        let expected = own.contains(address) && !other.contains(address);
        prop_assert_eq!(blocks(&[own], &[other], address), expected);
        if own.is_within(other) {
            prop_assert!(!blocks(&[own], &[other], address));
        }
    }
}
