//! Pods, container by container.

use serde_json::json;

use crate::table::Base;

/// Returns a Pod with two containers and the fields that most cases change.
pub fn pod() -> Base {
    Base {
        resource: "pods",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {
                "containers": [
                    {"name": "web", "image": "nginx"},
                    {"name": "log", "image": "nginx"},
                ],
                "initContainers": [{"name": "init", "image": "nginx"}],
                "volumes": [
                    {"name": "data", "emptyDir": {}},
                    {"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}},
                ],
            },
        }),
    }
}

#[test]
fn containers() {
    pod()
        .created(&[
            ("", ""),
            ("spec.containers=[]", "Required spec.containers"),
            (r#"spec.containers[0].name="""#, "Required spec.containers[0].name"),
            (r#"spec.containers[0].name="Web""#, "Invalid spec.containers[0].name"),
            (r#"spec.containers[0].name="a.b""#, "Invalid spec.containers[0].name"),
            (r#"spec.containers[1].name="web""#, "Duplicate spec.containers[1].name"),
            (r#"spec.initContainers[0].name="web""#, "Duplicate spec.initContainers[0].name"),
            (r#"spec.containers[0].image=null"#, "Required spec.containers[0].image"),
            (r#"spec.containers[0].image=" nginx""#, "Invalid spec.containers[0].image"),
            (r#"spec.containers[0].image="nginx ""#, "Invalid spec.containers[0].image"),
            (r#"spec.containers[0].imagePullPolicy="Sometimes""#, "NotSupported spec.containers[0].imagePullPolicy"),
            (r#"spec.containers[0].terminationMessagePolicy="Log""#, "NotSupported spec.containers[0].terminationMessagePolicy"),
            (r#"spec.containers[0].terminationMessagePolicy="FallbackToLogsOnError""#, ""),
            // Checks F19.
            (r#"spec.ephemeralContainers=[{"name":"debug","image":"nginx"}]"#, "Forbidden spec.ephemeralContainers"),
            (r#"spec.initContainers[0].livenessProbe={"exec":{"command":["a"]}}"#, "Forbidden spec.initContainers[0].livenessProbe"),
            (r#"spec.initContainers[0].lifecycle={"preStop":{"exec":{"command":["a"]}}}"#, "Forbidden spec.initContainers[0].lifecycle"),
            (
                r#"spec.initContainers[0].restartPolicy="Always" ; spec.initContainers[0].livenessProbe={"exec":{"command":["a"]}}"#,
                "",
            ),
        ]);
}

#[test]
fn restarts() {
    pod()
        .created(&[
            (r#"spec.restartPolicy="OnFailure""#, ""),
            (r#"spec.restartPolicy="Sometimes""#, "NotSupported spec.restartPolicy"),
            // Checks F19.
            (r#"spec.initContainers[0].restartPolicy="Sometimes""#, "NotSupported spec.initContainers[0].restartPolicy"),
            (r#"spec.initContainers[0].restartPolicy="Always""#, ""),
            (r#"spec.containers[0].restartPolicy="Never""#, ""),
            (r#"spec.containers[0].restartPolicy="""#, "NotSupported spec.containers[0].restartPolicy"),
            (
                r#"spec.containers[0].restartPolicyRules=[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]"#,
                "Required spec.containers[0].restartPolicy",
            ),
            (
                r#"spec.containers[0].restartPolicy="Never" ; spec.containers[0].restartPolicyRules=[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]"#,
                "",
            ),
            (
                r#"spec.containers[0].restartPolicy="Never" ; spec.containers[0].restartPolicyRules=[{"action":"Stop","exitCodes":{"operator":"Like"}}]"#,
                "NotSupported spec.containers[0].restartPolicyRules[0].action, NotSupported spec.containers[0].restartPolicyRules[0].exitCodes.operator",
            ),
            (
                r#"spec.containers[0].restartPolicy="Never" ; spec.containers[0].restartPolicyRules=[{"action":"Restart"}]"#,
                "Required spec.containers[0].restartPolicyRules[0].exitCodes",
            ),
        ]);
    let mut many = pod();
    let rule = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}});
    let container = &mut many.object["spec"]["containers"][0];
    container["restartPolicy"] = json!("Never");
    container["restartPolicyRules"] = json!(vec![rule; 21]);
    let expected = "TooMany spec.containers[0].restartPolicyRules";
    many.created(&[("", expected)]);
}

#[test]
fn ports() {
    pod()
        .created(&[
            (r#"spec.containers[0].ports=[{"containerPort":80,"name":"http"},{"containerPort":81,"protocol":"UDP","hostPort":81}]"#, ""),
            ("spec.containers[0].ports=[{}]", "Required spec.containers[0].ports[0].containerPort"),
            (r#"spec.containers[0].ports=[{"containerPort":65536}]"#, "Invalid spec.containers[0].ports[0].containerPort"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":65536}]"#, "Invalid spec.containers[0].ports[0].hostPort"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":-1}]"#, "Invalid spec.containers[0].ports[0].hostPort"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"protocol":"ICMP"}]"#, "NotSupported spec.containers[0].ports[0].protocol"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"protocol":"tcp"}]"#, "NotSupported spec.containers[0].ports[0].protocol"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"name":"a-name-of-a-port"}]"#, "Invalid spec.containers[0].ports[0].name"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"name":"a.b"}]"#, "Invalid spec.containers[0].ports[0].name"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"name":"80"}]"#, "Invalid spec.containers[0].ports[0].name"),
            (
                r#"spec.containers[0].ports=[{"containerPort":80,"name":"a"},{"containerPort":81,"name":"a"}]"#,
                "Duplicate spec.containers[0].ports[1].name",
            ),
            // Checks F19.
            (
                r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80}] ; spec.containers[1].ports=[{"containerPort":81,"hostPort":80}]"#,
                "Duplicate spec.containers[1].ports[0].hostPort",
            ),
            (
                r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80}] ; spec.containers[1].ports=[{"containerPort":81,"hostPort":80,"protocol":"UDP"}]"#,
                "",
            ),
            (
                r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80,"hostIP":"1.2.3.4"}] ; spec.containers[1].ports=[{"containerPort":81,"hostPort":80}]"#,
                "",
            ),
            (
                r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80}] ; spec.initContainers[0].ports=[{"containerPort":81,"hostPort":80}]"#,
                "",
            ),
            (
                r#"spec.hostNetwork=true ; spec.containers[0].ports=[{"containerPort":80,"hostPort":81}]"#,
                "Invalid spec.containers[0].ports[0].hostPort",
            ),
            (r#"spec.hostNetwork=true ; spec.containers[0].ports=[{"containerPort":80}]"#, ""),
        ]);
}

#[test]
fn environment() {
    let from = "Invalid spec.containers[0].env[0].valueFrom";
    let field = "NotSupported spec.containers[0].env[0].valueFrom.fieldRef.fieldPath";
    pod()
        .created(&[
            (r#"spec.containers[0].env=[{"name":"A","value":"1"},{"name":"a.b-c d","value":""}]"#, ""),
            (r#"spec.containers[0].env=[{"value":"1"}]"#, "Required spec.containers[0].env[0].name"),
            (r#"spec.containers[0].env=[{"name":"A="}]"#, "Invalid spec.containers[0].env[0].name"),
            (r#"spec.containers[0].env=[{"name":"Ä"}]"#, "Invalid spec.containers[0].env[0].name"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{}}]"#, from),
            (r#"spec.containers[0].env=[{"name":"A","value":"1","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]"#, from),
            (
                r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"},"secretKeyRef":{"name":"a","key":"b"}}}]"#,
                from,
            ),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a.io/b']"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['A']"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a b']"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name['a']"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}}]"#, field),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.phase"}}}]"#, field),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.whoops"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name","apiVersion":"v2"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fieldRef":{}}}]"#, "Required spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1m"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1Mi"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"requests.memory","divisor":"1Mi"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.gpu"}}}]"#, "NotSupported spec.containers[0].env[0].valueFrom.resourceFieldRef.resource"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"resourceFieldRef":{}}}]"#, "Required spec.containers[0].env[0].valueFrom.resourceFieldRef.resource"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"a","key":"b.c"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"a"}}}]"#, "Required spec.containers[0].env[0].valueFrom.configMapKeyRef.key"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"$","key":"b c"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.configMapKeyRef.name, Invalid spec.containers[0].env[0].valueFrom.configMapKeyRef.key"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"secretKeyRef":{"key":"b"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.name"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"data","path":"a","key":"b"}}}]"#, ""),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"other","path":"../a","key":"b"}}}]"#, "NotFound spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName, Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.path"),
            (r#"spec.containers[0].env=[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"claim","path":"a","key":"b"}}}]"#, "Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName"),
            (r#"spec.containers[0].envFrom=[{"configMapRef":{"name":"a"}},{"prefix":"a_","secretRef":{"name":"a"}}]"#, ""),
            ("spec.containers[0].envFrom=[{}]", "Invalid spec.containers[0].envFrom"),
            (r#"spec.containers[0].envFrom=[{"prefix":"a=","secretRef":{"name":"a"}}]"#, "Invalid spec.containers[0].envFrom[0].prefix"),
            (r#"spec.containers[0].envFrom=[{"secretRef":{}}]"#, "Required spec.containers[0].envFrom[0].secretRef.name"),
            (r#"spec.containers[0].envFrom=[{"configMapRef":{"name":"$"}}]"#, "Invalid spec.containers[0].envFrom[0].configMapRef.name"),
            (r#"spec.containers[0].envFrom=[{"configMapRef":{"name":"a"},"secretRef":{"name":"a"}}]"#, "Invalid spec.containers[0].envFrom"),
        ]);
}

#[test]
fn mounts() {
    pod()
        .created(&[
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a"},{"name":"data","mountPath":"b","subPath":"c/d"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"other","mountPath":"/a"}]"#, "NotFound spec.containers[0].volumeMounts[0].name"),
            (r#"spec.containers[0].volumeMounts=[{"name":"","mountPath":"/a"}]"#, "Required spec.containers[0].volumeMounts[0].name, NotFound spec.containers[0].volumeMounts[0].name"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data"}]"#, "Required spec.containers[0].volumeMounts[0].mountPath"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a"},{"name":"claim","mountPath":"/a"}]"#, "Invalid spec.containers[0].volumeMounts[1].mountPath"),
            // Checks F19.
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPath":"../../etc"}]"#, "Invalid spec.containers[0].volumeMounts.subPath"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPath":"/etc"}]"#, "Invalid spec.containers[0].volumeMounts.subPath"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPath":"a/.."}]"#, "Invalid spec.containers[0].volumeMounts.subPath"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPath":"..a/b"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPathExpr":"$(A)/.."}]"#, "Invalid spec.containers[0].volumeMounts.subPathExpr"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","subPath":"a","subPathExpr":"$(A)"}]"#, "Invalid spec.containers[0].volumeMounts[0].subPathExpr"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"None"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"Both"}]"#, "NotSupported spec.containers[0].volumeMounts.mountPropagation"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"Bidirectional"}]"#, "Forbidden spec.containers[0].volumeMounts.mountPropagation"),
            (r#"spec.containers[0].securityContext={"privileged":true} ; spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","mountPropagation":"Bidirectional"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","recursiveReadOnly":"Enabled"}]"#, "Forbidden spec.containers[0].volumeMounts.recursiveReadOnly"),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","readOnly":true,"recursiveReadOnly":"IfPossible"}]"#, ""),
            (r#"spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a","recursiveReadOnly":"Yes"}]"#, "NotSupported spec.containers[0].volumeMounts.recursiveReadOnly"),
            (r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/dev/a"}]"#, ""),
            (r#"spec.containers[0].volumeDevices=[{"name":"data","devicePath":"/dev/a"}]"#, "Invalid spec.containers[0].volumeDevices[0].name"),
            (r#"spec.containers[0].volumeDevices=[{"name":"other","devicePath":"/dev/a"}]"#, "NotFound spec.containers[0].volumeDevices[0].name"),
            (r#"spec.containers[0].volumeDevices=[{"name":"claim"}]"#, "Required spec.containers[0].volumeDevices[0].devicePath"),
            (r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/dev/../a"}]"#, "Invalid spec.containers[0].volumeDevices[0].devicePath"),
            (
                r#"spec.containers[0].volumeDevices=[{"name":"claim","devicePath":"/a"}] ; spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/a"}]"#,
                "Invalid spec.containers[0].volumeDevices[0].devicePath, Invalid spec.containers[0].volumeMounts[0].mountPath",
            ),
        ]);
}

#[test]
fn probes_and_hooks() {
    pod()
        .created(&[
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]}}"#, ""),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"port":80}}"#, ""),
            (r#"spec.containers[0].livenessProbe={"tcpSocket":{"port":"http"}}"#, ""),
            (r#"spec.containers[0].livenessProbe={"grpc":{"port":80}}"#, ""),
            ("spec.containers[0].livenessProbe={}", "Required spec.containers[0].livenessProbe"),
            (r#"spec.containers[0].livenessProbe={"exec":{}}"#, "Required spec.containers[0].livenessProbe.exec.command"),
            (
                r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"tcpSocket":{"port":80}}"#,
                "Forbidden spec.containers[0].livenessProbe.tcpSocket",
            ),
            (r#"spec.containers[0].livenessProbe={"tcpSocket":{"port":0}}"#, "Invalid spec.containers[0].livenessProbe.tcpSocket.port"),
            (r#"spec.containers[0].livenessProbe={"tcpSocket":{"port":"a_b"}}"#, "Invalid spec.containers[0].livenessProbe.tcpSocket.port"),
            (r#"spec.containers[0].livenessProbe={"grpc":{"port":70000}}"#, "Invalid spec.containers[0].livenessProbe.grpc.port"),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"port":80,"scheme":"FTP"}}"#, "NotSupported spec.containers[0].livenessProbe.httpGet.scheme"),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"port":80,"httpHeaders":[{"name":"X-A","value":"b c"}]}}"#, ""),
            (r#"spec.containers[0].livenessProbe={"httpGet":{"port":80,"httpHeaders":[{"name":"X_A:","value":""}]}}"#, "Invalid spec.containers[0].livenessProbe.httpGet.httpHeaders"),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"initialDelaySeconds":-1}"#, "Invalid spec.containers[0].livenessProbe.initialDelaySeconds"),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"timeoutSeconds":-1}"#, "Invalid spec.containers[0].livenessProbe.timeoutSeconds"),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"periodSeconds":-1}"#, "Invalid spec.containers[0].livenessProbe.periodSeconds"),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"failureThreshold":-1}"#, "Invalid spec.containers[0].livenessProbe.failureThreshold"),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"successThreshold":2}"#, "Invalid spec.containers[0].livenessProbe.successThreshold"),
            (r#"spec.containers[0].startupProbe={"exec":{"command":["a"]},"successThreshold":2}"#, "Invalid spec.containers[0].startupProbe.successThreshold"),
            (r#"spec.containers[0].readinessProbe={"exec":{"command":["a"]},"successThreshold":2}"#, ""),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"terminationGracePeriodSeconds":10}"#, ""),
            (r#"spec.containers[0].livenessProbe={"exec":{"command":["a"]},"terminationGracePeriodSeconds":0}"#, "Invalid spec.containers[0].livenessProbe.terminationGracePeriodSeconds"),
            (r#"spec.containers[0].readinessProbe={"exec":{"command":["a"]},"terminationGracePeriodSeconds":10}"#, "Invalid spec.containers[0].readinessProbe.terminationGracePeriodSeconds"),
            (r#"spec.containers[0].lifecycle={"preStop":{"sleep":{"seconds":5}},"postStart":{"exec":{"command":["a"]}}}"#, ""),
            (r#"spec.containers[0].lifecycle={"preStop":{}}"#, "Required spec.containers[0].lifecycle.preStop"),
            (r#"spec.containers[0].lifecycle={"postStart":{"httpGet":{"port":""}}}"#, "Invalid spec.containers[0].lifecycle.postStart.httpGet.port, Invalid spec.containers[0].lifecycle.postStart.httpGet.port"),
            (r#"spec.containers[0].lifecycle={"preStop":{"sleep":{"seconds":31}}}"#, "Invalid spec.containers[0].lifecycle.preStop.sleep"),
            (r#"spec.containers[0].lifecycle={"preStop":{"sleep":{"seconds":-1}}}"#, "Invalid spec.containers[0].lifecycle.preStop.sleep"),
            (r#"spec.containers[0].lifecycle={"preStop":{"sleep":{"seconds":0}}}"#, ""),
            (r#"spec.containers[0].lifecycle={"preStop":{"exec":{"command":["a"]},"sleep":{"seconds":5}}}"#, "Forbidden spec.containers[0].lifecycle.preStop.sleep"),
            (r#"spec.containers[0].lifecycle={"stopSignal":"SIGTERM"}"#, "Forbidden spec.containers[0].lifecycle.stopSignal"),
            (r#"spec.os={"name":"linux"} ; spec.containers[0].lifecycle={"stopSignal":"SIGRTMIN+15"}"#, ""),
            (r#"spec.os={"name":"linux"} ; spec.containers[0].lifecycle={"stopSignal":"SIGRTMAX-15"}"#, "NotSupported spec.containers[0].lifecycle.stopSignal"),
            (r#"spec.os={"name":"windows"} ; spec.containers[0].lifecycle={"stopSignal":"SIGHUP"}"#, "NotSupported spec.containers[0].lifecycle.stopSignal"),
        ]);
}

#[test]
fn resources() {
    let requests = "Invalid spec.containers[0].resources.requests";
    pod()
        .created(&[
            (r#"spec.containers[0].resources={"requests":{"cpu":"100m"},"limits":{"cpu":"1","memory":"1Gi"}}"#, ""),
            (r#"spec.containers[0].resources={"requests":{"cpu":"2"},"limits":{"cpu":"1"}}"#, requests),
            (r#"spec.containers[0].resources={"requests":{"cpu":"-1"}}"#, "Invalid spec.containers[0].resources.requests[cpu]"),
            (r#"spec.containers[0].resources={"limits":{"cpu":"-1"}}"#, "Invalid spec.containers[0].resources.limits[cpu], Invalid spec.containers[0].resources.requests[cpu]"),
            (
                r#"spec.containers[0].resources={"requests":{"gpu":"1"}}"#,
                "Invalid spec.containers[0].resources.requests[gpu], Invalid spec.containers[0].resources.requests[gpu]",
            ),
            (r#"spec.containers[0].resources={"requests":{"pods":"1"}}"#, "Invalid spec.containers[0].resources.requests[pods]"),
            (r#"spec.containers[0].resources={"requests":{"storage":"1"}}"#, "Invalid spec.containers[0].resources.requests[storage]"),
            (r#"spec.containers[0].resources={"limits":{"a.io/gpu":"1"}}"#, ""),
            // Checks F19.
            (r#"spec.containers[0].resources={"requests":{"a.io/gpu":"1"}}"#, "Required spec.containers[0].resources.limits"),
            (r#"spec.containers[0].resources={"requests":{"a.io/gpu":"1"},"limits":{"a.io/gpu":"2"}}"#, requests),
            (
                r#"spec.containers[0].resources={"limits":{"a.io/gpu":"1500m"}}"#,
                "Invalid spec.containers[0].resources.limits[a.io/gpu], Invalid spec.containers[0].resources.requests[a.io/gpu]",
            ),
            (r#"spec.containers[0].resources={"limits":{"requests.a.io/gpu":"1"}}"#, "Invalid spec.containers[0].resources.limits[requests.a.io/gpu], Invalid spec.containers[0].resources.requests[requests.a.io/gpu]"),
            (r#"spec.containers[0].resources={"limits":{"hugepages-2Mi":"4Mi","memory":"1Gi"}}"#, ""),
            (
                r#"spec.containers[0].resources={"limits":{"hugepages-2Mi":"3Mi","memory":"1Gi"}}"#,
                "Invalid spec.containers[0].resources.limits[hugepages-2Mi], Invalid spec.containers[0].resources.requests[hugepages-2Mi]",
            ),
            (r#"spec.containers[0].resources={"limits":{"hugepages-2Mi":"4Mi"}}"#, "Forbidden spec.containers[0].resources"),
            (r#"spec.containers[0].resources={"requests":{"cpu":"1","hugepages-2Mi":"2Mi"},"limits":{"hugepages-2Mi":"4Mi"}}"#, requests),
            (r#"spec.containers[0].resources={"claims":[{"name":"a"}]}"#, "NotFound spec.containers[0].resources.claims[0]"),
            (r#"spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"}]"#, ""),
            (r#"spec.containers[0].resizePolicy=[{"resourceName":"disk","restartPolicy":"NotRequired"}]"#, "NotSupported spec.containers[0].resizePolicy"),
            (r#"spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":""}]"#, "Required spec.containers[0].resizePolicy"),
            (
                r#"spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"cpu","restartPolicy":"NotRequired"}]"#,
                "Duplicate spec.containers[0].resizePolicy[1]",
            ),
            (r#"spec.restartPolicy="Never" ; spec.containers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]"#, "Invalid spec.containers[0].resizePolicy"),
            (r#"spec.resources={"requests":{"cpu":"1"}}"#, ""),
            (r#"spec.resources={"requests":{"a.io/gpu":"1"},"limits":{"a.io/gpu":"1"}}"#, "NotSupported spec.resources.requests[a.io/gpu], NotSupported spec.resources.limits[a.io/gpu]"),
        ]);
}

#[test]
fn security() {
    pod()
        .created(&[
            (r#"spec.containers[0].securityContext={"runAsUser":0,"runAsGroup":2147483647}"#, ""),
            (r#"spec.containers[0].securityContext={"runAsUser":-1}"#, "Invalid spec.containers[0].securityContext.runAsUser"),
            (r#"spec.containers[0].securityContext={"runAsGroup":2147483648}"#, "Invalid spec.containers[0].securityContext.runAsGroup"),
            (r#"spec.containers[0].securityContext={"procMount":"Masked"}"#, "NotSupported spec.containers[0].securityContext.procMount"),
            (r#"spec.containers[0].securityContext={"procMount":"Unmasked"}"#, "Invalid spec.containers[0].securityContext.procMount"),
            (r#"spec.hostUsers=false ; spec.containers[0].securityContext={"procMount":"Unmasked"}"#, ""),
            (r#"spec.containers[0].securityContext={"privileged":true,"allowPrivilegeEscalation":false}"#, "Invalid spec.containers[0].securityContext"),
            (r#"spec.containers[0].securityContext={"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false}"#, "Invalid spec.containers[0].securityContext"),
            (r#"spec.containers[0].securityContext={"seccompProfile":{"type":"RuntimeDefault"},"appArmorProfile":{"type":"Unconfined"}}"#, ""),
            (r#"spec.containers[0].securityContext={"seccompProfile":{}}"#, "Required spec.containers[0].securityContext.seccompProfile.type"),
            (r#"spec.containers[0].securityContext={"seccompProfile":{"type":"None"}}"#, "NotSupported spec.containers[0].securityContext.seccompProfile.type"),
            (r#"spec.containers[0].securityContext={"seccompProfile":{"type":"Localhost"}}"#, "Required spec.containers[0].securityContext.seccompProfile.localhostProfile"),
            (r#"spec.containers[0].securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"../a"}}"#, "Invalid spec.containers[0].securityContext.seccompProfile.localhostProfile"),
            (r#"spec.containers[0].securityContext={"seccompProfile":{"type":"RuntimeDefault","localhostProfile":"a"}}"#, "Invalid spec.containers[0].securityContext.seccompProfile.localhostProfile"),
            (r#"spec.containers[0].securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":" a"}}"#, "Invalid spec.containers[0].securityContext.appArmorProfile.localhostProfile"),
            (r#"spec.containers[0].securityContext={"appArmorProfile":{"type":"Localhost"}}"#, "Required spec.containers[0].securityContext.appArmorProfile.localhostProfile"),
            (r#"spec.containers[0].securityContext={"appArmorProfile":{"type":"RuntimeDefault","localhostProfile":"a"}}"#, "Invalid spec.containers[0].securityContext.appArmorProfile.localhostProfile"),
            (r#"spec.securityContext={"fsGroup":-1,"runAsUser":-1,"runAsGroup":-1,"supplementalGroups":[1,-1]}"#, "Invalid spec.securityContext.fsGroup, Invalid spec.securityContext.runAsUser, Invalid spec.securityContext.runAsGroup, Invalid spec.securityContext.supplementalGroups[1]"),
            (r#"spec.securityContext={"fsGroupChangePolicy":"Never"}"#, "NotSupported spec.securityContext.fsGroupChangePolicy"),
            (r#"spec.securityContext={"supplementalGroupsPolicy":"Never"}"#, "NotSupported spec.securityContext.supplementalGroupsPolicy"),
            (r#"spec.securityContext={"sysctls":[{"name":"kernel.shm_rmid_forced","value":"1"},{"name":"net/ipv4/ip_forward","value":"1"}]}"#, ""),
            (r#"spec.securityContext={"sysctls":[{"name":"","value":"1"}]}"#, "Required spec.securityContext.sysctls[0].name"),
            (r#"spec.securityContext={"sysctls":[{"name":"Kernel..shm","value":"1"}]}"#, "Invalid spec.securityContext.sysctls[0].name"),
            (r#"spec.securityContext={"sysctls":[{"name":"a.b","value":"1"},{"name":"a.b","value":"2"}]}"#, "Duplicate spec.securityContext.sysctls[1].name"),
            (r#"spec.hostNetwork=true ; spec.securityContext={"sysctls":[{"name":"net.ipv4.ip_forward","value":"1"}]}"#, "Invalid spec.securityContext.sysctls[0].name"),
            ("spec.hostPID=true ; spec.shareProcessNamespace=true", "Invalid spec.securityContext.shareProcessNamespace"),
            (r#"spec.securityContext={"seLinuxChangePolicy":"Recursive"}"#, ""),
            (r#"spec.securityContext={"seLinuxChangePolicy":"MountOption"}"#, "NotSupported spec.securityContext.seLinuxChangePolicy"),
            (r#"spec.securityContext={"supplementalGroups":[0,2147483647],"runAsUser":2147483647,"fsGroup":0,"fsGroupChangePolicy":"Always","supplementalGroupsPolicy":"Strict"}"#, ""),
            (r#"spec.securityContext={"supplementalGroups":[2147483648,1234],"runAsUser":2147483648,"fsGroup":2147483648}"#, "Invalid spec.securityContext.supplementalGroups[0], Invalid spec.securityContext.runAsUser, Invalid spec.securityContext.fsGroup"),
            (r#"spec.securityContext={"fsGroupChangePolicy":"","supplementalGroupsPolicy":""}"#, "NotSupported spec.securityContext.fsGroupChangePolicy, NotSupported spec.securityContext.supplementalGroupsPolicy"),
            (r#"spec.securityContext={"sysctls":[{"name":"a_b.c-d/e.1","value":""},{"name":"net.ipv4.conf.enp3s0/200.forwarding","value":"1"},{"name":"net/ipv4/conf/enp3s0.200/forwarding","value":"1"}]}"#, ""),
            (
                r#"spec.securityContext={"sysctls":[{"name":"a_"},{"name":"_a._b"},{"name":".a"},{"name":"a*.b"},{"name":"ä"},{"name":"/a"},{"name":"a/b/*"}]}"#,
                "Invalid spec.securityContext.sysctls[0].name, Invalid spec.securityContext.sysctls[1].name, Invalid spec.securityContext.sysctls[2].name, Invalid spec.securityContext.sysctls[3].name, Invalid spec.securityContext.sysctls[4].name, Invalid spec.securityContext.sysctls[5].name, Invalid spec.securityContext.sysctls[6].name",
            ),
            (r#"spec.hostNetwork=true ; spec.securityContext={"sysctls":[{"name":"net/ipv4/conf/enp3s0.200/forwarding","value":"1"},{"name":"kernel.shmmax","value":"1"}]}"#, "Invalid spec.securityContext.sysctls[0].name"),
            (r#"spec.hostIPC=true ; spec.securityContext={"sysctls":[{"name":"kernel.shmmax","value":"1"},{"name":"kernel.msgmax","value":"1"}]}"#, "Invalid spec.securityContext.sysctls[0].name, Invalid spec.securityContext.sysctls[1].name"),
            ("spec.hostUsers=false ; spec.hostNetwork=true", "Forbidden spec.hostNetwork"),
            ("spec.hostUsers=false ; spec.hostPID=true ; spec.hostIPC=true", "Forbidden spec.HostPID, Forbidden spec.HostIPC"),
            // Upstream does not validate this one; the kubelet fails to start the container.
            (r#"spec.securityContext={"runAsNonRoot":true,"runAsUser":0}"#, ""),
        ]);
}
