//! Pods that their node ends: evictions and the shutdown of the node.

use setpoint_model::condition;
use setpoint_node_agent::Action;

use crate::simulation::{ENDING, Simulation, pod};

/// Returns a running Pod of two containers that its node ends now.
fn evicted(policy: &str, grace: u64) -> Simulation {
    let mut simulation = Simulation::of(pod(policy, &[], &["web", "log"]));
    simulation.converge();
    simulation.done.clear();
    simulation.end(grace);
    simulation
}

/// Returns the grace periods of the stops so far.
fn graces(simulation: &Simulation) -> Vec<u64> {
    let graces = simulation.done.iter().filter_map(|action| match action {
        Action::Stop { grace, .. } => Some(grace.as_secs()),
        _ => None,
    });
    graces.collect()
}

#[test]
fn a_pod_that_its_node_ends_has_failed_once_its_containers_have_stopped() {
    let mut simulation = evicted("Always", 1);
    simulation.converge();
    assert_eq!(graces(&simulation), [1, 1]);
    simulation.exit("web", 0);
    simulation.converge();
    assert_eq!(
        simulation.summary().0,
        "Running",
        "one container still runs"
    );
    simulation.exit("log", 0);
    simulation.converge();
    let status = simulation.pod().status.clone();
    let words = (
        status.phase.as_str(),
        status.reason.as_str(),
        status.message.as_str(),
    );
    assert_eq!(words, ("Failed", "Evicted", ENDING));
    let target = condition::get(&status.conditions, "DisruptionTarget").unwrap();
    let words = (
        target.status.as_str(),
        target.reason.as_str(),
        target.message.as_str(),
    );
    assert_eq!(words, ("True", "TerminationByKubelet", ENDING));
    assert!(!condition::is_true(&status.conditions, "Ready"));
}

#[test]
fn no_container_of_a_pod_that_its_node_ends_is_restarted() {
    for policy in ["Always", "OnFailure", "Never"] {
        let mut simulation = evicted(policy, 30);
        for name in ["web", "log"] {
            simulation.exit(name, 1);
            simulation.advance(600);
            simulation.converge();
        }
        assert_eq!(simulation.summary().0, "Failed", "{policy}");
        assert_eq!(simulation.reported("web").restart_count, 0);
    }
}

#[test]
fn the_grace_period_of_a_pod_that_its_node_ends_is_the_shorter_one_from_the_decision_on() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.pod().spec.termination_grace_period_seconds = Some(10);
    simulation.converge();
    simulation.done.clear();
    simulation.end(60);
    simulation.advance(4);
    simulation.converge();
    assert_eq!(graces(&simulation), [6]);
}

#[test]
fn a_pod_that_is_deleted_meanwhile_has_no_more_time_than_its_node_allows() {
    let mut simulation = evicted("Always", 2);
    simulation.delete(30);
    simulation.converge();
    assert_eq!(graces(&simulation), [2, 2]);
}

#[test]
fn a_pod_that_has_not_started_fails_without_a_container() {
    let mut simulation = Simulation::of(pod("Always", &["init"], &["web"]));
    simulation.end(1);
    simulation.converge();
    assert!(simulation.done.is_empty());
    let status = &simulation.pod().status;
    assert_eq!(
        (status.phase.as_str(), status.reason.as_str()),
        ("Failed", "Evicted")
    );
}
