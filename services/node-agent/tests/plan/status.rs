//! What is reported of containers, and the conditions of their Pod.

use setpoint_model::condition;
use setpoint_node_agent::runtime::{Exit, State};
use setpoint_node_agent::{Action, plan, status};
use setpoint_proto::core::{
    ContainerState, ContainerStateTerminated, PodCondition, PodReadinessGate,
};

use crate::play::{Play, pod};
use crate::summary;

fn settled(policy: &str, init: &[&str], main: &[&str]) -> Play {
    let mut play = Play::of(pod(policy, init, main));
    play.settle();
    play
}

#[test]
fn a_running_container_is_reported_with_its_image() {
    let mut play = settled("Always", &[], &["web"]);
    let web = play.reported("web");
    assert_eq!((web.ready, web.started), (true, Some(true)));
    let image = (web.image.as_str(), web.image_id.as_str());
    assert_eq!(image, ("nginx:1.25", "fake://nginx:1.25"));
    play.world.sandboxes[0].containers[0].image_id = "sha256:5be0".into();
    play.settle();
    assert_eq!(play.reported("web").image_id, "fake://sha256:5be0");
}

#[test]
fn a_pod_is_reported_with_its_node_and_its_generation() {
    let mut play = settled("Always", &[], &["web"]);
    let status = play.pod().status.clone();
    let hosts: Vec<_> = status.host_ips.iter().map(|host| &*host.ip).collect();
    assert_eq!((hosts, status.observed_generation), (vec!["10.1.2.1"], 1));
    let mut generations = status.conditions.iter().map(|one| one.observed_generation);
    assert!(generations.all(|generation| generation == 1));
}

#[test]
fn a_container_that_has_not_begun_waits_for_what_is_done_first() {
    for (init, reason) in [
        (&[][..], "ContainerCreating"),
        (&["first"], "PodInitializing"),
    ] {
        let play = Play::of(pod("Always", init, &["web"]));
        let web = status(&play.world).unwrap().container_statuses.remove(0);
        assert_eq!(web.state.waiting.unwrap().reason, reason);
        assert_eq!(
            (web.image.as_str(), web.started),
            ("nginx:1.25", Some(false))
        );
    }
}

#[test]
fn the_end_of_a_container_is_reported_with_its_times_and_its_last_words() {
    let mut play = settled("Never", &[], &["web"]);
    let began = play.world.now;
    play.pass(5);
    let exit = Exit {
        message: "out of disk".into(),
        ..Exit::new(3, began, play.world.now)
    };
    play.world.sandboxes[0].containers[0].state = State::Exited(exit);
    play.settle();
    let web = play.reported("web");
    assert_eq!((web.ready, web.started), (false, Some(false)));
    let expected = ContainerStateTerminated {
        exit_code: 3,
        reason: "Error".into(),
        message: "out of disk".into(),
        started_at: began.into(),
        finished_at: play.world.now.into(),
        container_id: "fake://uid-1/web/0".into(),
        ..Default::default()
    };
    assert_eq!(web.state.terminated, Some(expected));
}

#[test]
fn an_init_container_that_succeeded_is_ready_and_a_container_that_did_is_not() {
    let mut play = settled("OnFailure", &["first"], &["web", "log"]);
    play.exit("first", 1);
    play.settle();
    play.exit("first", 1);
    play.settle();
    assert!(!play.reported("first").ready, "it failed");
    play.pass(10);
    play.settle();
    play.exit("first", 0);
    play.settle();
    assert!(play.reported("first").ready);
    play.exit("web", 0);
    play.settle();
    assert!(play.reported("web").state.terminated.is_some());
    assert!(!play.reported("web").ready);
}

/// Checks N2.
#[test]
fn a_container_that_its_runtime_forgot_is_reported_as_lost() {
    let mut play = settled("Never", &[], &["web"]);
    let began = play.world.now;
    play.pass(5);
    play.world.sandboxes.clear();
    let web = status(&play.world).unwrap().container_statuses.remove(0);
    let expected = ContainerStateTerminated {
        exit_code: 137,
        reason: "ContainerStatusUnknown".into(),
        message: "The container could not be located: its runtime has forgotten it".into(),
        started_at: began.into(),
        finished_at: play.world.now.into(),
        container_id: "fake://uid-1/web/0".into(),
        ..Default::default()
    };
    assert_eq!(web.state.terminated, Some(expected));
}

/// Checks N2: its init containers do not run again either.
#[test]
fn a_pod_that_never_restarts_ends_when_its_runtime_forgets_it() {
    let mut play = settled("Never", &["first"], &["web"]);
    play.exit("first", 0);
    play.settle();
    play.world.sandboxes.clear();
    play.done.clear();
    play.settle();
    assert_eq!(play.summary(), summary("Failed", false));
    let started = |action: &Action| matches!(action, Action::Start { .. });
    assert!(!play.done.iter().any(started), "{:?}", play.done);
}

