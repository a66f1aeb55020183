//! Init containers and sidecars: in their turn, and again in a sandbox that is made anew.

use setpoint_model::condition;

use crate::play::{Play, pod};
use crate::summary;

#[test]
fn init_containers_run_one_by_one_before_the_others() {
    let mut play = Play::of(pod("Always", &["first", "second"], &["web"]));
    play.settle();
    assert_eq!(play.summary(), summary("Pending", false));
    let initialized = condition::get(&play.pod().status.conditions, "Initialized")
        .unwrap()
        .clone();
    assert_eq!(
        initialized.message,
        "containers with incomplete status: [first second]"
    );
    play.exit("first", 1);
    play.settle();
    assert_eq!(play.reported("first").restart_count, 1);
    play.exit("first", 0);
    play.settle();
    assert_eq!(
        play.reported("web").state.waiting.as_ref().unwrap().reason,
        "PodInitializing"
    );
    play.exit("second", 0);
    play.settle();
    assert_eq!(play.summary(), summary("Running", true));
}

#[test]
fn a_new_sandbox_is_prepared_as_the_first_was() {
    let mut play = Play::of(pod("OnFailure", &["first", "second"], &["web"]));
    play.settle();
    play.exit("first", 0);
    play.settle();
    play.exit("second", 0);
    play.settle();
    assert_eq!(play.summary(), summary("Running", true));
    play.lose_sandbox();
    play.settle();
    play.exit("web", 137);
    play.settle();
    assert_eq!(play.reported("first").restart_count, 1);
    assert!(play.reported("first").state.running.is_some());
    assert!(play.reported("web").state.running.is_none());
    let initialized = condition::get(&play.pod().status.conditions, "Initialized").unwrap();
    assert_eq!(initialized.status, "False");
    play.exit("first", 0);
    play.settle();
    play.exit("second", 0);
    play.settle();
    assert_eq!(play.reported("second").restart_count, 1);
    assert_eq!(play.reported("web").restart_count, 1);
    assert_eq!(play.summary(), summary("Running", true));
}

#[test]
fn a_pod_that_never_restarts_ends_with_its_sandbox() {
    for init in [&[][..], &["first"]] {
        let mut play = Play::of(pod("Never", init, &["web"]));
        play.settle();
        play.lose_sandbox();
        play.settle();
        play.exit("first", 137);
        play.exit("web", 137);
        play.done.clear();
        play.settle();
        assert_eq!(play.summary().0, "Failed");
        assert_eq!(play.done, []);
    }
}

#[test]
fn a_failed_init_container_of_a_pod_that_never_restarts_is_its_end() {
    let mut play = Play::of(pod("Never", &["first"], &["web"]));
    play.settle();
    play.exit("first", 1);
    play.settle();
    assert_eq!(play.summary(), summary("Failed", false));
}

#[test]
fn a_sidecar_starts_in_its_turn_and_stays() {
    let mut object = pod("Always", &["sidecar", "migrate"], &["web"]);
    object.spec.init_containers[0].restart_policy = Some("Always".into());
    let mut play = Play::of(object);
    play.settle();
    assert!(play.reported("migrate").state.running.is_some());
    play.exit("migrate", 0);
    play.settle();
    assert_eq!(play.summary(), summary("Running", true));
    play.exit("sidecar", 0);
    play.settle();
    assert_eq!(play.reported("sidecar").restart_count, 1);
    play.exit("sidecar", 1);
    play.exit("web", 1);
    play.settle();
    assert!(play.reported("sidecar").state.waiting.is_some(), "it rests");
    assert_eq!(
        play.reported("web").restart_count,
        1,
        "the others do not wait for it"
    );
}
