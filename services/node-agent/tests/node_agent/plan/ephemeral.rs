//! Ephemeral containers: started once, whatever the others do, and without effect on the Pod.

use setpoint_node_agent::{Action, WaitingReason, plan};
use setpoint_proto::core::{ContainerState, ContainerStateWaiting, EphemeralContainer};

use crate::simulation::{IP, Simulation, pod};

impl Simulation {
    fn add_debugger(&mut self) {
        let mut added = EphemeralContainer::default();
        added.ephemeral_container_common.name = "debugger".into();
        added.ephemeral_container_common.image = "busybox".into();
        self.pod().spec.ephemeral_containers.push(added);
    }

    fn debugger(&mut self) -> ContainerState {
        let status = self.pod().status.ephemeral_container_statuses[0].clone();
        assert_eq!((status.name.as_str(), status.ready), ("debugger", false));
        assert_eq!((status.restart_count, status.started), (0, None));
        status.state
    }
}

#[test]
fn an_ephemeral_container_is_started_once_and_never_again() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.add_debugger();
    simulation.converge();
    assert!(simulation.debugger().running.is_some());
    assert_eq!(simulation.summary(), ("Running".into(), true));
    simulation.done.clear();
    simulation.exit("debugger", 3);
    simulation.converge();
    let end = simulation.debugger().terminated.unwrap();
    assert_eq!(end.exit_code, 3);
    assert_eq!(simulation.summary(), ("Running".into(), true));
    // The runtime may have lost it.
    simulation.world.sandboxes[0]
        .containers
        .retain(|container| container.id.name != "debugger");
    simulation.converge();
    assert_eq!(simulation.done, []);
}

#[test]
fn an_ephemeral_container_starts_beside_an_init_container_that_goes_on() {
    let mut simulation = Simulation::of(pod("Always", &["first"], &["web"]));
    simulation.converge();
    simulation.add_debugger();
    simulation.converge();
    assert!(simulation.debugger().running.is_some());
    assert_eq!(simulation.summary().0, "Pending");
}

#[test]
fn an_ephemeral_container_does_not_keep_a_pod_from_its_end() {
    let mut simulation = Simulation::of(pod("Never", &[], &["web"]));
    simulation.add_debugger();
    simulation.converge();
    simulation.exit("web", 0);
    simulation.done.clear();
    simulation.converge();
    assert!(matches!(&simulation.done[..], [Action::Stop { id, .. }] if id.name == "debugger"));
    assert_eq!(simulation.summary().0, "Running");
    simulation.exit("debugger", 137);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Succeeded");
}

/// An action that fails ends its round.
#[test]
fn an_ephemeral_container_that_cannot_be_started_is_tried_after_the_others() {
    let names = |simulation: &Simulation| {
        let steps = plan(&simulation.world).steps.into_iter();
        let name = |action| match action {
            Action::Start { name, .. } => Some(name),
            _ => None,
        };
        steps
            .filter_map(|step| name(step.action))
            .collect::<Vec<_>>()
    };
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.add_sandbox("uid-1", IP);
    simulation.add_debugger();
    assert_eq!(names(&simulation), ["debugger", "web"]);
    let (reason, message) = ("ErrImagePull".into(), "no such image".into());
    let reason = WaitingReason { reason, message };
    let reasons = &mut simulation.world.waiting_reasons;
    reasons.insert("debugger".into(), reason);
    let status = setpoint_node_agent::status(&simulation.world).unwrap();
    simulation.pod().status = status;
    let waiting = simulation.debugger().waiting;
    let expected = ContainerStateWaiting {
        reason: "ErrImagePull".into(),
        message: "no such image".into(),
    };
    assert_eq!(waiting, Some(expected));
    assert_eq!(names(&simulation), ["web", "debugger"]);
}
