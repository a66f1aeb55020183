//! Leaders come and go in real processes: never two at a time, and a successor soon. Judged by etcd's own history.

use nix::sys::signal::Signal;
use setpoint_tests::{Cluster, History, Reign, Size, Wire, election, eventually};

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

/// Checks L6, L7: with a lease of fifteen seconds a successor that waited for it to expire would be late.
#[test]
fn a_leader_that_is_asked_to_stop_finishes_its_rounds_and_hands_over_at_once() {
    let mut cluster = Cluster::start_as_shipped(size(2));
    let (history, kubectl) = (History::of(cluster.etcd_url()), cluster.kubectl());
    apply(&kubectl);
    let leader = cluster.leader(SERVICE);
    kubectl.ok("scale deployment/web-frontend -n production --replicas=100");
    assert!(cluster.process(&leader).stop(), "it ends in good order");
    until_ready(&kubectl, 100);
    let history = history.all();
    let reigns = Reign::all(&history, SERVICE);
    let [first, second] = reigns.as_slice() else {
        panic!("{reigns:?}")
    };
    assert!(first.released);
    let handover = first.handover(second);
    assert!(handover.leaderless < first.lasts / 2, "{handover:?}");
    let pods = history.iter().filter(|entry| entry.created);
    let pods = pods.filter(|entry| entry.key.starts_with("/registry/pods/"));
    assert_eq!(pods.count(), 100, "no Pod is doubled");
}

/// Checks L8: here, too, a successor that waited for a lease to expire would be late.
#[test]
fn a_rolling_restart_has_one_leader_at_a_time_and_soon_another() {
    let mut cluster = Cluster::start_as_shipped(size(3));
    let (history, kubectl) = (History::of(cluster.etcd_url()), cluster.kubectl());
    apply(&kubectl);
    for n in 0..3 {
        let replicas = 20 * (n + 1);
        kubectl.ok(&format!(
            "scale deployment/web-frontend -n production --replicas={replicas}"
        ));
        let name = format!("{SERVICE}-{n}");
        assert!(cluster.process(&name).stop(), "it ends in good order");
        cluster.process(&name).restart();
        until_ready(&kubectl, replicas);
    }
    // Panics if two led at once.
    let reigns = Reign::all(&history.all(), SERVICE);
    assert!((2..=4).contains(&reigns.len()), "{reigns:?}");
    for pair in reigns.windows(2) {
        let [old, new] = pair else { continue };
        assert!(old.released, "{old:?}");
        let handover = old.handover(new);
        assert!(handover.leaderless < old.lasts, "{handover:?}");
    }
}

/// Checks L3, L11: a renewal that hangs, not one that fails, ends the term before another's begins.
#[test]
fn a_leader_whose_calls_hang_has_stopped_when_another_leads() {
    let mut cluster = Cluster::bare();
    let gateway = cluster.gateway_url();
    let wire = Wire::to(gateway.trim_start_matches("http://"));
    let (first, second) = (format!("{SERVICE}-0"), format!("{SERVICE}-1"));
    // From the one's end to the other's beginning there is time enough to write a line.
    let flags = election("6s", "3s");
    cluster.service_through(&wire.url(), &first, SERVICE, &flags);
    assert_eq!(cluster.leader(SERVICE), first);
    cluster.service(&second, SERVICE, &flags);
    let history = History::of(cluster.etcd_url());
    wire.hold();
    eventually("the standby leads", || {
        let now = cluster.leader(SERVICE);
        (now == second).then_some(()).ok_or(now)
    });
    let log = cluster.process(&first).log();
    assert!(log.contains("leadership lost"), "{log}");
    wire.release();
    assert_eq!(Reign::all(&history.all(), SERVICE).len(), 2);
}

/// Checks L9.
#[test]
fn a_store_that_is_lost_for_a_while_leaves_one_leader_and_no_flapping() {
    // The store is lost for longer than the lease lasts.
    let mut cluster = Cluster::start_with(size(3), &election("4s", "3s"));
    let history = History::of(cluster.etcd_url());
    lose_the_store(&mut cluster, &history, 5);
}

/// Checks L9 with the times that users get.
#[test]
#[ignore = "takes minutes"]
fn a_store_that_is_lost_for_a_minute_leaves_one_leader_and_no_flapping() {
    let mut cluster = Cluster::start_as_shipped(size(3));
    let history = History::of(cluster.etcd_url());
    lose_the_store(&mut cluster, &history, 60);
}

fn lose_the_store(cluster: &mut Cluster, history: &History, seconds: u64) {
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    let before = Reign::all(&history.all(), SERVICE).len();
    cluster.process("etcd").signal(Signal::SIGSTOP);
    // Not to wait for anything: this is how long the store is lost.
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    cluster.process("etcd").signal(Signal::SIGCONT);
    cluster.wait_until_ready();
    kubectl.ok("scale deployment/web-frontend -n production --replicas=5");
    until_ready(&kubectl, 5);
    let renewals = renewals(history);
    eventually("the leader leads on", || {
        let now = self::renewals(history);
        (now > renewals + 10).then_some(()).ok_or(now.to_string())
    });
    let reigns = Reign::all(&history.all(), SERVICE);
    assert!(reigns.len() <= before + 1, "{reigns:?}");
}

fn renewals(history: &History) -> usize {
    let lease = format!("/registry/leases/setpoint-system/{SERVICE}");
    let history = history.all();
    history.iter().filter(|entry| entry.key == lease).count()
}
