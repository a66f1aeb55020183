//! The removal of tokens in Secrets that nobody uses.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use setpoint_host::Settings as _;
use setpoint_model::legacy_token::{INVALID_SINCE, LAST_USED, day};
use setpoint_model::{Key, Meta};
use setpoint_serviceaccount_controller::legacy_token::{Action, Cleaning, World, plan};

const DAY: Duration = Duration::from_hours(24);
const NOW: &str = "2026-11-28T12:00:00Z";

/// Returns a token that is as old as the record of uses, whose period of ten days is over.
fn unused() -> World {
    World {
        token: Meta {
            key: Key::new("shop", "token"),
            created: Some(at("2020-01-01T00:00:00Z")),
            ..Meta::default()
        },
        is_listed: true,
        tracked_since: day("2020-01-01"),
        is_in_pod: Some(false),
        period: 10 * DAY,
        now: at(NOW),
    }
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn labelled(mut world: World, labels: &[(&str, &str)]) -> World {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()));
    world.token.labels.extend(labels);
    world
}

fn planned(world: &World) -> (Option<Action>, Option<Duration>) {
    let plan = plan(world);
    assert!(plan.steps.len() <= 1);
    (plan.steps.first().map(|step| step.action), plan.again)
}

fn invalidate() -> Option<Action> {
    Some(Action::Invalidate(Date::constant(2026, 11, 28)))
}

#[test]
fn a_token_is_marked_invalid_once_it_was_not_used_for_the_period() {
    let hours = |hours| Some(Duration::from_hours(hours));
    for (used, marked, again) in [
        ("2026-11-17", true, None),
        // Its day counts as a whole: eleven days after it began.
        ("2026-11-18", false, hours(12)),
        ("2026-11-28", false, hours(24)),
        ("2026-11-29", false, hours(24)),
        // When it was used is not known.
        ("yesterday", false, None),
        ("", false, None),
    ] {
        let world = labelled(unused(), &[(LAST_USED, used)]);
        let expected = invalidate().filter(|_| marked);
        assert_eq!(planned(&world), (expected, again), "{used}");
    }
    assert_eq!(planned(&unused()), (invalidate(), None));
}

#[test]
fn the_period_begins_with_the_record_of_uses_and_with_the_secret() {
    let mut world = unused();
    world.tracked_since = day("2026-11-17");
    assert_eq!(planned(&world), (invalidate(), None));
    world.tracked_since = day("2026-11-18");
    let half_a_day = Some(DAY / 2);
    assert_eq!(planned(&world), (None, half_a_day));
    world.tracked_since = None;
    assert_eq!(planned(&world), (None, None));
    let mut world = unused();
    world.token.created = Some(at("2026-11-18T13:00:00Z"));
    assert_eq!(planned(&world), (None, Some(DAY / 24)));
}

#[test]
fn a_token_that_was_marked_invalid_is_deleted_after_the_period_unless_it_was_tried() {
    for (labels, expected) in [
        (&[(INVALID_SINCE, "2026-11-17")][..], Some(Action::Delete)),
        (&[(INVALID_SINCE, "2026-11-18")], None),
        (
            &[(INVALID_SINCE, "2026-11-17"), (LAST_USED, "2026-11-20")],
            None,
        ),
        // What is no day is replaced by one.
        (&[(INVALID_SINCE, "soon")], invalidate()),
        (&[(INVALID_SINCE, "")], invalidate()),
    ] {
        let world = labelled(unused(), labels);
        assert_eq!(planned(&world).0, expected, "{labels:?}");
    }
}

#[test]
fn tokens_that_are_made_by_hand_or_in_a_pod_or_being_deleted_stay() {
    let by_hand = World {
        is_listed: false,
        ..unused()
    };
    assert_eq!(planned(&by_hand), (None, None));
    let mut deleting = unused();
    deleting.token.deleting = true;
    assert_eq!(planned(&deleting), (None, None));
    for (is_in_pod, again) in [(Some(true), DAY), (None, DAY / (24 * 60))] {
        for labels in [&[][..], &[(INVALID_SINCE, "2020-01-01")]] {
            let world = World {
                is_in_pod,
                ..labelled(unused(), labels)
            };
            assert_eq!(planned(&world), (None, Some(again)));
        }
    }
}

/// A crash or a lost answer between both leaves nothing else.
#[test]
fn each_action_leaves_nothing_to_do_at_once() {
    let Some(Action::Invalidate(today)) = planned(&unused()).0 else {
        panic!("it is marked invalid");
    };
    let marked = labelled(unused(), &[(INVALID_SINCE, &today.to_string())]);
    assert_eq!(planned(&marked), (None, Some(DAY)));
}

#[test]
fn a_period_is_longer_than_nothing() {
    assert_eq!(Cleaning::default().validate(), Ok(()));
    assert_eq!(Cleaning::default().clean_up_period, 365 * DAY);
    let never = Cleaning {
        clean_up_period: Duration::ZERO,
    };
    let why = "clean_up_period must be greater than 0s";
    assert_eq!(never.validate(), Err(why.to_owned()));
}
