//! Limits what nodes write to themselves and to the Pods that are bound to them (upstream: the plugin NodeRestriction
//! of 1.36). The authorization mode `Node` decides what nodes may ask for at all; without it, this holds nonetheless.
//!
//! | resource | what a node may do |
//! |---|---|
//! | Pods | create a mirror Pod of its own, which names no other object; delete its own |
//! | Pods, `status` | update that of its own, but neither labels nor ResourceClaims |
//! | Pods, `eviction` | evict its own |
//! | Nodes | create and update itself, but neither taints, owners nor labels that others trust |
//! | PersistentVolumeClaims, `status` | update capacity and conditions |
//! | ServiceAccounts, `token` | for one of its Pods, for an audience that the Pod names |
//! | Leases, CSINodes | those of its name |
//! | ResourceSlices | those of its own devices |
//! | CertificateSigningRequests | for a certificate of a node, one of itself |
//!
//! Setpoint's agents of nodes do two things more: they announce themselves by Leases in `setpoint-replicas` (see the
//! plugin ReplicaAnnouncement), and they release PersistentVolumes whose directories they have removed.

mod node;
mod objects;
mod pod;
mod token;
mod volume;

use std::sync::Arc;

use setpoint_codec::{Object, kind_of};
use setpoint_kinds::Subresource;
use setpoint_proto::certificates::CertificateSigningRequest;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use setpoint_proto::resource::ResourceSlice;
use setpoint_proto::storage::CsiNode;
use setpoint_proto::{ApiError, Resource};

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use crate::request::authorization::{Authorizer, node_of};

/// The plugin.
pub(in crate::admission) struct NodeRestriction {
    authorizer: Arc<Authorizer>,
}

impl NodeRestriction {
    /// Returns the plugin. The authorizer says which further audiences the tokens of a node's Pods may have.
    pub(in crate::admission) const fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }
}

impl Plugin for NodeRestriction {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        let node = node_of(&request.context.user)?;
        if request.is_admitted || request.operation == Operation::Connect {
            return None;
        }
        let step = async move {
            let write = Write {
                node,
                request,
                object,
                reader,
                authorizer: &self.authorizer,
            };
            let checked = write.check().await;
            checked.map_err(|refusal| refusal.into_error(request))
        };
        Some(Box::pin(step))
    }
}

/// A write of a node.
struct Write<'a> {
    /// The name of the node.
    node: &'a str,
    request: Attributes<'a>,
    /// The new object, or the body of the subresource; the old object for a deletion.
    object: &'a dyn Object,
    reader: &'a dyn Reader,
    authorizer: &'a Authorizer,
}

/// The reason why a write is refused.
enum Refusal {
    /// The node may not do that.
    Forbidden(String),
    /// Another error, which a node may retry.
    Error(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Refusal {
    fn into_error(self, request: Attributes<'_>) -> ApiError {
        match self {
            Self::Forbidden(why) => errors::forbidden(request.target, &why, None),
            Self::Error(error) => error,
        }
    }
}

type Outcome = Result<(), Refusal>;

fn forbidden(why: impl Into<String>) -> Outcome {
    Err(Refusal::Forbidden(why.into()))
}

impl Write<'_> {
    async fn check(&self) -> Outcome {
        if self.node.is_empty() {
            let user = &self.request.context.user.name;
            return forbidden(format!("could not determine node from user {user:?}"));
        }
        match self.request.target.subresource {
            part if self.is_about::<Pod>() => self.check_pod_or_part(part).await,
            _ if self.is_about::<Node>() => self.check_node(),
            Subresource::Status if self.is_about::<PersistentVolumeClaim>() => {
                self.check_claim_status()
            }
            _ if self.is_about::<PersistentVolumeClaim>() => {
                forbidden("may only update PVC status")
            }
            _ if self.is_about::<PersistentVolume>() => self.check_volume(),
            Subresource::Token => self.check_token().await,
            _ if self.is_about::<Lease>() => self.check_lease(),
            _ if self.is_about::<CsiNode>() => self.check_csi_node(),
            _ if self.is_about::<ResourceSlice>() => self.check_resource_slice(),
            _ if self.is_about::<CertificateSigningRequest>() => self.check_signing_request(),
            _ => Ok(()),
        }
    }

    /// Returns whether the request is about an object of a type, or a part of it.
    fn is_about<T: Resource>(&self) -> bool {
        *self.request.target.kind == *kind_of::<T>()
    }

    /// Returns the new object; the old one for a deletion.
    ///
    /// # Errors
    /// If it is of another type.
    fn object<T: 'static>(&self) -> Result<&T, Refusal> {
        let found = self.object.downcast_ref::<T>();
        found.ok_or_else(|| self.unexpected())
    }

    /// Returns the object before the write.
    ///
    /// # Errors
    /// If there is none, or it is of another type.
    fn old<T: 'static>(&self) -> Result<&T, Refusal> {
        let found = self.request.old.and_then(|old| old.downcast_ref::<T>());
        found.ok_or_else(|| self.unexpected())
    }

    fn unexpected(&self) -> Refusal {
        let kind = &self.object.kind().kind;
        Refusal::Forbidden(format!("unexpected type {kind}"))
    }

    fn unexpected_operation(&self) -> Outcome {
        let operation = self.request.operation.name();
        forbidden(format!("unexpected operation {operation:?}"))
    }

    /// Returns the name of the object, which must be that of the node.
    fn is_of_own_name(&self) -> bool {
        self.request.target.name == self.node
    }
}
