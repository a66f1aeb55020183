//! The status of Pods: terminated containers, users, addresses, claims and devices.

use serde_json::json;

use crate::pod::pod;
use crate::table::Base;

const TERMINATED_LIST: &str =
    r#"status.containerStatuses=[{"name":"web","state":{"terminated":{"exitCode":1}}}]"#;
const DONE: &str =
    r#"status.containerStatuses=[{"name":"web","state":{"terminated":{"exitCode":0}}}]"#;
const RUNS: &str = r#"status.containerStatuses[0].state={"running":{}}"#;
const INIT_ENDED: &str =
    r#"status.initContainerStatuses=[{"name":"init","state":{"terminated":{"exitCode":1}}}]"#;
const INIT_DONE: &str =
    r#"status.initContainerStatuses=[{"name":"init","state":{"terminated":{"exitCode":0}}}]"#;
const INIT_RUNS: &str = r#"status.initContainerStatuses[0].state={"running":{}}"#;

/// Returns a Pod whose first container and init container have a restart policy and a rule for the exit code 42.
fn restarting(policy: &str, own: Option<&str>, action: Option<&str>) -> Base {
    let mut pod = pod();
    let spec = &mut pod.object["spec"];
    spec["restartPolicy"] = json!(policy);
    for list in ["containers", "initContainers"] {
        if let Some(own) = own {
            spec[list][0]["restartPolicy"] = json!(own);
        }
        if let Some(action) = action {
            let codes = json!({"operator": "In", "values": [42]});
            spec[list][0]["restartPolicyRules"] = json!([{"action": action, "exitCodes": codes}]);
        }
    }
    pod
}

