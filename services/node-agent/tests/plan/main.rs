//! The life of a Pod on paper: what is planned, what is reported, and what never happens.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod init;
#[path = "../support/play.rs"]
mod play;
mod status;

use std::time::Duration;

use play::{IP, Play, pod};
use setpoint_node_agent::{Action, Last, Shortage, Trouble, plan};

fn summary(phase: &str, ready: bool) -> (String, bool) {
    (phase.to_owned(), ready)
}

#[test]
fn a_simple_pod_is_running_and_ready_after_one_report() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    assert_eq!(play.settle(), None);
    assert_eq!(play.summary(), summary("Running", true));
    assert_eq!(play.reports, 1);
    let status = play.pod().status.clone();
    assert_eq!(
        (status.pod_ip, status.host_ip.as_str()),
        (IP.to_string(), "10.1.2.1")
    );
    assert_eq!(
        status.container_statuses[0].container_id,
        "fake://uid-1/web/0"
    );
    let kinds: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| condition.r#type.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled"
        ]
    );
}

/// Checks N1.
#[test]
fn a_crashing_container_is_restarted_at_once_and_then_ever_later() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    let mut rests = Vec::new();
    for count in 1..=7 {
        play.exit("web", 1);
        let again = play.settle().map_or(0, |again| again.as_secs());
        rests.push(again);
        play.pass(again);
        play.settle();
        assert_eq!(play.reported("web").restart_count, count);
        assert_eq!(
            play.reported("web")
                .last_state
                .terminated
                .as_ref()
                .unwrap()
                .exit_code,
            1
        );
    }
    assert_eq!(rests, [0, 10, 20, 40, 80, 160, 300]);
    play.pass(600);
    play.exit("web", 1);
    assert_eq!(play.settle(), None, "ten good minutes: at once again");
    assert_eq!(play.reported("web").restart_count, 8);
}

/// Checks N1.
#[test]
fn a_container_that_waits_for_its_restart_says_so_as_the_kubelet_does() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.exit("web", 1);
    play.settle();
    play.exit("web", 2);
    play.settle();
    let status = play.reported("web");
    let waiting = status.state.waiting.as_ref().unwrap();
    assert_eq!(waiting.reason, "CrashLoopBackOff");
    let message = "back-off 10s restarting failed container=web pod=web_default(uid-1)";
    assert_eq!(waiting.message, message);
    assert_eq!(status.last_state.terminated.as_ref().unwrap().exit_code, 2);
    assert_eq!((status.restart_count, status.ready), (1, false));
    assert_eq!(play.summary(), summary("Running", false));
}

/// Checks F41.
#[test]
fn a_clock_that_is_set_back_keeps_no_container_from_its_restart() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.exit("web", 1);
    play.settle();
    play.exit("web", 1);
    assert_eq!(play.settle(), Some(Duration::from_secs(10)));
    play.world.now -= Duration::from_secs(3600);
    assert_eq!(play.settle(), Some(Duration::from_secs(10)));
    play.pass(10);
    play.settle();
    assert_eq!(play.reported("web").restart_count, 2);
}

/// Checks N1.
#[test]
fn the_restart_policy_decides_whether_an_end_is_the_end() {
    let outcome = |policy: &str, code| {
        let mut play = Play::of(pod(policy, &[], &["web"]));
        play.settle();
        play.exit("web", code);
        play.settle();
        (play.summary().0, play.reported("web").restart_count)
    };
    assert_eq!(outcome("Always", 0), ("Running".into(), 1));
    assert_eq!(outcome("Always", 1), ("Running".into(), 1));
    assert_eq!(outcome("OnFailure", 0), ("Succeeded".into(), 0));
    assert_eq!(outcome("OnFailure", 1), ("Running".into(), 1));
    assert_eq!(outcome("Never", 0), ("Succeeded".into(), 0));
    assert_eq!(outcome("Never", 1), ("Failed".into(), 0));
}

