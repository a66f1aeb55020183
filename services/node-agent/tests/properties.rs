//! What holds in every life of a Pod, whatever happens to it and in whatever order.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "support/play.rs"]
mod play;

use play::{Play, pod};
use proptest::prelude::*;
use setpoint_node_agent::{Action, plan};

#[derive(Clone, Debug)]
enum Happening {
    Exit(usize, i32),
    Pass(u64),
    Forget,
    LoseSandbox,
    Delete(i64),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        6 => (0..3_usize, prop_oneof![Just(0), Just(1), Just(137)]).prop_map(|(who, code)| Happening::Exit(who, code)),
        3 => (0..700_u64).prop_map(Happening::Pass),
        1 => Just(Happening::Forget),
        1 => Just(Happening::LoseSandbox),
        1 => prop_oneof![0..60_i64, Just(i64::MIN), Just(i64::MAX)].prop_map(Happening::Delete),
    ];
    proptest::collection::vec(one, 0..25)
}

const NAMES: [&str; 3] = ["init", "web", "log"];

proptest! {
    /// Checks N5.
    #[test]
    fn whatever_happens_a_pod_only_moves_forward(
        policy in prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")],
        happenings in happenings(),
    ) {
        let mut play = Play::of(pod(policy, &["init"], &["web", "log"]));
        play.settle();
        for happening in happenings {
            let before = play.pod().status.clone();
            match happening {
                Happening::Exit(who, code) => play.exit(NAMES[who], code),
                Happening::Pass(seconds) => play.pass(seconds),
                Happening::Forget => play.world.sandboxes.clear(),
                Happening::LoseSandbox => play.lose_sandbox(),
                Happening::Delete(grace) => play.delete(grace),
            }
            play.settle();
            if play.world.pod.is_none() {
                prop_assert!(play.world.sandboxes.is_empty());
                break;
            }
            let after = play.pod().status.clone();
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

    /// A plan is carried out in its order, but a crash may come between any two of its steps.
    #[test]
    fn a_crash_between_any_two_actions_ends_in_the_same_state(cut in 0..6_usize) {
        let mut play = Play::of(pod("Always", &[], &["web", "log"]));
        let mut left = cut;
        while left > 0 {
            let steps = plan(&play.world).steps;
            let Some(step) = steps.into_iter().next() else { break };
            play.carry_out(step.action);
            left -= 1;
        }
        play.settle();
        prop_assert_eq!(play.summary(), ("Running".to_owned(), true));
        let starts = play.done.iter().filter(|action| matches!(action, Action::Start { .. }));
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
