//! Discovery of the metrics that the adapter reads. They are no kinds; their groups follow the others.

use serde_json::{Value, json};

use super::catalog::Version;
use crate::prometheus_adapter::{Adapter, CUSTOM, CUSTOM_VERSIONS, EXTERNAL, EXTERNAL_VERSION};
use crate::registry::Registry;

/// The priorities of the groups and of the preferred version, below those of custom resources; that of each further
/// version is lower.
const PRIORITIES: (i32, i32) = (100, 100);

/// Returns the versions of the groups that have metrics.
pub(super) fn versions(registry: &Registry) -> Vec<Version> {
    let Some(adapter) = registry.adapter() else {
        return Vec::new();
    };
    let of_no_object = adapter.external_metrics();
    let of_no_object = of_no_object.map(|name| resource(name, true, "ExternalMetricValueList"));
    let mut all = of_group(CUSTOM, &CUSTOM_VERSIONS, of_objects(registry, adapter));
    all.extend(of_group(
        EXTERNAL,
        &[EXTERNAL_VERSION],
        of_no_object.collect(),
    ));
    all
}

/// Returns the versions of a group, which all have the same metrics; none if there are no metrics.
fn of_group(group: &str, versions: &[&str], metrics: Vec<Value>) -> Vec<Version> {
    if metrics.is_empty() {
        return Vec::new();
    }
    let versions = versions.iter().zip((0..=PRIORITIES.1).rev());
    let versions = versions.map(|(version, priority)| {
        Version::of_metrics(group, version, (PRIORITIES.0, priority), metrics.clone())
    });
    versions.collect()
}

/// Returns the metrics of objects. A kind that is not served yet is taken to be namespaced.
fn of_objects(registry: &Registry, adapter: &Adapter) -> Vec<Value> {
    let kinds = registry.cache().kinds();
    let metrics = adapter.custom_metrics().map(|(name, metric)| {
        let is_namespaced = (kinds.by_resource(name)).is_none_or(|kind| kind.namespaced);
        resource(
            &format!("{name}/{metric}"),
            is_namespaced,
            "MetricValueList",
        )
    });
    metrics.collect()
}

/// Returns a metric as a resource: `pods/load` for one of Pods, `load` for one of no object.
fn resource(name: &str, is_namespaced: bool, kind: &str) -> Value {
    json!({
        "name": name,
        "singularName": "",
        "namespaced": is_namespaced,
        "kind": kind,
        "verbs": ["get"],
    })
}
