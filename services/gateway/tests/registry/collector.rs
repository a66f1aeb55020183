//! Which dependants the garbage collector deletes, and which only lose a reference.

use serde_json::json;
use setpoint_proto::core::{ConfigMap, Event, Namespace, Pod};
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{Reason, Resource};
use setpoint_store::contract::objects::config_map;

use crate::house::{kept, policy};
use crate::world::{World, pod};

pub fn blocks<T: Resource>(owner: &T) -> OwnerReference {
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

fn uncertain(name: &str) -> OwnerReference {
    OwnerReference {
        name: name.into(),
        uid: format!("no-object-has-the-uid-{name}"),
        ..blocks(&config_map(name, ""))
    }
}

pub async fn owner(world: &World, name: &str) -> ConfigMap {
    world.create(&config_map(name, "1")).await.unwrap()
}

async fn owned(world: &World, name: &str, owners: &[OwnerReference]) -> Pod {
    let mut pod = pod(name);
    pod.metadata.owner_references = owners.to_vec();
    world.create(&pod).await.unwrap()
}

async fn owners_of(world: &World, pod: &str) -> Vec<String> {
    let pod = world.get::<Pod>(pod).await.unwrap();
    let owners = pod.metadata.owner_references.into_iter();
    owners.map(|owner| owner.name).collect()
}

/// Checks K2: a dependant of two owners outlives the one that is deleted in the foreground, without its reference.
#[tokio::test]
async fn foreground_deletion_spares_a_dependant_that_has_another_living_owner() {
    let (world, _house) = kept().await;
    let (ends, lives) = (owner(&world, "ends").await, owner(&world, "lives").await);
    owned(&world, "of-both", &[blocks(&ends), blocks(&lives)]).await;
    owned(&world, "of-one", &[blocks(&ends)]).await;
    world
        .delete::<ConfigMap>("ends", policy("Foreground"))
        .await
        .unwrap();
    world.gone::<ConfigMap>("ends").await;
    let gone = world.get::<Pod>("of-one").await.unwrap_err();
    assert_eq!(gone.reason, Reason::NotFound);
    let spared = world.get::<Pod>("of-both").await.unwrap();
    assert_eq!(spared.metadata.deletion_timestamp, None);
    assert_eq!(owners_of(&world, "of-both").await, ["lives"]);
}

/// Checks K2: the last living owner takes the dependant along, in whichever order both end.
#[tokio::test]
async fn a_dependant_goes_with_the_last_of_its_owners() {
    let (world, _house) = kept().await;
    let (one, other) = (owner(&world, "one").await, owner(&world, "other").await);
    owned(&world, "of-both", &[blocks(&one), blocks(&other)]).await;
    for name in ["one", "other"] {
        world
            .delete::<ConfigMap>(name, policy("Foreground"))
            .await
            .unwrap();
    }
    world.gone::<ConfigMap>("one").await;
    world.gone::<ConfigMap>("other").await;
    world.gone::<Pod>("of-both").await;
}

/// Checks K2: an owner does not wait for a dependant whose reference does not block.
#[tokio::test]
async fn an_owner_waits_only_for_dependants_that_block_it() {
    let (world, _house) = kept().await;
    let ends = owner(&world, "ends").await;
    let mut reference = blocks(&ends);
    reference.block_owner_deletion = None;
    let mut held = pod("held");
    held.metadata.owner_references = vec![reference];
    held.metadata.finalizers = vec!["example.com/held".into()];
    world.create(&held).await.unwrap();
    world
        .delete::<ConfigMap>("ends", policy("Foreground"))
        .await
        .unwrap();
    world.gone::<ConfigMap>("ends").await;
    assert!(world.get::<Pod>("held").await.is_ok());
}

/// Checks K2: the grandchildren go first, and the owner waits until the reference of a spared one is taken away.
#[tokio::test]
async fn an_owner_is_free_once_a_blocking_reference_is_taken_away() {
    let (world, _house) = kept().await;
    let ends = owner(&world, "ends").await;
    let mut held = pod("held");
    held.metadata.owner_references = vec![blocks(&ends)];
    held.metadata.finalizers = vec!["example.com/held".into()];
    world.create(&held).await.unwrap();
    world
        .delete::<ConfigMap>("ends", policy("Foreground"))
        .await
        .unwrap();
    world
        .seen(|pod: &Pod| pod.metadata.deletion_timestamp.is_some())
        .await;
    assert!(world.get::<ConfigMap>("ends").await.is_ok());
    let unblocked = json!({"metadata": {"ownerReferences": null}});
    world
        .patch::<Pod>("held", Type::Merge, unblocked)
        .await
        .unwrap();
    world.gone::<ConfigMap>("ends").await;
    assert!(world.get::<Pod>("held").await.is_ok());
}

async fn circle(world: &World) {
    let names = ["one", "two", "three"];
    let mut pods = Vec::new();
    for name in names {
        pods.push(owned(world, name, &[]).await);
    }
    for (at, name) in names.iter().enumerate() {
        let mut owned = world.get::<Pod>(name).await.unwrap();
        owned.metadata.owner_references = vec![blocks(&pods[(at + 2) % 3])];
        world.update(&owned).await.unwrap();
    }
}

/// Checks K3.
#[tokio::test]
async fn a_circle_of_owners_ends_when_one_of_them_is_deleted_in_the_foreground() {
    let (world, _house) = kept().await;
    circle(&world).await;
    world
        .delete::<Pod>("one", policy("Foreground"))
        .await
        .unwrap();
    for name in ["one", "two", "three"] {
        world.gone::<Pod>(name).await;
    }
}

/// Checks K3: nobody is left outside of the circle who could unblock it.
#[tokio::test]
async fn a_circle_of_owners_ends_when_all_of_them_are_deleted_in_the_foreground() {
    let (world, _house) = kept().await;
    circle(&world).await;
    for name in ["one", "two", "three"] {
        let _ = world.delete::<Pod>(name, policy("Foreground")).await;
    }
    for name in ["one", "two", "three"] {
        world.gone::<Pod>(name).await;
    }
}

/// Checks F11.
#[tokio::test]
async fn a_cluster_scoped_object_never_goes_with_a_namespaced_owner() {
    let (world, _house) = kept().await;
    let ends = owner(&world, "ends").await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = "tenant".into();
    namespace.metadata.owner_references = vec![blocks(&ends)];
    world.create(&namespace).await.unwrap();
    world
        .delete::<ConfigMap>("ends", policy("Background"))
        .await
        .unwrap();
    let event = world
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
    let tenant = world.get::<Namespace>("tenant").await.unwrap();
    assert_eq!(tenant.metadata.deletion_timestamp, None);
    assert_eq!(tenant.metadata.owner_references.len(), 1);
}

/// Checks F11.
#[tokio::test]
async fn a_dangling_reference_is_taken_away_where_another_owner_lives() {
    let (world, _house) = kept().await;
    let lives = owner(&world, "lives").await;
    owned(&world, "one", &[uncertain("gone"), blocks(&lives)]).await;
    let left = [lives.metadata.uid];
    let freed = |pod: &Pod| {
        let owners = pod.metadata.owner_references.iter();
        owners.map(|owner| &owner.uid).eq(&left)
    };
    let stays = world.seen(freed).await;
    assert_eq!(stays.metadata.deletion_timestamp, None);
}

/// Checks G1.
#[tokio::test]
async fn a_reference_that_is_changed_to_a_dangling_one_costs_the_dependant() {
    let (world, _house) = kept().await;
    let lives = owner(&world, "lives").await;
    let mut one = owned(&world, "one", &[blocks(&lives)]).await;
    one.metadata.owner_references = vec![uncertain("gone")];
    world.update(&one).await.unwrap();
    world.gone::<Pod>("one").await;
}
