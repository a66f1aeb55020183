//! The endpoints and fronts of Services, by their policies.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};
use setpoint_proxy::{Place, PortPlan, SitePools};

use crate::objects::{Scene, endpoint, here, ready};

/// Writes what is programmed for a port: fronts, then endpoints.
pub fn text(port: &PortPlan) -> String {
    let mut lines = vec![port.id.to_string()];
    for front in &port.fronts {
        let action = match front.action {
            Ok(way) => match way.site {
                Some(site) => format!("{:?} of {site}", way.chain),
                None => format!("{:?}", way.chain),
            },
            Err(refusal) => format!("{refusal:?}"),
        };
        lines.push(format!("  {:?} -> {action}", front.at));
    }
    lines.push(format!("  cluster {:?}", port.cluster));
    lines.push(format!("  local {:?}", port.local));
    for (site, SitePools { cluster, local }) in &port.sites {
        lines.push(format!(
            "  site {site}: cluster {cluster:?}, local {local:?}"
        ));
    }
    lines.join("\n") + "\n"
}

fn shows(scene: &Scene, expected: &Expect) {
    let plan = scene.plan(&here());
    let text: String = plan.ports.iter().map(|port| text(port)).collect();
    expected.assert_eq(&text);
}

fn web() -> Scene {
    Scene::new("web", "10.96.0.10")
}

fn two_nodes() -> Scene {
    web().slice(
        8080,
        &[ready("10.1.1.2", "here"), ready("10.1.2.2", "there")],
    )
}

