//! Properties of the plan.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::scene::{Scene, balanced, node};

/// The age of a Service, its ports, and whether it is balanced, by whom, deleted and local.
type Chosen = (u8, Vec<u16>, bool, Option<bool>, bool, bool);

/// Returns any Service: its age, ports, type, class, and whether it is being deleted.
fn service() -> impl Strategy<Value = Chosen> {
    let ports = proptest::collection::btree_set(80u16..84, 1..3);
    let ports = ports.prop_map(|ports| ports.into_iter().collect());
    let (balanced, class) = (prop::bool::weighted(0.8), any::<Option<bool>>());
    (
        0u8..4,
        ports,
        balanced,
        class,
        prop::bool::weighted(0.2),
        any::<bool>(),
    )
}

fn cluster() -> impl Strategy<Value = Scene> {
    let services = proptest::collection::vec(service(), 1..6);
    let ready = proptest::collection::btree_set(1u8..4, 0..4);
    (services, 0u8..4, ready).prop_map(|(services, nodes, ready)| {
        let service = |(number, one): (usize, Chosen)| {
            let (age, ports, is_balanced, class, deleted, local) = one;
            let mut service = balanced(&format!("s{number}"), age, &ports);
            if !is_balanced {
                service["spec"]["type"] = json!("NodePort");
            } else if let Some(ours) = class {
                let class = ["example.com/other", "setpoint.dev/node-addresses"];
                service["spec"]["loadBalancerClass"] = json!(class[usize::from(ours)]);
            }
            if local {
                service["spec"]["externalTrafficPolicy"] = json!("Local");
            }
            if deleted {
                service["metadata"]["deletionTimestamp"] = json!("2026-11-29T01:00:00Z");
            }
            service
        };
        let services: Vec<Value> = services.into_iter().enumerate().map(service).collect();
        let nodes: Vec<Value> = (1..=nodes).map(node).collect();
        let mut scene = Scene::of(&services, &nodes);
        scene.ready = ready
            .iter()
            .map(|number| format!("node-{number}").into())
            .collect();
        scene
    })
}

proptest! {
    #[test]
    fn plans_converge_and_no_two_services_have_one_port(mut scene in cluster()) {
        scene.converge();
        let mut taken = BTreeSet::new();
        for number in 0..scene.services.len() {
            let ports = scene.services[number]["spec"]["ports"].as_array().unwrap().clone();
            for ip in scene.addresses(number) {
                for port in &ports {
                    prop_assert!(taken.insert((ip.clone(), port["port"].to_string())));
                }
            }
        }
    }

    #[test]
    fn the_order_of_caches_does_not_matter(scene in cluster()) {
        let mut other = scene.clone();
        other.services.reverse();
        other.nodes.reverse();
        let last = scene.services.len() - 1;
        for number in 0..scene.services.len() {
            prop_assert_eq!(scene.plan(number), other.plan(last - number));
        }
    }

    #[test]
    fn a_service_that_is_not_ours_or_is_deleted_gets_nothing(mut scene in cluster()) {
        let before = scene.clone();
        scene.converge();
        for (number, service) in before.services.iter().enumerate() {
            let class = service["spec"]["loadBalancerClass"].as_str();
            let others = class == Some("example.com/other") || service["spec"]["type"] != "LoadBalancer";
            let deleted = service["metadata"].get("deletionTimestamp").is_some();
            if others || deleted {
                prop_assert!(scene.addresses(number).is_empty());
                prop_assert_eq!(scene.finalizers(number), 0);
            }
        }
    }

    #[test]
    fn after_any_actions_were_left_out_the_next_plans_converge_to_the_same(
        scene in cluster(), steps in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)
    ) {
        let (mut whole, mut crashed) = (scene.clone(), scene);
        whole.converge();
        for step in steps {
            let number = step.index(crashed.services.len());
            if let Some(first) = crashed.plan(number).steps.first() {
                crashed.act(number, &first.action);
            }
        }
        crashed.converge();
        for number in 0..whole.services.len() {
            prop_assert_eq!(whole.addresses(number), crashed.addresses(number));
        }
    }
}
