//! The order in which containers stop: sidecars after the others, in the reverse order of their start.

use std::time::Duration;

use setpoint_node_agent::Action;
use setpoint_proto::core::{Lifecycle, LifecycleHandler};

use crate::simulation::{Simulation, pod};

/// Returns a running Pod with the sidecars `mesh` and `log`, and a container `web`.
fn running(policy: &str) -> Simulation {
    let mut object = pod(policy, &["mesh", "log"], &["web"]);
    for sidecar in &mut object.spec.init_containers {
        sidecar.restart_policy = Some("Always".into());
    }
    let mut simulation = Simulation::of(object);
    simulation.converge();
    assert_eq!(simulation.summary(), ("Running".into(), true));
    simulation.done.clear();
    simulation
}

/// Returns the stops since the last call, with their grace periods in seconds.
fn stops(simulation: &mut Simulation) -> Vec<(String, u64)> {
    let done = std::mem::take(&mut simulation.done).into_iter();
    let stop = |action| match action {
        Action::Stop { id, grace } => Some((id.name, grace.as_secs())),
        _ => None,
    };
    done.filter_map(stop).collect()
}

fn stopped(name: &str, grace: u64) -> Vec<(String, u64)> {
    vec![(name.to_owned(), grace)]
}

/// Checks N4.
#[test]
fn sidecars_stop_after_the_others_in_reverse_order_within_the_remaining_grace() {
    let mut simulation = running("Always");
    simulation.delete(30);
    assert_eq!(simulation.converge(), Some(Duration::from_secs(30)));
    assert_eq!(stops(&mut simulation), stopped("web", 30));
    simulation.advance(10);
    simulation.exit("web", 0);
    simulation.converge();
    assert_eq!(stops(&mut simulation), stopped("log", 21));
    simulation.advance(5);
    simulation.exit("log", 0);
    simulation.converge();
    assert_eq!(stops(&mut simulation), stopped("mesh", 16));
    simulation.exit("mesh", 0);
    simulation.converge();
    assert!(simulation.world.pod.is_none() && simulation.world.sandboxes.is_empty());
}

/// Checks N4.
#[test]
fn sidecars_whose_turn_has_not_come_stop_at_the_end_of_the_grace_period() {
    let mut simulation = running("Always");
    simulation.delete(30);
    simulation.converge();
    stops(&mut simulation);
    simulation.advance(31);
    simulation.converge();
    let mut left = stops(&mut simulation);
    left.retain(|(name, _)| name != "web");
    assert_eq!(left, [stopped("log", 2), stopped("mesh", 2)].concat());
}

#[test]
fn pre_stop_hooks_of_sidecars_begin_with_the_stop_of_the_others() {
    let mut simulation = running("Always");
    simulation.pod().spec.init_containers[0].lifecycle = Some(Lifecycle {
        pre_stop: Some(LifecycleHandler::default()),
        ..Lifecycle::default()
    });
    simulation.delete(30);
    simulation.converge();
    let held = simulation.done.iter().filter_map(|action| match action {
        Action::PreStop { id, grace } => Some((id.name.as_str(), grace.as_secs())),
        _ => None,
    });
    assert_eq!(held.collect::<Vec<_>>(), [("mesh", 30)]);
}

/// A Job's Pod ends although its sidecars would run forever.
#[test]
fn a_pod_whose_main_containers_have_ended_stops_its_sidecars_before_it_is_reported_as_ended() {
    for (code, phase) in [(0, "Succeeded"), (1, "Failed")] {
        let mut simulation = running("Never");
        simulation.exit("web", code);
        simulation.converge();
        assert_eq!(simulation.summary().0, "Running");
        assert_eq!(stops(&mut simulation), stopped("log", 30));
        simulation.exit("log", 0);
        simulation.converge();
        assert_eq!(stops(&mut simulation), stopped("mesh", 30));
        simulation.exit("mesh", 137);
        simulation.converge();
        assert_eq!(simulation.summary().0, phase, "its sidecars do not count");
        assert_eq!(stops(&mut simulation), []);
    }
}

#[test]
fn an_init_container_that_fails_for_good_stops_the_sidecars_before_it() {
    let mut object = pod("Never", &["mesh", "migrate"], &["web"]);
    object.spec.init_containers[0].restart_policy = Some("Always".into());
    let mut simulation = Simulation::of(object);
    simulation.converge();
    simulation.exit("migrate", 1);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Pending");
    assert_eq!(stops(&mut simulation), stopped("mesh", 30));
    simulation.exit("mesh", 0);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Failed");
}
