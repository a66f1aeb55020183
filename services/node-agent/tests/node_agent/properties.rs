//! Properties of plans and statuses under random sequences of events.

use proptest::prelude::*;
use setpoint_node_agent::{Action, Health, ProbeResults, plan};
use setpoint_proto::core::{ContainerRestartRule, ContainerRestartRuleOnExitCodes, Pod, Probe};

use crate::simulation::{Simulation, pod};

#[derive(Clone, Debug)]
enum Event {
    Exit(usize, i32),
    Advance(u64),
    Forget,
    LoseSandbox,
    Delete(i64),
    /// The node ends the Pod, with this grace period.
    End(u64),
    Probe(usize, ProbeResults),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        6 => (0..3_usize, prop_oneof![Just(0), Just(1), Just(42), Just(137)])
            .prop_map(|(index, code)| Event::Exit(index, code)),
        3 => (0..700_u64).prop_map(Event::Advance),
        1 => Just(Event::Forget),
        1 => Just(Event::LoseSandbox),
        3 => (1..3_usize, results()).prop_map(|(index, results)| Event::Probe(index, results)),
        1 => (0..60_u64).prop_map(Event::End),
        1 => prop_oneof![0..60_i64, Just(i64::MIN), Just(i64::MAX)].prop_map(Event::Delete),
    ];
    proptest::collection::vec(one, 0..25)
}

fn results() -> impl Strategy<Value = ProbeResults> {
    let health = || {
        prop_oneof![
            Just(Health::Unknown),
            Just(Health::Passing),
            Just(Health::Failing)
        ]
    };
    (health(), health(), health()).prop_map(|(liveness, readiness, startup)| ProbeResults {
        liveness,
        readiness,
        startup,
    })
}

/// Returns a Pod whose containers have probes, and one a rule that restarts them all.
fn probed(policy: &str) -> Pod {
    let mut pod = pod(policy, &["init"], &["web", "log"]);
    pod.spec.containers[0].readiness_probe = Some(Probe::default());
    pod.spec.containers[0].startup_probe = Some(Probe::default());
    pod.spec.containers[1].liveness_probe = Some(Probe::default());
    pod.spec.containers[1].restart_policy = Some(policy.to_owned());
    pod.spec.containers[1].restart_policy_rules = vec![ContainerRestartRule {
        action: "RestartAllContainers".into(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes {
            operator: "In".into(),
            values: vec![42],
        }),
    }];
    pod
}

const NAMES: [&str; 3] = ["init", "web", "log"];

proptest! {
    /// Checks N5.
    #[test]
    fn a_pod_never_moves_backward_under_any_events(
        policy in prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")],
        events in events(),
    ) {
        let mut simulation = Simulation::of(probed(policy));
        simulation.converge();
        for event in events {
            let before = simulation.pod().status.clone();
            match event {
                Event::Exit(index, code) => simulation.exit(NAMES[index], code),
                Event::Advance(seconds) => simulation.advance(seconds),
                Event::Forget => simulation.world.sandboxes.clear(),
                Event::LoseSandbox => simulation.lose_sandbox(),
                Event::Delete(grace) => simulation.delete(grace),
                Event::End(grace) => simulation.end(grace),
                Event::Probe(index, results) => {
                    if let Some(running) = simulation.world.running(NAMES[index]) {
                        let id = running.id.clone();
                        simulation.world.probes.insert(id, results);
                    }
                }
            }
            simulation.converge();
            if simulation.world.pod.is_none() {
                prop_assert!(simulation.world.sandboxes.is_empty());
                break;
            }
            let after = simulation.pod().status.clone();
            prop_assert!(rank(&before.phase) <= rank(&after.phase), "{} → {}", before.phase, after.phase);
            if rank(&before.phase) == 2 {
                prop_assert_eq!(&before, &after);
            }
            prop_assert_eq!(before.start_time, after.start_time);
            for (old, new) in before.container_statuses.iter().zip(&after.container_statuses) {
                prop_assert!(old.restart_count <= new.restart_count);
            }
        }
    }

    /// Steps are executed in order, and the agent may crash between any two of them.
    #[test]
    fn a_crash_between_any_two_actions_ends_in_the_same_state(cut in 0..6_usize) {
        let mut simulation = Simulation::of(pod("Always", &[], &["web", "log"]));
        let mut left = cut;
        while left > 0 {
            let steps = plan(&simulation.world).steps;
            let Some(step) = steps.into_iter().next() else { break };
            simulation.execute(step.action);
            left -= 1;
        }
        simulation.converge();
        prop_assert_eq!(simulation.summary(), ("Running".to_owned(), true));
        let starts = simulation.done.iter().filter(|action| matches!(action, Action::Start { .. }));
        prop_assert_eq!(starts.count(), 2);
    }
}

fn rank(phase: &str) -> usize {
    match phase {
        "Pending" => 0,
        "Running" => 1,
        _ => 2,
    }
}
