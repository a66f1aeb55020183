//! Owners that wait for their dependants.

use setpoint_proto::core::ConfigMap;

use crate::collection::fixture::{Fixture, blocking, config_map};

const HELD: &str = "example.com/held";

fn owner_names(object: &ConfigMap) -> Vec<&str> {
    let owners = object.metadata.owner_references.iter();
    owners.map(|owner| owner.name.as_str()).collect()
}

/// Checks K2: a dependant of two owners is kept when one is deleted in the foreground, without the reference to it.
#[tokio::test]
async fn a_dependant_with_another_owner_is_kept() {
    let fixture = Fixture::running().await;
    let (ends, lives) = (
        fixture.owned("ends", &[]).await,
        fixture.owned("lives", &[]).await,
    );
    fixture
        .owned("of-both", &[blocking(&ends), blocking(&lives)])
        .await;
    fixture.owned("of-one", &[blocking(&ends)]).await;
    fixture.delete("ends", "Foreground").await;
    fixture.gone("ends").await;
    assert!(fixture.get("of-one").await.is_err());
    let spared = fixture.get("of-both").await.unwrap();
    assert_eq!(spared.metadata.deletion_timestamp, None);
    assert_eq!(owner_names(&spared), ["lives"]);
}

/// Checks K2: the dependant is deleted with its last owner, whatever the order.
#[tokio::test]
async fn a_dependant_is_deleted_with_its_last_owner() {
    let fixture = Fixture::running().await;
    let (one, other) = (
        fixture.owned("one", &[]).await,
        fixture.owned("other", &[]).await,
    );
    fixture
        .owned("of-both", &[blocking(&one), blocking(&other)])
        .await;
    for name in ["one", "other"] {
        fixture.delete(name, "Foreground").await;
    }
    for name in ["one", "other", "of-both"] {
        fixture.gone(name).await;
    }
}

/// Checks K2: an owner does not wait for a dependant whose reference does not block.
#[tokio::test]
async fn an_owner_waits_only_for_dependants_with_blocking_references() {
    let fixture = Fixture::running().await;
    let ends = fixture.owned("ends", &[]).await;
    let mut reference = blocking(&ends);
    reference.block_owner_deletion = None;
    let mut held = config_map("held", &[reference]);
    held.metadata.finalizers = vec![HELD.into()];
    fixture.create(&held).await;
    fixture.delete("ends", "Foreground").await;
    fixture.gone("ends").await;
    assert!(fixture.get("held").await.is_ok());
}

/// Checks K2: the owner waits for a dependant until its reference is removed.
#[tokio::test]
async fn an_owner_is_deleted_once_a_blocking_reference_is_removed() {
    let fixture = Fixture::running().await;
    let ends = fixture.owned("ends", &[]).await;
    let mut held = config_map("held", &[blocking(&ends)]);
    held.metadata.finalizers = vec![HELD.into()];
    fixture.create(&held).await;
    fixture.delete("ends", "Foreground").await;
    let is_ending = |map: &ConfigMap| map.metadata.deletion_timestamp.is_some();
    fixture
        .seen(|map: &ConfigMap| map.metadata.name == "held" && is_ending(map))
        .await;
    assert!(fixture.get("ends").await.is_ok());
    fixture.set_owners("held", &[]).await;
    fixture.gone("ends").await;
    assert!(fixture.get("held").await.is_ok());
}

async fn create_cycle(fixture: &Fixture) {
    let names = ["one", "two", "three"];
    let mut objects = Vec::new();
    for name in names {
        objects.push(fixture.owned(name, &[]).await);
    }
    for (at, name) in names.iter().enumerate() {
        let owner = blocking(&objects[(at + 2) % 3]);
        fixture.set_owners(name, &[owner]).await;
    }
}

/// Checks K3: with one deletion, and with no object outside of the cycle that unblocks it.
#[tokio::test]
async fn a_cycle_of_owners_is_deleted_in_the_foreground() {
    for deleted in [&["one"][..], &["one", "two", "three"]] {
        let fixture = Fixture::start().await;
        create_cycle(&fixture).await;
        for name in deleted {
            fixture.delete(name, "Foreground").await;
        }
        let _collector = fixture.run();
        for name in ["one", "two", "three"] {
            fixture.gone(name).await;
        }
    }
}
