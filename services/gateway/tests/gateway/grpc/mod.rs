//! The gRPC API, over a real connection.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod custom;
mod metadata;
mod warnings;

use std::net::SocketAddr;
use std::sync::Arc;

use opentelemetry::global;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message as _;
use serde_json::json;
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_proto::admissionregistration::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use setpoint_proto::core::{ConfigMap, Namespace};
use setpoint_proto::events;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, Object, PatchRequest, UpdateRequest,
    WatchRequest, patch_request,
};
use setpoint_proto::{
    Any, ApiError, EventType, FENCE, Reason, Resource, TraceContext, Traceparent, WatchEvent,
};
use setpoint_store::Memory;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::{NAMESPACE, config_map};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

async fn connect(address: SocketAddr) -> Channel {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    channel.connect().await.unwrap()
}

/// Starts a gateway with the namespace of these tests.
async fn gateway() -> (ObjectsClient<Channel>, InProcess) {
    let gateway = in_process::start().await;
    let mut client = ObjectsClient::new(connect(gateway.address).await);
    let mut namespace = Namespace::default();
    namespace.metadata.name = NAMESPACE.into();
    client.create(create(&namespace)).await.unwrap();
    (client, gateway)
}

fn create<T: Resource>(object: &T) -> CreateRequest {
    CreateRequest {
        resource: T::RESOURCE.into(),
        namespace: object.meta().namespace.clone(),
        object: Some(Any::pack(object)),
        field_manager: "test".into(),
        ..Default::default()
    }
}

fn read(object: Object) -> ConfigMap {
    object.object.unwrap().unpack().unwrap()
}

fn failed<T: std::fmt::Debug>(response: Result<T, Status>) -> ApiError {
    response.unwrap_err().into()
}

async fn next(events: &mut Streaming<WatchEvent>) -> WatchEvent {
    events.message().await.unwrap().unwrap()
}

#[tokio::test]
async fn every_verb_works() {
    let (mut client, _gateway) = gateway().await;
    let created = client
        .create(create(&config_map("a", "1")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(created.cause.as_ref().unwrap().writer, "test");
    let mut map = read(created.clone());
    assert_eq!(map.metadata.resource_version, created.revision);

    let named = GetRequest {
        resource: "configmaps".into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
        ..Default::default()
    };
    let got = client.get(named.clone()).await.unwrap().into_inner();
    assert_eq!(got, created);

    map.data.insert("value".into(), "2".into());
    let update = UpdateRequest {
        resource: named.resource.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        object: Some(Any::pack(&map)),
        ..Default::default()
    };
    let updated = client.update(update.clone()).await.unwrap().into_inner();
    assert_eq!(read(updated).data["value"], "2");
    assert_eq!(failed(client.update(update).await).reason, Reason::Conflict);

    let patch = PatchRequest {
        resource: named.resource.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        r#type: patch_request::Type::Merge.into(),
        patch: br#"{"data": {"value": "3"}}"#.as_slice().into(),
        ..Default::default()
    };
    let patched = client.patch(patch).await.unwrap().into_inner();
    assert_eq!(read(patched).data["value"], "3");

    let list = ListRequest {
        resource: named.resource.clone(),
        label_selector: "value=1".into(),
        ..Default::default()
    };
    let listed = client.list(list).await.unwrap().into_inner();
    assert_eq!(read(listed.items[0].clone()).metadata.name, "a");

    let delete = DeleteRequest {
        resource: named.resource.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        ..Default::default()
    };
    client.delete(delete).await.unwrap();
    assert_eq!(failed(client.get(named).await).reason, Reason::NotFound);
}

#[tokio::test]
async fn a_policy_judges_writes() {
    let (mut client, _gateway) = gateway().await;
    let rule = json!({
        "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
    });
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": { "name": "p" },
        "spec": {
            "matchConstraints": { "resourceRules": [rule] },
            "validations": [{ "expression": "false", "reason": "Forbidden" }],
        },
    }))
    .unwrap();
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": { "name": "b" },
        "spec": { "policyName": "p", "validationActions": ["Deny"] },
    }))
    .unwrap();
    client.create(create(&config_map("a", "1"))).await.unwrap();
    client.create(create(&policy)).await.unwrap();
    client.create(create(&binding)).await.unwrap();
    // A consistent read waits for the cache.
    let read = GetRequest {
        resource: "validatingadmissionpolicybindings.admissionregistration.k8s.io".into(),
        name: "b".into(),
        ..Default::default()
    };
    client.get(read).await.unwrap();
    let delete = DeleteRequest {
        resource: "configmaps".into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
        ..Default::default()
    };
    for error in [
        failed(client.create(create(&config_map("b", "1"))).await),
        failed(client.delete(delete).await),
    ] {
        assert_eq!(error.reason, Reason::Forbidden);
        let denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false";
        assert!(error.message.ends_with(denied), "{error}");
    }
}

