//! The service-cidrs-controller over a gateway in the same process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use setpoint_controller::{Client, Controller, client};
use setpoint_gateway::in_process;
use setpoint_model::{Key, condition};
use setpoint_proto::Reason;
use setpoint_proto::core::{Namespace, Service, ServicePort};
use setpoint_proto::networking::ServiceCidr;
use setpoint_service_cidrs_controller::controller;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const NAME: &str = "service-cidrs-controller";

fn service(name: &str, address: &str) -> Service {
    let mut service = Service::default();
    (service.metadata.namespace, service.metadata.name) = ("shop".into(), name.into());
    service.spec.cluster_ip = address.into();
    service.spec.ports = vec![ServicePort {
        port: 80,
        ..ServicePort::default()
    }];
    service
}

fn range(name: &str, cidr: &str) -> ServiceCidr {
    let mut range = ServiceCidr::default();
    range.metadata.name = name.into();
    range.spec.cidrs = vec![cidr.into()];
    range
}

async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    let until = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), until).await.unwrap();
}

/// Returns status and reason of the condition of a ServiceCIDR.
async fn ready(client: &Client, name: &str) -> (String, String) {
    let found: ServiceCidr = client.get(&Key::new("", name)).await.unwrap();
    let ready = condition::get(&found.status.conditions, "Ready").cloned();
    let ready = ready.unwrap_or_default();
    (ready.status, ready.reason)
}

#[tokio::test]
async fn a_further_range_is_used_and_stays_until_no_service_needs_it() {
    let gateway = in_process::start().await;
    let settings = client::Settings {
        address: gateway.url.clone(),
        ..Default::default()
    };
    let client = Client::connect(&settings, NAME).unwrap();
    let mut namespace = Namespace::default();
    namespace.metadata.name = "shop".into();
    client.create(&namespace).await.unwrap();
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let new = |it| Controller::new(NAME, it, client.clone()).unelected();
    let controller = controller(client.informer(), client.informer(), new);
    tokio::spawn(controller.run("test", stop));

    let web = service("web", "10.88.0.7");
    let refused = client.create(&web).await.unwrap_err();
    let why =
        "failed to allocate IP 10.88.0.7: the provided network does not match the current range";
    assert_eq!(refused.reason, Reason::Invalid);
    assert!(refused.message.contains(why), "{refused}");
    client
        .create(&range("second", "10.88.0.0/24"))
        .await
        .unwrap();
    let is_ready = ("True".to_owned(), String::new());
    eventually(async || ready(&client, "second").await == is_ready).await;
    client.create(&web).await.unwrap();

    // In use: it stays, and gives no more addresses.
    client
        .delete::<ServiceCidr>(&Key::new("", "second"), Default::default(), None)
        .await
        .unwrap();
    let terminating = ("False".to_owned(), "Terminating".to_owned());
    eventually(async || ready(&client, "second").await == terminating).await;
    let refused = client
        .create(&service("late", "10.88.0.8"))
        .await
        .unwrap_err();
    assert!(
        refused.message.contains("does not match the current range"),
        "{refused}"
    );

    // Another range has the address.
    client
        .create(&range("covering", "10.88.0.0/16"))
        .await
        .unwrap();
    eventually(async || {
        let found = client.get::<ServiceCidr>(&Key::new("", "second")).await;
        found.is_err_and(|error| error.reason == Reason::NotFound)
    })
    .await;
    client
        .delete::<ServiceCidr>(&Key::new("", "covering"), Default::default(), None)
        .await
        .unwrap();
    eventually(async || ready(&client, "covering").await == terminating).await;
    client
        .delete::<Service>(&Key::of(&web.metadata), Default::default(), None)
        .await
        .unwrap();
    eventually(async || {
        let found = client.get::<ServiceCidr>(&Key::new("", "covering")).await;
        found.is_err_and(|error| error.reason == Reason::NotFound)
    })
    .await;
}
