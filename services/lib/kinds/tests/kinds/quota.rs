//! Quotas and limit ranges: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, object: Value) -> Base {
    Base { resource, object }
}

#[test]
fn quotas() {
    let quota = || {
        base(
            "resourcequotas",
            json!({"metadata": {"name": "abc"}, "spec": {"hard": {}}}),
        )
    };
    quota()
        .created(&[
            (r#"spec.hard={"cpu":"100","memory":"10000","requests.cpu":"100","requests.memory":"10000","limits.cpu":"100","limits.memory":"10000","requests.storage":"10","pods":"10","services":"0","replicationcontrollers":"10","resourcequotas":"10","configmaps":"10","secrets":"10","hugepages-2Mi":"2Mi","requests.hugepages-2Mi":"2Mi"}"#, ""),
            (r#"spec.hard={"count/deployments.apps":"5","requests.nvidia.com/gpu":"4","gold.storageclass.storage.k8s.io/requests.storage":"5Gi"}"#, ""),
            (r#"spec.hard={"cpu":"100","memory":"10000"} ; spec.scopes=["Terminating","NotTerminating"]"#, "Invalid spec.scopes"),
            (r#"spec.hard={"pods":"100"} ; spec.scopes=["BestEffort","NotBestEffort"]"#, "Invalid spec.scopes"),
            (r#"spec.hard={"pods":"100"} ; spec.scopes=["Terminating"]"#, ""),
            (r#"spec.hard={"pods":"100"} ; spec.scopes=["BestEffort"]"#, ""),
            (r#"spec.hard={"cpu":"100","pods":"1"} ; spec.scopes=["NotBestEffort"]"#, ""),
            (r#"spec.hard={"cpu":"100"} ; spec.scopes=["BestEffort"]"#, "Invalid spec.scopes"),
            (r#"spec.hard={"secrets":"100"} ; spec.scopes=["Terminating"]"#, "Invalid spec.scopes"),
            (r#"spec.scopes=["unknown"]"#, "Invalid spec.scopes"),
            (r#"spec.hard={"cpu":"100"} ; spec.scopes=["PriorityClass"]"#, ""),
            (r#"spec.hard={"cpu":"100"} ; spec.scopeSelector={"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["cluster-services"]}]}"#, ""),
            (r#"spec.hard={"cpu":"100"} ; spec.scopeSelector={"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]}"#, "Required spec.scopeSelector.matchExpressions.values"),
            (r#"spec.hard={"cpu":"100"} ; spec.scopeSelector={"matchExpressions":[{"scopeName":"PriorityClass","operator":"Exists","values":["a"]}]}"#, "Invalid spec.scopeSelector.matchExpressions.values"),
            (r#"spec.hard={"pods":"1"} ; spec.scopeSelector={"matchExpressions":[{"scopeName":"Terminating","operator":"In","values":["a"]}]}"#, "Invalid spec.scopeSelector.matchExpressions.operator"),
            (r#"spec.hard={"pods":"1"} ; spec.scopeSelector={"matchExpressions":[{"scopeName":"unknown","operator":"near"}]}"#, "Invalid spec.scopeSelector.matchExpressions.scopeName, Invalid spec.scopeSelector.matchExpressions.operator"),
            (r#"spec.hard={"pods":"1"} ; spec.scopeSelector={"matchExpressions":[{"scopeName":"BestEffort","operator":"Exists"},{"scopeName":"NotBestEffort","operator":"Exists"}]}"#, "Invalid spec.scopeSelector.matchExpressions"),
            (r#"spec.hard={"requests.cpu":"100"} ; spec.scopes=["CrossNamespacePodAffinity"]"#, ""),
            (r#"spec.hard={"pods":"-1"}"#, "Invalid spec.hard[pods]"),
            (r#"spec.hard={"pods":"500m"}"#, "Invalid spec.hard[pods]"),
            (r#"spec.hard={"storage":"1"}"#, "Invalid spec.hard[storage]"),
            (r#"spec.hard={"gpu":"1"}"#, "Invalid spec.hard[gpu]"),
            (r#"metadata.name="^Invalid""#, "Invalid metadata.name"),
        ]);
    quota().updated(&[
        (r#"spec.hard={"pods":"1"}"#, r#"spec.hard.pods="2""#, ""),
        (
            r#"spec.hard={"pods":"1"}"#,
            r#"spec.scopes=["BestEffort"]"#,
            "Invalid spec.scopes",
        ),
    ]);
    quota().reported(&[
        (
            "",
            r#"status.hard={"pods":"1"} ; status.used={"pods":"1"}"#,
            "",
        ),
        (
            "",
            r#"status.hard={"pods":"-1"} ; status.used={"gpu":"1"}"#,
            "Invalid status.hard[pods], Invalid status.used[gpu]",
        ),
    ]);
}

#[test]
fn limit_ranges() {
    let range = base(
        "limitranges",
        json!({"metadata": {"name": "abc"}, "spec": {"limits": []}}),
    );
    range
        .created(&[
            (r#"spec.limits[0]={"type":"Pod","max":{"cpu":"100m","memory":"10000Mi"},"min":{"cpu":"5m","memory":"100Mi"},"maxLimitRequestRatio":{"cpu":"10"}}"#, ""),
            (r#"spec.limits[0]={"type":"Container","max":{"cpu":"100m","memory":"10000Mi","storage.io/a":"1"},"min":{"cpu":"5m"},"default":{"cpu":"50m"},"defaultRequest":{"cpu":"10m"},"maxLimitRequestRatio":{"cpu":"10"}}"#, ""),
            (r#"spec.limits[0]={"type":"PersistentVolumeClaim","max":{"storage":"10Gi"},"min":{"storage":"5Gi"}}"#, ""),
            (r#"spec.limits[0]={"type":"PersistentVolumeClaim"}"#, "Required spec.limits[0].limits"),
            (r#"spec.limits[0]={"type":"thirdparty.com/foo","max":{"cpu":"100m"},"min":{"cpu":"5m"}}"#, ""),
            (r#"spec.limits[0]={"type":"foo","max":{"cpu":"100m"}}"#, "Invalid spec.limits[0].type"),
            (r#"spec.limits=[{"type":"Pod","max":{"cpu":"100m"}},{"type":"Pod","min":{"cpu":"1m"}}]"#, "Duplicate spec.limits[1].type"),
            (r#"spec.limits[0]={"type":"Pod","default":{"cpu":"100m"},"defaultRequest":{"cpu":"10m"}}"#, "Forbidden spec.limits[0].default, Forbidden spec.limits[0].defaultRequest"),
            (r#"spec.limits[0]={"type":"Pod","max":{"cpu":"10m"},"min":{"cpu":"100m"}}"#, "Invalid spec.limits[0].min[cpu]"),
            (r#"spec.limits[0]={"type":"Container","max":{"cpu":"1"},"min":{"cpu":"100m"},"default":{"cpu":"500m"},"defaultRequest":{"cpu":"50m"}}"#, "Invalid spec.limits[0].defaultRequest[cpu]"),
            (r#"spec.limits[0]={"type":"Container","max":{"cpu":"2"},"default":{"cpu":"500m"},"defaultRequest":{"cpu":"800m"}}"#, "Invalid spec.limits[0].defaultRequest[cpu]"),
            (r#"spec.limits[0]={"type":"Container","max":{"cpu":"1"},"default":{"cpu":"2"},"defaultRequest":{"cpu":"1"}}"#, "Invalid spec.limits[0].default[cpu]"),
            (r#"spec.limits[0]={"type":"Container","maxLimitRequestRatio":{"cpu":"800m"}}"#, "Invalid spec.limits[0].maxLimitRequestRatio[cpu]"),
            (r#"spec.limits[0]={"type":"Container","max":{"cpu":"1"},"min":{"cpu":"500m"},"maxLimitRequestRatio":{"cpu":"4"}}"#, "Invalid spec.limits[0].maxLimitRequestRatio[cpu]"),
            (r#"spec.limits[0]={"type":"Container","default":{"hugepages-2Mi":"4Mi"},"defaultRequest":{"hugepages-2Mi":"2Mi"}}"#, "Invalid spec.limits[0].defaultRequest[hugepages-2Mi]"),
            (r#"spec.limits[0]={"type":"Container","max":{"gpu":"1"}}"#, "Invalid spec.limits[0].max[gpu], Invalid spec.limits[0].max[gpu], Invalid spec.limits[0].default[gpu], Invalid spec.limits[0].default[gpu], Invalid spec.limits[0].defaultRequest[gpu], Invalid spec.limits[0].defaultRequest[gpu]"),
        ]);
}
