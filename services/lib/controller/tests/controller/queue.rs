//! The invariants of the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt as _;
use proptest::prelude::*;
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Queue, Ticket};
use setpoint_proto::Cause;
use tokio::time::{Instant, advance};

use crate::server::soon;

pub fn queue() -> Queue<u32> {
    Queue::new("test", Limiter::default())
}

/// Returns the next key if there is one now.
pub fn next(queue: &Queue<u32>) -> Option<Ticket<u32>> {
    queue.next().now_or_never().flatten()
}

pub fn cause(n: usize) -> Option<Cause> {
    let writer = n.to_string();
    Some(Cause {
        writer,
        ..Cause::default()
    })
}

/// Checks I7.
#[tokio::test(start_paused = true)]
async fn a_key_added_twice_is_taken_once_with_both_causes() {
    let queue = queue();
    queue.add(1, cause(1));
    queue.add(2, None);
    queue.add(1, cause(2));
    queue.add(1, cause(2));
    assert_eq!((queue.len(), queue.is_empty()), (2, false));
    let ticket = next(&queue).unwrap();
    let writers: Vec<_> = ticket.causes.iter().map(|cause| &*cause.writer).collect();
    assert_eq!((ticket.key, writers), (1, vec!["1", "2"]));
    let other = next(&queue).unwrap();
    assert_eq!((other.key, queue.is_empty()), (2, true));
}

