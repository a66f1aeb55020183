//! The plane as text: scripts of commands, and what the plane does in answer, as the expected text.
//!
//! Each script is a story in `tests/scripts/<name>.txt`. It runs on the gateway over a store in memory, with the real
//! controllers and the real scheduler, and with a kubelet of a few lines; in one thread, in paused time, and with
//! repeatable random numbers. So the text is the same in each run. With `UPDATE_EXPECT=1` the expected text is replaced
//! by what happened.
//!
//! ```text
//! # A comment, which tells the story.
//! > create deployment web replicas=2
//!   write  user: create deployment web
//!
//! > stabilize
//!   plan   deployment-controller for deployment web (after user): Create web-… because …
//!   write  deployment-controller: create replicaset web-…
//! ```
//! `tests/README.md` lists the commands.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod command;
mod kubelet;
mod objects;
mod plane;
mod print;
mod script;

/// Makes a test of each script, and a test that none is missing here.
macro_rules! scripts {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                script::check(stringify!($name));
            }
        )*

        #[test]
        fn every_script_is_a_test() {
            assert_eq!(script::names(), [$(stringify!($name)),*]);
        }
    };
}

scripts! {
    apply_and_converge
    crash_between_creates
    crash_in_rollout
    crash_in_statefulset_update
    daemonset_new_node
    deleted_pod_comes_back
    expired_watch
    failover
    fenced_write
    fight_over_field
    frozen_leader
    invalid_write
    job_backoff
    job_completes
    lagging_cache
    lost_answer
    missed_event
    name_collision
    namespace_deletion
    node_failure
    owner_deletion_background
    owner_deletion_foreground
    owner_deletion_orphan
    paused_rollout
    preemption
    quota
    recreate
    release_and_adoption
    rollback
    rollout_within_surge
    scale_down
    scale_up
    stale_write
    statefulset_order
    statefulset_update
    two_managers
    unschedulable_pod
}
