//! A leader is frozen while it writes and continues when another replica leads: none of its late writes is accepted.
//!
//! Its link to the gateway holds back requests, so that each round has late writes.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use serde_json::json;
use setpoint_tests::{
    Cluster, EtcdLog, Kubectl, LeadershipTerm, Link, eventually, fast_election, http,
};

const SERVICE: &str = "replicaset-controller";
const PODS: usize = 100;
/// Bytes that are held back only if a write is among them: renewals of a Lease and pings take less.
const CREATES: usize = 2000;

/// Checks L4 and L5 with real processes.
#[test]
fn no_late_write_of_a_frozen_leader_is_accepted() {
    Fixture::open().freeze_leaders(3);
}

/// Checks L5 in many rounds.
#[test]
#[ignore = "takes minutes"]
fn no_late_write_of_a_frozen_leader_is_accepted_in_fifty_rounds() {
    Fixture::open().freeze_leaders(50);
}

/// Two replicas of one controller, each with a link of its own to the gateway.
struct Fixture {
    cluster: Cluster,
    kubectl: Kubectl,
    history: EtcdLog,
    links: BTreeMap<String, Link>,
}

impl Fixture {
    fn open() -> Self {
        let mut cluster = Cluster::bare();
        let gateway = cluster.gateway_url();
        let mut links = BTreeMap::new();
        for n in 0..2 {
            let link = Link::to(&gateway);
            cluster.service_through(&link.url(), SERVICE, n, &fast_election());
            links.insert(format!("{SERVICE}-{n}"), link);
        }
        Self {
            kubectl: cluster.kubectl(),
            history: EtcdLog::of(&cluster.etcd_url()),
            cluster,
            links,
        }
    }

    fn freeze_leaders(mut self, rounds: usize) {
        for round in 0..rounds {
            let fenced = self.fenced();
            let frozen = self.freeze_the_leader(round);
            eventually("the standby takes over", || {
                let now = self.cluster.leader(SERVICE);
                (now != frozen).then_some(()).ok_or(now)
            });
            if round % 2 == 0 {
                // In the other rounds the late writes arrive while the new leader still works.
                self.until_all_is_done(round);
            }
            self.links[&frozen].release();
            eventually("late writes are rejected and counted", || {
                let now = self.fenced();
                (now > fenced).then_some(()).ok_or(format!("{now}"))
            });
            self.cluster.process(&frozen).signal(Signal::SIGCONT);
            self.until_all_is_done(round);
            self.kubectl.ok("delete rs --all --wait=false");
            println!(
                "round {round}: {} late writes were rejected",
                self.fenced() - fenced
            );
        }
        self.verify(rounds);
    }

    fn verify(&self, rounds: usize) {
        let history = self.history.all();
        // Panics if a write was accepted under another term than the current one.
        let terms = LeadershipTerm::all(&history, SERVICE);
        assert!(terms.len() > rounds, "{terms:?}");
        for set in (0..rounds).flat_map(sets) {
            let prefix = format!("/registry/pods/default/{set}-");
            let pods = history
                .iter()
                .filter(|entry| entry.key.starts_with(&prefix));
            let created = pods.filter(|entry| entry.created).count();
            assert_eq!(created, PODS, "wrong number of Pods of {set}");
        }
    }

    /// Freezes the leader during a large scale-up, when its link holds back writes. Returns its name.
    fn freeze_the_leader(&mut self, round: usize) -> String {
        let leader = self.cluster.leader(SERVICE);
        let [early, late] = sets(round);
        self.scale_up(&early);
        eventually("the leader is creating Pods", || {
            let prefix = format!("/registry/pods/default/{early}-");
            let history = self.history.so_far();
            let begun = history.iter().any(|entry| entry.key.starts_with(&prefix));
            begun.then_some(()).ok_or_else(String::new)
        });
        self.links[&leader].hold_requests();
        // The leader may have finished the first set before the hold, so it gets a second one.
        self.scale_up(&late);
        eventually("the link holds back creates of Pods", || {
            let delayed = self.links[&leader].backlog().len();
            (delayed >= CREATES)
                .then_some(())
                .ok_or(format!("{delayed} bytes"))
        });
        self.cluster.process(&leader).signal(Signal::SIGSTOP);
        leader
    }

    /// Creates a set by HTTP, because kubectl is too slow: a leader whose renewals are held back soon stops leading.
    fn scale_up(&self, set: &str) {
        let labels = json!({"app": set});
        let containers = json!([{"name": "app", "image": "app:1"}]);
        let manifest = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": set, "namespace": "default"},
            "spec": {
                "replicas": PODS,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            },
        });
        let gateway = self.cluster.gateway_url();
        let path = "/apis/apps/v1/namespaces/default/replicasets";
        let json = [("Content-Type", "application/json")];
        let reply = http::send("POST", &gateway, path, &json, &manifest.to_string());
        let reply = reply.expect("the gateway answers");
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    fn until_all_is_done(&self, round: usize) {
        for set in sets(round) {
            eventually("all Pods exist", || {
                let output = self
                    .kubectl
                    .run(&format!("get rs {set} -o jsonpath={{.status.replicas}}"));
                (output.stdout == PODS.to_string())
                    .then_some(())
                    .ok_or(output.stdout)
            });
        }
    }

    fn fenced(&self) -> u64 {
        let metrics = self.kubectl.ok("get --raw /metrics");
        let counts = metrics
            .lines()
            .filter(|line| line.starts_with("setpoint_fenced_writes_total{"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }
}

fn sets(round: usize) -> [String; 2] {
    ["early", "late"].map(|name| format!("{name}-{round}"))
}
