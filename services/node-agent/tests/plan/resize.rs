//! Resizes of running Pods.

use setpoint_model::condition;
use setpoint_node_agent::runtime::State;
use setpoint_node_agent::{Action, Demand, KillReason, Pending, Resize, plan};
use setpoint_proto::core::{ContainerResizePolicy, PodSpec};
use setpoint_proto::meta::Quantity;

use crate::simulation::{Simulation, pod};

const PENDING: &str = "PodResizePending";
const IN_PROGRESS: &str = "PodResizeInProgress";

fn set_cpu(spec: &mut PodSpec, cpu: &str) {
    let resources = &mut spec.containers[0].resources;
    for list in [&mut resources.requests, &mut resources.limits] {
        list.insert("cpu".into(), Quantity::new(cpu));
    }
}

/// Returns a running Pod with a policy for changes of its CPU.
fn running(restart_policy: &str, resize_policy: &str) -> Simulation {
    let mut pod = pod(restart_policy, &[], &["web", "log"]);
    set_cpu(&mut pod.spec, "1");
    pod.spec.containers[0].resize_policy = vec![ContainerResizePolicy {
        resource_name: "cpu".into(),
        restart_policy: resize_policy.into(),
    }];
    let mut simulation = Simulation::of(pod);
    simulation.converge();
    simulation.done.clear();
    simulation
}

fn resize(simulation: &mut Simulation, cpu: &str, verdict: Result<(), Pending>) {
    simulation.advance(60);
    let pod = simulation.world.pod.as_mut().unwrap();
    pod.object.metadata.generation += 1;
    let mut spec = pod.object.spec.clone();
    set_cpu(&mut spec, cpu);
    let demand = Demand::of(&spec);
    pod.resize = Some(Resize { demand, verdict });
}

fn cpu_of(simulation: &Simulation) -> (String, String) {
    let web = simulation.reported("web");
    let resources = web.resources.as_ref().unwrap();
    (
        web.allocated_resources["cpu"].string.clone(),
        resources.limits["cpu"].string.clone(),
    )
}

fn both(cpu: &str) -> (String, String) {
    (cpu.to_owned(), cpu.to_owned())
}

fn reason(simulation: &mut Simulation, kind: &str) -> Option<String> {
    let conditions = &simulation.pod().status.conditions;
    condition::get(conditions, kind).map(|found| found.reason.clone())
}

#[test]
fn a_running_container_is_reported_with_the_resources_that_it_has() {
    let simulation = running("Always", "NotRequired");
    assert_eq!(cpu_of(&simulation), both("1"));
    let log = simulation.reported("log");
    assert_eq!(log.resources, Some(Default::default()));
}

#[test]
fn a_resize_that_fits_is_allocated_announced_and_then_given_to_the_container() {
    let mut simulation = running("Always", "NotRequired");
    resize(&mut simulation, "2", Ok(()));
    let step = |simulation: &Simulation| plan(&simulation.world).steps.remove(0).action;
    assert_eq!(step(&simulation), Action::Allocate);
    simulation.execute(Action::Allocate);
    assert_eq!(step(&simulation), Action::UpdateStatus);
    simulation.execute(Action::UpdateStatus);
    assert_eq!(reason(&mut simulation, IN_PROGRESS), Some(String::new()));
    assert_eq!(cpu_of(&simulation), ("2".to_owned(), "1".to_owned()));
    simulation.converge();
    assert_eq!(reason(&mut simulation, IN_PROGRESS), None);
    assert_eq!(cpu_of(&simulation), both("2"));
    assert_eq!(simulation.reported("web").restart_count, 0);
    let resized = simulation.done.iter();
    let resized = resized.filter(|action| matches!(action, Action::Resize(_)));
    assert_eq!(resized.count(), 1, "the other container keeps what it has");
}

