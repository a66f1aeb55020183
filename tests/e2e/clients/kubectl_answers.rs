//! Commands whose answers were compared with those of Kubernetes' own API server, text by text.

use setpoint_tests::{Cluster, Kubectl};

use super::folded;

/// A command, and a part of the message with which it fails.
const REFUSALS: &[(&str, &str)] = &[
    // Checks U1.
    (
        r#"run p --image=a --overrides={"spec":{"priority":2147483647}}"#,
        "the integer value of priority (2147483647) must not be provided in pod spec; priority admission controller computed 0",
    ),
    // Checks U3.
    (
        r#"run m --image=a --overrides={"spec":{"containers":[{"name":"m","image":"a","volumeMounts":[{"name":"nope","mountPath":"/x"}]}]}}"#,
        r#"spec.containers[0].volumeMounts[0].name: Not found: "nope""#,
    ),
    // Checks T3.
    (
        r#"patch configmap one -p {"metadata":{"labels":"x"}}"#,
        "cannot restore map from string",
    ),
    (
        r#"patch configmap one --type=merge -p {"metadata":{"labels":"x"}}"#,
        "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
    ),
    // Checks RF6: which operation of a JSON patch failed, and why.
    (
        r#"patch configmap one --type=json -p [{"op":"remove","path":"/data/none"}]"#,
        "/data/none",
    ),
];

#[test]
fn kubectl_shows_the_refusals_of_kubernetes() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    kubectl.ok("create configmap one --from-literal=c=3");
    for (command, message) in REFUSALS {
        let answer = kubectl.fails(command);
        assert!(answer.contains(message), "{command}: {answer}");
    }
}

#[test]
fn kubectl_shows_the_values_and_the_order_of_kubernetes() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    discovery_has_the_order_of_gos_structures(&kubectl);
    a_json_answer_ends_with_a_newline(&kubectl);
    defaults_are_in_the_answer_of_a_create(&kubectl);
    a_null_quantity_is_zero(&kubectl);
    // Checks U7.
    kubectl.ok("create serviceaccount one");
    let table = folded(&kubectl.ok("get serviceaccounts one"));
    assert_eq!(table.first().map(String::as_str), Some("NAME AGE"));
}

/// Checks T1.
fn discovery_has_the_order_of_gos_structures(kubectl: &Kubectl) {
    let resources = kubectl.ok("get --raw /api/v1");
    for part in [
        r#""name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap""#,
        r#""shortNames":["po"],"categories":["all"]"#,
    ] {
        assert!(resources.contains(part), "{resources}");
    }
}

/// Checks U7.
fn a_json_answer_ends_with_a_newline(kubectl: &Kubectl) {
    assert!(
        kubectl
            .ok("get --raw /api/v1/namespaces/default")
            .ends_with("}\n")
    );
}

/// Checks U1 and U7.
fn defaults_are_in_the_answer_of_a_create(kubectl: &Kubectl) {
    let shown = "-o jsonpath={.spec.priority},{.spec.preemptionPolicy}";
    let priority = kubectl.ok(&format!("run plain --image=a {shown}"));
    assert_eq!(priority, "0,PreemptLowerPriority");
    let labels = kubectl.ok("create job lab --image=a -o jsonpath={.metadata.labels}");
    for label in ["controller-uid", "job-name", "batch.kubernetes.io/job-name"] {
        assert!(labels.contains(&format!(r#""{label}":"#)), "{labels}");
    }
}

const NULL_QUANTITY: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: nul}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i, resources: {requests: {memory: 64Mi, cpu: null}}}]}
";

/// Checks U4.
fn a_null_quantity_is_zero(kubectl: &Kubectl) {
    let shown = "jsonpath={.spec.template.spec.containers[0].resources.requests.cpu}";
    let created = kubectl.with(
        &format!("create --dry-run=server -o {shown}"),
        NULL_QUANTITY,
    );
    assert_eq!(
        (created.success, created.stdout.as_str()),
        (true, "0"),
        "{}",
        created.stderr
    );
}

const SHELVES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: shelves, singular: shelf, kind: Shelf}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, properties: {replicas: {type: integer}}}
          spec:
            type: object
            properties:
              replicas: {type: integer}
              books: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {title: {type: string}}}}
              waits: {type: array, items: {type: string, x-kubernetes-validations: [{rule: \"duration(self) >= duration('2ms')\"}]}}
";
const SHELF: &str = "
apiVersion: example.com/v1
kind: Shelf
metadata: {name: first}
spec: {books: [{title: a, pages: 3}], waits: [1s]}
";

/// Checks RF1 (the cost of the rule), RF2 (items whose unknown fields are kept) and RF4 (no replicas to scale).
#[test]
fn kubectl_uses_a_custom_kind_as_with_kubernetes() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let defined = kubectl.with("create", SHELVES);
    assert!(defined.success, "{}", defined.stderr);
    kubectl.ok("wait crd/shelves.example.com --for=condition=Established --timeout=30s");
    let created = kubectl.with("apply --server-side", SHELF);
    assert!(created.success, "{}", created.stderr);
    assert_eq!(
        kubectl.ok("get shelf first -o jsonpath={.spec.books[0].pages}"),
        "3"
    );
    let short = kubectl.with("apply --server-side", &SHELF.replace("1s", "1ms"));
    assert!(short.stderr.contains("failed rule"), "{}", short.stderr);
    let scale =
        kubectl.fails("get --raw /apis/example.com/v1/namespaces/default/shelves/first/scale");
    assert!(
        scale.contains(r#"the spec replicas field ".spec.replicas" does not exist"#),
        "{scale}"
    );
}
