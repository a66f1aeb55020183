//! Namespaces with objects that cannot be read, and beside API servers that do not answer.

use setpoint_model::{Key, condition};
use setpoint_proto::apiregistration::{ApiService, ServiceReference};
use setpoint_store::{Store as _, Write};

use crate::deletion::fixture::{Fixture, NAMESPACE};

/// Checks DG2, DG27.
#[tokio::test]
async fn a_namespace_is_deleted_with_the_keys_of_objects_that_cannot_be_read() {
    let fixture = Fixture::running().await;
    let path = |name| format!("/registry/configmaps/{NAMESPACE}/{name}");
    let values: [(&str, &[u8]); 3] = [
        ("no-envelope", b"forged"),
        ("no-metadata", b"k8s\0\x12\x01\xff"),
        // Its metadata can be read.
        (
            "no-data",
            b"k8s\0\x12\x16\x0a\x0f\x0a\x07no-data\x1a\x04shop\x12\x03\x0a\x01\xff",
        ),
    ];
    for (name, value) in values {
        let forged = Write::create(path(name), value.into());
        fixture.store.commit(forged).await.unwrap();
    }
    fixture.end().await;
    fixture.until_gone().await;
    for (name, _) in values {
        assert_eq!(fixture.store.get(&path(name)).await, Ok(None));
    }
}

/// An object whose key is missing is not corrupt. It is deleted only by somebody who asks for that.
#[tokio::test]
async fn a_namespace_waits_for_the_key_of_an_object_that_is_encrypted() {
    let fixture = Fixture::running().await;
    let path = format!("/registry/secrets/{NAMESPACE}/web");
    let value: &[u8] = b"k8s:enc:aesgcm:v1:lost:0123456789abcdef0123456789abcdef";
    let created = Write::create(&path, value.into());
    fixture.store.commit(created).await.unwrap();
    fixture.end().await;
    let kind = "NamespaceDeletionContentFailure";
    let waiting = fixture
        .until(|namespace| condition::is_true(&namespace.status.conditions, kind))
        .await;
    let condition = condition::get(&waiting.status.conditions, kind).unwrap();
    let why = "data from the storage is not transformable";
    assert!(condition.message.contains(why), "{}", condition.message);
    let stored = fixture.store.get(&path).await.unwrap().unwrap();
    assert_eq!(stored.value, value);
    let removed = Write::delete(&path, stored.revision);
    fixture.store.commit(removed).await.unwrap();
    fixture.until_gone().await;
}

/// Checks RF11: local APIServices, which have no Service, are no servers of their own.
#[tokio::test]
async fn a_namespace_waits_beside_an_api_server_that_does_not_answer_until_it_is_gone() {
    let fixture = Fixture::running().await;
    let service = |name: &str, service: Option<ServiceReference>| {
        let mut declared = ApiService::default();
        declared.metadata.name = format!("v1.{name}");
        declared.spec.group = name.into();
        declared.spec.version = "v1".into();
        declared.spec.group_priority_minimum = 100;
        declared.spec.version_priority = 100;
        declared.spec.service = service;
        declared
    };
    let dead = service(
        "dead.example.com",
        Some(ServiceReference {
            namespace: "other".into(),
            name: "absent".into(),
            port: Some(443),
        }),
    );
    fixture.client.create(&dead).await.unwrap();
    let local = service("local.example.com", None);
    fixture.client.create(&local).await.unwrap();
    fixture.end().await;
    let kind = "NamespaceDeletionDiscoveryFailure";
    let waiting = fixture
        .until(|namespace| condition::is_true(&namespace.status.conditions, kind))
        .await;
    let condition = condition::get(&waiting.status.conditions, kind).unwrap();
    assert!(
        condition
            .message
            .starts_with("Discovery failed for some groups, 1 failing: "),
        "{}",
        condition.message
    );
    assert_eq!(waiting.spec.finalizers, ["kubernetes"]);
    let key = Key::new("", "v1.dead.example.com");
    let deleted = fixture
        .client
        .delete::<ApiService>(&key, Default::default(), None);
    deleted.await.unwrap();
    fixture.until_gone().await;
}
