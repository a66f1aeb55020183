//! Containers: names, environments, mounts, handlers and resources.

use serde_json::json;

use crate::pod::pod;

#[test]
fn names_and_images() {
    pod()
        .created(&[
            (r#"spec.containers[0].name="123""#, ""),
            (r#"spec.containers[0].name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, "Invalid spec.containers[0].name"),
            (r#"spec.initContainers[1]={"name":"init","image":"nginx"}"#, "Duplicate spec.initContainers[1].name"),
            (r#"spec.initContainers[0].name="""#, "Required spec.initContainers[0].name"),
            (r#"spec.initContainers[0].terminationMessagePolicy="Unknown""#, "NotSupported spec.initContainers[0].terminationMessagePolicy"),
            (r#"spec.containers[0].image=" ""#, "Invalid spec.containers[0].image"),
            (r#"spec.initContainers[0].image=" something ""#, "Invalid spec.initContainers[0].image"),
            ("spec.containers=[{}]", "Required spec.containers[0].name, Required spec.containers[0].image"),
            ("spec.initContainers=[{}]", "Required spec.initContainers[0].name, Required spec.initContainers[0].image"),
            (r#"spec.containers[0].imagePullPolicy="Never" ; spec.containers[1].imagePullPolicy="IfNotPresent""#, ""),
            (r#"spec.containers[0].imagePullPolicy="PullThreeTimes""#, "NotSupported spec.containers[0].imagePullPolicy"),
            (r#"metadata.name="abc.123.do-re-mi" ; metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"bar"}"#, "Invalid metadata.labels"),
            (r#"spec.restartPolicy="Never""#, ""),
            (r#"spec.dnsPolicy="Default""#, ""),
            (r#"spec.dnsPolicy="ClusterFirstWithHostNet""#, ""),
        ]);
}

#[test]
fn ports() {
    pod()
        .created(&[
            (r#"spec.containers[0].ports=[{"containerPort":84,"name":"do-re-me","protocol":"SCTP"},{"containerPort":85}]"#, ""),
            // An invalid name is not a duplicate.
            (
                r#"spec.containers[0].ports=[{"containerPort":80,"name":"a.b"},{"containerPort":81,"name":"a.b"}]"#,
                "Invalid spec.containers[0].ports[0].name, Invalid spec.containers[0].ports[1].name",
            ),
            (r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80},{"containerPort":80,"hostPort":80,"protocol":"UDP"}]"#, ""),
            (
                r#"spec.initContainers[0].ports=[{"containerPort":80,"hostPort":80},{"containerPort":80,"hostPort":80}]"#,
                "Duplicate spec.initContainers[0].ports[1].hostPort",
            ),
            (
                r#"spec.initContainers[0].ports=[{"containerPort":80,"hostPort":80}] ; spec.initContainers[1]={"name":"b","image":"c","ports":[{"containerPort":80,"hostPort":80}]}"#,
                "",
            ),
            ("spec.hostNetwork=true ; spec.containers[0].ports=[{\"containerPort\":2600,\"hostPort\":2600}]", ""),
        ]);
}

#[test]
fn variables() {
    let field = "NotSupported spec.containers[0].env[0].valueFrom.fieldRef.fieldPath";
    let from = "Invalid spec.containers[0].env[0].valueFrom";
    pod()
        .created(&[
            (r##"spec.containers[0].env=[{"name":"!\"#$%&'()"},{"name":"* +,-./0123456789"},{"name":":;<>?@"},{"name":"[\\]^_`{}|~"}]"##, ""),
            (r#"spec.containers[0].env=[{"name":"ev!1"},{"name":"=abc"}]"#, "Invalid spec.containers[0].env[1].name"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['key']"}}},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['key']"}}},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.namespace"}}},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.uid"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.serviceAccountName"}}},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.hostIP"}}},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.podIPs"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.host"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.hostname"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations"}}}]"#, field),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['invalid~key']"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['Www.k8s.io/test']"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"secretKeyRef":{"name":"some-secret","key":"secret-key"}}},{"name":"A","valueFrom":{"configMapKeyRef":{"name":"some-config-map","key":"some-key"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"},"configMapKeyRef":{"name":"a","key":"b"}}}]"#, from),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"},"configMapKeyRef":{"name":"a","key":"b"},"secretKeyRef":{"name":"a","key":"b"}}}]"#, from),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"secretKeyRef":{"name":"$%^&*#","key":"a-key"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.name"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.ephemeral-storage"}}},{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"requests.ephemeral-storage"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.hugepages-2Mi"}}},{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"requests.hugepages-2Mi"}}}]"#, ""),
        ]);
}

#[test]
fn variables_of_files_and_objects() {
    let volume = "Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName";
    pod()
        .created(&[
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"path/to/file.env","key":""}}}]"#, "Required spec.containers[0].env[0].valueFrom.fileKeyRef.key"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"path/to/file.env","key":"","optional":true}}}]"#, "Required spec.containers[0].env[0].valueFrom.fileKeyRef.key"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"a","key":"bad=key"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.key"),
            (r#"spec.containers[0].env=[{"name":"A","value":"some-value","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"a","key":"b"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"","path":"a","key":"b"}}}]"#, "Required spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName, NotFound spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"INVALID_NAME!","path":"a","key":"b"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName, NotFound spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"","key":"b"}}}]"#, "Required spec.containers[0].env[0].valueFrom.fileKeyRef.path"),
            (r#"spec.volumes[2]={"name":"a","emptyDir":{"medium":"Memory"}} ; spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"a","path":"b","key":"c"}}}]"#, ""),
            (r#"spec.volumes[2]={"name":"a","hostPath":{"path":"/b"}} ; spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"a","path":"b","key":"c"}}}]"#, volume),
            (r#"spec.volumes[2]={"name":"a","secret":{"secretName":"b"}} ; spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"a","path":"b","key":"c"}}}]"#, volume),
            (r#"spec.volumes[2]={"name":"a","configMap":{"name":"b"}} ; spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"a","path":"b","key":"c"}}}]"#, volume),
            (
                r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"none","path":"b","key":"c"}}}] ; spec.containers[1].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"other","path":"b","key":"c"}}}]"#,
                "NotFound spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName, NotFound spec.containers[1].env[0].valueFrom.fileKeyRef.volumeName",
            ),
            (r#"spec.initContainers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"b","key":"c"}}}]"#, ""),
            (r#"spec.initContainers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"claim","path":"b","key":"c"}}}]"#, "Invalid spec.initContainers[0].env[0].valueFrom.fileKeyRef.volumeName"),
            (r##"spec.containers[0].envFrom=[{"prefix":"a.b","configMapRef":{"name":"abc"}},{"prefix":"!\"#$%&'()","secretRef":{"name":"abc"}},{"prefix":"[\\]^_`{}|~","secretRef":{"name":"abc"}}]"##, ""),
            (r#"spec.containers[0].envFrom=[{"configMapRef":{}}]"#, "Required spec.containers[0].envFrom[0].configMapRef.name"),
            (r#"spec.containers[0].envFrom=[{"secretRef":{"name":"$%^&*#"}}]"#, "Invalid spec.containers[0].envFrom[0].secretRef.name"),
            (r#"spec.containers[0].envFrom=[{"prefix":"=abc","configMapRef":{"name":"abc"}}]"#, "Invalid spec.containers[0].envFrom[0].prefix"),
        ]);
}

#[test]
fn mounts_and_devices() {
    let devices = r#"spec.volumes[2]={"name":"other","persistentVolumeClaim":{"claimName":"b"}}"#;
    pod()
        .created(&[
            (devices, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"d:"},{"name":"data","mountPath":"F:"},{"name":"data","mountPath":"G:\\mount"},{"name":"data","mountPath":"/bac","subPath":".baz"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPathExpr":"$(POD_NAME)"},{"name":"data","mountPath":"/b","subPath":""}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPath":"baz/../bat"}]"#, "Invalid spec.containers[0].volumeMounts.subPath"),
            (r#"spec.volumes[2]={"name":"i","image":{"reference":"quay.io/my/artifact:v1"}} ; spec.containers[0].volumeMounts=[{"name":"i","mountPath":"/a","subPath":"foo"},{"name":"i","mountPath":"/b","subPathExpr":"$(A)"}]"#, ""),
            (r#"spec.volumes[2]={"name":"i","image":{"reference":"quay.io/my/artifact:v1"}} ; spec.containers[0].volumeMounts=[{"name":"i","mountPath":"/a","subPath":"/foo"}]"#, "Invalid spec.containers[0].volumeMounts.subPath"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","readOnly":true,"recursiveReadOnly":"Disabled"},{"name":"data","mountPath":"/b","recursiveReadOnly":"Disabled"},{"name":"data","mountPath":"/c","readOnly":true,"recursiveReadOnly":"Enabled","mountPropagation":"None"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","readOnly":true,"recursiveReadOnly":"Enabled","mountPropagation":"HostToContainer"}]"#, "Forbidden spec.containers[0].volumeMounts.recursiveReadOnly"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","recursiveReadOnly":"IfPossible"}]"#, "Forbidden spec.containers[0].volumeMounts.recursiveReadOnly"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"HostToContainer"}]"#, ""),
            (r#"spec.containers[0].securityContext={"privileged":false} ; spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"Bidirectional"}]"#, "Forbidden spec.containers[0].volumeMounts.mountPropagation"),
            (r#"spec.containers[0].securityContext={"privileged":true} ; spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"HostToContainer"}]"#, ""),
            (r#"spec.containers[0].securityContext={"privileged":true} ; spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"invalid"}]"#, "NotSupported spec.containers[0].volumeMounts.mountPropagation"),
            (
                r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/a"}] ; spec.containers[0].volumeMounts=[{"name":"claim","mountPath":"/b"}]"#,
                "Invalid spec.containers[0].volumeDevices[0].name, Invalid spec.containers[0].volumeMounts[0].name",
            ),
            (r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/usr/share/test"}]"#, ""),
            (r#"spec.containers[0].volumeDevices=[{"name":"","devicePath":"/foo"}]"#, "Required spec.containers[0].volumeDevices[0].name, NotFound spec.containers[0].volumeDevices[0].name"),
            (r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/a"},{"name":"claim","devicePath":"/b"}]"#, "Invalid spec.containers[0].volumeDevices[1].name"),
            (r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"baz"}]"#, ""),
            (
                r#"spec.volumes[2]={"name":"other","persistentVolumeClaim":{"claimName":"b"}} ; spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/a"},{"name":"other","devicePath":"/a"}]"#,
                "Invalid spec.containers[0].volumeDevices[1].devicePath",
            ),
            (
                r#"spec.hostUsers=false ; spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/a"}] ; spec.initContainers[0].volumeDevices=[{"name":"claim","devicePath":"/a"}]"#,
                "Forbidden spec.containers[0].volumeDevices, Forbidden spec.initContainers[0].volumeDevices",
            ),
            (r#"spec.hostUsers=false ; spec.volumes[2]={"name":"a","hostPath":{"path":"/a"}}"#, ""),
            (r#"spec.hostUsers=true ; spec.hostNetwork=true ; spec.hostPID=true"#, ""),
        ]);
}

#[test]
fn handlers() {
    let numbers = "Invalid spec.containers[0].livenessProbe.initialDelaySeconds, Invalid spec.containers[0].livenessProbe.timeoutSeconds, Invalid spec.containers[0].livenessProbe.periodSeconds, Invalid spec.containers[0].livenessProbe.successThreshold, Invalid spec.containers[0].livenessProbe.failureThreshold, Invalid spec.containers[0].livenessProbe.terminationGracePeriodSeconds, Invalid spec.containers[0].livenessProbe.successThreshold";
    let of_readiness = "Invalid spec.containers[0].readinessProbe.initialDelaySeconds, Invalid spec.containers[0].readinessProbe.timeoutSeconds, Invalid spec.containers[0].readinessProbe.periodSeconds, Invalid spec.containers[0].readinessProbe.successThreshold, Invalid spec.containers[0].readinessProbe.failureThreshold, Invalid spec.containers[0].readinessProbe.terminationGracePeriodSeconds, Invalid spec.containers[0].readinessProbe.terminationGracePeriodSeconds";
    let always = r#"spec.initContainers[0].restartPolicy="Always""#;
    pod()
        .created(&[
            (always, ""),
            (r#"spec.containers[0].readinessProbe={"exec":{"command":["echo"]},"initialDelaySeconds":10,"timeoutSeconds":10,"periodSeconds":10,"successThreshold":10,"failureThreshold":10}"#, ""),
            (r#"spec.containers[0].livenessProbe={"tcpSocket":{"port":80},"initialDelaySeconds":-1,"timeoutSeconds":-1,"periodSeconds":-1,"successThreshold":-1,"failureThreshold":-1,"terminationGracePeriodSeconds":-1}"#, numbers),
            (r#"spec.containers[0].readinessProbe={"tcpSocket":{"port":80},"initialDelaySeconds":-1,"timeoutSeconds":-1,"periodSeconds":-1,"successThreshold":-1,"failureThreshold":-1,"terminationGracePeriodSeconds":-1}"#, of_readiness),
            (r#"spec.containers[0].startupProbe={"tcpSocket":{"port":80},"successThreshold":-1,"terminationGracePeriodSeconds":-1}"#, "Invalid spec.containers[0].startupProbe.successThreshold, Invalid spec.containers[0].startupProbe.terminationGracePeriodSeconds, Invalid spec.containers[0].startupProbe.successThreshold"),
            (r#"spec.containers[0].livenessProbe={"timeoutSeconds":10,"initialDelaySeconds":10}"#, "Required spec.containers[0].livenessProbe"),
            (r#"spec.containers[0].livenessProbe={"tcpSocket":{}}"#, "Invalid spec.containers[0].livenessProbe.tcpSocket.port"),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"path":"/foo","port":65535,"host":"host"}}"#, ""),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"path":"/foo","port":65536,"host":"host"}}"#, "Invalid spec.containers[0].livenessProbe.httpGet.port"),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"port":"port","httpHeaders":[{"name":"X-Forwarded-For","value":"1.2.3.4"},{"name":"X-Forwarded-For","value":"5.6.7.8"}]}}"#, ""),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"port":"port","httpHeaders":[{"name":"Host:","value":"foo.example.com"},{"name":"X_Forwarded_For","value":"a"}]}}"#, "Invalid spec.containers[0].livenessProbe.httpGet.httpHeaders, Invalid spec.containers[0].livenessProbe.httpGet.httpHeaders"),
            (r#"spec.containers[0].lifecycle={"preStop":{"exec":{}}}"#, "Required spec.containers[0].lifecycle.preStop.exec.command"),
            (r#"spec.containers[0].lifecycle={"preStop":{"httpGet":{"path":"/"}}}"#, "Invalid spec.containers[0].lifecycle.preStop.httpGet.port"),
            (r#"spec.containers[0].lifecycle={"preStop":{"tcpSocket":{}}}"#, "Invalid spec.containers[0].lifecycle.preStop.tcpSocket.port"),
            (r#"spec.containers[0].lifecycle={"preStop":{"tcpSocket":{"port":0}}}"#, "Invalid spec.containers[0].lifecycle.preStop.tcpSocket.port"),
            (r#"spec.terminationGracePeriodSeconds=3 ; spec.containers[0].lifecycle={"preStop":{"sleep":{"seconds":5}}}"#, "Invalid spec.containers[0].lifecycle.preStop.sleep"),
            (r#"spec.terminationGracePeriodSeconds=0 ; spec.containers[0].lifecycle={"preStop":{"sleep":{"seconds":0}}}"#, ""),
            (r#"spec.initContainers[0].readinessProbe={"tcpSocket":{"port":80}} ; spec.initContainers[0].startupProbe={"successThreshold":-1}"#, "Forbidden spec.initContainers[0].readinessProbe, Forbidden spec.initContainers[0].startupProbe"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].lifecycle={"postStart":{"exec":{"command":["a"]}},"preStop":{"exec":{"command":["a"]}}} ; spec.initContainers[0].readinessProbe={"tcpSocket":{"port":80}} ; spec.initContainers[0].startupProbe={"tcpSocket":{"port":80}}"#, ""),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].startupProbe={"tcpSocket":{"port":80},"successThreshold":2} ; spec.initContainers[0].livenessProbe={"tcpSocket":{"port":80},"successThreshold":2}"#, "Invalid spec.initContainers[0].startupProbe.successThreshold, Invalid spec.initContainers[0].livenessProbe.successThreshold"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].readinessProbe={"tcpSocket":{"port":80},"terminationGracePeriodSeconds":10}"#, "Invalid spec.initContainers[0].readinessProbe.terminationGracePeriodSeconds"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].lifecycle={"preStop":{"exec":{}}}"#, "Required spec.initContainers[0].lifecycle.preStop.exec.command"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].lifecycle={"preStop":{"httpGet":{"path":"/"}},"postStart":{}}"#, "Invalid spec.initContainers[0].lifecycle.preStop.httpGet.port, Required spec.initContainers[0].lifecycle.postStart"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].lifecycle={"preStop":{"tcpSocket":{"port":0}}}"#, "Invalid spec.initContainers[0].lifecycle.preStop.tcpSocket.port"),
            (r#"spec.initContainers[0].restartPolicy="OnFailure""#, ""),
            (r#"spec.initContainers[0].restartPolicy="Never""#, ""),
            (r#"spec.initContainers[0].restartPolicy="""#, "NotSupported spec.initContainers[0].restartPolicy"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].restartPolicyRules=[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[1]}}]"#, ""),
            (r#"spec.initContainers[0].restartPolicyRules=[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[1]}}]"#, "Required spec.initContainers[0].restartPolicy"),
            (r#"spec.containers[0].restartPolicy="Always" ; spec.containers[1].restartPolicy="OnFailure""#, ""),
            (r#"spec.containers[0].restartPolicy="invalid""#, "NotSupported spec.containers[0].restartPolicy"),
            (r#"spec.containers[0].restartPolicy="Never" ; spec.containers[0].restartPolicyRules=[{"exitCodes":{"values":[42]}}]"#, "NotSupported spec.containers[0].restartPolicyRules[0].action, NotSupported spec.containers[0].restartPolicyRules[0].exitCodes.operator"),
        ]);
    let mut many = pod();
    let container = &mut many.object["spec"]["containers"][0];
    container["restartPolicy"] = json!("Never");
    container["restartPolicyRules"] =
        json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": vec![0; 256]}}]);
    let expected = "TooMany spec.containers[0].restartPolicyRules[0].exitCodes.values";
    many.created(&[("", expected)]);
}

#[test]
fn amounts() {
    let requests = "Invalid spec.containers[0].resources.requests";
    let fractional = "Invalid spec.containers[0].resources.limits[example.com/a], Invalid spec.containers[0].resources.requests[example.com/a]";
    pod()
        .created(&[
            (r#"spec.containers[0].resources={"limits":{"cpu":"10","memory":"10G","my.org/resource":"10"},"requests":{"cpu":"9.5","memory":"10G"}}"#, ""),
            (r#"spec.containers[0].resources={"requests":{"cpu":"9.5","memory":"10G"}}"#, ""),
            (r#"spec.containers[0].resources={"limits":{"ephemeral-storage":"40"}}"#, ""),
            (r#"spec.containers[0].resources={"requests":{"cpu":"5","memory":"4"},"limits":{"cpu":"5","memory":"3"}}"#, requests),
            (r#"spec.containers[0].resources={"requests":{"memory":"-10"}}"#, "Invalid spec.containers[0].resources.requests[memory]"),
            (
                r#"spec.containers[0].resources={"requests":{"attachable-volumes-aws-ebs":"10"}}"#,
                "Invalid spec.containers[0].resources.requests[attachable-volumes-aws-ebs], Invalid spec.containers[0].resources.requests[attachable-volumes-aws-ebs]",
            ),
            (r#"spec.containers[0].resources={"limits":{"example.com/a":"10"},"requests":{"example.com/a":"10"}}"#, ""),
            (r#"spec.initContainers[0].resources={"limits":{"example.com/a":"10"},"requests":{"example.com/a":"10"}}"#, ""),
            (r#"spec.containers[0].resources={"requests":{"example.com/a":"500m"}}"#, "Invalid spec.containers[0].resources.requests[example.com/a], Required spec.containers[0].resources.limits"),
            (r#"spec.containers[0].resources={"limits":{"example.com/a":"2.5"}}"#, fractional),
            (
                r#"spec.initContainers[0].resources={"limits":{"example.com/a":"2.5"}}"#,
                "Invalid spec.initContainers[0].resources.limits[example.com/a], Invalid spec.initContainers[0].resources.requests[example.com/a]",
            ),
            (r#"spec.containers[0].resources={"limits":{"memory":"10G","hugepages-2Mi":"1Gi","hugepages-1Gi":"2Gi"},"requests":{"memory":"10G","hugepages-2Mi":"1Gi","hugepages-1Gi":"2Gi"}}"#, ""),
            (r#"spec.containers[0].resources={"limits":{"cpu":"10","hugepages-2Mi":"2Gi"},"requests":{"hugepages-2Mi":"1Gi"}}"#, requests),
            (r#"spec.containers[0].resources={"requests":{"memory":"2Mi","hugepages-2Mi":"2Mi"}}"#, "Required spec.containers[0].resources.limits"),
            (r#"spec.containers[0].resources={"requests":{"requests.cpu":"1"}}"#, "Invalid spec.containers[0].resources.requests[requests.cpu]"),
            (r#"spec.containers[0].resources={"requests":{"limits.memory":"1"}}"#, "Invalid spec.containers[0].resources.requests[limits.memory]"),
            (
                r#"spec.containers[0].resources={"requests":{"network":"1"}}"#,
                "Invalid spec.containers[0].resources.requests[network], Invalid spec.containers[0].resources.requests[network]",
            ),
            (
                r#"spec.containers[0].resources={"requests":{"..":"1"}}"#,
                "Invalid spec.containers[0].resources.requests[..], Invalid spec.containers[0].resources.requests[..]",
            ),
            (
                r#"spec.containers[0].resources={"limits":{"my.favorite.app.co/12345":"1"}}"#,
                "",
            ),
            (
                r#"spec.containers[0].resources={"requests":{"my.favorite.app.co/_12345":"1"},"limits":{"my.favorite.app.co/_12345":"1"}}"#,
                "Invalid spec.containers[0].resources.limits[my.favorite.app.co/_12345], Invalid spec.containers[0].resources.limits[my.favorite.app.co/_12345], Invalid spec.containers[0].resources.requests[my.favorite.app.co/_12345], Invalid spec.containers[0].resources.requests[my.favorite.app.co/_12345]",
            ),
            (r#"spec.containers[0].resources={"requests":{"kubernetes.io/..":"1"}}"#, "Invalid spec.containers[0].resources.requests[kubernetes.io/..]"),
            (r#"spec.containers[0].resources={"requests":{"kubernetes.io/will/not/work/":"1"}}"#, "Invalid spec.containers[0].resources.requests[kubernetes.io/will/not/work/]"),
        ]);
}

#[test]
fn amounts_of_a_pod() {
    let own = "Invalid spec.resources.requests[cpu]";
    // Containers request little, as the requests of the Pod default to their sum, which must not exceed its limits.
    pod()
        .created(&[
            (r#"spec.resources={"requests":{"cpu":"10","memory":"10Mi"},"limits":{"cpu":"20","memory":"20Mi","hugepages-2Mi":"100Mi"}}"#, ""),
            (r#"spec.resources={"requests":{"memory":"2Mi","hugepages-2Mi":"2Mi"},"limits":{"hugepages-2Mi":"2Mi"}}"#, ""),
            (r#"spec.resources={"requests":{"hugepages-2Mi":"2Mi"},"limits":{"hugepages-2Mi":"2Mi"}}"#, "Forbidden spec.resources"),
            (r#"spec.resources={"requests":{"memory":"2Mi","hugepages-2Mi":"2Mi"}}"#, "Required spec.resources.limits"),
            (r#"spec.resources={"limits":{"ephemeral-storage":"2Mi"}}"#, "NotSupported spec.resources.limits[ephemeral-storage]"),
            (r#"spec.resources={"limits":{"kubernetesio/cpu":"2"}}"#, "NotSupported spec.resources.limits[kubernetesio/cpu]"),
            (r#"spec.resources={"limits":{"storage":"2"}}"#, "NotSupported spec.resources.limits[storage]"),
            (r#"spec.resources={"limits":{"requests.cpu":"2"}}"#, "NotSupported spec.resources.limits[requests.cpu]"),
            (r#"spec.resources={"limits":{"disk":"2"}}"#, "Invalid spec.resources.limits[disk]"),
            (r#"spec.resources={"limits":{"kubernetes.io/cpu":"2"}}"#, "NotSupported spec.resources.limits[kubernetes.io/cpu]"),
            (r#"spec.resources={"limits":{"cpu":"1"},"claims":[]}"#, ""),
            (
                r#"spec.resourceClaims=[{"name":"a","resourceClaimName":"b"}] ; spec.resources={"limits":{"cpu":"1"},"claims":[{"name":"a"}]}"#,
                "Forbidden spec.resources.claims",
            ),
            (r#"spec.resources={"requests":{"cpu":"10"}} ; spec.containers[0].resources={"requests":{"cpu":"5"}} ; spec.containers[1].resources={"requests":{"cpu":"4"}}"#, ""),
            (r#"spec.resources={"requests":{"cpu":"10"}} ; spec.containers[0].resources={"requests":{"cpu":"5"}} ; spec.containers[1].resources={"requests":{"cpu":"5"}}"#, ""),
            (r#"spec.resources={"requests":{"cpu":"10"}} ; spec.containers[0].resources={"requests":{"cpu":"6"}} ; spec.containers[1].resources={"requests":{"cpu":"8"}}"#, own),
            (r#"spec.resources={"requests":{"cpu":"10"}} ; spec.initContainers[0].resources={"requests":{"cpu":"11"}}"#, own),
            (r#"spec.resources={"requests":{"cpu":"10"}} ; spec.containers[0].resources={"requests":{"memory":"1Gi"}}"#, ""),
            (r#"spec.resources={"limits":{"cpu":"10","memory":"10Mi","hugepages-2Mi":"8Mi"}} ; spec.containers[0].resources={"requests":{"cpu":"1"},"limits":{"cpu":"5","hugepages-2Mi":"4Mi"}} ; spec.containers[1].resources={"requests":{"cpu":"1"},"limits":{"cpu":"6","hugepages-2Mi":"4Mi"}}"#, ""),
            (
                r#"spec.resources={"limits":{"cpu":"10","hugepages-2Mi":"4Mi"}} ; spec.containers[0].resources={"requests":{"cpu":"1"},"limits":{"cpu":"6","hugepages-2Mi":"4Mi"}} ; spec.containers[1].resources={"requests":{"cpu":"1"},"limits":{"cpu":"6","hugepages-2Mi":"4Mi"}}"#,
                "Invalid spec.resources.limits[hugepages-2Mi], Invalid spec.resources.requests[hugepages-2Mi]",
            ),
            (
                r#"spec.resources={"limits":{"cpu":"10","memory":"10Mi","hugepages-2Mi":"2Mi"}} ; spec.containers[0].resources={"requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"11","memory":"12Mi","hugepages-2Mi":"4Mi"}}"#,
                "Invalid spec.resources.limits[hugepages-2Mi], Invalid spec.resources.requests[hugepages-2Mi], Invalid spec.resources.containers[0][cpu].limits, Invalid spec.resources.containers[0][memory].limits, Invalid spec.resources.containers[0][hugepages-2Mi].limits",
            ),
        ]);
}

#[test]
fn resizing() {
    let policy = "Invalid spec.containers[0].resizePolicy";
    pod()
        .created(&[
            (r#"spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"memory","restartPolicy":"RestartContainer"}]"#, ""),
            (r#"spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"memory","restartPolicy":"Restarrrt"}]"#, "NotSupported spec.containers[0].resizePolicy"),
            (r#"spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"memory","restartPolicy":"RestartContainer"},{"resourceName":"cpu","restartPolicy":"RestartContainer"}]"#, "Duplicate spec.containers[0].resizePolicy[2]"),
            (r#"spec.restartPolicy="Never" ; spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"memory","restartPolicy":"RestartContainer"}]"#, policy),
            (r#"spec.restartPolicy="Never" ; spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"RestartContainer"},{"resourceName":"memory","restartPolicy":"RestartContainer"}]"#, "Invalid spec.containers[0].resizePolicy, Invalid spec.containers[0].resizePolicy"),
            (r#"spec.restartPolicy="Never" ; spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"memory","restartPolicy":"NotRequired"}]"#, ""),
            (r#"spec.initContainers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"}]"#, ""),
            (r#"spec.initContainers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]"#, "Invalid spec.initContainers[0].resizePolicy[0].restartPolicy"),
            (r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]"#, ""),
        ]);
}

#[test]
fn resource_claims() {
    let again = "Duplicate spec.containers[0].resources.claims[1]";
    let mut claiming = pod();
    claiming.object["spec"]["resourceClaims"] =
        json!([{"name": "my-claim", "resourceClaimName": "some-claim"}]);
    claiming
        .created(&[
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim"}]} ; spec.initContainers[0].resources={"claims":[{"name":"my-claim"}]}"#, ""),
            (r#"spec.resourceClaims[0]={"name":"my-claim","resourceClaimTemplateName":"some-claim-template"}"#, ""),
            (r#"spec.resourceClaims[1]={"name":"another-claim","resourceClaimName":"some-claim"} ; spec.containers[0].resources={"claims":[{"name":"my-claim","request":"req-0"},{"name":"another-claim","request":"req-0"}]}"#, ""),
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim","request":"req-0"},{"name":"my-claim","request":"req-1"}]}"#, ""),
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim"},{"name":"my-claim"}]}"#, again),
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim"},{"name":"my-claim","request":"req-0"}]}"#, again),
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim","request":"req-0"},{"name":"my-claim"}]}"#, again),
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim","request":"req-0"},{"name":"my-claim","request":"req-0"}]}"#, again),
            (r#"spec.containers[0].resources={"claims":[{"name":"my-claim","request":"*$@%^"}]}"#, "Invalid spec.containers[0].resources.claims[0].request"),
            (r#"spec.containers[0].resources={"claims":[{"name":"no-such-claim"}]}"#, "NotFound spec.containers[0].resources.claims[0]"),
            (r#"spec.containers[0].resources={"claims":[{"name":""}]}"#, "Required spec.containers[0].resources.claims[0]"),
            (r#"spec.resourceClaims[0].name="../my-claim""#, "Invalid spec.resourceClaims[0].name"),
            (r#"spec.resourceClaims[0].name="my/claim""#, "Invalid spec.resourceClaims[0].name"),
            (r#"spec.resourceClaims[0].name="""#, "Required spec.resourceClaims[0].name"),
            (r#"spec.resourceClaims[0].resourceClaimTemplateName="a""#, "Invalid spec.resourceClaims[0]"),
            (r#"spec.resourceClaims[0].resourceClaimName=".foo_bar""#, "Invalid spec.resourceClaims[0].resourceClaimName"),
            (r#"spec.resourceClaims[0]={"name":"my-claim","resourceClaimTemplateName":".foo_bar"}"#, "Invalid spec.resourceClaims[0].resourceClaimTemplateName"),
            (r#"metadata.annotations={"kubernetes.io/config.mirror":"True"} ; spec.nodeName="node-1""#, "Forbidden "),
        ]);
}
