//! Jumps of wall clocks by an hour: those of replicas do not change the leader, that of a node does not change its
//! Pods. By more than a day: certificates expire.

use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_tests::{
    Cluster, EtcdLog, Kubectl, LeadershipTerm, Size, WallClock, election, eventually, fast_election,
};
use setpoint_tls::authority::{Authority, Leaf, Present};

use crate::node_pressure::{SLEEP, has_phase, pod, until};
use crate::web::text;
use crate::workloads::{CONTROLLERS, MANAGER, create};

const SERVICE: &str = "replicaset-controller";
const HOUR: i64 = 3600;
/// Tolerance between a clock and the time it was set to, on a busy machine.
const SLACK: i64 = 30;
/// Number of renewals that takes longer than the lease duration.
const RENEWALS: usize = 5;
const EVENTS: &str = "/api/v1/namespaces/setpoint-replicas/events";
/// Services that announce themselves, each by a Lease with a name that begins so.
const SERVICES: [&str; 3] = [
    "deployment-controller-",
    "replicaset-controller-",
    "scheduler-",
];
const PROBE: &str = "livenessProbe: {exec: {command: [\"true\"]}, periodSeconds: 1}";

/// Checks L1 (skew) and L2: leadership depends on monotonic clocks only.
#[test]
fn a_jump_of_a_wall_clock_by_an_hour_does_not_change_the_leader() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut pods = 0;
    for (replica, ahead) in [(0, HOUR), (0, -HOUR), (1, HOUR), (1, -HOUR), (0, HOUR)] {
        pair.jump(replica, ahead);
        pair.until_renewed();
        pods += 5;
        pair.scale_to(pods);
    }
    let terms = pair.terms();
    assert_eq!(terms.len(), 1, "there is one term: {terms:?}");
    assert!(terms[0].holder.starts_with(&name(0)), "{terms:?}");
    // The time of the last renewal is an hour ahead, two hours by the other's clock; that must not delay the takeover.
    pair.cluster.process(&name(0)).kill();
    pair.scale_to(pods + 5);
    let terms = pair.terms();
    let [first, second] = terms.as_slice() else {
        panic!("{terms:?}")
    };
    let handover = first.handover(second);
    assert!(
        handover.leaderless < 5 * first.lease_duration,
        "{handover:?}"
    );
}

/// A Pod that runs when the clock jumps goes on, and new ones start, fail and are started again.
#[test]
fn a_jump_of_the_wall_clock_of_a_node_ends_no_pod_and_delays_none() {
    let Some(clock) = WallClock::new() else {
        return;
    };
    let mut cluster = Cluster::start(Size {
        gateways: 1,
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 0,
    });
    let controllers = CONTROLLERS.map(str::to_owned);
    cluster.service(MANAGER, 0, &[fast_election(), controllers.into()].concat());
    let state = cluster.node("node-0").display().to_string();
    let flags = ["--node-name", "node-0", "--state-dir", &state].map(str::to_owned);
    cluster.service_by(&clock, "node-agent", 0, &flags);
    let kubectl = cluster.kubectl();
    create(&kubectl, &pod("steady", PROBE, SLEEP));
    until(&kubectl, "steady", has_phase("Running"));
    for (name, ahead) in [("ahead", HOUR), ("behind", -HOUR), ("right", 0)] {
        clock.set(ahead);
        create(&kubectl, &pod(name, PROBE, "exit 3"));
        let status = until(&kubectl, name, |status| {
            status["containerStatuses"][0]["restartCount"].as_i64() > Some(0)
        });
        let started: Timestamp = text(&status, "/startTime").parse().expect("it has started");
        let off = started.as_second() - Timestamp::now().as_second();
        assert!(
            (off - ahead).abs() < SLACK,
            "the clock of the node is {off} s ahead"
        );
    }
    let steady = kubectl.json("get pod steady");
    assert_eq!(steady["status"]["containerStatuses"][0]["ready"], true);
    assert_eq!(steady["status"]["containerStatuses"][0]["restartCount"], 0);
    let node = kubectl.json("get node node-0");
    assert_eq!(
        node["spec"]["taints"],
        Value::Null,
        "its Lease was renewed all the time"
    );
}

