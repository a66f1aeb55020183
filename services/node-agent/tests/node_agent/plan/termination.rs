//! Termination of Pods: deletion, grace periods and deadlines.

use std::time::Duration;

use setpoint_node_agent::{Action, plan};

use crate::simulation::{Simulation, pod};

/// Checks N4.
#[test]
fn a_deleted_pod_stops_within_its_grace_period_before_its_object_is_deleted() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web", "log"]));
    simulation.converge();
    simulation.done.clear();
    simulation.delete(30);
    simulation.converge();
    let graces = simulation.done.iter().filter_map(|action| match action {
        Action::Stop { grace, .. } => Some(grace.as_secs()),
        _ => None,
    });
    assert_eq!(graces.collect::<Vec<_>>(), [30, 30]);
    simulation.exit("web", 0);
    simulation.converge();
    assert!(simulation.world.pod.is_some(), "one container still runs");
    simulation.exit("log", 137);
    simulation.converge_until_gone();
    assert!(matches!(
        &simulation.done[2..],
        [
            Action::UpdateStatus,
            Action::RemoveSandbox(_),
            Action::Delete
        ]
    ));
}

/// Returns the status of a Pod at its deletion: its phase, and the reason and exit code of each container.
fn final_status(mut simulation: Simulation) -> (String, Vec<(String, i32)>) {
    let next = |simulation: &Simulation| plan(&simulation.world).steps.into_iter().next();
    for _ in 0..16 {
        match next(&simulation).map(|step| step.action) {
            None | Some(Action::Delete) => break,
            Some(action) => simulation.execute(action),
        }
    }
    let status = &simulation.pod().status;
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
fn the_last_version_of_a_deleted_pod_has_the_ends_of_its_containers() {
    let deleted = |codes: [i32; 2]| {
        let mut simulation = Simulation::of(pod("Always", &[], &["web", "log"]));
        simulation.converge();
        simulation.delete(30);
        simulation.converge();
        simulation.exit("web", codes[0]);
        simulation.exit("log", codes[1]);
        final_status(simulation)
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
fn a_pod_that_is_deleted_before_it_ran_never_succeeds() {
    let mut simulation = Simulation::of(pod("Never", &[], &["web"]));
    simulation.delete(30);
    let (phase, ends) = final_status(simulation);
    let unknown = ("ContainerStatusUnknown".to_owned(), 137);
    assert_eq!((phase.as_str(), ends), ("Failed", vec![unknown]));

    let mut simulation = Simulation::of(pod("Never", &["init"], &["web"]));
    simulation.converge();
    simulation.delete(30);
    simulation.converge();
    simulation.exit("init", 1);
    simulation.execute_until_final_status();
    let status = &simulation.pod().status;
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
    let mut simulation = Simulation::of(object);
    simulation.converge();
    simulation.advance(3);
    assert_eq!(simulation.converge(), Some(Duration::from_secs(2)));
    simulation.advance(2);
    simulation.converge();
    assert_eq!(
        simulation.summary().0,
        "Running",
        "its containers are still stopping"
    );
    assert!(matches!(simulation.done.last(), Some(Action::Stop { .. })));
    simulation.exit("web", 0);
    assert_eq!(simulation.converge(), None);
    let status = simulation.pod().status.clone();
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
    let starts = simulation
        .done
        .iter()
        .filter(|action| matches!(action, Action::Start { .. }));
    assert_eq!(starts.count(), 1, "nothing is started again");
}

/// Checks F7.
#[test]
fn a_deadline_that_is_set_later_counts_from_the_start_of_the_pod() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.advance(10);
    simulation.pod().spec.active_deadline_seconds = Some(30);
    assert_eq!(simulation.converge().map(|wait| wait.as_secs()), Some(20));
    simulation.pod().spec.active_deadline_seconds = Some(5);
    simulation.converge();
    simulation.exit("web", 143);
    simulation.converge();
    let status = &simulation.pod().status;
    assert_eq!(
        (status.phase.as_str(), status.reason.as_str()),
        ("Failed", "DeadlineExceeded")
    );
}

/// Checks F1 and F7.
#[test]
fn a_deadline_of_any_length_is_planned() {
    let phase = |seconds| {
        let mut object = pod("Always", &[], &["web"]);
        object.spec.active_deadline_seconds = Some(seconds);
        let mut simulation = Simulation::of(object);
        simulation.pod().status.start_time = Some(simulation.world.now.into());
        simulation.converge();
        simulation.summary().0
    };
    assert_eq!([phase(i64::MAX), phase(i64::MIN)], ["Running", "Failed"]);
}

/// Checks N4.
#[test]
fn a_second_delete_with_a_shorter_grace_period_is_honored() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.delete(3600);
    simulation.converge();
    simulation.advance(5);
    simulation.delete(2);
    simulation.converge();
    let last = simulation.done.last().unwrap();
    assert!(
        matches!(last, Action::Stop { grace, .. } if *grace == Duration::from_secs(2)),
        "{last:?}"
    );
}

/// Checks F1 and K11.
#[test]
fn a_grace_period_of_any_length_is_planned_and_a_negative_one_is_a_second() {
    let planned = |grace: i64| {
        let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
        simulation.converge();
        simulation.delete(grace);
        simulation.converge();
        match simulation.done.pop() {
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
fn containers_of_a_lost_sandbox_get_any_termination_grace_period() {
    let planned = |grace: i64| {
        let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
        simulation.pod().spec.termination_grace_period_seconds = Some(grace);
        simulation.converge();
        simulation.lose_sandbox();
        simulation.converge();
        match simulation.done.pop() {
            Some(Action::Stop { grace, .. }) => grace.as_secs(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(planned(i64::MAX), i64::MAX.unsigned_abs());
    assert_eq!([planned(-7), planned(0), planned(7)], [1, 1, 7]);
}

/// Checks N4 and N6: so an agent that was away for long does not keep Pods that were deleted meanwhile.
#[test]
fn containers_of_a_pod_that_is_gone_are_stopped() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.world.pod = None;
    let steps = plan(&simulation.world).steps;
    assert!(matches!(&steps[0].action, Action::Stop { .. }));
    simulation.exit("web", 137);
    simulation.converge_until_gone();
    assert!(simulation.world.sandboxes.is_empty());
}

#[test]
fn a_deleted_pod_with_finalizers_reports_its_end_and_is_deleted_once() {
    let mut object = pod("Always", &[], &["web"]);
    object.metadata.finalizers = vec!["batch.kubernetes.io/job-tracking".into()];
    let mut simulation = Simulation::of(object);
    simulation.converge();
    simulation.delete(30);
    simulation.converge();
    simulation.exit("web", 0);
    simulation.converge();
    assert_eq!(simulation.summary().0, "Succeeded");
    assert_eq!(
        simulation
            .done
            .iter()
            .filter(|action| **action == Action::Delete)
            .count(),
        1
    );
}