/// Checks N4.
#[test]
fn a_deleted_pod_stops_within_its_grace_and_then_its_object_goes() {
    let mut play = Play::of(pod("Always", &[], &["web", "log"]));
    play.settle();
    play.done.clear();
    play.delete(30);
    play.settle();
    let graces = play.done.iter().filter_map(|action| match action {
        Action::Stop { grace, .. } => Some(grace.as_secs()),
        _ => None,
    });
    assert_eq!(graces.collect::<Vec<_>>(), [30, 30]);
    play.exit("web", 0);
    play.settle();
    assert!(play.world.pod.is_some(), "one container still runs");
    play.exit("log", 137);
    play.settle_gone();
    assert!(matches!(
        &play.done[2..],
        [Action::Report, Action::RemoveSandbox(_), Action::Delete]
    ));
}

/// How a Pod was last reported when its object went: its phase, and of each container the reason and code of its end.
fn last_words(mut play: Play) -> (String, Vec<(String, i32)>) {
    let next = |play: &Play| plan(&play.world).steps.into_iter().next();
    for _ in 0..16 {
        match next(&play).map(|step| step.action) {
            None | Some(Action::Delete) => break,
            Some(action) => play.carry_out(action),
        }
    }
    let status = &play.pod().status;
    let ends = status.container_statuses.iter().map(|container| {
        let state = &container.state;
        assert!(state.running.is_none() && state.waiting.is_none());
        let end = state.terminated.clone().unwrap();
        (end.reason, end.exit_code)
    });
    (status.phase.clone(), ends.collect())
}

/// Checks K10.
#[test]
fn the_last_version_of_a_deleted_pod_says_how_it_ended() {
    let deleted = |codes: [i32; 2]| {
        let mut play = Play::of(pod("Always", &[], &["web", "log"]));
        play.settle();
        play.delete(30);
        play.settle();
        play.exit("web", codes[0]);
        play.exit("log", codes[1]);
        last_words(play)
    };
    let end = |reason: &str, code| (reason.to_owned(), code);
    let done = end("Completed", 0);
    assert_eq!(
        deleted([0, 0]),
        ("Succeeded".into(), vec![done.clone(), done.clone()])
    );
    assert_eq!(
        deleted([0, 137]),
        ("Failed".into(), vec![done, end("Error", 137)])
    );
}

/// Checks K10.
#[test]
fn a_pod_that_is_deleted_before_it_ran_never_looks_like_one_that_succeeded() {
    let mut play = Play::of(pod("Never", &[], &["web"]));
    play.delete(30);
    let (phase, ends) = last_words(play);
    let unknown = ("ContainerStatusUnknown".to_owned(), 137);
    assert_eq!((phase.as_str(), ends), ("Failed", vec![unknown]));

    let mut play = Play::of(pod("Never", &["init"], &["web"]));
    play.settle();
    play.delete(30);
    play.settle();
    play.exit("init", 1);
    play.settle_to_the_last_report();
    let status = &play.pod().status;
    assert_eq!(status.phase, "Failed");
    let web = &status.container_statuses[0].state;
    assert!(
        web.waiting.is_some() && web.terminated.is_none(),
        "a container never began: {web:?}"
    );
}

/// Checks F7.
#[test]
fn a_pod_past_its_deadline_is_stopped_and_failed_in_the_kubelets_words() {
    let mut object = pod("Always", &[], &["web"]);
    object.spec.active_deadline_seconds = Some(5);
    let mut play = Play::of(object);
    play.settle();
    play.pass(3);
    assert_eq!(play.settle(), Some(Duration::from_secs(2)));
    play.pass(2);
    play.settle();
    assert_eq!(
        play.summary().0,
        "Running",
        "its containers are still stopping"
    );
    assert!(matches!(play.done.last(), Some(Action::Stop { .. })));
    play.exit("web", 0);
    assert_eq!(play.settle(), None);
    let status = play.pod().status.clone();
    assert_eq!(
        (
            status.phase.as_str(),
            status.reason.as_str(),
            status.message.as_str()
        ),
        (
            "Failed",
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline"
        )
    );
    let starts = play
        .done
        .iter()
        .filter(|action| matches!(action, Action::Start { .. }));
    assert_eq!(starts.count(), 1, "nothing is started again");
}

