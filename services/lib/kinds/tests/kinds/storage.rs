//! Volumes of storage systems, and the claims of ephemeral volumes.

use crate::pod::pod;
use crate::table::Base;

#[test]
fn disks() {
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a","gcePersistentDisk":{"pdName":"my-PD","fsType":"ext4","partition":1}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","gcePersistentDisk":{"partition":256}}"#, "Required spec.volumes[2].persistentDisk.pdName, Invalid spec.volumes[2].persistentDisk.partition"),
            (r#"spec.volumes[2]={"name":"a","awsElasticBlockStore":{"volumeID":"my-PD","fsType":"ext4","partition":1}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","awsElasticBlockStore":{"partition":-1}}"#, "Required spec.volumes[2].awsElasticBlockStore.volumeID, Invalid spec.volumes[2].awsElasticBlockStore.partition"),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"my-repo","revision":"hashstring","directory":"target"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"my-repo","directory":"."}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"my-repo","directory":"..foo"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":""}}"#, "Required spec.volumes[2].gitRepo.repository"),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"foo","directory":"../dots/bar"}}"#, "Invalid spec.volumes[2].gitRepo.directory"),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"foo","directory":"dots/../bar"}}"#, "Invalid spec.volumes[2].gitRepo.directory"),
            (r#"spec.volumes[2]={"name":"a","gitRepo":{"repository":"foo","directory":"/abstarget"}}"#, "Invalid spec.volumes[2].gitRepo.directory"),
            (r#"spec.volumes[2]={"name":"a","cinder":{"volumeID":"29ea5088","fsType":"ext4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","cinder":{"secretRef":{}}}"#, "Required spec.volumes[2].cinder.volumeID, Required spec.volumes[2].cinder.secretRef.name"),
            (r#"spec.volumes[2]={"name":"a","azureDisk":{"diskName":"foo","diskURI":"https://blob/vhds/bar.vhd"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","azureDisk":{"diskName":"","diskURI":"https://blob/vhds/bar.vhd"}}"#, "Required spec.volumes[2].azureDisk.diskName"),
            (r#"spec.volumes[2]={"name":"a","azureDisk":{"diskName":"foo"}}"#, "Required spec.volumes[2].azureDisk.diskURI, NotSupported spec.volumes[2].azureDisk.diskURI"),
            (r#"spec.volumes[2]={"name":"a","azureDisk":{"diskName":"foo","diskURI":"https://a","kind":"Managed","cachingMode":"All"}}"#, "NotSupported spec.volumes[2].azureDisk.diskURI, NotSupported spec.volumes[2].azureDisk.cachingMode"),
            (r#"spec.volumes[2]={"name":"a","azureDisk":{"diskName":"foo","diskURI":"/subscriptions/a","kind":"Managed"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","vsphereVolume":{}}"#, "Required spec.volumes[2].vsphereVolume.volumePath"),
            (r#"spec.volumes[2]={"name":"a","photonPersistentDisk":{}}"#, "Required spec.volumes[2].photonPersistentDisk.pdID"),
            (r#"spec.volumes[2]={"name":"a","portworxVolume":{}}"#, "Required spec.volumes[2].portworxVolume.volumeID"),
            (r#"spec.volumes[2]={"name":"a","storageos":{"volumeNamespace":"A","secretRef":{}}}"#, "Required spec.volumes[2].storageos.volumeName, Invalid spec.volumes[2].storageos.volumeNamespace, Required spec.volumes[2].storageos.secretRef.name"),
            (r#"spec.volumes[2]={"name":"a","scaleIO":{"gateway":"http://abcd/efg","system":"test-system","volumeName":"test-vol-1"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","scaleIO":{"gateway":"http://abcd/efg","system":"test-system"}}"#, "Required spec.volumes[2].scaleIO.volumeName"),
            (r#"spec.volumes[2]={"name":"a","scaleIO":{"system":"test-system","volumeName":"test-vol-1"}}"#, "Required spec.volumes[2].scaleIO.gateway"),
            (r#"spec.volumes[2]={"name":"a","scaleIO":{"gateway":"http://abcd/efg","volumeName":"test-vol-1"}}"#, "Required spec.volumes[2].scaleIO.system"),
        ]);
}

#[test]
fn network_volumes() {
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a","glusterfs":{"endpoints":"host1","path":"path"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","glusterfs":{"path":"path"}}"#, "Required spec.volumes[2].glusterfs.endpoints"),
            (r#"spec.volumes[2]={"name":"a","glusterfs":{"endpoints":"host"}}"#, "Required spec.volumes[2].glusterfs.path"),
            (r#"spec.volumes[2]={"name":"a","glusterfs":{}}"#, "Required spec.volumes[2].glusterfs.endpoints, Required spec.volumes[2].glusterfs.path"),
            (r#"spec.volumes[2]={"name":"a","flocker":{"datasetUUID":"d846b09d-223d-43df-ab5b-d6db2206a0e4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","flocker":{"datasetName":"datasetName"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","flocker":{}}"#, "Required spec.volumes[2].flocker"),
            (r#"spec.volumes[2]={"name":"a","flocker":{"datasetName":"datasetName","datasetUUID":"d846b09d"}}"#, "Invalid spec.volumes[2].flocker"),
            (r#"spec.volumes[2]={"name":"a","flocker":{"datasetName":"foo/bar"}}"#, "Invalid spec.volumes[2].flocker.datasetName"),
            (r#"spec.volumes[2]={"name":"a","rbd":{"monitors":["foo"],"image":"bar","fsType":"ext4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","rbd":{"monitors":[],"image":"bar"}}"#, "Required spec.volumes[2].rbd.monitors"),
            (r#"spec.volumes[2]={"name":"a","rbd":{"monitors":["foo"]}}"#, "Required spec.volumes[2].rbd.image"),
            (r#"spec.volumes[2]={"name":"a","cephfs":{"monitors":["foo"]}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","cephfs":{"monitors":[]}}"#, "Required spec.volumes[2].cephfs.monitors"),
            (r#"spec.volumes[2]={"name":"a","emptyDir":{},"cephfs":{"monitors":[]},"downwardAPI":{}}"#, "Forbidden spec.volumes[2].cephFS, Forbidden spec.volumes[2].downwarAPI"),
            (r#"spec.volumes[2]={"name":"a","fc":{"targetWWNs":["some_wwn"],"lun":1,"fsType":"ext4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","fc":{"wwids":["some_wwid"],"fsType":"ext4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","fc":{"targetWWNs":[],"lun":1,"wwids":[]}}"#, "Required spec.volumes[2].fc.targetWWNs"),
            (r#"spec.volumes[2]={"name":"a","fc":{"targetWWNs":["some_wwn"],"lun":1,"wwids":["some_wwid"]}}"#, "Invalid spec.volumes[2].fc.targetWWNs"),
            (r#"spec.volumes[2]={"name":"a","fc":{"targetWWNs":["wwn"]}}"#, "Required spec.volumes[2].fc.lun"),
            (r#"spec.volumes[2]={"name":"a","fc":{"targetWWNs":["wwn"],"lun":256}}"#, "Invalid spec.volumes[2].fc.lun"),
            (r#"spec.volumes[2]={"name":"a","azureFile":{"secretName":"key","shareName":"share"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","azureFile":{"shareName":"share"}}"#, "Required spec.volumes[2].azureFile.secretName"),
            (r#"spec.volumes[2]={"name":"a","azureFile":{"secretName":"name"}}"#, "Required spec.volumes[2].azureFile.shareName"),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"registry:7861","volume":"volume","user":"root","group":"root","tenant":"ThisIsSomeTenantUUID"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"[::1]:7861,b:1","volume":"/test"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"volume":"/test","tenant":"a"}}"#, "Required spec.volumes[2].quobyte.registry"),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"registry7861","volume":"/test"}}"#, "Invalid spec.volumes[2].quobyte.registry"),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"registry:7861,reg2","volume":"/test"}}"#, "Invalid spec.volumes[2].quobyte.registry"),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"a:1:2","volume":"/test"}}"#, "Invalid spec.volumes[2].quobyte.registry"),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"registry:7861"}}"#, "Required spec.volumes[2].quobyte.volume"),
            (r#"spec.volumes[2]={"name":"a","quobyte":{"registry":"registry:7861","volume":"/test","tenant":"this is too long to be a valid uuid so this test has to fail on the maximum length validation of the tenant."}}"#, "Required spec.volumes[2].quobyte.tenant"),
            (r#"spec.volumes[2]={"name":"a","flexVolume":{"driver":"kubernetes.io/blue","fsType":"ext4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","flexVolume":{"driver":"foo","options":{"myns.io":"A","myns.io/bar":"A","myns.io/kubernetes.io":"A"}}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","flexVolume":{}}"#, "Required spec.volumes[2].flexVolume.driver"),
            (
                r#"spec.volumes[2]={"name":"a","flexVolume":{"driver":"foo","options":{"KUBERNETES.IO":"A","kubernetes.io/":"A","alpha.kubernetes.io/foo":"A","k8s.io":"A","alpha.k8s.io/foo":"A"}}}"#,
                "Invalid spec.volumes[2].flexVolume.options[KUBERNETES.IO], Invalid spec.volumes[2].flexVolume.options[kubernetes.io/], Invalid spec.volumes[2].flexVolume.options[alpha.kubernetes.io/foo], Invalid spec.volumes[2].flexVolume.options[k8s.io], Invalid spec.volumes[2].flexVolume.options[alpha.k8s.io/foo]",
            ),
        ]);
}

#[test]
fn iscsi() {
    let name = "Invalid spec.volumes[2].iscsi.iqn";
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"iqn.2015-02.example.com:test","lun":1,"fsType":"ext4"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"eui.0123456789ABCDEF","lun":1}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"naa.62004567BA64678D0123456789ABCDEF","lun":1}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"","iqn":"iqn.2015-02.example.com:test","lun":1}}"#, "Required spec.volumes[2].iscsi.targetPortal"),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"","lun":1}}"#, "Required spec.volumes[2].iscsi.iqn"),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"iqn.2015-02.example.com:test;ls;","lun":1}}"#, name),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"eui.0123456789ABCDEFGHIJ","lun":1}}"#, name),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"naa.62004567BA_4-78D.123456789ABCDEF","lun":1}}"#, name),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"2015-02.example.com:init","lun":256}}"#, "Invalid spec.volumes[2].iscsi.iqn, Invalid spec.volumes[2].iscsi.lun"),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"iqn.2015-02.example.com:test","lun":1,"initiatorName":"iqn.2015-02.example.com:init"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"iqn.2015-02.example.com:test","lun":1,"initiatorName":"2015-02.example.com:init"}}"#, "Invalid spec.volumes[2].iscsi.initiatorname"),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"a-portal-with-a-name-that-is-too-long-for-an-initiator-in-example.com","iqn":"iqn.2015-02.example.com:test","lun":1,"initiatorName":"iqn.2015-02.example.com:init"}}"#, "Invalid spec.volumes[2].name"),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"iqn.2015-02.example.com:test","lun":1,"chapAuthDiscovery":true}}"#, "Required spec.volumes[2].iscsi.secretRef"),
            (r#"spec.volumes[2]={"name":"a","iscsi":{"targetPortal":"127.0.0.1","iqn":"iqn.2015-02.example.com:test","lun":1,"chapAuthSession":true}}"#, "Required spec.volumes[2].iscsi.secretRef"),
        ]);
}

#[test]
fn drivers() {
    let driver = "Invalid spec.volumes[2].csi.driver";
    pod()
        .created(&[
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"test-driver"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"io.kubernetes.storage.csi.flex"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"2io.Kubernetes.storage-csi.flex2"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"a"}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"io_kubernetes_storage_csi_flex"}}"#, driver),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"io.kubernetes.storage_csi.flex"}}"#, driver),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"_comgooglestoragecsigcepd"}}"#, driver),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"comgooglestoragecsigcepd/"}}"#, driver),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"com/google/storage/csi~gcepd"}}"#, driver),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"ggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg"}}"#, "TooLong spec.volumes[2].csi.driver"),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"com.google.gcepd","nodePublishSecretRef":{"name":"foobar"}}}"#, ""),
            (r#"spec.volumes[2]={"name":"a","csi":{"driver":"com.google.gcepd","nodePublishSecretRef":{"name":"Foobar"}}}"#, "Invalid spec.volumes[2].csi.name"),
        ]);
}

/// Returns a Pod with an ephemeral volume.
fn claiming() -> Base {
    let mut pod = pod();
    pod.object["spec"]["volumes"] = serde_json::json!([{
        "name": "scratch",
        "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10G"}},
        }}},
    }]);
    pod
}

#[test]
fn claims() {
    let source = "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec";
    claiming()
        .created(&[
            ("", ""),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec={"selector":{"matchExpressions":[{"key":"key2","operator":"Exists"}]},"accessModes":["ReadWriteOnce","ReadOnlyMany"],"resources":{"requests":{"storage":"10G"}},"storageClassName":"valid","volumeMode":"Filesystem"}"#,
                "",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata={"labels":{"apps.kubernetes.io/name":"test"},"annotations":{"foo":"bar"}}"#,
                "",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata={"labels":{"hello-gateway":"hyphen not allowed"},"annotations":{"a b":"c"}}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels, Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata={"name":"a","generateName":"pvc-","namespace":"b"}"#,
                "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.generateName, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.namespace",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata={"uid":"ac051fac","resourceVersion":"1","generation":100}"#,
                "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uID, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.resourceVersion, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.generation",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata={"creationTimestamp":"2020-01-01T00:00:00Z","deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":10}"#,
                "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.creationTimestamp, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.deletionTimestamp, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.deletionGracePeriodSeconds",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata={"ownerReferences":[{"apiVersion":"v1","kind":"pod","name":"foo","uid":"a"}],"finalizers":["example.com/foo"],"managedFields":[{"fieldsType":"FieldsV1","operation":"Apply","apiVersion":"apps/v1","manager":"foo"}]}"#,
                "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.ownerReferences, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.finalizers, Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.managedFields",
            ),
            (r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes=["ReadWriteOncePod"]"#, ""),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes=["ReadWriteOncePod","ReadWriteMany"]"#,
                "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes=["fakemode"]"#,
                "NotSupported spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes",
            ),
            (
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes=null",
                "Required spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources={"requests":{"storage":"0G"}}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources={"requests":{"storage":"-10G"}}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources={"requests":{"memory":"10G"}}"#,
                "Required spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]",
            ),
            (
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources=null",
                "Required spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.selector={"matchExpressions":[{"key":"key2","operator":"InvalidOp","values":["value1"]}]}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.selector.matchExpressions[0].operator",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName="-invalid-" ; spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName="-invalid-""#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName, Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeMode="fakeVolumeMode""#,
                "NotSupported spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeMode",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource={"kind":"PersistentVolumeClaim","name":"pvc1"} ; spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef={"kind":"PersistentVolumeClaim","name":"pvc2"}"#,
                source,
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource={"apiGroup":"^invalid","kind":"Foo","name":"foo1"}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource.apiGroup",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef={"apiGroup":"^invalid","kind":"Foo"}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.apiGroup, Required spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.name",
            ),
            (
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource={"kind":"Foo","name":"foo1"}"#,
                "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource",
            ),
            // A created claim belongs to its volume.
            (
                r#"spec.volumes[1]={"name":"a","persistentVolumeClaim":{"claimName":"web-scratch"}}"#,
                "Invalid spec.volumes[1].persistentVolumeClaim.claimName",
            ),
            (
                r#"spec.volumes[1]={"name":"a","persistentVolumeClaim":{"claimName":"my-pvc"}}"#,
                "",
            ),
        ]);
    let mut long = claiming();
    long.object["metadata"]["name"] = "a".repeat(200).into();
    long.object["spec"]["volumes"][0]["name"] = "b".repeat(60).into();
    long.created(&[("", "Invalid spec.volumes[0].name")]);
}
