//! Device classes, resource claims and resource slices: the cases of upstream's `validation_*_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, object: Value) -> Base {
    Base { resource, object }
}

fn claim_spec() -> Value {
    let request = json!({"name": "foo", "exactly": {"deviceClassName": "class", "count": 1}});
    json!({"devices": {"requests": [request]}})
}

#[test]
fn classes() {
    let selectors = json!([{"cel": {"expression": "true"}}]);
    let class = json!({"metadata": {"name": "foo"}, "spec": {"selectors": selectors}});
    let class = base("deviceclasses.resource.k8s.io", class);
    class.created(&[
        ("", ""),
        ("spec={}", ""),
        ("spec.selectors[0]={}", "Required spec.selectors[0].cel"),
        (
            r#"spec.selectors[0].cel.expression="""#,
            "Required spec.selectors[0].cel.expression",
        ),
        ("spec.config=[{}]", "Required spec.config[0].opaque"),
        (
            r#"spec.config=[{"opaque":{"driver":"a_b","parameters":[1]}}]"#,
            "Invalid spec.config[0].opaque.driver, Invalid spec.config[0].opaque.parameters",
        ),
        (
            r#"spec.config=[{"opaque":{"driver":"a","parameters":{"b":1}}}]"#,
            "",
        ),
        (r#"spec.extendedResourceName="example.com/gpu""#, ""),
        (
            r#"spec.extendedResourceName="cpu""#,
            "Invalid spec.extendedResourceName",
        ),
    ]);
    class.updated(&[("", "spec.selectors=[]", "")]);
}

#[test]
fn claims() {
    let claim = base(
        "resourceclaims.resource.k8s.io",
        json!({"metadata": {"name": "foo"}, "spec": claim_spec()}),
    );
    claim
        .created(&[
            ("", ""),
            (r#"metadata.name="!@#$%^""#, "Invalid metadata.name"),
            ("spec.devices.requests[0].name=null", "Invalid spec.devices.requests[0].name"),
            (
                "spec.devices.requests[0].exactly=null",
                "Required spec.devices.requests[0]",
            ),
            (
                r#"spec.devices.requests[0].firstAvailable=[{"name":"a","deviceClassName":"b"}]"#,
                "Invalid spec.devices.requests[0]",
            ),
            (
                r#"spec.devices.requests[0]={"name":"r","firstAvailable":[{"name":"a","deviceClassName":"b"},{"name":"a"}]}"#,
                "Duplicate spec.devices.requests[0].firstAvailable[1], Required spec.devices.requests[0].firstAvailable[1].deviceClassName",
            ),
            (
                "spec.devices.requests[0].exactly.deviceClassName=null",
                "Required spec.devices.requests[0].exactly.deviceClassName",
            ),
            (
                r#"spec.devices.requests[0].exactly.allocationMode="other""#,
                "NotSupported spec.devices.requests[0].exactly.allocationMode",
            ),
            (
                r#"spec.devices.requests[0].exactly.allocationMode="All""#,
                "Invalid spec.devices.requests[0].exactly.count",
            ),
            (
                "spec.devices.requests[0].exactly.count=-1",
                "Invalid spec.devices.requests[0].exactly.count",
            ),
            (
                r#"spec.devices.requests[0].exactly.tolerations=[{"operator":"Exists","value":"a"},{"operator":"x","effect":"y"}]"#,
                "Invalid spec.devices.requests[0].exactly.tolerations[0].value, NotSupported spec.devices.requests[0].exactly.tolerations[1].operator, NotSupported spec.devices.requests[0].exactly.tolerations[1].effect",
            ),
            (
                r#"spec.devices.constraints=[{"requests":["foo"],"matchAttribute":"dra.example.com/numa"}]"#,
                "",
            ),
            (
                r#"spec.devices.constraints=[{"requests":["bar"],"matchAttribute":"numa"},{}]"#,
                "Invalid spec.devices.constraints[0].requests[0], Invalid spec.devices.constraints[0].matchAttribute, Required spec.devices.constraints[1]",
            ),
            (
                r#"spec.devices.config=[{"requests":["foo","foo"],"opaque":{"driver":"a","parameters":{}}}]"#,
                "Duplicate spec.devices.config[0].requests[1]",
            ),
        ]);
    claim.updated(&[
        ("", r#"metadata.labels={"a":"b"}"#, ""),
        (
            "",
            "spec.devices.requests[0].exactly.count=2",
            "Invalid spec",
        ),
    ]);
}

#[test]
fn allocations() {
    let claim = base(
        "resourceclaims.resource.k8s.io",
        json!({"metadata": {"name": "foo"}, "spec": claim_spec()}),
    );
    let allocation = r#"status.allocation={"devices":{"results":[{"request":"foo","driver":"a.com","pool":"p","device":"d"}]}}"#;
    claim
        .reported(&[
            ("", allocation, ""),
            (
                "",
                r#"status.allocation={"devices":{"results":[{"request":"bar","driver":"a_b","pool":"","device":"D"}]}}"#,
                "Invalid status.allocation.devices.results[0].request, Invalid status.allocation.devices.results[0].driver, Required status.allocation.devices.results[0].pool, Invalid status.allocation.devices.results[0].device",
            ),
            (
                "",
                r#"status.reservedFor=[{"resource":"pods","name":"foo","uid":"1"}]"#,
                "Forbidden status.reservedFor",
            ),
            (
                allocation,
                r#"status.reservedFor=[{"resource":"pods","name":"foo","uid":"1"}]"#,
                "",
            ),
            (
                allocation,
                r#"status.reservedFor=[{"resource":"","name":"foo","uid":"1"},{"resource":"pods","name":"foo","uid":"1"}]"#,
                "Required status.reservedFor[0].resource, Duplicate status.reservedFor[1]",
            ),
            (
                allocation,
                r#"status.allocation.devices.results[0].device="e""#,
                "Invalid status.allocation",
            ),
            (
                allocation,
                r#"status.devices=[{"driver":"a.com","pool":"p","device":"d","data":{"a":1},"networkData":{"interfaceName":"eth0","ips":["10.9.8.0/24"]}}]"#,
                "",
            ),
            (
                allocation,
                r#"status.devices=[{"driver":"a.com","pool":"p","device":"other","data":[1],"networkData":{"ips":["300.9.8.0/24"]},"conditions":[{"type":"a","status":"b"}]}]"#,
                "Invalid status.devices[0], Invalid status.devices[0].data, Invalid status.devices[0].networkData.ips[0], NotSupported status.devices[0].conditions[0].status, Required status.devices[0].conditions[0].lastTransitionTime, Required status.devices[0].conditions[0].reason",
            ),
        ]);
    let template = json!({"metadata": {"name": "foo"}, "spec": {"spec": claim_spec()}});
    let template = base("resourceclaimtemplates.resource.k8s.io", template);
    template.created(&[
        ("", ""),
        (r#"spec.metadata={"labels":{"a":"b"}}"#, ""),
        (
            r#"spec.metadata={"name":"a"}"#,
            "Forbidden spec.metadata.name",
        ),
        (
            "spec.spec.devices.requests[0].exactly.deviceClassName=null",
            "Required spec.spec.devices.requests[0].exactly.deviceClassName",
        ),
    ]);
    template.updated(&[("", r#"spec.metadata={"labels":{"a":"b"}}"#, "Invalid spec")]);
}

#[test]
fn slices() {
    let spec = json!({
        "driver": "test.example.com",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node",
        "devices": [{"name": "device-0", "attributes": {"a": {"int": 1}}, "capacity": {"b": {"value": "1Gi"}}}],
    });
    let slice = base(
        "resourceslices.resource.k8s.io",
        json!({"metadata": {"name": "foo"}, "spec": spec}),
    );
    slice
        .created(&[
            ("", ""),
            ("spec.driver=null", "Required spec.driver"),
            ("spec.pool.name=null", "Required spec.pool.name"),
            (r#"spec.pool.name="a/b_c""#, "Invalid spec.pool.name"),
            ("spec.pool.generation=-1", "Invalid spec.pool.generation"),
            ("spec.pool.resourceSliceCount=0", "Invalid spec.pool.resourceSliceCount"),
            ("spec.nodeName=null", "Required spec"),
            ("spec.nodeName=null ; spec.allNodes=true", ""),
            ("spec.allNodes=true", "Invalid spec"),
            ("spec.allNodes=false", "Invalid spec.allNodes"),
            (r#"spec.nodeName="B_d""#, "Invalid spec.nodeName"),
            (r#"spec.devices[0].name="a_b""#, "Invalid spec.devices[0].name"),
            (r#"spec.devices[1]={"name":"device-0"}"#, "Duplicate spec.devices[1]"),
            (
                r#"spec.devices[0].attributes={"a/b/c":{"int":1},"x":{},"y":{"int":1,"bool":true},"z":{"version":"1"}}"#,
                "Invalid spec.devices[0].attributes, Invalid spec.devices[0].attributes[x], Invalid spec.devices[0].attributes[y], Invalid spec.devices[0].attributes[z].version",
            ),
            (
                r#"spec.devices[0].capacity={"b":{"value":"1","requestPolicy":{"default":"1"}}}"#,
                "Forbidden spec.devices[0].capacity[b].requestPolicy",
            ),
            (
                r#"spec.devices[0].taints=[{"key":"a","effect":"NoSchedule"},{"key":"b","effect":"x"},{"key":"c"}]"#,
                "NotSupported spec.devices[0].taints[1].effect, Required spec.devices[0].taints[2].effect",
            ),
            ("spec.devices[0].allNodes=true", "Invalid spec.devices[0]"),
            (
                "spec.nodeName=null ; spec.perDeviceNodeSelection=true",
                "Required spec.devices[0]",
            ),
            (
                "spec.nodeName=null ; spec.perDeviceNodeSelection=true ; spec.devices[0].allNodes=true",
                "",
            ),
            (
                r#"spec.devices=null ; spec.sharedCounters=[{"name":"a","counters":{"b":{"value":"1"}}}]"#,
                "",
            ),
            (
                r#"spec.devices=null ; spec.sharedCounters=[{"name":"a"}]"#,
                "Required spec.sharedCounters[0].counters",
            ),
            (
                r#"spec.devices[0].bindingConditions=["a"]"#,
                "Invalid spec.devices[0].bindingFailureConditions",
            ),
        ]);
    slice.updated(&[
        ("", "spec.pool.generation=2", ""),
        ("", r#"spec.driver="other""#, "Invalid spec.driver"),
        ("", r#"spec.pool.name="other""#, "Invalid spec.pool.name"),
        ("", r#"spec.nodeName="other""#, "Invalid spec.nodeName"),
    ]);
}
