//! The causes of a key when it is taken.

use std::time::Duration;

use setpoint_controller::queue::MAX_CAUSES;
use setpoint_proto::Cause;
use tokio::time::advance;

use crate::queue::{cause, next, queue};

#[tokio::test(start_paused = true)]
async fn the_causes_of_a_key_that_is_not_taken_are_bounded() {
    let queue = queue();
    (0..1000).for_each(|n| queue.add(1, cause(n)));
    let oldest: Vec<_> = (0..MAX_CAUSES).filter_map(cause).collect();
    assert_eq!(next(&queue).unwrap().causes, oldest, "they are all alike");
}

fn traced(began: i64) -> Cause {
    Cause {
        traceparent: format!("00-{began:032x}-00f067aa0ba902b7-01").parse().ok(),
        began_ns: began,
        ..Cause::default()
    }
}

#[tokio::test(start_paused = true)]
async fn of_too_many_causes_the_youngest_traces_are_kept() {
    let queue = queue();
    (1..=1000).for_each(|began| queue.add(1, Some(traced(began))));
    let ticket = next(&queue).unwrap();
    assert!(ticket.causes.iter().all(|cause| cause.began_ns > 990));
}

#[tokio::test(start_paused = true)]
async fn another_look_is_for_the_same_causes_unless_something_happens_before() {
    let queue = queue();
    queue.add(1, cause(1));
    next(&queue).unwrap().done(Some(Duration::from_secs(5)));
    advance(Duration::from_secs(5)).await;
    let ticket = next(&queue).unwrap();
    assert_eq!(ticket.causes[0].writer, "1");
    ticket.done(Some(Duration::from_secs(5)));
    queue.add(1, None);
    assert!(
        next(&queue).unwrap().causes.is_empty(),
        "it is no part of it"
    );
}

#[tokio::test(start_paused = true)]
async fn adds_without_a_cause_are_attributed_to_unfinished_work() {
    let queue = queue();
    queue.add(1, cause(1));
    let ticket = next(&queue).unwrap();
    ticket.unfinished(true);
    ticket.done(None);
    queue.add(1, None);
    let ticket = next(&queue).unwrap();
    assert_eq!(ticket.causes[0].writer, "1", "a container has started");
    ticket.unfinished(false);
    ticket.done(None);
    queue.add(1, None);
    assert!(next(&queue).unwrap().causes.is_empty(), "it has crashed");
}
