//! Events of NetworkPolicies, over a gateway in the same process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use serde_json::json;
use setpoint_controller::client::ListOptions;
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Client, Queue, QueueHandle, client};
use setpoint_endpointslice_controller::report_forever;
use setpoint_gateway::in_process;
use setpoint_model::Key;
use setpoint_model::condition::NETWORK_POLICIES_ENFORCED;
use setpoint_proto::core::{Event, Namespace, Node, NodeCondition, Pod};
use setpoint_proto::networking::NetworkPolicy;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const NAME: &str = "endpointslice-controller";

fn policy(name: &str) -> NetworkPolicy {
    let mut policy = NetworkPolicy::default();
    (policy.metadata.namespace, policy.metadata.name) = ("shop".into(), name.into());
    policy
}

/// Waits until there are this many Events, and returns them by name.
async fn events(client: &Client, count: usize) -> Vec<Event> {
    let until = async {
        loop {
            let listed = client.list::<Event>(&ListOptions::default()).await.unwrap();
            if listed.items.len() >= count {
                return listed.items;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let events = timeout(Duration::from_secs(60), until).await.unwrap();
    assert_eq!(events.len(), count, "{events:?}");
    events
}

/// Starts a gateway, and returns a client of it.
async fn gateway() -> (in_process::InProcess, Client) {
    let gateway = in_process::start().await;
    let settings = client::Settings {
        address: gateway.url.clone(),
        ..Default::default()
    };
    let client = Client::connect(&settings, NAME).unwrap();
    let mut namespace = Namespace::default();
    namespace.metadata.name = "shop".into();
    client.create(&namespace).await.unwrap();
    (gateway, client)
}

/// Reports as a leader does, until the task is aborted.
fn report(client: &Client) -> JoinHandle<()> {
    let client = client.clone();
    tokio::spawn(async move {
        let leading = QueueHandle::from(Queue::new("policies", Limiter::default()));
        let places = (client.informer(), client.informer());
        let readers = (places.0.reader(), places.1.reader());
        let report = report_forever(client.informer(), readers, &leading, &client, NAME, "test");
        let stop = CancellationToken::new;
        tokio::join!(report, places.0.run(stop()), places.1.run(stop()));
    })
}

#[tokio::test]
async fn each_generation_of_a_policy_gets_one_warning_also_from_a_new_leader() {
    let (_gateway, client) = gateway().await;
    client.create(&policy("deny")).await.unwrap();
    let first = report(&client);
    let told = events(&client, 1).await;
    let [event] = &*told else {
        panic!("{told:?}");
    };
    let about = &event.involved_object;
    assert_eq!((&*about.kind, &*about.name), ("NetworkPolicy", "deny"));
    assert_eq!((&*event.r#type, &*event.reason), ("Warning", "NotEnforced"));
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let key = Key::new("shop", "deny");
    client
        .patch::<NetworkPolicy>(&key, "", labelled)
        .await
        .unwrap();
    let changed = json!({"spec": {"podSelector": {"matchLabels": {"app": "web"}}}});
    client
        .patch::<NetworkPolicy>(&key, "", changed)
        .await
        .unwrap();
    events(&client, 2).await;
    first.abort();
    _ = first.await;
    let _second = report(&client);
    client.create(&policy("other")).await.unwrap();
    events(&client, 3).await;
}

async fn add_node(client: &Client, name: &str, enforces: bool) {
    let mut node = Node::default();
    node.metadata.name = name.to_owned();
    let mut node = client.create(&node).await.unwrap().object().unwrap();
    node.status.conditions = vec![NodeCondition {
        r#type: NETWORK_POLICIES_ENFORCED.to_owned(),
        status: if enforces { "True" } else { "False" }.to_owned(),
        ..NodeCondition::default()
    }];
    client.update_status(&node).await.unwrap();
}

async fn add_pod(client: &Client, name: &str, node: &str) {
    let pod = json!({
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "c"}]},
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    client.create(&pod).await.unwrap();
}

#[tokio::test]
async fn the_event_names_nodes_with_pods_that_the_policy_does_not_restrict() {
    let (_gateway, client) = gateway().await;
    for (name, enforces) in [("one", true), ("two", false), ("three", false)] {
        add_node(&client, name, enforces).await;
    }
    add_pod(&client, "a", "one").await;
    let _task = report(&client);
    client.create(&policy("with-effect")).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    events(&client, 0).await;
    add_pod(&client, "b", "two").await;
    // Pods come after a policy, which is not looked at until the next change.
    client.create(&policy("without")).await.unwrap();
    let told = events(&client, 2).await;
    let expected =
        "these nodes enforce no NetworkPolicies, and spec has no effect on their Pods: two. ";
    assert!(
        told.iter().all(|event| event.message.starts_with(expected)),
        "{told:?}"
    );
}
