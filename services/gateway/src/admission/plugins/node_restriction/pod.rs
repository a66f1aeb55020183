//! Pods: a node creates and deletes mirror Pods, reports the status of its Pods, and evicts them.

use setpoint_codec::kind_of;
use setpoint_kinds::Subresource;
use setpoint_kinds::pod::references;
use setpoint_kinds::validation::podspec::MIRROR;
use setpoint_model::Key;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::meta::OwnerReference;

use super::{Outcome, Refusal, Write, forbidden};
use crate::admission::Operation;
use crate::errors;

impl Write<'_> {
    pub(super) async fn check_pod_or_part(&self, part: Subresource) -> Outcome {
        match part {
            Subresource::None => self.check_pod().await,
            Subresource::Status => self.check_pod_status(),
            Subresource::Eviction => self.check_eviction().await,
            other => forbidden(format!(
                "unexpected pod subresource {:?}, only 'status' and 'eviction' are allowed",
                other.name()
            )),
        }
    }

    async fn check_pod(&self) -> Outcome {
        let node = self.node;
        match self.request.operation {
            Operation::Create => self.check_new_pod().await,
            Operation::Delete => match self.old::<Pod>()?.spec.node_name == node {
                true => Ok(()),
                false => forbidden(format!(
                    "node {node:?} can only delete pods with spec.nodeName set to itself"
                )),
            },
            operation => forbidden(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                operation.name()
            )),
        }
    }

    async fn check_new_pod(&self) -> Outcome {
        let (node, pod) = (self.node, self.object::<Pod>()?);
        if !pod.metadata.annotations.contains_key(MIRROR) {
            return forbidden(format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if pod.spec.node_name != node {
            return forbidden(format!(
                "node {node:?} can only create pods with spec.nodeName set to itself"
            ));
        }
        self.check_owner(&pod.metadata.owner_references).await?;
        match references::api_object(pod) {
            Ok(None) => Ok(()),
            Ok(Some(object)) => forbidden(format!(
                "node {node:?} can not create pods that reference {object}"
            )),
            Err(error) => forbidden(format!(
                "error checking mirror pod for API references: {error}"
            )),
        }
    }

    /// Requires that the only owner of a mirror Pod is the node itself, which is deleted with it.
    async fn check_owner(&self, owners: &[OwnerReference]) -> Outcome {
        let node = self.node;
        let owner = match owners {
            [owner] => owner,
            [] => {
                return forbidden(format!(
                    "node {node:?} can only create pods with an owner reference set to itself"
                ));
            }
            _ => {
                return forbidden(format!(
                    "node {node:?} can only create pods with a single owner reference set to itself"
                ));
            }
        };
        if owner.api_version != "v1" || owner.kind != "Node" || owner.name != node {
            return forbidden(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        if owner.controller != Some(true) {
            return forbidden(format!(
                "node {node:?} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner.block_owner_deletion == Some(true) {
            return forbidden(format!(
                "node {node:?} must not set blockOwnerDeletion on an owner reference"
            ));
        }
        let found = self.reader.find::<Node>(&Key::new("", node)).await?;
        let found = found.ok_or_else(|| errors::not_found(kind_of::<Node>(), node))?;
        match (&owner.uid, &found.metadata.uid) {
            (given, uid) if given == uid => Ok(()),
            (given, uid) => forbidden(format!(
                "node {node} UID mismatch: expected {given} got {uid}"
            )),
        }
    }

    fn check_pod_status(&self) -> Outcome {
        if self.request.operation != Operation::Update {
            return self.unexpected_operation();
        }
        let (node, old, new) = (self.node, self.old::<Pod>()?, self.object::<Pod>()?);
        if old.spec.node_name != node {
            return forbidden(format!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        if old.metadata.labels != new.metadata.labels {
            return forbidden(format!(
                "node {node:?} cannot update labels through pod status"
            ));
        }
        if resource_claims(old) != resource_claims(new) {
            return forbidden(format!(
                "node {node:?} cannot update resource claim statues"
            ));
        }
        let (before, now) = (&old.status, &new.status);
        match before.extended_resource_claim_status == now.extended_resource_claim_status {
            true => Ok(()),
            false => forbidden(format!(
                "node {node:?} cannot update extended resource claim status"
            )),
        }
    }

    async fn check_eviction(&self) -> Outcome {
        if self.request.operation != Operation::Create {
            let operation = self.request.operation.name();
            return forbidden(format!("unexpected operation {operation}"));
        }
        let pod = self.pod(&self.request.target.key()).await?;
        match pod.spec.node_name == self.node {
            true => Ok(()),
            false => forbidden(format!(
                "node {} can only evict pods with spec.nodeName set to itself",
                self.node
            )),
        }
    }

    /// Returns a Pod.
    ///
    /// # Errors
    /// `NotFound`.
    pub(super) async fn pod(&self, key: &Key) -> Result<Pod, Refusal> {
        let found = self.reader.find::<Pod>(key).await?;
        found.ok_or_else(|| errors::not_found(kind_of::<Pod>(), &key.name).into())
    }
}

/// Returns the names in the status of a Pod of its ResourceClaims.
fn resource_claims(pod: &Pod) -> Vec<(&str, Option<&str>)> {
    let statuses = pod.status.resource_claim_statuses.iter();
    let names = statuses.map(|one| (one.name.as_str(), one.resource_claim_name.as_deref()));
    names.collect()
}
