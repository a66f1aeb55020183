//! A leader freezes in the middle of its work and thaws when another leads: none of its late writes is accepted.
//!
//! Its wire to the gateway holds back what it has just sent, so that in each round there certainly are late writes.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use serde_json::json;
use setpoint_tests::{Cluster, History, Kubectl, Reign, Wire, eventually, fast_election, http};

const SERVICE: &str = "replicaset-controller";
const PODS: usize = 100;

/// Checks L4 and L5 with real processes.
#[test]
fn no_late_write_of_a_frozen_leader_is_accepted() {
    Arena::open().freeze_leaders(3);
}

/// Checks L5, for as long as it takes to be sure.
#[test]
#[ignore = "takes minutes"]
fn no_late_write_of_a_frozen_leader_is_accepted_in_fifty_rounds() {
    Arena::open().freeze_leaders(50);
}

/// Two replicas of one controller, each with a wire of its own.
struct Arena {
    cluster: Cluster,
    kubectl: Kubectl,
    history: History,
    wires: BTreeMap<String, Wire>,
}

impl Arena {
    fn open() -> Self {
        let mut cluster = Cluster::bare();
        let gateway = cluster.gateway_url();
        let mut wires = BTreeMap::new();
        for n in 0..2 {
            let name = format!("{SERVICE}-{n}");
            let wire = Wire::to(gateway.trim_start_matches("http://"));
            cluster.service_through(&wire.url(), &name, SERVICE, &fast_election());
            wires.insert(name, wire);
        }
        Self {
            kubectl: cluster.kubectl(),
            history: History::of(cluster.etcd_url()),
            cluster,
            wires,
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
                // Otherwise the late writes come while the other one still works.
                self.until_all_is_done(round);
            }
            self.wires[&frozen].release();
            eventually("late writes are refused and counted", || {
                let now = self.fenced();
                (now > fenced).then_some(()).ok_or(format!("{now}"))
            });
            self.cluster.process(&frozen).signal(Signal::SIGCONT);
            self.until_all_is_done(round);
            self.kubectl.ok("delete rs --all --wait=false");
            println!(
                "round {round}: {} late writes were refused",
                self.fenced() - fenced
            );
        }
        self.judge(rounds);
    }

    fn judge(&self, rounds: usize) {
        let history = self.history.all();
        // Panics if a write was accepted under another term than the one that stood.
        let reigns = Reign::all(&history, SERVICE);
        assert!(reigns.len() > rounds, "{reigns:?}");
        for set in (0..rounds).flat_map(sets) {
            let prefix = format!("/registry/pods/default/{set}-");
            let pods = history
                .iter()
                .filter(|entry| entry.key.starts_with(&prefix));
            let created = pods.filter(|entry| entry.created).count();
            assert_eq!(created, PODS, "Pods of {set} were doubled");
        }
    }

    /// Freezes it in the middle of a big scale-up, when it has sent writes that have not arrived.
    fn freeze_the_leader(&mut self, round: usize) -> String {
        let leader = self.cluster.leader(SERVICE);
        let [early, late] = sets(round);
        self.scale_up(&early);
        eventually("it is at work", || {
            let prefix = format!("/registry/pods/default/{early}-");
            let history = self.history.so_far();
            let begun = history.iter().any(|entry| entry.key.starts_with(&prefix));
            begun.then_some(()).ok_or_else(String::new)
        });
        self.wires[&leader].hold();
        // It may have been faster than we; now it has work again, and sees it.
        self.scale_up(&late);
        eventually("a Pod of the second set is on its way", || {
            let delayed = self.wires[&leader].delayed();
            let name = format!("{late}-");
            let mut parts = delayed.windows(name.len());
            let under_way = parts.any(|part| part == name.as_bytes());
            under_way
                .then_some(())
                .ok_or(format!("{} bytes", delayed.len()))
        });
        self.cluster.process(&leader).signal(Signal::SIGSTOP);
        leader
    }

    /// At once: a leader whose renewals are held back leads for a moment only, and kubectl takes its time.
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
        let address = gateway.trim_start_matches("http://");
        let path = "/apis/apps/v1/namespaces/default/replicasets";
        let json = [("Content-Type", "application/json")];
        let reply = http::send("POST", address, path, &json, &manifest.to_string());
        let reply = reply.expect("the gateway answers");
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    fn until_all_is_done(&self, round: usize) {
        for set in sets(round) {
            eventually("all Pods are there", || {
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
