//! Namespaces with objects of custom kinds.

use prost::Message as _;
use serde_json::json;
use setpoint_model::Key;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{CreateRequest, CustomObject};
use setpoint_proto::{Any, Reason};

use crate::fixture::{Fixture, NAMESPACE};

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

async fn create_tab(fixture: &Fixture, name: &str) {
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
    objects.create(request).await.unwrap();
}

#[tokio::test]
async fn objects_of_kinds_that_were_defined_later_are_deleted_as_well() {
    let fixture = Fixture::running().await;
    define(&fixture).await;
    create_tab(&fixture, "a").await;
    fixture.end().await;
    fixture.until_gone().await;
    let found = fixture.client.object(TABS, &Key::new(NAMESPACE, "a")).await;
    assert_eq!(found.unwrap_err().reason, Reason::NotFound);
}
