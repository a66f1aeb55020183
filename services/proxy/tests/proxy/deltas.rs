//! The ledger: deltas lead from what is programmed to what should be.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use setpoint_model::Key;
use setpoint_proxy::{Changes, Claimed, Delta, Ledger, Owner, PortId, PortPlan};

use crate::objects::{Scene, here, ready};

/// The state of a back end after deltas.
#[derive(Debug, Default, PartialEq)]
struct Programmed {
    ports: BTreeMap<PortId, Arc<PortPlan>>,
    fronts: BTreeMap<Claimed, Owner>,
    addresses: std::collections::BTreeSet<std::net::Ipv4Addr>,
}

impl Programmed {
    /// Applies a delta, whose first values must be what is programmed.
    fn apply(&mut self, delta: Delta) {
        for (id, (before, after)) in delta.ports {
            assert_eq!(self.ports.remove(&id), before);
            self.ports.extend(after.map(|port| (id, port)));
        }
        for (front, (before, after)) in delta.fronts {
            assert_eq!(self.fronts.remove(&front), before);
            self.fronts.extend(after.map(|owner| (front, owner)));
        }
        delta
            .appeared
            .iter()
            .for_each(|ip| assert!(self.addresses.insert(*ip)));
        delta
            .disappeared
            .iter()
            .for_each(|ip| assert!(self.addresses.remove(ip)));
    }
}

fn changes(number: u8, state: Option<(u8, Vec<u8>)>) -> Changes {
    let Some((external, endpoints)) = state else {
        return Changes::from([(Key::new("default", format!("s{number}")), None)]);
    };
    let endpoints: Vec<_> = endpoints
        .iter()
        .map(|n| ready(&format!("10.1.0.{n}"), "here"))
        .collect();
    let mut scene = Scene::new(&format!("s{number}"), &format!("10.96.0.{number}"))
        .spec(json!({"externalIPs": [format!("203.0.113.{external}")]}))
        .slice(80, &endpoints);
    scene.external_ips = true;
    scene.changes(&here())
}

proptest! {
    #[test]
    fn deltas_lead_to_the_same_as_programming_everything(
        steps in proptest::collection::vec(
            proptest::collection::vec(
                (0u8..4, proptest::option::of((0u8..3, proptest::collection::vec(0u8..5, 0..4)))),
                1..4,
            ),
            1..8,
        )
    ) {
        let (mut ledger, mut programmed) = (Ledger::default(), Programmed::default());
        for step in steps {
            let batch = step.into_iter().flat_map(|(number, state)| changes(number, state));
            programmed.apply(ledger.apply(batch.collect()));
            let mut anew = Programmed::default();
            anew.apply(ledger.whole());
            prop_assert_eq!(&programmed, &anew);
        }
    }
}

#[test]
fn a_change_without_an_effect_is_an_empty_delta() {
    let mut ledger = Ledger::default();
    assert!(!ledger.apply(changes(1, Some((1, vec![1, 2])))).is_empty());
    assert!(ledger.apply(changes(1, Some((1, vec![2, 1])))).is_empty());
    assert!(ledger.apply(changes(2, None)).is_empty());
}

#[test]
fn a_front_that_two_services_claim_is_the_firsts_and_then_the_others() {
    let mut ledger = Ledger::default();
    let owner = |delta: &Delta| {
        let external = delta
            .fronts
            .iter()
            .find(|(front, _)| format!("{front:?}").contains("203.0.113.1"));
        external.and_then(|(_, (_, after))| after.as_ref().map(|(id, _)| id.service.name.clone()))
    };
    let second = ledger.apply(changes(2, Some((1, vec![1]))));
    assert_eq!(owner(&second).as_deref(), Some("s2"));
    let first = ledger.apply(changes(1, Some((1, vec![1]))));
    assert_eq!(owner(&first).as_deref(), Some("s1"));
    let gone = ledger.apply(changes(1, None));
    assert_eq!(owner(&gone).as_deref(), Some("s2"));
}

#[test]
fn a_delta_names_only_what_changes() {
    let mut ledger = Ledger::default();
    let many = (10u8..200).flat_map(|number| changes(number, Some((number, vec![1, 2]))));
    ledger.apply(many.collect());
    let delta = ledger.apply(changes(50, Some((50, vec![1, 2, 3]))));
    assert_eq!((delta.ports.len(), delta.fronts.len()), (1, 0));
    assert_eq!((delta.appeared.len(), delta.disappeared.len()), (1, 0));
}
