//! Quotas of objects of custom kinds.

use prost::Message as _;
use serde_json::json;
use setpoint_controller::ObjectRef;
use setpoint_model::Key;
use setpoint_proto::Any;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{CreateRequest, CustomObject};

use crate::fixture::{Fixture, NAMESPACE, quota};

const TABS: &str = "tabs.example.com";

/// Defines the kind Tab, and establishes it as the controller of names does.
async fn define(fixture: &Fixture) {
    let definition = json!({
        "metadata": { "name": TABS },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "tabs", "kind": "Tab" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let mut established = fixture
        .client
        .create(&definition)
        .await
        .unwrap()
        .object()
        .unwrap();
    established.status.accepted_names = established.spec.names.clone();
    let condition = json!({ "type": "Established", "status": "True" });
    let condition = serde_json::from_value(condition).unwrap();
    established.status.conditions.push(condition);
    fixture.client.update_status(&established).await.unwrap();
}

async fn create_tab(fixture: &Fixture, name: &str) -> Result<(), tonic::Status> {
    let tab = CustomObject {
        api_version: "example.com/v1".into(),
        kind: "Tab".into(),
        metadata: Some(ObjectMeta {
            name: name.into(),
            namespace: NAMESPACE.into(),
            ..ObjectMeta::default()
        }),
        content: "{}".into(),
    };
    let request = CreateRequest {
        resource: TABS.into(),
        namespace: NAMESPACE.into(),
        object: Some(Any {
            type_url: "type.googleapis.com/setpoint.v1.CustomObject".into(),
            value: tab.encode_to_vec().into(),
        }),
        ..CreateRequest::default()
    };
    let mut objects = ObjectsClient::new(fixture.client.channel());
    objects.create(request).await.map(|_| ())
}

#[tokio::test]
async fn the_objects_of_a_kind_that_is_defined_later_are_counted() {
    let (fixture, _running) = Fixture::running().await;
    let hard = [("count/tabs.example.com", "1"), ("secrets", "1")];
    fixture.create(&quota(&hard)).await.unwrap();
    fixture.used(&[("secrets", "0")]).await;
    define(&fixture).await;
    let none = [("count/tabs.example.com", "0"), ("secrets", "0")];
    fixture.used(&none).await;
    create_tab(&fixture, "a").await.unwrap();
    let refused = create_tab(&fixture, "b").await.unwrap_err();
    assert!(
        refused.message().contains("exceeded quota: quota"),
        "{refused}"
    );
    let tab: ObjectRef = Key::new(NAMESPACE, "a").in_resource(TABS);
    let deleted = fixture.client.delete_object(&tab, DeleteOptions::default());
    deleted.await.unwrap();
    fixture.used(&none).await;
}
