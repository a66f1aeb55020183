//! CertificateSigningRequests: the cases of upstream's `validation_test.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::table::Base;

fn request() -> Base {
    let pem = STANDARD.encode(include_str!("request.pem"));
    Base {
        resource: "certificatesigningrequests.certificates.k8s.io",
        object: json!({ "metadata": { "name": "jane" }, "spec": {
            "request": pem,
            "usages": ["client auth", "digital signature"],
            "signerName": "example.com/some-signer",
        } }),
    }
}

fn condition(of: &str, status: &str) -> Value {
    json!({ "type": of, "status": status, "reason": "Tested" })
}

#[test]
fn requests() {
    let certificate = STANDARD.encode(include_str!("certificate.pem"));
    request().created(&[
        ("", ""),
        (r#"metadata.name="Any name at all""#, ""),
        (r#"metadata.name="a/b""#, "Invalid metadata.name"),
        ("spec.usages=null", "Required spec.usages"),
        (r#"spec.usages[0]="unknown""#, "NotSupported spec.usages[0]"),
        (
            r#"spec.usages[1]="client auth""#,
            "Duplicate spec.usages[1]",
        ),
        ("spec.signerName=null", "Required spec.signerName"),
        (
            r#"spec.signerName="kubernetes.io/legacy-unknown""#,
            "Invalid spec.signerName",
        ),
        (
            r#"spec.signerName="example.com""#,
            "Invalid spec.signerName",
        ),
        (r#"spec.signerName="example/a""#, "Invalid spec.signerName"),
        (
            r#"spec.signerName="example.com/a/b""#,
            "Invalid spec.signerName",
        ),
        (
            r#"spec.signerName="example.com/A""#,
            "Invalid spec.signerName",
        ),
        (
            "spec.expirationSeconds=599",
            "Invalid spec.expirationSeconds",
        ),
        ("spec.expirationSeconds=600", ""),
        (r#"spec.request="YQ==""#, "Invalid spec.request"),
        ("spec.request=null", "Invalid spec.request"),
    ]);
    let mut other = request();
    other.object["spec"]["request"] = certificate.into();
    other.created(&[("", "Invalid spec.request")]);
}

#[test]
fn only_approvals_decide() {
    let approved = format!("status.conditions=[{}]", condition("Approved", "True"));
    let both = format!(
        "status.conditions=[{},{}]",
        condition("Approved", "True"),
        condition("Denied", "True")
    );
    let unsure = format!("status.conditions=[{}]", condition("Denied", "False"));
    let other = format!("status.conditions=[{}]", condition("Ready", "False"));
    let sent = || {
        let mut sent = request().object;
        sent["apiVersion"] = "certificates.k8s.io/v1".into();
        sent["kind"] = "CertificateSigningRequest".into();
        sent
    };
    let certificate = STANDARD.encode(include_str!("certificate.pem"));
    let issued = format!("status.certificate={certificate:?}");
    for (part, change, expected) in [
        ("approval", &approved, ""),
        ("approval", &both, "Invalid status.conditions"),
        (
            "approval",
            &unsure,
            "NotSupported status.conditions[0].status",
        ),
        ("approval", &other, ""),
        ("status", &approved, "Forbidden status.conditions"),
        ("status", &other, ""),
        ("status", &issued, ""),
    ] {
        let change: &'static str = Box::leak(change.clone().into_boxed_str());
        request().written(part, &sent(), &[(change, expected)]);
    }
}
