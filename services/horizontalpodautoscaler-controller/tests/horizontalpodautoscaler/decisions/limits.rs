//! Stabilization, policies and bounds, with the cases of upstream's `horizontal_test.go`.

use std::time::Duration;

use setpoint_horizontalpodautoscaler_controller::{
    Behavior, History, Limits, MAX_RECOMMENDATIONS, MAX_SCALE_EVENTS, Policy, PolicyKind, Rules,
    Select,
};

use crate::decisions::fixture::{ago, now};

const HOUR: Duration = Duration::from_secs(3_600);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn limits<'a>(
    current: i32,
    (min, max): (i32, i32),
    behavior: Option<&'a Behavior>,
    history: &'a History,
) -> Limits<'a> {
    Limits {
        current,
        min,
        max,
        behavior,
        window: seconds(300),
        history,
        now: now(),
    }
}

/// Returns rules of a number of Pods within a period, and of a percentage within another; 0 for none.
fn rules(pods: i32, pods_period: u64, percent: i32, percent_period: u64, window: u64) -> Rules {
    let policy = |kind, value, period| Policy {
        kind,
        value,
        period: seconds(period),
    };
    let policies = [
        policy(PolicyKind::Pods, pods, pods_period),
        policy(PolicyKind::Percent, percent, percent_period),
    ];
    Rules {
        window: Some(seconds(window)),
        policies: policies.into_iter().filter(|one| one.value != 0).collect(),
        ..Rules::default()
    }
}

/// Returns a history of recommendations, by seconds ago.
fn recommended(all: &[(i32, u64)]) -> History {
    let mut all = all.to_vec();
    all.sort_by_key(|(_, seconds)| std::cmp::Reverse(*seconds));
    let mut history = History::default();
    for (replicas, seconds) in all {
        history.recommend(replicas, ago(seconds), HOUR * 10);
    }
    history
}

/// Returns a history of changes that are spread over 120 seconds, each at the center of its part.
fn changed(ups: &[i32], downs: &[i32]) -> History {
    let behavior = Behavior {
        up: rules(1, 3_600, 0, 0, 0),
        down: rules(1, 3_600, 0, 0, 0),
    };
    let mut history = History::default();
    for (changes, sign) in [(ups, 1), (downs, -1)] {
        let part = 120 / u64::try_from(changes.len().max(1)).unwrap();
        for (index, change) in (1..).zip(changes) {
            let at = ago(120 - part * index + part / 2);
            history.scaled(1_000, 1_000 + sign * change, at, Some(&behavior));
        }
    }
    history
}

/// Checks H1.
#[test]
fn fewer_replicas_than_recommended_within_the_window_are_not_set() {
    // Recommendations by seconds ago, the new one, and the result.
    let cases: &[(&[(i32, u64)], i32, i32)] = &[
        (&[], 5, 5),
        (&[(4, 120), (5, 60)], 3, 5),
        (&[(1, 120), (2, 60)], 3, 3),
        (&[(10, 600), (9, 540)], 3, 3),
        (&[(10, 600), (4, 60), (5, 120), (9, 540)], 3, 5),
        // The end of the window belongs to it.
        (&[(9, 300)], 3, 9),
        (&[(9, 301)], 3, 3),
    ];
    for (recommendations, desired, expected) in cases {
        let history = recommended(recommendations);
        let stabilized = limits(100, (1, 100), None, &history).stabilize(*desired);
        assert_eq!(stabilized.replicas, *expected, "{recommendations:?}");
        let reason = match expected == desired {
            true => "ReadyForNewScale",
            false => "ScaleDownStabilized",
        };
        assert_eq!(stabilized.reason, reason);
    }
}

