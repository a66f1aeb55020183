//! Endpoints and EndpointSlices.

use serde_json::json;

use crate::table::Base;

#[test]
fn endpoints() {
    let base = Base {
        resource: "endpoints",
        object: json!({"metadata": {"name": "web"}, "subsets": [{
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "2001:db8:0::1"}],
            "notReadyAddresses": [{"ip": "2001:DB8::2"}],
        }]}),
    };
    let warnings: &[&str] = &[
        r#"subsets[0].addresses[1].ip: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
        r#"subsets[0].notReadyAddresses[0].ip: IPv6 address "2001:DB8::2" should be in RFC 5952 canonical format ("2001:db8::2")"#,
    ];
    let managed = r#"metadata.labels={"endpoints.kubernetes.io/managed-by":"endpoint-controller"}"#;
    base.warned(&[("", warnings), (managed, &[]), ("subsets=[]", &[])]);
    base.warned_of_update(&[
        ("", r#"metadata.labels={"a":"b"}"#, warnings),
        (
            r#"subsets[0].addresses[1].ip="010.0.0.1""#,
            r#"metadata.labels={"a":"b"}"#,
            &[
                r#"subsets[0].addresses[1].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#,
                r#"subsets[0].notReadyAddresses[0].ip: IPv6 address "2001:DB8::2" should be in RFC 5952 canonical format ("2001:db8::2")"#,
            ],
        ),
    ]);
}

/// New addresses have to be canonical, unless the controllers stored them before that rule.
#[test]
fn slices() {
    const FQDN: &str = r#"addressType="FQDN" ; endpoints[0].addresses=["example.com"]"#;
    const STORED: &str = r#"endpoints[0].addresses[1]="2001:db8:0::2""#;
    let base = Base {
        resource: "endpointslices.discovery.k8s.io",
        object: json!({
            "metadata": {"name": "web"},
            "addressType": "IPv6",
            "endpoints": [{"addresses": ["2001:db8::1"]}],
        }),
    };
    base.warned(&[
        ("", &[]),
        (FQDN, &["spec.addressType: FQDN endpoints are deprecated"]),
    ]);
    base.warned_of_update(&[
        (FQDN, r#"metadata.labels={"a":"b"}"#, &[]),
        (
            STORED,
            r#"metadata.labels={"a":"b"}"#,
            &[
                r#"endpoints[0].addresses[1]: IPv6 address "2001:db8:0::2" should be in RFC 5952 canonical format ("2001:db8::2")"#,
            ],
        ),
        (
            STORED,
            r#"metadata.labels={"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"}"#,
            &[],
        ),
        (
            STORED,
            r#"metadata.labels={"endpointslice.kubernetes.io/managed-by":"endpointslicemirroring-controller.k8s.io"}"#,
            &[],
        ),
    ]);
}