#[tokio::test]
async fn a_configuration_can_be_applied() {
    let (mut client, _gateway) = gateway().await;
    let apply = |manager: &str, value: &str, force: bool| {
        PatchRequest {
        resource: "configmaps".into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
        r#type: patch_request::Type::Apply.into(),
        patch: format!(
            r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"x": "{value}"}}}}"#
        )
        .into(),
        field_manager: manager.into(),
        force,
        ..Default::default()
    }
    };
    client.patch(apply("one", "1", false)).await.unwrap();
    let error = failed(client.patch(apply("two", "2", false)).await);
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(error.details.unwrap().causes[0].field, ".data.x");
    let taken = read(
        client
            .patch(apply("two", "2", true))
            .await
            .unwrap()
            .into_inner(),
    );
    assert_eq!(taken.data["x"], "2");
    let names = taken
        .metadata
        .managed_fields
        .iter()
        .map(|entry| entry.manager.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["two"]);
    let error = failed(client.patch(apply("", "2", true)).await);
    assert_eq!(error.reason, Reason::Invalid);
}

#[tokio::test]
async fn a_watch_sends_the_state_and_then_each_change() {
    let (mut client, _gateway) = gateway().await;
    client.create(create(&config_map("a", "1"))).await.unwrap();
    let watch = WatchRequest {
        resource: "configmaps".into(),
        send_initial_events: true,
        ..Default::default()
    };
    let mut events = client.watch(watch).await.unwrap().into_inner();
    let first = next(&mut events).await;
    assert_eq!(first.r#type, EventType::Added as i32);
    assert_eq!(read(first.object().unwrap()).metadata.name, "a");
    let end = next(&mut events).await;
    assert!(end.initial_events_end && end.r#type == EventType::Bookmark as i32);

    client.create(create(&config_map("b", "1"))).await.unwrap();
    let added = next(&mut events).await.object().unwrap();
    assert_eq!(added.cause.as_ref().unwrap().writer, "test");
    let revision = added.revision.clone();
    assert_eq!(read(added).metadata.name, "b");

    client.create(create(&config_map("c", "1"))).await.unwrap();
    let resume = WatchRequest {
        resource: "configmaps".into(),
        revision,
        ..Default::default()
    };
    let mut resumed = client.watch(resume).await.unwrap().into_inner();
    assert_eq!(
        read(next(&mut resumed).await.object().unwrap())
            .metadata
            .name,
        "c"
    );
}

#[tokio::test]
async fn a_write_continues_the_callers_trace() {
    global::set_tracer_provider(SdkTracerProvider::builder().build());
    let (mut client, _gateway) = gateway().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    // Other clients send it as a header, our services in the message.
    let mut with_header = Request::new(create(&config_map("a", "1")));
    let header = parent.parse().unwrap();
    with_header.metadata_mut().insert("traceparent", header);
    let parent: Traceparent = parent.parse().unwrap();
    let trace = TraceContext {
        parent: Some(parent),
        ..TraceContext::default()
    };
    let with_field = Request::new(CreateRequest {
        trace: Some(trace),
        ..create(&config_map("b", "1"))
    });
    for request in [with_header, with_field] {
        let response = client.create(request).await.unwrap().into_inner();
        let wrote = response.cause.unwrap().traceparent;
        let wrote = wrote.expect("the write was traced");
        assert_eq!(wrote.trace_id(), parent.trace_id());
        assert_ne!(wrote.span, parent.span, "a span of its own");
    }
}

#[tokio::test]
async fn rest_and_grpc_share_a_port() {
    let gateway = in_process::start().await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let request = "GET /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200") && response.contains("NamespaceList"),
        "{response}"
    );
}

#[tokio::test]
async fn reflection_lists_the_service() {
    let gateway = in_process::start().await;
    let channel = connect(gateway.address).await;
    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let requests = tokio_stream::once(request);
    let responses = ServerReflectionClient::new(channel)
        .server_reflection_info(requests)
        .await;
    let response = responses
        .unwrap()
        .into_inner()
        .message()
        .await
        .unwrap()
        .unwrap();
    assert!(
        format!("{response:?}").contains("setpoint.v1.Objects"),
        "{response:?}"
    );
}

#[tokio::test]
async fn errors_of_bad_requests_have_reasons() {
    let (mut client, _gateway) = gateway().await;
    let get = |resource: &str, name: &str| GetRequest {
        resource: resource.into(),
        namespace: NAMESPACE.into(),
        name: name.into(),
        ..Default::default()
    };
    assert_eq!(
        failed(client.get(get("cats", "a")).await).reason,
        Reason::NotFound
    );
    assert_eq!(
        failed(client.get(get("configmaps", "")).await).reason,
        Reason::BadRequest
    );
    let mut empty = create(&config_map("a", "1"));
    empty.object = None;
    assert_eq!(
        failed(client.create(empty).await).reason,
        Reason::BadRequest
    );
    let invalid = failed(client.create(create(&config_map("A", "1"))).await);
    assert_eq!(invalid.reason, Reason::Invalid);
    assert_eq!(invalid.causes()[0].field, "metadata.name");
    let mut fenced = Request::new(create(&config_map("a", "1")));
    fenced
        .metadata_mut()
        .insert(FENCE, "nonsense".parse().unwrap());
    assert_eq!(
        failed(client.create(fenced).await).reason,
        Reason::BadRequest
    );
    let watch = WatchRequest {
        resource: "configmaps".into(),
        revision: "x".into(),
        ..Default::default()
    };
    assert_eq!(failed(client.watch(watch).await).reason, Reason::BadRequest);
}