/// Checks H1.
#[test]
fn the_windows_of_both_directions_keep_replicas_between_recent_recommendations() {
    // Recommendations by seconds ago; the current and the new replicas; the windows; the result.
    #[rustfmt::skip]
    let cases: &[(&[(i32, u64)], i32, i32, (u64, u64), i32)] = &[
        (&[], 100, 5, (0, 0), 5),
        (&[(4, 120), (5, 60)], 100, 3, (0, 180), 5),
        (&[(4, 120), (5, 60)], 1, 7, (300, 0), 4),
        // The end of a window does not belong to it.
        (&[(4, 120)], 1, 7, (120, 0), 7),
        (&[(9, 120)], 100, 3, (0, 120), 3),
        (&[(1, 120), (2, 60)], 100, 3, (300, 0), 3),
        (&[(4, 120), (5, 60)], 1, 3, (0, 300), 3),
        (&[(10, 600), (9, 540)], 100, 3, (0, 0), 3),
        (&[(10, 600), (9, 540)], 1, 100, (0, 0), 100),
        (&[(10, 600), (4, 60), (5, 120), (9, 540)], 100, 3, (0, 180), 5),
        (&[(10, 6_000), (6, 60), (5, 120), (9, 180)], 1, 100, (300, 0), 5),
        (&[(2, 6_000), (3, 180)], 2, 1, (300, 300), 2),
        (&[(2, 6_000), (1, 180)], 2, 3, (300, 300), 2),
    ];
    for (recommendations, current, desired, (up, down), expected) in cases {
        let history = recommended(recommendations);
        let behavior = Behavior {
            up: rules(0, 0, 0, 0, *up),
            down: rules(0, 0, 0, 0, *down),
        };
        let limits = limits(*current, (1, 100), Some(&behavior), &history);
        let stabilized = limits.stabilize(*desired);
        assert_eq!(stabilized.replicas, *expected, "{recommendations:?}");
        let reason = match (expected == desired, desired >= current) {
            (true, _) => "ReadyForNewScale",
            (false, true) => "ScaleUpStabilized",
            (false, false) => "ScaleDownStabilized",
        };
        assert_eq!(stabilized.reason, reason, "{recommendations:?}");
    }
    let history = recommended(&[(9, 200)]);
    let behavior = Behavior {
        up: Rules::default(),
        down: Rules::default(),
    };
    let stabilized = limits(9, (1, 100), Some(&behavior), &history).stabilize(3);
    assert_eq!(
        stabilized.replicas, 9,
        "without a window, the setting is one"
    );
}

/// Checks H1.
#[test]
fn without_rules_replicas_at_most_double_and_stay_within_the_bounds() {
    // Current, desired, bounds, expected; upstream's `TestConvertDesiredReplicasWithRules`.
    let cases = [
        (5, 7, (3, 8), 7, "DesiredWithinRange"),
        (3, 1, (2, 8), 2, "TooFewReplicas"),
        (1, 0, (0, 10), 0, "DesiredWithinRange"),
        (20, 1_000, (1, 10), 10, "TooManyReplicas"),
        (3, 1_000, (1, 2_000), 6, "ScaleUpLimit"),
        (3, 1_000, (1, 6), 6, "TooManyReplicas"),
        (3, 6, (1, 2_000), 6, "DesiredWithinRange"),
        (3, 2, (2, 8), 2, "DesiredWithinRange"),
        (1, 1_000, (1, 2_000), 4, "ScaleUpLimit"),
        (
            i32::MAX,
            i32::MAX,
            (1, i32::MAX),
            i32::MAX,
            "DesiredWithinRange",
        ),
    ];
    let history = History::default();
    for (current, desired, bounds, expected, reason) in cases {
        let limited = limits(current, bounds, None, &history).limit(desired);
        assert_eq!((limited.replicas, limited.reason), (expected, reason));
        assert_eq!(limited.limited, expected != desired);
    }
}

