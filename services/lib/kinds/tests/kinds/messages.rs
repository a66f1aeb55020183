//! The whole message of an error of each kind, as Kubernetes 1.36 words it. The other tables compare reasons and fields.
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
        r#""#,
    ),
    (
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        r#"webhooks[0].name="a.b""#,
        r#""#,
    ),
    (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        r#"spec.validations=[]"#,
        r#""#,
    ),
    (
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        r#"spec.validationActions=[]"#,
        r#""#,
    ),
    (
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        r#"spec.reinvocationPolicy="Always""#,
        r#""#,
    ),
    (
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        r#"spec.policyName=null"#,
        r#""#,
    ),
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        r#"spec.scope="Global""#,
        r#""#,
    ),
    (
        "apiservices.apiregistration.k8s.io",
        r#"metadata.name="web""#,
        r#""#,
    ),
    (
        "deployments.apps",
        r#"spec.template.metadata.labels.app="other""#,
        r#""#,
    ),
    ("replicasets.apps", r#"spec.replicas=-1"#, r#""#),
    ("controllerrevisions.apps", r#"revision=-1"#, r#""#),
    (
        "daemonsets.apps",
        r#"spec.updateStrategy.type="Sometimes""#,
        r#""#,
    ),
    (
        "statefulsets.apps",
        r#"spec.podManagementPolicy="Random""#,
        r#""#,
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        r#"spec.maxReplicas=0"#,
        r#""#,
    ),
    (
        "jobs.batch",
        r#"spec.template.spec.restartPolicy="Always""#,
        r#""#,
    ),
    ("cronjobs.batch", r#"spec.concurrencyPolicy="Never""#, r#""#),
    (
        "certificatesigningrequests.certificates.k8s.io",
        r#"spec.signerName="web""#,
        r#""#,
    ),
    (
        "leases.coordination.k8s.io",
        r#"spec.leaseDurationSeconds=0"#,
        r#""#,
    ),
    ("configmaps", r#"data={"a b":"c"}"#, r#""#),
    ("secrets", r#"type="kubernetes.io/tls""#, r#""#),
    ("serviceaccounts", r#"metadata.name="Web""#, r#""#),
    ("endpoints", r#"subsets[0].addresses[0].ip="10.0.0""#, r#""#),
    ("events", r#"involvedObject.namespace="other""#, r#""#),
    ("namespaces", r#"metadata.name="a.b""#, r#""#),
    ("nodes", r#"spec.taints[0].effect="Sometimes""#, r#""#),
    (
        "pods",
        r#"spec.containers[0].volumeMounts[0].name="data""#,
        r#""#,
    ),
    ("resourcequotas", r#"spec.hard.pods="0.5""#, r#""#),
    ("limitranges", r#"spec.limits[0].min={"cpu":"9"}"#, r#""#),
    (
        "replicationcontrollers",
        r#"spec.selector={"app":"other"}"#,
        r#""#,
    ),
    ("services", r#"spec.ports[0].port=65536"#, r#""#),
    ("persistentvolumes", r#"spec.capacity={}"#, r#""#),
    ("persistentvolumeclaims", r#"spec.accessModes=[]"#, r#""#),
    ("podtemplates", r#"template.spec.containers=[]"#, r#""#),
    (
        "endpointslices.discovery.k8s.io",
        r#"addressType="IPv5""#,
        r#""#,
    ),
    (
        "flowschemas.flowcontrol.apiserver.k8s.io",
        r#"spec.matchingPrecedence=10001"#,
        r#""#,
    ),
    (
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        r#"spec.type="Unlimited""#,
        r#""#,
    ),
    (
        "ingresses.networking.k8s.io",
        r#"spec.rules[0].http.paths[0].path="web""#,
        r#""#,
    ),
    (
        "ingressclasses.networking.k8s.io",
        r#"spec.controller="web""#,
        r#""#,
    ),
    (
        "networkpolicies.networking.k8s.io",
        r#"spec.ingress[0].ports[0].port=0"#,
        r#""#,
    ),
    (
        "ipaddresses.networking.k8s.io",
        r#"spec.parentRef=null"#,
        r#""#,
    ),
    ("servicecidrs.networking.k8s.io", r#"spec.cidrs=[]"#, r#""#),
    ("runtimeclasses.node.k8s.io", r#"handler="a_b""#, r#""#),
    (
        "poddisruptionbudgets.policy",
        r#"spec.maxUnavailable=1"#,
        r#""#,
    ),
    (
        "roles.rbac.authorization.k8s.io",
        r#"rules[0].verbs=[]"#,
        r#""#,
    ),
    (
        "rolebindings.rbac.authorization.k8s.io",
        r#"roleRef.kind="User""#,
        r#""#,
    ),
    (
        "clusterroles.rbac.authorization.k8s.io",
        r#"rules[0].apiGroups=[]"#,
        r#""#,
    ),
    (
        "clusterrolebindings.rbac.authorization.k8s.io",
        r#"subjects[0].name=null"#,
        r#""#,
    ),
    (
        "deviceclasses.resource.k8s.io",
        r#"spec.selectors[0].cel.expression="noSuch()""#,
        r#""#,
    ),
    (
        "resourceclaims.resource.k8s.io",
        r#"spec.devices.requests[0].exactly.deviceClassName=null"#,
        r#""#,
    ),
    (
        "resourceclaimtemplates.resource.k8s.io",
        r#"spec.spec.devices.requests[0].name="a b""#,
        r#""#,
    ),
    (
        "resourceslices.resource.k8s.io",
        r#"spec.pool.resourceSliceCount=0"#,
        r#""#,
    ),
    (
        "priorityclasses.scheduling.k8s.io",
        r#"value=1000000001"#,
        r#""#,
    ),
    (
        "storageclasses.storage.k8s.io",
        r#"reclaimPolicy="Recycle""#,
        r#""#,
    ),
    (
        "csidrivers.storage.k8s.io",
        r#"spec.fsGroupPolicy="Sometimes""#,
        r#""#,
    ),
    (
        "csinodes.storage.k8s.io",
        r#"spec.drivers[0].nodeID=null"#,
        r#""#,
    ),
    (
        "csistoragecapacities.storage.k8s.io",
        r#"storageClassName=null"#,
        r#""#,
    ),
    (
        "volumeattachments.storage.k8s.io",
        r#"spec.attacher=null"#,
        r#""#,
    ),
    (
        "volumeattributesclasses.storage.k8s.io",
        r#"driverName=null"#,
        r#""#,
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