#[test]
fn a_resize_that_does_not_fit_waits_with_the_reason_and_changes_nothing() {
    for expected in ["Deferred", "Infeasible"] {
        let mut simulation = running("Always", "NotRequired");
        let message = "Node didn't have enough resource: cpu".to_owned();
        let pending = Pending {
            reason: expected,
            message: message.clone(),
        };
        resize(&mut simulation, "200", Err(pending));
        assert_eq!(
            simulation.converge().map(|again| again.as_secs()),
            Some(180)
        );
        assert!(simulation.done.is_empty(), "{:?}", simulation.done);
        assert_eq!(reason(&mut simulation, PENDING).as_deref(), Some(expected));
        let conditions = &simulation.pod().status.conditions;
        let pending = condition::get(conditions, PENDING).unwrap();
        assert_eq!(
            (&pending.message, pending.observed_generation),
            (&message, 2)
        );
        assert_eq!(cpu_of(&simulation), both("1"));
        simulation.world.pod.as_mut().unwrap().resize = None;
        simulation.converge();
        assert_eq!(reason(&mut simulation, PENDING), None, "it was taken back");
    }
}

#[test]
fn a_container_whose_policy_demands_it_is_restarted_at_once_whatever_its_restart_policy() {
    for policy in ["Always", "OnFailure"] {
        let mut simulation = running(policy, "RestartContainer");
        simulation.exit("web", 1);
        simulation.converge();
        resize(&mut simulation, "2", Ok(()));
        simulation.converge();
        let killed = simulation.done.iter().any(|action| {
            matches!(
                action,
                Action::Kill {
                    reason: KillReason::Resize,
                    restarts: true,
                    ..
                }
            )
        });
        assert!(killed, "{:?}", simulation.done);
        assert_eq!(reason(&mut simulation, IN_PROGRESS), Some(String::new()));
        assert_eq!(cpu_of(&simulation), ("2".to_owned(), "1".to_owned()));
        simulation.exit("web", 0);
        assert_eq!(simulation.converge(), None);
        assert_eq!(reason(&mut simulation, IN_PROGRESS), None);
        assert_eq!(cpu_of(&simulation), both("2"));
        assert_eq!(simulation.reported("web").restart_count, 2, "{policy}");
        assert_eq!(simulation.reported("log").restart_count, 0);
    }
}

#[test]
fn a_container_that_had_ended_before_a_resize_stays_ended() {
    let mut simulation = running("OnFailure", "RestartContainer");
    simulation.exit("web", 0);
    simulation.converge();
    resize(&mut simulation, "2", Ok(()));
    simulation.converge();
    assert_eq!(simulation.reported("web").restart_count, 0);
    assert_eq!(reason(&mut simulation, IN_PROGRESS), None);
    assert_eq!(simulation.summary().0, "Running");
}

#[test]
fn an_error_of_the_runtime_is_the_reason_of_a_resize_in_progress() {
    let mut simulation = running("Always", "NotRequired");
    resize(&mut simulation, "2", Ok(()));
    simulation.execute(Action::Allocate);
    simulation.world.resize_error = Some("memory limit (1) below current usage (2)".into());
    simulation.execute(Action::UpdateStatus);
    assert_eq!(
        reason(&mut simulation, IN_PROGRESS).as_deref(),
        Some("Error")
    );
    assert_eq!(cpu_of(&simulation), ("2".to_owned(), "1".to_owned()));
    let steps = plan(&simulation.world).steps;
    assert!(
        matches!(&steps[0].action, Action::Resize(_)),
        "it is tried again"
    );
}

/// An older agent has started it.
#[test]
fn a_container_with_resources_that_are_not_known_is_left_as_it_is() {
    let mut simulation = running("Always", "NotRequired");
    for container in &mut simulation.world.sandboxes[0].containers {
        container.resources = None;
        assert!(matches!(container.state, State::Running { .. }));
    }
    simulation.converge();
    assert!(simulation.done.is_empty());
    assert_eq!(cpu_of(&simulation), both("1"));
}
