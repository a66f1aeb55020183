//! The whole message of an error of each kind, as Kubernetes 1.36 words it. The other tables compare reasons and
//! fields.
//!
//! Each case changes the example of the kind in `proto/`.

use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use crate::table::Base;

/// A resource, a change of its example, and the message of the error.
type Case = (&'static str, &'static str, &'static str);

const CASES: &[Case] = &[
    (
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        r#"webhooks[0].sideEffects="Some""#,
        r#"ValidatingWebhookConfiguration.admissionregistration.k8s.io "web" is invalid: webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun""#,
    ),
    (
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        r#"webhooks[0].name="a.b""#,
        r#"MutatingWebhookConfiguration.admissionregistration.k8s.io "web" is invalid: webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots"#,
    ),
    (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "spec.validations=[]",
        r#"ValidatingAdmissionPolicy.admissionregistration.k8s.io "web" is invalid: [spec.validations: Required value: validations or auditAnnotations must contain at least one item, spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]"#,
    ),
    (
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "spec.validationActions=[]",
        r#"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "web" is invalid: spec.validationActions: Required value: at least one validation action is required"#,
    ),
    (
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        r#"spec.reinvocationPolicy="Always""#,
        r#"MutatingAdmissionPolicy.admissionregistration.k8s.io "web" is invalid: spec.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never""#,
    ),
    (
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "spec.policyName=null",
        r#"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io "web" is invalid: spec.policyName: Required value"#,
    ),
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        r#"spec.scope="Global""#,
        r#"CustomResourceDefinition.apiextensions.k8s.io "sites.example.com" is invalid: spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced""#,
    ),
    (
        "apiservices.apiregistration.k8s.io",
        r#"metadata.name="web""#,
        r#"APIService.apiregistration.k8s.io "web" is invalid: metadata.name: Invalid value: "web": must be `spec.version+"."+spec.group`: "v1.example.com""#,
    ),
    (
        "deployments.apps",
        "spec.progressDeadlineSeconds=0",
        r#"Deployment.apps "web" is invalid: spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds"#,
    ),
    (
        "replicasets.apps",
        "spec.replicas=-1",
        r#"ReplicaSet.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
    ),
    (
        "controllerrevisions.apps",
        "revision=-1",
        r#"ControllerRevision.apps "web" is invalid: revision: Invalid value: -1: must be greater than or equal to 0"#,
    ),
    (
        "daemonsets.apps",
        r#"spec.template.spec.restartPolicy="Never""#,
        r#"DaemonSet.apps "web" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#,
    ),
    (
        "statefulsets.apps",
        r#"spec.podManagementPolicy="Random""#,
        r#"StatefulSet.apps "web" is invalid: spec.podManagementPolicy: Invalid value: "Random": must be 'OrderedReady' or 'Parallel'"#,
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        "spec.minReplicas=6",
        r#"HorizontalPodAutoscaler.autoscaling "web" is invalid: spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"#,
    ),
    (
        "jobs.batch",
        r#"spec.template.spec.restartPolicy="Always""#,
        r#"Job.batch "web" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#,
    ),
    (
        "cronjobs.batch",
        r#"spec.concurrencyPolicy="Never""#,
        r#"CronJob.batch "web" is invalid: spec.concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace""#,
    ),
    (
        "certificatesigningrequests.certificates.k8s.io",
        r#"spec.signerName="web""#,
        r#"CertificateSigningRequest.certificates.k8s.io "web" is invalid: spec.signerName: Invalid value: "web": must be a fully qualified domain and path of the form 'example.com/signer-name'"#,
    ),
    (
        "leases.coordination.k8s.io",
        "spec.leaseDurationSeconds=0",
        r#"Lease.coordination.k8s.io "web" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"#,
    ),
    (
        "configmaps",
        r#"data={"a b":"c"}"#,
        r#"ConfigMap "web" is invalid: data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#,
    ),
    (
        "secrets",
        r#"type="kubernetes.io/tls""#,
        r#"Secret "web" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]"#,
    ),
    (
        "serviceaccounts",
        r#"metadata.name="Web""#,
        r#"ServiceAccount "Web" is invalid: metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
    ),
    (
        "endpoints",
        r#"subsets[0].addresses[0].ip="10.0.0""#,
        r#"Endpoints "web" is invalid: [subsets[0].addresses[0].ip: Invalid value: "10.0.0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), subsets[0].addresses[0].ip: Invalid value: "10.0.0": must be a valid IP address]"#,
    ),
    (
        "events",
        r#"involvedObject.namespace="other""#,
        r#"Event "web" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace"#,
    ),
    (
        "namespaces",
        r#"metadata.name="a.b""#,
        r#"Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots"#,
    ),
    (
        "nodes",
        r#"spec.taints[0].effect="Sometimes""#,
        r#"Node "web" is invalid: metadata.taints[0].effect: Unsupported value: "Sometimes": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#,
    ),
    (
        "pods",
        r#"spec.containers[0].volumeMounts[0].name="data""#,
        r#"Pod "web" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "data""#,
    ),
    (
        "resourcequotas",
        r#"spec.hard.pods="0.5""#,
        r#"ResourceQuota "web" is invalid: spec.hard[pods]: Invalid value: "500m": must be an integer"#,
    ),
    (
        "limitranges",
        r#"spec.limits[0].min={"cpu":"9"}"#,
        r#"LimitRange "web" is invalid: [spec.limits[0].min[cpu]: Invalid value: "9": min value 9 is greater than max value 8, spec.limits[0].defaultRequest[cpu]: Invalid value: "100m": min value 9 is greater than default request value 100m, spec.limits[0].default[cpu]: Invalid value: "9": min value 9 is greater than default value 1]"#,
    ),
    (
        "replicationcontrollers",
        "spec.replicas=-1",
        r#"ReplicationController "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
    ),
    (
        "services",
        "spec.ports[0].port=65536",
        r#"Service "web" is invalid: spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive"#,
    ),
    (
        "persistentvolumes",
        "spec.accessModes=[]",
        r#"PersistentVolume "web" is invalid: spec.accessModes: Required value"#,
    ),
    (
        "persistentvolumeclaims",
        "spec.accessModes=[]",
        r#"PersistentVolumeClaim "web" is invalid: spec.accessModes: Required value: at least 1 access mode is required"#,
    ),
    (
        "podtemplates",
        "template.spec.containers=[]",
        r#"PodTemplate "web" is invalid: template.spec.containers: Required value"#,
    ),
    (
        "endpointslices.discovery.k8s.io",
        r#"addressType="IPv5""#,
        r#"EndpointSlice.discovery.k8s.io "web" is invalid: addressType: Unsupported value: "IPv5": supported values: "FQDN", "IPv4", "IPv6""#,
    ),
    (
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "spec.matchingPrecedence=10001",
        r#"FlowSchema.flowcontrol.apiserver.k8s.io "web" is invalid: spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"#,
    ),
    (
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        r#"spec.type="Unlimited""#,
        r#"PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "web" is invalid: spec.type: Unsupported value: "Unlimited": supported values: "Exempt", "Limited""#,
    ),
    (
        "ingresses.networking.k8s.io",
        r#"spec.rules[0].http.paths[0].path="web""#,
        r#"Ingress.networking.k8s.io "web" is invalid: spec.rules[0].http.paths[0].path: Invalid value: "web": must be an absolute path"#,
    ),
    (
        "ingressclasses.networking.k8s.io",
        r#"spec.controller="web""#,
        r#"IngressClass.networking.k8s.io "web" is invalid: spec.controller: Invalid value: "web": must be a domain-prefixed path (such as "acme.io/foo")"#,
    ),
    (
        "networkpolicies.networking.k8s.io",
        "spec.ingress[0].ports[0].port=0",
        r#"NetworkPolicy.networking.k8s.io "web" is invalid: spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"#,
    ),
    (
        "ipaddresses.networking.k8s.io",
        "spec.parentRef=null",
        r#"IPAddress.networking.k8s.io "10.0.0.1" is invalid: spec.parentRef: Required value"#,
    ),
    (
        "servicecidrs.networking.k8s.io",
        "spec.cidrs=[]",
        r#"ServiceCIDR.networking.k8s.io "web" is invalid: spec.cidrs: Required value: at least one CIDR required"#,
    ),
    (
        "runtimeclasses.node.k8s.io",
        r#"handler="a_b""#,
        r#"RuntimeClass.node.k8s.io "web" is invalid: handler: Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#,
    ),
    (
        "poddisruptionbudgets.policy",
        "spec.minAvailable=-1",
        r#"PodDisruptionBudget.policy "web" is invalid: spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"#,
    ),
    (
        "roles.rbac.authorization.k8s.io",
        "rules[0].verbs=[]",
        r#"Role.rbac.authorization.k8s.io "web" is invalid: rules[0].verbs: Required value: verbs must contain at least one value"#,
    ),
    (
        "rolebindings.rbac.authorization.k8s.io",
        r#"roleRef.kind="User""#,
        r#"RoleBinding.rbac.authorization.k8s.io "web" is invalid: roleRef.kind: Unsupported value: "User": supported values: "Role", "ClusterRole""#,
    ),
    (
        "clusterroles.rbac.authorization.k8s.io",
        "rules[0].apiGroups=[]",
        r#"ClusterRole.rbac.authorization.k8s.io "web" is invalid: rules[0].apiGroups: Required value: resource rules must supply at least one api group"#,
    ),
    (
        "clusterrolebindings.rbac.authorization.k8s.io",
        "subjects[0].name=null",
        r#"ClusterRoleBinding.rbac.authorization.k8s.io "web" is invalid: subjects[0].name: Required value"#,
    ),
    (
        "deviceclasses.resource.k8s.io",
        "spec.selectors[0].cel=null",
        r#"DeviceClass.resource.k8s.io "web" is invalid: spec.selectors[0].cel: Required value"#,
    ),
    (
        "resourceclaims.resource.k8s.io",
        "spec.devices.requests[0].exactly.deviceClassName=null",
        r#"ResourceClaim.resource.k8s.io "web" is invalid: spec.devices.requests[0].exactly.deviceClassName: Required value"#,
    ),
    (
        "resourceclaimtemplates.resource.k8s.io",
        r#"spec.spec.devices.requests[0].name="a b""#,
        r#"ResourceClaimTemplate.resource.k8s.io "web" is invalid: spec.spec.devices.requests[0].name: Invalid value: "a b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#,
    ),
    (
        "resourceslices.resource.k8s.io",
        "spec.pool.resourceSliceCount=0",
        r#"ResourceSlice.resource.k8s.io "web" is invalid: spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"#,
    ),
    (
        "priorityclasses.scheduling.k8s.io",
        "value=1000000001",
        r#"PriorityClass.scheduling.k8s.io "web" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000"#,
    ),
    (
        "storageclasses.storage.k8s.io",
        r#"reclaimPolicy="Recycle""#,
        r#"StorageClass.storage.k8s.io "web" is invalid: reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain""#,
    ),
    (
        "csidrivers.storage.k8s.io",
        r#"spec.fsGroupPolicy="Sometimes""#,
        r#"CSIDriver.storage.k8s.io "web" is invalid: spec.fsGroupPolicy: Unsupported value: "Sometimes": supported values: "File", "None", "ReadWriteOnceWithFSType""#,
    ),
    (
        "csinodes.storage.k8s.io",
        "spec.drivers[0].nodeID=null",
        r#"CSINode.storage.k8s.io "web" is invalid: spec.drivers[0].nodeID: Required value"#,
    ),
    (
        "csistoragecapacities.storage.k8s.io",
        "storageClassName=null",
        r#"CSIStorageCapacity.storage.k8s.io "web" is invalid: storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
    ),
    (
        "volumeattachments.storage.k8s.io",
        "spec.attacher=null",
        r#"VolumeAttachment.storage.k8s.io "web" is invalid: spec.attacher: Required value"#,
    ),
    (
        "volumeattributesclasses.storage.k8s.io",
        "driverName=null",
        r#"VolumeAttributesClass.storage.k8s.io "web" is invalid: driverName: Required value"#,
    ),
];

#[test]
fn each_kind_words_its_errors_as_kubernetes_does() {
    let mut wrong = Vec::new();
    for (resource, change, expected) in CASES {
        let kind = kinds().by_resource(resource).expect(resource);
        let base = Base {
            resource,
            object: example(kind),
        };
        let message = base.refusal(change);
        if message != *expected {
            wrong.push(format!(
                "{resource}: {change}\n    expected {expected}\n    found    {message}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_example_of_each_kind_is_valid() {
    for kind in kinds().iter() {
        let base = Base {
            resource: kind.resource().leak(),
            object: example(kind),
        };
        assert_eq!(base.refusal(""), "", "{}", kind.kind);
    }
}

/// Returns the example of a kind, named `web` unless its other fields give its name.
fn example(kind: &Kind) -> Value {
    let mut object = match kind.example.as_str() {
        "" => json!({}),
        example => serde_json::from_str(example).expect("an example is JSON"),
    };
    if object["metadata"].is_null() {
        object["metadata"] = json!({ "name": "web" });
    }
    object
}
