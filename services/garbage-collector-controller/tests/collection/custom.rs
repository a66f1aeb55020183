//! Owners and dependants of custom kinds.

use prost::Message as _;
use serde_json::{Value, json};
use setpoint_model::Key;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{CreateRequest, CustomObject};
use setpoint_proto::{Any, ApiError, Reason};

use crate::fixture::{Fixture, NAMESPACE, blocking};

const TABS: &str = "tabs.example.com";

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": { "openAPIV3Schema": { "type": "object" } },
    })
}

/// Defines the kind Tab, and establishes it as the controller of names does.
async fn define(fixture: &Fixture) -> CustomResourceDefinition {
    let definition = json!({
        "metadata": { "name": TABS },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "tabs", "kind": "Tab" },
            "versions": [version("v1", true)],
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let mut established = fixture.create(&definition).await;
    established.status.accepted_names = established.spec.names.clone();
    let condition = json!({ "type": "Established", "status": "True" });
    let condition = serde_json::from_value(condition).unwrap();
    established.status.conditions.push(condition);
    let updated = fixture.client.update_status(&established).await;
    updated.unwrap().object().unwrap()
}

async fn create_tab(fixture: &Fixture, name: &str, owners: Vec<OwnerReference>) -> OwnerReference {
    let tab = CustomObject {
        api_version: "example.com/v1".into(),
        kind: "Tab".into(),
        metadata: Some(ObjectMeta {
            name: name.into(),
            namespace: NAMESPACE.into(),
            owner_references: owners,
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
    let created = objects.create(request).await.unwrap().into_inner();
    let created = CustomObject::decode(created.object.unwrap().value.as_ref()).unwrap();
    OwnerReference {
        api_version: "example.com/v1".into(),
        kind: "Tab".into(),
        name: name.into(),
        uid: created.metadata.unwrap().uid,
        block_owner_deletion: Some(true),
        ..OwnerReference::default()
    }
}

async fn metadata(fixture: &Fixture, name: &str) -> Result<ObjectMeta, ApiError> {
    let tab = Key::new(NAMESPACE, name).in_resource(TABS);
    Ok(fixture.client.with_owners(&tab).await?.object.metadata)
}

/// Checks G1: with a kind that is defined after the collector has begun.
#[tokio::test]
async fn custom_objects_are_owners_and_dependants() {
    let fixture = Fixture::running().await;
    define(&fixture).await;
    let web = fixture.owned("web", &[]).await;
    let tab = create_tab(&fixture, "tab", vec![blocking(&web)]).await;
    fixture.owned("of-tab", &[tab]).await;
    fixture.delete("web", "Background").await;
    fixture.gone("of-tab").await;
    assert_eq!(
        metadata(&fixture, "tab").await.unwrap_err().reason,
        Reason::NotFound
    );
}

/// The object is stored in a version that only the webhook can convert.
#[tokio::test]
async fn custom_objects_are_collected_although_their_conversion_webhook_is_broken() {
    let fixture = Fixture::start().await;
    let mut definition = define(&fixture).await;
    let (ends, lives) = (
        fixture.owned("ends", &[]).await,
        fixture.owned("lives", &[]).await,
    );
    create_tab(&fixture, "kept", vec![blocking(&ends), blocking(&lives)]).await;
    create_tab(&fixture, "gone", vec![blocking(&ends)]).await;
    let versions = json!([version("v1", false), version("v2", true)]);
    definition.spec.versions = serde_json::from_value(versions).unwrap();
    let conversion = json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": { "url": "https://127.0.0.1:1/convert" },
    }});
    definition.spec.conversion = serde_json::from_value(conversion).unwrap();
    fixture.client.update(&definition).await.unwrap();
    let broken = fixture
        .client
        .object(TABS, &Key::new(NAMESPACE, "kept"))
        .await;
    assert_eq!(broken.unwrap_err().reason, Reason::InternalError);
    fixture.delete("ends", "Foreground").await;
    let _collector = fixture.run();
    fixture.gone("ends").await;
    assert_eq!(
        metadata(&fixture, "gone").await.unwrap_err().reason,
        Reason::NotFound
    );
    let kept = metadata(&fixture, "kept").await.unwrap();
    assert_eq!(kept.owner_references.len(), 1);
    assert_eq!(kept.owner_references[0].uid, lives.metadata.uid);
}
