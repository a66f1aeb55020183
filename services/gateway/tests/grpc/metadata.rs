//! The service `setpoint.v1.Metadata`.

use setpoint_proto::Reason;
use setpoint_proto::core::{Namespace, Secret};
use setpoint_proto::setpoint::ListMetadataRequest;
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_store::contract::objects::{NAMESPACE, config_map};

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