/// Checks H1. Upstream's `TestScalingWithRules`.
#[test]
fn changes_are_not_faster_than_the_policies_of_their_direction() {
    const WITHIN: &str = "DesiredWithinRange";
    const UP: &str = "ScaleUpLimit";
    const DOWN: &str = "ScaleDownLimit";
    let (up, down) = (Rules::default_up, Rules::default_down);
    let none = || (&[] as &[i32], &[] as &[i32]);
    let ups = |ups: &'static [i32]| (ups, &[] as &[i32]);
    let downs = |downs: &'static [i32]| (&[] as &[i32], downs);
    #[rustfmt::skip]
    let cases = [
        (none(), 5, 7, (3, 8), up(), down(), 7, WITHIN),
        (none(), 3, 1, (2, 8), up(), down(), 2, "TooFewReplicas"),
        (none(), 1, 0, (0, 10), up(), down(), 0, WITHIN),
        (none(), 20, 1_000, (1, 10), up(), down(), 10, "TooManyReplicas"),
        (none(), 100, 1_000, (100, 150), up(), down(), 150, "TooManyReplicas"),
        // The current replicas are nobody's wish for a change.
        (none(), 10, 10, (1, 8), up(), down(), 10, WITHIN),
        (none(), 0, 0, (2, 8), up(), down(), 0, WITHIN),
        (none(), 3, 1_000, (1, 2_000), rules(0, 0, 1, 60, 0), down(), 4, UP),
        (none(), 1_000, 3, (3, 2_000), up(), rules(20, 60, 0, 0, 0), 980, DOWN),
        (none(), 10, 50, (1, 1_000), up(), down(), 20, UP),
        (none(), 10, 50, (1, 20), up(), down(), 20, "TooManyReplicas"),
        (none(), 10, 20, (1, 1_000), up(), down(), 20, WITHIN),
        (none(), 10, 500, (1, 1_000), rules(100, 60, 100, 60, 0), down(), 110, UP),
        (none(), 10, 500, (1, 1_000), rules(2, 60, 100, 60, 0), down(), 20, UP),
        (none(), 10, 50, (1, 1_000), rules(100, 60, 0, 0, 0), down(), 50, WITHIN),
        (none(), 10, 50, (1, 1_000), rules(10_000, 60, 0, 0, 0), down(), 50, WITHIN),
        (none(), 10, 50, (1, 1_000), rules(30, 60, 0, 0, 0), down(), 40, UP),
        (none(), 10, 50, (1, 1_000), rules(0, 0, 200, 60, 0), down(), 30, UP),
        (none(), 100, 2, (1, 1_000), up(), rules(20, 60, 1, 60, 300), 80, DOWN),
        (none(), 100, 2, (1, 1_000), up(), rules(2, 60, 1, 60, 300), 98, DOWN),
        (none(), 10, 0, (1, 1_000), up(), rules(100, 60, 0, 0, 300), 1, "TooFewReplicas"),
        (none(), 10, 2, (5, 1_000), up(), rules(0, 0, 100, 60, 300), 5, "TooFewReplicas"),
        (none(), 10, 2, (1, 1_000), up(), rules(5, 60, 0, 0, 300), 5, DOWN),
        (none(), 10, 2, (5, 1_000), up(), rules(5, 60, 0, 0, 300), 5, "TooFewReplicas"),
        (none(), 10, 5, (1, 1_000), up(), rules(0, 0, 50, 60, 300), 5, WITHIN),
        (ups(&[1, 5, 9]), 100, 500, (1, 200), rules(300, 60, 0, 0, 0), down(), 200, "TooManyReplicas"),
        (ups(&[1, 5, 9]), 100, 500, (1, 200), rules(0, 0, 10_000, 60, 0), down(), 200, "TooManyReplicas"),
        // A policy that was lowered: 85 replicas and 5 more are fewer than there are.
        (ups(&[1, 5, 9]), 100, 500, (1, 1_000), rules(5, 120, 0, 0, 0), down(), 100, UP),
        (ups(&[1, 5, 9]), 100, 500, (1, 1_000), rules(150, 120, 0, 0, 0), down(), 235, UP),
        (ups(&[1, 5, 9]), 100, 500, (1, 1_000), rules(0, 0, 200, 120, 0), down(), 255, UP),
        ((&[4], &[2]), 6, 24, (1, 1_000), rules(0, 0, 300, 300, 0), down(), 16, UP),
        (downs(&[1, 5, 9]), 10, 5, (1, 1_000), up(), down(), 5, WITHIN),
        (downs(&[1, 5, 9]), 100, 0, (1, 1_000), up(), rules(115, 120, 0, 0, 300), 1, "TooFewReplicas"),
        (downs(&[1, 5, 9]), 100, 0, (5, 1_000), up(), rules(130, 120, 0, 0, 300), 5, "TooFewReplicas"),
        (downs(&[1, 5, 9]), 100, 2, (5, 1_000), up(), rules(0, 0, 100, 120, 300), 5, "TooFewReplicas"),
        (downs(&[1, 5, 9]), 100, 2, (1, 1_000), up(), rules(5, 120, 0, 0, 300), 100, DOWN),
        (downs(&[2, 4, 6]), 100, 0, (1, 1_000), up(), rules(0, 0, 50, 120, 300), 56, DOWN),
        ((&[2], &[4]), 10, 1, (1, 1_000), up(), rules(0, 0, 50, 180, 0), 6, DOWN),
        (downs(&[10, 10, 10]), 100, 0, (1, 1_000), up(), rules(0, 0, 10, 120, 300), 100, DOWN),
        (downs(&[10, 10, 10]), 10, 5, (1, 1_000), up(), rules(0, 0, 1_000, 120, 300), 5, WITHIN),
        (ups(&[8, 12, 9, 11]), 100, 200, (1, 1_000), rules(1_000, 60, 0, 0, 0), down(), 200, WITHIN),
        (ups(&[8, 12, 9, 11]), 100, 200, (1, 1_000), rules(1_000, 120, 100, 60, 0), down(), 200, WITHIN),
        (downs(&[8, 12, 9, 11]), 100, 5, (1, 1_000), up(), rules(1_000, 60, 0, 0, 300), 5, WITHIN),
        (downs(&[8, 12, 9, 11]), 100, 5, (1, 1_000), up(), rules(1_000, 30, 100, 60, 300), 5, WITHIN),
    ];
    for ((ups, downs), current, desired, bounds, up, down, expected, reason) in cases {
        let history = changed(ups, downs);
        let behavior = Behavior { up, down };
        let limited = limits(current, bounds, Some(&behavior), &history).limit(desired);
        assert_eq!(
            (limited.replicas, limited.reason),
            (expected, reason),
            "{behavior:?}"
        );
    }
}

