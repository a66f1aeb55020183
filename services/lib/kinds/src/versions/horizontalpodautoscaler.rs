//! The HorizontalPodAutoscaler of autoscaling/v1, whose only metric is the CPU utilization. The other metrics, the
//! behavior and the conditions of the stored autoscaling/v2 are annotations of it, in the JSON of upstream's types.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use setpoint_proto::meta::Quantity;
use setpoint_proto::{autoscaling as v1, autoscaling_v2 as v2};

use crate::versions::Version;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The annotations that writers cannot set: each is made from fields of the stored form.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

const CPU: &str = "cpu";
const RESOURCE: &str = "Resource";
/// The target without any metric, in percent.
const DEFAULT_UTILIZATION: i32 = 80;

impl Version for v1::HorizontalPodAutoscaler {
    type Stored = v2::HorizontalPodAutoscaler;

    fn into_stored(self) -> v2::HorizontalPodAutoscaler {
        let (mut metadata, spec, status) = (self.metadata, self.spec, self.status);
        let mut take = |name: &str| metadata.annotations.remove(name);
        let mut metrics: Vec<v2::MetricSpec> = list(take(METRICS), SPEC).unwrap_or_default();
        metrics.extend(spec.target_cpu_utilization_percentage.map(cpu_metric));
        if metrics.is_empty() {
            metrics.push(cpu_metric(DEFAULT_UTILIZATION));
        }
        let own = status.current_cpu_utilization_percentage.map(cpu_status);
        let current = list(take(CURRENT_METRICS), STATUS);
        let behavior: Option<Behavior> = parsed(take(BEHAVIOR));
        let conditions = parsed(take(CONDITIONS));
        ANNOTATIONS.iter().for_each(|name| drop(take(name)));
        v2::HorizontalPodAutoscaler {
            metadata,
            spec: v2::HorizontalPodAutoscalerSpec {
                scale_target_ref: v2::CrossVersionObjectReference {
                    kind: spec.scale_target_ref.kind,
                    name: spec.scale_target_ref.name,
                    api_version: spec.scale_target_ref.api_version,
                },
                min_replicas: spec.min_replicas,
                max_replicas: spec.max_replicas,
                metrics,
                behavior: behavior.and_then(Behavior::into_stored),
            },
            status: v2::HorizontalPodAutoscalerStatus {
                observed_generation: status.observed_generation,
                last_scale_time: status.last_scale_time,
                current_replicas: status.current_replicas,
                desired_replicas: status.desired_replicas,
                current_metrics: current.unwrap_or_else(|| own.into_iter().collect()),
                conditions: conditions.unwrap_or_default(),
            },
        }
    }

    fn of_stored(stored: v2::HorizontalPodAutoscaler) -> Self {
        let (mut metadata, spec, status) = (stored.metadata, stored.spec, stored.status);
        let annotations = &mut metadata.annotations;
        annotations.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
        let others = spec.metrics.iter().filter(|one| cpu_target(one).is_none());
        let metrics: Vec<Value> = others.map(|one| converted(one, SPEC, to_v1)).collect();
        let current = status.current_metrics.iter();
        let current: Vec<Value> = current.map(|one| converted(one, STATUS, to_v1)).collect();
        let mut put = |name: &str, value: Value| {
            annotations.insert(name.to_owned(), value.to_string());
        };
        if !metrics.is_empty() {
            put(METRICS, metrics.into());
        }
        if !current.is_empty() {
            put(CURRENT_METRICS, current.into());
        }
        if let Some(behavior) = spec.behavior {
            put(BEHAVIOR, json(&Behavior::of_stored(behavior)));
        }
        if !status.conditions.is_empty() {
            put(CONDITIONS, json(&status.conditions));
        }
        Self {
            metadata,
            spec: v1::HorizontalPodAutoscalerSpec {
                scale_target_ref: v1::CrossVersionObjectReference {
                    kind: spec.scale_target_ref.kind,
                    name: spec.scale_target_ref.name,
                    api_version: spec.scale_target_ref.api_version,
                },
                min_replicas: spec.min_replicas,
                max_replicas: spec.max_replicas,
                target_cpu_utilization_percentage: spec.metrics.iter().find_map(cpu_target),
            },
            status: v1::HorizontalPodAutoscalerStatus {
                observed_generation: status.observed_generation,
                last_scale_time: status.last_scale_time,
                current_replicas: status.current_replicas,
                desired_replicas: status.desired_replicas,
                current_cpu_utilization_percentage: cpu_utilization(&status.current_metrics),
            },
        }
    }
}

