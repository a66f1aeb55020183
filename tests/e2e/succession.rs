//! Changes of leaders in real processes: never two at a time, and short gaps, checked against etcd's history.

use nix::sys::signal::Signal;
use setpoint_tests::{Cluster, EtcdLog, LeadershipTerm, Link, Size, election, eventually};

use crate::web::{apply, until_ready};

const SERVICE: &str = "replicaset-controller";

fn size(replicas: usize) -> Size {
    Size {
        gateways: 1,
        replicas,
        process_nodes: 0,
        simulated_nodes: 1,
    }
}

/// Checks L6, L7: a successor takes over a released lease at once, without waiting for the fifteen seconds to expire.
#[test]
fn a_stopped_leader_completes_its_reconciles_and_releases_its_lease() {
    let mut cluster = Cluster::start_as_shipped(size(2));
    let (history, kubectl) = (EtcdLog::of(&cluster.etcd_url()), cluster.kubectl());
    apply(&kubectl);
    let leader = cluster.leader(SERVICE);
    kubectl.ok("scale deployment/web-frontend -n production --replicas=100");
    assert!(cluster.process(&leader).stop(), "it exits without an error");
    until_ready(&kubectl, 100);
    let history = history.all();
    let terms = LeadershipTerm::all(&history, SERVICE);
    let [first, second] = terms.as_slice() else {
        panic!("{terms:?}")
    };
    assert!(first.released);
    let handover = first.handover(second);
    assert!(
        handover.leaderless < first.lease_duration / 2,
        "{handover:?}"
    );
    let pods = history.iter().filter(|entry| entry.created);
    let pods = pods.filter(|entry| entry.key.starts_with("/registry/pods/"));
    assert_eq!(pods.count(), 100, "no Pod is duplicated");
}

/// Checks L8: a successor takes over a released lease at once.
#[test]
fn a_rolling_restart_has_one_leader_at_a_time_and_short_gaps() {
    let mut cluster = Cluster::start_as_shipped(size(3));
    let (history, kubectl) = (EtcdLog::of(&cluster.etcd_url()), cluster.kubectl());
    apply(&kubectl);
    for n in 0..3 {
        let replicas = 20 * (n + 1);
        kubectl.ok(&format!(
            "scale deployment/web-frontend -n production --replicas={replicas}"
        ));
        let name = format!("{SERVICE}-{n}");
        assert!(cluster.process(&name).stop(), "it exits without an error");
        cluster.process(&name).restart();
        until_ready(&kubectl, replicas);
    }
    // Panics if two replicas led at once.
    let terms = LeadershipTerm::all(&history.all(), SERVICE);
    assert!((2..=4).contains(&terms.len()), "{terms:?}");
    for pair in terms.windows(2) {
        let [old, new] = pair else { continue };
        assert!(old.released, "{old:?}");
        let handover = old.handover(new);
        assert!(handover.leaderless < old.lease_duration, "{handover:?}");
    }
}

/// Checks L3, L11: a leader whose renewals hang stops before another replica can lead.
#[test]
fn a_leader_whose_calls_hang_stops_before_another_replica_leads() {
    let mut cluster = Cluster::bare();
    let gateway = cluster.gateway_url();
    let link = Link::to(&gateway);
    let (first, second) = (format!("{SERVICE}-0"), format!("{SERVICE}-1"));
    // Between the end of one term and the start of the next there is time to write to the log.
    let flags = election("6s", "3s");
    cluster.service_through(&link.url(), SERVICE, 0, &flags);
    assert_eq!(cluster.leader(SERVICE), first);
    cluster.service(SERVICE, 1, &flags);
    let history = EtcdLog::of(&cluster.etcd_url());
    link.hold_requests();
    eventually("the standby leads", || {
        let now = cluster.leader(SERVICE);
        (now == second).then_some(()).ok_or(now)
    });
    let log = cluster.log(&first);
    assert!(log.contains("leadership lost"), "{log}");
    link.release();
    assert_eq!(LeadershipTerm::all(&history.all(), SERVICE).len(), 2);
}

/// Checks L9.
#[test]
fn a_temporary_loss_of_the_store_changes_the_leader_at_most_once() {
    // The store is lost for longer than the lease duration.
    let mut cluster = Cluster::start_with(size(3), &election("4s", "3s"));
    let history = EtcdLog::of(&cluster.etcd_url());
    lose_the_store(&mut cluster, &history, 5);
}

/// Checks L9 with the default lease timing.
#[test]
#[ignore = "takes minutes"]
fn a_loss_of_the_store_for_a_minute_changes_the_leader_at_most_once() {
    let mut cluster = Cluster::start_as_shipped(size(3));
    let history = EtcdLog::of(&cluster.etcd_url());
    lose_the_store(&mut cluster, &history, 60);
}

fn lose_the_store(cluster: &mut Cluster, history: &EtcdLog, seconds: u64) {
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    let before = LeadershipTerm::all(&history.all(), SERVICE).len();
    cluster.process("etcd-0").signal(Signal::SIGSTOP);
    // The duration of the fault, not a wait for a condition.
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    cluster.process("etcd-0").signal(Signal::SIGCONT);
    cluster.wait_until_ready();
    kubectl.ok("scale deployment/web-frontend -n production --replicas=5");
    until_ready(&kubectl, 5);
    let renewals = renewals(history);
    eventually("the leader keeps renewing", || {
        let now = self::renewals(history);
        (now > renewals + 10).then_some(()).ok_or(now.to_string())
    });
    let terms = LeadershipTerm::all(&history.all(), SERVICE);
    assert!(terms.len() <= before + 1, "{terms:?}");
}

fn renewals(history: &EtcdLog) -> usize {
    let lease = format!("/registry/leases/setpoint-system/{SERVICE}");
    let history = history.all();
    history.iter().filter(|entry| entry.key == lease).count()
}
