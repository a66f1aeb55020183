//! Metadata, whose validation is the same for all kinds.

use serde_json::json;

use crate::table::Base;

fn map() -> Base {
    Base {
        resource: "configmaps",
        object: json!({"metadata": {"name": "map"}}),
    }
}

#[test]
fn names() {
    map()
        .created(&[
            ("", ""),
            (r#"metadata.name="a.b-c""#, ""),
            (r#"metadata.name=null"#, "Required metadata.name"),
            (r#"metadata.name="A""#, "Invalid metadata.name"),
            (r#"metadata.name="a_b""#, "Invalid metadata.name"),
            (r#"metadata.name="a..b""#, "Invalid metadata.name"),
            (r#"metadata.name="-a""#, "Invalid metadata.name"),
            (r#"metadata.name=null ; metadata.generateName="a-""#, ""),
            (r#"metadata.generateName="a--""#, ""),
            (r#"metadata.generateName="-""#, "Invalid metadata.generateName"),
            (r#"metadata.generateName="-a-""#, "Invalid metadata.generateName"),
            (r#"metadata.name="A" ; metadata.generateName="a""#, "Invalid metadata.name"),
            (r#"metadata.name="A" ; metadata.generateName="A""#, "Invalid metadata.generateName, Invalid metadata.name"),
            (r#"metadata.namespace="foo.bar""#, "BadRequest"),
            (r#"metadata.deletionTimestamp="1970-01-01T00:16:40Z" ; metadata.deletionGracePeriodSeconds=30"#, ""),
            (
                r#"metadata.generateName="a.""#,
                "Invalid metadata.generateName",
            ),
            (
                r#"metadata.name=null ; metadata.generateName="A-""#,
                "Invalid metadata.generateName, Invalid metadata.name",
            ),
            (r#"metadata.namespace="other""#, "BadRequest"),
            // Checks E4: a dry run does not look at it.
            (r#"metadata.resourceVersion="1""#, ""),
        ]);
}

#[test]
fn labels_and_annotations() {
    let labels = "Invalid metadata.labels";
    let annotations = "Invalid metadata.annotations";
    map()
        .created(&[
            (
                r#"metadata.labels={"a":"b","a.b/c_D.e":"","1":"x.y_z-0"}"#,
                "",
            ),
            (r#"metadata.labels={"simple":"b","now-with-dashes":"b","1-starts-with-num":"b","1234":"b","simple/simple":"b","now-with-dashes/simple":"b","now-with-dashes/now-with-dashes":"b","now.with.dots/simple":"b","now-with.dashes-and.dots/simple":"b","1-num.2-num/3-num":"b","1234/5678":"b","1.2.3.4/5678":"b","UpperCase123":"b"}"#, ""),
            (r#"metadata.labels={"goodvalue":"123_-.BaR","b":"","c":"1234","d":"end-with-num-1"}"#, ""),
            (r#"metadata.labels={"nospecialchars^=@":"b"}"#, labels),
            (r#"metadata.labels={"cantendwithadash-":"b"}"#, labels),
            (r#"metadata.labels={"-cantstart":"b"}"#, labels),
            (r#"metadata.labels={"example_com/a":"b"}"#, labels),
            (
                r#"metadata.labels={"a/":"b"}"#,
                "Invalid metadata.labels, Invalid metadata.labels",
            ),
            (r#"metadata.labels={"a":"some\\bad\\value"}"#, labels),
            (r#"metadata.labels={"a":"bad,value"}"#, labels),
            (r#"metadata.labels={"a":"?#$notsogood"}"#, labels),
            (r#"metadata.labels={"a":"ends-with-dash-"}"#, labels),
            (r#"metadata.labels={"a":".starts.with.dot"}"#, labels),
            (r#"metadata.labels={"a":"ends.with.dot."}"#, labels),
            (r#"metadata.labels={"a":"M\u0101ori"}"#, labels),
            (r#"metadata.labels={"a b":"c"}"#, labels),
            (
                r#"metadata.labels={"":"c"}"#,
                "Invalid metadata.labels, Invalid metadata.labels",
            ),
            (r#"metadata.labels={"/a":"c"}"#, labels),
            (r#"metadata.labels={"A.b/c":"c"}"#, labels),
            (r#"metadata.labels={"a/b/c":"c"}"#, labels),
            (r#"metadata.labels={"a":"-b"}"#, labels),
            (r#"metadata.labels={"a":"b c"}"#, labels),
            (r#"metadata.annotations={"a":"any thing","A.B/C":""}"#, ""),
            (r#"metadata.annotations={"simple":"b","now-with-dashes":"b","1-starts-with-num":"b","1234":"b","simple/simple":"b","now-with-dashes/simple":"b","now-with-dashes/now-with-dashes":"b","now.with.dots/simple":"b","now-with.dashes-and.dots/simple":"b","1-num.2-num/3-num":"b","1234/5678":"b","1.2.3.4/5678":"b","UpperCase123":"b"}"#, ""),
            (r#"metadata.annotations={"nospecialchars^=@":"b"}"#, annotations),
            (r#"metadata.annotations={"cantendwithadash-":"b"}"#, annotations),
            (r#"metadata.annotations={"only/one/slash":"b"}"#, annotations),
            (r#"metadata.annotations={"a b":"c"}"#, annotations),
            (r#"metadata.annotations={"a/b/c":"c"}"#, annotations),
            (r#"metadata.annotations={"/a":"c"}"#, annotations),
        ]);
    let long = |length| {
        let mut base = map();
        base.object["metadata"]["labels"] = json!({"a": "x".repeat(length)});
        base
    };
    long(63).created(&[("", "")]);
    long(64).created(&[("", labels)]);
    let keyed = |field: &str, key: String| {
        let mut base = map();
        base.object["metadata"][field] = json!({key: "b"});
        base
    };
    let longest = format!("{}/{}", "a".repeat(253), "b".repeat(63));
    for (field, expected) in [("labels", labels), ("annotations", annotations)] {
        keyed(field, longest.clone()).created(&[("", "")]);
        for long in ["a".repeat(64), format!("{}/b", "a".repeat(254))] {
            keyed(field, long).created(&[("", expected)]);
        }
    }
    let large = |size| {
        let mut base = map();
        base.object["metadata"]["annotations"] = json!({"a": "x".repeat(size)});
        base
    };
    large((256 << 10) - 1).created(&[("", "")]);
    large(256 << 10).created(&[("", "TooLong metadata.annotations")]);
    let halves = |size| {
        let mut base = map();
        let value = "x".repeat(size);
        base.object["metadata"]["annotations"] = json!({"a": value, "c": value});
        base
    };
    halves((128 << 10) - 1).created(&[("", "")]);
    halves(128 << 10).created(&[("", "TooLong metadata.annotations")]);
}

#[test]
fn owners() {
    let mut base = map();
    base.object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1"}]);
    base.created(&[
        ("", ""),
        (r#"metadata.ownerReferences[0].apiVersion="v1""#, ""),
        (r#"metadata.ownerReferences[0].apiVersion="ownVersion" ; metadata.ownerReferences[0].kind="OwnKind""#, ""),
        (
            r#"metadata.ownerReferences[0].apiVersion="""#,
            "Invalid metadata.ownerReferences.apiVersion",
        ),
        (
            r#"metadata.ownerReferences[0].apiVersion="apps/""#,
            "Invalid metadata.ownerReferences.apiVersion",
        ),
        (
            r#"metadata.ownerReferences[0].apiVersion="a/b/c""#,
            "Invalid metadata.ownerReferences.apiVersion",
        ),
        (
            r#"metadata.ownerReferences[0].kind="""#,
            "Invalid metadata.ownerReferences.kind",
        ),
        (
            r#"metadata.ownerReferences[0].name="""#,
            "Invalid metadata.ownerReferences.name",
        ),
        (
            r#"metadata.ownerReferences[0].uid="""#,
            "Invalid metadata.ownerReferences.uid",
        ),
        (
            r#"metadata.ownerReferences[0].apiVersion="v1" ; metadata.ownerReferences[0].kind="Event""#,
            "Invalid metadata.ownerReferences",
        ),
        (
            r#"metadata.ownerReferences[1]={"apiVersion":"v1","kind":"Pod","name":"b","uid":"2"}"#,
            "",
        ),
        (
            r#"metadata.ownerReferences[0].controller=true ; metadata.ownerReferences[1]={"apiVersion":"v1","kind":"Pod","name":"b","uid":"2","controller":false}"#,
            "",
        ),
        (
            r#"metadata.ownerReferences[0].controller=true ; metadata.ownerReferences[1]={"apiVersion":"v1","kind":"Pod","name":"b","uid":"2","controller":true}"#,
            "Invalid metadata.ownerReferences",
        ),
    ]);
}

#[test]
fn finalizers() {
    map().created(&[
        (r#"metadata.finalizers=["a.io/b","orphan"]"#, ""),
        (
            r#"metadata.finalizers=["foregroundDeletion","kubernetes"]"#,
            "",
        ),
        (
            r#"metadata.finalizers=["a.io/b","mine"]"#,
            "Invalid metadata.finalizers[1]",
        ),
        (
            r#"metadata.finalizers=["a/b/c"]"#,
            "Invalid metadata.finalizers",
        ),
        (
            r#"metadata.finalizers=["orphan","foregroundDeletion"]"#,
            "Invalid metadata.finalizers",
        ),
    ]);
}

#[test]
fn changes() {
    map()
        .updated(&[
            ("", r#"metadata.labels={"a":"b"}"#, ""),
            (
                "",
                r#"metadata.labels={"a":"b c"}"#,
                "Invalid metadata.labels",
            ),
            (
                "",
                r#"metadata.finalizers=["mine"]"#,
                "Invalid metadata.finalizers[0]",
            ),
            ("", r#"metadata.name="other""#, "BadRequest"),
            ("", r#"metadata.resourceVersion=null"#, ""),
            ("", r#"metadata.resourceVersion="0""#, ""),
            ("", r#"metadata.generateName="x-""#, ""),
            ("", r#"metadata.creationTimestamp=null"#, ""),
            ("", r#"metadata.creationTimestamp="1970-01-01T00:00:11Z""#, ""),
            ("", "metadata.generation=-5", ""),
            ("", r#"metadata.namespace="other""#, "BadRequest"),
            ("", r#"metadata.deletionTimestamp="1970-01-01T00:16:40Z""#, "Invalid metadata.deletionTimestamp"),
            ("", "metadata.deletionGracePeriodSeconds=30", "Invalid metadata.deletionGracePeriodSeconds"),
            (r#"metadata.finalizers=["a.io/b"]"#, r#"metadata.finalizers=["a.io/b","a.io/c"]"#, ""),
            (r#"metadata.finalizers=["a.io/b","a.io/c"]"#, r#"metadata.finalizers=["a.io/b"]"#, ""),
            ("", r#"metadata.managedFields=[{"manager":"kubectl","operation":"Other","fieldsType":"RandomVersion"}]"#, ""),
            ("", r#"metadata.managedFields=[{"manager":"kubectl"}]"#, ""),
        ]);
}
