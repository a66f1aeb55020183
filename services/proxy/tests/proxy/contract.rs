//! The contract of back ends: the same traffic through each of them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_proxy::{Backend as _, Changes, Kind, Place};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::machine::{Machine, ask};
use crate::objects::{Scene, endpoint, ready};
use crate::world::{Loopback, Source, World};

/// The port of Services.
pub const PORT: u16 = 8000;

/// A network with its proxy.
pub struct Plane<W: World> {
    pub world: W,
    backend: Option<W::Backend>,
    runtime: Runtime,
    place: Arc<Place>,
}

impl<W: World> Plane<W> {
    /// `None` without the rights.
    pub fn new(pods: u8) -> Option<Self> {
        W::new(pods).map(Self::of)
    }

    pub fn of(world: W) -> Self {
        let mut runtime = Builder::new_multi_thread();
        runtime.enable_all().worker_threads(2);
        let runtime = runtime.on_thread_start(world.mover()).build().unwrap();
        Self {
            backend: Some(world.backend()),
            place: world.place(),
            runtime,
            world,
        }
    }

    pub fn program(&mut self, changes: Changes) -> Kind {
        let (mut backend, place) = (self.backend.take().unwrap(), Arc::clone(&self.place));
        let program = self.runtime.spawn(async move {
            let kind = backend.sync(&place, changes).await.unwrap();
            (backend, kind)
        });
        let (backend, kind) = self.runtime.block_on(program).unwrap();
        self.backend = Some(backend);
        kind
    }

    pub fn set(&mut self, scene: &Scene) -> Kind {
        self.program(scene.changes(&self.place))
    }

    /// Ends the back end, as an orderly stop does.
    pub fn end(&mut self) -> JoinHandle<()> {
        let mut backend = self.backend.take().unwrap();
        self.runtime.spawn(async move { backend.end().await })
    }

    /// Replaces the back end, as a restart does.
    fn restart(&mut self) {
        drop(self.backend.take());
        self.backend = Some(self.world.backend());
    }

    /// Moves the proxy to another place.
    fn go(&mut self, place: Place) {
        self.place = Arc::new(place);
    }

    /// Returns `web` with its port `http`, and these Pods behind it.
    pub fn web(&self, pods: &[u8]) -> Scene {
        let pods: Vec<_> = pods.iter().map(|number| self.pod(*number)).collect();
        self.service(&pods)
    }

    pub fn service(&self, endpoints: &[Value]) -> Scene {
        let scene = Scene::new("web", &self.world.service(10).to_string());
        let ports = json!([{"name": "http", "protocol": "TCP", "port": PORT}]);
        scene.spec(json!({"ports": ports})).slice(8080, endpoints)
    }

    pub fn pod(&self, number: u8) -> Value {
        ready(&self.world.pod(number).to_string(), "here")
    }

    /// Returns where `web` is.
    pub fn at(&self) -> String {
        at(self.world.service(10))
    }

    /// Returns the names of the servers that answer `count` connections.
    pub fn names(&self, from: Source, to: &str, count: usize) -> BTreeSet<String> {
        let answers = (0..count).map(|_| self.world.connect(from, to).unwrap());
        let name = |answer: String| answer.split(' ').next().unwrap().to_owned();
        answers.map(name).collect()
    }

    /// Asserts that new connections are refused, and not left without an answer.
    pub fn refused(&self, to: &str) {
        for from in [Source::Machine, Source::Pod(1)] {
            let error = self.world.connect(from, to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}: {error}");
        }
    }
}

pub fn at(ip: Ipv4Addr) -> String {
    format!("{ip}:{PORT}")
}

fn pods<const N: usize>(numbers: [u8; N]) -> BTreeSet<String> {
    numbers.map(|number| format!("pod{number}")).into()
}

fn connections_reach_each_endpoint<W: World>(mut plane: Plane<W>) {
    let to = plane.at();
    assert_eq!(plane.set(&plane.web(&[1, 2])), Kind::Full);
    for from in [Source::Machine, Source::Pod(3)] {
        assert_eq!(plane.names(from, &to, 30), pods([1, 2]));
    }
    assert_eq!(plane.set(&plane.web(&[3])), Kind::Partial);
    assert_eq!(plane.names(Source::Machine, &to, 5), pods([3]));
    assert_eq!(plane.set(&plane.web(&[3])), Kind::Nothing);
    plane.program(plane.web(&[]).removal());
    plane.refused(&to);
}

fn what_has_no_endpoints_is_refused_until_it_has<W: World>(mut plane: Plane<W>) {
    let to = plane.at();
    plane.set(&plane.web(&[]));
    plane.refused(&to);
    let socket = plane.world.udp(Source::Pod(1), &to);
    let error = ask(&socket).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    plane.set(&plane.web(&[1]));
    assert_eq!(plane.names(Source::Machine, &to, 2), pods([1]));
    plane.set(&plane.web(&[]));
    plane.refused(&to);
}

