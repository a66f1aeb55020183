//! NetworkPolicies, with packets: policies with connections that they allow and connections that they do not.

use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use setpoint_controller::View as _;
use setpoint_proxy::network_policy::{
    NamespaceView, Plan, PodView, PolicyView, Table, World, plan,
};
use setpoint_proxy::nftables::Tools;

use crate::machine::{Machine, Namespace, ask, is_allowed};

/// The time in which an allowed connection is made.
const LIMIT: Duration = Duration::from_millis(400);
/// The Pods by name: namespace, label `app`, and the number of its network.
const PODS: [(&str, &str, &str, u8); 3] = [
    ("web", "shop", "web", 1),
    ("db", "shop", "db", 2),
    ("guest", "other", "web", 3),
];

/// A policy of the namespace `shop` for the Pod `web`, unless the spec says otherwise.
fn policy(spec: Value) -> Arc<PolicyView> {
    let mut policy = json!({
        "metadata": {"namespace": "shop", "name": "p", "uid": format!("u{}", spec.to_string().len())},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}},
    });
    for (name, value) in spec.as_object().unwrap() {
        policy["spec"][name] = value.clone();
    }
    // As the gateway completes it.
    if policy["spec"]["policyTypes"].is_null() {
        let egress = policy["spec"]["egress"].is_array().then_some("Egress");
        let types: Vec<_> = ["Ingress"].into_iter().chain(egress).collect();
        policy["spec"]["policyTypes"] = json!(types);
    }
    Arc::new(PolicyView::of(serde_json::from_value(policy).unwrap()))
}

fn pod((name, namespace, app, number): (&str, &str, &str, u8)) -> Arc<PodView> {
    let ports = json!([
        {"name": "http", "containerPort": 8080},
        {"name": "query", "containerPort": 8080, "protocol": "UDP"},
    ]);
    Arc::new(PodView::of(
        serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}},
            "spec": {"nodeName": "node-0", "containers": [{"name": "c", "ports": ports}]},
            "status": {"podIP": format!("10.1.{number}.2"), "phase": "Running"},
        }))
        .unwrap(),
    ))
}

fn world(policies: Vec<Arc<PolicyView>>) -> World {
    let namespace = |name: &str, team: &str| {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        Arc::new(NamespaceView::of(
            serde_json::from_value(namespace).unwrap(),
        ))
    };
    World {
        policies,
        pods: PODS.map(pod).to_vec(),
        namespaces: vec![namespace("shop", "a"), namespace("other", "b")],
        nodes: ["node-0".into()].into(),
        ranges: ["10.1.0.0/16".parse().unwrap()].into(),
    }
}

/// A machine whose Pods all serve at the ports 8080 and 8081 of TCP and UDP.
struct Plane {
    machine: Machine,
    table: Table,
    tools: Tools,
}

impl Plane {
    fn new() -> Option<Self> {
        is_allowed().then(|| {
            let machine = Machine::new(4);
            machine.client.ip("route add 10.1.0.0/16 via 192.0.2.1");
            for (pod, number) in machine.pods.iter().zip(1..) {
                pod.serve("second", &format!("10.1.{number}.2:8081"));
            }
            Self {
                table: Table::new("test-policies".to_owned()),
                tools: machine.tools(),
                machine,
            }
        })
    }

