//! The volumes of Pods.

use crate::pod::pod;

#[test]
fn sources() {
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a"}"#, ""),
            (r#"spec.volumes[2]={"name":"","emptyDir":{}}"#, "Required spec.volumes[2].name"),
            (r#"spec.volumes[2]={"name":"a.b","emptyDir":{}}"#, "Invalid spec.volumes[2].name"),
            (r#"spec.volumes[2]={"name":"A","emptyDir":{}}"#, "Invalid spec.volumes[2].name"),
            (r#"spec.volumes[2]={"name":"data","emptyDir":{}}"#, "Duplicate spec.volumes[2].name"),
            (r#"spec.volumes[2]={"name":"a","emptyDir":{},"hostPath":{"path":"/a"}}"#, "Forbidden spec.volumes[2].hostPath"),
            (r#"spec.volumes[2]={"name":"a","emptyDir":{"sizeLimit":"1Gi","medium":"Memory"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","emptyDir":{"sizeLimit":"-1"}}"#, "Forbidden spec.volumes[2].emptyDir.sizeLimit"),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"/a","type":"Directory"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":""}}"#, "Required spec.volumes[2].hostPath.path"),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"/a/../b"}}"#, "Invalid spec.volumes[2].hostPath.path"),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"/a","type":"Pipe"}}"#, "NotSupported spec.volumes[2].hostPath.type"),
            (r#"spec.volumes[2]={"name":"a","nfs":{"server":"a","path":"/a"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","nfs":{"server":"","path":"/a"}}"#, "Required spec.volumes[2].nfs.server"),
            (r#"spec.volumes[2]={"name":"a","nfs":{"server":"a","path":"a"}}"#, "Invalid spec.volumes[2].nfs.path"),
            (r#"spec.volumes[2]={"name":"a","persistentVolumeClaim":{"claimName":""}}"#, "Required spec.volumes[2].persistentVolumeClaim.claimName"),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":""}}"#, "Required spec.volumes[2].csi.driver"),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"a","nodePublishSecretRef":{}}}"#, "Required spec.volumes[2].csi.nodePublishSecretRef.name"),
            (r#"spec.volumes[2]={"name":"a","ephemeral":{}}"#, "Required spec.volumes[2].ephemeral.volumeClaimTemplate"),
            (r#"spec.volumes[2]={"name":"a","image":{"reference":"a","pullPolicy":"Always"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","image":{"pullPolicy":"Always"}}"#, "Required spec.volumes[2].image.reference"),
            (r#"spec.volumes[2]={"name":"a","image":{"reference":"a","pullPolicy":"Now"}}"#, "NotSupported spec.volumes[2].image.pullPolicy"),
            (r#"spec.volumes[2]={"name":"123","emptyDir":{"medium":"HugePages"}}"#, ""),
            (r#"spec.volumes[2]={"name":"123-empty","emptyDir":{"sizeLimit":"5"}}"#, ""),
            (r#"spec.volumes[2]={"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","emptyDir":{}}"#, "Invalid spec.volumes[2].name"),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"/mnt/path","type":"Socket"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"/mnt/path/..","type":"Directory"}}"#, "Invalid spec.volumes[2].hostPath.path"),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"","type":"Pipe"}}"#, "Required spec.volumes[2].hostPath.path"),
            (r#"spec.volumes[2]={"name":"a","nfs":{"server":"my-server","path":""}}"#, "Required spec.volumes[2].nfs.path, Invalid spec.volumes[2].nfs.path"),
            (r#"spec.volumes[2]={"name":"a","image":{"reference":"quay.io/my/artifact:v1"}}"#, ""),
            (r#"spec.volumes[2]={"name":"","image":{"reference":"quay.io/my/artifact:v1"}}"#, "Required spec.volumes[2].name"),
            ("spec.volumes=[{}]", "Required spec.volumes[0].name"),
            // An invalid volume cannot be mounted.
            (
                r#"spec.volumes[2]={"name":"A","emptyDir":{}} ; spec.containers[0].volumeMounts=[{"name":"A","mountPath":"/a"}]"#,
                "Invalid spec.volumes[2].name, NotFound spec.containers[0].volumeMounts[0].name",
            ),
        ]);
}

#[test]
fn files() {
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"a","path":"b/c","mode":256}],"defaultMode":511}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","secret":{}}"#, "Required spec.volumes[2].secret.secretName"),
            // Checks F19.
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","defaultMode":99999}}"#, "Invalid spec.volumes[2].secret.defaultMode"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","defaultMode":-1}}"#, "Invalid spec.volumes[2].secret.defaultMode"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"","path":"b"}]}}"#, "Required spec.volumes[2].secret.items[0].key"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"a"}]}}"#, "Required spec.volumes[2].secret.items[0].path"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"a","path":"../../etc/passwd"}]}}"#, "Invalid spec.volumes[2].secret.items[0].path"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"a","path":"/b"}]}}"#, "Invalid spec.volumes[2].secret.items[0].path"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"a","path":"..b"}]}}"#, "Invalid spec.volumes[2].secret.items[0].path"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"a","path":"b","mode":512}]}}"#, "Invalid spec.volumes[2].secret.items[0].mode"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"k","path":"p/..p/p../p..p","mode":420}]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"k","path":"p/.."}]}}"#, "Invalid spec.volumes[2].secret.items[0].path"),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"s","items":[{"key":"k","path":"p","mode":-1}]}}"#, "Invalid spec.volumes[2].secret.items[0].mode"),
            (r#"spec.volumes[2]={"name":"a","configMap":{"name":"m","items":[{"key":"key","path":"dir/filename","mode":420}],"defaultMode":420}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","configMap":{"name":"m","items":[{"key":"key","path":""}],"defaultMode":-1}}"#, "Required spec.volumes[2].configMap.items[0].path, Invalid spec.volumes[2].configMap.defaultMode"),
            (r#"spec.volumes[2]={"name":"a","configMap":{"name":"m","items":[{"key":"key","path":"../foo"}]}}"#, "Invalid spec.volumes[2].configMap.items[0].path"),
            (
                r#"spec.volumes[2]={"name":"a","downwardAPI":{"defaultMode":420,"items":[{"path":"a b","fieldRef":{"fieldPath":"metadata.labels['test.example.com/key']"}},{"path":"c","mode":420,"fieldRef":{"fieldPath":"metadata.annotations['TEST.EXAMPLE.COM/key']"}},{"path":"path/./withdot","fieldRef":{"fieldPath":"metadata.annotations"}},{"path":"path/with/embedded..dotdot","fieldRef":{"fieldPath":"metadata.namespace"}},{"path":"path/with/leading/..dotdot","fieldRef":{"fieldPath":"metadata.uid"}}]}}"#,
                "",
            ),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"a","resourceFieldRef":{"containerName":"web","resource":"requests.memory"}},{"path":"b","resourceFieldRef":{"containerName":"web","resource":"limits.hugepages-2Mi"}}]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"/absolutepath","mode":-1,"fieldRef":{"fieldPath":"metadata.labels"}}]}}"#, "Invalid spec.volumes[2].downwardAPI.path, Invalid spec.volumes[2].downwardAPI.mode"),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"..badDirName/goodFileName","fieldRef":{"fieldPath":"metadata.labels"}}],"defaultMode":-1}}"#, "Invalid spec.volumes[2].downwardAPI.path, Invalid spec.volumes[2].downwardAPI.defaultMode"),
            (r#"spec.volumes[2]={"name":"a","configMap":{}}"#, "Required spec.volumes[2].configMap.name"),
            (r#"spec.volumes[2]={"name":"a","configMap":{"name":"m","defaultMode":512}}"#, "Invalid spec.volumes[2].configMap.defaultMode"),
            (r#"spec.volumes[2]={"name":"a","configMap":{"name":"m","items":[{"key":"a","path":"b/../.."}]}}"#, "Invalid spec.volumes[2].configMap.items[0].path"),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"","fieldRef":{"fieldPath":"metadata.labels"}}]}}"#, "Required spec.volumes[2].downwardAPI.path"),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"../a","fieldRef":{"fieldPath":"metadata.labels"}}]}}"#, "Invalid spec.volumes[2].downwardAPI.path"),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"a"}]}}"#, "Required spec.volumes[2].downwardAPI"),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"status.podIP"}}]}}"#, "NotSupported spec.volumes[2].downwardAPI.fieldRef.fieldPath"),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"a","resourceFieldRef":{"resource":"limits.cpu"}}]}}"#, "Required spec.volumes[2].downwardAPI.resourceFieldRef.containerName"),
            (
                r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"metadata.name"},"resourceFieldRef":{"containerName":"web","resource":"limits.cpu"}}]}}"#,
                "Invalid spec.volumes[2].downwardAPI",
            ),
            (r#"spec.volumes[2]={"name":"a","downwardAPI":{"items":[{"path":"a","mode":512,"fieldRef":{"fieldPath":"metadata.name"}}],"defaultMode":512}}"#, "Invalid spec.volumes[2].downwardAPI.mode, Invalid spec.volumes[2].downwardAPI.defaultMode"),
        ]);
}

#[test]
fn projections() {
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"secret":{"name":"s"}},{"configMap":{"name":"m","items":[{"key":"a","path":"b"}]}}]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[],"defaultMode":512}}"#, "Invalid spec.volumes[2].projected.defaultMode"),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"secret":{}}]}}"#, "Required spec.volumes[2].projected.sources[0].secret.name"),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"secret":{"name":"s"},"configMap":{"name":"m"}}]}}"#, "Forbidden spec.volumes[2].projected.sources[0]"),
            (
                r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"secret":{"name":"s","items":[{"key":"a","path":"c"}]}},{"configMap":{"name":"m","items":[{"key":"b","path":"c"}]}}]}}"#,
                "Invalid spec.volumes[2].projected",
            ),
            (
                r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"secret":{}},{"secret":{},"downwardAPI":{}}]}}"#,
                "Required spec.volumes[2].projected.sources[0].secret.name, Required spec.volumes[2].projected.sources[1].secret.name, Forbidden spec.volumes[2].projected.sources[1]",
            ),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"clusterTrustBundle":{"name":"foo","path":"foo-path"}}]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"clusterTrustBundle":{"signerName":"example.com/foo","labelSelector":{"matchLabels":{"version":"live"}},"path":"foo-path"}}]}}"#, ""),
            (r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"token"}}]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"token"}}]}}"#, "Forbidden spec.volumes[2].projected.sources[0].serviceAccountToken"),
            (r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":600}}]}}"#, ""),
            (r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":599}}]}}"#, "Invalid spec.volumes[2].projected.sources[0].serviceAccountToken.expirationSeconds"),
            (r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":4294967297}}]}}"#, "Invalid spec.volumes[2].projected.sources[0].serviceAccountToken.expirationSeconds"),
            (r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{}}]}}"#, "Required spec.volumes[2].projected.path"),
            (r#"spec.serviceAccountName="default" ; spec.volumes[2]={"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"../a"}}]}}"#, "Invalid spec.volumes[2].projected.path"),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"clusterTrustBundle":{"path":"a"}}]}}"#, "Required spec.volumes[2].projected.sources[0].clusterTrustBundle"),
            (r#"spec.volumes[2]={"name":"a","projected":{"sources":[{"clusterTrustBundle":{"name":"a","signerName":"b.io/c","path":"a"}}]}}"#, "Invalid spec.volumes[2].projected.sources[0].clusterTrustBundle"),
        ]);
}
