//! The service `setpoint.v1.Metadata`.

use std::sync::Arc;

use setpoint_gateway::in_process;
use setpoint_proto::core::{ConfigMap, Namespace, Secret};
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_proto::setpoint::owner::State;
use setpoint_proto::setpoint::{
    CountMetadataRequest, GetMetadataRequest, ListMetadataRequest, Object, RemoveMetadataRequest,
    UpdateRequest, WatchMetadataRequest,
};
use setpoint_proto::{Any, Reason, Resource};
use setpoint_store::contract::objects::{NAMESPACE, config_map};
use setpoint_store::{Memory, Store as _, Write};

use super::{connect, create, failed, gateway};

fn content_of(namespace: &str) -> ListMetadataRequest {
    ListMetadataRequest {
        namespace: namespace.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn the_metadata_of_all_objects_in_a_namespace_is_listed_without_their_content() {
    let (mut objects, gateway) = gateway().await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let mut other = Namespace::default();
    other.metadata.name = "other".into();
    objects.create(create(&other)).await.unwrap();
    let mut held = config_map("held", "1");
    held.metadata.finalizers = vec!["example.com/held".into()];
    held.metadata.labels = [("app".to_owned(), "web".to_owned())].into();
    let written = objects.create(create(&held)).await.unwrap().into_inner();
    let mut secret = Secret::default();
    (secret.metadata.namespace, secret.metadata.name) = (NAMESPACE.into(), "key".into());
    objects.create(create(&secret)).await.unwrap();
    let mut elsewhere = config_map("elsewhere", "1");
    elsewhere.metadata.namespace = "other".into();
    objects.create(create(&elsewhere)).await.unwrap();

    let listed = metadata.list(content_of(NAMESPACE)).await.unwrap();
    let items = listed.into_inner().items;
    let names: Vec<_> = items
        .iter()
        .map(|item| (&*item.resource, &*item.metadata.name))
        .collect();
    assert_eq!(names, [("configmaps", "held"), ("secrets", "key")]);
    let found = &items[0].metadata;
    assert_eq!(found.namespace, NAMESPACE);
    assert_eq!(found.finalizers, ["example.com/held"]);
    assert_eq!(found.resource_version, written.revision);
    assert!(!found.uid.is_empty() && found.labels.is_empty());
}

fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
        block_owner_deletion: Some(true),
        ..Default::default()
    }
}

fn uid_of(object: Object) -> String {
    let object: ConfigMap = object.object.unwrap().unpack().unwrap();
    object.metadata.uid
}

fn get(resource: &str, namespace: &str, name: &str) -> GetMetadataRequest {
    GetMetadataRequest {
        resource: resource.into(),
        namespace: namespace.into(),
        name: name.into(),
        ..Default::default()
    }
}

/// Checks F11.
#[tokio::test]
async fn an_object_is_returned_with_the_owners_that_its_references_name() {
    let (mut objects, gateway) = gateway().await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let owner = objects.create(create(&config_map("owner", "1"))).await;
    let owner = uid_of(owner.unwrap().into_inner());
    let references = [
        (
            reference("v1", "ConfigMap", "owner", &owner),
            State::Present,
        ),
        (
            reference("v1", "ConfigMap", "owner", "another"),
            State::Absent,
        ),
        (reference("v1", "ConfigMap", "missing", "b"), State::Absent),
        (reference("v1", "Namespace", "missing", "c"), State::Absent),
        (
            reference("example.com/v1", "Cat", "tom", "d"),
            State::UnknownKind,
        ),
        (
            reference("v1", "DeleteOptions", "body", "e"),
            State::UnknownKind,
        ),
    ];
    let (references, states): (Vec<_>, Vec<_>) = references.into_iter().unzip();
    let mut owned = config_map("owned", "1");
    owned.metadata.owner_references = references;
    objects.create(create(&owned)).await.unwrap();
    let mut tenant = Namespace::default();
    tenant.metadata.name = "tenant".into();
    tenant.metadata.owner_references = vec![reference("v1", "ConfigMap", "owner", &owner)];
    objects.create(create(&tenant)).await.unwrap();

    let found = metadata.get(get("configmaps", NAMESPACE, "owned")).await;
    let found = found.unwrap().into_inner();
    assert_eq!(found.object.kind, "ConfigMap");
    let found = found.owners.iter().map(|owner| owner.state());
    assert_eq!(found.collect::<Vec<_>>(), states);
    let found = metadata.get(get("namespaces", "", "tenant")).await.unwrap();
    let owners = found.into_inner().owners;
    assert_eq!(owners[0].state(), State::OutOfScope);
    let missing = failed(metadata.get(get("configmaps", NAMESPACE, "missing")).await);
    assert_eq!(missing.reason, Reason::NotFound);

    let dependants = ListMetadataRequest {
        owner,
        ..content_of("")
    };
    let listed = metadata.list(dependants).await.unwrap().into_inner().items;
    let names = listed.iter().map(|item| item.metadata.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["owned", "tenant"]);
}