/// Checks H1.
#[test]
fn ten_percent_a_minute_remove_one_replica_of_ten_each_minute() {
    let behavior = Behavior {
        up: Rules::default_up(),
        down: rules(0, 0, 10, 60, 0),
    };
    let mut history = History::default();
    let mut replicas = 10;
    let mut steps = Vec::new();
    for second in (0..180).step_by(15) {
        let at = now() + seconds(second);
        let limits = Limits {
            now: at,
            ..limits(replicas, (1, 10), Some(&behavior), &history)
        };
        let limited = limits.limit(1);
        if limited.replicas != replicas {
            history.scaled(replicas, limited.replicas, at, Some(&behavior));
            replicas = limited.replicas;
            steps.push((second, replicas));
        }
    }
    // 90 % of 9 are 8.1, rounded to the larger change.
    assert_eq!(steps, [(0, 9), (60, 8), (120, 7)]);
}

#[test]
fn the_policy_that_counts_is_selected() {
    let both = |select| Rules {
        select,
        ..rules(2, 60, 50, 60, 300)
    };
    let history = History::default();
    // Current replicas, and those after a wish for none or for very many.
    for (select, up, down) in [
        (Select::Max, 15, 5),
        (Select::Min, 12, 8),
        (Select::Disabled, 10, 10),
    ] {
        let behavior = Behavior {
            up: both(select),
            down: both(select),
        };
        let limits = limits(10, (0, 1_000), Some(&behavior), &history);
        let limited = (limits.limit(999).replicas, limits.limit(0).replicas);
        assert_eq!(limited, (up, down), "{select:?}");
    }
    let behavior = Behavior {
        up: both(Select::Min),
        down: both(Select::Min),
    };
    let from = |current| limits(current, (0, 1_000), Some(&behavior), &history);
    assert_eq!(from(1).limit(999).replicas, 2, "upstream's case of up");
    assert_eq!(from(5).limit(0).replicas, 3, "upstream's case of down");
}

