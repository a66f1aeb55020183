//! The reported states of containers and conditions of Pods.

use setpoint_model::condition;
use setpoint_node_agent::{Action, Runs, plan, status};
use setpoint_proto::core::{
    ContainerState, ContainerStateTerminated, PodCondition, PodReadinessGate,
};
use setpoint_runtime::{Exit, State};

use super::summary;
use crate::simulation::{Simulation, pod};

fn converged(policy: &str, init: &[&str], main: &[&str]) -> Simulation {
    let mut simulation = Simulation::of(pod(policy, init, main));
    simulation.converge();
    simulation
}

#[test]
fn a_running_container_is_reported_with_its_image() {
    let mut simulation = converged("Always", &[], &["web"]);
    let web = simulation.reported("web");
    assert_eq!((web.ready, web.started), (true, Some(true)));
    let image = (web.image.as_str(), web.image_id.as_str());
    assert_eq!(image, ("nginx:1.25", "fake://nginx:1.25"));
    simulation.world.sandboxes[0].containers[0].image_id = "sha256:5be0".into();
    simulation.converge();
    assert_eq!(simulation.reported("web").image_id, "fake://sha256:5be0");
}

/// Checks RF5.
#[test]
fn a_pod_in_the_network_of_its_node_has_the_address_of_the_node() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    let pod = simulation.world.pod.as_mut().unwrap();
    let mut shared = |host_network, runs| {
        pod.object.spec.host_network = host_network;
        pod.runs = runs;
        pod.shared_ip().map(|ip| ip.to_string())
    };
    let node = Some("10.1.2.1".to_owned());
    assert_eq!(shared(true, Runs::Nothing), node);
    assert_eq!(shared(true, Runs::Commands), node);
    assert_eq!(shared(true, Runs::Images), None, "it has no effect there");
    assert_eq!(shared(false, Runs::Commands), None);
}

/// The runtime of the CRI assigns addresses: what the node has for the Pod otherwise is none of its own.
#[test]
fn a_pod_whose_runtime_has_given_it_no_address_is_reported_without_one() {
    let mut simulation = converged("Always", &[], &["web"]);
    let reported = |simulation: &mut Simulation| {
        let wanted = status(&simulation.world);
        let wanted = wanted.unwrap_or_else(|| simulation.pod().status.clone());
        let all: Vec<_> = wanted
            .pod_ips
            .into_iter()
            .map(|address| address.ip)
            .collect();
        assert_eq!(wanted.pod_ip, all.concat());
        wanted.pod_ip
    };
    let address = reported(&mut simulation);
    assert_ne!(address, "");
    let sandboxes = std::mem::take(&mut simulation.world.sandboxes);
    assert_eq!(reported(&mut simulation), address, "it keeps its address");
    simulation.world.pod.as_mut().unwrap().runtime = "cri";
    assert_eq!(reported(&mut simulation), "");
    simulation.pod().spec.host_network = true;
    assert_eq!(reported(&mut simulation), address, "it is that of the node");
    simulation.pod().spec.host_network = false;
    simulation.world.sandboxes = sandboxes;
    assert_eq!(reported(&mut simulation), address);
    // One that an earlier boot of the machine has left.
    simulation.world.sandboxes[0].ready = false;
    simulation.world.sandboxes[0].config.ip = std::net::Ipv4Addr::UNSPECIFIED;
    assert_eq!(reported(&mut simulation), "");
}

#[test]
fn a_pod_is_reported_with_its_node_and_its_generation() {
    let mut simulation = converged("Always", &[], &["web"]);
    let status = simulation.pod().status.clone();
    let hosts: Vec<_> = status.host_ips.iter().map(|host| &*host.ip).collect();
    assert_eq!((hosts, status.observed_generation), (vec!["10.1.2.1"], 1));
    let mut generations = status.conditions.iter().map(|one| one.observed_generation);
    assert!(generations.all(|generation| generation == 1));
}

#[test]
fn a_container_that_has_not_begun_waits_with_the_reason_of_its_phase() {
    for (init, reason) in [
        (&[][..], "ContainerCreating"),
        (&["first"], "PodInitializing"),
    ] {
        let simulation = Simulation::of(pod("Always", init, &["web"]));
        let web = status(&simulation.world)
            .unwrap()
            .container_statuses
            .remove(0);
        assert_eq!(web.state.waiting.unwrap().reason, reason);
        assert_eq!(
            (web.image.as_str(), web.started),
            ("nginx:1.25", Some(false))
        );
    }
}

