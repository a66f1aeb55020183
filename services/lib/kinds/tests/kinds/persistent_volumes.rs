//! PersistentVolumes, claims and the kinds of storage drivers: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, object: Value) -> Base {
    Base { resource, object }
}

fn volume() -> Base {
    let spec = json!({
        "capacity": {"storage": "10G"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/foo", "type": "Directory"},
        "storageClassName": "valid",
    });
    base(
        "persistentvolumes",
        json!({"metadata": {"name": "foo"}, "spec": spec}),
    )
}

fn claim() -> Base {
    let spec = json!({
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "resources": {"requests": {"storage": "10G"}},
        "selector": {"matchExpressions": [{"key": "key2", "operator": "Exists"}]},
        "storageClassName": "valid",
    });
    base(
        "persistentvolumeclaims",
        json!({"metadata": {"name": "foo"}, "spec": spec}),
    )
}

#[test]
fn volumes() {
    volume()
        .created(&[
            ("", ""),
            (r#"spec.volumeMode="Block""#, ""),
            (r#"spec.volumeMode="fakeVolumeMode""#, "NotSupported spec.volumeMode"),
            (r#"metadata.name="file-volume-""#, "Invalid metadata.name"),
            (r#"spec.storageClassName="-invalid-""#, "Invalid spec.storageClassName"),
            (r#"spec.persistentVolumeReclaimPolicy="Retain""#, ""),
            (
                r#"spec.persistentVolumeReclaimPolicy="fakeReclaimPolicy""#,
                "NotSupported spec.persistentVolumeReclaimPolicy",
            ),
            (
                r#"spec.persistentVolumeReclaimPolicy="Recycle" ; spec.hostPath.path="/a/..""#,
                "Invalid spec.hostPath.path",
            ),
            (
                r#"spec.persistentVolumeReclaimPolicy="Recycle" ; spec.hostPath.path="/""#,
                "Forbidden spec.persistentVolumeReclaimPolicy",
            ),
            ("spec.hostPath=null", "Required spec"),
            ("spec.capacity=null", "Required spec.capacity, NotSupported spec.capacity"),
            (r#"spec.capacity={"cpu":"1"}"#, "NotSupported spec.capacity"),
            (r#"spec.capacity={"storage":"0"}"#, "Invalid spec.capacity[storage]"),
            ("spec.accessModes=null", "Required spec.accessModes"),
            (r#"spec.accessModes=["fakeMode"]"#, "NotSupported spec.accessModes"),
            (
                r#"spec.accessModes=["ReadWriteOnce","ReadWriteOncePod"]"#,
                "Forbidden spec.accessModes",
            ),
            (
                r#"spec.gcePersistentDisk={"pdName":"foo","fsType":"ext4"}"#,
                "Forbidden spec.gcePersistentDisk",
            ),
            (r#"spec.hostPath=null ; spec.gcePersistentDisk={}"#, "Required spec.persistentDisk.pdName"),
            (r#"spec.hostPath.path="/foo/..""#, "Invalid spec.hostPath.path"),
            (r#"spec.hostPath.type="invalid""#, "NotSupported spec.hostPath.type"),
            (
                r#"spec.hostPath=null ; spec.local={"path":"/foo"}"#,
                "Required spec.nodeAffinity",
            ),
            (
                r#"spec.hostPath=null ; spec.local={"path":"/foo"} ; spec.nodeAffinity={"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}"#,
                "",
            ),
            (r#"spec.nodeAffinity={}"#, "Required spec.nodeAffinity.required"),
            (
                r#"spec.nodeAffinity={"required":{"nodeSelectorTerms":[]}}"#,
                "Required spec.nodeAffinity.required.nodeSelectorTerms",
            ),
            (
                r#"spec.hostPath=null ; spec.glusterfs={"endpoints":"a","path":"b","endpointsNamespace":"my-ns_"}"#,
                "Invalid spec.glusterfs.endpointsNamespace",
            ),
            (
                r#"spec.hostPath=null ; spec.cinder={"volumeID":"a","secretRef":{"name":"b"}}"#,
                "Required spec.cinder.secretRef.namespace",
            ),
            (
                r#"spec.hostPath=null ; spec.storageos={"volumeName":"a","secretRef":{}}"#,
                "Required spec.storageos.secretRef.name, Required spec.storageos.secretRef.namespace",
            ),
            (
                r#"spec.hostPath=null ; spec.azureFile={"secretName":"a","shareName":"b","secretNamespace":""}"#,
                "Required spec.azureFile.secretNamespace",
            ),
            (
                r#"spec.hostPath=null ; spec.csi={"driver":"test-driver","volumeHandle":"test-123","readOnly":true}"#,
                "",
            ),
            (
                r#"spec.hostPath=null ; spec.csi={"driver":"comtestdriver/","controllerPublishSecretRef":{}}"#,
                "Invalid spec.csi.driver, Required spec.csi.volumeHandle, Required spec.csi.controllerPublishSecretRef.name, Required spec.csi.controllerPublishSecretRef.namespace",
            ),
            (r#"spec.volumeAttributesClassName="a""#, "Required spec.csi"),
            (
                r#"metadata.annotations={"volume.beta.kubernetes.io/mount-options":"ro"}"#,
                "Forbidden metadata.annotations.volume.beta.kubernetes.io/mount-options",
            ),
            (
                r#"spec.hostPath=null ; spec.nfs={"server":"a","path":"/b"} ; metadata.annotations={"volume.beta.kubernetes.io/mount-options":"ro"}"#,
                "",
            ),
        ]);
    let csi = r#"spec.hostPath=null ; spec.csi={"driver":"a","volumeHandle":"b"}"#;
    volume().updated(&[
        ("", r#"spec.capacity.storage="1Ti""#, ""),
        ("", r#"spec.claimRef={"name":"a","namespace":"b"}"#, ""),
        (
            "",
            r#"spec.hostPath.path="/bar""#,
            "Forbidden spec.persistentvolumesource",
        ),
        ("", r#"spec.volumeMode="Block""#, "Invalid volumeMode"),
        (
            csi,
            r#"spec.csi.controllerExpandSecretRef={"name":"a","namespace":"b"}"#,
            "",
        ),
        (
            csi,
            r#"spec.csi.driver="c""#,
            "Forbidden spec.persistentvolumesource",
        ),
    ]);
    volume().reported(&[("", r#"status.phase="Bound""#, "")]);
}

#[test]
fn claims() {
    claim()
        .created(&[
            ("", ""),
            (r#"spec.volumeMode="Block""#, ""),
            ("spec.accessModes=null", "Required spec.accessModes"),
            (r#"spec.accessModes=["fakeMode"]"#, "NotSupported spec.accessModes"),
            (r#"spec.accessModes=["ReadWriteOncePod"]"#, ""),
            (
                r#"spec.accessModes=["ReadWriteOncePod","ReadWriteMany"]"#,
                "Forbidden spec.accessModes",
            ),
            ("spec.resources=null", "Required spec.resources[storage]"),
            (r#"spec.resources.requests.storage="-10G""#, "Invalid spec.resources[storage]"),
            (r#"spec.resources.requests.storage="0""#, "Invalid spec.resources[storage]"),
            (
                r#"spec.selector.matchExpressions[0].operator="InvalidOp""#,
                "Invalid spec.selector.matchExpressions[0].operator",
            ),
            (r#"spec.storageClassName="-invalid-""#, "Invalid spec.storageClassName"),
            (r#"spec.volumeMode="fakeVolumeMode""#, "NotSupported spec.volumeMode"),
            (r#"spec.dataSource={"kind":"PersistentVolumeClaim","name":"pvc1"}"#, ""),
            // As upstream, other kinds are dropped.
            (r#"spec.dataSource={"apiGroup":"","kind":"Pod","name":"a"}"#, ""),
            (
                r#"spec.dataSourceRef={"kind":"PersistentVolumeClaim","name":""}"#,
                "Required spec.dataSource.name, Required spec.dataSourceRef.name",
            ),
            (
                r#"spec.dataSource={"kind":"PersistentVolumeClaim","name":"pvc1"} ; spec.dataSourceRef={"kind":"PersistentVolumeClaim","name":"pvc2"}"#,
                "Invalid spec",
            ),
        ]);
    let immutable = "Forbidden spec";
    claim()
        .updated(&[
            ("", r#"metadata.labels={"a":"b"}"#, ""),
            ("", r#"spec.volumeName="volume""#, ""),
            (r#"spec.volumeName="volume""#, r#"spec.volumeName="other""#, immutable),
            ("", r#"spec.accessModes=["ReadWriteOnce"]"#, immutable),
            ("", r#"spec.resources.requests.storage="20G""#, immutable),
            ("", r#"spec.storageClassName="other""#, immutable),
            ("spec.storageClassName=null", r#"spec.storageClassName="first""#, ""),
            ("", r#"spec.volumeMode="Block""#, "Forbidden spec, Invalid volumeMode"),
            (
                r#"metadata.annotations={"volume.beta.kubernetes.io/storage-class":"a"} ; spec.storageClassName=null"#,
                r#"metadata.annotations={"volume.beta.kubernetes.io/storage-class":"b"}"#,
                "Invalid metadata.annotations.volume.beta.kubernetes.io/storage-class",
            ),
        ]);
    claim().reported(&[
        (
            "",
            r#"status={"phase":"Bound","capacity":{"storage":"10G"}}"#,
            "",
        ),
        (
            "",
            r#"status.capacity={"storage":"-1"}"#,
            "Invalid status.capacity[storage]",
        ),
        (
            "",
            r#"status.allocatedResources={"cpu":"1"}"#,
            "NotSupported status.allocatedResources",
        ),
        (
            "",
            r#"status.allocatedResourceStatuses={"storage":"NodeResizePending"}"#,
            "",
        ),
        (
            "",
            r#"status.allocatedResourceStatuses={"storage":"foo"}"#,
            "NotSupported status.allocatedResourceStatuses",
        ),
    ]);
}

#[test]
fn classes() {
    let class = json!({
        "metadata": {"name": "foo"},
        "provisioner": "kubernetes.io/foo-provisioner",
        "parameters": {"foo/parameter": "free-form-string"},
    });
    let class = base("storageclasses.storage.k8s.io", class);
    class
        .created(&[
            ("", ""),
            ("parameters=null", ""),
            (r#"reclaimPolicy="Retain""#, ""),
            (r#"provisioner="Foo.Example.com""#, ""),
            ("provisioner=null", "Required provisioner"),
            (r#"provisioner="kubernetes.io/invalid/provisioner""#, "Invalid provisioner"),
            (r#"parameters={"":"value"}"#, "Invalid parameters"),
            (r#"reclaimPolicy="xyz""#, "NotSupported reclaimPolicy"),
            (r#"volumeBindingMode="WaitForFirstConsumer""#, ""),
            (r#"volumeBindingMode="foo""#, "NotSupported volumeBindingMode"),
            (
                r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":["x","y"]},{"key":"b","values":["z"]}]}]"#,
                "",
            ),
            ("allowedTopologies=[{}]", "Duplicate allowedTopologies[0].matchLabelExpressions"),
            (
                r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"/a","values":["x"]},{"key":"/a","values":[]}]}]"#,
                "Invalid allowedTopologies[0].matchLabelExpressions[0].key, Required allowedTopologies[0].matchLabelExpressions[1].values, Invalid allowedTopologies[0].matchLabelExpressions[1].key, Duplicate allowedTopologies[0].matchLabelExpressions[1].key",
            ),
            (
                r#"allowedTopologies=[{"matchLabelExpressions":[{"key":"a","values":["x","y"]}]},{"matchLabelExpressions":[{"key":"a","values":["y","x"]}]}]"#,
                "Duplicate allowedTopologies[1].matchLabelExpressions",
            ),
        ]);
    class.updated(&[
        ("", "allowVolumeExpansion=true", ""),
        ("", r#"parameters={"a":"b"}"#, "Invalid parameters"),
        ("", r#"provisioner="other""#, "Invalid provisioner"),
        ("", r#"reclaimPolicy="Retain""#, "Invalid reclaimPolicy"),
        (
            "",
            r#"volumeBindingMode="WaitForFirstConsumer""#,
            "Invalid volumeBindingMode",
        ),
    ]);
    let class =
        json!({"metadata": {"name": "foo"}, "driverName": "foo", "parameters": {"foo": "bar"}});
    let class = base("volumeattributesclasses.storage.k8s.io", class);
    class.created(&[
        ("", ""),
        ("driverName=null", "Required driverName"),
        (
            r#"driverName="kubernetes.io/invalid/provisioner""#,
            "Invalid driverName",
        ),
        ("parameters=null", "Required parameters"),
    ]);
    class.updated(&[
        ("", r#"driverName="bar""#, "Forbidden driverName"),
        ("", r#"parameters={"a":"b"}"#, "Forbidden parameters"),
    ]);
}

#[test]
fn drivers() {
    let driver = base(
        "csidrivers.storage.k8s.io",
        json!({"metadata": {"name": "test-driver"}}),
    );
    driver.created(&[
        ("", ""),
        (r#"metadata.name="_Driver_""#, "Invalid metadata.name"),
        (r#"spec.fsGroupPolicy="File""#, ""),
        (
            r#"spec.fsGroupPolicy="invalid""#,
            "NotSupported spec.fsGroupPolicy",
        ),
        (
            r#"spec.volumeLifecycleModes=["Persistent","Ephemeral"]"#,
            "",
        ),
        (
            r#"spec.volumeLifecycleModes=["no-such-mode"]"#,
            "NotSupported spec.volumeLifecycleModes",
        ),
        (
            r#"spec.tokenRequests=[{"audience":"gcp"},{"audience":"aws"}]"#,
            "",
        ),
        (
            r#"spec.tokenRequests=[{"audience":"gcp"},{"audience":"gcp"}]"#,
            "Duplicate spec.tokenRequests[1].audience",
        ),
        (
            r#"spec.tokenRequests=[{"audience":"gcp","expirationSeconds":10}]"#,
            "Invalid spec.tokenRequests[0].expirationSeconds",
        ),
        ("spec.nodeAllocatableUpdatePeriodSeconds=10", ""),
        (
            "spec.nodeAllocatableUpdatePeriodSeconds=9",
            "Invalid spec.nodeAllocatableUpdatePeriodSeconds",
        ),
        (
            "spec.serviceAccountTokenInSecrets=true",
            "Invalid spec.serviceAccountTokenInSecrets",
        ),
    ]);
    driver.updated(&[
        ("", "spec.podInfoOnMount=true", ""),
        (
            "",
            "spec.attachRequired=false",
            "Invalid spec.attachedRequired",
        ),
        (
            "",
            r#"spec.volumeLifecycleModes=["Ephemeral"]"#,
            "Invalid spec.volumeLifecycleModes",
        ),
    ]);
    let drivers = json!([{"name": "io.kubernetes.storage.csi.driver-1", "nodeID": "node1", "topologyKeys": ["company.com/zone1"]}]);
    let node = base(
        "csinodes.storage.k8s.io",
        json!({"metadata": {"name": "foo1"}, "spec": {"drivers": drivers}}),
    );
    node.created(&[
        ("", ""),
        ("spec.drivers=[]", ""),
        (r#"spec.drivers[0].name="a_b""#, "Invalid spec.drivers[0].name"),
        ("spec.drivers[0].name=null", "Required spec.drivers[0].name"),
        ("spec.drivers[0].nodeID=null", "Required spec.drivers[0].nodeID"),
        ("spec.drivers[0].allocatable={\"count\":-1}", "Invalid spec.drivers[0].allocatable.count"),
        (r#"spec.drivers[0].topologyKeys=["a","a"]"#, "Duplicate spec.drivers[0]"),
        (
            r#"spec.drivers[1]={"name":"io.kubernetes.storage.csi.driver-1","nodeID":"a","topologyKeys":null}"#,
            "Duplicate spec.drivers[1].name",
        ),
    ]);
    node.updated(&[
        ("", "spec.drivers=[]", ""),
        ("", r#"spec.drivers[0].allocatable={"count":3}"#, ""),
        (
            "",
            r#"spec.drivers[0].nodeID="other""#,
            "Invalid spec.drivers",
        ),
    ]);
}

#[test]
fn capacities_and_attachments() {
    let capacity = json!({"metadata": {"name": "a"}, "storageClassName": "sc", "capacity": "1Gi"});
    let capacity = base("csistoragecapacities.storage.k8s.io", capacity);
    capacity.created(&[
        ("", ""),
        (
            r#"storageClassName="-invalid-""#,
            "Invalid storageClassName",
        ),
        (r#"storageClassName="""#, "Invalid storageClassName"),
        (r#"capacity="-11""#, "Invalid capacity"),
        (
            r#"nodeTopology={"matchLabels":{"a b":"c"}}"#,
            "Invalid nodeTopology.matchLabels",
        ),
    ]);
    capacity.updated(&[
        ("", r#"capacity="2Gi""#, ""),
        (
            "",
            r#"storageClassName="other""#,
            "Invalid storageClassName",
        ),
        (
            "",
            r#"nodeTopology={"matchLabels":{"a":"b"}}"#,
            "Invalid nodeTopology",
        ),
    ]);
    let spec = json!({
        "attacher": "myattacher",
        "source": {"persistentVolumeName": "foo"},
        "nodeName": "mynode",
    });
    let attachment = base(
        "volumeattachments.storage.k8s.io",
        json!({"metadata": {"name": "foo"}, "spec": spec}),
    );
    attachment
        .created(&[
            ("", ""),
            ("spec.attacher=null", "Required spec.attacher"),
            (r#"spec.attacher="invalid!@#""#, "Invalid spec.attacher"),
            ("spec.nodeName=null", "Invalid spec.nodeName"),
            ("spec.source={}", "Required spec.source"),
            (
                r#"spec.source.persistentVolumeName="""#,
                "Required spec.source.persistentVolumeName, Invalid spec.source.persistentVolumeName",
            ),
            (
                r#"spec.source={"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"a","volumeHandle":"b"}}}"#,
                "",
            ),
            (
                r#"spec.source={"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"storageClassName":"a","hostPath":{"path":"/a"}}}"#,
                "Forbidden spec.source.inlineVolumeSpec.storageClassName, Required spec.source.inlineVolumeSpec.csi",
            ),
            (
                r#"spec.source.inlineVolumeSpec={"accessModes":["ReadWriteOnce"],"csi":{"driver":"a","volumeHandle":"b"}}"#,
                "Forbidden spec.source",
            ),
        ]);
    attachment.updated(&[
        ("", r#"metadata.labels={"a":"b"}"#, ""),
        ("", r#"spec.nodeName="other""#, "Invalid spec"),
    ]);
    attachment.reported(&[
        (
            "",
            r#"status={"attached":true,"attachmentMetadata":{"foo":"bar"}}"#,
            "",
        ),
        (
            "",
            r#"status={"attached":false,"attachError":{"errorCode":-1}}"#,
            "Invalid status.attachError.errorCode",
        ),
    ]);
}
