use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap()
}

fn all<'p>(names: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// Checks V12.
#[test]
fn every_list_of_containers_and_every_field_counts() {
    let container = |list: &str| {
        let name = |of: &str| format!("{list}-{of}");
        json!({
            "name": list,
            "env": [
                { "name": "a", "valueFrom": { "secretKeyRef": { "name": name("env"), "key": "k" } } },
                { "name": "b", "valueFrom": { "configMapKeyRef": { "name": name("env"), "key": "k" } } },
                { "name": "c", "value": "d" },
            ],
            "envFrom": [
                { "secretRef": { "name": name("from") } },
                { "configMapRef": { "name": name("from") } },
            ],
        })
    };
    let pod = pod(json!({
        "containers": [container("own")],
        "initContainers": [container("init")],
        "ephemeralContainers": [container("debug")],
    }));
    let expected = [
        "debug-env",
        "debug-from",
        "init-env",
        "init-from",
        "own-env",
        "own-from",
    ];
    assert_eq!(all(secrets(&pod)), expected);
    assert_eq!(all(config_maps(&pod)), expected);
}

/// Checks V12.
#[test]
fn every_type_of_volume_that_names_a_secret_counts() {
    let reference = |name: &str| json!({ "name": name });
    let volumes = json!([
        { "name": "1", "azureFile": { "secretName": "azure", "shareName": "s" } },
        { "name": "2", "cephfs": { "monitors": ["m"], "secretRef": reference("ceph") } },
        { "name": "3", "cinder": { "volumeID": "v", "secretRef": reference("cinder") } },
        { "name": "4", "flexVolume": { "driver": "d", "secretRef": reference("flex") } },
        { "name": "5", "projected": { "sources": [{ "secret": reference("projected") }] } },
        { "name": "6", "rbd": { "monitors": ["m"], "image": "i", "secretRef": reference("rbd") } },
        { "name": "7", "secret": { "secretName": "volume" } },
        { "name": "8", "scaleIO": {
            "gateway": "g", "system": "s", "volumeName": "v", "secretRef": reference("scale"),
        } },
        { "name": "9", "iscsi": {
            "targetPortal": "p", "iqn": "i", "lun": 1, "secretRef": reference("iscsi"),
        } },
        { "name": "10", "storageos": { "volumeName": "v", "secretRef": reference("storageos") } },
        { "name": "11", "csi": { "driver": "d", "nodePublishSecretRef": reference("csi") } },
        { "name": "12", "emptyDir": {} },
    ]);
    let pod = pod(json!({ "volumes": volumes, "imagePullSecrets": [{ "name": "pull" }, {}] }));
    let expected = [
        "azure",
        "ceph",
        "cinder",
        "csi",
        "flex",
        "iscsi",
        "projected",
        "pull",
        "rbd",
        "scale",
        "storageos",
        "volume",
    ];
    assert_eq!(all(secrets(&pod)), expected);
}

#[test]
fn claims_are_named_by_the_spec_or_made_for_the_pod() {
    let mut of_volumes = pod(json!({ "volumes": [
        { "name": "data", "persistentVolumeClaim": { "claimName": "given" } },
        { "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
    ] }));
    assert_eq!(
        claims(&of_volumes).collect::<Vec<_>>(),
        ["given", "web-scratch"]
    );
    of_volumes.spec = pod(json!({ "resourceClaims": [
        { "name": "a", "resourceClaimName": "given" },
        { "name": "b", "resourceClaimTemplateName": "made" },
        { "name": "c", "resourceClaimTemplateName": "waits" },
        { "name": "d", "resourceClaimTemplateName": "unneeded" },
    ] }))
    .spec;
    of_volumes.status = serde_json::from_value(json!({
        "resourceClaimStatuses": [{ "name": "b", "resourceClaimName": "web-b-x1" }, { "name": "d" }],
        "extendedResourceClaimStatus": { "requestMappings": [], "resourceClaimName": "extended" },
    }))
    .unwrap();
    assert_eq!(
        all(resource_claims(&of_volumes)),
        ["extended", "given", "web-b-x1"]
    );
}

/// Checks V13 (CVE-2025-4563).
#[test]
fn the_object_that_a_mirror_pod_names_is_found_whatever_names_it() {
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = "v".into();
        json!({ "volumes": [volume] })
    };
    let projected = |source: Value| volume(json!({ "projected": { "sources": [source] } }));
    let cases = [
        (
            json!({ "serviceAccountName": "default" }),
            "serviceaccounts",
        ),
        (
            json!({ "imagePullSecrets": [{ "name": "pull" }] }),
            "secrets",
        ),
        (
            json!({ "containers": [{ "name": "c", "envFrom": [{ "configMapRef": { "name": "m" } }] }] }),
            "configmaps",
        ),
        (
            json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "gpu" }] }),
            "resourceclaims",
        ),
        (
            volume(json!({ "configMap": {} })),
            "configmaps (via configmap volumes)",
        ),
        (
            volume(json!({ "secret": {} })),
            "secrets (via secret volumes)",
        ),
        (
            volume(json!({ "csi": { "driver": "d" } })),
            "csidrivers (via CSI volumes)",
        ),
        (
            volume(json!({ "glusterfs": { "endpoints": "e", "path": "p" } })),
            "endpoints (via glusterFS volumes)",
        ),
        (
            volume(json!({ "persistentVolumeClaim": { "claimName": "c" } })),
            "persistentvolumeclaims",
        ),
        (
            volume(json!({ "ephemeral": { "volumeClaimTemplate": { "spec": {} } } })),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            volume(json!({ "azureFile": { "secretName": "", "shareName": "s" } })),
            "secrets (via azureFile volumes)",
        ),
        (
            projected(json!({ "configMap": {} })),
            "configmaps (via projected volumes)",
        ),
        (
            projected(json!({ "secret": {} })),
            "secrets (via projected volumes)",
        ),
        (
            projected(json!({ "serviceAccountToken": { "path": "token" } })),
            "serviceaccounts (via projected volumes)",
        ),
        (
            projected(json!({ "clusterTrustBundle": { "path": "ca" } })),
            "clustertrustbundles",
        ),
        (
            projected(json!({ "podCertificate": { "signerName": "s", "keyType": "RSA3072" } })),
            "podcertificates",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(api_object(&pod(spec)), Ok(Some(expected)));
    }
    let plain = json!({ "containers": [{ "name": "c" }], "volumes": [
        { "name": "v", "hostPath": { "path": "/" } },
        { "name": "w", "projected": { "sources": [{ "downwardAPI": {} }] } },
    ] });
    assert_eq!(api_object(&pod(plain)), Ok(None));
    let unknown = api_object(&pod(volume(json!({}))));
    assert_eq!(unknown, Err("unknown volume type for volume  \"v\"".into()));
}
