//! Volumes: a node reports the size of those that it has resized, and releases those whose directories it has removed.

use setpoint_model::volume::{LOCAL_PATH as FINALIZER, NODE};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim};

use super::{Outcome, Write, forbidden};
use crate::admission::Operation;

impl Write<'_> {
    pub(super) fn check_claim_status(&self) -> Outcome {
        if self.request.operation != Operation::Update {
            return self.unexpected_operation();
        }
        let (old, new) = (
            self.old::<PersistentVolumeClaim>()?,
            self.object::<PersistentVolumeClaim>()?,
        );
        match without_what_nodes_report(old) == without_what_nodes_report(new) {
            true => Ok(()),
            false => forbidden(format!(
                "node {:?} is not allowed to update fields other than status.quantity and status.conditions",
                self.node
            )),
        }
    }

    /// Allows to remove the finalizer of a volume of the node.
    pub(super) fn check_volume(&self) -> Outcome {
        if self.request.operation != Operation::Update {
            return self.unexpected_operation();
        }
        let (node, old, new) = (
            self.node,
            self.old::<PersistentVolume>()?,
            self.object::<PersistentVolume>()?,
        );
        let owner = old.metadata.annotations.get(NODE);
        if owner.is_none_or(|owner| owner != node) {
            return forbidden(format!(
                "node {node:?} can only update persistentvolumes of its own directories"
            ));
        }
        match is_release(old, new) {
            true => Ok(()),
            false => forbidden(format!(
                "node {node:?} can only remove the finalizer {FINALIZER:?} of a persistentvolume"
            )),
        }
    }
}

/// Returns whether a volume is the other one without the finalizer of its node.
fn is_release(old: &PersistentVolume, new: &PersistentVolume) -> bool {
    let mut released = old.clone();
    released.metadata.finalizers.retain(|one| one != FINALIZER);
    settled(released, new) == *new
}

/// Returns a claim without the fields that nodes write, and without those that each write changes.
fn without_what_nodes_report(claim: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut claim = claim.clone();
    claim.metadata.resource_version.clear();
    claim.metadata.managed_fields.clear();
    let status = &mut claim.status;
    status.capacity.clear();
    status.conditions.clear();
    status.allocated_resources.clear();
    status.allocated_resource_statuses.clear();
    claim
}