#[test]
fn the_end_of_a_container_is_reported_with_its_times_and_its_message() {
    let mut simulation = converged("Never", &[], &["web"]);
    let began = simulation.world.now;
    simulation.advance(5);
    let exit = Exit {
        message: "out of disk".into(),
        ..Exit::new(3, began, simulation.world.now)
    };
    simulation.world.sandboxes[0].containers[0].state = State::Exited(exit);
    simulation.converge();
    let web = simulation.reported("web");
    assert_eq!((web.ready, web.started), (false, Some(false)));
    let expected = ContainerStateTerminated {
        exit_code: 3,
        reason: "Error".into(),
        message: "out of disk".into(),
        started_at: began.into(),
        finished_at: simulation.world.now.into(),
        container_id: "fake://uid-1/web/0".into(),
        ..Default::default()
    };
    assert_eq!(web.state.terminated, Some(expected));
}

#[test]
fn an_init_container_that_succeeded_is_ready_and_a_container_that_did_is_not() {
    let mut simulation = converged("OnFailure", &["first"], &["web", "log"]);
    simulation.exit("first", 1);
    simulation.converge();
    simulation.exit("first", 1);
    simulation.converge();
    assert!(!simulation.reported("first").ready, "it failed");
    simulation.advance(10);
    simulation.converge();
    simulation.exit("first", 0);
    simulation.converge();
    assert!(simulation.reported("first").ready);
    simulation.exit("web", 0);
    simulation.converge();
    assert!(simulation.reported("web").state.terminated.is_some());
    assert!(!simulation.reported("web").ready);
}

/// Checks N2.
#[test]
fn a_container_that_the_runtime_lost_is_reported_as_unknown() {
    let mut simulation = converged("Never", &[], &["web"]);
    let began = simulation.world.now;
    simulation.advance(5);
    simulation.world.sandboxes.clear();
    let web = status(&simulation.world)
        .unwrap()
        .container_statuses
        .remove(0);
    let expected = ContainerStateTerminated {
        exit_code: 137,
        reason: "ContainerStatusUnknown".into(),
        message: "The container could not be located: the container runtime no longer has it"
            .into(),
        started_at: began.into(),
        finished_at: simulation.world.now.into(),
        container_id: "fake://uid-1/web/0".into(),
        ..Default::default()
    };
    assert_eq!(web.state.terminated, Some(expected));
}

/// Checks N2: its init containers are not repeated either.
#[test]
fn a_pod_that_never_restarts_fails_when_the_runtime_loses_it() {
    let mut simulation = converged("Never", &["first"], &["web"]);
    simulation.exit("first", 0);
    simulation.converge();
    simulation.world.sandboxes.clear();
    simulation.done.clear();
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Failed", false));
    let started = |action: &Action| matches!(action, Action::Start { .. });
    assert!(
        !simulation.done.iter().any(started),
        "{:?}",
        simulation.done
    );
}

/// An attempt that the runtime no longer has is taken from the last reported status.
#[test]
fn the_previous_attempt_is_taken_from_the_last_status() {
    let terminated = |exit_code| ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code,
            ..Default::default()
        }),
        ..Default::default()
    };
    let waiting = ContainerState {
        waiting: Some(Default::default()),
        ..Default::default()
    };
    let running = ContainerState {
        running: Some(Default::default()),
        ..Default::default()
    };
    for (state, expected) in [(terminated(3), 3), (running, 137), (waiting, 5)] {
        let mut simulation = converged("Always", &[], &["web"]);
        simulation.world.sandboxes[0].containers[0].id.attempt = 1;
        let reported = &mut simulation.pod().status.container_statuses[0];
        (reported.state, reported.last_state) = (state, terminated(5));
        simulation.converge();
        let last = simulation.reported("web").last_state.terminated.as_ref();
        assert_eq!(last.unwrap().exit_code, expected);
    }
}

/// Checks K10: an init container in backoff has begun, one that is not due has not.
#[test]
fn begun_init_containers_of_a_deleted_pod_are_terminated() {
    let mut simulation = converged("Always", &["first", "second"], &["web"]);
    for _ in 0..2 {
        simulation.exit("first", 1);
        simulation.converge();
    }
    assert!(
        simulation.reported("first").state.waiting.is_some(),
        "it is in backoff"
    );
    simulation.world.sandboxes.clear();
    simulation.delete(30);
    simulation.execute_until_final_status();
    let first = simulation
        .reported("first")
        .state
        .terminated
        .clone()
        .unwrap();
    let message = "The container could not be located when the pod was terminated";
    assert_eq!((first.exit_code, first.message.as_str()), (137, message));
    assert!(simulation.reported("second").state.waiting.is_some());
}

