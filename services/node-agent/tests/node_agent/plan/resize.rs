//! Resizes of running Pods.

use setpoint_model::condition;
use setpoint_node_agent::{Action, Demand, KillReason, Pending, Resize, plan};
use setpoint_proto::core::{ContainerResizePolicy, PodSpec, ResourceRequirements};
use setpoint_proto::meta::Quantity;
use setpoint_runtime::{PodResources, State};

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

/// Returns a Pod with a limit of memory for all of its containers together, and running containers.
fn running_within(memory: &str) -> Simulation {
    let mut pod = pod("Always", &[], &["web"]);
    pod.spec.resources = of_pod(memory);
    let mut simulation = Simulation::of(pod);
    simulation.converge();
    simulation
}

fn of_pod(memory: &str) -> Option<ResourceRequirements> {
    let list = |amount: &str| [("memory".to_owned(), Quantity::new(amount))].into();
    Some(ResourceRequirements {
        limits: list(memory),
        requests: list("1Mi"),
        ..ResourceRequirements::default()
    })
}

fn limit(resources: &PodResources) -> i64 {
    resources.all.memory
}

#[test]
fn a_pod_has_the_limits_of_its_own_from_the_start_and_an_agent_that_restarts_sets_them_again() {
    let mut simulation = running_within("1Gi");
    let own = |simulation: &Simulation| simulation.world.sandboxes[0].config.resources;
    assert_eq!(own(&simulation).as_ref().map(limit), Some(1 << 30));
    let status = &simulation.pod().status;
    assert_eq!(status.resources, of_pod("1Gi"));
    assert_eq!(status.allocated_resources["memory"].string, "1Mi");
    assert!(condition::get(&status.conditions, IN_PROGRESS).is_none());
    simulation.done.clear();
    simulation.world.sandboxes[0].config.resources = None;
    simulation.converge();
    let again = own(&simulation).unwrap();
    assert_eq!(simulation.done, [Action::ResizePod(again)]);
}

#[test]
fn a_container_never_may_have_more_than_its_pod_while_both_are_resized() {
    for (from, to, raised) in [("1Gi", "2Gi", Some(2)), ("2Gi", "1Gi", None)] {
        let mut simulation = running_within(from);
        simulation.done.clear();
        let pod = simulation.pod();
        pod.spec.resources = of_pod(to);
        let main = &mut pod.spec.containers[0].resources;
        main.limits.insert("memory".into(), Quantity::new(to));
        simulation.converge();
        let resizes = simulation.done.iter().filter_map(|action| match action {
            Action::ResizePod(resources) => Some(limit(resources) >> 30),
            Action::Resize(_) => Some(0),
            _ => None,
        });
        let resizes: Vec<_> = resizes.collect();
        match raised {
            Some(raised) => assert_eq!(resizes, [raised, 0], "the Pod first"),
            None => assert_eq!(resizes, [0, 1], "the Pod last"),
        }
    }
}
