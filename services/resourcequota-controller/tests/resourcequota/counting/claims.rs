//! Quotas of claims of volumes and of devices, as in upstream's `test/e2e/apimachinery/resource_quota.go`.

use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{
    PersistentVolumeClaim, ScopeSelector, ScopedResourceSelectorRequirement,
};
use setpoint_proto::resource::{DeviceRequest, ExactDeviceRequest, ResourceClaim};

use crate::counting::fixture::{Fixture, NAMESPACE, list, quota};

const GOLD: &str = "gold";
const SILVER: &str = "silver";

fn device_claim(name: &str) -> ResourceClaim {
    let mut claim = ResourceClaim::default();
    (claim.metadata.namespace, claim.metadata.name) = (NAMESPACE.into(), name.into());
    let exactly = ExactDeviceRequest {
        device_class_name: GOLD.into(),
        ..Default::default()
    };
    claim.spec.devices.requests = vec![DeviceRequest {
        name: "req-0".into(),
        exactly: Some(exactly),
        ..Default::default()
    }];
    claim
}

/// `should create a ResourceQuota and capture the life of a ResourceClaim`
#[tokio::test]
async fn the_devices_of_a_resource_claim_are_charged_and_returned() {
    let (fixture, _running) = Fixture::running().await;
    let (count, devices) = (
        "count/resourceclaims.resource.k8s.io",
        "gold.deviceclass.resource.k8s.io/devices",
    );
    let hard = [
        (count, "2"),
        (devices, "1"),
        ("requests.example.com/gpu", "3"),
    ];
    fixture.create(&quota(&hard)).await.unwrap();
    let none = [
        (count, "0"),
        (devices, "0"),
        ("requests.example.com/gpu", "0"),
    ];
    fixture.used(&none).await;
    fixture.create(&device_claim("test-claim")).await.unwrap();
    let one = [
        (count, "1"),
        (devices, "1"),
        ("requests.example.com/gpu", "0"),
    ];
    assert_eq!(fixture.quota().await.status.used, list(&one));
    let refused = fixture.create(&device_claim("more")).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Forbidden);
    let exceeded = format!(
        "exceeded quota: quota, requested: {devices}=1, used: {devices}=1, limited: {devices}=1"
    );
    assert!(refused.message.contains(&exceeded), "{refused}");
    fixture.delete::<ResourceClaim>("test-claim").await.unwrap();
    fixture.used(&none).await;
}

fn volume_claim() -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    (claim.metadata.namespace, claim.metadata.name) = (NAMESPACE.into(), "test-claim".into());
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    claim.spec.resources.requests = list(&[("storage", "1Gi")]);
    claim.spec.storage_class_name = Some(String::new());
    claim.spec.volume_attributes_class_name = Some(GOLD.into());
    claim
}

/// `should verify ResourceQuota's volume attributes class scope (quota set to pvc count: 1) against a pvc with different volume
/// attributes class.`
#[tokio::test]
async fn a_claim_counts_for_the_class_that_it_should_have_and_for_the_one_that_it_has() {
    let (fixture, _running) = Fixture::running().await;
    let none = [("persistentvolumeclaims", "0"), ("requests.storage", "0")];
    let one = [("persistentvolumeclaims", "1"), ("requests.storage", "1Gi")];
    let (gold, silver) = (Key::new(NAMESPACE, GOLD), Key::new(NAMESPACE, SILVER));
    for class in [GOLD, SILVER] {
        let mut quota = quota(&[("requests.storage", "5Gi"), ("persistentvolumeclaims", "1")]);
        quota.metadata.name = class.into();
        quota.spec.scope_selector = Some(ScopeSelector {
            match_expressions: vec![ScopedResourceSelectorRequirement {
                scope_name: "VolumeAttributesClass".into(),
                operator: "In".into(),
                values: vec![class.into()],
            }],
        });
        fixture.create(&quota).await.unwrap();
        let key = Key::new(NAMESPACE, class);
        fixture.used_of(&key, &none).await;
    }
    let mut claim = fixture.create(&volume_claim()).await.unwrap();
    fixture.used_of(&gold, &one).await;
    claim.status.phase = "Bound".into();
    claim.status.current_volume_attributes_class_name = Some(GOLD.into());
    claim = fixture
        .client
        .update_status(&claim)
        .await
        .unwrap()
        .object()
        .unwrap();

    claim.spec.volume_attributes_class_name = Some(SILVER.into());
    claim = fixture
        .client
        .update(&claim)
        .await
        .unwrap()
        .object()
        .unwrap();
    fixture.used_of(&silver, &one).await;
    fixture.used_of(&gold, &one).await;
    claim.status.current_volume_attributes_class_name = Some(SILVER.into());
    fixture.client.update_status(&claim).await.unwrap();
    fixture.used_of(&gold, &none).await;
    fixture.used_of(&silver, &one).await;
    fixture
        .delete::<PersistentVolumeClaim>("test-claim")
        .await
        .unwrap();
}
