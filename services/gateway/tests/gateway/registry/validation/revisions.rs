//! The uid and the resourceVersion that an update names.

use serde_json::{Value, json};
use setpoint_codec::kinds;

use super::table::Base;

const CONFLICT: &str = "Conflict";
const MISSING: &str = "Invalid metadata.resourceVersion";

/// Returns the example of a kind, named `web` unless its other fields give its name.
fn example(resource: &'static str) -> Base {
    let kind = kinds().by_resource(resource).unwrap();
    let mut object: Value = serde_json::from_str(&kind.example).unwrap();
    if object["metadata"].is_null() {
        object["metadata"] = json!({ "name": "web" });
    }
    Base { resource, object }
}

#[tokio::test]
async fn an_update_names_the_current_version_or_none() {
    example("configmaps")
        .updated(&[
            ("", "metadata.resourceVersion=null", ""),
            ("", r#"metadata.resourceVersion="0""#, ""),
            ("", r#"metadata.resourceVersion="1""#, CONFLICT),
            ("", r#"metadata.uid="other""#, CONFLICT),
        ])
        .await;
}

/// Checks F27.
#[tokio::test]
async fn an_update_of_some_kinds_must_name_a_version() {
    for resource in [
        "csidrivers.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
    ] {
        example(resource)
            .updated(&[
                ("", "metadata.resourceVersion=null", MISSING),
                ("", r#"metadata.resourceVersion="0""#, MISSING),
                ("", r#"metadata.resourceVersion="1""#, CONFLICT),
            ])
            .await;
    }
}
