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
use setpoint_proto::core::{Event, Namespace};
use setpoint_proto::networking::NetworkPolicy;
use tokio::time::{sleep, timeout};

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

#[tokio::test]
async fn each_generation_of_a_policy_gets_one_warning_also_from_a_new_leader() {
    let gateway = in_process::start().await;
    let settings = client::Settings {
        address: gateway.url.clone(),
        ..Default::default()
    };
    let client = Client::connect(&settings, NAME).unwrap();
    let mut namespace = Namespace::default();
    namespace.metadata.name = "shop".into();
    client.create(&namespace).await.unwrap();
    client.create(&policy("deny")).await.unwrap();
    let start = || {
        let client = client.clone();
        tokio::spawn(async move {
            let leading = QueueHandle::from(Queue::new("policies", Limiter::default()));
            report_forever(client.informer(), &leading, &client, NAME, "test").await;
        })
    };
    let first = start();
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
    let _second = start();
    client.create(&policy("other")).await.unwrap();
    events(&client, 3).await;
}
