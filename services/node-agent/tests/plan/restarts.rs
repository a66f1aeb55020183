//! Restart policies and rules of single containers.

use setpoint_proto::core::{Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes, Pod};

use crate::simulation::{Simulation, pod};

fn with(policy: &str, own: &str, codes: &[i32]) -> Pod {
    let mut pod = pod(policy, &[], &["web", "log"]);
    let rule = ContainerRestartRule {
        action: "Restart".into(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes {
            operator: "In".into(),
            values: codes.to_vec(),
        }),
    };
    let rules = (!codes.is_empty()).then_some(rule);
    pod.spec.containers[0] = Container {
        restart_policy: Some(own.into()),
        restart_policy_rules: rules.into_iter().collect(),
        ..pod.spec.containers[0].clone()
    };
    pod
}

#[test]
fn a_container_is_restarted_by_its_own_policy_in_a_pod_that_is_not() {
    let mut simulation = Simulation::of(with("Never", "Always", &[]));
    simulation.converge();
    simulation.exit("log", 0);
    simulation.exit("web", 0);
    simulation.converge();
    assert_eq!(simulation.reported("web").restart_count, 1);
    assert_eq!(simulation.reported("log").restart_count, 0);
    assert_eq!(simulation.summary().0, "Running");
}

#[test]
fn a_pod_ends_when_no_container_is_restarted_by_its_own_policy() {
    let mut simulation = Simulation::of(with("Never", "OnFailure", &[]));
    simulation.converge();
    simulation.exit("log", 1);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Running");
    simulation.exit("web", 0);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Failed");
}

#[test]
fn a_rule_restarts_a_container_that_its_policy_would_not() {
    let mut simulation = Simulation::of(with("Always", "Never", &[42]));
    simulation.converge();
    simulation.exit("web", 42);
    simulation.converge();
    assert_eq!(simulation.reported("web").restart_count, 1);
    simulation.exit("web", 1);
    simulation.converge();
    let web = simulation.reported("web");
    assert_eq!(
        (web.restart_count, web.state.terminated.is_some()),
        (1, true)
    );
    assert_eq!(
        simulation.summary().0,
        "Running",
        "the other container goes on"
    );
}

#[test]
fn an_init_container_that_is_never_restarted_fails_its_pod() {
    let mut failing = pod("Always", &["init"], &["web"]);
    failing.spec.init_containers[0].restart_policy = Some("Never".into());
    let mut simulation = Simulation::of(failing);
    simulation.converge();
    simulation.exit("init", 1);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Failed");
}
