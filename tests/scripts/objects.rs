//! The objects that commands create and change.

use serde_json::{Map, Value, json};
use setpoint_codec::{Kind, kinds};

use crate::command::Fields;

/// Returns the kind of a name such as `pod` or `pods`.
pub fn kind(name: &str) -> Result<&'static Kind, String> {
    let mut stored = kinds().iter().filter(|kind| kind.is_stored());
    let found = stored.find(|kind| kind.kind.to_lowercase() == name || kind.plural == name);
    found.ok_or_else(|| format!("there is no kind {name}"))
}

/// Splits a name into namespace and name.
pub fn split<'a>(kind: &Kind, name: &'a str) -> (&'a str, &'a str) {
    match name.split_once('/') {
        _ if !kind.namespaced => ("", name),
        Some((namespace, name)) => (namespace, name),
        None => ("default", name),
    }
}

/// Returns an object with the defaults of scripts and these fields.
pub fn object(kind: &Kind, name: &str, fields: &Fields) -> Value {
    let (namespace, name) = split(kind, name);
    let mut object = defaults(&kind.kind, name);
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
    object["metadata"]["name"] = name.into();
    if kind.namespaced {
        object["metadata"]["namespace"] = namespace.into();
    }
    set_all(&kind.kind, &mut object, fields);
    object
}

/// Returns a patch of these fields.
pub fn patch(kind: &Kind, fields: &Fields) -> Value {
    let mut patch = Value::Object(Map::new());
    set_all(&kind.kind, &mut patch, fields);
    patch
}

fn defaults(kind: &str, name: &str) -> Value {
    let labels = json!({ "app": name });
    let pod = json!({ "containers": [{ "name": "main", "image": "app:1" }] });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod });
    let selector = json!({ "matchLabels": labels });
    match kind {
        "Pod" => json!({ "metadata": { "labels": labels }, "spec": pod }),
        "Deployment" | "ReplicaSet" | "DaemonSet" => json!({
            "metadata": {}, "spec": { "selector": selector, "template": template },
        }),
        "StatefulSet" => json!({
            "metadata": {},
            "spec": { "selector": selector, "template": template, "serviceName": name },
        }),
        "Job" => {
            let mut template = template;
            template["spec"]["restartPolicy"] = "Never".into();
            json!({ "metadata": {}, "spec": { "template": template } })
        }
        "Node" => json!({
            "metadata": { "labels": { "kubernetes.io/hostname": name } },
            "status": {
                "capacity": capacity(),
                "allocatable": capacity(),
                "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
            },
        }),
        _ => json!({ "metadata": {} }),
    }
}

fn capacity() -> Value {
    json!({ "cpu": "4", "memory": "8Gi", "pods": "110" })
}

/// Sets fields of an object.
pub fn set_all(kind: &str, object: &mut Value, fields: &Fields) {
    for (name, value) in fields {
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value.as_str()));
        let container = match kind {
            "Pod" => "spec.containers.0",
            _ => "spec.template.spec.containers.0",
        };
        match name.as_str() {
            "replicas" => set(object, "spec.replicas", value),
            "image" => {
                set(object, &format!("{container}.name"), "main".into());
                set(object, &format!("{container}.image"), value);
            }
            "cpu" if kind == "Node" => {
                set(object, "status.capacity.cpu", value.clone());
                set(object, "status.allocatable.cpu", value);
            }
            "cpu" => set(
                object,
                &format!("{container}.resources.requests.cpu"),
                value,
            ),
            path => set(object, path, value),
        }
    }
}

/// Sets a value at a path such as `spec.containers.0.image`. `\.` in it is a dot of a name.
fn set(object: &mut Value, path: &str, value: Value) {
    let path = path.replace("\\.", "\0");
    let mut at = object;
    for name in path.split('.') {
        let name = name.replace('\0', ".");
        at = match name.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let items = at.as_array_mut().unwrap();
                items.resize(items.len().max(index + 1), Value::Null);
                &mut items[index]
            }
            Err(_) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()
                    .unwrap()
                    .entry(name)
                    .or_insert(Value::Null)
            }
        };
    }
    *at = value;
}
