//! Metadata of responses, and the seats of watches, over gRPC and HTTP.

use std::time::Duration;

use futures::StreamExt as _;
use http::Request;
use serde_json::json;
use setpoint_gateway::in_process::InProcess;
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{GetRequest, ListRequest, WatchMetadataRequest, WatchRequest};
use tokio::time::{Instant, sleep, timeout};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

use super::over_http::{LEVEL_UID, SCHEMA_UID, uid};
use super::{Fair, LEVELS, SCHEMAS, metric};
use crate::http::api::CONFIGMAPS;

/// Returns a call of a tenant.
fn of_tenant<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    for (name, value) in [
        ("impersonate-user", "mallory"),
        ("impersonate-group", "tenants"),
        ("impersonate-group", "system:authenticated"),
    ] {
        let value = value.parse().unwrap();
        request.metadata_mut().append(name, value);
    }
    request
}

async fn connect(fair: &Fair) -> (Channel, InProcess) {
    let served = fair.api.listen().await;
    let channel = Channel::from_shared(format!("http://{}", served.address)).unwrap();
    (channel.connect().await.unwrap(), served)
}

fn uids(metadata: &MetadataMap) -> [&str; 2] {
    [SCHEMA_UID, LEVEL_UID].map(|name| {
        let value = metadata.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_names_the_schema_and_level_of_who_asked() {
    let fair = Fair::start(10, 5).await;
    let expected = [
        uid(&fair.api, &format!("{SCHEMAS}/tenants")).await,
        uid(&fair.api, &format!("{LEVELS}/tenants")).await,
    ];
    let (channel, _served) = connect(&fair).await;
    let mut objects = ObjectsClient::new(channel.clone());
    let list = ListRequest {
        resource: "configmaps".into(),
        ..Default::default()
    };
    let listed = objects.list(of_tenant(list.clone())).await.unwrap();
    assert_eq!(uids(listed.metadata()), expected);
    let absent = GetRequest {
        resource: "pods".into(),
        namespace: "default".into(),
        name: "absent".into(),
        ..Default::default()
    };
    let absent = objects.get(of_tenant(absent)).await.unwrap_err();
    assert_eq!(uids(absent.metadata()), expected, "of an error");
    let watched = objects.watch(of_tenant(watch())).await.unwrap();
    assert_eq!(uids(watched.metadata()), expected, "of a stream");
    let mut metadata = MetadataClient::new(channel);
    let all = of_tenant(WatchMetadataRequest::default());
    assert_eq!(
        uids(metadata.watch(all).await.unwrap().metadata()),
        expected
    );

    let none = json!({ "spec": { "limited": { "nominalConcurrencyShares": 0 } } });
    let path = format!("{LEVELS}/tenants");
    fair.api.patch(&path, "merge-patch+json", none).await.ok();
    fair.api
        .eventually(&path, |_| fair.nominal("tenants") == 0)
        .await;
    let rejected = objects.list(of_tenant(list)).await.unwrap_err();
    assert_eq!(rejected.code(), tonic::Code::ResourceExhausted);
    assert_eq!(uids(rejected.metadata()), expected, "of a rejected call");
}

fn watch() -> WatchRequest {
    WatchRequest {
        resource: "configmaps".into(),
        send_initial_events: true,
        ..Default::default()
    }
}

/// Returns the number of requests of tenants that hold seats.
fn executing() -> usize {
    metric(r#"current_executing_requests{flow_schema="tenants",priority_level="tenants"}"#)
}

/// Waits until tenants hold no seats.
async fn no_seats() {
    let released = async {
        while executing() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), released).await.unwrap();
}

#[tokio::test]
async fn a_watch_holds_its_seats_until_its_client_has_read_the_initial_state() {
    let fair = Fair::start(10, 5).await;
    for query in [
        "watch=1",
        "watch=1&allowWatchBookmarks=1",
        "watch=1&resourceVersion=1",
    ] {
        let request = Request::get(format!("{CONFIGMAPS}?{query}"))
            .header("impersonate-user", "mallory")
            .header("impersonate-group", "tenants")
            .header("impersonate-group", "system:authenticated");
        let watched = fair.api.open(request, "").await;
        assert_eq!(watched.status(), 200);
        assert_eq!(executing(), 1, "nothing of the stream has been read");
        let mut body = watched.into_body().into_data_stream();
        let _events = tokio::spawn(async move { while body.next().await.is_some() {} });
        let begun = Instant::now();
        no_seats().await;
        assert!(begun.elapsed() < Duration::from_secs(9), "{query}");
    }
}

#[tokio::test]
async fn a_watch_over_grpc_holds_no_seats_once_its_initial_state_is_sent() {
    let fair = Fair::start(10, 5).await;
    let (channel, _served) = connect(&fair).await;
    let mut objects = ObjectsClient::new(channel.clone());
    let mut metadata = MetadataClient::new(channel);
    let mut events = objects
        .watch(of_tenant(watch()))
        .await
        .unwrap()
        .into_inner();
    while !events.message().await.unwrap().unwrap().initial_events_end {}
    let all = of_tenant(WatchMetadataRequest::default());
    let mut events = metadata.watch(all).await.unwrap().into_inner();
    while !events.message().await.unwrap().unwrap().initial_events_end {}
    no_seats().await;
    let dispatched = r#"dispatched_requests_total{flow_schema="tenants",priority_level="tenants"}"#;
    assert_eq!(metric(dispatched), 2);
}
