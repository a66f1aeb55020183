//! Owners and dependants of custom kinds.

use serde_json::json;
use setpoint_gateway::in_process::custom_kind::{self, TABS, define, version};
use setpoint_model::Key;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason};

use crate::collection::fixture::{Fixture, NAMESPACE, blocking};

async fn create_tab(fixture: &Fixture, name: &str, owners: Vec<OwnerReference>) -> OwnerReference {
    let metadata = ObjectMeta {
        name: name.into(),
        namespace: NAMESPACE.into(),
        owner_references: owners,
        ..ObjectMeta::default()
    };
    let created = custom_kind::create(&fixture.gateway, metadata).await;
    OwnerReference {
        api_version: custom_kind::VERSION.into(),
        kind: "Tab".into(),
        name: name.into(),
        uid: created.unwrap().uid,
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
    define(&fixture.gateway).await;
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
    let mut definition = define(&fixture.gateway).await;
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