/// Checks F1 and F7.
#[test]
fn a_deadline_of_any_length_is_planned() {
    let phase = |seconds| {
        let mut object = pod("Always", &[], &["web"]);
        object.spec.active_deadline_seconds = Some(seconds);
        let mut play = Play::of(object);
        play.pod().status.start_time = Some(play.world.now.into());
        play.settle();
        play.summary().0
    };
    assert_eq!([phase(i64::MAX), phase(i64::MIN)], ["Running", "Failed"]);
}

/// Checks N4.
#[test]
fn a_second_delete_with_less_grace_is_heard() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.delete(3600);
    play.settle();
    play.pass(5);
    play.delete(2);
    play.settle();
    let last = play.done.last().unwrap();
    assert!(
        matches!(last, Action::Stop { grace, .. } if *grace == Duration::from_secs(2)),
        "{last:?}"
    );
}

/// Checks F1 and K11.
#[test]
fn a_grace_of_any_length_is_planned_and_a_negative_one_is_a_second() {
    let planned = |grace: i64| {
        let mut play = Play::of(pod("Always", &[], &["web"]));
        play.settle();
        play.delete(grace);
        play.settle();
        match play.done.pop() {
            Some(Action::Stop { grace, .. }) => grace,
            other => panic!("{other:?}"),
        }
    };
    assert!(planned(i64::MAX) > Duration::from_secs(1 << 37));
    assert_eq!(planned(5), Duration::from_secs(5));
    for negative in [-1, i64::MIN] {
        assert!(planned(negative) <= Duration::from_secs(1), "{negative}");
    }
}

/// Checks F1 and K11.
#[test]
fn a_sandbox_that_is_lost_gives_its_containers_any_grace() {
    let planned = |grace: i64| {
        let mut play = Play::of(pod("Always", &[], &["web"]));
        play.pod().spec.termination_grace_period_seconds = Some(grace);
        play.settle();
        play.lose_sandbox();
        play.settle();
        match play.done.pop() {
            Some(Action::Stop { grace, .. }) => grace.as_secs(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(planned(i64::MAX), i64::MAX.unsigned_abs());
    assert_eq!([planned(-7), planned(0), planned(7)], [1, 1, 7]);
}

/// Checks N4.
#[test]
fn a_pod_that_is_forced_away_leaves_nothing_running() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.world.pod = None;
    let steps = plan(&play.world).steps;
    assert!(matches!(&steps[0].action, Action::Stop { .. }));
    play.exit("web", 137);
    play.settle_gone();
    assert!(play.world.sandboxes.is_empty());
}

#[test]
fn a_deleted_pod_with_finalizers_says_how_it_ended_and_is_deleted_once() {
    let mut object = pod("Always", &[], &["web"]);
    object.metadata.finalizers = vec!["batch.kubernetes.io/job-tracking".into()];
    let mut play = Play::of(object);
    play.settle();
    play.delete(30);
    play.settle();
    play.exit("web", 0);
    play.settle();
    assert_eq!(play.summary().0, "Succeeded");
    assert_eq!(
        play.done
            .iter()
            .filter(|action| **action == Action::Delete)
            .count(),
        1
    );
}

/// Checks N3.
#[test]
fn a_pod_waits_until_the_one_that_had_its_name_is_gone() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.pod().metadata.uid = "uid-2".into();
    play.pod().status = pod("Always", &[], &[]).status;
    play.done.clear();
    let steps = plan(&play.world).steps;
    assert!(matches!(steps.as_slice(), [step] if matches!(step.action, Action::Stop { .. })));
    play.exit("web", 0);
    let steps = plan(&play.world).steps;
    assert!(
        matches!(steps.as_slice(), [step] if step.action == Action::RemoveSandbox("uid-1".into()))
    );
}

/// Checks N8.
#[test]
fn a_pod_that_does_not_fit_is_rejected_with_a_reason() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.world.pod.as_mut().unwrap().admission = Err(Shortage {
        resource: "cpu",
        requested: 500,
        used: 3600,
        capacity: 4000,
    });
    play.settle();
    let status = play.pod().status.clone();
    assert_eq!(
        (status.phase.as_str(), status.reason.as_str()),
        ("Failed", "OutOfcpu")
    );
    let message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 3600, capacity: 4000";
    assert_eq!(status.message, message);
    assert_eq!(status.observed_generation, 1);
    assert_eq!(status.start_time, Some(play.world.now.into()));
    assert!(play.done.is_empty());
}

