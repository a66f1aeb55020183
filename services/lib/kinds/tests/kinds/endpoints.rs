//! Endpoints and EndpointSlices: the cases of upstream's `validation_test.go`.

use serde_json::json;

use crate::table::Base;

#[test]
fn endpoints() {
    let base = Base {
        resource: "endpoints",
        object: json!({"metadata": {"name": "mysvc"}, "subsets": [{
            "addresses": [{"ip": "10.10.1.1"}, {"ip": "10.10.2.2"}],
            "ports": [
                {"name": "a", "port": 8675, "protocol": "TCP"},
                {"name": "b", "port": 309, "protocol": "TCP"},
            ],
        }]}),
    };
    base.created(&[
        ("", ""),
        ("subsets=null", ""),
        (r#"subsets[0].ports=[{"port":8675}]"#, ""),
        (r#"subsets[0].ports[0].appProtocol="HTTP""#, ""),
        ("subsets[0].ports=null", ""),
        (r#"metadata.name="foo_bar""#, "Invalid metadata.name"),
        ("subsets[0].addresses=null", "Required subsets[0]"),
        (
            r#"subsets[0].addresses=null ; subsets[0].notReadyAddresses=[{"ip":"10.10.1.1"}]"#,
            "",
        ),
        (
            r#"subsets[0].addresses[0].ip="[2001:0db8:85a3:0042:1000:8a2e:0370:7334]""#,
            "Invalid subsets[0].addresses[0].ip, Invalid subsets[0].addresses[0].ip",
        ),
        (
            r#"subsets[0].addresses[0].ip="127.0.0.1""#,
            "Invalid subsets[0].addresses[0].ip",
        ),
        (
            r#"subsets[0].addresses[0].ip="169.254.169.254""#,
            "Invalid subsets[0].addresses[0].ip",
        ),
        (
            r#"subsets[0].addresses[0].ip="224.0.0.1""#,
            "Invalid subsets[0].addresses[0].ip",
        ),
        (
            r#"subsets[0].addresses[0].nodeName="Bad""#,
            "Invalid subsets[0].addresses[0].nodeName",
        ),
        (
            "subsets[0].ports[0].name=null",
            "Required subsets[0].ports[0].name",
        ),
        (
            r#"subsets[0].ports[0].name="INVALID""#,
            "Invalid subsets[0].ports[0].name",
        ),
        (
            "subsets[0].ports[0].port=66000",
            "Invalid subsets[0].ports[0].port",
        ),
        (
            r#"subsets[0].ports[0].protocol="Protocol""#,
            "NotSupported subsets[0].ports[0].protocol",
        ),
        (
            r#"subsets[0].ports[0].appProtocol="@""#,
            "Invalid subsets[0].ports[0].appProtocol",
        ),
    ]);
    base.updated(&[
        ("", r#"subsets[0].addresses[0].nodeName="a""#, ""),
        ("", "subsets[0].addresses=null", "Required subsets[0]"),
    ]);
}

#[test]
fn slices() {
    let base = Base {
        resource: "endpointslices.discovery.k8s.io",
        object: json!({
            "metadata": {"name": "hello"},
            "addressType": "IPv4",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
            "endpoints": [{"addresses": ["10.1.2.3"], "hostname": "valid-123"}],
        }),
    };
    base.created(&[
        ("", ""),
        (r#"addressType="IPv6" ; endpoints[0].addresses=["a00:100::4"]"#, ""),
        (r#"ports[0].protocol="SCTP""#, ""),
        (r#"ports[0]={}"#, ""),
        (r#"ports=null ; endpoints=null"#, ""),
        (r#"ports[0].appProtocol="example.com/my-protocol""#, ""),
        (r#"endpoints[0].nodeName="node-1""#, ""),
        // The version v1 of the API removes it.
        (r#"endpoints[0].deprecatedTopology={"--INVALID":"a"}"#, ""),
        (r#"endpoints[0].hints={"forZones":[{"name":"zone-a"}],"forNodes":[{"name":"node-1"}]}"#, ""),
        (r#"ports[1]={"name":"http"}"#, "Duplicate ports[1].name"),
        (r#"ports[0].name="aCapital""#, "Invalid ports[0].name"),
        (r#"ports[0].protocol="foo""#, "NotSupported ports[0].protocol"),
        (r#"ports[0].appProtocol="--""#, "Invalid ports[0].appProtocol"),
        ("endpoints[0].addresses=null", "Required endpoints[0].addresses"),
        (r#"endpoints[0].hostname="--INVALID""#, "Invalid endpoints[0].hostname"),
        (r#"endpoints[0].nodeName="INvalid""#, "Invalid endpoints[0].nodeName"),
        (r#"endpoints[0].addresses=["123.456.789.012"]"#, "Invalid endpoints[0].addresses[0]"),
        (r#"endpoints[0].addresses=["2001:db8::1"]"#, "Invalid endpoints[0].addresses"),
        (r#"endpoints[0].addresses=["127.0.0.1"]"#, "Invalid endpoints[0].addresses[0]"),
        (
            r#"addressType="IPv6" ; endpoints[0].addresses=["2001:DB8::1","10.0.0.1"]"#,
            "Invalid endpoints[0].addresses[0], Invalid endpoints[0].addresses",
        ),
        (
            r#"endpoints[0].hints={"forZones":[{"name":"inv@lid"},{"name":"a"},{"name":"a"}]}"#,
            "Invalid endpoints[0].hints.forZones[0].name, Duplicate endpoints[0].hints.forZones[2].name",
        ),
        (
            r#"endpoints[0].hints={"forZones":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"},{"name":"f"},{"name":"g"},{"name":"h"},{"name":"i"}]}"#,
            "TooMany endpoints[0].hints.forZones",
        ),
        ("addressType=null", "Required addressType"),
        (r#"addressType="other""#, "NotSupported addressType"),
        (r#"addressType="FQDN" ; endpoints[0].addresses=["foo.example.com","example.com","hyphens-are-good.example.com"]"#, ""),
        (r#"addressType="FQDN" ; endpoints[0].addresses=["no-dot"]"#, "Invalid endpoints[0].addresses[0]"),
        (r#"addressType="FQDN" ; endpoints[0].addresses=["foo.*"]"#, "Invalid endpoints[0].addresses[0]"),
        (r#"addressType="FQDN" ; endpoints[0].addresses=[""]"#, "Required endpoints[0].addresses[0]"),
    ]);
    base.updated(&[
        ("", r#"endpoints[0].addresses=["10.1.2.4"]"#, ""),
        (
            "",
            r#"addressType="IPv6" ; endpoints[0].addresses=["a00:100::4"]"#,
            "Invalid addressType",
        ),
        (
            "",
            r#"endpoints[0].nodeName="INvalid""#,
            "Invalid endpoints[0].nodeName",
        ),
    ]);
}
