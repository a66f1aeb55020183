//! Elections of replicas whose clocks differ, jump or run too fast.

use std::time::Duration;

use setpoint_proto::coordination::Lease;
use tokio::time::{Instant, sleep};

use crate::leaders::{LEASE, Leaders, Replica, lease, server, until_leads};
use crate::server::{Faults, Server, config_map, eventually};

/// Writes a Lease without a new term.
fn put(server: &Server, lease: &Lease) {
    server.put_because(lease, server.cause(lease).unwrap_or_default());
}

/// Checks L1, L2.
#[tokio::test(start_paused = true)]
async fn the_times_inside_a_lease_are_not_judged() {
    for hours in [-1000, 0, 1000] {
        let (server, leaders) = (server().await, Leaders::default());
        let mut held = Lease::default();
        held.metadata.namespace = "setpoint-system".into();
        held.metadata.name = "test".into();
        held.spec.holder_identity = Some("someone".into());
        held.spec.lease_duration_seconds = Some(15);
        let skewed = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
        held.spec.renew_time = Some(skewed.into());
        put(&server, &held);
        let begin = Instant::now();
        let _only = Replica::start(server.client("a"), &leaders, "a-0");
        until_leads(&leaders, "a-0").await;
        let waited = begin.elapsed();
        assert!(
            waited >= LEASE && waited < LEASE + Duration::from_secs(3),
            "{hours}: {waited:?}"
        );
    }
}

/// Checks L1.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_is_not_taken_however_old_its_times() {
    let (server, leaders) = (server().await, Leaders::default());
    let mut held = Lease::default();
    held.metadata.namespace = "setpoint-system".into();
    held.metadata.name = "test".into();
    held.spec.holder_identity = Some("someone".into());
    held.spec.lease_duration_seconds = Some(15);
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    put(&server, &held);
    for _ in 0..10 {
        put(&server, &held);
        sleep(Duration::from_secs(14)).await;
        assert_eq!(
            lease(&server).spec.holder_identity.as_deref(),
            Some("someone")
        );
        assert!(leaders.leader().is_none());
    }
}

/// Checks L1, L2: also if a replica whose clock is hours off writes its times into the Lease.
#[tokio::test(start_paused = true)]
async fn a_leader_keeps_a_lease_whose_times_jump() {
    let (server, leaders) = (server().await, Leaders::default());
    let _leader = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    let _standby = Replica::start(server.client("b"), &leaders, "a-1");
    for hours in [-1000, 1, 1000] {
        let mut held = lease(&server);
        let skewed = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
        held.spec.renew_time = Some(skewed.into());
        held.spec.acquire_time = Some(skewed.into());
        put(&server, &held);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(leaders.leader().as_deref(), Some("a-0"), "{hours}");
    }
    assert_eq!(leaders.fences.lock().len(), 1, "it is still the first term");
}

/// Checks L1: a standby whose clock runs twice as fast waits for half the duration. It overlaps with a leader that
/// hangs by at most the difference of the clocks, during which the fence holds.
#[tokio::test(start_paused = true)]
async fn a_fast_clock_makes_leaders_overlap_no_longer_than_it_is_fast() {
    let server = server().await;
    let (slow, fast) = (Leaders::default(), Leaders::default());
    let _leader = Replica::start(server.client("a"), &slow, "a-0");
    until_leads(&slow, "a-0").await;
    // From now on its renewals hang, and the Lease of the standby lasts half as long.
    server.set_faults(Faults {
        hang: vec!["a"],
        ..Faults::default()
    });
    let renewed = Instant::now();
    let mut held = lease(&server);
    held.spec.lease_duration_seconds = Some(7);
    put(&server, &held);
    let _standby = Replica::start(server.client("b"), &fast, "a-1");
    until_leads(&fast, "a-1").await;
    assert!(renewed.elapsed() >= Duration::from_secs(7));
    let late = server.client("late").under(&slow.fences.lock()[0]);
    assert!(
        late.create(&config_map("late"))
            .await
            .unwrap_err()
            .is_fenced()
    );
    eventually("the slow one stops", async || slow.leader().is_none()).await;
    assert!(renewed.elapsed() < LEASE, "{:?}", renewed.elapsed());
}
