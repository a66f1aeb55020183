//! Discovery of the metrics that the adapter reads. They are no kinds; their groups follow the others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::metrics::{CUSTOM_VERSIONS, EXTERNAL_VERSION};
use crate::adapter::{Adapter, CUSTOM, EXTERNAL};
use crate::registry::Registry;

/// A group of metrics.
pub(super) struct Group {
    name: &'static str,
    versions: &'static [&'static str],
    /// The kind of a list of values.
    kind: &'static str,
    metrics: Vec<Metric>,
}

/// A metric as a resource.
struct Metric {
    /// `pods/load` for a metric of Pods, `load` for one of no object.
    name: String,
    namespaced: bool,
}

/// Returns the groups that have metrics.
pub(super) fn groups(registry: &Registry) -> Vec<Group> {
    let Some(adapter) = registry.adapter() else {
        return Vec::new();
    };
    let custom = Group {
        name: CUSTOM,
        versions: &CUSTOM_VERSIONS,
        kind: "MetricValueList",
        metrics: of_objects(registry, adapter),
    };
    let of_no_object = adapter.external_metrics().map(|name| Metric {
        name: name.to_owned(),
        namespaced: true,
    });
    let external = Group {
        name: EXTERNAL,
        versions: &[EXTERNAL_VERSION],
        kind: "ExternalMetricValueList",
        metrics: of_no_object.collect(),
    };
    let mut groups = vec![custom, external];
    groups.retain(|group| !group.metrics.is_empty());
    groups
}

/// Returns the metrics of objects. A kind that is not served yet is taken to be namespaced.
fn of_objects(registry: &Registry, adapter: &Adapter) -> Vec<Metric> {
    let kinds = registry.cache().kinds();
    let metrics = adapter.custom_metrics().map(|(resource, metric)| Metric {
        name: format!("{resource}/{metric}"),
        namespaced: (kinds.by_resource(resource)).is_none_or(|kind| kind.namespaced),
    });
    metrics.collect()
}

/// Returns the group of this name.
pub(super) fn find(registry: &Registry, name: &str) -> Option<Group> {
    let mut groups = groups(registry).into_iter();
    groups.find(|group| group.name == name)
}

impl Group {
    /// Returns the entry of the document at `/apis`.
    pub(super) fn entry(&self) -> Value {
        let version = |version: &&str| json!({ "groupVersion": format!("{}/{version}", self.name), "version": version });
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        json!({ "name": self.name, "preferredVersion": versions.first(), "versions": versions })
    }

    /// Returns the paths of its documents.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        let group = format!("/apis/{}", self.name);
        let versions = self
            .versions
            .iter()
            .map(|version| format!("{group}/{version}"));
        versions.collect::<Vec<_>>().into_iter().chain([group])
    }

    /// Returns the document at `/apis/<group>`.
    pub(super) fn document(&self) -> Value {
        let mut document = self.entry();
        document["kind"] = "APIGroup".into();
        document["apiVersion"] = "v1".into();
        document
    }

    /// Returns the document at `/apis/<group>/<version>`; `None` if there is no such version.
    pub(super) fn resources(&self, version: &str) -> Option<Value> {
        self.versions.contains(&version).then(|| {
            let resources = self.metrics.iter().map(|metric| {
                json!({
                    "name": metric.name,
                    "singularName": "",
                    "namespaced": metric.namespaced,
                    "kind": self.kind,
                    "verbs": ["get"],
                })
            });
            json!({
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": format!("{}/{version}", self.name),
                "resources": resources.collect::<Value>(),
            })
        })
    }

    /// Returns the entry of the aggregated document.
    pub(super) fn aggregated(&self) -> Value {
        let versions = self.versions.iter().map(|version| {
            let resources: Vec<_> = self.by_resource(version).into_values().collect();
            json!({ "version": version, "freshness": "Current", "resources": resources })
        });
        json!({ "metadata": { "name": self.name }, "versions": versions.collect::<Value>() })
    }

    /// Returns the resources of the aggregated document. As upstream converts them, metrics of objects are subresources of a
    /// resource without verbs.
    fn by_resource(&self, version: &str) -> BTreeMap<&str, Value> {
        let kind = json!({ "group": self.name, "version": version, "kind": self.kind });
        let mut resources = BTreeMap::new();
        for metric in &self.metrics {
            let (resource, subresource) = match metric.name.split_once('/') {
                None => (metric.name.as_str(), None),
                Some((resource, name)) => (resource, Some(name)),
            };
            let entry = resources.entry(resource).or_insert_with(|| {
                json!({
                    "resource": resource,
                    "responseKind": { "group": "", "version": "", "kind": "" },
                    "scope": if metric.namespaced { "Namespaced" } else { "Cluster" },
                    "singularResource": "",
                    "verbs": [],
                })
            });
            match subresource {
                None => {
                    entry["responseKind"] = kind.clone();
                    entry["verbs"] = json!(["get"]);
                }
                Some(name) => {
                    let subresource =
                        json!({ "subresource": name, "responseKind": kind, "verbs": ["get"] });
                    match entry["subresources"].as_array_mut() {
                        Some(all) => all.push(subresource),
                        None => entry["subresources"] = json!([subresource]),
                    }
                }
            }
        }
        resources
    }
}