/// As after the sleep of a machine: all certificates have expired at once, and nobody does anything about it. Before
/// that, Events tell that they are not renewed. The clock of etcd cannot be set, so its certificates live longer here.
#[test]
fn a_cluster_that_slept_for_longer_than_its_certificates_live_recovers() {
    let Some(clock) = WallClock::new() else {
        return;
    };
    let mut cluster = Cluster::by_clock(
        Size {
            process_nodes: 0,
            ..Size::default()
        },
        &clock,
    );
    keep_etcd_certificates(&cluster);
    clock.set(20 * HOUR);
    eventually("each process tells that its certificate expires", || {
        let events = curl(&cluster, &clock, &[EVENTS]);
        let is_told = |service| events.contains(&format!("\"name\": \"{service}"));
        let all = events.contains("CertificateExpiring") && SERVICES.into_iter().all(is_told);
        all.then_some(()).ok_or(events)
    });
    cluster.start_certs(&clock);
    clock.set(26 * HOUR);
    let curl = |arguments: &[&str]| curl(&cluster, &clock, arguments);
    eventually("the gateway serves clients of the new time", || {
        let answer = curl(&["/readyz"]);
        (answer == "ok").then_some(()).ok_or(answer)
    });
    let body = set()
        .to_string()
        .replace("\"replicas\":0", "\"replicas\":1");
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let json = "Content-Type: application/json";
    let created = curl(&[sets, "-H", json, "-d", &body]);
    assert!(created.contains("\"kind\": \"ReplicaSet\""), "{created}");
    eventually("its Pod is made, bound and run", || {
        let pods = curl(&["/api/v1/namespaces/default/pods"]);
        let parsed: Value = serde_json::from_str(&pods).map_err(|_| pods.clone())?;
        let phase = text(&parsed, "/items/0/status/phase");
        (phase == "Running").then_some(()).ok_or(pods)
    });
}

/// Replaces the certificates of etcd and of its client by ones that are valid by both clocks.
fn keep_etcd_certificates(cluster: &Cluster) {
    let pki = cluster.directory().join("pki");
    let [certificate, key] = ["crt", "key"].map(|end| pki.join(format!("etcd-ca.{end}")));
    let authority = Authority::load(&certificate, &key).expect("it was made");
    for files in [
        cluster.pki().files("etcd-0"),
        cluster.pki().etcd_client("gateway-0"),
    ] {
        let present = Present::read(&files.certificate_file).expect("it was made");
        let leaf = Leaf {
            lifetime: Duration::from_secs(30 * 86_400),
            ..present.leaf
        };
        let issued = authority.issue(&leaf).expect("it is issued");
        issued.write(&files).expect("it is writable");
    }
}

/// Sends a request to the gateway as the administrator, by a clock; the first argument is the path.
fn curl(cluster: &Cluster, clock: &WallClock, arguments: &[&str]) -> String {
    let files = cluster.pki().administrator();
    let mut command = Command::new("curl");
    command
        .args(["-s", "-S", "--max-time", "10", "--cacert"])
        .arg(files.ca_file)
        .arg("--cert")
        .arg(files.certificate_file)
        .arg("--key")
        .arg(files.key_file)
        .arg(format!("{}{}", &*cluster.gateway_url(), arguments[0]))
        .args(&arguments[1..])
        .envs(clock.environment());
    let output = command.output().expect("curl is installed");
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

fn name(replica: usize) -> String {
    format!("{SERVICE}-{replica}")
}

/// Two replicas, each with a wall clock of its own; the first leads.
struct Pair {
    cluster: Cluster,
    kubectl: Kubectl,
    history: EtcdLog,
    clocks: [WallClock; 2],
}

impl Pair {
    fn start() -> Option<Self> {
        let clocks = [WallClock::new()?, WallClock::new()?];
        let mut cluster = Cluster::bare();
        // The log is the only place where a standby shows its time.
        let log = vec!["--log".into(), "debug".into()];
        let flags = [election("4s", "3s"), log].concat();
        for (replica, clock) in clocks.iter().enumerate() {
            cluster.service_by(clock, SERVICE, replica, &flags);
            assert_eq!(cluster.leader(SERVICE), name(0));
        }
        let kubectl = cluster.kubectl();
        let output = kubectl.with("create", &set().to_string());
        assert!(output.success, "{}", output.stderr);
        Some(Self {
            kubectl,
            history: EtcdLog::of(&cluster.etcd_url()),
            cluster,
            clocks,
        })
    }

    /// Sets a replica's clock, and waits until the replica's log shows the new time.
    fn jump(&mut self, replica: usize, ahead: i64) {
        self.clocks[replica].set(ahead);
        eventually("the clock has jumped", || {
            let log = self.cluster.log(&name(replica));
            let shown = log.lines().rev().find_map(time).ok_or("the log is empty")?;
            let off = shown.as_second() - Timestamp::now().as_second();
            let jumped = (off - ahead).abs() < SLACK;
            jumped.then_some(()).ok_or(format!("it is {off} s ahead"))
        });
    }

    /// Waits for renewals over more than the lease duration.
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

    /// Scales to `count` Pods and waits until they exist.
    fn scale_to(&self, count: usize) {
        self.kubectl
            .ok(&format!("scale rs/demo --replicas={count}"));
        eventually("all Pods exist", || {
            let output = self
                .kubectl
                .run("get rs demo -o jsonpath={.status.replicas}");
            let all = output.stdout == count.to_string();
            all.then_some(()).ok_or(output.stdout)
        });
    }

    /// Panics if two replicas led at once, or a write of another replica than the leader was accepted.
    fn terms(&self) -> Vec<LeadershipTerm> {
        LeadershipTerm::all(&self.history.all(), SERVICE)
    }
}

/// Returns the timestamp of a log line, by the clock of its process.
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
