//! CustomResourceDefinitions: the cases of upstream's `validation_test.go` that need no schema engine.

use serde_json::{Value, json};

use crate::table::Base;

fn base(object: Value) -> Base {
    Base {
        resource: "customresourcedefinitions.apiextensions.k8s.io",
        object,
    }
}

fn tabs() -> Value {
    json!({
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "plural": "tabs", "kind": "Tab" },
            "scope": "Namespaced",
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": {
                        "color": { "type": "string" }, "size": { "type": "integer" },
                        "rest": { "type": "object" },
                    } } },
                } } },
            ],
        },
    })
}

#[test]
fn names_group_and_scope() {
    base(tabs()).created(&[
        ("", ""),
        (
            r#"metadata.name="tab.example.com""#,
            "Invalid metadata.name",
        ),
        (
            "spec.group=null",
            "Required spec.group, Invalid metadata.name",
        ),
        (
            r#"spec.group="a_b.com""#,
            "Invalid spec.group, Invalid metadata.name",
        ),
        (
            r#"spec.group="example" ; metadata.name="tabs.example""#,
            "Invalid spec.group",
        ),
        ("spec.scope=null", "Required spec.scope"),
        (r#"spec.scope="namespaced""#, "NotSupported spec.scope"),
        (r#"spec.scope="Cluster""#, ""),
        (
            "spec.names.plural=null",
            "Required spec.names.plural, Invalid metadata.name",
        ),
        (
            r#"spec.names.plural="Tabs" ; metadata.name="Tabs.example.com""#,
            "Invalid spec.names.plural, Invalid metadata.name",
        ),
        (
            "spec.names.kind=null",
            "Required spec.names.kind, Required spec.names.listKind, Required spec.names.singular",
        ),
        (
            r#"spec.names.kind="Tab_1""#,
            "Invalid spec.names.kind, Invalid spec.names.listKind, Invalid spec.names.singular",
        ),
        (
            r#"spec.names.listKind="Tab""#,
            "Invalid spec.names.listKind",
        ),
        (
            r#"spec.names.singular="Tab""#,
            "Invalid spec.names.singular",
        ),
        (
            r#"spec.names.shortNames=["t","T"]"#,
            "Invalid spec.names.shortNames[1]",
        ),
        (
            r#"spec.names.categories=["all","a b"]"#,
            "Invalid spec.names.categories[1]",
        ),
        (
            "spec.preserveUnknownFields=true",
            "Invalid spec.preserveUnknownFields",
        ),
    ]);
}

#[test]
fn versions() {
    base(tabs())
        .created(&[
            ("spec.versions=[]", "Invalid spec.versions, Invalid status.storedVersions"),
            (r#"spec.versions[0].name="1v""#, "Invalid spec.versions[0].name"),
            ("spec.versions[0].storage=false", "Invalid spec.versions, Invalid status.storedVersions"),
            ("spec.versions[0].schema=null", "Required spec.versions[0].schema.openAPIV3Schema"),
            ("spec.versions[0].schema={}", "Required spec.versions[0].schema.openAPIV3Schema"),
            (
                r#"spec.versions[1]={"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object"}}}"#,
                "Invalid spec.versions",
            ),
            (
                r#"spec.versions[1]={"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}"#,
                "Invalid spec.versions, Invalid status.storedVersions",
            ),
            (
                r#"spec.versions[0].deprecationWarning="old""#,
                "Invalid spec.versions[0].deprecationWarning",
            ),
            (
                r#"spec.versions[0].deprecated=true ; spec.versions[0].deprecationWarning="""#,
                "Invalid spec.versions[0].deprecationWarning",
            ),
            (
                r#"spec.versions[0].deprecated=true ; spec.versions[0].deprecationWarning="a\nb""#,
                "Invalid spec.versions[0].deprecationWarning",
            ),
            (
                r#"spec.versions[0].deprecated=true ; spec.versions[0].deprecationWarning="use v2""#,
                "",
            ),
        ]);
}

/// The paths of what all versions have in common are those of the spec.
#[test]
fn parts_of_versions() {
    base(tabs())
        .created(&[
            (
                "spec.versions[0].schema.openAPIV3Schema.nullable=true",
                "Forbidden spec.validation.openAPIV3Schema.nullable",
            ),
            (
                r#"spec.versions[1]={"name":"v2","schema":{"openAPIV3Schema":{"type":"object","nullable":true}}}"#,
                "Forbidden spec.versions[1].schema.openAPIV3Schema.nullable",
            ),
            (
                r#"spec.versions[0].subresources={"status":{}} ; spec.versions[0].schema.openAPIV3Schema.type="array""#,
                "Invalid spec.validation.openAPIV3Schema.type, Invalid spec.validation.openAPIV3Schema.type, Required spec.validation.openAPIV3Schema.items",
            ),
            (
                r#"spec.versions[0].subresources={"status":{}} ; spec.versions[0].schema.openAPIV3Schema.anyOf=[{}]"#,
                "Invalid spec.validation.openAPIV3Schema",
            ),
            (
                r#"spec.versions[0].subresources={"status":{}} ; spec.versions[0].schema.openAPIV3Schema.description="A tab.""#,
                "",
            ),
            (
                r#"spec.versions[0].subresources={"scale":{"specReplicasPath":"","statusReplicasPath":"status.x"}}"#,
                "Required spec.subresources.scale.specReplicasPath, Invalid spec.subresources.scale.statusReplicasPath",
            ),
            (
                r#"spec.versions[0].subresources={"scale":{"specReplicasPath":".status.x","statusReplicasPath":".spec.x","labelSelectorPath":".metadata.x"}}"#,
                "Invalid spec.subresources.scale.specReplicasPath, Invalid spec.subresources.scale.statusReplicasPath, Invalid spec.subresources.scale.labelSelectorPath",
            ),
            (
                r#"spec.versions[0].subresources={"scale":{"specReplicasPath":".spec.x","statusReplicasPath":".status.x","labelSelectorPath":".spec.x"}}"#,
                "",
            ),
            (
                r#"spec.versions[0].additionalPrinterColumns=[{"name":"","type":"","jsonPath":""}]"#,
                "Required spec.additionalPrinterColumns[0].name, Required spec.additionalPrinterColumns[0].type, Required spec.additionalPrinterColumns[0].JSONPath",
            ),
            (
                r#"spec.versions[0].additionalPrinterColumns=[{"name":"a","type":"text","format":"int","jsonPath":"spec"}]"#,
                "Invalid spec.additionalPrinterColumns[0].type, Invalid spec.additionalPrinterColumns[0].format, Invalid spec.additionalPrinterColumns[0].JSONPath",
            ),
            (
                r#"spec.versions[0].additionalPrinterColumns=[{"name":"a","type":"date","format":"date-time","jsonPath":".spec"}]"#,
                "",
            ),
            (
                r#"spec.versions[0].selectableFields=[{"jsonPath":".spec.color"},{"jsonPath":".spec.size"}]"#,
                "",
            ),
            (
                r#"spec.versions[0].selectableFields=[{"jsonPath":""},{"jsonPath":".spec.rest"},{"jsonPath":".spec.none"},{"jsonPath":".spec.color"},{"jsonPath":".spec.color"}]"#,
                "Required spec.selectableFields[0].jsonPath, Invalid spec.selectableFields[1].jsonPath, Invalid spec.selectableFields[2].jsonPath, Duplicate spec.selectableFields[4].jsonPath",
            ),
        ]);
}

#[test]
fn conversions() {
    base(tabs())
        .created(&[
            (r#"spec.conversion={"strategy":""}"#, "Required spec.conversion.strategy"),
            (r#"spec.conversion={"strategy":"Magic"}"#, "NotSupported spec.conversion.strategy"),
            (
                r#"spec.conversion={"strategy":"Webhook"}"#,
                "Required spec.conversion.webhookClientConfig, Required spec.conversion.conversionReviewVersions",
            ),
            (
                r#"spec.conversion={"strategy":"Webhook","webhook":{"clientConfig":{},"conversionReviewVersions":["v1"]}}"#,
                "Required spec.conversion.webhookClientConfig",
            ),
            (
                r#"spec.conversion={"strategy":"Webhook","webhook":{"clientConfig":{"url":"http://a.b"},"conversionReviewVersions":["v3"]}}"#,
                "Invalid spec.conversion.webhookClientConfig.url, Invalid spec.conversion.conversionReviewVersions",
            ),
            (
                r#"spec.conversion={"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"","namespace":"b","port":0}},"conversionReviewVersions":["v1","v1"]}}"#,
                "Required spec.conversion.webhookClientConfig.service.name, Invalid spec.conversion.webhookClientConfig.service.port, Invalid spec.conversion.conversionReviewVersions[1]",
            ),
            (
                r#"spec.conversion={"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a.b","caBundle":"eA=="},"conversionReviewVersions":["v1","v9"]}}"#,
                "",
            ),
            (
                r#"spec.conversion={"strategy":"None","webhook":{"clientConfig":{"url":"https://a.b"},"conversionReviewVersions":["v1"]}}"#,
                "Forbidden spec.conversion.webhookClientConfig, Forbidden spec.conversion.conversionReviewVersions",
            ),
        ]);
}

#[test]
fn approval() {
    let mut object = tabs();
    object["metadata"]["name"] = json!("tabs.x.k8s.io");
    object["spec"]["group"] = json!("x.k8s.io");
    base(object).created(&[
        (
            "",
            "Required metadata.annotations[api-approved.kubernetes.io]",
        ),
        (
            r#"metadata.annotations={"api-approved.kubernetes.io":"yes"}"#,
            "Invalid metadata.annotations[api-approved.kubernetes.io]",
        ),
        (
            r#"metadata.annotations={"api-approved.kubernetes.io":"unapproved"}"#,
            "",
        ),
        (
            r#"metadata.annotations={"api-approved.kubernetes.io":"https://a.b/1"}"#,
            "",
        ),
    ]);
}

#[test]
fn changes() {
    base(tabs())
        .updated(&[
            ("", r#"spec.scope="Cluster""#, ""),
            ("", r#"spec.names.kind="Sheet""#, ""),
            ("", r#"spec.group="example.org""#, "Invalid spec.group"),
            ("", r#"spec.names.plural="sheets""#, "Invalid spec.names.plural"),
            ("", r#"spec.versions[0].name="v2""#, "Invalid status.storedVersions[0]"),
            (
                "",
                r#"spec.versions[0].storage=false ; spec.versions[1]={"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}"#,
                "",
            ),
        ]);
}

#[test]
fn the_status() {
    base(tabs()).reported(&[
        (
            "",
            r#"status.acceptedNames={"plural":"a b","kind":"Tab"}"#,
            "Invalid status.acceptedNames.plural",
        ),
        (
            "",
            r#"status.acceptedNames={"plural":"tabs","kind":"Tab"}"#,
            "",
        ),
    ]);
}