#[test]
fn a_service_forwards_to_its_ready_endpoints() {
    let unready = endpoint("10.1.1.9", "here", [false, false, false]);
    let scene = two_nodes().slice(8081, &[unready, ready("10.1.1.4", "here")]);
    shows(
        &scene,
        &expect![[r#"
            default/web/tcp/http
              Address(10.96.0.10:80) -> Cluster
              cluster [10.1.1.2:8080, 10.1.1.4:8081, 10.1.2.2:8080]
              local []
        "#]],
    );
}

#[test]
fn endpoints_that_end_count_while_none_is_ready() {
    let ending = |ip| endpoint(ip, "here", [false, true, true]);
    let dead = endpoint("10.1.1.8", "here", [false, false, true]);
    let scene = web().slice(80, &[ending("10.1.1.2"), dead]);
    assert_eq!(scene.plan(&here()).ports[0].cluster.len(), 1);
    let scene = scene.slice(80, &[ready("10.1.2.2", "there")]);
    let plan = scene.plan(&here());
    assert_eq!(plan.ports[0].cluster, ["10.1.2.2:80".parse().unwrap()]);
}

#[test]
fn ports_of_one_number_and_two_protocols_are_two() {
    let port = |name, protocol| json!({"name": name, "protocol": protocol, "port": 53});
    let ports = [port("dns", "UDP"), port("dns-tcp", "TCP")];
    let scene = web()
        .spec(json!({"ports": ports}))
        .slice_of(&ports, &[ready("10.1.1.2", "here")]);
    shows(
        &scene,
        &expect![[r#"
            default/web/udp/dns
              Address(10.96.0.10:53) -> Cluster
              cluster [10.1.1.2:53]
              local []
            default/web/tcp/dns-tcp
              Address(10.96.0.10:53) -> Cluster
              cluster [10.1.1.2:53]
              local []
        "#]],
    );
}

#[test]
fn without_endpoints_every_front_rejects() {
    let port = json!([{"name": "http", "port": 80, "nodePort": 30080}]);
    let scene = web()
        .spec(json!({"ports": port}))
        .balanced_at("198.51.100.1");
    shows(
        &scene,
        &expect![[r#"
            default/web/tcp/http
              Address(10.96.0.10:80) -> Reject
              Node(30080) -> Reject
              Address(198.51.100.1:80) -> Reject
              cluster []
              local []
        "#]],
    );
}

#[test]
fn an_internal_policy_of_local_uses_local_endpoints_or_drops() {
    let local = json!({"internalTrafficPolicy": "Local"});
    shows(
        &two_nodes().spec(local.clone()),
        &expect![[r#"
            default/web/tcp/http
              Address(10.96.0.10:80) -> Local
              cluster []
              local [10.1.1.2:8080]
        "#]],
    );
    let elsewhere = web().slice(80, &[ready("10.1.2.2", "there")]);
    shows(
        &elsewhere.spec(local),
        &expect![[r#"
            default/web/tcp/http
              Address(10.96.0.10:80) -> Drop
              cluster []
              local []
        "#]],
    );
}

#[test]
fn an_external_policy_of_local_keeps_both_pools() {
    let port = json!([{"name": "http", "port": 80, "nodePort": 30080}]);
    let scene = two_nodes().spec(json!({"ports": port, "externalTrafficPolicy": "Local"}));
    shows(
        &scene
            .balanced_at("198.51.100.1")
            .spec(json!({"loadBalancerSourceRanges": ["192.0.2.0/24"]})),
        &expect![[r#"
            default/web/tcp/http
              Address(10.96.0.10:80) -> Cluster
              Node(30080) -> External
              Address(198.51.100.1:80) -> Balancer
              cluster [10.1.1.2:8080, 10.1.2.2:8080]
              local [10.1.1.2:8080]
        "#]],
    );
}

/// Checks CVE-2020-8554: a Service takes over no address unless the administrator has allowed that.
#[test]
fn external_addresses_are_answered_only_if_the_settings_allow_it() {
    let mut scene = two_nodes().spec(json!({"externalIPs": ["203.0.113.1"]}));
    assert_eq!(scene.plan(&here()).ports[0].fronts.len(), 1);
    scene.external_ips = true;
    assert_eq!(scene.plan(&here()).ports[0].fronts.len(), 2);
}

#[test]
fn headless_services_names_and_those_of_other_proxies_have_nothing() {
    let with = |fields: Value| two_nodes().spec(fields).plan(&here()).ports.len();
    assert_eq!(with(json!({"clusterIP": "None"})), 0);
    assert_eq!(with(json!({"type": "ExternalName"})), 0);
    let mut others = two_nodes();
    let label = "service.kubernetes.io/service-proxy-name";
    others.service["metadata"]["labels"] = json!({label: "mine"});
    assert_eq!(others.plan(&here()).ports.len(), 0);
}

#[test]
fn a_balancer_that_is_a_proxy_itself_gets_its_connections() {
    let mut scene = two_nodes().balanced_at("198.51.100.1");
    assert_eq!(scene.plan(&here()).ports[0].fronts.len(), 2);
    scene.service["status"]["loadBalancer"]["ingress"][0]["ipMode"] = json!("Proxy");
    assert_eq!(scene.plan(&here()).ports[0].fronts.len(), 1);
}

#[test]
fn the_affinity_of_a_client_has_a_timeout() {
    let affinity = |fields| two_nodes().spec(fields).plan(&here()).ports[0].affinity;
    let client_ip = json!({"sessionAffinity": "ClientIP"});
    assert_eq!(affinity(json!({"sessionAffinity": "None"})), None);
    assert_eq!(affinity(client_ip.clone()), Some(10_800));
    let mut config = client_ip;
    config["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 7}});
    assert_eq!(affinity(config), Some(7));
}

#[test]
fn hints_for_this_node_or_zone_restrict_endpoints_if_every_one_has_hints() {
    let hinted = |ip, hints: Value| {
        let mut endpoint = ready(ip, "there");
        endpoint["hints"] = hints;
        endpoint
    };
    let zone = |ip, zone| hinted(ip, json!({"forZones": [{"name": zone}]}));
    let node = |ip, node| hinted(ip, json!({"forNodes": [{"name": node}]}));
    let chosen = |endpoints: &[Value]| {
        web().slice(80, endpoints).plan(&here()).ports[0]
            .cluster
            .len()
    };
    assert_eq!(chosen(&[zone("10.1.1.1", "a"), zone("10.1.1.2", "b")]), 1);
    assert_eq!(
        chosen(&[zone("10.1.1.1", "b"), zone("10.1.1.2", "b")]),
        2,
        "none is near"
    );
    assert_eq!(
        chosen(&[zone("10.1.1.1", "a"), ready("10.1.1.2", "x")]),
        2,
        "one has none"
    );
    assert_eq!(
        chosen(&[node("10.1.1.1", "here"), node("10.1.1.2", "there")]),
        1
    );
}

proptest! {
    #[test]
    fn only_endpoints_that_serve_are_used_and_local_ones_are_local(
        endpoints in proptest::collection::vec((0u8..20, any::<[bool; 3]>(), any::<bool>()), 0..12),
        local in any::<bool>(),
    ) {
        let value = |(ip, conditions, here): &(u8, [bool; 3], bool)| {
            endpoint(&format!("10.1.0.{ip}"), if *here { "here" } else { "there" }, *conditions)
        };
        let values: Vec<_> = endpoints.iter().map(value).collect();
        let policy = if local { "Local" } else { "Cluster" };
        let scene = web().spec(json!({"internalTrafficPolicy": policy}));
        let port = scene.clone().slice(80, &values).plan(&here()).ports[0].clone();
        let ips = |wanted: &dyn Fn([bool; 3], bool) -> bool| -> BTreeSet<String> {
            let wanted = endpoints.iter().filter(|one| wanted(one.1, one.2));
            wanted.map(|one| format!("10.1.0.{}:80", one.0)).collect()
        };
        let has = |here: bool| !local || here;
        let ready = ips(&|conditions, here| conditions[0] && has(here));
        let ending = ips(&|conditions, here| conditions[1] && conditions[2] && has(here));
        let used: BTreeSet<_> = port.endpoints().map(|one| one.to_string()).collect();
        prop_assert_eq!(used, if ready.is_empty() { ending } else { ready });
        // The order of endpoints and their distribution over slices do not matter.
        let mut reversed = scene;
        for value in values.into_iter().rev() {
            reversed = reversed.slice(80, &[value]);
        }
        prop_assert_eq!(&reversed.plan(&here()).ports[0], &port);
    }
}

#[test]
fn an_empty_place_has_no_local_endpoints() {
    let place = std::sync::Arc::new(Place::default());
    let scene = two_nodes().spec(json!({"internalTrafficPolicy": "Local"}));
    assert!(scene.plan(&place).ports[0].local.is_empty());
}
