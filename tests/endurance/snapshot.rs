//! All objects of the cluster that the soak is about.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::Api;

/// The resources that are read, with the group and version of each.
pub const RESOURCES: [(&str, &str); 10] = [
    ("v1", "nodes"),
    ("v1", "pods"),
    ("apps/v1", "deployments"),
    ("apps/v1", "replicasets"),
    ("apps/v1", "statefulsets"),
    ("apps/v1", "daemonsets"),
    ("apps/v1", "controllerrevisions"),
    ("batch/v1", "jobs"),
    ("batch/v1", "cronjobs"),
    ("autoscaling/v2", "horizontalpodautoscalers"),
];

/// The objects of all resources.
#[derive(Default)]
pub struct Snapshot {
    lists: BTreeMap<&'static str, Vec<Value>>,
}

impl Snapshot {
    /// Reads all objects through a gateway. The lists are of different revisions; nothing changes once the cluster
    /// rests.
    pub async fn read(api: &Api) -> anyhow::Result<Self> {
        let mut lists = BTreeMap::new();
        for (group, plural) in RESOURCES {
            lists.insert(plural, api.list(&path(group, plural)).await?);
        }
        Ok(Self { lists })
    }

    /// Returns the objects of a resource.
    pub fn of(&self, resource: &str) -> &[Value] {
        self.lists.get(resource).map_or(&[], Vec::as_slice)
    }

    /// Returns all objects with their resources.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let lists = self.lists.iter();
        lists.flat_map(|(resource, list)| list.iter().map(|object| (*resource, object)))
    }

    /// Returns the objects of a resource that an object controls.
    pub fn controlled<'a>(
        &'a self,
        resource: &str,
        owner: &'a Value,
    ) -> impl Iterator<Item = &'a Value> {
        let uid = text(owner, "/metadata/uid");
        self.of(resource)
            .iter()
            .filter(move |object| controller(object) == Some(uid))
    }

    /// Returns the number of objects of each resource.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let lists = self.lists.iter();
        lists
            .map(|(resource, list)| ((*resource).to_owned(), list.len()))
            .collect()
    }

    /// Adds an object.
    #[cfg(test)]
    pub fn add(&mut self, resource: &'static str, object: Value) {
        self.lists.entry(resource).or_default().push(object);
    }
}

/// Returns the path of a resource in all namespaces.
pub fn path(group: &str, plural: &str) -> String {
    match group {
        "v1" => format!("/api/v1/{plural}"),
        _ => format!("/apis/{group}/{plural}"),
    }
}

/// Returns the uid of an object's controller.
pub fn controller(object: &Value) -> Option<&str> {
    let mut owners = object
        .pointer("/metadata/ownerReferences")?
        .as_array()?
        .iter();
    owners.find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// Returns a field that is text; empty if it is not set.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns a field that is a number; 0 if it is not set.
pub fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// Returns whether a condition has the status True.
pub fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == condition && one["status"] == "True")
}

/// Returns resource, namespace and name of an object.
pub fn name(resource: &str, object: &Value) -> String {
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    format!("{resource} {namespace}/{name}")
}