/// The attempt before the newest, which the runtime no longer has, is reported as it was last seen.
#[test]
fn the_attempt_before_is_taken_from_the_last_report() {
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
        let mut play = settled("Always", &[], &["web"]);
        play.world.sandboxes[0].containers[0].id.attempt = 1;
        let reported = &mut play.pod().status.container_statuses[0];
        (reported.state, reported.last_state) = (state, terminated(5));
        play.settle();
        let last = play.reported("web").last_state.terminated.as_ref();
        assert_eq!(last.unwrap().exit_code, expected);
    }
}

/// Checks K10: an init container that rests has begun, and one that is still to come has not.
#[test]
fn of_init_containers_of_a_deleted_pod_those_that_began_are_ended() {
    let mut play = settled("Always", &["first", "second"], &["web"]);
    for _ in 0..2 {
        play.exit("first", 1);
        play.settle();
    }
    assert!(play.reported("first").state.waiting.is_some(), "it rests");
    play.world.sandboxes.clear();
    play.delete(30);
    play.settle_to_the_last_report();
    let first = play.reported("first").state.terminated.clone().unwrap();
    let message = "The container could not be located when the pod was terminated";
    assert_eq!((first.exit_code, first.message.as_str()), (137, message));
    assert!(play.reported("second").state.waiting.is_some());
}

#[test]
fn a_condition_changes_its_time_only_with_its_status() {
    let mut play = settled("Always", &["first"], &["web"]);
    let ready = |play: &mut Play, kind: &str| {
        let conditions = &play.pod().status.conditions;
        condition::get(conditions, kind).unwrap().clone()
    };
    let began = play.world.now;
    let initialized = ready(&mut play, "Initialized");
    assert_eq!(initialized.reason, "ContainersNotInitialized");
    play.pass(60);
    play.exit("first", 0);
    play.settle();
    let changed = ready(&mut play, "Initialized");
    assert_eq!(
        (changed.status.as_str(), changed.reason.as_str()),
        ("True", "")
    );
    assert_eq!(changed.last_transition_time, play.world.now.into());
    let scheduled = ready(&mut play, "PodScheduled");
    assert_eq!(scheduled.last_transition_time, began.into());
}

#[test]
fn a_pod_is_ready_once_others_have_opened_its_gates() {
    let mut object = pod("Always", &[], &["web"]);
    let gate = "example.com/open";
    object.spec.readiness_gates = vec![PodReadinessGate {
        condition_type: gate.into(),
    }];
    let mut play = Play::of(object);
    let mut message = |open: &str| {
        if !open.is_empty() {
            let conditions = &mut play.pod().status.conditions;
            conditions.retain(|condition| condition.r#type != gate);
            conditions.push(PodCondition {
                r#type: gate.into(),
                status: open.into(),
                ..Default::default()
            });
        }
        play.settle();
        let conditions = &play.pod().status.conditions;
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
fn a_pod_is_settled_once_it_is_ready_ended_or_gone() {
    let mut play = Play::of(pod("Never", &[], &["web"]));
    assert!(!play.world.is_settled(), "it is new");
    play.settle();
    assert!(play.world.is_settled(), "it is ready");
    play.exit("web", 1);
    assert!(play.world.is_settled(), "it has failed, reported or not");
    play.settle();
    play.delete(30);
    assert!(!play.world.is_settled(), "it is being deleted");
    play.world.pod = None;
    assert!(!play.world.is_settled(), "its sandbox is left");
    play.world.sandboxes.clear();
    assert!(play.world.is_settled());
}

#[test]
fn of_a_container_that_was_restarted_the_last_two_attempts_are_kept() {
    let mut play = settled("Always", &[], &["web"]);
    for _ in 0..4 {
        play.exit("web", 1);
        let rest = play.settle().map_or(0, |again| again.as_secs());
        play.pass(rest);
        play.settle();
    }
    let attempts = play.world.sandboxes[0].containers.iter();
    let attempts: Vec<_> = attempts.map(|container| container.id.attempt).collect();
    assert_eq!(attempts, [3, 4]);
}

#[test]
fn a_start_says_why_the_container_did_not_run() {
    let because = |play: &Play| plan(&play.world).steps.last().unwrap().because;
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.carry_out(Action::RunSandbox { ip: crate::IP });
    assert_eq!(because(&play), "the container was never started");
    play.settle();
    play.exit("web", 1);
    let restarted = "the container ended, and its policy is to restart it";
    assert_eq!(because(&play), restarted);
    play.lose_sandbox();
    play.carry_out(Action::RunSandbox { ip: crate::IP });
    let lost = "the container ended in a sandbox that is lost";
    assert_eq!(because(&play), lost);
}
