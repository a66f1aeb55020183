//! Tests of the garbage collector: dependants that it deletes, and owner references that it removes.

use serde_json::json;
use setpoint_proto::core::{ConfigMap, Event, Namespace, Pod};
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{Reason, Resource};
use setpoint_store::contract::objects::config_map;

use crate::background::{policy, with_background};
use crate::gateway::{TestGateway, pod};

/// Returns a reference to an owner that blocks its deletion.
pub fn blocking_reference<T: Resource>(owner: &T) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: T::API_VERSION.into(),
        kind: T::KIND.into(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        block_owner_deletion: Some(true),
        ..Default::default()
    }
}

/// Returns a reference to an owner that does not exist.
fn dangling_reference(name: &str) -> OwnerReference {
    OwnerReference {
        name: name.into(),
        uid: format!("no-object-has-the-uid-{name}"),
        ..blocking_reference(&config_map(name, ""))
    }
}

pub async fn create_owner(gateway: &TestGateway, name: &str) -> ConfigMap {
    gateway.create(&config_map(name, "1")).await.unwrap()
}

async fn create_owned(gateway: &TestGateway, name: &str, owners: &[OwnerReference]) -> Pod {
    let mut pod = pod(name);
    pod.metadata.owner_references = owners.to_vec();
    gateway.create(&pod).await.unwrap()
}

async fn owners_of(gateway: &TestGateway, pod: &str) -> Vec<String> {
    let pod = gateway.get::<Pod>(pod).await.unwrap();
    let owners = pod.metadata.owner_references.into_iter();
    owners.map(|create_owner| create_owner.name).collect()
}

/// Checks K2: a dependant of two owners is kept when one is deleted in the foreground, without the reference to it.
#[tokio::test]
async fn foreground_deletion_keeps_a_dependant_with_another_owner() {
    let (gateway, _background) = with_background().await;
    let (ends, lives) = (
        create_owner(&gateway, "ends").await,
        create_owner(&gateway, "lives").await,
    );
    create_owned(
        &gateway,
        "of-both",
        &[blocking_reference(&ends), blocking_reference(&lives)],
    )
    .await;
    create_owned(&gateway, "of-one", &[blocking_reference(&ends)]).await;
    gateway
        .delete::<ConfigMap>("ends", policy("Foreground"))
        .await
        .unwrap();
    gateway.gone::<ConfigMap>("ends").await;
    let gone = gateway.get::<Pod>("of-one").await.unwrap_err();
    assert_eq!(gone.reason, Reason::NotFound);
    let spared = gateway.get::<Pod>("of-both").await.unwrap();
    assert_eq!(spared.metadata.deletion_timestamp, None);
    assert_eq!(owners_of(&gateway, "of-both").await, ["lives"]);
}

/// Checks K2: the dependant is deleted with its last owner, whatever the order.
#[tokio::test]
async fn a_dependant_is_deleted_with_its_last_owner() {
    let (gateway, _background) = with_background().await;
    let (one, other) = (
        create_owner(&gateway, "one").await,
        create_owner(&gateway, "other").await,
    );
    create_owned(
        &gateway,
        "of-both",
        &[blocking_reference(&one), blocking_reference(&other)],
    )
    .await;
    for name in ["one", "other"] {
        gateway
            .delete::<ConfigMap>(name, policy("Foreground"))
            .await
            .unwrap();
    }
    gateway.gone::<ConfigMap>("one").await;
    gateway.gone::<ConfigMap>("other").await;
    gateway.gone::<Pod>("of-both").await;
}

/// Checks K2: an owner does not wait for a dependant whose reference does not block.
#[tokio::test]
async fn an_owner_waits_only_for_dependants_with_blocking_references() {
    let (gateway, _background) = with_background().await;
    let ends = create_owner(&gateway, "ends").await;
    let mut reference = blocking_reference(&ends);
    reference.block_owner_deletion = None;
    let mut held = pod("held");
    held.metadata.owner_references = vec![reference];
    held.metadata.finalizers = vec!["example.com/held".into()];
    gateway.create(&held).await.unwrap();
    gateway
        .delete::<ConfigMap>("ends", policy("Foreground"))
        .await
        .unwrap();
    gateway.gone::<ConfigMap>("ends").await;
    assert!(gateway.get::<Pod>("held").await.is_ok());
}