#[tokio::test]
async fn a_write_carries_its_fence() {
    let (mut client, _gateway) = gateway().await;
    let mut fenced = Request::new(create(&config_map("a", "1")));
    let fence = format!("{NAMESPACE}/scheduler/7");
    fenced.metadata_mut().insert(FENCE, fence.parse().unwrap());
    assert!(failed(client.create(fenced).await).is_fenced());
}

/// One object must not be able to end the process or the client's connection.
#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_gateway_continues() {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    store.panic_in_commits(|write| write.key.ends_with("/panic"));
    let gateway = in_process::start_over(store).await;
    let mut client = ObjectsClient::new(connect(gateway.address).await);
    let mut namespace = Namespace::default();
    namespace.metadata.name = NAMESPACE.into();
    client.create(create(&namespace)).await.unwrap();
    let error = failed(client.create(create(&config_map("panic", "1"))).await);
    assert_eq!(error.reason, Reason::InternalError);
    client.create(create(&config_map("a", "1"))).await.unwrap();

    let body = r#"{"metadata":{"name":"panic"}}"#;
    let request = format!(
        "POST /api/v1/namespaces/{NAMESPACE}/configmaps HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 500"), "{response}");
    assert!(
        response.contains(r#""reason":"InternalError""#),
        "{response}"
    );
}

/// Another version of a stored kind is read and written in its own form.
#[tokio::test]
async fn a_view_has_its_own_form_in_every_call() {
    let (mut client, _gateway) = gateway().await;
    let mut event = events::Event {
        note: "it was tested".into(),
        reason: "Tested".into(),
        action: "Test".into(),
        r#type: "Normal".into(),
        reporting_controller: "acme.io/test".into(),
        reporting_instance: "test-0".into(),
        event_time: "2026-01-02T03:04:05Z"
            .parse::<jiff::Timestamp>()
            .unwrap()
            .into(),
        ..Default::default()
    };
    event.metadata.name = "a".into();
    event.regarding.namespace = NAMESPACE.into();
    let resource = || "events.events.k8s.io".to_owned();
    let type_url = "type.googleapis.com/k8s.events.v1.Event";
    let created = CreateRequest {
        resource: resource(),
        namespace: NAMESPACE.into(),
        object: Some(Any {
            type_url: type_url.into(),
            value: event.encode_to_vec().into(),
        }),
        ..Default::default()
    };
    let created = client.create(created).await.unwrap().into_inner();
    let any = created.object.clone().unwrap();
    assert_eq!(any.type_url, type_url);
    let read = events::Event::decode(any.value).unwrap();
    assert_eq!(read.note, "it was tested");
    let list = ListRequest {
        resource: resource(),
        namespace: NAMESPACE.into(),
        field_selector: "regarding.namespace=".to_owned() + NAMESPACE,
        ..Default::default()
    };
    let list = client.list(list).await.unwrap().into_inner();
    assert_eq!(list.items[0].object, created.object);
    let watch = WatchRequest {
        resource: resource(),
        namespace: NAMESPACE.into(),
        send_initial_events: true,
        ..Default::default()
    };
    let mut watched = client.watch(watch).await.unwrap().into_inner();
    let sent = Object::decode(next(&mut watched).await.object).unwrap();
    assert_eq!(sent.object, created.object);
}

#[tokio::test]
async fn a_call_with_an_invalid_token_is_unauthorized_and_reviews_are_only_created() {
    let (mut client, _gateway) = gateway().await;
    let named = |resource: &str| GetRequest {
        resource: resource.into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
        ..Default::default()
    };
    let mut request = Request::new(named("configmaps"));
    let metadata = request.metadata_mut();
    metadata.insert("authorization", "Bearer x".parse().unwrap());
    let refused = failed(client.get(request).await);
    assert_eq!(refused.reason, Reason::Unauthorized);
    let review = named("localsubjectaccessreviews.authorization.k8s.io");
    let refused = failed(client.get(review).await);
    assert_eq!(refused.reason, Reason::MethodNotAllowed);
}

#[tokio::test]
async fn computed_objects_can_be_listed_and_not_watched() {
    let (mut client, _gateway) = gateway().await;
    let resource = "pods.metrics.k8s.io";
    let list = ListRequest {
        resource: resource.into(),
        ..Default::default()
    };
    let found = client.list(list).await.unwrap().into_inner();
    assert!(found.items.is_empty());
    let watch = WatchRequest {
        resource: resource.into(),
        ..Default::default()
    };
    let error = failed(client.watch(watch).await);
    assert_eq!(error.reason, Reason::MethodNotAllowed);
}
