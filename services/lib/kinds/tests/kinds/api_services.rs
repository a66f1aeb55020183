//! APIServices.

use serde_json::json;

use crate::table::Base;

#[test]
fn api_services() {
    Base {
        resource: "apiservices.apiregistration.k8s.io",
        object: json!({
            "metadata": { "name": "v1.example.com" },
            "spec": {
                "group": "example.com",
                "version": "v1",
                "groupPriorityMinimum": 1000,
                "versionPriority": 100,
                "service": { "namespace": "default", "name": "server" },
            },
        }),
    }
    .created(&[
        ("", ""),
        (r#"metadata.name="v2.example.com""#, "Invalid metadata.name"),
        (r#"spec.group="" ; metadata.name="v1.""#, ""),
        (
            r#"spec.group="" ; spec.version="v2" ; metadata.name="v2.""#,
            "Required spec.group",
        ),
        (
            r#"spec.version="1" ; metadata.name="1.example.com""#,
            "Invalid spec.version",
        ),
        (
            "spec.groupPriorityMinimum=20001 ; spec.versionPriority=0",
            "Invalid spec.groupPriorityMinimum, Invalid spec.versionPriority",
        ),
        (
            "spec.service={}",
            "Required spec.service.namespace, Required spec.service.name",
        ),
        ("spec.service.port=70000", "Invalid spec.service.port"),
        (
            r#"spec.caBundle="YQ==" ; spec.insecureSkipTLSVerify=true"#,
            "Invalid spec.insecureSkipTLSVerify",
        ),
        ("spec.service=null", ""),
        (
            r#"spec.service=null ; spec.caBundle="YQ==" ; spec.insecureSkipTLSVerify=true"#,
            "Invalid spec.caBundle, Invalid spec.insecureSkipTLSVerify",
        ),
    ]);
}
