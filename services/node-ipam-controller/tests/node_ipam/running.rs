//! The node-ipam-controller over a gateway in the same process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::time::Duration;

use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Controller, Recorder, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_node_ipam_controller::controller;
use setpoint_proto::Reason;
use setpoint_proto::core::{Event, Namespace, Node};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::settings::settings;

const NAME: &str = "node-ipam-controller";

async fn connect() -> (InProcess, Client) {
    let gateway = in_process::start().await;
    let settings = client::Settings {
        address: gateway.url.clone(),
        ..Default::default()
    };
    let client = Client::connect(&settings, NAME).unwrap();
    let mut namespace = Namespace::default();
    namespace.metadata.name = "default".into();
    client.create(&namespace).await.unwrap();
    (gateway, client)
}

/// Runs the controller with four ranges until the guard is dropped.
fn start(client: &Client) -> DropGuard {
    let stop = CancellationToken::new();
    let events = Recorder::new(client.clone(), "cidrAllocator", "test");
    let new = |it| Controller::new(NAME, it, client.clone()).unelected();
    let four = settings(&["10.244.0.0/22"], 24);
    let controller = controller(client.informer(), &four, events, new);
    tokio::spawn(controller.run("test", stop.clone()));
    stop.drop_guard()
}

fn node(name: &str, range: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = name.into();
    node.spec.pod_cidr = range.into();
    node
}

async fn range(client: &Client, name: &str) -> String {
    let node: Node = client.get(&Key::new("", name)).await.unwrap();
    let first = node.spec.pod_cidrs.first().cloned();
    assert_eq!(first.unwrap_or_default(), node.spec.pod_cidr);
    node.spec.pod_cidr
}

async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    let until = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), until).await.unwrap();
}

#[tokio::test]
async fn nodes_get_ranges_and_one_that_goes_makes_room_for_another() {
    let (_gateway, client) = connect().await;
    client.create(&node("own", "10.244.1.0/24")).await.unwrap();
    let running = start(&client);
    for name in ["a", "b"] {
        client.create(&node(name, "")).await.unwrap();
    }
    let assigned = async |names: &[&str]| {
        let mut ranges = BTreeSet::new();
        for name in names {
            ranges.insert(range(&client, name).await);
        }
        ranges
    };
    let two = ["10.244.0.0/24", "10.244.2.0/24"].map(str::to_owned);
    eventually(async || assigned(&["a", "b"]).await.iter().eq(&two)).await;

    // A new leader knows all of them.
    drop(running);
    let _running = start(&client);
    for name in ["c", "d"] {
        client.create(&node(name, "")).await.unwrap();
    }
    let last = [String::new(), "10.244.3.0/24".to_owned()];
    eventually(async || assigned(&["c", "d"]).await.iter().eq(&last)).await;
    let without = match range(&client, "c").await.is_empty() {
        true => "c",
        false => "d",
    };
    eventually(async || {
        let all = client.list::<Event>(&ListOptions::default()).await.unwrap();
        let told = all
            .items
            .iter()
            .filter(|it| it.reason == "CIDRNotAvailable");
        let told: Vec<_> = told.collect();
        told.iter().for_each(|it| {
            let message = format!("Node {without} status is now: CIDRNotAvailable");
            assert_eq!((&*it.message, &*it.r#type), (&*message, "Normal"));
            assert_eq!(it.involved_object.name, without);
        });
        told.len() == 1
    })
    .await;
    client
        .delete::<Node>(&Key::new("", "own"), Default::default(), None)
        .await
        .unwrap();
    eventually(async || range(&client, without).await == "10.244.1.0/24").await;
    eventually(async || value("node_ipam_controller_cidrset_usage_cidrs") == 1.0).await;
    for (metric, expected) in [
        ("node_ipam_controller_cirdset_max_cidrs", 4.0),
        ("node_ipam_controller_cidrset_cidrs_allocations_total", 4.0),
        ("node_ipam_controller_cidrset_cidrs_releases_total", 1.0),
    ] {
        assert_eq!(value(metric), expected, "{metric}");
    }
}

/// Returns the value of a metric of the range of the cluster; 0 without one.
fn value(name: &str) -> f64 {
    let families = prometheus::gather();
    let family = families.iter().find(|family| family.name() == name);
    let Some(metric) = family.and_then(|family| family.get_metric().first()) else {
        return 0.0;
    };
    let label = &metric.get_label()[0];
    assert_eq!(
        (label.name(), label.value()),
        ("clusterCIDR", "10.244.0.0/22")
    );
    metric.get_gauge().get_value() + metric.get_counter().get_value()
}

#[tokio::test]
async fn a_range_that_is_set_is_not_overwritten() {
    let (_gateway, client) = connect().await;
    client.create(&node("own", "10.9.0.0/24")).await.unwrap();
    let patch =
        serde_json::json!({"spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]}});
    let refused = client.patch::<Node>(&Key::new("", "own"), "", patch).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid, "{refused}");
    assert!(
        refused.message.contains("may not change podCIDR"),
        "{refused}"
    );
}
