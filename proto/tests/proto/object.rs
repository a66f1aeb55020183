//! Objects within objects.

use setpoint_proto::apps::StatefulSetSpec;
use setpoint_proto::core::PersistentVolumeClaim;

/// As upstream, whether they were given or not.
#[test]
fn a_claim_template_has_kind_and_version() {
    let claim = PersistentVolumeClaim::default();
    let mut spec = StatefulSetSpec::default();
    spec.volume_claim_templates.push(claim);
    let json = serde_json::to_string(&spec).unwrap();
    let expected =
        r#""volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"#;
    assert!(json.contains(expected), "{json}");
    let read: StatefulSetSpec = serde_json::from_str(&json).unwrap();
    assert_eq!(read, spec);
}
