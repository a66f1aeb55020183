//! The text of transactions.

use expect_test::expect;
use serde_json::json;
use setpoint_proxy::Ledger;
use setpoint_proxy::nftables::{Base, Blocks};

use crate::objects::{Scene, here, ready};

pub fn base() -> Base {
    Base {
        table: "t".to_owned(),
        service_range: vec!["10.96.0.0/16".parse().unwrap()],
        masquerade_all: false,
        pod_range: Vec::new(),
    }
}

#[test]
fn the_first_transaction_replaces_the_table() {
    let script = base().whole(&here(), &Ledger::default().whole(), &mut Blocks::default());
    expect![[r#"
        add table ip t
        delete table ip t
        add table ip t
        add map ip t services { type ipv4_addr . inet_proto . inet_service : verdict ; }
        add map ip t node-ports { type inet_proto . inet_service : verdict ; }
        add map ip t refusals { type ipv4_addr . inet_proto . inet_service : verdict ; }
        add map ip t node-port-refusals { type inet_proto . inet_service : verdict ; }
        add set ip t node-addresses { type ipv4_addr ; flags interval ; }
        add set ip t service-range { type ipv4_addr ; flags interval ; }
        add set ip t hairpin { type ipv4_addr . ipv4_addr ; }
        add chain ip t prerouting { type nat hook prerouting priority -100 ; }
        add chain ip t nat-output { type nat hook output priority -100 ; }
        add chain ip t postrouting { type nat hook postrouting priority 100 ; }
        add chain ip t input { type filter hook input priority 0 ; }
        add chain ip t forward { type filter hook forward priority 0 ; }
        add chain ip t output { type filter hook output priority 0 ; }
        add chain ip t services
        add chain ip t refusals
        add chain ip t refuse
        add rule ip t prerouting jump services
        add rule ip t nat-output jump services
        add rule ip t postrouting meta mark & 0x4000 == 0x4000 meta mark set meta mark ^ 0x4000 masquerade fully-random
        add rule ip t postrouting ct status dnat ip saddr . ip daddr @hairpin masquerade fully-random
        add rule ip t input jump refusals
        add rule ip t forward jump refusals
        add rule ip t output jump refusals
        add rule ip t refusals ip daddr . meta l4proto . th dport vmap @refusals
        add rule ip t refusals ip daddr @node-addresses meta l4proto . th dport vmap @node-port-refusals
        add rule ip t refusals ip daddr @service-range goto refuse
        add rule ip t refuse meta l4proto tcp reject with tcp reset
        add rule ip t refuse reject
        add rule ip t services ip daddr . meta l4proto . th dport vmap @services
        add rule ip t services ip daddr @node-addresses meta l4proto . th dport vmap @node-ports
        add element ip t service-range { 10.96.0.0/16 }
        add element ip t node-addresses { 192.0.2.1 }
    "#]]
    .assert_eq(&script.to_string());
}

#[test]
fn transactions_have_what_changes_and_nothing_else() {
    let (mut ledger, web) = (Ledger::default(), Scene::new("web", "10.96.0.10"));
    let (mut text, mut blocks) = (String::new(), Blocks::default());
    let mut program = |scene: Option<&Scene>| {
        let changes = scene.map_or_else(|| web.removal(), |scene| scene.changes(&here()));
        text += &base()
            .partial(&ledger.apply(changes), &mut blocks)
            .to_string();
        text.push('\n');
    };
    let one = web.clone().slice(8080, &[ready("10.1.1.2", "here")]);
    let node_port = json!({"ports": [{"name": "http", "port": 80, "nodePort": 30080}]});
    let two = one
        .clone()
        .spec(node_port)
        .slice(8080, &[ready("10.1.2.2", "there")]);
    let sticky = json!({"sessionAffinity": "ClientIP"});
    program(Some(&web));
    program(Some(&one));
    program(Some(&two));
    program(Some(&two.clone().spec(sticky)));
    program(Some(&one));
    program(None);
    expect![[r#"
        add element ip t refusals { 10.96.0.10 . tcp . 80 : goto refuse }

        delete element ip t refusals { 10.96.0.10 . tcp . 80 : goto refuse }
        add chain ip t cluster/default/web/tcp/http
        add rule ip t cluster/default/web/tcp/http meta l4proto tcp dnat to 10.1.1.2:8080
        add element ip t services { 10.96.0.10 . tcp . 80 : goto cluster/default/web/tcp/http }
        add element ip t hairpin { 10.1.1.2 . 10.1.1.2 }

        add map ip t tcp-endpoints-7 { typeof numgen random mod 2 : ip daddr . tcp dport ; }
        add chain ip t external/default/web/tcp/http
        flush chain ip t cluster/default/web/tcp/http
        add rule ip t cluster/default/web/tcp/http meta l4proto tcp dnat ip to numgen random mod 2 offset 0 map @tcp-endpoints-7
        add rule ip t external/default/web/tcp/http meta mark set meta mark | 0x4000 goto cluster/default/web/tcp/http
        add element ip t tcp-endpoints-7 { 0 : 10.1.1.2 . 8080, 1 : 10.1.2.2 . 8080 }
        add element ip t node-ports { tcp . 30080 : goto external/default/web/tcp/http }
        add element ip t hairpin { 10.1.2.2 . 10.1.2.2 }

        delete element ip t tcp-endpoints-7 { 0 : 10.1.1.2 . 8080, 1 : 10.1.2.2 . 8080 }
        add map ip t choices-7 { typeof numgen random mod 2 : verdict ; }
        add set ip t affinity/default/web/tcp/http/10.1.1.2/8080/10800 { type ipv4_addr ; flags dynamic, timeout ; timeout 10800s ; }
        add set ip t affinity/default/web/tcp/http/10.1.2.2/8080/10800 { type ipv4_addr ; flags dynamic, timeout ; timeout 10800s ; }
        add chain ip t endpoint/default/web/tcp/http/10.1.1.2/8080
        add chain ip t endpoint/default/web/tcp/http/10.1.2.2/8080
        flush chain ip t cluster/default/web/tcp/http
        add rule ip t cluster/default/web/tcp/http ip saddr @affinity/default/web/tcp/http/10.1.1.2/8080/10800 goto endpoint/default/web/tcp/http/10.1.1.2/8080
        add rule ip t cluster/default/web/tcp/http ip saddr @affinity/default/web/tcp/http/10.1.2.2/8080/10800 goto endpoint/default/web/tcp/http/10.1.2.2/8080
        add rule ip t cluster/default/web/tcp/http numgen random mod 2 offset 0 vmap @choices-7
        add rule ip t endpoint/default/web/tcp/http/10.1.1.2/8080 update @affinity/default/web/tcp/http/10.1.1.2/8080/10800 { ip saddr }
        add rule ip t endpoint/default/web/tcp/http/10.1.1.2/8080 meta l4proto tcp dnat to 10.1.1.2:8080
        add rule ip t endpoint/default/web/tcp/http/10.1.2.2/8080 update @affinity/default/web/tcp/http/10.1.2.2/8080/10800 { ip saddr }
        add rule ip t endpoint/default/web/tcp/http/10.1.2.2/8080 meta l4proto tcp dnat to 10.1.2.2:8080
        add element ip t choices-7 { 0 : goto endpoint/default/web/tcp/http/10.1.1.2/8080, 1 : goto endpoint/default/web/tcp/http/10.1.2.2/8080 }

        delete element ip t node-ports { tcp . 30080 : goto external/default/web/tcp/http }
        delete element ip t choices-7 { 0 : goto endpoint/default/web/tcp/http/10.1.1.2/8080, 1 : goto endpoint/default/web/tcp/http/10.1.2.2/8080 }
        flush chain ip t cluster/default/web/tcp/http
        flush chain ip t endpoint/default/web/tcp/http/10.1.1.2/8080
        flush chain ip t endpoint/default/web/tcp/http/10.1.2.2/8080
        flush chain ip t external/default/web/tcp/http
        add rule ip t cluster/default/web/tcp/http meta l4proto tcp dnat to 10.1.1.2:8080
        delete element ip t hairpin { 10.1.2.2 . 10.1.2.2 }
        delete chain ip t endpoint/default/web/tcp/http/10.1.1.2/8080
        delete chain ip t endpoint/default/web/tcp/http/10.1.2.2/8080
        delete chain ip t external/default/web/tcp/http
        delete set ip t affinity/default/web/tcp/http/10.1.1.2/8080/10800
        delete set ip t affinity/default/web/tcp/http/10.1.2.2/8080/10800

        delete element ip t services { 10.96.0.10 . tcp . 80 : goto cluster/default/web/tcp/http }
        flush chain ip t cluster/default/web/tcp/http
        delete element ip t hairpin { 10.1.1.2 . 10.1.1.2 }
        delete chain ip t cluster/default/web/tcp/http

    "#]]
    .assert_eq(&text);
}