fn port(name: &str, protocol: &str, port: u16) -> Value {
    json!({"name": name, "protocol": protocol, "port": port})
}

fn ports_go_to_their_own_endpoints<W: World>(mut plane: Plane<W>) {
    let ports = [
        port("tcp", "TCP", PORT),
        port("udp", "UDP", PORT),
        port("more", "TCP", PORT + 1),
    ];
    let scene = Scene::new("web", &plane.world.service(10).to_string())
        .spec(json!({"ports": ports}))
        .slice_of(&[port("tcp", "TCP", 8080)], &[plane.pod(1)])
        .slice_of(&[port("udp", "UDP", 8080)], &[plane.pod(2)])
        .slice_of(&[port("more", "TCP", 8080)], &[plane.pod(3)]);
    plane.set(&scene);
    let (to, more) = (
        plane.at(),
        format!("{}:{}", plane.world.service(10), PORT + 1),
    );
    assert_eq!(plane.names(Source::Machine, &to, 4), pods([1]));
    assert_eq!(plane.names(Source::Pod(1), &more, 4), pods([3]));
    let answer = ask(&plane.world.udp(Source::Pod(1), &to)).unwrap();
    assert!(answer.starts_with("pod2 "), "{answer}");
}

fn a_client_stays_with_its_endpoint_while_that_is_there<W: World>(mut plane: Plane<W>) {
    let (to, client) = (plane.at(), Source::Pod(3));
    let sticky = |seconds| {
        let config = json!({"clientIP": {"timeoutSeconds": seconds}});
        json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": config})
    };
    plane.set(&plane.web(&[1, 2]).spec(sticky(600)));
    let first = plane.names(client, &to, 20);
    assert_eq!(first.len(), 1, "{first:?}");
    // Another endpoint changes nothing for the client, and the end of its own does.
    plane.set(&plane.web(&[1, 2, 3]).spec(sticky(600)));
    assert_eq!(plane.names(client, &to, 20), first);
    let others = if first == pods([1]) { [2, 3] } else { [1, 3] };
    plane.set(&plane.web(&others).spec(sticky(600)));
    let second = plane.names(client, &to, 10);
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    // It ends and begins while the Service is used.
    plane.set(&plane.web(&others));
    assert_eq!(plane.names(client, &to, 40).len(), 2);
    plane.set(&plane.web(&others).spec(sticky(1)));
    assert_eq!(plane.names(client, &to, 10).len(), 1);
}

/// Returns fields of a Service with the node port 30080.
pub fn node_port(policy: &str) -> Value {
    let port = json!({"name": "http", "port": PORT, "nodePort": 30080});
    json!({"type": "NodePort", "externalTrafficPolicy": policy, "ports": [port]})
}