#[test]
fn ends_of_containers() {
    let ended = "Forbidden status.containerStatuses[0].state";
    let init_ended = "Forbidden status.initContainerStatuses[0].state";
    for (policy, own, after_one, after_zero) in [
        ("Always", None, true, true),
        ("OnFailure", None, true, false),
        ("Never", None, false, false),
        ("Never", Some("Always"), true, true),
        ("Always", Some("Never"), false, false),
    ] {
        let expected = |may: bool, refused: &'static str| if may { "" } else { refused };
        restarting(policy, own, None).reported(&[
            (TERMINATED_LIST, RUNS, expected(after_one, ended)),
            (DONE, RUNS, expected(after_zero, ended)),
            (INIT_ENDED, INIT_RUNS, expected(after_one, init_ended)),
            (INIT_DONE, INIT_RUNS, expected(after_zero, init_ended)),
        ]);
    }
    restarting("Never", Some("Never"), Some("Restart"))
        .reported(&[
            (r#"status.containerStatuses=[{"name":"web","state":{"terminated":{"exitCode":42}}}]"#, RUNS, ""),
            (r#"status.initContainerStatuses=[{"name":"init","state":{"terminated":{"exitCode":42}}}]"#, INIT_RUNS, ""),
            (TERMINATED_LIST, RUNS, ended),
            (INIT_ENDED, INIT_RUNS, init_ended),
        ]);
    restarting("Never", Some("Never"), Some("RestartAllContainers"))
        .reported(&[
            (TERMINATED_LIST, RUNS, ""),
            (INIT_ENDED, INIT_RUNS, ""),
            (r#"status.containerStatuses=[{"name":"log","state":{"terminated":{"exitCode":1}}}]"#, RUNS, ""),
            (
                r#"status.ephemeralContainerStatuses=[{"name":"debug","state":{"terminated":{"exitCode":1}}}]"#,
                r#"status.ephemeralContainerStatuses[0].state={"running":{}}"#,
                "Forbidden status.ephemeralContainerStatuses[0].state",
            ),
        ]);
}

#[test]
fn beginnings_and_conditions() {
    pod()
        .reported(&[
            ("", r#"status.initContainerStatuses=[{"name":"init","state":{"waiting":{"reason":"PodInitializing"}}}] ; status.containerStatuses=[{"name":"web","state":{"waiting":{"reason":"PodInitializing"}}}]"#, ""),
            (r#"status.containerStatuses=[{"name":"web","state":{"waiting":{}}}]"#, r#"status.containerStatuses[0].state={"running":{}} ; status.ephemeralContainerStatuses=[{"name":"debug","state":{"waiting":{}}}]"#, ""),
            (r#"status.ephemeralContainerStatuses=[{"name":"debug","state":{"running":{}}}]"#, r#"status.ephemeralContainerStatuses[0].state={"terminated":{"exitCode":0}}"#, ""),
            ("", r#"status.observedGeneration=1 ; status.conditions=[{"type":"PodScheduled","status":"True","observedGeneration":1}]"#, ""),
            ("", r#"status.conditions=[{"type":"Ready","status":"True"},{"type":"invalid/custom/condition","status":"True"}]"#, "Invalid status.conditions[1].Type"),
            ("", r#"status.conditions=[{"type":"foobar","status":"True"},{"type":"AllContainersRestarting","status":"True"}]"#, ""),
            (r#"status.nominatedNodeName="node1""#, "status.nominatedNodeName=null", ""),
            (r#"status.nominatedNodeName="node2""#, r#"status.nominatedNodeName="node1""#, ""),
            (r#"spec.nodeName="node1""#, r#"status.nominatedNodeName="node1""#, "Forbidden status.nominatedNodeName"),
            (r#"spec.nodeName="node1""#, r#"status.nominatedNodeName="Node1""#, "Invalid status.nominatedNodeName, Forbidden status.nominatedNodeName"),
        ]);
}

#[test]
fn users() {
    pod()
        .reported(&[
            ("", r#"status.containerStatuses=[{"name":"web"},{"name":"log","user":{}}]"#, ""),
            ("", r#"status.initContainerStatuses=[{"name":"init","user":{"linux":{"uid":0,"gid":0,"supplementalGroups":[0,100]}}}]"#, ""),
            (
                "",
                r#"status.initContainerStatuses=[{"name":"init","user":{"linux":{"uid":-1,"gid":-1,"supplementalGroups":[-1]}}}]"#,
                "Invalid status.initContainerStatuses[0].user.linux.uid, Invalid status.initContainerStatuses[0].user.linux.gid, Invalid status.initContainerStatuses[0].user.linux.supplementalGroups[0]",
            ),
            (
                "",
                r#"status.ephemeralContainerStatuses=[{"name":"debug","user":{"linux":{"uid":-1,"gid":0}}}]"#,
                "Invalid status.ephemeralContainerStatuses[0].user.linux.uid",
            ),
            (
                r#"spec.os={"name":"windows"}"#,
                r#"status.containerStatuses=[{"name":"web","user":{"linux":{}}}] ; status.initContainerStatuses=[{"name":"init","user":{"linux":{}}}] ; status.ephemeralContainerStatuses=[{"name":"debug","user":{"linux":{}}}]"#,
                "Forbidden status.containerStatuses[0].user.linux, Forbidden status.initContainerStatuses[0].user.linux, Forbidden status.ephemeralContainerStatuses[0].user.linux",
            ),
        ]);
}

#[test]
fn addresses() {
    let pods = "Invalid status.podIPs";
    let hosts = "Invalid status.hostIPs";
    pod()
        .reported(&[
            ("", r#"status.podIPs=[{"ip":"::1"},{"ip":"1.1.1.1"}]"#, ""),
            ("", r#"status.podIPs=[{"ip":"1.1.1.01"}]"#, "Invalid status.podIPs[0]"),
            ("", r#"status.podIPs=[{"ip":"::1"},{"ip":"::2"}]"#, pods),
            ("", r#"status.podIPs=[{"ip":"1.1.1.1"},{"ip":"::1"},{"ip":"::2"}]"#, pods),
            ("", r#"status.podIPs=[{"ip":"1.1.1.1"},{"ip":"::1"},{"ip":"2.2.2.2"}]"#, pods),
            ("", r#"status.podIPs=[{"ip":"1.1.1.1"},{"ip":"1.1.1.1"},{"ip":"::1"}]"#, pods),
            (r#"status.podIPs=[{"ip":"1.1.1.1"}]"#, "status.podIPs=[]", ""),
            ("", r#"status.hostIP="::1" ; status.hostIPs=[{"ip":"::1"},{"ip":"1.1.1.1"}]"#, ""),
            ("", r#"status.hostIP="this-is-not-an-ip" ; status.hostIPs=[{"ip":"this-is-not-an-ip"}]"#, "Invalid status.hostIPs[0]"),
            ("", r#"status.hostIP="001.002.003.004" ; status.hostIPs=[{"ip":"001.002.003.004"}]"#, "Invalid status.hostIPs[0]"),
            ("", r#"status.hostIP="1.1.1.1" ; status.hostIPs=[{"ip":"1.1.1.1"},{"ip":"2.2.2.2"}]"#, hosts),
            ("", r#"status.hostIP="::1" ; status.hostIPs=[{"ip":"::1"},{"ip":"::2"}]"#, hosts),
            ("", r#"status.hostIP="1.1.1.1" ; status.hostIPs=[{"ip":"1.1.1.1"},{"ip":"::1"},{"ip":"::2"}]"#, hosts),
            ("", r#"status.hostIP="1.1.1.1" ; status.hostIPs=[{"ip":"1.1.1.1"},{"ip":"1.1.1.1"},{"ip":"::1"}]"#, hosts),
        ]);
}

#[test]
fn claims_and_devices() {
    let claiming = r#"spec.resourceClaims=[{"name":"my-claim","resourceClaimName":"a"},{"name":"my-other-claim","resourceClaimName":"a"}]"#;
    let gpu = r#"spec.containers[0].resources={"limits":{"example.com/gpu":"1"}} ; spec.initContainers[0].resources={"limits":{"example.com/gpu":"1"}}"#;
    let named = r#"spec.resourceClaims=[{"name":"claim","resourceClaimName":"a"}] ; spec.containers[0].resources={"claims":[{"name":"claim","request":"request"}]} ; spec.containers[1].resources={"claims":[{"name":"claim"}]}"#;
    let device = "Invalid status.containerStatuses[0].allocatedResourcesStatus[0].name";
    pod()
        .reported(&[
            ("", r#"status.resourceClaimStatuses=[{"name":"no-such-claim","resourceClaimName":"my-claim"}]"#, "Invalid status.resourceClaimStatuses[0].name"),
            (claiming, r#"status.resourceClaimStatuses=[{"name":"my-claim","resourceClaimName":"%$!#"}]"#, "Invalid status.resourceClaimStatuses[0].resourceClaimName"),
            (claiming, r#"status.resourceClaimStatuses=[{"name":"my-claim","resourceClaimName":"foo-my-claim-12345"},{"name":"my-other-claim"},{"name":"my-other-claim"}]"#, "Duplicate status.resourceClaimStatuses[2].name"),
            (claiming, r#"status.resourceClaimStatuses=[{"name":"my-claim","resourceClaimName":"foo-my-claim-12345"},{"name":"my-other-claim"}]"#, ""),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[{"containerName":"web","resourceName":"example.com/gpu","requestName":"container-0-request-0"},{"containerName":"web","resourceName":"example.com/gpu","requestName":"container-1-request-0"}]}"#, ""),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[{"containerName":"init","resourceName":"example.com/gpu","requestName":"container-0-request-0"}]}"#, ""),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[]}"#, "Required status.extendedResourceClaimStatus.requestMappings"),
            (
                gpu,
                r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[{"containerName":"web","resourceName":"example.com/gpu","requestName":"a"},{"containerName":"web","resourceName":"example.com/gpu","requestName":"a"}]}"#,
                "Duplicate status.extendedResourceClaimStatus.requestMappings[1].containerName, Duplicate status.extendedResourceClaimStatus.requestMappings[1].resourceName, Duplicate status.extendedResourceClaimStatus.requestMappings[1].requestName",
            ),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[{"containerName":"abc","resourceName":"example.com/gpu","requestName":"a"}]}"#, "Invalid status.extendedResourceClaimStatus.requestMappings[0].containerName"),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[{"containerName":"web","resourceName":"example.com/cpu","requestName":"a"}]}"#, "Invalid status.extendedResourceClaimStatus.requestMappings[0].resourceName"),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz","requestMappings":[{"containerName":"web","resourceName":"example.com/gpu","requestName":"example.com"}]}"#, "Invalid status.extendedResourceClaimStatus.requestName"),
            (gpu, r#"status.extendedResourceClaimStatus={"resourceClaimName":"xyz/abc","requestMappings":[{"containerName":"web","resourceName":"example.com/gpu","requestName":"a"}]}"#, "Invalid status.extendedResourceClaimStatus.resourceClaimName"),
            (gpu, r#"status.containerStatuses=[{"name":"web","allocatedResourcesStatus":[{"name":"example.com/gpu","resources":[{"resourceID":"resource-1","health":"Healthy"}]}]}]"#, ""),
            (gpu, r#"status.containerStatuses=[{"name":"gone","allocatedResourcesStatus":[{"name":"test.device/test","resources":[{"resourceID":"resource-1","health":"Healthy"}]}]}]"#, ""),
            (
                gpu,
                r#"status.containerStatuses=[{"name":"web","allocatedResourcesStatus":[{"name":"example.com/gpu","resources":[{"resourceID":"resource-1","health":"Healthy"},{"resourceID":"resource-1","health":"Unhealthy"}]}]}]"#,
                "Duplicate status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID",
            ),
            (gpu, r#"status.containerStatuses=[{"name":"web","allocatedResourcesStatus":[{"name":"test.device/test2"}]}]"#, device),
            (named, r#"status.containerStatuses=[{"name":"web","allocatedResourcesStatus":[{"name":"claim:claim/request","resources":[{"resourceID":"a/b/c","health":"Healthy"}]}]},{"name":"log","allocatedResourcesStatus":[{"name":"claim:claim"}]}]"#, ""),
            (named, r#"status.containerStatuses=[{"name":"web","allocatedResourcesStatus":[{"name":"claim:claim"}]}]"#, device),
            (
                gpu,
                r#"status.containerStatuses=[{"name":"web","allocatedResourcesStatus":[{"name":"example.com/gpu","resources":[{"resourceID":"a","health":"invalid-health-value","message":""}]}]}]"#,
                "NotSupported status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health, Required status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].message",
            ),
            (
                "",
                r#"status.ephemeralContainerStatuses=[{"name":"a"},{"name":"b","allocatedResourcesStatus":[{"name":"test.device/test"}]}]"#,
                "Forbidden status.ephemeralContainerStatuses[1].allocatedResourcesStatus",
            ),
        ]);
    let reported = |length: usize| {
        let message = "a".repeat(length);
        let report = format!(
            r#"status.containerStatuses=[{{"name":"gone","allocatedResourcesStatus":[{{"name":"a","resources":[{{"resourceID":"b","health":"Healthy","message":"{message}"}}]}}]}}]"#
        );
        &*report.leak()
    };
    let message =
        "TooLong status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].message";
    pod().reported(&[("", reported(1024), ""), ("", reported(1025), message)]);
}
