//! The role by which clients without credentials, and nodes, may read `kube-public/cluster-info`. Only clusters that
//! publish it have the role, so that it is not among those of every cluster. kubeadm has one like it,
//! `kubeadm:bootstrap-signer-clusterinfo`.

use setpoint_model::users::{NODES, of_service};
use setpoint_proto::rbac::{Role, RoleBinding};

use super::object::{group, role as role_in, role_binding as binding_in};
use super::rule::resource_rule;

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";

/// Returns the role.
pub fn role() -> Role {
    let rule = resource_rule("get", "core", "configmaps", NAME);
    role_in(NAMESPACE, &of_service(NAME), vec![rule])
}

/// Returns its binding to clients without credentials: a machine that is to join has none. Nodes follow changes of the
/// CAs there.
pub fn role_binding() -> RoleBinding {
    let readers = ["system:unauthenticated", NODES].map(group);
    binding_in(NAMESPACE, &of_service(NAME), readers.into())
}
