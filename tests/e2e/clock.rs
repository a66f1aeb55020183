//! Wall clocks of replicas jump by an hour, as when somebody sets them: who leads goes on to lead.

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_tests::{Cluster, History, Kubectl, Reign, WallClock, election, eventually};

const SERVICE: &str = "replicaset-controller";
const HOUR: i64 = 3600;
/// What a clock that was set may differ from that by, on a busy machine.
const SLACK: i64 = 30;
/// More than fit into the time that a lease lasts.
const RENEWALS: usize = 14;

/// Checks L1 (skew) and L2: only monotonic clocks decide who leads.
#[test]
fn a_wall_clock_that_jumps_by_an_hour_changes_no_leader() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut pods = 0;
    for (replica, ahead) in [(0, HOUR), (0, -HOUR), (1, HOUR), (1, -HOUR), (0, HOUR)] {
        pair.jump(replica, ahead);
        pair.until_renewed();
        pods += 5;
        pair.until_there_are(pods);
    }
    let reigns = pair.reigns();
    assert_eq!(reigns.len(), 1, "nobody took over: {reigns:?}");
    assert!(reigns[0].holder.starts_with(&name(0)), "{reigns:?}");
    // Its last renewal is dated an hour from now, two by the other's clock, and that delays nobody.
    pair.cluster.process(&name(0)).kill();
    pair.until_there_are(pods + 5);
    let reigns = pair.reigns();
    let [first, second] = reigns.as_slice() else {
        panic!("{reigns:?}")
    };
    let handover = first.handover(second);
    assert!(handover.leaderless < 5 * first.lasts, "{handover:?}");
}

fn name(replica: usize) -> String {
    format!("{SERVICE}-{replica}")
}

/// Two replicas, each with a wall clock of its own; the first leads.
struct Pair {
    cluster: Cluster,
    kubectl: Kubectl,
    history: History,
    clocks: [WallClock; 2],
}

impl Pair {
    fn start() -> Option<Self> {
        let clocks = [WallClock::new()?, WallClock::new()?];
        let mut cluster = Cluster::bare();
        // Its log is how one sees what time it is for a replica that only stands by.
        let log = vec!["--log".into(), "debug".into()];
        let flags = [election("4s", "3s"), log].concat();
        for (replica, clock) in clocks.iter().enumerate() {
            cluster.service_by(clock, &name(replica), SERVICE, &flags);
            assert_eq!(cluster.leader(SERVICE), name(0));
        }
        let kubectl = cluster.kubectl();
        let output = kubectl.with("create", &set().to_string());
        assert!(output.success, "{}", output.stderr);
        Some(Self {
            kubectl,
            history: History::of(cluster.etcd_url()),
            cluster,
            clocks,
        })
    }

    /// Sets a replica's clock, and makes sure that the replica has noticed.
    fn jump(&mut self, replica: usize, ahead: i64) {
        self.clocks[replica].set(ahead);
        let process = self.cluster.process(&name(replica));
        eventually("the clock has jumped", || {
            let log = process.log();
            let told = log.lines().rev().find_map(time).ok_or("it says nothing")?;
            let off = told.as_second() - Timestamp::now().as_second();
            let jumped = (off - ahead).abs() < SLACK;
            jumped.then_some(()).ok_or(format!("it is {off} s ahead"))
        });
    }

    /// Waits for renewals over more time than the lease lasts.
    fn until_renewed(&self) {
        let before = self.renewals();
        eventually("the leader renews", || {
            let now = self.renewals();
            (now > before + RENEWALS)
                .then_some(())
                .ok_or(now.to_string())
        });
    }

    fn renewals(&self) -> usize {
        let lease = format!("/registry/leases/setpoint-system/{SERVICE}");
        let history = self.history.so_far();
        history.iter().filter(|entry| entry.key == lease).count()
    }

    /// Asks for so many Pods, and waits for them.
    fn until_there_are(&self, count: usize) {
        self.kubectl
            .ok(&format!("scale rs/demo --replicas={count}"));
        eventually("all Pods are there", || {
            let output = self
                .kubectl
                .run("get rs demo -o jsonpath={.status.replicas}");
            let all = output.stdout == count.to_string();
            all.then_some(()).ok_or(output.stdout)
        });
    }

    /// Panics if two led at once, or a write was accepted that was not the leader's.
    fn reigns(&self) -> Vec<Reign> {
        Reign::all(&self.history.all(), SERVICE)
    }
}

/// When a line was written, as its process saw it.
fn time(line: &str) -> Option<Timestamp> {
    let line: Value = serde_json::from_str(line).ok()?;
    line["timestamp"].as_str()?.parse().ok()
}

fn set() -> Value {
    let labels = json!({"app": "demo"});
    let containers = json!([{"name": "app", "image": "app:1"}]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    })
}