/// Checks I7.
#[tokio::test(start_paused = true)]
async fn a_key_added_while_with_a_worker_is_taken_once_more_after_that() {
    let queue = queue();
    queue.add(1, None);
    let ticket = next(&queue).unwrap();
    queue.add(1, cause(1));
    queue.add(1, cause(2));
    assert!(next(&queue).is_none(), "it is with a worker");
    ticket.done(None);
    let ticket = next(&queue).unwrap();
    assert_eq!(ticket.causes.len(), 2);
    ticket.done(None);
    assert!(next(&queue).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_not_observed_yet_can_take_over_later_adds() {
    let queue = queue();
    queue.add(1, cause(1));
    let mut ticket = next(&queue).unwrap();
    queue.add(1, cause(2));
    ticket.catch_up();
    assert_eq!(ticket.causes.len(), 2);
    ticket.done(None);
    assert!(next(&queue).is_none());
}

/// Checks I7.
#[tokio::test(start_paused = true)]
async fn rests_grow_from_failure_to_failure_and_begin_anew_after_a_success() {
    let queue = queue();
    queue.add(1, cause(1));
    let rest = async || {
        let begin = Instant::now();
        let ticket = soon(queue.next()).await.unwrap();
        assert_eq!(ticket.causes.len(), 1, "a retry keeps its cause");
        (ticket, begin.elapsed().as_millis())
    };
    let (mut ticket, _) = rest().await;
    for longest in [5, 10, 20, 40, 80_u128] {
        ticket.retry();
        let waited;
        (ticket, waited) = rest().await;
        assert!(
            (longest..=longest * 11 / 10 + 1).contains(&waited),
            "{waited} of {longest}"
        );
    }
    ticket.done(None);
    queue.add(1, cause(1));
    rest().await.0.retry();
    assert!(rest().await.1 <= 6);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_has_its_attempt_and_the_delay_after_a_failure() {
    let queue = queue();
    queue.add(1, None);
    for (attempt, rest) in [(1, 5), (2, 10), (3, 20)] {
        let ticket = soon(queue.next()).await.unwrap();
        assert_eq!((ticket.attempt, ticket.attempt()), (attempt, attempt));
        assert_eq!(ticket.rest(), Duration::from_millis(rest));
        ticket.retry();
    }
    soon(queue.next()).await.unwrap().done(None);
    queue.add(1, None);
    assert_eq!(next(&queue).unwrap().attempt(), 1);
}

/// Checks I8.
#[tokio::test(start_paused = true)]
async fn delayed_keys_wait_apart_and_the_earliest_time_wins() {
    let queue = queue();
    queue.add_after(1, Duration::from_secs(10));
    queue.add_after(1, Duration::from_secs(5));
    queue.add_after(1, Duration::from_secs(20));
    queue.add_after(2, Duration::from_secs(7));
    assert_eq!((queue.len(), queue.delayed()), (0, 2));
    let begin = Instant::now();
    let first = soon(queue.next()).await.unwrap();
    assert_eq!((first.key, begin.elapsed().as_secs()), (1, 5));
    first.done(None);
    queue.add(2, None);
    assert_eq!(
        (queue.len(), queue.delayed()),
        (1, 0),
        "now is earlier than later"
    );
    next(&queue).unwrap().done(Some(Duration::from_secs(3)));
    let again = soon(queue.next()).await.unwrap();
    assert_eq!((again.key, begin.elapsed().as_secs()), (2, 8));
    again.done(None);
    advance(Duration::from_secs(60)).await;
    assert!(next(&queue).is_none());
}

/// Checks I11.
#[tokio::test(start_paused = true)]
async fn a_key_that_always_fails_delays_no_other() {
    let queue = queue();
    queue.add(0, None);
    let poison = next(&queue).unwrap();
    poison.retry();
    for n in 1..1000 {
        let begin = Instant::now();
        queue.add(n, None);
        let ticket = soon(queue.next()).await.unwrap();
        match ticket.key {
            0 => ticket.retry(),
            _ => ticket.done(None),
        }
        while let Some(ticket) = next(&queue) {
            ticket.done(None);
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        advance(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_ticket_hands_its_key_back() {
    let queue = queue();
    queue.add(1, None);
    let ticket = next(&queue).unwrap();
    let round = tokio::spawn(async move {
        let _ticket = ticket;
        std::future::pending::<()>().await;
    });
    round.abort();
    assert_eq!(soon(queue.next()).await.unwrap().key, 1);
}

/// Checks I7.
#[tokio::test(start_paused = true)]
async fn a_closed_queue_is_drained_by_all_its_workers_and_takes_no_more() {
    let queue = queue();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut taken = 0;
                while let Some(ticket) = queue.next().await {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    taken += 1;
                    ticket.done(None);
                }
                taken
            })
        })
        .collect();
    tokio::task::yield_now().await;
    (0..10).for_each(|n| queue.add(n, None));
    queue.add_after(10, Duration::from_secs(1));
    queue.close();
    queue.add(11, None);
    let mut taken = 0;
    for worker in workers {
        taken += soon(worker).await.unwrap();
    }
    assert_eq!(taken, 10);
}

#[tokio::test(start_paused = true)]
async fn workers_that_wait_for_the_last_key_of_a_closed_queue_all_return() {
    let queue = queue();
    queue.add(1, None);
    let ticket = next(&queue).unwrap();
    queue.add(1, None);
    let worker = || {
        let queue = queue.clone();
        tokio::spawn(async move {
            while let Some(ticket) = queue.next().await {
                ticket.done(None);
            }
        })
    };
    let workers = [worker(), worker(), worker(), worker()];
    tokio::task::yield_now().await;
    queue.close();
    tokio::task::yield_now().await;
    ticket.done(None);
    for worker in workers {
        soon(worker).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn idle_workers_of_a_closed_queue_return_while_another_has_the_last_key() {
    let queue = queue();
    queue.add(1, None);
    let ticket = next(&queue).unwrap();
    queue.add(1, None);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.close();
    tokio::task::yield_now().await;
    ticket.done(None);
    let mut taken = Vec::new();
    for worker in workers {
        taken.extend(soon(worker).await.unwrap());
    }
    assert_eq!(taken.len(), 1, "and has it still");
}

#[derive(Clone, Debug)]
enum Op {
    Add(u32),
    AddAfter(u32, u64),
    Take,
    Done(usize),
    Retry(usize),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..5_u32).prop_map(Op::Add),
        (0..5_u32, 0..50_u64).prop_map(|(key, ms)| Op::AddAfter(key, ms)),
        Just(Op::Take),
        (0..3_usize).prop_map(Op::Done),
        (0..3_usize).prop_map(Op::Retry),
        (0..50_u64).prop_map(Op::Pass),
    ]
}

/// No key is with two workers, and each key that was added is taken afterwards, whatever the order of events.
async fn obey(ops: Vec<Op>) {
    let queue = queue();
    let mut with_workers: BTreeMap<u32, Ticket<u32>> = BTreeMap::new();
    let mut owed = BTreeSet::new();
    let nth = |tickets: &BTreeMap<u32, Ticket<u32>>, n: usize| tickets.keys().nth(n).copied();
    for op in ops {
        match op {
            Op::Add(key) => {
                queue.add(key, None);
                owed.insert(key);
            }
            Op::AddAfter(key, ms) => {
                queue.add_after(key, Duration::from_millis(ms));
                owed.insert(key);
            }
            Op::Take => {
                if let Some(ticket) = next(&queue) {
                    assert!(owed.remove(&ticket.key), "nobody added it");
                    let other = with_workers.insert(ticket.key, ticket);
                    assert!(other.is_none(), "it is with two workers");
                }
            }
            Op::Done(n) => {
                let key = nth(&with_workers, n);
                let ticket = key.and_then(|key| with_workers.remove(&key));
                ticket.into_iter().for_each(|ticket| ticket.done(None));
            }
            Op::Retry(n) => {
                let key = nth(&with_workers, n);
                let ticket = key.and_then(|key| with_workers.remove(&key));
                owed.extend(ticket.map(|ticket| {
                    let key = ticket.key;
                    ticket.retry();
                    key
                }));
            }
            Op::Pass(ms) => advance(Duration::from_millis(ms)).await,
        }
    }
    with_workers
        .into_values()
        .for_each(|ticket| ticket.done(None));
    while !owed.is_empty() {
        let ticket = soon(queue.next()).await.unwrap();
        assert!(owed.remove(&ticket.key));
        ticket.done(None);
    }
    advance(Duration::from_secs(3600)).await;
    assert!(next(&queue).is_none() && queue.delayed() == 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks I7.
    #[test]
    fn every_key_is_taken_after_it_was_added_and_by_one_worker_at_a_time(
        ops in prop::collection::vec(op(), 0..100),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(obey(ops));
    }
}

/// Checks I8.
#[tokio::test(start_paused = true)]
async fn delayed_keys_are_counted_apart_and_wait_from_when_they_are_due() {
    let queue = queue();
    queue.add(1, None);
    queue.add_after(2, Duration::from_secs(5));
    let counts = || (queue.load().depth, queue.load().delayed);
    assert_eq!(counts(), (1, 1));
    advance(Duration::from_secs(6)).await;
    assert_eq!(counts(), (2, 0), "it is due, though no worker has looked");
    let _first = next(&queue).unwrap();
    advance(Duration::from_secs(1)).await;
    let load = queue.load();
    assert_eq!((load.depth, load.taken), (1, 1));
    assert_eq!(load.unfinished, Duration::from_secs(1));
}

/// Checks I8.
#[tokio::test(start_paused = true)]
async fn the_metrics_of_a_queue_are_true_whenever_they_are_read() {
    let gauge = |name: &str| {
        let families = prometheus::gather();
        let family = families.iter().find(|family| family.name() == name)?;
        let mut gauges = family.get_metric().iter();
        let found = gauges.find(|metric| metric.get_label()[0].value() == "measured");
        found.map(|metric| metric.get_gauge().get_value())
    };
    let adds = || {
        let families = prometheus::gather();
        let family = families
            .iter()
            .find(|family| family.name() == "workqueue_adds_total")?;
        let mut counters = family.get_metric().iter();
        let found = counters.find(|metric| metric.get_label()[0].value() == "measured");
        found.map(|metric| metric.get_counter().get_value())
    };
    let queue = Queue::<u32>::new("measured", Limiter::default());
    queue.add(1, None);
    queue.add(1, None);
    queue.add_after(2, Duration::from_secs(5));
    assert_eq!(adds(), Some(1.0));
    assert_eq!(gauge("workqueue_depth"), Some(1.0));
    assert_eq!(gauge("setpoint_workqueue_delayed"), Some(1.0));
    advance(Duration::from_secs(6)).await;
    assert_eq!(gauge("workqueue_depth"), Some(2.0));
    let _ticket = next(&queue).unwrap();
    assert_eq!(adds(), Some(2.0), "a delayed key is added when it is due");
    advance(Duration::from_secs(7)).await;
    let longest = gauge("workqueue_longest_running_processor_seconds");
    assert_eq!(longest, Some(7.0));
    drop((_ticket, queue));
    assert_eq!(gauge("workqueue_depth"), Some(0.0), "it is gone");
}
