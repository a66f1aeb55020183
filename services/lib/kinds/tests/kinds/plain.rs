//! ConfigMaps, Secrets, ServiceAccounts, Leases, Events and Namespaces.

use serde_json::json;

use crate::table::Base;

fn of(resource: &'static str) -> Base {
    Base {
        resource,
        object: json!({"metadata": {"name": "a"}}),
    }
}

#[test]
fn config_maps() {
    of("configmaps").created(&[
        (
            r#"data={"a":"b","A_b.c-d":"","...":"e"}"#,
            "Invalid data[...]",
        ),
        (r#"data={"a":"b"} ; binaryData={"c":"AA=="}"#, ""),
        (r#"data={"":"b"}"#, "Invalid data[]"),
        (r#"data={"a b":"c"}"#, "Invalid data[a b]"),
        (r#"data={"..":"c"}"#, "Invalid data[..]"),
        (r#"data={".":"c"}"#, "Invalid data[.]"),
        (r#"data={"..a":"c"}"#, "Invalid data[..a]"),
        (r#"data={".a":"c"}"#, ""),
        (r#"binaryData={"a/b":"AA=="}"#, "Invalid binaryData[a/b]"),
        (
            r#"data={"a":"b"} ; binaryData={"a":"AA=="}"#,
            "Invalid data[a]",
        ),
    ]);
    of("configmaps").updated(&[
        (r#"data={"a":"b"}"#, r#"data={"a":"c"}"#, ""),
        ("", "immutable=true", ""),
        ("immutable=true", "immutable=true", ""),
        ("immutable=true", "immutable=false", "Forbidden immutable"),
        ("immutable=true", "immutable=null", "Forbidden immutable"),
        ("immutable=true", r#"data={"a":"b"}"#, "Forbidden data"),
        (
            "immutable=true",
            r#"binaryData={"a":"AA=="}"#,
            "Forbidden binaryData",
        ),
        ("immutable=true", r#"metadata.labels={"a":"b"}"#, ""),
        (
            "immutable=true",
            r#"data={"a b":"b"}"#,
            "Forbidden data, Invalid data[a b]",
        ),
    ]);
    of("configmaps").created(&[
        (r#"data={"a*b":"c"}"#, "Invalid data[a*b]"),
        (r#"binaryData={".ab":"AA=="}"#, ""),
        (r#"binaryData={".":"AA=="}"#, "Invalid binaryData[.]"),
        (r#"binaryData={"..":"AA=="}"#, "Invalid binaryData[..]"),
        (r#"binaryData={"a":"AP4A/w=="}"#, ""),
    ]);
    let mut long = of("configmaps");
    long.object["data"] = json!({"a".repeat(253): ""});
    long.created(&[("", "")]);
    let key = "a".repeat(254);
    for field in ["data", "binaryData"] {
        let mut long = of("configmaps");
        long.object[field] = json!({&key: ""});
        let expected = format!("Invalid {field}[{key}]").leak();
        long.created(&[("", expected)]);
    }
    let mut large = of("configmaps");
    large.object["data"] = json!({"a": "x".repeat(1 << 20)});
    large.created(&[("", "")]);
    large.object["data"] = json!({"a": "x".repeat(1 << 20), "b": "x"});
    large.created(&[("", "TooLong []")]);
    let mut large = of("configmaps");
    // In base64, four letters for three bytes.
    large.object["binaryData"] = json!({"a": "AAAA".repeat((1 << 20) / 3 + 1)});
    large.created(&[("", "TooLong []")]);
}

#[test]
fn secrets() {
    of("secrets")
        .created(&[
            ("", ""),
            (r#"stringData={"a":"b"} ; type="a.io/own""#, ""),
            (r#"data={"a b":"AA=="}"#, "Invalid data[a b]"),
            (r#"data={"..":"AA=="}"#, "Invalid data[..]"),
            (r#"type="kubernetes.io/tls""#, "Required data[tls.crt], Required data[tls.key]"),
            (r#"type="kubernetes.io/tls" ; data={"tls.crt":"","tls.key":""}"#, ""),
            (r#"type="kubernetes.io/ssh-auth""#, "Required data[ssh-privatekey]"),
            (r#"type="kubernetes.io/ssh-auth" ; data={"ssh-privatekey":""}"#, "Required data[ssh-privatekey]"),
            (r#"type="kubernetes.io/basic-auth""#, "Required data[username], Required data[password]"),
            (r#"type="kubernetes.io/basic-auth" ; stringData={"password":""}"#, ""),
            (r#"type="kubernetes.io/dockercfg""#, "Required data[.dockercfg]"),
            (r#"type="kubernetes.io/dockercfg" ; stringData={".dockercfg":"{}"}"#, ""),
            (r#"type="kubernetes.io/dockerconfigjson" ; stringData={".dockerconfigjson":"no"}"#, "Invalid data[.dockerconfigjson]"),
            (r#"type="kubernetes.io/dockercfg" ; stringData={".dockercfg":""}"#, "Invalid data[.dockercfg]"),
            (r#"type="kubernetes.io/dockercfg" ; stringData={".dockercfg":"bad"}"#, "Invalid data[.dockercfg]"),
            (r#"type="kubernetes.io/dockercfg" ; stringData={".dockercfg":"null"}"#, ""),
            (r#"type="kubernetes.io/dockercfg" ; stringData={".dockercfg":"{\"a.io\":{\"auth\":\"b\"}}"}"#, ""),
            (r#"type="kubernetes.io/dockerconfigjson""#, "Required data[.dockerconfigjson]"),
            (r#"type="kubernetes.io/dockerconfigjson" ; stringData={".dockerconfigjson":""}"#, "Invalid data[.dockerconfigjson]"),
            (r#"type="kubernetes.io/dockerconfigjson" ; stringData={".dockerconfigjson":"{\"auths\":{}}"}"#, ""),
            (r#"type="kubernetes.io/basic-auth" ; stringData={"username":"a","password":"b"}"#, ""),
            (r#"type="kubernetes.io/ssh-auth" ; stringData={"ssh-privatekey":"a"}"#, ""),
            (r#"type="kubernetes.io/tls" ; stringData={"tls.crt":"a"}"#, "Required data[tls.key]"),
            (r#"type="kubernetes.io/tls" ; stringData={"tls.key":"a"}"#, "Required data[tls.crt]"),
            (r#"type="kubernetes.io/service-account-token" ; metadata.annotations={"kubernetes.io/service-account.name":""}"#, "Required metadata.annotations[kubernetes.io/service-account.name]"),
            (r#"data={".a":"AA=="}"#, ""),
            (r#"data={".":"AA=="}"#, "Invalid data[.]"),
            (r#"type="kubernetes.io/dockerconfigjson" ; stringData={".dockerconfigjson":"[]"}"#, "Invalid data[.dockerconfigjson]"),
            (
                r#"type="kubernetes.io/service-account-token""#,
                "Required metadata.annotations[kubernetes.io/service-account.name]",
            ),
            (
                r#"type="kubernetes.io/service-account-token" ; metadata.annotations={"kubernetes.io/service-account.name":"a"}"#,
                "",
            ),
        ]);
    of("secrets").updated(&[
        ("", r#"type="a.io/own""#, "Invalid type"),
        (r#"type="a.io/own""#, "type=null", "Invalid type"),
        ("immutable=true", "immutable=null", "Forbidden immutable"),
        ("immutable=true", r#"data={"a":"AA=="}"#, "Forbidden data"),
        ("", "immutable=true", ""),
        ("immutable=true", "immutable=false", "Forbidden immutable"),
        (r#"data={"a":"AA=="}"#, r#"data={"a":"AQ=="}"#, ""),
        (
            r#"immutable=true ; data={"a":"AA=="}"#,
            r#"data={"a":"AQ=="}"#,
            "Forbidden data",
        ),
        ("", r#"data={"a":"AA=="}"#, ""),
    ]);
}

#[test]
fn large_secrets() {
    let mut large = of("secrets");
    large.object["stringData"] = json!({"a": "x".repeat(1 << 20)});
    large.created(&[("", "")]);
    large.object["stringData"] = json!({"a": "x".repeat(1 << 20), "b": "x"});
    large.created(&[("", "TooLong data")]);
}

#[test]
fn service_accounts() {
    of("serviceaccounts").created(&[("", ""), (r#"metadata.name="A""#, "Invalid metadata.name")]);
}

#[test]
fn leases() {
    of("leases.coordination.k8s.io")
        .created(&[
            (
                r#"spec={"leaseDurationSeconds":15,"holderIdentity":"a"}"#,
                "",
            ),
            (
                r#"spec={"leaseDurationSeconds":0}"#,
                "Invalid spec.leaseDurationSeconds",
            ),
            (
                r#"spec={"leaseDurationSeconds":-1}"#,
                "Invalid spec.leaseDurationSeconds",
            ),
            (
                r#"spec={"leaseTransitions":-1}"#,
                "Invalid spec.leaseTransitions",
            ),
            (r#"metadata.name="A""#, "Invalid metadata.name"),
            (r#"metadata.name="invalidName++" ; metadata.namespace="==invalid_Namespace==""#, "BadRequest"),
            (r#"spec={"leaseDurationSeconds":10,"strategy":"OldestEmulationVersion","preferredHolder":"b"}"#, ""),
            (r#"spec={"leaseDurationSeconds":10,"strategy":"no-strategy"}"#, ""),
            (r#"spec={"leaseDurationSeconds":10,"preferredHolder":"b"}"#, ""),
            (r#"spec={"leaseDurationSeconds":0,"leaseTransitions":-1}"#, "Invalid spec.leaseDurationSeconds, Invalid spec.leaseTransitions"),
        ]);
    of("leases.coordination.k8s.io").updated(&[
        ("", r#"spec={"holderIdentity":"a"}"#, ""),
        (
            r#"spec={"leaseDurationSeconds":3,"leaseTransitions":3}"#,
            r#"spec={"leaseDurationSeconds":10,"leaseTransitions":20}"#,
            "",
        ),
        (
            r#"spec={"leaseDurationSeconds":3,"leaseTransitions":3}"#,
            r#"spec={"leaseDurationSeconds":0,"leaseTransitions":-1}"#,
            "Invalid spec.leaseDurationSeconds, Invalid spec.leaseTransitions",
        ),
    ]);
}

#[test]
fn namespaces() {
    of("namespaces").created(&[
        ("", ""),
        (r#"metadata.name="a.b""#, "Invalid metadata.name"),
        (r#"metadata.name="A""#, "Invalid metadata.name"),
        (r#"spec={"finalizers":["a.io/b","kubernetes"]}"#, ""),
        ("metadata.name=null", "Required metadata.name"),
        (
            r#"metadata.name="abc-123" ; metadata.namespace="makesnosense""#,
            "",
        ),
        (
            r#"metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"b"}"#,
            "Invalid metadata.labels",
        ),
        (r#"spec={"finalizers":["mine"]}"#, "Invalid spec.finalizers"),
        (
            r#"spec={"finalizers":["a/b/c"]}"#,
            "Invalid spec.finalizers",
        ),
    ]);
    of("namespaces").updated(&[
        ("", r#"spec={"finalizers":["mine"]}"#, ""),
        ("", r#"metadata.name="bar1""#, "BadRequest"),
        (
            r#"metadata.labels={"foo":"bar"}"#,
            r#"metadata.labels={"Foo":"baz"}"#,
            "",
        ),
        ("", r#"status={"phase":"Terminating"}"#, ""),
        ("", r#"metadata.labels={"a":"b"}"#, ""),
        (
            "",
            r#"metadata.finalizers=["mine"]"#,
            "Invalid metadata.finalizers[0]",
        ),
    ]);
}

#[test]
fn events() {
    let mut old = of("events");
    old.object["metadata"]["namespace"] = "production".into();
    old.object["involvedObject"] = json!({"namespace": "production"});
    let place = "Invalid involvedObject.namespace";
    old.created(&[
        ("", ""),
        (r#"involvedObject={"namespace":"default"}"#, place),
        ("involvedObject={}", place),
        ("count=5", ""),
        (r#"metadata.name="Any_name.at all""#, ""),
        (r#"metadata.name="a/b""#, "Invalid metadata.name"),
        (r#"metadata.name="50%""#, "Invalid metadata.name"),
        (r#"metadata.name="..""#, "Invalid metadata.name"),
        (
            r#"involvedObject={"apiVersion":"other/v1beta1","kind":"Job","namespace":"production"}"#,
            "",
        ),
        (
            r#"involvedObject={"apiVersion":"batch","kind":"Job","namespace":"foo"}"#,
            place,
        ),
        (r#"type="no-type""#, ""),
        (r#"series={"count":0}"#, ""),
    ]);
    let mut new = of("events");
    new.object = json!({
        "metadata": {"name": "a", "namespace": "production"},
        "involvedObject": {"namespace": "production"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingComponent": "a.io/b",
        "reportingInstance": "b-1",
        "action": "Do",
        "reason": "Because",
    });
    let mut long = new.object.clone();
    for field in ["reportingInstance", "action", "reason"] {
        long[field] = json!("x".repeat(129));
    }
    long["message"] = json!("x".repeat(1025));
    new.created(&[
        ("", ""),
        ("involvedObject={}", place),
        (
            r#"reportingComponent="my-contr@ller""#,
            "Invalid reportingComponent",
        ),
        (
            r#"count=123 ; firstTimestamp="2026-01-02T03:04:05Z" ; source={"host":"a"}"#,
            "",
        ),
        (r#"involvedObject={"namespace":"default"}"#, ""),
        (
            "reportingComponent=null",
            "Required reportingComponent, Invalid reportingComponent, Invalid reportingComponent",
        ),
        (r#"reportingComponent="a b""#, "Invalid reportingComponent"),
        ("reportingInstance=null", "Required reportingInstance"),
        ("action=null", "Required action"),
        ("reason=null", "Required reason"),
    ]);
    new.updated(&[
        ("", r#"reason="Another" ; action="Undo" ; message="a" ; type="Warning" ; count=2"#, ""),
        ("", r#"eventTime="2026-01-02T03:04:06.000000Z" ; reportingInstance="c" ; related={"kind":"Pod"}"#, ""),
        ("", "action=null", "Required action"),
    ]);
    new.object = long;
    let expected = "Invalid reportingInstance, Invalid action, Invalid reason, Invalid message";
    new.created(&[("", expected)]);
}
