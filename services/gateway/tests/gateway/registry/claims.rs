//! Tests of the growth of claims.

use serde_json::json;
use setpoint_proto::core::PersistentVolumeClaim;
use setpoint_proto::meta::Quantity;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::storage::StorageClass;
use setpoint_proto::{ApiError, Reason};

use crate::registry::gateway::TestGateway;
use crate::registry::quota::list;

async fn class(gateway: &TestGateway, name: &str, allows: Option<bool>) {
    let mut class = StorageClass {
        provisioner: "example.com/none".into(),
        allow_volume_expansion: allows,
        ..Default::default()
    };
    class.metadata.name = name.into();
    gateway.create(&class).await.unwrap();
    gateway.there::<StorageClass>(name).await;
}

/// Creates a bound claim of a class with this name.
async fn bound(gateway: &TestGateway, class: &str) {
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = class.into();
    claim.spec.storage_class_name = Some(class.into());
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    claim.spec.resources.requests = list(&[("storage", "1Gi")]);
    let mut claim = gateway.create(&claim).await.unwrap();
    claim.status.phase = "Bound".into();
    claim.status.capacity = list(&[("storage", "1Gi")]);
    gateway.report(&claim).await.unwrap();
}

async fn grow(
    gateway: &TestGateway,
    name: &str,
    size: &str,
) -> Result<PersistentVolumeClaim, ApiError> {
    let change = json!({"spec": {"resources": {"requests": {"storage": size}}}});
    gateway.patch(name, Type::Merge, change).await
}

/// Checks U6: a claim only grows if its class allows it.
#[tokio::test]
async fn a_claim_grows_only_if_its_class_allows_it() {
    let gateway = TestGateway::start().await;
    class(&gateway, "fixed", None).await;
    class(&gateway, "rigid", Some(false)).await;
    class(&gateway, "elastic", Some(true)).await;
    // A claim may name a class that does not exist.
    for name in ["fixed", "rigid", "missing"] {
        bound(&gateway, name).await;
        let error = grow(&gateway, name, "2Gi").await.unwrap_err();
        assert_eq!(error.reason, Reason::Forbidden);
        assert_eq!(
            error.message,
            format!(
                "persistentvolumeclaims {name:?} is forbidden: only dynamically provisioned pvc can be resized and the \
                storageclass that provisions the pvc must support resize"
            )
        );
        grow(&gateway, name, "1Gi").await.unwrap();
    }
    bound(&gateway, "elastic").await;
    let grown = grow(&gateway, "elastic", "2Gi").await.unwrap();
    assert_eq!(
        grown.spec.resources.requests["storage"],
        Quantity::new("2Gi")
    );
}