#[tokio::test]
async fn owner_references_and_finalizers_are_removed_from_the_object_with_a_uid() {
    let (mut objects, gateway) = gateway().await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let mut held = config_map("held", "1");
    held.metadata.finalizers = vec!["example.com/a".into(), "example.com/b".into()];
    let owners = ["one", "other"].map(|name| reference("v1", "ConfigMap", name, name));
    held.metadata.owner_references = owners.to_vec();
    let uid = uid_of(objects.create(create(&held)).await.unwrap().into_inner());
    let mut remove = RemoveMetadataRequest {
        resource: "configmaps".into(),
        namespace: NAMESPACE.into(),
        name: "held".into(),
        uid,
        owners: vec!["one".into(), "neither".into()],
        finalizers: vec!["example.com/a".into()],
        unblock_owners: true,
        ..Default::default()
    };
    let removed = metadata.remove(remove.clone()).await.unwrap().into_inner();
    let found = metadata.get(get("configmaps", NAMESPACE, "held")).await;
    let found = found.unwrap().into_inner().object.metadata;
    assert_eq!(found.resource_version, removed.revision);
    assert_eq!(found.finalizers, ["example.com/b"]);
    let left: Vec<_> = found.owner_references.iter().collect();
    assert_eq!((left.len(), left[0].uid.as_str()), (1, "other"));
    assert_eq!(left[0].block_owner_deletion, Some(false));
    let again = metadata.remove(remove.clone()).await.unwrap().into_inner();
    assert_eq!(
        again.revision, removed.revision,
        "equal objects are not written"
    );
    remove.uid = "another".into();
    let refused = failed(metadata.remove(remove).await);
    assert_eq!(refused.reason, Reason::NotFound);
}

#[tokio::test]
async fn a_list_of_metadata_names_a_namespace() {
    let (_objects, gateway) = gateway().await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let refused = failed(metadata.list(content_of("")).await);
    assert_eq!(refused.reason, Reason::BadRequest);
    assert_eq!(refused.message, "namespace: Required value");
    let none = metadata.list(content_of("missing")).await.unwrap();
    assert!(none.into_inner().items.is_empty());
}

#[tokio::test]
async fn objects_are_counted_by_kind_in_one_namespace() {
    let (mut objects, gateway) = gateway().await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let mut elsewhere = config_map("elsewhere", "1");
    elsewhere.metadata.namespace = "other".into();
    let mut other = Namespace::default();
    other.metadata.name = "other".into();
    objects.create(create(&other)).await.unwrap();
    for map in [&config_map("a", "1"), &config_map("b", "1"), &elsewhere] {
        objects.create(create(map)).await.unwrap();
    }
    let resources = ["configmaps", "namespaces", "pods", "tabs.example.com"];
    let request = |namespace: &str| CountMetadataRequest {
        namespace: namespace.into(),
        resources: resources.map(str::to_owned).into(),
        ..Default::default()
    };
    let counted = metadata.count(request(NAMESPACE)).await.unwrap();
    let expected = [("configmaps", 2), ("pods", 0)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(counted.into_inner().numbers, expected.into());
    let refused = failed(metadata.count(request("")).await);
    assert_eq!(refused.reason, Reason::BadRequest);
}

/// Checks DG2: quotas count and namespaces hold keys, whatever their values are.
#[tokio::test]
async fn objects_that_cannot_be_decoded_are_listed_without_a_uid_and_counted() {
    let store = Memory::default();
    let gateway = in_process::start_over(Arc::new(store.clone())).await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let forged = format!("/registry/configmaps/{NAMESPACE}/forged");
    let forged = Write::create(forged, "forged".into());
    store.commit(forged).await.unwrap();
    let listed = metadata.list(content_of(NAMESPACE)).await.unwrap();
    let items = listed.into_inner().items;
    assert_eq!(items.len(), 1);
    let found = &items[0];
    assert_eq!(found.resource, "configmaps");
    assert_eq!(
        (&*found.metadata.name, &*found.metadata.uid),
        ("forged", "")
    );
    let request = CountMetadataRequest {
        namespace: NAMESPACE.into(),
        resources: vec!["configmaps".into()],
        ..Default::default()
    };
    let counted = metadata.count(request).await.unwrap().into_inner();
    assert_eq!(counted.numbers["configmaps"], 1);
}

fn update<T: Resource>(object: &T) -> UpdateRequest {
    UpdateRequest {
        resource: T::RESOURCE.into(),
        namespace: object.meta().namespace.clone(),
        name: object.meta().name.clone(),
        object: Some(Any::pack(object)),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_watch_of_namespaces_sends_every_change_of_the_kinds_that_it_names() {
    let (mut objects, gateway) = gateway().await;
    let mut metadata = MetadataClient::new(connect(gateway.address).await);
    let mut other = Namespace::default();
    other.metadata.name = "other".into();
    let begun = objects.create(create(&other)).await.unwrap().into_inner();
    let request = WatchMetadataRequest {
        revision: begun.revision,
        namespaces: vec!["other".into()],
        changes_of: vec!["configmaps".into()],
        ..Default::default()
    };
    let mut events = metadata.watch(request).await.unwrap().into_inner();
    let in_other = |name: &str, value: &str| {
        let mut map = config_map(name, value);
        map.metadata.namespace = "other".into();
        map
    };
    let mut secret = Secret::default();
    (secret.metadata.namespace, secret.metadata.name) = ("other".into(), "key".into());
    objects
        .create(create(&config_map("elsewhere", "1")))
        .await
        .unwrap();
    objects.create(create(&in_other("a", "1"))).await.unwrap();
    objects.update(update(&in_other("a", "2"))).await.unwrap();
    objects.create(create(&secret)).await.unwrap();
    secret.data = [("key".to_owned(), b"1".to_vec().into())].into();
    objects.update(update(&secret)).await.unwrap();
    objects.create(create(&in_other("b", "1"))).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let event = events.message().await.unwrap().unwrap();
        seen.extend(event.object.map(|object| object.metadata.name));
    }
    assert_eq!(seen, ["a", "a", "key", "b"]);
}
