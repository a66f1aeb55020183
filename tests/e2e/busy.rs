//! Leaders renew their Leases in time while clients put a heavy load on the gateway.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use setpoint_tests::{
    Address, Cluster, ELECTED, Entry, EtcdLog, LeadershipTerm, Size, election, eventually, http,
};

/// Maximum time between two renewals: half of the renew deadline, and a tolerance.
const APART: Duration = Duration::from_millis(1500 + 1000);
const CONNECTIONS: usize = 64;
const RENEWALS: usize = 10;

/// Checks F2: large lists over 64 connections do not keep a leader from renewing its Lease.
#[test]
fn a_client_with_64_busy_connections_does_not_delay_a_renewal_by_more_than_a_second() {
    let size = Size {
        gateways: 1,
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 1,
    };
    let cluster = Cluster::start_with(size, &election("15s", "3s"));
    let gateway = cluster.gateway_url();
    let before = fill(&gateway);
    let history = EtcdLog::of(&cluster.etcd_url());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| keep_busy(&gateway, &done));
        }
        eventually("all leaders have renewed many times", || {
            let entries = history.so_far();
            let count = |service| renewals(&entries, service, before).len();
            let counts = ELECTED.map(count);
            let enough = counts.iter().all(|count| *count > RENEWALS);
            enough.then_some(()).ok_or(format!("{counts:?}"))
        });
        done.store(true, Ordering::Relaxed);
    });
    let entries = history.all();
    for service in ELECTED {
        assert_eq!(
            LeadershipTerm::all(&entries, service).len(),
            1,
            "{service} kept its Lease"
        );
        let renewals = renewals(&entries, service, before);
        for pair in renewals[..=RENEWALS].windows(2) {
            let [one, next] = pair else { continue };
            let apart = Duration::from_nanos(next.abs_diff(*one));
            assert!(apart <= APART, "{service} renewed after {apart:?}");
        }
    }
}

/// Creates some megabytes of ConfigMaps; returns the revision of the last.
fn fill(gateway: &Address) -> i64 {
    let value = "x".repeat(8 << 10);
    let mut last = 0;
    for n in 0..300 {
        let body = format!(r#"{{"metadata":{{"name":"c{n}"}},"data":{{"value":"{value}"}}}}"#);
        let path = "/api/v1/namespaces/default/configmaps";
        let json = [("Content-Type", "application/json")];
        let reply = http::send("POST", gateway, path, &json, &body).expect("the gateway responds");
        assert_eq!(reply.status, 201, "{}", reply.body);
        let made: serde_json::Value = serde_json::from_str(&reply.body).expect("JSON");
        let revision = made["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default();
        last = revision.parse().expect("a revision of etcd");
    }
    last
}

/// Lists everything repeatedly. Responses are ignored, even 429.
fn keep_busy(gateway: &Address, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let _ = http::get(gateway, "/api/v1/configmaps");
    }
}

/// Returns the times of all writes of a service's Lease after a revision, in nanoseconds since 1970.
fn renewals(entries: &[Entry], service: &str, after: i64) -> Vec<i64> {
    let key = format!("/registry/leases/setpoint-system/{service}");
    let entries = entries.iter();
    let own = entries.filter(|entry| entry.key == key && entry.revision > after);
    own.map(|entry| entry.cause.written_ns).collect()
}
