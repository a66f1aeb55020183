//! The warnings about writes, in the metadata of calls.

use serde_json::json;
use setpoint_proto::core::Service;
use setpoint_proto::setpoint::UpdateRequest;
use setpoint_proto::{Any, Resource as _};
use setpoint_store::contract::objects::NAMESPACE;
use tonic::metadata::MetadataMap;

use super::{create, gateway};

const IGNORED: &str =
    r#"299 - "spec.externalName is ignored when spec.type is not \"ExternalName\"""#;

fn service() -> Service {
    let service = json!({
        "metadata": { "name": "web", "namespace": NAMESPACE },
        "spec": { "externalName": "example.com", "ports": [{ "port": 80 }] },
    });
    serde_json::from_value(service).unwrap()
}

fn warnings(metadata: &MetadataMap) -> Vec<&str> {
    let values = metadata.get_all("warning").iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn a_write_has_its_warnings_as_metadata() {
    let (mut client, _gateway) = gateway().await;
    let mut dry = create(&service());
    dry.dry_run = true;
    let dry = client.create(dry).await.unwrap();
    assert_eq!(warnings(dry.metadata()), [IGNORED]);
    let created = client.create(create(&service())).await.unwrap();
    assert_eq!(warnings(created.metadata()), [IGNORED]);
    let refused = client.create(create(&service())).await.unwrap_err();
    assert_eq!(warnings(refused.metadata()), [IGNORED]);
    let mut changed: Service = created.into_inner().object.unwrap().unpack().unwrap();
    changed.spec.external_name.clear();
    let updated = UpdateRequest {
        resource: Service::RESOURCE.into(),
        namespace: NAMESPACE.into(),
        name: "web".into(),
        object: Some(Any::pack(&changed)),
        ..Default::default()
    };
    let updated = client.update(updated).await.unwrap();
    assert_eq!(warnings(updated.metadata()), [""; 0]);
}
