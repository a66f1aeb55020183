//! kubectl under a ValidatingAdmissionPolicy.

use setpoint_tests::{Cluster, Kubectl, eventually};

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas.example.com}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments, deployments/scale]
  matchConditions:
  - {name: not-exempt, expression: \"!has(object.metadata.labels) || !('exempt' in object.metadata.labels)\"}
  variables:
  - {name: limit, expression: int(params.data.limit)}
  validations:
  - expression: object.spec.replicas <= variables.limit
    messageExpression: \"'at most ' + string(variables.limit) + ' replicas'\"
    reason: Forbidden
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {limit: '2'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas.example.com}
spec:
  policyName: replicas.example.com
  validationActions: [Deny]
  paramRef: {name: limits, parameterNotFoundAction: Deny}
";

const DENIED: &str = "ValidatingAdmissionPolicy 'replicas.example.com' with binding 'replicas.example.com' denied request: at most 2 replicas";

fn create(kubectl: &Kubectl, replicas: u32) -> Result<(), String> {
    let arguments =
        format!("create deployment probe --image=nginx --replicas={replicas} --dry-run=server");
    let output = kubectl.run(&arguments);
    output.success.then_some(()).ok_or(output.stderr)
}

#[test]
fn kubectl_shows_why_a_policy_denies() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", POLICY);
    assert!(applied.success, "{}", applied.stderr);
    assert!(!applied.stderr.contains("Warning"), "{}", applied.stderr);
    eventually("the policy denies", || match create(&kubectl, 3) {
        Err(error) if error.contains(DENIED) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(create(&kubectl, 2), Ok(()));
    kubectl.ok("create deployment web --image=nginx --replicas=2");
    let refused = kubectl.fails("scale deployment web --replicas=3");
    assert!(refused.contains(DENIED), "{refused}");
    kubectl.ok("scale deployment web --replicas=1");
    kubectl.ok("label deployment web exempt=yes");
    let patch = r#"patch deployment web -p {"spec":{"replicas":3}}"#;
    kubectl.ok(patch);
    kubectl.ok("delete validatingadmissionpolicybinding replicas.example.com");
    eventually("the policy has no effect", || create(&kubectl, 3));
    let table = kubectl.ok("get validatingadmissionpolicy");
    assert!(table.contains("v1/ConfigMap"), "{table}");
}

const MUTATING: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: sidecar.example.com}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [deployments]
  matchConditions:
  - {name: not-exempt, expression: \"object.metadata.name != 'plain'\"}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: |
        Object{
          metadata: Object.metadata{annotations: {'mutated-by': 'admission-policy'}},
          spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
            containers: [Object.spec.template.spec.containers{name: 'sidecar', image: 'sidecar:1'}]
          }}}
        }
  - patchType: JSONPatch
    jsonPatch:
      expression: \"[JSONPatch{op: 'replace', path: '/spec/replicas', value: 2}]\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: sidecar.example.com}
spec: {policyName: sidecar.example.com}
";

#[test]
fn a_mutating_policy_changes_what_kubectl_creates() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", MUTATING);
    assert!(applied.success, "{}", applied.stderr);
    assert!(!applied.stderr.contains("Warning"), "{}", applied.stderr);
    eventually("the policy changes Deployments", || {
        let probe = "create deployment probe --image=nginx --dry-run=server";
        let probe = kubectl.json(probe);
        match probe["metadata"]["annotations"]["mutated-by"].as_str() {
            Some("admission-policy") => Ok(()),
            _ => Err(probe["metadata"].to_string()),
        }
    });
    kubectl.ok("create deployment web --image=nginx");
    let containers =
        "get deployment web -o jsonpath={.spec.replicas}{.spec.template.spec.containers[*].name}";
    assert_eq!(kubectl.ok(containers), "2nginx sidecar");
    kubectl.ok("create deployment plain --image=nginx");
    let containers = containers.replace("web", "plain");
    assert_eq!(kubectl.ok(&containers), "1nginx");
}
