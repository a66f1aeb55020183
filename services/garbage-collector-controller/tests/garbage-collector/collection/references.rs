//! References to owners that are gone, or that cannot be.

use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Event, Namespace};
use setpoint_proto::meta::OwnerReference;

use crate::collection::fixture::{Fixture, blocking, config_map, dangling};

/// Checks F11.
#[tokio::test]
async fn a_dangling_reference_is_removed_if_another_owner_exists() {
    let fixture = Fixture::running().await;
    let lives = fixture.owned("lives", &[]).await;
    fixture
        .owned("one", &[dangling("gone"), blocking(&lives)])
        .await;
    let left = [lives.metadata.uid];
    let freed = |map: &ConfigMap| {
        let owners = map.metadata.owner_references.iter();
        owners.map(|owner| &owner.uid).eq(&left)
    };
    let stays = fixture.seen(freed).await;
    assert_eq!(stays.metadata.deletion_timestamp, None);
}

/// Checks G1.
#[tokio::test]
async fn a_dependant_with_only_a_dangling_reference_is_deleted() {
    let fixture = Fixture::running().await;
    let lives = fixture.owned("lives", &[]).await;
    fixture.owned("one", &[blocking(&lives)]).await;
    fixture.set_owners("one", &[dangling("gone")]).await;
    fixture.gone("one").await;
}

/// Checks G1: the uid decides, not the name.
#[tokio::test]
async fn a_dependant_of_an_owner_that_was_created_again_is_deleted() {
    let fixture = Fixture::running().await;
    let former = fixture.owned("web", &[]).await;
    fixture.delete("web", "Orphan").await;
    fixture.gone("web").await;
    fixture.owned("web", &[]).await;
    fixture.owned("one", &[blocking(&former)]).await;
    fixture.gone("one").await;
}

/// Checks F11.
#[tokio::test]
async fn a_cluster_scoped_object_is_not_deleted_with_a_namespaced_owner() {
    let fixture = Fixture::running().await;
    // The namespace of Events about cluster-scoped objects.
    fixture.create_namespace("default").await;
    let ends = fixture.owned("ends", &[]).await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = "tenant".into();
    namespace.metadata.owner_references = vec![blocking(&ends)];
    fixture.create(&namespace).await;
    fixture.delete("ends", "Background").await;
    let event = reported(&fixture).await;
    assert_eq!(event.metadata.namespace, "default");
    assert_eq!(event.involved_object.name, "tenant");
    assert_eq!(event.r#type, "Warning");
    assert_eq!(event.source.component, "garbage-collector-controller");
    let uid = &ends.metadata.uid;
    assert_eq!(
        event.message,
        format!(
            "ownerRef [v1/ConfigMap, namespace: , name: ends, uid: {uid}] does not exist in namespace \"\""
        )
    );
    // What is deleted after it shows that the collector has seen the deletion.
    collect_another(&fixture).await;
    let tenant: Namespace = fixture.client.get(&Key::new("", "tenant")).await.unwrap();
    assert_eq!(tenant.metadata.deletion_timestamp, None);
    assert_eq!(tenant.metadata.owner_references.len(), 1);
}

/// Checks F11.
#[tokio::test]
async fn a_dependant_in_another_namespace_than_its_owner_is_deleted_and_reported() {
    let fixture = Fixture::running().await;
    fixture.create_namespace("other").await;
    let owner = fixture.owned("owner", &[]).await;
    let mut stray = config_map("stray", &[blocking(&owner)]);
    stray.metadata.namespace = "other".into();
    fixture.create(&stray).await;
    let event = reported(&fixture).await;
    assert_eq!(event.involved_object.namespace, "other");
    fixture.gone("stray").await;
    assert!(fixture.get("owner").await.is_ok());
}

/// The kind may be defined later.
#[tokio::test]
async fn a_dependant_of_an_owner_of_an_unknown_kind_is_kept() {
    let fixture = Fixture::running().await;
    let unknown = OwnerReference {
        api_version: "example.com/v1".into(),
        kind: "Cat".into(),
        ..dangling("gone")
    };
    fixture.owned("kept", &[unknown, dangling("gone")]).await;
    collect_another(&fixture).await;
    let kept = fixture.get("kept").await.unwrap();
    assert_eq!(kept.metadata.deletion_timestamp, None);
    assert_eq!(kept.metadata.owner_references.len(), 2);
}

async fn reported(fixture: &Fixture) -> Event {
    fixture
        .seen(|event: &Event| event.reason == "OwnerRefInvalidNamespace")
        .await
}

async fn collect_another(fixture: &Fixture) {
    let other = fixture.owned("another-owner", &[]).await;
    fixture.owned("another", &[blocking(&other)]).await;
    fixture.delete("another-owner", "Background").await;
    fixture.gone("another").await;
}
