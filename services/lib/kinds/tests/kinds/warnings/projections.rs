//! Volumes of Pods, and the files that are projected into them.

use crate::pod::pod;

#[test]
fn removed_types() {
    pod().warned(&[
        (
            r#"spec.volumes[2]={"name":"a","photonPersistentDisk":{"pdID":"a"}}"#,
            &["spec.volumes[2].photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"a"}}"#,
            &["spec.volumes[2].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","scaleIO":{"gateway":"a","system":"a","secretRef":{"name":"a"},"volumeName":"a"}}"#,
            &["spec.volumes[2].scaleIO: deprecated in v1.16, non-functional in v1.22+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","flocker":{"datasetName":"a"}}"#,
            &["spec.volumes[2].flocker: deprecated in v1.22, non-functional in v1.25+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","storageos":{"volumeName":"a"}}"#,
            &["spec.volumes[2].storageOS: deprecated in v1.22, non-functional in v1.25+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"a:1","volume":"a"}}"#,
            &["spec.volumes[2].quobyte: deprecated in v1.22, non-functional in v1.25+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","glusterfs":{"endpoints":"a","path":"a"}}"#,
            &["spec.volumes[2].glusterfs: deprecated in v1.25, non-functional in v1.26+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","cephfs":{"monitors":["a"]}}"#,
            &["spec.volumes[2].cephfs: deprecated in v1.28, non-functional in v1.31+"],
        ),
        (
            r#"spec.volumes[2]={"name":"a","rbd":{"monitors":["a"],"image":"a"}}"#,
            &["spec.volumes[2].rbd: deprecated in v1.28, non-functional in v1.31+"],
        ),
    ]);
}

#[test]
fn claims() {
    pod().warned(&[(
        r#"spec.volumes[2]={"name":"a","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1500m"},"limits":{"storage":"200m"}}}}}}"#,
        &[
            r#"spec.volumes[2].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer"#,
            r#"spec.volumes[2].ephemeral.volumeClaimTemplate.spec.resources.limits[storage]: fractional byte value "200m" is invalid, must be an integer"#,
        ],
    )]);
}

#[test]
fn paths_of_one_source() {
    pod().warned(&[
        (
            r#"spec.volumes[2]={"name":"a","configMap":{"name":"foo","items":[{"key":"a","path":"test"},{"key":"b","path":"test"},{"key":"c","path":"tests"}]}}"#,
            &[r#"volume "a" (ConfigMap "foo"): overlapping paths: "test" with "test""#],
        ),
        (
            r#"spec.volumes[2]={"name":"a","secret":{"secretName":"foo","items":[{"key":"a","path":"test"},{"key":"b","path":"test/app"}]}}"#,
            &[r#"volume "a" (Secret "foo"): overlapping paths: "test/app" with "test""#],
        ),
        (
            r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"test/app/","fieldRef":{"fieldPath":"metadata.name"}},{"path":"test","fieldRef":{"fieldPath":"metadata.name"}}]}}"#,
            &[r#"volume "a" (DownwardAPI): overlapping paths: "test" with "test/app""#],
        ),
    ]);
}

#[test]
fn paths_of_several_sources() {
    pod().warned(&[
        (
            r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"configMap":{"name":"foo","items":[{"key":"a","path":"test"}]}},{"secret":{"name":"bar","items":[{"key":"a","path":"test/b"}]}}]}}"#,
            &[r#"volume "a" (Projected): overlapping paths: "test/b" (Secret "bar") with "test" (ConfigMap "foo")"#],
        ),
        (
            r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"downwardAPI":{"items":[{"path":"test","fieldRef":{"fieldPath":"metadata.name"}}]}},{"serviceAccountToken":{"path":"test/token"}}]}}"#,
            &[r#"volume "a" (Projected): overlapping paths: "test/token" (ServiceAccountToken) with "test" (DownwardAPI)"#],
        ),
        (
            r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"clusterTrustBundle":{"name":"foo","path":"test"}},{"clusterTrustBundle":{"signerName":"a.io/b","labelSelector":{},"path":"test/b"}}]}}"#,
            &[r#"volume "a" (Projected): overlapping paths: "test/b" (ClusterTrustBundle "a.io/b") with "test" (ClusterTrustBundle "foo")"#],
        ),
        (
            r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"test"}},{"podCertificate":{"signerName":"a.io/b","keyType":"ED25519","keyPath":"test/key","certificateChainPath":"test/chain"}},{"podCertificate":{"signerName":"a.io/b","keyType":"ED25519","credentialBundlePath":"test/all"}}]}}"#,
            &[
                r#"volume "a" (Projected): overlapping paths: "test/chain" (PodCertificate chain) with "test" (ServiceAccountToken)"#,
                r#"volume "a" (Projected): overlapping paths: "test/key" (PodCertificate key) with "test" (ServiceAccountToken)"#,
                r#"volume "a" (Projected): overlapping paths: "test/all" (PodCertificate credential bundle) with "test" (ServiceAccountToken)"#,
            ],
        ),
        (
            r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{}]}}"#,
            &[r#"volume "a" (Projected) has no sources provided"#],
        ),
    ]);
}