    async fn program(&mut self, plan: &Plan) {
        if let Some(transaction) = self.table.change(plan) {
            let (tools, text) = (&self.tools, transaction.to_string());
            let made = tools.socket.commit(&transaction, tools.timeout).await;
            made.unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }

    fn namespace(&self, name: &str) -> &Namespace {
        match (name, PODS.iter().find(|pod| pod.0 == name)) {
            ("client", _) => &self.machine.client,
            ("node", _) => &self.machine.machine,
            ("new", _) => &self.machine.pods[3],
            (_, pod) => &self.machine.pods[usize::from(pod.unwrap().3) - 1],
        }
    }

    /// Returns whether a connection `from>to`, `from>to:port` or `from>to:port/udp` is answered.
    fn connects(&self, probe: &str) -> bool {
        let (from, to) = probe.split_once('>').unwrap();
        let (to, port) = to.split_once(':').unwrap_or((to, "8080"));
        let (port, is_udp) = match port.strip_suffix("/udp") {
            Some(port) => (port, true),
            None => (port, false),
        };
        let to: Ipv4Addr = match (to, PODS.iter().find(|pod| pod.0 == to)) {
            ("client", _) => [192, 0, 2, 2].into(),
            ("new", _) => [10, 1, 4, 2].into(),
            (_, pod) => [10, 1, pod.unwrap().3, 2].into(),
        };
        let at = SocketAddrV4::new(to, port.parse().unwrap());
        let from = self.namespace(from);
        match is_udp {
            true => {
                let socket = from.udp(&at.to_string());
                socket.set_read_timeout(Some(LIMIT)).unwrap();
                ask(&socket).is_ok()
            }
            false => from.enter(|| TcpStream::connect_timeout(&at.into(), LIMIT).is_ok()),
        }
    }

    /// Asserts that some connections are allowed, and that others are not.
    fn check(&self, case: &str, allowed: &str, denied: &str) {
        thread::scope(|scope| {
            let all = allowed.split_whitespace().map(|probe| (probe, true));
            let all = all.chain(denied.split_whitespace().map(|probe| (probe, false)));
            let tried: Vec<_> = all
                .map(|(probe, expected)| {
                    (probe, expected, scope.spawn(move || self.connects(probe)))
                })
                .collect();
            for (probe, expected, connects) in tried {
                assert_eq!(connects.join().unwrap(), expected, "{case}: {probe}");
            }
        });
    }
}

/// A name, specs of policies, connections that are allowed, and connections that are not.
type Case = (&'static str, Vec<Value>, &'static str, &'static str);

fn pods(labels: &str) -> Value {
    json!({"podSelector": {"matchLabels": {"app": labels}}})
}

fn cases() -> Vec<Case> {
    let everything = json!({});
    let team_b = json!({"matchLabels": {"team": "b"}});
    vec![
        (
            "no policy",
            vec![],
            "db>web guest>web client>web web>db",
            "",
        ),
        (
            "a policy without rules denies what its Pods would accept, and nothing else",
            vec![json!({})],
            "node>web web>db web>guest db>guest client>db",
            "db>web guest>web client>web db>web:8080/udp",
        ),
        (
            "an empty rule allows everything",
            vec![json!({"ingress": [{}]})],
            "db>web guest>web client>web db>web:8081 db>web:8080/udp",
            "",
        ),
        (
            "policies add up",
            vec![json!({}), json!({"ingress": [{"from": [pods("db")]}]})],
            "db>web",
            "guest>web client>web",
        ),
        (
            "Pods are those of the policy's namespace",
            vec![json!({"podSelector": everything, "ingress": [{"from": [pods("web")]}]})],
            "web>db",
            "guest>db guest>web db>web client>web",
        ),
        (
            "namespaces are selected by their labels",
            vec![json!({"ingress": [{"from": [{"namespaceSelector": team_b}]}]})],
            "guest>web",
            "db>web client>web",
        ),
        (
            "of a namespace, the Pods with the labels",
            vec![json!({"ingress": [{"from": [
                {"namespaceSelector": team_b, "podSelector": {"matchLabels": {"app": "db"}}},
            ]}]})],
            "node>web",
            "guest>web db>web client>web",
        ),
        (
            "all namespaces",
            vec![json!({"ingress": [{"from": [{"namespaceSelector": {}}]}]})],
            "guest>web db>web",
            "client>web",
        ),
        (
            "one of several peers",
            vec![
                json!({"ingress": [{"from": [pods("db"), {"ipBlock": {"cidr": "192.0.2.0/24"}}]}]}),
            ],
            "db>web client>web",
            "guest>web",
        ),
        (
            "a block without a part of it",
            vec![json!({"ingress": [{"from": [
                {"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.3.0/24"]}},
            ]}]})],
            "db>web",
            "guest>web client>web",
        ),
        (
            "a port, of TCP if there is no protocol",
            vec![json!({"ingress": [{"ports": [{"port": 8080}]}]})],
            "db>web client>web",
            "db>web:8081 db>web:8080/udp",
        ),
        (
            "a protocol",
            vec![json!({"ingress": [{"ports": [{"protocol": "UDP"}]}]})],
            "db>web:8080/udp db>web:8081/udp",
            "db>web db>web:8081",
        ),
        (
            "a range of ports",
            vec![
                json!({"ingress": [{"ports": [{"port": 8081, "endPort": 9000}, {"port": 9000}]}]}),
            ],
            "db>web:8081",
            "db>web",
        ),
        (
            "a port with a name, of each protocol",
            vec![
                json!({"ingress": [{"ports": [{"port": "http"}, {"port": "http", "protocol": "UDP"}]}]}),
            ],
            "db>web",
            "db>web:8081 db>web:8080/udp",
        ),
        (
            "peers and ports together",
            vec![json!({"ingress": [{"from": [pods("db")], "ports": [{"port": 8081}]}]})],
            "db>web:8081",
            "db>web guest>web:8081",
        ),
        (
            "egress alone",
            vec![json!({"policyTypes": ["Egress"]})],
            "db>web guest>web client>web node>web",
            "web>db web>guest",
        ),
        (
            "egress to Pods and to ports of others",
            vec![json!({"policyTypes": ["Egress"], "egress": [
                {"to": [pods("db")], "ports": [{"port": "http"}, {"port": "query", "protocol": "UDP"}]},
                {"to": [{"ipBlock": {"cidr": "10.1.3.2/32"}}], "ports": [{"port": 8081}]},
            ]})],
            "web>db web>db:8080/udp web>guest:8081",
            "web>db:8081 web>guest web>db:8081/udp",
        ),
        (
            "both ends must allow a connection",
            vec![
                json!({"policyTypes": ["Egress"], "egress": [{"to": [pods("db")]}]}),
                json!({"podSelector": {"matchLabels": {"app": "db"}}}),
            ],
            "node>db",
            "web>db web>guest",
        ),
        (
            "a namespace that denies everything",
            vec![json!({"podSelector": everything, "policyTypes": ["Ingress", "Egress"]})],
            "client>guest",
            "web>db db>web guest>db web>guest client>web",
        ),
        (
            "a Pod that is not known yet has no connections while there is a policy",
            vec![json!({"ingress": [{}]})],
            "node>new db>web",
            "db>new client>new new>db",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_those_that_policies_allow() {
    let Some(mut plane) = Plane::new() else {
        return;
    };
    // Each table is made by a delta from the one before.
    for (case, specs, allowed, denied) in cases() {
        let policies = specs.into_iter().map(policy).collect();
        plane.program(&plan(&world(policies))).await;
        plane.check(case, allowed, denied);
    }
    plane.program(&Plan::default()).await;
    let tables = plane.machine.machine.output("nft list tables");
    assert_eq!(tables, "", "without a policy there is no table");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_stand_go_on_and_pods_come_and_go() {
    let Some(mut plane) = Plane::new() else {
        return;
    };
    let mut now = world(vec![policy(json!({"ingress": [{"from": [pods("db")]}]}))]);
    plane.program(&plan(&now)).await;
    let socket = plane.namespace("db").udp("10.1.1.2:8080");
    ask(&socket).unwrap();
    plane.check("db is allowed", "db>web", "guest>web");
    plane.program(&plan(&world(vec![policy(json!({}))]))).await;
    ask(&socket).expect("the flow stands");
    plane.check("new ones are not", "", "db>web");
    // The Pod `guest` moves to the namespace `shop`, as another one with its address does, and gets the label.
    now.pods[2] = pod(("db-2", "shop", "db", 3));
    plane.program(&plan(&now)).await;
    plane.check("the new db is allowed", "db>web guest>web", "client>web");
    now.pods.remove(1);
    plane.program(&plan(&now)).await;
    plane.check("the old one is not", "guest>web", "db>web");
    plane.table.forget();
    plane.program(&plan(&now)).await;
    plane.check("the whole table", "guest>web", "db>web");
}
