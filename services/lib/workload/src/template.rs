//! Pods from the template of a workload.

use std::collections::HashSet;

use setpoint_controller::reference;
use setpoint_model::{Meta, names};
use setpoint_proto::Resource;
use setpoint_proto::core::{Pod, PodTemplateSpec};
use setpoint_proto::meta::ObjectMeta;

/// Returns a Pod of a template with this name, whose controller is `owner`, an object of the kind `O`.
pub fn new_pod<O: Resource>(owner: &Meta, template: &PodTemplateSpec, name: &str) -> Pod {
    let from = &template.metadata;
    Pod {
        metadata: ObjectMeta {
            name: name.to_owned(),
            namespace: owner.key.namespace.clone(),
            labels: from.labels.clone(),
            annotations: from.annotations.clone(),
            finalizers: from.finalizers.clone(),
            owner_references: vec![reference::<O>(owner)],
            ..Default::default()
        },
        spec: template.spec.clone(),
        ..Default::default()
    }
}

/// Returns the first name of a Pod that is not in use, from the seed on, and adds it to the used ones. The seed becomes
/// that of the next name.
pub fn unused_name(prefix: &str, seed: &mut u64, used: &mut HashSet<String>) -> String {
    loop {
        let name = names::child(prefix, &names::suffix(*seed));
        *seed = seed.wrapping_add(1);
        if used.insert(name.clone()) {
            return name;
        }
    }
}
