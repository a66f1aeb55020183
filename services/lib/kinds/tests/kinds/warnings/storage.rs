//! Volumes, claims, classes, drivers and slices of devices.

use serde_json::json;

use crate::table::Base;

#[test]
fn persistent_volumes() {
    const RECYCLE: &str = "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
    let base = Base {
        resource: "persistentvolumes",
        object: json!({"metadata": {"name": "a"}, "spec": {
            "capacity": {"storage": "10G"},
            "accessModes": ["ReadWriteOnce"],
            "nfs": {"server": "a", "path": "/a"},
        }}),
    };
    base.warned(&[
        ("", &[]),
        (
            r#"metadata.annotations={"volume.beta.kubernetes.io/storage-class":"a","volume.beta.kubernetes.io/mount-options":"a"}"#,
            &[
                r#"metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead"#,
                r#"metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead"#,
            ],
        ),
        (
            r#"spec.persistentVolumeReclaimPolicy="Recycle""#,
            &[RECYCLE],
        ),
        (
            r#"spec.nodeAffinity={"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"beta.kubernetes.io/os","operator":"Exists"}]}]}}"#,
            &[r#"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead"#],
        ),
        (
            r#"spec.nfs=null ; spec.cephfs={"monitors":["a"]}"#,
            &["spec.cephfs: deprecated in v1.28, non-functional in v1.31+"],
        ),
        (
            r#"spec.nfs=null ; spec.photonPersistentDisk={"pdID":"a"}"#,
            &["spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"],
        ),
        (
            r#"spec.nfs=null ; spec.scaleIO={"gateway":"a","system":"a","volumeName":"a","secretRef":{"name":"a","namespace":"a"}}"#,
            &["spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"],
        ),
        (
            r#"spec.nfs=null ; spec.storageos={"volumeName":"a","volumeNamespace":"a"}"#,
            &["spec.storageOS: deprecated in v1.22, non-functional in v1.25+"],
        ),
        (
            r#"spec.nfs=null ; spec.glusterfs={"endpoints":"a","path":"a"}"#,
            &["spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"],
        ),
        (
            r#"spec.nfs=null ; spec.rbd={"monitors":["a"],"image":"a"}"#,
            &["spec.rbd: deprecated in v1.28, non-functional in v1.31+"],
        ),
    ]);
    let recycle = r#"spec.persistentVolumeReclaimPolicy="Recycle""#;
    base.warned_of_update(&[("", recycle, &[RECYCLE]), (recycle, "", &[RECYCLE])]);
    base.warned_of_status(&[(recycle, r#"status.phase="Available""#, &[])]);
}

#[test]
fn claims() {
    const CLASS: &str = r#"metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead"#;
    let base = Base {
        resource: "persistentvolumeclaims",
        object: json!({"metadata": {"name": "a"}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10G"}},
        }}),
    };
    let annotation = r#"metadata.annotations={"volume.beta.kubernetes.io/storage-class":"a"}"#;
    base.warned(&[
        ("", &[]),
        (annotation, &[CLASS]),
        (
            r#"spec.resources={"requests":{"storage":"200m"},"limits":{"storage":"1.5"}}"#,
            &[
                r#"spec.resources.requests[storage]: fractional byte value "200m" is invalid, must be an integer"#,
                r#"spec.resources.limits[storage]: fractional byte value "1500m" is invalid, must be an integer"#,
            ],
        ),
    ]);
    base.warned_of_update(&[(annotation, r#"metadata.labels={"a":"b"}"#, &[CLASS])]);
    base.warned_of_status(&[(annotation, r#"status.phase="Bound""#, &[])]);
}

#[test]
fn classes_and_capacities() {
    const LABEL: &str = r#"allowedTopologies[0].matchLabelExpressions[1].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#;
    let base = Base {
        resource: "storageclasses.storage.k8s.io",
        object: json!({"metadata": {"name": "a"}, "provisioner": "a.io/b"}),
    };
    let change = r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":["b"]},{"key":"failure-domain.beta.kubernetes.io/zone","values":["a"]}]}]"#;
    base.warned(&[("", &[]), (change, &[LABEL])]);
    base.warned_of_update(&[("", change, &[LABEL])]);
    let base = Base {
        resource: "csistoragecapacities.storage.k8s.io",
        object: json!({
            "metadata": {"name": "a"},
            "storageClassName": "a",
            "nodeTopology": {
                "matchLabels": {"beta.kubernetes.io/arch": "a"},
                "matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}],
            },
        }),
    };
    let warnings: &[&str] = &[
        r#"nodeTopology.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead"#,
        r#"nodeTopology.matchLabels.beta.kubernetes.io/arch: deprecated since v1.14; use "kubernetes.io/arch" instead"#,
    ];
    base.warned(&[("", warnings), ("nodeTopology=null", &[])]);
    base.warned_of_update(&[("", r#"capacity="1Gi""#, warnings)]);
}

#[test]
fn drivers() {
    const SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
    let base = Base {
        resource: "csidrivers.storage.k8s.io",
        object: json!({"metadata": {"name": "a.io"}, "spec": {}}),
    };
    let requests = r#"spec.tokenRequests=[{"audience":"a"}]"#;
    base.warned(&[
        ("", &[]),
        (requests, &[SECRETS]),
        (
            r#"spec.tokenRequests=[{"audience":"a"}] ; spec.serviceAccountTokenInSecrets=false"#,
            &[],
        ),
    ]);
    base.warned_of_update(&[
        ("", requests, &[SECRETS]),
        (requests, r#"metadata.labels={"a":"b"}"#, &[]),
        (requests, "spec.tokenRequests=[]", &[]),
    ]);
}

#[test]
fn slices_of_devices() {
    const DRIVER: &str = r#"spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase characters"#;
    let base = Base {
        resource: "resourceslices.resource.k8s.io",
        object: json!({"metadata": {"name": "a"}, "spec": {
            "driver": "GPU.example.com",
            "nodeName": "node-1",
            "pool": {"name": "a", "resourceSliceCount": 1},
            "devices": [{"name": "a"}],
        }}),
    };
    base.warned(&[("", &[DRIVER]), (r#"spec.driver="gpu.example.com""#, &[])]);
    base.warned_of_update(&[("", r#"metadata.labels={"a":"b"}"#, &[DRIVER])]);
}
