//! Namespaces with content whose deletion is refused.

use serde_json::json;
use setpoint_model::{Key, condition};
use setpoint_proto::Reason;
use setpoint_proto::admissionregistration::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use setpoint_proto::core::{ConfigMap, Secret};

use crate::deletion::fixture::{Fixture, NAMESPACE, config_map};

const NAME: &str = "keep";

/// Refuses the deletion of ConfigMaps.
async fn refuse(fixture: &Fixture) {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"],
    });
    let policy = json!({
        "metadata": { "name": NAME },
        "spec": {
            "matchConstraints": { "resourceRules": [rule] },
            "validations": [{ "expression": "false", "message": "not now" }],
        },
    });
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    fixture.client.create(&policy).await.unwrap();
    let binding = json!({
        "metadata": { "name": NAME },
        "spec": { "policyName": NAME, "validationActions": ["Deny"] },
    });
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(binding).unwrap();
    fixture.client.create(&binding).await.unwrap();
}

/// Checks K9, I11.
#[tokio::test]
async fn a_refused_deletion_is_named_by_a_condition_and_does_not_hold_up_the_others() {
    let fixture = Fixture::running().await;
    fixture.client.create(&config_map("a")).await.unwrap();
    let mut secret = Secret::default();
    (secret.metadata.namespace, secret.metadata.name) = (NAMESPACE.into(), "b".into());
    fixture.client.create(&secret).await.unwrap();
    refuse(&fixture).await;
    fixture.end().await;
    let remaining = "Some resources are remaining: configmaps. has 1 resource instances";
    let failing = fixture
        .until(|namespace| {
            let conditions = &namespace.status.conditions;
            let content = condition::get(conditions, "NamespaceContentRemaining");
            content.is_some_and(|content| content.message == remaining)
        })
        .await;
    let conditions = &failing.status.conditions;
    let failure = condition::get(conditions, "NamespaceDeletionContentFailure").unwrap();
    assert_eq!(failure.reason, "ContentDeletionFailed");
    let begin = "Failed to delete all resource types, 1 remaining: ";
    let message = &failure.message;
    assert!(message.starts_with(begin), "{message}");
    assert!(message.ends_with("denied request: not now"), "{message}");
    fixture.get::<ConfigMap>("a").await.unwrap();
    let gone = fixture.get::<Secret>("b").await.unwrap_err();
    assert_eq!(gone.reason, Reason::NotFound);

    let binding = Key::new("", NAME);
    let allowed = fixture.client.delete::<ValidatingAdmissionPolicyBinding>(
        &binding,
        Default::default(),
        None,
    );
    allowed.await.unwrap();
    fixture.until_gone().await;
}
