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

/// Returns a Pod that is restarted by none of its policies, with an init container, a sidecar, and a container whose
/// exit with code 42 restarts all.
fn restarting() -> Pod {
    let mut pod = pod("Never", &["init", "proxy"], &["web", "log"]);
    pod.spec.init_containers[1].restart_policy = Some("Always".into());
    let rule = ContainerRestartRule {
        action: "RestartAllContainers".into(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes {
            operator: "In".into(),
            values: vec![42],
        }),
    };
    let web = &mut pod.spec.containers[0];
    web.restart_policy = Some("Never".into());
    web.restart_policy_rules = vec![rule];
    pod
}

fn restart_counts(simulation: &Simulation) -> [i32; 4] {
    ["init", "proxy", "web", "log"].map(|name| simulation.reported(name).restart_count)
}

fn is_restarting(simulation: &mut Simulation) -> bool {
    let conditions = &simulation.pod().status.conditions;
    setpoint_model::condition::is_true(conditions, "AllContainersRestarting")
}

#[test]
fn a_rule_restarts_all_containers_of_a_pod_from_its_init_containers_on() {
    let mut simulation = Simulation::of(restarting());
    simulation.converge();
    simulation.exit("init", 0);
    simulation.converge();
    assert_eq!(simulation.summary(), ("Running".into(), true));
    assert!(!is_restarting(&mut simulation));

    simulation.exit("web", 42);
    simulation.converge();
    assert_eq!(simulation.summary(), ("Running".into(), false));
    assert!(is_restarting(&mut simulation));
    assert_eq!(
        restart_counts(&simulation),
        [0; 4],
        "nothing is started before all have ended"
    );

    for name in ["proxy", "log"] {
        simulation.exit(name, 137);
    }
    simulation.converge();
    assert_eq!(restart_counts(&simulation), [1, 0, 0, 0]);
    assert!(!is_restarting(&mut simulation));
    let log = simulation.reported("log");
    let waiting = log.state.waiting.as_ref().unwrap();
    assert_eq!(waiting.reason, "RestartingAllContainers");
    let conditions = &simulation.pod().status.conditions;
    assert!(setpoint_model::condition::is_true(
        conditions,
        "Initialized"
    ));

    simulation.exit("init", 0);
    simulation.converge();
    assert_eq!(restart_counts(&simulation), [1; 4]);
    assert_eq!(simulation.summary(), ("Running".into(), true));
    simulation.converge();
    assert_eq!(
        restart_counts(&simulation),
        [1; 4],
        "the rule is applied once"
    );
}

#[test]
fn the_container_whose_exit_restarts_all_has_its_backoff() {
    let mut pod = restarting();
    pod.spec.init_containers.clear();
    let mut simulation = Simulation::of(pod);
    simulation.converge();
    for (seconds, expected) in [(0, [1, 1]), (9, [1, 2]), (2, [2, 2])] {
        if seconds != 2 {
            simulation.exit("web", 42);
            simulation.converge();
            simulation.exit("log", 137);
        }
        simulation.advance(seconds);
        simulation.converge();
        let counts = ["web", "log"].map(|name| simulation.reported(name).restart_count);
        assert_eq!(counts, expected);
    }
}

#[test]
fn an_exit_that_no_rule_names_restarts_nothing_else() {
    let mut simulation = Simulation::of(restarting());
    simulation.converge();
    simulation.exit("init", 0);
    simulation.converge();
    simulation.exit("web", 1);
    simulation.exit("log", 42);
    simulation.converge();
    assert_eq!(restart_counts(&simulation), [0; 4]);
    simulation.exit("proxy", 143);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Failed");
}
