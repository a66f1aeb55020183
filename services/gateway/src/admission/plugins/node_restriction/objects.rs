//! Objects that belong to a node by their names or by a field.

use setpoint_kinds::certificatesigningrequest::subject;
use setpoint_model::replicas;
use setpoint_proto::certificates::CertificateSigningRequest;
use setpoint_proto::coordination::Lease;
use setpoint_proto::resource::ResourceSlice;

use super::{Outcome, Write, forbidden};
use crate::admission::Operation;

/// The namespace of the Leases by which nodes say that they are alive.
const LEASES: &str = "kube-node-lease";
/// The signers of the certificates of nodes.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

impl Write<'_> {
    pub(super) fn check_lease(&self) -> Outcome {
        match self.request.target.namespace.as_str() {
            LEASES if self.is_of_own_name() => Ok(()),
            LEASES => {
                forbidden("can only access node lease with the same name as the requesting node")
            }
            replicas::NAMESPACE => self.check_announcement(),
            _ => forbidden("can only access leases in the \"kube-node-lease\" system namespace"),
        }
    }

    /// Allows Leases that announce agents of nodes, which no other service's may become.
    fn check_announcement(&self) -> Outcome {
        let old = match self.request.operation {
            Operation::Create => None,
            _ => Some(self.old::<Lease>()?),
        };
        let is_agent = |lease: &Lease| {
            let service = lease.metadata.labels.get(replicas::SERVICE);
            service.is_some_and(|service| service == replicas::NODE_AGENT)
        };
        match is_agent(self.object::<Lease>()?) && old.is_none_or(is_agent) {
            true => Ok(()),
            false => forbidden(format!(
                "node {:?} can only access leases of agents of nodes in the {:?} namespace",
                self.node,
                replicas::NAMESPACE
            )),
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
