//! Services carry traffic: a cluster with a proxy, in a network namespace of the test.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

pub mod load;
mod local;
mod pods;
mod policies;
mod warnings;

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use setpoint_testkit::enter_namespace;
use setpoint_tests::{Cluster, Kubectl, Size, eventually, fast_election};

use self::load::{Load, ask};

/// One interface with addresses of 10.1.0.0/24, and a default route.
const NETWORK: [&str; 7] = [
    "link add pods type veth peer name others",
    "addr add 10.1.0.1/24 dev pods",
    "addr add 10.1.0.11/24 dev pods",
    "addr add 10.1.0.12/24 dev pods",
    "link set pods up",
    "link set others up",
    "route add default via 10.1.0.254",
];

/// A server that answers each connection with its name until it is dropped.
struct Server {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(name: &'static str, at: &str) -> Self {
        let at: SocketAddr = at.parse().unwrap();
        let listener = TcpListener::bind(at).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let serve = move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::Relaxed) {
                    return;
                }
                let _ = stream.unwrap().write_all(name.as_bytes());
            }
        };
        Self {
            at,
            stop,
            thread: Some(thread::spawn(serve)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.at);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns an endpoint; one that is not ready ends.
fn endpoint(ip: &str, ready: bool) -> Value {
    let conditions = json!({"ready": ready, "serving": true, "terminating": !ready});
    json!({"addresses": [ip], "nodeName": "node-0", "conditions": conditions})
}

/// Sets the endpoints of the Service.
fn set(kubectl: &Kubectl, endpoints: &[Value]) {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "80-8080", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints,
    });
    let output = kubectl.with("apply", &slice.to_string());
    assert!(output.success, "{}", output.stderr);
}

/// Waits until only a server of this name answers.
fn only(at: SocketAddr, name: &str) {
    eventually(name, || {
        let mut answers = (0..20).map(|_| ask(at).unwrap_or_else(|error| error.to_string()));
        let other = answers.find(|answer| answer != name);
        other.map_or(Ok(()), Err)
    });
}

/// Checks ES2: connections reach endpoints, and neither a rollout nor the end of the proxy loses one.
#[test]
fn services_carry_traffic_through_a_rollout_and_the_death_of_the_proxy() {
    let test = "services::services_carry_traffic_through_a_rollout_and_the_death_of_the_proxy";
    if !enter_namespace(test, "a cluster whose Services carry traffic", &NETWORK) {
        return;
    }
    let mut cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let flags = ["--table", "setpoint-e2e", "--nodes", "node-0"].map(str::to_owned);
    cluster.service("proxy", 0, &flags);
    let kubectl = cluster.kubectl();
    kubectl.ok("create service nodeport web --tcp=80:8080 --node-port=30080");
    kubectl
        .ok("patch service web --type=json -p=[{\"op\":\"remove\",\"path\":\"/spec/selector\"}]");
    let service = kubectl.json("get service web");
    let at = format!("{}:80", service["spec"]["clusterIP"].as_str().unwrap());
    let at: SocketAddr = at.parse().unwrap();
    eventually("a Service without endpoints refuses", || match ask(at) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        answer => Err(format!("{answer:?}")),
    });
    let first = Server::start("first", "10.1.0.11:8080");
    set(&kubectl, &[endpoint("10.1.0.11", true)]);
    only(at, "first");
    // The InternalIP of the node is an address of the machine.
    only("127.0.0.1:30080".parse().unwrap(), "first");

    let load = Load::start(at);
    load.goes_on();
    let second = Server::start("second", "10.1.0.12:8080");
    set(
        &kubectl,
        &[endpoint("10.1.0.11", true), endpoint("10.1.0.12", true)],
    );
    load.goes_on();
    set(
        &kubectl,
        &[endpoint("10.1.0.11", false), endpoint("10.1.0.12", true)],
    );
    only(at, "second");
    drop(first);
    set(&kubectl, &[endpoint("10.1.0.12", true)]);
    load.goes_on();

    cluster.process("proxy-0").kill();
    load.goes_on();
    cluster.process("proxy-0").restart();
    eventually("the proxy has programmed everything", || {
        let log = cluster.log("proxy-0");
        (log.matches("\"full\"").count() > 1)
            .then_some(())
            .ok_or(log)
    });
    load.goes_on();
    let (count, failed) = load.end();
    assert!(failed.is_empty() && count > 200, "{failed:?} of {count}");
    drop(second);
}

#[test]
fn load_balancers_have_the_addresses_of_the_settings_until_they_are_deleted() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let flags = [
        "--service-lb-enabled=true",
        "--service-lb-addresses=192.0.2.1",
    ];
    let flags = flags.map(str::to_owned);
    cluster.service(
        "controller-manager",
        0,
        &[fast_election(), flags.into()].concat(),
    );
    let kubectl = cluster.kubectl();
    kubectl.ok("create service loadbalancer web --tcp=80:8080");
    let ingress = || kubectl.json("get service web")["status"]["loadBalancer"]["ingress"].clone();
    eventually("the Service has the address", || {
        let found = ingress();
        let is_there = found[0]["ip"] == "192.0.2.1" && found[0]["ipMode"] == "VIP";
        is_there.then_some(()).ok_or(found.to_string())
    });
    let finalizers = kubectl.json("get service web")["metadata"]["finalizers"].clone();
    assert_eq!(
        finalizers,
        json!(["service.kubernetes.io/load-balancer-cleanup"])
    );
    eventually("Events say so", || {
        let events = kubectl.run("get events -o jsonpath={..reason}").stdout;
        let reported = ["EnsuringLoadBalancer", "EnsuredLoadBalancer"];
        let all = reported.iter().all(|reason| events.contains(reason));
        all.then_some(()).ok_or(events)
    });
    kubectl.ok("delete service web --timeout=30s");
}

/// The addresses of Services are not those of this machine.
#[test]
fn an_event_names_a_port_that_the_proxy_cannot_listen_on() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let flags = ["--backend", "userspace", "--nodes", "node-0"].map(str::to_owned);
    cluster.service("proxy", 0, &flags);
    let kubectl = cluster.kubectl();
    kubectl.ok("create service clusterip web --tcp=80:8080");
    kubectl
        .ok("patch service web --type=json -p=[{\"op\":\"remove\",\"path\":\"/spec/selector\"}]");
    set(&kubectl, &[endpoint("10.1.0.11", true)]);
    let ip = kubectl.json("get service web")["spec"]["clusterIP"].clone();
    let at = format!("{}:80", ip.as_str().unwrap());
    eventually("an Event names the port", || {
        let events = kubectl.run("get events --field-selector=reason=FailedToListen");
        let events = events.stdout;
        events.contains(&at).then_some(()).ok_or(events)
    });
}