/// Checks K2: the owner waits for a dependant until its reference is removed.
#[tokio::test]
async fn an_owner_is_deleted_once_a_blocking_reference_is_removed() {
    let (gateway, _background) = with_background().await;
    let ends = create_owner(&gateway, "ends").await;
    let mut held = pod("held");
    held.metadata.owner_references = vec![blocking_reference(&ends)];
    held.metadata.finalizers = vec!["example.com/held".into()];
    gateway.create(&held).await.unwrap();
    gateway
        .delete::<ConfigMap>("ends", policy("Foreground"))
        .await
        .unwrap();
    gateway
        .seen(|pod: &Pod| pod.metadata.deletion_timestamp.is_some())
        .await;
    assert!(gateway.get::<ConfigMap>("ends").await.is_ok());
    let unblocked = json!({"metadata": {"ownerReferences": null}});
    gateway
        .patch::<Pod>("held", Type::Merge, unblocked)
        .await
        .unwrap();
    gateway.gone::<ConfigMap>("ends").await;
    assert!(gateway.get::<Pod>("held").await.is_ok());
}

async fn create_cycle(gateway: &TestGateway) {
    let names = ["one", "two", "three"];
    let mut pods = Vec::new();
    for name in names {
        pods.push(create_owned(gateway, name, &[]).await);
    }
    for (at, name) in names.iter().enumerate() {
        let mut dependant = gateway.get::<Pod>(name).await.unwrap();
        dependant.metadata.owner_references = vec![blocking_reference(&pods[(at + 2) % 3])];
        gateway.update(&dependant).await.unwrap();
    }
}

/// Checks K3.
#[tokio::test]
async fn a_cycle_of_owners_is_deleted_when_one_is_deleted_in_the_foreground() {
    let (gateway, _background) = with_background().await;
    create_cycle(&gateway).await;
    gateway
        .delete::<Pod>("one", policy("Foreground"))
        .await
        .unwrap();
    for name in ["one", "two", "three"] {
        gateway.gone::<Pod>(name).await;
    }
}

/// Checks K3: no task outside of the cycle unblocks it.
#[tokio::test]
async fn a_cycle_of_owners_is_deleted_when_all_are_deleted_in_the_foreground() {
    let (gateway, _background) = with_background().await;
    create_cycle(&gateway).await;
    for name in ["one", "two", "three"] {
        let _ = gateway.delete::<Pod>(name, policy("Foreground")).await;
    }
    for name in ["one", "two", "three"] {
        gateway.gone::<Pod>(name).await;
    }
}

/// Checks F11.
#[tokio::test]
async fn a_cluster_scoped_object_is_not_deleted_with_a_namespaced_owner() {
    let (gateway, _background) = with_background().await;
    let ends = create_owner(&gateway, "ends").await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = "tenant".into();
    namespace.metadata.owner_references = vec![blocking_reference(&ends)];
    gateway.create(&namespace).await.unwrap();
    gateway
        .delete::<ConfigMap>("ends", policy("Background"))
        .await
        .unwrap();
    let event = gateway
        .seen(|event: &Event| event.reason == "OwnerRefInvalidNamespace")
        .await;
    assert_eq!(event.metadata.namespace, "default");
    assert_eq!(event.involved_object.name, "tenant");
    assert_eq!(event.r#type, "Warning");
    let uid = &ends.metadata.uid;
    assert_eq!(
        event.message,
        format!(
            "ownerRef [v1/ConfigMap, namespace: , name: ends, uid: {uid}] does not exist in namespace \"\""
        )
    );
    let tenant = gateway.get::<Namespace>("tenant").await.unwrap();
    assert_eq!(tenant.metadata.deletion_timestamp, None);
    assert_eq!(tenant.metadata.owner_references.len(), 1);
}

/// Checks F11.
#[tokio::test]
async fn a_dangling_reference_is_removed_if_another_owner_exists() {
    let (gateway, _background) = with_background().await;
    let lives = create_owner(&gateway, "lives").await;
    create_owned(
        &gateway,
        "one",
        &[dangling_reference("gone"), blocking_reference(&lives)],
    )
    .await;
    let left = [lives.metadata.uid];
    let freed = |pod: &Pod| {
        let owners = pod.metadata.owner_references.iter();
        owners.map(|create_owner| &create_owner.uid).eq(&left)
    };
    let stays = gateway.seen(freed).await;
    assert_eq!(stays.metadata.deletion_timestamp, None);
}

/// Checks G1.
#[tokio::test]
async fn a_dependant_with_only_a_dangling_reference_is_deleted() {
    let (gateway, _background) = with_background().await;
    let lives = create_owner(&gateway, "lives").await;
    let mut one = create_owned(&gateway, "one", &[blocking_reference(&lives)]).await;
    one.metadata.owner_references = vec![dangling_reference("gone")];
    gateway.update(&one).await.unwrap();
    gateway.gone::<Pod>("one").await;
}
