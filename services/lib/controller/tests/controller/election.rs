//! The guarantees of the election, with hanging, lost and racing calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::{Term, Whole, election};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::leaders::{LEASE, Leaders, Replica, lease, server, until_leads};
use crate::server::{Answers, Faults, Server, config_map, eventually, namespace};

#[tokio::test(start_paused = true)]
async fn a_standby_takes_a_released_lease_at_once() {
    let (server, leaders) = (server().await, Leaders::default());
    let first = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    assert!(
        lease(&server)
            .spec
            .holder_identity
            .unwrap()
            .starts_with("a-0_")
    );
    let _second = Replica::start(server.client("b"), &leaders, "a-1");
    sleep(Duration::from_secs(60)).await;

    let took = first.stop().await;
    until_leads(&leaders, "a-1").await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let terms: HashSet<_> = leaders
        .fences
        .lock()
        .iter()
        .map(|fence| fence.term)
        .collect();
    assert_eq!(terms.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_standby_costs_no_calls() {
    let (server, leaders) = (server().await, Leaders::default());
    let leader = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    let _standby = Replica::start(server.client("b"), &leaders, "a-1");
    sleep(Duration::from_secs(1)).await;
    let calls = || server.calls("Get") + server.calls("Create");
    let (before, renewals) = (calls(), server.calls("Update"));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(calls(), before);
    assert_eq!(
        server.calls("Update") - renewals,
        4,
        "one renewal per half of the renew deadline, by the leader"
    );
    leader.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_elected_once_the_namespace_of_leases_exists() {
    let (server, leaders) = (Server::start().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    sleep(Duration::from_secs(20)).await;
    assert!(leaders.leader().is_none());
    assert!(server.get::<Namespace>("", "setpoint-system").is_none());
    server.put(&namespace("setpoint-system"));
    until_leads(&leaders, "a-0").await;
}

/// Checks L3, L11.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_ends_leadership_before_the_lease_expires() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    sleep(Duration::from_secs(7)).await;
    let last_sign_of_life = server.revision();
    server.set_faults(Faults {
        hang: vec!["Update"],
        ..Faults::default()
    });
    let begin = Instant::now();
    eventually("work has ended", async || leaders.leader().is_none()).await;
    assert!(begin.elapsed() < LEASE, "{:?}", begin.elapsed());
    assert_eq!(server.revision(), last_sign_of_life);
}

/// Checks L3, L8.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_hang_has_stopped_when_another_takes_over() {
    let (server, leaders) = (server().await, Leaders::default());
    let names = ["a-0", "a-1", "a-2"];
    let _replicas = names.map(|name| Replica::start(server.client(name), &leaders, name));
    eventually("there is a leader", async || leaders.leader().is_some()).await;
    for _ in 0..9 {
        let leader = leaders.leader().unwrap();
        let stuck = names.into_iter().find(|name| **name == leader).unwrap();
        let begin = Instant::now();
        server.set_faults(Faults {
            hang: vec![stuck],
            ..Faults::default()
        });
        // `Leaders` asserts that there are never two.
        let another = async || leaders.leader().is_some_and(|now| now != leader);
        eventually("another leads", another).await;
        assert!(
            begin.elapsed() < LEASE + Duration::from_secs(5),
            "{:?}",
            begin.elapsed()
        );
    }
    let fences = leaders.fences.lock();
    let terms: HashSet<_> = fences.iter().map(|fence| fence.term).collect();
    assert_eq!(
        terms.len(),
        fences.len(),
        "each term has a fence of its own"
    );
}

/// Checks L4, L5.
#[tokio::test(start_paused = true)]
async fn writes_of_a_former_term_are_refused() {
    let (server, leaders) = (server().await, Leaders::default());
    let first = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    let fenced = server.client("late").under(&leaders.fences.lock()[0]);
    fenced.create(&config_map("in-time")).await.unwrap();
    first.stop().await;
    let _second = Replica::start(server.client("b"), &leaders, "a-1");
    until_leads(&leaders, "a-1").await;
    let late = fenced.create(&config_map("late")).await.unwrap_err();
    assert!(late.is_fenced());
    assert_eq!(server.all::<setpoint_proto::core::ConfigMap>().len(), 1);
}

/// Checks L6.
#[tokio::test(start_paused = true)]
async fn a_release_that_meets_a_renewal_on_its_way_still_releases() {
    let (server, leaders) = (server().await, Leaders::default());
    let only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    // A renewal is committed, but its answer does not arrive before shutdown.
    server.set_faults(Faults {
        answers: Answers::Lost,
        ..Faults::default()
    });
    let revision = server.revision();
    eventually("a renewal is on its way", async || {
        server.revision() > revision
    })
    .await;
    server.set_faults(Faults::default());
    only.stop().await;
    assert_eq!(lease(&server).spec.holder_identity.as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_cost_the_lease() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    server.set_faults(Faults {
        answers: Answers::Lost,
        ..Faults::default()
    });
    let revision = server.revision();
    eventually("a renewal is on its way", async || {
        server.revision() > revision
    })
    .await;
    server.set_faults(Faults::default());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(leaders.fences.lock().len(), 1, "it is still the first term");
    assert_eq!(leaders.leader().as_deref(), Some("a-0"));
    assert_eq!(
        server.calls("Get"),
        1,
        "after the conflict, not after the error"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_deleted_begins_another_term() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    server.remove(&lease(&server));
    let begin = Instant::now();
    eventually("the second term", async || leaders.fences.lock().len() == 2).await;
    assert!(begin.elapsed() < LEASE / 2, "{:?}", begin.elapsed());
}

/// Checks DG25: the outage begins just before a renewal, and lasts as long as upstream's leaders survive.
#[tokio::test(start_paused = true)]
async fn a_leader_survives_an_outage_of_eight_seconds() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    for _ in 0..3 {
        let renewals = server.calls("Update");
        eventually("a renewal", async || server.calls("Update") > renewals).await;
        sleep(Duration::from_millis(4_900)).await;
        server.set_faults(Faults {
            refuse: Some((
                "Update",
                ApiError::new(Reason::ServiceUnavailable, "no store"),
            )),
            ..Faults::default()
        });
        sleep(Duration::from_secs(8)).await;
        server.set_faults(Faults::default());
        sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(leaders.fences.lock().len(), 1, "it is still the first term");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_leaves_time_for_another() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    server.set_faults(Faults {
        hang: vec!["Update"],
        ..Faults::default()
    });
    let calls = server.calls("Update");
    sleep(Duration::from_secs(11)).await;
    assert_eq!(server.calls("Update") - calls, 2);
    server.set_faults(Faults::default());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(leaders.fences.lock().len(), 1, "it is still the first term");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_refused_tries_again_at_its_leisure() {
    let (server, leaders) = (server().await, Leaders::default());
    server.set_faults(Faults {
        refuse: Some(("Create", ApiError::new(Reason::Forbidden, "no"))),
        ..Faults::default()
    });
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    sleep(Duration::from_secs(20)).await;
    let tries = server.calls("Create");
    assert!((8..=11).contains(&tries), "{tries}");
    server.set_faults(Faults::default());
    until_leads(&leaders, "a-0").await;
}

async fn usurp(server: &Server) {
    let mut lease = lease(server);
    lease.spec.holder_identity = Some("usurper".into());
    server.client("usurper").update(&lease).await.unwrap();
}

fn is_usurped(server: &Server) -> bool {
    lease(server).spec.holder_identity.as_deref() == Some("usurper")
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_displaced_stops_as_soon_as_it_sees_that() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    usurp(&server).await;
    let stopped = eventually("it stops", async || leaders.leader().is_none());
    timeout(Duration::from_millis(100), stopped).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(is_usurped(&server), "the lease of another is not released");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_learns_of_its_displacement_by_renewing_leaves_the_lease_alone() {
    let (server, leaders) = (server().await, Leaders::default());
    let _only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    server.set_faults(Faults {
        mute: Some(("leases.coordination.k8s.io", server.revision())),
        ..Faults::default()
    });
    usurp(&server).await;
    let stopped = eventually("it stops", async || leaders.leader().is_none());
    timeout(Duration::from_secs(6), stopped).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(is_usurped(&server), "the lease of another is not released");
}

#[tokio::test(start_paused = true)]
async fn without_election_work_begins_at_once_and_without_a_fence() {
    let settings = election::Settings {
        leader_elect: false,
        ..election::Settings::default()
    };
    let server = Server::start().await;
    server.set_faults(Faults {
        hang: vec!["Create", "Update", "Watch"],
        ..Faults::default()
    });
    let gateway = server.client("a");
    let work = |term: Term| {
        let gateway = gateway.under(&term.fence);
        async move { assert_eq!(gateway.writer(), "a") }
    };
    let stop = CancellationToken::new();
    let run = election::run(server.client("a"), settings, "test", "a-0", stop, work);
    timeout(Duration::from_secs(1), run).await.unwrap().unwrap();
}

/// Work that panics ends its term: the Lease is free at once, and the process contends again.
#[tokio::test(start_paused = true)]
async fn work_that_panics_ends_the_term_and_the_next_one_begins() {
    let server = server().await;
    let terms = Arc::new(Mutex::new(Vec::new()));
    let begun = terms.clone();
    let work = move |term: Term| {
        let terms = begun.clone();
        async move {
            let count = {
                let mut terms = terms.lock();
                terms.push(term.fence.term);
                terms.len()
            };
            assert!(count > 2, "term {count}");
            std::future::pending::<()>().await;
        }
    };
    let settings = election::Settings::default();
    let stop = CancellationToken::new();
    let run = election::run(
        server.client("a"),
        settings,
        "test",
        "a-0",
        stop.clone(),
        work,
    );
    let run = tokio::spawn(run);
    let begin = Instant::now();
    eventually("the third term", async || terms.lock().len() == 3).await;
    assert!(begin.elapsed() < LEASE, "{:?}", begin.elapsed());
    let terms = terms.lock().clone();
    assert!(terms.is_sorted() && terms[0] < terms[2], "{terms:?}");
    stop.cancel();
    run.await.unwrap().unwrap();
}

/// The informer of several elections may have been synced, and have got the last change of a Lease, before one of them
/// listens.
#[tokio::test(start_paused = true)]
async fn an_election_knows_the_lease_from_an_informer_that_was_synced_before() {
    let (server, terms) = (server().await, Arc::new(Mutex::new(Vec::new())));
    let begun = terms.clone();
    let work = move |term: Term| {
        begun.lock().push(term.fence.term);
        std::future::pending()
    };
    let (settings, stop) = (election::Settings::default(), CancellationToken::new());
    let run = election::run(
        server.client("a"),
        settings.clone(),
        "test",
        "a-0",
        stop.clone(),
        work.clone(),
    );
    let crashed = tokio::spawn(run);
    eventually("a leads", async || terms.lock().len() == 1).await;
    crashed.abort();
    let gateway = server.client("b");
    let leases = gateway.informer::<Whole<Lease>>();
    tokio::spawn(leases.share().run(stop.clone()));
    leases.reader().synced().await;
    let begin = Instant::now();
    let run = election::run_with(gateway, settings, leases, "test", "b-0", stop, work);
    tokio::spawn(run);
    eventually("b leads", async || terms.lock().len() == 2).await;
    let waited = begin.elapsed();
    assert!((LEASE..LEASE * 2).contains(&waited), "{waited:?}");
}
