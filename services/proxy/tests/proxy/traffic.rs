//! Tests of nftables beyond the contract: real packets between namespaces.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use setpoint_proxy::nftables::{Base, Nftables, Tools};
use setpoint_proxy::{Backend, Changes, Kind, Place};

use crate::machine::{Machine, ask, is_allowed};
use crate::objects::{Scene, here, ready};

pub const WEB: &str = "10.96.0.10:80";
const LIMIT: Duration = Duration::from_secs(20);

pub fn base() -> Base {
    Base {
        table: "setpoint-test".to_owned(),
        service_range: vec!["10.96.0.0/16".parse().unwrap()],
        masquerade_all: false,
        pod_range: Vec::new(),
    }
}

/// A machine with its proxy.
pub struct Plane {
    pub machine: Machine,
    pub backend: Nftables,
    pub place: Arc<Place>,
}

impl Plane {
    /// `None` without the rights; with the client's way to the Service range through the machine.
    pub fn new(pods: u8) -> Option<Self> {
        is_allowed().then(|| {
            let machine = Machine::new(pods);
            Self {
                backend: Nftables::new(base(), machine.tools()),
                machine,
                place: here(),
            }
        })
    }

    pub async fn program(&mut self, changes: Changes) -> Kind {
        self.backend.sync(&self.place, changes).await.unwrap()
    }

    pub async fn set(&mut self, scene: &Scene) -> Kind {
        self.program(scene.changes(&self.place)).await
    }

    /// Asserts that a new connection from the machine and from a Pod is refused, and not left without an answer.
    pub fn refused(&self, to: &str) {
        for from in [&self.machine.machine, &self.machine.pods[0]] {
            let error = from.connect(to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}: {error}");
        }
    }
}

pub fn names<const N: usize>(names: [&str; N]) -> std::collections::BTreeSet<String> {
    names.map(str::to_owned).into()
}

pub fn pod(number: u8) -> serde_json::Value {
    ready(&format!("10.1.{number}.2"), "here")
}