/// Upstream's `TestStoreScaleEvents`.
#[test]
fn changes_are_kept_while_a_policy_counts_them() {
    // Changes by seconds ago; the longest period; changes that are left with a new one.
    let cases: &[(&[(i32, u64)], u64, usize)] = &[
        (&[], 60, 1),
        (&[(7, 61)], 60, 1),
        (&[(7, 60)], 60, 2),
        (&[(7, 58)], 60, 2),
        (&[(7, 61), (6, 59)], 60, 2),
        (&[(9, 61), (7, 61), (6, 59), (8, 29)], 60, 3),
        (&[(6, 59), (7, 58)], 120, 3),
    ];
    for (changes, period, left) in cases {
        for sign in [1, -1] {
            let behavior = Behavior {
                up: rules(10, *period, 100, 30, 0),
                down: rules(10, *period, 100, 30, 0),
            };
            let mut history = History::default();
            let hour = Behavior {
                up: rules(1, 3_600, 0, 0, 0),
                down: rules(1, 3_600, 0, 0, 0),
            };
            for (change, seconds) in *changes {
                history.scaled(100, 100 + sign * change, ago(*seconds), Some(&hour));
            }
            let recent = changes.iter().filter(|(_, seconds)| *seconds < 60);
            let sum: i32 = recent.map(|(change, _)| change).sum();
            let start = history.at_start_of(seconds(60), 100, now());
            assert_eq!(start, 100 - sign * sum, "{changes:?}");
            history.scaled(100, 100 + sign * 5, now(), Some(&behavior));
            assert_eq!(history.len().1, *left, "{changes:?}");
        }
    }
    let mut history = History::default();
    history.scaled(1, 5, now(), None);
    assert_eq!(
        history.len(),
        (0, 0),
        "without rules no policy counts changes"
    );
    assert_eq!(history.last_scale(), Some(now()));
}

#[test]
fn changes_are_kept_as_long_as_the_policies_of_their_direction_count_them() {
    let behavior = Behavior {
        up: rules(1, 1_800, 0, 0, 0),
        down: rules(1, 60, 0, 0, 0),
    };
    for (change, left) in [(1, 2), (-1, 1)] {
        let mut history = History::default();
        for at in [ago(100), now()] {
            history.scaled(100, 100 + change, at, Some(&behavior));
        }
        assert_eq!(history.len().1, left, "{change}");
    }
}

#[test]
fn recommendations_count_for_the_longest_window_of_both_directions() {
    let history = History::default();
    let longest =
        |behavior: Option<&Behavior>| limits(1, (1, 9), behavior, &history).longest_window();
    assert_eq!(longest(None), seconds(300));
    for (up, down) in [(60, 20), (20, 60)] {
        let behavior = Behavior {
            up: rules(0, 0, 0, 0, up),
            down: rules(0, 0, 0, 0, down),
        };
        assert_eq!(longest(Some(&behavior)), seconds(60));
    }
}

#[test]
fn a_history_is_bounded_whatever_is_recommended_and_changed() {
    let behavior = Behavior {
        up: rules(1, 1_800, 0, 0, 0),
        down: rules(1, 1_800, 0, 0, 0),
    };
    let mut history = History::default();
    for n in 0..20_000 {
        let at = now() + Duration::from_millis(n);
        let replicas = i32::try_from(n % 7).unwrap();
        history.recommend(replicas, at, HOUR);
        history.scaled(1, 2, at, Some(&behavior));
    }
    assert_eq!(history.len(), (MAX_RECOMMENDATIONS, MAX_SCALE_EVENTS));
    // No change is lost.
    let start = history.at_start_of(seconds(1_800), 0, now() + seconds(20));
    assert_eq!(start, -20_000);
    history.recommend(3, now() + HOUR * 2, HOUR);
    assert_eq!(history.len().0, 1, "old recommendations are forgotten");
    history.recommend(4, now() + HOUR * 3, HOUR);
    assert_eq!(history.len().0, 2, "the end of the window belongs to it");
    history.recommend(4, now() + HOUR * 3 + seconds(15), HOUR);
    assert_eq!(history.len().0, 1, "equal recommendations are one");
}
