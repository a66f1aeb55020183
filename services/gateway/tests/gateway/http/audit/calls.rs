//! Calls of gRPC, which are audited as the requests over HTTP that do the same.

use serde_json::json;
use setpoint_gateway::in_process;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{CreateRequest, GetRequest, WatchRequest};
use setpoint_proto::{Any, Resource as _};
use tonic::Request;
use tonic::transport::Channel;

use super::{Audit, stages};
use crate::http::api::Api;

async fn connect(api: &Api) -> (ObjectsClient<Channel>, in_process::InProcess) {
    let server = api.listen().await;
    let client = ObjectsClient::connect(server.url.clone()).await.unwrap();
    (client, server)
}

fn create() -> CreateRequest {
    let mut object = ConfigMap::default();
    object.metadata.name = "a".into();
    object.metadata.namespace = "default".into();
    CreateRequest {
        resource: ConfigMap::RESOURCE.into(),
        namespace: "default".into(),
        object: Some(Any::pack(&object)),
        ..CreateRequest::default()
    }
}

#[tokio::test]
async fn a_call_is_audited_as_the_request_that_does_the_same() {
    let audit = Audit::of(
        "- level: RequestResponse
  verbs: [create]
  resources: [{resources: [configmaps]}]
- level: Metadata
",
    );
    let api = audit.api().await;
    let (mut client, _server) = connect(&api).await;
    let response = client.create(create()).await.unwrap();
    let id = response
        .metadata()
        .get("audit-id")
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    drop(response);
    let events = audit.until("ResponseComplete").await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let event = &events[1];
    assert_eq!(event["auditID"], id);
    assert_eq!(event["requestURI"], "/setpoint.v1.Objects/Create");
    assert_eq!(event["verb"], "create");
    assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(event["objectRef"]["resource"], "configmaps");
    assert_eq!(event["objectRef"]["name"], "a");
    assert_eq!(event["responseStatus"]["code"], 200);
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "allow"
    );
    assert_eq!(event["requestObject"]["metadata"]["name"], "a");
    assert!(event["responseObject"]["metadata"]["uid"].is_string());
    audit.forget().await;
    let get = GetRequest {
        resource: ConfigMap::RESOURCE.into(),
        namespace: "default".into(),
        name: "missing".into(),
        ..GetRequest::default()
    };
    client.get(get).await.unwrap_err();
    let event = Audit::only(&audit.until("ResponseComplete").await, "ResponseComplete");
    assert_eq!(event["verb"], "get");
    assert_eq!(event["responseStatus"]["code"], 404);
    assert_eq!(event["responseStatus"]["reason"], "NotFound");
}

#[tokio::test]
async fn a_watch_is_recorded_until_it_ends() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let (mut client, _server) = connect(&api).await;
    let watch = WatchRequest {
        resource: ConfigMap::RESOURCE.into(),
        send_initial_events: true,
        ..WatchRequest::default()
    };
    let stream = client.watch(watch).await.unwrap();
    let events = audit.until("ResponseStarted").await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted"]);
    drop(stream);
    let events = audit.until("ResponseComplete").await;
    assert_eq!(events[2]["verb"], "watch");
}

/// Neither what is not understood nor what is refused goes unrecorded.
#[tokio::test]
async fn calls_that_fail_early_are_recorded_by_their_path() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let (mut client, _server) = connect(&api).await;
    let unknown = GetRequest {
        resource: "nothing".into(),
        name: "a".into(),
        ..GetRequest::default()
    };
    client.get(unknown).await.unwrap_err();
    let event = Audit::only(&audit.until("ResponseComplete").await, "ResponseComplete");
    assert_eq!(event["verb"], "post");
    assert_eq!(event["requestURI"], "/setpoint.v1.Objects/Get");
    assert_eq!(event["responseStatus"]["code"], 404);
    audit.forget().await;
    let mut login = Request::new(GetRequest::default());
    login
        .metadata_mut()
        .insert("authorization", "Bearer wrong".parse().unwrap());
    client.get(login).await.unwrap_err();
    let events = audit.until("ResponseStarted").await;
    assert_eq!(stages(&events), ["ResponseStarted"]);
    assert_eq!(events[0]["responseStatus"]["code"], 401);
}
