//! All processes are restarted one at a time under load: no acknowledged write is lost, no Pod is created twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use setpoint_controller::Whole;
use setpoint_proto::core::Pod;
use setpoint_tests::{Address, Cluster, Kubectl, Size, Writers, client, eventually};
use tokio_util::sync::CancellationToken;

use crate::web::{apply, until_ready};

const SIZE: Size = Size {
    gateways: 2,
    replicas: 2,
    process_nodes: 1,
    simulated_nodes: 2,
};

/// Checks S4: a rolling restart of all processes causes only short interruptions.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_of_all_services_under_load_loses_no_write_and_duplicates_no_pod() {
    let mut cluster = Cluster::start(SIZE);
    apply(&cluster.kubectl());
    let urls = cluster.gateway_urls();
    let nodes = record_nodes(&urls);
    let writers = Writers::start(&urls, 3);
    let scaler = Scaler::start([cluster.kubectl_at(0), cluster.kubectl_at(1)]);
    for name in names() {
        let process = cluster.process(&name);
        assert!(process.stop(), "{name} exits without an error");
        process.restart();
        cluster.wait_until_ready();
    }
    let (acknowledged, replicas) = scaler.end();
    let sure = writers.stop_and_verify().await;
    assert!(acknowledged > 2 && sure > 20, "{acknowledged}, {sure}");

    let kubectl = cluster.kubectl();
    until_ready(&kubectl, replicas);
    eventually("no other Pods are left", || {
        let pods = kubectl.ok("get pods -n production -o name");
        let exact = pods.lines().count() == replicas;
        exact.then_some(()).ok_or(pods)
    });
    eventually("there is one ReplicaSet of this size", || {
        let sets = kubectl.json("get rs -n production");
        let sets = sets["items"].as_array().cloned().unwrap_or_default();
        assert_eq!(sets.len(), 1, "{sets:?}");
        let shown = [&sets[0]["spec"], &sets[0]["status"]].map(|part| &part["replicas"]);
        let exact = shown.iter().all(|shown| **shown == replicas);
        exact.then_some(()).ok_or(format!("{shown:?}"))
    });
    for (pod, nodes) in nodes.lock().iter() {
        assert!(nodes.len() <= 1, "{pod} was on {nodes:?}");
    }
}

/// Returns all processes except etcd.
fn names() -> Vec<String> {
    let services = [
        ("gateway", SIZE.gateways),
        ("deployment-controller", SIZE.replicas),
        ("replicaset-controller", SIZE.replicas),
        ("scheduler", SIZE.replicas),
        ("node-agent", SIZE.process_nodes + 1),
    ];
    let names = services
        .iter()
        .flat_map(|(service, count)| (0..*count).map(move |n| format!("{service}-{n}")));
    names.collect()
}

type Nodes = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

/// Starts to record the nodes to which each Pod is ever bound.
fn record_nodes(gateways: &Address) -> Nodes {
    let nodes = Nodes::default();
    let record = nodes.clone();
    let informer = client(gateways)
        .informer::<Whole<Pod>>()
        .on_event(move |delta| {
            let Some(pod) = &delta.new else { return };
            let node = pod.object.spec.node_name.clone();
            let mut record = record.lock();
            let seen = record.entry(pod.meta.uid.clone()).or_default();
            seen.extend((!node.is_empty()).then_some(node));
        });
    tokio::spawn(informer.run(CancellationToken::new()));
    nodes
}

/// A client that scales the Deployment up and down, and reads each result through the other gateway.
struct Scaler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(usize, usize)>,
}

impl Scaler {
    fn start(gateways: [Kubectl; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = thread::spawn(move || {
            let mut acknowledged = 0;
            for n in 0.. {
                let replicas = 2 + n % 4;
                let scaled = scale(&gateways[n % 2], replicas);
                if scaled {
                    acknowledged += 1;
                    check(&gateways[(n + 1) % 2], replicas);
                }
                // The last write must be acknowledged, so that the final state is known.
                if scaled && stopping.load(Ordering::Relaxed) {
                    return (acknowledged, replicas);
                }
            }
            unreachable!("the loop is endless");
        });
        Self { stop, thread }
    }

    /// Returns the number of acknowledged writes, and the last number of replicas.
    fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the client does not panic")
    }
}

fn scale(kubectl: &Kubectl, replicas: usize) -> bool {
    let scale = "scale deployment/web-frontend -n production --replicas";
    kubectl.run(&format!("{scale}={replicas}")).success
}

/// Asserts that a gateway shows this number of replicas; errors are ignored, because the gateway may be restarting.
fn check(kubectl: &Kubectl, replicas: usize) {
    let get = "get deployment web-frontend -n production -o jsonpath={.spec.replicas}";
    let output = kubectl.run(get);
    if output.success {
        assert_eq!(output.stdout, replicas.to_string());
    }
}