fn node_ports_are_reached_from_outside_and_from_the_machine<W: World>(mut plane: Plane<W>) {
    plane.set(&plane.web(&[1, 2]).spec(node_port("Cluster")));
    let at = format!("{}:30080", plane.world.node());
    for from in [Source::Client, Source::Machine] {
        assert_eq!(plane.names(from, &at, 30), pods([1, 2]));
    }
    let answer = plane.world.connect(Source::Client, &at).unwrap();
    let client = plane.world.client().to_string();
    assert!(
        !answer.ends_with(&client),
        "a reply might bypass the machine: {answer}"
    );
    plane.set(&plane.web(&[]).spec(node_port("Cluster")));
    let error = plane.world.connect(Source::Client, &at).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

fn node_ports_follow_the_addresses_of_the_node<W: World>(mut plane: Plane<W>) {
    let at = format!("{}:30080", plane.world.node());
    let (place, nowhere) = (plane.world.place(), Place::default());
    plane.go(nowhere);
    let node = plane.web(&[1]).spec(node_port("Cluster"));
    plane.set(&node);
    plane.world.connect(Source::Machine, &at).unwrap_err();
    plane.go((*place).clone());
    assert_eq!(plane.program(Changes::new()), Kind::Full);
    assert_eq!(plane.names(Source::Machine, &at, 2), pods([1]));
}

fn a_local_policy_uses_the_endpoints_of_the_node<W: World>(mut plane: Plane<W>) {
    let there = |number| ready(&plane.world.pod(number).to_string(), "there");
    let (both, far) = ([plane.pod(1), there(2)], [there(2)]);
    let local = json!({"internalTrafficPolicy": "Local"});
    let to = plane.at();
    plane.set(&plane.service(&both).spec(local.clone()));
    assert_eq!(plane.names(Source::Pod(2), &to, 20), pods([1]));
    // Other nodes have endpoints: the back ends differ in when a client learns that it has none.
    plane.set(&plane.service(&far).spec(local));
    plane.world.connect(Source::Pod(2), &to).unwrap_err();
    // The machine itself reaches all of them, whatever the external policy.
    plane.set(&plane.service(&both).spec(node_port("Local")));
    let node = format!("{}:30080", plane.world.node());
    for at in [&to, &node] {
        assert_eq!(plane.names(Source::Machine, at, 30), pods([1, 2]));
    }
}

fn a_load_balancer_is_reached_by_the_clients_of_its_ranges<W: World>(mut plane: Plane<W>) {
    let (node, client) = (plane.world.node(), plane.world.client());
    let (to, ranges) = (
        at(node),
        |range: &str| json!({"loadBalancerSourceRanges": [range]}),
    );
    let scene = plane.web(&[1]).balanced_at(&node.to_string());
    plane.set(&scene);
    assert_eq!(plane.names(Source::Client, &to, 2), pods([1]));
    plane.set(&scene.clone().spec(ranges(&format!("{client}/24"))));
    assert_eq!(plane.names(Source::Client, &to, 2), pods([1]));
    plane.set(&scene.spec(ranges("198.51.100.0/24")));
    plane.world.connect(Source::Client, &to).unwrap_err();
}

fn flows_of_udp_end_with_their_endpoint<W: World>(mut plane: Plane<W>) {
    let dns = |plane: &Plane<W>, number| {
        let scene = Scene::new("dns", &plane.world.service(10).to_string());
        let scene = scene.spec(json!({"ports": [port("dns", "UDP", PORT)]}));
        scene.slice_of(&[port("dns", "UDP", 8080)], &[plane.pod(number)])
    };
    plane.set(&dns(&plane, 1));
    let socket = plane.world.udp(Source::Pod(3), &plane.at());
    for _ in 0..3 {
        assert!(ask(&socket).unwrap().starts_with("pod1 "));
    }
    plane.set(&dns(&plane, 2));
    if plane.world.ends_flows() {
        assert!(ask(&socket).unwrap().starts_with("pod2 "));
    }
}

fn of_endpoints_that_end_those_that_serve_are_used_while_none_is_ready<W: World>(
    mut plane: Plane<W>,
) {
    let to = plane.at();
    let ending = endpoint(&plane.world.pod(1).to_string(), "here", [false, true, true]);
    plane.set(&plane.service(std::slice::from_ref(&ending)));
    assert_eq!(plane.names(Source::Machine, &to, 3), pods([1]));
    plane.set(&plane.service(&[ending, plane.pod(2)]));
    assert_eq!(plane.names(Source::Machine, &to, 6), pods([2]));
}

fn a_new_back_end_replaces_what_the_former_had<W: World>(mut plane: Plane<W>) {
    let old = plane.world.service(11).to_string();
    let ports = json!([port("http", "TCP", PORT)]);
    let old = Scene::new("old", &old).spec(json!({"ports": ports}));
    plane.set(&old.slice(8080, &[plane.pod(1)]));
    plane.set(&plane.web(&[1]));
    plane.restart();
    assert_eq!(plane.set(&plane.web(&[2])), Kind::Full);
    assert_eq!(plane.names(Source::Pod(2), &plane.at(), 3), pods([2]));
    plane.refused(&at(plane.world.service(11)));
}

/// Defines a test of each function for a world.
macro_rules! contract {
    ($module:ident, $world:ty: $($test:ident($pods:literal))*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $test() {
                    if let Some(plane) = Plane::<$world>::new($pods) {
                        super::$test(plane);
                    }
                }
            )*
        }
    };
}

/// Defines the tests for all worlds.
macro_rules! contracts {
    ($($module:ident: $world:ty),* $(,)?) => {
        $(
            contract! {
                $module, $world:
                connections_reach_each_endpoint(3)
                what_has_no_endpoints_is_refused_until_it_has(1)
                ports_go_to_their_own_endpoints(3)
                a_client_stays_with_its_endpoint_while_that_is_there(3)
                node_ports_are_reached_from_outside_and_from_the_machine(2)
                node_ports_follow_the_addresses_of_the_node(1)
                a_local_policy_uses_the_endpoints_of_the_node(2)
                a_load_balancer_is_reached_by_the_clients_of_its_ranges(1)
                flows_of_udp_end_with_their_endpoint(3)
                of_endpoints_that_end_those_that_serve_are_used_while_none_is_ready(2)
                a_new_back_end_replaces_what_the_former_had(2)
            }
        )*
    };
}

contracts! {
    nftables: Machine,
    userspace: Loopback,
}