pub fn web(pods: &[u8]) -> Scene {
    let pods: Vec<_> = pods.iter().map(|number| pod(*number)).collect();
    Scene::new("web", "10.96.0.10").slice(8080, &pods)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_reach_each_endpoint_from_pods_and_from_the_machine() {
    let Some(mut plane) = Plane::new(3) else {
        return;
    };
    assert_eq!(plane.set(&web(&[1, 2])).await, Kind::Full);
    for from in [&plane.machine.machine, &plane.machine.pods[2]] {
        assert_eq!(from.names(WEB, 30), names(["pod1", "pod2"]));
    }
    // The address of the client is seen.
    assert!(
        plane.machine.pods[2]
            .connect(WEB)
            .unwrap()
            .ends_with(" 10.1.3.2")
    );
    assert_eq!(plane.set(&web(&[3])).await, Kind::Partial);
    assert_eq!(plane.machine.machine.names(WEB, 5), names(["pod3"]));
    assert_eq!(plane.set(&web(&[3])).await, Kind::Nothing);
    plane.program(web(&[]).removal()).await;
    plane.refused(WEB);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_reaches_itself_through_its_service() {
    let Some(mut plane) = Plane::new(1) else {
        return;
    };
    plane.set(&web(&[1])).await;
    assert_eq!(plane.machine.pods[0].connect(WEB).unwrap(), "pod1 10.1.1.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_on_the_loopback_are_reached_from_the_machine() {
    let Some(mut plane) = Plane::new(1) else {
        return;
    };
    plane.machine.machine.serve("process", "127.1.0.5:8080");
    let scene = Scene::new("web", "10.96.0.10").slice(8080, &[ready("127.1.0.5", "here")]);
    plane.set(&scene).await;
    assert_eq!(plane.machine.machine.names(WEB, 3), names(["process"]));
    let udp = json!([{"name": "http", "protocol": "UDP", "port": 80}]);
    let scene = Scene::new("web", "10.96.0.10").spec(json!({"ports": udp}));
    let ports = [json!({"name": "http", "protocol": "UDP", "port": 8080})];
    plane
        .set(&scene.slice_of(&ports, &[ready("127.1.0.5", "here")]))
        .await;
    let socket = plane.machine.machine.udp(WEB);
    assert!(ask(&socket).unwrap().starts_with("process"));
}

/// Checks ES1: no packet to an address of the range leaves the machine.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_without_endpoints_or_service_are_refused_and_nothing_leaves_the_machine() {
    let Some(mut plane) = Plane::new(1) else {
        return;
    };
    let nobody = "10.96.77.77".parse().unwrap();
    plane.machine.watch(nobody);
    assert!(plane.machine.pods[0].connect("10.96.77.77:80").is_err());
    assert!(
        plane.machine.left(nobody) > 0,
        "without a proxy, packets leave"
    );
    plane.machine.client.output("nft delete table ip seen");
    plane.machine.watch(nobody);
    plane.set(&web(&[])).await;
    plane.refused(WEB);
    plane.refused("10.96.77.77:80");
    let socket = plane.machine.pods[0].udp("10.96.77.77:53");
    assert_eq!(
        ask(&socket).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    assert_eq!(plane.machine.left(nobody), 0);
}

/// Returns a Service with the node port 30080.
pub fn node_port(policy: &str) -> serde_json::Value {
    let port = json!({"name": "http", "port": 80, "nodePort": 30080});
    json!({"type": "NodePort", "externalTrafficPolicy": policy, "ports": [port]})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_policy_of_local_shows_the_client_and_uses_local_endpoints() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    let there = ready("10.1.2.2", "there");
    let both = Scene::new("web", "10.96.0.10").slice(8080, &[pod(1), there.clone()]);
    plane.set(&both.spec(node_port("Local"))).await;
    let at = "192.0.2.1:30080";
    for _ in 0..10 {
        assert_eq!(plane.machine.client.connect(at).unwrap(), "pod1 192.0.2.2");
    }
    // The machine itself reaches all of them, by the node port and by the address in the cluster.
    assert_eq!(plane.machine.machine.names(at, 30), names(["pod1", "pod2"]));
    assert_eq!(
        plane.machine.machine.names(WEB, 30),
        names(["pod1", "pod2"])
    );
    let elsewhere = Scene::new("web", "10.96.0.10").slice(8080, &[there]);
    plane.set(&elsewhere.spec(node_port("Local"))).await;
    let error = plane.machine.client.connect(at).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::TimedOut,
        "other nodes have endpoints: {error}"
    );
    assert_eq!(plane.machine.machine.names(at, 3), names(["pod2"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_programmed_outlives_the_proxy_and_a_new_one_replaces_it() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    plane.set(&web(&[1])).await;
    plane
        .set(&Scene::new("old", "10.96.0.11").slice(8080, &[pod(1)]))
        .await;
    plane.backend = Nftables::new(base(), plane.machine.tools());
    assert_eq!(plane.machine.pods[1].names(WEB, 3), names(["pod1"]));
    assert_eq!(plane.set(&web(&[2])).await, Kind::Full);
    assert_eq!(plane.machine.pods[1].names(WEB, 3), names(["pod2"]));
    plane.refused("10.96.0.11:80");
    let socket = plane.machine.tools().socket;
    for _ in 0..2 {
        let removed = Nftables::remove("setpoint-test", &socket, LIMIT).await;
        removed.unwrap();
    }
    assert_eq!(plane.machine.machine.output("nft list tables"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_others_have_removed_is_made_again() {
    let Some(mut plane) = Plane::new(1) else {
        return;
    };
    plane.set(&web(&[1])).await;
    assert!(plane.backend.check().await);
    plane.machine.machine.output("nft flush ruleset");
    assert!(!plane.backend.check().await);
    assert_eq!(plane.program(Changes::new()).await, Kind::Full);
    assert_eq!(plane.machine.pods[0].names(WEB, 2), names(["pod1"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_transaction_fails_is_programmed_by_the_next_one() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    plane.set(&web(&[1])).await;
    plane
        .machine
        .machine
        .output("nft delete table ip setpoint-test");
    let changes = web(&[2]).changes(&plane.place);
    let error = plane.backend.sync(&plane.place, changes).await.unwrap_err();
    let refused = "the kernel refuses \"flush chain ip setpoint-test ";
    assert!(error.to_string().starts_with(refused), "{error}");
    assert!(
        error.to_string().contains("No such file or directory"),
        "{error}"
    );
    assert_eq!(plane.program(Changes::new()).await, Kind::Full);
    assert_eq!(plane.machine.machine.names(WEB, 3), names(["pod2"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_transaction() {
    let Some(mut plane) = Plane::new(1) else {
        return;
    };
    let tools = Tools {
        timeout: Duration::ZERO,
        ..plane.machine.tools()
    };
    let (socket, mut hasty) = (tools.socket.clone(), Nftables::new(base(), tools));
    let many = |n: u16| {
        let ip = format!("10.96.{}.{}", 8 + n / 256, n % 256);
        Scene::new(&format!("many{n}"), &ip).slice(8080, &[pod(1)])
    };
    let all = (0..500).flat_map(|n| many(n).changes(&plane.place));
    let error = hasty.sync(&plane.place, all.collect()).await.unwrap_err();
    assert_eq!(error.to_string(), "a transaction has not ended after 0ns");
    // The kernel makes it all the same, and the next one after it.
    let tools = Tools {
        socket,
        ..plane.machine.tools()
    };
    plane.backend = Nftables::new(base(), tools);
    assert_eq!(plane.set(&web(&[1])).await, Kind::Full);
    assert_eq!(plane.machine.machine.names(WEB, 2), names(["pod1"]));
    plane.refused("10.96.8.1:80");
}

/// A program that hangs holds up one transaction for as long, and no change is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_ended() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    let tools = Tools {
        conntrack: ["sh", "-c", "exec tail -f /dev/null"]
            .map(str::to_owned)
            .into(),
        timeout: Duration::from_millis(500),
        ..plane.machine.tools()
    };
    plane.backend = Nftables::new(base(), tools);
    let udp = |number: u8| {
        let ports = json!([{"name": "http", "protocol": "UDP", "port": 80}]);
        let scene = Scene::new("web", "10.96.0.10").spec(json!({"ports": ports}));
        let http = json!({"name": "http", "protocol": "UDP", "port": 8080});
        scene.slice_of(&[http], &[pod(number)])
    };
    plane.set(&udp(1)).await;
    assert_eq!(plane.set(&udp(2)).await, Kind::Partial);
    let socket = plane.machine.machine.udp(WEB);
    assert!(ask(&socket).unwrap().starts_with("pod2"));
}

/// Machines of one network have routes to each other's Pods, and nothing beyond has.
#[tokio::test(flavor = "multi_thread")]
async fn pods_have_their_own_address_for_pods_and_that_of_the_machine_beyond() {
    let Some(plane) = Plane::new(3) else {
        return;
    };
    let base = Base {
        pod_range: vec![
            "10.1.1.0/24".parse().unwrap(),
            "10.1.2.0/24".parse().unwrap(),
        ],
        ..base()
    };
    let mut backend = Nftables::new(base, plane.machine.tools());
    let none = Changes::new();
    backend.sync(&plane.place, none).await.unwrap();
    let client = &plane.machine.pods[0];
    assert_eq!(client.connect("10.1.2.2:8080").unwrap(), "pod2 10.1.1.2");
    assert_eq!(client.connect("10.1.3.2:8080").unwrap(), "pod3 10.1.3.1");
    let beyond = &plane.machine.pods[2];
    assert_eq!(beyond.connect("10.1.1.2:8080").unwrap(), "pod1 10.1.3.2");
}