fn cpu_metric(utilization: i32) -> v2::MetricSpec {
    v2::MetricSpec {
        r#type: RESOURCE.into(),
        resource: Some(v2::ResourceMetricSource {
            name: CPU.into(),
            target: v2::MetricTarget {
                r#type: "Utilization".into(),
                average_utilization: Some(utilization),
                ..Default::default()
            },
        }),
        ..Default::default()
    }
}

fn cpu_status(utilization: i32) -> v2::MetricStatus {
    v2::MetricStatus {
        r#type: RESOURCE.into(),
        resource: Some(v2::ResourceMetricStatus {
            name: CPU.into(),
            current: v2::MetricValueStatus {
                average_utilization: Some(utilization),
                ..Default::default()
            },
        }),
        ..Default::default()
    }
}

/// Returns the CPU utilization that a metric asks for.
fn cpu_target(metric: &v2::MetricSpec) -> Option<i32> {
    let resource = metric.resource.as_ref();
    let cpu = resource.filter(|one| metric.r#type == RESOURCE && one.name == CPU);
    cpu?.target.average_utilization
}

/// Returns the last observed CPU utilization.
fn cpu_utilization(metrics: &[v2::MetricStatus]) -> Option<i32> {
    let own = metrics.iter().filter(|one| one.r#type == RESOURCE);
    let cpu = own.filter_map(|one| one.resource.as_ref().filter(|one| one.name == CPU));
    let mut utilization = cpu.filter_map(|one| one.current.average_utilization);
    utilization.next_back()
}

/// The fields of a metric's source: the field in v1 and the JSON pointer of it in v2. Quantities that v1 always has are
/// written `name!`.
type Sources = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const SPEC: Sources = &[
    (
        "resource",
        &[
            ("name", "/name"),
            ("targetAverageUtilization", "/target/averageUtilization"),
            ("targetAverageValue", "/target/averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name"),
            ("targetAverageUtilization", "/target/averageUtilization"),
            ("targetAverageValue", "/target/averageValue"),
            ("container", "/container"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name"),
            ("targetAverageValue!", "/target/averageValue"),
            ("selector", "/metric/selector"),
        ],
    ),
    (
        "object",
        &[
            ("target", "/describedObject"),
            ("metricName", "/metric/name"),
            ("targetValue!", "/target/value"),
            ("selector", "/metric/selector"),
            ("averageValue", "/target/averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name"),
            ("metricSelector", "/metric/selector"),
            ("targetValue", "/target/value"),
            ("targetAverageValue", "/target/averageValue"),
        ],
    ),
];
const STATUS: Sources = &[
    (
        "resource",
        &[
            ("name", "/name"),
            ("currentAverageUtilization", "/current/averageUtilization"),
            ("currentAverageValue!", "/current/averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name"),
            ("currentAverageUtilization", "/current/averageUtilization"),
            ("currentAverageValue!", "/current/averageValue"),
            ("container", "/container"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name"),
            ("currentAverageValue!", "/current/averageValue"),
            ("selector", "/metric/selector"),
        ],
    ),
    (
        "object",
        &[
            ("target", "/describedObject"),
            ("metricName", "/metric/name"),
            ("currentValue!", "/current/value"),
            ("selector", "/metric/selector"),
            ("averageValue", "/current/averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name"),
            ("metricSelector", "/metric/selector"),
            ("currentValue!", "/current/value"),
            ("currentAverageValue", "/current/averageValue"),
        ],
    ),
];

type Fields = [(&'static str, &'static str)];

/// Returns the JSON of a metric with its source converted by `convert`.
fn converted(
    metric: &impl Serialize,
    sources: Sources,
    convert: fn(&str, &Value, &Fields) -> Value,
) -> Value {
    let mut metric = json(metric);
    for (name, fields) in sources {
        if let Some(source) = metric.get(name) {
            metric[name] = convert(name, source, fields);
        }
    }
    metric
}

fn to_v1(_source: &str, v2: &Value, fields: &Fields) -> Value {
    let mut v1 = Map::new();
    for (name, path) in fields {
        let value = v2.pointer(path).filter(|value| !value.is_null()).cloned();
        let (name, required) = match name.strip_suffix('!') {
            Some(name) => (name, Some("0".into())),
            None => (*name, None),
        };
        v1.extend(value.or(required).map(|value| (name.to_owned(), value)));
    }
    v1.into()
}

fn to_v2(source: &str, v1: &Value, fields: &Fields) -> Value {
    let mut v2 = Value::Object(Map::new());
    for (name, path) in fields {
        let value = v1.get(name.trim_end_matches('!'));
        if let Some(value) = value.filter(|value| !value.is_null()) {
            let at = path.split('/').skip(1);
            *at.fold(&mut v2, |at, name| &mut at[name]) = value.clone();
        }
    }
    let target = &mut v2["target"];
    if target.is_object() {
        set_target_type(source, target);
    }
    v2
}

/// Sets the type of a target, which v1 does not have.
fn set_target_type(source: &str, target: &mut Value) {
    let has = |field: &str| !target[field].is_null();
    let (averages, values) = (has("averageValue"), has("value"));
    let of = match source {
        "object" if !averages => "Value",
        "external" if values => "Value",
        _ if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    // v1 cannot leave out the value of an object.
    if source == "object" && averages && target["value"] == "0" {
        target["value"] = Value::Null;
    }
    target["type"] = of.into();
}

/// Returns the metrics in an annotation; `None` if there is none, or one that cannot be read.
fn list<T: DeserializeOwned>(annotation: Option<String>, sources: Sources) -> Option<Vec<T>> {
    let metrics: Vec<Value> = parsed(annotation)?;
    let metrics = metrics.iter().map(|one| converted(one, sources, to_v2));
    metrics
        .map(|one| serde_json::from_value(one).ok())
        .collect()
}

fn parsed<T: DeserializeOwned>(annotation: Option<String>) -> Option<T> {
    serde_json::from_str(&annotation?).ok()
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The behavior, with the names of fields that upstream's annotation has.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Behavior {
    #[serde(alias = "scaleUp")]
    scale_up: Option<Rules>,
    #[serde(alias = "scaleDown")]
    scale_down: Option<Rules>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Rules {
    #[serde(alias = "stabilizationWindowSeconds")]
    stabilization_window_seconds: Option<i32>,
    #[serde(alias = "selectPolicy")]
    select_policy: Option<String>,
    #[serde(alias = "policies")]
    policies: Option<Vec<Policy>>,
    #[serde(alias = "tolerance")]
    tolerance: Option<Quantity>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Policy {
    #[serde(alias = "type")]
    r#type: String,
    #[serde(alias = "value")]
    value: i32,
    #[serde(alias = "periodSeconds")]
    period_seconds: i32,
}

impl Behavior {
    /// Returns the stored form; `None` if the behavior says nothing.
    fn into_stored(self) -> Option<v2::HorizontalPodAutoscalerBehavior> {
        let is_set = self.scale_up.is_some() || self.scale_down.is_some();
        is_set.then(|| v2::HorizontalPodAutoscalerBehavior {
            scale_up: self.scale_up.map(Rules::into_stored),
            scale_down: self.scale_down.map(Rules::into_stored),
        })
    }

    fn of_stored(stored: v2::HorizontalPodAutoscalerBehavior) -> Self {
        Self {
            scale_up: stored.scale_up.map(Rules::of_stored),
            scale_down: stored.scale_down.map(Rules::of_stored),
        }
    }
}

impl Rules {
    fn into_stored(self) -> v2::HpaScalingRules {
        let policies = self.policies.unwrap_or_default().into_iter();
        v2::HpaScalingRules {
            select_policy: self.select_policy,
            policies: policies
                .map(|policy| v2::HpaScalingPolicy {
                    r#type: policy.r#type,
                    value: policy.value,
                    period_seconds: policy.period_seconds,
                })
                .collect(),
            stabilization_window_seconds: self.stabilization_window_seconds,
            tolerance: self.tolerance,
        }
    }

    fn of_stored(stored: v2::HpaScalingRules) -> Self {
        let policies = stored.policies.into_iter().map(|policy| Policy {
            r#type: policy.r#type,
            value: policy.value,
            period_seconds: policy.period_seconds,
        });
        let policies: Vec<_> = policies.collect();
        Self {
            stabilization_window_seconds: stored.stabilization_window_seconds,
            select_policy: stored.select_policy,
            policies: (!policies.is_empty()).then_some(policies),
            tolerance: stored.tolerance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(spec: Value) -> v2::HorizontalPodAutoscaler {
        serde_json::from_value(serde_json::json!({ "metadata": { "name": "web" }, "spec": spec }))
            .unwrap()
    }

    fn served(annotations: Value) -> v1::HorizontalPodAutoscaler {
        let metadata = serde_json::json!({ "name": "web", "annotations": annotations });
        serde_json::from_value(serde_json::json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn an_autoscaler_without_metrics_has_the_default_target() {
        let stored = served(serde_json::json!({})).into_stored();
        assert_eq!(stored.spec.metrics, [cpu_metric(80)]);
        let served = v1::HorizontalPodAutoscaler::of_stored(stored);
        assert_eq!(served.spec.target_cpu_utilization_percentage, Some(80));
        assert!(served.metadata.annotations.is_empty());
    }

    #[test]
    fn metrics_and_behavior_are_annotations_in_the_form_of_upstream() {
        let metrics = serde_json::json!([
            { "type": "Pods", "pods": { "metric": { "name": "qps" }, "target": { "type": "AverageValue", "averageValue": "1k" } } },
            { "type": "Object", "object": {
                "describedObject": { "kind": "Service", "name": "a" }, "metric": { "name": "hits" },
                "target": { "type": "Value", "value": "2" },
            } },
            { "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } } },
        ]);
        let behavior = serde_json::json!({ "scaleDown": { "stabilizationWindowSeconds": 5 } });
        let before = stored(serde_json::json!({ "metrics": metrics, "behavior": behavior }));
        let served = v1::HorizontalPodAutoscaler::of_stored(before.clone());
        assert_eq!(served.spec.target_cpu_utilization_percentage, Some(50));
        let annotation = |name: &str| -> Value {
            serde_json::from_str(&served.metadata.annotations[name]).unwrap()
        };
        let pods = serde_json::json!({ "metricName": "qps", "targetAverageValue": "1k" });
        assert_eq!(annotation(METRICS)[0]["pods"], pods);
        assert_eq!(
            annotation(METRICS)[1]["object"]["target"]["kind"],
            "Service"
        );
        assert_eq!(annotation(METRICS).as_array().map(Vec::len), Some(2));
        let rules = &annotation(BEHAVIOR)["ScaleDown"];
        assert_eq!(rules["StabilizationWindowSeconds"], 5);
        assert_eq!(served.into_stored(), before);
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_removed() {
        let stored = served(serde_json::json!({ METRICS: "?", "a": "b" })).into_stored();
        assert_eq!(stored.spec.metrics, [cpu_metric(80)]);
        assert_eq!(stored.metadata.annotations.len(), 1);
    }
}
