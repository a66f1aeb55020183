//! Transactions over netlink have the effect that `nft` gives to the same transactions as text.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_proxy::nftables::{Base, Blocks, Nftables};
use setpoint_proxy::{Backend as _, Changes, Ledger, Place};

use crate::machine::{Machine, Namespace, is_allowed};
use crate::objects::{Scene, here};
use crate::sites::{on, two};
use crate::traffic::{base, node_port, pod, web};

/// Executes a script of `nft` in a network.
fn execute(network: &Namespace, script: &str) {
    let command = network.command("nft");
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success(), "{script}");
}

/// Returns the table as `nft` shows it, with its lines sorted: the order of elements and chains is the kernel's.
fn shown(network: &Namespace) -> Vec<String> {
    let text = network.output("nft list table ip setpoint-test");
    let elements = text.replace("elements = {", "").replace('}', "");
    let parts = elements.split(['\n', ',']);
    let parts = parts.map(|part| part.trim().to_owned());
    let mut parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    parts.sort();
    parts
}

/// Programs scenes one after another, in both ways.
async fn compare(base: &Base, place: Arc<Place>, scenes: &[Scene]) {
    let (machine, text) = (Machine::new(0), Namespace::new("t"));
    let mut backend = Nftables::new(base.clone(), machine.tools());
    let (mut ledger, mut blocks) = (Ledger::default(), Blocks::default());
    let removals = scenes.iter().rev().map(Scene::removal);
    let all: Vec<Changes> = scenes
        .iter()
        .map(|scene| scene.changes(&place))
        .chain(removals)
        .collect();
    for (number, changes) in all.into_iter().enumerate() {
        let delta = ledger.apply(changes.clone());
        let transaction = match number {
            0 => base.whole(&place, &delta, &mut blocks),
            _ => base.partial(&delta, &mut blocks),
        };
        execute(&text, &transaction.to_string());
        backend.sync(&place, changes).await.unwrap();
        let (ours, theirs) = (shown(&machine.machine), shown(&text));
        assert!(ours.len() > 30, "{ours:#?}");
        assert_eq!(ours, theirs, "{transaction}");
    }
}

fn ports(protocol: &str) -> Value {
    json!([{"name": "http", "protocol": protocol, "port": 80, "nodePort": 30090}])
}

fn scenes(endpoints: [Value; 2]) -> Vec<Scene> {
    let scene = |name: &str, ip: &str| Scene::new(name, ip).slice(8080, &endpoints);
    let udp = json!({"name": "http", "protocol": "UDP", "port": 53});
    let ranges =
        json!({"loadBalancerSourceRanges": ["198.51.100.0/24", "203.0.113.7/32", "0.0.0.0/0"]});
    let dns = Scene::new("dns", "10.96.0.53").spec(json!({"ports": ports("UDP")}));
    vec![
        scene("local", "10.96.0.11").spec(node_port("Local")),
        scene("sticky", "10.96.0.12").spec(json!({"sessionAffinity": "ClientIP"})),
        scene("balanced", "10.96.0.13")
            .balanced_at("203.0.113.1")
            .spec(ranges),
        dns.slice_of(&[udp], &endpoints),
        scene("sticky", "10.96.0.12"),
        scene("inner", "10.96.0.14").spec(json!({"internalTrafficPolicy": "Local"})),
        Scene::new("local", "10.96.0.11"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_has_what_nft_makes_of_the_text() {
    if !is_allowed() {
        return;
    }
    let first = web(&[1, 2, 3]);
    let all: Vec<_> = [first]
        .into_iter()
        .chain(scenes([pod(1), pod(2)]))
        .collect();
    let mut base = base();
    compare(&base, here(), &all).await;
    base.masquerade_all = true;
    base.service_range.push("255.0.0.0/8".parse().unwrap());
    compare(&base, two(), &scenes([on(1), on(2)])).await;
}

/// `nft` refuses ranges that overlap. A node may have an address within another range of node ports.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_that_overlap_are_joined() {
    if !is_allowed() {
        return;
    }
    let machine = Machine::new(0);
    let mut base = base();
    let more = ["10.96.0.0/24", "10.97.0.0/16", "0.0.0.0/8"];
    base.service_range
        .extend(more.map(|range| range.parse::<setpoint_model::Cidr>().unwrap()));
    let mut backend = Nftables::new(base, machine.tools());
    backend.sync(&here(), Changes::new()).await.unwrap();
    let set = machine
        .machine
        .output("nft list set ip setpoint-test service-range");
    assert!(
        set.contains("elements = { 0.0.0.0/8, 10.96.0.0/16,"),
        "{set}"
    );
}
