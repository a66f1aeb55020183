//! The subresource `ephemeralcontainers`: containers can be added, and neither changed nor removed.

use std::mem::take;

use serde_json::json;
use setpoint_proto::core::Pod;

use super::update;
use crate::validation::changes;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::MIRROR;

/// Restores everything but the ephemeral containers.
pub(super) fn prepare(new: &mut Pod, old: &Pod) {
    let containers = take(&mut new.spec.ephemeral_containers);
    new.spec.clone_from(&old.spec);
    new.spec.ephemeral_containers = containers;
    update::restore_all_but_spec(new, old);
}

/// Validates that the containers of the old Pod are unchanged. Their order may change.
pub(super) fn validate(new: &Pod, old: &Pod, errors: &mut FieldErrors) {
    if old.metadata.annotations.contains_key(MIRROR) {
        let detail = "static pods do not support ephemeral containers";
        errors.forbidden(&FieldPath::root(""), detail);
        return;
    }
    let path = FieldPath::root("spec");
    let path = path.field("ephemeralContainers");
    for was in &old.spec.ephemeral_containers {
        let name = &was.ephemeral_container_common.name;
        let mut containers = new.spec.ephemeral_containers.iter();
        let now = containers.find(|now| now.ephemeral_container_common.name == *name);
        let refusal = match now {
            None => "removed\n".to_owned(),
            Some(now) if now != was => {
                let list = |one| json!({ "ephemeralContainers": [one] });
                format!("changed{}", changes::between::<Pod>(&list(was), &list(now)))
            }
            Some(_) => continue,
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {refusal}");
        errors.forbidden(&path, detail);
    }
}