#[test]
fn a_condition_changes_its_time_only_with_its_status() {
    let mut simulation = converged("Always", &["first"], &["web"]);
    let ready = |simulation: &mut Simulation, kind: &str| {
        let conditions = &simulation.pod().status.conditions;
        condition::get(conditions, kind).unwrap().clone()
    };
    let began = simulation.world.now;
    let initialized = ready(&mut simulation, "Initialized");
    assert_eq!(initialized.reason, "ContainersNotInitialized");
    simulation.advance(60);
    simulation.exit("first", 0);
    simulation.converge();
    let changed = ready(&mut simulation, "Initialized");
    assert_eq!(
        (changed.status.as_str(), changed.reason.as_str()),
        ("True", "")
    );
    assert_eq!(changed.last_transition_time, simulation.world.now.into());
    let scheduled = ready(&mut simulation, "PodScheduled");
    assert_eq!(scheduled.last_transition_time, began.into());
}

#[test]
fn a_pod_is_ready_once_its_readiness_gates_are_true() {
    let mut object = pod("Always", &[], &["web"]);
    let gate = "example.com/open";
    object.spec.readiness_gates = vec![PodReadinessGate {
        condition_type: gate.into(),
    }];
    let mut simulation = Simulation::of(object);
    let mut message = |open: &str| {
        if !open.is_empty() {
            let conditions = &mut simulation.pod().status.conditions;
            conditions.retain(|condition| condition.r#type != gate);
            conditions.push(PodCondition {
                r#type: gate.into(),
                status: open.into(),
                ..Default::default()
            });
        }
        simulation.converge();
        let conditions = &simulation.pod().status.conditions;
        let ready = condition::get(conditions, "Ready").unwrap();
        (ready.status.clone(), ready.message.clone())
    };
    let closed = |message: &str| ("False".to_owned(), message.to_owned());
    let missing =
        "corresponding condition of pod readiness gate \"example.com/open\" does not exist.";
    assert_eq!(message(""), closed(missing));
    let other = "the status of pod readiness gate \"example.com/open\" is not \"True\", but False";
    assert_eq!(message("False"), closed(other));
    assert_eq!(message("True"), ("True".to_owned(), String::new()));
}

#[test]
fn a_pod_has_converged_once_it_is_ready_terminal_or_gone() {
    let mut simulation = Simulation::of(pod("Never", &[], &["web"]));
    assert!(!simulation.world.has_converged(), "it is new");
    simulation.converge();
    assert!(simulation.world.has_converged(), "it is ready");
    simulation.exit("web", 1);
    assert!(
        simulation.world.has_converged(),
        "it has failed, reported or not"
    );
    simulation.converge();
    simulation.delete(30);
    assert!(!simulation.world.has_converged(), "it is being deleted");
    simulation.world.pod = None;
    assert!(!simulation.world.has_converged(), "its sandbox is left");
    simulation.world.sandboxes.clear();
    assert!(simulation.world.has_converged());
}

#[test]
fn the_last_two_attempts_at_a_restarted_container_are_kept() {
    let mut simulation = converged("Always", &[], &["web"]);
    for _ in 0..4 {
        simulation.exit("web", 1);
        let backoff = simulation.converge().map_or(0, |again| again.as_secs());
        simulation.advance(backoff);
        simulation.converge();
    }
    let attempts = simulation.world.sandboxes[0].containers.iter();
    let attempts: Vec<_> = attempts.map(|container| container.id.attempt).collect();
    assert_eq!(attempts, [3, 4]);
}

#[test]
fn a_planned_start_gives_the_reason_why_the_container_does_not_run() {
    let because = |simulation: &Simulation| plan(&simulation.world).steps.last().unwrap().because;
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.execute(Action::RunSandbox {
        ip: crate::simulation::IP,
    });
    assert_eq!(because(&simulation), "the container was never started");
    simulation.converge();
    simulation.exit("web", 1);
    let restarted = "the container ended and its restart policy applies";
    assert_eq!(because(&simulation), restarted);
    simulation.lose_sandbox();
    simulation.execute(Action::RunSandbox {
        ip: crate::simulation::IP,
    });
    let lost = "the container ended in a sandbox that is lost";
    assert_eq!(because(&simulation), lost);
}
