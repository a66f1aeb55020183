//! Init containers and sidecars: their order, and their repetition in a recreated sandbox.

use setpoint_model::condition;

use super::summary;
use crate::simulation::{Simulation, pod};

#[test]
fn init_containers_run_one_by_one_before_the_others() {
    let mut simulation = Simulation::of(pod("Always", &["first", "second"], &["web"]));
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Pending", false));
    let initialized = condition::get(&simulation.pod().status.conditions, "Initialized")
        .unwrap()
        .clone();
    assert_eq!(
        initialized.message,
        "containers with incomplete status: [first second]"
    );
    simulation.exit("first", 1);
    simulation.converge();
    assert_eq!(simulation.reported("first").restart_count, 1);
    simulation.exit("first", 0);
    simulation.converge();
    assert_eq!(
        simulation
            .reported("web")
            .state
            .waiting
            .as_ref()
            .unwrap()
            .reason,
        "PodInitializing"
    );
    simulation.exit("second", 0);
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Running", true));
}

#[test]
fn init_containers_are_repeated_in_a_recreated_sandbox() {
    let mut simulation = Simulation::of(pod("OnFailure", &["first", "second"], &["web"]));
    simulation.converge();
    simulation.exit("first", 0);
    simulation.converge();
    simulation.exit("second", 0);
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Running", true));
    simulation.lose_sandbox();
    simulation.converge();
    simulation.exit("web", 137);
    simulation.converge();
    assert_eq!(simulation.reported("first").restart_count, 1);
    assert!(simulation.reported("first").state.running.is_some());
    assert!(simulation.reported("web").state.running.is_none());
    let initialized = condition::get(&simulation.pod().status.conditions, "Initialized").unwrap();
    assert_eq!(initialized.status, "False");
    simulation.exit("first", 0);
    simulation.converge();
    simulation.exit("second", 0);
    simulation.converge();
    assert_eq!(simulation.reported("second").restart_count, 1);
    assert_eq!(simulation.reported("web").restart_count, 1);
    assert_eq!(simulation.summary(), summary("Running", true));
}

#[test]
fn a_pod_that_never_restarts_fails_with_its_sandbox() {
    for init in [&[][..], &["first"]] {
        let mut simulation = Simulation::of(pod("Never", init, &["web"]));
        simulation.converge();
        simulation.lose_sandbox();
        simulation.converge();
        simulation.exit("first", 137);
        simulation.exit("web", 137);
        simulation.done.clear();
        simulation.converge();
        assert_eq!(simulation.summary().0, "Failed");
        assert_eq!(simulation.done, []);
    }
}

#[test]
fn a_failed_init_container_fails_a_pod_that_never_restarts() {
    let mut simulation = Simulation::of(pod("Never", &["first"], &["web"]));
    simulation.converge();
    simulation.exit("first", 1);
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Failed", false));
}

#[test]
fn a_sidecar_starts_in_order_and_keeps_running() {
    let mut object = pod("Always", &["sidecar", "migrate"], &["web"]);
    object.spec.init_containers[0].restart_policy = Some("Always".into());
    let mut simulation = Simulation::of(object);
    simulation.converge();
    assert!(simulation.reported("migrate").state.running.is_some());
    simulation.exit("migrate", 0);
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Running", true));
    simulation.exit("sidecar", 0);
    simulation.converge();
    assert_eq!(simulation.reported("sidecar").restart_count, 1);
    simulation.exit("sidecar", 1);
    simulation.exit("web", 1);
    simulation.converge();
    assert!(
        simulation.reported("sidecar").state.waiting.is_some(),
        "it is in backoff"
    );
    assert_eq!(
        simulation.reported("web").restart_count,
        1,
        "the others do not wait for it"
    );
}