#[test]
fn a_container_that_cannot_be_configured_says_why() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.add_sandbox("uid-1", IP);
    let (reason, message) = (
        "CreateContainerConfigError",
        "configmap \"x\" not found".to_owned(),
    );
    play.world
        .troubles
        .insert("web".into(), Trouble { reason, message });
    let status = setpoint_node_agent::status(&play.world).unwrap();
    let waiting = status.container_statuses[0].state.waiting.clone().unwrap();
    assert_eq!(
        (waiting.reason.as_str(), waiting.message.as_str()),
        (reason, "configmap \"x\" not found")
    );
    assert_eq!(status.phase, "Pending");
}

/// Checks N2.
#[test]
fn a_runtime_that_forgot_everything_counts_as_a_restart() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.world.sandboxes.clear();
    play.settle();
    assert_eq!(play.summary(), summary("Running", true));
    let status = play.reported("web");
    assert_eq!(status.restart_count, 1);
    let last = status.last_state.terminated.as_ref().unwrap();
    assert_eq!(
        (last.exit_code, last.reason.as_str()),
        (137, "ContainerStatusUnknown")
    );
}

#[test]
fn a_container_that_was_forgotten_is_lost_however_it_ended_before() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.settle();
    play.exit("web", 0);
    play.settle();
    play.world.sandboxes.clear();
    let last = play.world.past("web").last;
    assert!(
        matches!(last, Last::Ended(ended) if ended.code == 137),
        "{last:?}"
    );
}

/// Checks N5.
#[test]
fn a_pod_that_was_reported_to_run_is_never_pending_again() {
    let mut play = Play::of(pod("Always", &[], &["web"]));
    play.pod().status.phase = "Running".into();
    let status = setpoint_node_agent::status(&play.world).unwrap();
    assert!(status.container_statuses[0].state.waiting.is_some());
    assert_eq!(status.phase, "Running");
}

/// Checks N2.
#[test]
fn a_pod_that_has_ended_is_never_started_again() {
    let mut play = Play::of(pod("Never", &[], &["web"]));
    play.settle();
    play.exit("web", 0);
    play.settle();
    play.world.sandboxes.clear();
    play.done.clear();
    play.settle();
    assert!(play.done.is_empty());
    assert_eq!(play.summary().0, "Succeeded");
}

impl Play {
    /// Carries out what is planned up to the last report.
    fn settle_to_the_last_report(&mut self) {
        for _ in 0..16 {
            let step = plan(&self.world).steps.remove(0);
            let reported = step.action == Action::Report;
            self.carry_out(step.action);
            if reported {
                return;
            }
        }
        panic!("nothing is reported: {:?}", self.done);
    }

    /// Settles a Pod that goes away with it.
    fn settle_gone(&mut self) {
        self.settle();
        assert!(self.world.pod.is_none() && self.world.sandboxes.is_empty());
    }
}
