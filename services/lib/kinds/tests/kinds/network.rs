//! Ingresses, network policies and ranges of addresses: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, object: Value) -> Base {
    Base { resource, object }
}

#[test]
fn ingresses() {
    let backend = json!({"service": {"name": "default-backend", "port": {"number": 80}}});
    let rule = json!({
        "host": "foo.bar.com",
        "http": {"paths": [{"path": "/foo", "pathType": "ImplementationSpecific", "backend": backend}]},
    });
    let ingress = base(
        "ingresses.networking.k8s.io",
        json!({"metadata": {"name": "foo"}, "spec": {"defaultBackend": backend, "rules": [rule]}}),
    );
    ingress
        .created(&[
            ("", ""),
            ("spec.rules=null", ""),
            ("spec.rules=null ; spec.defaultBackend=null", "Invalid spec"),
            (
                "spec.rules[0].http.paths[0].pathType=null",
                "Required spec.rules[0].http.paths[0].pathType",
            ),
            (
                r#"spec.rules[0].http.paths[0].pathType="Exactt""#,
                "NotSupported spec.rules[0].http.paths[0].pathType",
            ),
            (
                r#"spec.rules[0].http.paths[0].path="invalid""#,
                "Invalid spec.rules[0].http.paths[0].path",
            ),
            (
                r#"spec.rules[0].http.paths[0].pathType="Prefix" ; spec.rules[0].http.paths[0].path="/foo//a/..""#,
                "Invalid spec.rules[0].http.paths[0].path, Invalid spec.rules[0].http.paths[0].path",
            ),
            (
                r#"spec.rules[0].http.paths[0].pathType="Exact" ; spec.rules[0].http.paths[0].path=null"#,
                "Invalid spec.rules[0].http.paths[0].path",
            ),
            ("spec.rules[0].http.paths[0].path=null", ""),
            ("spec.rules[0].http.paths=[]", "Required spec.rules[0].http.paths"),
            ("spec.rules[0].http=null", ""),
            (r#"spec.rules[0].host="foobar:80""#, "Invalid spec.rules[0].host"),
            (r#"spec.rules[0].host="127.0.0.1""#, "Invalid spec.rules[0].host"),
            (r#"spec.rules[0].host="*.bar.com""#, ""),
            (r#"spec.rules[0].host="*.*.bar.com""#, "Invalid spec.rules[0].host"),
            (r#"spec.tls=[{"hosts":["*.bar.com","foo.bar.com"],"secretName":"a"}]"#, ""),
            (
                r#"spec.tls=[{"hosts":["*"],"secretName":"name_"}]"#,
                "Invalid spec.tls[0].hosts[0], Invalid spec.tls[0].secretName",
            ),
            (r#"spec.ingressClassName="foo!""#, "Invalid spec.ingressClassName"),
            (
                r#"spec.ingressClassName="a" ; metadata.annotations={"kubernetes.io/ingress.class":"b"}"#,
                "Invalid annotations.kubernetes.io/ingress.class",
            ),
            ("spec.defaultBackend={}", "Invalid spec.defaultBackend"),
            (
                r#"spec.defaultBackend.resource={"kind":"a","name":"b"}"#,
                "Invalid spec.defaultBackend",
            ),
            (
                r#"spec.defaultBackend={"resource":{"apiGroup":"example.foo.io","kind":"foo","name":"bar"}}"#,
                "",
            ),
            (
                r#"spec.defaultBackend={"resource":{"kind":"","name":""}}"#,
                "Required spec.defaultBackend.resource.kind, Required spec.defaultBackend.resource.name",
            ),
            (
                "spec.defaultBackend.service.name=null",
                "Required spec.defaultBackend.service.name",
            ),
            (
                r#"spec.defaultBackend.service.port={"name":"a","number":1}"#,
                "Invalid spec.defaultBackend",
            ),
            ("spec.defaultBackend.service.port={}", "Required spec.defaultBackend"),
            (
                r#"spec.defaultBackend.service.port={"name":"80"}"#,
                "Invalid spec.defaultBackend.service.port.name",
            ),
            (
                "spec.defaultBackend.service.port.number=70000",
                "Invalid spec.defaultBackend.service.port.number",
            ),
        ]);
    ingress.updated(&[(
        "",
        r#"spec.rules[0].host="*""#,
        "Invalid spec.rules[0].host",
    )]);
    ingress.reported(&[
        (
            "",
            r#"status.loadBalancer={"ingress":[{"ip":"127.0.0.2"},{"hostname":"foo.com"}]}"#,
            "",
        ),
        (
            "",
            r#"status.loadBalancer={"ingress":[{"ip":"abcd"}]}"#,
            "Invalid status.loadBalancer.ingress[0].ip",
        ),
        (
            "",
            r#"status.loadBalancer={"ingress":[{"hostname":"127.0.0.1"}]}"#,
            "Invalid status.loadBalancer.ingress[0].hostname",
        ),
    ]);
}

#[test]
fn ingress_classes() {
    let class = base(
        "ingressclasses.networking.k8s.io",
        json!({"metadata": {"name": "test123"}, "spec": {"controller": "foo.co/bar"}}),
    );
    class
        .created(&[
            ("", ""),
            ("spec.controller=null", "Required spec.controller"),
            (r#"spec.controller="foo/""#, "Invalid spec.controller"),
            (r#"spec.controller="foo.co/bar#1""#, "Invalid spec.controller"),
            (r#"spec.parameters={"kind":"k","name":"n"}"#, ""),
            (
                r#"spec.parameters={"apiGroup":"-a","kind":"foo/","name":""}"#,
                "Invalid spec.parameters.apiGroup, Invalid spec.parameters.kind, Required spec.parameters.name",
            ),
            (
                r#"spec.parameters={"kind":"k","name":"n","scope":"Namespace"}"#,
                "Required spec.parameters.namespace",
            ),
            (
                r#"spec.parameters={"kind":"k","name":"n","scope":"Cluster","namespace":"a"}"#,
                "Forbidden spec.parameters.namespace",
            ),
            (
                r#"spec.parameters={"kind":"k","name":"n","scope":"bad"}"#,
                "NotSupported spec.parameters.scope",
            ),
        ]);
    class.updated(&[
        ("", r#"spec.parameters={"kind":"k","name":"n"}"#, ""),
        (
            "",
            r#"spec.controller="foo.co/different""#,
            "Invalid spec.controller",
        ),
    ]);
}

#[test]
fn policies() {
    let policy = base(
        "networkpolicies.networking.k8s.io",
        json!({"metadata": {"name": "foo"}, "spec": {
            "podSelector": {"matchLabels": {"a": "b"}},
            "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}],
            "egress": [{"ports": [{"port": 80}], "to": [{"ipBlock": {"cidr": "192.168.0.0/16"}}]}],
        }}),
    );
    policy
        .created(&[
            ("", ""),
            (r#"spec={"podSelector":{}}"#, ""),
            (r#"spec.podSelector={"matchLabels":{"a b":"c"}}"#, "Invalid spec.podSelector.matchLabels"),
            (r#"spec.ingress[0].ports[0].port="dns""#, ""),
            ("spec.egress[0].ports[0].endPort=90", ""),
            ("spec.ingress[0].ports[0].port=123456789", "Invalid spec.ingress[0].ports[0].port"),
            (r#"spec.ingress[0].ports[0].port="!@#$""#, "Invalid spec.ingress[0].ports[0].port, Invalid spec.ingress[0].ports[0].port"),
            (r#"spec.ingress[0].ports[0].protocol="my-protocol""#, "NotSupported spec.ingress[0].ports[0].protocol"),
            (
                "spec.egress[0].ports[0].endPort=20",
                "Invalid spec.egress[0].ports[0].endPort",
            ),
            (
                r#"spec.egress[0].ports[0]={"endPort":20}"#,
                "Invalid spec.egress[0].ports[0].endPort",
            ),
            (
                r#"spec.egress[0].ports[0]={"port":"dns","endPort":20}"#,
                "Invalid spec.egress[0].ports[0].endPort",
            ),
            ("spec.ingress[0].from[0]={}", "Required spec.ingress[0].from[0]"),
            (
                r#"spec.egress[0].to[0].podSelector={}"#,
                "Forbidden spec.egress[0].to[0]",
            ),
            (r#"spec.egress[0].to[0].ipBlock.cidr="""#, "Required spec.egress[0].to[0].ipBlock.cidr"),
            (
                r#"spec.egress[0].to[0].ipBlock.cidr="192.168.5.6""#,
                "Invalid spec.egress[0].to[0].ipBlock.cidr",
            ),
            (r#"spec.egress[0].to[0].ipBlock.except=["192.168.3.0/24"]"#, ""),
            (
                r#"spec.egress[0].to[0].ipBlock.except=["10.0.0.0/24","192.168.0.0/16","a"]"#,
                "Invalid spec.egress[0].to[0].ipBlock.except[0], Invalid spec.egress[0].to[0].ipBlock.except[1], Invalid spec.egress[0].to[0].ipBlock.except[2]",
            ),
            (r#"spec.policyTypes=["foo"]"#, "NotSupported spec.policyTypes[0]"),
            (
                r#"spec.policyTypes=["Ingress","Egress","Egress"]"#,
                "Invalid spec.policyTypes",
            ),
        ]);
    policy.updated(&[(
        "",
        r#"spec.policyTypes=["bar"]"#,
        "NotSupported spec.policyTypes[0]",
    )]);
}

#[test]
fn addresses_and_ranges() {
    let address = base(
        "ipaddresses.networking.k8s.io",
        json!({"metadata": {"name": "192.168.1.1"}, "spec": {"parentRef": {
            "resource": "services", "name": "foo", "namespace": "bar",
        }}}),
    );
    address.created(&[
        ("", ""),
        (r#"metadata.name="2001:4860:4860::8888""#, ""),
        (r#"metadata.name="300.168.1.1""#, "Invalid metadata.name"),
        (
            r#"metadata.name="2001:4860:4860:0::8888""#,
            "Invalid metadata.name",
        ),
        ("spec.parentRef=null", "Required spec.parentRef"),
        (
            "spec.parentRef.resource=null",
            "Required spec.parentRef.resource",
        ),
        ("spec.parentRef.name=null", "Required spec.parentRef.name"),
        (
            r#"spec.parentRef.group="a_b""#,
            "Invalid spec.parentRef.group",
        ),
    ]);
    address.updated(&[(
        "",
        r#"spec.parentRef.name="other""#,
        "Invalid spec.parentRef",
    )]);
    let range = base(
        "servicecidrs.networking.k8s.io",
        json!({"metadata": {"name": "test"}, "spec": {"cidrs": ["192.168.0.0/24"]}}),
    );
    range.created(&[
        ("", ""),
        (r#"spec.cidrs[1]="fd00::/64""#, ""),
        ("spec.cidrs=null", "Required spec.cidrs"),
        (r#"spec.cidrs[0]="192.168.0.0""#, "Invalid spec.cidrs[0]"),
        (r#"spec.cidrs[0]="192.168.0.1/24""#, "Invalid spec.cidrs[0]"),
        (r#"spec.cidrs[1]="FD00::/64""#, "Invalid spec.cidrs[1]"),
        (r#"spec.cidrs[1]="192.168.1.0/24""#, "Invalid spec.cidrs"),
        (
            r#"spec.cidrs=["192.168.0.0/24","fd00::/64","fd01::/64"]"#,
            "Invalid spec.cidrs",
        ),
    ]);
    range.updated(&[
        ("", r#"spec.cidrs[1]="fd00::/64""#, ""),
        (
            "",
            r#"spec.cidrs[0]="192.168.1.0/24""#,
            "Invalid spec.cidrs[0]",
        ),
        (
            r#"spec.cidrs[1]="fd00::/64""#,
            "spec.cidrs[1]=null",
            "Invalid spec.cidrs",
        ),
    ]);
}

#[test]
fn runtime_classes() {
    let class = base(
        "runtimeclasses.node.k8s.io",
        json!({"metadata": {"name": "foo"}, "handler": "valid-handler"}),
    );
    class
        .created(&[
            ("", ""),
            ("handler=null", "Required handler"),
            (r#"handler="&!@#""#, "Invalid handler"),
            (r#"overhead={"podFixed":{"cpu":"10m","memory":"10G"}}"#, ""),
            (
                r#"overhead={"podFixed":{"memory":"-10G"}}"#,
                "Invalid overhead.limits[memory]",
            ),
            (r#"scheduling={"nodeSelector":{"valid":"yes"}}"#, ""),
            (
                r#"scheduling={"nodeSelector":{"not a valid key!!!":"nope"}}"#,
                "Invalid scheduling.nodeSelector",
            ),
            (
                r#"scheduling={"tolerations":[{"key":"a","operator":"Exists"},{"key":"a","operator":"Exists"}]}"#,
                "Duplicate scheduling.tolerations[1]",
            ),
            (
                r#"scheduling={"tolerations":[{"key":"a","operator":"Exists","value":"b"}]}"#,
                "Invalid scheduling.tolerations[0].operator",
            ),
        ]);
    class.updated(&[
        ("", r#"metadata.labels={"a":"b"}"#, ""),
        ("", r#"handler="somethingelse""#, "Invalid handler"),
    ]);
}
