//! Objects that belong to a node by their names or by a field.

use setpoint_kinds::certificatesigningrequest::subject;
use setpoint_model::replicas;
use setpoint_proto::certificates::CertificateSigningRequest;
use setpoint_proto::resource::ResourceSlice;

use super::{Outcome, Write, forbidden};
use crate::admission::Operation;

/// The signers of the certificates of nodes.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

impl Write<'_> {
    pub(super) fn check_lease(&self) -> Outcome {
        match self.request.target.namespace.as_str() {
            replicas::NODE_LEASES if self.is_of_own_name() => Ok(()),
            replicas::NODE_LEASES => {
                forbidden("can only access node lease with the same name as the requesting node")
            }
            // The plugin ReplicaAnnouncement checks these.
            replicas::NAMESPACE => Ok(()),
            _ => forbidden("can only access leases in the \"kube-node-lease\" system namespace"),
        }
    }

    pub(super) fn check_csi_node(&self) -> Outcome {
        match self.is_of_own_name() {
            true => Ok(()),
            false => forbidden("can only access CSINode with the same name as the requesting node"),
        }
    }

    /// The authorizer does not know the object of a create, nor those of a deletion of many.
    pub(super) fn check_resource_slice(&self) -> Outcome {
        let (slice, verb) = match self.request.operation {
            Operation::Create => (self.object::<ResourceSlice>()?, "create"),
            Operation::Delete => (self.old::<ResourceSlice>()?, "delete"),
            Operation::Update | Operation::Connect => return Ok(()),
        };
        match slice.spec.node_name.as_deref() == Some(self.node) {
            true => Ok(()),
            false => forbidden(format!(
                "can only {verb} ResourceSlice with the same NodeName as the requesting node"
            )),
        }
    }

    pub(super) fn check_signing_request(&self) -> Outcome {
        if self.request.operation != Operation::Create {
            return Ok(());
        }
        let spec = &self.object::<CertificateSigningRequest>()?.spec;
        if !SIGNERS.contains(&spec.signer_name.as_str()) {
            return Ok(());
        }
        let expected = format!("system:node:{}", self.node);
        match subject(&spec.request) {
            Ok(subject) if subject.common_name == expected => Ok(()),
            Ok(_) => forbidden(format!("can only create a node CSR with CN={expected}")),
            Err(error) => forbidden(format!("unable to parse csr: {error}")),
        }
    }
}
