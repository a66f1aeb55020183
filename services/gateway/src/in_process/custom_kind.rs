//! A custom kind for tests: `Tab` of the group `example.com`, in namespaces.

use prost::Message as _;
use serde_json::{Value, json};
use setpoint_codec::CustomObject;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{self, CreateRequest, UpdateRequest};
use setpoint_proto::{Any, Resource as _};
use tonic::Status;
use tonic::transport::Channel;

use super::InProcess;

/// The resource.
pub const TABS: &str = "tabs.example.com";
/// The apiVersion of [`create`].
pub const VERSION: &str = "example.com/v1";

/// Defines the kind, and establishes it as the controller of names does. Returns the definition.
pub async fn define(gateway: &InProcess) -> CustomResourceDefinition {
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
    let mut objects = objects(gateway).await;
    let request = CreateRequest {
        resource: CustomResourceDefinition::RESOURCE.into(),
        object: Some(Any::pack(&definition)),
        ..CreateRequest::default()
    };
    let created = objects.create(request).await.unwrap().into_inner();
    let mut definition: CustomResourceDefinition = unpack(created.object);
    definition.status.accepted_names = definition.spec.names.clone();
    let condition = json!({ "type": "Established", "status": "True" });
    let condition = serde_json::from_value(condition).unwrap();
    definition.status.conditions.push(condition);
    let request = UpdateRequest {
        resource: CustomResourceDefinition::RESOURCE.into(),
        name: TABS.into(),
        object: Some(Any::pack(&definition)),
        subresource: "status".into(),
        ..UpdateRequest::default()
    };
    let updated = objects.update(request).await.unwrap().into_inner();
    unpack(updated.object)
}

/// Returns a version of the kind without rules, as JSON.
pub fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": { "openAPIV3Schema": { "type": "object" } },
    })
}

/// Creates an object. Returns its metadata.
///
/// # Errors
/// The gateway's.
pub async fn create(gateway: &InProcess, metadata: ObjectMeta) -> Result<ObjectMeta, Status> {
    let tab = setpoint::CustomObject {
        api_version: VERSION.into(),
        kind: "Tab".into(),
        metadata: Some(metadata.clone()),
        content: "{}".into(),
    };
    let request = CreateRequest {
        resource: TABS.into(),
        namespace: metadata.namespace,
        object: Some(Any {
            type_url: CustomObject::TYPE_URL.into(),
            value: tab.encode_to_vec().into(),
        }),
        ..CreateRequest::default()
    };
    let created = objects(gateway).await.create(request).await?.into_inner();
    let created: setpoint::CustomObject = unpack(created.object);
    Ok(created.metadata.unwrap())
}

async fn objects(gateway: &InProcess) -> ObjectsClient<Channel> {
    ObjectsClient::connect(gateway.url.clone()).await.unwrap()
}

fn unpack<T: prost::Message + Default>(object: Option<Any>) -> T {
    T::decode(object.unwrap().value).unwrap()
}