/// Returns a volume with the fields that each write changes as in another version of it.
fn settled(mut volume: PersistentVolume, as_in: &PersistentVolume) -> PersistentVolume {
    let (meta, other) = (&mut volume.metadata, &as_in.metadata);
    meta.resource_version.clone_from(&other.resource_version);
    meta.managed_fields.clone_from(&other.managed_fields);
    meta.generation = other.generation;
    volume
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn merged(mut base: Value, change: &Value) -> Value {
        match (&mut base, change) {
            (Value::Object(fields), Value::Object(changes)) => {
                for (name, change) in changes {
                    let field = fields.remove(name).unwrap_or_default();
                    fields.insert(name.clone(), merged(field, change));
                }
                base
            }
            _ => change.clone(),
        }
    }

    /// Returns the objects before and after a change.
    fn pair<T: serde::de::DeserializeOwned>(base: &Value, change: &Value) -> (T, T) {
        let read = |value: Value| serde_json::from_value(value).unwrap();
        (read(base.clone()), read(merged(base.clone(), change)))
    }

    /// Checks V13: each field of a claim; those that are not listed as the node's are not its own.
    #[test]
    fn a_node_reports_four_fields_of_a_claim() {
        let base = json!({
            "metadata": { "name": "a", "uid": "u" },
            "spec": { "volumeName": "v" },
            "status": { "phase": "Bound" },
        });
        let condition = json!([{ "type": "Resizing", "status": "True" }]);
        for (change, expected) in [
            (
                json!({ "status": { "capacity": { "storage": "1" } } }),
                true,
            ),
            (json!({ "status": { "conditions": condition } }), true),
            (
                json!({ "status": { "allocatedResources": { "storage": "1" } } }),
                true,
            ),
            (
                json!({ "status": { "allocatedResourceStatuses": { "storage": "x" } } }),
                true,
            ),
            (json!({ "status": { "phase": "Lost" } }), false),
            (
                json!({ "status": { "accessModes": ["ReadWriteMany"] } }),
                false,
            ),
            (
                json!({ "status": { "currentVolumeAttributesClassName": "x" } }),
                false,
            ),
            (
                json!({ "status": { "modifyVolumeStatus": { "status": "Pending" } } }),
                false,
            ),
            (json!({ "spec": { "volumeName": "w" } }), false),
            (
                json!({ "spec": { "accessModes": ["ReadWriteMany"] } }),
                false,
            ),
            (
                json!({ "spec": { "resources": { "requests": { "storage": "1" } } } }),
                false,
            ),
            (json!({ "spec": { "storageClassName": "x" } }), false),
            (
                json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } }),
                false,
            ),
            (json!({ "spec": { "volumeMode": "Block" } }), false),
            (
                json!({ "spec": { "dataSource": { "kind": "x", "name": "y" } } }),
                false,
            ),
            (
                json!({ "spec": { "dataSourceRef": { "kind": "x", "name": "y" } } }),
                false,
            ),
            (
                json!({ "spec": { "volumeAttributesClassName": "x" } }),
                false,
            ),
            (json!({ "metadata": { "labels": { "a": "b" } } }), false),
            (
                json!({ "metadata": { "annotations": { "a": "b" } } }),
                false,
            ),
            (json!({ "metadata": { "finalizers": ["a"] } }), false),
            (
                json!({ "metadata": { "ownerReferences": [{ "name": "a" }] } }),
                false,
            ),
            (
                json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
                false,
            ),
            (json!({ "metadata": { "uid": "v" } }), false),
        ] {
            let (old, new) = pair::<PersistentVolumeClaim>(&base, &change);
            assert_ne!(old, new, "{change}");
            let is_same = without_what_nodes_report(&old) == without_what_nodes_report(&new);
            assert_eq!(is_same, expected, "{change}");
        }
    }

    /// Checks V13: of a volume, the node's finalizer alone, and nothing beside it.
    #[test]
    fn a_node_removes_its_finalizer_and_changes_no_other_field() {
        let base = json!({
            "metadata": {
                "name": "a", "annotations": { NODE: "n" }, "labels": { NODE: "n" },
                "finalizers": [FINALIZER, "acme.com/hold"],
            },
            "spec": { "persistentVolumeReclaimPolicy": "Delete", "hostPath": { "path": "/a" } },
        });
        let released = json!({ "metadata": { "finalizers": ["acme.com/hold"] } });
        let (old, new) = pair(&base, &released);
        assert!(is_release(&old, &new));
        for change in [
            json!({ "metadata": { "finalizers": [] } }),
            json!({ "metadata": { "finalizers": ["acme.com/hold", "b"] } }),
            json!({ "metadata": { "annotations": { NODE: "m" } } }),
            json!({ "metadata": { "labels": { NODE: "m" } } }),
            json!({ "metadata": { "ownerReferences": [{ "name": "a" }] } }),
            json!({ "spec": { "hostPath": { "path": "/" } } }),
            json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } }),
            json!({ "spec": { "claimRef": { "name": "a" } } }),
            json!({ "spec": { "capacity": { "storage": "1" } } }),
            json!({ "spec": { "accessModes": ["ReadWriteMany"] } }),
            json!({ "spec": { "storageClassName": "x" } }),
            json!({ "spec": { "mountOptions": ["x"] } }),
            json!({ "spec": { "volumeMode": "Block" } }),
            json!({ "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [{}] } } } }),
            json!({ "spec": { "csi": { "driver": "x" } } }),
            json!({ "status": { "phase": "Available" } }),
        ] {
            for change in [change.clone(), merged(released.clone(), &change)] {
                let (old, new) = pair(&base, &change);
                assert!(!is_release(&old, &new), "{change}");
            }
        }
    }
}
