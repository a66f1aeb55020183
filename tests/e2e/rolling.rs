//! Every service is restarted, one after the other, while people work: nothing acknowledged is lost, nothing is doubled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use setpoint_controller::Whole;
use setpoint_proto::core::Pod;
use setpoint_tests::{Cluster, Kubectl, Size, Traffic, client, eventually};
use tokio_util::sync::CancellationToken;

use crate::web::{apply, until_ready};

const SIZE: Size = Size {
    gateways: 2,
    replicas: 2,
    process_nodes: 1,
    simulated_nodes: 2,
};

/// Checks S4: a restart of everything is not noticed, but for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_of_all_services_under_load_loses_and_doubles_nothing() {
    let mut cluster = Cluster::start(SIZE);
    apply(&cluster.kubectl());
    let urls = cluster.gateway_urls();
    let nodes = note_nodes(&urls);
    let traffic = Traffic::begin(&urls, 3);
    let scaler = Scaler::begin([cluster.kubectl_at(0), cluster.kubectl_at(1)]);
    for name in names() {
        let process = cluster.process(&name);
        assert!(process.stop(), "{name} ends in good order");
        process.restart();
        cluster.wait_until_ready();
    }
    let (acknowledged, replicas) = scaler.end();
    let sure = traffic.end().await;
    assert!(acknowledged > 5 && sure > 100, "{acknowledged}, {sure}");

    let kubectl = cluster.kubectl();
    until_ready(&kubectl, replicas);
    eventually("nothing else is left", || {
        let pods = kubectl.ok("get pods -n production -o name");
        let exact = pods.lines().count() == replicas;
        exact.then_some(()).ok_or(pods)
    });
    eventually("the one ReplicaSet says so", || {
        let sets = kubectl.json("get rs -n production");
        let sets = sets["items"].as_array().cloned().unwrap_or_default();
        assert_eq!(sets.len(), 1, "{sets:?}");
        let told = [&sets[0]["spec"], &sets[0]["status"]].map(|part| &part["replicas"]);
        let exact = told.iter().all(|told| **told == replicas);
        exact.then_some(()).ok_or(format!("{told:?}"))
    });
    for (pod, nodes) in nodes.lock().iter() {
        assert!(nodes.len() <= 1, "{pod} was on {nodes:?}");
    }
}

/// Every process but etcd.
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

/// On which nodes was each Pod ever seen?
fn note_nodes(urls: &str) -> Nodes {
    let nodes = Nodes::default();
    let notes = nodes.clone();
    let informer = client(urls)
        .informer::<Whole<Pod>>()
        .on_event(move |delta| {
            let Some(pod) = &delta.new else { return };
            let node = pod.object.spec.node_name.clone();
            let mut notes = notes.lock();
            let seen = notes.entry(pod.meta.uid.clone()).or_default();
            seen.extend((!node.is_empty()).then_some(node));
        });
    tokio::spawn(informer.run(CancellationToken::new()));
    nodes
}

/// A person who scales the Deployment up and down, and looks after each time whether the other gateway agrees.
struct Scaler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(usize, usize)>,
}

impl Scaler {
    fn begin(gateways: [Kubectl; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread = thread::spawn(move || {
            let mut acknowledged = 0;
            for n in 0.. {
                let replicas = 2 + n % 4;
                let scaled = scale(&gateways[n % 2], replicas);
                if scaled {
                    acknowledged += 1;
                    check(&gateways[(n + 1) % 2], replicas);
                }
                // It ends with one that is certain.
                if scaled && asked.load(Ordering::Relaxed) {
                    return (acknowledged, replicas);
                }
            }
            unreachable!("there are numbers enough");
        });
        Self { stop, thread }
    }

    /// How often it was acknowledged, and how many replicas it ended with.
    fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the person does not panic")
    }
}

fn scale(kubectl: &Kubectl, replicas: usize) -> bool {
    let scale = "scale deployment/web-frontend -n production --replicas";
    kubectl.run(&format!("{scale}={replicas}")).success
}

/// A gateway that is away says nothing; but none says anything else.
fn check(kubectl: &Kubectl, replicas: usize) {
    let get = "get deployment web-frontend -n production -o jsonpath={.spec.replicas}";
    let output = kubectl.run(get);
    if output.success {
        assert_eq!(output.stdout, replicas.to_string());
    }
}
