//! Several nodes of one machine, told apart by addresses: as data, as text, and with packets.

use std::net::SocketAddrV4;
use std::sync::Arc;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use setpoint_controller::View as _;
use setpoint_proto::core::Node;
use setpoint_proxy::nftables::Blocks;
use setpoint_proxy::{Chain, Front, Ledger, NodeView, Place, PortPlan, TrafficPolicy};

use crate::objects::{Scene, endpoint, ready};
use crate::policies::text;
use crate::scripts::base;

/// Returns the node `node-<number>` with Pods in 10.1.<number>.0/24, at an address and in a zone.
pub fn node(number: u8, at: &str, zone: &str) -> NodeView {
    let name = format!("node-{number}");
    let labels = json!({"topology.kubernetes.io/zone": zone});
    let node = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDRs": [format!("10.1.{number}.0/24")]},
        "status": {"addresses": [{"type": "InternalIP", "address": at}]},
    });
    NodeView::of(serde_json::from_value::<Node>(node).unwrap())
}

fn place_of(nodes: &[NodeView]) -> Place {
    let names: Vec<_> = nodes
        .iter()
        .map(|node| node.meta.key.name.clone())
        .collect();
    Place::of(&names, &[], nodes)
}

/// Returns the place of two nodes, `node-1` at 192.0.2.11 and `node-2` at 192.0.2.12.
pub fn two() -> Arc<Place> {
    Arc::new(place_of(&[
        node(1, "192.0.2.11", "a"),
        node(2, "192.0.2.12", "b"),
    ]))
}

/// Returns a ready endpoint of the node with this number.
pub fn on(number: u8) -> Value {
    ready(&format!("10.1.{number}.2"), &format!("node-{number}"))
}

/// Returns a Service with an endpoint on each of these nodes.
pub fn web(nodes: &[u8]) -> Scene {
    let endpoints: Vec<_> = nodes.iter().map(|number| on(*number)).collect();
    Scene::new("web", "10.96.0.10").slice(8080, &endpoints)
}

fn shows(scene: &Scene, expected: &expect_test::Expect) {
    let plan = scene.plan(&two());
    let text: String = plan.ports.iter().map(|port| text(port)).collect();
    expected.assert_eq(&text);
}

fn local() -> Value {
    json!({"internalTrafficPolicy": "Local"})
}

fn external_local() -> Value {
    let port = json!([{"name": "http", "port": 80, "nodePort": 30080}]);
    json!({"type": "NodePort", "externalTrafficPolicy": "Local", "ports": port})
}

#[test]
fn nodes_are_told_apart_by_what_is_theirs_alone() {
    let one = place_of(&[node(1, "192.0.2.11", "a")]);
    assert!(one.sites.is_empty(), "one node has no other");
    let two = two();
    let clients = |place: &Place, site| -> Vec<String> {
        let site = place.sites.get(&site);
        let clients = site.map(|site| site.clients().map(|range| range.to_string()));
        clients.into_iter().flatten().collect()
    };
    assert_eq!(clients(&two, 0), ["10.1.1.0/24", "192.0.2.11"]);
    assert_eq!(clients(&two, 1), ["10.1.2.0/24", "192.0.2.12"]);
    let shared = place_of(&[node(1, "192.0.2.1", "a"), node(2, "192.0.2.1", "a")]);
    assert_eq!(clients(&shared, 1), ["10.1.2.0/24"]);
    let same = [
        node(1, "192.0.2.1", "a"),
        NodeView {
            pod_ranges: vec!["10.1.0.0/16".parse().unwrap()],
            ..node(2, "192.0.2.1", "a")
        },
    ];
    assert!(place_of(&same).sites.is_empty());
}

