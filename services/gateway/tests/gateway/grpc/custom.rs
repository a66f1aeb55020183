//! Objects of custom kinds over gRPC.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::explain_client::ExplainClient;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    CreateRequest, CustomObject, DeleteRequest, GetRequest, HistoryRequest, ListRequest, Object,
    ObjectRef, PatchRequest, UpdateRequest, WatchRequest, WhyRequest, patch_request,
};
use setpoint_proto::{Any, EventType, Reason, Resource};
use setpoint_store::Memory;
use setpoint_store::cache::Settings;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::NAMESPACE;
use tonic::transport::Channel;

use super::{connect, create, failed, gateway, next};

const TABS: &str = "tabs.example.com";
const TYPE_URL: &str = "type.googleapis.com/setpoint.v1.CustomObject";

fn definition() -> CustomResourceDefinition {
    let schema = json!({
        "type": "object",
        "properties": {
            "color": { "type": "string", "default": "red" },
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    let definition = json!({
        "metadata": { "name": TABS },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "tabs", "kind": "Tab", "shortNames": ["tb"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

/// Starts a gateway that serves Tabs, whose definition is established as the controller of names does.
async fn with_tabs() -> (ObjectsClient<Channel>, InProcess) {
    let (mut client, gateway) = gateway().await;
    let created = client.create(create(&definition())).await.unwrap();
    let object = created.into_inner().object.unwrap();
    let mut established: CustomResourceDefinition = object.unpack().unwrap();
    established.status.accepted_names = established.spec.names.clone();
    let condition = json!({ "type": "Established", "status": "True" });
    let condition = serde_json::from_value(condition).unwrap();
    established.status.conditions.push(condition);
    let update = UpdateRequest {
        resource: CustomResourceDefinition::RESOURCE.into(),
        name: TABS.into(),
        subresource: "status".into(),
        object: Some(Any::pack(&established)),
        ..Default::default()
    };
    client.update(update).await.unwrap();
    (client, gateway)
}

fn tab(name: &str, content: &Value) -> CustomObject {
    CustomObject {
        api_version: "example.com/v1".into(),
        kind: "Tab".into(),
        metadata: Some(ObjectMeta {
            name: name.into(),
            namespace: NAMESPACE.into(),
            ..Default::default()
        }),
        content: content.to_string().into(),
    }
}

fn packed(tab: &CustomObject) -> Option<Any> {
    Some(Any {
        type_url: TYPE_URL.into(),
        value: prost::Message::encode_to_vec(tab).into(),
    })
}

fn read(object: Object) -> (CustomObject, Value) {
    let any = object.object.unwrap();
    assert_eq!(any.type_url, TYPE_URL);
    let tab: CustomObject = prost::Message::decode(any.value).unwrap();
    let content = serde_json::from_slice(&tab.content).unwrap();
    (tab, content)
}

fn request(name: &str, content: &Value) -> CreateRequest {
    CreateRequest {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        object: packed(&tab(name, content)),
        field_manager: "test".into(),
        ..Default::default()
    }
}

fn named(name: &str) -> GetRequest {
    GetRequest {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        name: name.into(),
        ..Default::default()
    }
}

/// Returns a merge patch of an object or its subresource by the manager `operator`.
fn merge(name: &str, subresource: &str, patch: &Value) -> PatchRequest {
    PatchRequest {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        name: name.into(),
        subresource: subresource.into(),
        r#type: patch_request::Type::Merge.into(),
        patch: patch.to_string().into(),
        field_manager: "operator".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn every_verb_works_for_a_custom_kind() {
    let (mut client, _gateway) = with_tabs().await;
    let watch = WatchRequest {
        resource: TABS.into(),
        send_initial_events: true,
        ..Default::default()
    };
    let mut events = client.watch(watch).await.unwrap().into_inner();
    assert!(next(&mut events).await.initial_events_end);

    let created = client.create(request("a", &json!({}))).await.unwrap();
    let created = created.into_inner();
    let (mut object, content) = read(created.clone());
    assert_eq!(content, json!({ "color": "red" }));
    assert_eq!(object.metadata.as_ref().unwrap().generation, 1);
    let got = client.get(named("a")).await.unwrap().into_inner();
    assert_eq!(read(got), read(created));
    let added = next(&mut events).await;
    assert_eq!(added.r#type, EventType::Added as i32);
    assert_eq!(read(added.object().unwrap()).1, content);

    object.content = json!({ "color": "blue" }).to_string().into();
    let update = UpdateRequest {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
        object: packed(&object),
        ..Default::default()
    };
    let updated = client.update(update.clone()).await.unwrap().into_inner();
    assert_eq!(read(updated).1["color"], "blue");
    assert_eq!(failed(client.update(update).await).reason, Reason::Conflict);

    let status = json!({ "status": { "ready": true } });
    let patched = client.patch(merge("a", "status", &status)).await;
    let patched = patched.unwrap().into_inner();
    assert_eq!(read(patched).1["status"]["ready"], true);

    let mut strategic = merge("a", "", &json!({ "color": "red" }));
    strategic.r#type = patch_request::Type::Strategic.into();
    let refused = failed(client.patch(strategic).await);
    assert_eq!(refused.reason, Reason::UnsupportedMediaType);

    let list = ListRequest {
        resource: TABS.into(),
        ..Default::default()
    };
    let listed = client.list(list).await.unwrap().into_inner();
    assert_eq!(listed.items.len(), 1);

    let delete = DeleteRequest {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
        ..Default::default()
    };
    client.delete(delete).await.unwrap();
    assert_eq!(
        failed(client.get(named("a")).await).reason,
        Reason::NotFound
    );
}

#[tokio::test]
async fn a_gateway_that_has_not_read_the_definitions_denies_no_kind() {
    let faulty = FaultyStore::new(Arc::new(Memory::default()));
    faulty.cut();
    let settings = Settings {
        read_timeout: Duration::from_millis(1),
        ..Default::default()
    };
    let gateway = in_process::serve(in_process::loading(faulty.clone(), settings)).await;
    let mut client = ObjectsClient::new(connect(gateway.address).await);
    let error = failed(client.get(named("a")).await);
    assert_eq!(error.reason, Reason::ServiceUnavailable);
    faulty.release();
    let error = async || failed(client.clone().get(named("a")).await).reason;
    while error().await == Reason::ServiceUnavailable {}
    assert_eq!(error().await, Reason::NotFound);
}

#[tokio::test]
async fn a_custom_object_that_does_not_fit_is_refused() {
    let (mut client, _gateway) = with_tabs().await;
    let wrong = client.create(request("a", &json!({ "color": 5 }))).await;
    let error = failed(wrong);
    assert_eq!(error.reason, Reason::Invalid);
    assert!(
        error
            .message
            .contains(r#"must be of type string: "integer""#)
    );
    let mut other = tab("a", &json!({}));
    other.kind = "Sheet".into();
    let mut unknown = request("a", &json!({}));
    unknown.object = packed(&other);
    assert_eq!(
        failed(client.create(unknown).await).reason,
        Reason::BadRequest
    );
    for content in ["[]", "{", "7"] {
        let mut malformed = tab("a", &json!({}));
        malformed.content = content.into();
        let mut request = request("a", &json!({}));
        request.object = packed(&malformed);
        let error = failed(client.create(request).await);
        assert_eq!(error.reason, Reason::BadRequest, "{content}");
    }
}

#[tokio::test]
async fn the_history_and_the_state_of_a_custom_object_are_explained() {
    let (mut client, gateway) = with_tabs().await;
    client.create(request("a", &json!({}))).await.unwrap();
    let blue = json!({ "color": "blue" });
    client.patch(merge("a", "", &blue)).await.unwrap();
    let mut explain = ExplainClient::new(connect(gateway.address).await);
    for name in ["tab", "tabs", "tb", TABS] {
        let subject = Some(ObjectRef {
            resource: name.into(),
            namespace: NAMESPACE.into(),
            name: "a".into(),
        });
        let request = HistoryRequest {
            subject: subject.clone(),
            diff: true,
            ..Default::default()
        };
        let history = explain.history(request).await.unwrap().into_inner();
        assert_eq!(history.kind, "Tab");
        let last = &history.versions[0];
        assert_eq!(last.cause.as_ref().unwrap().writer, "operator");
        let change = last.changes.iter().find(|change| change.path == "color");
        assert_eq!(change.unwrap().after, r#""blue""#);
        let why = explain.why(WhyRequest { subject }).await.unwrap();
        let why = why.into_inner();
        assert!(why.exists);
        let operator = why.managers.iter().find(|one| one.name == "operator");
        assert!(operator.unwrap().fields.contains(&"color".to_owned()));
    }
}

#[tokio::test]
async fn an_object_waits_for_its_controller_and_for_what_its_conditions_report() {
    let (mut client, gateway) = with_tabs().await;
    client.create(request("a", &json!({}))).await.unwrap();
    let mut explain = ExplainClient::new(connect(gateway.address).await);
    let subject = ObjectRef {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        name: "a".into(),
    };
    let mut waits = async || {
        let subject = Some(subject.clone());
        let why = explain.why(WhyRequest { subject }).await.unwrap();
        let waits = why.into_inner().waits.into_iter();
        waits
            .map(|wait| format!("{}: {}", wait.reason, wait.message))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        waits().await,
        ["NoStatus: no controller has written a status yet"]
    );
    let condition = json!({ "type": "Ready", "status": "False", "reason": "NoDatabase", "message": "db is missing" });
    let status = json!({ "status": { "observedGeneration": 1, "conditions": [condition] } });
    let patch = merge("a", "status", &status);
    client.patch(patch).await.unwrap();
    assert_eq!(waits().await, ["NoDatabase: db is missing"]);
    let blue = json!({ "color": "blue" });
    client.patch(merge("a", "", &blue)).await.unwrap();
    assert_eq!(
        waits().await[0],
        "NotObserved: generation 2 was not acted upon yet; 1 was"
    );
    let condition = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "status": { "observedGeneration": 2, "conditions": [condition] } });
    let patch = merge("a", "status", &status);
    client.patch(patch).await.unwrap();
    assert!(waits().await.is_empty());
}