#[test]
fn a_cluster_policy_makes_no_difference_between_nodes() {
    shows(
        &web(&[1, 2]),
        &expect![[r#"
        default/web/tcp/http
          Address(10.96.0.10:80) -> Cluster
          cluster [10.1.1.2:8080, 10.1.2.2:8080]
          local []
    "#]],
    );
}

#[test]
fn an_internal_policy_of_local_has_the_endpoints_of_each_node() {
    shows(
        &web(&[1, 2]).spec(local()),
        &expect![[r#"
        default/web/tcp/http
          Address(10.96.0.10:80) -> Local
          From(0, 10.96.0.10:80) -> Local of 0
          From(1, 10.96.0.10:80) -> Local of 1
          cluster []
          local [10.1.1.2:8080, 10.1.2.2:8080]
          site 0: cluster None, local [10.1.1.2:8080]
          site 1: cluster None, local [10.1.2.2:8080]
    "#]],
    );
    shows(
        &web(&[1]).spec(local()),
        &expect![[r#"
        default/web/tcp/http
          Address(10.96.0.10:80) -> Local
          From(1, 10.96.0.10:80) -> Drop
          cluster []
          local [10.1.1.2:8080]
    "#]],
    );
}

#[test]
fn an_external_policy_of_local_has_the_endpoints_of_the_node_with_the_address() {
    let ranges = json!({"loadBalancerSourceRanges": ["192.0.2.0/24"]});
    let scene = web(&[1]).spec(external_local()).balanced_at("192.0.2.12");
    shows(
        &scene.spec(ranges),
        &expect![[r#"
        default/web/tcp/http
          Address(10.96.0.10:80) -> Cluster
          Node(30080) -> External
          NodeOf(0, 30080) -> External of 0
          NodeOf(1, 30080) -> External of 1
          Address(192.0.2.12:80) -> Balancer of 1
          cluster [10.1.1.2:8080]
          local [10.1.1.2:8080]
          site 0: cluster None, local [10.1.1.2:8080]
          site 1: cluster None, local []
    "#]],
    );
}

#[test]
fn hints_are_those_of_the_node_of_the_client() {
    let hinted = |number: u8, zone| {
        let mut endpoint = on(number);
        endpoint["hints"] = json!({"forZones": [{"name": zone}]});
        endpoint
    };
    let endpoints = [hinted(1, "a"), hinted(2, "b")];
    shows(
        &Scene::new("web", "10.96.0.10").slice(8080, &endpoints),
        &expect![[r#"
            default/web/tcp/http
              Address(10.96.0.10:80) -> Cluster
              From(0, 10.96.0.10:80) -> Cluster of 0
              From(1, 10.96.0.10:80) -> Cluster of 1
              cluster [10.1.1.2:8080, 10.1.2.2:8080]
              local []
              site 0: cluster Some([10.1.1.2:8080]), local []
              site 1: cluster Some([10.1.2.2:8080]), local []
        "#]],
    );
}

#[test]
fn sites_have_maps_of_their_own() {
    let mut ledger = Ledger::default();
    let scene = web(&[1, 2]).spec(local()).spec(external_local());
    let delta = ledger.apply(scene.changes(&two()));
    let script = base()
        .whole(&two(), &delta, &mut Blocks::default())
        .to_string();
    let mark = "add rule ip t refuse reject\n";
    let (_, own) = script.split_once(mark).unwrap();
    expect![[r#"
        add chain ip t clients-0
        add chain ip t node-0
        add chain ip t clients-1
        add chain ip t node-1
        add map ip t clients { type ipv4_addr : verdict ; flags interval ; }
        add map ip t nodes { type ipv4_addr : verdict ; flags interval ; }
        add map ip t services-0 { type ipv4_addr . inet_proto . inet_service : verdict ; }
        add map ip t node-ports-0 { type inet_proto . inet_service : verdict ; }
        add set ip t pods-0 { type ipv4_addr ; flags interval ; }
        add rule ip t clients-0 ip daddr . meta l4proto . th dport vmap @services-0
        add rule ip t node-0 meta l4proto . th dport vmap @node-ports-0
        add element ip t pods-0 { 10.1.1.0/24 }
        add element ip t clients { 10.1.1.0/24 : jump clients-0, 192.0.2.11 : jump clients-0 }
        add element ip t nodes { 192.0.2.11 : jump node-0 }
        add map ip t services-1 { type ipv4_addr . inet_proto . inet_service : verdict ; }
        add map ip t node-ports-1 { type inet_proto . inet_service : verdict ; }
        add set ip t pods-1 { type ipv4_addr ; flags interval ; }
        add rule ip t clients-1 ip daddr . meta l4proto . th dport vmap @services-1
        add rule ip t node-1 meta l4proto . th dport vmap @node-ports-1
        add element ip t pods-1 { 10.1.2.0/24 }
        add element ip t clients { 10.1.2.0/24 : jump clients-1, 192.0.2.12 : jump clients-1 }
        add element ip t nodes { 192.0.2.12 : jump node-1 }
        add rule ip t services ip saddr vmap @clients
        add rule ip t services ip daddr vmap @nodes
        add rule ip t services ip daddr . meta l4proto . th dport vmap @services
        add rule ip t services ip daddr @node-addresses meta l4proto . th dport vmap @node-ports
        add element ip t service-range { 10.96.0.0/16 }
        add element ip t node-addresses { 192.0.2.11, 192.0.2.12 }
        add map ip t tcp-endpoints-7 { typeof numgen random mod 2 : ip daddr . tcp dport ; }
        add map ip t tcp-endpoints-52 { typeof numgen random mod 2 : ip daddr . tcp dport ; }
        add chain ip t cluster/default/web/tcp/http
        add chain ip t external-0/default/web/tcp/http
        add chain ip t external-1/default/web/tcp/http
        add chain ip t external/default/web/tcp/http
        add chain ip t local-0/default/web/tcp/http
        add chain ip t local-1/default/web/tcp/http
        add chain ip t local/default/web/tcp/http
        add rule ip t cluster/default/web/tcp/http meta l4proto tcp dnat ip to numgen random mod 2 offset 0 map @tcp-endpoints-7
        add rule ip t external-0/default/web/tcp/http ip saddr @pods-0 goto cluster/default/web/tcp/http
        add rule ip t external-0/default/web/tcp/http fib saddr type local meta mark set meta mark | 0x4000 goto cluster/default/web/tcp/http
        add rule ip t external-0/default/web/tcp/http goto local-0/default/web/tcp/http
        add rule ip t external-1/default/web/tcp/http ip saddr @pods-1 goto cluster/default/web/tcp/http
        add rule ip t external-1/default/web/tcp/http fib saddr type local meta mark set meta mark | 0x4000 goto cluster/default/web/tcp/http
        add rule ip t external-1/default/web/tcp/http goto local-1/default/web/tcp/http
        add rule ip t external/default/web/tcp/http fib saddr type local meta mark set meta mark | 0x4000 goto cluster/default/web/tcp/http
        add rule ip t external/default/web/tcp/http goto local/default/web/tcp/http
        add rule ip t local-0/default/web/tcp/http meta l4proto tcp dnat to 10.1.1.2:8080
        add rule ip t local-1/default/web/tcp/http meta l4proto tcp dnat to 10.1.2.2:8080
        add rule ip t local/default/web/tcp/http meta l4proto tcp dnat ip to numgen random mod 2 offset 2 map @tcp-endpoints-52
        add element ip t tcp-endpoints-7 { 0 : 10.1.1.2 . 8080, 1 : 10.1.2.2 . 8080 }
        add element ip t tcp-endpoints-52 { 2 : 10.1.1.2 . 8080, 3 : 10.1.2.2 . 8080 }
        add element ip t node-ports { tcp . 30080 : goto external/default/web/tcp/http }
        add element ip t node-ports-0 { tcp . 30080 : goto external-0/default/web/tcp/http }
        add element ip t node-ports-1 { tcp . 30080 : goto external-1/default/web/tcp/http }
        add element ip t services { 10.96.0.10 . tcp . 80 : goto local/default/web/tcp/http }
        add element ip t services-0 { 10.96.0.10 . tcp . 80 : goto local-0/default/web/tcp/http }
        add element ip t services-1 { 10.96.0.10 . tcp . 80 : goto local-1/default/web/tcp/http }
        add element ip t hairpin { 10.1.1.2 . 10.1.1.2, 10.1.2.2 . 10.1.2.2 }
    "#]].assert_eq(own);
}

/// Returns the endpoints that a connection reaches from outside of the machine, and those for clients within it; `None`
/// if it is refused.
fn reached(port: &PortPlan, fronts: [Front; 2]) -> Option<(Vec<SocketAddrV4>, Vec<SocketAddrV4>)> {
    let find = |at| port.fronts.iter().find(|front| front.at == at);
    let way = fronts.into_iter().find_map(find)?.action.ok()?;
    let own = way.site.and_then(|site| port.sites.get(&site));
    let cluster = own.and_then(|own| own.cluster.clone());
    let cluster = cluster.unwrap_or_else(|| port.cluster.clone());
    let local = own.map_or_else(|| port.local.clone(), |own| own.local.clone());
    Some(match (way.chain, port.external) {
        (Chain::Cluster, _) => (cluster.clone(), cluster),
        (Chain::Local, _) => (local.clone(), local),
        (_, Some(TrafficPolicy::Local)) => (local, cluster),
        _ => (cluster.clone(), cluster),
    })
}

proptest! {
    /// Checks that the clients of a node reach what they would reach on a machine of that node alone.
    #[test]
    fn each_node_is_as_on_a_machine_of_its_own(
        endpoints in proptest::collection::vec((1u8..20, 1u8..4, any::<[bool; 3]>(), 0u8..4), 0..8),
        internal in any::<bool>(),
        external in any::<bool>(),
    ) {
        let value = |(ip, node, conditions, hint): &(u8, u8, [bool; 3], u8)| {
            let mut value = endpoint(&format!("10.1.{node}.{ip}"), &format!("node-{node}"), *conditions);
            match hint {
                0 => value["hints"] = json!({"forZones": [{"name": "a"}]}),
                1 => value["hints"] = json!({"forZones": [{"name": "b"}], "forNodes": [{"name": "node-2"}]}),
                _ => {}
            }
            value
        };
        let values: Vec<_> = endpoints.iter().map(value).collect();
        let mut scene = Scene::new("web", "10.96.0.10").slice(8080, &values);
        let mut fields = external_local();
        fields["externalTrafficPolicy"] = json!(if external { "Local" } else { "Cluster" });
        fields["internalTrafficPolicy"] = json!(if internal { "Local" } else { "Cluster" });
        scene = scene.spec(fields);
        let nodes = [node(1, "192.0.2.11", "a"), node(2, "192.0.2.12", "b")];
        let both = scene.plan(&two()).ports[0].clone();
        for (number, node) in (0u16..).zip(&nodes) {
            let alone = scene.plan(&Arc::new(place_of(std::slice::from_ref(node)))).ports[0].clone();
            let address = Front::Address("10.96.0.10:80".parse().unwrap());
            let from = Front::From(number, "10.96.0.10:80".parse().unwrap());
            prop_assert_eq!(reached(&both, [from, address]), reached(&alone, [from, address]));
            let port = [Front::NodeOf(number, 30080), Front::Node(30080)];
            prop_assert_eq!(reached(&both, port), reached(&alone, port));
        }
    }
}
